//! Which connectors run here: the bundled ones, those that were uploaded, and who chose which version.
//!
//! The store says what should run ([`souk_store::connectors`]); the sandbox is made to agree, at start
//! and whenever this or another host changes the store ([`reconcile`]). A version that fails is left
//! where it is: what ran before goes on. See docs/decisions/0006-uploaded-connectors-live-in-the-store.md.

mod compile_time;
mod engines;
mod health;
mod shelf;
mod upload;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use souk_domain::ids::CompanyId;
use souk_sandbox::{LoadError, Status};
use souk_store::connections::{self, Depending};
use souk_store::connectors::{self, Choice, PLATFORM};
use souk_store::{Change, Db, Listed, Part, StoreError, Topic};
use tokio::sync::Notify;

pub use engines::{Engines, engines};
pub(crate) use engines::{SERVING, scope_of_engine, serving, serving_ids};
pub use souk_sandbox::{ConnectorInfo, LogFilter, LogLine, Scope};
pub use upload::{COMPONENT_BYTES_MAX, upload};

use crate::App;

/// Pieces of an upload that was broken off, once it is certain that it was.
const PIECES_KEPT: Duration = Duration::from_secs(24 * 3600);
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
    #[error(
        "engine \"{0}\" is the platform's: give the engine of your connector a slug of its own, such as \"acme-{0}\""
    )]
    EngineReserved(String),
    /// By the platform's staff.
    #[error("the platform has taken this connector off work{}", reason.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Blocked { reason: Option<String> },
    #[error("{0}")]
    NoRoom(String),
    #[error(
        "compiling your connectors has taken {spent_seconds} seconds of this hour, which is what it may take: try again in {wait_seconds} seconds"
    )]
    CompileTime {
        spent_seconds: u32,
        wait_seconds: u64,
    },
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
            LoadError::Conflict { .. }
            | LoadError::Active { .. }
            | LoadError::NotActive { .. }
            | LoadError::NoEarlier { .. } => ConnectorError::Conflict(text),
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
    compile_time: compile_time::CompileTime,
    changed: Arc<Notify>,
    turns: upload::Turns,
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
            compile_time: compile_time::CompileTime::default(),
            changed,
            turns: upload::Turns::default(),
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
    Ok(())
}

/// Sends new requests to a version, if it is healthy, and remembers that for every host and restart.
pub async fn activate(
    app: &App,
    scope: &Scope,
    name: &str,
    version: &str,
    is_staff: bool,
) -> Result<ConnectorInfo, ConnectorError> {
    let _changing = app.connectors.changing.lock().await;
    check_block(app, scope, name, is_staff).await?;
    let candidate = shelf::fetch(app, scope, name, version).await?;
    let before = active(app, scope, name);
    if before.as_deref() == Some(version) {
        return Ok(candidate);
    }
    let activated = switch(app, scope, &candidate, before.as_deref()).await;
    // Also after a failure: a version that was loaded for this need not stay.
    shelf::put_back(app, scope, name, before.as_deref());
    let row = (scope_text(scope), name, version);
    let info = match activated {
        Ok(info) => info,
        Err(error) => {
            let told = cut(&error.to_string());
            let noted = app
                .db
                .write(async |tx| connectors::note_error(tx, row, Some(&told)).await);
            noted.await?;
            return Err(error);
        }
    };
    app.db
        .write(async |tx| connectors::note_error(tx, row, None).await)
        .await?;
    remember(app, scope, name, version, before).await?;
    Ok(info)
}

/// What is kept of why a version could not be put to work.
fn cut(text: &str) -> String {
    const CHARS_MAX: usize = 1_000;
    text.chars().take(CHARS_MAX).collect()
}

/// What the platform's staff has taken off work, its company does not put back.
async fn check_block(
    app: &App,
    scope: &Scope,
    name: &str,
    is_staff: bool,
) -> Result<(), ConnectorError> {
    let choice = connectors::choice_of(&mut *app.db.read().await?, scope_text(scope), name).await?;
    match choice.filter(|choice| choice.blocked && !is_staff) {
        Some(choice) => Err(ConnectorError::Blocked {
            reason: choice.reason,
        }),
        None => Ok(()),
    }
}

/// Takes a connector off work, on every host and for every restart, until a version is activated again; after `is_staff`, by staff only. Calls in
/// flight end; new ones are answered that no connector is available.
pub async fn deactivate(
    app: &App,
    scope: &Scope,
    name: &str,
    is_staff: bool,
    reason: Option<String>,
) -> Result<ConnectorInfo, ConnectorError> {
    let _changing = app.connectors.changing.lock().await;
    let text = scope_text(scope);
    let before = connectors::choice_of(&mut *app.db.read().await?, text, name).await?;
    let current = match (active(app, scope, name), &before) {
        (Some(version), _) => version,
        // It is off already; staff may still see to it that it stays so.
        (None, Some(before)) if is_staff && *scope != Scope::Platform => before.version.clone(),
        (None, _) => return Err(not_active(app, scope, name).await?),
    };
    let now = app.clock.now();
    let off = match before {
        Some(before) if before.version == current => Choice {
            deactivated_at: Some(now),
            blocked: is_staff && *scope != Scope::Platform,
            reason,
            ..before
        },
        before => Choice {
            scope: text.to_owned(),
            name: name.to_owned(),
            version: current.clone(),
            previous_version: before.map(|before| before.version),
            activated_at: now,
            deactivated_at: Some(now),
            blocked: is_staff && *scope != Scope::Platform,
            reason,
        },
    };
    app.db
        .write(async |tx| connectors::choose(tx, &off).await)
        .await?;
    app.sandbox.note_chosen(scope, name, now.micros(), None);
    match app.sandbox.deactivate(scope, name) {
        Ok(info) => Ok(info),
        Err(LoadError::NotActive { .. }) => shelf::fetch(app, scope, name, &current).await,
        Err(error) => Err(error.into()),
    }
}

/// Why a connector cannot be taken off work that is not at work.
async fn not_active(
    app: &App,
    scope: &Scope,
    name: &str,
) -> Result<ConnectorError, ConnectorError> {
    let stored = connectors::of_scope(&mut *app.db.read().await?, scope_text(scope)).await?;
    let is_known = versions(app, scope).iter().any(|(known, _)| known == name)
        || stored.iter().any(|row| row.name == name);
    Ok(match is_known {
        true => LoadError::NotActive {
            name: name.to_owned(),
        }
        .into(),
        false => ConnectorError::NotFound,
    })
}

async fn switch(
    app: &App,
    scope: &Scope,
    candidate: &ConnectorInfo,
    before: Option<&str>,
) -> Result<ConnectorInfo, ConnectorError> {
    engines::claim(app, scope, &candidate.engine_ids).await?;
    health::check(app, scope, candidate, before).await?;
    let (name, version) = (&candidate.name, &candidate.version);
    Ok(app.sandbox.activate(scope, name, version).await?)
}

/// Activates the version that was active before; a second rollback returns.
pub async fn rollback(
    app: &App,
    scope: &Scope,
    name: &str,
    is_staff: bool,
) -> Result<ConnectorInfo, ConnectorError> {
    let _changing = app.connectors.changing.lock().await;
    check_block(app, scope, name, is_staff).await?;
    let current = active(app, scope, name).ok_or(ConnectorError::NotFound)?;
    let choice = connectors::choice_of(&mut *app.db.read().await?, scope_text(scope), name).await?;
    let none = || LoadError::NoEarlier {
        name: name.to_owned(),
    };
    let previous = choice
        .filter(|choice| choice.version == current)
        .and_then(|choice| choice.previous_version);
    let Some(previous) = previous else {
        // What a file of the operator's directory has put to work is in no row.
        let info = app.sandbox.rollback(scope, name).await?;
        remember(app, scope, name, &info.version, Some(current)).await?;
        return Ok(info);
    };
    let candidate = match shelf::fetch(app, scope, name, &previous).await {
        Err(ConnectorError::NotFound) => return Err(none().into()),
        fetched => fetched?,
    };
    engines::claim(app, scope, &candidate.engine_ids).await?;
    let info = app.sandbox.activate(scope, name, &previous).await?;
    shelf::put_back(app, scope, name, Some(&current));
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
    let text = scope_text(scope);
    let loaded = find(app, scope, name, version);
    let stored = connectors::get(&mut *app.db.read().await?, text, name, version).await?;
    if loaded.is_none() && stored.is_none() {
        return Err(ConnectorError::NotFound);
    }
    if loaded.is_some_and(|info| info.status == Status::Active) {
        return Err(LoadError::Active {
            name: name.to_owned(),
            version: version.to_owned(),
        }
        .into());
    }
    app.db
        .write(async |tx| -> Result<_, ConnectorError> {
            let chosen = connectors::choice_of(tx, text, name).await?;
            let is_at_work =
                |choice: Choice| choice.version == version && choice.deactivated_at.is_none();
            if chosen.is_some_and(is_at_work) {
                return Err(LoadError::Active {
                    name: name.to_owned(),
                    version: version.to_owned(),
                }
                .into());
            }
            if !connectors::delete(tx, text, name, version).await? {
                return Err(ConnectorError::Conflict(format!(
                    "connector \"{name}\" {version} is part of this host: it cannot be deleted"
                )));
            }
            connectors::forget_previous(tx, text, name, version).await?;
            Ok(())
        })
        .await?;
    app.connectors
        .stored
        .lock()
        .remove(&key(text, name, version));
    match app.sandbox.remove(scope, name, version) {
        Ok(()) | Err(LoadError::Unknown { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    match stored {
        Some(stored) => shelf::forget_bytes(app, &stored.digest, stored.size_bytes).await,
        None => Ok(()),
    }
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
    // A company's versions stay where they are until one is chosen, or asked for.
    for row in rows.iter().filter(|row| row.scope == PLATFORM) {
        let key = key(&row.scope, &row.name, &row.version);
        if app.connectors.stored.lock().contains(&key) {
            continue;
        }
        if let Err(error) = shelf::load(app, row, &Scope::Platform).await {
            tracing::error!(scope = row.scope, name = row.name, version = row.version, %error, "cannot load a stored connector");
        }
    }
    for choice in &chosen {
        // A choice is carried out once: what the operator's connector directory activates later stays.
        let place = (choice.scope.clone(), choice.name.clone());
        let chosen_at = choice
            .deactivated_at
            .unwrap_or(choice.activated_at)
            .micros();
        let version = choice
            .deactivated_at
            .is_none()
            .then_some(choice.version.as_str());
        let scope = scope_from(&choice.scope);
        app.sandbox
            .note_chosen(&scope, &choice.name, chosen_at, version);
        if app.connectors.applied.lock().get(&place) == Some(choice) {
            continue;
        }
        match carry_out(app, choice).await {
            Ok(()) => {}
            // The store is away, and says so again when it is back.
            Err(ConnectorError::Store(error)) => return Err(error.into()),
            // A bundled version that an older host brought along: the one of this host takes its place.
            Err(ConnectorError::NotFound) => tracing::info!(
                scope = choice.scope,
                name = choice.name,
                version = choice.version,
                "the chosen version is not here"
            ),
            Err(error) => {
                tracing::error!(scope = choice.scope, name = choice.name, version = choice.version, %error, "cannot activate the chosen version")
            }
        }
        app.connectors.applied.lock().insert(place, choice.clone());
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

async fn carry_out(app: &App, choice: &Choice) -> Result<(), ConnectorError> {
    let (scope, name) = (scope_from(&choice.scope), choice.name.as_str());
    if choice.deactivated_at.is_some() {
        return match app.sandbox.deactivate(&scope, name) {
            Ok(_) | Err(LoadError::NotActive { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        };
    }
    if active(app, &scope, name).as_deref() == Some(&choice.version) {
        return Ok(());
    }
    let candidate = shelf::fetch(app, &scope, name, &choice.version).await?;
    let activated = match engines::claim(app, &scope, &candidate.engine_ids).await {
        Ok(()) => app
            .sandbox
            .activate(&scope, name, &choice.version)
            .await
            .map_err(ConnectorError::from),
        Err(error) => Err(error),
    };
    shelf::put_back(app, &scope, name, choice.previous_version.as_deref());
    activated.map(drop)
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
        deactivated_at: None,
        blocked: false,
        reason: None,
    };
    app.sandbox
        .note_chosen(scope, name, choice.activated_at.micros(), Some(version));
    app.db
        .write(async |tx| {
            connectors::choose(tx, &choice).await?;
            Ok(())
        })
        .await
}

/// What a company sees of the connectors: the platform's and its own; staff sees everybody's. Files of the operator's directory that were
/// refused are the operator's business.
pub async fn visible(
    app: &App,
    company: &CompanyId,
    is_staff: bool,
) -> Result<Vec<ConnectorInfo>, ConnectorError> {
    let mut stored = Vec::new();
    {
        let mut db = app.db.read().await?;
        match is_staff {
            true => stored.append(&mut connectors::described(&mut db, None).await?),
            false => {
                stored.append(&mut connectors::of_scope(&mut db, company.as_str()).await?);
            }
        }
    }
    let visible = |info: &ConnectorInfo| {
        let own = info
            .company_id
            .as_deref()
            .is_none_or(|owner| owner == company.as_str());
        is_staff || (own && info.status != Status::Rejected)
    };
    let mut seen: Vec<ConnectorInfo> = app
        .sandbox
        .connectors()
        .into_iter()
        .filter(visible)
        .collect();
    for row in stored {
        let is_row = |info: &&mut ConnectorInfo| {
            scope_text(&scope_of(info)) == row.scope
                && info.name == row.name
                && info.version == row.version
        };
        match seen.iter_mut().find(is_row) {
            // It waits, and somebody has tried.
            Some(info) if info.status == Status::Staged && row.error.is_some() => {
                info.status = Status::Rejected;
                info.error = row.error;
            }
            Some(_) => {}
            // One of the platform's that is not in memory could not be loaded, which the log has.
            None if row.scope == PLATFORM => {}
            None => seen.push(shelf::unloaded(row)),
        }
    }
    Ok(seen)
}

/// The connections to the engines of a connector's versions.
pub async fn depending(
    app: &App,
    scope: &Scope,
    name: &str,
    part: Part,
) -> Result<Listed<Depending>, ConnectorError> {
    let text = scope_text(scope);
    let mut db = app.db.read().await?;
    let stored = connectors::of_scope(&mut db, text).await?.into_iter();
    let stored = stored.filter(|row| row.name == name).map(shelf::unloaded);
    let loaded = app.sandbox.connectors().into_iter();
    let loaded = loaded.filter(|info| scope_of(info) == *scope && info.name == name);
    let mut is_known = false;
    let mut engines: Vec<String> = Vec::new();
    for info in loaded.chain(stored) {
        is_known = true;
        engines.extend(info.engine_ids);
    }
    if !is_known {
        return Err(ConnectorError::NotFound);
    }
    engines.sort();
    engines.dedup();
    Ok(connections::depending(&mut db, text, &engines, part).await?)
}

/// What connectors have said on this host.
pub fn log_lines(app: &App, filter: &LogFilter<'_>) -> Vec<LogLine> {
    app.sandbox.log_lines(filter)
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
