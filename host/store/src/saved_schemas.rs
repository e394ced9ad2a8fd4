//! What sellers noted of the source behind an asset: one note for each asset, theirs alone.

use crate::db::Write;
use crate::error::StoreError;
use crate::fields::Fields;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;

/// Saves a schema in the place of the one before. The company has this asset, or it would not be asked.
pub async fn save(
    write: &mut Write,
    company: &CompanyId,
    asset: &AssetId,
    schema: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO saved_schemas (asset_id, company_id, saved_schema, saved_at)
         VALUES ($1, $2, $3, $4)
         ON CONFLICT (asset_id) DO UPDATE SET saved_schema = $3, saved_at = $4",
    )
    .bind(asset.as_str())
    .bind(company.as_str())
    .bind(schema)
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// The schema that a company saved for an asset of its own, as JSON.
pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    asset: &AssetId,
) -> Result<Option<String>, StoreError> {
    let row = sqlx::query(
        "SELECT saved_schema FROM saved_schemas WHERE asset_id = $1 AND company_id = $2",
    )
    .bind(asset.as_str())
    .bind(company.as_str())
    .fetch_optional(db)
    .await?;
    row.map(|row| row.text("saved_schema")).transpose()
}
