//! Going back to the version that was at work before, because somebody asks for it. Nobody's asking is `retreat`'s.

use souk_sandbox::{ConnectorInfo, LoadError, Scope};

use super::error::ConnectorError;
use super::loaded::active;
use super::registry::key;
use super::versions::{check_block, choice_of, remember, turn_of, whole};
use super::{ahead, canary, chosen, engines, shelf};
use crate::App;

/// Activates the version that was active before; a second rollback returns. While a canary is tried out, that is what is left.
pub async fn rollback(
    app: &App,
    scope: &Scope,
    name: &str,
    is_staff: bool,
    held: impl Send + 'static,
) -> Result<ConnectorInfo, ConnectorError> {
    compile_previous(app, scope, name, is_staff).await?;
    let changing = app.connectors.change(scope, is_staff).await;
    let (app, scope, name) = (app.clone(), scope.clone(), name.to_owned());
    whole((changing, held), async move {
        go_back(&app, &scope, &name, is_staff).await
    })
    .await
}

/// What there is to go back to may have run on other hosts only, and compiling it takes minutes: nobody waits for that but who asked.
async fn compile_previous(
    app: &App,
    scope: &Scope,
    name: &str,
    is_staff: bool,
) -> Result<(), ConnectorError> {
    check_block(app, scope, name, is_staff).await?;
    let Some(choice) = choice_of(app, scope, name).await? else {
        return Ok(());
    };
    // Otherwise nothing is gone back to: it is refused, or a canary is ended.
    let is_wanted = choice.deactivated_at.is_none()
        && !ahead::is_under_way(app, &key(&choice.scope, name, &choice.version))
        && canary::beside(app, scope, name, &choice.version)
            .await?
            .is_none();
    let Some(previous) = choice.previous_version.filter(|_| is_wanted) else {
        return Ok(());
    };
    let Some(row) = ahead::to_compile(app, scope, name, &previous).await? else {
        return Ok(());
    };
    let turn = turn_of(app, scope).await?;
    let (app, scope) = (app.clone(), scope.clone());
    whole(
        turn,
        async move { ahead::compiled(&app, &row, &scope).await },
    )
    .await
}

/// The caller has `changing`.
async fn go_back(
    app: &App,
    scope: &Scope,
    name: &str,
    is_staff: bool,
) -> Result<ConnectorInfo, ConnectorError> {
    check_block(app, scope, name, is_staff).await?;
    // What another host has put to work a moment ago is what is gone back from.
    chosen::catch_up(app, scope, name).await?;
    let current = active(app, scope, name).ok_or(ConnectorError::NotFound)?;
    let choice = choice_of(app, scope, name).await?;
    if let Some(choice) = &choice
        && ahead::is_under_way(app, &key(&choice.scope, name, &choice.version))
    {
        return Err(ConnectorError::Conflict(format!(
            "connector \"{name}\" {} was put to work on another host, and is compiled here: try again when it is at work here, or go back there",
            choice.version
        )));
    }
    if let Some(beside) = canary::beside(app, scope, name, &current).await? {
        canary::end(app, &beside).await?;
        return shelf::fetch(app, scope, name, &current).await;
    }
    // What somebody has gone back to stays, however it does.
    let why = Some(format!("rolled back from {current}"));
    let none = || LoadError::NoEarlier {
        name: name.to_owned(),
    };
    let previous = choice
        .filter(|choice| choice.version == current)
        .and_then(|choice| choice.previous_version);
    let Some(previous) = previous else {
        // What a file of the operator's directory has put to work is in no row.
        let info = app.sandbox.rollback(scope, name).await?;
        remember(app, scope, (name, &info.version), Some(current), why).await?;
        return Ok(info);
    };
    let candidate = match shelf::fetch(app, scope, name, &previous).await {
        Err(ConnectorError::NotFound) => return Err(none().into()),
        fetched => fetched?,
    };
    engines::claim(app, scope, &candidate.engine_ids).await?;
    let info = app.sandbox.activate(scope, name, &previous).await?;
    shelf::put_back(app, scope, name, Some(&current));
    remember(app, scope, (name, &previous), Some(current), why).await?;
    Ok(info)
}
