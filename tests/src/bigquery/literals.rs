//! Statements that only compute: `SELECT` of literals, parameters, arrays and structs of them, with GoogleSQL's types and the texts that
//! BigQuery sends of their values.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use souk_sdk::time::{parse_iso8601, parse_rfc3339};

use super::tables::{Table, datetime, field};

/// A value: the field of a schema without its name, and the cell.
struct Typed {
    field: Value,
    value: Value,
}

/// Types whose literal is their name before a text.
const SPELLED: [&str; 10] = [
    "BIGNUMERIC",
    "NUMERIC",
    "DATETIME",
    "DATE",
    "TIMESTAMP",
    "TIME",
    "JSON",
    "INTERVAL",
    "RANGE<DATE>",
    "GEOGRAPHY",
];

/// The one row; `None` where the statement asks for more than literals. `zone`: what it runs in.
pub fn row(text: &str, parameters: &[Value], zone: &str) -> Option<Table> {
    let mut reader = Reader {
        rest: text.trim().strip_prefix("SELECT")?,
        parameters: parameters.iter(),
        zone,
    };
    let (mut fields, mut cells) = (Vec::new(), Vec::new());
    for (name, typed) in reader.list("")? {
        let mut field = typed.field;
        field["name"] = name.unwrap_or_else(|| format!("f{}_", fields.len())).into();
        fields.push(field);
        cells.push(typed.value);
    }
    Some(Table {
        fields,
        rows: vec![cells],
    })
}

struct Reader<'a> {
    rest: &'a str,
    parameters: std::slice::Iter<'a, Value>,
    zone: &'a str,
}

impl<'a> Reader<'a> {
    fn takes(&mut self, text: &str) -> bool {
        match self.rest.trim_start().strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Up to `end`, which is the statement's where it is empty.
    fn list(&mut self, end: &str) -> Option<Vec<(Option<String>, Typed)>> {
        let mut found = Vec::new();
        loop {
            let typed = self.value()?;
            let name = match self.takes("AS ") {
                true => Some(self.word()),
                false => None,
            };
            found.push((name, typed));
            let has_ended = match end {
                "" => self.rest.trim().is_empty(),
                end => self.takes(end),
            };
            if has_ended {
                return Some(found);
            }
            if !self.takes(",") {
                return None;
            }
        }
    }

    fn word(&mut self) -> String {
        let rest = self.rest.trim_start();
        let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        self.rest = &rest[end..];
        rest[..end].to_owned()
    }

    fn value(&mut self) -> Option<Typed> {
        if self.takes("?") {
            let parameter = self.parameters.next()?;
            let kind = parameter["parameterType"]["type"].as_str()?;
            return match &parameter["parameterValue"]["value"] {
                Value::Null => Some(scalar(kind, Value::Null)),
                Value::String(text) => spelled(kind, text),
                number => spelled(kind, &number.to_string()),
            };
        }
        if self.takes("@@time_zone") {
            return Some(scalar("STRING", self.zone.into()));
        }
        for kind in SPELLED {
            let literal = self.rest.trim_start().strip_prefix(kind);
            if let Some(rest) = literal.and_then(|rest| rest.strip_prefix(" '")) {
                self.rest = rest;
                return spelled(kind, &self.text()?);
            }
        }
        if self.takes("CAST(") {
            let value = self.value()?;
            let kind = self.takes("AS ").then(|| self.word())?;
            return match (self.takes(")"), &value.value) {
                (true, Value::String(text)) => spelled(&kind, text),
                (true, Value::Null) => Some(scalar(&kind, Value::Null)),
                _ => None,
            };
        }
        if self.takes("ST_GEOGFROMTEXT('") {
            let text = self.text()?;
            return self.takes(")").then(|| scalar("GEOGRAPHY", text.into()));
        }
        if self.takes("STRUCT(") {
            return self.list(")").map(structure);
        }
        if self.takes("[") {
            return self.list("]").and_then(array);
        }
        if self.takes("b'") {
            let text = self.text()?;
            // What was `\xff` is the character of that number.
            let bytes: Vec<u8> = text.chars().map(|char| char as u8).collect();
            return Some(scalar("BYTES", STANDARD.encode(bytes).into()));
        }
        if self.takes("'") {
            return Some(scalar("STRING", self.text()?.into()));
        }
        for (word, kind, value) in [
            ("TRUE", "BOOL", json!("true")),
            ("FALSE", "BOOL", json!("false")),
            ("NULL", "INT64", Value::Null),
        ] {
            if self.takes(word) {
                return Some(scalar(kind, value));
            }
        }
        self.number()
    }

    fn number(&mut self) -> Option<Typed> {
        let rest = self.rest.trim_start();
        let is_part = |char: char| char.is_ascii_digit() || matches!(char, '-' | '.' | 'e');
        let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        let (digits, rest) = rest.split_at(end);
        self.rest = rest;
        match digits.parse::<i64>() {
            Ok(_) => spelled("INT64", digits),
            Err(_) => spelled("FLOAT64", digits),
        }
    }

    /// The rest of a text, whose first quote was taken.
    fn text(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, char)) = chars.next() {
            match char {
                '\'' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(text);
                }
                '\\' => match chars.next()?.1 {
                    'x' => {
                        let digits: String = [chars.next()?.1, chars.next()?.1].iter().collect();
                        text.push(char::from(u8::from_str_radix(&digits, 16).ok()?));
                    }
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    other => text.push(other),
                },
                other => text.push(other),
            }
        }
        None
    }
}

fn scalar(kind: &str, value: Value) -> Typed {
    let field = field(kind);
    Typed { field, value }
}

fn structure(parts: Vec<(Option<String>, Typed)>) -> Typed {
    let (mut fields, mut cells) = (Vec::new(), Vec::new());
    for (name, typed) in parts {
        let mut field = typed.field;
        field["name"] = name
            .unwrap_or_else(|| format!("_field_{}", fields.len() + 1))
            .into();
        fields.push(field);
        cells.push(json!({"v": typed.value}));
    }
    Typed {
        field: json!({"type": "RECORD", "mode": "NULLABLE", "fields": fields}),
        value: json!({"f": cells}),
    }
}

fn array(parts: Vec<(Option<String>, Typed)>) -> Option<Typed> {
    let mut field = parts.first()?.1.field.clone();
    field["mode"] = "REPEATED".into();
    let cells = parts
        .into_iter()
        .map(|(_, typed)| json!({"v": typed.value}));
    Some(Typed {
        field,
        value: cells.collect(),
    })
}

/// A text as a value of the type, in the words that BigQuery has for it; `None` where it is none.
fn spelled(kind: &str, text: &str) -> Option<Typed> {
    let text = match kind {
        "INT64" => text.parse::<i64>().ok()?.to_string(),
        "FLOAT64" => match text.parse::<f64>().ok()? {
            value if value.is_nan() => "NaN".to_owned(),
            f64::INFINITY => "Infinity".to_owned(),
            f64::NEG_INFINITY => "-Infinity".to_owned(),
            value => value.to_string(),
        },
        // Zeros at the end are not kept.
        "NUMERIC" | "BIGNUMERIC" if text.contains('.') => {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        "TIMESTAMP" => parse_rfc3339(text)?.to_string(),
        "DATETIME" => parse_iso8601(text).map(|_| datetime(text))?,
        "TIME" => {
            let whole = datetime(&format!("1970-01-01T{text}"));
            whole.split_once('T')?.1.to_owned()
        }
        _ => text.to_owned(),
    };
    Some(scalar(kind, text.into()))
}
