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

use crate::fitting::{DEPTH_MAX, joined};
use crate::refusals::{CONFLICT, UNSAFE_URL, VALIDATION_ERROR};
use crate::{Caller, FieldError, Problem, Routes};
use serde_json::{Map, Value};
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

/// Types by their names, each once, in the order of the documentation. `sent`: the body that they were read from.
fn event_types(names: &[String], sent: &[u8]) -> Result<Vec<EventType>, Problem> {
    if names.is_empty() {
        check_misnomers(sent)?;
    }
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

/// Members that nobody knows are ignored, but for those that were meant as `event_types`: who sends `{"events": ["credits.low"]}`, or
/// `{"triggers": {"on": ["credits.low"]}}`, would be told of everything.
fn check_misnomers(sent: &[u8]) -> Result<(), Problem> {
    // What is no object was refused before.
    let Ok(members) = serde_json::from_slice::<Map<String, Value>>(sent) else {
        return Ok(());
    };
    let mut found = Vec::new();
    for (name, value) in members.iter().filter(|(name, _)| !is_known(name)) {
        match is_misnomer(name) || name.eq_ignore_ascii_case("type") {
            true => found.push(name.clone()),
            false => misnomers(name, value, 0, &mut found),
        }
    }
    // A body has room for thousands of them.
    let errors: Vec<FieldError> = found
        .into_iter()
        .take(EventType::ALL.len())
        .map(|name| {
            let message = format!(
                "is not known here: what to be told of is named in event_types, such as [\"{}\"]",
                EventType::ALL[0].as_str()
            );
            FieldError::new(name, "unknown", message)
        })
        .collect();
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Problem::fields(VALIDATION_ERROR, errors)),
    }
}

fn is_known(name: &str) -> bool {
    ["url", "event_types", "description", "is_active"].contains(&name)
}

/// Finds in a member that nobody knows, at `path`, what names events, by its name or by theirs.
fn misnomers(path: &str, value: &Value, depth: usize, found: &mut Vec<String>) {
    let is_event = |value: &Value| value.as_str().and_then(EventType::parse).is_some();
    match value {
        _ if depth > DEPTH_MAX || found.len() >= EventType::ALL.len() => {}
        Value::Object(members) => {
            for (name, value) in members {
                let path = joined(path, name);
                match is_misnomer(name) {
                    true => found.push(path),
                    false => misnomers(&path, value, depth + 1, found),
                }
            }
        }
        Value::Array(items) if items.iter().any(is_event) => found.push(path.to_owned()),
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                misnomers(&format!("{path}[{place}]"), item, depth + 1, found);
            }
        }
        value if is_event(value) => found.push(path.to_owned()),
        _ => {}
    }
}

/// `events`, `eventTypes`, `enabled_events`, `topic`, `subscriptions`, `triggers`: what `event_types` is called elsewhere, and may be written by mistake.
fn is_misnomer(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let has_word = ["event", "topic", "subscri", "trigger"]
        .into_iter()
        .any(|word| lower.contains(word));
    has_word || lower.ends_with("types")
}

fn refuse(error: WebhookError) -> Problem {
    match error {
        WebhookError::Url(error) => Problem::invalid("url", error.to_string()),
        WebhookError::Unsafe(message) => {
            Problem::fields(UNSAFE_URL, vec![FieldError::new("url", "unsafe", message)])
        }
        WebhookError::Unknown(message) => Problem::fields(
            VALIDATION_ERROR,
            vec![FieldError::new("url", "unknown", message)],
        ),
        WebhookError::TooMany => Problem::of(
            CONFLICT,
            format!("a company has at most {WEBHOOKS_MAX} webhooks: delete one first"),
        ),
        WebhookError::Store(error) => error.into(),
    }
}
