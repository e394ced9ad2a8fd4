use super::refusal;
use super::shape::{ConnectionIn, ProbeIn, TestOut};
use crate::{ApiState, Caller, Data, Operation, Problem, RawBody, Shape, schema};
use axum::extract::State;
use souk_app::connections::check;
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::post(
    "test_unsaved_connection",
    "/companies/{company_id}/connections/test",
)
.about("Connections", "Try a connection without saving it")
.notes("The body is that of creating one; `function_id`, `path` and `params` may be added for a seller API.")
.needs(Role::DataEngineer, Permission::Write)
.runs_connector()
.body(schema::<ConnectionIn>)
.returns(200, Shape::One(schema::<TestOut>));

/// Tries a connection; nothing of it is kept.
pub async fn test_unsaved_connection(
    State(api): State<ApiState>,
    caller: Caller,
    body: RawBody,
) -> Result<Data<TestOut>, Problem> {
    let connection: ConnectionIn = body.json()?;
    let probe: ProbeIn = body.json()?;
    caller.agree_company(connection.company_id.as_deref())?;
    let input = connection.into_input();
    let report = check::unsaved(api.app(), caller.company(), &input, probe.into_probe()?).await;
    Ok(Data(report.map_err(refusal(""))?.into()))
}
