//! The rows of a result, chunk by chunk, as batches of columns.

use std::rc::Rc;

use souk_sdk::json::Table;
use souk_sdk::results::{Shape, Shapes, Told};
use souk_sdk::{Column, Error, Limits, Step};

use crate::answers::{Chunk, Manifest, malformed};
use crate::described::Description;
use crate::errors::{columns_changed, truncated};
use crate::types::{self, Sent, Type, Way};

/// A result as far as it was read.
#[derive(Default)]
pub struct Reading {
    shape: Option<Rc<Shape<Sent>>>,
    told: Told,
}

impl Reading {
    /// Tells the columns. `exact`: what was asked for in other words than the statement's own.
    pub fn columns(
        &mut self,
        id: u32,
        manifest: &Manifest<'_>,
        exact: Option<&Description>,
        limits: &Limits,
        shapes: &mut Shapes<Sent>,
        step: &mut Step,
    ) -> Result<(), Error> {
        if manifest.truncated {
            return Err(truncated(manifest.total_row_count, limits));
        }
        let described = manifest.schema.columns.ok_or_else(malformed)?.get();
        let shape = match exact {
            None => plain(described, shapes)?,
            Some(exact) => in_other_words(described, exact, shapes)?,
        };
        step.columns(id, shape.number, shape.columns.describe());
        self.shape = Some(shape);
        Ok(())
    }

    /// Tells the rows of a chunk.
    pub fn rows(
        &mut self,
        id: u32,
        chunk: &Chunk<'_>,
        limits: &Limits,
        step: &mut Step,
    ) -> Result<(), Error> {
        let shape = self.shape.clone().ok_or_else(malformed)?;
        let batches = self.told.page(&shape, limits);
        chunk.table(Table::new(batches, limits, id, step, malformed))
    }
}

/// The shape of a result as the API describes it.
fn plain(described: &str, shapes: &mut Shapes<Sent>) -> Result<Rc<Shape<Sent>>, Error> {
    if let Some(known) = shapes.find(|known| known == described.as_bytes()) {
        return Ok(known);
    }
    let columns = types::columns(described)?;
    let (columns, kinds) = split(&columns);
    // It was described as another, or else it had been asked for in other words.
    if kinds.iter().any(|kind| kind.way() != Way::Plain) {
        return Err(columns_changed());
    }
    let kinds = kinds.into_iter().map(|kind| Sent {
        kind,
        way: Way::Plain,
    });
    let kinds = kinds.collect();
    Ok(shapes.add(described.as_bytes(), columns, kinds))
}

/// The shape of a result that comes in other words.
fn in_other_words(
    described: &str,
    exact: &Description,
    shapes: &mut Shapes<Sent>,
) -> Result<Rc<Shape<Sent>>, Error> {
    let sent = types::columns(described)?;
    let (columns, kinds) = split(&exact.columns);
    let fits = |(kind, (_, sent)): (&Type, &(String, String))| {
        let wanted = match kind.way() {
            Way::Plain => *kind,
            Way::Micros => Type::Integer,
            Way::Sql | Way::Base64 | Way::Json => Type::Text,
        };
        Type::of(sent) == wanted
    };
    if sent.len() != kinds.len() || !kinds.iter().zip(&sent).all(fits) {
        return Err(columns_changed());
    }
    let key = exact.key();
    if let Some(known) = shapes.find(|known| known == key) {
        return Ok(known);
    }
    let kinds = kinds.into_iter().map(|kind| Sent {
        kind,
        way: kind.way(),
    });
    let kinds = kinds.collect();
    Ok(shapes.add(&key, columns, kinds))
}

fn split(columns: &[(String, String)]) -> (Vec<Column>, Vec<Type>) {
    let columns = columns.iter();
    columns
        .map(|(name, kind)| types::column(name, kind))
        .unzip()
}
