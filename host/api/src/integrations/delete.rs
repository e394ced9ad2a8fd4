use super::refusal;
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem};
use axum::extract::State;
use souk_app::integrations;
use souk_domain::ids::{CompanyId, IntegrationId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::delete(
    "delete_integration",
    "/companies/{company_id}/postgen_integrations/{integration_id}",
)
.about(
    "Integrations",
    "Delete an integration and destroy its credentials",
)
.notes("What waits to be published there is given up. What is there already stays there.")
.needs(Role::DataEngineer, Permission::Write);

pub async fn delete_integration(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, IntegrationId)>,
) -> Result<Deleted, Problem> {
    let deleted = integrations::delete(api.app(), caller.company(), &id).await;
    deleted.map_err(refusal(id.as_str()))?;
    Ok(Deleted)
}
