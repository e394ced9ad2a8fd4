use crate::products::archive::{Wanted, archive};
use crate::refusals::RESOURCE_IN_USE;
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem, Query};
use axum::extract::State;
use souk_domain::ids::{CompanyId, EndpointId};
use souk_domain::roles::{Permission, Role};
use souk_store::keys::{self, Deactivation, ENDPOINT_ARCHIVED};

pub const OPERATION: Operation = Operation::delete(
    "delete_endpoint",
    "/companies/{company_id}/endpoints/{endpoint_id}",
)
.about("Endpoints", "Archive an endpoint")
.notes(
    "409 `RESOURCE_IN_USE` when companies have active purchases of it, unless `force=true`. Its keys are deactivated: they answer 410 from the \
     next request on, and say why.",
)
.needs(Role::DataEngineer, Permission::Write)
.refuses(&[RESOURCE_IN_USE]);

/// Archives an endpoint and deactivates its keys.
pub async fn delete_endpoint(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, EndpointId)>,
    Query(wanted): Query<Wanted>,
) -> Result<Deleted, Problem> {
    api.db()
        .write(async |write| {
            archive(write, &caller, &id, &wanted).await?;
            let deactivation = Deactivation {
                at: caller.now(),
                by: Some(caller.named()),
                reason: Some(ENDPOINT_ARCHIVED),
                reason_code: Some("other"),
            };
            keys::deactivate_of_endpoint(write, caller.company(), &id, &deactivation).await?;
            Ok(Deleted)
        })
        .await
}
