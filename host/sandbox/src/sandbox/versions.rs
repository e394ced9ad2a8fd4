//! Which versions of which connectors are here, and which of them is at work. Start reading at [`Sandbox::load`].

use std::{
    collections::HashSet,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use bytes::Bytes;
use tokio::sync::Mutex;

use super::Sandbox;
use crate::{
    connector::{ConnectorInfo, EngineInfo, LoadError, Scope},
    load,
    loaded::Connector,
    source::platform_of,
    v1, watch,
};

/// How a component is told that is to be loaded.
enum Of {
    Bytes(Bytes),
    /// The same, but not to be compiled.
    Kept(Bytes),
    Digest(String),
}

impl Sandbox {
    /// Calls `listener` whenever another version serves the engines of a scope, whoever wanted it: from then on [`Sandbox::engine`] says
    /// so. The first listener stays.
    pub fn on_switch(&self, listener: impl Fn(&Scope) + Send + Sync + 'static) {
        let _ = self.shared.switched.set(Box::new(listener));
    }

    /// Compiles, checks and stages a component. The same bytes again are no error.
    pub async fn load(
        &self,
        wasm: impl Into<Bytes>,
        scope: Scope,
    ) -> Result<ConnectorInfo, LoadError> {
        let connector = self.stage(Of::Bytes(wasm.into()), scope).await?;
        Ok(connector.info(0))
    }

    /// The same of a component that was compiled here before, by its digest alone; else [`LoadError::NotKept`]: its bytes are needed.
    pub async fn load_kept(&self, digest: &str, scope: Scope) -> Result<ConnectorInfo, LoadError> {
        if !load::is_digest(digest) {
            return Err(LoadError::NotKept);
        }
        let connector = self.stage(Of::Digest(digest.to_owned()), scope).await?;
        Ok(connector.info(0))
    }

    /// Whether [`Sandbox::load_kept`] finds a component. All of its code is read.
    pub async fn has_code(&self, digest: &str, scope: &Scope) -> bool {
        if !load::is_digest(digest) {
            return false;
        }
        let (shared, digest) = (self.shared.clone(), digest.to_owned());
        let tenant = self.shared.tenant_of(scope);
        let found = self
            .shared
            .loaders
            .compute(&tenant, move || shared.cache.get(&digest).is_some());
        found.await.unwrap_or(false)
    }

    /// Compiles a component for whoever loads it next, and loads nothing. For how many milliseconds; none, if it was compiled here before.
    pub async fn compile(&self, wasm: impl Into<Bytes>, scope: &Scope) -> Result<u64, LoadError> {
        let (shared, owner, wasm) = (self.shared.clone(), scope.clone(), wasm.into());
        let tenant = self.shared.tenant_of(scope);
        let compiled = self.shared.loaders.compute(&tenant, move || {
            let digest = load::digest(&wasm);
            let (cache, options) = (&shared.cache, &shared.options);
            let _loading = cache.begin_loading(&digest);
            load::prepare(&shared.engine, cache, options, &wasm, &digest, &owner)
                .map(|prepared| prepared.compile_ms)
        });
        compiled.await.ok_or_else(load::stopping)?
    }

    async fn stage(&self, component: Of, scope: Scope) -> Result<Arc<Connector>, LoadError> {
        let (shared, owner) = (self.shared.clone(), scope.clone());
        let tenant = self.shared.tenant_of(&scope);
        let prepared = self.shared.loaders.compute(&tenant, move || {
            let digest = match &component {
                Of::Bytes(wasm) | Of::Kept(wasm) => load::digest(wasm),
                Of::Digest(digest) => digest.clone(),
            };
            if let Some(known) = shared.registry.by_digest(&owner, &digest) {
                return Ok(Err(known));
            }
            let (cache, options) = (&shared.cache, &shared.options);
            let loading = cache.begin_loading(&digest);
            let prepared = match &component {
                Of::Bytes(wasm) => {
                    load::prepare(&shared.engine, cache, options, wasm, &digest, &owner)
                }
                Of::Kept(_) | Of::Digest(_) => {
                    load::prepare_kept(&shared.engine, cache, options, &digest)
                }
            };
            drop(component);
            // What is damaged is written anew.
            let refused = matches!(&prepared, Err(error) if !matches!(error, LoadError::NotKept));
            let prepared = prepared.map(|prepared| Ok((prepared, loading)));
            if refused {
                shared.forget_code(&digest);
            }
            prepared
        });
        match prepared.await.ok_or_else(load::stopping)?? {
            Ok((prepared, loading)) => {
                let digest = prepared.digest.clone();
                let finished = load::finish(&self.shared, prepared, scope).await;
                let staged = finished.and_then(|connector| self.shared.registry.stage(connector));
                drop(loading);
                if staged.is_err() {
                    self.forget_code(&digest);
                }
                staged
            }
            Err(known) => Ok(known),
        }
    }

    /// Removes the compiled code of a component that was refused, unless a version here has the same bytes.
    fn forget_code(&self, digest: &str) {
        let (shared, digest) = (self.shared.clone(), digest.to_owned());
        // Of many megabytes: that takes the file system a moment.
        let forget = move || shared.forget_code(&digest);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(forget)),
            Err(_) => forget(),
        }
    }

    /// Removes compiled code that no version here has, and none whose digest is among `stored`. Not where connectors are compiled: whoever waits
    /// for this does not wait for those.
    pub async fn keep_code_of(&self, stored: HashSet<String>) {
        let shared = self.shared.clone();
        let kept = tokio::task::spawn_blocking(move || {
            let is_wanted =
                |digest: &str| stored.contains(digest) || shared.registry.has_digest(digest);
            shared.cache.keep_only(is_wanted)
        });
        match kept.await {
            Ok(Ok((0, _))) => {}
            Ok(Ok((files, bytes))) => {
                tracing::info!(files, bytes, "removed compiled code that nobody needs");
            }
            Ok(Err(error)) => tracing::warn!(%error, "cannot look through compiled code"),
            Err(error) => tracing::warn!(%error, "compiled code was not looked through"),
        }
    }

    /// Loads and activates many components at once, as at a start. Each has its own result. Of those that were not compiled here before one is compiled
    /// at a time: that takes four cores already, and hundreds of megabytes.
    pub async fn load_all(
        &self,
        components: &[(&str, &'static [u8])],
    ) -> Vec<Result<ConnectorInfo, LoadError>> {
        let turns = Arc::new(Mutex::new(()));
        let loads: Vec<_> = components
            .iter()
            .map(|(_, wasm)| {
                let (this, wasm) = (self.clone(), Bytes::from_static(wasm));
                let turns = turns.clone();
                tokio::spawn(async move {
                    let kept = this.stage(Of::Kept(wasm.clone()), Scope::Platform);
                    let connector = match kept.await {
                        Err(LoadError::NotKept) => {
                            let _turn = turns.lock().await;
                            this.stage(Of::Bytes(wasm), Scope::Platform).await?
                        }
                        kept => kept?,
                    };
                    this.switch(connector, false).await
                })
            })
            .collect();
        let mut results = Vec::with_capacity(loads.len());
        for load in loads {
            results.push(
                load.await
                    .unwrap_or_else(|error| Err(LoadError::Internal(error.to_string()))),
            );
        }
        results
    }

    /// Sends new requests to this version, after a health check. The version before drains.
    pub async fn activate(
        &self,
        scope: &Scope,
        name: &str,
        version: &str,
    ) -> Result<ConnectorInfo, LoadError> {
        let connector = self.shared.registry.find(scope, name, version)?;
        self.switch(connector, false).await
    }

    /// Activates the version that was active before.
    pub async fn rollback(&self, scope: &Scope, name: &str) -> Result<ConnectorInfo, LoadError> {
        let connector = self.shared.registry.earlier(scope, name)?;
        self.switch(connector, true).await
    }

    /// Gives a version a share of the calls, after a health check; the one at work keeps the others. 1 to 99 percent.
    pub async fn try_out(
        &self,
        scope: &Scope,
        name: &str,
        version: &str,
        share_percent: u8,
    ) -> Result<ConnectorInfo, LoadError> {
        let connector = self.shared.registry.find(scope, name, version)?;
        self.check_health(&connector).await?;
        self.shared.registry.try_out(&connector, share_percent)?;
        self.pools.follow();
        let digest = &connector.digest;
        tracing::info!(
            name,
            version,
            digest,
            share_percent,
            "a canary takes a share of the calls"
        );
        Ok(self.info(&connector))
    }

    /// The version at work takes all calls again. Those that the canary has end.
    pub fn end_canary(&self, scope: &Scope, name: &str) {
        if let Some(canary) = self.shared.registry.end_canary(scope, name) {
            self.pools.follow();
            tracing::info!(name, version = canary.version, "a canary is ended");
        }
    }

    /// Takes a connector off work. Calls in flight end; new ones find no connector.
    pub fn deactivate(&self, scope: &Scope, name: &str) -> Result<ConnectorInfo, LoadError> {
        let connector = self.shared.registry.deactivate(scope, name)?;
        if let Some(switched) = self.shared.switched.get() {
            switched(scope);
        }
        self.pools.follow();
        tracing::info!(name, version = connector.version, "connector deactivated");
        Ok(self.info(&connector))
    }

    /// Notes when what runs of a name was chosen (microseconds since the epoch), and which version (`None`: none): at a start, files of the
    /// watched directory that are older do not take its place.
    pub fn note_chosen(&self, scope: &Scope, name: &str, at: i64, version: Option<&str>) {
        self.shared.registry.note_chosen(scope, name, at, version);
    }

    pub(crate) fn is_kept_off(&self, info: &ConnectorInfo, at: i64) -> bool {
        let (name, version) = (&info.name, &info.version);
        self.shared
            .registry
            .is_kept_off(&Scope::Platform, name, version, at)
    }

    async fn switch(
        &self,
        connector: Arc<Connector>,
        back: bool,
    ) -> Result<ConnectorInfo, LoadError> {
        self.check_health(&connector).await?;
        self.shared.registry.activate(&connector, back)?;
        if let Some(switched) = self.shared.switched.get() {
            switched(&connector.scope);
        }
        self.pools.follow();
        let (name, version) = (&connector.name, &connector.version);
        tracing::info!(
            name,
            version,
            digest = connector.digest,
            "connector activated"
        );
        Ok(self.info(&connector))
    }

    /// Describes itself as it did before, and can be instantiated with what it will be given.
    async fn check_health(&self, connector: &Arc<Connector>) -> Result<(), LoadError> {
        let unhealthy = |reason: String| LoadError::Unhealthy {
            name: connector.name.clone(),
            version: connector.version.clone(),
            reason,
        };
        let shared = &self.shared;
        let scope = &connector.scope;
        let descriptor = load::describe(shared, scope, &connector.wire, &connector.exports)
            .await
            .map_err(|error| unhealthy(error.to_string()))?;
        if descriptor.name != connector.name || descriptor.version != connector.version {
            return Err(unhealthy(format!(
                "it now calls itself {} {}",
                descriptor.name, descriptor.version
            )));
        }
        if let Some(directory) = &connector.directory {
            let (directory, exports) = (directory.clone(), connector.exports.clone());
            let budget = load::probe_budget(shared, scope);
            let probe = shared
                .outer_lanes
                .call(&shared.tenant_of(scope), false, async move {
                    v1::probe_directory(&directory, &exports, &budget).await
                });
            probe.await.ok_or_else(load::stopping)?.map_err(|fault| {
                let detail = fault.detail.unwrap_or_default();
                unhealthy(format!("{} ({detail})", fault.message))
            })?;
        }
        Ok(())
    }

    /// Forgets a version that is not active.
    pub fn remove(&self, scope: &Scope, name: &str, version: &str) -> Result<(), LoadError> {
        self.shared.registry.remove(scope, name, version)
    }

    /// Every version of every connector, by scope, name and load order; then the rejected files of
    /// the watched directory.
    pub fn connectors(&self) -> Vec<ConnectorInfo> {
        let mut infos: Vec<ConnectorInfo> = self
            .shared
            .registry
            .all()
            .iter()
            .map(|connector| self.info(connector))
            .collect();
        infos.extend(self.shared.registry.rejected());
        infos
    }

    fn info(&self, connector: &Arc<Connector>) -> ConnectorInfo {
        let idle = self
            .pools
            .all()
            .iter()
            .filter(|pool| Arc::ptr_eq(&pool.connector, connector))
            .map(|pool| pool.counts()[1])
            .sum();
        connector.info(idle)
    }

    /// The engine `slug` as `company` sees it: the platform's connector first, then its own.
    pub fn engine(&self, company: &str, slug: &str) -> Option<EngineInfo> {
        self.shared
            .registry
            .resolve(company, slug)?
            .engine_info(slug)
    }

    /// All engines that `company` can use, by slug. The platforms of publishers are none.
    pub fn engines(&self, company: &str) -> Vec<EngineInfo> {
        self.shared
            .registry
            .engines(company)
            .iter()
            .filter(|(slug, _)| platform_of(slug).is_none())
            .filter_map(|(slug, connector)| connector.engine_info(slug))
            .collect()
    }

    /// Loads and activates what lies in the directory now, then looks again every second. A bad
    /// file leaves the version that runs active, and is logged once.
    pub async fn watch_directory(&self, path: &Path) {
        let mut watch = watch::Watch::new(path);
        watch.look(self).await;
        let pools = Arc::downgrade(&self.pools);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(watch::INTERVAL).await;
                let Some(pools) = pools
                    .upgrade()
                    .filter(|pools| !pools.shared.closed.load(Ordering::Acquire))
                else {
                    return;
                };
                let shared = pools.shared.clone();
                watch.look(&Sandbox { shared, pools }).await;
            }
        });
    }

    pub(crate) fn note_rejected(&self, file: &str, rejected: Option<ConnectorInfo>) {
        self.shared.registry.note_rejected(file, rejected);
    }
}
