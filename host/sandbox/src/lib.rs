//! The sandbox: runs connectors, which are WebAssembly components, and owns every wire they speak
//! over. It knows nothing of assets, prices, stores or status codes; nothing else in the product
//! knows wasmtime. Start reading at `Sandbox::run`, then `pool`, then `session`.

mod columns;
pub mod compile_child;
mod connector;
mod egress;
mod fault;
pub mod json;
mod options;
mod request;
mod source;

use std::{path::Path, sync::Arc, time::Instant};

pub use columns::{Batch, Cell, Chunk, Column, ColumnData, ColumnKind, Output, VarLen};
pub use connector::{ConnectorInfo, EngineInfo, LoadError, Need, Scope, SessionCount, Status};
pub use egress::{EgressPolicy, EgressRefused};
pub use fault::{Blame, Fault, FaultKind};
pub use options::{Compiler, Options, SandboxLimits};
pub use request::{Call, Limits, Query, Request, Route, SchemaFilter, Value};
pub use source::{Grant, PoolLimits, Source, TlsMode};

/// All connectors and all sessions of this host. Clones share them.
#[derive(Clone)]
pub struct Sandbox {
    shared: Arc<Options>,
}

impl Sandbox {
    pub fn new(options: Options) -> Result<Sandbox, LoadError> {
        Ok(Sandbox {
            shared: Arc::new(options),
        })
    }

    /// Compiles, checks and stages a component. The same bytes again are no error.
    pub async fn load(&self, wasm: &[u8], scope: Scope) -> Result<ConnectorInfo, LoadError> {
        let _ = (wasm, scope);
        Err(LoadError::Internal("not built yet".into()))
    }

    /// Sends new requests to this version, after a health check. The version before drains.
    pub async fn activate(
        &self,
        scope: &Scope,
        name: &str,
        version: &str,
    ) -> Result<ConnectorInfo, LoadError> {
        let _ = scope;
        Err(LoadError::Unknown {
            name: name.into(),
            version: version.into(),
        })
    }

    /// Activates the version that was active before.
    pub async fn rollback(&self, scope: &Scope, name: &str) -> Result<ConnectorInfo, LoadError> {
        let _ = scope;
        Err(LoadError::NoEarlier { name: name.into() })
    }

    /// Forgets a version that is not active.
    pub fn remove(&self, scope: &Scope, name: &str, version: &str) -> Result<(), LoadError> {
        let _ = scope;
        Err(LoadError::Unknown {
            name: name.into(),
            version: version.into(),
        })
    }

    /// Every version of every connector, by scope, name and load order.
    pub fn connectors(&self) -> Vec<ConnectorInfo> {
        Vec::new()
    }

    /// The engine `slug` as `company` sees it: its own connector first, then the platform's.
    pub fn engine(&self, company: &str, slug: &str) -> Option<EngineInfo> {
        let _ = (company, slug);
        None
    }

    /// All engines that `company` can use, by slug.
    pub fn engines(&self, company: &str) -> Vec<EngineInfo> {
        let _ = company;
        Vec::new()
    }

    /// Loads and activates what lies in the directory now, then looks again every second. A bad
    /// file leaves the version that runs active, and is logged once.
    pub async fn watch_directory(&self, path: &Path) {
        let _ = path;
    }

    /// Runs one request. On expiry the answer is a `Timeout` at the deadline, and the source is told.
    /// Dropping the future cancels the request.
    pub async fn run(
        &self,
        source: &Arc<Source>,
        request: Request,
        deadline: Instant,
    ) -> Result<Output, Fault> {
        let _ = (source, request, deadline);
        Err(Fault::new(
            Blame::Host,
            FaultKind::Internal,
            "not built yet",
        ))
    }

    /// Drops the sessions of a data connection: it was deleted or its credentials changed.
    pub fn forget(&self, company: &str, connection: &str) {
        let _ = (company, connection);
    }

    /// Resolves a host and checks every address: for refusing a connection when it is saved.
    pub async fn check_address(&self, host: &str, port: u16) -> Result<(), Fault> {
        let _ = (host, port);
        Ok(())
    }

    /// Refuses new requests, waits for those in flight until `deadline`, closes every session.
    pub async fn shut_down(&self, deadline: Instant) {
        let _ = deadline;
    }

    /// Prometheus text.
    pub fn render_metrics(&self, out: &mut String) {
        let _ = out;
    }
}
