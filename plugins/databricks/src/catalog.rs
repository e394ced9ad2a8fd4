//! The schema: one statement on the catalog's `information_schema`, whose rows are told chunk by chunk in the contract's columns.

use souk_sdk::catalog::Listing;
use souk_sdk::{SchemaFilter, Value};

use crate::answers::malformed;
use crate::parameters::{self, Bound};
use crate::values::plain;

/// The engine's own.
const OWN: &str = "information_schema";

/// A catalog on its way. Databricks enforces no keys.
pub fn listing(filter: SchemaFilter) -> Listing {
    Listing::new(filter, plain, malformed)
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
