use crate::keys::shape::KeyOut;
use crate::products::find;
use crate::{ApiState, Caller, List, Operation, Paging, Path, Problem, Query};
use axum::extract::State;
use souk_domain::ids::{CompanyId, EndpointId};
use souk_store::keys::{self, KeyFilter};

pub const OPERATION: Operation = Operation::get(
    "list_endpoint_keys",
    "/companies/{company_id}/endpoints/{endpoint_id}/keys",
)
.about(
    "Endpoint keys",
    "List the company's keys of one endpoint, newest first",
);

/// Lists the keys of one endpoint, masked.
pub async fn list_endpoint_keys(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, endpoint)): Path<(CompanyId, EndpointId)>,
    Query(paging): Query<Paging>,
) -> Result<List<KeyOut>, Problem> {
    let page = paging.page();
    let mut read = api.db().read().await?;
    find(&mut read, caller.company(), &endpoint).await?;
    let filter = KeyFilter {
        endpoint_id: Some(endpoint),
        ..KeyFilter::default()
    };
    let listed = keys::list(
        &mut read,
        caller.company(),
        &filter,
        caller.now(),
        page.part(),
    )
    .await?;
    Ok(List::of(page, listed, |key| {
        KeyOut::masked(&key, caller.now())
    }))
}
