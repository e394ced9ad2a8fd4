//! Changes of alerts: what is written down of them, and who is told. Start reading at [`happened`].

use super::mails::{self, MailStatus};
use super::values::{answer_text, answer_value, condition_texts, read, state, threshold_value};
use super::{Alert, Evaluated};
use crate::bulk::Bulk;
use crate::db::Write;
use crate::error::StoreError;
use crate::events::{self, Event};
use crate::fields::{Fields, without_nul};
use crate::lists::{List, Listed, Part, Values};
use serde_json::{Value, json};
use souk_domain::alerts::{Standing, State, told};
use souk_domain::ids::{AlertEventId, AlertId, DeliveryId, ExecutionId};
use souk_domain::time::Timestamp;
use souk_domain::webhooks::EventType;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

/// Of each alert, the newest.
pub const EVENTS_KEPT_MAX: i64 = 200;

/// What a test says of itself.
pub const TEST: &str = "this is a test: nothing was evaluated";

/// One change of an alert's state.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertEvent {
    pub id: AlertEventId,
    pub state: State,
    pub previous_state: State,
    /// JSON.
    pub value: Option<String>,
    pub threshold: Option<String>,
    pub message: Option<String>,
    pub execution_id: Option<String>,
    /// The statuses of the deliveries that tell of it, of those that are still known.
    pub deliveries: Vec<String>,
    /// `None`: nobody was to be told by mail.
    pub mail: Option<MailStatus>,
    pub occurred_at: Timestamp,
}

/// Writes down a change of state and tells of it.
pub(super) async fn happened(
    write: &mut Write,
    alert: &Alert,
    evaluated: &Evaluated,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (before, state) = (alert.standing.state, evaluated.standing.state);
    let kind = told(&alert.standing, &evaluated.standing);
    let id = AlertEventId::generate_at(now);
    let (_, threshold, _) = condition_texts(&alert.written.condition);
    let value = evaluated.answer.as_ref().map(answer_text);
    let is_mailed = alert.written.notify_by_mail && kind.is_some();
    let mail = match is_mailed {
        true => Some(mails::begin(write, &alert.company_id).await?),
        false => None,
    };
    let waits = mail == Some(MailStatus::Pending);
    let deliveries = match kind {
        Some(kind) => {
            let data = json!({
                "event_id": id,
                "previous_state": before.as_str(),
                "value": evaluated.answer.as_ref().map(answer_value),
                "message": evaluated.error,
                "execution_id": evaluated.execution,
            });
            let event = event(alert, kind, &evaluated.standing, data, now);
            events::emit_to(write, event, &alert.written.webhook_ids).await?
        }
        None => Vec::new(),
    };
    sqlx::query(
        "INSERT INTO alert_events (id, alert_id, state, previous_state, value, threshold, message, execution_id, deliveries, occurred_at, mail_status, mail_next_at,
                                   mail_company)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    )
    .bind(id.as_str())
    .bind(alert.id.as_str())
    .bind(state.as_str())
    .bind(before.as_str())
    .bind(value)
    .bind(threshold)
    .bind(evaluated.error.as_deref().map(without_nul))
    .bind(evaluated.execution.as_ref().map(ExecutionId::as_str))
    .bind(json!(deliveries).to_string())
    .bind(now.micros())
    .bind(mail.map(MailStatus::as_str))
    .bind(waits.then(|| now.micros()))
    .bind(waits.then_some(alert.company_id.as_str()))
    .execute(&mut **write)
    .await?;
    sqlx::query(
        "DELETE FROM alert_events
         WHERE alert_id = $1
           AND id NOT IN (SELECT id FROM alert_events WHERE alert_id = $1 ORDER BY occurred_at DESC, id DESC LIMIT $2)",
    )
    .bind(alert.id.as_str())
    .bind(EVENTS_KEPT_MAX)
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Sends what an alert would send if it triggered now, marked as a test, to whom it would send it.
pub async fn send_test(
    write: &mut Write,
    alert: &Alert,
    now: Timestamp,
) -> Result<Vec<DeliveryId>, StoreError> {
    let noted = json!({"alert_id": alert.id});
    let subject = ("alert_test", alert.id.as_str());
    let change = crate::audit::Change::Created;
    crate::audit::note(write, None, subject, change, None, Some(noted)).await?;
    let data = json!({
        "event_id": null,
        "previous_state": alert.standing.state.as_str(),
        "value": alert.last_answer.as_ref().map(answer_value),
        "message": TEST,
        "execution_id": null,
        "test": true,
    });
    let standing = Standing {
        state: State::Triggered,
        ..alert.standing
    };
    let event = event(alert, EventType::AlertTriggered, &standing, data, now);
    events::emit_to(write, event, &alert.written.webhook_ids).await
}

/// `standing` is that of after what is told of.
fn event(
    alert: &Alert,
    kind: EventType,
    standing: &Standing,
    mut data: Value,
    now: Timestamp,
) -> Event {
    let condition = &alert.written.condition;
    let common = json!({
        "company_id": alert.company_id,
        "alert_id": alert.id,
        "name": alert.written.name,
        "user_id": alert.user_id,
        "asset_id": alert.asset_id,
        "state": standing.state.as_str(),
        "operator": condition.operator().as_str(),
        "threshold": condition.threshold().map(threshold_value),
        "breaches": standing.breaches,
    });
    if let (Value::Object(data), Value::Object(common)) = (&mut data, common) {
        data.extend(common);
    }
    Event {
        company: alert.company_id.clone(),
        kind,
        at: now,
        data,
    }
}

static EVENTS: List = List::new(
    "id, state, previous_state, value, threshold, message, execution_id, deliveries, mail_status, occurred_at",
    "FROM alert_events WHERE alert_id = $1",
    "occurred_at DESC, id DESC",
    1,
);

/// An alert's events, newest first.
pub async fn list_events(
    db: &mut AnyConnection,
    id: &AlertId,
    part: Part,
) -> Result<Listed<AlertEvent>, StoreError> {
    let bind = |values: &mut Values| {
        values.text(Some(id.as_str()));
    };
    let (mut events, total) = EVENTS.fetch(db, part, bind, event_from_row).await?;
    let all: Vec<_> = events
        .iter_mut()
        .enumerate()
        .flat_map(|(place, event)| {
            let ids = std::mem::take(&mut event.deliveries);
            ids.into_iter().map(move |id| (place, id))
        })
        .collect();
    if all.is_empty() {
        return Ok((events, total));
    }
    let known = STATUSES
        .fetch(db, &all, |values, row| {
            values
                .number(row.and_then(|(place, _)| i64::try_from(*place).ok()))
                .text(row.map(|(_, id)| id.as_str()));
        })
        .await?;
    for row in known {
        let place = usize::try_from(row.number("place")?).unwrap_or(usize::MAX);
        if let Some(event) = events.get_mut(place) {
            event.deliveries.push(row.text("status")?);
        }
    }
    Ok((events, total))
}

static STATUSES: Bulk = Bulk::new(
    "SELECT v.column1 AS place, deliveries.status AS status",
    2,
    "JOIN webhook_deliveries AS deliveries ON deliveries.id = v.column2
     WHERE v.column1 IS NOT NULL",
);

fn event_from_row(row: &AnyRow) -> Result<AlertEvent, StoreError> {
    let deliveries = row.text("deliveries")?;
    Ok(AlertEvent {
        id: row.id("id")?,
        state: state(row, "state")?,
        previous_state: state(row, "previous_state")?,
        value: row.text_opt("value")?,
        threshold: row.text_opt("threshold")?,
        message: row.text_opt("message")?,
        execution_id: row.text_opt("execution_id")?,
        deliveries: read("deliveries", &deliveries)?,
        mail: mails::status(row)?,
        occurred_at: row.time("occurred_at")?,
    })
}
