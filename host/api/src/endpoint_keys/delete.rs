use super::find_key;
use crate::products::find;
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, EndpointId, KeyId};
use souk_domain::roles::{Permission, Role};
use souk_store::companies;
use souk_store::keys::{self, Deactivation};

pub const OPERATION: Operation = Operation::delete(
    "delete_endpoint_key",
    "/companies/{company_id}/endpoints/{endpoint_id}/keys/{api_key_id}",
)
.about("Endpoint keys", "Deactivate a key of this endpoint")
.notes("The key is refused with 410 from the next request on.")
.needs(Role::DataEngineer, Permission::Write)
.hourly(10);

/// Deactivates an endpoint key at once.
pub async fn delete_endpoint_key(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, endpoint, id)): Path<(CompanyId, EndpointId, KeyId)>,
) -> Result<Deleted, Problem> {
    api.db()
        .write(async |write| {
            companies::lock(write, caller.company()).await?;
            find(write, caller.company(), &endpoint).await?;
            find_key(write, &caller, &endpoint, &id).await?;
            let deactivation = Deactivation {
                at: caller.now(),
                by: Some(caller.named()),
                ..Deactivation::default()
            };
            keys::deactivate(write, caller.company(), &id, &deactivation, caller.now()).await?;
            Ok(Deleted)
        })
        .await
}
