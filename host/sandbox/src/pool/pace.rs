//! Which statements are slow at their source. A slow one gets a session to itself, so that fast ones
//! do not wait behind it. Learnt from what each statement took the last time; nothing is kept of it
//! but a hash. One that nothing is known of may be either, so that few of them share a session.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
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
/// Fast statements remembered, each in the place that its hash says: another one there is forgotten.
const FAST_MAX: usize = 512;

#[derive(Default)]
pub(crate) struct Pace {
    slow: Mutex<HashMap<u64, Known>>,
    /// Most data connections have no slow statement, and pay one load to know it.
    any: AtomicBool,
    /// Where it matters which statements are fast: where one waits for another at the source.
    fast: Option<Box<[AtomicU32; FAST_MAX]>>,
}

/// What is known of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speed {
    Fast,
    /// It should have a session to itself.
    Slow,
    Unknown,
}

/// Why a statement gets a session to itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Slow,
    /// One of those that it was answered together with was, or it: its next run shows.
    Suspected,
}

impl Pace {
    /// `knows_fast`: statements of which nothing is known are told apart from those that are fast.
    pub fn new(knows_fast: bool) -> Pace {
        Pace {
            fast: knows_fast.then(|| Box::new([const { AtomicU32::new(0) }; FAST_MAX])),
            ..Pace::default()
        }
    }

    /// What is known of a request before it runs.
    #[inline]
    pub fn of(&self, request: &Request) -> Speed {
        let query = match request {
            Request::Query(query) => query,
            // A catalog is large, a call is somebody else's program.
            Request::Schema(_) | Request::Call(_) | Request::Publish(_) => return Speed::Slow,
            Request::Ping(_) | Request::Errand(_) | Request::Check(_) => return Speed::Fast,
        };
        let any = self.any.load(Ordering::Relaxed);
        if !any && self.fast.is_none() {
            return Speed::Fast;
        }
        let text = hash(&query.text);
        if any && self.slow.lock().contains_key(&text) {
            return Speed::Slow;
        }
        match &self.fast {
            Some(fast) if fast[place(text)].load(Ordering::Relaxed) != tag(text) => Speed::Unknown,
            _ => Speed::Fast,
        }
    }

    /// It was as fast as one that shares a session may be.
    #[inline]
    fn note_fast(&self, request: &Request) {
        if let (Some(fast), Request::Query(query)) = (&self.fast, request) {
            let text = hash(&query.text);
            let (place, tag) = (&fast[place(text)], tag(text));
            // Mostly it is known, and is written by no core.
            if place.load(Ordering::Relaxed) != tag {
                place.store(tag, Ordering::Relaxed);
            }
        }
    }

    /// Notes how long the source worked on a request, waiting for others left out.
    #[inline]
    pub fn learn(&self, request: &Request, took: Duration) {
        let slow = took > SLOW;
        if !slow {
            self.note_fast(request);
        }
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
            return self.note_fast(request);
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

fn place(text: u64) -> usize {
    text as usize % FAST_MAX
}

/// Never 0, which is nobody's.
fn tag(text: u64) -> u32 {
    (text >> 32) as u32 | 1
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
        assert_ne!(pace.of(&other), Speed::Slow);
        for request in [&other, &slow] {
            pace.learn_together(request, Duration::from_millis(50), 2);
        }
        for request in [&slow, &other] {
            assert_eq!(pace.of(request), Speed::Slow);
        }
        // At a source that is two milliseconds away nothing takes less.
        pace.learn(&other, Duration::from_millis(2));
        pace.learn(&slow, Duration::from_millis(48));
        assert_eq!(pace.of(&slow), Speed::Slow);
        assert_ne!(pace.of(&other), Speed::Slow);
        // What is known is not forgotten for a suspicion.
        pace.learn_together(&slow, Duration::from_millis(50), 2);
        pace.learn(&slow, Duration::from_millis(2));
        assert_eq!(pace.of(&slow), Speed::Slow);
    }

    /// A statement is slow from the time that it was, until it was fast again.
    #[test]
    fn slow_statements_are_learnt_and_forgotten() {
        let pace = Pace::default();
        let (slow, other) = (query("SELECT pg_sleep(1)"), query("SELECT pg_sleep(2)"));
        assert_ne!(pace.of(&slow), Speed::Slow);
        pace.learn(&slow, Duration::from_millis(20));
        assert_eq!(pace.of(&slow), Speed::Slow);
        assert_ne!(pace.of(&other), Speed::Slow);
        pace.learn(&slow, Duration::from_millis(2));
        assert_eq!(pace.of(&slow), Speed::Slow);
        pace.learn(&slow, Duration::from_micros(300));
        assert_ne!(pace.of(&slow), Speed::Slow);
    }

    /// Nothing is known of a statement until it has run; where that does not matter it is as fast as others.
    #[test]
    fn what_has_not_run_is_unknown() {
        let pace = Pace::new(true);
        let (one, other) = (query("SELECT 1"), query("SELECT 2"));
        assert_eq!(pace.of(&one), Speed::Unknown);
        pace.learn(&one, Duration::from_micros(300));
        pace.learn_together(&other, Duration::from_millis(3), 4);
        for request in [&one, &other] {
            assert_eq!(pace.of(request), Speed::Fast);
        }
        pace.learn(&one, Duration::from_millis(20));
        assert_eq!(pace.of(&one), Speed::Slow);
        assert_eq!(pace.of(&other), Speed::Fast);
        assert_eq!(Pace::new(false).of(&query("SELECT 3")), Speed::Fast);
    }
}
