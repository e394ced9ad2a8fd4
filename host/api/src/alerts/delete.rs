use super::not_found;
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{AlertId, CompanyId};
use souk_domain::roles::{Permission, Role};
use souk_store::alerts;

pub const OPERATION: Operation =
    Operation::delete("delete_alert", "/companies/{company_id}/alerts/{alert_id}")
        .about("Alerts", "Delete an alert")
        .notes("With its events. What webhooks are to be told already is told; an evaluation in flight may still be charged.")
        .needs(Role::DataScientist, Permission::Write);

/// Deletes an alert.
pub async fn delete_alert(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AlertId)>,
) -> Result<Deleted, Problem> {
    api.db()
        .write(
            async |write| match alerts::delete(write, caller.company(), &id).await? {
                true => Ok(Deleted),
                false => Err(not_found(&id)),
            },
        )
        .await
}
