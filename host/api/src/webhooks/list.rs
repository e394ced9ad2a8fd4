use super::shape::WebhookOut;
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query};
use axum::extract::State;
use souk_store::webhooks;

pub const OPERATION: Operation =
    Operation::get("list_webhooks", "/companies/{company_id}/webhooks")
        .about("Webhooks", "List a company's webhooks, oldest first");

/// Lists a company's webhooks.
pub async fn list_webhooks(
    State(api): State<ApiState>,
    caller: Caller,
    Query(paging): Query<Paging>,
) -> Result<List<WebhookOut>, Problem> {
    let page = paging.page();
    let mut read = api.db().read().await?;
    let listed = webhooks::list(&mut read, caller.company(), page.part()).await?;
    Ok(List::of(page, listed, |webhook| {
        WebhookOut::of(&webhook, caller.now())
    }))
}
