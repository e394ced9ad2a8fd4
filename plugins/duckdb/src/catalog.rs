//! The schema: one statement on what DuckDB knows of the connection's database, in the contract's columns.

use souk_sdk::SchemaFilter;

use crate::parameters::quoted;

/// The statement.
pub fn statement(filter: &SchemaFilter) -> String {
    let names = |of: &str| {
        let mut wanted = format!("{of}.database_name = current_database() AND NOT {of}.internal");
        if !filter.schemas.is_empty() {
            wanted += &format!(" AND {of}.schema_name IN ({})", list(&filter.schemas));
        }
        wanted
    };
    let tables = |of: &str, name: &str| match filter.tables.is_empty() {
        true => names(of),
        false => format!(
            "{} AND {of}.{name} IN ({})",
            names(of),
            list(&filter.tables)
        ),
    };
    match filter.include_fields {
        true => format!(
            "SELECT c.schema_name, c.table_name, CASE WHEN t.table_name IS NULL THEN 'view' ELSE 'table' END, CAST(t.estimated_size AS BIGINT), c.column_name, c.data_type, c.is_nullable, coalesce(list_contains(k.constraint_column_names, c.column_name), false)\n\
             FROM duckdb_columns() AS c\n\
             LEFT JOIN duckdb_tables() AS t ON t.database_name = c.database_name AND t.schema_name = c.schema_name AND t.table_name = c.table_name\n\
             LEFT JOIN duckdb_constraints() AS k ON k.constraint_type = 'PRIMARY KEY' AND k.database_name = c.database_name AND k.schema_name = c.schema_name AND k.table_name = c.table_name\n\
             WHERE {}\n\
             ORDER BY c.schema_name, c.table_name, c.column_index",
            tables("c", "table_name")
        ),
        false => format!(
            "SELECT t.schema_name, t.table_name, 'table', CAST(t.estimated_size AS BIGINT), CAST(NULL AS VARCHAR), CAST(NULL AS VARCHAR), CAST(NULL AS BOOLEAN), CAST(NULL AS BOOLEAN)\n\
             FROM duckdb_tables() AS t\n\
             WHERE {}\n\
             UNION ALL\n\
             SELECT v.schema_name, v.view_name, 'view', NULL, NULL, NULL, NULL, NULL\n\
             FROM duckdb_views() AS v\n\
             WHERE {}\n\
             ORDER BY 1, 2",
            tables("t", "table_name"),
            tables("v", "view_name")
        ),
    }
}

fn list(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    names.join(", ")
}
