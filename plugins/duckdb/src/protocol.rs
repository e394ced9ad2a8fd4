//! The messages of Quack, version 1: a head (what it is, of which connection) and a body, each an object.

use souk_sdk::{Error, HttpResponse};

use crate::errors::{malformed, refused, rows_lost};
use crate::types::{self, Type};
use crate::vectors::{self, Chunk};
use crate::wire::{Reader, Writer};

/// The one version that is spoken here: DuckDB 1.5's.
pub const VERSION: u64 = 1;
/// What a server is told of who asks. It looks at neither.
const CLIENT: &str = "souk";
const PLATFORM: &str = "wasm32_wasip2";
/// No number: what DuckDB writes for one that is left out.
const NO_NUMBER: u64 = u64::MAX;
/// A connection's id is 32 digits.
const CONNECTION_BYTES_MAX: usize = 256;

/// What a message has beside its connection's id and what it is about; what the first one has beside the token.
const HEAD_BYTES: usize = 40;
const CONNECT_BYTES: usize = 60;

const CONNECT: u64 = 1;
const CONNECTED: u64 = 2;
const PREPARE: u64 = 3;
const PREPARED: u64 = 4;
const FETCH: u64 = 7;
const FETCHED: u64 = 8;
const SUCCESS: u64 = 10;
const DISCONNECT: u64 = 11;
const REFUSED: u64 = 100;

/// Opens a connection.
pub fn connect(token: &str) -> Vec<u8> {
    head(CONNECT, "", token.len() + CONNECT_BYTES)
        .field(1)
        .text(token)
        .field(2)
        .text(CLIENT)
        .field(3)
        .text(PLATFORM)
        .field(4)
        .number(VERSION)
        .field(5)
        .number(VERSION)
        .end()
        .finish()
}

/// Runs a statement, whose text comes in parts, and asks for the first of its rows.
pub fn prepare(connection: &str, parts: &[&str]) -> Vec<u8> {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    let head = head(PREPARE, connection, bytes).field(1);
    let parts = parts.iter().map(|part| part.as_bytes());
    let whole = parts.fold(head.number(bytes as u64), Writer::raw);
    whole.end().finish()
}

/// Asks for more rows of a result.
pub fn fetch(connection: &str, result: &[u8]) -> Vec<u8> {
    head(FETCH, connection, result.len())
        .field(1)
        .raw(result)
        .end()
        .finish()
}

/// Ends a connection, with all that it has begun.
pub fn disconnect(connection: &str) -> Vec<u8> {
    head(DISCONNECT, connection, 0).end().finish()
}

/// `bytes`: as long as what is still to be written may be, so that it is not moved.
fn head(kind: u64, connection: &str, bytes: usize) -> Writer {
    let room = HEAD_BYTES + connection.len() + bytes;
    let head = Writer::with_room(room).field(1).number(kind);
    let head = match connection {
        "" => head,
        connection => head.field(2).text(connection),
    };
    head.field(3).number(NO_NUMBER).end()
}

/// What a server answers.
pub enum Answer<'a> {
    Connected(Connected),
    /// A statement has columns, and here are rows.
    Prepared(Prepared<'a>),
    /// More rows.
    Fetched(Chunks<'a>),
    Success,
    /// DuckDB's own words.
    Refused(&'a str),
}

pub struct Connected {
    pub connection: String,
    pub server_version: String,
}

pub struct Prepared<'a> {
    /// The list of types, and that of names, as they were written.
    pub types: &'a [u8],
    pub names: &'a [u8],
    pub goes_on: bool,
    pub chunks: Chunks<'a>,
    /// The one of them, where there is no other.
    pub only: Option<Chunk<'a>>,
    /// What more rows are asked for by.
    pub result: &'a [u8],
}

/// Chunks of rows that have not been read.
#[derive(Clone, Copy)]
pub struct Chunks<'a> {
    pub count: usize,
    reader: Reader<'a>,
}

impl<'a> Chunks<'a> {
    const NONE: Chunks<'static> = Chunks {
        count: 0,
        reader: Reader::new(&[]),
    };

    /// Hands on one after the other, and returns what is left to read behind them.
    pub fn each(
        self,
        types: &[Type],
        written: &[u8],
        mut take: impl FnMut(Chunk<'a>) -> Result<(), Error>,
    ) -> Result<Reader<'a>, Error> {
        let mut reader = self.reader;
        for _ in 0..self.count {
            // It is there (a pointer to it is not null), wrapped in an object of its own.
            if !reader.boolean()? {
                return Err(malformed());
            }
            take(vectors::chunk(&mut reader, types, written)?)?;
        }
        Ok(reader)
    }
}

/// Reads an answer; `types` of the statement whose rows are fetched.
pub fn read(response: &HttpResponse) -> Result<Answer<'_>, Error> {
    if response.status != 200 {
        return Err(refused(response));
    }
    let mut reader = Reader::new(&response.body);
    reader.field(1)?;
    let kind = reader.number()?;
    let connection = match reader.is_field(2) {
        true => reader.text()?,
        false => "",
    };
    reader.field(3)?;
    reader.number()?;
    reader.end()?;
    match kind {
        CONNECTED => connected(connection, &mut reader).map(Answer::Connected),
        PREPARED => prepared(reader).map(Answer::Prepared),
        FETCHED => chunks(&mut reader, 1).map(Answer::Fetched),
        SUCCESS => {
            reader.end()?;
            reader.finish()?;
            Ok(Answer::Success)
        }
        REFUSED => {
            let message = match reader.is_field(1) {
                true => reader.text()?,
                false => "",
            };
            Ok(Answer::Refused(message))
        }
        _ => Err(malformed()),
    }
}

fn connected(connection: &str, reader: &mut Reader<'_>) -> Result<Connected, Error> {
    let server_version = match reader.is_field(1) {
        true => reader.text()?.to_owned(),
        false => String::new(),
    };
    if reader.is_field(2) {
        reader.text()?;
    }
    let version = match reader.is_field(3) {
        true => reader.number()?,
        false => 0,
    };
    if version != VERSION {
        return Err(crate::errors::other_version());
    }
    let is_id = |byte: u8| byte.is_ascii_graphic();
    match connection.len() {
        1..=CONNECTION_BYTES_MAX if connection.bytes().all(is_id) => Ok(Connected {
            connection: connection.to_owned(),
            server_version,
        }),
        _ => Err(malformed()),
    }
}

/// The types stand before the rows, and what the result is called behind them: all of it is gone through once, and the rows are read
/// again when they are told, but where they are one chunk: of several each is let go before the next, since what is known of one takes memory.
fn prepared(mut reader: Reader<'_>) -> Result<Prepared<'_>, Error> {
    reader.field(1)?;
    let (kinds, types) = reader.span(types::list)?;
    reader.field(2)?;
    let (_, names) = reader.span(|reader| {
        let count = reader.count(1)?;
        (0..count).try_for_each(|_| reader.text().map(drop))?;
        match count == kinds.len() {
            true => Ok(()),
            false => Err(malformed()),
        }
    })?;
    let goes_on = match reader.is_field(3) {
        true => reader.boolean()?,
        false => false,
    };
    let chunks = chunks(&mut reader, 4)?;
    let mut only = None;
    let mut rest = chunks.each(&kinds, types, |chunk| {
        only = (chunks.count == 1).then_some(chunk);
        Ok(())
    })?;
    rest.field(5)?;
    let result = rest.huge()?;
    rest.end()?;
    rest.finish()?;
    Ok(Prepared {
        types,
        names,
        goes_on,
        chunks,
        only,
        result,
    })
}

/// A list of chunks that is left out where there are none.
fn chunks<'a>(reader: &mut Reader<'a>, number: u16) -> Result<Chunks<'a>, Error> {
    if !reader.is_field(number) {
        return Ok(Chunks {
            reader: *reader,
            ..Chunks::NONE
        });
    }
    let count = reader.count(1)?;
    Ok(Chunks {
        count,
        reader: *reader,
    })
}

/// The names of a list that [`read`] has gone through.
pub fn names(written: &[u8]) -> Result<Vec<&str>, Error> {
    let mut reader = Reader::new(written);
    let count = reader.count(1)?;
    (0..count).map(|_| reader.text()).collect()
}

/// What stands behind the rows of [`Answer::Fetched`]: that it is the `wanted` answer, the first being 1, since a lost one is not sent again.
/// One without rows may have no number.
pub fn fetched_to_its_end(mut rest: Reader<'_>, wanted: u32, is_empty: bool) -> Result<(), Error> {
    rest.field(2)?;
    let number = rest.number()?;
    rest.end()?;
    rest.finish()?;
    match number {
        number if number == u64::from(wanted) => Ok(()),
        NO_NUMBER if is_empty => Ok(()),
        _ => Err(rows_lost()),
    }
}
