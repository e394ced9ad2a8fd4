//! The schema, from `pg_catalog`: what the connection's user may read, nothing of the server's own.

use souk_sdk::{SchemaFilter, Value};
use std::borrow::Cow;

/// One row per table or view, and per field with [`FIELDS`]. A partition is part of its table, and so is a chunk of TimescaleDB's. Of a key the columns
/// that it is of, not those that its index has beside them; and what nobody has checked may be NULL: foreign tables, constraints that are not valid yet.
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
            "AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname NOT LIKE '\\_timescaledb\\_%' ",
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
     NOT a.attnotnull OR c.relkind = 'f' OR x.conrelid IS NOT NULL AS nullable, COALESCE(a.attnum = ANY (k.conkey), false) AS primary_key",
    "JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
     AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT') \
     LEFT JOIN pg_catalog.pg_constraint k ON k.conrelid = c.oid AND k.contype = 'p' \
     LEFT JOIN pg_catalog.pg_constraint x ON x.conrelid = c.oid AND x.contype = 'n' AND NOT x.convalidated AND x.conkey = ARRAY[a.attnum]",
    ", a.attnum"
);

/// The same of a server of version 8: privileges of tables, not of columns, and no array as a parameter. A key is not held there, so none is named;
/// nor is a number of rows.
macro_rules! ancient {
    ($fields:literal, $join:literal) => {
        concat!(
            "SELECT n.nspname::text AS schema, c.relname::text AS \"table\", ",
            "CASE WHEN c.relkind = 'v' THEN 'view' ELSE 'table' END::text AS type, NULL::int8 AS row_estimate, ",
            $fields,
            " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ",
            $join,
            " WHERE c.relkind IN ('r', 'v') AND n.nspname <> 'information_schema' AND substring(n.nspname::text, 1, 3) <> 'pg_' ",
            "AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT')",
        )
    };
}

const TABLES_ANCIENT: &str = ancient!(
    "NULL::text AS field, NULL::text AS field_type, NULL::boolean AS nullable, NULL::boolean AS primary_key",
    ""
);

const FIELDS_ANCIENT: &str = ancient!(
    "a.attname::text AS field, pg_catalog.format_type(a.atttypid, a.atttypmod)::text AS field_type, \
     NOT a.attnotnull AS nullable, false AS primary_key",
    "JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
);

/// As [`statement`], for a server of version 8.
pub fn ancient(filter: &SchemaFilter) -> (Cow<'static, str>, Vec<Value>) {
    let (mut text, last) = match filter.include_fields {
        true => (FIELDS_ANCIENT.to_owned(), ", a.attnum"),
        false => (TABLES_ANCIENT.to_owned(), ""),
    };
    let mut parameters = Vec::new();
    for (column, names) in [
        ("n.nspname", &filter.schemas),
        ("c.relname", &filter.tables),
    ] {
        let places = names.iter().map(|name| {
            parameters.push(Value::Text(name.clone()));
            format!("${}::text", parameters.len())
        });
        let places = places.collect::<Vec<_>>().join(", ");
        if !places.is_empty() {
            text.push_str(&format!(" AND {column}::text IN ({places})"));
        }
    }
    text.push_str(" ORDER BY n.nspname, c.relname");
    text.push_str(last);
    (text.into(), parameters)
}

/// The statement and its parameters.
pub fn statement(filter: &SchemaFilter) -> (Cow<'static, str>, Vec<Value>) {
    let text = if filter.include_fields {
        FIELDS
    } else {
        TABLES
    };
    (
        text.into(),
        vec![names(&filter.schemas), names(&filter.tables)],
    )
}

fn names(names: &[String]) -> Value {
    Value::Json(serde_json::Value::from(names).to_string())
}
