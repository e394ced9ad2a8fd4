use super::{ConnectorOut, REFUSALS, changed, refusal, scope};
use crate::{ApiState, Body, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_app::connectors;
use souk_domain::ids::CompanyId;
use souk_domain::roles::{Permission, Role};
use utoipa::ToSchema;

const NOTES: &str = "New calls go to the new version, calls in flight end on the old one. 409 `CONNECTOR_UNHEALTHY` leaves the old \
version active.";

pub const PLATFORM: Operation =
    Operation::post("activate_connector", "/connectors/{name}/activate")
        .about("Connectors", "Put a version to work")
        .notes(NOTES)
        .needs(Role::SuperAdmin, Permission::Write)
        .refuses(REFUSALS);

pub const COMPANY: Operation = Operation::post(
    "activate_company_connector",
    "/companies/{company_id}/connectors/{name}/activate",
)
.about(
    "Connectors",
    "Put a version of the company's own connector to work",
)
.notes(NOTES)
.needs(Role::DataEngineer, Permission::Write)
.refuses(REFUSALS);

#[derive(Debug, Deserialize, ToSchema)]
pub struct ActivateIn {
    #[schema(min_length = 1, max_length = 255)]
    pub version: String,
}

pub async fn activate_connector(
    api: State<ApiState>,
    caller: Caller,
    Path(name): Path<String>,
    body: Body<ActivateIn>,
) -> Result<Data<ConnectorOut>, Problem> {
    activate(api, caller, name, body).await
}

pub async fn activate_company_connector(
    api: State<ApiState>,
    caller: Caller,
    Path((_, name)): Path<(CompanyId, String)>,
    body: Body<ActivateIn>,
) -> Result<Data<ConnectorOut>, Problem> {
    activate(api, caller, name, body).await
}

async fn activate(
    State(api): State<ApiState>,
    caller: Caller,
    name: String,
    Body(body): Body<ActivateIn>,
) -> Result<Data<ConnectorOut>, Problem> {
    let info = connectors::activate(
        api.app(),
        &scope(&caller),
        &name,
        &body.version,
        caller.is_staff(),
    )
    .await
    .map_err(refusal(&name))?;
    changed(&api, &caller, info).await
}
