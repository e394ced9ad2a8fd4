//! Types and values of Databricks', and as which texts the API sends them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use souk_sdk::time::iso8601;

/// A type as SQL writes it, in small letters: `decimal(10,2)`, `array<string>`.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind(pub String);

/// A value, as exact as its type is.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    /// Of every type that has one text only.
    Text(String),
    Bytes(Vec<u8>),
    /// Microseconds.
    Moment(i64),
    /// Microseconds on a clock of no zone.
    Clock(i64),
    /// The document that `to_json` makes of it.
    Json(String),
}

/// A result.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub columns: Vec<(String, Kind)>,
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn bytes(&self) -> usize {
        let cells = self.rows.iter().flatten();
        cells
            .map(|cell| match cell {
                Cell::Text(text) | Cell::Json(text) => text.len(),
                Cell::Bytes(bytes) => bytes.len(),
                _ => 8,
            })
            .sum()
    }
}

impl Kind {
    pub fn of(text: &str) -> Kind {
        let text: String = text.chars().filter(|char| *char != '"').collect();
        let text = text.trim().to_ascii_lowercase();
        // What is behind it is SQLite's.
        let text = text.strip_suffix(" text").unwrap_or(&text);
        Kind(text.replace(", ", ","))
    }

    pub fn head(&self) -> &str {
        let end = self.0.find(['(', '<', ' ']).unwrap_or(self.0.len());
        &self.0[..end]
    }

    /// As a manifest says it.
    pub fn text(&self) -> String {
        self.0.to_ascii_uppercase()
    }

    /// The API's word for it.
    pub fn name(&self) -> String {
        match self.head() {
            "bigint" => "LONG",
            "tinyint" => "BYTE",
            "smallint" => "SHORT",
            "void" => "NULL",
            head => return head.to_ascii_uppercase(),
        }
        .to_owned()
    }

    /// Of a `decimal`: all of its digits, and those behind the point.
    pub fn digits(&self) -> Option<(u32, u32)> {
        let numbers = self.0.strip_prefix("decimal(")?.strip_suffix(')')?;
        let (precision, scale) = numbers.split_once(',')?;
        Some((precision.parse().ok()?, scale.parse().ok()?))
    }
}

impl Cell {
    /// As the API sends it: a moment with three digits of a second on the clock of the warehouse, which is in California in winter.
    pub fn sent(&self) -> Value {
        match self {
            Cell::Null => Value::Null,
            Cell::Text(text) | Cell::Json(text) => text.as_str().into(),
            Cell::Bytes(bytes) => STANDARD.encode(bytes).into(),
            Cell::Moment(micros) => {
                let local = iso8601(micros - 8 * 3_600_000_000);
                format!("{}-08:00", cut(&local, 3)).into()
            }
            Cell::Clock(micros) => cut(&iso8601(*micros), 3).into(),
        }
    }

    /// As `CAST(… AS STRING)` writes a clock: without zeros at its end.
    pub fn sql(&self) -> Cell {
        match self {
            Cell::Clock(micros) => {
                let text = iso8601(*micros).replacen('T', " ", 1);
                Cell::Text(text.trim_end_matches('0').trim_end_matches('.').to_owned())
            }
            other => other.clone(),
        }
    }

    /// As a part of a document, of a value of this type.
    pub fn part(&self, kind: &Kind) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        match self {
            Cell::Null => "null".to_owned(),
            Cell::Json(text) => text.clone(),
            Cell::Bytes(bytes) => quoted(&STANDARD.encode(bytes)),
            Cell::Moment(micros) => quoted(&format!("{}Z", iso8601(*micros))),
            Cell::Clock(micros) => quoted(&iso8601(*micros)),
            Cell::Text(text) => match kind.head() {
                "boolean" | "tinyint" | "smallint" | "int" | "bigint" | "decimal" => text.clone(),
                "float" | "double" if text.parse::<f64>().is_ok_and(f64::is_finite) => text.clone(),
                _ => quoted(text),
            },
        }
    }
}

/// A time with so many of its six digits of a second.
fn cut(text: &str, digits: usize) -> &str {
    &text[..text.len() - 6 + digits]
}
