//! Which connectors run here: the bundled ones, those that were uploaded, and who chose which version.
//!
//! The store says what should run ([`souk_store::connectors`]); the sandbox is made to agree (`following`, `chosen`). A version that fails is left
//! where it is: what ran before goes on. See docs/decisions/0006-uploaded-connectors-live-in-the-store.md.
//!
//! - here: what is seen of them;
//! - `upload`: taking one in; `versions`: choosing one; `health`: whether it works; `rollback`: going back to the one before, `retreat`: from one that
//!   breaks; `undo`: what the store has not taken;
//! - `canary`: trying one out on a share of the calls, until it is chosen, ended, or breaks (`withdrawal`);
//! - `shelf`: what is stored and not in memory; `loaded`: what is; `ahead`: compiling what is stored before it is loaded;
//! - `engines`: what they bring, with the ids that the API knows; `serving`: which of them serves whom;
//! - `registry`: what this host remembers of them, with who compiles now (`turns`) and for how long (`compile_time`).

mod ahead;
mod canary;
mod chosen;
mod compile_time;
mod counted;
mod engines;
mod error;
mod following;
mod health;
mod loaded;
mod registry;
mod retreat;
mod rollback;
mod serving;
mod shelf;
mod turns;
mod undo;
mod upload;
mod versions;
mod withdrawal;

use souk_domain::ids::CompanyId;
use souk_sandbox::Status;
use souk_store::connections::{self, Depending};
use souk_store::connectors::{self, StoredConnector};
use souk_store::{Listed, Part};

use crate::App;
pub use engines::{Engines, offered};
pub use error::ConnectorError;
pub use following::{loaded_all, start};
use loaded::{scope_of, scope_text};
pub use registry::Registry;
pub use rollback::rollback;
pub(crate) use serving::{SERVING, need, scope_of_engine, serving, serving_ids};
pub use souk_sandbox::{ConnectorInfo, LogFilter, LogLine, Scope};
pub use upload::{COMPONENT_BYTES_MAX, upload};
pub use versions::{EVERY_CALL, activate, deactivate, remove};

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
            // Somebody has tried, or it was gone back from.
            Some(info)
                if !matches!(info.status, Status::Active | Status::Canary)
                    && row.error.is_some() =>
            {
                if info.status == Status::Staged {
                    info.status = Status::Rejected;
                }
                info.error = row.error;
            }
            Some(_) => {}
            // Of the platform's, which only staff has asked for: another host was given it a moment ago, or it could not be loaded.
            None => {
                let key = registry::key(&row.scope, &row.name, &row.version);
                let unloadable = app.connectors.unloadable.lock().get(&key).cloned();
                let error = unloadable.or(row.error);
                seen.push(shelf::unloaded(StoredConnector { error, ..row }));
            }
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
