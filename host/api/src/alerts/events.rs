use super::find;
use super::shape::AlertEventOut;
use crate::{ApiState, Caller, List, Operation, Paging, Path, Problem, Query};
use axum::extract::State;
use souk_domain::ids::{AlertId, CompanyId};
use souk_store::alerts;

pub const OPERATION: Operation = Operation::get(
    "list_alert_events",
    "/companies/{company_id}/alerts/{alert_id}/events",
)
.about(
    "Alerts",
    "List the changes of an alert's state, newest first",
)
.notes("Of each alert the newest 200 are kept. A test is none.");

/// Lists the changes of an alert's state.
pub async fn list_alert_events(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AlertId)>,
    Query(paging): Query<Paging>,
) -> Result<List<AlertEventOut>, Problem> {
    let page = paging.page();
    let mut read = api.db().read().await?;
    find(&mut read, &caller, &id).await?;
    let listed = alerts::list_events(&mut read, &id, page.part()).await?;
    Ok(List::of(page, listed, AlertEventOut::from))
}
