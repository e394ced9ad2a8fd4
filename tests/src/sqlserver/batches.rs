//! What is asked: the statements of a batch or a call, each with the values that it may name. A text is read once.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::types::Value;

use super::Failure;
use super::calls::{Call, Values};
use super::types::Kind;
use crate::remembered::ByText;
use crate::tables::regex;

/// How long a statement on `slow` takes.
const SLOW: Duration = Duration::from_millis(1_500);

/// A statement of a batch, and what it may name.
pub struct Statement {
    pub parsed: Arc<Parsed>,
    pub values: Arc<Values>,
}

/// A statement, by its words.
pub struct Parsed {
    pub text: String,
    /// It is nothing where no transaction is open.
    pub is_conditional: bool,
    pub act: Act,
    /// Of a call of `sp_executesql` the names behind it.
    gives: Option<Vec<String>>,
}

pub enum Act {
    /// An option, of which only `XACT_ABORT` is heeded: whether it is on.
    Sets(Option<bool>),
    Begins,
    Keeps,
    Undoes,
    /// What it writes nevertheless, and the query without that.
    Reads(Option<(String, String)>),
    Writes,
}

/// The texts that were asked before.
#[derive(Default)]
pub struct Texts {
    batches: ByText<Vec<Arc<Parsed>>>,
    statements: ByText<Parsed>,
}

impl Texts {
    /// The statements of a batch.
    pub fn batch(&self, text: &str) -> Vec<Statement> {
        let values = Arc::new(Values::new());
        let statement = |parsed: &Arc<Parsed>| Statement {
            parsed: Arc::clone(parsed),
            values: Arc::clone(&values),
        };
        self.split(text).iter().map(statement).collect()
    }

    /// The statements of a call: what `sp_executesql` is given, and what that gives to another one.
    pub fn called(&self, body: &[u8]) -> Result<Vec<Statement>, Failure> {
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
            Some((_, bound)) => shown(&bound.value).to_owned(),
            None => return Err(Failure::new(201, "Procedure expects a parameter.")),
        };
        let values: Arc<Values> = Arc::new(given.skip(1).collect());
        let mut statements = Vec::new();
        for parsed in self.split(&text).iter() {
            let Some(names) = &parsed.gives else {
                statements.push(Statement {
                    parsed: Arc::clone(parsed),
                    values: Arc::clone(&values),
                });
                continue;
            };
            let value = |name: &str| values.get(name).map(|bound| shown(&bound.value));
            let inner = value(&names[0])
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
                own.insert(name.clone(), values[name].clone());
            }
            statements.push(Statement {
                parsed: self.statements.of(inner, || Parsed::of(inner)),
                values: Arc::new(own),
            });
        }
        Ok(statements)
    }

    fn split(&self, text: &str) -> Arc<Vec<Arc<Parsed>>> {
        self.batches.of(text, || {
            let parts = split(text).into_iter();
            parts.map(|part| Arc::new(Parsed::of(part))).collect()
        })
    }
}

impl Parsed {
    fn of(text: &str) -> Parsed {
        let upper = text.trim().to_ascii_uppercase();
        let conditional = upper.strip_prefix("IF @@TRANCOUNT > 0 ").map(str::trim);
        let gives = upper.strip_prefix("EXEC SYS.SP_EXECUTESQL ").map(|names| {
            let names = text.trim_end()[text.trim_end().len() - names.len()..].split(',');
            names.map(|name| name.trim().to_owned()).collect()
        });
        Parsed {
            text: text.to_owned(),
            is_conditional: conditional.is_some(),
            act: act(text.trim(), conditional.unwrap_or(&upper)),
            gives,
        }
    }
}

/// `upper`: the text in capital letters, without its condition.
fn act(text: &str, upper: &str) -> Act {
    let begins = |words: &str| upper.starts_with(words);
    match () {
        () if begins("SET ") || begins("USE ") || upper.is_empty() => {
            Act::Sets(begins("SET XACT_ABORT").then(|| upper.ends_with("ON")))
        }
        () if begins("BEGIN TRAN") => Act::Begins,
        () if begins("COMMIT") => Act::Keeps,
        () if begins("ROLLBACK") => Act::Undoes,
        () if (begins("SELECT") || begins("WITH") || begins("(")) && !upper.contains(" INTO ") => {
            Act::Reads(cleared(text))
        }
        () => Act::Writes,
    }
}

fn shown(value: &Value) -> &str {
    match value {
        Value::Text(text) => text,
        _ => "",
    }
}

/// Statements between semicolons that are in nothing. What a client begins with is many of `SET`, which are one here.
fn split(text: &str) -> Vec<&str> {
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
    let parts = parts.into_iter().map(str::trim);
    parts.filter(|part| !part.is_empty()).collect()
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
fn cleared(text: &str) -> Option<(String, String)> {
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
