//! SQL as text: what a seller may write, and how it is written for each engine.
//!
//! A lock on words, not a parser. [`check`] accepts one statement that begins as a query does; [`prepare`]
//! turns `:name` into the engine's own placeholders, so that nothing inside a text, a comment or a quoted
//! name is touched, and a value can only ever be bound. Both look at each byte a few times and at nothing
//! twice: there is no input that takes long.
//!
//! It refuses to know what a statement does. The engine parses it, and is the judge of the rest: PostgreSQL
//! and SQLite hold read-only themselves (the connectors see to that), so `WITH x AS (DELETE …)` or
//! `SELECT setval(…)` is theirs to refuse. Of any other engine this is not known, and a statement for it must
//! not have a word that writes.

mod filters;
mod lexer;
mod page;
mod words;

use std::borrow::Cow;
use std::collections::HashMap;

pub use filters::{Condition, Operator, prefix_pattern};
use lexer::{Kind, Token};
pub use page::{
    After, Order, RowSource, Rows, Selected, Slot, Statement, Window, columns, key_name, page,
    sample,
};

/// A statement longer than this is no calculation but a data load.
pub const SQL_BYTES_MAX: usize = 64 * 1024;
/// PostgreSQL and SQLite take more; nobody writes more by hand.
pub const PLACEHOLDERS_MAX: usize = 256;
/// How much of a seller's text an error repeats.
const QUOTED_CHARS_MAX: usize = 40;

/// How SQL is written for an engine. The words are those of the connector contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    Postgres,
    MySql,
    Sqlite,
    ClickHouse,
    BigQuery,
    MsSql,
    Generic,
    /// No SQL: a text of the engine's own, which nobody here reads, wraps or pages.
    Opaque,
}

impl Dialect {
    /// `none` is a connector that takes no SQL. A word this host does not know is written generically.
    pub fn of(word: &str) -> Option<Dialect> {
        match word {
            "none" => None,
            "postgres" => Some(Dialect::Postgres),
            "mysql" => Some(Dialect::MySql),
            "sqlite" => Some(Dialect::Sqlite),
            "clickhouse" => Some(Dialect::ClickHouse),
            "bigquery" => Some(Dialect::BigQuery),
            "mssql" => Some(Dialect::MsSql),
            "opaque" => Some(Dialect::Opaque),
            _ => Some(Dialect::Generic),
        }
    }

    /// A quoted identifier: `"it""s"`, `` `it``s` ``, `[it]]s]`.
    pub fn quote(self, name: &str) -> String {
        match self {
            Dialect::MySql => format!("`{}`", name.replace('`', "``")),
            Dialect::ClickHouse | Dialect::BigQuery => {
                format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`"))
            }
            Dialect::MsSql => format!("[{}]", name.replace(']', "]]")),
            Dialect::Postgres | Dialect::Sqlite | Dialect::Generic | Dialect::Opaque => {
                format!("\"{}\"", name.replace('"', "\"\""))
            }
        }
    }

    /// Whether one number can stand for a value that is used twice.
    fn numbers_placeholders(self) -> bool {
        matches!(self, Dialect::Postgres | Dialect::Sqlite | Dialect::MsSql)
    }

    fn placeholder(self, number: usize) -> String {
        match self {
            Dialect::Postgres => format!("${number}"),
            Dialect::Sqlite => format!("?{number}"),
            Dialect::MsSql => format!("@P{number}"),
            Dialect::MySql
            | Dialect::ClickHouse
            | Dialect::BigQuery
            | Dialect::Generic
            | Dialect::Opaque => "?".to_owned(),
        }
    }

    /// Whether a statement that writes fails at the engine, whatever it looks like: its connector runs
    /// everything in transactions or on files that are read-only.
    fn holds_read_only(self) -> bool {
        matches!(self, Dialect::Postgres | Dialect::Sqlite)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    #[error("the statement is {0} bytes long; at most {SQL_BYTES_MAX} are accepted")]
    TooLong(usize),
    #[error("the statement cannot be read: {0}")]
    Syntax(String),
    #[error(
        "{0}: write exactly one statement that begins with SELECT, WITH, VALUES or TABLE and only reads"
    )]
    NotReadOnly(Cow<'static, str>),
    #[error("\"{0}\" is not a parameter of the service: write parameters as :name")]
    ForeignPlaceholder(String),
    #[error(
        "\":{0}\" is not a parameter name: use letters, digits and _, at most 63, and begin with a letter or _"
    )]
    BadName(String),
    #[error("the statement has more than {PLACEHOLDERS_MAX} placeholders")]
    TooManyPlaceholders,
    #[error(
        "the statement uses :{0}, which is not among the parameters (a colon of SQL's own, as in a slice, takes a blank after it)"
    )]
    Undeclared(String),
    #[error("the parameter \"{0}\" is not used in the statement")]
    Unused(String),
}

impl SqlError {
    fn refused(what: impl Into<Cow<'static, str>>) -> SqlError {
        SqlError::NotReadOnly(what.into())
    }
}

/// A statement in its engine's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    pub text: String,
    /// `bindings[i]` is the name of the value bound at position `i + 1`.
    pub bindings: Vec<String>,
}

/// Whether a seller may save this statement, with these parameters. The answer is what is executed.
pub fn check(dialect: Dialect, sql: &str, parameters: &[&str]) -> Result<Prepared, SqlError> {
    let mut prepared = prepare(dialect, sql)?;
    match dialect {
        // What stands in the text is the connector's business: it is given every value, in the order in which they are declared.
        Dialect::Opaque => {
            prepared.bindings = parameters.iter().map(|name| (*name).to_owned()).collect()
        }
        _ => check_names(&prepared.bindings, parameters)?,
    }
    Ok(prepared)
}

/// The one statement of `sql`, with the engine's placeholders. A text of the engine's own stays as it is.
pub fn prepare(dialect: Dialect, sql: &str) -> Result<Prepared, SqlError> {
    if sql.len() > SQL_BYTES_MAX {
        return Err(SqlError::TooLong(sql.len()));
    }
    if dialect == Dialect::Opaque {
        return opaque(sql);
    }
    let tokens = lexer::tokens(dialect, sql)?;
    let statement = one_statement(&tokens)?;
    begins_as_a_query(sql, statement)?;
    closes_what_it_opens(statement)?;
    if !dialect.holds_read_only() {
        words::refuse_writes(dialect, sql, statement)?;
    }
    rewrite(dialect, sql, statement)
}

/// Whether it only reads is promised by the connector, and held by its wire; here it is only looked at whether it is a text at all.
fn opaque(text: &str) -> Result<Prepared, SqlError> {
    if text.trim().is_empty() {
        return Err(SqlError::Syntax("it is empty".to_owned()));
    }
    if text.contains('\0') {
        return Err(SqlError::Syntax("it has a NUL in it".to_owned()));
    }
    Ok(Prepared {
        text: text.to_owned(),
        bindings: Vec::new(),
    })
}

/// Every name that is used is declared, every name that is declared is used.
pub fn check_names(used: &[String], declared: &[&str]) -> Result<(), SqlError> {
    if let Some(name) = used.iter().find(|name| !declared.contains(&name.as_str())) {
        return Err(SqlError::Undeclared(name.clone()));
    }
    match declared
        .iter()
        .find(|name| !used.iter().any(|used| used == *name))
    {
        Some(name) => Err(SqlError::Unused((*name).to_owned())),
        None => Ok(()),
    }
}

/// The tokens of the one statement: up to its semicolon, if it has one, with nothing after it. What it may
/// end in, it may stand inside another one: an endpoint's does.
fn one_statement(tokens: &[Token]) -> Result<&[Token], SqlError> {
    let ends = |token: &Token| matches!(token.kind, Kind::Semicolon | Kind::OpenComment);
    let end = tokens.iter().position(ends).unwrap_or(tokens.len());
    let (statement, rest) = tokens.split_at(end);
    let blank = |token: &Token| token.kind == Kind::Space;
    if statement.iter().all(blank) {
        return Err(SqlError::refused("there is no statement"));
    }
    if !rest.iter().all(|token| blank(token) || ends(token)) {
        return Err(SqlError::refused("there is more than one statement"));
    }
    Ok(statement)
}

/// A query begins with one of these words, in parentheses or not. Whatever begins otherwise could end the
/// transaction that holds read-only, or is no statement with rows.
fn begins_as_a_query(sql: &str, statement: &[Token]) -> Result<(), SqlError> {
    let first = statement
        .iter()
        .find(|token| !matches!(token.kind, Kind::Space | Kind::Open));
    let begins = |token: &&Token| {
        token.kind == Kind::Word
            && ["SELECT", "WITH", "VALUES", "TABLE"]
                .iter()
                .any(|word| token.text(sql).eq_ignore_ascii_case(word))
    };
    match first {
        Some(first) if begins(&first) => Ok(()),
        Some(first) => Err(SqlError::refused(format!(
            "the statement begins with \"{}\"",
            clipped(first.text(sql))
        ))),
        None => Err(SqlError::refused("there is no statement")),
    }
}

/// An endpoint's statement is put into parentheses, and must not leave them.
fn closes_what_it_opens(statement: &[Token]) -> Result<(), SqlError> {
    let mut depth = 0usize;
    for token in statement {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close if depth == 0 => {
                return Err(SqlError::Syntax("a \")\" closes nothing".to_owned()));
            }
            Kind::Close => depth -= 1,
            _ => {}
        }
    }
    match depth {
        0 => Ok(()),
        _ => Err(SqlError::Syntax("a \"(\" is not closed".to_owned())),
    }
}

/// Replaces `:name` by the engine's placeholders and changes nothing else; only a blank may come before one.
fn rewrite(dialect: Dialect, sql: &str, statement: &[Token]) -> Result<Prepared, SqlError> {
    let mut text = String::with_capacity(sql.len() + 16);
    let mut names = Names::default();
    let mut brackets = 0usize;
    let mut before: Option<&Token> = None;
    for (index, token) in statement.iter().enumerate() {
        match token.kind {
            Kind::OpenBracket => brackets += 1,
            Kind::CloseBracket => brackets = brackets.saturating_sub(1),
            Kind::Foreign => {
                return Err(SqlError::ForeignPlaceholder(clipped(token.text(sql))));
            }
            Kind::Colon if brackets == 0 && !joins(dialect, before, token) => {
                let next = statement.get(index + 1);
                if let Some(number) = next.filter(|next| next.kind == Kind::Number) {
                    return Err(SqlError::BadName(clipped(number.text(sql))));
                }
            }
            _ => {}
        }
        if token.kind == Kind::Parameter {
            let number = names.number(dialect, &token.text(sql)[1..])?;
            // `x:name` must not become the identifier `x$1`.
            if text.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
                text.push(' ');
            }
            text.push_str(&dialect.placeholder(number));
        } else {
            text.push_str(token.text(sql));
        }
        if token.kind != Kind::Space {
            before = Some(token);
        }
    }
    Ok(Prepared {
        text,
        bindings: names.bound.into_iter().map(str::to_owned).collect(),
    })
}

/// Whether a colon stands between two values, as PostgreSQL's `JSON_OBJECT('a':1)` has it, and not before a
/// placeholder of some other product (`x = :1`).
fn joins(dialect: Dialect, before: Option<&Token>, colon: &Token) -> bool {
    let Some(before) = before.filter(|_| dialect == Dialect::Postgres) else {
        return false;
    };
    match before.kind {
        Kind::Quoted | Kind::Number | Kind::Parameter | Kind::Close | Kind::CloseBracket => true,
        Kind::Word => before.end() == colon.start(),
        _ => false,
    }
}

/// The names that a statement binds.
#[derive(Default)]
struct Names<'a> {
    bound: Vec<&'a str>,
    numbers: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    /// The number of the placeholder that stands for this name.
    fn number(&mut self, dialect: Dialect, name: &'a str) -> Result<usize, SqlError> {
        if !is_name(name) {
            return Err(SqlError::BadName(clipped(name)));
        }
        if let (true, Some(number)) = (dialect.numbers_placeholders(), self.numbers.get(name)) {
            return Ok(*number);
        }
        if self.bound.len() == PLACEHOLDERS_MAX {
            return Err(SqlError::TooManyPlaceholders);
        }
        self.bound.push(name);
        self.numbers.insert(name, self.bound.len());
        Ok(self.bound.len())
    }
}

/// `[A-Za-z_][A-Za-z0-9_]{0,62}`: what every engine and every query string takes.
pub fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.len() <= 63
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "sql_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "sql_fuzz_tests.rs"]
mod fuzz_tests;

#[cfg(test)]
#[path = "sql_page_tests.rs"]
mod page_tests;
