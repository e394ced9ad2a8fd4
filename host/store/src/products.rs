//! Products as rows: what all kinds have in common. An id says by its type which kind is meant, and so what the details are.

mod details;
pub mod learned;

use souk_domain::ids::{CompanyId, ConnectionId, IdError, UserId};
use souk_domain::products::{Product, ProductStatus, ProductType};
use souk_domain::time::Timestamp;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};
use std::collections::HashMap;

use crate::companies::{self, CompanyStatus};
use crate::lists::{self, Listed, Part, Values, containing};
use crate::{Fields, StoreError, Topic, Write, search};
pub use details::{AssetDetails, Details, EndpointDetails};

/// A kind of product, by the type of its ids.
pub trait Kind:
    Clone
    + std::fmt::Debug
    + std::fmt::Display
    + Eq
    + std::hash::Hash
    + AsRef<str>
    + std::str::FromStr<Err = IdError>
    + Send
    + Sync
    + 'static
{
    const TYPE: ProductType;
    /// What [`Filter::subtype`] is compared with.
    const SUBTYPE: &'static str;
    type Details: Details;

    fn product(&self) -> Product;
}

#[derive(Debug, Clone)]
pub struct Row<K: Kind> {
    pub id: K,
    pub company_id: CompanyId,
    /// The owner's handle.
    pub company_handle: String,
    pub user_id: UserId,
    pub written: Written<K::Details>,
    pub status: ProductStatus,
    /// What the last test learnt of the source.
    pub learned: Option<String>,
    /// What every preview shows: of a test of what the product is now.
    pub sample: Option<String>,
    /// When it was taken.
    pub sampled_at: Option<Timestamp>,
    /// The owner's company is suspended.
    pub is_suspended: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub published_at: Option<Timestamp>,
}

impl<K: Kind> Row<K> {
    /// Bytes of all that is of any length.
    pub fn text_bytes(&self) -> usize {
        let beside = [&self.learned, &self.sample].into_iter().flatten();
        let beside: usize = beside.map(String::len).sum();
        let written = &self.written;
        written.details.text_bytes() + written.description.len() + written.labels.len() + beside
    }
}

/// What a client decides about a product; an update replaces all of it.
#[derive(Debug, Clone)]
pub struct Written<D> {
    pub connection_id: ConnectionId,
    pub name: String,
    pub slug: String,
    pub description: String,
    pub category: Option<String>,
    pub labels: String,
    pub timeout_ms: i64,
    pub allow_ai_training: bool,
    pub details: D,
}

#[derive(Debug, Clone, Default)]
pub struct Filter<'a> {
    /// Archived products are found only by this.
    pub status: Option<ProductStatus>,
    pub category: Option<&'a str>,
    pub connection_id: Option<&'a str>,
    /// Of assets, their type.
    pub subtype: Option<&'a str>,
    /// Part of the name, in lower case.
    pub q: Option<&'a str>,
}

/// What a list can be sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    Name,
    #[default]
    CreatedAt,
    UpdatedAt,
    /// All requests so far.
    Requests,
}

const COLUMNS: &str = "p.id, p.company_id, c.handle, p.user_id, p.connection_id, p.name, p.slug, p.description, p.category, p.labels, \
     p.timeout_ms, CAST(p.allow_ai_training AS BIGINT) AS allow_ai_training, p.status, p.learned, p.sample, p.sampled_at, \
     p.created_at, p.updated_at, p.published_at, c.status AS company_status";

/// The columns of products of this kind, and where they are.
fn columns<K: Kind>() -> (String, String) {
    let (details, table) = (K::Details::COLUMNS.join(", d."), K::Details::TABLE);
    let from = "FROM products p JOIN companies c ON c.id = p.company_id JOIN";
    (
        format!("{COLUMNS}, d.{details}"),
        format!("{from} {table} d ON d.id = p.id"),
    )
}

/// How many products a company has, of both kinds, archived ones included. Until `tx` ends, nobody else counts them.
pub async fn count(tx: &mut Write, company: &CompanyId) -> Result<i64, StoreError> {
    companies::lock(tx, company).await?;
    let row = sqlx::query("SELECT COUNT(*) AS products FROM products WHERE company_id = $1")
        .bind(company.as_str())
        .fetch_one(&mut **tx)
        .await?;
    row.number("products")
}

/// A draft. `StoreError::Conflict`: the company has a product of this kind with this slug.
pub async fn insert<K: Kind>(
    tx: &mut Write,
    id: &K,
    company: &CompanyId,
    user: &UserId,
    written: &Written<K::Details>,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO products (id, product_type, company_id, user_id, connection_id, name, slug, description, category, labels, \
         timeout_ms, allow_ai_training, status, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'draft', $13, $13)",
    )
    .bind(id.as_ref())
    .bind(K::TYPE.as_str())
    .bind(company.as_str())
    .bind(user.as_str())
    .bind(written.connection_id.as_str())
    .bind(&written.name)
    .bind(&written.slug)
    .bind(&written.description)
    .bind(written.category.as_deref())
    .bind(&written.labels)
    .bind(written.timeout_ms)
    .bind(i64::from(written.allow_ai_training))
    .bind(now.micros())
    .execute(&mut **tx)
    .await?;
    put_details(tx, id.as_ref(), &written.details).await?;
    search::index::index(tx, id.as_ref()).await?;
    tx.touch(Topic::Product, id);
    Ok(())
}

/// What a change leaves of what tests have left.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kept<'a> {
    /// The preview still shows what the product is.
    pub sample: bool,
    /// What is still known of the source.
    pub learned: Option<&'a str>,
}

/// Replaces what a client may write, if nobody else did since `read_at`. False: somebody did. `StoreError::Conflict`: the slug is taken.
pub async fn update<K: Kind>(
    tx: &mut Write,
    company: &CompanyId,
    id: &K,
    read_at: Timestamp,
    written: &Written<K::Details>,
    kept: Kept<'_>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE products SET connection_id = $1, name = $2, slug = $3, description = $4, category = $5, labels = $6, timeout_ms = $7, \
         allow_ai_training = $8, learned = $9, updated_at = $10, sample = CASE WHEN CAST($11 AS BIGINT) = 1 THEN sample ELSE NULL END \
         WHERE id = $12 AND company_id = $13 AND updated_at = $14 AND status <> 'archived'",
    )
    .bind(written.connection_id.as_str())
    .bind(&written.name)
    .bind(&written.slug)
    .bind(&written.description)
    .bind(written.category.as_deref())
    .bind(&written.labels)
    .bind(written.timeout_ms)
    .bind(i64::from(written.allow_ai_training))
    .bind(kept.learned)
    .bind(now.micros())
    .bind(i64::from(kept.sample))
    .bind(id.as_ref())
    .bind(company.as_str())
    .bind(read_at.micros())
    .execute(&mut **tx)
    .await?;
    let updated = done.rows_affected() == 1;
    if updated {
        put_details(tx, id.as_ref(), &written.details).await?;
        search::index::index(tx, id.as_ref()).await?;
    }
    tx.touch(Topic::Product, id);
    Ok(updated)
}

/// Writes the details of a product, whether or not it has any.
async fn put_details<D: Details>(tx: &mut Write, id: &str, details: &D) -> Result<(), StoreError> {
    let (table, columns) = (D::TABLE, D::COLUMNS.join(", "));
    let places: Vec<String> = (0..D::COLUMNS.len())
        .map(|at| format!("${}", at + 2))
        .collect();
    let replaced = D::COLUMNS.iter();
    let replaced: Vec<String> = replaced
        .map(|column| format!("{column} = excluded.{column}"))
        .collect();
    let (places, replaced) = (places.join(", "), replaced.join(", "));
    let sql = format!(
        "INSERT INTO {table} (id, {columns}) VALUES ($1, {places}) ON CONFLICT (id) DO UPDATE SET {replaced}"
    );
    let mut values = Values::default();
    values.text(Some(id));
    details.put(&mut values);
    sqlx::query_with(AssertSqlSafe(sql), values.finish()?)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// A product of any company, archived ones included: whoever calls this decides who may see it.
pub async fn get_any<K: Kind>(
    db: &mut AnyConnection,
    id: &K,
) -> Result<Option<Row<K>>, StoreError> {
    let (columns, from) = columns::<K>();
    let sql = format!("SELECT {columns} {from} WHERE p.id = $1");
    let row = sqlx::query(AssertSqlSafe(sql))
        .bind(id.as_ref())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

/// Products of any company in the order of their ids, archived ones included; those that are not there are left out.
pub async fn get_all<K: Kind>(
    db: &mut AnyConnection,
    ids: &[K],
) -> Result<Vec<Row<K>>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let (columns, from) = columns::<K>();
    let places: Vec<String> = (1..=ids.len()).map(|at| format!("${at}")).collect();
    let sql = format!(
        "SELECT {columns} {from} WHERE p.id IN ({})",
        places.join(", ")
    );
    let mut values = Values::default();
    for id in ids {
        values.text(Some(id.as_ref()));
    }
    let rows = sqlx::query_with(AssertSqlSafe(sql), values.finish()?)
        .fetch_all(db)
        .await?;
    let rows: Vec<Row<K>> = rows.iter().map(read).collect::<Result<_, _>>()?;
    let mut rows: HashMap<K, Row<K>> = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
    Ok(ids.iter().filter_map(|id| rows.remove(id)).collect())
}

/// A product of this company, unless it is archived.
pub async fn get<K: Kind>(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &K,
) -> Result<Option<Row<K>>, StoreError> {
    let found = get_any(db, id).await?;
    Ok(found.filter(|row| row.company_id == *company && row.status != ProductStatus::Archived))
}

/// Whose a product is, and where in its life.
pub async fn status(
    db: &mut AnyConnection,
    product: &Product,
) -> Result<Option<(CompanyId, ProductStatus)>, StoreError> {
    let row =
        sqlx::query("SELECT company_id, status FROM products WHERE id = $1 AND product_type = $2")
            .bind(product.id())
            .bind(product.product_type().as_str())
            .fetch_optional(db)
            .await?;
    row.map(|row| Ok((row.id("company_id")?, row.id("status")?)))
        .transpose()
}

/// Whether others than its owner may come upon a product: it is published, by a company that is not suspended.
pub async fn is_on_sale(db: &mut AnyConnection, product: &Product) -> Result<bool, StoreError> {
    let row = sqlx::query(
        "SELECT p.id
         FROM products p
         JOIN companies c ON c.id = p.company_id AND c.status = 'active'
         WHERE p.id = $1 AND p.product_type = $2 AND p.status = 'published'",
    )
    .bind(product.id())
    .bind(product.product_type().as_str())
    .fetch_optional(db)
    .await?;
    Ok(row.is_some())
}

/// The id behind a seller's company and a slug, archived products included.
pub async fn id_by_slug<K: Kind>(
    db: &mut AnyConnection,
    company: &CompanyId,
    slug: &str,
) -> Result<Option<K>, StoreError> {
    let row = sqlx::query(
        "SELECT id FROM products WHERE company_id = $1 AND product_type = $2 AND slug = $3",
    )
    .bind(company.as_str())
    .bind(K::TYPE.as_str())
    .bind(slug)
    .fetch_optional(db)
    .await?;
    row.map(|row| row.id("id")).transpose()
}

/// A company's products of one kind without the archived ones (unless they are asked for).
pub async fn list<K: Kind>(
    db: &mut AnyConnection,
    company: &CompanyId,
    filter: &Filter<'_>,
    sort: Sort,
    descending: bool,
    part: Part,
) -> Result<Listed<Row<K>>, StoreError> {
    let (columns, from) = columns::<K>();
    let subtype = format!("{} =", K::SUBTYPE);
    let q = filter.q.map(containing);
    let mut values = vec![company.as_str(), K::TYPE.as_str()];
    let mut holds = "p.company_id = $1 AND p.product_type = $2".to_owned();
    // What is not filtered by is not mentioned, so that whatever is not archived is counted by an index alone.
    let filters = [
        ("p.status =", filter.status.map(ProductStatus::as_str), ""),
        ("p.category =", filter.category, ""),
        ("p.connection_id =", filter.connection_id, ""),
        (subtype.as_str(), filter.subtype, ""),
        ("LOWER(p.name) LIKE", q.as_deref(), " ESCAPE '!'"),
    ];
    for (compares, value, escape) in filters {
        if let Some(value) = value {
            values.push(value);
            holds.push_str(&format!(" AND {compares} ${}{escape}", values.len()));
        }
    }
    if filter.status.is_none() {
        holds.push_str(" AND p.status <> 'archived'");
    }
    // Every product has an owner and its details.
    let found = match filter.subtype {
        None => "FROM products p",
        Some(_) => from.as_str(),
    };
    let by = match sort {
        Sort::Name => "p.name",
        Sort::CreatedAt => "p.created_at",
        Sort::UpdatedAt => "p.updated_at",
        Sort::Requests => {
            "(SELECT COALESCE(SUM(u.succeeded + u.failed), 0) FROM usage_days u WHERE u.product_id = p.id)"
        }
    };
    let way = if descending { "DESC" } else { "ASC" };
    let order = format!("{by} {way}, p.id {way}");
    let matching = format!("{found} WHERE {holds}");
    let (texts, keys) = (
        (columns.as_str(), from.as_str(), "p.id"),
        (matching.as_str(), order.as_str()),
    );
    let bind = |bound: &mut Values| {
        for value in &values {
            bound.text(Some(value));
        }
    };
    lists::keys_first(db, texts, keys, values.len(), part, bind, read).await
}

/// Keeps what a test returned for the preview of a product that has none, unless it changed since `read_at`. Nothing else changes.
pub async fn keep_sample(
    tx: &mut Write,
    id: &impl Kind,
    read_at: Timestamp,
    sample: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE products SET sample = $1, sampled_at = $2 WHERE id = $3 AND updated_at = $4 AND sample IS NULL",
    )
    .bind(sample)
    .bind(now.micros())
    .bind(id.as_ref())
    .bind(read_at.micros())
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Product, id);
    Ok(())
}

/// What a product is published with.
#[derive(Debug, Clone)]
pub struct Tested {
    /// `None`: it has no preview.
    pub sample: Option<String>,
    pub learned: Option<String>,
    pub allow_ai_training: bool,
}

/// Publishes what was tested: refused (false) when the product changed since `read_at`.
pub async fn publish(
    tx: &mut Write,
    company: &CompanyId,
    id: &impl Kind,
    read_at: Timestamp,
    tested: &Tested,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE products SET status = 'published', learned = $1, sample = $2, allow_ai_training = $3, \
         published_at = $4, updated_at = $4, sampled_at = $5 \
         WHERE id = $6 AND company_id = $7 AND updated_at = $8 AND status <> 'archived'",
    )
    .bind(tested.learned.as_deref())
    .bind(tested.sample.as_deref())
    .bind(i64::from(tested.allow_ai_training))
    .bind(now.micros())
    .bind(tested.sample.as_ref().map(|_| now.micros()))
    .bind(id.as_ref())
    .bind(company.as_str())
    .bind(read_at.micros())
    .execute(&mut **tx)
    .await?;
    search::index::index(tx, id.as_ref()).await?;
    tx.touch(Topic::Product, id);
    Ok(done.rows_affected() == 1)
}

/// Unpublishes or archives. False: the company has no such product, or it is archived already.
pub async fn set_status(
    tx: &mut Write,
    company: &CompanyId,
    id: &impl Kind,
    status: ProductStatus,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE products SET status = $1, updated_at = $2 \
         WHERE id = $3 AND company_id = $4 AND status <> 'archived'",
    )
    .bind(status.as_str())
    .bind(now.micros())
    .bind(id.as_ref())
    .bind(company.as_str())
    .execute(&mut **tx)
    .await?;
    search::index::index(tx, id.as_ref()).await?;
    tx.touch(Topic::Product, id);
    Ok(done.rows_affected() == 1)
}

fn read<K: Kind>(row: &AnyRow) -> Result<Row<K>, StoreError> {
    Ok(Row {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        company_handle: row.text("handle")?,
        user_id: row.id("user_id")?,
        written: Written {
            connection_id: row.id("connection_id")?,
            name: row.text("name")?,
            slug: row.text("slug")?,
            description: row.text("description")?,
            category: row.text_opt("category")?,
            labels: row.text("labels")?,
            timeout_ms: row.number("timeout_ms")?,
            allow_ai_training: row.flag("allow_ai_training")?,
            details: K::Details::read(row)?,
        },
        status: row.id("status")?,
        learned: row.text_opt("learned")?,
        sample: row.text_opt("sample")?,
        sampled_at: row.time_opt("sampled_at")?,
        is_suspended: row.text("company_status")? != CompanyStatus::Active.as_str(),
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        published_at: row.time_opt("published_at")?,
    })
}
