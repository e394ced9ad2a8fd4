//! The schema: one statement on the catalog's `information_schema`, whose rows are told page by page in the contract's columns.

use souk_sdk::{Batch, ColumnBuilder, Error, Rows, SchemaFilter, Step};

use crate::answers::{Results, malformed};
use crate::parameters::quoted;
use crate::values::plain;

/// Trino names no keys, and vouches for none.
const HAS_KEY: bool = false;
/// The engine's own.
const OWN: &str = "information_schema";

/// A catalog on its way.
pub struct Listing {
    filter: SchemaFilter,
    is_described: bool,
    rows: u32,
    bytes: u64,
}

/// The statement. What is filtered stands in both tables, since a catalog asks its source for no more than a table's own filter says.
pub fn statement(catalog: &str, filter: &SchemaFilter) -> String {
    let from = format!("\"{}\".{OWN}", catalog.replace('"', "\"\""));
    let names = |table: &str| {
        let schemas = match filter.schemas.len() {
            0 => format!("{table}.table_schema <> {}", quoted(OWN)),
            _ => format!("{table}.table_schema IN ({})", list(&filter.schemas)),
        };
        match filter.tables.len() {
            0 => schemas,
            _ => format!(
                "{schemas} AND {table}.table_name IN ({})",
                list(&filter.tables)
            ),
        }
    };
    match filter.include_fields {
        true => format!(
            "SELECT t.table_schema, t.table_name, t.table_type, c.column_name, c.data_type, c.is_nullable\n\
             FROM {from}.tables AS t\n\
             INNER JOIN {from}.columns AS c ON c.table_schema = t.table_schema AND c.table_name = t.table_name\n\
             WHERE {} AND {}\n\
             ORDER BY t.table_schema, t.table_name, c.ordinal_position",
            names("t"),
            names("c")
        ),
        false => format!(
            "SELECT t.table_schema, t.table_name, t.table_type, '', '', ''\n\
             FROM {from}.tables AS t\n\
             WHERE {}\n\
             ORDER BY t.table_schema, t.table_name",
            names("t")
        ),
    }
}

fn list(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    names.join(", ")
}

impl Listing {
    pub fn new(filter: SchemaFilter) -> Listing {
        Listing {
            filter,
            is_described: false,
            rows: 0,
            bytes: 0,
        }
    }

    /// Tells the rows of a page; with the first one the columns, which have this number.
    pub fn page(
        &mut self,
        id: u32,
        shape: u32,
        page: &Results<'_>,
        step: &mut Step,
    ) -> Result<(), Error> {
        let columns = Rows::schema_columns();
        let mut builders: Vec<ColumnBuilder> = columns
            .iter()
            .map(|column| ColumnBuilder::new(column.kind))
            .collect();
        if !self.is_described {
            self.is_described = true;
            step.columns(id, shape, Some(columns));
        }
        let limits = self.filter.limits;
        let mut rows = 0;
        page.rows(|cells| {
            if self.rows == limits.rows_max {
                return Err(Error::too_many_rows(limits.rows_max));
            }
            self.rows += 1;
            rows += 1;
            let ([schema, table, kind, field, field_type, nullable], builders) =
                (cells, &mut builders[..])
            else {
                return Err(malformed());
            };
            let [
                to_schema,
                to_table,
                to_kind,
                to_rows,
                to_field,
                to_type,
                to_nullable,
                to_key,
            ] = builders
            else {
                return Err(malformed());
            };
            let texts = [schema, table, field, field_type].map(|cell| plain(cell));
            let [schema, table, field, field_type] = texts;
            let texts = [schema?, table?, field?, field_type?];
            self.bytes += texts.iter().map(|text| text.len() as u64).sum::<u64>();
            if self.bytes > limits.bytes_max {
                return Err(Error::too_many_bytes(limits.bytes_max));
            }
            let [schema, table, field, field_type] = &texts;
            to_schema.var(schema.as_bytes())?;
            to_table.var(table.as_bytes())?;
            to_kind.var(match plain(kind)?.contains("VIEW") {
                true => b"view",
                false => b"table",
            })?;
            to_rows.null();
            match self.filter.include_fields {
                true => {
                    to_field.var(field.as_bytes())?;
                    to_type.var(field_type.as_bytes())?;
                    to_nullable.boolean(plain(nullable)? != "NO")?;
                    to_key.boolean(HAS_KEY)?;
                }
                false => [to_field, to_type, to_nullable, to_key]
                    .into_iter()
                    .for_each(ColumnBuilder::null),
            }
            Ok(())
        })?;
        if rows > 0 {
            let chunks = builders.into_iter().map(ColumnBuilder::finish).collect();
            step.batch(id, Batch { rows, chunks });
        }
        Ok(())
    }
}
