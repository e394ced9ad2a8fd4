//! Where HTTP may go and how it gets there, and what is read of an answer: what both clients have in common.

use std::{
    error::Error as _,
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Uri, response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper_util::{client::legacy::connect, rt::TokioIo};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::timeout,
};

use crate::{
    Account, Dialer, EgressPolicy, Error, ErrorKind, Own, Stream, Trust, protect,
    reading::{NoAnswer, Stretch, Unanswered},
};

/// Where requests may go, and whom the client believes.
#[derive(Clone)]
pub struct Reach<A = Own> {
    /// Which addresses `https:` may lead to,
    pub egress: EgressPolicy,
    /// and which `http:`, whose bytes anybody on the way can read and change.
    pub egress_plain: EgressPolicy,
    /// `None`: `https:` is not spoken.
    pub trust: Option<Trust>,
    pub account: A,
}

/// What a client takes at most. What a single request takes is said with the request.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// From the look-up to the connection; TLS has as long again.
    pub connect: Duration,
    /// Of an answer. (It has at most a hundred headers: hyper reads no more.)
    pub head_bytes: usize,
    /// Connections kept to one host.
    pub idle_per_host: usize,
    /// Connections kept to all hosts: with more than this open, requests ask that theirs is closed. Those that begin at once may add as many.
    pub idle_total: usize,
    /// How long one is kept. `None`: as long as the client.
    pub idle: Option<Duration>,
}

/// An answer, read as far as was allowed.
#[derive(Debug)]
pub struct Answer {
    pub head: response::Parts,
    /// An error when it was cut short, did not end in time or is longer than was asked for.
    pub body: Result<Bytes, Error>,
}

/// Makes connections: judges, dials, protects.
pub(crate) struct Connector<A>(Arc<Way<A>>);

struct Way<A> {
    reach: Reach<A>,
    bounds: Bounds,
    open: Arc<AtomicUsize>,
}

impl<A> Connector<A> {
    pub fn new(reach: Reach<A>, bounds: Bounds) -> Connector<A> {
        Connector(Arc::new(Way {
            reach,
            bounds,
            open: Arc::default(),
        }))
    }

    /// One alike on an account of its own. What is open counts for both.
    pub fn apart(&self) -> Connector<A>
    where
        A: Account,
    {
        let way = &self.0;
        Connector(Arc::new(Way {
            reach: Reach {
                account: way.reach.account.apart(),
                ..way.reach.clone()
            },
            bounds: way.bounds,
            open: way.open.clone(),
        }))
    }

    pub fn bounds(&self) -> &Bounds {
        &self.0.bounds
    }

    pub fn account(&self) -> &A {
        &self.0.reach.account
    }

    /// Connections that are open, in use or not.
    pub fn open(&self) -> usize {
        self.0.open.load(Ordering::Relaxed)
    }
}

impl<A> Clone for Connector<A> {
    fn clone(&self) -> Connector<A> {
        Connector(self.0.clone())
    }
}

impl<A: Account> Connector<A> {
    pub async fn connect(self, uri: Uri) -> Result<TokioIo<Connection<A::Place>>, Error> {
        let Way {
            reach,
            bounds,
            open,
        } = &*self.0;
        let unfit = |reason: &str| Error::new(ErrorKind::Unreachable, format!("{uri} {reason}"));
        let (egress, trust, port) = match (uri.scheme_str(), &reach.trust) {
            (Some("http"), _) => (&reach.egress_plain, None, 80),
            (Some("https"), Some(trust)) => (&reach.egress, Some(trust), 443),
            _ => return Err(unfit("has a scheme that is not spoken here")),
        };
        let host = uri.host().ok_or_else(|| unfit("names no host"))?;
        let place = reach.account.take_socket()?;
        let dialer = Dialer {
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(port),
            egress: egress.clone(),
            connect_timeout: bounds.connect,
            account: reach.account.clone(),
        };
        let stream = dialer.dial().await?;
        let stream = match trust {
            None => Stream::Plain(stream),
            Some(trust) => match timeout(bounds.connect, protect(stream, trust, host)).await {
                Ok(stream) => Stream::Tls(Box::new(stream?)),
                Err(_) => {
                    let message = format!("{host} did not shake hands in time");
                    return Err(Error::new(ErrorKind::Timeout, message));
                }
            },
        };
        Ok(TokioIo::new(Connection {
            stream,
            held: Arc::new(Held {
                is_asked: AtomicBool::new(false),
                is_unsent: AtomicBool::new(false),
                unanswered: Unanswered::new(bounds.head_bytes),
                place: Mutex::new(Some(place)),
            }),
            stretch: Stretch::default(),
            _open: Open::count(open),
        }))
    }
}

impl<A: Account> tower_service::Service<Uri> for Connector<A> {
    type Response = TokioIo<Connection<A::Place>>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// A connection, with what it has taken.
pub(crate) struct Connection<P> {
    stream: Stream,
    held: Arc<Held<P>>,
    stretch: Stretch,
    _open: Open,
}

impl<P> Connection<P> {
    pub fn held(&self) -> Arc<Held<P>> {
        self.held.clone()
    }
}

impl<P> Drop for Connection<P> {
    /// Whoever keeps the other half of it may not know yet that it is closed.
    fn drop(&mut self) {
        self.held.take_place();
    }
}

/// What whoever keeps a connection has of it: hyper has the rest.
pub(crate) struct Held<P> {
    is_asked: AtomicBool,
    /// There are bytes that the peer has not taken.
    is_unsent: AtomicBool,
    /// Of whoever tells when a request is made and when its answer begins.
    unanswered: Unanswered,
    /// Given back with the connection, unless it is taken before.
    place: Mutex<Option<P>>,
}

impl<P> Held<P> {
    /// Has a connection that was kept look, when it is read next, whether the other side has closed it or said anything: what this thread has not
    /// heard yet, too. hyper reads one before it writes the next request to it, and hands back a request that it has not written.
    pub fn look(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// Whether it is to look, this once.
    #[inline]
    fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed) && self.is_asked.swap(false, Ordering::Relaxed)
    }

    pub fn is_unsent(&self) -> bool {
        self.is_unsent.load(Ordering::Relaxed)
    }

    pub fn unanswered(&self) -> &Unanswered {
        &self.unanswered
    }

    /// What came of sending.
    #[inline]
    fn sent<T>(&self, outcome: Poll<T>, is_all: bool) -> Poll<T> {
        match (outcome.is_pending(), self.is_unsent()) {
            (true, false) => self.is_unsent.store(true, Ordering::Relaxed),
            (false, true) if is_all => self.is_unsent.store(false, Ordering::Relaxed),
            _ => {}
        }
        outcome
    }

    /// The place of a connection that is about to be closed. `None`: it is closed.
    pub fn take_place(&self) -> Option<P> {
        self.place.lock().take()
    }
}

/// Counts one connection as long as it lives.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn count(open: &Arc<AtomicUsize>) -> Open {
        open.fetch_add(1, Ordering::Relaxed);
        Open(open.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<P> connect::Connection for Connection<P> {
    fn connected(&self) -> connect::Connected {
        connect::Connected::new()
    }
}

impl<P: Unpin> AsyncRead for Connection<P> {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Connection {
            stream,
            held,
            stretch,
            ..
        } = self.get_mut();
        // Whatever has come belongs to no answer: it is as if the other side had closed.
        if held.is_asked() && stream.has_news() {
            return Poll::Ready(Ok(()));
        }
        let room = ready!(stretch.poll_room(cx));
        let before = buffer.filled().len();
        let read = match buffer.remaining() <= room {
            true => Pin::new(stream).poll_read(cx, buffer),
            false => {
                let mut limited = tokio::io::AsyncReadExt::take(stream, room as u64);
                Pin::new(&mut limited).poll_read(cx, buffer)
            }
        };
        if !matches!(read, Poll::Ready(Ok(()))) {
            stretch.ends();
            return read;
        }
        let bytes = buffer.filled().len() - before;
        stretch.goes_on(bytes);
        let counted = held.unanswered.count(bytes);
        Poll::Ready(counted.map_err(|endless| io::Error::new(io::ErrorKind::InvalidData, endless)))
    }
}

impl<P: Unpin> AsyncWrite for Connection<P> {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Connection { stream, held, .. } = self.get_mut();
        held.sent(Pin::new(stream).poll_write(cx, bytes), false)
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Connection { stream, held, .. } = self.get_mut();
        held.sent(Pin::new(stream).poll_flush(cx), true)
    }

    #[inline]
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

pub(crate) async fn read(body: Incoming, bytes_max: usize) -> Result<Bytes, Error> {
    match Limited::new(body, bytes_max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => Err(match error.downcast_ref::<hyper::Error>() {
            Some(error) => http_error(error),
            None => too_long(bytes_max),
        }),
    }
}

pub(crate) fn too_long(bytes_max: usize) -> Error {
    Error::new(
        ErrorKind::BadResponse,
        format!("the response is longer than {bytes_max} bytes"),
    )
}

pub(crate) fn http_error(error: &hyper::Error) -> Error {
    let kind = if error.is_parse() || error.is_parse_too_large() || is_endless(error) {
        ErrorKind::BadResponse
    } else if error.is_timeout() {
        ErrorKind::Timeout
    } else {
        ErrorKind::Reset
    };
    let source = error
        .source()
        .map(|cause| format!(": {cause}"))
        .unwrap_or_default();
    Error::new(kind, format!("{error}{source}"))
}

/// Whether an answer was waited for in vain, however much came.
fn is_endless(error: &hyper::Error) -> bool {
    let cause = error.source();
    let cause = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    let inner = cause.and_then(io::Error::get_ref);
    inner.is_some_and(|inner| inner.is::<NoAnswer>())
}
