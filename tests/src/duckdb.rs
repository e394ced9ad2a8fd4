//! A DuckDB for the tests: the vendor's own server of Quack (`tests/engines/quack.py`), a database in memory; with TLS behind a proxy that ends it, as it is
//! run in earnest.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tokio::task::JoinHandle;

use crate::process::{free_port, spawn_tied};
use crate::tls::{TestCa, TlsListener};

/// What a server of the tests lets in.
pub const TOKEN: &str = "hush, it's a \"token\"";
pub const VERSION: &str = "v1.5.5";
/// How long a client may take to end a connection: a loaded machine gets a thousand times as long.
const END_MAX: Duration = Duration::from_secs(60);

pub struct DuckDb {
    base_url: String,
    pub ca_pem: Option<String>,
    talk: Mutex<(ChildStdin, Lines<BufReader<ChildStdout>>)>,
    server: Child,
    proxy: Option<JoinHandle<()>>,
}

impl DuckDb {
    pub fn start() -> DuckDb {
        let port = free_port();
        let mut command = Command::new("python3");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("engines/quack.py");
        command
            .arg(script)
            .args([&port.to_string(), TOKEN])
            .env("PYTHONPATH", installed())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut server = spawn_tied(command, libc::SIGKILL).expect("python starts");
        let input = server.stdin.take().expect("its input");
        let mut lines = BufReader::new(server.stdout.take().expect("its output")).lines();
        let ready = lines.next();
        assert!(matches!(ready, Some(Ok(_))), "DuckDB does not start");
        DuckDb {
            base_url: format!("http://127.0.0.1:{port}"),
            ca_pem: None,
            talk: Mutex::new((input, lines)),
            server,
            proxy: None,
        }
    }

    /// Spoken to through TLS alone.
    pub async fn start_tls() -> DuckDb {
        let mut server = DuckDb::start();
        let ca = TestCa::new("DuckDB of the tests");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("an address");
        let leaf = ca.server(&["127.0.0.1", "localhost"]);
        let listener = TlsListener::new(listener, &leaf);
        let behind = server.base_url.replace("http://", "");
        server.proxy = Some(tokio::spawn(listener.hand_on(behind)));
        server.base_url = format!("https://{address}");
        server.ca_pem = Some(ca.pem());
        server
    }

    pub fn base_url(&self) -> String {
        self.base_url.clone()
    }

    /// Runs a statement as the owner of the database, on a connection of its own; texts of its rows.
    pub fn admin(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        let mut answer = self.ask(&Json::from(sql));
        serde_json::from_value(answer["rows"].take()).expect("rows")
    }

    /// What a query answers the owner, as DuckDB writes it itself: `{"columns": [[name, type], …], "rows": [[…], …]}` (`told` in `engines/quack.py`).
    pub fn told(&self, sql: &str) -> Json {
        self.ask(&json!({"told": sql}))
    }

    fn ask(&self, asked: &Json) -> Json {
        let mut talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        let (input, lines) = &mut *talk;
        writeln!(input, "{asked}").expect("it reads");
        let line = lines.next().expect("it answers").expect("a line");
        let answer: Json = serde_json::from_str(&line).expect("JSON");
        assert_eq!(answer["error"], Json::Null, "{asked}");
        answer
    }

    /// A number that a statement has.
    pub fn number(&self, sql: &str) -> usize {
        let rows = self.admin(sql);
        let cell = rows.first().and_then(|row| row.first()?.as_ref());
        cell.and_then(|cell| cell.parse().ok()).expect("a number")
    }

    /// Connections that clients have not ended.
    pub fn connections(&self) -> usize {
        self.number("SELECT count(*) FROM quack_active_connections()")
    }

    /// Waits until there are none: they are ended beside the answers.
    pub async fn is_left(&self) {
        let since = Instant::now();
        while self.connections() > 0 {
            assert!(since.elapsed() < END_MAX, "{:?}", self.asked());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// From now on it writes down what it is sent.
    pub fn writes_down(&self) {
        self.admin("CALL enable_logging('Quack')");
    }

    /// What it has been sent since then: the kinds of messages.
    pub fn messages(&self) -> Vec<String> {
        let rows = self.admin(
            "SELECT regexp_extract(message, 'message_type.: ([A-Z_]+)', 1) FROM duckdb_logs WHERE type = 'Quack'",
        );
        rows.into_iter().flatten().flatten().collect()
    }

    /// The texts of those that ask something, as DuckDB's log quotes them.
    pub fn texts(&self) -> Vec<String> {
        let rows = self.admin(
            "SELECT regexp_extract(message, '''query'': (.*), ''server'': ', 1, 's') FROM duckdb_logs WHERE type = 'Quack' AND message LIKE '%PREPARE_REQUEST%'",
        );
        rows.into_iter().flatten().flatten().collect()
    }

    /// What is being asked on them.
    pub fn asked(&self) -> Vec<String> {
        let rows = self.admin("SELECT query FROM quack_active_connections() WHERE query <> ''");
        rows.into_iter().flatten().flatten().collect()
    }

    /// The time that its processor has spent, in hundredths of a second.
    pub fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.server.id()));
        let stat = stat.expect("a process");
        let (_, fields) = stat.rsplit_once(')').expect("its name");
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let number = |place: usize| fields[place].parse::<u64>().expect("a number");
        number(11) + number(12)
    }
}

impl Drop for DuckDb {
    fn drop(&mut self) {
        if let Some(proxy) = self.proxy.take() {
            proxy.abort();
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// As `tests/run` has installed it.
fn installed() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/duckdb");
    assert!(
        path.join("duckdb").is_dir(),
        "{} is missing: run tests/run, which installs it",
        path.display()
    );
    path
}
