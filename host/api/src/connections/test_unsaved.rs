use super::refusal;
use super::shape::{ConnectionIn, ProbeIn, TestOut};
use crate::problem::both;
use crate::refusals::{PATH_BODY_MISMATCH, UNSAFE_URL};
use crate::{ApiState, Caller, Data, Operation, Problem, RawBody};
use axum::extract::State;
use souk_app::connections::check;
use souk_domain::roles::{Permission, Role};
use utoipa::openapi::schema::{AllOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

pub const OPERATION: Operation = Operation::post(
    "test_unsaved_connection",
    "/companies/{company_id}/connections/test",
)
.about("Connections", "Try a connection without saving it")
.notes("The body is that of creating one; `function_id`, `path` and `params` may be added for a seller API.")
.needs(Role::DataEngineer, Permission::Write)
.runs_connector()
.refuses(&[PATH_BODY_MISMATCH, UNSAFE_URL]);

/// A connection, and what a [`ProbeIn`] adds for a seller API.
pub struct UnsavedIn;

impl PartialSchema for UnsavedIn {
    fn schema() -> RefOr<Schema> {
        let parts = [ConnectionIn::name(), ProbeIn::name()];
        let all = AllOfBuilder::new();
        let all = parts
            .into_iter()
            .fold(all, |all, name| all.item(Ref::from_schema_name(name)));
        all.into()
    }
}

impl ToSchema for UnsavedIn {
    fn schemas(nested: &mut Vec<(String, RefOr<Schema>)>) {
        nested.push((ConnectionIn::name().into_owned(), ConnectionIn::schema()));
        nested.push((ProbeIn::name().into_owned(), ProbeIn::schema()));
        ConnectionIn::schemas(nested);
        ProbeIn::schemas(nested);
    }
}

/// Tries a connection; nothing of it is kept.
pub async fn test_unsaved_connection(
    State(api): State<ApiState>,
    caller: Caller,
    body: RawBody<UnsavedIn, true>,
) -> Result<Data<TestOut>, Problem> {
    let read = both(body.agreed(), body.json_as());
    let (connection, probe): (ConnectionIn, ProbeIn) = read?;
    let input = connection.into_input();
    let report = check::unsaved(api.app(), caller.company(), &input, probe.into_probe()).await;
    Ok(Data(report.map_err(refusal(""))?.into()))
}
