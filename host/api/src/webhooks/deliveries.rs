use super::find;
use super::shape::DeliveryOut;
use crate::query::{Parameter, choices, parameters};
use crate::{ApiState, Caller, List, Operation, Paging, Path, Problem, Query};
use axum::extract::State;
use serde_json::{Value, json};
use souk_domain::ids::{CompanyId, WebhookId};
use souk_domain::webhooks::EventType;
use souk_store::deliveries::{self, DeliveryStatus};

choices! {
    impl DeliveryStatus {
        Pending = "pending",
        Delivered = "delivered",
        Failed = "failed",
    }
}

impl Parameter for EventType {
    fn schema() -> Value {
        json!({"type": "string", "enum": EventType::ALL.map(EventType::as_str)})
    }

    fn read(text: &str) -> Result<Self, String> {
        let names = || EventType::ALL.map(EventType::as_str).join(", ");
        EventType::parse(text).ok_or_else(|| format!("must be one of {}", names()))
    }
}

parameters! {
    pub struct Wanted {
        ..paging: Paging,
        /// Only deliveries in this state.
        status: Option<DeliveryStatus>,
        /// Only deliveries of this type.
        event_type: Option<EventType>,
    }
}

pub const OPERATION: Operation = Operation::get(
    "list_deliveries",
    "/companies/{company_id}/webhooks/{webhook_id}/deliveries",
)
.about("Webhooks", "List what was sent to a webhook, newest first")
.notes("Finished deliveries are kept for 30 days, of each webhook the newest 1000.");

/// Lists a webhook's deliveries.
pub async fn list_deliveries(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, WebhookId)>,
    Query(query): Query<Wanted>,
) -> Result<List<DeliveryOut>, Problem> {
    let page = query.paging.page();
    let mut read = api.db().read().await?;
    find(&mut read, &caller, &id).await?;
    let listed =
        deliveries::list(&mut read, &id, query.status, query.event_type, page.part()).await?;
    Ok(List::of(page, listed, DeliveryOut::from))
}
