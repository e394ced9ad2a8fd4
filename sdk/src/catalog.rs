//! The schema of a source that speaks SQL over HTTP: rows as its `information_schema` has them, told page by page in the contract's columns.

use crate::{Batch, ColumnBuilder, Error, Rows, SchemaFilter, Step};
use serde_json::value::RawValue;

/// What the schema names as a key may be no key to the engine: nothing is vouched for.
const HAS_KEY: bool = false;

/// A catalog on its way.
pub struct Listing {
    filter: SchemaFilter,
    text: fn(&RawValue) -> Result<String, Error>,
    malformed: fn() -> Error,
    is_described: bool,
    /// Of all pages.
    rows: u32,
    bytes: u64,
}

/// A page of it.
pub struct Fields<'l> {
    listing: &'l mut Listing,
    builders: Vec<ColumnBuilder>,
    rows: u32,
}

impl Listing {
    /// `text` reads a cell. `malformed`: what is said of rows that are none.
    pub fn new(
        filter: SchemaFilter,
        text: fn(&RawValue) -> Result<String, Error>,
        malformed: fn() -> Error,
    ) -> Listing {
        Listing {
            filter,
            text,
            malformed,
            is_described: false,
            rows: 0,
            bytes: 0,
        }
    }

    pub fn filter(&self) -> &SchemaFilter {
        &self.filter
    }

    /// Tells a page, of which `read` pushes the rows; with the first one the columns, which have this number.
    pub fn page(
        &mut self,
        id: u32,
        shape: u32,
        step: &mut Step,
        read: impl FnOnce(&mut Fields<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let columns = Rows::schema_columns();
        let builders = columns.iter();
        let builders = builders.map(|column| ColumnBuilder::new(column.kind));
        let builders = builders.collect();
        if !self.is_described {
            self.is_described = true;
            step.columns(id, shape, Some(columns));
        }
        let mut fields = Fields {
            listing: self,
            builders,
            rows: 0,
        };
        read(&mut fields)?;
        let Fields { builders, rows, .. } = fields;
        if rows > 0 {
            let chunks = builders.into_iter().map(ColumnBuilder::finish).collect();
            step.batch(id, Batch { rows, chunks });
        }
        Ok(())
    }
}

impl Fields<'_> {
    /// Takes a row of six cells: schema, table and its type, a field, its type and whether it may be NULL (`NO`: it may not). Where no fields
    /// are wanted the last three say nothing.
    pub fn push(&mut self, cells: &[&RawValue]) -> Result<(), Error> {
        let Listing {
            filter,
            text,
            malformed,
            rows,
            bytes,
            ..
        } = &mut *self.listing;
        let (text, malformed, limits) = (*text, *malformed, filter.limits);
        if *rows == limits.rows_max {
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
        ] = &mut self.builders[..]
        else {
            return Err(malformed());
        };
        let texts = [text(schema)?, text(table)?, text(field)?, text(field_type)?];
        *rows += 1;
        self.rows += 1;
        *bytes += texts.iter().map(|text| text.len() as u64).sum::<u64>();
        if *bytes > limits.bytes_max {
            return Err(Error::too_many_bytes(limits.bytes_max));
        }
        let [schema, table, field, field_type] = &texts;
        to_schema.var(schema.as_bytes())?;
        to_table.var(table.as_bytes())?;
        to_kind.var(match text(kind)?.contains("VIEW") {
            true => b"view",
            false => b"table",
        })?;
        to_rows.null();
        match filter.include_fields {
            true => {
                to_field.var(field.as_bytes())?;
                to_type.var(field_type.as_bytes())?;
                to_nullable.boolean(text(nullable)? != "NO")?;
                to_key.boolean(HAS_KEY)?;
            }
            false => [to_field, to_type, to_nullable, to_key]
                .into_iter()
                .for_each(ColumnBuilder::null),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnData, Event, Limits, json};
    use std::borrow::Cow;

    fn listing(include_fields: bool, rows_max: u32, bytes_max: u64) -> Listing {
        let filter = SchemaFilter {
            schemas: Vec::new(),
            tables: Vec::new(),
            include_fields,
            limits: Limits {
                rows_max,
                bytes_max,
                timeout_ms: 1,
            },
        };
        Listing::new(
            filter,
            |cell| json::text(cell).map(Cow::into_owned).ok_or_else(malformed),
            malformed,
        )
    }

    fn malformed() -> Error {
        Error::source_failed("malformed", "no rows")
    }

    fn read(listing: &mut Listing, step: &mut Step, page: &[&str]) -> Result<(), Error> {
        listing.page(7, 9, step, |fields| {
            page.iter().try_for_each(|row| {
                let cells: Vec<&RawValue> = serde_json::from_str(row).unwrap();
                fields.push(&cells)
            })
        })
    }

    const ID: &str = r#"["shop","orders","BASE TABLE","id","bigint","NO"]"#;
    const SUM: &str = r#"["shop","sums","MATERIALIZED VIEW","sum","double","YES"]"#;

    /// Columns are told once, and no batch of a page without rows; tables are told from views, and fields where they are wanted.
    #[test]
    fn pages_are_told_in_the_contracts_columns() {
        for (include_fields, nulls) in [(true, [None; 4]), (false, [Some(0); 4])] {
            let (mut listing, mut step) = (listing(include_fields, 9, 999), Step::default());
            let pages: [&[&str]; 3] = [&[], &[ID, SUM], &[SUM]];
            for page in pages {
                read(&mut listing, &mut step, page).unwrap();
            }
            let (_, events) = step.into_parts();
            let [
                Event::Columns(shape),
                Event::Batch(first),
                Event::Batch(second),
            ] = &events[..]
            else {
                panic!("{events:?}");
            };
            assert_eq!((shape.id, shape.shape, first.id), (7, 9, 7));
            assert_eq!((first.batch.rows, second.batch.rows), (2, 1));
            let chunks = &first.batch.chunks;
            let ColumnData::VarLen(kinds) = &chunks[2].data else {
                panic!("{chunks:?}");
            };
            assert_eq!(kinds.bytes, b"tableview");
            let fields = [4, 5, 6, 7].map(|column| {
                let validity = chunks[column].validity.as_ref();
                validity.map(|bits| bits[0])
            });
            assert_eq!(fields, nulls);
        }
    }

    /// The limits are of all pages, and what is no row is told as that.
    #[test]
    fn rows_are_refused() {
        let mut step = Step::default();
        let mut code = |rows_max, bytes_max, pages: [&[&str]; 2]| {
            let mut listing = listing(true, rows_max, bytes_max);
            let read = pages
                .iter()
                .try_for_each(|page| read(&mut listing, &mut step, page));
            read.map_err(|error| error.code).err()
        };
        assert_eq!(code(2, 999, [&[ID], &[ID]]), None);
        assert_eq!(code(1, 999, [&[ID], &[ID]]).as_deref(), Some("rows_limit"));
        assert_eq!(code(2, 30, [&[ID], &[ID]]).as_deref(), Some("bytes_limit"));
        for row in [
            "[]",
            r#"["a","b","c","d","e"]"#,
            r#"["a","b","c","d","e","f","g"]"#,
            r#"["a","b","c",["d"],"e","NO"]"#,
        ] {
            let refused = code(9, 999, [&[ID], &[row]]);
            assert_eq!(refused.as_deref(), Some("malformed"), "{row}");
        }
    }
}
