//! The messages of Quack, version 1: a head (what it is, of which connection) and a body, each an object.

use std::rc::Rc;

use souk_sdk::results::{Shape, Shapes};
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
    pub described: Described<'a>,
    /// A shape that was described so before.
    pub known: Option<Rc<Shape<Type>>>,
    pub goes_on: bool,
    pub chunks: Chunks<'a>,
    /// The one of them, where there is no other.
    pub only: Option<Chunk<'a>>,
    /// What more rows are asked for by.
    pub result: &'a [u8],
}

/// What describes the columns of a result, as it was written: the list of types, the number of the next field, the list of names.
#[derive(Clone, Copy)]
pub struct Described<'a> {
    pub whole: &'a [u8],
    types: usize,
}

impl<'a> Described<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<(Described<'a>, Vec<Type>), Error> {
        let ((kinds, types), whole) = reader.span(|reader| {
            let (kinds, types) = reader.span(types::list)?;
            reader.field(2)?;
            let count = reader.count(1)?;
            (0..count).try_for_each(|_| reader.text().map(drop))?;
            match count == kinds.len() {
                true => Ok((kinds, types.len())),
                false => Err(malformed()),
            }
        })?;
        Ok((Described { whole, types }, kinds))
    }

    pub fn types(&self) -> &'a [u8] {
        &self.whole[..self.types]
    }

    pub fn names(&self) -> Result<Vec<&'a str>, Error> {
        let mut reader = Reader::new(&self.whole[self.types..]);
        reader.field(2)?;
        let count = reader.count(1)?;
        (0..count).map(|_| reader.text()).collect()
    }

    /// What a shape is remembered by: this, a mark of whose columns it has, and how long its types are.
    pub fn with_mark(&self, mark: u8) -> Vec<u8> {
        let types = (self.types as u32).to_le_bytes();
        [self.whole, &[mark], &types].concat()
    }

    /// The same back, and the mark.
    pub fn of(remembered: &'a [u8]) -> Option<(Described<'a>, u8)> {
        let (rest, types) = remembered.split_last_chunk::<4>()?;
        let (mark, whole) = rest.split_last()?;
        let types = u32::from_le_bytes(*types) as usize;
        (types <= whole.len()).then_some((Described { whole, types }, *mark))
    }
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

/// Reads an answer. `shapes`: what has been described before is not read again.
pub fn read<'a>(response: &'a HttpResponse, shapes: &Shapes<Type>) -> Result<Answer<'a>, Error> {
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
        PREPARED => prepared(reader, shapes).map(Answer::Prepared),
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
fn prepared<'a>(mut reader: Reader<'a>, shapes: &Shapes<Type>) -> Result<Prepared<'a>, Error> {
    reader.field(1)?;
    let is_next = |known: &[u8]| {
        Described::of(known).is_some_and(|(known, _)| reader.goes_on_with(known.whole))
    };
    let known = shapes.find(is_next);
    let again = known
        .as_ref()
        .and_then(|shape| Described::of(shape.described()));
    let (described, read) = match again {
        Some((again, _)) => {
            let whole = reader.bytes(again.whole.len())?;
            let types = again.types;
            (Described { whole, types }, Vec::new())
        }
        None => Described::read(&mut reader)?,
    };
    let kinds = match &known {
        Some(shape) => shape.types.as_slice(),
        None => read.as_slice(),
    };
    let goes_on = match reader.is_field(3) {
        true => reader.boolean()?,
        false => false,
    };
    let chunks = chunks(&mut reader, 4)?;
    let mut only = None;
    let mut rest = chunks.each(kinds, described.types(), |chunk| {
        only = (chunks.count == 1).then_some(chunk);
        Ok(())
    })?;
    rest.field(5)?;
    let result = rest.huge()?;
    rest.end()?;
    rest.finish()?;
    Ok(Prepared {
        described,
        known,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a shape is remembered by says all that is needed of it.
    #[test]
    fn what_was_described_is_known_again() {
        let integer = [100, 0, 13, 0xff, 0xff];
        let whole = [&[1][..], &integer, &[2, 0, 1, 1, b'a']].concat();
        let mut reader = Reader::new(&whole);
        let (described, kinds) = Described::read(&mut reader).unwrap();
        reader.finish().unwrap();
        assert_eq!(kinds, [Type::Signed(4)]);
        let remembered = described.with_mark(b'q');
        let (again, mark) = Described::of(&remembered).unwrap();
        assert_eq!((again.whole, mark), (&whole[..], b'q'));
        assert_eq!(again.types(), &whole[..6]);
        assert_eq!(again.names().unwrap(), ["a"]);
        for wrong in [&[][..], &[0; 4], &[b'q', 1, 0, 0, 0]] {
            assert!(Described::of(wrong).is_none());
        }
    }
}
