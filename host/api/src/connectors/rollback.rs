use super::{ConnectorOut, REFUSALS, changed, refusal, scope};
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_app::connectors;
use souk_domain::ids::CompanyId;
use souk_domain::roles::{Permission, Role};

const NOTES: &str = "409 `CONFLICT` when there is no earlier version. A second rollback returns to the version of before. \
While a canary takes a share of the calls, this ends it, and the active version stays.";

pub const PLATFORM: Operation =
    Operation::post("rollback_connector", "/connectors/{name}/rollback")
        .about(
            "Connectors",
            "Go back to the version that was active before",
        )
        .notes(NOTES)
        .needs(Role::SuperAdmin, Permission::Write)
        .refuses(REFUSALS);

pub const COMPANY: Operation = Operation::post(
    "rollback_company_connector",
    "/companies/{company_id}/connectors/{name}/rollback",
)
.about(
    "Connectors",
    "Go back to the version of the company's own connector that was active before",
)
.notes(NOTES)
.needs(Role::DataEngineer, Permission::Write)
.refuses(REFUSALS);

pub async fn rollback_connector(
    api: State<ApiState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Data<ConnectorOut>, Problem> {
    rollback(api, caller, name).await
}

pub async fn rollback_company_connector(
    api: State<ApiState>,
    caller: Caller,
    Path((_, name)): Path<(CompanyId, String)>,
) -> Result<Data<ConnectorOut>, Problem> {
    rollback(api, caller, name).await
}

async fn rollback(
    State(api): State<ApiState>,
    caller: Caller,
    name: String,
) -> Result<Data<ConnectorOut>, Problem> {
    let (scope, is_staff) = (scope(&caller), caller.is_staff());
    let info = connectors::rollback(api.app(), &scope, &name, is_staff, api.detach())
        .await
        .map_err(refusal(&name))?;
    changed(&api, &caller, info).await
}
