//! Events: what webhooks are told, written by the transaction that causes it, so that neither exists without the other.
//!
//! Whoever changes something that is worth an event calls [`emit`] before its commit. For a company without an active webhook that wants the
//! type, that is one look into an index and nothing is written. What an event's `data` holds is said where it is caused, and in
//! `docs/webhooks.md`. Delivering is `souk-app`'s.

use crate::bulk::Bulk;
use crate::changes::Topic;
use crate::db::Write;
use crate::error::StoreError;
use crate::fields::Fields;
use serde_json::{Value, json};
use souk_domain::ids::{CompanyId, DeliveryId, WebhookId};
use souk_domain::money::UsdCents;
use souk_domain::time::Timestamp;
use souk_domain::webhooks::{BODY_BYTES_MAX, EventType};

/// Something that a company may want to be told.
pub(crate) struct Event {
    pub company: CompanyId,
    pub kind: EventType,
    pub at: Timestamp,
    pub data: Value,
}

/// Deliveries that may wait for one webhook; what happens beyond is not told to it (the log says so). A receiver that is away for the five
/// days after which its webhook is disabled misses nothing at 80 events an hour. A company with more than two webhooks has twice as many for
/// all of them: each has its share.
pub(crate) const WAITING_MAX: i64 = 10_000;

static SUBSCRIBERS: Bulk = Bulk::new(
    "SELECT v.column1 AS place, webhooks.id AS webhook_id",
    4,
    "JOIN webhooks ON webhooks.company_id = v.column2
     WHERE v.column1 IS NOT NULL
       AND webhooks.is_active = 1
       AND ((v.column4 = '' AND (webhooks.event_types = '[]' OR webhooks.event_types LIKE v.column3))
            OR v.column4 LIKE '%\"' || webhooks.id || '\"%')",
);

// WAITING_MAX is written out, and twice it: a statement is one literal.
static INSERT: Bulk = Bulk::new(
    "INSERT INTO webhook_deliveries (id, webhook_id, event_type, body, status, attempts, next_attempt_at, created_at)
     SELECT column1, column2, column3, column4, 'pending', 0, column5, column5",
    5,
    "WHERE column1 IS NOT NULL
       AND (SELECT COUNT(*) FROM webhook_deliveries d WHERE d.webhook_id = v.column2 AND d.status = 'pending')
           < (SELECT CASE WHEN COUNT(*) > 2 THEN 20000 / COUNT(*) ELSE 10000 END
              FROM webhooks AS own JOIN webhooks AS others ON others.company_id = own.company_id
              WHERE own.id = v.column2)",
);

/// Puts events on their way to the webhooks that want them.
pub(crate) async fn emit(write: &mut Write, events: &[Event]) -> Result<(), StoreError> {
    send(write, events, &[]).await.map(drop)
}

/// Puts one event on its way to some of its company's webhooks, whatever they subscribe to; with none, to those that want it. Returns what is
/// on its way.
pub(crate) async fn emit_to(
    write: &mut Write,
    event: Event,
    webhooks: &[WebhookId],
) -> Result<Vec<DeliveryId>, StoreError> {
    send(write, &[event], webhooks).await
}

async fn send(
    write: &mut Write,
    events: &[Event],
    only: &[WebhookId],
) -> Result<Vec<DeliveryId>, StoreError> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let only = match only {
        [] => String::new(),
        some => json!(some).to_string(),
    };
    let places: Vec<_> = events.iter().enumerate().collect();
    let subscribers = SUBSCRIBERS
        .fetch(write, &places, |values, row| {
            values
                .number(row.and_then(|(place, _)| i64::try_from(*place).ok()))
                .text(row.map(|(_, event)| event.company.as_str()))
                .text(row.map(|(_, event)| pattern(event.kind)).as_deref())
                .text(row.map(|_| only.as_str()));
        })
        .await?;
    let mut deliveries = Vec::with_capacity(subscribers.len());
    for row in &subscribers {
        let place = usize::try_from(row.number("place")?).unwrap_or(usize::MAX);
        let event = events.get(place).ok_or(StoreError::NotFound)?;
        let Some(body) = body(event) else { continue };
        let webhook = row.text("webhook_id")?;
        write.touch(Topic::Delivery, &webhook);
        deliveries.push((DeliveryId::generate_at(event.at), webhook, event, body));
    }
    if deliveries.is_empty() {
        return Ok(Vec::new());
    }
    let written = INSERT
        .run(write, &deliveries, |values, row| {
            values
                .text(row.map(|(id, ..)| id.as_str()))
                .text(row.map(|(_, webhook, ..)| webhook.as_str()))
                .text(row.map(|(_, _, event, _)| event.kind.as_str()))
                .text(row.map(|(.., body)| body.as_str()))
                .number(row.map(|(_, _, event, _)| event.at.micros()));
        })
        .await?;
    let dropped = deliveries.len() as u64 - written.min(deliveries.len() as u64);
    if dropped > 0 {
        tracing::warn!(
            dropped,
            waiting = WAITING_MAX,
            "events were not written: their webhooks have too many waiting"
        );
    }
    Ok(deliveries.into_iter().map(|(id, ..)| id).collect())
}

/// How a type stands in the JSON array of those that a webhook wants. No type's name holds another one's.
fn pattern(kind: EventType) -> String {
    format!("%\"{}\"%", kind.as_str())
}

/// What is sent. `None`, and a line in the log, for one that is too long: it must not undo what caused it.
fn body(event: &Event) -> Option<String> {
    let body = json!({
        "type": event.kind.as_str(),
        "timestamp": event.at.to_string(),
        "data": event.data,
    })
    .to_string();
    if body.len() > BODY_BYTES_MAX {
        tracing::error!(kind = event.kind.as_str(), company = %event.company, bytes = body.len(), "an event is too long to be sent");
        return None;
    }
    Some(body)
}

/// Dollars as the API shows them: a number with at most two decimals.
pub(crate) fn usd(amount: UsdCents) -> Value {
    match amount.get() % 100 {
        0 => Value::from(amount.get() / 100),
        _ => serde_json::from_str(&amount.to_string()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest texts that an operation takes make a body that may be sent, also when every character of them is escaped.
    #[test]
    fn the_longest_events_can_be_sent() {
        let longest = |kind, chars: usize| Event {
            company: CompanyId::generate(),
            kind,
            at: Timestamp::from_micros(0),
            data: json!({"failure_reason": "\u{1}".repeat(chars)}),
        };
        // A payout's failure reason has at most 500 characters and its reference 200; a key's name 255, the reason of its revocation 500.
        assert!(body(&longest(EventType::PayoutFailed, 500 + 200 + 255)).is_some());
        // An alert's name has at most 255 characters, the value and the threshold 1,100 each, and what went wrong 500.
        assert!(body(&longest(EventType::AlertError, 255 + 2 * 1_100 + 500)).is_some());
        assert!(body(&longest(EventType::PayoutFailed, BODY_BYTES_MAX)).is_none());
    }

    /// Dollars are numbers as the API writes them.
    #[test]
    fn dollars_are_numbers() {
        for (cents, text) in [(1200, "12"), (1250, "12.5"), (1225, "12.25")] {
            assert_eq!(usd(UsdCents::new(cents)).to_string(), text);
        }
    }
}
