use super::not_found;
use super::shape::WebhookOut;
use crate::{ApiState, Caller, DataOnce, Operation, Path, Problem};
use axum::extract::State;
use souk_app::webhooks;
use souk_domain::ids::{CompanyId, WebhookId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::post(
    "rotate_webhook_secret",
    "/companies/{company_id}/webhooks/{webhook_id}/rotate-secret",
)
.about("Webhooks", "Replace a webhook's secret")
.notes(
    "The new `secret` is in this answer only. For 24 hours the former one signs too: deliveries then carry two signatures. One that was former \
     before signs no more.",
)
.needs(Role::DataEngineer, Permission::Write);

/// Replaces a secret. The new one appears in this response only.
pub async fn rotate_webhook_secret(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, WebhookId)>,
) -> Result<DataOnce<WebhookOut>, Problem> {
    let (webhook, secret) = webhooks::rotate_secret(api.app(), caller.company(), &id)
        .await?
        .ok_or_else(|| not_found(&id))?;
    Ok(DataOnce {
        data: WebhookOut::once(&webhook, &secret, caller.now()),
        kept: WebhookOut::of(&webhook, caller.now()),
    })
}
