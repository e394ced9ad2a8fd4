use super::{ConnectorOut, changed, refusal, scope};
use crate::refusals::{CONFLICT, CONNECTOR_NOT_FOUND};
use crate::{ApiState, Body, Caller, Data, Operation, Path, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use souk_app::connectors;
use souk_domain::ids::CompanyId;
use souk_domain::roles::{Permission, Role};
use utoipa::ToSchema;

const NOTES: &str = "No version of it serves anybody from the next call on, on every host and after a restart, until one is activated again: calls of products on its \
engines are 503 `CONNECTOR_UNAVAILABLE` and cost nothing, calls in flight end. `GET \u{2026}/connectors/{name}/connections` says beforehand whom that concerns. \
With the `version` of a canary that one alone is ended, and the active version takes all calls. 409 `CONFLICT`: it is not active.";

pub const PLATFORM: Operation =
    Operation::post("deactivate_connector", "/connectors/{name}/deactivate")
        .about("Connectors", "Take a connector of the platform off work")
        .notes(NOTES)
        .needs(Role::SuperAdmin, Permission::Write)
        .refuses(&[CONNECTOR_NOT_FOUND, CONFLICT]);

pub const COMPANY: Operation = Operation::post(
    "deactivate_company_connector",
    "/companies/{company_id}/connectors/{name}/deactivate",
)
.about("Connectors", "Take the company's own connector off work")
.notes(concat!(
    "As for the platform's. What the platform's staff has taken off work, staff alone puts back: the company is told 409 ",
    "`CONNECTOR_BLOCKED` with the reason. 409 `CONFLICT`: it is not active."
))
.needs(Role::DataEngineer, Permission::Write)
.refuses(&[CONNECTOR_NOT_FOUND, CONFLICT]);

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct DeactivateIn {
    /// The one that is meant. Default: whatever of it takes calls.
    #[schema(min_length = 1, max_length = 255)]
    pub version: Option<String>,
    /// Why, for whoever looks at it later.
    #[schema(value_type = Option<String>, max_length = 500)]
    pub reason: Option<Text<0, 500>>,
}

pub async fn deactivate_connector(
    api: State<ApiState>,
    caller: Caller,
    Path(name): Path<String>,
    body: Body<DeactivateIn>,
) -> Result<Data<ConnectorOut>, Problem> {
    deactivate(api, caller, name, body).await
}

pub async fn deactivate_company_connector(
    api: State<ApiState>,
    caller: Caller,
    Path((_, name)): Path<(CompanyId, String)>,
    body: Body<DeactivateIn>,
) -> Result<Data<ConnectorOut>, Problem> {
    deactivate(api, caller, name, body).await
}

async fn deactivate(
    State(api): State<ApiState>,
    caller: Caller,
    name: String,
    Body(body): Body<DeactivateIn>,
) -> Result<Data<ConnectorOut>, Problem> {
    let reason = body.reason.map(Text::into_string);
    let info = connectors::deactivate(
        api.app(),
        &scope(&caller),
        (&name, body.version.as_deref()),
        caller.is_staff(),
        reason.filter(|reason| !reason.trim().is_empty()),
        api.detach(),
    )
    .await
    .map_err(refusal(&name))?;
    changed(&api, &caller, info).await
}
