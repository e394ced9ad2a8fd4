//! The pace of the engine's clock: it ticks while a guest computes, and rests while none does. A host without requests then sleeps, and does not look
//! a thousand times a second for guests that take too long. Knows nothing of guests or engines.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence},
    time::Duration,
};

use crossbeam_utils::CachePadded;
use parking_lot::{Condvar, Mutex};
use thread_local::ThreadLocal;

/// Ticks without any call, after which there are none. Between the calls of a busy host nobody falls asleep or is woken.
const QUIET_TICKS: u32 = 50;

/// Tells the thread that ticks whether it may rest.
pub(crate) struct Ticker {
    tick: Duration,
    /// Of each thread: what all of them write would be fetched from another core for each call.
    calls: ThreadLocal<CachePadded<Calls>>,
    /// The clock rests, or is about to: who begins a call wakes it.
    rests: AtomicBool,
    woken: (Mutex<()>, Condvar),
}

/// Calls that one thread has seen begin, and end. Only that thread writes them.
#[derive(Default)]
struct Calls {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// What the thread that ticks has seen.
#[derive(Default)]
pub(crate) struct Seen {
    begun: u64,
    quiet_ticks: u32,
}

impl Ticker {
    pub fn new(tick: Duration) -> Ticker {
        Ticker {
            tick,
            calls: ThreadLocal::new(),
            rests: AtomicBool::new(false),
            woken: Default::default(),
        }
    }

    /// A guest is called: until [`Ticker::end`], on whatever thread, the clock ticks.
    #[inline]
    pub fn begin(&self) {
        count(&self.calls.get_or_default().begun);
        // In this order. A processor may hold the count back for some nanoseconds, which is why who is about to rest waits for a tick.
        compiler_fence(Ordering::SeqCst);
        if self.rests.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    #[inline]
    pub fn end(&self) {
        count(&self.calls.get_or_default().ended);
    }

    #[cold]
    fn wake(&self) {
        if self.rests.swap(false, Ordering::SeqCst) {
            let (lock, woken) = &self.woken;
            drop(lock.lock());
            woken.notify_one();
        }
    }

    /// Waits for the next tick: while nothing is called, until something is, but for no longer than `longest`.
    pub fn wait(&self, seen: &mut Seen, longest: Duration) {
        if !self.is_quiet(seen) {
            self.rests.store(false, Ordering::SeqCst);
        }
        match seen.quiet_ticks {
            ..QUIET_TICKS => std::thread::sleep(self.tick),
            // Who begins a call from now on wakes this thread; who has begun one before is seen after this tick.
            QUIET_TICKS => {
                self.rests.store(true, Ordering::SeqCst);
                std::thread::sleep(self.tick);
            }
            _ => {
                let (lock, woken) = &self.woken;
                let mut guard = lock.lock();
                let is_woken = !self.rests.load(Ordering::SeqCst)
                    || !woken.wait_for(&mut guard, longest).timed_out();
                drop(guard);
                if is_woken {
                    // A tick after the call began: no sooner than if the clock had not rested.
                    std::thread::sleep(self.tick);
                }
            }
        }
    }

    /// Whether no guest is in a call, and none has been called since the last tick.
    fn is_quiet(&self, seen: &mut Seen) -> bool {
        // In this order: whatever begins in between is taken for one that goes on.
        let ended = self.sum(|calls| &calls.ended);
        let begun = self.sum(|calls| &calls.begun);
        let is_quiet = begun == ended && begun == seen.begun;
        *seen = Seen {
            begun,
            quiet_ticks: match is_quiet {
                true => seen.quiet_ticks.saturating_add(1),
                false => 0,
            },
        };
        is_quiet
    }

    fn sum(&self, of: impl Fn(&Calls) -> &AtomicU64) -> u64 {
        let counts = self.calls.iter().map(|calls| of(calls));
        counts.map(|count| count.load(Ordering::Acquire)).sum()
    }
}

/// Without an atomic addition: nobody else writes this number.
#[inline]
fn count(number: &AtomicU64) {
    number.store(number.load(Ordering::Relaxed) + 1, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread, time::Instant};

    use super::*;

    const TICK: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(60);

    /// Ticks until the clock rests.
    fn come_to_rest(ticker: &Ticker, seen: &mut Seen) {
        while seen.quiet_ticks <= QUIET_TICKS {
            ticker.wait(seen, Duration::ZERO);
        }
    }

    fn rests(ticker: &Ticker) -> bool {
        ticker.rests.load(Ordering::SeqCst)
    }

    /// It rests once nothing has been called for a while, and then until it is told to do something else.
    #[test]
    fn a_clock_without_calls_rests() {
        let (ticker, mut seen) = (Ticker::new(TICK), Seen::default());
        for _ in 0..QUIET_TICKS - 1 {
            ticker.wait(&mut seen, LONG);
        }
        assert!(!rests(&ticker));
        come_to_rest(&ticker, &mut seen);
        let begun = Instant::now();
        ticker.wait(&mut seen, 30 * TICK);
        assert!(rests(&ticker) && begun.elapsed() >= 30 * TICK);
    }

    /// A call that goes on keeps it ticking, and ends on another thread than it began on.
    #[test]
    fn a_clock_ticks_while_a_call_goes_on() {
        let (ticker, mut seen) = (Ticker::new(TICK), Seen::default());
        ticker.begin();
        for _ in 0..2 * QUIET_TICKS {
            ticker.wait(&mut seen, LONG);
        }
        assert!(!rests(&ticker));
        thread::scope(|scope| {
            scope.spawn(|| ticker.end());
        });
        come_to_rest(&ticker, &mut seen);
        assert!(rests(&ticker));
    }

    /// So do short ones, of which none is seen.
    #[test]
    fn a_clock_ticks_between_calls() {
        let (ticker, mut seen) = (Ticker::new(TICK), Seen::default());
        for _ in 0..2 * QUIET_TICKS {
            ticker.begin();
            ticker.end();
            ticker.wait(&mut seen, LONG);
        }
        assert!(!rests(&ticker));
    }

    /// Whenever a call begins, before the clock rests, while it does, or just when it is about to: it ticks within moments.
    #[test]
    fn a_call_wakes_a_clock_that_rests() {
        let ticker = Ticker::new(TICK);
        let (ticked, ticks) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut seen = Seen::default();
                while ticked.send(()).is_ok() {
                    ticker.wait(&mut seen, LONG);
                }
            });
            for pause in 0..40 {
                thread::sleep(TICK * (QUIET_TICKS + pause));
                ticker.begin();
                while ticks.try_recv().is_ok() {}
                for _ in 0..3 {
                    ticks.recv_timeout(LONG / 2).unwrap();
                }
                ticker.end();
            }
            drop(ticks);
            ticker.begin();
        });
    }
}
