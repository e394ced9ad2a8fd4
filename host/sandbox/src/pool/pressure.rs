//! Which data connections compute too much to do it on the workers: their guests' calls run in the compute lanes
//! from the beginning, for a while. Learnt from how many of their inline calls met a tick of the engine's
//! clock, which costs short calls nothing.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// How long a connection stays in the lanes before its calls are tried on the workers again.
const LANED: Duration = Duration::from_secs(10);
/// After a call that had to be cut off on a worker.
const LANED_LONG: Duration = Duration::from_secs(60);
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
        self.lane(now_us, LANED_LONG);
    }

    fn lane(&self, now_us: u64, time: Duration) {
        let until_us = now_us + time.as_micros() as u64;
        self.laned_until_us.fetch_max(until_us, Ordering::Relaxed);
    }
}

impl Sampled {
    /// Notes an inline call; whether it met a tick decides what is done with the next ones.
    #[inline]
    pub fn call(&mut self, met_tick: bool, pressure: &Pressure, now_us: impl FnOnce() -> u64) {
        self.calls += 1;
        if met_tick {
            self.ticks += 1;
            if self.ticks >= TICKS_MIN && self.ticks * CALLS_PER_TICK > self.calls {
                *self = Sampled::default();
                pressure.lane(now_us(), LANED);
            }
        } else if self.calls >= CALLS_MAX {
            *self = Sampled::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls that meet a tick now and then stay on the workers; those that mostly do leave for a while.
    #[test]
    fn long_calls_leave_the_workers() {
        let pressure = Pressure::default();
        let mut quick = Sampled::default();
        for call in 0..100_000 {
            quick.call(call % 50 == 0, &pressure, || 1);
        }
        assert!(!pressure.is_laned(|| 1));
        let mut slow = Sampled::default();
        for call in 0..200 {
            slow.call(call % 5 == 0, &pressure, || 1);
        }
        assert!(pressure.is_laned(|| 1));
        assert!(!pressure.is_laned(|| LANED.as_micros() as u64 + 2));
        pressure.cut_off(1);
        assert!(pressure.is_laned(|| LANED.as_micros() as u64 + 2));
    }
}
