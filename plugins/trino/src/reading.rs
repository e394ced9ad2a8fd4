//! The rows of a result, page by page, as batches of columns.

use std::rc::Rc;

use serde_json::value::RawValue;
use souk_sdk::{Batch, ColumnBuilder, Error, KnownColumns, Limits, Step};

use crate::answers::{Results, malformed};
use crate::types::{self, Type};
use crate::values::push;

/// A batch is cut at this many rows or bytes: enough for its overhead to vanish, little enough to hold.
const BATCH_ROWS: u32 = 8_192;
const BATCH_BYTES: u64 = 1 << 20;
/// Shapes that are remembered; past it the oldest number is described anew.
pub const SHAPES_MAX: usize = 64;

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
            (None, None) => {
                return match page.data.as_ref().is_none_or(Vec::is_empty) {
                    true => Ok(()),
                    false => Err(malformed()),
                };
            }
        };
        let mut rows = page.data.as_deref().unwrap_or_default();
        while !rows.is_empty() {
            let (batch, left) = self.batch(&shape, rows, limits)?;
            step.batch(id, batch);
            rows = left;
        }
        Ok(())
    }

    /// A statement that has ended was one with columns.
    pub fn is_described(&self) -> bool {
        self.shape.is_some()
    }

    /// The next batch, and the rows behind it.
    fn batch<'r, 'a>(
        &mut self,
        shape: &Shape,
        mut rows: &'r [Vec<&'a RawValue>],
        limits: &Limits,
    ) -> Result<(Batch, &'r [Vec<&'a RawValue>]), Error> {
        let room = usize::try_from(limits.bytes_max.saturating_add(2 * BATCH_BYTES));
        let room = room.unwrap_or(usize::MAX);
        let mut builders = shape.columns.builders();
        let (mut count, mut bytes) = (0, 0);
        while let [row, left @ ..] = rows
            && count < BATCH_ROWS
            && bytes < BATCH_BYTES
        {
            if self.rows == limits.rows_max {
                return Err(Error::too_many_rows(limits.rows_max));
            }
            if row.len() != builders.len() {
                return Err(malformed());
            }
            for ((kind, cell), builder) in shape.types.iter().zip(row).zip(&mut builders) {
                push(kind, cell, builder, room)?;
            }
            rows = left;
            count += 1;
            self.rows += 1;
            bytes = builders.iter().map(|builder| builder.bytes() as u64).sum();
            if self.bytes + bytes > limits.bytes_max {
                return Err(Error::too_many_bytes(limits.bytes_max));
            }
        }
        self.bytes += bytes;
        shape.columns.remember(&builders);
        let chunks = builders.into_iter().map(ColumnBuilder::finish).collect();
        let batch = Batch {
            rows: count,
            chunks,
        };
        Ok((batch, rows))
    }
}

fn is_empty(list: &RawValue) -> bool {
    let inside = list.get().strip_prefix('[');
    inside.is_some_and(|inside| inside.trim_start() == "]")
}

impl Shapes {
    /// The shape of a description: one that is known, or a new one.
    fn of(&mut self, described: &str) -> Result<Rc<Shape>, Error> {
        if let Some(known) = self.known.iter().find(|shape| shape.described == described) {
            return Ok(known.clone());
        }
        let (columns, types) = types::columns(described)?;
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
