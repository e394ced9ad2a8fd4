//! A Trino for the tests: its coordinator's client protocol, as far as a connector needs it, over SQLite. Statements that only compute are
//! answered by `literals`, which knows Trino's types; all others by `tables`.
//!
//! Trino's own Python client takes it for a Trino (`tests/engines/trino.py`): queued and executing statements, tokens, pages, columns and
//! their signatures, transactions, sessions, errors, logins. What a statement means, and what Trino says of one that is wrong, are SQLite's: no
//! evidence.

mod literals;
mod statements;
mod tables;
mod types;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rand::RngExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::fronts::prompt;
use crate::remembered::Remembered;
use crate::tls::{TestCa, TlsListener};
use statements::Outcome;

/// The one catalog that has tables.
pub const CATALOG: &str = "memory";
/// Who is let in: by the password or the token where there is TLS, by the name alone where there is none.
pub const USER: &str = "souk";
pub const PASSWORD: &str = "pässw'ord";
pub const TOKEN: &str = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJzb3VrIn0.";
pub const VERSION: &str = "480-souk";
/// Rows of a page.
const PAGE_ROWS: usize = 4_000;
/// How long a statement on the table `slow` takes: longer than an answer waits.
pub const SLOW: Duration = Duration::from_millis(1_500);
/// How long an answer waits for something to say, and how often it looks.
const WAIT: Duration = Duration::from_secs(1);
const GLANCE: Duration = Duration::from_millis(10);

pub struct Trino {
    pub address: SocketAddr,
    /// Whom to trust, where there is TLS.
    pub ca_pem: Option<String>,
    state: Arc<Server>,
    task: tokio::task::JoinHandle<()>,
}

struct Server {
    scheme: &'static str,
    tables: Mutex<tables::Tables>,
    queries: Mutex<Remembered<Query>>,
    transactions: Mutex<HashMap<String, Transaction>>,
    requests: Mutex<Vec<String>>,
    /// Requests that are turned away before they are read.
    turned_away: Mutex<Vec<(u16, Option<&'static str>)>>,
    /// How long a statement that reads tables takes at the least.
    takes: Mutex<Duration>,
}

struct Transaction {
    is_read_only: bool,
    is_aborted: bool,
}

/// A statement that was taken.
struct Query {
    text: String,
    catalog: String,
    transaction: Option<String>,
    slug: String,
    /// `None`: it never ends by itself.
    ends: Option<Instant>,
    deadline: Option<Instant>,
    outcome: Option<Outcome>,
    /// Rows that were told.
    told: usize,
    /// The number of the last answer, and the answer.
    last: Option<(u64, Answer)>,
    is_over: bool,
}

/// A body, written, and the headers beside it.
type Answer = (Bytes, Vec<(&'static str, String)>);

/// How a statement fails.
#[derive(Clone, Debug)]
pub struct Failure {
    name: &'static str,
    kind: &'static str,
    text: String,
}

impl Failure {
    pub fn user(name: &'static str, text: impl Into<String>) -> Failure {
        Failure {
            name,
            kind: "USER_ERROR",
            text: text.into(),
        }
    }
}

impl Trino {
    /// Without TLS, and without passwords.
    pub async fn start() -> Trino {
        let (listener, address) = listen().await;
        let state = Server::new("http");
        let router = Router::new().fallback(serve).with_state(Arc::clone(&state));
        let task = tokio::spawn(async move {
            axum::serve(prompt(listener), router)
                .await
                .expect("it serves");
        });
        Trino {
            address,
            ca_pem: None,
            state,
            task,
        }
    }

    /// With TLS: who asks shows a password or a token.
    pub async fn start_tls() -> Trino {
        let (listener, address) = listen().await;
        let ca = TestCa::new("Trino of the tests");
        let listener = TlsListener::new(listener, &ca.server(&["127.0.0.1", "localhost"]));
        let state = Server::new("https");
        let router = Router::new().fallback(serve).with_state(Arc::clone(&state));
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Trino {
            address,
            ca_pem: Some(ca.pem()),
            state,
            task,
        }
    }

    pub fn base_url(&self) -> String {
        format!("{}://{}", self.state.scheme, self.address)
    }

    /// Runs statements of SQLite's. A schema is made by `ATTACH ':memory:' AS shop`; the types of columns are Trino's, quoted where they are
    /// more than a name and numbers (`"timestamp(6) with time zone"`), with SQLite's behind them where it has another idea of them
    /// (`"decimal(38, 5) text"`). A moment is kept as microseconds, a clock as a text with six digits of a second, an array as JSON, a type of
    /// which SQLite has no value as the text that Trino sends.
    pub fn admin(&self, sql: &str) {
        locked(&self.state.tables).admin(sql);
    }

    /// From now on moments of tables are on the clock of those so many minutes east of Greenwich.
    pub fn keeps_moments(&self, minutes: i64) {
        locked(&self.state.tables).zone = minutes;
    }

    /// From now on a statement that reads tables takes so long.
    pub fn takes(&self, at_least: Duration) {
        *locked(&self.state.takes) = at_least;
    }

    /// What was asked, one line for each request: `POST SELECT id FROM t`, `GET queued`, `GET executing`, `DELETE executing`.
    pub fn requests(&self) -> Vec<String> {
        locked(&self.state.requests).clone()
    }

    /// Statements that have not ended.
    pub fn running(&self) -> usize {
        let queries = locked(&self.state.queries);
        queries.iter().filter(|(_, query)| !query.is_over).count()
    }

    /// Transactions that have not ended.
    pub fn transactions(&self) -> usize {
        locked(&self.state.transactions).len()
    }

    /// Turns the next requests away with this status, as a proxy does that is busy.
    pub fn turn_away(&self, times: usize, status: u16, retry_after: Option<&'static str>) {
        locked(&self.state.turned_away).extend(vec![(status, retry_after); times]);
    }
}

impl Drop for Trino {
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

async fn serve(
    State(server): State<Arc<Server>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    if let Some((status, retry_after)) = locked(&server.turned_away).pop() {
        let status = StatusCode::from_u16(status).expect("a status");
        let mut response = (status, "busy").into_response();
        if let Some(seconds) = retry_after {
            let seconds = seconds.parse().expect("a header");
            response.headers_mut().insert("retry-after", seconds);
        }
        return response;
    }
    let parts: Vec<&str> = uri.path().trim_start_matches('/').split('/').collect();
    let line = match (parts.get(2), body.is_empty()) {
        (Some(stage), true) => format!("{method} {stage}"),
        _ => format!("{method} {body}"),
    };
    locked(&server.requests).push(line);
    let user = match server.login(&headers) {
        Ok(user) => user,
        Err(refused) => return refused,
    };
    // Behind a proxy that ends TLS it leads on through that (`http-server.process-forwarded=true`).
    let scheme = match header(&headers, "x-forwarded-proto") {
        "" => server.scheme,
        forwarded => forwarded,
    };
    let base = format!("{scheme}://{}", header(&headers, "host"));
    match (method.as_str(), &parts[..]) {
        ("POST", ["v1", "statement"]) => server.take(&base, &user, &headers, &body),
        ("GET", ["v1", "statement", "queued", id, slug, token]) => {
            server.queued(&base, id, slug, token)
        }
        ("GET", ["v1", "statement", "executing", id, slug, token]) => {
            server.executing(&base, id, slug, token).await
        }
        ("DELETE", ["v1", "statement", _, id, slug, _]) => server.stop(id, slug),
        ("GET", ["v1", "info"]) => {
            axum::Json(json!({"nodeVersion": {"version": VERSION}, "starting": false}))
                .into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

fn name() -> String {
    format!("{:016x}", rand::rng().random::<u64>())
}

impl Server {
    fn new(scheme: &'static str) -> Arc<Server> {
        Arc::new(Server {
            scheme,
            tables: Mutex::new(tables::Tables::new()),
            queries: Mutex::new(Remembered::new(|query| query.is_over)),
            transactions: Mutex::default(),
            requests: Mutex::default(),
            turned_away: Mutex::default(),
            takes: Mutex::default(),
        })
    }

    /// Who asks.
    fn login(&self, headers: &HeaderMap) -> Result<String, Response> {
        let refuse = |status: StatusCode, text: &str| {
            let challenge = [("www-authenticate", "Basic realm=\"Trino\"")];
            Err((status, challenge, text.to_owned()).into_response())
        };
        let named = header(headers, "x-trino-user");
        let authorization = header(headers, "authorization");
        if self.scheme == "http" {
            return match (named, authorization) {
                (_, shown) if shown.starts_with("Basic ") => refuse(
                    StatusCode::UNAUTHORIZED,
                    "Password not allowed for insecure authentication",
                ),
                ("", _) => refuse(
                    StatusCode::UNAUTHORIZED,
                    "Basic authentication or X-Trino-User must be sent",
                ),
                (user, _) => Ok(user.to_owned()),
            };
        }
        // Its clients send it in ISO 8859-1, and so it is read.
        let login = format!("{USER}:{PASSWORD}");
        let login: Vec<u8> = login.chars().map(|char| char as u8).collect();
        let password = format!("Basic {}", STANDARD.encode(login));
        match [password, format!("Bearer {TOKEN}")].contains(&authorization.to_owned()) {
            false => refuse(
                StatusCode::UNAUTHORIZED,
                "Access Denied: Invalid credentials",
            ),
            true if !["", USER].contains(&named) => refuse(
                StatusCode::FORBIDDEN,
                &format!("Access Denied: User {USER} cannot impersonate user {named}"),
            ),
            true => Ok(USER.to_owned()),
        }
    }

    /// Takes a statement. Nothing of it is carried out before it is asked after.
    fn take(&self, base: &str, user: &str, headers: &HeaderMap, text: &str) -> Response {
        if text.is_empty() {
            return (StatusCode::BAD_REQUEST, "SQL statement is empty").into_response();
        }
        let mut queries = locked(&self.queries);
        let id = format!("20261125_120000_{:05}_souk1", queries.taken());
        let session = header(headers, "x-trino-session");
        let deadline = session
            .split(',')
            .find_map(|property| property.trim().strip_prefix("query_max_run_time="))
            .and_then(|text| text.strip_suffix("ms")?.parse().ok())
            .map(|ms| Instant::now() + Duration::from_millis(ms));
        let takes = match () {
            _ if text.contains("FROM endless") => None,
            _ if text.contains("FROM slow") => Some(SLOW),
            // What begins and ends a transaction does not.
            _ if text.contains("FROM ") => Some(*locked(&self.takes)),
            _ => Some(Duration::ZERO),
        };
        let transaction = match header(headers, "x-trino-transaction-id") {
            "" => None,
            id => Some(id.to_owned()),
        };
        let query = Query {
            text: text.to_owned(),
            catalog: header(headers, "x-trino-catalog").to_owned(),
            transaction,
            slug: name(),
            ends: takes.map(|takes| Instant::now() + takes),
            deadline,
            outcome: None,
            told: 0,
            last: None,
            is_over: false,
        };
        let next = format!("{base}/v1/statement/queued/{id}/{}/1", query.slug);
        let mut answer = body(base, &id, "QUEUED", Some(next));
        answer["stats"]["user"] = user.into();
        queries.insert(id, query);
        axum::Json(answer).into_response()
    }

    /// It is sent on its way, whether or not anybody asks after it again.
    fn queued(&self, base: &str, id: &str, slug: &str, token: &str) -> Response {
        match (locked(&self.queries).get_mut(id), token) {
            (Some(query), "1") if query.slug == slug => {
                self.look_after(query);
                let next = format!("{base}/v1/statement/executing/{id}/{slug}/0");
                axum::Json(body(base, id, "PLANNING", Some(next))).into_response()
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }

    /// What there is to say, or after a while that there is nothing.
    async fn executing(&self, base: &str, id: &str, slug: &str, token: &str) -> Response {
        let since = Instant::now();
        loop {
            {
                let mut queries = locked(&self.queries);
                let Some(query) = queries.get_mut(id).filter(|query| query.slug == slug) else {
                    return StatusCode::NOT_FOUND.into_response();
                };
                let Ok(token) = token.parse::<u64>() else {
                    return StatusCode::NOT_FOUND.into_response();
                };
                let next = query.last.as_ref().map_or(0, |(last, _)| last + 1);
                match &query.last {
                    Some((last, answer)) if token == *last => return told(answer.clone()),
                    Some((last, _)) if token < *last => return StatusCode::GONE.into_response(),
                    _ if token != next => return StatusCode::NOT_FOUND.into_response(),
                    _ => {}
                }
                if query.is_over && query.outcome.is_none() {
                    return StatusCode::NOT_FOUND.into_response();
                }
                self.look_after(query);
                if query.outcome.is_some() || since.elapsed() >= WAIT {
                    let answer = page(base, id, query, token);
                    query.last = Some((token, answer.clone()));
                    return told(answer);
                }
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// Carries a statement out whose time has come.
    fn look_after(&self, query: &mut Query) {
        let is_late = query.deadline.is_some_and(|at| at <= Instant::now());
        let is_done = query.ends.is_some_and(|ends| ends <= Instant::now());
        if query.outcome.is_some() || !(is_done || is_late) {
            return;
        }
        let outcome = match is_done {
            true => self.outcome(query),
            false => Outcome::Failed(Failure {
                name: "EXCEEDED_TIME_LIMIT",
                kind: "INSUFFICIENT_RESOURCES",
                text: "Query exceeded the maximum run time limit".to_owned(),
            }),
        };
        match outcome {
            Outcome::Failed(_) => self.abort(query),
            // Nobody has to fetch anything.
            Outcome::Done(..) => query.is_over = true,
            Outcome::Rows(_) => {}
        }
        query.outcome = Some(outcome);
    }

    /// A statement that failed aborts its transaction.
    fn abort(&self, query: &Query) {
        let id = query.transaction.as_deref().unwrap_or_default();
        if let Some(transaction) = locked(&self.transactions).get_mut(id) {
            transaction.is_aborted = true;
        }
    }

    fn stop(&self, id: &str, slug: &str) -> Response {
        let mut queries = locked(&self.queries);
        match queries.get_mut(id).filter(|query| query.slug == slug) {
            Some(query) => {
                if query.outcome.is_none() {
                    let text = "Query was canceled";
                    query.outcome = Some(Outcome::Failed(Failure::user("USER_CANCELED", text)));
                    self.abort(query);
                }
                query.is_over = true;
                StatusCode::NO_CONTENT.into_response()
            }
            None => StatusCode::NOT_FOUND.into_response(),
        }
    }
}

/// What every answer has.
fn body(base: &str, id: &str, state: &str, next: Option<String>) -> Value {
    let mut body = json!({
        "id": id, "infoUri": format!("{base}/ui/query.html?{id}"), "warnings": [],
        "stats": {"state": state, "queued": state == "QUEUED", "scheduled": state != "QUEUED", "nodes": 1, "elapsedTimeMillis": 1},
    });
    if let Some(next) = next {
        body["nextUri"] = next.into();
    }
    body
}

/// The next answer of an executing statement.
fn page(base: &str, id: &str, query: &mut Query, token: u64) -> Answer {
    let next = format!(
        "{base}/v1/statement/executing/{id}/{}/{}",
        query.slug,
        token + 1
    );
    match query.outcome.clone() {
        None => written(&body(base, id, "RUNNING", Some(next))),
        Some(Outcome::Done(kind, headers)) => {
            query.is_over = true;
            let mut answer = body(base, id, "FINISHED", None);
            answer["updateType"] = kind.into();
            let (body, _) = written(&answer);
            (body, headers)
        }
        Some(Outcome::Failed(failure)) => {
            query.is_over = true;
            let mut answer = body(base, id, "FAILED", None);
            answer["error"] = json!({
                "message": failure.text, "errorCode": 1, "errorName": failure.name, "errorType": failure.kind,
                "errorLocation": {"lineNumber": 1, "columnNumber": 1},
                "failureInfo": {"type": "io.trino.spi.TrinoException", "message": failure.text, "stack": [], "suppressed": []},
            });
            written(&answer)
        }
        Some(Outcome::Rows(table)) => {
            // What was told is let go of when the next is asked for: the last answer has no rows.
            let until = table.rows.len().min(query.told + PAGE_ROWS);
            let rows = &table.rows[query.told..until];
            query.is_over = rows.is_empty();
            let mut answer = match query.is_over {
                true => body(base, id, "FINISHED", None),
                false => body(base, id, "RUNNING", Some(next)),
            };
            let columns = table.columns.iter().map(
                |(name, kind)| json!({"name": name, "type": kind.name(), "typeSignature": kind.signature()}),
            );
            answer["columns"] = columns.collect();
            query.told = until;
            match rows.is_empty() {
                true => written(&answer),
                false => with_data(&answer, rows),
            }
        }
    }
}

fn written(body: &Value) -> Answer {
    (body.to_string().into(), Vec::new())
}

/// The same with rows, of which none is copied before it is written.
fn with_data(body: &Value, rows: &[Vec<Value>]) -> Answer {
    let mut text = body.to_string();
    text.pop();
    let rows = serde_json::to_string(rows).expect("JSON");
    text.push_str(&format!(",\"data\":{rows}}}"));
    (text.into(), Vec::new())
}

fn told((body, headers): Answer) -> Response {
    let mut response = ([("content-type", "application/json")], body).into_response();
    for (name, value) in headers {
        let value = value.parse().expect("a header");
        response.headers_mut().insert(name, value);
    }
    response
}
