//! Statements that only compute: `SELECT` of literals, arrays, maps and rows of them, with Trino's types and the values that it sends of them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use souk_sdk::time::{Date, parse_iso8601};

use super::tables::Table;
use super::types::Kind;
use crate::scanner::Scanner;

/// A value with its type, as an answer has both.
#[derive(Clone, Debug)]
pub struct Typed {
    pub kind: Kind,
    pub value: Value,
}

/// Types whose literal is their name before a text.
const SPELLED: [&str; 11] = [
    "BIGINT",
    "INTEGER",
    "DOUBLE",
    "REAL",
    "DECIMAL",
    "DATE",
    "TIMESTAMP",
    "TIME",
    "JSON",
    "UUID",
    "IPADDRESS",
];

/// The statement of an `EXECUTE IMMEDIATE`, and its values; `None` where it is none, or none that can be read.
pub fn execute_immediate(text: &str) -> Option<(String, Vec<Typed>)> {
    let mut reader = Reader::of(text, &[]);
    if !reader.text.takes_word("EXECUTE")
        || !reader.text.takes_word("IMMEDIATE")
        || !reader.text.takes("'")
    {
        return None;
    }
    let statement = reader.text.quoted()?;
    let mut values = Vec::new();
    if reader.text.takes_word("USING") {
        loop {
            values.push(reader.value()?);
            if !reader.text.takes(",") {
                break;
            }
        }
    }
    reader.text.is_over().then_some((statement, values))
}

/// The one row; `None` where the statement asks for more than literals.
pub fn row(text: &str, values: &[Typed]) -> Option<Table> {
    let mut reader = Reader::of(text, values);
    if !reader.text.takes_word("SELECT") {
        return None;
    }
    let (mut columns, mut cells) = (Vec::new(), Vec::new());
    loop {
        let typed = reader.value()?;
        let name = match reader.text.takes_word("AS") {
            true => reader.text.word().trim_matches('"').to_owned(),
            false => format!("_col{}", columns.len()),
        };
        columns.push((name, typed.kind));
        cells.push(typed.value);
        if !reader.text.takes(",") {
            break;
        }
    }
    reader.text.is_over().then_some(Table {
        columns,
        rows: vec![cells],
    })
}

struct Reader<'a> {
    text: Scanner<'a>,
    values: std::slice::Iter<'a, Typed>,
}

impl<'a> Reader<'a> {
    fn of(text: &'a str, values: &'a [Typed]) -> Reader<'a> {
        Reader {
            text: Scanner::of(text),
            values: values.iter(),
        }
    }

    fn list(&mut self, end: &str) -> Option<Vec<Typed>> {
        let mut found = vec![self.value()?];
        while self.text.takes(",") {
            found.push(self.value()?);
        }
        self.text.takes(end).then_some(found)
    }

    fn value(&mut self) -> Option<Typed> {
        if self.text.takes("?") {
            return self.values.next().cloned();
        }
        if self.text.takes("'") {
            let text = self.text.quoted()?;
            let kind = Kind::sized("varchar", &[text.chars().count() as u64]);
            return Some(typed(kind, text.into()));
        }
        if self.text.takes("X'") {
            let bytes = hex::decode(self.text.quoted()?).ok()?;
            return Some(typed(
                Kind::simple("varbinary"),
                STANDARD.encode(bytes).into(),
            ));
        }
        let begin = self.text.rest;
        let word = self.text.word().to_ascii_uppercase();
        match word.as_str() {
            "" => return self.number(),
            "TRUE" | "FALSE" => {
                return Some(typed(Kind::simple("boolean"), (word == "TRUE").into()));
            }
            "NULL" => return Some(typed(Kind::simple("unknown"), Value::Null)),
            "CAST" if self.text.takes("(") => return self.cast(),
            "ARRAY" if self.text.takes("[") => return self.list("]").and_then(array),
            "ROW" if self.text.takes("(") => {
                let parts = self.list(")")?;
                let fields = parts.iter().map(|part| (None, part.kind.clone()));
                let kind = Kind::Row(fields.collect());
                let cells = parts.into_iter().map(|part| part.value).collect();
                return Some(typed(kind, cells));
            }
            "MAP" if self.text.takes("(") => return self.list(")").and_then(map),
            "INTERVAL" if self.text.takes("'") => return self.interval(),
            name if SPELLED.contains(&name) && self.text.takes("'") => {
                let text = self.text.quoted()?;
                return literal(&name.to_ascii_lowercase(), &text);
            }
            _ => {}
        }
        self.text.rest = begin;
        self.number()
    }

    fn cast(&mut self) -> Option<Typed> {
        let value = self.value()?;
        if !self.text.takes_word("AS") {
            return None;
        }
        let kind = Kind::read(&mut self.text.rest)?;
        self.text.takes(")").then_some(())?;
        cast(value, kind)
    }

    fn interval(&mut self) -> Option<Typed> {
        let count: i64 = self.text.quoted()?.parse().ok()?;
        let (behind, text) = match self.text.word().to_ascii_uppercase().as_str() {
            "DAY" => ("day to second", format!("{count} 00:00:00.000")),
            "YEAR" => ("year to month", format!("{count}-0")),
            _ => return None,
        };
        let kind = Kind::Scalar("interval".to_owned(), Vec::new(), behind);
        Some(typed(kind, text.into()))
    }

    fn number(&mut self) -> Option<Typed> {
        let digits = self.text.digits();
        if digits.contains(['e', 'E']) {
            return literal("double", digits);
        }
        if digits.contains('.') {
            return literal("decimal", digits);
        }
        match digits.parse::<i64>().ok()? {
            number if i32::try_from(number).is_ok() => literal("integer", digits),
            _ => literal("bigint", digits),
        }
    }
}

fn typed(kind: Kind, value: Value) -> Typed {
    Typed { kind, value }
}

fn array(parts: Vec<Typed>) -> Option<Typed> {
    let kind = Kind::Array(Box::new(common(&parts)?));
    Some(typed(
        kind,
        parts.into_iter().map(|part| part.value).collect(),
    ))
}

/// The type of all of them: that of the first one that is no NULL.
fn common(parts: &[Typed]) -> Option<Kind> {
    let known = parts.iter().find(|part| !part.value.is_null());
    known.or(parts.first()).map(|part| part.kind.clone())
}

fn map(parts: Vec<Typed>) -> Option<Typed> {
    let [keys, values] = parts.try_into().ok()?;
    let (Kind::Array(key), Kind::Array(value)) = (keys.kind, values.kind) else {
        return None;
    };
    let keys = keys.value.as_array()?.iter();
    let names = keys.map(|key| key.as_str().map_or_else(|| key.to_string(), str::to_owned));
    let members = names.zip(values.value.as_array()?.iter().cloned());
    Some(typed(Kind::Map(key, value), members.collect()))
}

fn cast(from: Typed, kind: Kind) -> Option<Typed> {
    if from.value.is_null() || matches!(kind, Kind::Row(_) | Kind::Array(_) | Kind::Map(..)) {
        return Some(typed(kind, from.value));
    }
    let text = match &from.value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let Kind::Scalar(name, ..) = &kind else {
        return None;
    };
    match name.as_str() {
        "varchar" => Some(typed(kind, text.into())),
        "char" => {
            let Kind::Scalar(_, numbers, _) = &kind else {
                return None;
            };
            let width = *numbers.first()? as usize;
            Some(typed(kind, format!("{text:width$}").into()))
        }
        name => literal(name, &text).map(|value| typed(kind, value.value)),
    }
}

/// A text as a value of the type, as Trino sends it; `None` where it is none.
fn literal(kind: &str, text: &str) -> Option<Typed> {
    let simple = Kind::simple(kind);
    Some(match kind {
        "tinyint" | "smallint" | "integer" | "bigint" => {
            typed(simple, text.parse::<i64>().ok()?.into())
        }
        "double" | "real" => typed(simple, float(text.parse().ok()?)),
        "boolean" => typed(simple, text.parse::<bool>().ok()?.into()),
        "decimal" => {
            let digits = text.trim_start_matches('-');
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
            let count = whole.trim_start_matches('0').len() + fraction.len();
            if !is_number(whole) || !is_number(fraction) || count > 38 {
                return None;
            }
            let kind = Kind::sized("decimal", &[count.max(1) as u64, fraction.len() as u64]);
            typed(kind, text.into())
        }
        "date" => typed(simple, Date::parse(text)?.to_string().into()),
        "time" => {
            parse_iso8601(&format!("1970-01-01T{text}"))?;
            typed(Kind::clock(kind, digits(text), false), text.into())
        }
        "timestamp" => {
            let (local, zone) = match text.rsplit_once(' ') {
                Some((local, zone)) if local.contains(' ') => (local, Some(zone)),
                _ => (text, None),
            };
            parse_iso8601(local)?;
            let kind = Kind::clock(kind, digits(local), zone.is_some());
            typed(kind, text.into())
        }
        "json" => {
            let document: Value = serde_json::from_str(text).ok()?;
            typed(simple, document.to_string().into())
        }
        "uuid" => typed(simple, text.to_ascii_lowercase().into()),
        _ => typed(simple, text.into()),
    })
}

/// Of a second.
fn digits(text: &str) -> usize {
    text.rsplit_once('.').map_or(0, |(_, digits)| digits.len())
}

/// JSON has no number for three of them.
pub fn float(value: f64) -> Value {
    match value {
        value if value.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        value => json!(value),
    }
}
