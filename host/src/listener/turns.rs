//! How much of its answers a connection writes before others on its worker have their turn, and how many requests it has answered. The kernel takes
//! megabytes at once, and on the same machine gives them to their reader meanwhile; a client may send thousands of requests at once: milliseconds of a
//! thread that serves everybody.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use souk_outbound::Turn;

/// Some hundred microseconds. A page of a thousand rows fits.
pub const TURN_BYTES: usize = 128 << 10;
/// Likewise, of requests that are answered at once.
const TURN_REQUESTS: u32 = 8;

/// What a connection has written of its answers.
pub type Turns = Turn<TURN_BYTES>;

/// Requests that one client had sent before it had the answers to those before them. hyper takes sixteen at a stretch, and then others' turn is only theirs who
/// were known to be ready: the kernel is not asked who else is, for as long as there are such clients.
#[derive(Clone, Default)]
pub struct Queued(Arc<AtomicU32>);

impl Queued {
    /// One more request. Returns whether others have their turn before it is answered.
    pub fn one_more(&self) -> bool {
        let is_over = self.0.fetch_add(1, Relaxed) + 1 >= TURN_REQUESTS;
        if is_over {
            self.over();
        }
        is_over
    }

    /// The client has sent nothing more.
    #[inline]
    pub fn over(&self) {
        self.0.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who waits for answers never waits for others; who does not gives way again and again.
    #[test]
    fn requests_that_follow_at_once_give_way() {
        let queued = Queued::default();
        for _ in 0..3 * TURN_REQUESTS {
            assert!(!queued.clone().one_more());
            queued.over();
        }
        let ways = (0..3 * TURN_REQUESTS).filter(|_| queued.one_more());
        assert_eq!(ways.count(), 3);
    }
}
