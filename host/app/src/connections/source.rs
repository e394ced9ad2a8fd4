//! A connection as the sandbox wants it: settings, the one grant, and a revision.

use serde_json::{Map, Value, json};
use souk_domain::connections::{SslMode, Target};
use souk_domain::ids::{CompanyId, ConnectionId};
use souk_outbound::TlsMode;
use souk_sandbox::{EngineInfo, Grant, PoolLimits, Source};
use souk_store::Cached;
use souk_store::connections::Connection;
use souk_store::files;

use super::error::{ConnectionError, no_file};
use super::schema::Asked;
use super::stored::{credentials, get};
use crate::App;
use crate::connectors::serving;
use crate::failure::Cause;

/// The source of a company's connection.
pub async fn source(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
) -> Result<Cached<Source>, ConnectionError> {
    // Most calls find it, and have not copied its id.
    let found = match app.sources.get(id) {
        Some(found) => found,
        None => {
            let load = || load(app, company, id);
            app.sources.get_or_load(id.clone(), load).await?
        }
    };
    // The key of the cache is the connection alone.
    match found.company == company.as_str() {
        true => Ok(found),
        false => Err(ConnectionError::NotFound),
    }
}

async fn load(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
) -> Result<Source, ConnectionError> {
    let connection = get(app, company, id).await?;
    let engine = serving(
        &app.sandbox,
        company,
        &connection.engine_scope,
        &connection.engine,
    )
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

/// All that a source is made of, besides its credentials.
pub(super) struct Plan<'a> {
    pub company: &'a CompanyId,
    pub id: &'a ConnectionId,
    pub revision: u64,
    pub engine: &'a EngineInfo,
    pub target: &'a Target,
    pub statement_timeout_ms: i64,
}

pub(super) async fn build(
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
        Target::Http {
            base_url, ca_pem, ..
        } => Grant::Http {
            base_url: base_url.clone(),
            attach: attach(&asked, credentials),
            ca_pem: ca_pem.clone(),
        },
        Target::File { name } => {
            // A connector's version is tried while others wait for that.
            let file = app
                .db
                .ask(async |db| files::get(db, plan.company, name).await)
                .await?;
            let missing = || ConnectionError::Invalid(vec![no_file(plan.company, name)]);
            crate::files::grant(app, plan.company, &file.ok_or_else(missing)?)
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
        Target::Http {
            base_url, database, ..
        } => {
            let mut connection = json!({"base_url": base_url});
            if let Some(database) = database {
                connection["database"] = database.as_str().into();
            }
            connection
        }
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
