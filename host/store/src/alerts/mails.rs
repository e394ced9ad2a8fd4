//! Mails that tell of changes of alerts: the events are their own outbox.
//!
//! Whoever sends one moves its next attempt forward first: as far as its lease goes, so that no other host sends it too, and somebody
//! does if this one dies. Refuses to decide what is written and when to try again.

use crate::db::Write;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use souk_domain::alerts::State;
use souk_domain::ids::{AlertEventId, AlertId, AssetId, CompanyId};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailStatus {
    Pending,
    Sent,
    Failed,
}

impl MailStatus {
    const ALL: [MailStatus; 3] = [Self::Pending, Self::Sent, Self::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sent => "sent",
            Self::Failed => "failed",
        }
    }
}

/// A change that is to be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Mail {
    pub event: AlertEventId,
    pub alert: AlertId,
    pub company: CompanyId,
    pub asset: AssetId,
    /// The alert's.
    pub name: String,
    pub operator: String,
    pub state: State,
    /// JSON.
    pub value: Option<String>,
    pub threshold: Option<String>,
    pub message: Option<String>,
    pub occurred_at: Timestamp,
    /// Begun until now.
    pub attempts: i64,
    /// When it was due.
    pub next_at: Timestamp,
    /// Of the user whose alert it is, while he is one.
    pub to: Option<String>,
}

/// What may be sent now: companies by turns, at most so many of each.
pub async fn due(
    db: &mut AnyConnection,
    now: Timestamp,
    per_company: i64,
    limit: i64,
) -> Result<Vec<Mail>, StoreError> {
    let rows = sqlx::query(
        "SELECT id, alert_id, company_id, asset_id, name, operator, state, value, threshold, message, occurred_at, mail_attempts,
                mail_next_at, email
         FROM (SELECT events.id, events.alert_id, alerts.company_id, alerts.asset_id, alerts.name, alerts.operator, events.state,
                      events.value, events.threshold, events.message, events.occurred_at, events.mail_attempts, events.mail_next_at,
                      CASE WHEN users.status = 'active' THEN users.email END AS email,
                      ROW_NUMBER() OVER (PARTITION BY alerts.company_id ORDER BY events.mail_next_at, events.id) AS turn
               FROM alert_events AS events
               JOIN alerts ON alerts.id = events.alert_id
               JOIN users ON users.id = alerts.user_id
               WHERE events.mail_next_at <= $1) AS waiting
         WHERE turn <= $2
         ORDER BY turn, mail_next_at, id
         LIMIT $3",
    )
    .bind(now.micros())
    .bind(per_company)
    .bind(limit)
    .fetch_all(db)
    .await?;
    rows.iter().map(from_row).collect()
}

/// Takes one to send it, or only puts it off, until `until`. `false`: somebody else was faster.
pub async fn claim(
    write: &mut Write,
    mail: &Mail,
    attempts: i64,
    until: Timestamp,
) -> Result<bool, StoreError> {
    let claimed = sqlx::query(
        "UPDATE alert_events SET mail_attempts = $3, mail_next_at = $4 WHERE id = $1 AND mail_next_at = $2",
    )
    .bind(mail.event.as_str())
    .bind(mail.next_at.micros())
    .bind(attempts)
    .bind(until.micros())
    .execute(&mut **write)
    .await?;
    Ok(claimed.rows_affected() == 1)
}

/// Writes down how it ended, `again` when it is to be tried once more.
pub async fn record(
    write: &mut Write,
    event: &AlertEventId,
    status: MailStatus,
    again: Option<Timestamp>,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE alert_events SET mail_status = $2, mail_next_at = $3 WHERE id = $1")
        .bind(event.as_str())
        .bind(status.as_str())
        .bind(again.map(Timestamp::micros))
        .execute(&mut **write)
        .await?;
    Ok(())
}

pub(super) fn status(row: &AnyRow) -> Result<Option<MailStatus>, StoreError> {
    let Some(text) = row.text_opt("mail_status")? else {
        return Ok(None);
    };
    let known = MailStatus::ALL.into_iter();
    let status = known.into_iter().find(|status| status.as_str() == text);
    status.map(Some).ok_or_else(|| corrupt("mail_status", text))
}

fn from_row(row: &AnyRow) -> Result<Mail, StoreError> {
    Ok(Mail {
        event: row.id("id")?,
        alert: row.id("alert_id")?,
        company: row.id("company_id")?,
        asset: row.id("asset_id")?,
        name: row.text("name")?,
        operator: row.text("operator")?,
        state: super::state(row, "state")?,
        value: row.text_opt("value")?,
        threshold: row.text_opt("threshold")?,
        message: row.text_opt("message")?,
        occurred_at: row.time("occurred_at")?,
        attempts: row.number("mail_attempts")?,
        next_at: row.time("mail_next_at")?,
        to: row.text_opt("email")?,
    })
}
