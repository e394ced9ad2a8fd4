//! Alerts: what a company watches, how it stands, and whose turn it is. Evaluated by whichever host claims one first.
//!
//! A claim is a lease, as of deliveries: it keeps other hosts away until it ends. Refuses to decide what an answer means. What an evaluation
//! changes, and who is told of it, is written in one transaction. Start reading at [`due`], [`claim`] and [`record`].

mod events;
pub mod mails;
mod values;

pub use events::{AlertEvent, EVENTS_KEPT_MAX, TEST, list_events, send_test};
pub use mails::MailStatus;
pub use values::{answer_value, number, threshold_value};

use crate::db::Write;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt, without_nul};
use crate::leases::{self, Claim, Due};
use crate::lists::{List, Listed, Part, Values};
use events::happened;
use serde_json::{Value, json};
use souk_domain::alerts::{Answer, Condition, Standing, State};
use souk_domain::ids::{AlertId, AssetId, CompanyId, ExecutionId, UserId, WebhookId};
use souk_domain::time::{DAY, Timestamp};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use values::{answer_text, condition, condition_texts, read, state};

/// What somebody asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    pub name: String,
    /// JSON, an object: the asset's parameters.
    pub params: String,
    pub condition: Condition,
    pub check_interval_seconds: i64,
    pub consecutive_breaches: i64,
    pub rearm_seconds: i64,
    /// Empty: those that subscribe.
    pub webhook_ids: Vec<WebhookId>,
    pub max_credits_per_day: i64,
    /// Whether its user is told by mail too.
    pub notify_by_mail: bool,
    pub is_active: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    pub id: AlertId,
    pub company_id: CompanyId,
    pub user_id: UserId,
    pub asset_id: AssetId,
    pub written: Written,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Counts changes of what is asked.
    pub revision: i64,
    pub standing: Standing,
    pub last_answer: Option<Answer>,
    /// Numbers before the last answer's, oldest first; kept where the condition needs them.
    pub history: Vec<f64>,
    pub last_checked_at: Option<Timestamp>,
    pub last_error: Option<String>,
    /// What was spent on the day that begins then.
    pub spent_on: Timestamp,
    pub spent_credits: i64,
    /// Of one that is active.
    pub next_check_at: Option<Timestamp>,
}

impl Alert {
    /// What it has spent on the day of `now`.
    pub fn spent(&self, now: Timestamp) -> i64 {
        match self.spent_on == now.day_start() {
            true => self.spent_credits,
            false => 0,
        }
    }
}

macro_rules! columns {
    () => {
        "id, company_id, user_id, asset_id, name, params, operator, threshold, answer_field, check_interval_seconds, consecutive_breaches,
         rearm_seconds, webhook_ids, max_credits_per_day, notify_by_mail, is_active, created_at, updated_at, revision, state, breaches, delays, last_value,
         history, last_checked_at, last_triggered_at, was_triggered, last_error, spent_on, spent_credits, next_check_at"
    };
}

/// Adds an alert that is due at once, if it is active. `false`: the company has `alerts_max` already.
pub async fn insert(write: &mut Write, alert: &Alert, alerts_max: i64) -> Result<bool, StoreError> {
    crate::companies::lock(write, &alert.company_id).await?;
    let count = sqlx::query("SELECT COUNT(*) AS total FROM alerts WHERE company_id = $1")
        .bind(alert.company_id.as_str())
        .fetch_one(&mut **write)
        .await?
        .number("total")?;
    if count >= alerts_max {
        return Ok(false);
    }
    let written = &alert.written;
    let (operator, threshold, field) = condition_texts(&written.condition);
    sqlx::query(
        "INSERT INTO alerts (id, company_id, user_id, asset_id, name, params, operator, threshold, answer_field, check_interval_seconds,
                             consecutive_breaches, rearm_seconds, webhook_ids, max_credits_per_day, is_active, created_at, updated_at,
                             revision, state, breaches, delays, history, spent_on, spent_credits, next_check_at, notify_by_mail)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $16, 1, 'unknown', 0, 0, '[]', 0, 0, $17, $18)",
    )
    .bind(alert.id.as_str())
    .bind(alert.company_id.as_str())
    .bind(alert.user_id.as_str())
    .bind(alert.asset_id.as_str())
    .bind(&written.name)
    .bind(&written.params)
    .bind(operator)
    .bind(threshold)
    .bind(field)
    .bind(written.check_interval_seconds)
    .bind(written.consecutive_breaches)
    .bind(written.rearm_seconds)
    .bind(json!(written.webhook_ids).to_string())
    .bind(written.max_credits_per_day)
    .bind(i64::from(written.is_active))
    .bind(alert.created_at.micros())
    .bind(written.is_active.then(|| alert.created_at.micros()))
    .bind(i64::from(written.notify_by_mail))
    .execute(&mut **write)
    .await?;
    Ok(true)
}

/// Writes what somebody wants from now on. `anew`: what is asked has changed, so what was found until now says nothing any more, and an
/// evaluation that has begun does not count. A shorter interval counts from the last check on, and who waits for midnight since the day's credits are
/// spent waits no longer where there are more: whoever changes that means now.
pub async fn update(
    write: &mut Write,
    id: &AlertId,
    written: &Written,
    anew: bool,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (operator, threshold, field) = condition_texts(&written.condition);
    sqlx::query(
        "UPDATE alerts
         SET name = $2, params = $3, operator = $4, threshold = $5, answer_field = $6, check_interval_seconds = $7,
             consecutive_breaches = $8, rearm_seconds = $9, webhook_ids = $10, max_credits_per_day = $11, is_active = CAST($12 AS BIGINT),
             next_check_at = CASE WHEN CAST($12 AS BIGINT) = 0 THEN NULL
                                  WHEN CAST($13 AS BIGINT) = 1 OR is_active = 0 THEN $14
                                  WHEN max_credits_per_day < $11 AND state = 'error' AND next_check_at = $16 THEN $14
                                  WHEN check_interval_seconds > $7 AND next_check_at > $14
                                       AND next_check_at > last_checked_at + CAST($7 AS BIGINT) * 1000000
                                  THEN CASE WHEN last_checked_at + CAST($7 AS BIGINT) * 1000000 > $14
                                            THEN last_checked_at + CAST($7 AS BIGINT) * 1000000 ELSE $14 END
                                  ELSE next_check_at END,
             revision = revision + CAST($13 AS BIGINT), updated_at = $14, notify_by_mail = $15
         WHERE id = $1",
    )
    .bind(id.as_str())
    .bind(&written.name)
    .bind(&written.params)
    .bind(operator)
    .bind(threshold)
    .bind(field)
    .bind(written.check_interval_seconds)
    .bind(written.consecutive_breaches)
    .bind(written.rearm_seconds)
    .bind(json!(written.webhook_ids).to_string())
    .bind(written.max_credits_per_day)
    .bind(i64::from(written.is_active))
    .bind(i64::from(anew))
    .bind(now.micros())
    .bind(i64::from(written.notify_by_mail))
    .bind(now.day_start().after(DAY).micros())
    .execute(&mut **write)
    .await?;
    if anew {
        sqlx::query(
            "UPDATE alerts
             SET state = 'unknown', breaches = 0, delays = 0, last_value = NULL, history = '[]', last_error = NULL, last_triggered_at = NULL,
                 was_triggered = 0
             WHERE id = $1",
        )
        .bind(id.as_str())
        .execute(&mut **write)
        .await?;
    }
    Ok(())
}

/// What a user watched is watched no longer: nobody would be told, and it may cost.
pub(crate) async fn pause_all_of(
    write: &mut Write,
    user: &UserId,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE alerts SET is_active = 0, next_check_at = NULL, updated_at = $2 WHERE user_id = $1 AND is_active = 1",
    )
    .bind(user.as_str())
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Removes an alert with its events. `false`: the company has none such.
pub async fn delete(
    write: &mut Write,
    company: &CompanyId,
    id: &AlertId,
) -> Result<bool, StoreError> {
    let deleted = sqlx::query("DELETE FROM alerts WHERE id = $1 AND company_id = $2")
        .bind(id.as_str())
        .bind(company.as_str())
        .execute(&mut **write)
        .await?;
    if deleted.rows_affected() == 0 {
        return Ok(false);
    }
    sqlx::query("DELETE FROM alert_events WHERE alert_id = $1")
        .bind(id.as_str())
        .execute(&mut **write)
        .await?;
    Ok(true)
}

pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &AlertId,
) -> Result<Option<Alert>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM alerts WHERE id = $1 AND company_id = $2"
    ))
    .bind(id.as_str())
    .bind(company.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// Which of a company's alerts to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    pub user: Option<&'a UserId>,
    pub asset: Option<&'a str>,
    pub is_active: Option<bool>,
    pub state: Option<State>,
}

static LIST: List = List::new(
    columns!(),
    "FROM alerts
     WHERE company_id = $1
       AND (CAST($2 AS TEXT) IS NULL OR user_id = $2)
       AND (CAST($3 AS TEXT) IS NULL OR asset_id = $3)
       AND (CAST($4 AS BIGINT) IS NULL OR is_active = $4)
       AND (CAST($5 AS TEXT) IS NULL OR (state = $5 AND is_active = 1))",
    "created_at DESC, id",
    5,
);

/// A company's alerts, newest first.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    wanted: Wanted<'_>,
    part: Part,
) -> Result<Listed<Alert>, StoreError> {
    let bind = |values: &mut Values| {
        values
            .text(Some(company.as_str()))
            .text(wanted.user.map(UserId::as_str))
            .text(wanted.asset)
            .number(wanted.is_active.map(i64::from))
            .text(wanted.state.map(State::as_str));
    };
    LIST.fetch(db, part, bind, from_row).await
}

/// What may be evaluated now: companies by turns, and of each the most overdue first. Nothing runs for a company that is suspended.
pub async fn due(
    db: &mut AnyConnection,
    now: Timestamp,
    per_company: i64,
    limit: i64,
) -> Result<Vec<Due<AlertId>>, StoreError> {
    leases::due(
        db,
        "SELECT id, company_id
         FROM (SELECT alerts.id, alerts.company_id, alerts.next_check_at,
                      ROW_NUMBER() OVER (PARTITION BY alerts.company_id ORDER BY alerts.next_check_at, alerts.id) AS turn
               FROM alerts
               JOIN companies ON companies.id = alerts.company_id
               WHERE alerts.next_check_at <= $1 AND (alerts.lease_until IS NULL OR alerts.lease_until <= $1)
                 AND companies.status = 'active') AS waiting
         WHERE turn <= $2
         ORDER BY turn, next_check_at, id
         LIMIT $3",
        now,
        per_company,
        limit,
    )
    .await
}

/// Takes an alert that is due, again if need be. `None`: somebody else was first, or it is not due any more.
pub async fn claim(
    write: &mut Write,
    id: &AlertId,
    claim: &Claim<'_>,
) -> Result<Option<Alert>, StoreError> {
    const SQL: &str = concat!(
        "UPDATE alerts
         SET claimed_by = $2, lease_until = $4
         WHERE id = $1 AND next_check_at <= $3 AND (lease_until IS NULL OR lease_until <= $3 OR claimed_by = $2)
         RETURNING ",
        columns!()
    );
    leases::claim(write, SQL, id.as_str(), claim, from_row).await
}

/// Ends all claims: of a host that has its store to itself and has just started, so that nobody holds one.
pub async fn release_all(write: &mut Write) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE alerts SET claimed_by = NULL, lease_until = NULL WHERE lease_until IS NOT NULL",
    )
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// What an evaluation found, and what follows from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    pub standing: Standing,
    /// `None`: there was none.
    pub answer: Option<Answer>,
    /// What is kept for the next one.
    pub history: Vec<f64>,
    /// Why it could not be evaluated.
    pub error: Option<String>,
    pub execution: Option<ExecutionId>,
    pub credits: i64,
    pub next_check_at: Timestamp,
}

/// Writes down an evaluation of `alert` as it was claimed, tells of a change of its state, and lets go of the claim. `false`: the claim had
/// ended, or what is asked was changed meanwhile; then only what was spent is written down. Where it is to be looked at more often than it was when it was
/// claimed, or may spend more, that holds for the next check.
///
/// `is_again`: a commit of this was not answered. Where the claim has ended, that was how, and what was spent is counted already.
pub async fn record(
    write: &mut Write,
    alert: &Alert,
    claimant: &str,
    evaluated: &Evaluated,
    now: Timestamp,
    is_again: bool,
) -> Result<bool, StoreError> {
    let standing = &evaluated.standing;
    let today = now.day_start().micros();
    let recorded = sqlx::query(
        "UPDATE alerts
         SET state = $4, breaches = $5, delays = $6, last_value = COALESCE($7, last_value), history = $8, last_checked_at = $9,
             last_triggered_at = $10, was_triggered = $13, last_error = $11, claimed_by = NULL, lease_until = NULL,
             next_check_at = CASE WHEN (check_interval_seconds < $14 OR max_credits_per_day > $15)
                                       AND CAST($9 AS BIGINT) + check_interval_seconds * 1000000 < $12
                                  THEN CAST($9 AS BIGINT) + check_interval_seconds * 1000000
                                  ELSE $12 END
         WHERE id = $1 AND claimed_by = $2 AND revision = $3 AND is_active = 1",
    )
    .bind(alert.id.as_str())
    .bind(claimant)
    .bind(alert.revision)
    .bind(standing.state.as_str())
    .bind(standing.breaches)
    .bind(standing.delays)
    .bind(evaluated.answer.as_ref().map(answer_text))
    .bind(json!(evaluated.history).to_string())
    .bind(now.micros())
    .bind(standing.last_triggered_at.map(Timestamp::micros))
    .bind(evaluated.error.as_deref().map(without_nul))
    .bind(evaluated.next_check_at.micros())
    .bind(i64::from(standing.was_triggered))
    .bind(alert.written.check_interval_seconds)
    .bind(alert.written.max_credits_per_day)
    .execute(&mut **write)
    .await?;
    let is_recorded = recorded.rows_affected() == 1;
    if evaluated.credits > 0 || !is_recorded {
        sqlx::query(
            "UPDATE alerts
             SET spent_credits = $4 + CASE WHEN spent_on = $3 THEN spent_credits ELSE 0 END, spent_on = $3,
                 lease_until = CASE WHEN claimed_by = $2 THEN NULL ELSE lease_until END,
                 claimed_by = CASE WHEN claimed_by = $2 THEN NULL ELSE claimed_by END
             WHERE id = $1 AND ($5 = 0 OR claimed_by = $2)",
        )
        .bind(alert.id.as_str())
        .bind(claimant)
        .bind(today)
        .bind(evaluated.credits)
        .bind(i64::from(!is_recorded && is_again))
        .execute(&mut **write)
        .await?;
    }
    if !is_recorded {
        return Ok(false);
    }
    let before = alert.standing.state;
    if standing.state != before {
        happened(write, alert, evaluated, now).await?;
    }
    Ok(true)
}

fn from_row(row: &AnyRow) -> Result<Alert, StoreError> {
    let last_answer = match row.text_opt("last_value")? {
        None => None,
        Some(text) => Some(match read::<Value>("last_value", &text)? {
            Value::Null => Answer::Nothing,
            Value::Number(value) => Answer::Number(value.as_f64().unwrap_or_default()),
            Value::String(text) => Answer::Text(text),
            other => return Err(corrupt("last_value", other)),
        }),
    };
    Ok(Alert {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        user_id: row.id("user_id")?,
        asset_id: row.id("asset_id")?,
        written: Written {
            name: row.text("name")?,
            params: row.text("params")?,
            condition: condition(row)?,
            check_interval_seconds: row.number("check_interval_seconds")?,
            consecutive_breaches: row.number("consecutive_breaches")?,
            rearm_seconds: row.number("rearm_seconds")?,
            webhook_ids: read("webhook_ids", &row.text("webhook_ids")?)?,
            max_credits_per_day: row.number("max_credits_per_day")?,
            notify_by_mail: row.flag("notify_by_mail")?,
            is_active: row.flag("is_active")?,
        },
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        revision: row.number("revision")?,
        standing: Standing {
            state: state(row, "state")?,
            breaches: row.number("breaches")?,
            delays: row.number("delays")?,
            last_triggered_at: row.time_opt("last_triggered_at")?,
            was_triggered: row.flag("was_triggered")?,
        },
        last_answer,
        history: read("history", &row.text("history")?)?,
        last_checked_at: row.time_opt("last_checked_at")?,
        last_error: row.text_opt("last_error")?,
        spent_on: row.time("spent_on")?,
        spent_credits: row.number("spent_credits")?,
        next_check_at: row.time_opt("next_check_at")?,
    })
}
