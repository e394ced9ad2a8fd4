//! Statements on tables: SQLite runs them, and its columns have Trino's types. A schema is a database that is attached; all of them are of one
//! catalog.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::{Captures, Regex};
use rusqlite::types::{Value as Sqlite, ValueRef};
use rusqlite::{Connection, Error, Statement};
use serde_json::Value;
use souk_sdk::time::{iso8601, parse_iso8601, parse_rfc3339};

use super::literals::{self, Typed};
use super::types::Kind;
use super::{CATALOG, Failure, VERSION};

/// A result: columns with their types, and cells as an answer has them.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub columns: Vec<(String, Kind)>,
    pub rows: Vec<Vec<Value>>,
}

pub struct Tables {
    connection: Connection,
}

impl Tables {
    pub fn new() -> Tables {
        let connection = Connection::open_in_memory().expect("SQLite");
        let own = "PRAGMA case_sensitive_like = ON;
            CREATE TABLE slow (id bigint); INSERT INTO slow VALUES (1);
            CREATE TABLE endless (id bigint);";
        connection.execute_batch(own).expect("two tables");
        let tables = Tables { connection };
        tables.describe();
        tables
    }

    pub fn admin(&self, sql: &str) {
        self.connection.execute_batch(sql).expect(sql);
        self.describe();
    }

    /// Runs a query.
    pub fn query(&self, text: &str, values: &[Typed]) -> Result<Table, Failure> {
        if let Some(table) = literals::row(text, values) {
            return Ok(table);
        }
        let (text, swaps) = self.translated(text)?;
        let mut statement = self.prepare(&text)?;
        if statement.parameter_count() != values.len() {
            let wanted = statement.parameter_count();
            return Err(Failure::user(
                "INVALID_PARAMETER_USAGE",
                format!(
                    "line 1:1: Incorrect number of parameters: expected {wanted} but found {}",
                    values.len()
                ),
            ));
        }
        let mut values: Vec<&Typed> = values.iter().collect();
        if swaps {
            let last = values.len() - 1;
            values.swap(last - 1, last);
        }
        for (place, value) in values.into_iter().enumerate() {
            let bound = statement.raw_bind_parameter(place + 1, bound(value));
            bound.map_err(|error| self.failure(&error))?;
        }
        let columns = statement.columns();
        let declared: Vec<Option<Kind>> = columns
            .iter()
            .map(|column| Kind::parse(column.decl_type()?.trim_matches('"')))
            .collect();
        let names: Vec<String> = columns
            .iter()
            .map(|column| column.name().to_owned())
            .collect();
        let mut found = Vec::new();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|error| self.failure(&error))? {
            let cells = (0..names.len()).map(|at| row.get::<_, Sqlite>(at).expect("a value"));
            found.push(cells.collect::<Vec<Sqlite>>());
        }
        Ok(table(names, &declared, &found))
    }

    /// Runs a statement that writes.
    pub fn write(&self, text: &str) -> Result<(), Failure> {
        if text.contains("information_schema.") {
            return Err(Failure::user(
                "NOT_SUPPORTED",
                "This connector does not support inserts",
            ));
        }
        let (text, _) = self.translated(text)?;
        let written = self.connection.execute_batch(&text);
        written.map_err(|error| self.failure(&error))
    }

    fn prepare(&self, text: &str) -> Result<Statement<'_>, Failure> {
        self.connection
            .prepare(text)
            .map_err(|error| self.failure(&error))
    }

    fn schemas(&self) -> Vec<String> {
        let sql = "SELECT name FROM pragma_database_list WHERE name NOT IN ('main', 'temp')";
        let mut statement = self.connection.prepare(sql).expect(sql);
        let rows = statement.query_map([], |row| row.get(0)).expect(sql);
        rows.map(|row| row.expect("a text")).collect()
    }

    /// What stands in the place of `information_schema`.
    fn describe(&self) {
        let mut sql = "DROP TABLE IF EXISTS temp.\"information_schema.schemata\";
            CREATE TEMP TABLE \"information_schema.schemata\" AS SELECT name AS schema_name FROM pragma_database_list WHERE name NOT IN ('main', 'temp')
                UNION ALL SELECT 'information_schema';
            DROP TABLE IF EXISTS temp.\"information_schema.tables\";
            CREATE TEMP TABLE \"information_schema.tables\" (table_schema varchar, table_name varchar, table_type varchar);
            DROP TABLE IF EXISTS temp.\"information_schema.columns\";
            CREATE TEMP TABLE \"information_schema.columns\" (table_schema varchar, table_name varchar, ordinal_position bigint, column_name varchar, data_type varchar, is_nullable varchar,
                PRIMARY KEY (table_schema, table_name, ordinal_position));
            INSERT INTO \"information_schema.tables\" VALUES ('information_schema', 'tables', 'BASE TABLE');"
            .to_owned();
        for schema in self.schemas() {
            sql.push_str(&format!(
                "INSERT INTO \"information_schema.tables\" SELECT '{schema}', name, CASE type WHEN 'view' THEN 'VIEW' ELSE 'BASE TABLE' END
                     FROM \"{schema}\".sqlite_master WHERE type IN ('table', 'view');
                 INSERT INTO \"information_schema.columns\" SELECT '{schema}', t.name, c.cid + 1, c.name, replace(c.type, char(34), ''), CASE WHEN c.\"notnull\" THEN 'NO' ELSE 'YES' END
                     FROM \"{schema}\".sqlite_master AS t, pragma_table_info(t.name, '{schema}') AS c WHERE t.type IN ('table', 'view');"
            ));
        }
        self.connection.execute_batch(&sql).expect("a catalog");
    }

    /// As SQLite has it, and whether the last two values change places.
    fn translated(&self, text: &str) -> Result<(String, bool), Failure> {
        let regex = |pattern: &str| Regex::new(pattern).expect(pattern);
        let named = regex(r#"(?i)\b(?:FROM|JOIN|INTO)\s+"?(\w+)"?\."?\w+"?\."?\w+"?"#);
        for names in named.captures_iter(text) {
            if &names[1] != CATALOG {
                return Err(Failure::user(
                    "CATALOG_NOT_FOUND",
                    format!("line 1:15: Catalog '{}' not found", &names[1]),
                ));
            }
        }
        if regex(r"(?i)\bLIMIT\s+(\?|\d+)\s+OFFSET\b").is_match(text) {
            return Err(Failure::user(
                "SYNTAX_ERROR",
                "line 1:1: mismatched input 'OFFSET'. Expecting: <EOF>",
            ));
        }
        let text = regex(&format!(r#""?{CATALOG}"?\."#)).replace_all(text, "");
        let text =
            regex(r"information_schema\.(\w+)").replace_all(&text, "\"information_schema.$1\"");
        let text = text.replace("version()", &format!("'{VERSION}'"));
        let sequence = regex(r"UNNEST\(sequence\((\d+), (\d+)\)\) AS (\w+)\((\w+)\)");
        let text = sequence.replace_all(&text, |parts: &Captures<'_>| {
            let [from, until, table, column] = [1, 2, 3, 4].map(|at| &parts[at]);
            format!("(WITH RECURSIVE r({column}) AS (SELECT {from} UNION ALL SELECT {column} + 1 FROM r WHERE {column} < {until}) SELECT {column} FROM r) AS {table}")
        });
        let window = regex(r"OFFSET (\?|\d+)(?: ROWS?)? LIMIT (\?|\d+)\s*$");
        let swaps = window
            .captures(&text)
            .is_some_and(|parts| &parts[1] == "?" && &parts[2] == "?");
        let text = window.replace(&text, "LIMIT $2 OFFSET $1").into_owned();
        Ok((text, swaps))
    }

    fn failure(&self, error: &Error) -> Failure {
        let said = error.to_string();
        let rest = |before: &str| {
            let named = said.strip_prefix(before)?;
            Some(named.split(" in ").next().unwrap_or_default().to_owned())
        };
        if let Some(named) = rest("no such table: ") {
            return match named.split_once('.') {
                Some((schema, _)) if !self.schemas().iter().any(|known| known == schema) => {
                    let text = format!("line 1:15: Schema '{schema}' does not exist");
                    Failure::user("SCHEMA_NOT_FOUND", text)
                }
                _ => {
                    let text = format!("line 1:15: Table '{CATALOG}.{named}' does not exist");
                    Failure::user("TABLE_NOT_FOUND", text)
                }
            };
        }
        if let Some(named) = rest("no such column: ") {
            let text = format!("line 1:8: Column '{named}' cannot be resolved");
            return Failure::user("COLUMN_NOT_FOUND", text);
        }
        if let Some(named) = rest("no such function: ") {
            let text = format!("line 1:8: Function '{named}' not registered");
            return Failure::user("FUNCTION_NOT_FOUND", text);
        }
        Failure::user(
            "SYNTAX_ERROR",
            format!("line 1:1: mismatched input: {said}"),
        )
    }
}

/// A value as the tables hold those of its type.
fn bound(typed: &Typed) -> Sqlite {
    let Kind::Scalar(name, _, behind) = &typed.kind else {
        return Sqlite::Text(typed.value.to_string());
    };
    match (&typed.value, name.as_str(), *behind) {
        (Value::Null, ..) => Sqlite::Null,
        (Value::Bool(value), ..) => Sqlite::Integer(i64::from(*value)),
        (Value::Number(number), ..) => match number.as_i64() {
            Some(number) => Sqlite::Integer(number),
            None => Sqlite::Real(number.as_f64().expect("a number")),
        },
        (Value::String(text), "decimal" | "double", _) => {
            Sqlite::Real(text.parse().expect("a number"))
        }
        (Value::String(text), "varbinary", _) => {
            Sqlite::Blob(STANDARD.decode(text).expect("base64"))
        }
        (Value::String(text), "timestamp", "with time zone") => {
            let moment = text.replace(" UTC", "Z").replacen(' ', "T", 1);
            Sqlite::Integer(parse_rfc3339(&moment).expect("a moment"))
        }
        (Value::String(text), "timestamp", _) => {
            let micros = parse_iso8601(text).expect("a time");
            Sqlite::Text(iso8601(micros).replace('T', " "))
        }
        (Value::String(text), ..) => Sqlite::Text(text.clone()),
        (other, ..) => Sqlite::Text(other.to_string()),
    }
}

fn table(names: Vec<String>, declared: &[Option<Kind>], rows: &[Vec<Sqlite>]) -> Table {
    let kinds: Vec<Kind> = declared
        .iter()
        .enumerate()
        .map(|(at, declared)| match declared {
            Some(kind) => kind.clone(),
            // What is computed is what it looks like.
            None => {
                let mut values = rows.iter().map(|row| &row[at]);
                let first = values.find(|value| **value != Sqlite::Null);
                Kind::simple(match first {
                    Some(Sqlite::Real(_)) => "double",
                    Some(Sqlite::Text(_)) => "varchar",
                    Some(Sqlite::Blob(_)) => "varbinary",
                    Some(Sqlite::Integer(_)) => "bigint",
                    Some(Sqlite::Null) | None => "unknown",
                })
            }
        })
        .collect();
    let cells = |row: &Vec<Sqlite>| {
        let cells = row
            .iter()
            .zip(&kinds)
            .map(|(value, kind)| cell(kind, value));
        cells.collect()
    };
    let rows = rows.iter().map(cells).collect();
    Table {
        columns: names.into_iter().zip(kinds).collect(),
        rows,
    }
}

fn cell(kind: &Kind, value: &Sqlite) -> Value {
    let (name, numbers, behind) = match kind {
        Kind::Scalar(name, numbers, behind) => (name.as_str(), numbers.as_slice(), *behind),
        _ => ("", &[][..], ""),
    };
    match (name, ValueRef::from(value)) {
        (_, ValueRef::Null) => Value::Null,
        ("", ValueRef::Text(text)) => serde_json::from_slice(text).expect("JSON"),
        ("boolean", ValueRef::Integer(number)) => (number != 0).into(),
        ("decimal", ValueRef::Integer(number)) => decimal(number as f64, numbers),
        ("decimal", ValueRef::Real(number)) => decimal(number, numbers),
        ("timestamp", ValueRef::Integer(micros)) if behind == "with time zone" => {
            format!("{} UTC", iso8601(micros).replace('T', " ")).into()
        }
        ("double" | "real", ValueRef::Integer(number)) => literals::float(number as f64),
        (_, ValueRef::Integer(number)) => number.into(),
        (_, ValueRef::Real(number)) => literals::float(number),
        (_, ValueRef::Text(text)) => String::from_utf8_lossy(text).into(),
        (_, ValueRef::Blob(bytes)) => STANDARD.encode(bytes).into(),
    }
}

/// With all digits of its scale.
fn decimal(number: f64, numbers: &[u64]) -> Value {
    let scale = numbers.get(1).copied().unwrap_or_default() as usize;
    format!("{number:.scale$}").into()
}
