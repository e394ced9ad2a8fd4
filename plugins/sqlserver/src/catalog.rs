//! The schema, from the server's own catalog: what the login may see of the connection's database, nothing of the server's own.

use souk_sdk::{SchemaFilter, Value};

/// As a statement would write it: `nvarchar(50)`, `decimal(10,2)`.
const TYPE: &str = "CAST(CASE WHEN t.name IN (N'decimal', N'numeric') THEN CONCAT(t.name, N'(', c.precision, N',', c.scale, N')')
      WHEN t.name IN (N'time', N'datetime2', N'datetimeoffset') THEN CONCAT(t.name, N'(', c.scale, N')')
      WHEN t.name IN (N'char', N'varchar', N'nchar', N'nvarchar', N'binary', N'varbinary') AND c.max_length = -1 THEN CONCAT(t.name, N'(max)')
      WHEN t.name IN (N'nchar', N'nvarchar') THEN CONCAT(t.name, N'(', c.max_length / 2, N')')
      WHEN t.name IN (N'char', N'varchar', N'binary', N'varbinary') THEN CONCAT(t.name, N'(', c.max_length, N')')
      ELSE t.name END AS nvarchar(300))";
/// Names in the order of their characters, as the host compares them.
const ORDER: &str = "s.name COLLATE Latin1_General_BIN2, o.name COLLATE Latin1_General_BIN2";

/// The statement and its values.
pub fn statement(filter: &SchemaFilter) -> (String, Vec<Value>) {
    let mut values = Vec::new();
    let mut narrowed = String::new();
    for (column, names) in [("s.name", &filter.schemas), ("o.name", &filter.tables)] {
        if names.is_empty() {
            continue;
        }
        let first = values.len() + 1;
        values.extend(names.iter().cloned().map(Value::Text));
        let places: Vec<String> = (first..=values.len())
            .map(|number| format!("@P{number}"))
            .collect();
        narrowed.push_str(&format!("\n  AND {column} IN ({})", places.join(", ")));
    }
    let (fields, of_fields, order) = match filter.include_fields {
        true => (
            format!(
                "c.name AS field, {TYPE} AS field_type, c.is_nullable AS nullable,\n    \
                 CAST(CASE WHEN k.column_id IS NULL THEN 0 ELSE 1 END AS bit) AS primary_key"
            ),
            "\nINNER JOIN sys.columns AS c ON c.object_id = o.object_id AND (c.is_hidden = 0 OR c.generated_always_type > 0)\n\
             INNER JOIN sys.types AS t ON t.user_type_id = c.user_type_id\n\
             LEFT JOIN (SELECT i.object_id, x.column_id FROM sys.indexes AS i\n    \
             INNER JOIN sys.index_columns AS x ON x.object_id = i.object_id AND x.index_id = i.index_id\n    \
             WHERE i.is_primary_key = 1) AS k ON k.object_id = c.object_id AND k.column_id = c.column_id",
            format!("{ORDER}, c.column_id"),
        ),
        false => (
            "CAST(NULL AS nvarchar(128)) AS field, CAST(NULL AS nvarchar(128)) AS field_type,\n    \
             CAST(NULL AS bit) AS nullable, CAST(NULL AS bit) AS primary_key"
                .to_owned(),
            "",
            ORDER.to_owned(),
        ),
    };
    let text = format!(
        "SELECT s.name AS [schema], o.name AS [table], CAST(CASE WHEN o.type = 'V' THEN N'view' ELSE N'table' END AS nvarchar(5)) AS [type],\n    \
         CAST(p.row_count AS bigint) AS row_estimate, {fields}\n\
         FROM sys.objects AS o\n\
         INNER JOIN sys.schemas AS s ON s.schema_id = o.schema_id\n\
         LEFT JOIN (SELECT object_id, SUM(rows) AS row_count FROM sys.partitions WHERE index_id IN (0, 1) GROUP BY object_id) AS p\n    \
         ON p.object_id = o.object_id{of_fields}\n\
         WHERE o.type IN ('U', 'V') AND o.is_ms_shipped = 0{narrowed}\n\
         ORDER BY {order}"
    );
    (text, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statements::{one_query, places};
    use souk_sdk::testing::LIMITS;

    /// It holds to the connector's own lock, and names are values of it.
    #[test]
    fn names_are_bound() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        for include_fields in [true, false] {
            let filter = SchemaFilter {
                schemas: names(&["dbo", "it's"]),
                tables: names(&["a"]),
                include_fields,
                limits: LIMITS,
            };
            let (text, values) = statement(&filter);
            one_query(&text).unwrap();
            assert_eq!((places(&text).unwrap(), values.len()), (3, 3));
            assert!(text.contains("s.name IN (@P1, @P2)") && text.contains("o.name IN (@P3)"));
        }
    }
}
