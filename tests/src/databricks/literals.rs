//! Statements that only compute: `SELECT` of literals, parameters, arrays, maps and structs of them, with Databricks' types.

use serde_json::Value;
use souk_sdk::time::{Date, parse_iso8601, parse_rfc3339};

use super::refusals::Failure;
use super::values::{Cell, Kind, Table};
use crate::scanner::Scanner;

/// A value with its type.
#[derive(Clone, Debug)]
pub struct Typed {
    pub kind: Kind,
    pub cell: Cell,
}

/// Types whose literal is their name before a text.
const SPELLED: [&str; 4] = ["DATE", "TIMESTAMP_NTZ", "TIMESTAMP", "X"];

/// The values that are sent with a statement, by their names.
pub fn parameters(asked: &Value) -> Result<Vec<(String, Typed)>, Failure> {
    let list = asked["parameters"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let parameters = list.iter().map(|parameter| {
        let name = parameter["name"].as_str().unwrap_or_default().to_owned();
        let kind = Kind::of(parameter["type"].as_str().unwrap_or("STRING"));
        let cell = match parameter["value"].as_str() {
            None => Cell::Null,
            Some(text) => cast(text, &kind).ok_or_else(|| invalid(text, &kind))?,
        };
        Ok((name, Typed { kind, cell }))
    });
    parameters.collect()
}

fn invalid(text: &str, kind: &Kind) -> Failure {
    let kind = kind.text();
    let text = format!("The value '{text}' of the type \"STRING\" cannot be cast to \"{kind}\".");
    Failure::new("CAST_INVALID_INPUT", "22018", text)
}

/// The one row; `None` where the statement asks for more than literals.
pub fn row(text: &str, parameters: &[(String, Typed)]) -> Result<Option<Table>, Failure> {
    let mut reader = Reader {
        text: Scanner::of(text),
        parameters,
        failure: None,
    };
    let table = reader.row();
    match reader.failure {
        Some(failure) => Err(failure),
        None => Ok(table),
    }
}

struct Reader<'a> {
    text: Scanner<'a>,
    parameters: &'a [(String, Typed)],
    /// Why there is no row.
    failure: Option<Failure>,
}

impl Reader<'_> {
    fn row(&mut self) -> Option<Table> {
        if !self.text.takes_word("SELECT") {
            return None;
        }
        let (mut columns, mut cells) = (Vec::new(), Vec::new());
        loop {
            let begin = self.text.rest;
            let typed = self.value()?;
            let name = begin[..begin.len() - self.text.rest.len()]
                .trim()
                .to_owned();
            let name = match self.text.takes_word("AS") {
                true => self.text.word().trim_matches('`').to_owned(),
                false => name,
            };
            columns.push((name, typed.kind));
            cells.push(typed.cell);
            if !self.text.takes(",") {
                break;
            }
        }
        self.text.is_over().then_some(Table {
            columns,
            rows: vec![cells],
        })
    }

    fn value(&mut self) -> Option<Typed> {
        if self.text.takes(":") {
            let name = self.text.word();
            let known = self.parameters.iter().find(|(known, _)| known == name);
            if known.is_none() {
                let text = format!("Found the unbound parameter: {name}.");
                self.failure = Some(Failure::new("UNBOUND_SQL_PARAMETER", "42P02", text));
            }
            return known.map(|(_, typed)| typed.clone());
        }
        if self.text.takes("'") {
            let text = self.text.escaped()?;
            return Some(of("string", Cell::Text(text)));
        }
        let begin = self.text.rest;
        let word = self.text.word().to_ascii_uppercase();
        match word.as_str() {
            "TRUE" | "FALSE" => {
                return Some(of("boolean", Cell::Text(word.to_ascii_lowercase())));
            }
            "NULL" => return Some(of("void", Cell::Null)),
            "CAST" if self.text.takes("(") => return self.cast(),
            "UNHEX" if self.text.takes("(") => return self.unhex(),
            "PARSE_JSON" if self.text.takes("('") => {
                let text = self.text.escaped()?;
                let document: Value = serde_json::from_str(&text).ok()?;
                let cell = Cell::Json(document.to_string());
                return self.text.takes(")").then(|| of("variant", cell));
            }
            "ARRAY" if self.text.takes("(") => return self.list().and_then(array),
            "MAP" if self.text.takes("(") => return self.list().and_then(map),
            "NAMED_STRUCT" if self.text.takes("(") => return self.list().and_then(named_struct),
            "INTERVAL" if self.text.takes("'") => {
                let count = self.text.escaped()?;
                let unit = self.text.word().to_ascii_uppercase();
                let kind = format!("interval {}", unit.to_ascii_lowercase());
                let text = format!("INTERVAL '{count}' {unit}");
                return Some(of(&kind, Cell::Text(text)));
            }
            name if SPELLED.contains(&name) && self.text.takes("'") => {
                let text = self.text.escaped()?;
                let kind = match name {
                    "X" => return Some(of("binary", Cell::Bytes(hex::decode(text).ok()?))),
                    name => Kind::of(name),
                };
                let cell = cast(&text, &kind)?;
                return Some(Typed { kind, cell });
            }
            _ => {}
        }
        self.text.rest = begin;
        self.number()
    }

    fn list(&mut self) -> Option<Vec<Typed>> {
        let mut found = vec![self.value()?];
        while self.text.takes(",") {
            found.push(self.value()?);
        }
        self.text.takes(")").then_some(found)
    }

    fn cast(&mut self) -> Option<Typed> {
        let value = self.value()?;
        if !self.text.takes_word("AS") {
            return None;
        }
        let rest = self.text.rest;
        let mut depth = 0;
        let end = rest.find(|char| {
            depth += i32::from(char == '(') - i32::from(char == ')');
            depth < 0
        })?;
        self.text.rest = &rest[end + 1..];
        let kind = Kind::of(&rest[..end]);
        let cell = match value.cell {
            Cell::Text(text) => match cast(&text, &kind) {
                Some(cell) => cell,
                None => {
                    self.failure = Some(invalid(&text, &kind));
                    return None;
                }
            },
            cell => cell,
        };
        Some(Typed { kind, cell })
    }

    fn unhex(&mut self) -> Option<Typed> {
        let value = self.value()?;
        let cell = match value.cell {
            Cell::Text(text) => Cell::Bytes(hex::decode(text).ok()?),
            _ => Cell::Null,
        };
        self.text.takes(")").then(|| of("binary", cell))
    }

    fn number(&mut self) -> Option<Typed> {
        let digits = self.text.digits();
        if self.text.takes_word("F") {
            return literal("float", digits);
        }
        if digits.contains(['e', 'E']) {
            return literal("double", digits);
        }
        let whole = digits.trim_start_matches('-');
        if let Some((whole, fraction)) = whole.split_once('.') {
            let precision = whole.trim_start_matches('0').len() + fraction.len();
            let kind = format!("decimal({},{})", precision.max(1), fraction.len());
            return literal(&kind, digits);
        }
        match digits.parse::<i128>().ok()? {
            number if i32::try_from(number).is_ok() => literal("int", digits),
            number if i64::try_from(number).is_ok() => literal("bigint", digits),
            _ => literal(&format!("decimal({},0)", whole.len()), digits),
        }
    }
}

fn of(kind: &str, cell: Cell) -> Typed {
    Typed {
        kind: Kind::of(kind),
        cell,
    }
}

fn literal(kind: &str, text: &str) -> Option<Typed> {
    let kind = Kind::of(kind);
    let cell = cast(text, &kind)?;
    Some(Typed { kind, cell })
}

fn array(parts: Vec<Typed>) -> Option<Typed> {
    let kind = common(parts.iter())?;
    let texts: Vec<String> = parts
        .iter()
        .map(|part| part.cell.part(&part.kind))
        .collect();
    let document = format!("[{}]", texts.join(","));
    Some(of(&format!("array<{kind}>"), Cell::Json(document)))
}

/// The type of all of them: that of the first one that is no NULL.
fn common<'a>(mut parts: impl Iterator<Item = &'a Typed> + Clone) -> Option<String> {
    let first = parts.clone().next();
    let known = parts.find(|part| part.cell != Cell::Null).or(first);
    known.map(|part| part.kind.0.clone())
}

fn map(parts: Vec<Typed>) -> Option<Typed> {
    let key = common(parts.iter().step_by(2))?;
    let value = common(parts.iter().skip(1).step_by(2))?;
    Some(of(&format!("map<{key},{value}>"), members(&parts)?))
}

fn named_struct(parts: Vec<Typed>) -> Option<Typed> {
    let fields = parts.chunks(2).map(|pair| match pair {
        [name, value] => match &name.cell {
            Cell::Text(name) => Some(format!("{name}:{}", value.kind.0)),
            _ => None,
        },
        _ => None,
    });
    let fields: Option<Vec<String>> = fields.collect();
    Some(of(
        &format!("struct<{}>", fields?.join(",")),
        members(&parts)?,
    ))
}

fn members(parts: &[Typed]) -> Option<Cell> {
    let members = parts.chunks(2).map(|pair| match pair {
        [
            Typed {
                cell: Cell::Text(name),
                ..
            },
            value,
        ] => {
            let name = Value::from(name.as_str());
            Some(format!("{name}:{}", value.cell.part(&value.kind)))
        }
        _ => None,
    });
    let members: Option<Vec<String>> = members.collect();
    Some(Cell::Json(format!("{{{}}}", members?.join(","))))
}

/// A text as a value of the type; `None` where it is none.
fn cast(text: &str, kind: &Kind) -> Option<Cell> {
    let within = |least: i64, most: i64| {
        let number = text.parse::<i64>().ok()?;
        (least..=most).contains(&number).then(|| text.to_owned())
    };
    Some(match kind.head() {
        "tinyint" => Cell::Text(within(i8::MIN.into(), i8::MAX.into())?),
        "smallint" => Cell::Text(within(i16::MIN.into(), i16::MAX.into())?),
        "int" => Cell::Text(within(i32::MIN.into(), i32::MAX.into())?),
        "bigint" => Cell::Text(within(i64::MIN, i64::MAX)?),
        "boolean" => Cell::Text(text.parse::<bool>().ok()?.to_string()),
        "double" => Cell::Text(java(text.parse().ok()?)),
        // The shortest digits of the small number.
        "float" => Cell::Text(java(text.parse::<f32>().ok()?.to_string().parse().ok()?)),
        "decimal" => Cell::Text(decimal(text, kind)?),
        "date" => Cell::Text(Date::parse(text)?.to_string()),
        "timestamp" => Cell::Moment(parse_rfc3339(text).or_else(|| parse_iso8601(text))?),
        "timestamp_ntz" => Cell::Clock(parse_iso8601(text)?),
        "binary" => Cell::Bytes(text.as_bytes().to_vec()),
        "array" | "map" | "struct" | "variant" => return None,
        _ => Cell::Text(text.to_owned()),
    })
}

/// As Java writes it.
fn java(value: f64) -> String {
    match value {
        value if value.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        value if value != 0.0 && !(1e-3..1e7).contains(&value.abs()) => {
            let text = format!("{value:E}");
            match text.split_once('E') {
                Some((digits, exponent)) if !digits.contains('.') => {
                    format!("{digits}.0E{exponent}")
                }
                _ => text,
            }
        }
        value => format!("{value:?}"),
    }
}

/// With all digits of its scale, and no more than it has.
fn decimal(text: &str, kind: &Kind) -> Option<String> {
    let (precision, scale) = kind.digits().unwrap_or((10, 0));
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > scale as usize {
        return None;
    }
    let count = whole.trim_start_matches('0').len() + scale as usize;
    if count > precision as usize {
        return None;
    }
    let zeros = "0".repeat(scale as usize - fraction.len());
    Some(match scale {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{fraction}{zeros}"),
    })
}
