//! The request at work: its columns, its rows as they arrive, and what it ends with.

use std::rc::Rc;

use souk_sdk::results::{Shape, Shapes};
use souk_sdk::{
    Batch, Chunk, Column, ColumnBuilder, Error, ErrorClass, Limits, Rows, Step, Value, short,
};
use tds_protocol::token::{ColMetaData, ServerError};

use crate::errors::told;
use crate::parameters;
use crate::protocol::malformed;
use crate::rows::{self, Found, Place, ROW_BYTES_MAX};
use crate::tokens::{self, Done, Token, Transaction, done};
use crate::types::{self, Reading};
use crate::values::{Room, Slot, push, push_chunks};

/// A batch is cut at this many rows or bytes: enough for its overhead to vanish, little enough to hold.
const BATCH_ROWS: usize = 8_192;
const BATCH_BYTES: u64 = 1 << 20;
/// Bytes of a row that are no value's.
const ROW_OVERHEAD_BYTES: u64 = 64 << 10;
/// Severities up to this one are no errors.
const INFORMATION: u8 = 10;
/// Who reads the rows.
#[derive(Clone, Copy, PartialEq)]
pub enum Reader {
    /// The host, as they are.
    Host,
    /// The host, as the contract's catalog.
    Catalog,
    /// The connector: one batch of them.
    Own,
    /// Nobody: a write that is tried has none.
    Nobody,
}

pub struct Job {
    pub id: u32,
    pub reader: Reader,
    pub limits: Limits,
    /// The caller's values that an error of the server's may quote.
    callers: Vec<Value>,
    shape: Option<Rc<Shape<Reading>>>,
    is_described: bool,
    places: Vec<Place>,
    builders: Vec<ColumnBuilder>,
    rows: u32,
    bytes: u64,
    /// On the heap, as few have one: a job of more than 128 bytes would be moved by the host.
    pub error: Option<Box<ServerError>>,
    /// A transaction has begun, and is open.
    has_begun: bool,
    is_open: bool,
    is_broken: bool,
    has_ended: bool,
}

/// What a token has come to.
pub enum Heard {
    /// So many bytes of what follows it belong to it.
    Taken(usize),
    /// At least so many belong to it.
    More(usize),
    /// The rest of the answer is not wanted.
    Refused(Error),
}

/// What a request has come to.
pub enum End {
    /// What the server refused, and the caller's values, which it may quote.
    Refused(ServerError, Vec<String>),
    Failed(Error),
    /// With what its reader, if it is the connector, has of it.
    Done(Vec<Chunk>),
}

#[cfg(target_arch = "wasm32")]
const _: () = assert!(size_of::<Job>() <= 128);

impl End {
    pub fn error(self) -> Option<Error> {
        match self {
            End::Refused(error, callers) => Some(told(error, &callers)),
            End::Failed(error) => Some(error),
            End::Done(_) => None,
        }
    }
}

impl Job {
    pub fn new(id: u32, reader: Reader, limits: Limits, callers: Vec<Value>) -> Job {
        Job {
            id,
            reader,
            limits,
            callers,
            shape: None,
            is_described: false,
            places: Vec::new(),
            builders: Vec::new(),
            rows: 0,
            bytes: 0,
            error: None,
            has_begun: false,
            is_open: false,
            is_broken: false,
            has_ended: false,
        }
    }

    /// The columns that `bytes` begin to describe, where those of a result before were described by the same bytes, and how many these are. They are
    /// not read again.
    pub fn known(
        &self,
        bytes: &[u8],
        shapes: &Shapes<Reading>,
    ) -> Option<(Rc<Shape<Reading>>, usize)> {
        if bytes.first() != Some(&tokens::COLUMNS) {
            return None;
        }
        let mark = mark(self.reader);
        let known = shapes.find(|known| match known {
            [marked, known @ ..] => *marked == mark && short::begins_with(bytes, known),
            [] => false,
        })?;
        let length = known.described().len() - 1;
        Some((known, length))
    }

    /// Takes columns that are known. An error ends the session.
    pub fn described(&mut self, shape: Rc<Shape<Reading>>) -> Result<Heard, Error> {
        if self.has_ended {
            return Err(malformed());
        }
        self.can_be_undone()?;
        Ok(match self.is_first_result() {
            Ok(()) => {
                self.shape = Some(shape);
                Heard::Taken(0)
            }
            Err(refused) => Heard::Refused(refused),
        })
    }

    /// Takes a token, which has these bytes, and of a row what follows it. An error ends the session.
    pub fn take(
        &mut self,
        token: Token,
        bytes: &[u8],
        rest: &[u8],
        shapes: &mut Shapes<Reading>,
        step: &mut Step,
    ) -> Result<Heard, Error> {
        match token {
            _ if self.has_ended => return Err(malformed()),
            Token::Row(is_compact) => return self.row(rest, is_compact, step),
            Token::Columns(columns) => {
                self.can_be_undone()?;
                if let Err(refused) = self.columns(&columns, bytes, shapes) {
                    return Ok(Heard::Refused(refused));
                }
            }
            Token::Error(error) if error.class > INFORMATION => {
                self.error.get_or_insert_with(|| Box::new(error));
            }
            Token::Transaction(kind) => self.transaction(kind)?,
            Token::Done(done) => self.done(done)?,
            Token::LoggedIn(_) => return Err(malformed()),
            Token::Error(_) | Token::PacketBytes(_) | Token::Elsewhere(_) | Token::Other => {}
        }
        Ok(Heard::Taken(0))
    }

    /// There is one, which the connector begins, and undoes.
    fn transaction(&mut self, kind: Transaction) -> Result<(), Error> {
        match kind {
            Transaction::Begun if self.has_begun => return Err(not_undone()),
            Transaction::Committed => return Err(not_undone()),
            Transaction::Begun => (self.has_begun, self.is_open) = (true, true),
            Transaction::Undone | Transaction::Ended => self.is_open = false,
        }
        Ok(())
    }

    /// What is read is part of what is undone.
    fn can_be_undone(&self) -> Result<(), Error> {
        match (self.has_begun, self.is_open) {
            (_, true) => Ok(()),
            (true, false) => Err(not_undone()),
            (false, false) => Err(no_transaction()),
        }
    }

    fn done(&mut self, done: Done) -> Result<(), Error> {
        if done.status & done::ATTENTION != 0 {
            return Err(malformed().detail("the server was not asked to stop"));
        }
        self.is_broken |= done.status & (done::ERROR | done::SERVER_ERROR) != 0;
        self.has_ended = done.is_last;
        Ok(())
    }

    fn columns(
        &mut self,
        described: &ColMetaData,
        bytes: &[u8],
        shapes: &mut Shapes<Reading>,
    ) -> Result<(), Error> {
        if described.columns.is_empty() {
            return Ok(());
        }
        self.is_first_result()?;
        self.shape = Some(shape(shapes, described, bytes, self.reader)?);
        Ok(())
    }

    /// The request has no other result, and is one that has any.
    fn is_first_result(&self) -> Result<(), Error> {
        match self.shape.is_some() || self.reader == Reader::Nobody {
            false => Ok(()),
            true => Err(Error::source_failed(
                "several_results",
                "the statement has more than one result: write it as one query",
            )),
        }
    }

    fn row(&mut self, rest: &[u8], is_compact: bool, step: &mut Step) -> Result<Heard, Error> {
        let shape = self.shape.clone().ok_or_else(malformed)?;
        let length = match rows::find(&shape.types, rest, is_compact, &mut self.places)? {
            Found::Row(length) => length,
            // Half of its bytes may be halves of letters.
            Found::More(least)
                if least as u64 / 2 > self.limits.bytes_max.saturating_add(ROW_OVERHEAD_BYTES) =>
            {
                return Ok(Heard::Refused(Error::too_many_bytes(self.limits.bytes_max)));
            }
            Found::More(least) if least > ROW_BYTES_MAX => {
                return Ok(Heard::Refused(Error::limit_exceeded(
                    "row_bytes",
                    "a row is larger than 12 MiB",
                )));
            }
            Found::More(least) => return Ok(Heard::More(least)),
        };
        if self.rows >= self.limits.rows_max {
            return Ok(Heard::Refused(Error::too_many_rows(self.limits.rows_max)));
        }
        if self.builders.is_empty() {
            self.builders = shape.columns.builders();
        }
        let mut room = Room::of(self.limits.bytes_max);
        let columns = shape.types.iter().zip(&self.places);
        for ((reading, place), column) in columns.zip(&mut self.builders) {
            let mut into = Slot {
                kind: reading.kind,
                column,
                room: &mut room,
            };
            match append(*place, rest, &mut into) {
                Ok(()) => {}
                // Behind what does not follow the protocol nothing can be read.
                Err(error) if error.class == ErrorClass::Source => return Err(error),
                Err(error) => return Ok(Heard::Refused(error)),
            }
        }
        self.rows += 1;
        let batch: u64 = self.builders.iter().map(|one| one.bytes() as u64).sum();
        if self.bytes + batch > self.limits.bytes_max {
            return Ok(Heard::Refused(Error::too_many_bytes(self.limits.bytes_max)));
        }
        let rows = self.builders.first().map_or(0, ColumnBuilder::rows);
        if self.reader != Reader::Own && (rows >= BATCH_ROWS || batch >= BATCH_BYTES) {
            self.cut(batch, step);
        }
        Ok(Heard::Taken(length))
    }

    /// Tells what rows there are.
    fn cut(&mut self, bytes: u64, step: &mut Step) {
        self.describe(step);
        let builders = std::mem::take(&mut self.builders);
        let Some(shape) = &self.shape else { return };
        shape.columns.remember(&builders);
        self.bytes += bytes;
        // Of at most as many as a batch has.
        let rows = builders.first().map_or(0, ColumnBuilder::rows) as u32;
        let chunks = builders.into_iter().map(ColumnBuilder::finish).collect();
        step.batch(self.id, Batch { rows, chunks });
    }

    fn describe(&mut self, step: &mut Step) {
        if let Some(shape) = &self.shape
            && !std::mem::replace(&mut self.is_described, true)
        {
            step.columns(self.id, shape.number, shape.columns.describe());
        }
    }

    /// Whether the server has not said that what has begun is undone. After an error it is (`XACT_ABORT`), said or not.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// The message is over. An error ends the session.
    pub fn conclude(mut self, step: &mut Step) -> Result<End, Error> {
        if !self.has_ended {
            return Err(malformed().detail("an answer stopped before its end"));
        }
        if let Some(error) = self.error.take() {
            let callers = parameters::quoted(&self.callers);
            return Ok(End::Refused(*error, callers));
        }
        if self.is_open {
            return Err(malformed().detail("a statement left its transaction open"));
        }
        if self.is_broken {
            let failed = Error::source_failed(
                "sql_error",
                "SQL Server gave the statement up, and does not say why",
            );
            return Ok(End::Failed(failed));
        }
        if !self.has_begun {
            return Err(no_transaction());
        }
        match (self.reader, &self.shape) {
            (Reader::Nobody, _) => Ok(End::Done(Vec::new())),
            (_, None) => Ok(End::Failed(Error::source_failed(
                "no_result",
                "the statement returns no columns",
            ))),
            (Reader::Own, _) => {
                let builders = std::mem::take(&mut self.builders).into_iter();
                Ok(End::Done(builders.map(ColumnBuilder::finish).collect()))
            }
            _ => {
                self.describe(step);
                if !self.builders.is_empty() {
                    self.cut(0, step);
                }
                Ok(End::Done(Vec::new()))
            }
        }
    }
}

fn no_transaction() -> Error {
    Error::source_failed(
        "no_transaction",
        "the server has begun no transaction, without which nothing undoes what a statement might write: does a proxy stand before it?",
    )
}

fn not_undone() -> Error {
    Error::permission(
        "read_only",
        "the statement has ended the transaction in which all of it is undone: what it has written may stand; look for COMMIT in what it calls",
    )
}

/// Appends the value at a place of a row.
#[inline]
fn append(place: Place, row: &[u8], into: &mut Slot<'_>) -> Result<(), Error> {
    match place {
        Place::Null => {
            into.column.null();
            Ok(())
        }
        Place::At(from, bytes) => push(row.get(from..from + bytes).ok_or_else(malformed)?, into),
        Place::Chunks(from, _) => push_chunks(rows::chunks(row, from), into),
    }
}

/// The catalog has names of its own for what is described by the same bytes.
fn mark(reader: Reader) -> u8 {
    u8::from(reader == Reader::Catalog)
}

/// The shape of a description, of these bytes: a new one ([`Job::known`]).
fn shape(
    shapes: &mut Shapes<Reading>,
    described: &ColMetaData,
    bytes: &[u8],
    reader: Reader,
) -> Result<Rc<Shape<Reading>>, Error> {
    let both = described.columns.iter().map(types::column);
    let both = both.collect::<Result<Vec<_>, Error>>()?;
    let (columns, readings): (Vec<Column>, Vec<Reading>) = both.into_iter().unzip();
    let columns = match reader {
        Reader::Catalog => catalog(&columns)?,
        _ => columns,
    };
    Ok(shapes.add(&[&[mark(reader)], bytes].concat(), columns, readings))
}

/// The contract's columns, if these are of their types.
fn catalog(columns: &[Column]) -> Result<Vec<Column>, Error> {
    let wanted = Rows::schema_columns();
    let kinds = |columns: &[Column]| columns.iter().map(|one| one.kind).collect::<Vec<_>>();
    match kinds(columns) == kinds(&wanted) {
        true => Ok(wanted),
        false => Err(malformed().detail("the catalog has other columns than were asked for")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Next;

    /// Columns that come again are known by each of their bytes. Those of the catalog have other names.
    #[test]
    fn columns_are_known_by_their_bytes() {
        let described = [0x81, 1, 0, 0, 0, 0, 0, 1, 0, 0x26, 4, 1, b'a', 0];
        let limits = Limits {
            rows_max: 1,
            bytes_max: 1,
            timeout_ms: 1,
        };
        let mut shapes = Shapes::default();
        let job = |reader| Job::new(1, reader, limits, Vec::new());
        assert!(job(Reader::Host).known(&described, &shapes).is_none());
        let next = tokens::next(&described).unwrap();
        let Next::Token(Token::Columns(columns), length) = next else {
            panic!("{next:?}");
        };
        assert_eq!(length, described.len());
        shape(&mut shapes, &columns, &described, Reader::Host).unwrap();
        let whole = [&described[..], &[0xd1, 4, 7, 0, 0, 0]].concat();
        let (known, length) = job(Reader::Host).known(&whole, &shapes).unwrap();
        assert_eq!((known.number, length), (0, described.len()));
        assert_eq!(known.columns.columns()[0].name, "a");
        assert!(job(Reader::Catalog).known(&whole, &shapes).is_none());
        for at in 0..described.len() {
            let mut other = whole.clone();
            other[at] ^= 1;
            assert!(job(Reader::Host).known(&other, &shapes).is_none(), "{at}");
            let cut = &described[..at];
            assert!(job(Reader::Host).known(cut, &shapes).is_none(), "{at}");
        }
    }
}
