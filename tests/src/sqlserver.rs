//! A SQL Server for the tests: TDS 7.4 with TLS in its packets and TDS 8.0 within TLS, over SQLite. Statements that only compute are answered by `literals`, which
//! knows SQL Server's types; all others by `tables`.
//!
//! Clients that are not ours take it for one (`tests/engines/sqlserver.py`, `.mjs`): logins, batches and calls, descriptions and rows of each type,
//! transactions, errors, attentions. A door of it lies to its clients, within their TLS (`door`). What a statement means, and what SQL Server says of one that is wrong, are SQLite's and this file's: no evidence.

mod batches;
mod calls;
mod door;
mod literals;
mod login;
mod peer;
mod session;
mod tables;
mod types;
mod words;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rusqlite::types::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::{TLS12, TLS13};

use crate::tls::{Leaf, TestCa};
use door::Liar;
use session::Session;
use types::Kind;

pub use door::{Door, Lie};

/// Who may read, and who may write too.
pub const USER: &str = "souk";
pub const WRITER: &str = "owner";
pub const PASSWORD: &str = "pässw'ord";
pub const DATABASE: &str = "shop";
pub const VERSION: &str = "16.0.4106.1";
/// Where it is reached.
const NAMES: [&str; 2] = ["127.0.0.1", "localhost"];

pub struct SqlServer {
    pub address: SocketAddr,
    /// Whom to trust.
    pub ca_pem: String,
    state: Arc<Server>,
    task: tokio::task::JoinHandle<()>,
}

struct Server {
    texts: batches::Texts,
    tables: Mutex<tables::Tables>,
    seen: Mutex<Seen>,
    in_packets: Arc<ServerConfig>,
    strict: Arc<ServerConfig>,
    has_tls: bool,
    /// Nobody may write, whatever a login may.
    is_read_only: bool,
    /// How long a statement that reads tables takes at the least.
    takes: Mutex<Duration>,
}

/// What has been asked for.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The statements, without what goes around them.
    pub statements: Vec<String>,
    /// Those that write, and what became of them.
    pub writes: Vec<(String, Fate)>,
    pub attentions: usize,
    pub resets: usize,
    pub logins: Vec<String>,
    /// Statements that run now, and transactions that are open.
    pub running: usize,
    pub transactions: usize,
    pub sessions: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Refused,
    /// Let through, in a transaction that has not ended.
    Open,
    Undone,
    Kept,
}

/// A result.
#[derive(Clone, Debug, Default)]
struct Table {
    columns: Vec<(String, Kind)>,
    rows: Vec<Vec<Value>>,
}

/// How a statement fails.
#[derive(Clone, Debug)]
struct Failure {
    number: i32,
    text: String,
}

impl Failure {
    fn new(number: i32, text: impl Into<String>) -> Failure {
        Failure {
            number,
            text: text.into(),
        }
    }

    /// Whether it ends the batch, and with `XACT_ABORT` the transaction. What is known before a statement runs does not.
    fn aborts(&self) -> bool {
        !matches!(
            self.number,
            102 | 137 | 195 | 207 | 208 | 229 | 262 | 305 | 306 | 402 | 8116
        )
    }
}

impl SqlServer {
    /// With a certificate for the names that it is reached by.
    pub async fn start() -> SqlServer {
        SqlServer::with(&NAMES, true, false).await
    }

    /// As [`SqlServer::start`], with a certificate for these names (DNS names or IP addresses).
    pub async fn start_named(names: &[&str]) -> SqlServer {
        SqlServer::with(names, true, false).await
    }

    /// One that has no certificate.
    pub async fn without_tls() -> SqlServer {
        SqlServer::with(&NAMES, false, false).await
    }

    /// One whose database is a replica.
    pub async fn read_only() -> SqlServer {
        SqlServer::with(&NAMES, true, true).await
    }

    async fn with(names: &[&str], has_tls: bool, is_read_only: bool) -> SqlServer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let ca = TestCa::new("SQL Server of the tests");
        let leaf = ca.server(names);
        let mut strict = config(&leaf, &[&TLS12, &TLS13]);
        strict.alpn_protocols = vec![b"tds/8.0".to_vec()];
        let state = Arc::new(Server {
            texts: batches::Texts::default(),
            tables: Mutex::new(tables::Tables::new()),
            seen: Mutex::default(),
            // SQL Server has no newer one in packets.
            in_packets: Arc::new(config(&leaf, &[&TLS12])),
            strict: Arc::new(strict),
            has_tls,
            is_read_only,
            takes: Mutex::default(),
        });
        let server = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, Arc::clone(&server), None));
            }
        });
        SqlServer {
            address,
            ca_pem: ca.pem(),
            state,
            task,
        }
    }

    /// Runs statements of SQLite's. A schema is made by `ATTACH ':memory:' AS sales`, `dbo` is there; the types of columns are SQL Server's, quoted where
    /// they are more than a name (`"nvarchar(max)"`), with SQLite's behind them where it has another idea of them (`"decimal(38, 5) text"`). Clocks are
    /// texts with a `T` and seven digits of a second.
    pub fn admin(&self, sql: &str) {
        locked(&self.state.tables).admin(sql);
    }

    /// A further way in, whose sessions can be lied to. They end with it.
    pub fn door(&self) -> io::Result<Door> {
        Door::open(&self.state)
    }

    /// From now on a statement that reads tables takes so long.
    pub fn takes(&self, at_least: Duration) {
        *locked(&self.state.takes) = at_least;
    }

    pub fn seen(&self) -> Seen {
        locked(&self.state.seen).clone()
    }
}

impl Drop for SqlServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A session, until its client has had enough.
async fn serve(socket: TcpStream, server: Arc<Server>, liar: Option<Liar>) {
    let _ = socket.set_nodelay(true);
    // Its end is its client's.
    let _ = Session::new(socket, &server, liar).serve().await;
}

fn config(
    leaf: &Leaf,
    versions: &[&'static tokio_rustls::rustls::SupportedProtocolVersion],
) -> ServerConfig {
    let certificate = CertificateDer::from_pem_slice(leaf.certificate_pem.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(leaf.key_pem.as_bytes());
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.expect("PEM")], key.expect("PEM"))
        .expect("a key that belongs to the certificate")
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panicked")
}
