//! How often something is said that may happen thousands of times a second.

use std::sync::atomic::{AtomicU64, Ordering};

/// So many times a second and no more.
#[derive(Debug)]
pub struct Rate {
    per_second: u64,
    /// The second (upper half) and how often it was taken in it.
    state: AtomicU64,
}

impl Rate {
    pub const fn new(per_second: u32) -> Rate {
        Rate {
            per_second: per_second as u64,
            state: AtomicU64::new(0),
        }
    }

    /// Whether there was one left in this second, which is then taken.
    pub fn take(&self, second: u32) -> bool {
        let second = u64::from(second) << 32;
        let next = |state: u64| match state & !u64::from(u32::MAX) == second {
            true => (state & u64::from(u32::MAX) < self.per_second).then_some(state + 1),
            false => Some(second + 1),
        };
        self.state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
            .is_ok()
    }
}

/// A [`Rate`] at which something is said; how often it was not said is told the next time.
#[derive(Debug)]
pub struct Throttle {
    rate: Rate,
    unsaid: AtomicU64,
}

impl Throttle {
    pub const fn new(per_second: u32) -> Throttle {
        Throttle {
            rate: Rate::new(per_second),
            unsaid: AtomicU64::new(0),
        }
    }

    /// Whether it may be said in this second, and if so, how often it was not since it was said last.
    pub fn may(&self, second: u32) -> Option<u64> {
        if self.rate.take(second) {
            return Some(self.unsaid.swap(0, Ordering::Relaxed));
        }
        self.unsaid.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_said_is_counted() {
        let throttle = Throttle::new(2);
        let said: Vec<_> = (0..5).map(|_| throttle.may(7)).collect();
        assert_eq!(said, [Some(0), Some(0), None, None, None]);
        assert_eq!(throttle.may(8), Some(3));
        assert_eq!(throttle.may(9), Some(0));
    }
}
