//! Columns of a result that comes again, as that of a prepared statement does. For a [`Machine`](crate::Machine); `Rows` knows its own.

use crate::{Column, ColumnBuilder};
use std::cell::Cell;

/// A result's buffers are made as large as last time's, up to this.
const HINT_MAX: u32 = 256 << 10;

/// The columns of a shape, and how large its batches are.
pub struct KnownColumns {
    columns: Vec<Column>,
    described: Cell<bool>,
    rows: Cell<u32>,
    bytes: Vec<Cell<u32>>,
}

impl KnownColumns {
    pub fn new(columns: Vec<Column>) -> KnownColumns {
        KnownColumns {
            described: Cell::new(false),
            rows: Cell::new(0),
            bytes: vec![Cell::new(0); columns.len()],
            columns,
        }
    }

    /// The columns, the first time: after that the host knows them by the shape's number.
    pub fn describe(&self) -> Option<Vec<Column>> {
        match self.described.replace(true) {
            true => None,
            false => Some(self.columns.clone()),
        }
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Empty columns with the room that the last batch took.
    pub fn builders(&self) -> Vec<ColumnBuilder> {
        let rows = self.rows.get() as usize;
        let columns = self.columns.iter().zip(&self.bytes);
        columns
            .map(|(column, bytes)| {
                ColumnBuilder::with_capacity(column.kind, rows, bytes.get() as usize)
            })
            .collect()
    }

    /// Remembers how large a batch was.
    pub fn remember(&self, builders: &[ColumnBuilder]) {
        let bounded = |n: usize| u32::try_from(n).unwrap_or(HINT_MAX).min(HINT_MAX);
        let rows = builders.first().map_or(0, ColumnBuilder::rows);
        self.rows.set(bounded(rows));
        for (hint, builder) in self.bytes.iter().zip(builders) {
            hint.set(bounded(builder.bytes()));
        }
    }
}
