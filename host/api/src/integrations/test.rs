use super::refusal;
use super::shape::{IntegrationIn, TestOut};
use crate::refusals::{INTEGRATION_NOT_FOUND, PATH_BODY_MISMATCH, UNSAFE_URL};
use crate::{ApiState, Caller, Data, Operation, Problem, RawBody};
use axum::extract::State;
use serde::Deserialize;
use souk_app::integrations::check;
use souk_domain::ids::IntegrationId;
use souk_domain::roles::{Permission, Role};
use utoipa::openapi::schema::{OneOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

pub const OPERATION: Operation = Operation::post(
    "test_integration",
    "/companies/{company_id}/postgen_integrations/test",
)
.about("Integrations", "Try an integration, saved or not")
.notes(
    "The body is `{integration_id}`, or that of creating one. Nothing is published: a blog is asked who these credentials are, a receiver of \
     signed requests is sent a `ping`, a chat an empty message, which it refuses. 200 also when it does not work: `success` is false and \
     `message` says why. For a saved one that is written down.",
)
.needs(Role::DataEngineer, Permission::Write)
.runs_connector()
.refuses(&[PATH_BODY_MISMATCH, UNSAFE_URL, INTEGRATION_NOT_FOUND]);

/// An integration that is saved.
#[derive(Default, Deserialize, ToSchema)]
pub struct SavedIntegrationIn {
    #[schema(value_type = String, required = true)]
    integration_id: Option<String>,
}

/// Either of the two.
pub struct TestedIn;

impl PartialSchema for TestedIn {
    fn schema() -> RefOr<Schema> {
        let parts = [SavedIntegrationIn::name(), IntegrationIn::name()];
        // Not `anyOf`: of that openapi-generator makes one type that has to have the members of both.
        let one = OneOfBuilder::new();
        let one = parts
            .into_iter()
            .fold(one, |one, name| one.item(Ref::from_schema_name(name)));
        one.into()
    }
}

impl ToSchema for TestedIn {
    fn schemas(nested: &mut Vec<(String, RefOr<Schema>)>) {
        let saved = (
            SavedIntegrationIn::name().into_owned(),
            SavedIntegrationIn::schema(),
        );
        let unsaved = (IntegrationIn::name().into_owned(), IntegrationIn::schema());
        nested.extend([saved, unsaved]);
        SavedIntegrationIn::schemas(nested);
        IntegrationIn::schemas(nested);
    }
}

/// Tries an integration on a session of its own.
pub async fn test_integration(
    State(api): State<ApiState>,
    caller: Caller,
    body: RawBody<TestedIn, true>,
) -> Result<Data<TestOut>, Problem> {
    let saved: SavedIntegrationIn = body.json_as()?;
    let (app, company) = (api.app(), caller.company());
    let report = match saved.integration_id {
        Some(id) => {
            let parsed = IntegrationId::parse(&id);
            let parsed =
                parsed.map_err(|error| Problem::invalid("integration_id", error.to_string()))?;
            check::saved(app, company, &parsed)
                .await
                .map_err(refusal(&id))?
        }
        None => {
            let unsaved: IntegrationIn = body.agreed()?;
            let input = unsaved.into_input();
            check::unsaved(app, company, &input)
                .await
                .map_err(refusal(""))?
        }
    };
    Ok(Data(report.into()))
}
