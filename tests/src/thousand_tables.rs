//! A thousand tables of five fields each, in the words of each engine: of their catalog, which is read within a second. The connectors' tests say so of one
//! of twenty on a busy machine, `tests/load/figures catalogs` of most.

use crate::files::archive;

/// They are named `t0` and so on.
pub const TABLES: usize = 1_000;
/// Of all of them.
pub const FIELDS: usize = 5 * TABLES;

/// Statements that make them. `begin`: what their names begin with.
fn tables(begin: &str, columns: &str) -> Vec<String> {
    (0..TABLES)
        .map(|number| format!("CREATE TABLE {begin}{number} ({columns})"))
        .collect()
}

/// The same in one text.
fn text(begin: &str, columns: &str) -> String {
    tables(begin, columns).join("; ")
}

/// For a server whose tables SQLite keeps: a schema of its own, with them.
fn attached(schema: &str, name: &str, columns: &str) -> String {
    let tables = text(&format!("{schema}.{name}"), columns);
    format!("ATTACH ':memory:' AS {schema}; {tables}")
}

/// A dataset with them.
pub fn bigquery(dataset: &str) -> String {
    let columns = "a INT64 NOT NULL, b STRING TEXT, c NUMERIC, d TIMESTAMP, e STRINGS TEXT";
    attached(dataset, "t", columns)
}

/// In the database in which each of these statements is run.
pub fn clickhouse() -> Vec<String> {
    let columns = "a Int32, b Nullable(String), c Decimal(10, 2), d DateTime, e Array(UInt8)";
    let mut tables = tables("t", columns);
    for table in &mut tables {
        table.push_str(" ENGINE = Memory");
    }
    tables
}

/// A schema with them.
pub fn databricks(schema: &str) -> String {
    let columns =
        "a bigint NOT NULL, b string text, c decimal(10, 2), d timestamp_ntz, e \"array<string>\"";
    attached(schema, "t", columns)
}

/// A schema with them, statement by statement.
pub fn duckdb(schema: &str) -> Vec<String> {
    let columns = "a BIGINT PRIMARY KEY, b VARCHAR, c DECIMAL(10, 2), d TIMESTAMP, e VARCHAR[]";
    let tables = tables(&format!("{schema}.t"), columns);
    [vec![format!("CREATE SCHEMA {schema}")], tables].concat()
}

/// An archive with them, each a CSV with one row.
pub fn files() -> Vec<u8> {
    let names: Vec<String> = (0..TABLES).map(|number| format!("t{number}.csv")).collect();
    let text = "id,name,price,note,at\n1,a,1.50,,2026-01-01T00:00:00Z\n";
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), text)).collect();
    archive(&files)
}

/// In the database in which they are run. Tables of InnoDB are files that take their time to be made: one of twenty is such a table.
pub fn mariadb() -> String {
    let columns = "id INT PRIMARY KEY, name VARCHAR(20) NOT NULL, price DECIMAL(10,2), note TEXT, at DATETIME(3)";
    let mut tables = tables("t", columns);
    for (number, table) in tables.iter_mut().enumerate() {
        let engine = if number % 20 == 7 { "InnoDB" } else { "MyISAM" };
        table.push_str(&format!(" ENGINE={engine}"));
    }
    tables.join("; ")
}

/// In a schema that is there.
pub fn postgres(schema: &str) -> String {
    let columns = "id int PRIMARY KEY, name varchar(20) NOT NULL, price numeric(10,2), note text, at timestamptz(3)";
    text(&format!("{schema}.t"), columns)
}

/// A schema with them; their names are `T0` and so on.
pub fn snowflake(schema: &str) -> String {
    let columns =
        "A number(38,0) NOT NULL, B varchar(20), C number(10,2), D timestamp_ntz(3), E array";
    attached(schema, "T", columns)
}

/// In a file.
pub fn sqlite() -> String {
    let columns = "id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL, price DECIMAL(10,2), note TEXT, at DATETIME";
    format!("BEGIN; {}; COMMIT", text("t", columns))
}

/// A schema with them.
pub fn sqlserver(schema: &str) -> String {
    let columns = "a int NOT NULL PRIMARY KEY, b \"varchar(20)\", c \"decimal(10, 2)\", d \"datetime2(3)\", e \"nvarchar(max)\"";
    attached(schema, "t", columns)
}

/// A schema with them.
pub fn trino(schema: &str) -> String {
    let columns =
        "a bigint NOT NULL, b varchar(20), c decimal(10, 2), d timestamp(3), e \"array(varchar)\"";
    attached(schema, "t", columns)
}
