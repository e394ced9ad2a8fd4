//! What DuckDB says to a client of its own: the texts that it writes itself, in which every digit is, made into what souk writes by the table of types in
//! `docs/engines.md`, read anew.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::Value;
use souk_tests::DuckDb;

use super::blocks::{Block, Parameter};
use super::spelling::{clock, day, moment};
use super::{Column, Row, Told};

pub const SCHEMA: &str = include_str!("duckdb/schema.sql");
pub const ANSWERED: [&str; 3] = [
    include_str!("duckdb/values.sql"),
    include_str!("duckdb/queries.sql"),
    include_str!("duckdb/parameters.sql"),
];
pub const REFUSED: &str = include_str!("duckdb/refused.sql");

const NUMBERS: [&str; 13] = [
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "UHUGEINT",
    "BIGNUM",
    "FLOAT",
    "DOUBLE",
];

/// What a statement that writes would change: rows, what there is, a sequence, settings, files.
pub fn state(server: &DuckDb) -> Vec<Vec<Option<String>>> {
    server.admin(
        "SELECT (SELECT md5(string_agg(s::VARCHAR, ',' ORDER BY id)) FROM staff AS s), (SELECT count(*) FROM duckdb_tables()), (SELECT count(*) FROM duckdb_functions()),
        (SELECT last_value FROM duckdb_sequences()), (SELECT count(*) FROM duckdb_databases()),
        (SELECT string_agg(value, ',' ORDER BY name) FROM duckdb_settings() WHERE name IN ('autoinstall_known_extensions', 'threads', 'TimeZone')), (SELECT count(*) FROM glob('/tmp/souk_breadth*'))",
    )
}

/// An answer as `tests/engines/quack.py` tells it (`told`). A type is its name, or a list of what it is and its parts.
#[derive(Deserialize)]
struct Answer {
    columns: Vec<(String, Value)>,
    rows: Vec<Vec<Value>>,
}

/// What the statement answers, with the block's values written into it.
pub fn told(server: &DuckDb, block: &Block) -> Told {
    let sql = block.filled(literal);
    let answer = server.told(sql.trim_end_matches([';', '\n']));
    let Answer { columns, rows } = serde_json::from_value(answer).expect("an answer");
    let row = |row: &Vec<Value>| {
        let cells = row.iter().zip(&columns);
        cells
            .map(|(value, (_, kind))| spelled(kind, value))
            .collect::<Row>()
    };
    Told {
        rows: rows.iter().map(row).collect(),
        columns: columns
            .iter()
            .map(|(name, kind)| told_column(name, kind.as_str().unwrap_or_default()))
            .collect(),
    }
}

fn told_column(name: &str, kind: &str) -> Column {
    let is_number = NUMBERS.contains(&kind) || kind.starts_with("DECIMAL(");
    let others = [
        "VARCHAR",
        "DATE",
        "TIME",
        "TIMESTAMP",
        "TIMESTAMP_S",
        "TIMESTAMP WITH TIME ZONE",
        "UUID",
    ];
    Column {
        name: name.to_owned(),
        is_number,
        is_float: is_float(kind),
        sorts: is_number || others.contains(&kind),
    }
}

fn is_float(kind: &str) -> bool {
    matches!(kind, "FLOAT" | "DOUBLE")
}

/// A parameter's value: of the type that it is declared to be, also where it is NULL.
fn literal(parameter: &Parameter) -> String {
    let kind = match parameter.kind {
        "integer" => "BIGINT",
        "number" => "DOUBLE",
        "string" => "VARCHAR",
        "timestamp" => "TIMESTAMPTZ",
        other => other,
    };
    let text = match &parameter.value {
        Value::Null => return format!("CAST(NULL AS {kind})"),
        Value::String(text) => text.replace('\'', "''"),
        value => value.to_string(),
    };
    format!("CAST('{text}' AS {kind})")
}

/// A value as souk writes it.
fn spelled(kind: &Value, value: &Value) -> Option<String> {
    match (kind.as_str(), value) {
        (_, Value::Null) => None,
        (Some(kind), value) => Some(plain(kind, value.as_str().expect("a text"))),
        (None, value) => Some(document(kind, value)),
    }
}

/// A value that is not nested.
fn plain(kind: &str, text: &str) -> String {
    match kind {
        "FLOAT" | "DOUBLE" => match text {
            "nan" | "-nan" => "NaN".to_owned(),
            "inf" => "Infinity".to_owned(),
            "-inf" => "-Infinity".to_owned(),
            number => number.to_owned(),
        },
        "BLOB" => STANDARD.encode(bytes(text)),
        "DATE" => day(&with_era(text)),
        "TIME" => clock(text),
        "TIMESTAMP" | "TIMESTAMP_S" | "TIMESTAMP_MS" => moment(&with_era(text)),
        "TIMESTAMP WITH TIME ZONE" => {
            let text = text.strip_suffix("+00").expect("a moment in UTC");
            format!("{}Z", moment(&with_era(text)))
        }
        // Without a digit before the point where there is none but behind it.
        _ if kind.starts_with("DECIMAL(") => match text.split_once('.') {
            Some(("", fraction)) => format!("0.{fraction}"),
            Some(("-", fraction)) => format!("-0.{fraction}"),
            _ => text.to_owned(),
        },
        _ => text.to_owned(),
    }
}

/// `0044-03-15 (BC) 12:00:00` as PostgreSQL has it, with the era at the end.
fn with_era(text: &str) -> String {
    match text.split_once(" (BC)") {
        Some((day, time)) => format!("{day}{time} BC"),
        None => text.to_owned(),
    }
}

/// `a\x00\xFF`.
fn bytes(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.extend(hex::decode(digits).expect("a byte"));
        bytes.extend(rest.as_bytes());
    }
    bytes
}

/// A value as JSON. Of what is nested the parts come in their order: an entry of a map is its key and its value, a union the name and the value that there is.
fn document(kind: &Value, value: &Value) -> String {
    let (Some(parts), false) = (kind.as_array(), value.is_null()) else {
        return item(kind, value);
    };
    let values = value.as_array().expect("parts");
    let of = |place: usize| parts.get(place).expect("a part's type");
    match of(0).as_str() {
        Some("list") => list(values.iter().map(|value| document(of(1), value))),
        Some("map") => object(values.iter().map(|entry| {
            let key = item(of(1), &entry[0]);
            let key = serde_json::from_str(&key).unwrap_or(key);
            (key, document(of(2), &entry[1]))
        })),
        Some("struct") => {
            let members = of(1).as_array().expect("members").iter().zip(values);
            let members: Vec<(String, String)> = members
                .map(|(member, value)| (name(member), document(&member[1], value)))
                .collect();
            // `row(1, 2)`.
            match members.iter().any(|(name, _)| name.is_empty()) {
                true => list(members.into_iter().map(|(_, value)| value)),
                false => object(members.into_iter()),
            }
        }
        Some("union") => {
            let members = of(1).as_array().expect("members");
            let there_is = members.iter().find(|member| member[0] == values[0]);
            let member = there_is.expect("a member");
            object([(name(member), document(&member[1], &values[1]))].into_iter())
        }
        _ => panic!("{kind} is no type"),
    }
}

fn name(member: &Value) -> String {
    member[0].as_str().expect("a name").to_owned()
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<String>>().join(","))
}

fn object(members: impl Iterator<Item = (String, String)>) -> String {
    let members = members.map(|(name, value)| format!("{}:{value}", Value::from(name)));
    format!("{{{}}}", members.collect::<Vec<String>>().join(","))
}

/// A part that is not nested: a number or a document as it is, what JSON has no number for and everything else as a string.
fn item(kind: &Value, value: &Value) -> String {
    let (Some(kind), Some(text)) = (kind.as_str(), value.as_str()) else {
        return "null".to_owned();
    };
    match text.parse::<f64>() {
        Ok(number) if is_float(kind) && number.is_finite() => Value::from(number).to_string(),
        _ if kind == "JSON" || kind == "BOOLEAN" => text.to_owned(),
        _ if !is_float(kind) && told_column("", kind).is_number => plain(kind, text),
        _ => Value::from(plain(kind, text)).to_string(),
    }
}

#[test]
fn bytes_are_read_as_duckdb_writes_them() {
    for (text, expected) in [
        ("", b"".as_slice()),
        ("abc", b"abc".as_slice()),
        ("\\x00\\xFFa", b"\x00\xffa".as_slice()),
        ("a\\x5Cx00", b"a\\x00".as_slice()),
    ] {
        assert_eq!(bytes(text), expected, "{text}");
    }
}
