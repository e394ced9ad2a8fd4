//! One wire, plain or protected.

use std::{
    io,
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll, ready},
};

use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

use crate::carrier::{Carrier, first_packet};

pub enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<Carrier>>),
}

impl Stream {
    pub fn is_protected(&self) -> bool {
        matches!(self, Stream::Tls(_))
    }

    /// Whether the kernel has anything for whoever reads it, the end included: tokio knows only what was so when it asked last.
    pub(crate) fn has_news(&self) -> bool {
        let socket = match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => stream.get_ref().0.socket(),
        };
        let peeked = SockRef::from(socket).peek(&mut [MaybeUninit::uninit()]);
        !peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl AsyncRead for Stream {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => {
                let before = buffer.filled().len();
                let read = Pin::new(&mut **stream).poll_read(cx, buffer);
                let said = buffer.filled().len() - before;
                if said > 0 {
                    stream.get_mut().0.said(said);
                }
                read
            }
        }
    }
}

impl AsyncWrite for Stream {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) if stream.get_ref().0.is_tds() => {
                // What was sealed before has left, so that there is room for a packet as a whole: where it was cut would be a record's end.
                ready!(Pin::new(&mut *stream).poll_flush(cx))?;
                Pin::new(stream).poll_write(cx, first_packet(bytes))
            }
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::{DEFAULT_VERSIONS, server::ProducesTickets};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::{
        Trust, protect,
        reading::NoAnswer,
        testing::{self, Ca},
    };

    /// Each is as long as every other one, so that a record has some of them as a whole: rustls itself gives up whose messages go on in the next one.
    #[derive(Debug)]
    struct Tickets;

    /// Of the message in which a ticket is handed out, what is not the ticket.
    const AROUND_TICKET: usize = 49;
    const MESSAGE: usize = 1_000;

    impl ProducesTickets for Tickets {
        fn enabled(&self) -> bool {
            true
        }

        fn lifetime(&self) -> u32 {
            3_600
        }

        fn encrypt(&self, _plain: &[u8]) -> Option<Vec<u8>> {
            Some(vec![7; MESSAGE - AROUND_TICKET])
        }

        fn decrypt(&self, _cipher: &[u8]) -> Option<Vec<u8>> {
            None
        }
    }

    /// Whoever hands out tickets for ever, and says nothing, is given up; others on this thread have their turns until then.
    #[tokio::test]
    async fn who_says_nothing_within_tls_is_given_up() {
        let ca = Ca::new();
        let mut config = ca.leaf("localhost").config(DEFAULT_VERSIONS);
        config.send_tls13_tickets = 1_000;
        config.ticketer = Arc::new(Tickets);
        // With the head of a record.
        config.max_fragment_size = Some(16 * MESSAGE + 5);
        let server = testing::accept_tls(config).await;
        let trust = Trust::verified(Some(&ca.pem())).unwrap();
        let stream = TcpStream::connect(server).await.unwrap();
        let stream = protect(stream, &trust, "localhost").await.unwrap();
        let mut stream = Stream::Tls(Box::new(stream));
        let ended = stream.read(&mut [0; 16]).await.unwrap_err();
        let endless = ended.get_ref().is_some_and(|inner| inner.is::<NoAnswer>());
        assert!(endless, "{ended}");
    }

    /// What says something goes on for as long as it likes.
    #[tokio::test]
    async fn much_is_read_within_tls() {
        const BYTES: usize = 4 << 20;
        let ca = Ca::new();
        let answer: &'static [u8] = vec![b'a'; BYTES].leak();
        let config = ca.leaf("localhost").config(DEFAULT_VERSIONS);
        let server = testing::closing(config, answer, true).await;
        let trust = Trust::verified(Some(&ca.pem())).unwrap();
        let stream = TcpStream::connect(server).await.unwrap();
        let stream = protect(stream, &trust, "localhost").await.unwrap();
        let mut stream = Stream::Tls(Box::new(stream));
        stream.write_all(b"ping").await.unwrap();
        stream.flush().await.unwrap();
        let mut read = Vec::new();
        stream.read_to_end(&mut read).await.unwrap();
        assert_eq!(read.len(), BYTES);
    }
}
