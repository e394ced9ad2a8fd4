//! What each company uses of this host's sandbox at the moment, and how much it may. One company's guests,
//! sessions, sockets and failures are counted here and nowhere else; who wants more than its share is
//! refused with words of its own, and nobody else notices.

use std::{
    cmp::Reverse,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_utils::CachePadded;
use hashbrown::HashMap;
use parking_lot::{Mutex, RwLock};
use souk_outbound::{Lends, Lookups};
use tokio::sync::Semaphore;

use crate::fault::Fault;

/// Failures of a company's connectors that are told at once; later ones are told at [`FAILURE_PACE`].
const FAILURES_AT_ONCE: u32 = 20;
/// A failed call costs little, thousands a second cost a lot: this is how often one company's are told.
const FAILURE_PACE: Duration = Duration::from_millis(10);
/// One that was dear costs a company so many times what its guests have computed for it: failures get a twelfth of a core.
const FAILURE_SHARE: u32 = 12;
/// Cancel requests and errands of a company that are sent at once, and how often one may follow.
const ASIDES_AT_ONCE: u32 = 64;
const ASIDE_PACE: Duration = Duration::from_millis(20);
/// Lines of the host's log about connectors of a company that fail, which are written at once, and how often one may follow.
const LINES_AT_ONCE: u64 = 10;
const LINE_PACE_US: u64 = 1_000_000;
/// Nothing is held back for longer.
const DELAY_MAX: Duration = Duration::from_secs(1);
/// Work on a worker that is done at once; what comes after it waits until as much time has passed.
const WORK_AT_ONCE: Duration = Duration::from_millis(250);
/// Companies remembered before those that use nothing are forgotten, with their counters.
const IDLE_TENANTS_MAX: usize = 10_000;

/// Names of sources that are looked up at once: each holds a thread until its resolver answers.
const LOOKUPS_MAX: usize = 4;
/// Requests of a company that are in flight at once, unless the operator says otherwise.
const CALLS: usize = 512;
/// What a request is told that finds no place.
const CALLS_EXHAUSTED: &str = "calls_exhausted";
/// Errands at once: each is a session beside those that its requests have (`errands.rs`).
const ERRANDS_MAX: usize = 4;

/// What one company may use at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Sessions of all its data connections.
    pub sessions: usize,
    /// Requests to its data connections, waiting ones included. From half of them on a caller has no more than it leaves free for others.
    pub calls: usize,
    /// Linear memory of its guests.
    pub memory_bytes: usize,
    /// Sockets to its sources beyond the wires of sessions: HTTP, to engines and seller APIs, cancel requests and errands.
    pub sockets: usize,
    /// Processor time of its guests in a minute.
    pub processor: Duration,
}

impl Default for Quota {
    fn default() -> Self {
        Quota {
            // Eight data connections with as many sessions as one may have.
            sessions: 64,
            calls: CALLS,
            // A file engine keeps 160 MiB of a large file: a dozen sessions.
            memory_bytes: 2 << 30,
            sockets: Quota::sockets_for(CALLS),
            // Two cores: alone, a company may have the whole of a small machine.
            processor: Duration::from_secs(120),
        }
    }
}

impl Quota {
    /// So many that each of these calls finds one over HTTP: connectors ask their source one thing after the other for a call. A quarter more is for what
    /// they send beside calls (what stops one, or ends what it had begun), and for connections that are being closed.
    pub const fn sockets_for(calls: usize) -> usize {
        calls.saturating_add(calls / 4)
    }
}

/// One company's use.
pub(crate) struct Tenant {
    /// Of this process: for queues.
    pub id: u64,
    pub company: String,
    computed_us: AtomicU64,
    sessions: AtomicUsize,
    /// Written for each request, by all threads.
    calls: CachePadded<AtomicUsize>,
    /// Of those that were taken when half of them were: how many are whose.
    crowd: Mutex<HashMap<String, usize>>,
    memory: AtomicUsize,
    sockets: AtomicUsize,
    /// Who keeps connections for the next request.
    lenders: Mutex<Vec<Weak<dyn Lends<Held>>>>,
    lookups: Arc<Lookups>,
    errands: Arc<Semaphore>,
    first_errand: Arc<Semaphore>,
    /// Which minute it is, and what had been computed when it began.
    minute: AtomicU64,
    minute_began_us: AtomicU64,
    /// Requests that were refused because the company has used up one of its shares.
    refused: AtomicU64,
    /// When the next failure may be told, in microseconds since `born`.
    failure_us: AtomicU64,
    /// What its guests had computed at the last failure.
    failed_at_us: AtomicU64,
    /// When the next piece of work may be done, likewise.
    work_us: AtomicU64,
    /// When the next cancel request may be sent, likewise.
    aside_us: AtomicU64,
    /// When the next line about a failure may be written, by the host's clock, and how many were not since the last one.
    line_us: AtomicU64,
    unwritten: AtomicU64,
    born: Instant,
}

#[derive(Default)]
pub(crate) struct Tenants {
    by_company: RwLock<HashMap<String, Arc<Tenant>>>,
    next: AtomicU64,
}

impl Tenants {
    pub fn of(&self, company: &str) -> Arc<Tenant> {
        if let Some(tenant) = self.by_company.read().get(company) {
            return tenant.clone();
        }
        let mut by_company = self.by_company.write();
        if by_company.len() >= IDLE_TENANTS_MAX {
            by_company.retain(|_, tenant| Arc::strong_count(tenant) > 1);
        }
        by_company
            .entry(company.to_owned())
            .or_insert_with(|| {
                Arc::new(Tenant::new(
                    self.next.fetch_add(1, Ordering::Relaxed),
                    company,
                ))
            })
            .clone()
    }

    pub fn all(&self) -> Vec<Arc<Tenant>> {
        self.by_company.read().values().cloned().collect()
    }
}

impl Tenant {
    fn new(id: u64, company: &str) -> Tenant {
        Tenant {
            id,
            company: company.to_owned(),
            computed_us: AtomicU64::new(0),
            sessions: AtomicUsize::new(0),
            calls: CachePadded::default(),
            crowd: Mutex::default(),
            memory: AtomicUsize::new(0),
            sockets: AtomicUsize::new(0),
            lenders: Mutex::default(),
            lookups: Arc::new(Lookups::new(LOOKUPS_MAX)),
            errands: Arc::new(Semaphore::new(ERRANDS_MAX)),
            first_errand: Arc::new(Semaphore::new(1)),
            minute: AtomicU64::new(0),
            minute_began_us: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            failure_us: AtomicU64::new(0),
            failed_at_us: AtomicU64::new(0),
            work_us: AtomicU64::new(0),
            aside_us: AtomicU64::new(0),
            line_us: AtomicU64::new(0),
            unwritten: AtomicU64::new(0),
            born: Instant::now(),
        }
    }

    /// Its guests have used processor time.
    pub fn computed(&self, micros: u64) {
        self.computed_us.fetch_add(micros, Ordering::Relaxed);
    }

    pub fn computed_us(&self) -> u64 {
        self.computed_us.load(Ordering::Relaxed)
    }

    pub fn sessions(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    pub fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }

    pub fn sockets(&self) -> usize {
        self.sockets.load(Ordering::Relaxed)
    }

    pub fn lookups(&self) -> Arc<Lookups> {
        self.lookups.clone()
    }

    pub fn errands(&self) -> Arc<Semaphore> {
        self.errands.clone()
    }

    /// The place of the one errand that may have what is kept for companies without any.
    pub fn first_errand(&self) -> Arc<Semaphore> {
        self.first_errand.clone()
    }

    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub fn take_session(self: &Arc<Tenant>, max: usize) -> Option<Held> {
        let taken = take(&self.sessions, max).is_some();
        taken.then(|| Held::new(self, |tenant| &tenant.sessions))
    }

    /// Where all are taken, that of a connection which is kept and nobody uses at the moment.
    pub fn take_socket(self: &Arc<Tenant>, max: usize) -> Option<Held> {
        let free = || {
            let taken = take(&self.sockets, max).is_some();
            taken.then(|| Held::new(self, |tenant| &tenant.sockets))
        };
        // What was kept may have been closed meanwhile, and have given its place back.
        let held = free().or_else(|| self.lent_socket()).or_else(free);
        self.note(held.is_none());
        held
    }

    /// Of who has most to spare; of the next one where that has used it meanwhile.
    fn lent_socket(&self) -> Option<Held> {
        let mut lenders: Vec<_> = {
            let lenders = self.lenders.lock();
            lenders.iter().filter_map(Weak::upgrade).collect()
        };
        lenders.sort_by_cached_key(|lender| Reverse(lender.idle()));
        lenders.iter().find_map(|lender| lender.lend())
    }

    /// Connections of this client may make place for others.
    pub fn may_borrow(&self, from: Weak<dyn Lends<Held>>) {
        let mut lenders = self.lenders.lock();
        lenders.retain(|lender| lender.strong_count() > 0);
        lenders.push(from);
    }

    /// A place for one request to the company's data connections. From half of them on a caller is given one as long as it has fewer of that half
    /// than are free: then there is one for the next caller, too, however many callers want all of them.
    #[inline]
    pub fn take_call<'a>(&'a self, caller: &'a str, max: usize) -> Result<CallHeld<'a>, Fault> {
        match take(&self.calls, max) {
            Some(before) if before < max / 2 => Ok(CallHeld {
                tenant: self,
                in_crowd: None,
            }),
            Some(before) => self.take_crowded(caller, before, max),
            None => {
                let what =
                    format!("{max} requests to this company's data connections are in flight");
                Err(self.exhausted(CALLS_EXHAUSTED, what))
            }
        }
    }

    /// The same for who has taken a place already, when `before` were taken.
    #[cold]
    fn take_crowded<'a>(
        &'a self,
        caller: &'a str,
        before: usize,
        max: usize,
    ) -> Result<CallHeld<'a>, Fault> {
        let mut held = CallHeld {
            tenant: self,
            in_crowd: None,
        };
        let is_taken = {
            let mut crowd = self.crowd.lock();
            match crowd.get_mut(caller) {
                Some(own) if *own >= max - before => false,
                Some(own) => {
                    *own += 1;
                    true
                }
                None => {
                    crowd.insert(caller.to_owned(), 1);
                    true
                }
            }
        };
        if is_taken {
            held.in_crowd = Some(caller);
            return Ok(held);
        }
        let what = format!(
            "most of the {max} requests that may be in flight to this company's data connections are the caller's"
        );
        Err(self.exhausted(CALLS_EXHAUSTED, what))
    }

    fn leave_crowd(&self, caller: &str) {
        let mut crowd = self.crowd.lock();
        if let Some(own) = crowd.get_mut(caller) {
            *own -= 1;
            if *own == 0 {
                crowd.remove(caller);
            }
        }
    }

    /// Whether the company's guests may compute any more in this minute. `now_us` is any clock of microseconds.
    #[inline]
    pub fn check_processor(&self, max: Duration, now_us: u64) -> Result<(), Fault> {
        const MINUTE_US: u64 = 60_000_000;
        let (minute, used_us) = (now_us / MINUTE_US, self.computed_us());
        if self.minute.load(Ordering::Relaxed) != minute {
            self.minute.store(minute, Ordering::Relaxed);
            self.minute_began_us.store(used_us, Ordering::Relaxed);
        }
        let began_us = self.minute_began_us.load(Ordering::Relaxed);
        if used_us.saturating_sub(began_us) < max.as_micros() as u64 {
            return Ok(());
        }
        let what = format!(
            "this company's connectors have computed for {} s in this minute",
            max.as_secs()
        );
        let mut fault = self.exhausted("processor_exhausted", what);
        fault.retry_after_ms = Some((MINUTE_US - now_us % MINUTE_US).div_ceil(1_000));
        Err(fault)
    }

    /// Whether the company's guests may have this much more memory.
    pub fn take_memory(&self, bytes: usize, max: usize) -> bool {
        let taken = self
            .memory
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
                used.checked_add(bytes).filter(|used| *used <= max)
            })
            .is_ok();
        self.note(!taken);
        taken
    }

    pub fn give_memory(&self, bytes: usize) {
        self.memory.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Why a request is refused that needs more than the company's share. Not the caller's fault, and not
    /// the source's: it is told to try again.
    pub fn exhausted(&self, code: &str, what: impl std::fmt::Display) -> Fault {
        self.note(true);
        let message =
            format!("{what}, which is as many as one company may have: try again shortly");
        Fault::exhausted(code, message)
    }

    fn note(&self, refused: bool) {
        if refused {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How long a failure of one of its connectors or sources is held back before it is told. A client that asks again at
    /// once would otherwise fail thousands of times a second, at everybody's cost.
    pub fn failure_delay(&self) -> Duration {
        let computed_us = self.computed_us();
        let before_us = self.failed_at_us.swap(computed_us, Ordering::Relaxed);
        let computed = Duration::from_micros(computed_us.saturating_sub(before_us));
        self.delay(
            &self.failure_us,
            FAILURE_PACE.max((computed * FAILURE_SHARE).min(DELAY_MAX)),
            FAILURES_AT_ONCE * FAILURE_PACE,
        )
    }

    /// How long work of this cost is held back that a worker does for the company without a lane.
    pub fn work_delay(&self, cost: Duration) -> Duration {
        self.delay(&self.work_us, cost, WORK_AT_ONCE)
    }

    /// Whether a cancel request may be sent or an errand begun now: each is a connection that the source has to take.
    pub fn may_send_aside(&self) -> bool {
        self.delay(&self.aside_us, ASIDE_PACE, ASIDES_AT_ONCE * ASIDE_PACE)
            .is_zero()
    }

    /// Whether the host's log has a line about a connector that failed, and how many it had not before it, `more` among them. A data connection
    /// has a pace of its own; tests of connections that are not saved have a new one each. `now_us` is any clock of microseconds.
    pub fn writes(&self, more: u64, now_us: u64) -> Option<u64> {
        let next_us = |next_us: u64| {
            let next_us = next_us.max(now_us) + LINE_PACE_US;
            (next_us <= now_us + LINES_AT_ONCE * LINE_PACE_US).then_some(next_us)
        };
        let is_due = self
            .line_us
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next_us)
            .is_ok();
        if is_due {
            return Some(more + self.unwritten.swap(0, Ordering::Relaxed));
        }
        self.unwritten.fetch_add(more + 1, Ordering::Relaxed);
        None
    }

    /// A place in a queue that moves at its own pace, whose next free place is at `next_us`: at once within the
    /// first `at_once`, then when its time has come, never later than [`DELAY_MAX`].
    fn delay(&self, next_us: &AtomicU64, cost: Duration, at_once: Duration) -> Duration {
        let micros = |time: Duration| time.as_micros() as u64;
        let now_us = micros(self.born.elapsed());
        let latest_us = now_us + micros(at_once) + micros(DELAY_MAX);
        let told_us = |next_us: u64| (next_us.max(now_us) + micros(cost)).min(latest_us);
        let before_us = next_us
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next_us| {
                Some(told_us(next_us))
            })
            .unwrap_or(now_us);
        Duration::from_micros(told_us(before_us).saturating_sub(now_us + micros(at_once)))
    }
}

/// One of a company's places; dropping it gives it back.
pub(crate) struct Held {
    tenant: Arc<Tenant>,
    of: fn(&Tenant) -> &AtomicUsize,
}

impl Held {
    fn new(tenant: &Arc<Tenant>, of: fn(&Tenant) -> &AtomicUsize) -> Held {
        Held {
            tenant: tenant.clone(),
            of,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        (self.of)(&self.tenant).fetch_sub(1, Ordering::AcqRel);
    }
}

/// A place for a request. It borrows, because every request takes one.
pub(crate) struct CallHeld<'a> {
    tenant: &'a Tenant,
    /// Whose it is, where that is counted.
    in_crowd: Option<&'a str>,
}

impl Drop for CallHeld<'_> {
    fn drop(&mut self) {
        self.tenant.calls.fetch_sub(1, Ordering::AcqRel);
        if let Some(caller) = self.in_crowd {
            self.tenant.leave_crowd(caller);
        }
    }
}

/// How many were taken before, if there was one left. Never more than `max` even for a moment, in which others would find none.
#[inline]
fn take(used: &AtomicUsize, max: usize) -> Option<usize> {
    used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |used| {
        (used < max).then_some(used + 1)
    })
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Blame, FaultKind};

    /// Places are bounded for each company by itself, and come back.
    #[test]
    fn places_are_a_companys_own() {
        let tenants = Tenants::default();
        let (one, other) = (tenants.of("one"), tenants.of("other"));
        let held: Vec<_> = (0..2)
            .map(|_| one.take_call("caller", 2).unwrap())
            .collect();
        let fault = one.take_call("caller", 2).err().unwrap();
        assert_eq!((fault.blame, fault.kind), (Blame::Host, FaultKind::Busy));
        assert!(fault.retry_after_ms.is_some());
        assert!(other.take_call("caller", 2).is_ok());
        assert_eq!((one.calls(), one.refused()), (2, 1));
        drop(held);
        assert!(one.take_call("caller", 2).is_ok());
        assert!(one.take_memory(10, 10) && !one.take_memory(1, 10));
        one.give_memory(10);
        assert!(one.take_memory(1, 10) && !one.take_memory(usize::MAX, 10));
        assert!(Arc::ptr_eq(&one, &tenants.of("one")));
    }

    /// Whoever wants all of a company's places leaves some to the next caller, which does so in turn; and nothing is left over.
    #[test]
    fn a_caller_leaves_places_to_others() {
        let tenant = Tenants::default().of("seller");
        let all = |caller: &'static str| -> Vec<_> {
            std::iter::from_fn(|| tenant.take_call(caller, 64).ok()).collect()
        };
        let (greedy, another) = (all("greedy"), all("another"));
        assert_eq!((greedy.len(), another.len()), (48, 8));
        let honest = tenant.take_call("honest", 64).unwrap();
        let fault = tenant.take_call("greedy", 64).err().unwrap();
        assert_eq!(
            (fault.kind, fault.code.as_str()),
            (FaultKind::Busy, CALLS_EXHAUSTED)
        );
        assert_eq!(tenant.calls(), 57);
        drop((greedy, another, honest));
        assert_eq!(tenant.calls(), 0);
        assert!(tenant.crowd.lock().is_empty());
    }

    /// Who has used up its minute waits for the next one.
    #[test]
    fn processor_time_is_counted_by_the_minute() {
        let tenant = Tenants::default().of("company");
        let max = Duration::from_secs(2);
        assert!(tenant.check_processor(max, 59_000_000).is_ok());
        tenant.computed(2_000_000);
        let fault = tenant.check_processor(max, 59_000_000).err().unwrap();
        assert_eq!(fault.code, "processor_exhausted");
        assert_eq!(fault.retry_after_ms, Some(1_000));
        assert!(tenant.check_processor(max, 60_000_000).is_ok());
        tenant.computed(1_000_000);
        assert!(tenant.check_processor(max, 61_000_000).is_ok());
    }

    /// The first failures are told at once, then at a pace; no failure waits for longer than the bound, and
    /// somebody else's are told at once all the same.
    #[test]
    fn failures_are_told_at_a_pace() {
        let tenants = Tenants::default();
        let tenant = tenants.of("company");
        for _ in 0..FAILURES_AT_ONCE {
            assert_eq!(tenant.failure_delay(), Duration::ZERO);
        }
        let mut last = Duration::ZERO;
        for _ in 0..1_000 {
            last = tenant.failure_delay();
        }
        assert!(last > DELAY_MAX / 2 && last <= DELAY_MAX, "{last:?}");
        assert_eq!(tenants.of("other").failure_delay(), Duration::ZERO);
    }

    /// Who fails at a cost fails less often: a hundred failures of four milliseconds are told in seconds, not in one.
    #[test]
    fn dear_failures_are_told_more_slowly() {
        let tenants = Tenants::default();
        let [cheap, dear] = ["cheap", "dear"].map(|company| tenants.of(company));
        let delays = |tenant: &Tenant, us| {
            let mut delay = Duration::ZERO;
            for _ in 0..30 {
                tenant.computed(us);
                delay = tenant.failure_delay();
            }
            delay
        };
        let (cheap, dear) = (delays(&cheap, 0), delays(&dear, 4_000));
        assert!(cheap <= 11 * FAILURE_PACE, "{cheap:?}");
        assert!(dear > Duration::from_millis(700), "{dear:?}");
    }

    /// However many data connections fail, their company has so many lines at once and then one a second, and another company its own.
    #[test]
    fn lines_are_written_at_a_pace() {
        let tenants = Tenants::default();
        let tenant = tenants.of("company");
        let now_us = 5 * LINE_PACE_US;
        for more in 0..LINES_AT_ONCE {
            assert_eq!(tenant.writes(more, now_us), Some(more));
        }
        for _ in 0..1_000 {
            assert_eq!(tenant.writes(2, now_us), None);
        }
        assert_eq!(tenants.of("other").writes(1, now_us), Some(1));
        let later_us = now_us + LINE_PACE_US;
        assert_eq!(tenant.writes(1, later_us), Some(3_001));
        assert_eq!(tenant.writes(0, later_us), None);
    }
}
