//! The rows of a result, page by page, as batches of columns.

use std::rc::Rc;

use souk_sdk::results::{Shape, Shapes, Told, value_bytes_max};
use souk_sdk::{Error, Limits, Step};

use crate::answers::{Results, malformed};
use crate::types::{self, Type};
use crate::values::push;

/// A result as far as it was read.
#[derive(Default)]
pub struct Reading {
    shape: Option<Rc<Shape<Type>>>,
    told: Told,
}

impl Reading {
    /// Tells the rows of a page; with the first one the columns.
    pub fn page(
        &mut self,
        id: u32,
        page: &Results<'_>,
        limits: &Limits,
        shapes: &mut Shapes<Type>,
        step: &mut Step,
    ) -> Result<(), Error> {
        let shape = match &self.shape {
            Some(shape) => shape.clone(),
            None => {
                if page.total_rows() > u64::from(limits.rows_max) {
                    return Err(Error::too_many_rows(limits.rows_max));
                }
                let shape = shape_of(shapes, page.schema.ok_or_else(malformed)?.get())?;
                step.columns(id, shape.number, shape.columns.describe());
                self.shape.insert(shape).clone()
            }
        };
        let room = value_bytes_max(limits);
        let mut batches = self.told.page(&shape, limits);
        for cells in page.rows.iter() {
            if cells.len() != shape.types.len() {
                return Err(malformed());
            }
            let full = batches.row(|place, kind, into| push(kind, cells[place], into, room))?;
            full.into_iter().for_each(|batch| step.batch(id, batch));
        }
        let rest = batches.rest();
        rest.into_iter().for_each(|batch| step.batch(id, batch));
        Ok(())
    }
}

/// The shape of a schema: one that is known, or a new one.
fn shape_of(shapes: &mut Shapes<Type>, schema: &str) -> Result<Rc<Shape<Type>>, Error> {
    if let Some(known) = shapes.find(|known| known == schema.as_bytes()) {
        return Ok(known);
    }
    let (columns, types) = types::columns(schema)?;
    Ok(shapes.add(schema.as_bytes(), columns, types))
}
