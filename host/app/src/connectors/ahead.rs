//! Compiling a version before it is loaded, where it was compiled on another host only. Whoever loads one has everybody wait who changes connectors here,
//! and compiling may take minutes: so that is done before, in turns with uploads.

use std::time::{Duration, Instant};

use souk_sandbox::Scope;
use souk_store::connectors::{self, Choice, PLATFORM, StoredConnector};

use super::compile_time::took;
use super::error::ConnectorError;
use super::loaded::{find, scope_from, scope_text};
use super::registry::{Key, key_of};
use super::shelf;
use crate::App;

/// What this host could not do takes a while to mend, and costs something to try.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(30);

/// Compiles a version that somebody wants loaded, if it was not compiled here before, and waits for that.
pub(super) async fn compile(
    app: &App,
    scope: &Scope,
    name: &str,
    version: &str,
) -> Result<(), ConnectorError> {
    match to_compile(app, scope, name, version).await? {
        Some(row) => compiled(app, &row, scope).await,
        None => Ok(()),
    }
}

/// A version that is loaded here by compiling it, and by nothing less.
pub(super) async fn to_compile(
    app: &App,
    scope: &Scope,
    name: &str,
    version: &str,
) -> Result<Option<StoredConnector>, ConnectorError> {
    let is_loaded = find(app, scope, name, version).is_some();
    let text = scope_text(scope);
    let row = app
        .db
        .ask(async |db| connectors::get(db, text, name, version).await);
    // What comes with the host has no row, and what there is not is told by who loads it.
    let Some(row) = row.await? else {
        return Ok(None);
    };
    if is_loaded && !app.connectors.is_replaced(&row) {
        return Ok(None);
    }
    Ok(match app.sandbox.has_code(&row.digest, scope).await {
        true => None,
        false => Some(row),
    })
}

/// Whether a version can be loaded in a moment. If not, it is compiled from now on, and what was chosen is looked at again behind that.
pub(super) async fn is_ready(app: &App, row: &StoredConnector) -> bool {
    let key = key_of(row);
    if app.connectors.has(row) || app.connectors.is_uncompiled(row) {
        return true;
    }
    let scope = scope_from(&row.scope);
    if !is_under_way(app, &key) && app.sandbox.has_code(&row.digest, &scope).await {
        return true;
    }
    if app.connectors.compiling.lock().insert(key.clone()) {
        tokio::spawn(under_way(app.clone(), row.clone(), scope, key));
    }
    false
}

/// The same of what was chosen of a connector. `row`: of its version, if that is stored.
pub(super) async fn is_choice_ready(
    app: &App,
    choice: &Choice,
    row: Option<&StoredConnector>,
) -> bool {
    let place = (choice.scope.clone(), choice.name.clone());
    let is_applied = app.connectors.applied.lock().get(&place) == Some(choice);
    match row {
        Some(row) if choice.deactivated_at.is_none() && !is_applied => is_ready(app, row).await,
        _ => true,
    }
}

pub(super) fn is_under_way(app: &App, key: &Key) -> bool {
    app.connectors.compiling.lock().contains(key)
}

async fn under_way(app: App, row: StoredConnector, scope: Scope, key: Key) {
    let done = compiled(&app, &row, &scope).await;
    let is_kept = done.is_ok() && app.sandbox.has_code(&row.digest, &scope).await;
    match done {
        Ok(()) if is_kept => {}
        Err(error @ (ConnectorError::DiskFull(_) | ConnectorError::Store(_))) => {
            tracing::error!(scope = row.scope, name = row.name, version = row.version, %error, "cannot compile a stored connector now; trying again");
            if row.scope == PLATFORM {
                let mut unloadable = app.connectors.unloadable.lock();
                unloadable.insert(key.clone(), error.to_string());
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
        // Its load says why, or compiles it where nothing can be kept.
        Ok(()) | Err(_) => {
            let mut uncompiled = app.connectors.uncompiled.lock();
            uncompiled.insert(key.clone(), row.digest.clone());
        }
    }
    app.connectors.compiling.lock().remove(&key);
    app.connectors.changed.notify_one();
}

/// In turns with uploads, and on its company's account.
pub(super) async fn compiled(
    app: &App,
    row: &StoredConnector,
    scope: &Scope,
) -> Result<(), ConnectorError> {
    let _turn = app.connectors.turns.take(scope).await?;
    let wasm = shelf::bytes(app, row).await?;
    let began = Instant::now();
    let compiled = app.sandbox.compile(wasm, scope).await;
    if let Scope::Company(company) = scope {
        let took = took(compiled.as_ref().ok().copied(), began);
        app.connectors.compile_time.spend(company, took, began);
    }
    compiled?;
    Ok(())
}
