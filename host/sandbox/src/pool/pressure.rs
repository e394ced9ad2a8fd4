//! Which data connections compute too much to do it on the workers: their guests' calls run in the compute lanes
//! from the beginning, for a while. Learnt from how many of their inline calls met a tick of the engine's
//! clock, which costs short calls nothing. A company that has the host to itself stays where it is fastest.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;

/// How long a connection stays in the lanes before its calls are tried on the workers again.
const LANED: Duration = Duration::from_secs(10);
/// After a call that had to be cut off on a worker: at first, for it may have been the machine that stood still, and at most.
const CUT_FIRST: Duration = Duration::from_secs(1);
const CUT_LONGEST: Duration = Duration::from_secs(60);
/// A call that is cut off within this time of coming back from the lanes sends its connection there for twice as long as before.
const PROBATION: Duration = Duration::from_secs(60);
/// With a tick every millisecond, more than one call in this many that meets one means calls of 125 us and longer.
const CALLS_PER_TICK: u32 = 8;
/// Fewer ticks than this may be bad luck.
const TICKS_MIN: u32 = 8;
/// Calls after which the counts begin anew.
const CALLS_MAX: u32 = 4_096;

/// Of one data connection.
#[derive(Default)]
pub(crate) struct Pressure {
    laned_until_us: AtomicU64,
    /// After calls that were cut off: until when, and for how long the last time.
    cut: Mutex<Cut>,
}

#[derive(Default)]
struct Cut {
    until_us: u64,
    span_us: u64,
}

/// What one session has seen. Its own, so that counting costs no atomic.
#[derive(Default)]
pub(crate) struct Sampled {
    calls: u32,
    ticks: u32,
}

impl Pressure {
    /// Whether calls run in the lanes now.
    #[inline]
    pub fn is_laned(&self, now_us: impl FnOnce() -> u64) -> bool {
        let until_us = self.laned_until_us.load(Ordering::Relaxed);
        until_us != 0 && now_us() < until_us
    }

    /// A call was cut off on a worker.
    pub fn cut_off(&self, now_us: u64) {
        let mut cut = self.cut.lock();
        // Another session of the connection was called before it was known.
        if now_us < cut.until_us {
            return;
        }
        let is_again = cut.span_us > 0 && now_us < cut.until_us + micros(PROBATION);
        cut.span_us = match is_again {
            true => (2 * cut.span_us).min(micros(CUT_LONGEST)),
            false => micros(CUT_FIRST),
        };
        cut.until_us = now_us + cut.span_us;
        self.lane_until(cut.until_us);
    }

    /// A call returned more than a worker looks at, as it would again.
    pub fn keep_off(&self, now_us: u64) {
        self.lane_until(now_us + micros(CUT_LONGEST));
    }

    /// Calls are long, and somebody else would have to wait for them.
    pub fn leave(&self, now_us: u64) {
        self.lane_until(now_us + micros(LANED));
    }

    fn lane_until(&self, until_us: u64) {
        self.laned_until_us.fetch_max(until_us, Ordering::Relaxed);
    }
}

fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}

impl Sampled {
    /// Notes an inline call. Returns whether calls have been long of late, once for each time that this is known.
    #[inline]
    pub fn are_long(&mut self, met_tick: bool) -> bool {
        self.calls += 1;
        let is_known = match met_tick {
            true => {
                self.ticks += 1;
                self.ticks >= TICKS_MIN && self.ticks * CALLS_PER_TICK > self.calls
            }
            false => false,
        };
        if is_known || self.calls >= CALLS_MAX {
            *self = Sampled::default();
        }
        is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls that meet a tick now and then are short; those that do every fifth time are long.
    #[test]
    fn long_calls_are_known_by_their_ticks() {
        let mut quick = Sampled::default();
        assert!(!(0..100_000).any(|call| quick.are_long(call % 50 == 0)));
        let mut slow = Sampled::default();
        let known = (0..400).filter(|call| slow.are_long(call % 5 == 0)).count();
        assert_eq!(known, 10);
    }

    /// Those that are long leave for a while.
    #[test]
    fn connections_leave_for_a_while() {
        let pressure = Pressure::default();
        assert!(!pressure.is_laned(|| 1));
        pressure.leave(1);
        assert!(pressure.is_laned(|| 1));
        assert!(!pressure.is_laned(|| micros(LANED) + 2));
    }

    /// One call that is cut off costs a second; who is cut off whenever it is tried on a worker is tried once a minute.
    #[test]
    fn who_is_cut_off_again_leaves_for_longer() {
        let pressure = Pressure::default();
        let mut now_us = 1;
        let mut spans = Vec::new();
        for _ in 0..8 {
            pressure.cut_off(now_us);
            // Another session's, that was under way.
            pressure.cut_off(now_us + 1);
            let began_us = now_us;
            while pressure.is_laned(|| now_us) {
                now_us += 100_000;
            }
            spans.push((now_us - began_us) / 1_000_000);
        }
        assert_eq!(spans, [1, 2, 4, 8, 16, 32, 60, 60]);
        now_us += micros(PROBATION);
        pressure.cut_off(now_us);
        assert!(!pressure.is_laned(|| now_us + micros(CUT_FIRST)));
    }
}
