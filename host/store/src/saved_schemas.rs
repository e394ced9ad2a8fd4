//! What sellers noted of the source behind an asset: one note for each asset, theirs alone.

use crate::bulk::Bulk;
use crate::db::Write;
use crate::error::StoreError;
use crate::fields::Fields;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use std::collections::HashMap;

/// What a company's saved schemas may have in all.
pub const COMPANY_BYTES_MAX: u64 = 64 << 20;

/// Saves a schema in the place of the one before. The company has this asset, or it would not be asked. `false`: with it the company's would have
/// more than [`COMPANY_BYTES_MAX`].
pub async fn save(
    write: &mut Write,
    company: &CompanyId,
    asset: &AssetId,
    schema: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let row = sqlx::query(
        "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT)
                - COALESCE((SELECT bytes FROM saved_schemas WHERE asset_id = $2 AND company_id = $1), 0) AS others
         FROM saved_schemas
         WHERE company_id = $1",
    )
    .bind(company.as_str())
    .bind(asset.as_str())
    .fetch_one(&mut **write)
    .await?;
    let others = u64::try_from(row.number("others")?).unwrap_or(0);
    if others + schema.len() as u64 > COMPANY_BYTES_MAX {
        return Ok(false);
    }
    sqlx::query(
        "INSERT INTO saved_schemas (asset_id, company_id, saved_schema, saved_at, bytes)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (asset_id) DO UPDATE SET saved_schema = $3, saved_at = $4, bytes = $5",
    )
    .bind(asset.as_str())
    .bind(company.as_str())
    .bind(schema)
    .bind(now.micros())
    .bind(i64::try_from(schema.len()).unwrap_or(i64::MAX))
    .execute(&mut **write)
    .await?;
    Ok(true)
}

static OF_ASSETS: Bulk = Bulk::new(
    "SELECT s.asset_id, s.saved_schema",
    2,
    "JOIN saved_schemas s ON s.asset_id = v.column1 AND s.company_id = v.column2
     WHERE v.column1 IS NOT NULL",
);

/// The same of several assets, by their ids.
pub async fn of_assets(
    db: &mut AnyConnection,
    company: &CompanyId,
    assets: impl Iterator<Item = &str>,
) -> Result<HashMap<String, String>, StoreError> {
    let assets: Vec<&str> = assets.collect();
    let rows = OF_ASSETS
        .fetch(db, &assets, |values, asset| {
            values
                .text(asset.copied())
                .text(asset.map(|_| company.as_str()));
        })
        .await?;
    rows.iter()
        .map(|row| Ok((row.text("asset_id")?, row.text("saved_schema")?)))
        .collect()
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
