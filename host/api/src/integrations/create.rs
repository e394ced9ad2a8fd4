use super::refusal;
use super::shape::{IntegrationIn, IntegrationOut};
use crate::refusals::{CONFLICT, UNSAFE_URL};
use crate::{ApiState, Body, Caller, Created, Operation, Problem};
use axum::extract::State;
use souk_app::integrations;
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::post(
    "create_integration",
    "/companies/{company_id}/postgen_integrations",
)
.about("Integrations", "Save where posts are to be published besides")
.notes(
    "Nothing is dialled yet: test it with `POST …/postgen_integrations/test`. Credentials are sealed and never shown again. `config.base_url` is \
     `https://`, and a public address, unless the operator has named the address's network: 400 `UNSAFE_URL`. A company has at most 20 \
     integrations.",
)
.needs(Role::DataEngineer, Permission::Write)
.refuses(&[UNSAFE_URL, CONFLICT]);

/// Saves an integration.
pub async fn create_integration(
    State(api): State<ApiState>,
    caller: Caller,
    Body(body): Body<IntegrationIn>,
) -> Result<Created<IntegrationOut>, Problem> {
    let (app, company) = (api.app(), caller.company());
    let integration = integrations::create(app, company, caller.user(), &body.into_input())
        .await
        .map_err(refusal(""))?;
    let id = &integration.id;
    Ok(Created {
        location: format!("/companies/{company}/postgen_integrations/{id}"),
        data: integration.into(),
    })
}
