//! A stored connection as the sandbox wants it: settings, the one grant, and a revision.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use souk_domain::connections::{SslMode, Target};
use souk_domain::ids::{CompanyId, ConnectionId};
use souk_outbound::TlsMode;
use souk_sandbox::{EngineInfo, Grant, PoolLimits, Source};
use souk_store::connections::Connection;
use souk_store::sealing::{Owner, SealError};
use souk_store::{Cache, Db, Topic, files};

use super::schema::Asked;
use super::{ConnectionError, Prepared};
use crate::App;
use crate::connectors::{self, SERVING, serving_ids};
use crate::failure::Cause;

/// Connections in use at once, of all sellers; a source is about 2 kB.
const SOURCES_MAX: usize = 10_000;

/// The sources in use, dropped when their connection, its file or a connector that their company may use changes.
pub type Sources = Cache<ConnectionId, Source>;

pub fn sources(db: &Db) -> Sources {
    // Which settings a connector asks for is in its schema.
    let [own, platforms] = SERVING;
    Cache::new(
        db,
        SOURCES_MAX,
        [Topic::Connection, own, platforms],
        |id: &ConnectionId, source: &Source| {
            let [own, platforms] = serving_ids(&source.company.as_str().into());
            [id.as_str().into(), own, platforms]
        },
    )
}

/// The source of a company's connection.
pub async fn source(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
) -> Result<Arc<Source>, ConnectionError> {
    let found = app
        .sources
        .get_or_load(id.clone(), || load(app, company, id))
        .await?;
    // The key of the cache is the connection alone.
    match found.company == company.as_str() {
        true => Ok(found),
        false => Err(ConnectionError::NotFound),
    }
}

/// What sealed credentials are bound to: they open for this company and connection only.
pub(crate) fn owner<'a>(company: &'a CompanyId, id: &'a ConnectionId) -> Owner<'a> {
    Owner {
        company: company.as_str(),
        subject: id.as_str(),
    }
}

async fn load(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
) -> Result<Source, ConnectionError> {
    let connection = super::get(app, company, id).await?;
    let engine = connectors::serving(app, company, &connection.engine_scope, &connection.engine)
        .ok_or_else(|| Cause::NoConnector(connection.engine.clone()))?;
    of_stored(app, &connection, &engine).await
}

/// The source of a stored connection, as this connector wants it.
pub(crate) async fn of_stored(
    app: &App,
    connection: &Connection,
    engine: &EngineInfo,
) -> Result<Source, ConnectionError> {
    let (company, id) = (&connection.company_id, &connection.id);
    let credentials = credentials(app, connection)?;
    let plan = Plan {
        company,
        id,
        revision: u64::try_from(connection.revision).unwrap_or_default(),
        engine,
        target: &connection.target()?,
        statement_timeout_ms: connection.statement_timeout_ms,
    };
    build(app, &plan, &credentials).await
}

/// The credentials of a stored connection, unsealed.
pub(super) fn credentials(
    app: &App,
    connection: &Connection,
) -> Result<Map<String, Value>, ConnectionError> {
    let owner = owner(&connection.company_id, &connection.id);
    let plain = app.sealer.unseal(owner, &connection.credentials)?;
    match serde_json::from_slice(&plain) {
        Ok(Value::Object(credentials)) => Ok(credentials),
        _ => Err(SealError::Damaged.into()),
    }
}

/// The source of a connection that is not saved.
pub(crate) async fn unsaved(
    app: &App,
    company: &CompanyId,
    draft: &Prepared,
) -> Result<Source, ConnectionError> {
    let plan = Plan {
        company,
        id: &ConnectionId::generate(),
        revision: 0,
        engine: &draft.engine,
        target: &draft.checked.target,
        statement_timeout_ms: draft.checked.statement_timeout_ms,
    };
    build(app, &plan, &draft.credentials.clone().unwrap_or_default()).await
}

/// All that a source is made of, besides its credentials.
struct Plan<'a> {
    company: &'a CompanyId,
    id: &'a ConnectionId,
    revision: u64,
    engine: &'a EngineInfo,
    target: &'a Target,
    statement_timeout_ms: i64,
}

async fn build(
    app: &App,
    plan: &Plan<'_>,
    credentials: &Map<String, Value>,
) -> Result<Source, ConnectionError> {
    let asked = Asked::of(plan.engine);
    let grant = match plan.target {
        Target::Tcp {
            host,
            port,
            ssl_mode,
            ca_pem,
            ..
        } => Grant::Tcp {
            host: host.clone(),
            port: *port,
            tls: tls(*ssl_mode),
            ca_pem: ca_pem.clone(),
        },
        Target::Http { base_url, ca_pem } => Grant::Http {
            base_url: base_url.clone(),
            attach: attach(&asked, credentials),
            ca_pem: ca_pem.clone(),
        },
        Target::File { name } => {
            let file = files::get(&mut *app.db.read().await?, plan.company, name).await?;
            let missing = || ConnectionError::Invalid(vec![super::no_file(plan.company, name)]);
            let file = file.ok_or_else(missing)?;
            Grant::Directory(crate::files::directory(
                &app.files_dir,
                plan.company,
                &file.upload_id,
            ))
        }
    };
    Ok(Source {
        company: plan.company.to_string(),
        connection: plan.id.to_string(),
        revision: plan.revision,
        engine: plan.engine.slug.clone(),
        settings_json: Value::Object(asked.told(settings(
            plan.target,
            plan.statement_timeout_ms,
            credentials,
        )))
        .to_string(),
        grant,
        limits: PoolLimits::default(),
    })
}

/// All that a connector may be told: the credentials, and what the connection says.
pub(super) fn settings(
    target: &Target,
    statement_timeout_ms: i64,
    credentials: &Map<String, Value>,
) -> Map<String, Value> {
    let connection = match target {
        Target::Tcp {
            host,
            port,
            database,
            ssl_mode,
            ..
        } => {
            let mut connection = json!({"host": host, "port": port, "ssl_mode": ssl_mode.as_str()});
            // Of an engine that has none.
            if !database.is_empty() {
                connection["database"] = database.as_str().into();
            }
            connection
        }
        Target::Http { base_url, .. } => json!({"base_url": base_url}),
        Target::File { name } => json!({"database": name}),
    };
    let mut settings = credentials.clone();
    settings.insert(
        "statement_timeout_ms".to_owned(),
        statement_timeout_ms.into(),
    );
    settings.extend(connection.as_object().cloned().unwrap_or_default());
    settings
}

/// What the host adds to every request in the connector's place, where its schema asks for that.
fn attach(asked: &Asked, credentials: &Map<String, Value>) -> Vec<(String, String)> {
    let headers = asked.headers().filter_map(|header| {
        let value = credentials.get(header.member)?.as_str()?;
        Some((header.name.to_owned(), format!("{}{value}", header.prefix)))
    });
    headers.collect()
}

fn tls(ssl_mode: SslMode) -> TlsMode {
    match ssl_mode {
        SslMode::Disable => TlsMode::Disable,
        SslMode::Require => TlsMode::Require,
        SslMode::VerifyCa => TlsMode::VerifyCa,
        SslMode::VerifyFull => TlsMode::VerifyFull,
    }
}
