//! A session: who is let in, what is asked, and what is answered.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::types::Value;
use tokio::net::TcpStream;

use super::batches::{Act, Parsed, Statement, fits, waits};
use super::calls::{Values, behind_headers};
use super::door::Liar;
use super::login::{self, Encryption, Login};
use super::peer::{self, Message, Peer};
use super::types::Kind;
use super::words::{changed, describe, done, error, information, named, row, token};
use super::{DATABASE, Failure, Fate, PASSWORD, Server, Table, USER, WRITER, literals, locked};

const MORE: u16 = 0x01;
const ERROR: u16 = 0x02;
const COUNT: u16 = 0x10;
const ATTENTION: u16 = 0x20;
const RESET: u8 = 0x08;
/// TDS 8.0, as a login asks for it.
const STRICT_VERSION: u32 = 0x0800_0000;

pub struct Session<'a> {
    peer: Peer,
    server: &'a Server,
    may_write: bool,
    /// How deep a transaction is, its number, and what was written in it.
    depth: usize,
    transaction: u64,
    pending: Vec<(usize, String)>,
    xact_abort: bool,
}

/// What is said so far of an answer.
struct Answer {
    out: Vec<u8>,
    is_call: bool,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.end_transaction(Fate::Undone);
        locked(&self.server.seen).sessions -= 1;
    }
}

impl<'a> Session<'a> {
    pub fn new(socket: TcpStream, server: &'a Server, liar: Option<Liar>) -> Session<'a> {
        locked(&server.seen).sessions += 1;
        Session {
            peer: Peer::new(socket, liar),
            server,
            may_write: false,
            depth: 0,
            transaction: 0,
            pending: Vec::new(),
            xact_abort: false,
        }
    }

    pub async fn serve(mut self) -> io::Result<()> {
        if !self.let_in().await? {
            return Ok(());
        }
        while let Some(message) = self.peer.message().await? {
            let _running = Running::new(self.server);
            match message.kind {
                peer::ATTENTION => {
                    locked(&self.server.seen).attentions += 1;
                    self.peer
                        .say(peer::REPLY, &done(0xfd, ATTENTION, 0))
                        .await?;
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
        self.peer
            .say(peer::REPLY, &login::answer(encryption))
            .await?;
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
        let line = format!(
            "{how} {:08x} {} of {} at {}{intent}",
            login.version, login.user, login.database, login.server
        );
        locked(&self.server.seen).logins.push(line);
        let mut out = Vec::new();
        let is_known = [USER, WRITER].contains(&login.user.as_str()) && login.password == PASSWORD;
        let refused = match () {
            // It encrypts what it is told, or is told nothing.
            () if !self.peer.is_sealed() => {
                Some(Failure::new(18456, "Login failed: encryption is required."))
            }
            () if !is_known => Some(Failure::new(
                18456,
                format!("Login failed for user '{}'.", login.user),
            )),
            () if login.database != DATABASE && !login.database.is_empty() => Some(Failure::new(
                4060,
                format!(
                    "Cannot open database \"{}\" requested by the login. The login failed.",
                    login.database
                ),
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
        information(
            &mut out,
            5701,
            &format!("Changed database context to '{DATABASE}'."),
        );
        changed(&mut out, 7, &[5, 0x09, 0x04, 0xd0, 0x00, 0x34], &[0]);
        // A client may bring the TLS of 8.0 to what it knows of 7.4.
        let version: [u8; 4] = if is_strict && login.version == STRICT_VERSION {
            [0x08, 0, 0, 0]
        } else {
            [0x74, 0, 0, 4]
        };
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
        self.peer.is_open = true;
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
        let descriptor = request
            .body
            .get(10..18)
            .and_then(|bytes| bytes.try_into().ok());
        let descriptor = u64::from_le_bytes(descriptor.unwrap_or_default());
        if self.depth > 0 && descriptor != self.transaction {
            let text = "New request is not allowed to start because it should come with valid transaction descriptor.";
            return self.refuse(answer, &Failure::new(3989, text)).await;
        }
        let texts = &self.server.texts;
        let statements = match request.kind {
            peer::MANAGER => {
                let kind = behind_headers(&request.body)
                    .and_then(|body| body.first())
                    .copied();
                Ok(texts.batch(match kind {
                    Some(5) => "BEGIN TRANSACTION",
                    Some(7) => "COMMIT",
                    _ => "ROLLBACK",
                }))
            }
            peer::BATCH => Ok(texts.batch(&login::units(
                behind_headers(&request.body).unwrap_or_default(),
            ))),
            _ => texts.called(&request.body),
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
            let text = &statement.parsed.text;
            if let Some(takes) = waits(text).or_else(|| self.takes(&statement.parsed)) {
                let columns = [("id".to_owned(), Kind::simple("int"))];
                // What is there is told at once, without the end of the message.
                locked(&self.server.seen).statements.push(text.clone());
                describe(&mut answer.out, &columns);
                answer.out.extend(row(&columns, &[Value::Integer(1)]));
                let out = std::mem::take(&mut answer.out);
                self.peer.say_part(peer::REPLY, &out, false).await?;
                if takes.is_none() && text.contains("torn") {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                let told =
                    tokio::time::timeout(takes.unwrap_or(Duration::MAX), self.peer.message()).await;
                match told {
                    Ok(Ok(Some(message))) if message.kind == peer::ATTENTION => {
                        return self.stopped(answer).await;
                    }
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

    /// How long a statement takes that reads tables, where that was said.
    fn takes(&self, parsed: &Parsed) -> Option<Option<Duration>> {
        let takes = *locked(&self.server.takes);
        let reads = matches!(parsed.act, Act::Reads(_)) && parsed.text.contains("FROM ");
        (reads && !takes.is_zero()).then_some(Some(takes))
    }

    /// Ends the message that was begun, and acknowledges an attention by another one, as tedious knows it of SQL Server.
    async fn stopped(&mut self, mut answer: Answer) -> io::Result<()> {
        locked(&self.server.seen).attentions += 1;
        if self.xact_abort && self.depth > 0 {
            self.undo(&mut answer.out);
        }
        answer.out.extend(done(0xfd, ERROR, 0));
        self.peer.say(peer::REPLY, &answer.out).await?;
        self.peer.say(peer::REPLY, &done(0xfd, ATTENTION, 0)).await
    }

    fn statement(&mut self, statement: &Statement, answer: &mut Answer) -> Result<(), Failure> {
        let parsed = &statement.parsed;
        let text = parsed.text.trim();
        if parsed.is_conditional && self.depth == 0 {
            answer.ended(0, 0);
            return Ok(());
        }
        match &parsed.act {
            Act::Sets(xact_abort) => {
                self.xact_abort = xact_abort.unwrap_or(self.xact_abort);
                answer.ended(0, 0);
            }
            Act::Begins => {
                self.depth += 1;
                if self.depth == 1 {
                    self.transaction += 0x51;
                    locked(&self.server.seen).transactions += 1;
                    let number = self.transaction.to_le_bytes();
                    changed(&mut answer.out, 8, &[&[8][..], &number].concat(), &[0]);
                }
                answer.ended(0, 0);
            }
            Act::Keeps | Act::Undoes if self.depth == 0 => {
                return Err(Failure::new(
                    3903,
                    "The request has no corresponding BEGIN TRANSACTION.",
                ));
            }
            Act::Undoes => {
                self.undo(&mut answer.out);
                answer.ended(0, 0);
            }
            Act::Keeps => {
                self.depth -= 1;
                if self.depth == 0 {
                    self.keep(&mut answer.out)?;
                }
                answer.ended(0, 0);
            }
            Act::Reads(cleared) => {
                locked(&self.server.seen).statements.push(text.to_owned());
                let query = match cleared {
                    Some((write, query)) => {
                        self.write(write)?;
                        query.as_str()
                    }
                    None => text,
                };
                let table = self.query(query, &statement.values)?;
                describe(&mut answer.out, &table.columns);
                for cells in &table.rows {
                    answer.out.extend(row(&table.columns, cells));
                }
                answer.ended(table.rows.len() as u64, COUNT);
            }
            Act::Writes => {
                locked(&self.server.seen).statements.push(text.to_owned());
                self.write(text)?;
                answer.ended(0, COUNT);
            }
        }
        Ok(())
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
        let may = self.may_write.then_some("WRITE");
        let updateability = match self.server.is_read_only {
            true => "READ_ONLY",
            false => "READ_WRITE",
        };
        let table = match literals::row(text, values) {
            Some(table) => table,
            None => locked(&self.server.tables).query(text, values, may, updateability)?,
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
        let word = upper
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned();
        let refused = match word.as_str() {
            _ if self.server.is_read_only => Some(Failure::new(
                3906,
                format!(
                    "Failed to update database \"{DATABASE}\" because the database is read-only."
                ),
            )),
            "CREATE" if !self.may_write => Some(Failure::new(
                262,
                format!("CREATE TABLE permission denied in database '{DATABASE}'."),
            )),
            _ if !self.may_write => Some(Failure::new(
                229,
                format!(
                    "The {word} permission was denied on the object 'stock', database '{DATABASE}', schema 'dbo'."
                ),
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
