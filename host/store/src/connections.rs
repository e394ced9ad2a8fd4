//! Data connections. Credentials pass through here sealed; whoever may open them is not this file's business.

use souk_domain::connections::{Need, SslMode, Target};
use souk_domain::ids::{CompanyId, ConnectionId, UserId};
use souk_domain::products::{ProductStatus, SourceKind};
use souk_domain::time::Timestamp;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::lists::{List, Listed, Part, Values};
use crate::{Fields, StoreError, Topic, Write, companies};

/// A connection with what its engine adds to it.
#[derive(Debug, Clone)]
pub struct Connection {
    pub id: ConnectionId,
    pub company_id: CompanyId,
    pub user_id: UserId,
    pub engine_id: i64,
    pub engine: String,
    /// Whose engine it is: `platform`, or a company's id.
    pub engine_scope: String,
    pub need: Need,
    pub name: String,
    pub credential_type: String,
    /// Sealed for exactly this company and connection.
    pub credentials: Vec<u8>,
    pub host: Option<String>,
    pub port: Option<i64>,
    pub database: Option<String>,
    pub ssl_mode: Option<String>,
    pub base_url: Option<String>,
    pub ca_pem: Option<String>,
    pub cloud_provider_id: Option<i64>,
    pub verified_usage_ability: bool,
    pub statement_timeout_ms: i64,
    pub revision: i64,
    pub status: String,
    pub last_tested_at: Option<Timestamp>,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Connection {
    /// Where the connection leads, as the rules wrote it down.
    pub fn target(&self) -> Result<Target, StoreError> {
        let missing = |what| StoreError::Corrupt(format!("connection {} has no {what}", self.id));
        let database = || self.database.clone().ok_or_else(|| missing("database"));
        Ok(match self.need {
            Need::Tcp => Target::Tcp {
                host: self.host.clone().ok_or_else(|| missing("host"))?,
                port: self
                    .port
                    .and_then(|port| u16::try_from(port).ok())
                    .ok_or_else(|| missing("port"))?,
                database: database()?,
                ssl_mode: self
                    .ssl_mode
                    .as_deref()
                    .and_then(SslMode::parse)
                    .ok_or_else(|| missing("ssl_mode"))?,
                ca_pem: self.ca_pem.clone(),
            },
            Need::Http => Target::Http {
                base_url: self.base_url.clone().ok_or_else(|| missing("base_url"))?,
                database: self.database.clone(),
                ca_pem: self.ca_pem.clone(),
            },
            Need::Directory => Target::File { name: database()? },
        })
    }
}

/// What a client decides about a connection; an update replaces all of it.
#[derive(Debug, Clone)]
pub struct Written<'a> {
    pub name: &'a str,
    pub credential_type: &'a str,
    pub credentials: &'a [u8],
    pub target: &'a Target,
    pub cloud_provider_id: Option<i64>,
    pub verified_usage_ability: bool,
    pub statement_timeout_ms: i64,
}

#[derive(Debug, Clone, Default)]
pub struct ConnectionFilter<'a> {
    pub engine_id: Option<i64>,
    pub status: Option<&'a str>,
}

const COLUMNS: &str = "c.id, c.company_id, c.user_id, c.engine_id, e.slug, e.scope, e.need, c.name, c.credential_type, c.credentials, c.host, c.port, \
     c.database_name, c.ssl_mode, c.base_url, c.ca_pem, c.cloud_provider_id, c.verified_usage_ability, \
     c.statement_timeout_ms, c.revision, c.status, c.last_tested_at, c.last_error, c.created_at, c.updated_at";
const FROM: &str = "FROM connections c JOIN storage_engines e ON e.id = c.engine_id";

/// How many connections a company has, for whoever is about to insert one: nobody else can until `tx` ends.
pub async fn count_to_insert(tx: &mut Write, company: &CompanyId) -> Result<i64, StoreError> {
    companies::lock(tx, company).await?;
    let row = sqlx::query(
        "SELECT CAST(COUNT(*) AS BIGINT) AS total FROM connections \
         WHERE company_id = $1 AND deleted_at IS NULL",
    )
    .bind(company.as_str())
    .fetch_one(&mut **tx)
    .await?;
    Ok(row.try_get("total")?)
}

pub async fn insert(
    tx: &mut Write,
    id: &ConnectionId,
    company: &CompanyId,
    user: &UserId,
    engine_id: i64,
    written: &Written<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let flat = Flat::of(written.target);
    sqlx::query(
        "INSERT INTO connections (id, company_id, user_id, engine_id, name, credential_type, credentials, host, port, database_name, ssl_mode, \
         base_url, ca_pem, cloud_provider_id, verified_usage_ability, statement_timeout_ms, revision, status, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, 1, 'unverified', $17, $17)",
    )
    .bind(id.as_str())
    .bind(company.as_str())
    .bind(user.as_str())
    .bind(engine_id)
    .bind(written.name)
    .bind(written.credential_type)
    .bind(written.credentials)
    .bind(flat.host)
    .bind(flat.port)
    .bind(flat.database)
    .bind(flat.ssl_mode)
    .bind(flat.base_url)
    .bind(flat.ca_pem)
    .bind(written.cloud_provider_id)
    .bind(i64::from(written.verified_usage_ability))
    .bind(written.statement_timeout_ms)
    .bind(now.micros())
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Connection, id);
    Ok(())
}

pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &ConnectionId,
) -> Result<Option<Connection>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} {FROM} \
         WHERE c.company_id = $1 AND c.id = $2 AND c.deleted_at IS NULL"
    );
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(company.as_str())
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(connection).transpose()
}

/// Keeps a connection from being deleted until the transaction ends. False: the company has none of this id.
pub async fn lock(
    tx: &mut Write,
    company: &CompanyId,
    id: &ConnectionId,
) -> Result<bool, StoreError> {
    // An update that changes nothing locks the row on both backends.
    let done = sqlx::query(
        "UPDATE connections SET revision = revision WHERE company_id = $1 AND id = $2 AND deleted_at IS NULL",
    )
    .bind(company.as_str())
    .bind(id.as_str())
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

static LIST: List = List::new(
    COLUMNS,
    "FROM connections c JOIN storage_engines e ON e.id = c.engine_id
     WHERE c.company_id = $1 AND c.deleted_at IS NULL
       AND (CAST($2 AS BIGINT) IS NULL OR c.engine_id = $2)
       AND (CAST($3 AS TEXT) IS NULL OR c.status = $3)",
    "c.created_at DESC, c.id DESC",
    3,
);

/// Newest first.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    filter: &ConnectionFilter<'_>,
    part: Part,
) -> Result<Listed<Connection>, StoreError> {
    let bind = |values: &mut Values| {
        values
            .text(Some(company.as_str()))
            .number(filter.engine_id)
            .text(filter.status);
    };
    LIST.fetch(db, part, bind, connection).await
}

/// How many connections name an engine of `scope`.
pub async fn of_engine(
    db: &mut AnyConnection,
    scope: &str,
    engine: &str,
) -> Result<i64, StoreError> {
    let row = sqlx::query(
        "SELECT COUNT(*) AS named \
         FROM connections c JOIN storage_engines e ON e.id = c.engine_id \
         WHERE e.scope = $1 AND e.slug = $2 AND c.deleted_at IS NULL",
    )
    .bind(scope)
    .bind(engine)
    .fetch_one(db)
    .await?;
    Ok(row.try_get("named")?)
}

/// A connection that a connector serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Depending {
    pub connection_id: ConnectionId,
    pub company_id: CompanyId,
    pub name: String,
    /// The engine's slug.
    pub engine: String,
    pub status: String,
    pub published_products: i64,
}

static DEPENDING: List = List::new(
    "c.id, c.company_id, c.name, e.slug, c.status,
     (SELECT COUNT(*) FROM products p WHERE p.connection_id = c.id AND p.status = 'published') AS published_products",
    "FROM connections c JOIN storage_engines e ON e.id = c.engine_id
     WHERE e.scope = $1 AND $2 LIKE '%,' || e.slug || ',%' AND c.deleted_at IS NULL",
    "c.company_id, c.id",
    2,
);

/// The connections to engines of `scope`, of which a connector serves these.
pub async fn depending(
    db: &mut AnyConnection,
    scope: &str,
    engines: &[String],
    part: Part,
) -> Result<Listed<Depending>, StoreError> {
    // A slug has no comma, nor anything that LIKE reads in its own way.
    let engines = format!(",{},", engines.join(","));
    let bind = |values: &mut Values| {
        values.text(Some(scope)).text(Some(&engines));
    };
    let read = |row: &AnyRow| {
        Ok(Depending {
            connection_id: row.id("id")?,
            company_id: row.id("company_id")?,
            name: row.text("name")?,
            engine: row.text("slug")?,
            status: row.text("status")?,
            published_products: row.number("published_products")?,
        })
    };
    DEPENDING.fetch(db, part, bind, read).await
}

/// Connections of an engine of `scope` that worked when they were tested last, the latest first.
pub async fn proven(
    db: &mut AnyConnection,
    scope: &str,
    engine: &str,
    limit: i64,
) -> Result<Vec<Connection>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} {FROM} WHERE e.scope = $1 AND e.slug = $2 \
         AND c.status = 'active' AND c.deleted_at IS NULL ORDER BY c.last_tested_at DESC LIMIT $3"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(scope)
        .bind(engine)
        .bind(limit)
        .fetch_all(db)
        .await?;
    rows.iter().map(connection).collect()
}

/// Replaces what a client may write, if nobody else did since `revision` was read; the status falls
/// back to `unverified`. False: somebody did, or the connection is gone.
pub async fn update(
    tx: &mut Write,
    company: &CompanyId,
    id: &ConnectionId,
    revision: i64,
    written: &Written<'_>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let flat = Flat::of(written.target);
    let done = sqlx::query(
        "UPDATE connections SET name = $1, credential_type = $2, credentials = $3, host = $4, port = $5, database_name = $6, ssl_mode = $7, \
         base_url = $8, ca_pem = $9, cloud_provider_id = $10, verified_usage_ability = $11, statement_timeout_ms = $12, revision = revision + 1, \
         status = 'unverified', last_error = NULL, updated_at = $13 \
         WHERE company_id = $14 AND id = $15 AND revision = $16 AND deleted_at IS NULL",
    )
    .bind(written.name)
    .bind(written.credential_type)
    .bind(written.credentials)
    .bind(flat.host)
    .bind(flat.port)
    .bind(flat.database)
    .bind(flat.ssl_mode)
    .bind(flat.base_url)
    .bind(flat.ca_pem)
    .bind(written.cloud_provider_id)
    .bind(i64::from(written.verified_usage_ability))
    .bind(written.statement_timeout_ms)
    .bind(now.micros())
    .bind(company.as_str())
    .bind(id.as_str())
    .bind(revision)
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Connection, id);
    Ok(done.rows_affected() == 1)
}

/// Changes the label and the flags only: nothing that a session at the source depends on.
pub async fn relabel(
    tx: &mut Write,
    company: &CompanyId,
    id: &ConnectionId,
    written: &Written<'_>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE connections \
         SET name = $1, cloud_provider_id = $2, verified_usage_ability = $3, updated_at = $4 \
         WHERE company_id = $5 AND id = $6 AND deleted_at IS NULL",
    )
    .bind(written.name)
    .bind(written.cloud_provider_id)
    .bind(i64::from(written.verified_usage_ability))
    .bind(now.micros())
    .bind(company.as_str())
    .bind(id.as_str())
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Connection, id);
    Ok(done.rows_affected() == 1)
}

/// Records what a test of this revision found; a connection that changed meanwhile is left alone.
pub async fn record_test(
    tx: &mut Write,
    company: &CompanyId,
    id: &ConnectionId,
    revision: i64,
    error: Option<&str>,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE connections SET status = $1, last_error = $2, last_tested_at = $3 \
         WHERE company_id = $4 AND id = $5 AND revision = $6 AND deleted_at IS NULL",
    )
    .bind(if error.is_none() { "active" } else { "failed" })
    .bind(error)
    .bind(now.micros())
    .bind(company.as_str())
    .bind(id.as_str())
    .bind(revision)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Overwrites the credentials and hides the row. False: there was none.
pub async fn delete(
    tx: &mut Write,
    company: &CompanyId,
    id: &ConnectionId,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE connections SET credentials = $1, revision = revision + 1, deleted_at = $2, updated_at = $2 \
         WHERE company_id = $3 AND id = $4 AND deleted_at IS NULL",
    )
    .bind(&[][..] as &[u8])
    .bind(now.micros())
    .bind(company.as_str())
    .bind(id.as_str())
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Connection, id);
    Ok(done.rows_affected() == 1)
}

/// The connections that read a file of their company.
pub async fn using_file(
    db: &mut AnyConnection,
    company: &CompanyId,
    file: &str,
) -> Result<Vec<ConnectionId>, StoreError> {
    let rows = sqlx::query(
        "SELECT c.id FROM connections c JOIN storage_engines e ON e.id = c.engine_id \
         WHERE c.company_id = $1 AND c.database_name = $2 AND e.need = 'directory' AND c.deleted_at IS NULL ORDER BY c.id",
    )
    .bind(company.as_str())
    .bind(file)
    .fetch_all(db)
    .await?;
    rows.iter().map(|row| row.id("id")).collect()
}

/// Ends the life of sessions that read an older version of a file, which says nothing of whether they work with this one.
pub(crate) async fn bump(
    tx: &mut Write,
    company: &CompanyId,
    ids: &[ConnectionId],
) -> Result<(), StoreError> {
    for id in ids {
        sqlx::query(
            "UPDATE connections \
         SET revision = revision + 1, status = 'unverified', last_error = NULL \
         WHERE company_id = $1 AND id = $2",
        )
        .bind(company.as_str())
        .bind(id.as_str())
        .execute(&mut **tx)
        .await?;
        tx.touch(Topic::Connection, id);
    }
    Ok(())
}

/// How many assets and endpoints run on a connection: those of this status, or all that are not archived.
pub async fn dependants(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &ConnectionId,
    status: Option<ProductStatus>,
) -> Result<(i64, i64), StoreError> {
    let row = sqlx::query(
        "SELECT COUNT(CASE WHEN product_type = 'asset' THEN 1 END) AS assets, \
         COUNT(CASE WHEN product_type = 'endpoint' THEN 1 END) AS endpoints \
         FROM products WHERE company_id = $1 AND connection_id = $2 AND status <> 'archived' \
         AND (CAST($3 AS TEXT) IS NULL OR status = $3)",
    )
    .bind(company.as_str())
    .bind(id.as_str())
    .bind(status.map(ProductStatus::as_str))
    .fetch_one(db)
    .await?;
    Ok((row.try_get("assets")?, row.try_get("endpoints")?))
}

/// A function asset that runs on a connection, as far as it takes to call it.
#[derive(Debug, Clone)]
pub struct ProbeAsset {
    pub id: String,
    /// A function or a path.
    pub source_kind: SourceKind,
    pub source: String,
    /// JSON: the declared parameters.
    pub parameters: String,
}

/// The first few function assets of a connection, oldest first.
pub async fn probe_assets(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &ConnectionId,
) -> Result<Vec<ProbeAsset>, StoreError> {
    let rows = sqlx::query(
        "SELECT p.id, d.source_kind, d.source, d.parameters FROM products p JOIN asset_details d ON d.id = p.id \
         WHERE p.company_id = $1 AND p.connection_id = $2 AND d.source_kind <> 'sql' AND p.status <> 'archived' \
         ORDER BY p.created_at, p.id LIMIT 20",
    )
    .bind(company.as_str())
    .bind(id.as_str())
    .fetch_all(db)
    .await?;
    rows.iter()
        .map(|row| {
            Ok(ProbeAsset {
                id: row.text("id")?,
                source_kind: row.id("source_kind")?,
                source: row.text("source")?,
                parameters: row.text("parameters")?,
            })
        })
        .collect()
}

/// A target as its columns.
#[derive(Default)]
struct Flat<'a> {
    host: Option<&'a str>,
    port: Option<i64>,
    database: Option<&'a str>,
    ssl_mode: Option<&'a str>,
    base_url: Option<&'a str>,
    ca_pem: Option<&'a str>,
}

impl<'a> Flat<'a> {
    fn of(target: &'a Target) -> Flat<'a> {
        match target {
            Target::Tcp {
                host,
                port,
                database,
                ssl_mode,
                ca_pem,
            } => Flat {
                host: Some(host),
                port: Some(i64::from(*port)),
                database: Some(database),
                ssl_mode: Some(ssl_mode.as_str()),
                ca_pem: ca_pem.as_deref(),
                ..Flat::default()
            },
            Target::Http {
                base_url,
                database,
                ca_pem,
            } => Flat {
                base_url: Some(base_url),
                database: database.as_deref(),
                ca_pem: ca_pem.as_deref(),
                ..Flat::default()
            },
            Target::File { name } => Flat {
                database: Some(name),
                ..Flat::default()
            },
        }
    }
}

fn connection(row: &AnyRow) -> Result<Connection, StoreError> {
    let need: String = row.try_get("need")?;
    Ok(Connection {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        user_id: row.id("user_id")?,
        engine_id: row.try_get("engine_id")?,
        engine: row.try_get("slug")?,
        engine_scope: row.try_get("scope")?,
        need: Need::parse(&need)
            .ok_or_else(|| StoreError::Corrupt(format!("storage_engines.need is \"{need}\"")))?,
        name: row.try_get("name")?,
        credential_type: row.try_get("credential_type")?,
        credentials: row.try_get("credentials")?,
        host: row.try_get("host")?,
        port: row.try_get("port")?,
        database: row.try_get("database_name")?,
        ssl_mode: row.try_get("ssl_mode")?,
        base_url: row.try_get("base_url")?,
        ca_pem: row.try_get("ca_pem")?,
        cloud_provider_id: row.try_get("cloud_provider_id")?,
        verified_usage_ability: row.flag("verified_usage_ability")?,
        statement_timeout_ms: row.try_get("statement_timeout_ms")?,
        revision: row.try_get("revision")?,
        status: row.try_get("status")?,
        last_tested_at: row.time_opt("last_tested_at")?,
        last_error: row.try_get("last_error")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}
