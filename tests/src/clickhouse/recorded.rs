//! A ClickHouse without its engine: what is asked of a table that has a record it answers with what the engine was recorded to answer, a window
//! of the rows too, and anything else with all of those, to its user alone. It lets nobody write, ends an answer with an error behind its rows, and
//! goes on with what nobody waits for until it is killed, as the engine does. What a statement means is no matter of it.

mod bodies;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::{PASSWORD, TOKEN, USER};
use crate::fronts::prompt;
use crate::tables::first_word;
use crate::tls::{TestCa, TlsListener};
pub use bodies::SCHEMA;

/// The release that was recorded.
const VERSION: &str = "26.9.2.1";
const FORMAT: &str = "RowBinaryWithNamesAndTypes";
/// A table whose first bound value says what becomes of the statement: a row with that value, or one of these.
pub const MOODS: &str = "moods";
/// An error behind the rows that were sent before it, in the fence that newer servers announce in a header.
pub const BREAKS: &str = "breaks";
/// The same in bare words, as older servers tell it.
pub const BREAKS_BARE: &str = "breaks bare";
/// It never ends by itself.
pub const HANGS: &str = "hangs";
/// What is asked of this table never ends by itself, either.
pub const ENDLESS: &str = "endless";
/// A table of one long text, the server's own.
pub const NOTES: &str = "notes";
/// What an answer that is broken off says.
const BROKEN: &str = "Code: 395. DB::Exception: as it happens. (FUNCTION_THROW_IF_VALUE_IS_NON_ZERO) (version 26.9.2.1)\n";
const TAG: &str = "abcdefghijklmnop";

pub struct Recorded {
    pub address: SocketAddr,
    /// Whom to trust, where there is TLS.
    pub ca_pem: Option<String>,
    server: Arc<Server>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Server {
    asked: Mutex<Vec<String>>,
    /// By the names that they were asked under.
    running: Mutex<HashMap<String, Arc<Notify>>>,
    /// Its user may not look for what runs.
    stops_nothing: AtomicBool,
    /// Letters of its note.
    note: AtomicUsize,
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
        let server = Arc::<Server>::default();
        let router = Router::new()
            .fallback(serve)
            .with_state(Arc::clone(&server));
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Recorded {
            address,
            ca_pem,
            server,
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

    /// From now on the right is missing by which `KILL QUERY` finds a statement.
    pub fn stops_nothing(&self) {
        self.server.stops_nothing.store(true, Ordering::Relaxed);
    }

    /// From now on its note has so many letters.
    pub fn keeps_a_note(&self, letters: usize) {
        self.server.note.store(letters, Ordering::Relaxed);
    }

    /// The statements that were asked, the connector's own too.
    pub fn statements(&self) -> Vec<String> {
        locked(&self.server.asked).clone()
    }

    /// Statements that have not ended, whether or not somebody waits for them.
    pub fn running(&self) -> usize {
        locked(&self.server.running).len()
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

/// What is asked, wherever it stands.
struct Asked {
    text: String,
    /// Settings, bound values, and what the statement is called.
    named: HashMap<String, String>,
}

impl Asked {
    fn read(uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Asked {
        let query = uri.query().unwrap_or_default();
        let mut named: HashMap<String, String> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let body = String::from_utf8_lossy(body);
        let kind = headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let Some((_, boundary)) = kind.split_once("boundary=") else {
            let text = body.into_owned();
            return Asked { text, named };
        };
        for part in body.split(&format!("--{boundary}")) {
            let part = part.split_once("name=\"").and_then(|(_, part)| {
                let (name, rest) = part.split_once('"')?;
                let value = rest.strip_prefix("\r\n\r\n")?.strip_suffix("\r\n")?;
                Some((name.to_owned(), value.to_owned()))
            });
            named.extend(part);
        }
        let text = named.remove("query").unwrap_or_default();
        Asked { text, named }
    }

    fn named(&self, name: &str) -> &str {
        self.named.get(name).map_or("", String::as_str)
    }

    /// The table that is read: of statements in each other the innermost one's.
    fn table(&self) -> &str {
        let Some((_, from)) = self.text.rsplit_once("FROM ") else {
            return "";
        };
        let name = from.split([' ', '\n', ')', ';']).next().unwrap_or_default();
        let name = name.rsplit('.').next().unwrap_or_default();
        name.trim_matches(['`', '"'])
    }

    /// The number behind this word, written or bound.
    fn number(&self, word: &str) -> Option<usize> {
        let (_, behind) = self.text.rsplit_once(word)?;
        let digits = |text: &str| {
            let end = text.find(|sign: char| !sign.is_ascii_digit());
            text[..end.unwrap_or(text.len())].to_owned()
        };
        let behind = behind.trim_start();
        match behind.strip_prefix("{p") {
            Some(place) => self.named(&format!("param_p{}", digits(place))).parse(),
            None => digits(behind).parse(),
        }
        .ok()
    }

    /// What was recorded of it.
    fn recorded(&self) -> Vec<u8> {
        let table = self.table();
        if table != bodies::ROWS {
            return bodies::of(table).to_vec();
        }
        let (first, count) = (
            self.number("OFFSET ").unwrap_or(0),
            self.number("LIMIT ").unwrap_or(usize::MAX),
        );
        bodies::rows(first..first.saturating_add(count))
    }
}

async fn serve(
    State(server): State<Arc<Server>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let asked = Asked::read(&uri, &headers, &body);
    let answer = match first_word(&asked.text).as_str() {
        _ if !is_let_in(&headers) => refusal(
            StatusCode::FORBIDDEN,
            516,
            "souk: Authentication failed: password is incorrect, or there is no user with such name. (AUTHENTICATION_FAILED)",
        ),
        "KILL" if server.stops_nothing.load(Ordering::Relaxed) => refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            497,
            "souk: Not enough privileges. To execute this query, it's necessary to have the grant SELECT ON system.processes. (ACCESS_DENIED)",
        ),
        "KILL" => server.kill(&asked.text),
        "INSERT" if asked.named("readonly").is_empty() => refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            48,
            "Method write is not supported by storage SystemOne. (NOT_IMPLEMENTED)",
        ),
        "INSERT" => refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            164,
            "Cannot execute query in readonly mode. (READONLY)",
        ),
        _ if asked.text.starts_with("SELECT version()") => rows(hello()),
        _ if asked.text.contains("FROM system.tables") => {
            // Behind the schema's name.
            let tables: Vec<&str> = asked
                .named
                .get("param_p2")
                .map(String::as_str)
                .into_iter()
                .collect();
            rows(bodies::catalog(&tables))
        }
        _ if asked.table() == NOTES => {
            let note = "x".repeat(server.note.load(Ordering::Relaxed));
            rows(bodies::texts(&[("note", note.as_str())]))
        }
        _ => {
            let is_endless = asked.table() == ENDLESS
                || asked.table() == MOODS && asked.named("param_p1") == HANGS;
            locked(&server.asked).push(asked.text.clone());
            return match is_endless {
                true => server.hang(asked.named("query_id")).await,
                false => answered(&asked),
            };
        }
    };
    locked(&server.asked).push(asked.text);
    answer
}

fn answered(asked: &Asked) -> Response {
    if asked.table() != MOODS {
        return rows(asked.recorded());
    }
    match asked.named("param_p1") {
        BREAKS => {
            let size = BROKEN.len();
            let fenced =
                format!("__exception__\r\n{TAG}\r\n{BROKEN}{size} {TAG}\r\n__exception__\r\n");
            let body = [bodies::rows(0..50), fenced.into_bytes()].concat();
            let mut answer = rows(body);
            let tag = HeaderValue::from_static(TAG);
            answer
                .headers_mut()
                .insert("x-clickhouse-exception-tag", tag);
            answer
        }
        BREAKS_BARE => rows([&bodies::rows(0..50)[..], BROKEN.as_bytes()].concat()),
        mood => rows(bodies::texts(&[("mood", mood)])),
    }
}

impl Server {
    /// Goes on until it is killed, although its client may have gone.
    async fn hang(&self, name: &str) -> Response {
        let killed = Arc::new(Notify::new());
        locked(&self.running).insert(name.to_owned(), Arc::clone(&killed));
        killed.notified().await;
        refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            394,
            "Query was cancelled. (QUERY_WAS_CANCELLED)",
        )
    }

    /// `KILL QUERY WHERE query_id = '…' ASYNC`
    fn kill(&self, text: &str) -> Response {
        let name = text.split('\'').nth(1).unwrap_or_default();
        match locked(&self.running).remove(name) {
            Some(statement) => {
                statement.notify_one();
                rows(bodies::texts(&[
                    ("kill_status", "waiting"),
                    ("query_id", name),
                ]))
            }
            None => rows(Vec::new()),
        }
    }
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

/// The version, and that the user's profile does not hold `readonly` itself.
fn hello() -> Vec<u8> {
    bodies::texts(&[("version", VERSION), ("readonly", "0")])
}
