use super::not_found;
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, WebhookId};
use souk_domain::roles::{Permission, Role};
use souk_store::webhooks;

pub const OPERATION: Operation = Operation::delete(
    "delete_webhook",
    "/companies/{company_id}/webhooks/{webhook_id}",
)
.about("Webhooks", "Delete a webhook")
.notes(
    "With its secret and its deliveries, also those that wait. An attempt in flight is not called back.",
)
.needs(Role::DataEngineer, Permission::Write);

/// Deletes a webhook.
pub async fn delete_webhook(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, WebhookId)>,
) -> Result<Deleted, Problem> {
    api.db()
        .write(async |write| {
            if !webhooks::delete(write, caller.company(), &id).await? {
                return Err(not_found(&id));
            }
            Ok(Deleted)
        })
        .await
}
