//! The catalog: each table and its columns, from what its file says of itself, or what was found in it.
//!
//! Of several tables one that cannot be read is listed without columns, so that the others still have theirs. Where it is asked for by its name, or none is left, what is
//! wrong with it is the answer, as a statement on it and a connection's test are told.

use crate::engine::{Engine, SCHEMA};
use crate::tables::{Known, Table};
use crate::types;
use datafusion::arrow::datatypes::Field;
use souk_sdk::{Batch, Cell, ColumnBuilder, Error, Limits, Rows, SchemaFilter};

pub fn read(engine: &Engine, filter: &SchemaFilter) -> Result<Batch, Error> {
    engine.clock().allow(filter.limits.timeout_ms);
    let mut answer = Answer::new(filter.limits);
    if !filter.schemas.is_empty() && !filter.schemas.iter().any(|schema| schema == SCHEMA) {
        return Ok(answer.finish());
    }
    let (mut has_whole, mut broken) = (false, None);
    for table in engine.tables() {
        if !filter.tables.is_empty() && !filter.tables.contains(&table.files.name) {
            continue;
        }
        if !filter.include_fields {
            answer.push(table, None, None)?;
            continue;
        }
        match table.opened(engine.watch()) {
            Ok(known) => {
                has_whole = true;
                answer.fields(table, &known)?;
            }
            Err(error) if !filter.tables.is_empty() || error.code == "statement_timeout" => {
                return Err(error);
            }
            Err(error) => {
                answer.push(table, None, None)?;
                broken.get_or_insert(error);
            }
        }
    }
    match broken {
        Some(error) if !has_whole => Err(error),
        _ => Ok(answer.finish()),
    }
}

/// The rows of the contract's `schema` answer.
struct Answer {
    limits: Limits,
    columns: Vec<ColumnBuilder>,
    rows: u32,
    bytes: u64,
}

impl Answer {
    fn new(limits: Limits) -> Answer {
        let columns = Rows::schema_columns()
            .iter()
            .map(|column| ColumnBuilder::new(column.kind))
            .collect();
        Answer {
            limits,
            columns,
            rows: 0,
            bytes: 0,
        }
    }

    fn fields(&mut self, table: &Table, known: &Known) -> Result<(), Error> {
        for field in known.provider.schema().fields() {
            self.push(table, known.rows, Some(field))?;
        }
        Ok(())
    }

    fn push(
        &mut self,
        table: &Table,
        rows: Option<u64>,
        field: Option<&Field>,
    ) -> Result<(), Error> {
        if self.rows == self.limits.rows_max {
            return Err(Error::too_many_rows(self.limits.rows_max));
        }
        let native = field.map(|field| types::native(field.data_type()));
        let name = &table.files.name;
        let rows = rows.and_then(|rows| i64::try_from(rows).ok());
        let cells = [
            Cell::Text(SCHEMA),
            Cell::Text(name),
            Cell::Text("table"),
            Cell::from(rows),
            field.map_or(Cell::Null, |field| Cell::Text(field.name())),
            native.as_deref().map_or(Cell::Null, Cell::Text),
            field.map_or(Cell::Null, |field| Cell::Boolean(field.is_nullable())),
            field.map_or(Cell::Null, |_| Cell::Boolean(false)),
        ];
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.push(cell)?;
        }
        self.rows += 1;
        let names = name.len() + field.map_or(0, |field| field.name().len());
        self.bytes += (names + native.map_or(0, |native| native.len())) as u64 + 20;
        if self.bytes > self.limits.bytes_max {
            return Err(Error::too_many_bytes(self.limits.bytes_max));
        }
        Ok(())
    }

    fn finish(self) -> Batch {
        let columns = self.columns.into_iter();
        Batch {
            rows: self.rows,
            chunks: columns.map(ColumnBuilder::finish).collect(),
        }
    }
}
