//! The storage engines and their stable integer ids.

use souk_domain::connections::Need;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::{StoreError, Write};

/// Ids below this are given in migrations, so that a later release can add a bundled engine without
/// meeting an id that an uploaded connector already has.
pub const UPLOADED_ENGINE_ID_MIN: i64 = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageEngine {
    pub id: i64,
    pub slug: String,
    pub name: String,
    pub dialect: String,
    pub need: Need,
    pub credential_types: Vec<String>,
}

/// What an uploaded connector says about an engine of its own.
#[derive(Debug, Clone)]
pub struct NewEngine {
    pub slug: String,
    pub name: String,
    pub dialect: String,
    pub need: Need,
    pub credential_types: Vec<String>,
}

/// Every engine that ever had an id, by id.
pub async fn engines(db: &mut AnyConnection) -> Result<Vec<StorageEngine>, StoreError> {
    let rows = sqlx::query("SELECT id, slug, name, dialect, need, credential_types FROM storage_engines ORDER BY id").fetch_all(db).await?;
    rows.iter().map(engine).collect()
}

pub async fn engine_by_id(db: &mut AnyConnection, id: i64) -> Result<Option<StorageEngine>, StoreError> {
    let row = sqlx::query("SELECT id, slug, name, dialect, need, credential_types FROM storage_engines WHERE id = $1").bind(id).fetch_optional(db).await?;
    row.as_ref().map(engine).transpose()
}

/// Gives an engine the next id unless it has one. Two hosts that do so at once: one of them gets
/// `StoreError::Conflict` and finds the id there when it tries again.
pub async fn ensure_engine(tx: &mut Write, new: &NewEngine) -> Result<i64, StoreError> {
    let known = sqlx::query("SELECT id FROM storage_engines WHERE slug = $1").bind(&new.slug).fetch_optional(&mut **tx).await?;
    if let Some(row) = known {
        return Ok(row.try_get("id")?);
    }
    let row = sqlx::query("SELECT CAST(COALESCE(MAX(id), 0) AS BIGINT) AS id FROM storage_engines").fetch_one(&mut **tx).await?;
    let id = row.try_get::<i64, _>("id")?.saturating_add(1).max(UPLOADED_ENGINE_ID_MIN);
    sqlx::query("INSERT INTO storage_engines (id, slug, name, dialect, need, credential_types) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(id)
        .bind(&new.slug)
        .bind(&new.name)
        .bind(&new.dialect)
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
        slug: row.try_get("slug")?,
        name: row.try_get("name")?,
        dialect: row.try_get("dialect")?,
        need: Need::parse(&need).ok_or_else(|| StoreError::Corrupt(format!("storage_engines.need is \"{need}\"")))?,
        credential_types: serde_json::from_str(&credential_types).map_err(|error| StoreError::Corrupt(format!("storage_engines.credential_types: {error}")))?,
    })
}
