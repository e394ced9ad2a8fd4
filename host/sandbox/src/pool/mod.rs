//! The sessions of one data connection: which one takes a request, when another one is opened, who
//! waits (`dispatch`), and what becomes of them. Knows nothing of guests or wires (`crate::session` has those, and is reached through `pools::Open`).
//!
//! A session is polled by the thread that opened it, and a request prefers the sessions of its own
//! thread: then it never changes threads. With `pipelining` a request joins a session whose oldest
//! request is young, so that many clients share few backends and few system calls; a session that
//! is busy with something slow takes no more, over HTTP few more. Sessions that slow ones need are opened
//! side by side, from a source that takes them; one at a time from one that has yet to show that it does. One
//! that refuses a session is left alone for a pause (`backoff`), as long as others serve whoever waits.

mod backoff;
mod breaker;
mod dispatch;
mod gauge;
mod pace;
mod place;
mod pools;
mod pressure;
mod queue;
mod reliability;
mod session;
mod ticket;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use souk_outbound::Trust;

use backoff::Backoff;
use breaker::Breaker;
use gauge::Waits;
pub(crate) use gauge::{Gauge, Permit};
use pace::Pace;
pub(crate) use place::home;
use place::{Seat, Sharing};
pub(crate) use pools::Pools;
pub(crate) use pressure::{Pressure, Sampled};
use queue::Queue;
use reliability::Reliability;
pub(crate) use session::{Handle, Job};
pub(crate) use ticket::{Answer, Ticket, Waiting};

use crate::{
    connector::Scope,
    fault::{Blame, Excess, Fault, FaultKind},
    journal::Speaker,
    lanes::Lanes,
    loaded::Connector,
    memory::MemoryAccount,
    request::Request,
    shared::Shared,
    source::{Lender, Source},
    tenants::Tenant,
    wire::{Dialer, Origin},
};

/// How long after its last request a company still counts as one that others must not keep waiting.
const OF_LATE_US: u64 = 2_000_000;

/// A connector that fails is logged this often for each data connection.
const LOG_PACE_US: u64 = 10_000_000;

/// The target of a data connection, made ready once for all its sessions.
pub(crate) enum Target {
    Tcp {
        dialer: Dialer,
        trust: Option<Trust>,
    },
    Http(Arc<Origin>),
    Directory(std::path::PathBuf),
    Lent(Arc<dyn Lender>),
}

/// Which calls of its data connection a pool is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    AtWork,
    /// Those of the version that is tried out beside it.
    Canary,
}

pub(crate) struct Pool {
    pub shared: Arc<Shared>,
    /// The others: who closes a session for this one, who waits.
    pools: Arc<Pools>,
    pub connector: Arc<Connector>,
    pub source: Arc<Source>,
    pub target: Target,
    part: Part,
    /// Whose data connection it is: on its account everything here is counted.
    pub tenant: Arc<Tenant>,
    gauge: Arc<Gauge>,
    /// Locked for each request, by all threads: what is read beside it is not to be fetched again each time.
    state: CachePadded<Mutex<State>>,
    /// Length of the queue, readable without the lock.
    waiting: AtomicUsize,
    /// Replaced by a pool of a newer revision or connector: finishes what it has.
    retired: AtomicBool,
    /// The host is stopping and has waited long enough.
    cut: AtomicBool,
    sharing: Sharing,
    /// Which statements need a session to themselves.
    pub pace: Pace,
    pub pressure: Pressure,
    pub breaker: Breaker,
    reliability: Reliability,
    /// What its guests say is labelled so.
    pub speaker: Arc<Speaker>,
    /// When a fault was last logged, in microseconds of the pool's clock, and how many were not since.
    logged_us: AtomicU64,
    unlogged: AtomicU64,
    used_us: AtomicU64,
    /// Requests that a session of another thread served.
    foreign: AtomicU32,
}

#[derive(Default)]
struct State {
    sessions: Vec<Seat>,
    opening: usize,
    /// The source took the last session that was to be opened, and has broken none since.
    took_last: bool,
    /// The last session went while another one was being opened.
    lost_last: bool,
    backoff: Backoff,
    queue: Queue,
}

impl State {
    /// Whether there is a session, or one is being opened: some day it answers those who wait.
    fn is_served(&self) -> bool {
        !self.sessions.is_empty() || self.opening > 0
    }

    /// Whether several may be opened at once for those who wait: of a source that is down each would be a login that fails.
    fn takes_sessions(&self) -> bool {
        self.took_last && self.sessions.iter().any(|session| !session.is_closing())
    }

    /// Whether one may be opened now: the source is not left alone. Where it is there are sessions, or one is being opened (see `is_served`).
    fn may_open(&self, now_us: u64) -> bool {
        let has_sessions = !self.sessions.is_empty();
        self.backoff.allows(self.opening, has_sessions, now_us)
    }
}

impl Pool {
    fn new(
        pools: &Arc<Pools>,
        connector: Arc<Connector>,
        source: Arc<Source>,
        (target, gauge): (Target, Arc<Gauge>),
        part: Part,
    ) -> Arc<Pool> {
        let sharing = Sharing::of(&connector);
        let reliability = Reliability::new(matches!(connector.scope, Scope::Platform));
        let (scope, name) = (&connector.scope, &connector.name);
        let speaker = Speaker::new(
            &pools.shared.journals,
            &source.company,
            (scope, name, &connector.version),
        );
        let settings = (&source.settings_json, &connector.settings_schema);
        let speaker = speaker.on(&source.connection, settings.0, settings.1);
        let pool = Arc::new(Pool {
            speaker: Arc::new(speaker),
            tenant: pools.shared.tenants.of(&source.company),
            shared: pools.shared.clone(),
            pools: pools.clone(),
            connector,
            source,
            target,
            part,
            gauge,
            state: CachePadded::default(),
            waiting: AtomicUsize::new(0),
            retired: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            pace: Pace::new(sharing.knows_fast()),
            sharing,
            pressure: Pressure::default(),
            breaker: Breaker::default(),
            reliability,
            logged_us: AtomicU64::new(0),
            unlogged: AtomicU64::new(0),
            used_us: AtomicU64::new(0),
            foreign: AtomicU32::new(0),
        });
        pool.gauge.join(Arc::<Pool>::downgrade(&pool));
        pool
    }

    pub fn gauge(&self) -> &Arc<Gauge> {
        &self.gauge
    }

    /// What its sessions take memory from.
    pub fn memory_account(&self) -> MemoryAccount {
        self.shared.memory_account(&self.tenant)
    }

    /// Where its guests compute.
    pub fn lanes(&self) -> &Lanes {
        match self.reliability.is_proven() {
            true => &self.shared.lanes,
            false => &self.shared.outer_lanes,
        }
    }

    /// Whether somebody waits for a session: read after every answer.
    #[inline]
    pub fn has_queue(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Takes no new requests; sessions end when they have answered those they have.
    pub fn retire(self: &Arc<Pool>) {
        self.retired.store(true, Ordering::Release);
        let state = self.state.lock();
        if state.queue.is_empty() {
            for session in &state.sessions {
                session.close();
            }
        }
    }

    /// A session is open: it takes requests from now on.
    pub fn add(self: &Arc<Pool>, session: &Arc<Handle>) {
        let mut state = self.state.lock();
        state.opening = state.opening.saturating_sub(1);
        state.took_last = true;
        state.lost_last = false;
        state.backoff.taken();
        state.sessions.push(Seat {
            home: session.home,
            handle: session.clone(),
        });
        drop(state);
        self.kick();
        self.settle(session);
    }

    /// A session could not be opened. Those who waited for it hear why, unless others can serve them, or did until a moment ago: a source that was full
    /// may have been so by the one that has gone. Returns after what time another one may be opened while others are there: who still waits then has to
    /// be looked after ([`Pool::kick`]), by the keeper at the latest.
    pub fn open_failed(self: &Arc<Pool>, fault: &Fault) -> Duration {
        let now_us = self.shared.micros(Instant::now());
        let mut state = self.state.lock();
        state.opening = state.opening.saturating_sub(1);
        state.took_last = false;
        let pause = state.backoff.refused(now_us);
        let has_sessions = !state.sessions.is_empty();
        let lost_last = state.lost_last;
        // All that were under way when it went may have met it.
        state.lost_last &= state.opening > 0;
        let mut failed = Vec::new();
        if !has_sessions && (!lost_last || fault.kind == FaultKind::ShuttingDown) {
            failed.extend(self.dequeue(&mut state));
            while state.opening == 0
                && let Some(job) = self.dequeue(&mut state)
            {
                failed.push(job);
            }
        }
        drop(state);
        for job in failed {
            self.answer(&job, Err(fault.clone()), None);
        }
        self.kick();
        // Without sessions nobody waits for it to be over.
        if has_sessions { pause } else { Duration::ZERO }
    }

    /// A session is over: nothing is given to it from now on. Jobs that it had not submitted, and
    /// those that may be tried again, come back to the front.
    pub fn remove(self: &Arc<Pool>, session: &Arc<Handle>, mut again: Vec<Job>) {
        if self.is_cut() {
            for job in again.drain(..) {
                self.answer(&job, Err(shutting_down()), None);
            }
        }
        let mut state = self.state.lock();
        state
            .sessions
            .retain(|seat| !Arc::ptr_eq(&seat.handle, session));
        state.lost_last |= state.sessions.is_empty() && state.opening > 0;
        self.put_back(&mut state, again);
    }

    /// Jobs that a session is not going to submit soon come back to the front.
    pub fn give_back(self: &Arc<Pool>, jobs: Vec<Job>) {
        self.put_back(&mut self.state.lock(), jobs);
        self.kick();
    }

    /// A session was broken at its source, or by what it did not end there: whether that takes another one is to be seen.
    pub fn doubt(&self) {
        self.state.lock().took_last = false;
    }

    /// The source closed a session that had been open for a while: it has closed the others too.
    pub fn close_older(&self, than: Instant) {
        for session in &self.state.lock().sessions {
            if session.opened < than && session.is_idle() {
                session.close();
            }
        }
    }

    /// After each answer: a retired pool lets its idle sessions go.
    #[inline]
    pub fn settle(&self, session: &Handle) {
        if self.is_retired() && !self.has_queue() && session.is_idle() {
            session.close();
        }
    }

    /// Answers a job and counts it.
    pub fn answer(&self, job: &Job, answer: Answer, elapsed: Option<Duration>) {
        // Nobody called: it is part of another request.
        if matches!(job.request, Request::Errand(_)) {
            return job.ticket.answer(answer);
        }
        let answered = self.connector.stats.answered();
        answered.calls.fetch_add(1, Ordering::Relaxed);
        if answer.is_err() {
            answered.failures.fetch_add(1, Ordering::Relaxed);
        }
        match &answer {
            Err(fault) if fault.is_connectors() => {
                self.reliability.failed();
                self.breaker
                    .failed(fault, self.shared.micros(Instant::now()));
            }
            Ok(_) => {
                self.reliability.answered();
                self.breaker.succeeded();
            }
            // What only waited for its turn says nothing either.
            Err(fault) if fault.kind == FaultKind::Timeout => {
                if elapsed.is_some() {
                    self.reliability.failed();
                }
            }
            // Answered by the connector, if by an error. The host's own refusals say nothing about it.
            Err(fault) if fault.blame != Blame::Host => self.breaker.succeeded(),
            Err(_) => {}
        }
        if let Some(elapsed) = elapsed {
            answered.latency.record(elapsed);
        }
        job.ticket.answer(answer);
    }

    /// Called about every second by the keeper: closes idle and aged sessions, answers those whose
    /// time in the queue is over. Returns whether the pool can be forgotten.
    pub fn sweep(self: &Arc<Pool>, now: Instant) -> bool {
        let limits = &self.shared.options.limits;
        let now_us = self.shared.micros(now);
        let mut state = self.state.lock();
        for session in &state.sessions {
            let idle = Duration::from_micros(
                now_us.saturating_sub(session.idle_us.load(Ordering::Relaxed)),
            );
            if (session.is_idle()
                && (idle > limits.idle_timeout || (self.is_retired() && state.queue.is_empty())))
                || now - session.opened > limits.session_age_max
            {
                session.close();
            }
        }
        let before = state.queue.len();
        let late = state.queue.take_late(now);
        if before > 0 {
            self.waiting.store(state.queue.len(), Ordering::Release);
        }
        let unused = state.sessions.is_empty() && state.opening == 0 && state.queue.is_empty();
        drop(state);
        for job in late {
            self.answer(&job, Err(self.waited()), None);
        }
        let since_used =
            Duration::from_micros(now_us.saturating_sub(self.used_us.load(Ordering::Relaxed)));
        unused && (self.is_retired() || since_used > limits.idle_timeout)
    }

    /// Gives up the session that has been idle for longest, so that another pool can open one; one that is closing already will do. Does not
    /// wait for the lock, as the caller holds that of its own pool: who holds this one is about to change what is here, and
    /// the keeper looks again.
    pub fn try_evict(&self) -> bool {
        let Some(state) = self.state.try_lock() else {
            return true;
        };
        let idle = || state.sessions.iter().filter(|session| session.is_idle());
        // Those that a thread prefers are used most: a spare one goes first.
        let longest = idle().min_by_key(|session| session.idle_us.load(Ordering::Relaxed));
        let Some(session) = longest else {
            return false;
        };
        if !idle().any(|other| other.is_closing()) {
            session.close();
        }
        true
    }

    /// Fails everything that waits or is in flight, and closes every session.
    pub fn abort(&self) {
        self.retired.store(true, Ordering::Release);
        self.cut.store(true, Ordering::Release);
        let mut state = self.state.lock();
        let queue = state.queue.take_all();
        self.waiting.store(0, Ordering::Release);
        for session in &state.sessions {
            session.close();
        }
        drop(state);
        for job in queue {
            self.answer(&job, Err(shutting_down()), None);
        }
    }

    /// Sessions that are closing do not wait for what is in flight.
    pub fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Acquire)
    }

    /// Sessions open, sessions idle, jobs queued, jobs in flight.
    pub fn counts(&self) -> [u64; 4] {
        let state = self.state.lock();
        let idle = state
            .sessions
            .iter()
            .filter(|session| session.is_idle())
            .count();
        let depth: usize = state
            .sessions
            .iter()
            .map(|session| session.depth.load(Ordering::Relaxed))
            .sum();
        [
            state.sessions.len() as u64,
            idle as u64,
            state.queue.len() as u64,
            depth as u64,
        ]
    }

    /// Whether a call is made in the lanes from the beginning. `may_hold`: one instruction of it could hold a worker.
    #[inline]
    pub fn is_laned(&self, may_hold: bool) -> bool {
        let is_laned = || {
            self.pressure
                .is_laned(|| self.shared.micros(Instant::now()))
        };
        is_laned()
            || (may_hold && {
                self.make_way();
                is_laned()
            })
    }

    /// The guests' calls are long: they go on in the lanes, if anybody else has been here of late.
    pub fn make_way(&self) {
        let now_us = self.shared.micros(Instant::now());
        let since_us = now_us.saturating_sub(OF_LATE_US);
        let serves_others =
            |pool: &Pool| !self.is_sibling(pool) && pool.used_us.load(Ordering::Relaxed) > since_us;
        if self.pools.any(serves_others) {
            self.pressure.leave(now_us);
        }
    }

    /// A call was too much for a worker.
    pub fn was_cut(&self, excess: Excess) {
        let now_us = self.shared.micros(Instant::now());
        match excess {
            Excess::Time => self.pressure.cut_off(now_us),
            Excess::Bytes | Excess::Memory => self.pressure.keep_off(now_us),
        }
    }

    /// Why a request has waited in the queue until its deadline.
    pub fn waited(&self) -> Fault {
        let state = self.state.lock();
        let is_served = state.is_served();
        drop(state);
        match self.is_short() {
            Some(short) if !is_served => self.shortage(short),
            _ => timed_out(),
        }
    }

    /// Whether a fault of the connector is logged, and how many of its company's were not since the last one that was.
    pub fn logs(&self, now: Instant) -> Option<u64> {
        let now_us = self.shared.micros(now).max(1);
        let last_us = self.logged_us.load(Ordering::Relaxed);
        let is_due = last_us == 0 || now_us.saturating_sub(last_us) >= LOG_PACE_US;
        let is_first = is_due
            && self
                .logged_us
                .compare_exchange(last_us, now_us, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if is_first {
            let unlogged = self.unlogged.swap(0, Ordering::Relaxed);
            return self.tenant.writes(unlogged, now_us);
        }
        self.unlogged.fetch_add(1, Ordering::Relaxed);
        None
    }
}

impl Waits for Pool {
    fn is_waiting(&self) -> bool {
        self.has_queue()
    }

    fn wake(self: Arc<Pool>) {
        self.kick();
    }
}

pub(crate) fn timed_out() -> Fault {
    Fault::new(
        Blame::Source,
        FaultKind::Timeout,
        "the source did not answer in time",
    )
    .code("deadline_exceeded")
}

pub(crate) fn shutting_down() -> Fault {
    Fault::new(
        Blame::Host,
        FaultKind::ShuttingDown,
        "this host is shutting down: try again",
    )
}
