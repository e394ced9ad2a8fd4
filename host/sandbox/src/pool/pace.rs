//! Which statements are slow at their source. A slow one gets a session to itself, so that fast ones
//! do not wait behind it. Learnt from what each statement took the last time; nothing is kept of it
//! but a hash.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use parking_lot::Mutex;

use crate::request::Request;

/// Slower than this, a request does not share a session.
const SLOW: Duration = Duration::from_millis(5);
/// A statement that was slow may share again when it took less than this.
const FAST: Duration = Duration::from_millis(1);
/// Statements remembered; past that all are forgotten and learnt again.
const STATEMENTS_MAX: usize = 4096;

#[derive(Default)]
pub(crate) struct Pace {
    slow: Mutex<HashMap<u64, Known>>,
    /// Most data connections have no slow statement, and pay one load to know it.
    any: AtomicBool,
}

/// Why a statement gets a session to itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Slow,
    /// One of those that it was answered together with was, or it: its next run shows.
    Suspected,
}

impl Pace {
    /// Whether the request should have a session to itself.
    #[inline]
    pub fn is_slow(&self, request: &Request) -> bool {
        match request {
            Request::Query(query) => {
                self.any.load(Ordering::Relaxed)
                    && self.slow.lock().contains_key(&hash(&query.text))
            }
            // A catalog is large, a call is somebody else's program.
            Request::Schema(_) | Request::Call(_) | Request::Publish(_) => true,
            Request::Ping(_) | Request::Errand(_) | Request::Check(_) => false,
        }
    }

    /// Notes how long the source worked on a request, waiting for others left out.
    #[inline]
    pub fn learn(&self, request: &Request, took: Duration) {
        let slow = took > SLOW;
        if !slow && !self.any.load(Ordering::Relaxed) {
            return;
        }
        let Request::Query(query) = request else {
            return;
        };
        let text = hash(&query.text);
        let mut statements = self.slow.lock();
        if slow {
            bound(&mut statements);
            statements.insert(text, Known::Slow);
        } else if took <= FAST || statements.get(&text) == Some(&Known::Suspected) {
            statements.remove(&text);
        }
        self.any.store(!statements.is_empty(), Ordering::Relaxed);
    }

    /// The same of one of `count` that were answered together, and took so long together: each of them may be the one that was slow. So many that are
    /// as fast as a statement may be say nothing.
    #[inline]
    pub fn learn_together(&self, request: &Request, took: Duration, count: u32) {
        if took <= SLOW + FAST * count {
            return;
        }
        let Request::Query(query) = request else {
            return;
        };
        let mut statements = self.slow.lock();
        bound(&mut statements);
        let text = hash(&query.text);
        statements.entry(text).or_insert(Known::Suspected);
        self.any.store(true, Ordering::Relaxed);
    }
}

fn bound(statements: &mut HashMap<u64, Known>) {
    if statements.len() >= STATEMENTS_MAX {
        statements.clear();
    }
}

/// FNV-1a over words: a collision costs a statement a session of its own, or two callers a turn, nothing else.
pub(super) fn hash(text: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64 ^ text.len() as u64;
    for word in text.as_bytes().chunks(8) {
        let mut bytes = [0; 8];
        bytes[..word.len()].copy_from_slice(word);
        hash = (hash ^ u64::from_le_bytes(bytes))
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(23);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Limits, Query};

    fn query(text: &str) -> Request {
        Request::Query(Query {
            text: text.into(),
            parameters: Vec::new(),
            limits: Limits::new(1, 1),
        })
    }

    /// Whose answers come together are not told apart by their times: each is slow until its next run has shown that it was not.
    #[test]
    fn those_that_are_answered_together_are_suspected() {
        let pace = Pace::default();
        let (slow, other) = (query("SELECT pg_sleep(1)"), query("SELECT 1"));
        // Sixteen of half a millisecond.
        pace.learn_together(&other, Duration::from_millis(8), 16);
        assert!(!pace.is_slow(&other));
        for request in [&other, &slow] {
            pace.learn_together(request, Duration::from_millis(50), 2);
        }
        assert!(pace.is_slow(&slow) && pace.is_slow(&other));
        // At a source that is two milliseconds away nothing takes less.
        pace.learn(&other, Duration::from_millis(2));
        pace.learn(&slow, Duration::from_millis(48));
        assert!(pace.is_slow(&slow) && !pace.is_slow(&other));
        // What is known is not forgotten for a suspicion.
        pace.learn_together(&slow, Duration::from_millis(50), 2);
        pace.learn(&slow, Duration::from_millis(2));
        assert!(pace.is_slow(&slow));
    }

    /// A statement is slow from the time that it was, until it was fast again.
    #[test]
    fn slow_statements_are_learnt_and_forgotten() {
        let pace = Pace::default();
        let (slow, other) = (query("SELECT pg_sleep(1)"), query("SELECT pg_sleep(2)"));
        assert!(!pace.is_slow(&slow));
        pace.learn(&slow, Duration::from_millis(20));
        assert!(pace.is_slow(&slow) && !pace.is_slow(&other));
        pace.learn(&slow, Duration::from_millis(2));
        assert!(pace.is_slow(&slow));
        pace.learn(&slow, Duration::from_micros(300));
        assert!(!pace.is_slow(&slow));
    }
}
