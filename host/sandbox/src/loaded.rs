//! A connector in memory: its code, what it says about itself, and how it has done.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use thread_local::ThreadLocal;
use wasmtime::component::InstancePre;

use crate::{
    canary::Beside,
    clock::now_micros,
    connector::{ConnectorInfo, EngineInfo, Need, Scope, SessionCount, Status, Trial},
    facts::Facts,
    v1::{DirectoryState, Exports, GuestEngine, WireState},
};

pub(crate) struct Connector {
    pub name: String,
    pub version: String,
    pub digest: String,
    pub scope: Scope,
    pub engines: Vec<GuestEngine>,
    pub need: Need,
    pub abilities: Vec<String>,
    /// Those of them that are about types.
    facts: Facts,
    pub settings_schema: String,
    pub wit_version: String,
    pub imports: Vec<String>,
    pub warnings: Vec<String>,
    pub exported: Vec<String>,
    pub size_bytes: u64,
    pub compile_ms: u64,
    pub loaded_at: i64,
    /// Several requests may be in flight on one session.
    pub pipelining: bool,
    /// It wants to know which requests come together.
    pub groups: bool,
    /// It wants to know which of them are all that there is to do.
    pub alone: bool,
    pub cancels: bool,
    /// Its sessions over a wire are told when nobody asks for anything.
    pub hears_of_idleness: bool,
    pub wire: InstancePre<WireState>,
    /// Present when `need` is `Directory`.
    pub directory: Option<InstancePre<DirectoryState>>,
    pub exports: Exports,
    pub stats: Stats,
    /// While it is at work: which calls are another version's.
    pub beside: Beside,
    status: AtomicU8,
    active_since: AtomicI64,
    /// What it had counted when the calls were shared.
    trial: Mutex<Option<Trial>>,
}

/// Everything about a connector that does not change, before it is one.
pub(crate) struct Parts {
    pub name: String,
    pub version: String,
    pub digest: String,
    pub scope: Scope,
    pub engines: Vec<GuestEngine>,
    pub need: Need,
    pub abilities: Vec<String>,
    pub settings_schema: String,
    pub wit_version: String,
    pub imports: Vec<String>,
    pub warnings: Vec<String>,
    pub exported: Vec<String>,
    pub size_bytes: u64,
    pub compile_ms: u64,
    pub wire: InstancePre<WireState>,
    pub directory: Option<InstancePre<DirectoryState>>,
    pub exports: Exports,
}

impl Connector {
    pub fn new(parts: Parts) -> Arc<Connector> {
        let has = |ability: &str| parts.abilities.iter().any(|known| known == ability);
        Arc::new(Connector {
            pipelining: has("pipelining"),
            groups: has("pipelining") && has("groups"),
            alone: has("alone"),
            cancels: has("cancel"),
            hears_of_idleness: has("idle"),
            facts: Facts::of(parts.abilities.iter().map(String::as_str)),
            name: parts.name,
            version: parts.version,
            digest: parts.digest,
            scope: parts.scope,
            engines: parts.engines,
            need: parts.need,
            abilities: parts.abilities,
            settings_schema: parts.settings_schema,
            wit_version: parts.wit_version,
            imports: parts.imports,
            warnings: parts.warnings,
            exported: parts.exported,
            size_bytes: parts.size_bytes,
            compile_ms: parts.compile_ms,
            loaded_at: now_micros(),
            wire: parts.wire,
            directory: parts.directory,
            exports: parts.exports,
            stats: Stats::default(),
            beside: Beside::default(),
            trial: Mutex::default(),
            status: AtomicU8::new(Status::Staged as u8),
            active_since: AtomicI64::new(0),
        })
    }

    pub fn status(&self) -> Status {
        match self.status.load(Ordering::Acquire) {
            value if value == Status::Staged as u8 => Status::Staged,
            value if value == Status::Active as u8 => Status::Active,
            value if value == Status::Canary as u8 => Status::Canary,
            value
                if value == Status::Draining as u8
                    && self.stats.sessions.load(Ordering::Acquire) > 0 =>
            {
                Status::Draining
            }
            // Drained: nobody has to be told.
            _ => Status::Retired,
        }
    }

    pub fn set_status(&self, status: Status) {
        self.status.store(status as u8, Ordering::Release);
        let since = if status == Status::Active {
            now_micros()
        } else {
            0
        };
        self.active_since.store(since, Ordering::Release);
    }

    /// What it meets is counted anew, from its first calls with this share on.
    pub fn begin_trial(&self, share_percent: u8) {
        *self.trial.lock() = Some(Trial {
            share_percent,
            since: now_micros(),
            calls: self.stats.calls(),
            traps: self.stats.traps.load(Ordering::Relaxed),
        });
    }

    pub fn end_trial(&self) {
        *self.trial.lock() = None;
    }

    /// Of the calls, while they are shared.
    pub fn share_percent(&self) -> u8 {
        self.trial.lock().map_or(100, |trial| trial.share_percent)
    }

    pub fn has_engine(&self, slug: &str) -> bool {
        self.engines.iter().any(|engine| engine.slug == slug)
    }

    pub fn info(&self, idle: u64) -> ConnectorInfo {
        let since = self.active_since.load(Ordering::Acquire);
        let (scope, company_id) = match &self.scope {
            Scope::Platform => ("platform", None),
            Scope::Company(company) => ("company", Some(company.clone())),
        };
        let [p50_ms, p95_ms] = self.stats.latency().percentiles_ms([0.50, 0.95]);
        let calls_total = self.stats.calls();
        let traps_total = self.stats.traps.load(Ordering::Relaxed);
        let trial = self.trial.lock().map(|begun| Trial {
            calls: calls_total.saturating_sub(begun.calls),
            traps: traps_total.saturating_sub(begun.traps),
            ..begun
        });
        ConnectorInfo {
            name: self.name.clone(),
            version: self.version.clone(),
            digest: self.digest.clone(),
            scope,
            company_id,
            engine_ids: self
                .engines
                .iter()
                .map(|engine| engine.slug.clone())
                .collect(),
            needs: vec![self.need],
            wit_version: self.wit_version.clone(),
            settings_schema: self.settings_schema.clone(),
            imports: self.imports.clone(),
            warnings: self.warnings.clone(),
            exports: self.exported.clone(),
            size_bytes: self.size_bytes,
            compile_ms: self.compile_ms,
            status: self.status(),
            error: None,
            loaded_at: self.loaded_at,
            active_since: (since > 0).then_some(since),
            trial,
            sessions: SessionCount {
                open: self.stats.sessions.load(Ordering::Relaxed),
                idle,
            },
            calls_total,
            traps_total,
            p50_ms,
            p95_ms,
        }
    }

    pub fn engine_info(&self, slug: &str) -> Option<EngineInfo> {
        let engine = self.engines.iter().find(|engine| engine.slug == slug)?;
        Some(EngineInfo {
            slug: engine.slug.clone(),
            title: engine.title.clone(),
            dialect: engine.dialect.clone(),
            credential_types: engine.credential_types.clone(),
            abilities: self.abilities.clone(),
            facts: self.facts.clone(),
            need: self.need,
            settings_schema: self.settings_schema.clone(),
            connector: self.name.clone(),
            version: self.version.clone(),
            digest: self.digest.clone(),
        })
    }
}

/// How a connector has done since this host loaded it.
#[derive(Default)]
pub(crate) struct Stats {
    pub sessions: AtomicU64,
    pub traps: AtomicU64,
    /// Of each thread that answered: what all of them write would be fetched from another core for each call.
    answered: ThreadLocal<CachePadded<Answered>>,
}

/// The calls that one thread has answered.
#[derive(Default)]
pub(crate) struct Answered {
    pub calls: AtomicU64,
    pub failures: AtomicU64,
    pub latency: Latency,
}

impl Stats {
    /// This thread's.
    #[inline]
    pub fn answered(&self) -> &Answered {
        self.answered.get_or_default()
    }

    fn sum(&self, of: impl Fn(&Answered) -> &AtomicU64) -> u64 {
        let counts = self.answered.iter().map(|answered| of(answered));
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    pub fn calls(&self) -> u64 {
        self.sum(|answered| &answered.calls)
    }

    pub fn failures(&self) -> u64 {
        self.sum(|answered| &answered.failures)
    }

    fn latency(&self) -> Latency {
        let all = Latency::default();
        for answered in &self.answered {
            for (count, other) in all.0.iter().zip(&answered.latency.0) {
                count.fetch_add(other.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        all
    }
}

/// Latencies in buckets a quarter of a power of two wide: percentiles within 10 %, one atomic
/// increment a request.
pub(crate) struct Latency([AtomicU64; BUCKETS]);

/// Four for each power of two of microseconds, up to about an hour.
const BUCKETS: usize = 4 * 32;

impl Default for Latency {
    fn default() -> Self {
        Latency([const { AtomicU64::new(0) }; BUCKETS])
    }
}

impl Latency {
    #[inline]
    pub fn record(&self, elapsed: Duration) {
        let micros = (elapsed.as_micros() as u64).max(4);
        let power = 63 - micros.leading_zeros() as usize;
        let quarter = (micros >> (power - 2)) as usize & 3;
        self.0[(power * 4 + quarter).min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
    }

    fn percentiles_ms<const N: usize>(&self, wanted: [f64; N]) -> [f64; N] {
        let counts: Vec<u64> = self
            .0
            .iter()
            .map(|bucket| bucket.load(Ordering::Relaxed))
            .collect();
        let total: u64 = counts.iter().sum();
        wanted.map(|share| {
            let rank = (total as f64 * share).ceil() as u64;
            let mut seen = 0;
            for (bucket, count) in counts.iter().enumerate() {
                seen += count;
                if *count > 0 && seen >= rank {
                    let (power, quarter) = (bucket / 4, bucket % 4);
                    let micros = (1u64 << power) as f64 * (1.0 + (quarter as f64 + 0.5) / 4.0);
                    return (micros / 10.0).round() / 100.0;
                }
            }
            0.0
        })
    }
}
