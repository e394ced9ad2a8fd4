//! Which connectors run here: the bundled ones, those that were uploaded, and who chose which version.
//!
//! The store says what should run ([`souk_store::connectors`]); the sandbox is made to agree, at start
//! and whenever this or another host changes the store ([`reconcile`]). A version that fails is left
//! where it is: what ran before goes on. See docs/decisions/uploaded-connectors-live-in-the-store.md.

mod health;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use parking_lot::Mutex;
use souk_domain::ids::{CompanyId, KeyId};
pub use souk_sandbox::{ConnectorInfo, Scope};
use souk_sandbox::{EngineInfo, LoadError, Status};
use souk_store::connectors::{self, CHUNK_BYTES, Choice, PLATFORM, StoredConnector};
use souk_store::reference::{self, StorageEngine};
use souk_store::{Change, Db, StoreError, Topic};
use tokio::sync::{Notify, Semaphore};

use crate::App;
use crate::connections::need;

/// Components with a language runtime and a database library inside stay below 20 MiB.
pub const COMPONENT_BYTES_MAX: usize = 64 << 20;
/// Uploads held in memory at once; one more waits.
const UPLOADS_MAX: usize = 2;
/// A client that sends nothing for so long has gone.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Versions that one scope may keep of all its connectors: each is compiled and held by every host.
const VERSIONS_MAX: usize = 50;
/// Pieces of an upload that was broken off, once it is certain that it was.
const PIECES_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Hosts that give engines their ids at the same moment: one wins, the others find the id.
const ENGINE_ATTEMPTS: usize = 5;
/// The store may be away for a moment; what a change asks for is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub enum ConnectorError {
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    Unhealthy(String),
    #[error("there is no such connector or version")]
    NotFound,
    #[error("a component may have at most {} bytes", COMPONENT_BYTES_MAX)]
    TooLarge,
    #[error("the upload broke off: {0}")]
    Aborted(String),
    #[error("the sandbox failed: {0}")]
    Internal(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<LoadError> for ConnectorError {
    fn from(error: LoadError) -> ConnectorError {
        let text = error.to_string();
        match error {
            LoadError::Invalid(_) | LoadError::Compile(_) => ConnectorError::Invalid(text),
            LoadError::Conflict { .. } | LoadError::Active { .. } | LoadError::NoEarlier { .. } => {
                ConnectorError::Conflict(text)
            }
            LoadError::Unknown { .. } => ConnectorError::NotFound,
            LoadError::Unhealthy { .. } => ConnectorError::Unhealthy(text),
            LoadError::Internal(_) => ConnectorError::Internal(text),
        }
    }
}

/// What this host remembers about connectors beside the sandbox.
pub struct Registry {
    /// What was loaded from the store: scope, name, version. The rest is bundled or from a directory.
    stored: Mutex<HashSet<Key>>,
    /// The bundled version of each connector: where a choice without a row leads.
    bundled: Mutex<BTreeMap<String, String>>,
    /// The choices that were carried out, by scope and name.
    applied: Mutex<BTreeMap<(String, String), Choice>>,
    changed: Arc<Notify>,
    uploads: Semaphore,
    /// One at a time changes what runs.
    changing: tokio::sync::Mutex<()>,
}

type Key = (String, String, String);

impl Registry {
    pub fn new(db: &Db) -> Registry {
        let changed = Arc::new(Notify::new());
        let notify = changed.clone();
        db.on_change(Box::new(move |change| {
            if matches!(
                change,
                Change::Everything
                    | Change::One {
                        topic: Topic::Connector,
                        ..
                    }
            ) {
                notify.notify_one();
            }
        }));
        Registry {
            stored: Mutex::default(),
            bundled: Mutex::default(),
            applied: Mutex::default(),
            changed,
            uploads: Semaphore::new(UPLOADS_MAX),
            changing: tokio::sync::Mutex::default(),
        }
    }
}

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
    reconcile(app).await?;
    sweep(app).await?;
    tokio::spawn(follow(app.clone()));
    Ok(())
}

/// Receives, checks, stores and stages a component; with `activate` it is put to work as well.
pub async fn upload<S, E>(
    app: &App,
    scope: &Scope,
    by: &KeyId,
    body: S,
    activate: bool,
) -> Result<ConnectorInfo, ConnectorError>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::fmt::Display,
{
    let _turn = app
        .connectors
        .uploads
        .acquire()
        .await
        .map_err(|error| ConnectorError::Internal(error.to_string()))?;
    let wasm = receive(body).await?;
    let before = versions(app, scope);
    let info = app.sandbox.load(&wasm, scope.clone()).await?;
    let is_new = !before.contains(&(info.name.clone(), info.version.clone()));
    let kept = match is_new && before.len() >= VERSIONS_MAX {
        true => Err(ConnectorError::Conflict(format!(
            "there are {VERSIONS_MAX} connector versions already: delete some first"
        ))),
        false => keep(app, scope, by, &info, &wasm).await,
    };
    if let Err(error) = kept {
        if is_new {
            let _ = app.sandbox.remove(scope, &info.name, &info.version);
        }
        return Err(error);
    }
    match activate {
        true => self::activate(app, scope, &info.name, &info.version).await,
        false => Ok(info),
    }
}

/// Sends new requests to a version, if it is healthy, and remembers that for every host and restart.
pub async fn activate(
    app: &App,
    scope: &Scope,
    name: &str,
    version: &str,
) -> Result<ConnectorInfo, ConnectorError> {
    let _changing = app.connectors.changing.lock().await;
    let candidate = find(app, scope, name, version).ok_or(ConnectorError::NotFound)?;
    let before = active(app, scope, name);
    if before.as_deref() != Some(version) {
        health::check(app, scope, &candidate, before.as_deref()).await?;
    }
    let info = app.sandbox.activate(scope, name, version).await?;
    if before.as_deref() != Some(version) {
        remember(app, scope, name, version, before).await?;
    }
    Ok(info)
}

/// Activates the version that was active before; a second rollback returns.
pub async fn rollback(
    app: &App,
    scope: &Scope,
    name: &str,
) -> Result<ConnectorInfo, ConnectorError> {
    let _changing = app.connectors.changing.lock().await;
    let current = active(app, scope, name).ok_or(ConnectorError::NotFound)?;
    let choice = connectors::choice_of(&mut *app.db.read().await?, scope_text(scope), name).await?;
    let previous = choice
        .and_then(|choice| choice.previous_version)
        .filter(|version| find(app, scope, name, version).is_some());
    let Some(previous) = previous else {
        return Err(LoadError::NoEarlier {
            name: name.to_owned(),
        }
        .into());
    };
    let info = app.sandbox.activate(scope, name, &previous).await?;
    remember(app, scope, name, &previous, Some(current)).await?;
    Ok(info)
}

/// Deletes an uploaded version that is not active.
pub async fn remove(
    app: &App,
    scope: &Scope,
    name: &str,
    version: &str,
) -> Result<(), ConnectorError> {
    let _changing = app.connectors.changing.lock().await;
    let info = find(app, scope, name, version).ok_or(ConnectorError::NotFound)?;
    if info.status == Status::Active {
        return Err(LoadError::Active {
            name: name.to_owned(),
            version: version.to_owned(),
        }
        .into());
    }
    let text = scope_text(scope);
    let mut tx = app.db.write().await?;
    let chosen = connectors::choice_of(&mut tx, text, name).await?;
    if chosen.is_some_and(|choice| choice.version == version) {
        return Err(LoadError::Active {
            name: name.to_owned(),
            version: version.to_owned(),
        }
        .into());
    }
    if !connectors::delete(&mut tx, text, name, version).await? {
        return Err(ConnectorError::Conflict(format!(
            "connector \"{name}\" {version} is part of this host: it cannot be deleted"
        )));
    }
    connectors::forget_previous(&mut tx, text, name, version).await?;
    tx.touch(Topic::Connector, name);
    tx.commit().await?;
    app.connectors
        .stored
        .lock()
        .remove(&key(text, name, version));
    app.sandbox.remove(scope, name, version)?;
    Ok(())
}

/// Makes the sandbox agree with the store. Called under `changing`, or before anything else runs.
async fn reconcile(app: &App) -> Result<(), ConnectorError> {
    let (rows, chosen) = {
        let mut db = app.db.read().await?;
        (
            connectors::list(&mut db).await?,
            connectors::choices(&mut db).await?,
        )
    };
    for row in &rows {
        let key = key(&row.scope, &row.name, &row.version);
        if app.connectors.stored.lock().contains(&key) {
            continue;
        }
        match load_stored(app, row).await {
            Ok(()) => drop(app.connectors.stored.lock().insert(key)),
            Err(error) => {
                tracing::error!(scope = row.scope, name = row.name, version = row.version, %error, "cannot load a stored connector")
            }
        }
    }
    for choice in &chosen {
        let scope = scope_from(&choice.scope);
        // A choice is carried out once: what the operator's connector directory activates later stays.
        let place = (choice.scope.clone(), choice.name.clone());
        let before = app.connectors.applied.lock().insert(place, choice.clone());
        let is_active = active(app, &scope, &choice.name).as_deref() == Some(&choice.version);
        if is_active || before.as_ref() == Some(choice) {
            continue;
        }
        match app
            .sandbox
            .activate(&scope, &choice.name, &choice.version)
            .await
        {
            Ok(_) => {}
            // A bundled version that an older host brought along: the one of this host takes its place.
            Err(LoadError::Unknown { .. }) => tracing::info!(
                scope = choice.scope,
                name = choice.name,
                version = choice.version,
                "the chosen version is not here"
            ),
            Err(error) => {
                tracing::error!(scope = choice.scope, name = choice.name, version = choice.version, %error, "cannot activate the chosen version")
            }
        }
    }
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
        app.connectors.changed.notified().await;
        let _changing = app.connectors.changing.lock().await;
        if let Err(error) = reconcile(&app).await {
            tracing::warn!(%error, "cannot follow a change of connectors; trying again");
            tokio::time::sleep(RETRY_AFTER).await;
            app.connectors.changed.notify_one();
        }
    }
}

async fn load_stored(app: &App, row: &StoredConnector) -> Result<(), ConnectorError> {
    let wasm = connectors::bytes(&mut *app.db.read().await?, &row.digest, row.size_bytes).await?;
    let wasm = wasm.ok_or_else(|| {
        ConnectorError::Internal("a piece of it is missing in the store".to_owned())
    })?;
    let info = app.sandbox.load(&wasm, scope_from(&row.scope)).await?;
    match info.digest == row.digest && info.name == row.name && info.version == row.version {
        true => Ok(()),
        false => Err(ConnectorError::Internal(
            "its bytes in the store are not those that were uploaded".to_owned(),
        )),
    }
}

async fn sweep(app: &App) -> Result<(), ConnectorError> {
    let mut tx = app.db.write().await?;
    let swept = connectors::sweep_chunks(&mut tx, app.clock.now().before(PIECES_KEPT)).await?;
    tx.commit().await?;
    if swept > 0 {
        tracing::info!(pieces = swept, "deleted pieces of broken connector uploads");
    }
    Ok(())
}

async fn receive<S, E>(mut body: S) -> Result<Vec<u8>, ConnectorError>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::fmt::Display,
{
    let mut wasm = Vec::new();
    loop {
        let next = tokio::time::timeout(IDLE_MAX, body.next()).await;
        let next = next.map_err(|_| {
            ConnectorError::Aborted(format!("no byte for {} seconds", IDLE_MAX.as_secs()))
        })?;
        let Some(bytes) = next else { return Ok(wasm) };
        let bytes = bytes.map_err(|error| ConnectorError::Aborted(error.to_string()))?;
        if wasm.len() + bytes.len() > COMPONENT_BYTES_MAX {
            return Err(ConnectorError::TooLarge);
        }
        wasm.extend_from_slice(&bytes);
    }
}

/// Writes the pieces, then the row. The same version with the same digest again changes nothing.
async fn keep(
    app: &App,
    scope: &Scope,
    by: &KeyId,
    info: &ConnectorInfo,
    wasm: &[u8],
) -> Result<(), ConnectorError> {
    let _changing = app.connectors.changing.lock().await;
    let bundled = *scope == Scope::Platform
        && app.connectors.bundled.lock().get(&info.name) == Some(&info.version);
    let text = scope_text(scope);
    let before =
        connectors::get(&mut *app.db.read().await?, text, &info.name, &info.version).await?;
    match before {
        Some(before) if before.digest == info.digest => return Ok(()),
        Some(before) => {
            let conflict = LoadError::Conflict {
                name: info.name.clone(),
                version: info.version.clone(),
                digest: before.digest,
            };
            return Err(conflict.into());
        }
        // The host brings these very bytes along: there is nothing to keep.
        None if bundled => return Ok(()),
        None => {}
    }
    for (piece, bytes) in wasm.chunks(CHUNK_BYTES).enumerate() {
        let mut tx = app.db.write().await?;
        connectors::put_chunk(&mut tx, &info.digest, piece as i64, bytes, app.clock.now()).await?;
        tx.commit().await?;
    }
    let mut tx = app.db.write().await?;
    let row = StoredConnector {
        scope: text.to_owned(),
        name: info.name.clone(),
        version: info.version.clone(),
        digest: info.digest.clone(),
        size_bytes: wasm.len() as i64,
        uploaded_by: by.to_string(),
        created_at: app.clock.now(),
    };
    connectors::insert(&mut tx, &row).await?;
    tx.touch(Topic::Connector, &info.name);
    // Before the commit: its announcement must find the version known.
    app.connectors
        .stored
        .lock()
        .insert(key(text, &info.name, &info.version));
    tx.commit().await.inspect_err(|_| {
        app.connectors
            .stored
            .lock()
            .remove(&key(text, &info.name, &info.version));
    })?;
    Ok(())
}

/// The engines that a company can name in a connection, with what the active connector says about
/// each; `None`: none is active. An engine that has no id yet is given one.
pub async fn engines(
    app: &App,
    company: &CompanyId,
) -> Result<Vec<(StorageEngine, Option<EngineInfo>)>, ConnectorError> {
    let active = app.sandbox.engines(company.as_str());
    let mut known = reference::engines(&mut *app.db.read().await?, company.as_str()).await?;
    let new: Vec<&EngineInfo> = active
        .iter()
        .filter(|info| known.iter().all(|engine| engine.slug != info.slug))
        .collect();
    if !new.is_empty() {
        for info in new {
            ensure_engine(app, &described(app, company, info)).await?;
        }
        known = reference::engines(&mut *app.db.read().await?, company.as_str()).await?;
    }
    let with_info = |engine: StorageEngine| {
        let info = active.iter().find(|info| info.slug == engine.slug).cloned();
        (engine, info)
    };
    Ok(known.into_iter().map(with_info).collect())
}

/// The ids of the engines that a company can see, by slug.
pub struct Engines(Vec<(StorageEngine, Option<EngineInfo>)>);

impl Engines {
    pub async fn load(app: &App, company: &CompanyId) -> Result<Engines, ConnectorError> {
        Ok(Engines(engines(app, company).await?))
    }

    pub fn id(&self, slug: &str) -> Option<i64> {
        self.0
            .iter()
            .find(|(engine, _)| engine.slug == slug)
            .map(|(engine, _)| engine.id)
    }
}

async fn ensure_engine(app: &App, engine: &StorageEngine) -> Result<(), ConnectorError> {
    for _ in 0..ENGINE_ATTEMPTS {
        let mut tx = app.db.write().await?;
        match reference::ensure_engine(&mut tx, engine).await {
            Err(StoreError::Conflict | StoreError::Busy) => continue,
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(tx.commit().await?),
        }
    }
    Err(StoreError::Busy.into())
}

/// An engine as a reference row, without its id.
fn described(app: &App, company: &CompanyId, info: &EngineInfo) -> StorageEngine {
    let mine = |connector: &ConnectorInfo| {
        connector.company_id.as_deref() == Some(company.as_str()) && connector.digest == info.digest
    };
    let private = app.sandbox.connectors().iter().any(mine);
    StorageEngine {
        id: 0,
        scope: if private {
            company.to_string()
        } else {
            PLATFORM.to_owned()
        },
        slug: info.slug.clone(),
        name: info.title.clone(),
        dialect: info.dialect.clone(),
        need: need(info),
        credential_types: info.credential_types.clone(),
    }
}

async fn remember(
    app: &App,
    scope: &Scope,
    name: &str,
    version: &str,
    before: Option<String>,
) -> Result<(), ConnectorError> {
    let choice = Choice {
        scope: scope_text(scope).to_owned(),
        name: name.to_owned(),
        version: version.to_owned(),
        previous_version: before,
        activated_at: app.clock.now(),
    };
    let mut tx = app.db.write().await?;
    connectors::choose(&mut tx, &choice).await?;
    tx.touch(Topic::Connector, name);
    tx.commit().await?;
    Ok(())
}

/// What a company sees of the connectors: the platform's and its own. Files of the operator's
/// directory that were refused are the operator's business.
pub fn visible(app: &App, company: &CompanyId, is_staff: bool) -> Vec<ConnectorInfo> {
    let visible = |info: &ConnectorInfo| {
        let own = info
            .company_id
            .as_deref()
            .is_none_or(|owner| owner == company.as_str());
        own && (is_staff || info.status != Status::Rejected)
    };
    app.sandbox
        .connectors()
        .into_iter()
        .filter(visible)
        .collect()
}

fn versions(app: &App, scope: &Scope) -> HashSet<(String, String)> {
    let mine = app
        .sandbox
        .connectors()
        .into_iter()
        .filter(|info| scope_of(info) == *scope);
    mine.map(|info| (info.name, info.version)).collect()
}

fn find(app: &App, scope: &Scope, name: &str, version: &str) -> Option<ConnectorInfo> {
    let same = |info: &ConnectorInfo| {
        scope_of(info) == *scope && info.name == name && info.version == version
    };
    app.sandbox.connectors().into_iter().find(same)
}

fn active(app: &App, scope: &Scope, name: &str) -> Option<String> {
    let same = |info: &ConnectorInfo| {
        scope_of(info) == *scope && info.name == name && info.status == Status::Active
    };
    app.sandbox
        .connectors()
        .into_iter()
        .find(same)
        .map(|info| info.version)
}

fn scope_of(info: &ConnectorInfo) -> Scope {
    info.company_id
        .clone()
        .map_or(Scope::Platform, Scope::Company)
}

fn scope_text(scope: &Scope) -> &str {
    match scope {
        Scope::Platform => PLATFORM,
        Scope::Company(company) => company,
    }
}

fn scope_from(text: &str) -> Scope {
    match text {
        PLATFORM => Scope::Platform,
        company => Scope::Company(company.to_owned()),
    }
}

fn key(scope: &str, name: &str, version: &str) -> Key {
    (scope.to_owned(), name.to_owned(), version.to_owned())
}
