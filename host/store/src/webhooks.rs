//! Webhooks: where a company wants to be told of events, and how that is going. Secrets pass through here sealed.

use crate::companies;
use crate::db::Write;
use crate::deliveries;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use crate::lists::{List, Listed, Part, Values};
use souk_domain::ids::{CompanyId, WebhookId};
use souk_domain::time::Timestamp;
use souk_domain::webhooks::{EventType, FAILING_GAP_MAX, WEBHOOKS_MAX};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub id: WebhookId,
    pub company_id: CompanyId,
    pub url: String,
    pub description: Option<String>,
    /// Empty: all, also those of later versions.
    pub event_types: Vec<EventType>,
    pub sealed_secret: Vec<u8>,
    /// Signs too, until then.
    pub former_secret: Option<FormerSecret>,
    /// The first of the failures since something was delivered.
    pub failing_since: Option<Timestamp>,
    /// Since when and why nothing is sent there.
    pub disabled: Option<Disabled>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerSecret {
    pub sealed: Vec<u8>,
    pub until: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disabled {
    pub at: Timestamp,
    pub reason: DisabledReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisabledReason {
    /// Its company wanted it so.
    Request,
    /// It answered 410.
    Gone,
    /// Nothing could be delivered for days.
    Failing,
}

impl DisabledReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Gone => "gone",
            Self::Failing => "failing",
        }
    }

    fn read(text: &str) -> Result<Self, StoreError> {
        [Self::Request, Self::Gone, Self::Failing]
            .into_iter()
            .find(|reason| reason.as_str() == text)
            .ok_or_else(|| corrupt("disabled_reason", format!("{text:?}")))
    }
}

impl Webhook {
    pub fn is_active(&self) -> bool {
        self.disabled.is_none()
    }
}

/// Adds a webhook. `false`: the company has as many as it may have.
pub async fn insert(write: &mut Write, webhook: &Webhook) -> Result<bool, StoreError> {
    companies::lock(write, &webhook.company_id).await?;
    if count(write, &webhook.company_id).await? >= WEBHOOKS_MAX {
        return Ok(false);
    }
    let disabled = webhook.disabled;
    sqlx::query(
        "INSERT INTO webhooks (id, company_id, url, description, event_types, is_active, secret, disabled_at, disabled_reason,
                               created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)",
    )
    .bind(webhook.id.as_str())
    .bind(webhook.company_id.as_str())
    .bind(&webhook.url)
    .bind(webhook.description.as_deref())
    .bind(types_text(&webhook.event_types))
    .bind(i64::from(webhook.is_active()))
    .bind(hex::encode(&webhook.sealed_secret))
    .bind(disabled.map(|disabled| disabled.at.micros()))
    .bind(disabled.map(|disabled| disabled.reason.as_str()))
    .bind(webhook.created_at.micros())
    .execute(&mut **write)
    .await?;
    Ok(true)
}

async fn count(db: &mut AnyConnection, company: &CompanyId) -> Result<i64, StoreError> {
    sqlx::query("SELECT COUNT(*) AS total FROM webhooks WHERE company_id = $1")
        .bind(company.as_str())
        .fetch_one(db)
        .await?
        .number("total")
}

macro_rules! columns {
    () => {
        "id, company_id, url, description, event_types, secret, former_secret, former_secret_until, failing_since, disabled_at,
         disabled_reason, created_at, updated_at"
    };
}

/// Of whatever company: for whoever delivers.
pub async fn find(db: &mut AnyConnection, id: &WebhookId) -> Result<Option<Webhook>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM webhooks WHERE id = $1"
    ))
    .bind(id.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &WebhookId,
) -> Result<Option<Webhook>, StoreError> {
    let found = find(db, id).await?;
    Ok(found.filter(|webhook| webhook.company_id == *company))
}

static LIST: List = List::new(
    columns!(),
    "FROM webhooks WHERE company_id = $1",
    "created_at, id",
    1,
);

/// A company's webhooks, oldest first.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    part: Part,
) -> Result<Listed<Webhook>, StoreError> {
    let bind = |values: &mut Values| {
        values.text(Some(company.as_str()));
    };
    LIST.fetch(db, part, bind, from_row).await
}

/// Writes address, description and types of `webhook`, as they are now. Failures at another address than this are none of this one's.
pub async fn update(
    write: &mut Write,
    webhook: &Webhook,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE webhooks
         SET url = $3, description = $4, event_types = $5, updated_at = $6,
             failing_since = CASE WHEN url = $3 THEN failing_since END, failed_at = CASE WHEN url = $3 THEN failed_at END
         WHERE id = $1 AND company_id = $2",
    )
    .bind(webhook.id.as_str())
    .bind(webhook.company_id.as_str())
    .bind(&webhook.url)
    .bind(webhook.description.as_deref())
    .bind(types_text(&webhook.event_types))
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Sends to it again, as if it had never failed. Does nothing to one that is active.
pub async fn enable(write: &mut Write, id: &WebhookId, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE webhooks
         SET is_active = 1, disabled_at = NULL, disabled_reason = NULL, failing_since = NULL, failed_at = NULL, updated_at = $2
         WHERE id = $1 AND is_active = 0",
    )
    .bind(id.as_str())
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Sends nothing there any more and gives up what waits, thousands of them by and by ([`deliveries::give_up`]). Does nothing to one that is
/// disabled already.
pub async fn disable(
    write: &mut Write,
    id: &WebhookId,
    reason: DisabledReason,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let disabled = sqlx::query(
        "UPDATE webhooks
         SET is_active = 0, disabled_at = $2, disabled_reason = $3, updated_at = $2
         WHERE id = $1 AND is_active = 1",
    )
    .bind(id.as_str())
    .bind(now.micros())
    .bind(reason.as_str())
    .execute(&mut **write)
    .await?;
    if disabled.rows_affected() == 0 {
        return Ok(false);
    }
    deliveries::give_up(write, id, now).await?;
    Ok(true)
}

/// Signs with `sealed` from now on, and until `until` with the former secret too. One that was former before signs no more.
pub async fn rotate(
    write: &mut Write,
    company: &CompanyId,
    id: &WebhookId,
    sealed: &[u8],
    until: Timestamp,
    now: Timestamp,
) -> Result<Option<Webhook>, StoreError> {
    sqlx::query(
        "UPDATE webhooks
         SET former_secret = secret, former_secret_until = $4, secret = $3, updated_at = $5
         WHERE id = $1 AND company_id = $2",
    )
    .bind(id.as_str())
    .bind(company.as_str())
    .bind(hex::encode(sealed))
    .bind(until.micros())
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    get(write, company, id).await
}

/// Deletes a webhook with its deliveries. `false`: there is none.
pub async fn delete(
    write: &mut Write,
    company: &CompanyId,
    id: &WebhookId,
) -> Result<bool, StoreError> {
    let deleted = sqlx::query("DELETE FROM webhooks WHERE id = $1 AND company_id = $2")
        .bind(id.as_str())
        .bind(company.as_str())
        .execute(&mut **write)
        .await?;
    if deleted.rows_affected() == 0 {
        return Ok(false);
    }
    deliveries::delete_of(write, id).await?;
    Ok(true)
}

/// Notes that something was delivered.
pub async fn note_success(write: &mut Write, id: &WebhookId) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE webhooks SET failing_since = NULL, failed_at = NULL WHERE id = $1 AND failing_since IS NOT NULL",
    )
    .bind(id.as_str())
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Notes that an attempt failed. Returns since when they do, without a pause that would end the series.
pub async fn note_failure(
    write: &mut Write,
    id: &WebhookId,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let row = sqlx::query(
        "UPDATE webhooks
         SET failing_since = CASE WHEN failed_at >= $3 THEN COALESCE(failing_since, $2) ELSE $2 END, failed_at = $2
         WHERE id = $1
         RETURNING failing_since",
    )
    .bind(id.as_str())
    .bind(now.micros())
    .bind(now.before(FAILING_GAP_MAX).micros())
    .fetch_optional(&mut **write)
    .await?;
    let since = row.map(|row| row.time_opt("failing_since")).transpose()?;
    Ok(since.flatten())
}

fn types_text(types: &[EventType]) -> String {
    let names: Vec<_> = types.iter().map(|kind| kind.as_str()).collect();
    serde_json::Value::from(names).to_string()
}

/// Types that a newer version has written are skipped: this one does not emit them.
fn types_of(text: &str) -> Result<Vec<EventType>, StoreError> {
    let names: Vec<String> =
        serde_json::from_str(text).map_err(|error| corrupt("event_types", error))?;
    Ok(names
        .iter()
        .filter_map(|name| EventType::parse(name))
        .collect())
}

fn from_row(row: &AnyRow) -> Result<Webhook, StoreError> {
    let unhex = |column, text: String| hex::decode(text).map_err(|error| corrupt(column, error));
    let former = row.text_opt("former_secret")?;
    let until = row.time_opt("former_secret_until")?;
    let former_secret = former.zip(until).map(|(sealed, until)| {
        let sealed = unhex("former_secret", sealed)?;
        Ok::<_, StoreError>(FormerSecret { sealed, until })
    });
    let disabled = row
        .time_opt("disabled_at")?
        .zip(row.text_opt("disabled_reason")?)
        .map(|(at, reason)| {
            let reason = DisabledReason::read(&reason)?;
            Ok::<_, StoreError>(Disabled { at, reason })
        });
    Ok(Webhook {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        url: row.text("url")?,
        description: row.text_opt("description")?,
        event_types: types_of(&row.text("event_types")?)?,
        sealed_secret: unhex("secret", row.text("secret")?)?,
        former_secret: former_secret.transpose()?,
        failing_since: row.time_opt("failing_since")?,
        disabled: disabled.transpose()?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}
