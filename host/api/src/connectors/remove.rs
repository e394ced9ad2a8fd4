use super::{scope, version_refusal};
use crate::refusals::{CONFLICT, CONNECTOR_NOT_FOUND};
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem};
use axum::extract::State;
use souk_app::connectors;
use souk_domain::ids::CompanyId;
use souk_domain::roles::{Permission, Role};

const NOTES: &str = "409 `CONFLICT` when it is active, a canary, or comes with the host.";

pub const PLATFORM: Operation = Operation::delete(
    "delete_connector_version",
    "/connectors/{name}/versions/{version}",
)
.about("Connectors", "Delete an uploaded version")
.notes(NOTES)
.needs(Role::SuperAdmin, Permission::Write)
.refuses(&[CONNECTOR_NOT_FOUND, CONFLICT]);

pub const COMPANY: Operation = Operation::delete(
    "delete_company_connector_version",
    "/companies/{company_id}/connectors/{name}/versions/{version}",
)
.about(
    "Connectors",
    "Delete a version of the company's own connector",
)
.notes(NOTES)
.needs(Role::DataEngineer, Permission::Write)
.refuses(&[CONNECTOR_NOT_FOUND, CONFLICT]);

pub async fn delete_connector_version(
    api: State<ApiState>,
    caller: Caller,
    Path((name, version)): Path<(String, String)>,
) -> Result<Deleted, Problem> {
    delete(api, caller, name, version).await
}

pub async fn delete_company_connector_version(
    api: State<ApiState>,
    caller: Caller,
    Path((_, name, version)): Path<(CompanyId, String, String)>,
) -> Result<Deleted, Problem> {
    delete(api, caller, name, version).await
}

async fn delete(
    State(api): State<ApiState>,
    caller: Caller,
    name: String,
    version: String,
) -> Result<Deleted, Problem> {
    let scope = scope(&caller);
    match connectors::remove(api.app(), &scope, &name, &version, api.detach()).await {
        Ok(()) => Ok(Deleted),
        Err(error) => Err(version_refusal(&api, &caller, (&name, &version), error).await),
    }
}
