//! Pages of an engine that takes a text of its own (dialect `opaque`): nothing can be added to that, so the source is asked for the whole
//! result each time, and the page is cut from it here, in the order in which the rows came.

use std::sync::Arc;
use std::time::Instant;

use souk_domain::ids::CompanyId;
use souk_sandbox::{FaultKind, Limits, Output, Query, Request, json};

use super::asked::{Asked, PAGE_BYTES_MAX};
use super::large::worked;
use crate::App;
use crate::connections::source::source;
use crate::definition::Field;
use crate::failure::Cause;
use crate::products::{EndpointSnapshot, PageStatement, row_bytes};

/// Rows of a whole result: what a seller's API answers in one go.
pub(crate) const ROWS_MAX: u32 = 10_000;

/// The whole result.
pub(super) async fn ask(
    app: &App,
    endpoint: &EndpointSnapshot,
    text: &str,
    caller: &CompanyId,
    deadline: Instant,
) -> Result<Output, Cause> {
    let row = &endpoint.row;
    let source = source(app, &row.company_id, &row.written.connection_id).await?;
    let request = Request::Query(Query {
        text: text.into(),
        parameters: Vec::new(),
        limits: Limits::new(ROWS_MAX, PAGE_BYTES_MAX),
    });
    let answer = app
        .sandbox
        .run_for(caller.as_str(), source.shared(), request, deadline)
        .await;
    answer.map_err(|fault| match fault.kind {
        FaultKind::LimitExceeded => Cause::bad_answer(format!(
            "the result is larger than {ROWS_MAX} rows or {PAGE_BYTES_MAX} bytes, which is what pages are cut from"
        )),
        _ => Cause::Fault(fault),
    })
}

/// One page, and one row more if there is one.
pub(super) async fn page(
    app: &App,
    endpoint: &EndpointSnapshot,
    text: &str,
    asked: &Asked<'_>,
    caller: &CompanyId,
    deadline: Instant,
) -> Result<(Arc<PageStatement>, Output), Cause> {
    let output = ask(app, endpoint, text, caller, deadline).await?;
    let published = published(endpoint, asked, &output)?;
    let start = usize::try_from(asked.from.offset()).unwrap_or(usize::MAX);
    let rows = asked.page.fetch() as usize;
    let cut = move |output: Output| cut(output, start, rows);
    // Nothing is written yet.
    let output = (output, 0);
    let output = worked(app, &endpoint.row.company_id, deadline, output, cut).await?;
    let statement = PageStatement {
        text: text.into(),
        slots: Vec::new(),
        columns: output
            .columns
            .iter()
            .map(|column| column.name.clone())
            .collect(),
        row_bytes: row_bytes(&published),
        published,
        keys: Vec::new(),
        by_key: false,
    };
    Ok((Arc::new(statement), output))
}

/// So many rows of a result, from `start` on. All others are dropped.
fn cut(mut output: Output, start: usize, rows: usize) -> Output {
    output.skip(start);
    output.truncate(rows);
    output
}

/// Where the result has the fields that are wanted.
fn published(
    endpoint: &EndpointSnapshot,
    asked: &Asked<'_>,
    output: &Output,
) -> Result<Vec<json::Field>, Cause> {
    // An empty result may come without its columns.
    if output.rows == 0 && output.columns.is_empty() {
        return Ok(Vec::new());
    }
    let wanted = endpoint.wanted(&asked.shape).into_iter();
    wanted.map(|field| placed(field, output)).collect()
}

/// Where the result has a field. Whoever buys knows it by the name that it is published under; its column's is the owner's, who may have hidden it
/// behind an alias.
fn placed(field: &Field, output: &Output) -> Result<json::Field, Cause> {
    let published = field.published();
    match output.column(&field.name) {
        Some(column) => Ok(json::Field::new(column, published)),
        None => Err(Cause::bad_answer_in(
            format!("the source's result has no column for the field \"{published}\""),
            format!("the result has no column \"{}\"", field.name),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sandbox::{Column, ColumnKind};

    /// What the source calls a column that its result does not have is told to the product's owner, and to nobody else.
    #[test]
    fn a_column_behind_an_alias_is_told_to_its_owner_alone() {
        let column = Column {
            name: "id".to_owned(),
            kind: ColumnKind::Int64,
            nullable: true,
            native: String::new(),
        };
        let output = Output::new(vec![column].into(), Vec::new(), 0);
        let field = |name: &str, alias: Option<&str>| Field {
            name: name.to_owned(),
            alias: alias.map(str::to_owned),
            description: None,
        };
        assert!(placed(&field("id", Some("number")), &output).is_ok());
        let Err(Cause::Fault(fault)) = placed(&field("cost_2024", Some("price")), &output) else {
            panic!("a column that is not there");
        };
        assert!(!fault.message.contains("cost_2024"), "{fault:?}");
        assert!(fault.message.contains("\"price\""), "{fault:?}");
        let told = fault.detail.unwrap_or_default();
        assert!(told.contains("\"cost_2024\""), "{told}");
    }
}
