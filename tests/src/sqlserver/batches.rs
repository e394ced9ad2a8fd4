//! What is asked: the statements of a batch or a call, each with the values that it may name.

use std::time::Duration;

use rusqlite::types::Value;

use super::Failure;
use super::calls::{Call, Values};
use super::types::Kind;
use crate::tables::regex;

/// How long a statement on `slow` takes.
const SLOW: Duration = Duration::from_millis(1_500);

/// A statement of a batch.
pub struct Statement {
    pub text: String,
    pub values: Values,
}

/// The statements of a call: what `sp_executesql` is given, and what that gives to another one.
pub fn called(body: &[u8]) -> Result<Vec<Statement>, Failure> {
    let call = Call::read(body)
        .ok_or_else(|| Failure::new(8009, "The incoming tabular data stream is incorrect."))?;
    if !call
        .procedure
        .to_ascii_lowercase()
        .ends_with("sp_executesql")
    {
        return Err(Failure::new(
            2812,
            format!("Could not find stored procedure '{}'.", call.procedure),
        ));
    }
    let mut given = call.values.into_iter();
    let text = match given.next() {
        Some((_, bound)) => shown(&bound.value),
        None => return Err(Failure::new(201, "Procedure expects a parameter.")),
    };
    let values: Values = given.skip(1).collect();
    let mut statements = Vec::new();
    for statement in split(&text) {
        let lower = statement.text.to_ascii_lowercase();
        let Some(at) = lower.strip_prefix("exec sys.sp_executesql ") else {
            let values = values.clone();
            statements.push(Statement {
                values,
                ..statement
            });
            continue;
        };
        let names = statement.text[statement.text.len() - at.len()..].split(',');
        let names: Vec<&str> = names.map(str::trim).collect();
        let value = |name: &str| values.get(name).map(|bound| shown(&bound.value));
        let inner = value(names[0])
            .ok_or_else(|| Failure::new(137, "Must declare the scalar variable."))?;
        let declared = names
            .get(1)
            .and_then(|name| value(name))
            .unwrap_or_default();
        let mut own = Values::new();
        for name in names.iter().skip(2) {
            if !declared.contains(&format!("{name} ")) {
                return Err(Failure::new(
                    137,
                    format!("Must declare the scalar variable \"{name}\"."),
                ));
            }
            own.insert((*name).to_owned(), values[*name].clone());
        }
        statements.push(Statement {
            text: inner,
            values: own,
        });
    }
    Ok(statements)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        _ => String::new(),
    }
}

/// Statements between semicolons that are in nothing. What a client begins with is many of `SET`, which are one here.
pub fn split(text: &str) -> Vec<Statement> {
    let (mut quote, mut from) = (None, 0);
    let mut parts = Vec::new();
    for (at, char) in text.char_indices() {
        match (quote, char) {
            (None, '\'' | '"') => quote = Some(char),
            (None, '[') => quote = Some(']'),
            (Some(closes), char) if char == closes => quote = None,
            (None, ';') => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    let parts = parts
        .into_iter()
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let statement = |part: &str| Statement {
        text: part.to_owned(),
        values: Values::new(),
    };
    parts.map(statement).collect()
}

/// How much time a statement takes that takes some: `None` is for ever.
pub fn waits(text: &str) -> Option<Option<Duration>> {
    match text {
        _ if text.contains("FROM slow") => Some(Some(SLOW)),
        _ if text.contains("FROM endless") || text.contains("FROM torn") => Some(None),
        _ => None,
    }
}

/// What a query writes by a function that empties a table while it is asked, as one of the CLR's may, and the query without that. By its words it only
/// reads.
pub fn cleared(text: &str) -> Option<(String, String)> {
    let called = regex(r"(?i)\bdbo\.cleared\(N'(\w+)'\)");
    let table = called.captures(text)?.get(1)?.as_str();
    let rest = called.replace_all(text, "1").into_owned();
    Some((format!("DELETE FROM dbo.{table}"), rest))
}

/// Whether a value can be of the type that a statement casts it to.
pub fn fits(kind: &Kind, value: &Value) -> Result<(), Failure> {
    let Value::Text(text) = value else {
        return Ok(());
    };
    let converts = |text: &str| {
        Failure::new(
            245,
            format!(
                "Conversion failed when converting the varchar value '{text}' to data type {}.",
                kind.name
            ),
        )
    };
    match kind.name.as_str() {
        "tinyint" | "smallint" | "int" | "bigint" | "bit" => match text.parse::<i64>() {
            Ok(number) if kind.name == "int" && i32::try_from(number).is_err() => {
                Err(Failure::new(
                    8115,
                    "Arithmetic overflow error converting expression to data type int.",
                ))
            }
            Ok(_) => Ok(()),
            Err(_) => Err(converts(text)),
        },
        "float" | "real" | "decimal" | "numeric" => text
            .parse::<f64>()
            .map(drop)
            .map_err(|_| Failure::new(8114, "Error converting data type varchar to numeric.")),
        "date" | "datetime" | "datetime2" | "datetimeoffset"
            if !text.starts_with(|first: char| first.is_ascii_digit()) || text.len() < 10 =>
        {
            Err(Failure::new(
                241,
                "Conversion failed when converting date and/or time from character string.",
            ))
        }
        _ => Ok(()),
    }
}
