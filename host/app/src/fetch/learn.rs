//! What a source says about the columns that an endpoint's pages need: whether it has them, and of which
//! types they are.

use std::sync::Arc;
use std::time::Instant;

use souk_sandbox::{
    Blame, Cell, Fault, Limits, Output, Query, Request, SchemaFilter, Source, Value,
};

use super::PAGE_BYTES_MAX;
use crate::App;
use crate::connections::source::source;
use crate::failure::Cause;
use crate::products::{EndpointSnapshot, Learned, LearnedColumn};

/// A table with more columns than this is not sold by the row.
const CATALOG_ROWS_MAX: u32 = 2_000;

/// Asks the source for the types of the columns and, where nothing else orders the rows, for the key.
pub async fn learn(
    app: &App,
    endpoint: &EndpointSnapshot,
    deadline: Instant,
) -> Result<Learned, Cause> {
    let source = source(
        app,
        &endpoint.row.company_id,
        &endpoint.row.written.connection_id,
    )
    .await?;
    let mut learned = Learned::default();
    if let (true, Some(table)) = (
        endpoint.plan.order_by.is_empty(),
        &endpoint.row.written.details.source_table,
    ) {
        let filter = SchemaFilter {
            schemas: endpoint
                .row
                .written
                .details
                .source_schema
                .iter()
                .cloned()
                .collect(),
            tables: vec![table.clone()],
            include_fields: true,
            limits: Limits::new(CATALOG_ROWS_MAX, PAGE_BYTES_MAX),
        };
        let catalog = app
            .sandbox
            .run(&source, Request::Schema(filter), deadline)
            .await?;
        learned.key = primary_key(&catalog);
        if learned.key.is_empty() {
            return Err(Cause::NoOrder);
        }
    }
    let limits = Limits::new(1, PAGE_BYTES_MAX);
    let parameters = vec![Value::Int64(1), Value::Int64(0)];
    let request = Request::Query(Query {
        text: endpoint.probe().into(),
        parameters,
        limits,
    });
    let output = match app.sandbox.run(&source, request, deadline).await {
        Ok(output) => output,
        // Which of the names it is that the source does not know, it says in its own words, or not at all.
        Err(fault) => return Err(unknown_names(app, endpoint, &source, fault, deadline).await),
    };
    let needed = endpoint.needed();
    let learn = |(at, column): (usize, &souk_sandbox::Column)| LearnedColumn {
        // By the name that it was asked by: `ID` and `id` are one column to SQLite.
        name: match needed.get(at) {
            Some(name) if name.eq_ignore_ascii_case(&column.name) => (*name).to_owned(),
            _ => column.name.clone(),
        },
        kind: column.kind.as_str().to_owned(),
        native: column.native.clone(),
    };
    learned.columns = output.columns.iter().enumerate().map(learn).collect();
    // An empty result may come without its columns.
    if output.rows == 0 && output.columns.is_empty() {
        return Ok(learned);
    }
    // To SQLite a quoted name that no column has is a text, and the answer has a column of another name.
    let missing = endpoint.missing(|name| learned.kind(name).is_some());
    match missing.is_empty() {
        true => Ok(learned),
        false => Err(Cause::NoSuchColumns(missing)),
    }
}

/// Why the source refused to read the columns that pages need: the names in `filters` and `order_by` that its
/// result does not have, if there are any, else what it said.
async fn unknown_names(
    app: &App,
    endpoint: &EndpointSnapshot,
    source: &Arc<Source>,
    fault: Fault,
    deadline: Instant,
) -> Cause {
    if fault.blame != Blame::Source {
        return fault.into();
    }
    let request = Request::Query(Query {
        text: endpoint.columns().into(),
        parameters: Vec::new(),
        limits: Limits::new(1, PAGE_BYTES_MAX),
    });
    let Ok(output) = app.sandbox.run(source, request, deadline).await else {
        return fault.into();
    };
    let missing = endpoint.missing(|name| output.column(name).is_some());
    match missing.is_empty() || output.columns.is_empty() {
        true => fault.into(),
        false => Cause::NoSuchColumns(missing),
    }
}

/// The fields of the first table in a catalog that are its key.
fn primary_key(catalog: &Output) -> Vec<String> {
    let column = |name| catalog.column(name).unwrap_or(usize::MAX);
    let (schema, field, key) = (column("schema"), column("field"), column("primary_key"));
    let first = match catalog.cell(0, schema) {
        Cell::Text(text) => text.to_owned(),
        _ => String::new(),
    };
    (0..catalog.rows)
        .filter(|row| catalog.cell(*row, schema).as_str().unwrap_or_default() == first)
        .filter(|row| catalog.cell(*row, key).as_bool() == Some(true))
        .filter_map(|row| catalog.cell(row, field).as_str().map(str::to_owned))
        .collect()
}
