//! The native handler for DuckDB: Quack 1 over hyper, for which there is no Rust client. It speaks as much of it as the dataset needs: connections
//! that are kept on each worker thread, a statement in one request, flat vectors without NULLs.

use std::sync::{Mutex, PoisonError};

use anyhow::{Context, ensure};
use axum::body::Bytes;

use crate::answers::{Page, Player};
use crate::native::{Client, router, serve};
use crate::native_http::{Http, Source};
use souk_load::queries::{self, Query, Texts};

/// Messages.
const CONNECT: u64 = 1;
const CONNECTED: u64 = 2;
const PREPARE: u64 = 3;
const PREPARED: u64 = 4;
/// Of Quack, and which of it the client speaks at least.
const VERSION: u64 = 1;
/// What ends an object, and what is no number.
const END: u16 = 0xffff;
const NO_NUMBER: u64 = u64::MAX;

struct DuckDb {
    http: Http,
    token: String,
    texts: Texts,
    /// Ids of connections that nothing is asked on.
    idle: Mutex<Vec<String>>,
}

impl Client for DuckDb {
    async fn players(&self, query: Query, value: i64) -> anyhow::Result<Page> {
        let sql = self.texts.of(query).replace("$1", &value.to_string());
        let body = self.ask(&sql).await?;
        let mut page = Page::of(1);
        each_chunk(&body, |reader, rows| {
            let ids = reader.fixed()?;
            let names = reader.texts()?;
            let teams = reader.texts()?;
            let goals = reader.fixed()?;
            let ratings = reader.fixed()?;
            let active = reader.fixed()?;
            for row in 0..rows {
                page.player(&Player {
                    id: i64::from_le_bytes(at(ids, row)?),
                    name: names[row],
                    team: teams[row],
                    goals: i32::from_le_bytes(at(goals, row)?).into(),
                    rating: f64::from_le_bytes(at(ratings, row)?),
                    active: at::<1>(active, row)? != [0],
                });
            }
            Ok(())
        })?;
        Ok(page)
    }

    async fn goals(&self) -> anyhow::Result<i64> {
        let team = format!("'{}'", queries::TEAM);
        let body = self.ask(&self.texts.aggregate.replace("$1", &team)).await?;
        let mut goals = 0;
        each_chunk(&body, |reader, _| {
            // A HUGEINT, of which the lower half comes first.
            goals = i64::from_le_bytes(at(reader.fixed()?, 0)?);
            Ok(())
        })?;
        Ok(goals)
    }
}

impl DuckDb {
    async fn ask(&self, sql: &str) -> anyhow::Result<Bytes> {
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let message = head(PREPARE, &connection).field(1).text(sql).end();
        let answer = self.http.post_bytes("/quack", message.0.into()).await?;
        self.idle().push(connection);
        Ok(answer)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> anyhow::Result<String> {
        let message = head(CONNECT, "");
        let message = message.field(1).text(&self.token).field(2).text("native");
        let message = message.field(3).text("linux");
        let message = message.field(4).number(VERSION).field(5).number(VERSION);
        let answer = self
            .http
            .post_bytes("/quack", message.end().0.into())
            .await?;
        let (kind, connection) = Reader(&answer).head()?;
        ensure!(kind == CONNECTED, "no connection");
        Ok(connection.to_owned())
    }
}

/// Of which kind, and of which connection.
fn head(kind: u64, connection: &str) -> Writer {
    let head = Writer(Vec::new()).field(1).number(kind);
    let head = match connection {
        "" => head,
        connection => head.field(2).text(connection),
    };
    head.field(3).number(NO_NUMBER).end()
}

struct Writer(Vec<u8>);

impl Writer {
    fn field(mut self, number: u16) -> Writer {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn end(self) -> Writer {
        self.field(END)
    }

    fn number(mut self, mut number: u64) -> Writer {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    fn text(self, text: &str) -> Writer {
        let mut out = self.number(text.len() as u64);
        out.0.extend_from_slice(text.as_bytes());
        out
    }
}

/// What is left to read of an answer.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> anyhow::Result<&'a [u8]> {
        let split = self.0.split_at_checked(count).context("it is cut off")?;
        self.0 = split.1;
        Ok(split.0)
    }

    fn number(&mut self) -> anyhow::Result<u64> {
        let mut number = 0;
        for place in 0..10 {
            let byte = self.bytes(1)?[0];
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        anyhow::bail!("a number is too long")
    }

    fn blob(&mut self) -> anyhow::Result<&'a [u8]> {
        let length = self.number()? as usize;
        self.bytes(length)
    }

    fn text(&mut self) -> anyhow::Result<&'a str> {
        Ok(std::str::from_utf8(self.blob()?)?)
    }

    fn is_field(&mut self, number: u16) -> bool {
        let is_it = self.0.starts_with(&number.to_le_bytes());
        if is_it {
            self.0 = &self.0[2..];
        }
        is_it
    }

    fn field(&mut self, number: u16) -> anyhow::Result<()> {
        ensure!(self.is_field(number), "no field {number}");
        Ok(())
    }

    fn head(&mut self) -> anyhow::Result<(u64, &'a str)> {
        self.field(1)?;
        let kind = self.number()?;
        let connection = match self.is_field(2) {
            true => self.text()?,
            false => "",
        };
        self.field(3)?;
        self.number()?;
        self.field(END)?;
        Ok((kind, connection))
    }

    /// Of the dataset none has more than its id.
    fn types(&mut self) -> anyhow::Result<()> {
        for _ in 0..self.number()? {
            self.field(100)?;
            self.number()?;
            if self.is_field(101) {
                ensure!(self.bytes(1)? == [0], "a type with more than its id");
            }
            self.field(END)?;
        }
        Ok(())
    }

    /// A vector of values of one width.
    fn fixed(&mut self) -> anyhow::Result<&'a [u8]> {
        self.field(100)?;
        ensure!(self.bytes(1)? == [0], "NULLs");
        self.field(102)?;
        let values = self.blob()?;
        self.field(END)?;
        Ok(values)
    }

    fn texts(&mut self) -> anyhow::Result<Vec<&'a str>> {
        self.field(100)?;
        ensure!(self.bytes(1)? == [0], "NULLs");
        self.field(102)?;
        let count = self.number()?;
        let texts = (0..count).map(|_| self.text());
        let texts = texts.collect::<anyhow::Result<_>>()?;
        self.field(END)?;
        Ok(texts)
    }
}

/// The value of a row in a vector of so many bytes each.
fn at<const N: usize>(values: &[u8], row: usize) -> anyhow::Result<[u8; N]> {
    let value = values.get(N * row..).and_then(<[u8]>::first_chunk);
    value.copied().context("too few values")
}

/// Goes through the chunks of an answer; `take` reads the vectors of one that has so many rows.
fn each_chunk<'a>(
    answer: &'a [u8],
    mut take: impl FnMut(&mut Reader<'a>, usize) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut reader = Reader(answer);
    let (kind, _) = reader.head()?;
    ensure!(kind == PREPARED, "{}", String::from_utf8_lossy(answer));
    reader.field(1)?;
    reader.types()?;
    reader.field(2)?;
    for _ in 0..reader.number()? {
        reader.text()?;
    }
    if reader.is_field(3) {
        ensure!(reader.bytes(1)? == [0], "there is more");
    }
    if !reader.is_field(4) {
        return Ok(());
    }
    for _ in 0..reader.number()? {
        reader.bytes(1)?;
        reader.field(300)?;
        reader.field(100)?;
        let rows = reader.number()? as usize;
        reader.field(101)?;
        reader.types()?;
        reader.field(102)?;
        reader.number()?;
        take(&mut reader, rows)?;
        reader.field(END)?;
        reader.field(END)?;
    }
    Ok(())
}

/// The token stands where other servers have a header, the last one.
pub const TOKEN: &str = "token";

pub fn run(source: &str, listener: std::net::TcpListener, threads: usize) -> anyhow::Result<()> {
    let mut source: Source = serde_json::from_str(source)?;
    let (_, token) = source.headers.pop().context("no token")?;
    serve(listener, threads, move || {
        let (http, token) = (Http::new(&source), token.clone());
        async move {
            Ok(router(DuckDb {
                http: http?,
                token,
                texts: Texts::with("$1").without_order(),
                idle: Mutex::default(),
            }))
        }
    })
}
