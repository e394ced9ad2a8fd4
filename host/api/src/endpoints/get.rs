use super::shape::EndpointOut;
use crate::products::show;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, EndpointId};

pub const OPERATION: Operation = Operation::get(
    "get_endpoint",
    "/companies/{company_id}/endpoints/{endpoint_id}",
)
.about("Endpoints", "Show an endpoint");

/// Shows an own endpoint.
pub async fn get_endpoint(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, EndpointId)>,
) -> Result<Data<EndpointOut>, Problem> {
    let mut read = api.db().read().await?;
    show(&mut read, &caller, &id).await.map(Data)
}
