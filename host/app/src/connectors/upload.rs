//! Taking in a component: received, checked by the sandbox, kept in the store.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use souk_domain::ids::CompanyId;
use souk_sandbox::{ConnectorInfo, LoadError, Scope};
use souk_store::Write;
use souk_store::connectors::{self, CHUNK_BYTES, Stored, StoredConnector};

use super::compile_time::took;
use super::error::ConnectorError;
use super::loaded::{scope_text, versions};
use super::registry::key;
use super::versions::EVERY_CALL;
use super::{engines, shelf};
use crate::connections::schema;
use crate::detached::to_the_end;
use crate::{App, CompanyBounds};

/// Components with a language runtime and a database library inside stay below 20 MiB.
pub const COMPONENT_BYTES_MAX: usize = 64 << 20;
/// A client that sends nothing for so long has gone.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Versions that the platform may keep of all its connectors: each is compiled and held by every host. A company's share is a setting.
const VERSIONS_MAX: usize = 50;

/// Receives, checks, stores and stages a component; with `activate` it is put to work as well. What has been received is taken in to the end, whether
/// or not anybody waits for that: a compiler that runs is not ended, and what it takes is its company's. `held`: until then.
pub async fn upload<S, E>(
    app: &App,
    scope: &Scope,
    (by, is_staff): (&str, bool),
    body: S,
    activate: bool,
    held: impl Send + 'static,
) -> Result<ConnectorInfo, ConnectorError>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::fmt::Display,
{
    // Whoever sends slowly keeps nobody waiting: only what is there takes a turn.
    let wasm = receive(body).await?;
    let (app, scope, by) = (app.clone(), scope.clone(), by.to_owned());
    let work = to_the_end(held, async move {
        let taken = take_in(&app, &scope, (by.as_str(), is_staff), &wasm, activate).await;
        // Giving megabytes back to the system takes milliseconds.
        if let Scope::Company(company) = &scope {
            let _ = app.sandbox.compute(company, move || drop(wasm)).await;
        }
        taken
    });
    let taken = work.await;
    taken.map_err(|error| ConnectorError::Internal(error.to_string()))?
}

async fn take_in(
    app: &App,
    scope: &Scope,
    (by, is_staff): (&str, bool),
    wasm: &Bytes,
    activate: bool,
) -> Result<ConnectorInfo, ConnectorError> {
    let turn = app.connectors.turns.take(scope).await?;
    let before = versions(app, scope);
    let info = compile(app, scope, wasm).await?;
    let is_new = !before.contains(&(info.name.clone(), info.version.clone()));
    if let Err(reason) = check_schema(app, scope, &info).await {
        if is_new {
            shelf::discard(app, scope, &info);
        }
        return Err(ConnectorError::Invalid(reason));
    }
    let kept = match is_new && *scope == Scope::Platform && before.len() >= VERSIONS_MAX {
        true => Err(ConnectorError::Conflict(format!(
            "there are {VERSIONS_MAX} connector versions already: delete some first"
        ))),
        false => keep(app, scope, by, &info, wasm).await,
    };
    if let Err(error) = kept {
        if is_new {
            shelf::discard(app, scope, &info);
        }
        return Err(error);
    }
    // Nothing is compiled any more, and an activation waits for sources.
    drop(turn);
    let done = match activate {
        true => {
            let of = (info.name.as_str(), info.version.as_str());
            // What this upload holds is held for as long as it waits here.
            super::versions::activate(app, scope, of, EVERY_CALL, is_staff, ()).await
        }
        false => Ok(info.clone()),
    };
    if is_new && (done.is_err() || !activate) {
        // Nobody is about to activate it just now.
        let _changing = app.connectors.changing.lock().await;
        shelf::put_away(app, scope, &info);
    }
    done
}

/// Compiling a schema's patterns takes milliseconds.
async fn check_schema(app: &App, scope: &Scope, info: &ConnectorInfo) -> Result<(), String> {
    let Scope::Company(company) = scope else {
        return schema::check_schema(&info.settings_schema);
    };
    let text = info.settings_schema.clone();
    let checked = app
        .sandbox
        .compute(company, move || schema::check_schema(&text));
    checked
        .await
        .unwrap_or_else(|| Err("this host is shutting down".to_owned()))
}

/// Compiles and stages a component, within what its company may use.
async fn compile(app: &App, scope: &Scope, wasm: &Bytes) -> Result<ConnectorInfo, ConnectorError> {
    let Scope::Company(company) = scope else {
        return Ok(app.sandbox.load(wasm.clone(), scope.clone()).await?);
    };
    // Before the work: whoever has no room would have it done for nothing.
    let stored = app
        .db
        .ask(async |db| connectors::of_scope(db, company).await)
        .await?;
    let hashed = wasm.clone();
    let digest = app
        .sandbox
        .compute(company, move || hex::encode(Sha256::digest(hashed)));
    let digest = digest
        .await
        .ok_or_else(|| ConnectorError::Internal("this host is shutting down".to_owned()))?;
    if stored.iter().all(|version| version.digest != digest) {
        let bytes = stored.iter().map(|version| version.size_bytes).sum();
        let versions = stored.len() as i64;
        check_room(&app.bounds, Stored { versions, bytes }, wasm)?;
    }
    let seconds = app.bounds.compile_seconds;
    let max = Duration::from_secs(seconds.into());
    let began = Instant::now();
    if let Some(wait) = app.connectors.compile_time.wait(company, max, began) {
        return Err(ConnectorError::CompileTime {
            spent_seconds: seconds,
            wait_seconds: wait.as_secs() + 1,
        });
    }
    let loaded = app.sandbox.load(wasm.clone(), scope.clone()).await;
    let took = took(loaded.as_ref().ok().map(|info| info.compile_ms), began);
    app.connectors.compile_time.spend(company, took, began);
    Ok(loaded?)
}

/// Whether one more version has its place beside those that a company has stored.
fn check_room(bounds: &CompanyBounds, stored: Stored, wasm: &[u8]) -> Result<(), ConnectorError> {
    let versions_max = bounds.connector_versions;
    if stored.versions >= i64::from(versions_max) {
        return Err(ConnectorError::NoRoom(format!(
            "the company has {} connector versions, and may have {versions_max}: delete some first",
            stored.versions
        )));
    }
    if stored.bytes.saturating_add(wasm.len() as i64) > bounds.connector_bytes() {
        return Err(ConnectorError::NoRoom(format!(
            "with these {} bytes the company's connectors would have {}, and may have {} MiB together: delete some versions first",
            wasm.len(),
            stored.bytes.saturating_add(wasm.len() as i64),
            bounds.connector_mib
        )));
    }
    Ok(())
}

async fn receive<S, E>(mut body: S) -> Result<Bytes, ConnectorError>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::fmt::Display,
{
    let mut first = Bytes::new();
    let mut whole = Vec::new();
    loop {
        let next = tokio::time::timeout(IDLE_MAX, body.next()).await;
        let next = next.map_err(|_| {
            ConnectorError::Aborted(format!("no byte for {} seconds", IDLE_MAX.as_secs()))
        })?;
        let Some(bytes) = next else { break };
        let bytes = bytes.map_err(|error| ConnectorError::Aborted(error.to_string()))?;
        if first.len() + whole.len() + bytes.len() > COMPONENT_BYTES_MAX {
            return Err(ConnectorError::TooLarge {
                max: COMPONENT_BYTES_MAX,
            });
        }
        // One that was read whole already, because of its Idempotency-Key, is not copied.
        if first.is_empty() && whole.is_empty() {
            first = bytes;
            continue;
        }
        // Of address space only: what is not written takes no memory, and nothing is moved while it grows.
        whole.reserve_exact(COMPONENT_BYTES_MAX - whole.len());
        whole.extend_from_slice(&std::mem::take(&mut first));
        whole.extend_from_slice(&bytes);
    }
    match whole.is_empty() {
        true => Ok(first),
        false => Ok(Bytes::from(whole)),
    }
}

/// Writes the pieces, then the row. The same version with the same digest again changes nothing.
async fn keep(
    app: &App,
    scope: &Scope,
    by: &str,
    info: &ConnectorInfo,
    wasm: &[u8],
) -> Result<(), ConnectorError> {
    let _changing = app.connectors.changing.lock().await;
    engines::claim(app, scope, &info.engine_ids).await?;
    let bundled = *scope == Scope::Platform
        && app.connectors.bundled.lock().get(&info.name) == Some(&info.version);
    let text = scope_text(scope);
    let before = app
        .db
        .ask(async |db| connectors::get(db, text, &info.name, &info.version).await);
    match before.await? {
        Some(before) if before.digest == info.digest => {
            // An upload whose commit was not answered has left the row, and was not put down as stored.
            let key = key(text, &info.name, &info.version);
            app.connectors.stored.lock().insert(key, before.digest);
            return Ok(());
        }
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
        app.db
            .write(async |tx| {
                connectors::put_chunk(tx, &info.digest, piece as i64, bytes, app.clock.now()).await
            })
            .await?;
    }
    let row = StoredConnector {
        scope: text.to_owned(),
        name: info.name.clone(),
        version: info.version.clone(),
        digest: info.digest.clone(),
        size_bytes: wasm.len() as i64,
        uploaded_by: by.to_owned(),
        created_at: app.clock.now(),
        described: Some(shelf::described(info)),
        error: None,
    };
    let key = key(text, &info.name, &info.version);
    let kept = app.db.write(async |tx| {
        admit(&app.bounds, tx, scope, &row, wasm).await?;
        connectors::insert(tx, &row).await?;
        // Before the commit: its announcement must find the version known.
        let (stored, digest) = (&app.connectors.stored, row.digest.clone());
        stored.lock().insert(key.clone(), digest);
        Ok(())
    });
    let kept = kept.await;
    if let Err(error) = &kept {
        app.connectors.stored.lock().remove(&key);
        // What the store itself refused may have been written; what is left over is swept at the next start.
        if !matches!(error, ConnectorError::Store(_)) {
            shelf::forget_bytes(app, &row.digest, row.size_bytes).await?;
        }
    }
    kept
}

/// The last look before a version's row is written, in the same transaction.
async fn admit(
    bounds: &CompanyBounds,
    tx: &mut Write,
    scope: &Scope,
    row: &StoredConnector,
    wasm: &[u8],
) -> Result<(), ConnectorError> {
    if let Scope::Company(company) = scope {
        let company = CompanyId::parse(company)
            .map_err(|error| ConnectorError::Internal(error.to_string()))?;
        let stored = connectors::stored_to_insert(tx, &company).await?;
        check_room(bounds, stored, wasm)?;
    }
    // Another host may have deleted a version with the same bytes a moment ago.
    match connectors::is_whole(tx, &row.digest, row.size_bytes).await? {
        true => Ok(()),
        false => Err(ConnectorError::Conflict(
            "the same bytes were deleted at the same time: upload them again".to_owned(),
        )),
    }
}
