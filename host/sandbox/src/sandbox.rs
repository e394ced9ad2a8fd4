//! `Sandbox`: the whole of this crate behind one type. It wires the parts together and decides
//! nothing itself. What it does with versions of connectors is in `versions`, with requests in `run`.

mod run;
mod versions;

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    cache::Cache,
    connector::LoadError,
    engine,
    errands::Errands,
    journal::{LogFilter, LogLine},
    lanes::{Lane, Lanes},
    metrics::Metrics,
    options::Options,
    pool::{Pool, Pools},
    registry::Registry,
    session,
    shared::Shared,
    source::Source,
    tenants::Tenants,
    ticker::{Seen, Ticker},
};

/// How often idle sessions and stale queues are looked at.
const SWEEP: Duration = Duration::from_secs(1);
/// Lanes give way to workers, which answer in microseconds, and still get a tenth of a core that is always busy.
const LANE_NICE: i32 = 10;
/// What has not shown yet that it ends, or has failed, gets a thirtieth.
const OUTER_LANE_NICE: i32 = 15;
/// And a quarter of what nobody else wants.
const OUTER_LANE_RESTS: u32 = 3;
/// Connectors that are compiled and linked at once. Whoever has uploads compiled leaves one of them: what was compiled before is loaded in a moment, and
/// everybody waits for that who changes connectors.
pub const LOADERS: usize = 3;
/// Of a company: one that is compiled, for minutes, and one that is only loaded.
const LOADERS_OF_COMPANY: usize = 2;
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
            per_company: LOADERS_OF_COMPANY,
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
    use std::{collections::HashSet, sync::mpsc};

    use parking_lot::Mutex;
    use souk_outbound::EgressPolicy;
    use tempfile::TempDir;
    use wasmtime::ResourceLimiter;

    use super::*;
    use crate::{
        connector::Scope,
        load,
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

    /// Components of so many companies that are compiled until what is returned is dropped.
    fn compilations(sandbox: &Sandbox, companies: usize) -> mpsc::Sender<()> {
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let (begin, begun) = mpsc::channel();
        for number in 0..companies {
            let (begin, held) = (begin.clone(), held.clone());
            let compile = async move {
                let _ = begin.send(());
                let _ = held.lock().recv();
            };
            let company = sandbox.shared.tenants.of(&number.to_string());
            let loaders = &sandbox.shared.loaders;
            loaders.call(&company, false, compile).detach();
        }
        for _ in 0..companies {
            begun.recv().unwrap();
        }
        release
    }

    /// Whoever has compiled code looked through waits for nobody's compilation.
    #[tokio::test]
    async fn compilations_hold_up_no_sweep() {
        let (sandbox, _directory) = sandbox();
        let release = compilations(&sandbox, LOADERS);
        let kept = sandbox.keep_code_of(HashSet::new());
        let kept = tokio::time::timeout(Duration::from_secs(10), kept).await;
        drop(release);
        assert!(kept.is_ok());
    }

    /// Nor does whoever loads what was compiled before, whosever components are compiled meanwhile.
    #[tokio::test]
    async fn compilations_hold_up_no_load() {
        let (sandbox, _directory) = sandbox();
        let release = compilations(&sandbox, LOADERS - 1);
        for company in ["0", "another"] {
            let digest = "0".repeat(64);
            let loaded = sandbox.load_kept(&digest, Scope::Company(company.to_owned()));
            let loaded = tokio::time::timeout(Duration::from_secs(10), loaded).await;
            assert!(matches!(loaded, Ok(Err(LoadError::NotKept))));
        }
        drop(release);
    }
}
