//! What needs no promise: counts of use and records of free runs, written in batches behind the requests' backs.
//!
//! Counts are complete (but for the last moment before a crash). Individual records of free runs are kept as long as there are fewer than
//! [`ROWS_PER_FLUSH`] of a kind between two flushes, about 500 a second, of which a seller has no more than there are left, and what a seller
//! is allowed over time ([`Allowances`]); beyond that they are counted only. Charged runs do not come here: the poster books them with their charge, and only how long they took is counted here.
//!
//! Each thread counts for itself until a flush adds up what they have: counters that all of them write would be fetched from another core
//! for nearly every request.

use super::allowances::Allowances;
use super::counters::{Asked, Counts, Part, Sorted};
use crate::bulk::{Script, Style};
use crate::db::{self, Db};
use crate::error::StoreError;
use crate::executions::{self, DayCounts, DayKey, Ended, Outcome, Run};
use crate::failures::{self, Reason};
use crate::recent::{self, Noted, Unpruned};
use crate::times::{self, Timed};
use crate::usage::{self, HourCounts};
use crossbeam_utils::CachePadded;
use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard, RwLock};
use souk_domain::actors::Actor;
use souk_domain::ids::{CompanyId, KeyId};
use souk_domain::money::Credits;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use thread_local::ThreadLocal;

const FLUSH_EVERY: Duration = Duration::from_millis(500);
/// Failed and free runs each; the former are the ones that somebody looks for.
const ROWS_PER_FLUSH: usize = 256;
/// Records in one transaction: a few milliseconds, because charges wait for the same writer.
const ROWS_PER_COMMIT: usize = 128;

pub(super) struct Recorder {
    shared: Arc<Shared>,
}

struct Shared {
    db: Db,
    /// Each thread's.
    own: ThreadLocal<CachePadded<Own>>,
    /// Of all threads together since the last flush. Not written any more when they are as many as are kept.
    kept: CachePadded<Kept>,
    /// Records that could not be written.
    lost: AtomicU64,
    /// Sellers of whose products no more records are kept for now.
    used_up: RwLock<HashSet<CompanyId>>,
    /// One flush at a time.
    flushing: tokio::sync::Mutex<Flushing>,
}

/// What one flush leaves to the next.
#[derive(Default)]
struct Flushing {
    unpruned: Unpruned,
    allowances: Allowances,
    in_doubt: Option<InDoubt>,
}

/// Counts whose commit was not answered: nothing is counted before it is known whether these are.
struct InDoubt {
    /// Of their transaction.
    number: String,
    counts: Counts,
}

/// What one thread has counted.
#[derive(Default)]
struct Own {
    /// Nobody else locks it but a flush.
    pending: Mutex<Pending>,
    /// Records that were not kept, ever.
    dropped: AtomicU64,
}

/// Records since the last flush.
#[derive(Default)]
struct Kept {
    failed: AtomicUsize,
    free: AtomicUsize,
}

#[derive(Default)]
struct Pending {
    failed: Vec<(Run, Option<Reason>)>,
    free: Vec<Run>,
    /// How many of both each seller has there.
    of_sellers: HashMap<CompanyId, OfSeller>,
    noted: Noted,
    counts: Counts,
}

/// Records of one seller's products that a thread keeps.
#[derive(Default)]
struct OfSeller {
    failed: usize,
    free: usize,
}

impl OfSeller {
    fn of(&mut self, succeeded: bool) -> &mut usize {
        match succeeded {
            true => &mut self.free,
            false => &mut self.failed,
        }
    }
}

/// Starts the task that flushes. It ends with the recorder.
pub(super) fn start(db: Db) -> Recorder {
    let shared = Arc::new(Shared {
        db,
        own: ThreadLocal::default(),
        kept: CachePadded::default(),
        lost: AtomicU64::new(0),
        used_up: RwLock::default(),
        flushing: tokio::sync::Mutex::default(),
    });
    let weak = Arc::downgrade(&shared);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(FLUSH_EVERY).await;
            match weak.upgrade() {
                Some(shared) => shared.flush().await,
                None => return,
            }
        }
    });
    Recorder { shared }
}

impl Recorder {
    /// A run that costs nothing. `record` is made if it is kept.
    pub(super) fn record(&self, ended: &Ended<'_>, record: impl FnOnce() -> Run) {
        self.keep(ended, || (record(), None));
    }

    pub(super) fn record_failed(&self, run: &Run, reason: Reason) {
        self.keep(&Ended::of(run), || (run.clone(), Some(reason)));
    }

    fn keep(&self, ended: &Ended<'_>, record: impl FnOnce() -> (Run, Option<Reason>)) {
        let own = self.shared.own.get_or_default();
        let mut pending = own.pending.lock();
        pending.counts.run(ended);
        pending.counts.time(&Timed::of(ended));
        let succeeded = *ended.outcome == Outcome::Succeeded;
        let of_seller = || {
            let of_seller = pending.of_sellers.get_mut(ended.seller);
            of_seller.map_or(0, |kept| *kept.of(succeeded))
        };
        // Looked at where there is room only: others of the host's threads look, too.
        let may_keep = || !self.shared.used_up.read().contains(ended.seller);
        if !self.shared.kept.take_room(succeeded, of_seller, may_keep) {
            own.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let (run, reason) = record();
        let of_seller = pending.of_sellers.entry(run.seller.clone());
        *of_seller.or_default().of(succeeded) += 1;
        pending.noted.add(&run);
        match succeeded {
            true => pending.free.push(run),
            false => pending.failed.push((run, reason)),
        }
    }

    /// Notes a run that is about to be charged among its seller's newest: they are read with its row, which the poster writes.
    pub(super) fn note(&self, run: &Run) {
        self.shared.pending().noted.add(run);
    }

    /// Counts how long a charged run took.
    pub(super) fn time(&self, timed: &Timed<'_>) {
        self.shared.pending().counts.time(timed);
    }

    pub(super) fn count_use(&self, asked: Asked<'_>) {
        self.shared.pending().counts.asked(asked);
    }

    pub(super) fn dropped(&self) -> u64 {
        let dropped = self.shared.own.iter().map(|own| &own.dropped);
        let all = dropped.chain([&self.shared.lost]);
        all.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    pub(super) async fn flush(&self) {
        self.shared.flush().await;
    }
}

impl Kept {
    /// Takes room for a record, if there is more than those of its seller have: whatever somebody does with one seller's products, the next
    /// seller has room.
    fn take_room(
        &self,
        succeeded: bool,
        of_seller: impl FnOnce() -> usize,
        may_keep: impl FnOnce() -> bool,
    ) -> bool {
        let kept = match succeeded {
            true => &self.free,
            false => &self.failed,
        };
        // Looked at first: what nobody writes is at hand on every core.
        let left = ROWS_PER_FLUSH.saturating_sub(kept.load(Ordering::Relaxed));
        left > 0
            && of_seller() < left
            && may_keep()
            && kept.fetch_add(1, Ordering::Relaxed) < ROWS_PER_FLUSH
    }
}

impl Shared {
    /// This thread's.
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.own.get_or_default().pending.lock()
    }

    /// What all threads have had since the last time.
    fn take(&self) -> Pending {
        let mut all = Pending::default();
        for own in &self.own {
            // Unlocked at once: who answers requests does not wait until it is added up.
            let pending = std::mem::take(&mut *own.pending.lock());
            all.add(pending);
        }
        self.kept.free.store(0, Ordering::Relaxed);
        self.kept.failed.store(0, Ordering::Relaxed);
        all
    }

    async fn flush(&self) {
        let mut flushing = self.flushing.lock().await;
        flushing.in_doubt = match flushing.in_doubt.take() {
            Some(in_doubt) => self.settle(in_doubt).await,
            None => None,
        };
        let Pending {
            failed,
            free,
            noted,
            counts,
            of_sellers: _,
        } = self.take();
        match flushing.in_doubt.is_some() {
            true => self.pending().counts.add(counts),
            false => flushing.in_doubt = self.write_counts(counts).await,
        }
        let free = free.into_iter().map(|run| (run, None));
        let runs: Vec<(Run, Option<Reason>)> = failed.into_iter().chain(free).collect();
        let sellers = runs.iter().map(|(run, _)| &run.seller);
        *self.used_up.write() = flushing.allowances.take(sellers, Instant::now());
        for (index, runs) in runs.chunks(ROWS_PER_COMMIT).enumerate() {
            if let Err(error) = self.write_runs(runs).await {
                let lost = runs.len();
                self.lost.fetch_add(lost as u64, Ordering::Relaxed);
                tracing::warn!(%error, lost, chunk = index, "records of free runs could not be written");
            }
        }
        if let Err(error) = recent::write(&self.db, noted, &mut flushing.unpruned).await {
            tracing::warn!(%error, "some runs are missing among their sellers' newest");
        }
    }

    /// Counts again what has not got there. `Some`: it may still be on its way, or the store does not say.
    async fn settle(&self, in_doubt: InDoubt) -> Option<InDoubt> {
        match self.db.outcome(&in_doubt.number).await {
            Ok(db::Outcome::Committed) => None,
            Ok(db::Outcome::Open) => Some(in_doubt),
            Err(error) if !error.is_refusal() => Some(in_doubt),
            // A server that is another one since then knows no such number.
            Ok(db::Outcome::Undone) | Err(_) => {
                self.pending().counts.add(in_doubt.counts);
                None
            }
        }
    }

    /// A few at a time: charges go between. What is not written is kept, with all that comes after it, since the store may be away. Returns of what
    /// nobody knows whether it was written.
    async fn write_counts(&self, counts: Counts) -> Option<InDoubt> {
        let sorted = Sorted::of(counts);
        let mut left = sorted.all();
        while let Some((next, rest)) = left.split() {
            let mut number = None;
            if let Err(error) = self.write_part(next, &mut number).await {
                let kept = left.len();
                tracing::warn!(%error, kept, "counts of use could not be written; they are kept");
                let number = number.filter(|_| !error.is_refusal());
                let unwritten = if number.is_some() { rest } else { left };
                self.pending().counts.add_back(unwritten);
                return number.map(|number| {
                    let mut counts = Counts::default();
                    counts.add_back(next);
                    InDoubt { number, counts }
                });
            }
            left = rest;
        }
        None
    }

    /// All of it, or nothing: a key's totals are those of its hours. `number`: the transaction's, where it was to be committed on a server.
    async fn write_part(
        &self,
        part: Part<'_>,
        number: &mut Option<String>,
    ) -> Result<(), StoreError> {
        let Part { days, times, hours } = part;
        let days: Vec<(DayKey, DayCounts)> = days
            .iter()
            .map(|(key, counts)| (key.day_key(), *counts))
            .collect();
        let mut keys: BTreeMap<KeyId, HourCounts> = BTreeMap::new();
        for (hour, counts) in hours {
            if let Actor::Key(key) = &hour.actor {
                keys.entry(key.clone()).or_default().add(counts);
            }
        }
        let keys: Vec<_> = keys.into_iter().collect();
        self.db
            .write(async |write| -> Result<_, StoreError> {
                let mut script = Script::new(Style::Separate);
                executions::add_days(&mut script, &days);
                script.run(write).await?;
                times::add(write, times).await?;
                usage::add_hours(write, hours).await?;
                if self.db.is_shared() {
                    usage::lock_keys(write, &keys).await?;
                }
                usage::add_to_keys(write, &keys).await?;
                *number = db::number_of(write).await?;
                Ok(())
            })
            .await
    }

    async fn write_runs(&self, runs: &[(Run, Option<Reason>)]) -> Result<(), StoreError> {
        let rows: Vec<_> = runs
            .iter()
            .map(|(run, _)| executions::Row {
                run,
                transaction: None,
                credits: Credits::ZERO,
            })
            .collect();
        let failed: Vec<_> = runs
            .iter()
            .filter_map(|(run, reason)| Some((run, reason.as_ref()?)))
            .collect();
        let sellers: BTreeSet<&CompanyId> = failed.iter().map(|(run, _)| &run.seller).collect();
        self.db
            .write(async |write| {
                let mut script = Script::new(Style::Separate);
                executions::insert(&mut script, &rows);
                if !failed.is_empty() {
                    failures::insert(&mut script, &failed);
                }
                script.run(write).await?;
                failures::prune(write, &sellers).await
            })
            .await
    }
}

impl Pending {
    fn add(&mut self, other: Pending) {
        self.failed.extend(other.failed);
        self.free.extend(other.free);
        self.noted.join(other.noted);
        self.counts.add(other.counts);
    }
}
