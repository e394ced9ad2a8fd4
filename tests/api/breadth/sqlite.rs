//! What SQLite says to rusqlite, made into what souk writes: by the table of types in `plugins/sqlite/README.md`, read anew.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use regex::Regex;
use rusqlite::Connection;
use rusqlite::types::{Value, ValueRef};
use serde_json::{Value as Json, json};

use super::blocks::{Block, Parameter};
use super::spelling::{clock, moment};
use super::{Column, Told};

pub const SCHEMA: &str = include_str!("sqlite/schema.sql");
pub const ANSWERED: [&str; 4] = [
    include_str!("sqlite/values.sql"),
    include_str!("sqlite/functions.sql"),
    include_str!("sqlite/queries.sql"),
    include_str!("sqlite/parameters.sql"),
];
pub const REFUSED: &str = include_str!("sqlite/refused.sql");

/// Every whole number up to here is a float, and its neighbours are too.
const EXACT_MAX: u64 = 1 << 53;

/// What the statement answers with the block's values; what the block says itself, if it says it.
pub fn told(db: &Connection, block: &Block) -> Told {
    let (heads, rows): Asked = match block.answers.first() {
        Some(first) => {
            let heads = first.keys().map(|name| (name.clone(), String::new()));
            let row = |row: &serde_json::Map<String, Json>| row.values().map(kept).collect();
            (heads.collect(), block.answers.iter().map(row).collect())
        }
        None => asked(db, block),
    };
    let values = |place: usize| rows.iter().map(move |row| &row[place]);
    let readings: Vec<Reading> = heads
        .iter()
        .enumerate()
        .map(|(place, (_, declared))| Reading::of(declared, &values(place).collect::<Vec<_>>()))
        .collect();
    let column = |(place, (name, _)): (usize, &(String, String))| Column {
        name: name.clone(),
        is_number: values(place).all(|value| matches!(value, Value::Integer(_) | Value::Real(_))),
        is_float: readings[place] == Reading::Floats,
        sorts: true,
    };
    let row = |row: &Vec<Value>| {
        let cells = row.iter().zip(&readings);
        cells
            .map(|(value, reading)| reading.spelled(value))
            .collect()
    };
    Told {
        columns: heads.iter().enumerate().map(column).collect(),
        rows: rows.iter().map(row).collect(),
    }
}

/// Names and declared types of columns, and rows.
type Asked = (Vec<(String, String)>, Vec<Vec<Value>>);

fn asked(db: &Connection, block: &Block) -> Asked {
    let statement = db.prepare(block.sql);
    let mut statement = statement.unwrap_or_else(|error| panic!("{}: {error}", block.name));
    let heads: Vec<(String, String)> = statement
        .columns()
        .iter()
        .map(|column| {
            let declared = column.decl_type().unwrap_or_default();
            (column.name().to_owned(), declared.to_uppercase())
        })
        .collect();
    for parameter in &block.parameters {
        let place = statement.parameter_index(&format!(":{}", parameter.name));
        let place = place.expect("a name").expect("a parameter");
        let bound = statement.raw_bind_parameter(place, bound(parameter));
        bound.expect("a value");
    }
    let mut found = statement.raw_query();
    let mut rows = Vec::new();
    while let Some(row) = found
        .next()
        .unwrap_or_else(|error| panic!("{}: {error}", block.name))
    {
        let places = 0..heads.len();
        rows.push(
            places
                .map(|place| owned(row.get_ref_unwrap(place)))
                .collect(),
        );
    }
    (heads, rows)
}

/// A text that is none counts as bytes.
fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(bytes) => match String::from_utf8(bytes.to_vec()) {
            Ok(text) => Value::Text(text),
            Err(error) => Value::Blob(error.into_bytes()),
        },
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

/// A parameter's value as souk binds it: a number that may have a fraction is a float, a moment is written as SQLite's functions write it.
fn bound(parameter: &Parameter) -> Value {
    match (&parameter.value, parameter.kind) {
        (Json::Number(number), "number") => Value::Real(number.as_f64().expect("a number")),
        (Json::String(text), "timestamp") => Value::Text(text.replace('T', " ").replace('Z', "")),
        (value, _) => kept(value),
    }
}

/// A value of JSON as SQLite keeps it.
fn kept(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Integer((*value).into()),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::Integer(integer),
            None => Value::Real(number.as_f64().expect("a number")),
        },
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(_) | Json::Object(_) => panic!("{value} is no value of SQLite's"),
    }
}

/// What a column becomes.
#[derive(Clone, Copy, PartialEq)]
enum Reading {
    AsTheyAre,
    Floats,
    /// Exact numbers, without an exponent.
    Decimals,
    Booleans,
    Clocks,
    LocalMoments,
    Moments,
    Documents,
}

impl Reading {
    /// By what it was declared as and by all that is in it.
    fn of(declared: &str, values: &[&Value]) -> Reading {
        let has = |is: fn(&Value) -> bool| values.iter().any(|value| is(value));
        let integers = has(|value| matches!(value, Value::Integer(_)));
        let reals = has(|value| matches!(value, Value::Real(_)));
        let texts = has(|value| matches!(value, Value::Text(_)));
        let blobs = has(|value| matches!(value, Value::Blob(_)));
        let is_inexact = has(
            |value| matches!(value, Value::Integer(number) if number.unsigned_abs() > EXACT_MAX),
        );
        let is_flag = |value: &&Value| matches!(value, Value::Null | Value::Integer(0 | 1));
        let is_decimal = declared.starts_with("DEC") || declared.starts_with("NUMERIC");
        match (integers || reals, texts, blobs) {
            (true, false, false) if is_decimal => Reading::Decimals,
            (true, false, false) if reals && is_inexact => Reading::Decimals,
            (true, false, false) if reals => Reading::Floats,
            (true, false, false) if declared.contains("BOOL") && values.iter().all(is_flag) => {
                Reading::Booleans
            }
            (false, true, false) => Reading::of_texts(declared, values),
            (true, false, false) | (false, false, _) => Reading::AsTheyAre,
            _ => Reading::Documents,
        }
    }

    fn of_texts(declared: &str, values: &[&Value]) -> Reading {
        let all = |pattern: &str| {
            let pattern = Regex::new(&format!("^(?:{pattern})$")).expect("a pattern");
            values.iter().all(|value| match value {
                Value::Text(text) => pattern.is_match(text),
                _ => true,
            })
        };
        let time = r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?";
        let local = format!(r"\d{{4}}-\d\d-\d\d[ T]{time}");
        match declared {
            "TIME" if all(time) => Reading::Clocks,
            "DATETIME" | "TIMESTAMP" if all(&local) => Reading::LocalMoments,
            "DATETIME" | "TIMESTAMP" if all(&format!("{local}Z")) => Reading::Moments,
            "TIMESTAMPTZ" | "TIMESTAMP WITH TIME ZONE" if all(&format!("{local}Z?")) => {
                Reading::Moments
            }
            _ => Reading::AsTheyAre,
        }
    }

    fn spelled(self, value: &Value) -> Option<String> {
        let text = match (self, value) {
            (_, Value::Null) => return None,
            (Reading::Documents, value) => document(value).to_string(),
            (Reading::Booleans, Value::Integer(flag)) => (*flag == 1).to_string(),
            (_, Value::Integer(number)) => number.to_string(),
            (_, Value::Real(number)) => real(*number),
            (_, Value::Blob(bytes)) => STANDARD.encode(bytes),
            (Reading::Clocks, Value::Text(text)) => clock(text),
            (Reading::LocalMoments, Value::Text(text)) => moment(text),
            (Reading::Moments, Value::Text(text)) => {
                format!("{}Z", moment(text.trim_end_matches('Z')))
            }
            (_, Value::Text(text)) => text.clone(),
        };
        Some(text)
    }
}

/// Shortest, and without an exponent.
fn real(number: f64) -> String {
    match number.is_infinite() {
        true if number > 0.0 => "Infinity".to_owned(),
        true => "-Infinity".to_owned(),
        false => number.to_string(),
    }
}

/// A value of a column that holds several kinds of them.
fn document(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Integer(number) => Json::from(*number),
        Value::Real(number) if number.is_infinite() => Json::from(real(*number)),
        Value::Real(number) => Json::from(*number),
        Value::Text(text) => Json::from(text.as_str()),
        Value::Blob(bytes) => json!({"base64": STANDARD.encode(bytes)}),
    }
}
