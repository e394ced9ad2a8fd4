//! How much of its answers a connection writes before others on its worker have their turn. The kernel takes megabytes at once, and on the
//! same machine gives them to their reader meanwhile: milliseconds of a thread that serves everybody.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Some hundred microseconds. A page of a thousand rows fits.
pub const TURN_BYTES: usize = 128 << 10;

#[derive(Default)]
pub struct Turns {
    /// Bytes of this turn.
    sent: usize,
    /// Others have theirs.
    others: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Turns {
    /// How many bytes may be written now.
    #[inline]
    pub fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        if self.sent >= TURN_BYTES {
            ready!(self.poll_others(context));
        }
        Poll::Ready(TURN_BYTES - self.sent)
    }

    /// Tokio's own way to yield: whatever has become ready meanwhile comes first, also what only the kernel knows of.
    #[cold]
    fn poll_others(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let others = self
            .others
            .get_or_insert_with(|| Box::pin(tokio::task::yield_now()));
        ready!(others.as_mut().poll(context));
        *self = Turns::default();
        Poll::Ready(())
    }

    #[inline]
    pub fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// Nothing is left to write, or the client has to take some first.
    #[inline]
    pub fn over(&mut self) {
        self.sent = 0;
    }
}
