//! A SQL Server for the tests: TDS 7.4 with TLS in its packets and TDS 8.0 within TLS, over SQLite. Statements that only compute are answered by `literals`, which
//! knows SQL Server's types; all others by `tables`.
//!
//! Clients that are not ours take it for one (`tests/engines/sqlserver.py`, `.mjs`): logins, batches and calls, descriptions and rows of each type,
//! transactions, errors, attentions. What a statement means, and what SQL Server says of one that is wrong, are SQLite's and this file's: no evidence.

mod calls;
mod literals;
mod login;
mod peer;
mod tables;
mod types;

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
use calls::{Call, Values, behind_headers};
use login::{Encryption, Login};
use peer::{Message, Peer};
use types::Kind;

/// Who may read, and who may write too.
pub const USER: &str = "souk";
pub const WRITER: &str = "owner";
pub const PASSWORD: &str = "pässw'ord";
pub const DATABASE: &str = "shop";
pub const VERSION: &str = "16.0.4106.1";
/// How long a statement on `slow` takes.
const SLOW: Duration = Duration::from_millis(1_500);
const MORE: u16 = 0x01;
const ERROR: u16 = 0x02;
const COUNT: u16 = 0x10;
const ATTENTION: u16 = 0x20;
const RESET: u8 = 0x08;

pub struct SqlServer {
    pub address: SocketAddr,
    /// Whom to trust.
    pub ca_pem: String,
    state: Arc<Server>,
    task: tokio::task::JoinHandle<()>,
}

struct Server {
    tables: Mutex<tables::Tables>,
    seen: Mutex<Seen>,
    in_packets: Arc<ServerConfig>,
    strict: Arc<ServerConfig>,
    has_tls: bool,
    /// Nobody may write, whatever a login may.
    is_read_only: bool,
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
        !matches!(self.number, 102 | 137 | 195 | 207 | 208 | 229 | 262)
    }
}

impl SqlServer {
    pub async fn start() -> SqlServer {
        SqlServer::with(true, false).await
    }

    /// One that has no certificate.
    pub async fn without_tls() -> SqlServer {
        SqlServer::with(false, false).await
    }

    /// One whose database is a replica.
    pub async fn read_only() -> SqlServer {
        SqlServer::with(true, true).await
    }

    async fn with(has_tls: bool, is_read_only: bool) -> SqlServer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let ca = TestCa::new("SQL Server of the tests");
        let leaf = ca.server(&["127.0.0.1", "localhost"]);
        let mut strict = config(&leaf, &[&TLS12, &TLS13]);
        strict.alpn_protocols = vec![b"tds/8.0".to_vec()];
        let state = Arc::new(Server {
            tables: Mutex::new(tables::Tables::new()),
            seen: Mutex::default(),
            // SQL Server has no newer one in packets.
            in_packets: Arc::new(config(&leaf, &[&TLS12])),
            strict: Arc::new(strict),
            has_tls,
            is_read_only,
        });
        let server = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let server = Arc::clone(&server);
                tokio::spawn(async move {
                    locked(&server.seen).sessions += 1;
                    // The end of a session is its client's.
                    let _ = Session::new(socket, &server).serve().await;
                    locked(&server.seen).sessions -= 1;
                });
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
    /// they are more than a name (`"nvarchar(max)"`). Clocks are texts with a `T` and seven digits of a second.
    pub fn admin(&self, sql: &str) {
        locked(&self.state.tables).admin(sql);
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

fn config(leaf: &Leaf, versions: &[&'static tokio_rustls::rustls::SupportedProtocolVersion]) -> ServerConfig {
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

struct Session<'a> {
    peer: Peer,
    server: &'a Server,
    may_write: bool,
    /// How deep a transaction is, its number, and what was written in it.
    depth: usize,
    transaction: u64,
    pending: Vec<(usize, String)>,
    xact_abort: bool,
}

/// A statement of a batch.
struct Statement {
    text: String,
    values: Values,
}

/// What is said so far of an answer.
struct Answer {
    out: Vec<u8>,
    is_call: bool,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.end_transaction(Fate::Undone);
    }
}

impl<'a> Session<'a> {
    fn new(socket: TcpStream, server: &'a Server) -> Session<'a> {
        Session {
            peer: Peer::new(socket),
            server,
            may_write: false,
            depth: 0,
            transaction: 0,
            pending: Vec::new(),
            xact_abort: false,
        }
    }

    async fn serve(mut self) -> io::Result<()> {
        if !self.let_in().await? {
            return Ok(());
        }
        while let Some(message) = self.peer.message().await? {
            let _running = Running::new(self.server);
            match message.kind {
                peer::ATTENTION => {
                    locked(&self.server.seen).attentions += 1;
                    self.peer.say(peer::REPLY, &done(0xfd, ATTENTION, 0)).await?;
                }
                peer::BATCH | peer::RPC | peer::MANAGER => self.request(&message).await?,
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// From the first bytes to the login's answer.
    async fn let_in(&mut self) -> io::Result<bool> {
        if self.peer.begins_sealed().await? {
            if !self.server.has_tls {
                return Ok(false);
            }
            let config = Arc::clone(&self.server.strict);
            self.peer.shake_hands(config, false).await?;
            if self.peer.protocol() != Some(b"tds/8.0") {
                return Ok(false);
            }
        }
        let Some(prelogin) = self.peer.message().await? else {
            return Ok(false);
        };
        let asked = login::asked(&prelogin.body);
        if prelogin.kind != peer::PRELOGIN || asked.is_none() {
            return Ok(false);
        }
        let is_strict = self.peer.is_sealed();
        let encryption = match (self.server.has_tls, is_strict) {
            (true, false) => 1,
            _ => 2,
        };
        self.peer.say(peer::REPLY, &login::answer(encryption)).await?;
        if !is_strict && self.server.has_tls && asked != Some(Encryption::NotSupported) {
            let config = Arc::clone(&self.server.in_packets);
            self.peer.shake_hands(config, true).await?;
        }
        let Some(message) = self.peer.message().await? else {
            return Ok(false);
        };
        let login = (message.kind == peer::LOGIN).then(|| Login::read(&message.body));
        let Some(login) = login.flatten() else {
            return Ok(false);
        };
        self.log_in(&login, is_strict).await
    }

    async fn log_in(&mut self, login: &Login, is_strict: bool) -> io::Result<bool> {
        let how = match (is_strict, self.peer.is_sealed()) {
            (true, _) => "strict",
            (false, true) => "TLS",
            (false, false) => "clear",
        };
        let intent = if login.reads_only { " to read" } else { "" };
        let line = format!("{how} {:08x} {} of {} at {}{intent}", login.version, login.user, login.database, login.server);
        locked(&self.server.seen).logins.push(line);
        let mut out = Vec::new();
        let is_known = [USER, WRITER].contains(&login.user.as_str()) && login.password == PASSWORD;
        let refused = match () {
            // It encrypts what it is told, or is told nothing.
            () if !self.peer.is_sealed() => Some(Failure::new(18456, "Login failed: encryption is required.")),
            () if !is_known => Some(Failure::new(18456, format!("Login failed for user '{}'.", login.user))),
            () if login.database != DATABASE && !login.database.is_empty() => Some(Failure::new(
                4060,
                format!("Cannot open database \"{}\" requested by the login. The login failed.", login.database),
            )),
            () => None,
        };
        if let Some(failure) = refused {
            error(&mut out, &failure, 14);
            out.extend(done(0xfd, ERROR, 0));
            self.peer.say(peer::REPLY, &out).await?;
            return Ok(false);
        }
        self.may_write = login.user == WRITER;
        changed(&mut out, 1, &named(DATABASE), &named("master"));
        message(&mut out, 0xab, 5701, 0, &format!("Changed database context to '{DATABASE}'."));
        changed(&mut out, 7, &[5, 0x09, 0x04, 0xd0, 0x00, 0x34], &[0]);
        let version: [u8; 4] = if is_strict { [0x08, 0, 0, 0] } else { [0x74, 0, 0, 4] };
        let mut ack = vec![1];
        ack.extend(version);
        ack.extend(named("Microsoft SQL Server"));
        ack.extend([16, 0, 0x10, 0x0a]);
        token(&mut out, 0xad, &ack);
        let bytes = (login.packet_bytes as usize).clamp(512, 16_000);
        changed(&mut out, 4, &named(&bytes.to_string()), &named("4096"));
        out.extend(done(0xfd, 0, 0));
        self.peer.say(peer::REPLY, &out).await?;
        self.peer.packet_bytes = bytes;
        Ok(true)
    }

    async fn request(&mut self, request: &Message) -> io::Result<()> {
        let mut answer = Answer {
            out: Vec::new(),
            is_call: request.kind == peer::RPC,
        };
        if request.status & RESET != 0 {
            locked(&self.server.seen).resets += 1;
            self.end_transaction(Fate::Undone);
            self.xact_abort = false;
            changed(&mut answer.out, 18, &[0], &[0]);
        }
        let descriptor = request.body.get(10..18).and_then(|bytes| bytes.try_into().ok());
        let descriptor = u64::from_le_bytes(descriptor.unwrap_or_default());
        if self.depth > 0 && descriptor != self.transaction {
            let text = "New request is not allowed to start because it should come with valid transaction descriptor.";
            return self.refuse(answer, &Failure::new(3989, text)).await;
        }
        let statements = match request.kind {
            peer::MANAGER => {
                let kind = behind_headers(&request.body).and_then(|body| body.first()).copied();
                Ok(split(match kind {
                    Some(5) => "BEGIN TRANSACTION",
                    Some(7) => "COMMIT",
                    _ => "ROLLBACK",
                }))
            }
            peer::BATCH => Ok(split(&login::units(behind_headers(&request.body).unwrap_or_default()))),
            _ => called(&request.body),
        };
        match statements {
            Ok(statements) => self.run(statements, answer).await,
            Err(failure) => self.refuse(answer, &failure).await,
        }
    }

    async fn refuse(&mut self, mut answer: Answer, failure: &Failure) -> io::Result<()> {
        error(&mut answer.out, failure, 16);
        let last = if answer.is_call { 0xfe } else { 0xfd };
        answer.out.extend(done(last, ERROR, 0));
        self.peer.say(peer::REPLY, &answer.out).await
    }

    async fn run(&mut self, statements: Vec<Statement>, mut answer: Answer) -> io::Result<()> {
        let mut has_failed = false;
        for statement in statements {
            if let Some(takes) = waits(&statement.text) {
                let columns = [("id".to_owned(), Kind::simple("int"))];
                // What is there is told at once, without the end of the message.
                locked(&self.server.seen).statements.push(statement.text.clone());
                describe(&mut answer.out, &columns);
                answer.out.extend(row(&columns, &[Value::Integer(1)]));
                let out = std::mem::take(&mut answer.out);
                self.peer.say_part(peer::REPLY, &out, false).await?;
                if takes.is_none() && statement.text.contains("torn") {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                let told = tokio::time::timeout(takes.unwrap_or(Duration::MAX), self.peer.message()).await;
                match told {
                    Ok(Ok(Some(message))) if message.kind == peer::ATTENTION => return self.stopped(answer).await,
                    Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Err(_) => answer.ended(1, COUNT),
                }
                continue;
            }
            if let Err(failure) = self.statement(&statement, &mut answer) {
                has_failed = true;
                error(&mut answer.out, &failure, 16);
                answer.ended(0, ERROR);
                if failure.aborts() {
                    if self.xact_abort && self.depth > 0 {
                        self.undo(&mut answer.out);
                    }
                    break;
                }
            }
        }
        let status = if has_failed { ERROR } else { 0 };
        if answer.is_call {
            answer.out.extend([0x79, 0, 0, 0, 0]);
        }
        let last = if answer.is_call { 0xfe } else { 0xfd };
        answer.out.extend(done(last, status, 0));
        self.peer.say(peer::REPLY, &answer.out).await
    }

    /// Ends the message that was begun with what an attention is acknowledged by.
    async fn stopped(&mut self, mut answer: Answer) -> io::Result<()> {
        locked(&self.server.seen).attentions += 1;
        if self.xact_abort && self.depth > 0 {
            self.undo(&mut answer.out);
        }
        answer.out.extend(done(0xfd, ATTENTION, 0));
        self.peer.say(peer::REPLY, &answer.out).await
    }

    fn statement(&mut self, statement: &Statement, answer: &mut Answer) -> Result<(), Failure> {
        let text = statement.text.trim();
        let upper = text.to_ascii_uppercase();
        let begins = |words: &str| upper.starts_with(words);
        if begins("SET ") || begins("USE ") || upper.is_empty() {
            if begins("SET XACT_ABORT") {
                self.xact_abort = upper.ends_with("ON");
            }
            answer.ended(0, 0);
            return Ok(());
        }
        if begins("BEGIN TRAN") {
            self.depth += 1;
            if self.depth == 1 {
                self.transaction += 0x51;
                locked(&self.server.seen).transactions += 1;
                let number = self.transaction.to_le_bytes();
                changed(&mut answer.out, 8, &[&[8][..], &number].concat(), &[0]);
            }
            answer.ended(0, 0);
            return Ok(());
        }
        let conditional = upper.strip_prefix("IF @@TRANCOUNT > 0 ").map(str::trim);
        if conditional.is_some() && self.depth == 0 {
            answer.ended(0, 0);
            return Ok(());
        }
        let upper = conditional.unwrap_or(&upper);
        if upper.starts_with("ROLLBACK") || upper.starts_with("COMMIT") {
            if self.depth == 0 {
                return Err(Failure::new(3903, "The request has no corresponding BEGIN TRANSACTION."));
            }
            match upper.starts_with("COMMIT") {
                false => self.undo(&mut answer.out),
                true => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        self.keep(&mut answer.out)?;
                    }
                }
            }
            answer.ended(0, 0);
            return Ok(());
        }
        let is_query = upper.starts_with("SELECT") || upper.starts_with("WITH") || upper.starts_with('(');
        locked(&self.server.seen).statements.push(text.to_owned());
        match is_query && !upper.contains(" INTO ") {
            true => {
                let table = self.query(text, &statement.values)?;
                describe(&mut answer.out, &table.columns);
                for cells in &table.rows {
                    answer.out.extend(row(&table.columns, cells));
                }
                answer.ended(table.rows.len() as u64, COUNT);
                Ok(())
            }
            false => {
                self.write(text)?;
                answer.ended(0, COUNT);
                Ok(())
            }
        }
    }

    fn query(&self, text: &str, values: &Values) -> Result<Table, Failure> {
        let text = text.trim();
        if text.contains("@@TRANCOUNT") {
            return Ok(Table {
                columns: vec![(String::new(), Kind::simple("int"))],
                rows: vec![vec![Value::Integer(self.depth as i64)]],
            });
        }
        if text.contains("1 / 0") {
            return Err(Failure::new(8134, "Divide by zero error encountered."));
        }
        let tables = locked(&self.server.tables);
        let writable = self.may_write.then_some("[dbo].[stock]");
        let table = match literals::row(text, values) {
            Some(table) => table,
            None => tables.query(text, values, writable)?,
        };
        for row in &table.rows {
            for ((_, kind), value) in table.columns.iter().zip(row) {
                fits(kind, value)?;
            }
        }
        Ok(table)
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let upper = text.to_ascii_uppercase();
        let word = upper.split_whitespace().next().unwrap_or_default().to_owned();
        let refused = match word.as_str() {
            _ if self.server.is_read_only => Some(Failure::new(
                3906,
                format!("Failed to update database \"{DATABASE}\" because the database is read-only."),
            )),
            "CREATE" if !self.may_write => Some(Failure::new(
                262,
                format!("CREATE TABLE permission denied in database '{DATABASE}'."),
            )),
            _ if !self.may_write => Some(Failure::new(
                229,
                format!("The {word} permission was denied on the object 'stock', database '{DATABASE}', schema 'dbo'."),
            )),
            _ => None,
        };
        let is_open = self.depth > 0;
        let written = match refused {
            Some(failure) => Err(failure),
            None => locked(&self.server.tables).write(text, !is_open),
        };
        let fate = match (&written, is_open) {
            (Err(_), _) => Fate::Refused,
            (Ok(()), true) => Fate::Open,
            (Ok(()), false) => Fate::Kept,
        };
        let mut seen = locked(&self.server.seen);
        seen.writes.push((text.to_owned(), fate));
        if fate == Fate::Open {
            self.pending.push((seen.writes.len() - 1, text.to_owned()));
        }
        written
    }

    fn undo(&mut self, out: &mut Vec<u8>) {
        let number = self.transaction.to_le_bytes();
        self.end_transaction(Fate::Undone);
        changed(out, 10, &[0], &[&[8][..], &number].concat());
    }

    fn keep(&mut self, out: &mut Vec<u8>) -> Result<(), Failure> {
        let number = self.transaction.to_le_bytes();
        self.depth = 1;
        for (_, text) in &self.pending {
            locked(&self.server.tables).write(text, true)?;
        }
        self.end_transaction(Fate::Kept);
        changed(out, 9, &[0], &[&[8][..], &number].concat());
        Ok(())
    }

    fn end_transaction(&mut self, fate: Fate) {
        if self.depth == 0 {
            return;
        }
        self.depth = 0;
        let mut seen = locked(&self.server.seen);
        seen.transactions -= 1;
        for (at, _) in self.pending.drain(..) {
            seen.writes[at].1 = fate;
        }
    }
}

/// A request under way is counted.
struct Running<'a>(&'a Server);

impl<'a> Running<'a> {
    fn new(server: &'a Server) -> Running<'a> {
        locked(&server.seen).running += 1;
        Running(server)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        locked(&self.0.seen).running -= 1;
    }
}

impl Answer {
    /// A statement has ended, and others may follow.
    fn ended(&mut self, rows: u64, status: u16) {
        let kind = if self.is_call { 0xff } else { 0xfd };
        self.out.extend(done(kind, status | MORE, rows));
    }
}

/// The statements of a call: what `sp_executesql` is given, and what that gives to another one.
fn called(body: &[u8]) -> Result<Vec<Statement>, Failure> {
    let call = Call::read(body).ok_or_else(|| Failure::new(8009, "The incoming tabular data stream is incorrect."))?;
    if !call.procedure.to_ascii_lowercase().ends_with("sp_executesql") {
        return Err(Failure::new(2812, format!("Could not find stored procedure '{}'.", call.procedure)));
    }
    let mut given = call.values.into_iter();
    let text = match given.next() {
        Some((_, bound)) => shown(&bound.value),
        None => return Err(Failure::new(201, "Procedure expects a parameter.")),
    };
    let values: Values = given.skip(1).collect();
    let mut statements = Vec::new();
    for statement in split(&text) {
        let lower = statement.text.to_ascii_lowercase();
        let Some(at) = lower.strip_prefix("exec sys.sp_executesql ") else {
            let values = values.clone();
            statements.push(Statement { values, ..statement });
            continue;
        };
        let names = statement.text[statement.text.len() - at.len()..].split(',');
        let names: Vec<&str> = names.map(str::trim).collect();
        let value = |name: &str| values.get(name).map(|bound| shown(&bound.value));
        let inner = value(names[0]).ok_or_else(|| Failure::new(137, "Must declare the scalar variable."))?;
        let declared = names.get(1).and_then(|name| value(name)).unwrap_or_default();
        let mut own = Values::new();
        for name in names.iter().skip(2) {
            if !declared.contains(&format!("{name} ")) {
                return Err(Failure::new(137, format!("Must declare the scalar variable \"{name}\".")));
            }
            own.insert((*name).to_owned(), values[*name].clone());
        }
        statements.push(Statement { text: inner, values: own });
    }
    Ok(statements)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        _ => String::new(),
    }
}

/// Statements between semicolons that are in nothing. What a client begins with is many of `SET`, which are one here.
fn split(text: &str) -> Vec<Statement> {
    let (mut quote, mut from) = (None, 0);
    let mut parts = Vec::new();
    for (at, char) in text.char_indices() {
        match (quote, char) {
            (None, '\'' | '"') => quote = Some(char),
            (None, '[') => quote = Some(']'),
            (Some(closes), char) if char == closes => quote = None,
            (None, ';') => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    let parts = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    let statement = |part: &str| Statement {
        text: part.to_owned(),
        values: Values::new(),
    };
    parts.map(statement).collect()
}

/// How much time a statement takes that takes some: `None` is for ever.
fn waits(text: &str) -> Option<Option<Duration>> {
    match text {
        _ if text.contains("FROM slow") => Some(Some(SLOW)),
        _ if text.contains("FROM endless") || text.contains("FROM torn") => Some(None),
        _ => None,
    }
}

/// Whether a value can be of the type that a statement casts it to.
fn fits(kind: &Kind, value: &Value) -> Result<(), Failure> {
    let Value::Text(text) = value else {
        return Ok(());
    };
    let converts = |text: &str| Failure::new(245, format!("Conversion failed when converting the varchar value '{text}' to data type {}.", kind.name));
    match kind.name.as_str() {
        "tinyint" | "smallint" | "int" | "bigint" | "bit" => match text.parse::<i64>() {
            Ok(number) if kind.name == "int" && i32::try_from(number).is_err() => Err(Failure::new(8115, "Arithmetic overflow error converting expression to data type int.")),
            Ok(_) => Ok(()),
            Err(_) => Err(converts(text)),
        },
        "float" | "real" | "decimal" | "numeric" => text.parse::<f64>().map(drop).map_err(|_| Failure::new(8114, "Error converting data type varchar to numeric.")),
        "date" | "datetime" | "datetime2" | "datetimeoffset" if !text.starts_with(|first: char| first.is_ascii_digit()) || text.len() < 10 => {
            Err(Failure::new(241, "Conversion failed when converting date and/or time from character string."))
        }
        _ => Ok(()),
    }
}

fn done(kind: u8, status: u16, rows: u64) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend_from_slice(&status.to_le_bytes());
    out.extend([0xc1, 0]);
    out.extend_from_slice(&rows.to_le_bytes());
    out
}

fn token(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&(body.len() as u16).to_le_bytes());
    out.extend_from_slice(body);
}

/// A text with its length in a byte before it.
fn named(text: &str) -> Vec<u8> {
    let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut out = vec![(units.len() / 2) as u8];
    out.extend(units);
    out
}

fn changed(out: &mut Vec<u8>, what: u8, new: &[u8], old: &[u8]) {
    token(out, 0xe3, &[&[what], new, old].concat());
}

fn error(out: &mut Vec<u8>, failure: &Failure, class: u8) {
    message(out, 0xaa, failure.number, class, &failure.text);
}

fn message(out: &mut Vec<u8>, kind: u8, number: i32, class: u8, text: &str) {
    let mut body = number.to_le_bytes().to_vec();
    body.extend([1, class]);
    body.extend_from_slice(&(text.encode_utf16().count() as u16).to_le_bytes());
    body.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    body.extend(named("tests"));
    body.push(0);
    body.extend_from_slice(&1_u32.to_le_bytes());
    token(out, kind, &body);
}

fn describe(out: &mut Vec<u8>, columns: &[(String, Kind)]) {
    out.push(0x81);
    out.extend_from_slice(&(columns.len() as u16).to_le_bytes());
    for (name, kind) in columns {
        // It may be NULL, and be changed.
        out.extend([0, 0, 0, 0, 0x09, 0]);
        kind.describe(out);
        out.extend(named(name));
    }
}

/// A row; where something is NULL, one that leaves it out.
fn row(columns: &[(String, Kind)], cells: &[Value]) -> Vec<u8> {
    let is_compact = cells.contains(&Value::Null);
    let mut out = vec![if is_compact { 0xd2 } else { 0xd1 }];
    if is_compact {
        for eight in cells.chunks(8) {
            let bits = eight.iter().enumerate().filter(|(_, cell)| **cell == Value::Null);
            out.push(bits.map(|(at, _)| 1 << at).sum());
        }
    }
    for ((_, kind), cell) in columns.iter().zip(cells) {
        if !(is_compact && *cell == Value::Null) {
            kind.write(cell, &mut out);
        }
    }
    out
}
