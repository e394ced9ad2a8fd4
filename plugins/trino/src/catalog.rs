//! The schema: one statement on the catalog's `information_schema`, whose rows are told page by page in the contract's columns.

use souk_sdk::SchemaFilter;
use souk_sdk::catalog::Listing;

use crate::answers::malformed;
use crate::parameters::quoted;
use crate::values::plain;

/// The engine's own.
const OWN: &str = "information_schema";

/// A catalog on its way. Trino names no keys.
pub fn listing(filter: SchemaFilter) -> Listing {
    Listing::new(filter, plain, malformed)
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
