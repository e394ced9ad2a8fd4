//! Carrying out here what was chosen of a connector, by whichever host: the store has it.

use std::sync::atomic::Ordering;

use souk_sandbox::{LoadError, Scope, Status};
use souk_store::connectors::{self, Choice};

use super::error::ConnectorError;
use super::loaded::{scope_from, scope_text};
use super::{ahead, engines, shelf};
use crate::App;

/// What was chosen of this connector last, by whichever host, holds here too from now on: whoever changes something of it begins with that. Where its
/// version has to be compiled first, what is at work here holds until then. Called under `changing`.
pub(super) async fn catch_up(app: &App, scope: &Scope, name: &str) -> Result<(), ConnectorError> {
    let scope = scope_text(scope);
    let found = app.db.ask(async |db| {
        let Some(choice) = connectors::choice_of(db, scope, name).await? else {
            return Ok(None);
        };
        let row = connectors::get(db, scope, name, &choice.version).await?;
        Ok(Some((choice, row)))
    });
    let Some((choice, row)) = found.await? else {
        return Ok(());
    };
    match ahead::is_choice_ready(app, &choice, row.as_ref()).await {
        true => follow_choice(app, &choice).await,
        false => Ok(()),
    }
}

/// A choice is carried out once: what the operator's connector directory activates later stays.
pub(super) async fn follow_choice(app: &App, choice: &Choice) -> Result<(), ConnectorError> {
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
        return Ok(());
    }
    match carry_out(app, choice).await {
        Ok(()) => {}
        // The store is away, and says so again when it is back.
        Err(ConnectorError::Store(error)) => return Err(error.into()),
        // This host's own trouble: others have it at work, and so has this one when there is room (`following`).
        Err(error @ ConnectorError::DiskFull(_)) => {
            tracing::error!(scope = choice.scope, name = choice.name, version = choice.version, %error,
                "cannot activate the chosen version now; trying again");
            app.connectors.is_behind.store(true, Ordering::Release);
            return Ok(());
        }
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
    let candidate = shelf::fetch(app, &scope, name, &choice.version).await?;
    if candidate.status == Status::Active {
        return Ok(());
    }
    let activated = match engines::claim(app, &scope, &candidate.engine_ids).await {
        Ok(()) => app
            .sandbox
            .activate(&scope, name, &choice.version)
            .await
            .map_err(ConnectorError::from),
        Err(error) => Err(error),
    };
    shelf::put_back(app, &scope, name, choice.previous_version.as_deref());
    activated.map(|info| app.connectors.note_counted(&choice.scope, &info))
}
