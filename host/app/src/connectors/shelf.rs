//! Versions of companies' connectors that are in the store and not in memory.
//!
//! A company's versions are many and mostly unused: only the one at work and the one before it are kept loaded, and only the first of
//! them at a start. The others are listed from what was written down when they were uploaded, and loaded when somebody asks for them.

use serde::{Deserialize, Serialize};
use souk_sandbox::{ConnectorInfo, LoadError, Need, Scope, SessionCount, Status};
use souk_store::Write;
use souk_store::connectors::{self, CHUNK_BYTES, PLATFORM, StoredConnector};
use souk_store::db::READ_WITHIN;

use super::error::ConnectorError;
use super::loaded::{find, scope_of, scope_text};
use super::registry::{key, key_of};
use crate::App;

/// What a component says about itself, as it is kept in the store.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Described {
    engines: Vec<String>,
    needs: Vec<String>,
    wit_version: String,
    settings_schema: String,
    imports: Vec<String>,
    warnings: Vec<String>,
    exports: Vec<String>,
    compile_ms: u64,
}

pub(super) fn described(info: &ConnectorInfo) -> String {
    let word = |need: &Need| match need {
        Need::Tcp => "tcp".to_owned(),
        Need::Http => "http".to_owned(),
        Need::Directory => "directory".to_owned(),
    };
    let described = Described {
        engines: info.engine_ids.clone(),
        needs: info.needs.iter().map(word).collect(),
        wit_version: info.wit_version.clone(),
        settings_schema: info.settings_schema.clone(),
        imports: info.imports.clone(),
        warnings: info.warnings.clone(),
        exports: info.exports.clone(),
        compile_ms: info.compile_ms,
    };
    serde_json::to_string(&described).unwrap_or_default()
}

/// Whether a version says of itself what it said when it was uploaded: its schema was checked then, and it may throw dice.
fn is_as_described(row: &StoredConnector, info: &ConnectorInfo) -> bool {
    let described = row.described.as_deref();
    let described = described.and_then(|text| serde_json::from_str(text).ok());
    described.is_none_or(|described: Described| {
        let Described {
            engines,
            settings_schema: schema,
            ..
        } = described;
        // Earlier releases have not kept all of it.
        (schema.is_empty() || schema == info.settings_schema)
            && (engines.is_empty() || engines == info.engine_ids)
    })
}

/// A version as it is listed while nobody has loaded it.
pub(super) fn unloaded(row: StoredConnector) -> ConnectorInfo {
    let described = row.described.as_deref();
    let described: Described = described
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let need = |word: &String| match word.as_str() {
        "tcp" => Some(Need::Tcp),
        "http" => Some(Need::Http),
        "directory" => Some(Need::Directory),
        _ => None,
    };
    let (scope, company_id) = match row.scope.as_str() {
        PLATFORM => ("platform", None),
        _ => ("company", Some(row.scope)),
    };
    ConnectorInfo {
        name: row.name,
        version: row.version,
        digest: row.digest,
        scope,
        company_id,
        engine_ids: described.engines,
        needs: described.needs.iter().filter_map(need).collect(),
        wit_version: described.wit_version,
        settings_schema: described.settings_schema,
        imports: described.imports,
        warnings: described.warnings,
        exports: described.exports,
        size_bytes: u64::try_from(row.size_bytes).unwrap_or_default(),
        compile_ms: described.compile_ms,
        status: match row.error {
            Some(_) => Status::Rejected,
            None => Status::Staged,
        },
        error: row.error,
        loaded_at: row.created_at.micros(),
        active_since: None,
        trial: None,
        sessions: SessionCount::default(),
        calls_total: 0,
        traps_total: 0,
        p50_ms: 0.0,
        p95_ms: 0.0,
    }
}

/// A version that is loaded, or that the store has and is loaded now. The caller holds `changing`.
pub(super) async fn fetch(
    app: &App,
    scope: &Scope,
    name: &str,
    version: &str,
) -> Result<ConnectorInfo, ConnectorError> {
    let loaded = find(app, scope, name, version);
    let text = scope_text(scope);
    let row = app
        .db
        .ask(async |db| connectors::get(db, text, name, version).await);
    match (loaded, row.await?) {
        (Some(_), Some(row)) if app.connectors.is_replaced(&row) => load(app, &row, scope).await,
        (Some(info), _) => Ok(info),
        (None, Some(row)) => load(app, &row, scope).await,
        (None, None) => Err(ConnectorError::NotFound),
    }
}

/// Refuses to write down that a version takes calls which another host has deleted, though it is loaded here: nobody could load it again. Until `tx`
/// ends it is not deleted.
pub(super) async fn lock(
    app: &App,
    tx: &mut Write,
    of: (&str, &str, &str),
) -> Result<(), ConnectorError> {
    let (scope, name, version) = of;
    // What comes with the host, or lies in the operator's directory, has no row.
    let is_stored = {
        let stored = app.connectors.stored.lock();
        stored.contains_key(&key(scope, name, version))
    };
    match !is_stored || connectors::lock(tx, of).await? {
        true => Ok(()),
        false => Err(ConnectorError::NotFound),
    }
}

/// As it is, loaded or not.
pub(super) async fn seen(
    app: &App,
    scope: &Scope,
    name: &str,
    version: &str,
) -> Result<ConnectorInfo, ConnectorError> {
    if let Some(info) = find(app, scope, name, version) {
        return Ok(info);
    }
    let text = scope_text(scope);
    let row = app
        .db
        .ask(async |db| connectors::get(db, text, name, version).await);
    row.await?.map(unloaded).ok_or(ConnectorError::NotFound)
}

/// Loads what the store has, whose bytes are read where it was not compiled here before.
pub(super) async fn load(
    app: &App,
    row: &StoredConnector,
    scope: &Scope,
) -> Result<ConnectorInfo, ConnectorError> {
    let_go_of_replaced(app, row, scope);
    let info = match app.sandbox.load_kept(&row.digest, scope.clone()).await {
        Err(LoadError::NotKept) => {
            let wasm = bytes(app, row).await?;
            app.sandbox.load(wasm, scope.clone()).await?
        }
        kept => kept?,
    };
    if info.digest != row.digest || info.name != row.name || info.version != row.version {
        return Err(ConnectorError::Internal(
            "its bytes in the store are not those that were uploaded".to_owned(),
        ));
    }
    if !is_as_described(row, &info) {
        let _ = app.sandbox.remove(scope, &info.name, &info.version);
        let reason = "it describes itself otherwise than when it was uploaded, and looked at";
        return Err(ConnectorError::Invalid(reason.to_owned()));
    }
    let digest = row.digest.clone();
    app.connectors.stored.lock().insert(key_of(row), digest);
    tracing::info!(
        scope = row.scope,
        name = row.name,
        version = row.version,
        "stored connector loaded"
    );
    Ok(info)
}

/// Lets go of what was loaded of a version that has other bytes by now: nobody runs what was deleted. If it is at work, nothing is, for as long as it takes
/// to load what is compiled, and to put that to work.
fn let_go_of_replaced(app: &App, row: &StoredConnector, scope: &Scope) {
    if !app.connectors.is_replaced(row) {
        return;
    }
    let (name, version) = (row.name.as_str(), row.version.as_str());
    tracing::info!(
        scope = row.scope,
        name,
        version,
        "a version was deleted and uploaded with other bytes: those take its place"
    );
    let status = find(app, scope, name, version).map(|info| info.status);
    match status {
        Some(Status::Active) => drop(app.sandbox.deactivate(scope, name)),
        Some(Status::Canary) => app.sandbox.end_canary(scope, name),
        _ => {}
    }
    if matches!(status, Some(Status::Active | Status::Canary)) {
        // Whichever canary that was, it is begun again if the store has it.
        app.connectors.forget_canary(&row.scope, name);
    }
    let _ = app.sandbox.remove(scope, name, version);
    app.connectors.stored.lock().remove(&key_of(row));
}

pub(super) async fn bytes(app: &App, row: &StoredConnector) -> Result<Vec<u8>, ConnectorError> {
    let read = async {
        let mut read = app.db.read().await?;
        connectors::bytes(&mut read, &row.digest, row.size_bytes).await
    };
    let wasm = app.db.answered(READ_WITHIN, read).await?;
    wasm.ok_or_else(|| ConnectorError::Internal("a piece of it is missing in the store".to_owned()))
}

/// Lets go of a company's versions of a connector in memory, but for the one at work, its canary and `kept`. The calls that they have end first.
pub(super) fn put_back(app: &App, scope: &Scope, name: &str, kept: Option<&str>) {
    if *scope == Scope::Platform {
        return;
    }
    for info in app.sandbox.connectors() {
        let stays = scope_of(&info) != *scope
            || info.name != name
            || matches!(info.status, Status::Active | Status::Canary)
            || kept == Some(info.version.as_str());
        if !stays && app.sandbox.remove(scope, &info.name, &info.version).is_ok() {
            app.connectors
                .stored
                .lock()
                .remove(&key(scope_text(scope), &info.name, &info.version));
        }
    }
}

/// Lets go of a version that was staged and is not at work.
pub(super) fn put_away(app: &App, scope: &Scope, info: &ConnectorInfo) {
    // Another request may have put it to work meanwhile: the registry then keeps it.
    if *scope != Scope::Platform
        && info.status == Status::Staged
        && app.sandbox.remove(scope, &info.name, &info.version).is_ok()
    {
        let key = key(scope_text(scope), &info.name, &info.version);
        app.connectors.stored.lock().remove(&key);
    }
}

/// Lets go of a version that was refused. What was compiled for it goes when the store has been asked whether somebody keeps the same bytes.
pub(super) fn discard(app: &App, scope: &Scope, info: &ConnectorInfo) {
    let _ = app.sandbox.remove(scope, &info.name, &info.version);
    app.connectors.changed.notify_one();
}

/// Deletes the pieces of a component that no connector names any more, a few in each transaction, so that charges never wait long.
pub(super) async fn forget_bytes(
    app: &App,
    digest: &str,
    size_bytes: i64,
) -> Result<(), ConnectorError> {
    let now = app.clock.now();
    let pieces = usize::try_from(size_bytes)
        .unwrap_or_default()
        .div_ceil(CHUNK_BYTES);
    for piece in 0..pieces {
        app.db
            .write(async |tx| connectors::drop_chunk(tx, digest, piece as i64, now).await)
            .await?;
    }
    Ok(())
}
