//! A real ClickHouse for the tests, as far as one can be had: its engine (chdb) behind an HTTP front of ours, which ClickHouse's own clients
//! take for one (`tests/engines/clickhouse.py`, `.mjs`). It is there under `tests/run --all-engines` only: see [`WHY_IGNORED`]. What needs no engine
//! is tried against [`Recorded`].

pub mod recorded;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::process::spawn_tied;
use crate::tls::{TestCa, TlsListener};
pub use recorded::Recorded;

/// Who may do everything, and the password of all users.
pub const USER: &str = "souk";
pub const PASSWORD: &str = "pässw'ord";
/// What lets in as well, where answers are recorded.
pub const TOKEN: &str = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJzb3VrIn0.";

/// The Python that has chdb; `tests/run --all-engines` says where it is.
const PYTHON: &str = "SOUK_CLICKHOUSE_PYTHON";
/// What tests that need it write: `#[ignore = "…"]`.
pub const WHY_IGNORED: &str = "needs chdb, 600 MB: tests/run --all-engines";
/// A statement of a test's own that takes longer has gone wrong.
const PATIENCE: Duration = Duration::from_secs(60);
/// How [`ClickHouse::told`] wants what has more than one way to be written.
const TOLD: [(&str, &str); 7] = [
    ("output_format_json_quote_64bit_integers", "0"),
    ("output_format_json_quote_decimals", "0"),
    ("output_format_json_quote_denormals", "1"),
    ("output_format_json_named_tuples_as_objects", "0"),
    ("output_format_json_map_as_array_of_tuples", "1"),
    ("output_format_decimal_trailing_zeros", "1"),
    ("date_time_output_format", "iso"),
];

pub struct ClickHouse {
    pub port: u16,
    /// May do everything. `bounded` and `fixed` have profiles with `readonly` 2 and 1, and the same password.
    pub user: &'static str,
    pub password: &'static str,
    /// Whom to trust, where there is TLS.
    pub ca_pem: Option<String>,
    base_url: String,
    proxy: Option<JoinHandle<()>>,
    _server: Child,
}

impl ClickHouse {
    /// Whether it is there.
    pub fn is_installed() -> bool {
        std::env::var_os(PYTHON).is_some()
    }

    /// The server of this test process.
    pub fn shared() -> &'static ClickHouse {
        static SHARED: OnceLock<ClickHouse> = OnceLock::new();
        SHARED.get_or_init(ClickHouse::start)
    }

    /// A server of a test's own, for one that looks at all that there is.
    pub fn start() -> ClickHouse {
        ClickHouse::start_in("UTC")
    }

    /// The same on a machine whose clock shows this zone, as `timezone` of a server's has it.
    pub fn start_in(zone: &str) -> ClickHouse {
        let python = std::env::var_os(PYTHON)
            .unwrap_or_else(|| panic!("{PYTHON} is not set: {WHY_IGNORED}"));
        let front = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("engines/clickhouse.py");
        let mut command = Command::new(python);
        command
            .arg(front)
            .env("TZ", zone)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut server = spawn_tied(command, libc::SIGKILL).expect("python starts");
        let mut line = String::new();
        let said = server.stdout.take().expect("its output");
        BufReader::new(said)
            .read_line(&mut line)
            .expect("it says its port");
        let port = line
            .trim()
            .parse()
            .unwrap_or_else(|_| panic!("the front did not start: {line:?}"));
        ClickHouse {
            port,
            user: USER,
            password: PASSWORD,
            ca_pem: None,
            base_url: format!("http://127.0.0.1:{port}"),
            proxy: None,
            _server: server,
        }
    }

    /// Reached through TLS, which a proxy ends. Its owner speaks to the front itself.
    pub async fn start_tls() -> ClickHouse {
        let mut server = ClickHouse::start();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let ca = TestCa::new("ClickHouse of the tests");
        let listener = TlsListener::new(listener, &ca.server(&["127.0.0.1", "localhost"]));
        let behind = format!("127.0.0.1:{}", server.port);
        server.proxy = Some(tokio::spawn(listener.hand_on(behind)));
        server.base_url = format!("https://{address}");
        server.ca_pem = Some(ca.pem());
        server
    }

    pub fn base_url(&self) -> String {
        self.base_url.clone()
    }

    /// A database of this name's own, with what these statements make in it.
    pub fn database(&self, statements: &[&str]) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("shop_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.admin("default", &format!("CREATE DATABASE {name}"));
        for statement in statements {
            self.admin(&name, statement);
        }
        name
    }

    /// Runs SQL as its owner; what it answers is tab separated.
    pub fn admin(&self, database: &str, sql: &str) -> String {
        let answer = self.asked(&format!("database={database}"), sql);
        answer.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// What the engine writes of a query's answer in JSON: a line of names, one of types, and one of each row. Every digit is there; pairs and maps
    /// are lists, and moments in UTC.
    pub fn told(&self, database: &str, sql: &str) -> Result<String, String> {
        let settings: String = TOLD
            .iter()
            .map(|(name, value)| format!("&{name}={value}"))
            .collect();
        let format = "JSONCompactEachRowWithNamesAndTypes";
        let address = format!("database={database}&default_format={format}{settings}");
        self.asked(&address, sql)
    }

    fn asked(&self, address: &str, sql: &str) -> Result<String, String> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).expect("the front");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let (user, password, length) = (self.user, self.password, sql.len());
        let request = format!(
            "POST /?{address} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-ClickHouse-User: {user}\r\nX-ClickHouse-Key: {password}\r\nContent-Length: {length}\r\n\r\n{sql}"
        );
        socket.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("HTTP");
        match head.starts_with("HTTP/1.1 200") {
            true => Ok(body.trim_end().to_owned()),
            false => Err(body.to_owned()),
        }
    }
}

impl Drop for ClickHouse {
    fn drop(&mut self) {
        if let Some(proxy) = self.proxy.take() {
            proxy.abort();
        }
    }
}
