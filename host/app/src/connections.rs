//! Data connections: what may be saved, what a connector gets of it, whether it works.
//!
//! - here: create, change, delete;
//! - [`source`]: a stored connection as the sandbox wants it;
//! - [`check`]: does it work, and if not, why, in words for its owner;
//! - [`routings`]: do both routings of a seller API answer alike;
//! - [`catalog`]: what tables there are.
//!
//! Credentials are text only between the request and the seal, and between the seal and the sandbox.

pub mod catalog;
pub mod check;
mod differences;
pub mod routings;
pub mod source;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::{Map, Value};
use souk_domain::connections::{self as rules, Checked, Draft, Engine, Invalid, Need, Target};
use souk_domain::ids::{CompanyId, ConnectionId, UserId};
use souk_sandbox::{EngineInfo, Fault};
use souk_store::connections::{Connection, Written};
use souk_store::sealing::SealError;
use souk_store::{StoreError, Write, connections, files, reference, users};

use crate::App;
use crate::connectors;

#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    #[error("there is no such connection")]
    NotFound,
    #[error("the connection breaks {} rules", .0.len())]
    Invalid(Vec<Invalid>),
    #[error("{message}")]
    UnsafeAddress {
        field: &'static str,
        message: String,
    },
    #[error("{assets} assets and {endpoints} endpoints run on this connection")]
    InUse { assets: i64, endpoints: i64 },
    #[error("the company has {0} connections, which is as many as it may have: delete one first")]
    TooMany(u32),
    #[error("the connection was changed at the same time; read it again and repeat the change")]
    Lost,
    #[error("no connector for engine \"{0}\" is active")]
    NoConnector(String),
    #[error("engine \"{0}\" has no catalog of tables")]
    NoCatalog(String),
    #[error("the stored credentials cannot be opened: {0}")]
    Sealed(#[from] SealError),
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A connection as a client sends it. A member that is absent is `None`; one that is null clears.
#[derive(Debug, Clone, Default)]
pub struct Input {
    pub engine_id: Option<i64>,
    pub name: Option<String>,
    pub credential_type: Option<String>,
    /// JSON as text.
    pub credentials: Option<String>,
    pub host: Option<Option<String>>,
    pub port: Option<Option<i64>>,
    pub database: Option<Option<String>>,
    pub ssl_mode: Option<Option<String>>,
    pub base_url: Option<Option<String>>,
    pub ca_pem: Option<Option<String>>,
    pub cloud_provider_id: Option<Option<i64>>,
    pub verified_usage_ability: Option<bool>,
    pub statement_timeout_ms: Option<i64>,
}

/// Saves a new connection; nothing is dialled. `is_caller`: the user is the one whose key is used.
pub async fn create(
    app: &App,
    company: &CompanyId,
    user: &UserId,
    is_caller: bool,
    input: &Input,
) -> Result<Connection, ConnectionError> {
    let id = ConnectionId::generate();
    let draft = Prepared::new(app, company, input, None).await?;
    let sealed = draft.seal(app, company, &id)?;

    let connection = app
        .db
        .write(async |tx| -> Result<_, ConnectionError> {
            // Platform staff may act in another company under their own name.
            if !is_caller {
                require_user(tx, company, user).await?;
            }
            let connections_max = app.bounds.connections;
            if connections::count_to_insert(tx, company).await? >= i64::from(connections_max) {
                return Err(ConnectionError::TooMany(connections_max));
            }
            require_file(tx, company, &draft.checked.target).await?;
            let written = draft.written(&sealed);
            let now = app.clock.now();
            connections::insert(tx, &id, company, user, draft.engine_id, &written, now).await?;
            let connection = connections::get(tx, company, &id).await?;
            Ok(connection)
        })
        .await?;
    connection.ok_or(ConnectionError::NotFound)
}

/// Changes a connection. True: something that its sessions depend on changed, so it should be tested.
pub async fn change(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
    input: &Input,
) -> Result<(Connection, bool), ConnectionError> {
    let before = get(app, company, id).await?;
    let draft = Prepared::new(app, company, input, Some(&before)).await?;
    let sealed = match &draft.credentials {
        Some(_) => draft.seal(app, company, id)?,
        None => before.credentials.clone(),
    };
    let retest = draft.credentials.is_some() || !same_source(&before, &draft.checked);

    let after = app
        .db
        .write(async |tx| -> Result<_, ConnectionError> {
            require_file(tx, company, &draft.checked.target).await?;
            let written = draft.written(&sealed);
            let now = app.clock.now();
            let done = match retest {
                true => {
                    connections::update(tx, company, id, before.revision, &written, now).await?
                }
                false => connections::relabel(tx, company, id, &written, now).await?,
            };
            if !done {
                return Err(ConnectionError::Lost);
            }
            let after = connections::get(tx, company, id).await?;
            Ok(after)
        })
        .await?;
    if retest {
        app.sandbox.forget(company.as_str(), id.as_str());
    }
    Ok((after.ok_or(ConnectionError::NotFound)?, retest))
}

/// Deletes a connection that no living product runs on; its credentials are overwritten.
pub async fn delete(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
) -> Result<(), ConnectionError> {
    app.db
        .write(async |tx| -> Result<_, ConnectionError> {
            // The row is changed first: who creates a product on it meanwhile waits for this transaction.
            if !connections::delete(tx, company, id, app.clock.now()).await? {
                return Err(ConnectionError::NotFound);
            }
            let (assets, endpoints) = connections::dependants(tx, company, id).await?;
            if assets + endpoints > 0 {
                return Err(ConnectionError::InUse { assets, endpoints });
            }
            Ok(())
        })
        .await?;
    app.sandbox.forget(company.as_str(), id.as_str());
    Ok(())
}

pub async fn get(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
) -> Result<Connection, ConnectionError> {
    let found = connections::get(&mut *app.db.read().await?, company, id).await?;
    found.ok_or(ConnectionError::NotFound)
}

/// A connection that obeys every rule that can be checked without dialling.
pub(crate) struct Prepared {
    pub engine_id: i64,
    pub engine: EngineInfo,
    pub checked: Checked,
    /// Absent: the stored ones stay.
    pub credentials: Option<Map<String, Value>>,
    cloud_provider_id: Option<i64>,
    verified_usage_ability: bool,
}

impl Prepared {
    /// Lays `input` over what is stored and checks the whole.
    pub async fn new(
        app: &App,
        company: &CompanyId,
        input: &Input,
        before: Option<&Connection>,
    ) -> Result<Prepared, ConnectionError> {
        let engine_id = match (input.engine_id, before) {
            (Some(id), Some(before)) if id != before.engine_id => {
                return Err(invalid(
                    "engine_id",
                    "immutable",
                    "engine_id cannot be changed: create another connection",
                ));
            }
            (None, None) => {
                return Err(invalid(
                    "engine_id",
                    "required",
                    "engine_id is required: see GET /storage-engines",
                ));
            }
            (Some(id), _) => id,
            (None, Some(before)) => before.engine_id,
        };
        let engine = engine(app, company, engine_id).await?;
        let credentials = match (&input.credentials, before) {
            (Some(text), _) => Some(parse_credentials(text)?),
            (None, Some(_)) => None,
            (None, None) => {
                return Err(invalid(
                    "credentials",
                    "required",
                    "credentials are required: JSON as text, \"{}\" for credential_type NONE",
                ));
            }
        };
        let draft = draft(input, before, credentials.as_ref());
        if let Some(before) = before
            && credentials.is_none()
            && draft.credential_type != before.credential_type
        {
            return Err(invalid(
                "credentials",
                "required",
                "a new credential_type needs new credentials",
            ));
        }
        let domain_engine = Engine {
            slug: engine.slug.clone(),
            need: need(&engine),
            credential_types: engine.credential_types.clone(),
        };
        let checked = rules::check(&domain_engine, &draft).map_err(ConnectionError::Invalid)?;
        check_egress(app, &checked.target)?;
        if let (None, Some(before)) = (&credentials, before) {
            keep_credentials(app, before, &checked.target)?;
        }
        let stored_provider = before.and_then(|before| before.cloud_provider_id);
        Ok(Prepared {
            engine_id,
            engine,
            checked,
            credentials,
            cloud_provider_id: input.cloud_provider_id.unwrap_or(stored_provider),
            verified_usage_ability: input
                .verified_usage_ability
                .unwrap_or(before.is_some_and(|before| before.verified_usage_ability)),
        })
    }

    fn seal(
        &self,
        app: &App,
        company: &CompanyId,
        id: &ConnectionId,
    ) -> Result<Vec<u8>, ConnectionError> {
        let text = Value::Object(self.credentials.clone().unwrap_or_default()).to_string();
        Ok(app
            .sealer
            .seal(source::owner(company, id), text.as_bytes())?)
    }

    fn written<'a>(&'a self, sealed: &'a [u8]) -> Written<'a> {
        Written {
            name: &self.checked.name,
            credential_type: &self.checked.credential_type,
            credentials: sealed,
            target: &self.checked.target,
            cloud_provider_id: self.cloud_provider_id,
            verified_usage_ability: self.verified_usage_ability,
            statement_timeout_ms: self.checked.statement_timeout_ms,
        }
    }
}

/// What the active connector says about an engine, for a company that may use it.
async fn engine(app: &App, company: &CompanyId, id: i64) -> Result<EngineInfo, ConnectionError> {
    let known = reference::engine_by_id(&mut *app.db.read().await?, company.as_str(), id).await?;
    let Some(known) = known else {
        return Err(invalid(
            "engine_id",
            "unknown",
            format!("there is no storage engine {id}: see GET /storage-engines"),
        ));
    };
    connectors::serving(app, company, &known.scope, &known.slug).ok_or_else(|| {
        let message = format!(
            "no connector for {} is active on this service: see GET /storage-engines",
            known.name
        );
        invalid("engine_id", "unavailable", message)
    })
}

pub(crate) fn need(engine: &EngineInfo) -> Need {
    match engine.need {
        souk_sandbox::Need::Tcp => Need::Tcp,
        souk_sandbox::Need::Http => Need::Http,
        souk_sandbox::Need::Directory => Need::Directory,
    }
}

/// Stored credentials stay with the server that they were given for: whoever may change a connection but was never told its password could
/// otherwise have it sent to a server of their own. Where none are stored there is nothing to learn.
fn keep_credentials(app: &App, before: &Connection, after: &Target) -> Result<(), ConnectionError> {
    let field = match (before.target()?, after) {
        (Target::Tcp { host, .. }, Target::Tcp { host: now, .. }) if host != *now => "host",
        (Target::Tcp { port, .. }, Target::Tcp { port: now, .. }) if port != *now => "port",
        (Target::Http { base_url, .. }, Target::Http { base_url: now, .. }) if base_url != *now => {
            "base_url"
        }
        (Target::Tcp { .. }, Target::Tcp { .. })
        | (Target::Http { .. }, Target::Http { .. })
        | (Target::File { .. }, Target::File { .. }) => return Ok(()),
        // The engine's connector speaks over another wire than when the connection was saved.
        _ => "kind of address",
    };
    if source::credentials(app, before)?.is_empty() {
        return Ok(());
    }
    let message = format!(
        "a new {field} needs the credentials again: the stored ones were given for the server of before"
    );
    Err(invalid("credentials", "required", message))
}

/// A member of the body wins over the same member of new credentials, which wins over what is stored.
fn draft(
    input: &Input,
    before: Option<&Connection>,
    credentials: Option<&Map<String, Value>>,
) -> Draft {
    let member = |name: &str| {
        credentials
            .and_then(|members| members.get(name))
            .and_then(scalar)
    };
    let text = |given: &Option<Option<String>>, name: &str, stored: Option<&String>| match given {
        Some(given) => given.clone(),
        None => member(name).or_else(|| stored.cloned()),
    };
    let port = match input.port {
        Some(given) => given,
        // A port that is not a number becomes one that no rule accepts.
        None => match member("port") {
            Some(port) => Some(port.parse().unwrap_or(-1)),
            None => before.and_then(|before| before.port),
        },
    };
    let stored = |text: fn(&Connection) -> &str| {
        before
            .map(|before| text(before).to_owned())
            .unwrap_or_default()
    };
    Draft {
        name: input
            .name
            .clone()
            .unwrap_or_else(|| stored(|before| &before.name)),
        credential_type: input
            .credential_type
            .clone()
            .unwrap_or_else(|| stored(|before| &before.credential_type)),
        host: text(
            &input.host,
            "host",
            before.and_then(|before| before.host.as_ref()),
        ),
        port,
        database: text(
            &input.database,
            "database",
            before.and_then(|before| before.database.as_ref()),
        ),
        ssl_mode: text(
            &input.ssl_mode,
            "ssl_mode",
            before.and_then(|before| before.ssl_mode.as_ref()),
        ),
        base_url: text(
            &input.base_url,
            "base_url",
            before.and_then(|before| before.base_url.as_ref()),
        ),
        ca_pem: text(
            &input.ca_pem,
            "ca_pem",
            before.and_then(|before| before.ca_pem.as_ref()),
        ),
        statement_timeout_ms: input
            .statement_timeout_ms
            .or(before.map(|before| before.statement_timeout_ms)),
        credentials: credentials.map(|members| {
            members
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), scalar(value)?)))
                .collect::<BTreeMap<_, _>>()
        }),
    }
}

/// Credentials are one JSON object. The message never repeats any of it.
fn parse_credentials(text: &str) -> Result<Map<String, Value>, ConnectionError> {
    if text.len() > rules::CREDENTIALS_BYTES_MAX {
        let message = format!(
            "credentials must have at most {} bytes",
            rules::CREDENTIALS_BYTES_MAX
        );
        return Err(invalid("credentials", "length", message));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(mut members)) => {
            // `user` is what libpq calls it; the name that connectors read is `username`.
            if !members.contains_key("username")
                && let Some(user) = members.remove("user")
            {
                members.insert("username".to_owned(), user);
            }
            Ok(members)
        }
        _ => Err(invalid(
            "credentials",
            "format",
            "credentials must be a JSON object, written as text: \"{\\\"username\\\": …}\"",
        )),
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// Refuses a written address that the sandbox would refuse anyway; a name is judged when it is
/// resolved for a session.
fn check_egress(app: &App, target: &Target) -> Result<(), ConnectionError> {
    let (field, host, port) = match target {
        Target::Tcp { host, port, .. } => ("host", host.clone(), *port),
        Target::Http { base_url, .. } => {
            let url = url::Url::parse(base_url).ok();
            let host = url
                .as_ref()
                .and_then(url::Url::host_str)
                .unwrap_or_default();
            let port = url.as_ref().and_then(url::Url::port_or_known_default);
            ("base_url", host.to_owned(), port.unwrap_or_default())
        }
        Target::File { .. } => return Ok(()),
    };
    let Some(address) = souk_outbound::written_address(&host) else {
        return Ok(());
    };
    let judged = app.egress.check(SocketAddr::new(address, port));
    judged.map_err(|refused| ConnectionError::UnsafeAddress {
        field,
        message: refused.to_string(),
    })
}

/// Whether a session opened before the change would still be right after it.
fn same_source(before: &Connection, after: &Checked) -> bool {
    before.target().is_ok_and(|target| target == after.target)
        && before.statement_timeout_ms == after.statement_timeout_ms
        && before.credential_type == after.credential_type
}

/// A connection to a file names one that exists, and keeps it from being deleted meanwhile.
async fn require_file(
    tx: &mut Write,
    company: &CompanyId,
    target: &Target,
) -> Result<(), ConnectionError> {
    let Target::File { name } = target else {
        return Ok(());
    };
    match files::lock(tx, company, name).await? {
        true => Ok(()),
        false => Err(no_file(company, name)),
    }
}

pub(crate) fn no_file(company: &CompanyId, name: &str) -> ConnectionError {
    let message = format!(
        "the company has no file \"{name}\": upload it with PUT /companies/{company}/files/{name}"
    );
    invalid("database", "unknown", message)
}

async fn require_user(
    tx: &mut Write,
    company: &CompanyId,
    user: &UserId,
) -> Result<(), ConnectionError> {
    match users::get(tx, company, user).await? {
        Some(_) => Ok(()),
        None => Err(invalid(
            "user_id",
            "unknown",
            format!("the company has no user \"{user}\""),
        )),
    }
}

fn invalid(field: &'static str, code: &'static str, message: impl Into<String>) -> ConnectionError {
    ConnectionError::Invalid(vec![Invalid {
        field,
        code,
        message: message.into(),
    }])
}
