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

/// Of one company: two hours of what a host sends of it. What happens beyond is not told by mail.
pub const WAITING_MAX: i64 = 200;

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

/// How the mail of a change begins that a company wants to be told of: it waits, unless too many of its do.
pub(super) async fn begin(
    write: &mut Write,
    company: &CompanyId,
) -> Result<MailStatus, StoreError> {
    let waiting = sqlx::query(
        "SELECT COUNT(*) AS total FROM alert_events WHERE mail_company = $1 AND mail_next_at IS NOT NULL",
    )
    .bind(company.as_str())
    .fetch_one(&mut **write)
    .await?
    .number("total")?;
    Ok(match waiting < WAITING_MAX {
        true => MailStatus::Pending,
        false => MailStatus::Failed,
    })
}

/// What may be sent now: companies by turns, at most so many of each. All that is due is looked at, but the texts only of what is chosen.
pub async fn due(
    db: &mut AnyConnection,
    now: Timestamp,
    per_company: i64,
    limit: i64,
) -> Result<Vec<Mail>, StoreError> {
    let rows = sqlx::query(
        "SELECT events.id, events.alert_id, alerts.company_id, alerts.asset_id, alerts.name, alerts.operator, events.state, events.value,
                events.threshold, events.message, events.occurred_at, events.mail_attempts, events.mail_next_at,
                CASE WHEN users.status = 'active' THEN users.email END AS email
         FROM (SELECT id, turn
               FROM (SELECT id, mail_next_at,
                            ROW_NUMBER() OVER (PARTITION BY mail_company ORDER BY mail_next_at, id) AS turn
                     FROM alert_events
                     WHERE mail_next_at <= $1) AS waiting
               WHERE turn <= $2
               ORDER BY turn, mail_next_at, id
               LIMIT $3) AS chosen
         JOIN alert_events AS events ON events.id = chosen.id
         JOIN alerts ON alerts.id = events.alert_id
         JOIN users ON users.id = alerts.user_id
         ORDER BY chosen.turn, events.mail_next_at, events.id",
    )
    .bind(now.micros())
    .bind(per_company)
    .bind(limit)
    .fetch_all(db)
    .await?;
    rows.iter().map(from_row).collect()
}

/// Puts off all of a company's that are due, until `until`.
pub async fn put_off(
    write: &mut Write,
    company: &CompanyId,
    now: Timestamp,
    until: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE alert_events SET mail_next_at = $3 WHERE mail_company = $1 AND mail_next_at <= $2",
    )
    .bind(company.as_str())
    .bind(now.micros())
    .bind(until.micros())
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Takes one to send it: nobody else does until `until`. `false`: somebody else was faster.
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
        state: super::values::state(row, "state")?,
        value: row.text_opt("value")?,
        threshold: row.text_opt("threshold")?,
        message: row.text_opt("message")?,
        occurred_at: row.time("occurred_at")?,
        attempts: row.number("mail_attempts")?,
        next_at: row.time("mail_next_at")?,
        to: row.text_opt("email")?,
    })
}
