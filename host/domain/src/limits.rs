//! Rate limits: a fixed window of one hour that begins with the first request of its bucket. Refuses to know where windows are kept.

use crate::time::{HOUR, Timestamp};

/// Requests per hour of a key for which none is given.
pub const KEY_LIMIT_DEFAULT: i64 = 1_000;
pub const KEY_LIMIT_MAX: i64 = 1_000_000_000;

/// One bucket's current window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub started_at: Timestamp,
    pub used: i64,
}

/// The numbers that the three headers show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub limit: i64,
    pub remaining: i64,
    /// Epoch seconds at which the window ends, rounded up, so that waiting until then always suffices.
    pub reset: i64,
}

impl Window {
    pub const fn new(now: Timestamp) -> Self {
        Self {
            started_at: now,
            used: 0,
        }
    }

    pub fn ends_at(&self) -> Timestamp {
        self.started_at.after(HOUR)
    }

    /// The window that counts at `now`: this one, or a fresh one if this one is over.
    pub fn at(self, now: Timestamp) -> Window {
        if now < self.ends_at() {
            self
        } else {
            Window::new(now)
        }
    }

    /// Whether one more request fits under `limit`.
    pub const fn admits(&self, limit: i64) -> bool {
        self.used < limit
    }

    pub fn standing(&self, limit: i64) -> Standing {
        let reset = self
            .ends_at()
            .micros()
            .saturating_add(999_999)
            .div_euclid(1_000_000);
        Standing {
            limit,
            remaining: (limit - self.used).max(0),
            reset,
        }
    }
}

impl Standing {
    /// The bucket that binds: the fewest remaining; a tie goes to the operation's bucket.
    pub fn binding(key: Standing, operation: Standing) -> (Standing, Bucket) {
        if key.remaining < operation.remaining {
            (key, Bucket::Key)
        } else {
            (operation, Bucket::Operation)
        }
    }

    /// Whole seconds until the window ends, at least one.
    pub fn retry_after(&self, now: Timestamp) -> i64 {
        (self.reset - now.seconds()).max(1)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bucket {
    Key,
    Operation,
    Ip,
}

impl Bucket {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Operation => "operation",
            Self::Ip => "ip",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window begins with the first request, not with the hour of the clock.
    #[test]
    fn window_is_anchored_at_the_first_request() {
        let start = Timestamp::from_seconds(1_000);
        let window = Window {
            started_at: start,
            used: 3,
        };
        assert_eq!(window.at(Timestamp::from_seconds(4_599)).used, 3);
        assert_eq!(window.at(Timestamp::from_seconds(4_600)).used, 0);
        assert_eq!(
            window.standing(3),
            Standing {
                limit: 3,
                remaining: 0,
                reset: 4_600
            }
        );
        assert!(!window.admits(3) && window.admits(4));
    }

    /// Headers show the bucket with the fewest requests left.
    #[test]
    fn the_tighter_bucket_binds() {
        let of = |remaining| Standing {
            limit: 10,
            remaining,
            reset: 0,
        };
        assert_eq!(Standing::binding(of(1), of(2)).1, Bucket::Key);
        assert_eq!(Standing::binding(of(2), of(2)).1, Bucket::Operation);
    }
}
