//! A Snowflake for the tests: its SQL API, as far as a connector needs it, over SQLite. Statements that only compute are answered by
//! `literals`, which knows Snowflake's types; all others by `tables`.
//!
//! It does what Snowflake's documentation of the SQL API says, and a client of that API that is not Snowflake's own takes it for one
//! (`tests/engines/snowflake.py`): tokens, requests that come again, statements that run by themselves, parts that come compressed, types,
//! bound values, errors. Snowflake's own connectors speak another protocol. What a statement means, and what Snowflake says of one that is
//! wrong, are SQLite's: no evidence.

mod literals;
mod tables;
mod token;
mod values;

use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use flate2::{Compression, write::GzEncoder};
use rand::RngExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::fronts::prompt;
use crate::remembered::Remembered;
use crate::tls::{TestCa, TlsListener};
use tables::Table;
use values::Formats;

/// Who is let in: by the key, or by one of the tokens.
pub const ACCOUNT: &str = "myorg-shop";
pub const USER: &str = "souk_reader";
pub const PRIVATE_KEY: &str = include_str!("snowflake/private_key.pem");
pub const ACCESS_TOKEN: &str = "souk-programmatic-access-token";
pub const OAUTH_TOKEN: &str = "souk.oauth.token";
/// The one database, warehouse, and the roles: the one may read, the other write, too.
pub const DATABASE: &str = "SHOP";
pub const WAREHOUSE: &str = "SMALL";
pub const READER: &str = "READER";
pub const WRITER: &str = "WRITER";
pub const VERSION: &str = "9.35.1";
/// Rows of a part.
const PART_ROWS: usize = 4_000;
/// How long a statement on the table `slow` takes: longer than its first pauses.
pub const SLOW: Duration = Duration::from_millis(1_500);
/// How long an answer waits for a statement that does not run by itself, and how often it looks.
const WAIT: Duration = Duration::from_secs(1);
const GLANCE: Duration = Duration::from_millis(1);

pub struct Snowflake {
    pub address: SocketAddr,
    /// Whom to trust, where there is TLS.
    pub ca_pem: Option<String>,
    state: Arc<Server>,
    task: tokio::task::JoinHandle<()>,
}

struct Server {
    tables: Mutex<tables::Tables>,
    statements: Mutex<Remembered<Statement>>,
    requests: Mutex<Vec<String>>,
    /// Requests that are turned away: before they are read, or after.
    turned_away: Mutex<Vec<(u16, bool)>>,
    /// How long a statement takes at the least.
    takes: Mutex<Duration>,
    /// Minutes east of Greenwich, of the clocks of sessions that ask for no zone; and the zones that sessions have asked for.
    zone: Mutex<i128>,
    zones: Mutex<BTreeSet<String>>,
}

/// A statement that was taken.
struct Statement {
    request_id: String,
    asked: Asked,
    /// `None`: it never ends by itself.
    ends: Option<Instant>,
    deadline: Option<Instant>,
    outcome: Option<Result<Table, Failure>>,
}

/// What a statement came with.
#[derive(Clone, Debug, Default)]
struct Asked {
    text: String,
    database: Option<String>,
    schema: Option<String>,
    warehouse: Option<String>,
    role: Option<String>,
    values: Vec<values::Typed>,
    formats: Formats,
    zone: Option<String>,
    rows_max: usize,
}

/// How a statement fails.
#[derive(Clone, Debug)]
struct Failure {
    status: u16,
    code: &'static str,
    sql_state: &'static str,
    text: String,
}

impl Failure {
    fn of(code: &'static str, sql_state: &'static str, text: impl Into<String>) -> Failure {
        Failure {
            status: 422,
            code,
            sql_state,
            text: text.into(),
        }
    }
}

impl Snowflake {
    pub async fn start() -> Snowflake {
        let (listener, address) = listen().await;
        let state = Server::new();
        let router = Router::new().fallback(serve).with_state(Arc::clone(&state));
        let task = tokio::spawn(async move {
            axum::serve(prompt(listener), router)
                .await
                .expect("it serves");
        });
        Snowflake {
            address,
            ca_pem: None,
            state,
            task,
        }
    }

    pub async fn start_tls() -> Snowflake {
        let (listener, address) = listen().await;
        let ca = TestCa::new("Snowflake of the tests");
        let listener = TlsListener::new(listener, &ca.server(&["127.0.0.1", "localhost"]));
        let state = Server::new();
        let router = Router::new().fallback(serve).with_state(Arc::clone(&state));
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Snowflake {
            address,
            ca_pem: Some(ca.pem()),
            state,
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

    /// Runs statements of SQLite's. A schema is made by `ATTACH ':memory:' AS PUBLIC`; the types of columns are Snowflake's, with SQLite's
    /// behind them where it has another idea of them (`"number(38,5) text"`). A moment is kept as microseconds, a clock as a text with six
    /// digits of a second, an array as JSON.
    pub fn admin(&self, sql: &str) {
        locked(&self.state.tables).admin(sql);
    }

    /// From now on a statement takes so long, as it does where a warehouse runs it.
    pub fn takes(&self, at_least: Duration) {
        *locked(&self.state.takes) = at_least;
    }

    /// From now on sessions that ask for no zone show moments on a clock so many minutes east of Greenwich (`TIMEZONE` of the account).
    pub fn lies_in(&self, minutes: i128) {
        *locked(&self.state.zone) = minutes;
    }

    /// The zones that sessions have asked for, and `-` where one has not.
    pub fn zones_asked_for(&self) -> Vec<String> {
        locked(&self.state.zones).iter().cloned().collect()
    }

    /// What was asked, one line for each request: `POST SELECT id FROM t`, `GET`, `GET 1` (a part), `POST cancel`.
    pub fn requests(&self) -> Vec<String> {
        locked(&self.state.requests).clone()
    }

    /// Statements that have not ended.
    pub fn running(&self) -> usize {
        let mut statements = locked(&self.state.statements);
        let mut running = 0;
        for statement in statements.values_mut() {
            self.state.look_after(statement);
            running += usize::from(statement.outcome.is_none());
        }
        running
    }

    /// Statements that were taken.
    pub fn statements(&self) -> usize {
        locked(&self.state.statements).taken()
    }

    /// Turns the next requests away with this status; where they were `taken`, what they ask for is done all the same.
    pub fn turn_away(&self, times: usize, status: u16, taken: bool) {
        locked(&self.state.turned_away).extend(vec![(status, taken); times]);
    }
}

impl Drop for Snowflake {
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

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

async fn serve(
    State(server): State<Arc<Server>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    let turned_away = locked(&server.turned_away).pop();
    if let Some((status, false)) = turned_away {
        return busy(status);
    }
    let query: HashMap<String, String> = uri
        .query()
        .into_iter()
        .flat_map(|query| form_urlencoded::parse(query.as_bytes()).into_owned())
        .collect();
    let parts: Vec<&str> = uri.path().trim_start_matches('/').split('/').collect();
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    let line = match (parts.get(4), body["statement"].as_str()) {
        (Some(act), _) => format!("{method} {act}"),
        (None, Some(text)) => format!("{method} {text}"),
        (None, None) => match query.get("partition") {
            Some(partition) => format!("{method} {partition}"),
            None => method.to_string(),
        },
    };
    locked(&server.requests).push(line);
    if let Some(refused) = unwelcome(&method, &headers) {
        return refused;
    }
    let response = match (method.as_str(), &parts[..]) {
        ("POST", ["api", "v2", "statements"]) => server.take(&query, &body).await,
        ("GET", ["api", "v2", "statements", handle]) => {
            server.answer(handle, query.get("partition").map(String::as_str))
        }
        ("POST", ["api", "v2", "statements", handle, "cancel"]) => server.stop(handle),
        _ => StatusCode::NOT_FOUND.into_response(),
    };
    match turned_away {
        Some((status, true)) => busy(status),
        _ => response,
    }
}

fn busy(status: u16) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    (status, "busy").into_response()
}

/// Why a request is not read.
fn unwelcome(method: &Method, headers: &HeaderMap) -> Option<Response> {
    let is_json = |name| header(headers, name).starts_with("application/json");
    let (status, code, text) = match () {
        _ if !token::is_good(headers) => {
            let (code, text) = token::refusal(headers);
            (StatusCode::UNAUTHORIZED, code, text)
        }
        _ if header(headers, "user-agent").is_empty() => (
            StatusCode::BAD_REQUEST,
            "391903",
            "The User-Agent header is missing.",
        ),
        _ if !is_json("accept") && header(headers, "accept") != "*/*" => (
            StatusCode::NOT_ACCEPTABLE,
            "391902",
            "Unsupported Accept header.",
        ),
        _ if method == Method::POST
            && !is_json("content-type")
            && !headers.contains_key("content-length") =>
        {
            (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "391901",
                "Unsupported Content-Type header.",
            )
        }
        _ => return None,
    };
    Some((status, axum::Json(json!({"code": code, "message": text}))).into_response())
}

fn handle() -> String {
    let (high, low) = (rand::rng().random::<u64>(), rand::rng().random::<u64>());
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

impl Server {
    fn new() -> Arc<Server> {
        Arc::new(Server {
            tables: Mutex::new(tables::Tables::new()),
            statements: Mutex::new(Remembered::new(|one| one.outcome.is_some())),
            requests: Mutex::default(),
            turned_away: Mutex::default(),
            takes: Mutex::default(),
            zone: Mutex::default(),
            zones: Mutex::default(),
        })
    }

    /// Takes a statement, once for each id of a request.
    async fn take(&self, query: &HashMap<String, String>, body: &Value) -> Response {
        let request_id = query.get("requestId").cloned().unwrap_or_default();
        let is_retry = query.get("retry").is_some_and(|retry| retry == "true");
        let known = locked(&self.statements)
            .iter()
            .find(|(_, known)| is_retry && known.request_id == request_id)
            .map(|(handle, _)| handle.clone());
        let handle = match known {
            Some(handle) => handle,
            None => match self.begin(request_id, body) {
                Ok(handle) => handle,
                Err(failure) => return failed(&handle(), &failure),
            },
        };
        if query.get("async").is_some_and(|run| run == "true") {
            return running(&handle);
        }
        let since = Instant::now();
        while since.elapsed() < WAIT && self.is_running(&handle) {
            tokio::time::sleep(GLANCE).await;
        }
        self.answer(&handle, None)
    }

    fn begin(&self, request_id: String, body: &Value) -> Result<String, Failure> {
        let mut asked = Asked::read(body)?;
        let zone = asked.zone.clone().unwrap_or_else(|| "-".to_owned());
        // Of those that have a name it knows this one.
        if zone != "UTC" {
            asked.formats.zone = *locked(&self.zone);
        }
        locked(&self.zones).insert(zone);
        let takes = match () {
            _ if asked.text.contains("FROM endless") => None,
            _ if asked.text.contains("FROM slow") => Some(SLOW),
            _ => Some(*locked(&self.takes)),
        };
        let timeout = body["timeout"].as_u64().filter(|seconds| *seconds > 0);
        let now = Instant::now();
        let statement = Statement {
            request_id,
            asked,
            ends: takes.map(|takes| now + takes),
            deadline: timeout.map(|seconds| now + Duration::from_secs(seconds)),
            outcome: None,
        };
        let handle = handle();
        locked(&self.statements).insert(handle.clone(), statement);
        Ok(handle)
    }

    fn is_running(&self, handle: &str) -> bool {
        let mut statements = locked(&self.statements);
        let Some(statement) = statements.get_mut(handle) else {
            return false;
        };
        self.look_after(statement);
        statement.outcome.is_none()
    }

    /// Carries a statement out whose time has come.
    fn look_after(&self, statement: &mut Statement) {
        let is_late = statement.deadline.is_some_and(|at| at <= Instant::now());
        let is_done = statement.ends.is_some_and(|ends| ends <= Instant::now());
        if statement.outcome.is_some() || !(is_done || is_late) {
            return;
        }
        statement.outcome = Some(match is_done {
            true => locked(&self.tables).run(&statement.asked),
            false => Err(Failure {
                status: 408,
                ..Failure::of(
                    "000630",
                    "57014",
                    "Statement reached its statement or warehouse timeout and was canceled.",
                )
            }),
        });
    }

    /// What a statement has come to; of one that has ended well a part of its rows.
    fn answer(&self, handle: &str, partition: Option<&str>) -> Response {
        let mut statements = locked(&self.statements);
        let Some(statement) = statements.get_mut(handle) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        self.look_after(statement);
        match &statement.outcome {
            None => running(handle),
            Some(Err(failure)) => failed(handle, failure),
            Some(Ok(table)) => part(handle, table, &statement.asked, partition),
        }
    }

    fn stop(&self, handle: &str) -> Response {
        let mut statements = locked(&self.statements);
        let Some(statement) = statements.get_mut(handle) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        self.look_after(statement);
        let canceled = Failure::of("000604", "57014", "SQL execution canceled");
        if statement.outcome.is_none() {
            statement.outcome = Some(Err(canceled.clone()));
        }
        axum::Json(json!({"code": canceled.code, "sqlState": canceled.sql_state, "message": canceled.text,
            "statementHandle": handle, "statementStatusUrl": format!("/api/v2/statements/{handle}")}))
        .into_response()
    }
}

impl Asked {
    fn read(body: &Value) -> Result<Asked, Failure> {
        let text = |name: &str| body[name].as_str().map(str::to_owned);
        let parameter = |name: &str| {
            let parameters = body["parameters"].as_object()?;
            let found = parameters
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))?;
            Some(match found.1 {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })
        };
        let bindings = body["bindings"].as_object();
        let places = 1..=bindings.map_or(0, serde_json::Map::len);
        let values = places.map(|place| {
            let binding = &body["bindings"][place.to_string()];
            values::Typed::bound(binding)
        });
        let values = values.collect::<Option<Vec<values::Typed>>>();
        let asked = Asked {
            text: text("statement").unwrap_or_default(),
            database: text("database"),
            schema: text("schema"),
            warehouse: text("warehouse"),
            role: text("role"),
            values: values.ok_or_else(|| {
                Failure::of(
                    "002049",
                    "42601",
                    "SQL compilation error: bind variable error",
                )
            })?,
            formats: Formats {
                date: parameter("DATE_OUTPUT_FORMAT").is_some(),
                time: parameter("TIME_OUTPUT_FORMAT").is_some(),
                timestamp: parameter("TIMESTAMP_NTZ_OUTPUT_FORMAT").is_some(),
                zone: 0,
            },
            zone: parameter("TIMEZONE"),
            rows_max: parameter("ROWS_PER_RESULTSET")
                .and_then(|rows| rows.parse().ok())
                .filter(|rows| *rows > 0)
                .unwrap_or(usize::MAX),
        };
        if let Some(role) = asked
            .role
            .as_deref()
            .filter(|role| ![READER, WRITER].contains(role))
        {
            return Err(Failure {
                status: 403,
                ..Failure::of(
                    "390189",
                    "08004",
                    format!(
                        "Role '{role}' specified in the connect string does not exist or not authorized."
                    ),
                )
            });
        }
        let statements = tables::statements(&asked.text);
        if statements != 1 {
            return Err(Failure::of(
                "000008",
                "0A000",
                format!(
                    "Actual statement count {statements} did not match the desired statement count 1."
                ),
            ));
        }
        Ok(asked)
    }

    /// The name, where there is one that is known.
    fn current(name: &Option<String>, known: &[String]) -> Option<String> {
        name.clone().filter(|name| known.contains(name))
    }
}

fn running(handle: &str) -> Response {
    let body = json!({"code": "333334", "statementHandle": handle, "statementStatusUrl": format!("/api/v2/statements/{handle}"),
        "message": "Asynchronous execution in progress. Use provided query id to perform query monitoring and management."});
    (StatusCode::ACCEPTED, axum::Json(body)).into_response()
}

fn failed(handle: &str, failure: &Failure) -> Response {
    let body = json!({"code": failure.code, "sqlState": failure.sql_state, "message": failure.text,
        "statementHandle": handle, "createdOn": 1_620_151_584_132_u64, "statementStatusUrl": format!("/api/v2/statements/{handle}")});
    let status = StatusCode::from_u16(failure.status).expect("a status");
    (status, axum::Json(body)).into_response()
}

fn part(handle: &str, table: &Table, asked: &Asked, partition: Option<&str>) -> Response {
    let parts: Vec<&[Vec<values::Held>]> = match table.rows.is_empty() {
        true => vec![&[]],
        false => table.rows.chunks(PART_ROWS).collect(),
    };
    let number = match partition.unwrap_or("0").parse::<usize>() {
        Ok(number) if number < parts.len() => number,
        _ => return StatusCode::BAD_REQUEST.into_response(),
    };
    let data: Vec<Value> = parts[number]
        .iter()
        .map(|row| row.iter().map(|cell| cell.told(&asked.formats)).collect())
        .collect();
    if partition.is_some() && number > 0 {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let body = json!({"data": data}).to_string();
        encoder.write_all(body.as_bytes()).expect("a buffer");
        let headers = [
            ("content-type", "application/json"),
            ("content-encoding", "gzip"),
        ];
        return (headers, encoder.finish().expect("a buffer")).into_response();
    }
    let columns = table.columns.iter();
    let columns = columns.map(|(name, kind)| kind.described(name));
    let partitions = parts
        .iter()
        .map(|rows| json!({"rowCount": rows.len(), "uncompressedSize": 100 * rows.len()}));
    let described = json!({"numRows": table.rows.len(), "format": "jsonv2", "partitionInfo": partitions.collect::<Vec<_>>(), "rowType": columns.collect::<Vec<_>>()});
    let more = json!({"code": "090001", "sqlState": "00000", "message": "Statement executed successfully.",
        "statementHandle": handle, "statementStatusUrl": format!("/api/v2/statements/{handle}"), "createdOn": 1_620_151_693_299_u64});
    told(&described, &data, &more)
}

/// An answer whose rows stand between what they are and what else there is, as Snowflake sends them: a `Value` has its members by their names.
fn told(described: &Value, data: &[Value], more: &Value) -> Response {
    let data = serde_json::to_string(data).expect("JSON");
    let more = more.to_string();
    let more = more.trim_start_matches('{');
    let text = format!("{{\"resultSetMetaData\":{described},\"data\":{data},{more}");
    ([("content-type", "application/json")], text).into_response()
}
