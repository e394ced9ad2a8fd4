//! The request at work. Rows are decoded here, in place.

use crate::errors::ServerError;
use crate::identity;
use crate::protocol::{self, EOF, ERROR, OK, Reader, malformed};
use crate::statements::{Arriving, Shape};
use souk_sdk::{Batch, ColumnBuilder, Error, Limits, Step, Value};
use std::rc::Rc;

/// A batch is cut at this many rows or bytes: enough for its overhead to vanish, little enough to hold.
const BATCH_ROWS: u32 = 8_192;
const BATCH_BYTES: u64 = 1 << 20;
/// What a server's tables and results have at most.
const COLUMNS_MAX: usize = 4_096;
/// Of a result that was refused so much is read to its end; of a longer one the wire is closed, which stops the server.
const REFUSED_BYTES_MAX: u64 = 1 << 20;

#[allow(
    clippy::large_enum_variant,
    reason = "nearly every job is an execution, and is moved once"
)]
pub enum Job {
    /// What a session begins with: which server it is, and what a transaction waits for.
    Setup(identity::Answer, identity::Answer),
    /// Another session's statement is being stopped.
    Errand {
        id: u32,
        error: Option<ServerError>,
    },
    Prepare(Prepare),
    Execute(Execute),
    /// A write is being tried, which must fail.
    Probe {
        id: u32,
        error: Option<ServerError>,
    },
}

impl Job {
    /// The request that it is for.
    pub fn id(&self) -> Option<u32> {
        match self {
            Job::Setup(..) => None,
            Job::Prepare(job) => Some(job.ask.id),
            Job::Execute(job) => Some(job.ask.id),
            Job::Probe { id, .. } | Job::Errand { id, .. } => Some(*id),
        }
    }
}

/// One request for rows, whatever comes of it.
pub struct Ask {
    pub id: u32,
    pub parameters: Vec<Value>,
    pub limits: Limits,
    pub is_catalog: bool,
    /// Sent a second time already.
    pub retried: bool,
}

/// A statement is being prepared.
pub struct Prepare {
    pub ask: Ask,
    pub text: Box<str>,
    pub error: Option<ServerError>,
    /// Its number, parameters and columns.
    pub described: Option<(u32, usize, usize)>,
    /// Messages that are still to come.
    left: usize,
}

impl Prepare {
    pub fn new(text: Box<str>, ask: Ask) -> Prepare {
        Prepare {
            ask,
            text,
            error: None,
            described: None,
            left: 0,
        }
    }

    /// One message; true if it was the last one. What parameters and columns are is only known when the statement runs.
    pub fn message(&mut self, body: &[u8], deprecates_eof: bool) -> Result<bool, Error> {
        if self.described.is_some() {
            self.left -= 1;
            return Ok(self.left == 0);
        }
        match body {
            [ERROR, ..] => {
                self.error = Some(ServerError::read(body)?);
                Ok(true)
            }
            [OK, rest @ ..] => {
                let mut reader = Reader(rest);
                let id = reader.u32()?;
                let columns = usize::from(reader.u16()?);
                let parameters = usize::from(reader.u16()?);
                self.described = Some((id, parameters, columns));
                let ends = |count: usize| usize::from(count > 0 && !deprecates_eof);
                self.left = columns + ends(columns) + parameters + ends(parameters);
                Ok(self.left == 0)
            }
            _ => Err(malformed()),
        }
    }
}

/// What of an answer comes next.
enum Part {
    Head,
    Definitions(usize),
    DefinitionsEnd,
    Rows,
}

/// What a request fails with, and how much has come since.
struct Refused {
    error: Error,
    bytes: u64,
}

/// A statement runs, and its rows arrive. It is handed on by moves, which are calls of the host where what is moved has more than 128 bytes: what only
/// few requests have is on the heap.
pub struct Execute {
    pub ask: Ask,
    /// The statement's place.
    pub place: usize,
    pub error: Option<Box<ServerError>>,
    /// The rows have come to their end.
    complete: bool,
    /// We fail the request ourselves; what still arrives is thrown away.
    refused: Option<Box<Refused>>,
    part: Part,
    arriving: Option<Arriving>,
    pub shape: Option<Rc<Shape>>,
    announced: bool,
    builders: Vec<ColumnBuilder>,
    rows: u32,
    bytes: u64,
    batch_rows: u32,
    batch_bytes: u64,
}

impl Execute {
    pub fn new(ask: Ask, place: usize, known: Option<Rc<Shape>>) -> Execute {
        Execute {
            ask,
            place,
            error: None,
            complete: false,
            refused: None,
            part: Part::Head,
            arriving: Some(Arriving::new(known)),
            shape: None,
            announced: false,
            builders: Vec::new(),
            rows: 0,
            bytes: 0,
            batch_rows: 0,
            batch_bytes: 0,
        }
    }

    /// One message of the answer; true if it was the last one.
    #[inline]
    pub fn message(
        &mut self,
        body: &[u8],
        deprecates_eof: bool,
        step: &mut Step,
    ) -> Result<bool, Error> {
        match (&self.part, body.first()) {
            (Part::Rows, Some(&OK)) => self.row(body, step).map(|()| false),
            (Part::Rows, Some(&EOF)) => {
                self.complete = true;
                Ok(true)
            }
            (Part::Head | Part::Rows, Some(&ERROR)) => {
                self.fail(ServerError::read(body)?);
                Ok(true)
            }
            (Part::Head, Some(&OK)) => {
                // Nothing was read: the statement has no rows.
                self.refuse(no_result());
                Ok(true)
            }
            (Part::Head, Some(_)) => {
                let count = Reader(body).length()?;
                if !(1..=COLUMNS_MAX).contains(&count) {
                    return Err(malformed());
                }
                self.part = Part::Definitions(count);
                Ok(false)
            }
            (Part::Definitions(left), Some(_)) => {
                let left = left - 1;
                if let Some(arriving) = &mut self.arriving {
                    arriving.definition(body)?;
                }
                self.part = match (left, deprecates_eof) {
                    (0, true) => self.described()?,
                    (0, false) => Part::DefinitionsEnd,
                    _ => Part::Definitions(left),
                };
                Ok(false)
            }
            (Part::DefinitionsEnd, Some(&EOF)) => {
                self.part = self.described()?;
                Ok(false)
            }
            _ => Err(malformed()),
        }
    }

    fn described(&mut self) -> Result<Part, Error> {
        let arriving = self.arriving.take().ok_or_else(malformed)?;
        let shape = arriving.shape(self.place as u32, self.ask.is_catalog);
        match shape {
            Ok(shape) => self.shape = Some(shape),
            Err(error) => self.refuse(error),
        }
        Ok(Part::Rows)
    }

    /// The server's first error is what the request fails with.
    pub fn fail(&mut self, error: ServerError) {
        self.error.get_or_insert_with(|| Box::new(error));
    }

    #[inline]
    fn row(&mut self, body: &[u8], step: &mut Step) -> Result<(), Error> {
        if !self.admit(body.len())? {
            return Ok(());
        }
        let Some(shape) = &self.shape else {
            return Err(malformed());
        };
        if self.batch_rows == 0 {
            self.builders = shape.columns.builders();
        }
        let decoded = decode(body, shape, &mut self.builders);
        if let Err(error) = decoded {
            self.refuse(error);
            return Ok(());
        }
        self.rows += 1;
        self.batch_rows += 1;
        if self.batch_rows == BATCH_ROWS || self.batch_bytes >= BATCH_BYTES {
            self.cut(step);
        }
        Ok(())
    }

    /// Counts a row of that many bytes; false if it is one too many. The error ends the session.
    #[inline]
    fn admit(&mut self, body: usize) -> Result<bool, Error> {
        if let Some(refused) = &mut self.refused {
            refused.bytes += body as u64;
            return match refused.bytes > REFUSED_BYTES_MAX {
                true => Err(refused.error.clone()),
                false => Ok(false),
            };
        }
        let columns = self.shape.as_ref().map_or(0, |shape| shape.readings.len());
        let bytes = body.saturating_sub(1 + (columns + 9) / 8) as u64;
        self.bytes += bytes;
        self.batch_bytes += bytes;
        if self.rows >= self.ask.limits.rows_max {
            self.refuse(Error::too_many_rows(self.ask.limits.rows_max));
        } else if self.bytes > self.ask.limits.bytes_max {
            self.refuse(Error::too_many_bytes(self.ask.limits.bytes_max));
        }
        Ok(self.refused.is_none())
    }

    /// Whether a row of which at least so many bytes are to come is not wanted: because nothing more is, or because it is too long.
    pub fn discards(
        &mut self,
        first: Option<u8>,
        length: usize,
        kept: usize,
    ) -> Result<bool, Error> {
        if !matches!(self.part, Part::Rows) || first != Some(OK) {
            return Ok(false);
        }
        let over = length as u64 > self.ask.limits.bytes_max.saturating_add(1 << 16);
        if self.refused.is_none() && length > kept && !over {
            // Within the request's limits, but not within what a session keeps.
            self.refuse(Error::limit_exceeded(
                "row_bytes",
                "a row is larger than 20 MiB",
            ));
        }
        match over || self.refused.is_some() {
            true => self.admit(length).map(|admitted| !admitted),
            false => Ok(false),
        }
    }

    /// Fails the request, and throws away what is still to come.
    #[cold]
    pub fn refuse(&mut self, error: Error) {
        self.refused
            .get_or_insert_with(|| Box::new(Refused { error, bytes: 0 }));
        self.builders = Vec::new();
        self.batch_rows = 0;
    }

    /// Whether it can run again as if nothing had been: the host has seen nothing of it.
    pub fn unseen(&self) -> bool {
        !self.announced && self.refused.is_none() && !self.complete
    }

    /// All rows have come, and nothing has failed.
    pub fn has_all(&self) -> bool {
        self.complete && self.refused.is_none() && self.error.is_none()
    }

    /// All that matters to the request has been answered: it ends.
    pub fn finish(mut self, step: &mut Step) {
        let bound = !self.ask.parameters.is_empty();
        let failed = match (self.refused.take(), self.error.take()) {
            (Some(refused), _) => Some(refused.error),
            (None, Some(error)) => Some(error.of_statement(bound)),
            (None, None) if !self.complete => Some(malformed()),
            (None, None) => None,
        };
        if let Some(error) = failed {
            return step.failed(self.ask.id, error);
        }
        self.announce(step);
        if self.batch_rows > 0 {
            self.cut(step);
        }
        step.done(self.ask.id);
    }

    fn announce(&mut self, step: &mut Step) {
        if let Some(shape) = &self.shape
            && !std::mem::replace(&mut self.announced, true)
        {
            step.columns(self.ask.id, shape.number, shape.columns.describe());
        }
    }

    fn cut(&mut self, step: &mut Step) {
        self.announce(step);
        let builders = std::mem::take(&mut self.builders);
        if let Some(shape) = &self.shape {
            shape.columns.remember(&builders);
        }
        let chunks = builders.into_iter().map(ColumnBuilder::finish).collect();
        let rows = std::mem::take(&mut self.batch_rows);
        self.batch_bytes = 0;
        step.batch(self.ask.id, Batch { rows, chunks });
    }
}

/// One row, straight into the columns.
#[inline]
fn decode(body: &[u8], shape: &Shape, builders: &mut [ColumnBuilder]) -> Result<(), Error> {
    let mut reader = Reader(body);
    reader.u8()?;
    // The first two bits stand for nothing.
    let nulls = reader.take((builders.len() + 9) / 8)?;
    for (at, (reading, builder)) in shape.readings.iter().zip(builders).enumerate() {
        let bit = at + 2;
        match nulls[bit / 8] >> (bit % 8) & 1 {
            1 => builder.null(),
            _ => reading.push(&mut reader, builder)?,
        }
    }
    match reader.0 {
        [] => Ok(()),
        _ => Err(protocol::malformed()),
    }
}

pub fn no_result() -> Error {
    Error::source_failed("no_result", "the statement returns no columns")
}
