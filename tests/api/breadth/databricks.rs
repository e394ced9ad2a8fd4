//! What Spark, which Databricks is made of, says to a program of its own. It reads values with all their digits, and `tests/engines/spark/spark.py`
//! spells them as souk does, by the table of types in `docs/engines.md`.

use serde_json::Value;
use souk_tests::databricks::spark::Spark;

use super::blocks::{Block, Parameter};
use super::{Column, Row, Told};

pub const SCHEMA: &str = include_str!("databricks/schema.sql");
/// What it makes, and where.
pub const DATABASE: &str = "breadth";
pub const ANSWERED: [&str; 3] = [
    include_str!("databricks/values.sql"),
    include_str!("databricks/queries.sql"),
    include_str!("databricks/parameters.sql"),
];
pub const REFUSED: &str = include_str!("databricks/refused.sql");

/// What a statement that writes would change: rows, what there is, a setting, files.
pub fn state(spark: &Spark) -> (Vec<Row>, bool) {
    let asked = [
        "SELECT CAST(sum(hash(*)) AS STRING) FROM staff",
        "SELECT CAST(count(*) AS STRING) FROM matches",
        "SHOW TABLES",
        "SHOW USER FUNCTIONS",
        "SHOW SCHEMAS",
        "DESCRIBE EXTENDED staff",
        "SET spark.sql.ansi.enabled",
    ];
    let rows = asked.map(|sql| spark.told(sql, DATABASE).rows);
    let is_written = std::path::Path::new("/tmp/souk_breadth").exists();
    (rows.into_iter().flatten().collect(), is_written)
}

/// What the statement answers, with the block's values written into it.
pub fn told(spark: &Spark, block: &Block) -> Told {
    let sql = block.filled(literal);
    let read = spark.told(sql.trim_end_matches([';', '\n']), DATABASE);
    let columns = read.columns.iter();
    Told {
        columns: columns
            .map(|(name, kind)| told_column(name, kind))
            .collect(),
        rows: read.rows,
    }
}

fn told_column(name: &str, kind: &str) -> Column {
    let is_float = matches!(kind, "float" | "double");
    let numbers = ["tinyint", "smallint", "int", "bigint"];
    let is_number = is_float || numbers.contains(&kind) || kind.starts_with("decimal(");
    let others = ["string", "date", "timestamp", "timestamp_ntz"];
    Column {
        name: name.to_owned(),
        is_number,
        is_float,
        sorts: is_number || others.contains(&kind),
    }
}

/// A parameter's value: of the type that it is declared to be, also where it is NULL.
fn literal(parameter: &Parameter) -> String {
    let kind = match parameter.kind {
        "integer" => "BIGINT",
        "number" => "DOUBLE",
        other => other,
    };
    let text = match &parameter.value {
        Value::Null => return format!("CAST(NULL AS {kind})"),
        Value::String(text) => text.replace('\\', "\\\\").replace('\'', "\\'"),
        value => value.to_string(),
    };
    format!("CAST('{text}' AS {kind})")
}
