//! The schema: one statement on the database's `INFORMATION_SCHEMA`, whose rows are those of the contract.

use souk_sdk::{SchemaFilter, Value};

/// No key tells rows apart here: Snowflake lets its owner name one, and does not enforce it.
const FIELDS: &str = "c.column_name AS \"field\", \
    CASE c.data_type WHEN 'NUMBER' THEN 'NUMBER(' || c.numeric_precision || ',' || c.numeric_scale || ')' ELSE c.data_type END AS \"field_type\", \
    (c.is_nullable = 'YES')::BOOLEAN AS \"nullable\", FALSE::BOOLEAN AS \"primary_key\"";
const NO_FIELDS: &str = "NULL::VARCHAR AS \"field\", NULL::VARCHAR AS \"field_type\", NULL::BOOLEAN AS \"nullable\", NULL::BOOLEAN AS \"primary_key\"";

/// The statement and its values.
pub fn statement(database: &str, filter: &SchemaFilter) -> (String, Vec<Value>) {
    let from = format!("\"{}\".information_schema", database.replace('"', "\"\""));
    let fields = match filter.include_fields {
        true => FIELDS,
        false => NO_FIELDS,
    };
    let mut text = format!(
        "SELECT t.table_schema AS \"schema\", t.table_name AS \"table\", \
         CASE WHEN t.table_type LIKE '%VIEW%' THEN 'view' ELSE 'table' END AS \"type\", t.row_count::NUMBER(18,0) AS \"row_estimate\", {fields} \
         FROM {from}.tables AS t"
    );
    if filter.include_fields {
        text.push_str(&format!(
            " INNER JOIN {from}.columns AS c ON c.table_schema = t.table_schema AND c.table_name = t.table_name"
        ));
    }
    text.push_str(" WHERE t.table_schema <> 'INFORMATION_SCHEMA'");
    let mut values = Vec::new();
    for (column, names) in [
        ("table_schema", &filter.schemas),
        ("table_name", &filter.tables),
    ] {
        if !names.is_empty() {
            let places = vec!["?"; names.len()].join(", ");
            text.push_str(&format!(" AND t.{column} IN ({places})"));
            values.extend(names.iter().cloned().map(Value::Text));
        }
    }
    text.push_str(" ORDER BY t.table_schema, t.table_name");
    if filter.include_fields {
        text.push_str(", c.ordinal_position");
    }
    (text, values)
}
