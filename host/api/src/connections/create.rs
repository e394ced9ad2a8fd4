use super::refusal;
use super::shape::{ConnectionIn, ConnectionOut};
use crate::refusals::{CONNECTION_LIMIT_REACHED, UNSAFE_URL};
use crate::{ApiState, Body, Caller, Created, Operation, Problem};
use axum::extract::State;
use souk_app::connections;
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation =
    Operation::post("create_connection", "/companies/{company_id}/connections")
        .about("Connections", "Save a connection to a source")
        .notes(
            "Nothing is dialled yet: test it with `POST …/{connection_id}/test`. \
             A written address that the operator does not allow is 400 `UNSAFE_URL`. \
             409 `CONNECTION_LIMIT_REACHED` when the company has as many connections as it may have.",
        )
        .needs(Role::DataEngineer, Permission::Write)
        .refuses(&[UNSAFE_URL, CONNECTION_LIMIT_REACHED]);

/// Saves a connection; its credentials are sealed and never shown again.
pub async fn create_connection(
    State(api): State<ApiState>,
    caller: Caller,
    Body(body): Body<ConnectionIn>,
) -> Result<Created<ConnectionOut>, Problem> {
    let (app, company) = (api.app(), caller.company());
    let connection = connections::create(app, company, caller.user(), &body.into_input())
        .await
        .map_err(refusal(""))?;
    Ok(Created {
        location: format!(
            "/companies/{}/connections/{}",
            caller.company(),
            connection.id
        ),
        data: connection.into(),
    })
}
