use super::shape::TransactionOut;
use crate::{
    ApiState, Caller, List, Operation, PAGE, PER_PAGE, Page, Param, ParamKind, Problem, Query,
    Shape, schema,
};
use axum::extract::State;
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
    kind: ParamKind::Time,
    about: "From this instant on.",
};
const END_DATE: Param = Param {
    name: "end_date",
    kind: ParamKind::Time,
    about: "Up to, not including, this instant.",
};
const PRODUCT_ID: Param = Param {
    name: "product_id",
    kind: ParamKind::Text { chars_max: 255 },
    about: "Only lines of this product.",
};

pub const OPERATION: Operation = Operation::get(
    "list_transactions",
    "/companies/{company_id}/credits/transactions",
)
.about("Credits", "List a company's statement, newest first")
.notes("What the company paid and received as a buyer, and what it earned as a seller.")
.query(&[PAGE, PER_PAGE, TYPE, START_DATE, END_DATE, PRODUCT_ID])
.returns(200, Shape::List(schema::<TransactionOut>));

/// Lists the lines of a company's statement.
pub async fn list_transactions(
    State(api): State<ApiState>,
    caller: Caller,
    query: Query,
) -> Result<List<TransactionOut>, Problem> {
    let page = Page::of(&query);
    let filter = LineFilter {
        kind: query.text("type").and_then(LineType::parse),
        from: query.time("start_date"),
        to: query.time("end_date"),
        product_id: query.text("product_id").map(str::to_owned),
    };
    let mut read = api.db().read().await?;
    let (lines, total) = statements::list(
        &mut read,
        caller.company(),
        &filter,
        page.offset(),
        page.limit(),
    )
    .await?;
    Ok(List {
        data: lines.into_iter().map(TransactionOut::from).collect(),
        total,
        page,
    })
}
