//! Taking in a component: received, checked by the sandbox, kept in the store.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use parking_lot::Mutex;
use souk_domain::ids::KeyId;
use souk_sandbox::{ConnectorInfo, LoadError, Scope};
use souk_store::Topic;
use souk_store::connectors::{self, CHUNK_BYTES, StoredConnector};
use tokio::sync::{OwnedMutexGuard, Semaphore, SemaphorePermit};

use super::{ConnectorError, key, scope_text, versions};
use crate::App;

/// Components with a language runtime and a database library inside stay below 20 MiB.
pub const COMPONENT_BYTES_MAX: usize = 64 << 20;
/// A client that sends nothing for so long has gone.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Components that are checked and compiled at once, each in a child process; one more waits.
const TURNS_MAX: usize = 2;
/// Versions that one scope may keep of all its connectors: each is compiled and held by every host.
const VERSIONS_MAX: usize = 50;

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
    // Whoever sends slowly keeps nobody waiting: only what is there takes a turn.
    let wasm = receive(body).await?;
    let _turn = app.connectors.turns.take(scope).await?;
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
        true => super::activate(app, scope, &info.name, &info.version).await,
        false => Ok(info),
    }
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
            return Err(ConnectorError::TooLarge);
        }
        // One that was read whole already, because of its Idempotency-Key, is not copied.
        if first.is_empty() && whole.is_empty() {
            first = bytes;
            continue;
        }
        whole.extend_from_slice(&std::mem::take(&mut first));
        whole.extend_from_slice(&bytes);
    }
    match whole.is_empty() {
        true => Ok(first),
        false => Ok(Bytes::from(whole)),
    }
}

/// Who checks and compiles now. A scope has one turn at a time and waits for the next in line with the others, so that one with many
/// uploads does not push those of others back.
pub struct Turns {
    all: Semaphore,
    scopes: Mutex<HashMap<Scope, Arc<tokio::sync::Mutex<()>>>>,
}

struct Turn<'a> {
    _turn: SemaphorePermit<'a>,
    _own: OwnedMutexGuard<()>,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns {
            all: Semaphore::new(TURNS_MAX),
            scopes: Mutex::default(),
        }
    }
}

impl Turns {
    async fn take(&self, scope: &Scope) -> Result<Turn<'_>, ConnectorError> {
        let own = {
            let mut scopes = self.scopes.lock();
            scopes.retain(|_, line| Arc::strong_count(line) > 1);
            scopes.entry(scope.clone()).or_default().clone()
        };
        let own = own.lock_owned().await;
        let turn = self.all.acquire().await;
        let turn = turn.map_err(|error| ConnectorError::Internal(error.to_string()))?;
        Ok(Turn {
            _turn: turn,
            _own: own,
        })
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
