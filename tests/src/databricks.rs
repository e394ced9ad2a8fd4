//! A Databricks for the tests: the SQL Statement Execution API of a workspace, as far as a connector needs it, over SQLite. Statements that
//! only compute are answered by `literals`, which knows Databricks' types; all others by `tables`.
//!
//! Databricks' own client takes it for a Databricks (`tests/engines/databricks.py`): tokens, statements that are waited for and not,
//! parameters, manifests, chunks, limits, cancelling, errors. How it writes values was seen in answers that the service gave (recorded for
//! Databricks' JDBC driver), what its parser takes in Spark. What a statement means is SQLite's: no evidence. Where it is [`Spark`]'s that there is
//! ([`Databricks::start_spark`]), it is what Databricks is made of, but for what only Databricks has: its views of the catalog, its version.

mod literals;
mod refusals;
pub mod spark;
mod statements;
mod tables;
mod values;

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
use refusals::{Failure, Refusal};
use spark::Spark;
use values::Table;

/// The one catalog that has tables.
pub const CATALOG: &str = "memory";
pub const WAREHOUSE: &str = "a1b2c3d4e5f60718";
/// Who is let in: by this token, or by a token that is granted to the service principal.
pub const TOKEN: &str = "dapi00112233445566778899aabbccddeeff";
pub const CLIENT_ID: &str = "3f1c9d2e-7a46-4f0b-9a51-0d5b6c7e8f90";
pub const CLIENT_SECRET: &str = "doseffeeddccbbaa99887766554433221100";
pub const VERSION: &str = "2026.40-souk";
/// Rows of a chunk.
const CHUNK_ROWS: usize = 4_000;
/// How long a statement on the table `slow` takes.
pub const SLOW: Duration = Duration::from_millis(1_500);
/// How often a statement that is waited for is looked at.
const GLANCE: Duration = Duration::from_millis(1);
/// How long a request waits that does not say.
const WAIT_S: u64 = 10;
/// What is sent in answers at most, as the service counts it.
const INLINE_BYTES_MAX: usize = 26_214_400;

pub struct Databricks {
    pub address: SocketAddr,
    /// Whom to trust, where there is TLS.
    pub ca_pem: Option<String>,
    state: Arc<Server>,
    task: tokio::task::JoinHandle<()>,
}

struct Server {
    scheme: &'static str,
    tables: Mutex<tables::Tables>,
    /// What runs statements in their place.
    spark: Option<Arc<Spark>>,
    statements: Mutex<Remembered<Statement>>,
    granted: Mutex<Vec<String>>,
    requests: Mutex<Vec<String>>,
    /// Requests that are turned away before they are read.
    turned_away: Mutex<Vec<(u16, Option<&'static str>)>>,
    /// How long a statement takes at the least.
    takes: Mutex<Duration>,
    /// How long after it has begun the id of a statement is said.
    says_ids_after: Mutex<Duration>,
}

/// A statement that was taken. It has its result from the beginning, and tells it when its time is over.
struct Statement {
    outcome: Result<Table, Failure>,
    is_truncated: bool,
    /// `None`: it never ends by itself.
    ends: Option<Instant>,
    is_cancelled: bool,
}

impl Statement {
    fn is_over(&self) -> bool {
        self.is_cancelled || self.ends.is_some_and(|ends| ends <= Instant::now())
    }
}

impl Databricks {
    /// Without TLS.
    pub async fn start() -> Databricks {
        Databricks::of(None).await
    }

    /// Whose statements Spark runs. The catalog is [`spark::CATALOG`].
    pub async fn start_spark() -> Databricks {
        let started = tokio::task::spawn_blocking(Spark::start).await;
        Databricks::of(Some(Arc::new(started.expect("it starts")))).await
    }

    async fn of(spark: Option<Arc<Spark>>) -> Databricks {
        let (listener, address) = listen().await;
        let state = Server::new("http", spark);
        let router = Router::new().fallback(serve).with_state(Arc::clone(&state));
        let task = tokio::spawn(async move {
            axum::serve(prompt(listener), router)
                .await
                .expect("it serves");
        });
        Databricks {
            address,
            ca_pem: None,
            state,
            task,
        }
    }

    pub async fn start_tls() -> Databricks {
        let (listener, address) = listen().await;
        let ca = TestCa::new("Databricks of the tests");
        let listener = TlsListener::new(listener, &ca.server(&["127.0.0.1", "localhost"]));
        let state = Server::new("https", None);
        let router = Router::new().fallback(serve).with_state(Arc::clone(&state));
        let task = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Databricks {
            address,
            ca_pem: Some(ca.pem()),
            state,
            task,
        }
    }

    /// What runs its statements.
    pub fn spark(&self) -> &Spark {
        self.state.spark.as_ref().expect("it was started with it")
    }

    /// The catalog that its tables are in.
    pub fn catalog(&self) -> &'static str {
        match self.state.spark {
            Some(_) => spark::CATALOG,
            None => CATALOG,
        }
    }

    pub fn base_url(&self) -> String {
        format!("{}://{}", self.state.scheme, self.address)
    }

    /// Runs statements of SQLite's. A schema is made by `ATTACH ':memory:' AS shop`; the types of columns are Databricks', quoted where they
    /// are more than a name and numbers (`"array<string>"`), with SQLite's behind them where it has another idea of them (`string text`). A
    /// moment is kept as microseconds, a clock as a text with six digits of a second, an array as JSON.
    pub fn admin(&self, sql: &str) {
        locked(&self.state.tables).admin(sql);
    }

    /// From now on a statement takes so long, as it does where a warehouse runs it.
    pub fn takes(&self, at_least: Duration) {
        *locked(&self.state.takes) = at_least;
    }

    /// From now on the id of a statement that is not described is said so long after it has begun.
    pub fn says_ids_after(&self, pause: Duration) {
        *locked(&self.state.says_ids_after) = pause;
    }

    /// What was asked, one line for each request: `POST SELECT id FROM t`, `GET statement`, `GET chunk 1`, `POST cancel`, `POST token`.
    pub fn requests(&self) -> Vec<String> {
        locked(&self.state.requests).clone()
    }

    /// Statements that have not ended.
    pub fn running(&self) -> usize {
        let statements = locked(&self.state.statements);
        statements.iter().filter(|(_, one)| !one.is_over()).count()
    }

    /// Turns the next requests away with this status, as a service does that is busy.
    pub fn turn_away(&self, times: usize, status: u16, retry_after: Option<&'static str>) {
        locked(&self.state.turned_away).extend(vec![(status, retry_after); times]);
    }

    /// Lets in nobody any more who shows a token that was granted.
    pub fn revoke(&self) {
        locked(&self.state.granted).clear();
    }
}

impl Drop for Databricks {
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
    body: Bytes,
) -> Response {
    if let Some((status, retry_after)) = locked(&server.turned_away).pop() {
        let mut response = Refusal::new(status, "TEMPORARILY_UNAVAILABLE", "busy").into_response();
        if let Some(seconds) = retry_after {
            let seconds = seconds.parse().expect("a header");
            response.headers_mut().insert("retry-after", seconds);
        }
        return response;
    }
    let path = uri.path().trim_matches('/');
    let parts: Vec<&str> = path.split('/').collect();
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let line = match parts[..] {
        ["oidc", "v1", "token"] => "token".to_owned(),
        [_, _, "sql", "statements"] => asked["statement"].as_str().unwrap_or_default().to_owned(),
        [_, _, "sql", "statements", _] => "statement".to_owned(),
        [_, _, "sql", "statements", _, "cancel"] => "cancel".to_owned(),
        [.., "chunks", number] => format!("chunk {number}"),
        _ => path.to_owned(),
    };
    locked(&server.requests).push(format!("{method} {line}"));
    match (&method, &parts[..]) {
        (&Method::POST, ["oidc", "v1", "token"]) => {
            return server.grant(header(&headers, "authorization"), &body);
        }
        // Where its own client looks for that.
        (&Method::GET, [".well-known", "databricks-config"]) => {
            let origin = format!("{}://{}", server.scheme, header(&headers, "host"));
            let body = json!({"oidc_endpoint": format!("{origin}/oidc"), "workspace_id": "1"});
            return axum::Json(body).into_response();
        }
        (&Method::GET, ["oidc", ".well-known", "oauth-authorization-server"]) => {
            let origin = format!("{}://{}", server.scheme, header(&headers, "host"));
            let body = json!({"authorization_endpoint": format!("{origin}/oidc/v1/authorize"), "token_endpoint": format!("{origin}/oidc/v1/token")});
            return axum::Json(body).into_response();
        }
        _ => {}
    }
    let answer = match server.lets_in(header(&headers, "authorization")) {
        Err(refusal) => Err(refusal),
        Ok(()) => match (method.as_str(), &parts[..]) {
            ("POST", ["api", "2.0", "sql", "statements"]) => server.take(&asked).await,
            ("GET", ["api", "2.0", "sql", "statements", id]) => server.answer(id),
            (
                "GET",
                [
                    "api",
                    "2.0",
                    "sql",
                    "statements",
                    id,
                    "result",
                    "chunks",
                    number,
                ],
            ) => server.chunk(id, number),
            ("POST", ["api", "2.0", "sql", "statements", id, "cancel"]) => server.cancel(id),
            _ => Err(Refusal::new(404, "ENDPOINT_NOT_FOUND", "No API found")),
        },
    };
    match answer {
        Ok(answer) => axum::Json(answer).into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

fn id() -> String {
    let number = rand::rng().random::<u128>();
    let text = format!("{number:032x}");
    let parts = [
        &text[..8],
        &text[8..12],
        &text[12..16],
        &text[16..20],
        &text[20..],
    ];
    parts.join("-")
}

impl Server {
    fn new(scheme: &'static str, spark: Option<Arc<Spark>>) -> Arc<Server> {
        Arc::new(Server {
            scheme,
            tables: Mutex::new(tables::Tables::new()),
            spark,
            statements: Mutex::new(Remembered::new(Statement::is_over)),
            granted: Mutex::default(),
            requests: Mutex::default(),
            turned_away: Mutex::default(),
            takes: Mutex::default(),
            says_ids_after: Mutex::default(),
        })
    }

    /// Grants the service principal a token.
    fn grant(&self, authorization: &str, body: &[u8]) -> Response {
        let refuse = |status: StatusCode, error: &str| {
            let body = json!({"error": error, "error_description": "Client authentication failed"});
            (status, axum::Json(body)).into_response()
        };
        let login = STANDARD.encode(format!("{CLIENT_ID}:{CLIENT_SECRET}"));
        if authorization != format!("Basic {login}") {
            return refuse(StatusCode::UNAUTHORIZED, "invalid_client");
        }
        let form = String::from_utf8_lossy(body);
        let mut fields: Vec<&str> = form.split('&').collect();
        fields.sort_unstable();
        if fields != ["grant_type=client_credentials", "scope=all-apis"] {
            return refuse(StatusCode::BAD_REQUEST, "invalid_request");
        }
        let token = format!("eyJraWQi.{}", id());
        locked(&self.granted).push(token.clone());
        let body = json!({"access_token": token, "scope": "all-apis", "token_type": "Bearer", "expires_in": 3_600});
        axum::Json(body).into_response()
    }

    fn lets_in(&self, authorization: &str) -> Result<(), Refusal> {
        match authorization.strip_prefix("Bearer ") {
            None => Err(Refusal::new(
                401,
                401,
                "Credential was not sent or was of an unsupported type for this API.",
            )),
            Some(TOKEN) => Ok(()),
            Some(token) if locked(&self.granted).iter().any(|known| known == token) => Ok(()),
            Some(_) => Err(Refusal::new(403, 403, "Invalid access token.")),
        }
    }

    /// Takes a statement, and waits for it as long as is asked.
    async fn take(&self, asked: &Value) -> Result<Value, Refusal> {
        if asked["warehouse_id"] != WAREHOUSE {
            let named = asked["warehouse_id"].as_str().unwrap_or_default();
            return Err(Refusal::wrong(&format!(
                "{named} is not a valid endpoint id."
            )));
        }
        let Some(text) = asked["statement"].as_str().filter(|text| !text.is_empty()) else {
            return Err(Refusal::wrong("Statement is missing."));
        };
        for (field, known) in [("disposition", "INLINE"), ("format", "JSON_ARRAY")] {
            if asked[field] != Value::Null && asked[field] != known {
                return Err(Refusal::wrong(&format!("{field} is not of these tests")));
            }
        }
        let wait = match asked["wait_timeout"].as_str() {
            None => WAIT_S,
            Some(text) => match text.strip_suffix('s').and_then(|text| text.parse().ok()) {
                Some(seconds @ (0 | 5..=50)) => seconds,
                _ => return Err(Refusal::wrong("wait_timeout must be 0s, or 5s to 50s")),
            },
        };
        let takes = match () {
            _ if text.starts_with("DESCRIBE") => Some(Duration::ZERO),
            _ if text.contains("FROM endless") => None,
            _ if text.contains("FROM slow") => Some(SLOW),
            _ => Some(*locked(&self.takes)),
        };
        let mut outcome = self.outcome(text, asked).await;
        let is_truncated = match &mut outcome {
            Ok(table) => cut(table, asked),
            Err(_) => false,
        };
        if outcome
            .as_ref()
            .is_ok_and(|table| table.bytes() > INLINE_BYTES_MAX)
        {
            let text = format!(
                "Inline byte limit exceeded. Statements executed with disposition=INLINE can have a result size of at most {INLINE_BYTES_MAX} bytes."
            );
            outcome = Err(Failure::new("", "", text));
        }
        let statement = Statement {
            outcome,
            is_truncated,
            ends: takes.map(|takes| Instant::now() + takes),
            is_cancelled: false,
        };
        let id = id();
        locked(&self.statements).insert(id.clone(), statement);
        let pause = *locked(&self.says_ids_after);
        if !pause.is_zero() && !text.starts_with("DESCRIBE") {
            tokio::time::sleep(pause).await;
        }
        let until = Instant::now() + Duration::from_secs(wait);
        while wait > 0 && !self.is_over(&id) && Instant::now() < until {
            tokio::time::sleep(GLANCE).await;
        }
        if wait > 0 && !self.is_over(&id) && asked["on_wait_timeout"] == "CANCEL" {
            self.cancel(&id)?;
        }
        match wait {
            // However short it is.
            0 => Ok(json!({"statement_id": id, "status": {"state": "PENDING"}})),
            _ => self.answer(&id),
        }
    }

    async fn outcome(&self, text: &str, asked: &Value) -> Result<Table, Failure> {
        let is_databricks_own = ["information_schema", "current_version()"]
            .iter()
            .any(|name| text.contains(name));
        match &self.spark {
            Some(spark) if !is_databricks_own => {
                let (spark, text, asked) = (Arc::clone(spark), text.to_owned(), asked.clone());
                let outcome = tokio::task::spawn_blocking(move || spark.outcome(&text, &asked));
                outcome.await.expect("it answers")
            }
            _ => statements::outcome(&locked(&self.tables), text, asked),
        }
    }

    fn is_over(&self, id: &str) -> bool {
        let statements = locked(&self.statements);
        statements.get(id).is_some_and(Statement::is_over)
    }

    fn answer(&self, id: &str) -> Result<Value, Refusal> {
        let statements = locked(&self.statements);
        let statement = statements.get(id).ok_or_else(|| unknown(id))?;
        let mut answer = json!({"statement_id": id, "status": {"state": "RUNNING"}});
        if statement.is_cancelled {
            answer["status"] = json!({"state": "CANCELED"});
        } else if statement.is_over() {
            match &statement.outcome {
                Err(failure) => {
                    answer["status"] = json!({"state": "FAILED", "error": {"error_code": "BAD_REQUEST", "message": failure.message()}});
                    if !failure.state.is_empty() {
                        answer["status"]["sql_state"] = (*failure.state).into();
                    }
                }
                Ok(table) => {
                    answer["status"] = json!({"state": "SUCCEEDED"});
                    answer["manifest"] = manifest(table, statement.is_truncated);
                    answer["result"] = chunk(id, table, 0);
                }
            }
        }
        Ok(answer)
    }

    fn chunk(&self, id: &str, number: &str) -> Result<Value, Refusal> {
        let statements = locked(&self.statements);
        let statement = statements.get(id).ok_or_else(|| unknown(id))?;
        match (&statement.outcome, number.parse::<usize>()) {
            (Ok(table), Ok(number)) if statement.is_over() && number < chunks(table) => {
                Ok(chunk(id, table, number))
            }
            _ => Err(Refusal::wrong("There is no such chunk.")),
        }
    }

    fn cancel(&self, id: &str) -> Result<Value, Refusal> {
        let mut statements = locked(&self.statements);
        let statement = statements.get_mut(id).ok_or_else(|| unknown(id))?;
        statement.is_cancelled = !statement.is_over();
        Ok(json!({}))
    }
}

fn unknown(id: &str) -> Refusal {
    Refusal::new(
        404,
        "NOT_FOUND",
        &format!("The statement {id} was not found."),
    )
}

/// Leaves out what is beyond the limits that are asked for. Whether there was anything.
fn cut(table: &mut Table, asked: &Value) -> bool {
    let limit = |name: &str| asked[name].as_u64().map(|limit| limit as usize);
    let before = table.rows.len();
    table.rows.truncate(limit("row_limit").unwrap_or(before));
    if let Some(bytes) = limit("byte_limit") {
        while table.bytes() > bytes {
            table.rows.pop();
        }
    }
    table.rows.len() < before
}

fn chunks(table: &Table) -> usize {
    table.rows.len().div_ceil(CHUNK_ROWS)
}

fn manifest(table: &Table, is_truncated: bool) -> Value {
    let columns = table.columns.iter().enumerate();
    let columns: Vec<Value> = columns
        .map(|(position, (name, kind))| {
            let mut column = json!({"name": name, "type_text": kind.text(), "type_name": kind.name(), "position": position});
            if let Some((precision, scale)) = kind.digits() {
                column["type_precision"] = precision.into();
                column["type_scale"] = scale.into();
            }
            column
        })
        .collect();
    let rows = table.rows.len();
    let parts = (0..chunks(table)).map(|number| {
        let offset = number * CHUNK_ROWS;
        json!({"chunk_index": number, "row_offset": offset, "row_count": CHUNK_ROWS.min(rows - offset)})
    });
    json!({
        "format": "JSON_ARRAY", "schema": {"column_count": columns.len(), "columns": columns}, "total_chunk_count": chunks(table),
        "chunks": parts.collect::<Vec<_>>(), "total_row_count": rows, "truncated": is_truncated,
    })
}

fn chunk(id: &str, table: &Table, number: usize) -> Value {
    let from = number * CHUNK_ROWS;
    let until = table.rows.len().min(from + CHUNK_ROWS);
    let rows = table.rows[from..until].iter();
    let rows: Vec<Vec<Value>> = rows
        .map(|row| row.iter().map(values::Cell::sent).collect())
        .collect();
    let mut chunk = json!({"chunk_index": number, "row_offset": from, "row_count": rows.len()});
    if !rows.is_empty() {
        chunk["data_array"] = rows.into();
    }
    let next = number + 1;
    if next < chunks(table) {
        chunk["next_chunk_index"] = next.into();
        chunk["next_chunk_internal_link"] =
            format!("/api/2.0/sql/statements/{id}/result/chunks/{next}?row_offset={until}").into();
    }
    chunk
}
