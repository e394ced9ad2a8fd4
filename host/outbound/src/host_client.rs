//! HTTP/1.1 to one host on behalf of one user, the sessions of a thread say, that sends thousands of requests a second. What [`Client`](crate::Client)
//! does for any number of hosts and users (a key and a boxed future for each request, a task that waits for each connection to be free)
//! would cost a tenth of an exchange here; a list of connections is enough.

use std::{
    future::Future,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, Request, Response, Uri,
    header::{CONTENT_LENGTH, TRANSFER_ENCODING},
};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Body as _, Incoming},
    client::conn::http1::{self, SendRequest},
};
use parking_lot::Mutex;
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout_at},
};

use crate::{
    Account, Answer, Bounds, Error, ErrorKind, Lends, Own, Reach,
    connect::{Connector, Held, http_error, too_long},
};

/// Counts the memory of a body while it is read.
pub trait Counts: Send + 'static {
    /// So many bytes are held now. An error ends the exchange.
    fn hold(&mut self, bytes: usize) -> Result<(), Error>;
}

impl Counts for () {
    fn hold(&mut self, _: usize) -> Result<(), Error> {
        Ok(())
    }
}

/// The connections of one user to one host.
pub struct HostClient<A: Account = Own>(Arc<Kept<A>>);

/// What is kept beyond [`Bounds::idle_per_host`] where as many requests are under way at once: without it each of the others would dial.
#[derive(Clone, Copy, Debug)]
pub struct Peak {
    /// Connections kept at most, those of the bound included.
    pub connections: usize,
    /// One that nobody has needed for as long is closed, at the latest after twice that. As many as the bound stay.
    pub idle: Duration,
}

struct Kept<A: Account> {
    connector: Connector<A>,
    /// Scheme, host and port.
    host: Uri,
    peak: Peak,
    idle: Mutex<IdleOnes<A::Place>>,
    /// Those who find no place know of it.
    is_lending: AtomicBool,
}

/// Taken from the end and put back there, so that those at the beginning are the ones that nobody has needed for longest.
struct IdleOnes<P> {
    connections: Vec<Idle<P>>,
    /// A task looks after those beyond the bound,
    is_trimmed: bool,
    /// and since it looked last there were never fewer than this.
    fewest: usize,
}

/// A connection between two requests.
struct Idle<P> {
    sender: SendRequest<Full<Bytes>>,
    held: Arc<Held<P>>,
    /// What carries it out.
    task: AbortHandle,
}

impl<P> Drop for Idle<P> {
    /// One that is between two requests ends by itself, with a last word. Any other might have bytes to send that its peer does not take, and would wait for that.
    fn drop(&mut self) {
        if !self.sender.is_ready() || self.held.is_unsent() {
            self.task.abort();
        }
    }
}

/// A client that lives as long as somebody else has it.
pub struct WeakHostClient<A: Account = Own>(Weak<Kept<A>>);

impl<A: Account> WeakHostClient<A> {
    pub fn upgrade(&self) -> Option<HostClient<A>> {
        self.0.upgrade().map(HostClient)
    }
}

impl<A: Account> Clone for HostClient<A> {
    /// Shares its connections.
    fn clone(&self) -> HostClient<A> {
        HostClient(self.0.clone())
    }
}

impl<A: Account> HostClient<A> {
    /// Of `host` nothing matters but scheme, host and port. There is one host, so that [`Bounds::idle_per_host`] says how many connections are kept
    /// as long as the client, and `peak` how many more for a while.
    pub fn new(host: Uri, reach: Reach<A>, bounds: Bounds, peak: Peak) -> HostClient<A> {
        HostClient::over(host, Connector::new(reach, bounds), peak)
    }

    /// A client alike that shares no connection with this one.
    pub fn apart(&self) -> HostClient<A> {
        let Kept {
            connector,
            host,
            peak,
            ..
        } = &*self.0;
        HostClient::over(host.clone(), connector.clone(), *peak)
    }

    fn over(host: Uri, connector: Connector<A>, peak: Peak) -> HostClient<A> {
        HostClient(Arc::new(Kept {
            connector,
            host,
            peak,
            idle: Mutex::new(IdleOnes {
                connections: Vec::new(),
                is_trimmed: false,
                fewest: 0,
            }),
            is_lending: AtomicBool::new(false),
        }))
    }

    pub fn downgrade(&self) -> WeakHostClient<A> {
        WeakHostClient(Arc::downgrade(&self.0))
    }

    /// On whose account its connections are made.
    pub fn account(&self) -> &A {
        self.0.connector.account()
    }

    /// Sends a request, whose URI is a path and whose header names the host, and reads the answer. A request that was not written at all,
    /// because the connection that was kept for it had been closed, is sent again; no other is. It ends at `until`, with or without an answer. `counts`
    /// comes back with the answer.
    pub fn send<C: Counts>(
        &self,
        request: Request<Full<Bytes>>,
        until: Instant,
        body_bytes_max: usize,
        mut counts: C,
    ) -> impl Future<Output = Result<(Answer, C), Error>> + Send + use<A, C> {
        let kept = self.0.clone();
        async move {
            let exchange = kept.exchange(request, body_bytes_max, &mut counts);
            let answer = timeout_at(until.into(), exchange)
                .await
                .unwrap_or_else(|_| Err(Error::new(ErrorKind::Timeout, "no answer in time")));
            answer.map(|answer| (answer, counts))
        }
    }
}

impl<P> IdleOnes<P> {
    fn take(&mut self) -> Option<Idle<P>> {
        let taken = self.connections.pop()?;
        self.fewest = self.fewest.min(self.connections.len());
        Some(taken)
    }
}

impl<A: Account> Kept<A> {
    async fn exchange(
        self: &Arc<Self>,
        request: Request<Full<Bytes>>,
        body_bytes_max: usize,
        counts: &mut impl Counts,
    ) -> Result<Answer, Error> {
        let (used, response) = match self.reuse().await {
            Some(mut idle) => {
                idle.held.unanswered().begins();
                match idle.sender.try_send_request(request).await {
                    Ok(response) => (idle, response),
                    Err(mut error) => match error.take_message() {
                        Some(request) => self.first(request).await?,
                        None => return Err(http_error(&error.into_error())),
                    },
                }
            }
            None => self.first(request).await?,
        };
        used.held.unanswered().ends();
        let (head, body) = response.into_parts();
        let body = read(body, body_bytes_max, counts).await;
        // Read to its end, so that the connection is at a message's border.
        if body.is_ok() && !has_two_lengths(&head.headers) {
            self.keep(used);
        }
        Ok(Answer { head, body })
    }

    fn keep(self: &Arc<Self>, used: Idle<A::Place>) {
        // Whoever answers before it has taken all that was sent may never take it.
        if used.sender.is_closed() || used.held.is_unsent() {
            return;
        }
        let mut idle = self.idle.lock();
        let kept = idle.connections.len();
        if kept >= self.connector.bounds().idle_per_host {
            if kept >= self.peak.connections {
                return;
            }
            if !idle.is_trimmed {
                (idle.is_trimmed, idle.fewest) = (true, kept);
                tokio::spawn(trim(Arc::downgrade(self), self.peak.idle));
            }
        }
        idle.connections.push(used);
    }

    /// Closes those beyond the bound that nobody has needed since this was called last. Returns whether there are more.
    fn close_unneeded(&self) -> bool {
        let mut idle = self.idle.lock();
        let bound = self.connector.bounds().idle_per_host;
        // The other side has closed them.
        idle.connections.retain(|one| !one.sender.is_closed());
        let beyond = idle.connections.len().saturating_sub(bound);
        let unneeded = beyond.min(idle.fewest);
        idle.connections.drain(..unneeded);
        idle.fewest = idle.connections.len();
        idle.is_trimmed = idle.fewest > bound;
        idle.is_trimmed
    }

    /// A connection that is still open, the one used last.
    async fn reuse(&self) -> Option<Idle<A::Place>> {
        loop {
            let idle = self.idle.lock().take()?;
            if !idle.sender.is_ready() && !idle.sender.is_closed() {
                // Another thread may be about to find its last answer at its end.
                tokio::task::yield_now().await;
            }
            if idle.sender.is_ready() {
                // A request that another thread hands over may be here before this thread has heard that the other side closed a
                // connection, however long ago.
                idle.held.look();
                return Some(idle);
            }
        }
    }

    async fn first(
        self: &Arc<Self>,
        request: Request<Full<Bytes>>,
    ) -> Result<(Idle<A::Place>, Response<Incoming>), Error> {
        if !self.is_lending.swap(true, Ordering::Relaxed) {
            let lends = Arc::downgrade(self);
            self.connector.account().may_borrow(lends);
        }
        // Boxed, so that requests which find a connection do not carry the dialling about.
        let connecting = Box::pin(self.connector.clone().connect(self.host.clone()));
        let connection = connecting.await?;
        let held = connection.inner().held();
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(self.connector.bounds().head_bytes)
            .handshake(connection)
            .await
            .map_err(|error| http_error(&error))?;
        // Ends when the last sender is dropped, and notices at once when the peer closes.
        let task = tokio::spawn(connection).abort_handle();
        let mut first = Idle { sender, held, task };
        first.held.unanswered().begins();
        let response = first.sender.send_request(request).await;
        let response = response.map_err(|error| http_error(&error))?;
        Ok((first, response))
    }
}

impl<A: Account> Lends<A::Place> for Kept<A> {
    fn idle(&self) -> usize {
        self.idle.lock().connections.len()
    }

    fn lend(&self) -> Option<A::Place> {
        loop {
            let mut idle = self.idle.lock();
            if idle.connections.is_empty() {
                return None;
            }
            let longest = idle.connections.remove(0);
            idle.fewest = idle.fewest.saturating_sub(1);
            drop(idle);
            // At once: what a peer does not take would keep it open, and nobody counts it any more.
            longest.task.abort();
            if let Some(place) = longest.held.take_place() {
                return Some(place);
            }
        }
    }
}

/// What says so is read in chunks, whatever else it says (RFC 9112, 6.3). Whatever lies between may have gone by the other length, and have for the next
/// answer what follows by that one.
fn has_two_lengths(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING) && headers.contains_key(CONTENT_LENGTH)
}

/// Ends when no more are kept than may stay, or nobody has them.
async fn trim<A: Account>(kept: Weak<Kept<A>>, every: Duration) {
    loop {
        sleep(every).await;
        match kept.upgrade() {
            Some(kept) if kept.close_unneeded() => {}
            _ => return,
        }
    }
}

/// Reads a body, which is held in one piece at its end, and in what it came in until then.
async fn read(
    mut body: Incoming,
    bytes_max: usize,
    counts: &mut impl Counts,
) -> Result<Bytes, Error> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| http_error(&error))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let held = first.len() + rest.len() + data.len();
        if held > bytes_max {
            return Err(too_long(bytes_max));
        }
        counts.hold(held)?;
        match (first.is_empty(), rest.is_empty()) {
            (true, true) => first = data,
            (_, is_second) => {
                if is_second {
                    let expected = body.size_hint().lower() as usize;
                    rest.reserve(held + expected.min(bytes_max - held));
                    rest.extend_from_slice(&first);
                    first = Bytes::new();
                }
                rest.extend_from_slice(&data);
            }
        }
    }
    match rest.is_empty() {
        true => Ok(first),
        false => Ok(rest.freeze()),
    }
}
