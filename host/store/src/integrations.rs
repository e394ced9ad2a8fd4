//! Integrations: where a company's posts are published besides. Credentials pass through here sealed; whoever may open them is not this
//! file's business.

use crate::db::Write;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt, without_nul};
use crate::lists::{List, Listed, Part, Values};
use crate::publications;
use serde_json::json;
use souk_domain::ids::{CompanyId, IntegrationId, UserId};
use souk_domain::integrations::{INTEGRATIONS_MAX, Texts};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integration {
    pub id: IntegrationId,
    pub company_id: CompanyId,
    pub user_id: UserId,
    /// The platform's slug: `wordpress`.
    pub platform: String,
    /// Whose publisher serves it: `platform`, or a company's id.
    pub scope: String,
    pub name: String,
    pub base_url: String,
    /// What its platform asks for besides.
    pub config: Texts,
    /// Sealed for exactly this company and integration.
    pub credentials: Vec<u8>,
    /// Counts changes of what a session depends on.
    pub revision: i64,
    pub status: TestStatus,
    pub last_tested_at: Option<Timestamp>,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What the last test of this revision found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestStatus {
    Untested,
    Active,
    Failed,
}

impl TestStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Untested => "untested",
            Self::Active => "active",
            Self::Failed => "failed",
        }
    }

    fn read(text: &str) -> Result<Self, StoreError> {
        [Self::Untested, Self::Active, Self::Failed]
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| corrupt("status", format!("{text:?}")))
    }
}

macro_rules! columns {
    () => {
        "id, company_id, user_id, platform, scope, name, base_url, config, credentials, revision, status, last_tested_at, last_error,
         created_at, updated_at"
    };
}

/// Adds an integration. `false`: the company has as many as it may have.
pub async fn insert(write: &mut Write, integration: &Integration) -> Result<bool, StoreError> {
    crate::companies::lock(write, &integration.company_id).await?;
    let count = sqlx::query("SELECT COUNT(*) AS total FROM integrations WHERE company_id = $1")
        .bind(integration.company_id.as_str())
        .fetch_one(&mut **write)
        .await?
        .number("total")?;
    if count >= INTEGRATIONS_MAX {
        return Ok(false);
    }
    sqlx::query(
        "INSERT INTO integrations (id, company_id, user_id, platform, scope, name, base_url, config, credentials, revision, status,
                                   created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, 'untested', $10, $10)",
    )
    .bind(integration.id.as_str())
    .bind(integration.company_id.as_str())
    .bind(integration.user_id.as_str())
    .bind(&integration.platform)
    .bind(&integration.scope)
    .bind(&integration.name)
    .bind(&integration.base_url)
    .bind(json!(integration.config).to_string())
    .bind(hex::encode(&integration.credentials))
    .bind(integration.created_at.micros())
    .execute(&mut **write)
    .await?;
    Ok(true)
}

/// Writes name, address, settings and credentials, if nobody else did since `integration.revision` was read; then nothing is known of it, at another
/// address not even what posts are called there. `false`: somebody did, or it is gone.
pub async fn update(
    write: &mut Write,
    integration: &Integration,
    now: Timestamp,
) -> Result<bool, StoreError> {
    // The row first, then its publications', as where it is deleted: each would wait for the other else.
    if !lock(write, integration).await? {
        return Ok(false);
    }
    publications::forget_remote(write, integration).await?;
    let updated = sqlx::query(
        "UPDATE integrations
         SET name = $4, base_url = $5, config = $6, credentials = $7, revision = revision + 1, status = 'untested', last_tested_at = NULL,
             last_error = NULL, updated_at = $8
         WHERE id = $1 AND company_id = $2 AND revision = $3",
    )
    .bind(integration.id.as_str())
    .bind(integration.company_id.as_str())
    .bind(integration.revision)
    .bind(&integration.name)
    .bind(&integration.base_url)
    .bind(json!(integration.config).to_string())
    .bind(hex::encode(&integration.credentials))
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    Ok(updated.rows_affected() == 1)
}

/// Keeps an integration as it is of this revision until the transaction ends. `false`: it has another one, or is gone.
async fn lock(write: &mut Write, integration: &Integration) -> Result<bool, StoreError> {
    // An update that changes nothing locks the row on both backends.
    let locked = sqlx::query(
        "UPDATE integrations SET revision = revision WHERE id = $1 AND company_id = $2 AND revision = $3",
    )
    .bind(integration.id.as_str())
    .bind(integration.company_id.as_str())
    .bind(integration.revision)
    .execute(&mut **write)
    .await?;
    Ok(locked.rows_affected() == 1)
}

/// Changes the name only: nothing that a session depends on.
pub async fn rename(
    write: &mut Write,
    company: &CompanyId,
    id: &IntegrationId,
    name: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let renamed = sqlx::query(
        "UPDATE integrations SET name = $3, updated_at = $4 WHERE id = $1 AND company_id = $2",
    )
    .bind(id.as_str())
    .bind(company.as_str())
    .bind(name)
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    Ok(renamed.rows_affected() == 1)
}

/// Writes down what a test of this revision found; one that was changed meanwhile is left alone.
pub async fn record_test(
    write: &mut Write,
    integration: &Integration,
    error: Option<&str>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let status = match error {
        None => TestStatus::Active,
        Some(_) => TestStatus::Failed,
    };
    sqlx::query(
        "UPDATE integrations
         SET status = $4, last_error = $5, last_tested_at = $6
         WHERE id = $1 AND company_id = $2 AND revision = $3",
    )
    .bind(integration.id.as_str())
    .bind(integration.company_id.as_str())
    .bind(integration.revision)
    .bind(status.as_str())
    .bind(error.map(without_nul))
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Removes an integration with its credentials, and gives up what waits for it. What was published stays in the list. `false`: the
/// company has none such.
pub async fn delete(
    write: &mut Write,
    company: &CompanyId,
    id: &IntegrationId,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let deleted = sqlx::query("DELETE FROM integrations WHERE id = $1 AND company_id = $2")
        .bind(id.as_str())
        .bind(company.as_str())
        .execute(&mut **write)
        .await?;
    if deleted.rows_affected() == 0 {
        return Ok(false);
    }
    publications::give_up_all(write, id, now).await?;
    Ok(true)
}

pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &IntegrationId,
) -> Result<Option<Integration>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM integrations WHERE id = $1 AND company_id = $2"
    ))
    .bind(id.as_str())
    .bind(company.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

static LIST: List = List::new(
    columns!(),
    "FROM integrations WHERE company_id = $1",
    "created_at, id",
    1,
);

/// A company's integrations, oldest first.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    part: Part,
) -> Result<Listed<Integration>, StoreError> {
    let bind = |values: &mut Values| {
        values.text(Some(company.as_str()));
    };
    LIST.fetch(db, part, bind, from_row).await
}

fn from_row(row: &AnyRow) -> Result<Integration, StoreError> {
    let config = row.text("config")?;
    let credentials = row.text("credentials")?;
    Ok(Integration {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        user_id: row.id("user_id")?,
        platform: row.text("platform")?,
        scope: row.text("scope")?,
        name: row.text("name")?,
        base_url: row.text("base_url")?,
        config: serde_json::from_str(&config).map_err(|error| corrupt("config", error))?,
        credentials: hex::decode(credentials).map_err(|error| corrupt("credentials", error))?,
        revision: row.number("revision")?,
        status: TestStatus::read(&row.text("status")?)?,
        last_tested_at: row.time_opt("last_tested_at")?,
        last_error: row.text_opt("last_error")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}
