//! The rows of a result, page by page, as batches of columns.

use std::rc::Rc;

use souk_sdk::results::{Shape, Shapes, Told, value_bytes_max};
use souk_sdk::{Error, Limits, Step};

use crate::answers::{Results, is_empty, malformed};
use crate::types::{self, Type};
use crate::values::push;

/// The text that describes columns.
const DESCRIBED_BYTES_MAX: usize = 1 << 20;

/// A result as far as it was read.
#[derive(Default)]
pub struct Reading {
    shape: Option<Rc<Shape<Type>>>,
    told: Told,
}

impl Reading {
    /// Tells the rows of a page; with the first one that has them the columns.
    pub fn page(
        &mut self,
        id: u32,
        page: &Results<'_>,
        limits: &Limits,
        shapes: &mut Shapes<Type>,
        step: &mut Step,
    ) -> Result<(), Error> {
        // Before a statement's plan is there, some releases tell that it has none.
        let columns = page.columns.filter(|columns| !is_empty(columns));
        let shape = match (&self.shape, columns) {
            (Some(shape), None) => shape.clone(),
            (Some(shape), Some(same)) if same.get().as_bytes() == shape.described() => {
                shape.clone()
            }
            // Of one statement they do not change.
            (Some(_), Some(_)) => return Err(malformed()),
            (None, Some(columns)) => {
                let shape = shape_of(shapes, columns.get())?;
                step.columns(id, shape.number, shape.columns.describe());
                self.shape.insert(shape).clone()
            }
            // They come before the first row, and not with the first answer.
            (None, None) if page.has_rows() => return Err(malformed()),
            (None, None) => return Ok(()),
        };
        let room = value_bytes_max(limits);
        let mut batches = self.told.page(&shape, limits);
        page.rows(|row| {
            if row.len() != shape.types.len() {
                return Err(malformed());
            }
            let full = batches.row(|place, kind, into| push(kind, row[place], into, room))?;
            full.into_iter().for_each(|batch| step.batch(id, batch));
            Ok(())
        })?;
        let rest = batches.rest();
        rest.into_iter().for_each(|batch| step.batch(id, batch));
        Ok(())
    }

    /// A statement that has ended was one with columns.
    pub fn is_described(&self) -> bool {
        self.shape.is_some()
    }
}

/// The shape of a description: one that is known, or a new one.
fn shape_of(shapes: &mut Shapes<Type>, described: &str) -> Result<Rc<Shape<Type>>, Error> {
    if let Some(known) = shapes.find(|known| known == described.as_bytes()) {
        return Ok(known);
    }
    if described.len() > DESCRIBED_BYTES_MAX {
        return Err(Error::limit_exceeded(
            "columns_too_long",
            "the names and types of the result's columns are longer than 1 MiB",
        ));
    }
    let (columns, types) = types::columns(described)?;
    Ok(shapes.add(described.as_bytes(), columns, types))
}
