//! Webhooks and deliveries as clients see them: the secret only in the answer that makes it.

use crate::AnyObject;
use crate::words;
use serde::Serialize;
use serde_json::value::RawValue;
use souk_app::webhooks::Secret;
use souk_domain::ids::{CompanyId, DeliveryId, WebhookId};
use souk_domain::time::Timestamp;
use souk_store::deliveries::Delivery;
use souk_store::webhooks::Webhook;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[schema(as = Webhook)]
pub struct WebhookOut {
    #[schema(value_type = String)]
    pub id: WebhookId,
    #[schema(value_type = String)]
    pub company_id: CompanyId,
    pub url: String,
    /// Empty: all types.
    #[schema(value_type = Vec<words::EventType>)]
    pub event_types: Vec<&'static str>,
    pub description: Option<String>,
    pub is_active: bool,
    #[schema(value_type = Option<words::DisabledReason>)]
    pub disabled_reason: Option<&'static str>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub disabled_at: Option<Timestamp>,
    /// The first of the failures since something was delivered.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub failing_since: Option<Timestamp>,
    /// `whsec_…`, when it has just been made; left out otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Until then the former secret signs too.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub former_secret_expires_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl WebhookOut {
    pub fn of(webhook: &Webhook, now: Timestamp) -> WebhookOut {
        let former = webhook.former_secret.as_ref().map(|former| former.until);
        WebhookOut {
            id: webhook.id.clone(),
            company_id: webhook.company_id.clone(),
            url: webhook.url.clone(),
            event_types: webhook
                .event_types
                .iter()
                .map(|kind| kind.as_str())
                .collect(),
            description: webhook.description.clone(),
            is_active: webhook.is_active(),
            disabled_reason: webhook.disabled.map(|disabled| disabled.reason.as_str()),
            disabled_at: webhook.disabled.map(|disabled| disabled.at),
            failing_since: webhook.failing_since,
            secret: None,
            former_secret_expires_at: former.filter(|until| *until > now),
            created_at: webhook.created_at,
            updated_at: webhook.updated_at,
        }
    }

    pub fn once(webhook: &Webhook, secret: &Secret, now: Timestamp) -> WebhookOut {
        WebhookOut {
            secret: Some(secret.expose().to_owned()),
            ..WebhookOut::of(webhook, now)
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
pub struct DeliveryOut {
    /// Sent as `webhook-id`, the same at every attempt.
    #[schema(value_type = String)]
    id: DeliveryId,
    #[schema(value_type = String)]
    webhook_id: WebhookId,
    #[schema(value_type = words::EventType)]
    event_type: String,
    #[schema(value_type = words::DeliveryStatus)]
    status: &'static str,
    /// The one in flight included.
    #[schema(minimum = 0)]
    attempts: i64,
    /// What the receiver answered last.
    #[schema(minimum = 100, maximum = 999)]
    response_code: Option<i64>,
    /// Why the last attempt failed.
    error: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime)]
    next_attempt_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    last_attempt_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    delivered_at: Option<Timestamp>,
    /// The body that is sent: `{type, timestamp, data}`.
    #[schema(value_type = Option<AnyObject>)]
    payload: Option<Box<RawValue>>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<Delivery> for DeliveryOut {
    fn from(delivery: Delivery) -> DeliveryOut {
        DeliveryOut {
            id: delivery.id,
            webhook_id: delivery.webhook_id,
            event_type: delivery.event_type,
            status: delivery.status.as_str(),
            attempts: delivery.attempts,
            response_code: delivery.response_code,
            error: delivery.error,
            next_attempt_at: delivery.next_attempt_at,
            last_attempt_at: delivery.last_attempt_at,
            delivered_at: delivery.delivered_at,
            // As it was written: JSON.
            payload: RawValue::from_string(delivery.body).ok(),
            created_at: delivery.created_at,
        }
    }
}
