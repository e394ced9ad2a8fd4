//! A wire of tokio's as crates know it that have the traits of `futures`: what tokio-util's feature `compat` does, which all that depends on it would
//! be built anew for.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::io::{AsyncRead, AsyncWrite};
use tokio::io::ReadBuf;

pub struct AsFutures<S>(S);

impl<S> AsFutures<S> {
    pub fn new(stream: S) -> AsFutures<S> {
        AsFutures(stream)
    }
}

impl<S: tokio::io::AsyncRead + Unpin> AsyncRead for AsFutures<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(into);
        ready!(Pin::new(&mut self.0).poll_read(context, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl<S: tokio::io::AsyncWrite + Unpin> AsyncWrite for AsFutures<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
