//! Lists two hundred thousand fields.

use crate::Behaviour;
use souk_sdk::{Batch, Cell, ColumnBuilder, Error, Rows, SchemaFilter, Step};

const FIELDS: u32 = 200_000;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn schema(&mut self, id: u32, _filter: &SchemaFilter, step: &mut Step) -> Result<(), Error> {
        let columns = Rows::schema_columns();
        let mut builders: Vec<_> = columns
            .iter()
            .map(|column| ColumnBuilder::new(column.kind))
            .collect();
        for number in 0..FIELDS {
            let (table, field) = (format!("t{}", number / 100), format!("f{number}"));
            let row = [
                Cell::Text("main"),
                Cell::Text(&table),
                Cell::Text("table"),
                Cell::Null,
                Cell::Text(&field),
                Cell::Text("int8"),
                Cell::Boolean(false),
                Cell::Boolean(number % 100 == 0),
            ];
            for (builder, cell) in builders.iter_mut().zip(row) {
                builder.push(cell)?;
            }
        }
        let chunks = builders.into_iter().map(ColumnBuilder::finish).collect();
        step.columns(id, 1, Some(columns));
        step.batch(
            id,
            Batch {
                rows: FIELDS,
                chunks,
            },
        );
        step.done(id);
        Ok(())
    }
}
