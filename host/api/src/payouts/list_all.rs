use super::shape::{PayoutOut, STATUS};
use crate::{
    ApiState, Caller, List, Operation, PAGE, PER_PAGE, Page, Problem, Query, Shape, schema,
};
use axum::extract::State;
use souk_domain::roles::{Permission, Role};
use souk_store::payouts::{self, PayoutStatus};

pub const OPERATION: Operation = Operation::get("list_all_payouts", "/admin/payouts")
    .about("Payouts", "List the payouts of all companies, newest first")
    .notes("Platform staff only: `status=requested` is what waits to be transferred.")
    .needs(Role::SuperAdmin, Permission::Read)
    .query(&[PAGE, PER_PAGE, STATUS])
    .returns(200, Shape::List(schema::<PayoutOut>));

/// Lists everybody's payouts.
pub async fn list_all_payouts(
    State(api): State<ApiState>,
    _: Caller,
    query: Query,
) -> Result<List<PayoutOut>, Problem> {
    let page = Page::of(&query);
    let status = query.text("status").and_then(PayoutStatus::parse);
    let mut read = api.db().read().await?;
    let (found, total) =
        payouts::list(&mut read, None, status, page.offset(), page.limit()).await?;
    Ok(List {
        data: found.into_iter().map(PayoutOut::from).collect(),
        total,
        page,
    })
}
