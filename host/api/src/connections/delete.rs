use super::refusal;
use crate::refusals::RESOURCE_IN_USE;
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem};
use axum::extract::State;
use souk_app::connections;
use souk_domain::ids::{CompanyId, ConnectionId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::delete(
    "delete_connection",
    "/companies/{company_id}/connections/{connection_id}",
)
.about(
    "Connections",
    "Delete a connection and destroy its credentials",
)
.notes("409 `RESOURCE_IN_USE` while an asset or endpoint that is not archived runs on it.")
.needs(Role::DataEngineer, Permission::Write)
.refuses(&[RESOURCE_IN_USE]);

pub async fn delete_connection(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, ConnectionId)>,
) -> Result<Deleted, Problem> {
    let deleted = connections::delete(api.app(), caller.company(), &id).await;
    deleted.map_err(refusal(id.as_str()))?;
    Ok(Deleted)
}
