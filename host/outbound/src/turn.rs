//! How much goes over a connection before others on its thread have their turn: what a fast network brings or takes at once is milliseconds of a thread that
//! serves everybody. Knows neither sockets nor what is said over them.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

/// A connection's turn, of so many bytes.
#[derive(Default)]
pub struct Turn<const BYTES: usize> {
    /// Of this turn.
    bytes: usize,
    /// Others have theirs.
    others: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

impl<const BYTES: usize> Turn<BYTES> {
    /// How many bytes may go now.
    #[inline]
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        if self.bytes >= BYTES {
            ready!(self.poll_others(cx));
        }
        Poll::Ready(BYTES - self.bytes)
    }

    /// Tokio's own way to yield: whatever has become ready meanwhile comes first, also what only the kernel knows of.
    #[cold]
    fn poll_others(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let others = self
            .others
            .get_or_insert_with(|| Box::pin(tokio::task::yield_now()));
        ready!(others.as_mut().poll(cx));
        *self = Turn::default();
        Poll::Ready(())
    }

    /// So many have gone.
    #[inline]
    pub fn goes_on(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// So many of those are none of this turn's: they are counted elsewhere.
    #[inline]
    pub fn takes_back(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Nothing more can go now: others have their turn anyway.
    #[inline]
    pub fn ends(&mut self) {
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Others have their turn when as much has gone as a turn has, and not for what is counted elsewhere, however much that is.
    #[test]
    fn what_is_counted_elsewhere_ends_no_turn() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut turn = Turn::<10>::default();
        for _ in 0..9 {
            assert!(turn.poll_room(&mut cx).is_ready());
            turn.goes_on(10);
            turn.takes_back(9);
        }
        // No turn has more than all of it.
        turn.takes_back(100);
        assert_eq!(turn.poll_room(&mut cx), Poll::Ready(10));
        turn.goes_on(11);
        assert!(turn.poll_room(&mut cx).is_pending());
        assert_eq!(turn.poll_room(&mut cx), Poll::Ready(10));
    }
}
