//! Assets as rows. What their JSON columns mean is the application's business.

use souk_domain::ids::{AssetId, CompanyId, ConnectionId, UserId};
use souk_domain::time::Timestamp;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::companies::CompanyStatus;
use crate::{Fields, StoreError, Topic, Write};

#[derive(Debug, Clone)]
pub struct Asset {
    pub id: AssetId,
    pub company_id: CompanyId,
    /// The owner's handle.
    pub company_handle: String,
    pub user_id: UserId,
    pub written: Written,
    pub status: String,
    /// What its preview shows: the result of a test of what it is now.
    pub sample: Option<String>,
    pub saved_schema: Option<String>,
    /// The owner's company is suspended.
    pub is_suspended: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub published_at: Option<Timestamp>,
}

/// What a client decides about an asset; an update replaces all of it.
#[derive(Debug, Clone)]
pub struct Written {
    pub connection_id: ConnectionId,
    pub asset_type: String,
    pub name: String,
    pub slug: String,
    pub description: String,
    pub category: Option<String>,
    pub sport: Option<String>,
    pub labels: String,
    pub source_kind: String,
    pub source: String,
    pub parameters: String,
    pub result_type: String,
    pub unit: Option<String>,
    pub visualization: Option<String>,
    pub prediction: Option<String>,
    pub privacy: Option<String>,
    pub freshness_column: Option<String>,
    pub timeout_ms: i64,
    pub allow_ai_training: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Filter<'a> {
    pub status: Option<&'a str>,
    pub asset_type: Option<&'a str>,
    pub category: Option<&'a str>,
    pub connection_id: Option<&'a str>,
}

/// What a list can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Name,
    CreatedAt,
    UpdatedAt,
}

const COLUMNS: &str = "a.id, a.company_id, c.handle, a.user_id, a.connection_id, a.asset_type, a.name, a.slug, \
     a.description, a.category, a.sport, a.labels, a.source_kind, a.source, a.parameters, a.result_type, a.unit, \
     a.visualization, a.prediction, a.privacy, a.freshness_column, a.timeout_ms, \
     CAST(a.allow_ai_training AS BIGINT) AS allow_ai_training, a.status, a.sample, a.saved_schema, a.created_at, \
     a.updated_at, a.published_at, c.status AS company_status \
     FROM assets a JOIN companies c ON c.id = a.company_id";

/// `StoreError::Conflict`: the company has an asset with this slug.
pub async fn insert(
    tx: &mut Write,
    id: &AssetId,
    company: &CompanyId,
    user: &UserId,
    written: &Written,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO assets (id, company_id, user_id, connection_id, asset_type, name, slug, description, category, \
         sport, labels, source_kind, source, parameters, result_type, unit, visualization, prediction, privacy, \
         freshness_column, timeout_ms, allow_ai_training, status, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, \
         $22, 'draft', $23, $23)",
    )
    .bind(id.as_str())
    .bind(company.as_str())
    .bind(user.as_str())
    .bind(written.connection_id.as_str())
    .bind(&written.asset_type)
    .bind(&written.name)
    .bind(&written.slug)
    .bind(&written.description)
    .bind(written.category.as_deref())
    .bind(written.sport.as_deref())
    .bind(&written.labels)
    .bind(&written.source_kind)
    .bind(&written.source)
    .bind(&written.parameters)
    .bind(&written.result_type)
    .bind(written.unit.as_deref())
    .bind(written.visualization.as_deref())
    .bind(written.prediction.as_deref())
    .bind(written.privacy.as_deref())
    .bind(written.freshness_column.as_deref())
    .bind(written.timeout_ms)
    .bind(i64::from(written.allow_ai_training))
    .bind(now.micros())
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Asset, id);
    Ok(())
}

/// An asset of any company, archived ones included: whoever calls this decides who may see it.
pub async fn get_any(db: &mut AnyConnection, id: &AssetId) -> Result<Option<Asset>, StoreError> {
    let sql = format!("SELECT {COLUMNS} WHERE a.id = $1");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(asset).transpose()
}

/// An asset of this company, unless it is archived.
pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &AssetId,
) -> Result<Option<Asset>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} WHERE a.id = $1 AND a.company_id = $2 AND a.status <> 'archived'"
    );
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(id.as_str())
        .bind(company.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(asset).transpose()
}

/// The id behind a seller's company and an asset's slug, archived ones included.
pub async fn id_by_slug(
    db: &mut AnyConnection,
    company: &CompanyId,
    slug: &str,
) -> Result<Option<AssetId>, StoreError> {
    let row = sqlx::query("SELECT id FROM assets WHERE company_id = $1 AND slug = $2")
        .bind(company.as_str())
        .bind(slug)
        .fetch_optional(db)
        .await?;
    row.map(|row| row.id("id")).transpose()
}

/// A company's assets without the archived ones (unless they are asked for), and how many there are.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    filter: &Filter<'_>,
    sort: Sort,
    descending: bool,
    limit: i64,
    offset: i64,
) -> Result<(Vec<Asset>, i64), StoreError> {
    // A filter that is not given binds NULL: one text for both cases.
    const WHERE: &str = "a.company_id = $1 \
         AND ((CAST($2 AS TEXT) IS NULL AND a.status <> 'archived') OR a.status = $2) \
         AND (CAST($3 AS TEXT) IS NULL OR a.asset_type = $3) \
         AND (CAST($4 AS TEXT) IS NULL OR a.category = $4) \
         AND (CAST($5 AS TEXT) IS NULL OR a.connection_id = $5)";
    let by = match sort {
        Sort::Name => "a.name",
        Sort::CreatedAt => "a.created_at",
        Sort::UpdatedAt => "a.updated_at",
    };
    let way = if descending { "DESC" } else { "ASC" };
    let sql = format!(
        "SELECT {COLUMNS} WHERE {WHERE} ORDER BY {by} {way}, a.id {way} LIMIT $6 OFFSET $7"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(company.as_str())
        .bind(filter.status)
        .bind(filter.asset_type)
        .bind(filter.category)
        .bind(filter.connection_id)
        .bind(limit)
        .bind(offset)
        .fetch_all(&mut *db)
        .await?;
    let sql = format!("SELECT CAST(COUNT(*) AS BIGINT) AS total FROM assets a WHERE {WHERE}");
    let total = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(company.as_str())
        .bind(filter.status)
        .bind(filter.asset_type)
        .bind(filter.category)
        .bind(filter.connection_id)
        .fetch_one(db)
        .await?
        .try_get("total")?;
    Ok((rows.iter().map(asset).collect::<Result<_, _>>()?, total))
}

/// Replaces what a client may write, if nobody else did since `read_at`. False: somebody did.
/// `keeps_sample`: the preview still shows what the asset is. `StoreError::Conflict`: the slug is taken.
pub async fn update(
    tx: &mut Write,
    company: &CompanyId,
    id: &AssetId,
    read_at: Timestamp,
    written: &Written,
    keeps_sample: bool,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE assets SET connection_id = $1, asset_type = $2, name = $3, slug = $4, description = $5, \
         category = $6, sport = $7, labels = $8, source_kind = $9, source = $10, parameters = $11, \
         result_type = $12, unit = $13, visualization = $14, prediction = $15, privacy = $16, \
         freshness_column = $17, timeout_ms = $18, allow_ai_training = $19, updated_at = $20, \
         sample = CASE WHEN CAST($24 AS BIGINT) = 1 THEN sample ELSE NULL END \
         WHERE id = $21 AND company_id = $22 AND updated_at = $23 AND status <> 'archived'",
    )
    .bind(written.connection_id.as_str())
    .bind(&written.asset_type)
    .bind(&written.name)
    .bind(&written.slug)
    .bind(&written.description)
    .bind(written.category.as_deref())
    .bind(written.sport.as_deref())
    .bind(&written.labels)
    .bind(&written.source_kind)
    .bind(&written.source)
    .bind(&written.parameters)
    .bind(&written.result_type)
    .bind(written.unit.as_deref())
    .bind(written.visualization.as_deref())
    .bind(written.prediction.as_deref())
    .bind(written.privacy.as_deref())
    .bind(written.freshness_column.as_deref())
    .bind(written.timeout_ms)
    .bind(i64::from(written.allow_ai_training))
    .bind(now.micros())
    .bind(id.as_str())
    .bind(company.as_str())
    .bind(read_at.micros())
    .bind(i64::from(keeps_sample))
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Asset, id);
    Ok(done.rows_affected() == 1)
}

/// Keeps what a test returned for the preview of an asset that has none, unless the asset changed since `read_at`. Nothing else changes.
pub async fn keep_sample(
    tx: &mut Write,
    id: &AssetId,
    read_at: Timestamp,
    sample: &str,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE assets SET sample = $1 WHERE id = $2 AND updated_at = $3 AND sample IS NULL",
    )
    .bind(sample)
    .bind(id.as_str())
    .bind(read_at.micros())
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Asset, id);
    Ok(())
}

/// Publishes what was tested: refused (false) when the asset changed since `read_at`.
pub async fn publish(
    tx: &mut Write,
    company: &CompanyId,
    id: &AssetId,
    read_at: Timestamp,
    sample: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE assets SET status = 'published', sample = $1, published_at = $2, updated_at = $2 \
         WHERE id = $3 AND company_id = $4 AND updated_at = $5 AND status <> 'archived'",
    )
    .bind(sample)
    .bind(now.micros())
    .bind(id.as_str())
    .bind(company.as_str())
    .bind(read_at.micros())
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Asset, id);
    Ok(done.rows_affected() == 1)
}

/// `unpublished` or `archived`. False: there is no such asset, or it is archived already.
pub async fn set_status(
    tx: &mut Write,
    company: &CompanyId,
    id: &AssetId,
    status: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE assets SET status = $1, updated_at = $2 \
         WHERE id = $3 AND company_id = $4 AND status <> 'archived'",
    )
    .bind(status)
    .bind(now.micros())
    .bind(id.as_str())
    .bind(company.as_str())
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Asset, id);
    Ok(done.rows_affected() == 1)
}

fn asset(row: &AnyRow) -> Result<Asset, StoreError> {
    Ok(Asset {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        company_handle: row.try_get("handle")?,
        user_id: row.id("user_id")?,
        written: Written {
            connection_id: row.id("connection_id")?,
            asset_type: row.try_get("asset_type")?,
            name: row.try_get("name")?,
            slug: row.try_get("slug")?,
            description: row.try_get("description")?,
            category: row.try_get("category")?,
            sport: row.try_get("sport")?,
            labels: row.try_get("labels")?,
            source_kind: row.try_get("source_kind")?,
            source: row.try_get("source")?,
            parameters: row.try_get("parameters")?,
            result_type: row.try_get("result_type")?,
            unit: row.try_get("unit")?,
            visualization: row.try_get("visualization")?,
            prediction: row.try_get("prediction")?,
            privacy: row.try_get("privacy")?,
            freshness_column: row.try_get("freshness_column")?,
            timeout_ms: row.try_get("timeout_ms")?,
            allow_ai_training: row.flag("allow_ai_training")?,
        },
        status: row.try_get("status")?,
        sample: row.try_get("sample")?,
        saved_schema: row.try_get("saved_schema")?,
        is_suspended: row.text("company_status")? != CompanyStatus::Active.as_str(),
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        published_at: row.time_opt("published_at")?,
    })
}
