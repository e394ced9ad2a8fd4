use super::refusal;
use super::shape::IntegrationOut;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_app::integrations;
use souk_domain::ids::{CompanyId, IntegrationId};

pub const OPERATION: Operation = Operation::get(
    "get_integration",
    "/companies/{company_id}/postgen_integrations/{integration_id}",
)
.about("Integrations", "Show an integration");

/// Shows an integration, without its credentials.
pub async fn get_integration(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, IntegrationId)>,
) -> Result<Data<IntegrationOut>, Problem> {
    let found = integrations::get(api.app(), caller.company(), &id).await;
    Ok(Data(found.map_err(refusal(id.as_str()))?.into()))
}
