//! The rows of a result, chunk by chunk, as batches of columns.

use std::rc::Rc;

use souk_sdk::results::{Shape, Shapes, Told, value_bytes_max};
use souk_sdk::{Column, Error, Limits, Rows, Step};

use crate::errors::malformed;
use crate::protocol::{Chunks, Described, Prepared, fetched_to_its_end};
use crate::types::{self, Type};
use crate::values::push_all;
use crate::vectors::Chunk;
use crate::wire::Reader;

/// The types and names that describe columns.
const DESCRIBED_BYTES_MAX: usize = 1 << 20;

/// Rows that are told column by column, before it is looked at how long their batch has become. A multiple of eight: then no mask begins within a byte.
const ROWS_AT_ONCE: usize = 256;

/// Whose columns a result has.
#[derive(Clone, Copy, PartialEq)]
pub enum Columns {
    /// The statement's.
    Own,
    /// The contract's of a catalog.
    Catalog,
}

/// A result as far as it was read.
pub struct Reading {
    columns: Columns,
    shape: Option<Rc<Shape<Type>>>,
    told: Told,
}

impl Reading {
    pub fn new(columns: Columns) -> Reading {
        Reading {
            columns,
            shape: None,
            told: Told::default(),
        }
    }

    /// Tells the columns of a result and its first rows.
    pub fn begin(
        &mut self,
        id: u32,
        first: &Prepared<'_>,
        limits: &Limits,
        shapes: &mut Shapes<Type>,
        step: &mut Step,
    ) -> Result<(), Error> {
        let shape = self.shape_of(shapes, first)?;
        step.columns(id, shape.number, shape.columns.describe());
        if let Some(chunk) = &first.only {
            tell(&mut self.told, &shape, id, chunk, limits, step)?;
        }
        self.shape = Some(shape);
        match first.only {
            Some(_) => Ok(()),
            None => self.rows(id, first.chunks, limits, step).map(drop),
        }
    }

    /// Tells more rows, of the answer of that number.
    pub fn more(
        &mut self,
        id: u32,
        number: u32,
        chunks: Chunks<'_>,
        limits: &Limits,
        step: &mut Step,
    ) -> Result<(), Error> {
        let rest = self.rows(id, chunks, limits, step)?;
        fetched_to_its_end(rest, number, chunks.count == 0)
    }

    fn rows<'a>(
        &mut self,
        id: u32,
        chunks: Chunks<'a>,
        limits: &Limits,
        step: &mut Step,
    ) -> Result<Reader<'a>, Error> {
        let shape = self.shape.as_ref().ok_or_else(malformed)?;
        // Each chunk says its types again.
        let (described, _) = Described::of(shape.described()).ok_or_else(malformed)?;
        let told = &mut self.told;
        chunks.each(&shape.types, described.types(), |chunk| {
            tell(told, shape, id, &chunk, limits, step)
        })
    }

    /// The shape of a description: one that is known, or a new one.
    fn shape_of(
        &self,
        shapes: &mut Shapes<Type>,
        first: &Prepared<'_>,
    ) -> Result<Rc<Shape<Type>>, Error> {
        let mark = match self.columns {
            Columns::Own => b'q',
            Columns::Catalog => b'c',
        };
        if let Some(known) = &first.known
            && Described::of(known.described()).is_some_and(|(_, known)| known == mark)
        {
            return Ok(known.clone());
        }
        let described = &first.described;
        if described.whole.len() > DESCRIBED_BYTES_MAX {
            return Err(Error::limit_exceeded(
                "columns_too_long",
                "the names and types of the result's columns are longer than 1 MiB",
            ));
        }
        shapes.of(&described.with_mark(mark), || {
            let types = types::list(&mut Reader::new(described.types()))?;
            let own = types::columns(&types, &described.names()?);
            let columns = match self.columns {
                Columns::Own if own.is_empty() => return Err(malformed()),
                Columns::Own => own,
                Columns::Catalog => catalog(&own)?,
            };
            Ok((columns, types))
        })
    }
}

/// Tells the rows of a chunk.
fn tell(
    told: &mut Told,
    shape: &Shape<Type>,
    id: u32,
    chunk: &Chunk<'_>,
    limits: &Limits,
    step: &mut Step,
) -> Result<(), Error> {
    let room = value_bytes_max(limits);
    let mut batches = told.page(shape, limits);
    for begin in (0..chunk.rows).step_by(ROWS_AT_ONCE) {
        let rows = begin..chunk.rows.min(begin + ROWS_AT_ONCE);
        let full = batches.rows_at_once(rows.len() as u32, |place, kind, into| {
            push_all(kind, &chunk.columns[place], rows.clone(), into, room)
        })?;
        full.into_iter().for_each(|batch| step.batch(id, batch));
    }
    let rest = batches.rest();
    rest.into_iter().for_each(|batch| step.batch(id, batch));
    Ok(())
}

fn catalog(own: &[Column]) -> Result<Vec<Column>, Error> {
    let columns = Rows::schema_columns();
    let is_same = columns.iter().map(|column| column.kind);
    match is_same.eq(own.iter().map(|column| column.kind)) {
        true => Ok(columns),
        false => Err(malformed()),
    }
}
