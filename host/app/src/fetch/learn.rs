//! What a source says about the columns that an endpoint's pages need: whether it has them, and of which
//! types they are.

use std::sync::Arc;
use std::time::Instant;

use souk_sandbox::{Blame, Fault, Limits, Output, Query, Request, SchemaFilter, Source};

use super::asked::PAGE_BYTES_MAX;
use super::whole;
use crate::App;
use crate::connections::source::source;
use crate::failure::Cause;
use crate::products::{EndpointSnapshot, Learned, LearnedColumn};

/// A table with more columns than this is not sold by the row.
const CATALOG_ROWS_MAX: u32 = 2_000;

/// Asks the source for the types of the columns and, of a table, for its key and for what may be NULL.
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
    if let Some(text) = endpoint.whole() {
        let output = whole::ask(app, endpoint, text, deadline).await?;
        return of_whole(endpoint, &output);
    }
    let mut learned = Learned::default();
    let mut catalog = Output::default();
    if let Some(table) = &endpoint.row.written.details.source_table {
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
        let is_ordered = !endpoint.plan.order_by.is_empty();
        let asked = app
            .sandbox
            .run(source.shared(), Request::Schema(filter), deadline)
            .await;
        catalog = match asked {
            Ok(catalog) => catalog,
            // Pages work without knowing more.
            Err(_) if is_ordered => Output::default(),
            Err(fault) => return Err(fault.into()),
        };
        learned.key = primary_key(&catalog);
        if learned.key.is_empty() && !is_ordered {
            return Err(Cause::NoOrder);
        }
    }
    let limits = Limits::new(1, PAGE_BYTES_MAX);
    let request = Request::Query(Query {
        text: endpoint.probe().into(),
        parameters: Vec::new(),
        limits,
    });
    let output = match app.sandbox.run(source.shared(), request, deadline).await {
        Ok(output) => output,
        // Which of the names it is that the source does not know, it says in its own words, or not at all.
        Err(fault) => {
            return Err(unknown_names(app, endpoint, source.shared(), fault, deadline).await);
        }
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
        nullable: nullable(&catalog, &column.name),
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

/// What a whole result says of the published columns.
fn of_whole(endpoint: &EndpointSnapshot, output: &Output) -> Result<Learned, Cause> {
    let mut learned = Learned::default();
    if output.rows == 0 && output.columns.is_empty() {
        return Ok(learned);
    }
    let mut missing = Vec::new();
    for name in endpoint.needed() {
        match output.column(name) {
            Some(column) => {
                let column = &output.columns[column];
                learned.columns.push(LearnedColumn {
                    name: name.to_owned(),
                    kind: column.kind.as_str().to_owned(),
                    native: column.native.clone(),
                    nullable: Some(column.nullable),
                });
            }
            None => missing.push(("fields", name.to_owned())),
        }
    }
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
    let (field, key) = (place(catalog, "field"), place(catalog, "primary_key"));
    first_table(catalog)
        .filter(|row| catalog.cell(*row, key).as_bool() == Some(true))
        .filter_map(|row| catalog.cell(row, field).as_str().map(str::to_owned))
        .collect()
}

/// Whether a field of the first table in a catalog may be NULL, as far as it says.
fn nullable(catalog: &Output, name: &str) -> Option<bool> {
    let (field, nullable) = (place(catalog, "field"), place(catalog, "nullable"));
    let find = |is_it: fn(&str, &str) -> bool| {
        let mut rows = first_table(catalog);
        rows.find(|row| {
            catalog
                .cell(*row, field)
                .as_str()
                .is_some_and(|known| is_it(known, name))
        })
    };
    let row = find(|known, name| known == name).or_else(|| find(str::eq_ignore_ascii_case));
    catalog.cell(row?, nullable).as_bool()
}

fn place(catalog: &Output, column: &str) -> usize {
    catalog.column(column).unwrap_or(usize::MAX)
}

/// The rows of a catalog that are of its first table.
fn first_table(catalog: &Output) -> impl Iterator<Item = usize> {
    let schema = place(catalog, "schema");
    let is_of_it = move |row: &usize| catalog.cell(*row, schema) == catalog.cell(0, schema);
    (0..catalog.rows).filter(is_of_it)
}
