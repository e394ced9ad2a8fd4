//! What is on the wire, in the order sent: one job per Sync, unless it says otherwise. Rows are decoded here, in place.

use crate::errors::ServerError;
use crate::protocol::{Reader, malformed};
use crate::statements::{Ask, Description, Statement};
use souk_sdk::{Batch, Column, ColumnBuilder, ColumnType, Error, Step};
use std::rc::Rc;

/// A batch is cut at this many rows or bytes: enough for its overhead to vanish, little enough to hold.
const BATCH_ROWS: u32 = 8_192;
const BATCH_BYTES: u64 = 1 << 20;
/// What is set aside for a request before it is written, at most.
pub const ROOM_MAX: usize = 4 << 10;

/// It goes into the queue and out of it by moves, which are calls of the host where what is moved has more than 128 bytes: what only few requests
/// have is on the heap.
pub enum Job {
    Setup(Setup),
    /// What groups need is parsed. `failed`: the server does not know it.
    SetupGroups {
        failed: bool,
    },
    /// So many statements open a transaction at a pooler's backend, which the next job is in, up to the same Sync.
    Begin(u8),
    Prepare(Prepare),
    Lookup(Lookup),
    Execute(Execute),
    Probe(Probe),
    /// A transaction is taken back: one at a pooler's backend, or one of the session's own that has stayed, or whose statement is answered already.
    /// `unlocks`: then locks that a statement has taken for the session are given up. `is_lost`: what takes it back, the server does not know any more.
    End {
        unlocks: bool,
        is_lost: bool,
    },
    /// Such locks are given up at the session's own backend. `struck`: a cancel that was meant for the statement has met this, or what takes its
    /// transaction back.
    Unlock {
        struck: bool,
    },
}

impl Job {
    /// The end of a transaction of the session's own.
    pub const fn end() -> Job {
        Job::End {
            unlocks: false,
            is_lost: false,
        }
    }
}

#[cfg(target_arch = "wasm32")]
const _: () = assert!(size_of::<Job>() <= 128);

/// A backend says whose it is, or parses what every statement is followed by.
pub struct Setup {
    /// The backend has said, if it was asked: that it is the session's own, and took its settings.
    pub is_own: bool,
    /// What was meant for others has met it: it is parsed again.
    pub struck: bool,
}

/// A statement is being prepared.
pub struct Prepare {
    pub number: u64,
    pub description: Description,
    pub error: Option<Box<ServerError>>,
}

/// Types of a statement's columns are being looked up.
pub struct Lookup {
    pub number: u64,
    pub description: Description,
    /// How often what was meant for others has met it.
    pub turned_away: u8,
    pub error: Option<Box<ServerError>>,
}

/// A write is being tried, which must fail.
pub struct Probe {
    pub id: u32,
    /// How often what was meant for others has met it.
    pub turned_away: u8,
    pub error: Option<Box<ServerError>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    No,
    /// As soon as it is this job's turn at the server.
    Wanted,
    Sent,
}

/// A statement runs, and its rows arrive.
pub struct Execute {
    pub ask: Ask,
    pub statement: Rc<Statement>,
    pub cancel: Cancel,
    /// So many statements of ours stand before it under the same Sync, and are not complete yet.
    pub before: u8,
    /// Another request follows under the same Sync.
    pub is_followed: bool,
    /// It is answered as soon as it is complete, and the next job takes its transaction back.
    pub ends_behind: bool,
    /// It shares a transaction with others.
    pub is_grouped: bool,
    /// The statement's own `CommandComplete` is there.
    pub complete: bool,
    pub error: Option<Box<ServerError>>,
    /// Its parameters or columns are not those that it was prepared with.
    pub has_changed: bool,
    /// We fail the request ourselves; what still arrives is thrown away.
    refused: Option<Box<Error>>,
    announced: bool,
    builders: Vec<ColumnBuilder>,
    rows: u32,
    bytes: u64,
    batch_rows: u32,
    batch_bytes: u64,
}

impl Execute {
    pub fn new(ask: Ask, statement: Rc<Statement>) -> Execute {
        Execute {
            ask,
            statement,
            cancel: Cancel::No,
            before: 0,
            is_followed: false,
            ends_behind: false,
            is_grouped: false,
            complete: false,
            error: None,
            has_changed: false,
            refused: None,
            announced: false,
            builders: Vec::new(),
            rows: 0,
            bytes: 0,
            batch_rows: 0,
            batch_bytes: 0,
        }
    }

    /// A statement of ours that stands before it is complete. What else could have its name (`PREPARE` in a function of the seller's) says so.
    #[inline]
    pub fn begun(&mut self, tag: &[u8]) -> Result<(), Error> {
        if !matches!(tag, b"BEGIN\0" | b"SAVEPOINT\0" | b"ROLLBACK\0") {
            return Err(malformed().detail("a statement was not taken back"));
        }
        self.before -= 1;
        Ok(())
    }

    /// Whether a row that comes now is one of its own.
    #[inline]
    pub fn takes_rows(&self) -> bool {
        !self.complete && self.before == 0
    }

    /// One `DataRow`, straight into the columns.
    #[inline]
    pub fn row(&mut self, body: &[u8], step: &mut Step) {
        if self.refused.is_some() || !self.admit(body.len()) {
            return;
        }
        if self.batch_rows == 0 {
            self.builders = self.statement.columns.builders();
        }
        if let Err(error) = self.decode(body) {
            return self.refuse(error);
        }
        self.rows += 1;
        self.batch_rows += 1;
        if self.batch_rows == BATCH_ROWS || self.batch_bytes >= BATCH_BYTES {
            match self.broken_text() {
                None => self.cut(step),
                Some(error) => self.refuse(error),
            }
        }
    }

    /// What is wrong with a text of the batch: a server looks at what it sends, but what poses as one may not. They are looked at together, which is
    /// much quicker than one value after the other.
    fn broken_text(&self) -> Option<Error> {
        let columns = self.statement.columns.columns().iter();
        let mut columns = columns.zip(&self.builders);
        let (column, _) = columns
            .find(|(_, builder)| builder.kind() == ColumnType::Text && !builder.is_text(0))?;
        Some(of_column(column, broken_text()))
    }

    /// Counts a row of that many bytes; false if it is one too many.
    pub fn admit(&mut self, body: usize) -> bool {
        let bytes = body.saturating_sub(2 + 4 * self.statement.readings.len()) as u64;
        self.bytes += bytes;
        self.batch_bytes += bytes;
        if self.rows >= self.ask.limits.rows_max {
            self.refuse(Error::too_many_rows(self.ask.limits.rows_max));
        } else if self.bytes > self.ask.limits.bytes_max {
            self.refuse(Error::too_many_bytes(self.ask.limits.bytes_max));
        }
        self.refused.is_none()
    }

    /// A row that is not even here yet is too long for the request; true if nothing speaks against it.
    pub fn admit_oversized(&mut self, length: usize) -> bool {
        if self.refused.is_none() && length as u64 <= self.ask.limits.bytes_max {
            // Within the request's limits, but not within what a session buffers.
            self.refuse(Error::limit_exceeded(
                "row_bytes",
                "a row is larger than 16 MiB",
            ));
        }
        self.refused.is_none() && self.admit(length)
    }

    fn decode(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut reader = Reader(body);
        if usize::from(reader.u16()?) != self.builders.len() {
            return Err(malformed());
        }
        let readings = self.statement.readings.iter();
        let columns = readings.zip(self.statement.columns.columns());
        for ((reading, column), builder) in columns.zip(&mut self.builders) {
            let Some(value) = reader.value()? else {
                builder.null();
                continue;
            };
            let before = reading.may_grow().then(|| builder.bytes());
            reading
                .push(value, builder)
                .map_err(|error| of_column(column, error))?;
            if let Some(before) = before {
                let written = builder.bytes().saturating_sub(before);
                let more = written.saturating_sub(value.len()) as u64;
                self.bytes += more;
                self.batch_bytes += more;
                if self.bytes > self.ask.limits.bytes_max {
                    return Err(Error::too_many_bytes(self.ask.limits.bytes_max));
                }
            }
        }
        Ok(())
    }

    /// Fails the request and has the server stop, unless all of its answer is here already.
    #[cold]
    fn refuse(&mut self, error: Error) {
        self.refused.get_or_insert_with(|| Box::new(error));
        // The cancel ends its group, and the next run may have as much.
        self.statement.stays_alone();
        self.builders = Vec::new();
        self.batch_rows = 0;
        if self.cancel == Cancel::No {
            self.cancel = Cancel::Wanted;
        }
    }

    /// What it is decoded by is not what the server sends.
    #[cold]
    pub fn changed(&mut self) {
        self.has_changed = true;
        self.refused.get_or_insert_with(|| Box::new(changing()));
    }

    /// Whether it can run again as if nothing had been: the host has seen nothing of it.
    pub fn unseen(&self) -> bool {
        self.has_changed || !self.announced && self.refused.is_none()
    }

    /// Whether the host has rows of it and waits for more: it cannot run again, and a cancel that was meant for another one would fail it.
    pub fn is_streaming(&self) -> bool {
        self.announced && self.refused.is_none() && self.cancel == Cancel::No
    }

    /// The request ends: with `ReadyForQuery`, or before it where what follows is of others.
    pub fn finish(mut self, step: &mut Step) {
        let failed = match (self.refused.take(), self.error.take()) {
            (Some(error), _) => Some(*error),
            // An error after the statement's own end is about what follows it; the rows are whole.
            (None, Some(error)) if !self.complete => {
                let is_bound = !self.ask.parameters.is_empty();
                Some(error.blame(self.cancel != Cancel::No, is_bound))
            }
            (None, _) => self.broken_text(),
        };
        match failed {
            Some(error) => step.failed(self.ask.id, error),
            None if !self.complete => step.failed(self.ask.id, malformed()),
            None => {
                self.announce(step);
                if self.batch_rows > 0 {
                    self.cut(step);
                }
                step.done(self.ask.id);
            }
        }
    }

    fn announce(&mut self, step: &mut Step) {
        if !std::mem::replace(&mut self.announced, true) {
            step.columns(
                self.ask.id,
                self.statement.shape,
                self.statement.columns.describe(),
            );
        }
    }

    fn cut(&mut self, step: &mut Step) {
        self.announce(step);
        let builders = std::mem::take(&mut self.builders);
        self.statement.columns.remember(&builders);
        let chunks = builders.into_iter().map(ColumnBuilder::finish).collect();
        step.batch(
            self.ask.id,
            Batch {
                rows: self.batch_rows,
                chunks,
            },
        );
        self.batch_rows = 0;
        self.batch_bytes = 0;
    }
}

#[cold]
fn broken_text() -> Error {
    Error::source_failed(
        "invalid_text",
        "a text in the result is not valid UTF-8, as the server has promised",
    )
}

/// The statement meant something else each time.
#[cold]
fn changing() -> Error {
    Error::unavailable(
        "conflict",
        "what the statement names is being changed at the database; try again",
    )
}

/// Tells the owner which column it was. What it is called is not for every caller.
#[cold]
fn of_column(column: &Column, mut error: Error) -> Error {
    let named = format!("column \"{}\"", column.name);
    let detail = match error.detail.take() {
        Some(said) => format!("{named}: {said}"),
        None => named,
    };
    error.detail(detail)
}
