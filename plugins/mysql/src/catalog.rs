//! The schema, from `information_schema`: what the connection's user may see, nothing of the server's own.

use souk_sdk::{SchemaFilter, Value};

/// Databases that are the server's.
const OWN: &str = "('information_schema', 'mysql', 'performance_schema', 'sys')";
/// Columns whose values are true or false, which the server has no type for: all others keep theirs.
pub const FLAGS: std::ops::Range<usize> = 6..8;
const TABLES: &str = "SELECT TABLE_SCHEMA AS s, TABLE_NAME AS n, \
     CASE WHEN TABLE_TYPE LIKE '%VIEW' THEN 'view' ELSE 'table' END AS k, CAST(TABLE_ROWS AS SIGNED) AS r \
     FROM information_schema.TABLES WHERE TABLE_TYPE <> 'SEQUENCE'";
/// A day that no calendar has is NULL here, which a column of days may hold whatever it says.
const FIELDS: &str = "SELECT TABLE_SCHEMA AS s, TABLE_NAME AS n, COLUMN_NAME AS f, COLUMN_TYPE AS t, ORDINAL_POSITION AS p, \
     IS_NULLABLE = 'YES' OR DATA_TYPE IN ('date', 'datetime', 'timestamp') AS o, COLUMN_KEY = 'PRI' AS i \
     FROM information_schema.COLUMNS WHERE 1 = 1";

/// The statement and its parameters.
pub fn statement(filter: &SchemaFilter) -> (String, Vec<Value>) {
    let mut values = Vec::new();
    let tables = narrowed(TABLES, filter, &mut values);
    if !filter.include_fields {
        let text = format!(
            "SELECT s AS `schema`, n AS `table`, k AS `type`, r AS row_estimate, \
             NULL AS field, NULL AS field_type, NULL AS nullable, NULL AS primary_key \
             FROM ({tables}) AS t ORDER BY CAST(s AS BINARY), CAST(n AS BINARY)"
        );
        return (text, values);
    }
    let fields = narrowed(FIELDS, filter, &mut values);
    // DISTINCT has each half made once and joined by a key: of 1,000 tables neither half has an index.
    let text = format!(
        "SELECT t.s AS `schema`, t.n AS `table`, t.k AS `type`, t.r AS row_estimate, \
         f.f AS field, f.t AS field_type, f.o AS nullable, f.i AS primary_key \
         FROM ({}) AS f JOIN ({}) AS t ON t.s = f.s AND t.n = f.n \
         ORDER BY CAST(t.s AS BINARY), CAST(t.n AS BINARY), f.p",
        distinct(&fields),
        distinct(&tables)
    );
    // The fields stand first.
    let half = values.len() / 2;
    values.rotate_left(half);
    (text, values)
}

fn distinct(select: &str) -> String {
    select.replacen("SELECT", "SELECT DISTINCT", 1)
}

fn narrowed(select: &str, filter: &SchemaFilter, values: &mut Vec<Value>) -> String {
    let mut text = format!("{select} AND TABLE_SCHEMA NOT IN {OWN}");
    for (column, names) in [
        ("TABLE_SCHEMA", &filter.schemas),
        ("TABLE_NAME", &filter.tables),
    ] {
        if !names.is_empty() {
            let places = vec!["?"; names.len()].join(", ");
            text.push_str(&format!(" AND {column} IN ({places})"));
            values.extend(names.iter().cloned().map(Value::Text));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::Limits;

    /// Every placeholder has its value, the same for both halves.
    #[test]
    fn values_are_bound_in_order() {
        let filter = |include_fields| SchemaFilter {
            schemas: vec!["a".into()],
            tables: vec!["b".into(), "c".into()],
            include_fields,
            limits: Limits {
                rows_max: 1,
                bytes_max: 1,
                timeout_ms: 1,
            },
        };
        for (include_fields, count) in [(false, 3), (true, 6)] {
            let (text, values) = statement(&filter(include_fields));
            assert_eq!(text.matches('?').count(), count);
            let names: Vec<&Value> = values.iter().collect();
            let wanted = ["a", "b", "c"].map(|name| Value::Text(name.into()));
            assert!(
                names
                    .chunks(3)
                    .all(|names| names.iter().copied().eq(&wanted))
            );
            assert_eq!(values.len(), count);
        }
    }
}
