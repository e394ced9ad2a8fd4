//! The schema of the project: its datasets by `datasets.list`, what is in them by one statement for each location on `INFORMATION_SCHEMA`,
//! which answers for fifty datasets at once where `tables.get` is a request for each table.

use std::collections::BTreeMap;

use souk_sdk::{Batch, ColumnBuilder, Error, Limits, Query, Rows, SchemaFilter, Value};

use crate::answers::{Datasets, Row, malformed};
use crate::values;

/// Datasets that one statement asks for: each stands in it with two views, and a statement may name a thousand tables.
const DATASETS_OF_A_STATEMENT: usize = 50;
/// No key tells rows apart here: BigQuery lets its owner name one, and does not enforce it. Rows are not counted either: that takes another
/// view, which is of a whole region and has a privilege of its own.
const HAS_KEY: bool = false;
/// What the names of a project's datasets have together, and those of their locations.
const DATASETS_BYTES_MAX: usize = 4 << 20;
/// What a name that is kept has beside its letters.
const NAME_BYTES: usize = 32;

/// A catalog on its way.
pub struct Catalog {
    filter: SchemaFilter,
    /// Datasets by their location.
    datasets: BTreeMap<Option<String>, Vec<String>>,
    datasets_bytes: usize,
    fields: Vec<Field>,
    /// What the fields' texts have together.
    bytes: usize,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Field {
    schema: String,
    table: String,
    position: i64,
    is_view: bool,
    name: String,
    kind: String,
    nullable: bool,
}

impl Catalog {
    pub fn new(filter: SchemaFilter) -> Catalog {
        Catalog {
            filter,
            datasets: BTreeMap::new(),
            datasets_bytes: 0,
            fields: Vec::new(),
            bytes: 0,
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.filter.limits
    }

    /// Takes a page of the project's datasets.
    pub fn listed(&mut self, page: Datasets) -> Result<(), Error> {
        for dataset in page.datasets {
            let name = dataset.dataset_reference.dataset_id;
            if self.filter.schemas.is_empty() || self.filter.schemas.contains(&name) {
                let location = dataset.location.as_ref().map_or(0, String::len);
                self.datasets_bytes += name.len() + location + NAME_BYTES;
                if self.datasets_bytes > DATASETS_BYTES_MAX {
                    return Err(Error::limit_exceeded(
                        "too_many_datasets",
                        "the project has more datasets than a catalog is made of: name those that are wanted",
                    ));
                }
                let of_location = self.datasets.entry(dataset.location).or_default();
                of_location.push(name);
            }
        }
        Ok(())
    }

    /// The next statement, and where it runs. `None`: there is nothing left to ask for.
    pub fn statement(&mut self, project: &str) -> Option<(Query, Option<String>)> {
        let mut entry = self.datasets.first_entry()?;
        let left = entry.get_mut();
        let some = left.split_off(left.len().saturating_sub(DATASETS_OF_A_STATEMENT));
        let location = entry.key().clone();
        if entry.get().is_empty() {
            entry.remove();
        }
        let parts = some.iter().map(|dataset| self.part(project, dataset));
        let text = parts.collect::<Vec<_>>().join("\nUNION ALL\n");
        let tables = self.filter.tables.iter();
        let tables = tables.map(|table| Value::Text(table.clone()));
        let parameters = some.iter().flat_map(|_| tables.clone()).collect();
        let query = Query {
            text,
            parameters,
            limits: self.filter.limits,
        };
        Some((query, location))
    }

    /// What a statement asks for of one dataset.
    fn part(&self, project: &str, dataset: &str) -> String {
        let view = |name: &str| {
            format!(
                "{}.{}.INFORMATION_SCHEMA.{name}",
                quoted(project),
                quoted(dataset)
            )
        };
        let (tables, columns) = (view("TABLES"), view("COLUMNS"));
        let names = match self.filter.tables.len() {
            0 => String::new(),
            count => format!(" AND t.table_name IN ({})", vec!["?"; count].join(", ")),
        };
        match self.filter.include_fields {
            // Columns without a place are BigQuery's own (`_PARTITIONTIME`).
            true => format!(
                "SELECT t.table_schema, t.table_name, t.table_type, c.ordinal_position, c.column_name, c.data_type, c.is_nullable \
                 FROM {tables} AS t INNER JOIN {columns} AS c ON c.table_name = t.table_name WHERE c.ordinal_position IS NOT NULL{names}"
            ),
            false => format!(
                "SELECT t.table_schema, t.table_name, t.table_type, 0, '', '', '' FROM {tables} AS t WHERE TRUE{names}"
            ),
        }
    }

    /// Takes rows of a statement's answer.
    pub fn read(&mut self, rows: &[Row<'_>]) -> Result<(), Error> {
        for row in rows {
            let [schema, table, kind, position, name, of_type, nullable] = &row.cells[..] else {
                return Err(malformed());
            };
            if self.fields.len() == self.filter.limits.rows_max as usize {
                return Err(Error::too_many_rows(self.filter.limits.rows_max));
            }
            let [schema, table, kind, position, name, of_type, nullable] =
                [schema, table, kind, position, name, of_type, nullable]
                    .map(|cell| values::plain(cell.value));
            let field = Field {
                schema: schema?,
                table: table?,
                position: position?.parse().map_err(|_| malformed())?,
                is_view: kind?.contains("VIEW"),
                name: name?,
                kind: of_type?,
                nullable: nullable? == "YES",
            };
            let texts = [&field.schema, &field.table, &field.name, &field.kind];
            self.bytes += texts.map(String::len).iter().sum::<usize>();
            if self.bytes as u64 > self.filter.limits.bytes_max {
                return Err(Error::too_many_bytes(self.filter.limits.bytes_max));
            }
            self.fields.push(field);
        }
        Ok(())
    }

    /// All that was read, in the contract's columns and order.
    pub fn batch(mut self) -> Result<Batch, Error> {
        self.fields.sort_unstable();
        let columns = Rows::schema_columns();
        let mut builders: Vec<ColumnBuilder> = columns
            .iter()
            .map(|column| ColumnBuilder::new(column.kind))
            .collect();
        for field in &self.fields {
            let [schema, table, kind, rows, name, of_type, nullable, key] = &mut builders[..]
            else {
                return Err(malformed());
            };
            schema.var(field.schema.as_bytes())?;
            table.var(field.table.as_bytes())?;
            kind.var(if field.is_view { b"view" } else { b"table" })?;
            rows.null();
            match self.filter.include_fields {
                true => {
                    name.var(field.name.as_bytes())?;
                    of_type.var(field.kind.as_bytes())?;
                    nullable.boolean(field.nullable)?;
                    key.boolean(HAS_KEY)?;
                }
                false => {
                    for builder in [name, of_type, nullable, key] {
                        builder.null();
                    }
                }
            }
        }
        Ok(Batch {
            rows: self.fields.len() as u32,
            chunks: builders.into_iter().map(ColumnBuilder::finish).collect(),
        })
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`"))
}
