use super::csv;
use super::shape::TransactionOut;
use crate::{
    ApiState, Caller, List, Operation, PAGE, PER_PAGE, Page, Param, ParamKind, Problem, Query,
    Shape, schema,
};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use souk_store::statements::{self, LineFilter, LineType};

const TYPE: Param = Param {
    name: "type",
    kind: ParamKind::OneOf(&[
        "top_up",
        "grant",
        "charge",
        "refund",
        "earning",
        "payout",
        "adjustment",
    ]),
    about: "Only lines of this type.",
};
const START_DATE: Param = Param {
    name: "start_date",
    kind: ParamKind::From,
    about: "From this date or instant on.",
};
const END_DATE: Param = Param {
    name: "end_date",
    kind: ParamKind::Until,
    about: "Up to, not including, this instant; a date is included.",
};
const PRODUCT_ID: Param = Param {
    name: "product_id",
    kind: ParamKind::Text { chars_max: 255 },
    about: "Only lines of this product.",
};
const FORMAT: Param = Param {
    name: "format",
    kind: ParamKind::OneOf(&["json", "csv"]),
    about: "Default json, or what `Accept` says.",
};

pub const OPERATION: Operation = Operation::get(
    "list_transactions",
    "/companies/{company_id}/credits/transactions",
)
.about("Credits", "List a company's statement, newest first")
.notes(
    "What the company paid and received as a buyer, and what it earned as a seller. CSV holds all matching lines, at most 10000, unless a \
     page is asked for; texts that a spreadsheet would calculate begin with an apostrophe there.",
)
.query(&[
    PAGE, PER_PAGE, TYPE, START_DATE, END_DATE, PRODUCT_ID, FORMAT,
])
.returns(200, Shape::List(schema::<TransactionOut>))
.also(csv::CONTENT_TYPE);

/// Lists the lines of a company's statement.
pub async fn list_transactions(
    State(api): State<ApiState>,
    caller: Caller,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, Problem> {
    let page = Page::of(&query);
    let is_csv = query
        .text("format")
        .map_or_else(|| csv::is_accepted(&headers), |format| format == "csv");
    let is_whole = is_csv
        && query
            .integer("page")
            .or(query.integer("per_page"))
            .is_none();
    let (offset, limit) = match is_whole {
        true => (0, csv::LINES_MAX),
        false => (page.offset(), page.limit()),
    };
    let filter = LineFilter {
        kind: query.text("type").and_then(LineType::parse),
        from: query.time("start_date"),
        to: query.time("end_date"),
        product_id: query.text("product_id").map(str::to_owned),
    };
    let mut read = api.db().read().await?;
    let (lines, total) =
        statements::list(&mut read, caller.company(), &filter, offset, limit).await?;
    let lines = lines.into_iter().map(TransactionOut::from);
    if !is_csv {
        let data = lines.collect();
        return Ok(List { data, total, page }.into_response());
    }
    if is_whole && total > csv::LINES_MAX {
        let message = format!(
            "{total} lines match and one file holds {}: ask for a shorter period, or for pages",
            csv::LINES_MAX
        );
        return Err(Problem::bad_request("INVALID_PERIOD", message));
    }
    Ok(csv::answer(lines))
}
