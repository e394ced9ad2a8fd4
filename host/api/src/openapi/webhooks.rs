//! What a company's webhooks are told, as `docs/webhooks.md` says it: an operation for each kind of event, with a type of its own.

use super::examples;
use crate::describe::JSON;
use crate::ids;
use serde_json::{Map, Value, json};
use souk_domain::alerts::{Operator, State};
use souk_domain::products::ProductType;
use souk_domain::webhooks::EventType;
use std::collections::BTreeMap;

/// The type of a kind of event: `CreditsTopUpSettledEvent`.
fn name(kind: EventType) -> String {
    let words = kind.as_str().split(['.', '_']);
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    words.map(capital).collect::<String>() + "Event"
}

/// The types of all events, by name.
pub fn schemas() -> impl Iterator<Item = (String, Value)> {
    EventType::ALL
        .into_iter()
        .map(|kind| (name(kind), event(kind)))
}

fn event(kind: EventType) -> Value {
    let members: Map<String, Value> = data(kind)
        .into_iter()
        .map(|(name, rules)| (name.to_owned(), rules))
        .collect();
    // A test of an alert says so; nothing else does.
    let required: Vec<_> = members.keys().filter(|name| *name != "test").collect();
    json!({
        "type": "object",
        "required": ["type", "timestamp", "data"],
        "properties": {
            "type": {"type": "string", "enum": [kind.as_str()]},
            "timestamp": {"type": "string", "format": "date-time", "description": "When it happened."},
            "data": {"type": "object", "additionalProperties": true, "required": required, "properties": members},
        },
    })
}

/// The members of `data`. The store writes them; whatever a delivery shows in a test is held against them.
fn data(kind: EventType) -> Vec<(&'static str, Value)> {
    let text = || json!({"type": "string"});
    let optional = || json!({"type": ["string", "null"]});
    let one_of = |words: &[&str]| json!({"type": "string", "enum": words});
    let count = || json!({"type": "integer", "format": "int64", "minimum": 0});
    let signed = || json!({"type": "integer", "format": "int64"});
    let dollars = || json!({"type": "number", "format": "decimal", "minimum": 0, "examples": [50]});
    let mut members = vec![("company_id", text())];
    members.extend(match kind {
        EventType::AlertTriggered | EventType::AlertResolved | EventType::AlertError => vec![
            ("alert_id", text()),
            ("name", text()),
            ("user_id", text()),
            ("asset_id", text()),
            ("state", one_of(&[became(kind)])),
            ("previous_state", one_of(&State::ALL.map(State::as_str))),
            ("operator", one_of(&Operator::ALL.map(Operator::as_str))),
            ("threshold", json!({"description": "Null of conditions that have none.", "examples": [2]})),
            ("breaches", count()),
            ("value", json!({"description": "What the asset answered.", "examples": [1.75]})),
            ("message", json!({"type": ["string", "null"], "description": "Why it could not be evaluated."})),
            ("event_id", json!({"type": ["string", "null"], "description": "Null of a test, as is `execution_id`."})),
            ("execution_id", optional()),
            ("test", json!({"type": "boolean", "description": "Only of a test: nothing was evaluated."})),
        ],
        EventType::CreditsLow => vec![
            ("balance_credits", signed()),
            ("threshold_credits", count()),
            ("transaction_id", text()),
        ],
        EventType::TopUpSettled => vec![
            ("top_up_id", text()),
            ("credits", count()),
            ("amount_usd", dollars()),
            ("provider", text()),
        ],
        EventType::PurchaseCreated => vec![
            ("purchase_id", text()),
            ("seller_company_id", text()),
            ("product_type", one_of(ProductType::WORDS)),
            ("product_id", text()),
            ("price_credits", count()),
            ("terms_version", text()),
        ],
        EventType::EndpointKeyProvisioned => vec![
            ("api_key_id", text()),
            ("name", text()),
            ("endpoint_id", optional()),
            ("purchase_id", optional()),
            ("source", one_of(&["marketplace", "seller"])),
        ],
        EventType::ApiKeyRevoked => vec![
            ("api_key_id", text()),
            ("name", text()),
            ("key_type", one_of(&["analytics", "endpoint"])),
            ("endpoint_id", optional()),
            (
                "revoked_at",
                json!({"type": "string", "format": "date-time", "description": "Ahead, in the grace period of a rotation."}),
            ),
            ("revoked_by", optional()),
            ("reason", optional()),
            ("reason_code", optional()),
        ],
        EventType::PayoutPaid | EventType::PayoutFailed | EventType::PayoutCancelled => vec![
            ("payout_id", text()),
            ("amount_usd", dollars()),
            ("destination_type", one_of(&["bank_account", "paypal", "stripe_connect"])),
            ("destination_last4", text()),
            ("reference", optional()),
            ("failure_reason", optional()),
        ],
    });
    members
}

/// The state that an alert has got into.
const fn became(kind: EventType) -> &'static str {
    match kind {
        EventType::AlertTriggered => State::Triggered.as_str(),
        EventType::AlertError => State::Error.as_str(),
        _ => State::Ok.as_str(),
    }
}

/// An operation for each kind of event, by the event's name. `schemas`: those of [`schemas`], with their examples.
pub fn operations(schemas: &BTreeMap<String, Value>) -> Map<String, Value> {
    let told = |kind: EventType| {
        let schema = json!({"$ref": format!("#/components/schemas/{}", name(kind))});
        let example = examples::of_body(&schema, schemas);
        let operation = json!({"post": {
            "operationId": format!("on_{}", kind.as_str().replace('.', "_")),
            "summary": format!("`{}` has happened", kind.as_str()),
            "description": "Sent to a company's webhooks that want such events, until they answer 2xx.",
            "tags": ["Webhooks"],
            "security": [],
            "parameters": headers(),
            "requestBody": {"required": true, "content": {JSON: {"schema": schema, "example": example}}},
            "responses": {"2XX": {"description": "Taken."}, "410": {"description": "Nobody is there any more: the webhook is disabled."}},
        }});
        (kind.as_str().to_owned(), operation)
    };
    EventType::ALL.into_iter().map(told).collect()
}

/// One signature while there is one secret, two for a day after a new one was made.
const SIGNATURES: &str = "^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)?$";

fn headers() -> [Value; 3] {
    let header = |name: &str, about: &str, pattern: &str, example: &str| {
        let schema = json!({"type": "string", "pattern": pattern, "examples": [example]});
        json!({"name": name, "in": "header", "required": true, "description": about, "schema": schema})
    };
    [
        header(
            "webhook-id",
            "The same at every attempt.",
            &ids::pattern(),
            &ids::example("dlv"),
        ),
        header(
            "webhook-timestamp",
            "Epoch seconds, signed.",
            "^[0-9]{1,12}$",
            "1795161130",
        ),
        header(
            "webhook-signature",
            "One or two, as Standard Webhooks has them.",
            SIGNATURES,
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
    ]
}
