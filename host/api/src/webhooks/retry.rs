use super::find;
use super::shape::DeliveryOut;
use crate::refusals::INVALID_STATE;
use crate::{Accepted, ApiState, Caller, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, DeliveryId, WebhookId};
use souk_domain::roles::{Permission, Role};
use souk_store::deliveries;

pub const OPERATION: Operation = Operation::post(
    "retry_delivery",
    "/companies/{company_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/retry",
)
.about("Webhooks", "Send an event again, now")
.notes(
    "Whether it waits, has failed or was delivered; one that is in flight stays as it is. It keeps its id. Attempts go on being counted: one \
     that has used up its retries gets this one. 409 while the webhook is not active.",
)
.needs(Role::DataEngineer, Permission::Write)
.refuses(&[INVALID_STATE]);

/// Puts a delivery on its way again.
pub async fn retry_delivery(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, webhook, id)): Path<(CompanyId, WebhookId, DeliveryId)>,
) -> Result<Accepted<DeliveryOut>, Problem> {
    api.db()
        .write(async |write| {
            let found = find(write, &caller, &webhook).await?;
            if !found.is_active() {
                return Err(Problem::state(
                    "disabled",
                    "nothing is sent to a webhook that is not active: activate it first",
                ));
            }
            let delivery = deliveries::retry(write, &webhook, &id, caller.now())
                .await?
                .ok_or_else(|| Problem::not_found("delivery", id.as_str()))?;
            Ok(Accepted(delivery.into()))
        })
        .await
}
