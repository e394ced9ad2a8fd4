//! The rows of a result, part by part, as batches of columns.

use std::fmt::Write;
use std::rc::Rc;

use souk_sdk::results::{Shape, Shapes, Told};
use souk_sdk::{Error, Limits, Step};

use crate::answers::{Described, MetaData};
use crate::errors::malformed;
use crate::rows::Row;
use crate::types::{self, Type};
use crate::values::push;

/// A result of more parts is not believed.
const PARTITIONS_MAX: usize = 10_000;

/// A result as far as it was read.
#[derive(Default)]
pub struct Reading {
    shape: Option<Rc<Shape<Type>>>,
    told: Told,
    /// Rows that there are, and those that came.
    rows: u64,
    came: u64,
    partitions: usize,
    /// The part that is read next.
    next: usize,
}

impl Reading {
    /// Tells the columns.
    pub fn begin(
        &mut self,
        id: u32,
        described: &MetaData,
        limits: &Limits,
        shapes: &mut Shapes<Type>,
        step: &mut Step,
    ) -> Result<(), Error> {
        if described.num_rows > u64::from(limits.rows_max) {
            return Err(Error::too_many_rows(limits.rows_max));
        }
        self.rows = described.num_rows;
        self.partitions = described.partition_info.len().max(1);
        if self.partitions > PARTITIONS_MAX {
            return Err(malformed());
        }
        let columns = &described.row_type.0;
        let key = key(columns);
        let shape = shapes
            .find(|known| known == key.as_bytes())
            .unwrap_or_else(|| {
                let (columns, types) = types::columns(columns);
                shapes.add(key.as_bytes(), columns, types)
            });
        step.columns(id, shape.number, shape.columns.describe());
        self.shape = Some(shape);
        Ok(())
    }

    /// Tells rows of a part as they are handed on; whether these were the last of it is handed back.
    pub fn rows(
        &mut self,
        id: u32,
        limits: &Limits,
        step: &mut Step,
        hand_on: impl FnOnce(&mut dyn FnMut(&Row) -> Result<(), Error>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let shape = self.shape.clone().ok_or_else(malformed)?;
        let mut batches = self.told.page(&shape, limits);
        let mut came = 0;
        let is_over = hand_on(&mut |row| {
            if row.len() != shape.types.len() {
                return Err(malformed());
            }
            came += 1;
            let full = batches.row(|place, kind, into| push(*kind, row.cell(place), into))?;
            full.into_iter().for_each(|batch| step.batch(id, batch));
            Ok(())
        })?;
        let rest = batches.rest();
        rest.into_iter().for_each(|batch| step.batch(id, batch));
        self.came += came;
        self.next += usize::from(is_over);
        Ok(is_over)
    }

    /// The part to ask for next; `None`: all have come, and all of their rows.
    pub fn next(&self) -> Result<Option<usize>, Error> {
        match self.next < self.partitions {
            true => Ok(Some(self.next)),
            false if self.came == self.rows => Ok(None),
            false => Err(Error::source_failed(
                "rows_missing",
                "the result has more or fewer rows than Snowflake said it has",
            )),
        }
    }
}

/// What tells one shape from another.
fn key(columns: &[Described]) -> String {
    let mut key = String::new();
    for column in columns {
        // A String takes everything.
        let _ = write!(key, "{column:?}");
    }
    key
}
