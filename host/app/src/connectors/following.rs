//! Making the sandbox agree with the store: at the start, and whenever this or another host has changed it.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use souk_sandbox::{LoadError, Scope};
use souk_store::connectors::{self, PLATFORM, canaries};
use souk_store::db::READ_WITHIN;
use souk_store::{Change, Topic};

use super::error::ConnectorError;
use super::loaded::{scope_from, scope_text};
use super::registry::{Key, key};
use super::{canary, chosen, retreat, shelf, withdrawal};
use crate::App;

/// Pieces of an upload that was broken off, once it is certain that it was.
const PIECES_KEPT: Duration = Duration::from_secs(24 * 3600);
/// The store may be away for a moment; what a change asks for is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// What this host could not do takes longer to mend, and costs more to try.
const BEHIND_RETRY_AFTER: Duration = Duration::from_secs(30);

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
    app.db.answered(READ_WITHIN, reconcile(app)).await?;
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

/// Makes the sandbox agree with the store. Called under `changing`, or before anything else runs.
async fn reconcile(app: &App) -> Result<(), ConnectorError> {
    let (rows, chosen, tried_out) = {
        let mut db = app.db.read().await?;
        (
            connectors::list(&mut db).await?,
            connectors::choices(&mut db).await?,
            canaries::all(&mut db).await?,
        )
    };
    // A company's versions stay where they are until one is chosen, or asked for.
    for row in rows.iter().filter(|row| row.scope == PLATFORM) {
        let key = key(&row.scope, &row.name, &row.version);
        if app.connectors.stored.lock().contains(&key) {
            continue;
        }
        match shelf::load(app, row, &Scope::Platform).await {
            Ok(_) => drop(app.connectors.unloadable.lock().remove(&key)),
            Err(error) => {
                tracing::error!(scope = row.scope, name = row.name, version = row.version, %error, "cannot load a stored connector");
                let mut unloadable = app.connectors.unloadable.lock();
                unloadable.insert(key, error.to_string());
            }
        }
    }
    for choice in &chosen {
        chosen::follow_choice(app, choice).await?;
    }
    canary::follow(app, &tried_out).await?;
    let wanted: HashSet<Key> = rows
        .iter()
        .map(|row| key(&row.scope, &row.name, &row.version))
        .collect();
    let gone: Vec<Key> = app
        .connectors
        .stored
        .lock()
        .difference(&wanted)
        .cloned()
        .collect();
    app.connectors
        .unloadable
        .lock()
        .retain(|key, _| wanted.contains(key));
    for (scope, name, version) in gone {
        match app.sandbox.remove(&scope_from(&scope), &name, &version) {
            Ok(()) | Err(LoadError::Unknown { .. }) => {
                app.connectors.stored.lock().remove(&(scope, name, version));
            }
            Err(error) => {
                tracing::warn!(scope, name, version, %error, "cannot remove a deleted connector")
            }
        }
    }
    Ok(())
}

async fn follow(app: App) {
    loop {
        let changed = app.connectors.changed.notified();
        match app.connectors.is_behind.swap(false, Ordering::AcqRel) {
            true => {
                let _ = tokio::time::timeout(BEHIND_RETRY_AFTER, changed).await;
            }
            false => changed.await,
        }
        let reconciled = {
            let _changing = app.connectors.changing.lock().await;
            app.db.answered(READ_WITHIN, reconcile(&app)).await
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
