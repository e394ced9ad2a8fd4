//! Types of Trino's: read as SQL writes them, told as an answer describes them.

use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Its name, its numbers, and what stands behind them (`with time zone`).
    Scalar(String, Vec<u64>, &'static str),
    Array(Box<Kind>),
    Map(Box<Kind>, Box<Kind>),
    Row(Vec<(Option<String>, Kind)>),
}

/// Length of a `varchar` that has none.
const UNBOUNDED: u64 = 2_147_483_647;

impl Kind {
    pub fn simple(name: &str) -> Kind {
        Kind::Scalar(name.to_owned(), Vec::new(), "")
    }

    pub fn sized(name: &str, numbers: &[u64]) -> Kind {
        Kind::Scalar(name.to_owned(), numbers.to_vec(), "")
    }

    /// A time, a clock (`timestamp`) or a moment, with so many digits of a second.
    pub fn clock(name: &str, digits: usize, has_zone: bool) -> Kind {
        let zone = if has_zone { "with time zone" } else { "" };
        Kind::Scalar(name.to_owned(), vec![digits as u64], zone)
    }

    /// Of a whole text.
    pub fn parse(text: &str) -> Option<Kind> {
        let mut rest = text.trim();
        let kind = Kind::read(&mut rest)?;
        rest.is_empty().then_some(kind)
    }

    /// Takes a type off the front of a text.
    pub fn read(rest: &mut &str) -> Option<Kind> {
        let name = word(rest).to_ascii_lowercase();
        if name.is_empty() {
            return None;
        }
        match (name.as_str(), rest.starts_with('(')) {
            ("array", true) => {
                let mut parts = list(rest, Kind::read)?;
                (parts.len() == 1).then(|| Kind::Array(Box::new(parts.remove(0))))
            }
            ("map", true) => {
                let mut parts = list(rest, Kind::read)?;
                let value = parts.pop()?;
                (parts.len() == 1).then(|| Kind::Map(Box::new(parts.remove(0)), Box::new(value)))
            }
            // Here fields have names.
            ("row", true) => list(rest, |rest| {
                let name = word(rest).trim_matches('"').to_owned();
                Some((Some(name), Kind::read(rest)?))
            })
            .map(Kind::Row),
            _ => {
                let numbers = match rest.starts_with('(') {
                    true => list(rest, |rest| word(rest).parse().ok())?,
                    false => match name.as_str() {
                        "time" | "timestamp" => vec![3],
                        "decimal" => vec![38, 0],
                        _ => Vec::new(),
                    },
                };
                let behind = ["with time zone", "year to month", "day to second"];
                let behind = behind
                    .into_iter()
                    .find(|words| rest.to_ascii_lowercase().starts_with(words))
                    .unwrap_or_default();
                *rest = rest[behind.len()..].trim_start();
                Some(Kind::Scalar(name, numbers, behind))
            }
        }
    }

    /// As an answer names it.
    pub fn name(&self) -> String {
        match self {
            Kind::Array(element) => format!("array({})", element.name()),
            Kind::Map(key, value) => format!("map({}, {})", key.name(), value.name()),
            Kind::Row(fields) => {
                let fields = fields.iter().map(|(name, kind)| match name {
                    Some(name) => format!("\"{name}\" {}", kind.name()),
                    None => kind.name(),
                });
                format!("row({})", fields.collect::<Vec<_>>().join(", "))
            }
            Kind::Scalar(name, numbers, behind) => {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                let mut text = name.clone();
                if !numbers.is_empty() {
                    text.push_str(&format!("({})", numbers.join(",")));
                }
                if !behind.is_empty() {
                    text.push_str(&format!(" {behind}"));
                }
                text
            }
        }
    }

    /// As an answer takes it apart.
    pub fn signature(&self) -> Value {
        let of_type = |kind: &Kind| json!({"kind": "TYPE", "value": kind.signature()});
        match self {
            Kind::Array(element) => json!({"rawType": "array", "arguments": [of_type(element)]}),
            Kind::Map(key, value) => {
                json!({"rawType": "map", "arguments": [of_type(key), of_type(value)]})
            }
            Kind::Row(fields) => {
                let fields = fields.iter().map(|(name, kind)| {
                    let mut value = json!({"typeSignature": kind.signature()});
                    if let Some(name) = name {
                        value["fieldName"] = json!({"name": name});
                    }
                    json!({"kind": "NAMED_TYPE", "value": value})
                });
                json!({"rawType": "row", "arguments": fields.collect::<Vec<_>>()})
            }
            Kind::Scalar(name, numbers, behind) => {
                let numbers = match (name.as_str(), numbers.as_slice()) {
                    ("varchar", []) => &[UNBOUNDED],
                    (_, numbers) => numbers,
                };
                let numbers = numbers
                    .iter()
                    .map(|number| json!({"kind": "LONG", "value": number}));
                let raw = format!("{name} {behind}");
                json!({"rawType": raw.trim_end(), "arguments": numbers.collect::<Vec<_>>()})
            }
        }
    }
}

fn word<'a>(rest: &mut &'a str) -> &'a str {
    let text = rest.trim_start();
    let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '"');
    let end = text.find(|char| !is_part(char)).unwrap_or(text.len());
    *rest = text[end..].trim_start();
    &text[..end]
}

fn list<T>(rest: &mut &str, mut part: impl FnMut(&mut &str) -> Option<T>) -> Option<Vec<T>> {
    *rest = rest.strip_prefix('(')?;
    let mut parts = vec![part(rest)?];
    loop {
        *rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(')') {
            *rest = after.trim_start();
            return Some(parts);
        }
        *rest = rest.strip_prefix(',')?;
        parts.push(part(rest)?);
    }
}
