use super::refusal;
use super::shape::{ProbeIn, TestOut};
use crate::refusals::{CONFLICT, UNSAFE_URL, VALIDATION_ERROR};
use crate::{ApiState, Caller, Data, Operation, OptionalBody, Path, Problem};
use axum::extract::State;
use souk_app::connections::check;
use souk_domain::ids::{CompanyId, ConnectionId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::post(
    "test_connection",
    "/companies/{company_id}/connections/{connection_id}/test",
)
.about("Connections", "Try a saved connection")
.notes(
    "200 also when the connection does not work: `success` is false and `error` says why. A seller \
     API is asked for one function on both routings; where the answers differ, `error` names the place.",
)
.needs(Role::DataEngineer, Permission::Write)
.runs_connector()
.refuses(&[UNSAFE_URL, CONFLICT]);

/// Tries the connection on a session of its own and records what was found.
pub async fn test_connection(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, ConnectionId)>,
    OptionalBody(body): OptionalBody<ProbeIn>,
) -> Result<Data<TestOut>, Problem> {
    let probe = body.into_probe();
    let probe = probe.map_err(|errors| Problem::fields(VALIDATION_ERROR, errors))?;
    let report = check::saved(api.app(), caller.company(), &id, probe).await;
    Ok(Data(report.map_err(refusal(id.as_str()))?.into()))
}
