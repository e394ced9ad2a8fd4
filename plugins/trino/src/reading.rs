//! The rows of a result, page by page, as batches of columns.

use std::rc::Rc;

use serde_json::value::RawValue;
use souk_sdk::{Batch, ColumnBuilder, Error, KnownColumns, Limits, Step};

use crate::answers::{Results, is_empty, malformed};
use crate::types::{self, Type};
use crate::values::push;

/// A batch is cut at this many rows or bytes: enough for its overhead to vanish, little enough to hold.
const BATCH_ROWS: u32 = 8_192;
const BATCH_BYTES: u64 = 1 << 20;
/// Shapes that are remembered; past it the oldest number is described anew.
pub const SHAPES_MAX: usize = 64;
/// A description's text, and those of all that are remembered.
const DESCRIBED_BYTES_MAX: usize = 1 << 20;
const SHAPES_BYTES_MAX: usize = 4 << 20;

/// Columns as an answer describes them.
struct Shape {
    number: u32,
    described: String,
    columns: KnownColumns,
    types: Vec<Type>,
}

/// The shapes of a session's results.
#[derive(Default)]
pub struct Shapes {
    known: Vec<Rc<Shape>>,
    next: usize,
}

/// A result as far as it was read.
#[derive(Default)]
pub struct Reading {
    shape: Option<Rc<Shape>>,
    rows: u32,
    bytes: u64,
}

impl Reading {
    /// Tells the rows of a page; with the first one that has them the columns.
    pub fn page(
        &mut self,
        id: u32,
        page: &Results<'_>,
        limits: &Limits,
        shapes: &mut Shapes,
        step: &mut Step,
    ) -> Result<(), Error> {
        // Before a statement's plan is there, some releases tell that it has none.
        let columns = page.columns.filter(|columns| !is_empty(columns));
        let shape = match (&self.shape, columns) {
            (Some(shape), None) => shape.clone(),
            (Some(shape), Some(same)) if same.get() == shape.described => shape.clone(),
            // Of one statement they do not change.
            (Some(_), Some(_)) => return Err(malformed()),
            (None, Some(columns)) => {
                let shape = shapes.of(columns.get())?;
                step.columns(id, shape.number, shape.columns.describe());
                self.shape.insert(shape).clone()
            }
            // They come before the first row, and not with the first answer.
            (None, None) if page.has_rows() => return Err(malformed()),
            (None, None) => return Ok(()),
        };
        let mut builders = shape.columns.builders();
        page.rows(|row| {
            let bytes = self.row(&shape, row, &mut builders, limits)?;
            let rows = builders.first().map_or(0, ColumnBuilder::rows);
            if rows >= BATCH_ROWS as usize || bytes >= BATCH_BYTES {
                let full = std::mem::replace(&mut builders, shape.columns.builders());
                self.batch(id, &shape, full, step);
            }
            Ok(())
        })?;
        self.batch(id, &shape, builders, step);
        Ok(())
    }

    /// A statement that has ended was one with columns.
    pub fn is_described(&self) -> bool {
        self.shape.is_some()
    }

    /// Appends a row. How many bytes its batch has now.
    fn row(
        &mut self,
        shape: &Shape,
        row: &[&RawValue],
        builders: &mut [ColumnBuilder],
        limits: &Limits,
    ) -> Result<u64, Error> {
        if self.rows == limits.rows_max {
            return Err(Error::too_many_rows(limits.rows_max));
        }
        if row.len() != builders.len() {
            return Err(malformed());
        }
        let room = usize::try_from(limits.bytes_max.saturating_add(2 * BATCH_BYTES));
        let room = room.unwrap_or(usize::MAX);
        for ((kind, cell), builder) in shape.types.iter().zip(row).zip(&mut *builders) {
            push(kind, cell, builder, room)?;
        }
        self.rows += 1;
        let bytes = builders.iter().map(|builder| builder.bytes() as u64).sum();
        match self.bytes + bytes > limits.bytes_max {
            true => Err(Error::too_many_bytes(limits.bytes_max)),
            false => Ok(bytes),
        }
    }

    /// Tells what rows there are.
    fn batch(&mut self, id: u32, shape: &Shape, builders: Vec<ColumnBuilder>, step: &mut Step) {
        let rows = builders.first().map_or(0, ColumnBuilder::rows);
        if rows == 0 {
            return;
        }
        self.bytes += builders
            .iter()
            .map(|builder| builder.bytes() as u64)
            .sum::<u64>();
        shape.columns.remember(&builders);
        let chunks = builders.into_iter().map(ColumnBuilder::finish).collect();
        // Of at most as many as a batch has.
        let rows = rows as u32;
        step.batch(id, Batch { rows, chunks });
    }
}

impl Shapes {
    /// The shape of a description: one that is known, or a new one.
    fn of(&mut self, described: &str) -> Result<Rc<Shape>, Error> {
        if let Some(known) = self.known.iter().find(|shape| shape.described == described) {
            return Ok(known.clone());
        }
        if described.len() > DESCRIBED_BYTES_MAX {
            return Err(Error::limit_exceeded(
                "columns_too_long",
                "the names and types of the result's columns are longer than 1 MiB",
            ));
        }
        let (columns, types) = types::columns(described)?;
        let remembered: usize = self.known.iter().map(|shape| shape.described.len()).sum();
        if remembered + described.len() > SHAPES_BYTES_MAX {
            *self = Shapes::default();
        }
        let at = match self.known.len() {
            free @ 0..SHAPES_MAX => free,
            _ => {
                let oldest = self.next;
                self.next = (oldest + 1) % SHAPES_MAX;
                oldest
            }
        };
        let shape = Rc::new(Shape {
            number: at as u32,
            described: described.to_owned(),
            columns: KnownColumns::new(columns),
            types,
        });
        match self.known.get_mut(at) {
            Some(place) => *place = shape.clone(),
            None => self.known.push(shape.clone()),
        }
        Ok(shape)
    }
}
