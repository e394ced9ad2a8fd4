use super::shape::EndpointOut;
use crate::products::change as products;
use crate::refusals::INVALID_STATE;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, EndpointId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::post(
    "unpublish_endpoint",
    "/companies/{company_id}/endpoints/{endpoint_id}/unpublish",
)
.about("Endpoints", "Take an endpoint off the market")
.notes("Companies that have bought it keep it until it is archived.")
.needs(Role::DataEngineer, Permission::Write)
.refuses(&[INVALID_STATE]);

/// Hides an endpoint from new buyers.
pub async fn unpublish_endpoint(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, EndpointId)>,
) -> Result<Data<EndpointOut>, Problem> {
    products::unpublish(&api, &caller, &id).await
}
