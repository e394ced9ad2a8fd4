//! Compute lanes: a few threads of lower scheduling priority than the workers, for whatever computes for
//! longer than a worker may be held. They serve companies by turns: who has had the least of their time is
//! next, however many tasks it has waiting (fair queueing). It has had what its tasks have computed, and what
//! threads have rested for that.
//!
//! What runs here is a future (a guest's call, suspended at every tick of the engine's clock) or one
//! closure. Knows nothing of guests: start reading at [`Lanes::call`].

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_task::{FallibleTask, Runnable};
use parking_lot::{Condvar, Mutex};

use crate::{
    engine::TICK,
    tenants::Tenant,
    threads::{self, Computes, thread_time},
};

/// A turn, before it is measured: what is charged in advance, so that a second thread sees it.
const TURN_US: u64 = TICK.as_micros() as u64;
/// What a task may use before another one of the same company has its turn. Long enough that an ordinary query ends, so
/// that sixteen of them end one after the other and not all at the end; and a loop costs its own company no more.
const STRETCH_US: u64 = 20_000;
/// What a task may use before its thread rests, where threads do ([`Lane::rests`]): what opens most sessions.
const EAGER_US: u64 = 50_000;
/// How long a thread rests after one turn. A turn that cannot be interrupted may have been a long one, of which those who wait by then know nothing.
const RESTS_MAX_US: u64 = 100_000;
/// How long a thread without work sleeps before it looks whether the lanes are gone.
const IDLE: Duration = Duration::from_secs(1);
/// After how long without work it is taken for one that rests. What opens a session computes for some milliseconds, and while a thread is awake those that
/// serve take the core from clients and sources beside them; to be told of both costs all threads together some tens of microseconds.
const REST: Duration = Duration::from_millis(50);

/// Threads that take turns.
pub(crate) struct Lanes {
    inner: Arc<Inner>,
}

/// What a lane is for.
pub(crate) struct Lane {
    pub name: &'static str,
    pub threads: usize,
    /// Added to the process's own nice value.
    pub nice: i32,
    /// Tasks of one company at once.
    pub per_company: usize,
    /// After each turn of a task that has used much, its thread rests for so many times as long: even the lowest priority keeps cores awake, warm with
    /// what is its own, and from whoever else the machine is shared with.
    pub rests: u32,
}

struct Inner {
    state: Mutex<State>,
    ready: Condvar,
    per_company: usize,
    rests: u32,
}

#[derive(Default)]
struct State {
    queues: HashMap<u64, Queue>,
    /// Companies with something to run, the least served first.
    order: BTreeSet<(u64, u64)>,
    /// What the company had been served that was picked last: whoever comes anew begins there, so that
    /// nobody saves up turns.
    floor: u64,
    closed: bool,
}

#[derive(Default)]
struct Queue {
    /// What it has had of the threads' time.
    served_us: u64,
    ready: VecDeque<Turn>,
    running: usize,
}

/// Whose task it is, and how it is doing.
pub(crate) struct Tag {
    tenant: Arc<Tenant>,
    /// What it has used since others of its company had their turn.
    stretch_us: AtomicU64,
    /// What it has used in all, in lanes.
    used_us: AtomicU64,
}

type Turn = Runnable<Arc<Tag>>;
/// What waits for a task. Dropping it ends the task.
pub(crate) type Task<T> = FallibleTask<T, Arc<Tag>>;

impl Lanes {
    /// `runtime` drives what a guest on a directory may wait for, its clock.
    pub fn start(lane: Lane, runtime: Option<tokio::runtime::Handle>) -> std::io::Result<Lanes> {
        let inner = Arc::new(Inner {
            state: Mutex::default(),
            ready: Condvar::new(),
            per_company: lane.per_company,
            rests: lane.rests,
        });
        for number in 0..lane.threads {
            let (inner, runtime) = (inner.clone(), runtime.clone());
            std::thread::Builder::new()
                .name(format!("{}-{number}", lane.name))
                .spawn(move || {
                    threads::lower_priority(lane.nice);
                    let _context = runtime.as_ref().map(|runtime| runtime.enter());
                    inner.work(Computes::register());
                })?;
        }
        Ok(Lanes { inner })
    }

    /// Runs a future for a company, its first turn here and now if `inline`: what is done within it costs
    /// no change of threads. `None`: the lanes are gone, or it panicked. Dropping the returned task drops the
    /// future, at its next turn at the latest.
    pub fn call<F>(&self, tenant: &Arc<Tenant>, inline: bool, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let inner = Arc::downgrade(&self.inner);
        let tag = Tag {
            tenant: tenant.clone(),
            stretch_us: AtomicU64::new(0),
            used_us: AtomicU64::new(0),
        };
        let (turn, task) = async_task::Builder::new()
            .metadata(Arc::new(tag))
            .spawn(move |_| future, move |turn| schedule(&inner, turn));
        if inline {
            turn.run();
        } else {
            turn.schedule();
        }
        task.fallible()
    }

    /// Runs a closure for a company. It cannot be interrupted, so it must be bounded in itself. One that nobody waits for any more before its turn has
    /// come is dropped at once, with the megabytes that it may have: its turn may be minutes away.
    pub async fn compute<T: Send + 'static>(
        &self,
        tenant: &Arc<Tenant>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let waits = Arc::new(Mutex::new(Some(work)));
        let _wanted = Wanted(waits.clone());
        let task = self.call(tenant, false, async move {
            let work = waits.lock().take()?;
            Some(work())
        });
        task.await.flatten()
    }
}

/// What somebody waits for. Dropping it drops what has not begun.
struct Wanted<W>(Arc<Mutex<Option<W>>>);

impl<W> Drop for Wanted<W> {
    fn drop(&mut self) {
        let _work = self.0.lock().take();
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        let abandoned = {
            let mut state = self.inner.state.lock();
            state.closed = true;
            state.order.clear();
            std::mem::take(&mut state.queues)
        };
        self.inner.ready.notify_all();
        // Outside of the lock: what they hold may schedule others.
        drop(abandoned);
    }
}

fn schedule(inner: &Weak<Inner>, turn: Turn) {
    // Dropping a turn ends its task: whoever waits for it hears `None`.
    if let Some(inner) = inner.upgrade() {
        inner.push(turn);
    }
}

impl Inner {
    fn push(&self, turn: Turn) {
        let tag = turn.metadata();
        let id = tag.tenant.id;
        let goes_on = tag.goes_on();
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            return;
        }
        let floor = state.floor;
        let queue = state.queues.entry(id).or_default();
        if queue.ready.is_empty() && queue.running == 0 {
            queue.served_us = queue.served_us.max(floor);
        }
        match goes_on {
            true => queue.ready.push_front(turn),
            false => queue.ready.push_back(turn),
        }
        if queue.running < self.per_company {
            let key = (queue.served_us, id);
            state.order.insert(key);
            drop(state);
            self.ready.notify_one();
        }
    }

    fn work(&self, mut thread: Computes) {
        let mut state = self.state.lock();
        while !state.closed {
            let Some((served_us, id)) = state.order.pop_first() else {
                state.forget_idle();
                let sleep = if thread.is_awake() { REST } else { IDLE };
                if self.ready.wait_for(&mut state, sleep).timed_out() {
                    drop(state);
                    thread.rest();
                    state = self.state.lock();
                }
                continue;
            };
            state.floor = state.floor.max(served_us);
            let Some(turn) = state.begin(id, self.per_company) else {
                continue;
            };
            drop(state);
            thread.wake();
            let tag = turn.metadata().clone();
            tag.begin();
            let begun = thread_time();
            // A panic is a bug of this host: it ends one call, never the lane.
            let _ = catch_unwind(AssertUnwindSafe(|| turn.run()));
            let used_us = (thread_time().saturating_sub(begun)).as_micros() as u64;
            let rests_us = self.rests_us(used_us, tag.used(used_us));
            // Whoever waits for this core need not wait for the kernel's next look (4 ms) as well.
            std::thread::yield_now();
            state = self.state.lock();
            // Whoever makes a thread rest has had that time, too: else it would be taken from all that wait for one.
            state.end(id, used_us + rests_us, self.per_company);
            if rests_us > 0 {
                drop(state);
                std::thread::sleep(Duration::from_micros(rests_us));
                state = self.state.lock();
            }
        }
    }

    /// How long a thread rests after such a turn of a task that has used so much in all.
    fn rests_us(&self, turn_us: u64, used_us: u64) -> u64 {
        match used_us {
            0..=EAGER_US => 0,
            _ => (u64::from(self.rests) * turn_us).min(RESTS_MAX_US),
        }
    }
}

impl Tag {
    /// Whether the task, which has run and is ready again, is the next of its company.
    fn goes_on(&self) -> bool {
        match self.stretch_us.load(Ordering::Relaxed) {
            0 => false,
            STRETCH_US.. => {
                self.stretch_us.store(0, Ordering::Relaxed);
                false
            }
            _ => true,
        }
    }

    /// From its first turn in a lane on it goes on.
    fn begin(&self) {
        self.stretch_us.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns what it has used in all.
    fn used(&self, micros: u64) -> u64 {
        self.stretch_us.fetch_add(micros, Ordering::Relaxed);
        self.tenant.computed(micros);
        self.used_us.fetch_add(micros, Ordering::Relaxed) + micros
    }
}

impl State {
    fn begin(&mut self, id: u64, per_company: usize) -> Option<Turn> {
        let queue = self.queues.get_mut(&id)?;
        let turn = queue.ready.pop_front()?;
        queue.running += 1;
        queue.served_us += TURN_US;
        if !queue.ready.is_empty() && queue.running < per_company {
            self.order.insert((queue.served_us, id));
        }
        Some(turn)
    }

    fn end(&mut self, id: u64, had_us: u64, per_company: usize) {
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        self.order.remove(&(queue.served_us, id));
        queue.running -= 1;
        queue.served_us = queue.served_us.saturating_sub(TURN_US) + had_us;
        if !queue.ready.is_empty() && queue.running < per_company {
            self.order.insert((queue.served_us, id));
        }
    }

    /// Companies that have nothing to run and have had no more than those who come anew.
    fn forget_idle(&mut self) {
        let floor = self.floor;
        self.queues.retain(|_, queue| {
            !queue.ready.is_empty() || queue.running > 0 || queue.served_us > floor
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenants::Tenants;
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
        time::Instant,
    };

    fn lanes(threads: usize, per_company: usize) -> Lanes {
        let lane = Lane {
            name: "test-lane",
            threads,
            nice: 0,
            per_company,
            rests: 0,
        };
        Lanes::start(lane, None).unwrap()
    }

    /// One thread that rests.
    fn resting_lane() -> Lanes {
        let lane = Lane {
            name: "test-lane",
            threads: 1,
            nice: 0,
            per_company: usize::MAX,
            rests: 3,
        };
        Lanes::start(lane, None).unwrap()
    }

    /// Computes for so long, a millisecond a turn.
    async fn compute(millis: u64) {
        for _ in 0..millis {
            burn(Duration::from_millis(1));
            turn().await;
        }
    }

    fn burn(time: Duration) {
        let begun = thread_time();
        while thread_time() - begun < time {
            std::hint::spin_loop();
        }
    }

    /// Gives its turn back once.
    async fn turn() {
        let mut given = false;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut given, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// One company with sixteen tasks and one with a single task get as much processor time.
    #[test]
    fn companies_share_evenly_whatever_they_ask_for() {
        let lanes = lanes(1, usize::MAX);
        let tenants = Tenants::default();
        let (many, one) = (tenants.of("many"), tenants.of("one"));
        let done = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
        let mut tasks = Vec::new();
        for (tenant, count, done) in [(&many, 16, &done[0]), (&one, 1, &done[1])] {
            for _ in 0..count {
                let done = done.clone();
                tasks.push(lanes.call(tenant, false, async move {
                    loop {
                        burn(Duration::from_millis(1));
                        done.fetch_add(1, Ordering::Relaxed);
                        turn().await;
                    }
                }));
            }
        }
        let count = |index: usize| done[index].load(Ordering::Relaxed);
        while count(0) + count(1) < 200 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let share = count(1) as f64 / (count(0) + count(1)) as f64;
        assert!((0.4..0.6).contains(&share), "{share}");
        assert!(many.computed_us() > 0 && one.computed_us() > 0);
    }

    /// Where threads rest, a task that goes on and on has no more than its part of the time, and a short one all of it.
    #[test]
    fn who_computes_for_long_leaves_time() {
        let lanes = resting_lane();
        let tenant = Tenants::default().of("company");
        let eager = EAGER_US / 1_000;
        let takes = |millis: u64| {
            let begun = Instant::now();
            futures_executor(lanes.call(&tenant, false, compute(millis))).unwrap();
            begun.elapsed()
        };
        assert!(takes(3 * eager) >= Duration::from_millis(8 * eager));
        // A loaded machine is slow, too, but not each time.
        let is_eager = |_| takes(eager / 2) < Duration::from_millis(eager);
        assert!((0..100).any(is_eager));
    }

    /// What a thread rests for one company is that one's time: another one has half of the thread beside it, as it had without rests.
    #[test]
    fn rests_are_the_time_of_who_makes_them() {
        let lanes = resting_lane();
        let tenants = Tenants::default();
        let (busy, other) = (tenants.of("busy"), tenants.of("other"));
        lanes.call(&busy, false, compute(u64::MAX)).detach();
        while busy.computed_us() < 2 * EAGER_US {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Turn for turn, as if nobody rested, it would take 100 ms: as many turns of the busy one's, each with its rest.
        let is_half = |_| {
            let begun = Instant::now();
            futures_executor(lanes.call(&other, false, compute(20))).unwrap();
            begun.elapsed() < Duration::from_millis(70)
        };
        assert!((0..100).any(is_half));
    }

    /// However long a turn was, whoever comes after it waits for a moment.
    #[test]
    fn a_long_turn_makes_no_long_rest() {
        let lanes = resting_lane();
        let tenants = Tenants::default();
        let (long, other) = (tenants.of("long"), tenants.of("other"));
        let is_soon = |_| {
            let turn = async { burn(Duration::from_micros(4 * EAGER_US)) };
            futures_executor(lanes.call(&long, false, turn)).unwrap();
            let begun = Instant::now();
            futures_executor(lanes.call(&other, false, async {})).unwrap();
            begun.elapsed() < Duration::from_micros(4 * RESTS_MAX_US)
        };
        assert!((0..20).any(is_soon));
    }

    /// The tasks of one company end one after the other, but for those that take long.
    #[test]
    fn tasks_of_one_company_take_long_turns() {
        let lanes = lanes(1, usize::MAX);
        let tenant = Tenants::default().of("company");
        let turns = Arc::new(AtomicU64::new(0));
        let task = |count: u64| {
            let turns = turns.clone();
            lanes.call(&tenant, false, async move {
                for _ in 0..count {
                    burn(Duration::from_millis(2));
                    turns.fetch_add(1, Ordering::Relaxed);
                    turn().await;
                }
                turns.load(Ordering::Relaxed)
            })
        };
        let tasks = [task(40), task(4), task(4)];
        let ended = tasks.map(|task| futures_executor(task).unwrap());
        let [long, first, second] = ended;
        assert_eq!((long, second - first), (48, 4), "{ended:?}");
        assert!((first..20).contains(&first), "{ended:?}");
    }

    /// A company that was idle has not saved up turns.
    #[test]
    fn nobody_saves_up_turns() {
        let state = State {
            floor: 1_000_000,
            ..State::default()
        };
        let inner = Inner {
            state: Mutex::new(state),
            ready: Condvar::new(),
            per_company: 1,
            rests: 0,
        };
        let tenant = Tenants::default().of("late");
        let tag = Tag {
            tenant: tenant.clone(),
            stretch_us: AtomicU64::new(0),
            used_us: AtomicU64::new(0),
        };
        let (turn, _task) = async_task::Builder::new()
            .metadata(Arc::new(tag))
            .spawn(|_| async {}, |_| ());
        inner.push(turn);
        assert_eq!(inner.state.lock().queues[&tenant.id].served_us, 1_000_000);
    }

    /// A lane for one task a company runs the second one when the first has ended.
    #[test]
    fn tasks_of_one_company_wait_for_each_other() {
        let lanes = lanes(4, 1);
        let tenant = Tenants::default().of("company");
        let (running, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let works = (0..8).map(|_| {
                let (running, most) = (running.clone(), most.clone());
                lanes.compute(&tenant, move || {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    burn(Duration::from_millis(1));
                    running.fetch_sub(1, Ordering::SeqCst);
                })
            });
            let works: Vec<_> = works.collect();
            for work in futures_util::future::join_all(works).await {
                work.unwrap();
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }

    /// What nobody waits for any more holds nothing until its turn would have come.
    #[test]
    fn what_is_given_up_holds_nothing() {
        let lanes = lanes(1, 1);
        let tenant = Tenants::default().of("company");
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let busy = lanes.call(&tenant, false, async move {
            let _ = ended.recv();
        });
        let held = Arc::new(());
        let holds = held.clone();
        let mut waits = Box::pin(lanes.compute(&tenant, move || drop(holds)));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        drop(waits);
        assert_eq!(Arc::strong_count(&held), 1);
        drop(end);
        assert!(futures_executor(busy).is_some());
    }

    /// What is done in its first turn has stayed on its thread; what is not goes on in the lane.
    #[test]
    fn the_first_turn_is_here() {
        let lanes = lanes(1, usize::MAX);
        let tenant = Tenants::default().of("company");
        let here = std::thread::current().id();
        let mut quick = pin!(lanes.call(&tenant, true, async { std::thread::current().id() }));
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(quick.as_mut().poll(&mut cx), Poll::Ready(Some(here)));
        let long = lanes.call(&tenant, true, async {
            let first = std::thread::current().id();
            turn().await;
            (first, std::thread::current().id())
        });
        let (first, second) = futures_executor(long).unwrap();
        assert!(first == here && second != here);
    }

    /// A task that panics, and those that wait when the lanes end, are told as gone; the lane goes on.
    #[test]
    fn what_cannot_be_done_is_told() {
        let lanes = lanes(1, usize::MAX);
        let tenant = Tenants::default().of("company");
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        let panics = lanes.call(&tenant, false, async { panic!("a bug") });
        let none: Option<()> = futures_executor(panics);
        std::panic::set_hook(hook);
        assert!(none.is_none());
        assert_eq!(
            futures_executor(lanes.call(&tenant, false, async { 7 })),
            Some(7)
        );
        let never = lanes.call(&tenant, false, std::future::pending::<()>());
        let waits = lanes.call(&tenant, false, async {
            loop {
                turn().await;
            }
        });
        let begun = Instant::now();
        drop(lanes);
        let _: Option<()> = futures_executor(waits);
        drop(never);
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    fn futures_executor<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(future)
    }
}
