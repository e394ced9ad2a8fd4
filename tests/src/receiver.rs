//! A receiver of webhooks over real HTTP: records what arrives, answers as it is told, and verifies signatures as a customer would.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

/// An event is on its way within milliseconds; a loaded machine gets a thousand times as long.
pub const ARRIVES_WITHIN: Duration = Duration::from_secs(30);

/// What to do with a request.
#[derive(Clone, Debug)]
pub enum Reply {
    Status(u16),
    RedirectTo(String),
    /// Takes the request and never answers.
    Silence,
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Received {
    pub id: String,
    pub timestamp: i64,
    pub signature: String,
    pub text: String,
    pub body: Value,
    pub path: String,
    pub headers: HeaderMap,
}

impl Received {
    /// All values of a header.
    pub fn header(&self, name: &str) -> Vec<&str> {
        let values = self.headers.get_all(name).iter();
        values.filter_map(|value| value.to_str().ok()).collect()
    }

    /// How many of the signatures are by this secret.
    pub fn signatures_by(&self, secret: &str) -> usize {
        let key = secret.strip_prefix("whsec_").expect("a webhook secret");
        let key = STANDARD.decode(key).expect("base64");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key of any length");
        mac.update(format!("{}.{}.{}", self.id, self.timestamp, self.text).as_bytes());
        let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        self.signature
            .split(' ')
            .filter(|one| **one == expected)
            .count()
    }

    pub fn kind(&self) -> &str {
        self.body["type"].as_str().unwrap_or_default()
    }
}

#[derive(Default)]
struct Inner {
    received: Vec<Received>,
    /// Used up one by one; then 204.
    replies: VecDeque<Reply>,
    always: Option<Reply>,
}

pub struct Receiver {
    pub address: SocketAddr,
    inner: Arc<Mutex<Inner>>,
    task: tokio::task::JoinHandle<()>,
}

impl Receiver {
    pub async fn start() -> Receiver {
        let inner = Arc::new(Mutex::new(Inner::default()));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = Router::new()
            .fallback(receive)
            .with_state(Arc::clone(&inner));
        let task = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("the receiver serves");
        });
        Receiver {
            address,
            inner,
            task,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hooks?of=souk", self.address)
    }

    /// Answers the next requests so, one after the other.
    pub fn next(&self, replies: impl IntoIterator<Item = Reply>) {
        self.lock().replies.extend(replies);
    }

    /// Answers every request so from now on.
    pub fn always(&self, reply: Reply) {
        self.lock().always = Some(reply);
    }

    pub fn received(&self) -> Vec<Received> {
        self.lock().received.clone()
    }

    /// Waits until `count` requests have arrived.
    pub async fn wait_for(&self, count: usize) -> Vec<Received> {
        let since = Instant::now();
        loop {
            let received = self.received();
            if received.len() >= count {
                return received;
            }
            assert!(
                since.elapsed() < ARRIVES_WITHIN,
                "{} of {count} requests arrived: {received:#?}",
                received.len()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// How often each id arrived.
    pub fn times(&self) -> HashMap<String, usize> {
        let mut times = HashMap::new();
        for received in self.received() {
            *times.entry(received.id).or_default() += 1;
        }
        times
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn receive(
    State(inner): State<Arc<Mutex<Inner>>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let header = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let reply = {
        let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.received.push(Received {
            id: header("webhook-id"),
            timestamp: header("webhook-timestamp").parse().unwrap_or_default(),
            signature: header("webhook-signature"),
            text: String::from_utf8_lossy(&body).into_owned(),
            body: serde_json::from_slice(&body).unwrap_or_default(),
            path: uri.to_string(),
            headers,
        });
        let always = inner.always.clone();
        inner.replies.pop_front().or(always)
    };
    match reply {
        None => StatusCode::NO_CONTENT.into_response(),
        Some(Reply::Status(status)) => StatusCode::from_u16(status)
            .expect("a status")
            .into_response(),
        Some(Reply::RedirectTo(url)) => {
            (StatusCode::TEMPORARY_REDIRECT, [("location", url)]).into_response()
        }
        Some(Reply::Silence) => std::future::pending().await,
    }
}
