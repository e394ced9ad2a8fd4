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
mod tests;
