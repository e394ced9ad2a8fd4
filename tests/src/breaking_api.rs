//! A seller's API that breaks off: it reads a request to its end, and the answer ends before its own end, as when the process is killed
//! or a proxy in front of it loses patience. Written byte by byte, because no HTTP server lets itself be brought to do that.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::tls::{Leaf, TlsListener};

/// Closing follows within microseconds; a loaded machine gets a million times as long.
const CLOSES_WITHIN: Duration = Duration::from_secs(10);

/// Where the connection is closed, of TLS without a goodbye (`close_notify`). Wherever a body has begun, its JSON is whole: that something is missing
/// shows only in HTTP.
#[derive(Clone, Copy, Debug)]
pub enum Breaks {
    BeforeTheHead,
    InTheHead,
    /// One byte, a line break, before the announced length.
    InTheBody,
    /// Within a chunk, one byte before its end.
    InAChunk,
    /// After a chunk, before the one that would be the last.
    BetweenChunks,
    /// With half of a body whose length nobody announced: without TLS this one is whole to HTTP, and no JSON.
    WithoutALength,
    /// Behind such a body, all of which has arrived. Without TLS nothing is missing; within it the goodbye is, so that more may have been to come.
    BeforeTheGoodbye,
    /// A whole answer; later, at [`BreakingApi::close`], the connection is closed, although nothing said so.
    AfterTheAnswer,
}

/// Answers every request with 21, and keeps its connections open.
pub struct BreakingApi {
    pub address: SocketAddr,
    scheme: &'static str,
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct State {
    next: Mutex<Option<Breaks>>,
    calls: AtomicU64,
    opened: AtomicU64,
    closing: Notify,
    closed: Notify,
}

impl BreakingApi {
    pub async fn start() -> BreakingApi {
        BreakingApi::over("http", listener().await)
    }

    /// Over TLS, with this certificate.
    pub async fn start_tls(leaf: &Leaf) -> BreakingApi {
        BreakingApi::over("https", TlsListener::new(listener().await, leaf))
    }

    fn over<L>(scheme: &'static str, mut listener: L) -> BreakingApi
    where
        L: Listener<Addr = SocketAddr>,
    {
        let address = Listener::local_addr(&listener).expect("an address");
        let state = Arc::<State>::default();
        let task = tokio::spawn({
            let state = state.clone();
            async move {
                let mut connections = JoinSet::new();
                loop {
                    let (stream, _) = Listener::accept(&mut listener).await;
                    state.opened.fetch_add(1, SeqCst);
                    connections.spawn(serve(stream, state.clone()));
                }
            }
        });
        BreakingApi {
            address,
            scheme,
            state,
            task,
        }
    }

    pub fn base_url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Breaks the next answer off, and no other.
    pub fn next(&self, breaks: Breaks) {
        *lock(&self.state.next) = Some(breaks);
    }

    /// Requests that arrived.
    pub fn calls(&self) -> u64 {
        self.state.calls.load(SeqCst)
    }

    /// Connections that were ever opened.
    pub fn opened(&self) -> u64 {
        self.state.opened.load(SeqCst)
    }

    /// Closes the connection whose answer was the last on it, and returns when that is done.
    pub async fn close(&self) {
        self.state.closing.notify_one();
        let closed = tokio::time::timeout(CLOSES_WITHIN, self.state.closed.notified());
        closed.await.expect("a connection that waits to be closed");
    }
}

impl Drop for BreakingApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listener() -> TcpListener {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await;
    listener.expect("a port")
}

fn lock(next: &Mutex<Option<Breaks>>) -> std::sync::MutexGuard<'_, Option<Breaks>> {
    next.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, state: Arc<State>) {
    let mut stream = BufReader::new(stream);
    while let Some(asset_id) = read_request(&mut stream).await {
        state.calls.fetch_add(1, SeqCst);
        let breaks = lock(&state.next).take();
        let bytes = answer(&asset_id, breaks);
        let is_sent = stream.write_all(bytes.as_bytes()).await.is_ok();
        if !is_sent || stream.flush().await.is_err() {
            return;
        }
        match breaks {
            None => {}
            Some(Breaks::AfterTheAnswer) => {
                state.closing.notified().await;
                drop(stream);
                return state.closed.notify_one();
            }
            Some(_) => return,
        }
    }
}

/// Reads a request and returns its `X-Asset-ID`; `None` when the client has gone.
async fn read_request(
    stream: &mut BufReader<impl AsyncRead + AsyncWrite + Unpin>,
) -> Option<String> {
    let (mut asset_id, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let Some((name, value)) = line.split_once(':') else {
            match line.trim() {
                "" => break,
                _ => continue,
            }
        };
        match name.to_ascii_lowercase().as_str() {
            "x-asset-id" => asset_id = value.trim().to_owned(),
            "content-length" => length = value.trim().parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(asset_id)
}

/// As much of the answer as leaves.
fn answer(asset_id: &str, breaks: Option<Breaks>) -> String {
    let body = format!(
        "{{\"timestamp\":\"2026-11-20T08:00:00Z\",\"answer_value\":21,\"asset_id\":\"{asset_id}\"}}\n"
    );
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    let length = format!("content-length: {}\r\n\r\n", body.len());
    let chunk = format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n", body.len());
    let json = body.trim_end();
    match breaks {
        None | Some(Breaks::AfterTheAnswer) => format!("{head}{length}{body}"),
        Some(Breaks::BeforeTheHead) => String::new(),
        Some(Breaks::InTheHead) => format!("{head}content-len"),
        Some(Breaks::InTheBody) => format!("{head}{length}{json}"),
        Some(Breaks::InAChunk) => format!("{head}{chunk}{json}"),
        Some(Breaks::BetweenChunks) => format!("{head}{chunk}{body}\r\n"),
        Some(Breaks::WithoutALength) => format!("{head}\r\n{}", &json[..json.len() / 2]),
        Some(Breaks::BeforeTheGoodbye) => format!("{head}\r\n{body}"),
    }
}
