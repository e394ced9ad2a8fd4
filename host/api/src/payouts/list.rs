use super::shape::{PayoutOut, STATUS};
use crate::{
    ApiState, Caller, List, Operation, PAGE, PER_PAGE, Page, Problem, Query, Shape, schema,
};
use axum::extract::State;
use souk_store::payouts::{self, PayoutStatus};

pub const OPERATION: Operation = Operation::get("list_payouts", "/companies/{company_id}/payouts")
    .about("Payouts", "List a company's payouts, newest first")
    .query(&[PAGE, PER_PAGE, STATUS])
    .returns(200, Shape::List(schema::<PayoutOut>));

/// Lists a company's payouts.
pub async fn list_payouts(
    State(api): State<ApiState>,
    caller: Caller,
    query: Query,
) -> Result<List<PayoutOut>, Problem> {
    let page = Page::of(&query);
    let status = query.text("status").and_then(PayoutStatus::parse);
    let mut read = api.db().read().await?;
    let (found, total) = payouts::list(
        &mut read,
        Some(caller.company()),
        status,
        page.offset(),
        page.limit(),
    )
    .await?;
    Ok(List {
        data: found.into_iter().map(PayoutOut::from).collect(),
        total,
        page,
    })
}
