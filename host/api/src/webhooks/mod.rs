//! Webhooks: where a company is told of events, and how the telling went. What is sent, and how it is verified: `docs/webhooks.md`.

pub mod create;
pub mod delete;
pub mod deliveries;
pub mod get;
pub mod list;
pub mod retry;
pub mod rotate_secret;
pub mod shape;
pub mod update;

use crate::refusals::{CONFLICT, UNSAFE_URL, VALIDATION_ERROR};
use crate::{Caller, FieldError, Problem, Routes};
use souk_app::webhooks::WebhookError;
use souk_domain::ids::WebhookId;
use souk_domain::webhooks::{EventType, WEBHOOKS_MAX};
use souk_store::AnyConnection;
use souk_store::webhooks::{self, Webhook};

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_webhooks)
        .add(create::OPERATION, create::create_webhook)
        .add(get::OPERATION, get::get_webhook)
        .add(update::OPERATION, update::update_webhook)
        .add(delete::OPERATION, delete::delete_webhook)
        .add(
            rotate_secret::OPERATION,
            rotate_secret::rotate_webhook_secret,
        )
        .add(deliveries::OPERATION, deliveries::list_deliveries)
        .add(retry::OPERATION, retry::retry_delivery)
}

/// One of the company's webhooks, or 404.
async fn find(db: &mut AnyConnection, caller: &Caller, id: &WebhookId) -> Result<Webhook, Problem> {
    webhooks::get(db, caller.company(), id)
        .await?
        .ok_or_else(|| not_found(id))
}

fn not_found(id: &WebhookId) -> Problem {
    Problem::not_found("webhook", id.as_str())
}

/// Types by their names, each once, in the order of the documentation.
fn event_types(names: &[String]) -> Result<Vec<EventType>, Problem> {
    let mut types = Vec::with_capacity(names.len().min(EventType::ALL.len()));
    let mut errors = Vec::new();
    for (place, name) in names.iter().enumerate() {
        if let Some(kind) = EventType::parse(name) {
            types.push(kind);
        } else if errors.len() < EventType::ALL.len() {
            let known: Vec<_> = EventType::ALL.iter().map(|kind| kind.as_str()).collect();
            let message = format!("must be one of {}", known.join(", "));
            let field = format!("event_types[{place}]");
            errors.push(FieldError::new(field, "invalid", message));
        }
    }
    if !errors.is_empty() {
        return Err(Problem::fields(VALIDATION_ERROR, errors));
    }
    types.sort_unstable();
    types.dedup();
    Ok(types)
}

fn refuse(error: WebhookError) -> Problem {
    match error {
        WebhookError::Url(error) => Problem::invalid("url", error.to_string()),
        WebhookError::Unsafe(message) => {
            Problem::fields(UNSAFE_URL, vec![FieldError::new("url", "unsafe", message)])
        }
        WebhookError::TooMany => Problem::of(
            CONFLICT,
            format!("a company has at most {WEBHOOKS_MAX} webhooks: delete one first"),
        ),
        WebhookError::Store(error) => error.into(),
    }
}
