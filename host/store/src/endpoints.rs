//! Endpoints as rows. What their JSON columns mean is the application's business.

use souk_domain::ids::{CompanyId, ConnectionId, EndpointId, UserId};
use souk_domain::time::Timestamp;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::companies::CompanyStatus;
use crate::{Fields, StoreError, Topic, Write};

#[derive(Debug, Clone)]
pub struct Endpoint {
    pub id: EndpointId,
    pub company_id: CompanyId,
    /// The owner's handle.
    pub company_handle: String,
    pub user_id: UserId,
    pub written: Written,
    pub status: String,
    /// What the last test learnt of the source.
    pub learned: Option<String>,
    /// The rows that every preview shows: of a test of what it is now.
    pub sample: Option<String>,
    /// When they were taken.
    pub sampled_at: Option<Timestamp>,
    /// The owner's company is suspended.
    pub is_suspended: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub published_at: Option<Timestamp>,
}

/// What a client decides about an endpoint; an update replaces all of it.
#[derive(Debug, Clone)]
pub struct Written {
    pub connection_id: ConnectionId,
    pub name: String,
    pub slug: String,
    pub description: String,
    pub category: Option<String>,
    pub labels: String,
    pub source_schema: Option<String>,
    pub source_table: Option<String>,
    pub sql_logic: Option<String>,
    pub fields: String,
    pub order_by: String,
    pub filters: String,
    pub default_limit: i64,
    pub max_limit: i64,
    pub timeout_ms: i64,
    pub allow_ai_training: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Filter<'a> {
    pub status: Option<&'a str>,
    pub connection_id: Option<&'a str>,
    /// Part of the name, in lower case.
    pub q: Option<&'a str>,
}

/// What a list can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Name,
    CreatedAt,
    UpdatedAt,
    /// All requests so far.
    Requests,
}

const COLUMNS: &str = "e.id, e.company_id, c.handle, e.user_id, e.connection_id, e.name, e.slug, e.description, \
     e.category, e.labels, e.source_schema, e.source_table, e.sql_logic, e.fields, e.order_by, e.filters, \
     e.default_limit, e.max_limit, e.timeout_ms, CAST(e.allow_ai_training AS BIGINT) AS allow_ai_training, \
     e.status, e.learned, e.sample, e.sampled_at, e.created_at, e.updated_at, e.published_at, \
     c.status AS company_status \
     FROM endpoints e JOIN companies c ON c.id = e.company_id";

/// `StoreError::Conflict`: the company has an endpoint with this slug.
pub async fn insert(
    tx: &mut Write,
    id: &EndpointId,
    company: &CompanyId,
    user: &UserId,
    written: &Written,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO endpoints (id, company_id, user_id, connection_id, name, slug, description, category, labels, \
         source_schema, source_table, sql_logic, fields, order_by, filters, default_limit, max_limit, timeout_ms, \
         allow_ai_training, status, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, 'draft', \
         $20, $20)",
    )
    .bind(id.as_str())
    .bind(company.as_str())
    .bind(user.as_str())
    .bind(written.connection_id.as_str())
    .bind(&written.name)
    .bind(&written.slug)
    .bind(&written.description)
    .bind(written.category.as_deref())
    .bind(&written.labels)
    .bind(written.source_schema.as_deref())
    .bind(written.source_table.as_deref())
    .bind(written.sql_logic.as_deref())
    .bind(&written.fields)
    .bind(&written.order_by)
    .bind(&written.filters)
    .bind(written.default_limit)
    .bind(written.max_limit)
    .bind(written.timeout_ms)
    .bind(i64::from(written.allow_ai_training))
    .bind(now.micros())
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Endpoint, id);
    Ok(())
}

/// An endpoint of any company, archived ones included: whoever calls this decides who may see it.
pub async fn get_any(
    db: &mut AnyConnection,
    id: &EndpointId,
) -> Result<Option<Endpoint>, StoreError> {
    let sql = format!("SELECT {COLUMNS} WHERE e.id = $1");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(endpoint).transpose()
}

/// An endpoint of this company, unless it is archived.
pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &EndpointId,
) -> Result<Option<Endpoint>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} WHERE e.id = $1 AND e.company_id = $2 AND e.status <> 'archived'"
    );
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(id.as_str())
        .bind(company.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(endpoint).transpose()
}

/// The id behind a seller's company and an endpoint's slug, archived ones included.
pub async fn id_by_slug(
    db: &mut AnyConnection,
    company: &CompanyId,
    slug: &str,
) -> Result<Option<EndpointId>, StoreError> {
    let row = sqlx::query("SELECT id FROM endpoints WHERE company_id = $1 AND slug = $2")
        .bind(company.as_str())
        .bind(slug)
        .fetch_optional(db)
        .await?;
    row.map(|row| row.id("id")).transpose()
}

/// A company's endpoints without the archived ones (unless they are asked for), and how many there are.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    filter: &Filter<'_>,
    sort: Sort,
    descending: bool,
    limit: i64,
    offset: i64,
) -> Result<(Vec<Endpoint>, i64), StoreError> {
    // A filter that is not given binds NULL: one text for both cases.
    const WHERE: &str = "e.company_id = $1 \
         AND ((CAST($2 AS TEXT) IS NULL AND e.status <> 'archived') OR e.status = $2) \
         AND (CAST($3 AS TEXT) IS NULL OR e.connection_id = $3) \
         AND (CAST($4 AS TEXT) IS NULL OR LOWER(e.name) LIKE $4 ESCAPE '!')";
    let q = filter.q.map(containing);
    let by = match sort {
        Sort::Name => "e.name",
        Sort::CreatedAt => "e.created_at",
        Sort::UpdatedAt => "e.updated_at",
        Sort::Requests => {
            "(SELECT COALESCE(SUM(u.succeeded + u.failed), 0) FROM usage_days u WHERE u.product_id = e.id)"
        }
    };
    let way = if descending { "DESC" } else { "ASC" };
    let sql = format!(
        "SELECT {COLUMNS} WHERE {WHERE} ORDER BY {by} {way}, e.id {way} LIMIT $5 OFFSET $6"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(company.as_str())
        .bind(filter.status)
        .bind(filter.connection_id)
        .bind(q.as_deref())
        .bind(limit)
        .bind(offset)
        .fetch_all(&mut *db)
        .await?;
    let sql = format!("SELECT CAST(COUNT(*) AS BIGINT) AS total FROM endpoints e WHERE {WHERE}");
    let total = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(company.as_str())
        .bind(filter.status)
        .bind(filter.connection_id)
        .bind(q.as_deref())
        .fetch_one(db)
        .await?
        .try_get("total")?;
    Ok((rows.iter().map(endpoint).collect::<Result<_, _>>()?, total))
}

/// A LIKE pattern that finds `part` anywhere, taken literally.
fn containing(part: &str) -> String {
    let literal = part
        .replace('!', "!!")
        .replace('%', "!%")
        .replace('_', "!_");
    format!("%{literal}%")
}

/// Replaces what a client may write, if nobody else did since `read_at`. False: somebody did.
/// What was learnt of the source is forgotten. `keeps_sample`: the preview still shows what the endpoint is.
/// `StoreError::Conflict`: the slug is taken.
pub async fn update(
    tx: &mut Write,
    company: &CompanyId,
    id: &EndpointId,
    read_at: Timestamp,
    written: &Written,
    keeps_sample: bool,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE endpoints SET connection_id = $1, name = $2, slug = $3, description = $4, category = $5, \
         labels = $6, source_schema = $7, source_table = $8, sql_logic = $9, fields = $10, order_by = $11, \
         filters = $12, default_limit = $13, max_limit = $14, timeout_ms = $15, allow_ai_training = $16, \
         learned = NULL, updated_at = $17, sample = CASE WHEN CAST($21 AS BIGINT) = 1 THEN sample ELSE NULL END \
         WHERE id = $18 AND company_id = $19 AND updated_at = $20 AND status <> 'archived'",
    )
    .bind(written.connection_id.as_str())
    .bind(&written.name)
    .bind(&written.slug)
    .bind(&written.description)
    .bind(written.category.as_deref())
    .bind(&written.labels)
    .bind(written.source_schema.as_deref())
    .bind(written.source_table.as_deref())
    .bind(written.sql_logic.as_deref())
    .bind(&written.fields)
    .bind(&written.order_by)
    .bind(&written.filters)
    .bind(written.default_limit)
    .bind(written.max_limit)
    .bind(written.timeout_ms)
    .bind(i64::from(written.allow_ai_training))
    .bind(now.micros())
    .bind(id.as_str())
    .bind(company.as_str())
    .bind(read_at.micros())
    .bind(i64::from(keeps_sample))
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Endpoint, id);
    Ok(done.rows_affected() == 1)
}

/// Keeps rows of a test for the preview of an endpoint that has none, unless the endpoint changed since `read_at`. Nothing else changes.
pub async fn keep_sample(
    tx: &mut Write,
    id: &EndpointId,
    read_at: Timestamp,
    sample: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE endpoints SET sample = $1, sampled_at = $2 WHERE id = $3 AND updated_at = $4 AND sample IS NULL",
    )
    .bind(sample)
    .bind(now.micros())
    .bind(id.as_str())
    .bind(read_at.micros())
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Endpoint, id);
    Ok(())
}

/// Publishes what was tested: refused (false) when the endpoint changed since `read_at`.
#[allow(clippy::too_many_arguments)]
pub async fn publish(
    tx: &mut Write,
    company: &CompanyId,
    id: &EndpointId,
    read_at: Timestamp,
    learned: &str,
    sample: &str,
    allow_ai_training: bool,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE endpoints SET status = 'published', learned = $1, sample = $2, allow_ai_training = $3, \
         published_at = $4, updated_at = $4, sampled_at = $4 \
         WHERE id = $5 AND company_id = $6 AND updated_at = $7 AND status <> 'archived'",
    )
    .bind(learned)
    .bind(sample)
    .bind(i64::from(allow_ai_training))
    .bind(now.micros())
    .bind(id.as_str())
    .bind(company.as_str())
    .bind(read_at.micros())
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Endpoint, id);
    Ok(done.rows_affected() == 1)
}

/// `unpublished` or `archived`. False: there is no such endpoint, or it is archived already.
pub async fn set_status(
    tx: &mut Write,
    company: &CompanyId,
    id: &EndpointId,
    status: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE endpoints SET status = $1, updated_at = $2 \
         WHERE id = $3 AND company_id = $4 AND status <> 'archived'",
    )
    .bind(status)
    .bind(now.micros())
    .bind(id.as_str())
    .bind(company.as_str())
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Endpoint, id);
    Ok(done.rows_affected() == 1)
}

fn endpoint(row: &AnyRow) -> Result<Endpoint, StoreError> {
    Ok(Endpoint {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        company_handle: row.try_get("handle")?,
        user_id: row.id("user_id")?,
        written: Written {
            connection_id: row.id("connection_id")?,
            name: row.try_get("name")?,
            slug: row.try_get("slug")?,
            description: row.try_get("description")?,
            category: row.try_get("category")?,
            labels: row.try_get("labels")?,
            source_schema: row.try_get("source_schema")?,
            source_table: row.try_get("source_table")?,
            sql_logic: row.try_get("sql_logic")?,
            fields: row.try_get("fields")?,
            order_by: row.try_get("order_by")?,
            filters: row.try_get("filters")?,
            default_limit: row.try_get("default_limit")?,
            max_limit: row.try_get("max_limit")?,
            timeout_ms: row.try_get("timeout_ms")?,
            allow_ai_training: row.flag("allow_ai_training")?,
        },
        status: row.try_get("status")?,
        learned: row.try_get("learned")?,
        sample: row.try_get("sample")?,
        sampled_at: row.time_opt("sampled_at")?,
        is_suspended: row.text("company_status")? != CompanyStatus::Active.as_str(),
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        published_at: row.time_opt("published_at")?,
    })
}
