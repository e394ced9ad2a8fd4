use super::shape::{PayoutOut, Wanted};
use crate::{ApiState, Caller, List, Operation, Problem, Query};
use axum::extract::State;
use souk_domain::roles::{Permission, Role};
use souk_store::payouts;

pub const OPERATION: Operation = Operation::get("list_all_payouts", "/admin/payouts")
    .about("Payouts", "List the payouts of all companies, newest first")
    .notes("Platform staff only: `status=requested` is what waits to be transferred.")
    .needs(Role::SuperAdmin, Permission::Read);

/// Lists everybody's payouts.
pub async fn list_all_payouts(
    State(api): State<ApiState>,
    _: Caller,
    Query(query): Query<Wanted>,
) -> Result<List<PayoutOut>, Problem> {
    let page = query.paging.page();
    let mut read = api.db().read().await?;
    let listed = payouts::list(&mut read, None, query.status, page.part()).await?;
    Ok(List::of(page, listed, PayoutOut::from))
}
