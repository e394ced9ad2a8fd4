use super::{check_may_manage, find};
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, KeyId};
use souk_domain::roles::{Permission, Role};
use souk_store::companies;
use souk_store::keys::{self, Deactivation};

pub const OPERATION: Operation = Operation::delete(
    "delete_key",
    "/companies/{company_id}/api-keys/{api_key_id}",
)
.alias(
    "/companies/{company_id}/api_keys/{api_key_id}",
    "delete_api_key",
)
.about("API keys", "Deactivate a key")
.notes("The key is refused with 410 from the next request on. Repeating it is 204 again.")
.needs(Role::DataScientist, Permission::Write)
.hourly(10);

/// Deactivates a key at once.
pub async fn delete_key(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, KeyId)>,
) -> Result<Deleted, Problem> {
    api.db()
        .write(async |write| {
            companies::lock(write, caller.company()).await?;
            let key = find(write, &caller, &id).await?;
            check_may_manage(&caller, &key)?;
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
