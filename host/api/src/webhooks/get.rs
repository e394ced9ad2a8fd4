use super::find;
use super::shape::WebhookOut;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, WebhookId};

pub const OPERATION: Operation = Operation::get(
    "get_webhook",
    "/companies/{company_id}/webhooks/{webhook_id}",
)
.about("Webhooks", "Show a webhook");

/// Shows a webhook, without its secret.
pub async fn get_webhook(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, WebhookId)>,
) -> Result<Data<WebhookOut>, Problem> {
    let mut read = api.db().read().await?;
    let webhook = find(&mut read, &caller, &id).await?;
    Ok(Data(WebhookOut::of(&webhook, caller.now())))
}
