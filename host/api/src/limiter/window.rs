//! A window of one host.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub const WINDOW_SECONDS: u32 = 3600;

/// What a bucket has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub limit: u32,
    pub remaining: u32,
    /// Epoch seconds.
    pub reset: u32,
}

/// One window: the second it began in the upper half, calls so far in the lower.
#[derive(Default)]
pub struct Window<const SECONDS: u32 = WINDOW_SECONDS>(AtomicU64);

impl<const SECONDS: u32> Window<SECONDS> {
    pub fn take(&self, limit: u32, now: u32) -> Result<Quota, Quota> {
        let mut current = self.0.load(Relaxed);
        loop {
            let (started, used) = live(current, now, SECONDS);
            if used >= limit {
                return Err(quota(limit, started + SECONDS, used));
            }
            match self
                .0
                .compare_exchange_weak(current, pack(started, used + 1), Relaxed, Relaxed)
            {
                Ok(_) => return Ok(quota(limit, started + SECONDS, used + 1)),
                Err(other) => current = other,
            }
        }
    }

    pub fn peek(&self, limit: u32, now: u32) -> Quota {
        let (started, used) = live(self.0.load(Relaxed), now, SECONDS);
        quota(limit, started + SECONDS, used)
    }

    /// Undoes a [`Window::take`], if its window still runs.
    pub fn give_back(&self, now: u32) {
        let _ = self.0.fetch_update(Relaxed, Relaxed, |current| {
            let (started, used) = live(current, now, SECONDS);
            (used > 0).then(|| pack(started, used - 1))
        });
    }

    pub fn is_over(&self, now: u32) -> bool {
        live(self.0.load(Relaxed), now, SECONDS).1 == 0
    }
}

/// Start and count at `now`: a window that is over is a new one.
fn live(packed: u64, now: u32, seconds: u32) -> (u32, u32) {
    let (started, used) = ((packed >> 32) as u32, packed as u32);
    if used == 0 || now.wrapping_sub(started) >= seconds {
        (now, 0)
    } else {
        (started, used)
    }
}

fn pack(started: u32, used: u32) -> u64 {
    u64::from(started) << 32 | u64::from(used)
}

pub fn quota(limit: u32, reset: u32, used: u32) -> Quota {
    Quota {
        limit,
        remaining: limit.saturating_sub(used),
        reset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u32 = 1_700_000_000;

    /// The window opens with the first request, counts down and opens anew an hour later.
    #[test]
    fn a_window_is_anchored_at_its_first_request() {
        let window = Window::<WINDOW_SECONDS>::default();
        assert_eq!(
            window.take(2, NOW),
            Ok(Quota {
                limit: 2,
                remaining: 1,
                reset: NOW + 3600
            })
        );
        assert_eq!(
            window.take(2, NOW + 10),
            Ok(Quota {
                limit: 2,
                remaining: 0,
                reset: NOW + 3600
            })
        );
        assert_eq!(
            window.take(2, NOW + 3599),
            Err(Quota {
                limit: 2,
                remaining: 0,
                reset: NOW + 3600
            })
        );
        assert_eq!(
            window.take(2, NOW + 3600),
            Ok(Quota {
                limit: 2,
                remaining: 1,
                reset: NOW + 7200
            })
        );
    }
}
