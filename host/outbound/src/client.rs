//! HTTP/1.1 to any number of hosts, over connections that are kept for the next request to the same scheme, host and port. The address is
//! judged whenever one is dialled: a name that leads elsewhere tomorrow is judged again, and an address written into a URL is judged too.
//!
//! No redirect is followed: it is an answer like any other. A connection is shared by whoever shares a [`Client`], so whose credentials or
//! grants differ have clients of their own ([`Client::apart`], [`Clients`]).

use std::{
    collections::HashMap, error::Error as _, future::Future, hash::Hash, sync::Arc, time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use http_body_util::Full;
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::{
    Account, Answer, Bounds, Error, ErrorKind, Own, Reach,
    connect::{Connector, http_error, read},
};

/// A pool of connections, and how to make more of them.
pub struct Client<A: Account = Own> {
    pool: legacy::Client<Connector<A>, Full<Bytes>>,
    connector: Connector<A>,
}

impl<A: Account> Client<A> {
    pub fn new(reach: Reach<A>, bounds: Bounds) -> Client<A> {
        Client::over(Connector::new(reach, bounds))
    }

    /// A client alike that shares no connection with this one. What is open counts for both.
    pub fn apart(&self) -> Client<A> {
        Client::over(self.connector.apart())
    }

    fn over(connector: Connector<A>) -> Client<A> {
        let bounds = connector.bounds();
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder
            .http1_max_buf_size(bounds.head_bytes)
            .pool_max_idle_per_host(bounds.idle_per_host)
            .pool_idle_timeout(bounds.idle);
        if bounds.idle.is_some() {
            builder.pool_timer(TokioTimer::new());
        }
        Client {
            pool: builder.build(connector.clone()),
            connector,
        }
    }

    /// Sends a request to its absolute `http:` or `https:` URI and reads the answer. A request that was not written at all, because the
    /// connection that was kept for it had been closed, is sent again; no other is. An answer that has begun within the time and not ended is one
    /// whose body is an error.
    pub fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        within: Duration,
        body_bytes_max: usize,
    ) -> impl Future<Output = Result<Answer, Error>> + Send + use<A> {
        if self.connector.open() > self.connector.bounds().idle_total {
            // hyper-util's pool cannot say how many it keeps, and one that is poisoned when its answer comes may be in the pool already.
            let close = HeaderValue::from_static("close");
            request.headers_mut().insert(header::CONNECTION, close);
        }
        // Does nothing before it is polled.
        let response = self.pool.request(request);
        let begun = async move {
            // A request that another thread hands over may be here before this thread has heard that the other side closed a connection,
            // however long ago, or that the one used last is free: this lets it hear.
            tokio::task::yield_now().await;
            response.await.map_err(failure)
        };
        async move {
            let until = Instant::now() + within;
            let late = || Error::new(ErrorKind::Timeout, "no answer in time");
            let answer = timeout_at(until, begun).await.map_err(|_| late())??;
            let (head, body) = answer.into_parts();
            let body = timeout_at(until, read(body, body_bytes_max)).await;
            let body = body.unwrap_or_else(|_| Err(late()));
            Ok(Answer { head, body })
        }
    }

    /// Connections that are open, in use or not, of this client and those made [`apart`](Client::apart).
    pub fn open(&self) -> usize {
        self.connector.open()
    }
}

/// The pool wraps what our connector or hyper says.
fn failure(error: legacy::Error) -> Error {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(ours) = inner.downcast_ref::<Error>() {
            return ours.clone();
        }
        if let Some(http) = inner.downcast_ref::<hyper::Error>() {
            return http_error(http);
        }
        cause = inner.source();
    }
    Error::new(ErrorKind::Reset, error.to_string())
}

/// A client for each of many, companies say, which share no connection. Their bounds hold for all of them together, but for those per host.
pub struct Clients<K, A: Account = Own> {
    pattern: Client<A>,
    by_key: Mutex<HashMap<K, Arc<Client<A>>>>,
}

/// Clients remembered before those are forgotten that send nothing at the moment.
const CLIENTS_MAX: usize = 256;

impl<K: Eq + Hash + Clone, A: Account> Clients<K, A> {
    pub fn new(reach: Reach<A>, bounds: Bounds) -> Clients<K, A> {
        Clients {
            pattern: Client::new(reach, bounds),
            by_key: Mutex::default(),
        }
    }

    pub fn of(&self, key: &K) -> Arc<Client<A>> {
        let mut by_key = self.by_key.lock();
        if let Some(client) = by_key.get(key) {
            return client.clone();
        }
        if by_key.len() >= CLIENTS_MAX {
            // With it go the connections that it has kept: whoever comes back dials again.
            by_key.retain(|_, client| Arc::strong_count(client) > 1);
        }
        let client = Arc::new(self.pattern.apart());
        by_key.insert(key.clone(), client.clone());
        client
    }
}

#[cfg(test)]
mod tests;
