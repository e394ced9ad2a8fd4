use super::shape::IntegrationOut;
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query};
use axum::extract::State;
use souk_store::integrations;

pub const OPERATION: Operation = Operation::get(
    "list_integrations",
    "/companies/{company_id}/postgen_integrations",
)
.alias(
    "/companies/{company_id}/postgen-integrations",
    "list_integrations_kebab",
)
.about(
    "Integrations",
    "List a company's integrations, oldest first",
);

/// Lists a company's integrations, without their credentials.
pub async fn list_integrations(
    State(api): State<ApiState>,
    caller: Caller,
    Query(paging): Query<Paging>,
) -> Result<List<IntegrationOut>, Problem> {
    let page = paging.page();
    let mut read = api.db().read().await?;
    let listed = integrations::list(&mut read, caller.company(), page.part()).await?;
    Ok(List::of(page, listed, IntegrationOut::from))
}
