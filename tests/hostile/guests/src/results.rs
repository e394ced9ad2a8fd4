//! Answers that are as they should be, for behaviours to spoil.

use souk_sdk::{Batch, Cell, Column, ColumnBuilder, ColumnType, Error, Rows, Step, column};

/// The one column that the tests' statements name.
pub fn id_column() -> Vec<Column> {
    vec![column("id", ColumnType::Int64, "int8")]
}

/// A batch of [`id_column`] with so many rows.
pub fn batch(rows: u32) -> Result<Batch, Error> {
    let mut numbers = ColumnBuilder::with_capacity(ColumnType::Int64, rows as usize, 0);
    (1..=i64::from(rows)).try_for_each(|number| numbers.i64(number))?;
    Ok(Batch {
        rows,
        chunks: vec![numbers.finish()],
    })
}

/// One row, `id` 1, and the end.
pub fn one_row(id: u32, step: &mut Step) -> Result<(), Error> {
    step.columns(id, 0, Some(id_column()));
    step.batch(id, batch(1)?);
    step.done(id);
    Ok(())
}

pub fn pong(id: u32, step: &mut Step) -> Result<(), Error> {
    answer(
        id,
        Rows::ping_columns(),
        &[Cell::Text("hostile 1.0"), Cell::Null],
        step,
    )
}

/// A catalog with one field.
pub fn one_field(id: u32, step: &mut Step) -> Result<(), Error> {
    let row = [
        Cell::Text("main"),
        Cell::Text("t"),
        Cell::Text("table"),
        Cell::Null,
        Cell::Text("id"),
        Cell::Text("int8"),
        Cell::Boolean(false),
        Cell::Boolean(true),
    ];
    answer(id, Rows::schema_columns(), &row, step)
}

fn answer(id: u32, columns: Vec<Column>, row: &[Cell<'_>], step: &mut Step) -> Result<(), Error> {
    let mut chunks = Vec::new();
    for (column, cell) in columns.iter().zip(row) {
        let mut builder = ColumnBuilder::new(column.kind);
        builder.push(*cell)?;
        chunks.push(builder.finish());
    }
    step.columns(id, 1, Some(columns));
    step.batch(id, Batch { rows: 1, chunks });
    step.done(id);
    Ok(())
}
