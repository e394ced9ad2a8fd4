//! Whether a version of a connector works, before it takes anybody's requests.
//!
//! Two proofs. A connector whose settings may be empty must open a session with empty settings. And
//! connections that were proven to work must still answer: one that answers on the version that runs
//! but not on the candidate keeps the candidate from being activated. A source that is down fails on
//! both, and proves nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use souk_domain::ids::ConnectionId;
use souk_sandbox::{
    Blame, Check, ConnectorInfo, EngineInfo, Facts, Fault, FaultKind, Grant, Limits, Need,
    PoolLimits, Request, Scope, Source,
};
use souk_store::connections::{self, Connection};

use super::error::ConnectorError;
use super::loaded::{find, scope_text};
use crate::App;
use crate::connections::source;

/// Connections that are tried per engine: enough to meet different servers, few enough to wait for.
const TRIED_MAX: i64 = 3;
/// Tries that happen at once.
const TRIES_MAX: usize = 8;
/// What one version may take to answer one of them.
const TRY_MAX: Duration = Duration::from_secs(10);
/// None begins later than this after the first: what is not tried proves nothing.
const CHECK_MAX: Duration = Duration::from_secs(15);
/// A ping answers one row.
const PING: (u32, u64) = (10, 64 * 1024);
/// No such host (RFC 2606): a connector that makes a request on its own learns nothing.
const NOWHERE: &str = "https://health-check.invalid";

/// Refuses a version that does not work. `before`: the version that runs now.
pub(super) async fn check(
    app: &App,
    scope: &Scope,
    candidate: &ConnectorInfo,
    before: Option<&str>,
) -> Result<(), ConnectorError> {
    check_empty(app, scope, candidate).await?;
    check_engines(app, scope, candidate, before).await?;
    let mut all = Vec::new();
    for slug in &candidate.engine_ids {
        let proven = app
            .db
            .ask(async |db| connections::proven(db, scope_text(scope), slug, TRIED_MAX).await);
        all.extend(proven.await?);
    }
    let until = Instant::now() + CHECK_MAX;
    for some in all.chunks(TRIES_MAX) {
        if Instant::now() >= until {
            break;
        }
        let tries = some
            .iter()
            .map(|one| check_proven(app, scope, candidate, before, one));
        for tried in futures_util::future::join_all(tries).await {
            tried?;
        }
    }
    Ok(())
}

/// An engine that connections name must not be lost with a version.
async fn check_engines(
    app: &App,
    scope: &Scope,
    candidate: &ConnectorInfo,
    before: Option<&str>,
) -> Result<(), ConnectorError> {
    let Some(before) = before.and_then(|version| find(app, scope, &candidate.name, version)) else {
        return Ok(());
    };
    for slug in &before.engine_ids {
        if candidate.engine_ids.contains(slug) {
            continue;
        }
        let named = app
            .db
            .ask(async |db| connections::of_engine(db, scope_text(scope), slug).await)
            .await?;
        if named > 0 {
            let reason = format!("it drops engine \"{slug}\", which {named} connections name");
            return Err(unhealthy(candidate, &reason));
        }
    }
    Ok(())
}

/// Settings that obey the connector's own schema must open a session.
async fn check_empty(
    app: &App,
    scope: &Scope,
    candidate: &ConnectorInfo,
) -> Result<(), ConnectorError> {
    let schema: serde_json::Value =
        serde_json::from_str(&candidate.settings_schema).unwrap_or_default();
    let requires = schema
        .get("required")
        .and_then(|required| required.as_array());
    let may_be_empty = requires.is_none_or(|required| required.is_empty());
    let (Some(engine), true, Some(Need::Http)) = (
        candidate.engine_ids.first(),
        may_be_empty,
        candidate.needs.first(),
    ) else {
        return Ok(());
    };
    let source = Source {
        company: candidate.company_id.clone().unwrap_or_default(),
        connection: ConnectionId::generate().to_string(),
        revision: 0,
        engine: engine.clone(),
        settings_json: "{}".to_owned(),
        grant: Grant::Http {
            base_url: NOWHERE.to_owned(),
            attach: Vec::new(),
            ca_pem: None,
        },
        limits: PoolLimits::default(),
    };
    match ping(app, scope, candidate, source).await {
        Err(fault) if fault.blame == Blame::Connector || fault.kind == FaultKind::Configuration => {
            Err(unhealthy(candidate, &format!("no session opens: {fault}")))
        }
        _ => Ok(()),
    }
}

/// A connection that answers on the version that runs must answer on the candidate. Each of them is told what its own schema asks for: what was renamed
/// or is asked for anew fails the candidate, and not both.
async fn check_proven(
    app: &App,
    scope: &Scope,
    candidate: &ConnectorInfo,
    before: Option<&str>,
    connection: &Connection,
) -> Result<(), ConnectorError> {
    let Some(Err(fault)) = answers(app, scope, candidate, connection).await else {
        return Ok(());
    };
    let worked = match before {
        Some(before) => match find(app, scope, &candidate.name, before) {
            Some(at_work) => {
                let tried = answers(app, scope, &at_work, connection).await;
                tried.is_some_and(|tried| tried.is_ok())
            }
            // Taken away meanwhile.
            None => false,
        },
        None => fault.blame == Blame::Connector,
    };
    match worked {
        true => {
            let reason = format!(
                "a connection of \"{}\" that works fails with it: {fault}",
                connection.engine
            );
            Err(unhealthy(candidate, &reason))
        }
        false => Ok(()),
    }
}

/// Whether a connection answers on this version. `None`: what it is opened with cannot be put together, which says nothing of the version.
async fn answers(
    app: &App,
    scope: &Scope,
    version: &ConnectorInfo,
    connection: &Connection,
) -> Option<Result<(), Fault>> {
    let engine = described(version, connection);
    let source = source::of_stored(app, connection, &engine).await.ok()?;
    let source = Source {
        connection: ConnectionId::generate().to_string(),
        ..source
    };
    Some(ping(app, scope, version, source).await)
}

async fn ping(
    app: &App,
    scope: &Scope,
    version: &ConnectorInfo,
    source: Source,
) -> Result<(), Fault> {
    let which = (scope, version.name.as_str(), version.version.as_str());
    let limits = Limits::new(PING.0, PING.1);
    let request = match souk_sandbox::platform_of(&source.engine) {
        None => Request::Ping(limits),
        Some(_) => Request::Check(Check {
            request_id: source.connection.clone(),
            now: app.clock.now().micros(),
            limits,
        }),
    };
    let deadline = Instant::now() + TRY_MAX;
    app.sandbox
        .probe(which, &Arc::new(source), request, deadline)
        .await
        .map(drop)
}

/// As much of an engine as a source is made from.
fn described(version: &ConnectorInfo, connection: &Connection) -> EngineInfo {
    EngineInfo {
        slug: connection.engine.clone(),
        title: connection.engine.clone(),
        dialect: String::new(),
        credential_types: Vec::new(),
        abilities: Vec::new(),
        facts: Facts::default(),
        need: version.needs.first().copied().unwrap_or(Need::Http),
        settings_schema: version.settings_schema.clone(),
        connector: version.name.clone(),
        version: version.version.clone(),
        digest: version.digest.clone(),
    }
}

fn unhealthy(candidate: &ConnectorInfo, reason: &str) -> ConnectorError {
    let (name, version) = (&candidate.name, &candidate.version);
    ConnectorError::Unhealthy(format!(
        "connector \"{name}\" {version} failed its health check: {reason}"
    ))
}
