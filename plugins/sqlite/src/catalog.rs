//! The catalog: tables, views and their fields, from SQLite's own table-valued functions.

use crate::database::Database;
use crate::errors;
use rusqlite::{Connection, Row};
use souk_sdk::{Batch, Cell, ColumnBuilder, Error, Limits, Rows, SchemaFilter};
use std::collections::HashMap;

/// The one schema of a file without attached ones.
const SCHEMA: &str = "main";

const TABLES: &str = "
    SELECT name, type, wr
    FROM pragma_table_list
    WHERE schema = 'main' AND type IN ('table', 'view', 'virtual') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
    ORDER BY name";

const FIELDS: &str = "
    SELECT name, type, \"notnull\", pk
    FROM pragma_table_xinfo(?1)
    WHERE hidden <> 1
    ORDER BY cid";

struct Table {
    name: String,
    kind: &'static str,
    without_rowid: bool,
}

struct Field {
    /// None where it is no text.
    name: Option<String>,
    native: String,
    not_null: bool,
    key: i64,
}

pub fn read(database: &Database, filter: &SchemaFilter) -> Result<Batch, Error> {
    database.allow(filter.limits.timeout_ms);
    let connection = &database.connection;
    let mut answer = Answer::new(filter.limits);
    if !filter.schemas.is_empty() && !filter.schemas.iter().any(|schema| schema == SCHEMA) {
        return Ok(answer.finish());
    }
    let estimates = estimates(connection);
    for table in tables(connection).map_err(errors::of_statement)? {
        if !filter.tables.is_empty() && !filter.tables.contains(&table.name) {
            continue;
        }
        let estimate = estimates.get(&table.name).copied();
        let fields = match filter.include_fields {
            // A view on a table that is gone has no fields to tell of; the other tables still have theirs.
            true => fields(connection, &table.name).unwrap_or_default(),
            false => Vec::new(),
        };
        let keys = fields.iter().filter(|field| field.key > 0).count();
        let mut named = fields
            .iter()
            .filter(|field| field.name.is_some())
            .peekable();
        if named.peek().is_none() {
            answer.push(&table, estimate, None)?;
        }
        for field in named {
            answer.push(
                &table,
                estimate,
                Some((field, field.may_be_null(&table, keys))),
            )?;
        }
    }
    Ok(answer.finish())
}

impl Field {
    /// For compatibility, SQLite lets NULLs into a primary key unless it is the row's number or the row's place.
    fn may_be_null(&self, table: &Table, keys: usize) -> bool {
        let is_rowid = keys == 1 && self.key > 0 && self.native.eq_ignore_ascii_case("INTEGER");
        let is_place = table.without_rowid && self.key > 0;
        !(self.not_null || is_rowid || is_place)
    }
}

/// Those whose name is text. A program that wrote names in a code page left others, which no statement can name.
fn tables(connection: &Connection) -> rusqlite::Result<Vec<Table>> {
    let mut statement = connection.prepare_cached(TABLES)?;
    let rows = statement.query_map([], |row| {
        let Some(name) = text(row, 0)? else {
            return Ok(None);
        };
        let kind: String = row.get(1)?;
        Ok(Some(Table {
            name,
            kind: if kind == "view" { "view" } else { "table" },
            without_rowid: row.get(2)?,
        }))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// A value, if it is text.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    let value = row.get_ref(column)?;
    Ok(value.as_str().ok().map(str::to_owned))
}

fn fields(connection: &Connection, table: &str) -> rusqlite::Result<Vec<Field>> {
    let mut statement = connection.prepare_cached(FIELDS)?;
    let rows = statement.query_map([table], |row| {
        Ok(Field {
            name: text(row, 0)?,
            native: text(row, 1)?.unwrap_or_default(),
            not_null: row.get(2)?,
            key: row.get(3)?,
        })
    })?;
    rows.collect()
}

/// Row counts that ANALYZE left in the file, if it ever ran; counting now would be a scan of everything.
fn estimates(connection: &Connection) -> HashMap<String, i64> {
    let read = || -> rusqlite::Result<HashMap<String, i64>> {
        let mut statement = connection
            .prepare("SELECT tbl, max(CAST(stat AS INTEGER)) FROM sqlite_stat1 GROUP BY tbl")?;
        let rows = statement.query_map([], |row| {
            let rows: i64 = row.get(1)?;
            Ok(text(row, 0)?.map(|table| (table, rows)))
        })?;
        rows.filter_map(Result::transpose).collect()
    };
    read().unwrap_or_default()
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

    fn push(
        &mut self,
        table: &Table,
        estimate: Option<i64>,
        field: Option<(&Field, bool)>,
    ) -> Result<(), Error> {
        if self.rows == self.limits.rows_max {
            return Err(Error::too_many_rows(self.limits.rows_max));
        }
        let name = field.and_then(|(field, _)| field.name.as_deref());
        let cells = [
            Cell::Text(SCHEMA),
            Cell::Text(&table.name),
            Cell::Text(table.kind),
            estimate.map_or(Cell::Null, Cell::Int64),
            name.map_or(Cell::Null, Cell::Text),
            field.map_or(Cell::Null, |(field, _)| Cell::Text(&field.native)),
            field.map_or(Cell::Null, |(_, nullable)| Cell::Boolean(nullable)),
            field.map_or(Cell::Null, |(field, _)| Cell::Boolean(field.key > 0)),
        ];
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.push(cell)?;
        }
        self.rows += 1;
        let names = table.name.len()
            + name.map_or(0, str::len)
            + field.map_or(0, |(field, _)| field.native.len());
        self.bytes += names as u64 + 20;
        if self.bytes > self.limits.bytes_max {
            return Err(Error::too_many_bytes(self.limits.bytes_max));
        }
        Ok(())
    }

    fn finish(self) -> Batch {
        Batch {
            rows: self.rows,
            chunks: self
                .columns
                .into_iter()
                .map(ColumnBuilder::finish)
                .collect(),
        }
    }
}
