//! The schema, from `system.columns` and `system.tables`: what the connection's user may see, nothing of the server's own.

use souk_sdk::{SchemaFilter, Value};

/// A primary key does not tell rows apart here: it says how they are sorted. So no field is said to be one.
const FIELDS: &str = "c.name AS field, c.type AS field_type, \
     match(c.type, '^(LowCardinality\\\\()?Nullable\\\\(|^(Variant|Dynamic|Nothing)')::Bool AS nullable, false::Bool AS primary_key";
const NO_FIELDS: &str = "CAST(NULL, 'Nullable(String)') AS field, CAST(NULL, 'Nullable(String)') AS field_type, \
     CAST(NULL, 'Nullable(Bool)') AS nullable, CAST(NULL, 'Nullable(Bool)') AS primary_key";
const OWN: &str = "('system', 'information_schema', 'INFORMATION_SCHEMA')";

/// The statement and its parameters.
pub fn statement(filter: &SchemaFilter) -> (String, Vec<Value>) {
    let fields = match filter.include_fields {
        true => FIELDS,
        false => NO_FIELDS,
    };
    let mut text = format!(
        "SELECT t.database AS schema, t.name AS table, if(endsWith(t.engine, 'View'), 'view', 'table') AS type, \
         CAST(t.total_rows, 'Nullable(Int64)') AS row_estimate, {fields} FROM system.tables AS t"
    );
    if filter.include_fields {
        text.push_str(
            " INNER JOIN system.columns AS c ON c.database = t.database AND c.table = t.name",
        );
    }
    text.push_str(&format!(
        " WHERE t.database NOT IN {OWN} AND t.is_temporary = 0"
    ));
    let mut values = Vec::new();
    for (column, names) in [("database", &filter.schemas), ("name", &filter.tables)] {
        if !names.is_empty() {
            let places = vec!["?"; names.len()].join(", ");
            text.push_str(&format!(" AND t.{column} IN ({places})"));
            values.extend(names.iter().cloned().map(Value::Text));
        }
    }
    text.push_str(" ORDER BY t.database, t.name");
    if filter.include_fields {
        text.push_str(", c.position");
    }
    (text, values)
}
