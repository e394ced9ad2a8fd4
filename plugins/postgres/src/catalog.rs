//! The schema, from `pg_catalog`: what the connection's user may read, nothing of the server's own.

use souk_sdk::{SchemaFilter, Value};

/// One row per table or view, and per field with [`FIELDS`]. A partition is part of its table.
macro_rules! sql {
    ($fields:literal, $join:literal, $order:literal) => {
        concat!(
            "SELECT n.nspname::text AS schema, c.relname::text AS \"table\", ",
            "CASE WHEN c.relkind IN ('v', 'm') THEN 'view' ELSE 'table' END::text AS type, ",
            // Never analysed is -1 from version 14 on and 0 before.
            "CASE WHEN c.relkind <> 'v' AND c.reltuples >= 0 THEN c.reltuples::int8 END AS row_estimate, ",
            $fields,
            " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ",
            $join,
            " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition ",
            "AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' ",
            "AND ($1::text[] = '{}' OR n.nspname = ANY ($1::text[])) ",
            "AND ($2::text[] = '{}' OR c.relname = ANY ($2::text[])) ",
            "AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') ",
            "AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT') ",
            "ORDER BY n.nspname, c.relname",
            $order,
        )
    };
}

const TABLES: &str = sql!(
    "NULL::text AS field, NULL::text AS field_type, NULL::boolean AS nullable, NULL::boolean AS primary_key",
    "",
    ""
);

const FIELDS: &str = sql!(
    "a.attname::text AS field, pg_catalog.format_type(a.atttypid, a.atttypmod)::text AS field_type, \
     NOT a.attnotnull AS nullable, COALESCE(a.attnum = ANY (i.indkey), false) AS primary_key",
    "JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
     AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT') \
     LEFT JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisprimary",
    ", a.attnum"
);

/// The statement and its parameters.
pub fn statement(filter: &SchemaFilter) -> (&'static str, Vec<Value>) {
    let text = if filter.include_fields {
        FIELDS
    } else {
        TABLES
    };
    (text, vec![names(&filter.schemas), names(&filter.tables)])
}

fn names(names: &[String]) -> Value {
    Value::Json(serde_json::Value::from(names).to_string())
}
