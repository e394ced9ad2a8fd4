//! Undoing what was put to work and could not be written down.

use souk_sandbox::{ConnectorInfo, Scope};

use super::canary;
use super::loaded::scope_text;
use crate::App;

/// Puts `before` to work again here (`None`: nothing), after the store has not taken what was put to work in its place. An error does not say that
/// it has nothing of it (a connection may end in the middle of a commit): if it has, that is followed like another host's choice. Returns what is at
/// work. Called under `changing`.
pub(super) async fn take_back(
    app: &App,
    scope: &Scope,
    name: &str,
    before: Option<&str>,
) -> Option<ConnectorInfo> {
    let (text, connectors) = (scope_text(scope), &app.connectors);
    let restored = match before {
        Some(version) => app.sandbox.activate(scope, name, version).await,
        None => app.sandbox.deactivate(scope, name),
    };
    if let Err(error) = &restored {
        tracing::error!(scope = text, name, version = before, %error, "cannot put to work what was at work before");
        // What the store has is carried out again, as if it were new.
        let place = (text.to_owned(), name.to_owned());
        connectors.applied.lock().remove(&place);
    }
    // A canary of `before` has ended with it here, and is begun again if the store has it.
    connectors.forget_canary(text, name);
    canary::put_back(app, scope, name);
    connectors.changed.notify_one();
    restored.ok().filter(|_| before.is_some())
}
