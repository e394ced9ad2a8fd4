//! The schema: one statement on the catalog's `information_schema`, whose rows are told chunk by chunk in the contract's columns.

use souk_sdk::{Batch, ColumnBuilder, Error, Rows, SchemaFilter, Step, Value};

use crate::answers::{Chunk, malformed};
use crate::parameters::{self, Bound};
use crate::values::plain;

/// Databricks enforces no keys, and vouches for none.
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

/// A name as SQL has it.
pub fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text as a value, and its marker.
pub fn text(values: &mut Vec<Bound>, text: &str) -> String {
    match parameters::bound(values.len(), &Value::Text(text.to_owned())) {
        Ok(bound) => {
            let marker = bound.marker.clone();
            values.push(bound);
            marker
        }
        // Every text is one.
        Err(_) => "NULL".to_owned(),
    }
}

/// The statement and its values.
pub fn statement(catalog: &str, filter: &SchemaFilter) -> (String, Vec<Bound>) {
    let from = format!("{}.{OWN}", identifier(catalog));
    let mut values = Vec::new();
    let mut list = |names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| text(&mut values, name)).collect();
        names.join(", ")
    };
    let mut wanted = match filter.schemas.len() {
        0 => format!("t.table_schema <> '{OWN}'"),
        _ => format!("t.table_schema IN ({})", list(&filter.schemas)),
    };
    if !filter.tables.is_empty() {
        wanted.push_str(&format!(" AND t.table_name IN ({})", list(&filter.tables)));
    }
    let text = match filter.include_fields {
        true => format!(
            "SELECT t.table_schema, t.table_name, t.table_type, c.column_name, c.full_data_type, c.is_nullable\n\
             FROM {from}.tables AS t\n\
             INNER JOIN {from}.columns AS c ON c.table_schema = t.table_schema AND c.table_name = t.table_name\n\
             WHERE {wanted}\n\
             ORDER BY t.table_schema, t.table_name, c.ordinal_position"
        ),
        false => format!(
            "SELECT t.table_schema, t.table_name, t.table_type, '', '', ''\n\
             FROM {from}.tables AS t\n\
             WHERE {wanted}\n\
             ORDER BY t.table_schema, t.table_name"
        ),
    };
    (text, values)
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

    pub fn filter(&self) -> &SchemaFilter {
        &self.filter
    }

    /// Tells the rows of a chunk; with the first one the columns, which have this number.
    pub fn rows(
        &mut self,
        id: u32,
        shape: u32,
        chunk: Option<&Chunk<'_>>,
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
        let Some(chunk) = chunk else {
            return Ok(());
        };
        let limits = self.filter.limits;
        let mut rows = 0;
        chunk.rows(|cells| {
            if self.rows == limits.rows_max {
                return Err(Error::too_many_rows(limits.rows_max));
            }
            let [schema, table, kind, field, field_type, nullable] = cells else {
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
            ] = &mut builders[..]
            else {
                return Err(malformed());
            };
            let texts = [
                plain(schema)?,
                plain(table)?,
                plain(field)?,
                plain(field_type)?,
            ];
            self.rows += 1;
            rows += 1;
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

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::Limits;

    #[test]
    fn names_are_values() {
        let filter = SchemaFilter {
            schemas: vec!["a'; DROP".into(), "b".into()],
            tables: vec!["c`d".into()],
            include_fields: false,
            limits: Limits {
                rows_max: 1,
                bytes_max: 1,
                timeout_ms: 1,
            },
        };
        let (text, values) = statement("la`ke", &filter);
        assert!(text.contains("FROM `la``ke`.information_schema.tables"));
        assert!(
            text.contains(
                "WHERE t.table_schema IN (:souk_1, :souk_2) AND t.table_name IN (:souk_3)"
            )
        );
        let values: Vec<_> = values.iter().map(|value| value.value.as_deref()).collect();
        assert_eq!(values, [Some("a'; DROP"), Some("b"), Some("c`d")]);
    }
}
