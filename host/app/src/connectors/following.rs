//! Making the sandbox agree with the store: at the start, and whenever this or another host has changed it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use souk_sandbox::{ConnectorInfo, LoadError, Scope, Status};
use souk_store::connectors::{self, PLATFORM, StoredConnector, canaries};
use souk_store::db::READ_WITHIN;
use souk_store::{Change, Topic};

use super::error::ConnectorError;
use super::loaded::{find, scope_from, scope_text};
use super::registry::{Key, key, key_of};
use super::{ahead, canary, chosen, retreat, shelf, withdrawal};
use crate::App;

/// Pieces of an upload that was broken off, once it is certain that it was.
const PIECES_KEPT: Duration = Duration::from_secs(24 * 3600);
/// The store may be away for a moment; what a change asks for is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Loads the bundled connectors and what the store holds, then follows the store's changes on the
/// current runtime. A stored connector that cannot be loaded is logged and left out.
pub async fn start(app: &App, bundle: &[(&str, &'static [u8])]) -> Result<(), ConnectorError> {
    let loads = app.sandbox.load_all(bundle).await;
    for (loaded, (file, _)) in loads.into_iter().zip(bundle) {
        let info = loaded.map_err(|error| {
            ConnectorError::Internal(format!("bundled connector {file}: {error}"))
        })?;
        app.connectors
            .bundled
            .lock()
            .insert(info.name, info.version);
    }
    app.db.answered(READ_WITHIN, reconcile(app, true)).await?;
    sweep(app).await?;
    // The store announces a choice when it is made. Here it is carried out later, and what was loaded in between speaks the dialect of the
    // version before; of what the operator's directory activates, the store knows nothing.
    let announce = app.db.announcer();
    app.sandbox.on_switch(move |scope| {
        announce(&Change::One {
            topic: Topic::Connector,
            id: scope_text(scope).to_owned(),
        });
    });
    tokio::spawn(follow(app.clone()));
    tokio::spawn(retreat::watch(app.clone()));
    tokio::spawn(withdrawal::watch(app.clone()));
    Ok(())
}

/// Makes the sandbox agree with the store. Called under `changing`, where nobody waits for what has to be compiled first (`ahead`), or at the start, before
/// anything else runs.
async fn reconcile(app: &App, is_start: bool) -> Result<(), ConnectorError> {
    let (rows, chosen, tried_out) = {
        let mut db = app.db.read().await?;
        (
            connectors::list(&mut db).await?,
            connectors::choices(&mut db).await?,
            canaries::all(&mut db).await?,
        )
    };
    // What was compiled and cannot be loaded has lost its code by that: it is not compiled for the same again, and again.
    let mut refused = HashSet::new();
    let mut replaced = Vec::new();
    // A company's versions stay where they are until one is chosen, or asked for.
    for row in rows.iter().filter(|row| row.scope == PLATFORM) {
        if app.connectors.has(row) || !(is_start || ahead::is_ready(app, row).await) {
            continue;
        }
        if is_replaced_at_work(app, row) {
            // What was chosen takes its place first.
            replaced.push(row);
        } else if !load(app, row).await {
            refused.insert(key_of(row));
        }
    }
    let keyed = |row| (key_of(row), row);
    let wanted: HashMap<Key, &StoredConnector> = rows.iter().map(keyed).collect();
    let may_wait = |key: &Key| !is_start && !refused.contains(key);
    for choice in &chosen {
        let key = key(&choice.scope, &choice.name, &choice.version);
        let row = wanted.get(&key).copied();
        if !may_wait(&key) || ahead::is_choice_ready(app, choice, row).await {
            chosen::follow_choice(app, choice).await?;
        }
    }
    let mut ready = Vec::with_capacity(tried_out.len());
    for canary in tried_out {
        let key = key(&canary.scope, &canary.name, &canary.version);
        let is_ready = match wanted.get(&key) {
            Some(row) if may_wait(&key) => ahead::is_ready(app, row).await,
            _ => true,
        };
        if is_ready {
            ready.push(canary);
        }
    }
    canary::follow(app, &ready).await?;
    for row in replaced {
        // Where it was to take its place it has been tried already.
        if app.connectors.is_replaced(row) && !is_replaced_at_work(app, row) {
            load(app, row).await;
        }
    }
    let_go(app, &wanted);
    Ok(())
}

/// Loads what the store has of the platform's. Returns whether that is possible.
async fn load(app: &App, row: &StoredConnector) -> bool {
    let key = key_of(row);
    match shelf::load(app, row, &Scope::Platform).await {
        Ok(_) => {
            app.connectors.unloadable.lock().remove(&key);
            true
        }
        Err(error) => {
            tracing::error!(scope = row.scope, name = row.name, version = row.version, %error, "cannot load a stored connector");
            let mut unloadable = app.connectors.unloadable.lock();
            unloadable.insert(key, error.to_string());
            false
        }
    }
}

/// Whether other bytes of the platform's version take calls than the store has.
fn is_replaced_at_work(app: &App, row: &StoredConnector) -> bool {
    let takes_calls = |info: ConnectorInfo| matches!(info.status, Status::Active | Status::Canary);
    app.connectors.is_replaced(row)
        && find(app, &Scope::Platform, &row.name, &row.version).is_some_and(takes_calls)
}

/// Lets go of what the store has no more, or with other bytes.
fn let_go(app: &App, wanted: &HashMap<Key, &StoredConnector>) {
    let gone: Vec<Key> = app
        .connectors
        .stored
        .lock()
        .iter()
        .filter(|(key, digest)| wanted.get(*key).is_none_or(|row| row.digest != **digest))
        .map(|(key, _)| key.clone())
        .collect();
    app.connectors
        .unloadable
        .lock()
        .retain(|key, _| wanted.contains_key(key));
    app.connectors
        .uncompiled
        .lock()
        .retain(|key, digest| wanted.get(key).is_some_and(|row| row.digest == *digest));
    for key in gone {
        let (scope, name, version) = &key;
        match app.sandbox.remove(&scope_from(scope), name, version) {
            Ok(()) | Err(LoadError::Unknown { .. }) => {
                app.connectors.stored.lock().remove(&key);
            }
            // Its other bytes take its place when they are compiled.
            Err(LoadError::Active { .. } | LoadError::Canary { .. })
                if wanted.contains_key(&key) => {}
            Err(error) => {
                tracing::warn!(scope, name, version, %error, "cannot remove a deleted connector")
            }
        }
    }
}

async fn follow(app: App) {
    loop {
        let changed = app.connectors.changed.notified();
        match app.connectors.is_behind.swap(false, Ordering::AcqRel) {
            true => {
                let _ = tokio::time::timeout(ahead::RETRY_AFTER, changed).await;
            }
            false => changed.await,
        }
        let reconciled = {
            let _changing = app.connectors.changing.lock().await;
            app.db.answered(READ_WITHIN, reconcile(&app, false)).await
        };
        if let Err(error) = reconciled {
            tracing::warn!(%error, "cannot follow a change of connectors; trying again");
            tokio::time::sleep(RETRY_AFTER).await;
            app.connectors.changed.notify_one();
        }
        if app.connectors.is_complete.load(Ordering::Acquire) {
            sweep_code(&app).await;
        }
    }
}

/// Removes what was compiled for versions that are gone: now, when everything that a start loads is loaded (the operator's directory, too), and
/// whenever versions change from now on.
pub async fn loaded_all(app: &App) {
    app.connectors.is_complete.store(true, Ordering::Release);
    sweep_code(app).await;
}

/// Not under `changing`: nobody who puts a version to work or takes it off waits for files. A version that is stored between the two steps is
/// compiled once more. Nothing depends on it: a store that is away for a moment stops no host.
async fn sweep_code(app: &App) {
    match app.db.answered(READ_WITHIN, stored_digests(app)).await {
        Ok(digests) => app.sandbox.keep_code_of(digests).await,
        Err(error) => {
            tracing::warn!(%error, "cannot look for compiled code that nobody needs; with the next change again");
        }
    }
}

async fn stored_digests(app: &App) -> Result<HashSet<String>, ConnectorError> {
    let rows = connectors::list(&mut *app.db.read().await?).await?;
    Ok(rows.into_iter().map(|row| row.digest).collect())
}

async fn sweep(app: &App) -> Result<(), ConnectorError> {
    let swept = app
        .db
        .write(async |tx| connectors::sweep_chunks(tx, app.clock.now().before(PIECES_KEPT)).await)
        .await?;
    if swept > 0 {
        tracing::info!(pieces = swept, "deleted pieces of broken connector uploads");
    }
    Ok(())
}
