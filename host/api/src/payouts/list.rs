use super::shape::{PayoutOut, Wanted};
use crate::{ApiState, Caller, List, Operation, Problem, Query};
use axum::extract::State;
use souk_store::payouts;

pub const OPERATION: Operation = Operation::get("list_payouts", "/companies/{company_id}/payouts")
    .about("Payouts", "List a company's payouts, newest first");

/// Lists a company's payouts.
pub async fn list_payouts(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<Wanted>,
) -> Result<List<PayoutOut>, Problem> {
    let page = query.paging.page();
    let mut read = api.db().read().await?;
    let listed =
        payouts::list(&mut read, Some(caller.company()), query.status, page.part()).await?;
    Ok(List::of(page, listed, PayoutOut::from))
}
