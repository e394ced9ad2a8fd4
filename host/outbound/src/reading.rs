//! How much of what comes is read at a stretch, and how much before an answer begins.
//!
//! A server may say as often as it likes that an answer is still to come (100, 103), and hyper reads on as long as there is something to read: what
//! a fast network brings is a second of a thread that serves others. Knows no HTTP.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll},
};

use crate::Turn;

/// Others on this thread have their turn after so much: about a millisecond of the shortest heads that there are.
const STRETCH_BYTES: usize = 64 << 10;
/// What a read counts at least.
const READ_COST: usize = 4 << 10;
/// What is read of a body, and lies there, before whoever waits for its head has heard of that, with much room.
const BODY_BEGINS_BYTES: usize = 256 << 10;
/// Nobody waits for an answer to begin.
const NOBODY: usize = usize::MAX;

/// What a connection has read at a stretch.
#[derive(Default)]
pub(crate) struct Stretch(Turn<STRETCH_BYTES>);

impl Stretch {
    /// How many bytes may be read now.
    #[inline]
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        self.0.poll_room(cx)
    }

    #[inline]
    pub fn goes_on(&mut self, bytes: usize) {
        self.0.goes_on(bytes.max(READ_COST));
    }

    /// There is nothing to read.
    #[inline]
    pub fn ends(&mut self) {
        self.0.ends();
    }
}

/// What has come since a request was made whose answer has not begun.
pub(crate) struct Unanswered {
    bytes: AtomicUsize,
    bytes_max: usize,
}

/// So much came, and no answer began in it.
#[derive(Debug, thiserror::Error)]
#[error("{0} bytes came, and no answer began among them")]
pub(crate) struct NoAnswer(pub usize);

impl Unanswered {
    /// `head_bytes`: of the longest answer's head.
    pub fn new(head_bytes: usize) -> Unanswered {
        Unanswered {
            bytes: AtomicUsize::new(NOBODY),
            bytes_max: head_bytes
                .saturating_mul(2)
                .saturating_add(BODY_BEGINS_BYTES),
        }
    }

    /// A request is made.
    pub fn begins(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Its answer has begun: the rest of it is bounded by whoever reads it.
    pub fn ends(&self) {
        self.bytes.store(NOBODY, Ordering::Relaxed);
    }

    /// So many bytes more have come.
    #[inline]
    pub fn count(&self, bytes: usize) -> Result<(), NoAnswer> {
        let before = self.bytes.load(Ordering::Relaxed);
        if before == NOBODY {
            return Ok(());
        }
        let now = before.saturating_add(bytes);
        if now > self.bytes_max {
            return Err(NoAnswer(now));
        }
        // Its answer may have begun a moment ago.
        let _ = self
            .bytes
            .compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes while somebody waits for an answer is bounded, for each request anew; what comes of an answer is not counted here.
    #[test]
    fn what_comes_before_an_answer_is_bounded() {
        const HEAD: usize = 8 << 10;
        const MAX: usize = 2 * HEAD + BODY_BEGINS_BYTES;
        let unanswered = Unanswered::new(HEAD);
        assert!(unanswered.count(10 * MAX).is_ok());
        for _ in 0..3 {
            unanswered.begins();
            assert!(unanswered.count(HEAD).is_ok() && unanswered.count(MAX - HEAD).is_ok());
            assert!(unanswered.count(1).is_err());
            unanswered.ends();
            assert!(unanswered.count(10 * MAX).is_ok());
        }
    }
}
