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

    /// Nothing more can go now: others have their turn anyway.
    #[inline]
    pub fn ends(&mut self) {
        self.bytes = 0;
    }
}
