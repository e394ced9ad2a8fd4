//! The session's one wire, as an author reads and writes it.

use crate::io::Shared;
use crate::{Error, TlsHandshake, TlsRecords};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Bytes that have arrived but were not read. A connector that reads at all never comes near.
const UNREAD_MAX: usize = 64 << 20;

/// Reads wait for the host's next call; writes never wait: they leave with the step.
#[derive(Clone)]
pub struct Tcp {
    shared: Rc<Shared>,
}

impl Tcp {
    pub(crate) fn new(shared: Rc<Shared>) -> Tcp {
        Tcp { shared }
    }

    /// Reads what is there, at least one byte; 0 means that the peer closed the wire.
    pub async fn read(&self, buffer: &mut [u8]) -> usize {
        poll_fn(|context| self.poll_read(context, buffer)).await
    }

    pub async fn read_exact(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..]).await {
                0 => {
                    return Err(Error::unavailable(
                        "connection_lost",
                        "the source closed the connection",
                    ));
                }
                n => filled += n,
            }
        }
        Ok(())
    }

    /// For those who adapt the wire to another trait.
    pub fn poll_read(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<usize> {
        let wire = &mut *self.shared.wire.borrow_mut();
        let unread = &wire.incoming[wire.at..];
        if unread.is_empty() && !wire.closed && !buffer.is_empty() {
            wire.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        let n = unread.len().min(buffer.len());
        buffer[..n].copy_from_slice(&unread[..n]);
        wire.at += n;
        if wire.at == wire.incoming.len() {
            wire.incoming.clear();
            wire.at = 0;
        }
        Poll::Ready(n)
    }

    pub fn write(&self, bytes: &[u8]) {
        self.shared.step.borrow_mut().send(bytes);
    }

    /// Turns the wire into TLS. What was written before leaves first, in plain text.
    pub async fn start_tls(&self) -> Result<(), Error> {
        self.start_tls_as(TlsHandshake {
            records: TlsRecords::Bare,
            protocols: Vec::new(),
        })
        .await
    }

    /// The same, with records in packets of the peer's own, or with protocols to offer.
    pub async fn start_tls_as(&self, handshake: TlsHandshake) -> Result<(), Error> {
        {
            let mut wire = self.shared.wire.borrow_mut();
            if wire.at < wire.incoming.len() {
                // Plain text that arrives before the handshake would be read as if TLS had protected it.
                return Err(Error::source_failed(
                    "unexpected_bytes",
                    "the source sent data before the TLS handshake",
                ));
            }
            wire.tls = false;
        }
        self.shared.step.borrow_mut().start_tls_as(handshake);
        poll_fn(|context| {
            let mut wire = self.shared.wire.borrow_mut();
            if wire.tls {
                return Poll::Ready(Ok(()));
            }
            if wire.closed {
                return Poll::Ready(Err(Error::unavailable(
                    "connection_lost",
                    "the source closed the connection",
                )));
            }
            wire.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Nobody knows any more what the next byte on the wire belongs to. A request that ends with this error ends the session, so that no other one
    /// takes what is left of its answer for its own.
    pub fn broken(&self, error: Error) -> Error {
        self.shared.wire.borrow_mut().broken = true;
        error
    }

    pub fn close(&self) {
        self.shared.step.borrow_mut().close();
    }
}

impl Shared {
    pub(crate) fn arrived(&self, bytes: Vec<u8>) -> Result<(), Error> {
        let mut wire = self.wire.borrow_mut();
        if wire.incoming.is_empty() {
            wire.incoming = bytes;
        } else if wire.incoming.len() - wire.at + bytes.len() > UNREAD_MAX {
            return Err(Error::internal(
                "unread_bytes",
                "the connector does not read what the source sends",
            ));
        } else {
            let at = std::mem::take(&mut wire.at);
            wire.incoming.drain(..at);
            wire.incoming.extend_from_slice(&bytes);
        }
        self.wake(wire);
        Ok(())
    }

    pub(crate) fn secured(&self) {
        let mut wire = self.wire.borrow_mut();
        wire.tls = true;
        self.wake(wire);
    }

    pub(crate) fn hung_up(&self) {
        let mut wire = self.wire.borrow_mut();
        wire.closed = true;
        self.wake(wire);
    }

    fn wake(&self, mut wire: std::cell::RefMut<'_, crate::io::Wire>) {
        let waker = wire.waker.take();
        drop(wire);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
