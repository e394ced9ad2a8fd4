//! How long a guest computes at a stretch. A call runs either *inline*, on a worker that serves others too: then
//! it is cut off after a few milliseconds; or *in turns*, in a lane or on its way there: then it is suspended
//! at every tick of the engine's clock, and cut off when it has used up its budget.
//!
//! Processor time is what counts, not what a clock on the wall shows: on a loaded machine a thread may stand
//! still in the middle of an innocent call. Nor is that enough alone: the kernel counts interrupts, and in a virtual machine what the hypervisor
//! took, as the thread's own now and then (3 ms within a microsecond have been seen), so that ticks are counted, too.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use wasmtime::UpdateDeadline;

use crate::{engine::TICK, threads::thread_time, ticker::Ticker};

/// The first turn of a call begins without a look at the clock, which would be a system call: the first tick notes it.
const NOT_NOTED: u64 = u64::MAX;

/// Processor time of an inline call after the first tick that it met.
const INLINE_MAX: Duration = TICK;
/// Ticks that an inline call may meet. A thread that stands still meets one, however long it does; a guest that computes meets each, and holds a worker for
/// four at most.
const INLINE_TICKS: u32 = 2;
/// A turn shorter than this was cut short by others on this core: it goes on.
const TURN_MIN: Duration = Duration::from_micros(500);

/// The state of one guest's clock.
pub(crate) struct Turns {
    /// Ticks while a call goes on.
    ticker: Arc<Ticker>,
    goes_on: bool,
    in_turns: bool,
    /// The call has not left the worker on which it began.
    on_worker: bool,
    /// It may return no more than a worker looks at.
    returns_little: bool,
    /// Ticks that the call has met: all of an inline one, the first of one in turns.
    ticks: u32,
    /// Processor time of this thread when the turn began, in nanoseconds. Shared with what resumes a turn.
    begun: Arc<AtomicU64>,
    used: Duration,
    budget: Duration,
}

impl Turns {
    pub fn new(ticker: Arc<Ticker>) -> Turns {
        Turns {
            ticker,
            goes_on: false,
            in_turns: false,
            on_worker: false,
            returns_little: false,
            ticks: 0,
            begun: Arc::default(),
            used: Duration::ZERO,
            budget: Duration::ZERO,
        }
    }

    #[inline]
    fn go_on(&mut self) {
        if !std::mem::replace(&mut self.goes_on, true) {
            self.ticker.begin();
        }
    }

    /// The call has ended. Until it has, the clock ticks.
    #[inline]
    pub fn end(&mut self) {
        if std::mem::take(&mut self.goes_on) {
            self.ticker.end();
        }
    }

    /// A call on a worker begins.
    #[inline]
    pub fn inline(&mut self) {
        self.go_on();
        self.in_turns = false;
        self.on_worker = true;
        self.returns_little = true;
        self.ticks = 0;
    }

    /// A call in turns begins, its first turn on a worker or in a lane.
    pub fn in_turns(&mut self, budget: Duration, on_worker: bool) {
        self.go_on();
        self.in_turns = true;
        self.on_worker = on_worker;
        self.returns_little = on_worker;
        self.ticks = 0;
        self.used = Duration::ZERO;
        self.budget = budget;
        self.begun.store(NOT_NOTED, Ordering::Relaxed);
    }

    /// Whether the last call has met a tick: how often that happens says how long calls take, and
    /// costs those nothing that are short.
    #[inline]
    pub fn met_tick(&self) -> bool {
        self.ticks > 0
    }

    /// Processor time of this thread since the first tick that the last call met here. More than ticks have let it compute: what it did could not be
    /// interrupted, as filling all of its memory cannot be.
    pub fn since_tick(&self) -> Duration {
        match self.ticks > 0 && !self.in_turns {
            true => self.since_begun(),
            false => Duration::ZERO,
        }
    }

    pub fn is_in_turns(&self) -> bool {
        self.in_turns
    }

    /// Whether the call runs on a worker, or did until it returned.
    pub fn is_on_worker(&self) -> bool {
        self.on_worker
    }

    /// Whether the call may return no more than a worker looks at. One that has left the worker may until its next tick.
    pub fn returns_little(&self) -> bool {
        self.returns_little
    }

    /// What a call in turns may compute; on a worker that is another bound, which a guest is not to know.
    pub fn budget(&self) -> Option<Duration> {
        self.in_turns.then_some(self.budget)
    }

    /// What the call does next nothing can interrupt for long: it goes on in a lane.
    pub fn leave_worker(&mut self) -> NextTurn {
        if self.begun.load(Ordering::Relaxed) != NOT_NOTED {
            self.used += self.since_begun();
        }
        // What it has computed here counts as a tick.
        self.ticks = self.ticks.max(1);
        self.next_turn()
    }

    fn next_turn(&mut self) -> NextTurn {
        self.on_worker = false;
        NextTurn {
            begun: self.begun.clone(),
            given: false,
        }
    }

    fn begin(&self) {
        self.begun
            .store(thread_time().as_nanos() as u64, Ordering::Relaxed);
    }

    /// Processor time since the turn was noted to have begun.
    fn since_begun(&self) -> Duration {
        let begun = Duration::from_nanos(self.begun.load(Ordering::Relaxed));
        thread_time().saturating_sub(begun)
    }

    /// The clock has ticked while the guest computes.
    pub fn tick(&mut self) -> UpdateDeadline {
        if !self.in_turns {
            self.ticks += 1;
            if self.ticks == 1 {
                self.begin();
            }
            return match self.ticks > INLINE_TICKS && self.since_begun() >= INLINE_MAX {
                true => UpdateDeadline::Interrupt,
                false => UpdateDeadline::Continue(1),
            };
        }
        // A short call meets a tick now and then too; it is not worth a change of threads.
        if self.begun.load(Ordering::Relaxed) == NOT_NOTED {
            self.ticks = 1;
            self.begin();
            return UpdateDeadline::Continue(1);
        }
        let turn = self.since_begun();
        if self.used + turn >= self.budget {
            return UpdateDeadline::Interrupt;
        }
        if turn < TURN_MIN {
            return UpdateDeadline::Continue(1);
        }
        self.used += turn;
        self.returns_little = false;
        UpdateDeadline::YieldCustom(1, Box::pin(self.next_turn()))
    }
}

/// A guest that is gone is in no call.
impl Drop for Turns {
    fn drop(&mut self) {
        self.end();
    }
}

/// Gives the turn back, and notes where the next one begins: on another thread, perhaps.
pub(crate) struct NextTurn {
    begun: Arc<AtomicU64>,
    given: bool,
}

impl Future for NextTurn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.given {
            self.begun
                .store(thread_time().as_nanos() as u64, Ordering::Relaxed);
            return Poll::Ready(());
        }
        self.given = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(time: Duration) {
        let begun = thread_time();
        while thread_time() - begun < time {}
    }

    /// An inline call is cut off for what it has computed, and for that alone after more ticks than stand still with it.
    #[test]
    fn only_what_computes_is_cut_off() {
        let is_cut = |turns: &mut Turns| matches!(turns.tick(), UpdateDeadline::Interrupt);
        let mut turns = Turns::new(Arc::new(Ticker::new(TICK)));
        turns.inline();
        assert!(!turns.met_tick() && !is_cut(&mut turns) && turns.met_tick());
        // The processor's clock has jumped.
        compute(INLINE_MAX * 3);
        assert!(!is_cut(&mut turns) && is_cut(&mut turns));
        // The next call is another one, and ticks alone are nothing.
        turns.inline();
        assert!((0..9).all(|_| !is_cut(&mut turns)));
        compute(INLINE_MAX);
        assert!(is_cut(&mut turns));
    }
}
