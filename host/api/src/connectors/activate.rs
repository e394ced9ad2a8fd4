use super::{ConnectorOut, REFUSALS, changed, scope, version_refusal};
use crate::{ApiState, Body, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_app::connectors::{self, EVERY_CALL};
use souk_domain::ids::CompanyId;
use souk_domain::roles::{Permission, Role};
use utoipa::ToSchema;

const NOTES: &str = "New calls go to the new version, calls in flight end on the old one. 409 `CONNECTOR_UNHEALTHY` leaves the old \
version active. With `share_percent` below 100 it is a canary: so many of the calls go to it, and the others to the active version, on every host and \
after a restart; activated again with another share it has that, with 100 it is the active one, `rollback` ends it. What breaks too often \
is ended by itself, as its `error` says. 409 `CONFLICT`: no version is active beside which it could be tried, or it cannot be asked what that one is.";

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
    /// Of the calls that its data connections get. Default 100: it takes the active one's place.
    #[schema(minimum = 1, maximum = 100)]
    pub share_percent: Option<i64>,
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
    let share_percent = match body.share_percent {
        None => EVERY_CALL,
        Some(share) => u8::try_from(share)
            .ok()
            .filter(|share| (1..=EVERY_CALL).contains(share))
            .ok_or_else(|| Problem::invalid("share_percent", "must be 1 to 100"))?,
    };
    let of = (name.as_str(), body.version.as_str());
    let (scope, is_staff) = (scope(&caller), caller.is_staff());
    let activated =
        connectors::activate(api.app(), &scope, of, share_percent, is_staff, api.detach());
    match activated.await {
        Ok(info) => changed(&api, &caller, info).await,
        Err(error) => Err(version_refusal(&api, &caller, of, error).await),
    }
}
