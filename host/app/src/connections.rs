//! Data connections: what may be saved, what a connector gets of it, whether it works.
//!
//! - here: create, change, delete;
//! - [`input`]: what a client says; [`prepare`]: whether that may be saved;
//! - [`stored`]: what was saved;
//! - [`schema`]: what a connector's schema says of its settings;
//! - [`source`]: a connection as the sandbox wants it; [`sources`]: those in use;
//! - [`check`]: does it work, and if not, why, in words for its owner;
//! - [`routings`]: do both routings of a seller API answer alike;
//! - [`catalog`]: what tables there are.
//!
//! Credentials are text only between the request and the seal, and between the seal and the sandbox.

pub mod catalog;
pub mod check;
mod differences;
mod error;
mod input;
mod prepare;
pub mod routings;
pub(crate) mod schema;
pub mod source;
pub(crate) mod sources;
mod stored;

use souk_domain::connections::{Checked, Target};
use souk_domain::fields::FieldErrors;
use souk_domain::ids::{CompanyId, ConnectionId, UserId};
use souk_store::connections::Connection;
use souk_store::{Write, connections, files};

use crate::App;
use crate::detached::{AtTheEnd, to_the_end};
use crate::members;
pub use error::ConnectionError;
use error::no_file;
pub use input::Input;
use prepare::Prepared;
pub use stored::{get, published};

/// Saves a new connection; nothing is dialled. `of_caller`: the user whose key is used.
pub async fn create(
    app: &App,
    company: &CompanyId,
    of_caller: Option<&UserId>,
    input: &Input,
) -> Result<Connection, ConnectionError> {
    let id = ConnectionId::generate();
    let mut errors = FieldErrors::default();
    let given = input.user_id.as_deref();
    let user = members::owner(app, company, given, of_caller, &mut errors).await?;
    let draft = Prepared::new(app, company, input, None, errors).await?;
    let user = user.ok_or(ConnectionError::NotFound)?;
    let sealed = draft.seal(app, company, &id)?;

    let connection = app
        .db
        .write(async |tx| -> Result<_, ConnectionError> {
            let connections_max = app.bounds.connections;
            if connections::count_to_insert(tx, company).await? >= i64::from(connections_max) {
                return Err(ConnectionError::TooMany(connections_max));
            }
            lock_file(tx, company, &draft.checked.target).await?;
            let written = draft.written(&sealed);
            let now = app.clock.now();
            connections::insert(tx, &id, company, &user, draft.engine_id, &written, now).await?;
            let connection = connections::get(tx, company, &id).await?;
            Ok(connection)
        })
        .await?;
    connection.ok_or(ConnectionError::NotFound)
}

/// Changes a connection, and lets go of its sessions, whether or not anybody waits for that. True: something that its sessions depend on
/// changed, so it should be tested.
pub async fn change(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
    input: &Input,
) -> Result<(Connection, bool), ConnectionError> {
    let before = get(app, company, id).await?;
    let draft = Prepared::new(app, company, input, Some(&before), FieldErrors::default()).await?;
    let sealed = match &draft.credentials {
        Some(_) => draft.seal(app, company, id)?,
        None => before.credentials.clone(),
    };
    let retest = draft.credentials.is_some() || !same_source(&before, &draft.checked);

    let turn = app.reconnecting.stand(company).await;
    let (app, company, id) = (app.clone(), company.clone(), id.clone());
    let saved = to_the_end(turn, async move {
        let revision = retest.then_some(before.revision);
        save(&app, &company, &id, revision, &draft, &sealed).await
    });
    let after = saved.await??;
    Ok((after.ok_or(ConnectionError::NotFound)?, retest))
}

/// Writes a change down and lets go of the sessions from before. `revision`: that they depend on it, and what it was made of.
async fn save(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
    revision: Option<i64>,
    draft: &Prepared,
    sealed: &[u8],
) -> Result<Option<Connection>, ConnectionError> {
    let saved = app.db.write(async |tx| -> Result<_, ConnectionError> {
        lock_file(tx, company, &draft.checked.target).await?;
        let written = draft.written(sealed);
        let now = app.clock.now();
        let done = match revision {
            Some(revision) => connections::update(tx, company, id, revision, &written, now).await?,
            None => connections::relabel(tx, company, id, &written, now).await?,
        };
        if !done {
            return Err(ConnectionError::Lost);
        }
        let after = connections::get(tx, company, id).await?;
        Ok(after)
    });
    let sessions = revision.is_some().then(|| letting_go(app, company, id));
    let saved = saved.await;
    if is_refused(&saved)
        && let Some(sessions) = sessions
    {
        sessions.spare();
    }
    saved
}

/// Lets go of the sessions when it is dropped: whoever opened one before opened it with what may not hold any more.
fn letting_go(app: &App, company: &CompanyId, id: &ConnectionId) -> AtTheEnd<impl FnOnce() + Send> {
    AtTheEnd::of(move || app.sandbox.forget(company.as_str(), id.as_str()))
}

/// Whether nothing was written, so that sessions stay what they are. Where the store has failed, nobody knows.
fn is_refused<T>(written: &Result<T, ConnectionError>) -> bool {
    !matches!(written, Ok(_) | Err(ConnectionError::Failed(_)))
}

/// Deletes a connection that no living product runs on, likewise; its credentials are overwritten.
pub async fn delete(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
) -> Result<(), ConnectionError> {
    let turn = app.reconnecting.stand(company).await;
    let (app, company, id) = (app.clone(), company.clone(), id.clone());
    let deleted = to_the_end(turn, async move { delete_whole(&app, &company, &id).await });
    deleted.await?
}

async fn delete_whole(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
) -> Result<(), ConnectionError> {
    let deleted = app.db.write(async |tx| -> Result<_, ConnectionError> {
        // The row is changed first: who gives a product to it meanwhile locks it, and waits for this transaction.
        if !connections::delete(tx, company, id, app.clock.now()).await? {
            return Err(ConnectionError::NotFound);
        }
        let (assets, endpoints) = connections::dependants(tx, company, id, None).await?;
        if assets + endpoints > 0 {
            return Err(ConnectionError::InUse { assets, endpoints });
        }
        Ok(())
    });
    let sessions = letting_go(app, company, id);
    let deleted = deleted.await;
    if is_refused(&deleted) {
        sessions.spare();
    }
    deleted
}

/// Whether a session opened before the change would still be right after it.
fn same_source(before: &Connection, after: &Checked) -> bool {
    before.target().is_ok_and(|target| target == after.target)
        && before.statement_timeout_ms == after.statement_timeout_ms
        && before.credential_type == after.credential_type
}

/// Keeps the file of a connection from being deleted meanwhile.
async fn lock_file(
    tx: &mut Write,
    company: &CompanyId,
    target: &Target,
) -> Result<(), ConnectionError> {
    let Target::File { name } = target else {
        return Ok(());
    };
    match files::lock(tx, company, name).await? {
        true => Ok(()),
        false => Err(ConnectionError::Invalid(vec![no_file(company, name)])),
    }
}
