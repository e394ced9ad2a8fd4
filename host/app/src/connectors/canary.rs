//! A version that is tried out on a share of the calls, beside the one at work: begun, ended, and the same on every host and after a restart
//! (decision 40). Which call it answers is the sandbox's to say; when it goes by itself, `withdrawal`'s.

use souk_sandbox::{ConnectorInfo, LoadError, Scope};
use souk_store::Write;
use souk_store::connectors::canaries::{self, Canary};
use souk_store::connectors::note_error;

use super::error::ConnectorError;
use super::loaded::{active, canary, find, scope_from, scope_text};
use super::{engines, shelf};
use crate::App;
use crate::connections::schema::Asked;

/// Lets a version answer its share of the calls, if it is healthy and can be asked what the one at work is asked.
pub(super) async fn begin(
    app: &App,
    scope: &Scope,
    candidate: &ConnectorInfo,
    before: Option<&str>,
    share_percent: u8,
) -> Result<ConnectorInfo, ConnectorError> {
    let (name, version) = (&candidate.name, &candidate.version);
    let Some(before) = before else {
        return Err(LoadError::NotActive { name: name.clone() }.into());
    };
    if before == version {
        return Err(ConnectorError::Conflict(format!(
            "connector \"{name}\" {version} is at work already: a share is given to another version, beside it"
        )));
    }
    check_settings(app, scope, candidate, before)?;
    let info = app.sandbox.try_out(scope, name, version, share_percent);
    let info = info.await?;
    let begun = Canary {
        scope: scope_text(scope).to_owned(),
        name: name.clone(),
        version: version.clone(),
        beside_version: before.to_owned(),
        share_percent,
        since: app.clock.now(),
    };
    // Before the store has it: what is not there in the end is ended when the store is followed.
    app.connectors.note_canary(begun.clone());
    let of = (begun.scope.as_str(), name.as_str(), version.as_str());
    let written = app.db.write(async |tx| -> Result<_, ConnectorError> {
        shelf::lock(app, tx, of).await?;
        note_error(tx, of, None).await?;
        canaries::begin(tx, &begun).await?;
        Ok(())
    });
    if let Err(error) = written.await {
        app.connectors.changed.notify_one();
        return Err(error);
    }
    Ok(info)
}

/// Whether its health has to be known for that: whatever else is wrong is told by [`begin`], and what has a share already is only given another one.
pub(super) fn is_new(
    app: &App,
    scope: &Scope,
    candidate: &ConnectorInfo,
    before: Option<&str>,
) -> bool {
    let (name, version) = (&candidate.name, &candidate.version);
    let is_running = canary(app, scope, name).is_some_and(|canary| canary.version == *version);
    let may_begin = before.is_some_and(|before| {
        before != version && check_settings(app, scope, candidate, before).is_ok()
    });
    may_begin && !is_running
}

/// What a data connection is told is put together once, whichever version a call reaches.
fn check_settings(
    app: &App,
    scope: &Scope,
    candidate: &ConnectorInfo,
    before: &str,
) -> Result<(), ConnectorError> {
    let (name, version) = (&candidate.name, &candidate.version);
    let at_work = find(app, scope, name, before).ok_or(ConnectorError::NotFound)?;
    let asked = Asked::by(&candidate.settings_schema);
    match asked.is_like(&Asked::by(&at_work.settings_schema)) {
        true => Ok(()),
        false => Err(LoadError::NoCanary {
            name: name.clone(),
            version: version.clone(),
            reason: format!("{before} asks for other settings"),
        }
        .into()),
    }
}

/// The canary that is tried out beside `current`, as the store has it.
pub(super) async fn beside(
    app: &App,
    scope: &Scope,
    name: &str,
    current: &str,
) -> Result<Option<Canary>, ConnectorError> {
    let scope = scope_text(scope);
    let row = app.db.ask(async |db| canaries::of(db, scope, name).await);
    Ok(row.await?.filter(|row| row.beside_version == current))
}

/// The version at work answers all calls again, on every host.
pub(super) async fn end(app: &App, canary: &Canary) -> Result<(), ConnectorError> {
    let (scope, name) = (canary.scope.as_str(), canary.name.as_str());
    app.db
        .write(async |tx| canaries::end(tx, scope, name).await)
        .await?;
    end_here(app, scope, name);
    Ok(())
}

/// Ends it with what is known of it, unless it has changed meanwhile. Returns whether it has not.
pub(super) async fn end_noting(
    tx: &mut Write,
    canary: &Canary,
    error: &str,
) -> Result<bool, ConnectorError> {
    let (scope, name) = (canary.scope.as_str(), canary.name.as_str());
    if canaries::of(tx, scope, name).await?.as_ref() != Some(canary) {
        return Ok(false);
    }
    note_error(tx, (scope, name, canary.version.as_str()), Some(error)).await?;
    Ok(canaries::end(tx, scope, name).await?)
}

pub(super) fn end_here(app: &App, scope: &str, name: &str) {
    app.connectors.forget_canary(scope, name);
    let scope = scope_from(scope);
    app.sandbox.end_canary(&scope, name);
    put_back(app, &scope, name);
}

/// Makes the sandbox agree with the store, when it does about what is at work. The caller holds `changing`.
pub(super) async fn follow(app: &App, rows: &[Canary]) -> Result<(), ConnectorError> {
    for known in app.connectors.canaries() {
        let is_known = |row: &Canary| row.scope == known.scope && row.name == known.name;
        if !rows.iter().any(is_known) {
            end_here(app, &known.scope, &known.name);
        }
    }
    for row in rows {
        let (scope, name, version) = (scope_from(&row.scope), &row.name, &row.version);
        if active(app, &scope, name).as_ref() != Some(&row.beside_version) {
            // A file of the operator's directory, or another bundle, has another one at work here.
            app.connectors.forget_canary(&row.scope, name);
            continue;
        }
        if app.connectors.knows_canary(row) {
            continue;
        }
        match carry_out(app, &scope, row).await {
            Ok(()) => {}
            Err(ConnectorError::Store(error)) => return Err(error.into()),
            Err(error) => {
                app.sandbox.end_canary(&scope, name);
                tracing::error!(scope = row.scope, name, version, %error, "cannot try out a canary: the version at work answers all calls here");
            }
        }
        // Nor is it tried again: the next one, or another share, is.
        app.connectors.note_canary(row.clone());
    }
    Ok(())
}

async fn carry_out(app: &App, scope: &Scope, row: &Canary) -> Result<(), ConnectorError> {
    let (name, version) = (row.name.as_str(), row.version.as_str());
    let candidate = shelf::fetch(app, scope, name, version).await?;
    let begun = match engines::claim(app, scope, &candidate.engine_ids).await {
        Ok(()) => app
            .sandbox
            .try_out(scope, name, version, row.share_percent)
            .await
            .map_err(ConnectorError::from),
        Err(error) => Err(error),
    };
    put_back(app, scope, name);
    begun.map(drop)
}

/// Beside what takes calls, only the version stays that a rollback would lead to.
pub(super) fn put_back(app: &App, scope: &Scope, name: &str) {
    let place = (scope_text(scope).to_owned(), name.to_owned());
    let previous = {
        let applied = app.connectors.applied.lock();
        applied
            .get(&place)
            .and_then(|choice| choice.previous_version.clone())
    };
    shelf::put_back(app, scope, name, previous.as_deref());
}
