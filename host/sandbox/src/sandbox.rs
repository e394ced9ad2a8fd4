//! `Sandbox`: the whole of this crate behind one type. It wires the parts together and decides
//! nothing itself.

use std::{
    collections::HashSet,
    path::Path,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use souk_outbound::spans;

use crate::{
    cache::Cache,
    columns::Output,
    connector::{ConnectorInfo, EngineInfo, LoadError, Need, Scope},
    engine,
    errands::Errands,
    fault::{Blame, Fault, FaultKind},
    followed::Part,
    journal::{LogFilter, LogLine},
    lanes::{Lane, Lanes},
    load,
    loaded::Connector,
    metrics::Metrics,
    options::Options,
    pool::{Job, Pool, Pools, Ticket, Waiting, shutting_down, timed_out},
    registry::Registry,
    request::Request,
    session,
    shared::Shared,
    source::{Source, platform_of},
    tenants::Tenants,
    ticker::{Seen, Ticker},
    v1::{self, World},
    watch,
};

/// How often idle sessions and stale queues are looked at.
const SWEEP: Duration = Duration::from_secs(1);
/// Lanes give way to workers, which answer in microseconds, and still get a tenth of a core that is always busy.
const LANE_NICE: i32 = 10;
/// What has not shown yet that it ends, or has failed, gets a thirtieth.
const OUTER_LANE_NICE: i32 = 15;
/// And a quarter of what nobody else wants.
const OUTER_LANE_RESTS: u32 = 3;
/// Connectors that are compiled and linked at once, one of a company.
const LOADERS: usize = 2;
const LOADER_NICE: i32 = 10;
/// How often a host that shuts down looks whether its requests have ended.
const DRAIN_POLL: Duration = Duration::from_millis(10);
/// How long it waits for sessions that have answered, and are done with something at their sources.
const WIND_UP: Duration = Duration::from_secs(2);

/// All connectors and all sessions of this host. Clones share them.
#[derive(Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
    pools: Arc<Pools>,
}

impl Sandbox {
    /// Reserves memory, opens the cache, starts the keeper thread.
    pub fn new(options: Options) -> Result<Sandbox, LoadError> {
        let internal = |error: &dyn std::fmt::Display| LoadError::Internal(error.to_string());
        let (engine, sessions) = engine::runtime(&options.limits)
            .map_err(|error| LoadError::Internal(format!("{error:#}")))?;
        let cache =
            Cache::open(&options.cache_dir, engine::fingerprint(&engine)).map_err(|error| {
                LoadError::Internal(format!(
                    "cannot use the cache directory {}: {error}",
                    options.cache_dir.display()
                ))
            })?;
        let runtime = tokio::runtime::Handle::try_current().ok();
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
        let lanes = Lane {
            name: "souk-lane",
            threads,
            nice: LANE_NICE,
            per_company: usize::MAX,
            rests: 0,
        };
        let outer_lanes = Lane {
            name: "souk-outer",
            nice: OUTER_LANE_NICE,
            rests: OUTER_LANE_RESTS,
            ..lanes
        };
        let computers = Lane {
            name: "souk-compute",
            threads: threads.max(2),
            nice: LANE_NICE,
            // Somebody else always finds a thread.
            per_company: threads.max(2) - 1,
            rests: 0,
        };
        let loaders = Lane {
            name: "souk-loader",
            threads: LOADERS,
            nice: LOADER_NICE,
            per_company: 1,
            rests: 0,
        };
        let tenants = Tenants::default();
        let ticker = Arc::new(Ticker::new(engine::TICK));
        let shared = Arc::new(Shared {
            engine,
            ticker: ticker.clone(),
            cache,
            registry: Registry::default(),
            host: tenants.of(""),
            tenants,
            journals: Arc::default(),
            lanes: Lanes::start(lanes, runtime.clone()).map_err(|error| internal(&error))?,
            outer_lanes: Lanes::start(outer_lanes, runtime.clone())
                .map_err(|error| internal(&error))?,
            computers: Lanes::start(computers, None).map_err(|error| internal(&error))?,
            loaders: Lanes::start(loaders, None).map_err(|error| internal(&error))?,
            errands: Errands::default(),
            runtime,
            switched: OnceLock::new(),
            born: Instant::now(),
            closed: AtomicBool::new(false),
            options,
        });
        let pools = Pools::new(shared.clone(), sessions as usize, session::start);
        let pools = Arc::new(pools);
        let weak = Arc::downgrade(&pools);
        std::thread::Builder::new()
            .name("souk-keeper".into())
            .spawn(move || keep(&weak, &ticker))
            .map_err(|error| internal(&error))?;
        Ok(Sandbox { shared, pools })
    }

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
        let connector = self.stage(wasm.into(), scope).await?;
        Ok(connector.info(0))
    }

    async fn stage(&self, wasm: Bytes, scope: Scope) -> Result<Arc<Connector>, LoadError> {
        let (shared, owner) = (self.shared.clone(), scope.clone());
        let tenant = self.shared.tenant_of(&scope);
        let prepared = self.shared.loaders.compute(&tenant, move || {
            let digest = load::digest(&wasm);
            if let Some(known) = shared.registry.by_digest(&owner, &digest) {
                return Ok(Err(known));
            }
            let (cache, options) = (&shared.cache, &shared.options);
            let loading = cache.begin_loading(&digest);
            let prepared = load::prepare(
                &shared.engine,
                cache,
                options,
                &wasm,
                digest.clone(),
                &owner,
            );
            drop(wasm);
            let refused = prepared.is_err();
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

    /// Loads and activates many components at once, as at a start. Each has its own result.
    pub async fn load_all(
        &self,
        components: &[(&str, &'static [u8])],
    ) -> Vec<Result<ConnectorInfo, LoadError>> {
        let loads: Vec<_> = components
            .iter()
            .map(|(_, wasm)| {
                let (this, wasm) = (self.clone(), Bytes::from_static(wasm));
                tokio::spawn(async move {
                    let connector = this.stage(wasm, Scope::Platform).await?;
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

    /// [`Sandbox::run_for`] the company whose data connection it is.
    pub async fn run(
        &self,
        source: &Arc<Source>,
        request: Request,
        deadline: Instant,
    ) -> Result<Output, Fault> {
        self.run_for(&source.company, source, request, deadline)
            .await
    }

    /// Runs one request for a company: callers of one data connection take turns. On expiry the answer is a `Timeout` at the deadline, and the
    /// source is told. Dropping the future cancels the request.
    pub async fn run_for(
        &self,
        caller: &str,
        source: &Arc<Source>,
        request: Request,
        deadline: Instant,
    ) -> Result<Output, Fault> {
        let shared = &self.shared;
        if shared.closed.load(Ordering::Acquire) {
            return Err(shutting_down());
        }
        let now = Instant::now();
        if deadline <= now {
            return Err(timed_out());
        }
        let pool = self.pools.get(source)?;
        let followed = spans::current().map(|call| (call, Part::of(&pool, &request)));
        let answer = self.run_in(&pool, caller, request, now, deadline).await;
        if let Some((call, part)) = followed {
            part.note(&call, now, &answer);
        }
        match &answer {
            Err(fault) if fault.is_paced() => {
                let delay = pool.tenant.failure_delay();
                if !delay.is_zero() {
                    Box::pin(tokio::time::sleep(delay)).await;
                }
            }
            _ => {}
        }
        answer
    }

    /// How long a company has to wait before a worker does work of this cost for it: so that many pieces which are each
    /// too short for [`Sandbox::compute`] do not take the workers from others either.
    pub fn work_delay(&self, company: &str, cost: Duration) -> Duration {
        self.shared.tenants.of(company).work_delay(cost)
    }

    /// Computes something for a company that would hold a worker for more than a moment: on threads of lower priority
    /// which serve companies by turns. `None`: the host is stopping, or `work` panicked. It cannot be suspended, so
    /// it must be bounded in itself.
    pub async fn compute<T: Send + 'static>(
        &self,
        company: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let tenant = self.shared.tenants.of(company);
        self.shared.computers.compute(&tenant, work).await
    }

    async fn run_in(
        &self,
        pool: &Arc<Pool>,
        caller: &str,
        request: Request,
        now: Instant,
        deadline: Instant,
    ) -> Result<Output, Fault> {
        let calls_max = self.shared.options.limits.quota.calls;
        let _place = pool.tenant.take_call(caller, calls_max)?;
        supports(&pool.connector, &request)?;
        let now_us = self.shared.micros(now);
        pool.breaker.admit(now_us)?;
        let processor = self.shared.options.limits.quota.processor;
        pool.tenant.check_processor(processor, now_us)?;
        let ticket = Arc::<Ticket>::default();
        let job = Job::new(caller, request, deadline, ticket.clone());
        let placed = pool.submit(job, now)?;
        let waiting = Waiting(ticket);
        // A session watches the deadlines of what it was given; the queue does not.
        if placed {
            return waiting.await;
        }
        tokio::time::timeout_at(deadline.into(), waiting)
            .await
            .unwrap_or_else(|_| Err(pool.waited()))
    }

    /// Runs one request on a session of its own of exactly this version, active or not: to see whether
    /// it works before it takes anybody's requests.
    pub async fn probe(
        &self,
        (scope, name, version): (&Scope, &str, &str),
        source: &Arc<Source>,
        request: Request,
        deadline: Instant,
    ) -> Result<Output, Fault> {
        let connector = self.shared.registry.find(scope, name, version);
        let connector = connector.map_err(|error| {
            Fault::new(Blame::Host, FaultKind::Unsupported, error.to_string())
                .code("connector_unknown")
        })?;
        let pool = Alone(self.pools.alone(connector, source)?);
        let ticket = Arc::<Ticket>::default();
        let job = Job::new(&source.company, request, deadline, ticket.clone());
        pool.0.submit(job, Instant::now())?;
        let answer = tokio::time::timeout_at(deadline.into(), Waiting(ticket)).await;
        answer.unwrap_or_else(|_| Err(timed_out()))
    }

    /// What guests have printed, and how they broke, as `filter` asks: oldest first. Of this host, since it started.
    pub fn log_lines(&self, filter: &LogFilter<'_>) -> Vec<LogLine> {
        self.shared.journals.lines(filter)
    }

    /// Drops the sessions of a data connection: it was deleted or its credentials changed. Requests
    /// in flight end first.
    pub fn forget(&self, company: &str, connection: &str) {
        self.pools.forget(company, connection);
    }

    /// For a data connection that is only tried, under an id of its own: its sessions go with what is returned, also where trying it is given up.
    pub fn tried<'a>(&'a self, source: &'a Source) -> Tried<'a> {
        Tried {
            sandbox: self,
            source,
        }
    }

    /// Refuses new requests, waits for those in flight until `deadline`, closes every session.
    pub async fn shut_down(&self, deadline: Instant) {
        self.shared.closed.store(true, Ordering::Release);
        for pool in self.pools.all() {
            pool.retire();
        }
        while Instant::now() < deadline {
            let busy = self.pools.all().iter().any(|pool| {
                let [_, _, queued, in_flight] = pool.counts();
                queued + in_flight > 0
            });
            if !busy {
                break;
            }
            tokio::time::sleep(DRAIN_POLL).await;
        }
        let deadline = deadline.min(Instant::now() + WIND_UP);
        let has_sessions = |pool: &Arc<Pool>| pool.counts()[0] > 0;
        while Instant::now() < deadline && self.pools.all().iter().any(has_sessions) {
            tokio::time::sleep(DRAIN_POLL).await;
        }
        for pool in self.pools.all() {
            pool.abort();
        }
    }

    /// For a registry of metrics.
    pub fn metrics(&self) -> Metrics {
        Metrics {
            shared: self.shared.clone(),
            pools: self.pools.clone(),
        }
    }
}

/// A data connection for as long as it is tried.
#[must_use = "what is tried is forgotten when this is dropped"]
pub struct Tried<'a> {
    sandbox: &'a Sandbox,
    source: &'a Source,
}

impl Drop for Tried<'_> {
    fn drop(&mut self) {
        let Source {
            company,
            connection,
            ..
        } = self.source;
        self.sandbox.forget(company, connection);
    }
}

/// A pool that the keeper knows nothing of. It ends with whoever asks by it, also where that is given up: else its session would stay for ever.
struct Alone(Arc<Pool>);

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.retire();
    }
}

/// What a connector does not say it can do is not asked of it.
#[inline]
fn supports(connector: &Connector, request: &Request) -> Result<(), Fault> {
    let is_publisher = connector.exports.world() == World::Publisher;
    let ability = match request {
        Request::Query(_) | Request::Ping(_) if !is_publisher => return Ok(()),
        Request::Publish(_) | Request::Check(_) if is_publisher => return Ok(()),
        Request::Query(_) | Request::Ping(_) => "queries",
        Request::Publish(_) | Request::Check(_) => "publishing",
        Request::Schema(_) => "schema",
        Request::Call(_) => "functions",
        // A session asks for it, nobody else.
        Request::Errand(_) => "errands from outside",
    };
    if connector.abilities.iter().any(|known| known == ability) {
        return Ok(());
    }
    let (name, need) = (&connector.name, connector.need);
    let what = if need == Need::Http {
        "API"
    } else {
        "database"
    };
    Err(Fault::new(
        Blame::Caller,
        FaultKind::Unsupported,
        format!("connector \"{name}\" does not offer \"{ability}\" for this {what}"),
    )
    .code("ability_missing"))
}

/// Ticks the engine's clock and sweeps the pools, until the sandbox is gone.
fn keep(pools: &Weak<Pools>, ticker: &Ticker) {
    let (mut swept, mut seen) = (Instant::now(), Seen::default());
    loop {
        let Some(pools) = pools.upgrade() else {
            return;
        };
        pools.shared.engine.increment_epoch();
        let now = Instant::now();
        if now - swept >= SWEEP {
            swept = now;
            pools.sweep(now);
        }
        drop(pools);
        ticker.wait(&mut seen, SWEEP);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use parking_lot::Mutex;
    use souk_outbound::EgressPolicy;
    use tempfile::TempDir;
    use wasmtime::ResourceLimiter;

    use super::*;
    use crate::{
        options::Compiler,
        v1::{GuestState, Printer, WireState},
    };

    fn sandbox() -> (Sandbox, TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let egress = EgressPolicy::unrestricted();
        let options = Options::new(directory.path(), egress, Compiler::InProcess);
        (Sandbox::new(options).unwrap(), directory)
    }

    /// What a component takes that is only asked who it is, is its company's and the host's, but for as much as one wire session may have: so much
    /// it has while its company has used up everything.
    #[tokio::test]
    async fn who_is_asked_who_it_is_is_counted() {
        const MIB: usize = 1 << 20;
        let (sandbox, _directory) = sandbox();
        let shared = &sandbox.shared;
        let (tenant, all) = (
            shared.tenants.of("company"),
            shared.options.limits.quota.memory_bytes,
        );
        let scope = Scope::Company("company".to_owned());
        let budget = load::probe_budget(shared, &scope);
        let grows = |guest: &mut WireState, from: usize, to: usize| {
            let limits = guest.limits_mut();
            limits.memory_growing(from * MIB, to * MIB, None).unwrap()
        };
        let mut guest = WireState::new(&budget, Printer::default());
        assert!(grows(&mut guest, 0, 64));
        assert_eq!(tenant.memory(), 0);
        assert!(grows(&mut guest, 64, 200));
        assert_eq!(
            (tenant.memory(), shared.host.memory()),
            (136 * MIB, 136 * MIB)
        );

        assert!(tenant.take_memory(all - 136 * MIB, all));
        assert!(!grows(&mut guest, 200, 201));
        let mut another = WireState::new(&budget, Printer::default());
        assert!(grows(&mut another, 0, 64) && !grows(&mut another, 64, 65));
        drop((guest, another));
        assert_eq!(
            (tenant.memory(), shared.host.memory()),
            (all - 136 * MIB, 0)
        );
    }

    /// Whoever has compiled code looked through waits for nobody's compilation.
    #[tokio::test]
    async fn compilations_hold_up_no_sweep() {
        let (sandbox, _directory) = sandbox();
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let (begin, begun) = mpsc::channel();
        for number in 0..LOADERS {
            let (begin, held) = (begin.clone(), held.clone());
            let compile = async move {
                let _ = begin.send(());
                let _ = held.lock().recv();
            };
            let company = sandbox.shared.tenants.of(&number.to_string());
            let loaders = &sandbox.shared.loaders;
            loaders.call(&company, false, compile).detach();
        }
        for _ in 0..LOADERS {
            begun.recv().unwrap();
        }
        let kept = sandbox.keep_code_of(HashSet::new());
        let kept = tokio::time::timeout(Duration::from_secs(10), kept).await;
        drop(release);
        assert!(kept.is_ok());
    }
}
