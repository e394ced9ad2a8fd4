//! The storage engines and their stable integer ids.

use souk_domain::connections::Need;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::connectors::PLATFORM;
use crate::{StoreError, Write};

/// Ids below this are given in migrations, so that a later release can add a bundled engine without
/// meeting an id that an uploaded connector already has.
pub const UPLOADED_ENGINE_ID_MIN: i64 = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageEngine {
    pub id: i64,
    /// `platform`, or the company whose private connector brought the engine.
    pub scope: String,
    pub slug: String,
    pub name: String,
    pub dialect: String,
    pub need: Need,
    pub credential_types: Vec<String>,
}

/// The engines that a company may see, by id: the platform's and those of its own connectors.
pub async fn engines(
    db: &mut AnyConnection,
    company: &str,
) -> Result<Vec<StorageEngine>, StoreError> {
    let rows = sqlx::query(
        "SELECT id, scope, slug, name, dialect, need, credential_types FROM storage_engines \
         WHERE scope = 'platform' OR scope = $1 ORDER BY id",
    )
    .bind(company)
    .fetch_all(db)
    .await?;
    rows.iter().map(engine).collect()
}

/// An engine that this company may name in a connection.
pub async fn engine_by_id(
    db: &mut AnyConnection,
    company: &str,
    id: i64,
) -> Result<Option<StorageEngine>, StoreError> {
    let row = sqlx::query(
        "SELECT id, scope, slug, name, dialect, need, credential_types FROM storage_engines \
         WHERE id = $1 AND (scope = 'platform' OR scope = $2)",
    )
    .bind(id)
    .bind(company)
    .fetch_optional(db)
    .await?;
    row.as_ref().map(engine).transpose()
}

/// Whether the platform has an engine with this slug, served at the moment or not.
pub async fn is_platforms(db: &mut AnyConnection, slug: &str) -> Result<bool, StoreError> {
    let row = sqlx::query("SELECT id FROM storage_engines WHERE scope = 'platform' AND slug = $1")
        .bind(slug)
        .fetch_optional(db)
        .await?;
    Ok(row.is_some())
}

/// Gives an engine of an uploaded connector the next id, unless the platform or the same scope has
/// that slug already. `new.id` is ignored. Two hosts that do so at once: one of them gets
/// `StoreError::Conflict` and finds the id there when it tries again.
pub async fn ensure_engine(tx: &mut Write, new: &StorageEngine) -> Result<i64, StoreError> {
    let known = sqlx::query(
        "SELECT id \
         FROM storage_engines \
         WHERE slug = $1 AND scope IN ($2, $3) \
         ORDER BY id LIMIT 1",
    )
    .bind(new.slug.as_str())
    .bind(PLATFORM)
    .bind(new.scope.as_str())
    .fetch_optional(&mut **tx)
    .await?;
    if let Some(row) = known {
        return Ok(row.try_get("id")?);
    }
    let row = sqlx::query("SELECT CAST(COALESCE(MAX(id), 0) AS BIGINT) AS id FROM storage_engines")
        .fetch_one(&mut **tx)
        .await?;
    let id = row
        .try_get::<i64, _>("id")?
        .saturating_add(1)
        .max(UPLOADED_ENGINE_ID_MIN);
    sqlx::query(
        "INSERT INTO storage_engines (id, scope, slug, name, dialect, need, credential_types) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(id)
    .bind(new.scope.as_str())
    .bind(new.slug.as_str())
    .bind(new.name.as_str())
    .bind(new.dialect.as_str())
    .bind(new.need.as_str())
    .bind(serde_json::json!(new.credential_types).to_string())
    .execute(&mut **tx)
    .await?;
    Ok(id)
}

fn engine(row: &AnyRow) -> Result<StorageEngine, StoreError> {
    let need: String = row.try_get("need")?;
    let credential_types: String = row.try_get("credential_types")?;
    Ok(StorageEngine {
        id: row.try_get("id")?,
        scope: row.try_get("scope")?,
        slug: row.try_get("slug")?,
        name: row.try_get("name")?,
        dialect: row.try_get("dialect")?,
        need: Need::parse(&need)
            .ok_or_else(|| StoreError::Corrupt(format!("storage_engines.need is \"{need}\"")))?,
        credential_types: serde_json::from_str(&credential_types).map_err(|error| {
            StoreError::Corrupt(format!("storage_engines.credential_types: {error}"))
        })?,
    })
}
