//! A ClickHouse without its engine: whatever is asked, it answers what the engine was recorded to answer, to its user alone. That
//! shows who is spoken to and who is let in; what a statement means is no matter of it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{PASSWORD, TOKEN, USER};
use crate::fronts::prompt;
use crate::tls::{TestCa, TlsListener};

/// The release that was recorded.
const VERSION: &str = "26.9.2.1";
const FORMAT: &str = "RowBinaryWithNamesAndTypes";
/// A hundred rows: a number, `xxxxx`, and a number or NULL.
const ROWS: &[u8] = include_bytes!("../../../plugins/clickhouse/tests/recorded/rows.bin");

type Asked = Arc<Mutex<Vec<String>>>;

pub struct Recorded {
    pub address: SocketAddr,
    /// Whom to trust, where there is TLS.
    pub ca_pem: Option<String>,
    asked: Asked,
    task: JoinHandle<()>,
}

impl Recorded {
    /// Without TLS, for a front that has it.
    pub async fn start() -> Recorded {
        let (listener, address) = listen().await;
        Recorded::over(prompt(listener), address, None)
    }

    pub async fn start_tls() -> Recorded {
        let (listener, address) = listen().await;
        let ca = TestCa::new("ClickHouse of the tests");
        let listener = TlsListener::new(listener, &ca.server(&["127.0.0.1", "localhost"]));
        Recorded::over(listener, address, Some(ca.pem()))
    }

    fn over<L>(listener: L, address: SocketAddr, ca_pem: Option<String>) -> Recorded
    where
        L: Listener<Addr = SocketAddr>,
    {
        let asked = Asked::default();
        let router = Router::new().fallback(serve).with_state(Arc::clone(&asked));
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Recorded {
            address,
            ca_pem,
            asked,
            task,
        }
    }

    pub fn base_url(&self) -> String {
        let scheme = match self.ca_pem {
            Some(_) => "https",
            None => "http",
        };
        format!("{scheme}://{}", self.address)
    }

    /// The statements that were asked, the connector's own too.
    pub fn statements(&self) -> Vec<String> {
        locked(&self.asked).clone()
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panicked")
}

async fn serve(State(asked): State<Asked>, headers: HeaderMap, statement: String) -> Response {
    let answer = match () {
        () if !is_let_in(&headers) => refusal(StatusCode::FORBIDDEN, 516, "Authentication failed."),
        () if statement.starts_with("SELECT version()") => rows(hello()),
        () if statement.starts_with("INSERT ") => refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            164,
            "Cannot execute query in readonly mode.",
        ),
        () => rows(ROWS.to_vec()),
    };
    locked(&asked).push(statement);
    answer
}

fn is_let_in(headers: &HeaderMap) -> bool {
    let shown = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
    let token = format!("Bearer {TOKEN}");
    match shown("authorization") {
        Some(shown) => shown == token.as_bytes(),
        None => {
            shown("x-clickhouse-user") == Some(USER.as_bytes())
                && shown("x-clickhouse-key") == Some(PASSWORD.as_bytes())
        }
    }
}

fn refusal(status: StatusCode, code: u32, text: &str) -> Response {
    let headers = [("x-clickhouse-exception-code", code.to_string())];
    let text = format!("Code: {code}. DB::Exception: {text} (version {VERSION})\n");
    (status, headers, text).into_response()
}

fn rows(body: Vec<u8>) -> Response {
    ([("x-clickhouse-format", FORMAT)], body).into_response()
}

/// The version, and that the user's profile does not hold `readonly` itself: names, types and values, each text behind its length.
fn hello() -> Vec<u8> {
    let mut body = vec![2];
    for text in ["version", "readonly", "String", "String", VERSION, "0"] {
        body.push(text.len() as u8);
        body.extend_from_slice(text.as_bytes());
    }
    body
}
