//! Whether a data connection's calls have ended well of late. What has yet to show that, or has failed, computes in lanes that everybody
//! else's computing goes before: a loop looks like an honest query until its deadline.

use std::sync::atomic::{AtomicI32, Ordering};

/// Answers that outweigh one failure, so that a guest which answers now and then gains nothing by it.
const FAILURE: i32 = 64;
/// Answers that a company's own connector begins with less than the platform's.
const UNKNOWN: i32 = 8;
/// After any number of failures this many are left to outweigh.
const FAILURES_MAX: i32 = 16;

/// Answers that are still owed; none are while it is zero.
pub(crate) struct Reliability {
    owed: AtomicI32,
}

impl Reliability {
    pub fn new(known: bool) -> Reliability {
        Reliability {
            owed: AtomicI32::new(if known { 0 } else { UNKNOWN }),
        }
    }

    pub fn is_proven(&self) -> bool {
        self.owed.load(Ordering::Relaxed) <= 0
    }

    /// Each answer: nothing is written once none is owed. Two at once may count for one.
    #[inline]
    pub fn answered(&self) {
        let owed = self.owed.load(Ordering::Relaxed);
        if owed > 0 {
            self.owed.store(owed - 1, Ordering::Relaxed);
        }
    }

    pub fn failed(&self) {
        let owed = self.owed.load(Ordering::Relaxed).max(0);
        let owed = (owed + FAILURE).min(FAILURE * FAILURES_MAX);
        self.owed.store(owed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is earned by answers, lost by one failure, and not regained by an answer between failures.
    #[test]
    fn it_is_earned_and_lost() {
        assert!(Reliability::new(true).is_proven());
        let guest = Reliability::new(false);
        assert!(!guest.is_proven());
        (0..UNKNOWN).for_each(|_| guest.answered());
        assert!(guest.is_proven());
        guest.failed();
        (1..FAILURE).for_each(|_| guest.answered());
        assert!(!guest.is_proven());
        guest.answered();
        assert!(guest.is_proven());
        for _ in 0..10 * FAILURES_MAX {
            guest.failed();
            guest.answered();
        }
        (0..FAILURE * FAILURES_MAX).for_each(|_| guest.answered());
        assert!(guest.is_proven(), "it is regained");
    }
}
