//! Which version of a connector is at work: putting one there, for all calls or (`canary`) for a share of them, taking it off, deleting one. Going back is
//! in `rollback`.

use souk_sandbox::{ConnectorInfo, LoadError, Scope, Status};
use souk_store::connectors::{self, Choice, canaries};
use tokio::sync::OwnedSemaphorePermit;

use super::error::ConnectorError;
use super::loaded::{active, find, scope_text, versions};
use super::registry::key;
use super::{ahead, canary, chosen, engines, health, shelf, undo};
use crate::App;
use crate::detached::to_the_end;

/// The share of a version that is at work alone, in percent.
pub const EVERY_CALL: u8 = 100;
/// Activations of one company, or of the platform's, that are under way or wait: each may take half a minute, and some have no client that could leave.
const ACTIVATIONS_MAX: usize = 8;

/// Sends new requests to a version, or `share_percent` of them, if it is healthy, and remembers that for every host and restart. Whoever leaves while
/// it waits for its turn has asked for nothing; what has begun goes on to its end. `held`: until then.
pub async fn activate(
    app: &App,
    scope: &Scope,
    (name, version): (&str, &str),
    share_percent: u8,
    is_staff: bool,
    held: impl Send + 'static,
) -> Result<ConnectorInfo, ConnectorError> {
    let turn = turn_of(app, scope).await?;
    let (app, scope) = (app.clone(), scope.clone());
    let (name, version) = (name.to_owned(), version.to_owned());
    whole((turn, held), async move {
        let of = (name.as_str(), version.as_str());
        put_to_work(&app, &scope, of, share_percent, is_staff).await
    })
    .await
}

/// What makes whoever asked wait, and nobody of another company: compiling a version, asking a company's sources.
pub(super) async fn turn_of(
    app: &App,
    scope: &Scope,
) -> Result<OwnedSemaphorePermit, ConnectorError> {
    let proving = &app.connectors.proving;
    let turn = proving.stand_among(scope, ACTIVATIONS_MAX).await;
    turn.ok_or(ConnectorError::Busy {
        waiting_max: ACTIVATIONS_MAX,
    })
}

/// Changes what runs, in steps of which none is left out. Others wait for their end: each of them asks the store in a way that has one
/// ([`souk_store::Db::ask`]), since the whole has none.
pub(super) async fn whole<T: Send + 'static>(
    held: impl Send + 'static,
    steps: impl Future<Output = Result<T, ConnectorError>> + Send + 'static,
) -> Result<T, ConnectorError> {
    let done = to_the_end(held, steps).await;
    done.map_err(|error| ConnectorError::Internal(error.to_string()))?
}

/// The caller has the turn of its company.
async fn put_to_work(
    app: &App,
    scope: &Scope,
    (name, version): (&str, &str),
    share_percent: u8,
    is_staff: bool,
) -> Result<ConnectorInfo, ConnectorError> {
    check_block(app, scope, name, is_staff).await?;
    ahead::compile(app, scope, name, version).await?;
    let changing = app.connectors.changing.lock().await;
    let (candidate, before) = seen(app, scope, (name, version), is_staff).await?;
    let is_new = match share_percent {
        EVERY_CALL => before.as_deref() != Some(version),
        _ => canary::is_new(app, scope, &candidate, before.as_deref()),
    };
    let proven = match is_new {
        true => engines::claim(app, scope, &candidate.engine_ids).await,
        false => Ok(()),
    };
    // The sources of a company may take half a minute, for which nobody else waits.
    drop(changing);
    let proven = match proven {
        Ok(()) if is_new => health::check(app, scope, &candidate, before.as_deref()).await,
        proven => proven,
    };
    let proven_digest = candidate.digest;
    let _changing = app.connectors.changing.lock().await;
    let (candidate, now) = match seen(app, scope, (name, version), is_staff).await {
        Ok(seen) => seen,
        Err(error) => {
            shelf::put_back(app, scope, name, before.as_deref());
            return Err(error);
        }
    };
    // Of a version that was deleted and uploaded with other bytes meanwhile nobody knows whether it works.
    if now != before || candidate.digest != proven_digest {
        shelf::put_back(app, scope, name, now.as_deref());
        return Err(ConnectorError::Conflict(format!(
            "another version of connector \"{name}\" was put to work, taken off or uploaded meanwhile: look, and try again"
        )));
    }
    let activated = match (proven, share_percent) {
        (Err(error), EVERY_CALL) => {
            // A version that was loaded for this need not stay.
            shelf::put_back(app, scope, name, before.as_deref());
            Err(error)
        }
        (Ok(()), EVERY_CALL) => activate_whole(app, scope, candidate, before).await,
        (proven, share) => {
            let begun = match proven {
                Ok(()) => canary::begin(app, scope, &candidate, before.as_deref(), share).await,
                Err(error) => Err(error),
            };
            canary::put_back(app, scope, name);
            begun
        }
    };
    match activated {
        // That it gets no share says nothing of the version, nor does a store that is away.
        Err(error)
            if !matches!(
                error,
                ConnectorError::Conflict(_) | ConnectorError::Store(_)
            ) =>
        {
            let told = cut(&error.to_string());
            let row = (scope_text(scope), name, version);
            let noted = app
                .db
                .write(async |tx| connectors::note_error(tx, row, Some(&told)).await);
            noted.await?;
            Err(error)
        }
        activated => activated,
    }
}

/// A version that may be put to work, and the one that is.
async fn seen(
    app: &App,
    scope: &Scope,
    (name, version): (&str, &str),
    is_staff: bool,
) -> Result<(ConnectorInfo, Option<String>), ConnectorError> {
    check_block(app, scope, name, is_staff).await?;
    // What another host has put to work a moment ago is what this takes the place of.
    chosen::catch_up(app, scope, name).await?;
    let candidate = shelf::fetch(app, scope, name, version).await?;
    Ok((candidate, active(app, scope, name)))
}

async fn activate_whole(
    app: &App,
    scope: &Scope,
    candidate: ConnectorInfo,
    before: Option<String>,
) -> Result<ConnectorInfo, ConnectorError> {
    let (name, version) = (candidate.name.as_str(), candidate.version.as_str());
    if before.as_deref() == Some(version) {
        if let Some(beside) = canary::beside(app, scope, name, version).await? {
            canary::end(app, &beside).await?;
        }
        return shelf::fetch(app, scope, name, version).await;
    }
    let activated = switch(app, scope, &candidate).await;
    // Also after a failure: a version that was loaded for this need not stay.
    shelf::put_back(app, scope, name, before.as_deref());
    let info = activated?;
    remember(app, scope, (name, version), before, None).await?;
    Ok(info)
}

/// What is kept of why a version could not be put to work.
fn cut(text: &str) -> String {
    const CHARS_MAX: usize = 1_000;
    text.chars().take(CHARS_MAX).collect()
}

/// What the platform's staff has taken off work, its company does not put back.
pub(super) async fn check_block(
    app: &App,
    scope: &Scope,
    name: &str,
    is_staff: bool,
) -> Result<(), ConnectorError> {
    let choice = choice_of(app, scope, name).await?;
    match choice.filter(|choice| choice.blocked && !is_staff) {
        Some(choice) => Err(ConnectorError::Blocked {
            reason: choice.reason,
        }),
        None => Ok(()),
    }
}

pub(super) async fn choice_of(
    app: &App,
    scope: &Scope,
    name: &str,
) -> Result<Option<Choice>, ConnectorError> {
    let scope = scope_text(scope);
    let choice = app
        .db
        .ask(async |db| connectors::choice_of(db, scope, name).await);
    Ok(choice.await?)
}

/// Takes a connector off work, on every host and for every restart, until a version is activated again; after `is_staff`, by staff only. Calls in
/// flight end; new ones are answered that no connector is available. `version`: that of a canary ends the canary alone.
pub async fn deactivate(
    app: &App,
    scope: &Scope,
    (name, version): (&str, Option<&str>),
    is_staff: bool,
    reason: Option<String>,
    held: impl Send + 'static,
) -> Result<ConnectorInfo, ConnectorError> {
    let changing = app.connectors.change(scope, is_staff).await;
    let (app, scope, name) = (app.clone(), scope.clone(), name.to_owned());
    let version = version.map(str::to_owned);
    whole((changing, held), async move {
        let of = (name.as_str(), version.as_deref());
        take_off(&app, &scope, of, is_staff, reason).await
    })
    .await
}

/// The caller has `changing`, here and below.
async fn take_off(
    app: &App,
    scope: &Scope,
    (name, version): (&str, Option<&str>),
    is_staff: bool,
    reason: Option<String>,
) -> Result<ConnectorInfo, ConnectorError> {
    // What another host has put to work a moment ago is what is taken off.
    chosen::catch_up(app, scope, name).await?;
    let text = scope_text(scope);
    if let Some((version, current)) = version.zip(active(app, scope, name))
        && version != current
    {
        let beside = canary::beside(app, scope, name, &current).await?;
        let Some(beside) = beside.filter(|canary| canary.version == version) else {
            return Err(ConnectorError::Conflict(format!(
                "connector \"{name}\" {version} takes no calls: {current} is at work"
            )));
        };
        canary::end(app, &beside).await?;
        return shelf::seen(app, scope, name, version).await;
    }
    let before = choice_of(app, scope, name).await?;
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
        Err(LoadError::NotActive { .. }) => shelf::seen(app, scope, name, &current).await,
        Err(error) => Err(error.into()),
    }
}

/// Why a connector cannot be taken off work that is not at work.
async fn not_active(
    app: &App,
    scope: &Scope,
    name: &str,
) -> Result<ConnectorError, ConnectorError> {
    let text = scope_text(scope);
    let stored = app
        .db
        .ask(async |db| connectors::of_scope(db, text).await)
        .await?;
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
) -> Result<ConnectorInfo, ConnectorError> {
    engines::claim(app, scope, &candidate.engine_ids).await?;
    let (name, version) = (&candidate.name, &candidate.version);
    let info = app.sandbox.activate(scope, name, version).await?;
    app.connectors.note_counted(scope_text(scope), &info);
    Ok(info)
}

/// Deletes an uploaded version that is not active.
pub async fn remove(
    app: &App,
    scope: &Scope,
    name: &str,
    version: &str,
    held: impl Send + 'static,
) -> Result<(), ConnectorError> {
    let changing = app.connectors.change(scope, false).await;
    let (app, scope) = (app.clone(), scope.clone());
    let (name, version) = (name.to_owned(), version.to_owned());
    // Its pieces are deleted behind its row: those that were left nobody would look for before the next start.
    whole((changing, held), async move {
        delete(&app, &scope, &name, &version).await
    })
    .await
}

async fn delete(app: &App, scope: &Scope, name: &str, version: &str) -> Result<(), ConnectorError> {
    chosen::catch_up(app, scope, name).await?;
    let text = scope_text(scope);
    let loaded = find(app, scope, name, version);
    let stored = app
        .db
        .ask(async |db| connectors::get(db, text, name, version).await)
        .await?;
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
            // First: who puts it to work on another host meanwhile is waited for, and seen.
            let was_stored = connectors::delete(tx, text, name, version).await?;
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
            let tried_out = canaries::of(tx, text, name).await?;
            if let Some(canary) = tried_out.filter(|canary| canary.version == version) {
                if active(app, scope, name).as_ref() == Some(&canary.beside_version) {
                    return Err(LoadError::Canary {
                        name: name.to_owned(),
                        version: version.to_owned(),
                    }
                    .into());
                }
                // Begun beside a version that is not at work any more: it takes no calls.
                canaries::end(tx, text, name).await?;
            }
            if !was_stored {
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

/// Writes down what was put to work: `reason` says why it was gone back to; without one it was activated, and what was wrong with it once is
/// forgotten. What cannot be written down is not at work either: `before` is again.
pub(super) async fn remember(
    app: &App,
    scope: &Scope,
    (name, version): (&str, &str),
    before: Option<String>,
    reason: Option<String>,
) -> Result<(), ConnectorError> {
    let text = scope_text(scope);
    let choice = Choice {
        scope: text.to_owned(),
        name: name.to_owned(),
        version: version.to_owned(),
        previous_version: before,
        activated_at: app.clock.now(),
        deactivated_at: None,
        blocked: false,
        reason,
    };
    let written = app.db.write(async |tx| -> Result<_, ConnectorError> {
        shelf::lock(app, tx, (text, name, version)).await?;
        if choice.reason.is_none() {
            connectors::note_error(tx, (text, name, version), None).await?;
        }
        connectors::choose(tx, &choice).await?;
        Ok(())
    });
    if let Err(error) = written.await {
        let before = choice.previous_version.as_deref();
        let restored = undo::take_back(app, scope, name, before).await;
        if let Some(info) = restored {
            app.connectors.note_counted(text, &info);
        }
        return Err(error);
    }
    app.sandbox
        .note_chosen(scope, name, choice.activated_at.micros(), Some(version));
    Ok(())
}
