use crate::products::not_found;
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, EndpointId};
use souk_domain::products::ProductStatus;
use souk_domain::roles::{Permission, Role};
use souk_store::keys::{self, Deactivation};
use souk_store::products;

pub const OPERATION: Operation = Operation::delete(
    "delete_endpoint",
    "/companies/{company_id}/endpoints/{endpoint_id}",
)
.about("Endpoints", "Archive an endpoint")
.notes("Its keys are deactivated: they answer 410 from the next request on.")
.needs(Role::DataEngineer, Permission::Write);

/// Archives an endpoint and deactivates its keys.
pub async fn delete_endpoint(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, EndpointId)>,
) -> Result<Deleted, Problem> {
    api.db()
        .write(async |write| {
            let (company, to) = (caller.company(), ProductStatus::Archived);
            if !products::set_status(write, company, &id, to, caller.now()).await? {
                return Err(not_found(&id));
            }
            let deactivation = Deactivation {
                at: caller.now(),
                by: Some(caller.actor().as_str()),
                reason: Some("the endpoint was archived"),
                reason_code: Some("other"),
            };
            keys::deactivate_of_endpoint(write, company, &id, &deactivation).await?;
            Ok(Deleted)
        })
        .await
}
