//! Statements on tables: SQLite runs them, and its columns have Trino's types. A schema is a database that is attached; all of them are of one
//! catalog.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::Captures;
use rusqlite::types::{Value as Sqlite, ValueRef};
use serde_json::Value;
use souk_sdk::time::{iso8601, parse_iso8601, parse_rfc3339};

use super::literals::{self, Typed};
use super::types::Kind;
use super::{CATALOG, Failure, VERSION};
use crate::remembered::ByText;
use crate::tables::{Found, Wrong, engines_own, regex, sequence, uses};

/// A result: columns with their types, and cells as an answer has them.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub columns: Vec<(String, Kind)>,
    pub rows: Vec<Vec<Value>>,
}

pub struct Tables {
    tables: crate::tables::Tables,
    translations: ByText<(String, bool)>,
    /// Minutes east of Greenwich, of the clock that moments are on.
    pub zone: i64,
}

impl Tables {
    pub fn new() -> Tables {
        let tables = crate::tables::Tables::new("bigint");
        tables.describe();
        Tables {
            tables,
            translations: ByText::default(),
            zone: 0,
        }
    }

    pub fn admin(&self, sql: &str) {
        self.tables.admin(sql);
        self.tables.describe();
        // Whether a text fits is its columns' to say.
        self.translations.forget();
    }

    /// Runs a query.
    pub fn query(&self, text: &str, values: &[Typed]) -> Result<Table, Failure> {
        if let Some(table) = literals::row(text, values) {
            return Ok(table);
        }
        let translation = self.translations.try_of(text, || {
            self.fits(text)?;
            translated(text)
        })?;
        let (text, swaps) = &*translation;
        let mut bound: Vec<Sqlite> = values.iter().map(bound).collect();
        if let (true, [.., rows, offset]) = (*swaps, &mut bound[..]) {
            std::mem::swap(rows, offset);
        }
        let found = self.tables.ask(text, &bound);
        let told = found.map(|found| table(found, self.zone));
        told.map_err(|wrong| failure(wrong, values))
    }

    /// Texts are not coerced to these types, and sketches have no order.
    fn fits(&self, page: &str) -> Result<(), Failure> {
        for (column, operator) in uses(page) {
            let kind = self.tables.declared(column).unwrap_or_default();
            let text = match (kind.to_ascii_lowercase().as_str(), operator) {
                ("hyperloglog", "ORDER BY") => format!(
                    "line 1:1: Type {kind} is not orderable, and therefore cannot be used in ORDER BY: s.{column}"
                ),
                (_, "ORDER BY") => continue,
                ("uuid" | "ipaddress" | "hyperloglog", _) => {
                    format!("line 1:1: Cannot apply operator: {kind} {operator} varchar(0)")
                }
                _ => continue,
            };
            return Err(Failure::user("TYPE_MISMATCH", text));
        }
        Ok(())
    }

    /// Runs a statement that writes.
    pub fn write(&self, text: &str) -> Result<(), Failure> {
        if text.contains("information_schema.") {
            return Err(Failure::user(
                "NOT_SUPPORTED",
                "This connector does not support inserts",
            ));
        }
        let (text, _) = translated(text)?;
        self.tables.run(&text).map_err(|wrong| failure(wrong, &[]))
    }
}

/// As SQLite has it, and whether the last two values change places.
fn translated(text: &str) -> Result<(String, bool), Failure> {
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
    let text = regex(r"information_schema\.(\w+)").replace_all(&text, "\"information_schema.$1\"");
    let text = text.replace("version()", &format!("'{VERSION}'"));
    let series = regex(r"UNNEST\(sequence\((\d+), (\d+)\)\) AS (\w+)\((\w+)\)");
    let text = series.replace_all(&text, |parts: &Captures<'_>| {
        let [from, until, table, column] = [1, 2, 3, 4].map(|at| &parts[at]);
        format!("{} AS {table}", sequence(from, until, column))
    });
    let window = regex(r"OFFSET (\?|\d+)(?: ROWS?)? LIMIT (\?|\d+)\s*$");
    let swaps = window
        .captures(&text)
        .is_some_and(|parts| &parts[1] == "?" && &parts[2] == "?");
    let text = window.replace(&text, "LIMIT $2 OFFSET $1").into_owned();
    Ok((text, swaps))
}

fn failure(wrong: Wrong, values: &[Typed]) -> Failure {
    let (name, text) = match wrong {
        Wrong::Schema(schema) => (
            "SCHEMA_NOT_FOUND",
            format!("line 1:15: Schema '{schema}' does not exist"),
        ),
        Wrong::Table(table) => (
            "TABLE_NOT_FOUND",
            format!("line 1:15: Table '{CATALOG}.{table}' does not exist"),
        ),
        Wrong::Column(column) => (
            "COLUMN_NOT_FOUND",
            format!("line 1:8: Column '{column}' cannot be resolved"),
        ),
        Wrong::Function(function) => (
            "FUNCTION_NOT_FOUND",
            format!("line 1:8: Function '{function}' not registered"),
        ),
        Wrong::Values(wanted) => (
            "INVALID_PARAMETER_USAGE",
            format!(
                "line 1:1: Incorrect number of parameters: expected {wanted} but found {}",
                values.len()
            ),
        ),
        Wrong::Syntax(said) => (
            "SYNTAX_ERROR",
            format!("line 1:1: mismatched input: {said}"),
        ),
    };
    Failure::user(name, text)
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

fn table(found: Found, zone: i64) -> Table {
    let declared = found.declared.iter().enumerate();
    let kinds: Vec<Kind> = declared
        .map(|(at, declared)| {
            let declared = declared.as_deref();
            let kind = declared.and_then(|kind| Kind::parse(engines_own(kind)));
            // What is computed is what it looks like.
            kind.unwrap_or_else(|| {
                let mut values = found.rows.iter().map(|row| &row[at]);
                let first = values.find(|value| **value != Sqlite::Null);
                Kind::simple(match first {
                    Some(Sqlite::Real(_)) => "double",
                    Some(Sqlite::Text(_)) => "varchar",
                    Some(Sqlite::Blob(_)) => "varbinary",
                    Some(Sqlite::Integer(_)) => "bigint",
                    Some(Sqlite::Null) | None => "unknown",
                })
            })
        })
        .collect();
    let cells = |row: &Vec<Sqlite>| {
        let cells = row
            .iter()
            .zip(&kinds)
            .map(|(value, kind)| cell(kind, value, zone));
        cells.collect()
    };
    let rows = found.rows.iter().map(cells).collect();
    Table {
        columns: found.names.into_iter().zip(kinds).collect(),
        rows,
    }
}

fn cell(kind: &Kind, value: &Sqlite, zone: i64) -> Value {
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
            moment(micros, zone).into()
        }
        ("double" | "real", ValueRef::Integer(number)) => literals::float(number as f64),
        (_, ValueRef::Integer(number)) => number.into(),
        (_, ValueRef::Real(number)) => literals::float(number),
        (_, ValueRef::Text(text)) => String::from_utf8_lossy(text).into(),
        (_, ValueRef::Blob(bytes)) => STANDARD.encode(bytes).into(),
    }
}

/// What the clock there shows, and how far it is from Greenwich.
fn moment(micros: i64, zone: i64) -> String {
    let shown = iso8601(micros + zone * 60_000_000).replace('T', " ");
    let (hours, minutes) = (zone.abs() / 60, zone.abs() % 60);
    match zone {
        0 => format!("{shown} UTC"),
        1.. => format!("{shown} +{hours:02}:{minutes:02}"),
        _ => format!("{shown} -{hours:02}:{minutes:02}"),
    }
}

/// With all digits of its scale.
fn decimal(number: f64, numbers: &[u64]) -> Value {
    let scale = numbers.get(1).copied().unwrap_or_default() as usize;
    format!("{number:.scale$}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text that is known is read again once a column is of another type.
    #[test]
    fn a_text_fits_the_tables_that_there_are() {
        let tables = Tables::new();
        let page = r#"SELECT s."id" FROM memory.shelf.goods AS s WHERE s."serial" = 'a'"#;
        tables.admin(
            "ATTACH ':memory:' AS shelf; CREATE TABLE shelf.goods (id bigint, serial varchar);",
        );
        assert!(tables.query(page, &[]).is_ok());
        tables.admin("DROP TABLE shelf.goods; CREATE TABLE shelf.goods (id bigint, serial uuid);");
        assert!(tables.query(page, &[]).is_err());
    }
}
