//! SQL as text: what a seller may write, and how it is written for each engine.
//!
//! Two guarantees. [`check`] accepts exactly one statement that reads (`SELECT`, `WITH … SELECT`,
//! or a parenthesised one). [`prepare`] turns `:name` into the engine's own placeholders with a
//! real tokenizer, so that nothing inside a string, a comment or a quoted identifier is touched,
//! and a value can only ever be bound.
//!
//! It refuses to know what a function does: `SELECT f()` is a read here, and the source's own
//! read-only mode, held by the connector, is the lock on what `f` writes.

use std::borrow::Cow;

use sqlparser::ast::{Query, SetExpr, Statement};
use sqlparser::dialect as parsers;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};

/// A statement longer than this is no calculation but a data load; it also bounds the parser.
pub const SQL_BYTES_MAX: usize = 64 * 1024;
/// PostgreSQL and SQLite take more; nobody writes more by hand.
pub const PLACEHOLDERS_MAX: usize = 256;
/// A chain of operators nests as deep as it is long; parsing and dropping it must not exhaust a
/// worker's stack.
const PARSER_STACK_BYTES: usize = 128 * 1024 * 1024;

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
            _ => Some(Dialect::Generic),
        }
    }

    /// A quoted identifier: `"it""s"`, `` `it``s` ``, `[it]]s]`.
    pub fn quote(self, name: &str) -> String {
        match self {
            Dialect::MySql | Dialect::ClickHouse => format!("`{}`", name.replace('`', "``")),
            Dialect::BigQuery => format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`")),
            Dialect::MsSql => format!("[{}]", name.replace(']', "]]")),
            Dialect::Postgres | Dialect::Sqlite | Dialect::Generic => {
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
            Dialect::MySql | Dialect::ClickHouse | Dialect::BigQuery | Dialect::Generic => {
                "?".to_owned()
            }
        }
    }

    fn parser(self) -> Box<dyn parsers::Dialect> {
        match self {
            Dialect::Postgres => Box::new(parsers::PostgreSqlDialect {}),
            Dialect::MySql => Box::new(parsers::MySqlDialect {}),
            Dialect::Sqlite => Box::new(parsers::SQLiteDialect {}),
            Dialect::ClickHouse => Box::new(parsers::ClickHouseDialect {}),
            Dialect::BigQuery => Box::new(parsers::BigQueryDialect {}),
            Dialect::MsSql => Box::new(parsers::MsSqlDialect {}),
            Dialect::Generic => Box::new(parsers::GenericDialect {}),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    #[error("the statement is {0} bytes long; at most {SQL_BYTES_MAX} are accepted")]
    TooLong(usize),
    #[error("the statement cannot be parsed: {0}")]
    Syntax(String),
    #[error("{0}: write exactly one statement that begins with SELECT or WITH and only reads")]
    NotReadOnly(Cow<'static, str>),
    #[error("\"{0}\" is not a parameter of the service: write parameters as :name")]
    ForeignPlaceholder(String),
    #[error(
        "\":{0}\" is not a parameter name: use letters, digits and _, at most 63, and begin with a letter or _"
    )]
    BadName(String),
    #[error("the statement has more than {PLACEHOLDERS_MAX} placeholders")]
    TooManyPlaceholders,
    #[error("the statement uses :{0}, which is not among the parameters")]
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
    let prepared = prepare(dialect, sql)?;
    check_names(&prepared.bindings, parameters)?;
    // What is parsed is what the source will get. (The generic parser reads `?` as an operator.)
    parse_on_a_big_stack(
        dialect,
        if dialect == Dialect::Generic {
            sql
        } else {
            &prepared.text
        },
    )?;
    Ok(prepared)
}

/// Rewrites the placeholders. Cheap: it tokenizes, but does not parse.
pub fn prepare(dialect: Dialect, sql: &str) -> Result<Prepared, SqlError> {
    if sql.len() > SQL_BYTES_MAX {
        return Err(SqlError::TooLong(sql.len()));
    }
    let tokens = tokenize(dialect, sql)?;
    let end = end_of_statement(&tokens, sql)?;
    refuse_hidden_writes(dialect, sql, &tokens)?;
    rewrite(dialect, &sql[..end], &tokens)
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

/// A token and where it stands, in bytes.
struct Placed {
    token: Token,
    start: usize,
    end: usize,
}

fn tokenize(dialect: Dialect, sql: &str) -> Result<Vec<Placed>, SqlError> {
    let parser = dialect.parser();
    let tokens = Tokenizer::new(parser.as_ref(), sql)
        .tokenize_with_location()
        .map_err(|e| SqlError::Syntax(e.to_string()))?;
    let mut positions = Positions::new(sql);
    Ok(tokens
        .into_iter()
        .map(|TokenWithSpan { token, span }| {
            let start = positions.byte(span.start);
            let end = positions.byte(span.end);
            Placed { token, start, end }
        })
        .collect())
}

/// The tokenizer counts lines and characters; this walks along and counts bytes.
struct Positions<'a> {
    sql: &'a str,
    at: Location,
    byte: usize,
}

impl<'a> Positions<'a> {
    fn new(sql: &'a str) -> Self {
        Positions {
            sql,
            at: Location { line: 1, column: 1 },
            byte: 0,
        }
    }

    /// Locations are asked for in rising order.
    fn byte(&mut self, location: Location) -> usize {
        while (self.at.line, self.at.column) < (location.line, location.column) {
            let Some(char) = self.sql[self.byte..].chars().next() else {
                break;
            };
            self.byte += char.len_utf8();
            if char == '\n' {
                self.at = Location {
                    line: self.at.line + 1,
                    column: 1,
                };
            } else {
                self.at.column += 1;
            }
        }
        self.byte
    }
}

/// Where the one statement ends: before its semicolon, if it has one, with nothing after it.
fn end_of_statement(tokens: &[Placed], sql: &str) -> Result<usize, SqlError> {
    let mut end = None;
    let mut any = false;
    for placed in tokens {
        match (&placed.token, end) {
            (Token::Whitespace(_), _) => {}
            (Token::SemiColon, Some(_)) => {}
            (Token::SemiColon, None) => end = Some(placed.start),
            (_, Some(_)) => return Err(SqlError::refused("there is more than one statement")),
            (_, None) => any = true,
        }
    }
    if !any {
        return Err(SqlError::refused("there is no statement"));
    }
    Ok(end.unwrap_or(sql.len()))
}

/// What the parser below would not see at every depth, and what MySQL runs although it looks like a comment.
fn refuse_hidden_writes(dialect: Dialect, sql: &str, tokens: &[Placed]) -> Result<(), SqlError> {
    if dialect == Dialect::MySql && (sql.contains("/*!") || sql.contains("/*M!")) {
        return Err(SqlError::refused(
            "an executable comment (/*!) is not accepted",
        ));
    }
    let mut significant = tokens
        .iter()
        .map(|placed| &placed.token)
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .peekable();
    let mut before: Option<&Token> = None;
    while let Some(token) = significant.next() {
        let next = significant.peek().copied();
        match keyword(token) {
            Some(Keyword::INTO) => return Err(SqlError::refused("INTO writes")),
            Some(Keyword::FOR)
                if matches!(
                    next.and_then(keyword),
                    Some(Keyword::UPDATE | Keyword::SHARE | Keyword::NO | Keyword::KEY)
                ) =>
            {
                return Err(SqlError::refused("FOR UPDATE and FOR SHARE lock rows"));
            }
            Some(Keyword::INSERT | Keyword::UPDATE | Keyword::DELETE | Keyword::MERGE)
                if matches!(before, Some(Token::LParen))
                    && matches!(next, Some(Token::Word(_))) =>
            {
                return Err(SqlError::refused("a statement inside the statement writes"));
            }
            _ => {}
        }
        if *token == Token::Assignment && matches!(dialect, Dialect::MySql | Dialect::MsSql) {
            return Err(SqlError::refused(":= writes a session variable"));
        }
        before = Some(token);
    }
    Ok(())
}

/// The keyword of an unquoted word.
fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(Word {
            keyword,
            quote_style: None,
            ..
        }) => Some(*keyword),
        _ => None,
    }
}

fn rewrite(dialect: Dialect, sql: &str, tokens: &[Placed]) -> Result<Prepared, SqlError> {
    let mut text = String::with_capacity(sql.len() + 16);
    let mut bindings: Vec<String> = Vec::new();
    let mut copied = 0;
    let mut brackets = 0i32;
    for (index, placed) in tokens.iter().enumerate() {
        if placed.start >= sql.len() {
            break;
        }
        refuse_foreign_placeholder(dialect, sql, placed)?;
        match placed.token {
            Token::LBracket => brackets += 1,
            Token::RBracket => brackets -= 1,
            _ => {}
        }
        if placed.token != Token::Colon {
            continue;
        }
        // `: name` with a space, as in an array slice, is the seller's own colon.
        let Some(next) = tokens
            .get(index + 1)
            .filter(|next| next.start == placed.end)
        else {
            continue;
        };
        let name = match &next.token {
            Token::Word(word) if word.quote_style.is_none() => &word.value,
            // `a[1:2]` is a slice, `x = :1` a placeholder of some other product.
            Token::Number(number, _) if brackets == 0 => {
                return Err(SqlError::BadName(number.clone()));
            }
            _ => continue,
        };
        if !is_name(name) {
            return Err(SqlError::BadName(name.clone()));
        }
        let known = bindings
            .iter()
            .position(|known| known == name)
            .filter(|_| dialect.numbers_placeholders());
        let number = known.unwrap_or_else(|| {
            bindings.push(name.clone());
            bindings.len() - 1
        }) + 1;
        if number > PLACEHOLDERS_MAX {
            return Err(SqlError::TooManyPlaceholders);
        }
        text.push_str(&sql[copied..placed.start]);
        // `x:name` must not become the identifier `x$1`.
        if text.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            text.push(' ');
        }
        text.push_str(&dialect.placeholder(number));
        copied = next.end;
    }
    text.push_str(&sql[copied..]);
    Ok(Prepared { text, bindings })
}

/// A placeholder that the seller wrote would shift the ones that the host writes.
fn refuse_foreign_placeholder(
    dialect: Dialect,
    sql: &str,
    placed: &Placed,
) -> Result<(), SqlError> {
    let foreign = match &placed.token {
        Token::Placeholder(_) => true,
        // An operator in PostgreSQL, a placeholder elsewhere.
        Token::Question => dialect != Dialect::Postgres,
        Token::AtSign => matches!(
            dialect,
            Dialect::Sqlite | Dialect::MySql | Dialect::BigQuery | Dialect::MsSql
        ),
        Token::Word(word) => word.quote_style.is_none() && word.value.starts_with('@'),
        _ => false,
    };
    if foreign {
        return Err(SqlError::ForeignPlaceholder(
            sql[placed.start..placed.end.min(sql.len())].to_owned(),
        ));
    }
    Ok(())
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

fn parse_on_a_big_stack(dialect: Dialect, sql: &str) -> Result<(), SqlError> {
    std::thread::scope(|scope| {
        let parsing = std::thread::Builder::new()
            .name("sql-parser".to_owned())
            .stack_size(PARSER_STACK_BYTES)
            .spawn_scoped(scope, || parse(dialect, sql))
            .map_err(|e| SqlError::Syntax(format!("no thread to parse it on: {e}")))?;
        parsing
            .join()
            .unwrap_or_else(|_| Err(SqlError::Syntax("the parser failed".to_owned())))
    })
}

fn parse(dialect: Dialect, sql: &str) -> Result<(), SqlError> {
    let parser = dialect.parser();
    // Words first: "DROP" or "COPY" should not be told about syntax that this parser lacks.
    let first = Tokenizer::new(parser.as_ref(), sql)
        .tokenize()
        .ok()
        .and_then(|tokens| {
            tokens
                .into_iter()
                .find(|t| !matches!(t, Token::Whitespace(_) | Token::LParen))
        });
    if !matches!(
        first.as_ref().and_then(keyword),
        Some(Keyword::SELECT | Keyword::WITH)
    ) {
        let word = first.map(|token| token.to_string()).unwrap_or_default();
        return Err(SqlError::refused(format!(
            "the statement begins with \"{word}\""
        )));
    }
    let statements =
        Parser::parse_sql(parser.as_ref(), sql).map_err(|e| SqlError::Syntax(e.to_string()))?;
    match statements.as_slice() {
        [Statement::Query(query)] => only_reads(query),
        [_] => Err(SqlError::refused("this kind of statement is not a query")),
        _ => Err(SqlError::refused("there is more than one statement")),
    }
}

fn only_reads(query: &Query) -> Result<(), SqlError> {
    if !query.locks.is_empty() {
        return Err(SqlError::refused("FOR UPDATE and FOR SHARE lock rows"));
    }
    if query.settings.is_some() || query.format_clause.is_some() {
        return Err(SqlError::refused(
            "SETTINGS and FORMAT belong to the service",
        ));
    }
    for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
        only_reads(&cte.query)?;
    }
    body_only_reads(&query.body)
}

fn body_only_reads(body: &SetExpr) -> Result<(), SqlError> {
    match body {
        SetExpr::Select(select) if select.into.is_some() => Err(SqlError::refused("INTO writes")),
        SetExpr::Select(_) | SetExpr::Values(_) | SetExpr::Table(_) => Ok(()),
        SetExpr::Query(query) => only_reads(query),
        SetExpr::SetOperation { left, right, .. } => {
            body_only_reads(left)?;
            body_only_reads(right)
        }
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
            Err(SqlError::refused("INSERT, UPDATE, DELETE and MERGE write"))
        }
    }
}

/// Where the rows of an endpoint come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowSource<'a> {
    Table {
        schema: Option<&'a str>,
        table: &'a str,
    },
    /// The text of a checked statement without parameters.
    Statement(&'a str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order<'a> {
    pub field: &'a str,
    pub descending: bool,
}

/// Which rows of the ordered result a page reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Window {
    /// The first rows, their number written into the statement. PostgreSQL plans a statement with a
    /// bound LIMIT anew at every execution, because its generic plan looks expensive; that costs
    /// more than reading a row.
    First(u32),
    /// The number of rows and the offset are bound, in this order, after the filters.
    Bound,
}

/// The statement that reads one page. Bound are the values of `filters` in order, then what
/// `window` says.
pub fn page(
    dialect: Dialect,
    source: &RowSource<'_>,
    fields: &[&str],
    filters: &[&str],
    order_by: &[Order<'_>],
    window: Window,
) -> String {
    let mut text = String::from("SELECT ");
    push_list(
        &mut text,
        ", ",
        fields.iter().map(|field| dialect.quote(field)),
    );
    match source {
        RowSource::Table { schema, table } => {
            text.push_str("\nFROM ");
            push_list(
                &mut text,
                ".",
                schema.iter().chain([table]).map(|part| dialect.quote(part)),
            );
        }
        // The line ends are for a statement that ends in a line comment.
        RowSource::Statement(sql) => {
            text.push_str("\nFROM (\n");
            text.push_str(sql);
            text.push_str("\n) AS s");
        }
    }
    let mut number = 0;
    let mut placeholder = || {
        number += 1;
        dialect.placeholder(number)
    };
    if !filters.is_empty() {
        text.push_str("\nWHERE ");
        push_list(
            &mut text,
            " AND ",
            filters
                .iter()
                .map(|column| format!("{} = {}", dialect.quote(column), placeholder())),
        );
    }
    if !order_by.is_empty() {
        text.push_str("\nORDER BY ");
        let order = order_by.iter().map(|o| {
            format!(
                "{}{}",
                dialect.quote(o.field),
                if o.descending { " DESC" } else { "" }
            )
        });
        push_list(&mut text, ", ", order);
    }
    let (rows, offset) = match window {
        Window::First(rows) => (rows.to_string(), None),
        Window::Bound => (placeholder(), Some(placeholder())),
    };
    match (dialect, offset) {
        (Dialect::MsSql, offset) => {
            let offset = offset.as_deref().unwrap_or("0");
            text.push_str(&format!(
                "\nOFFSET {offset} ROWS FETCH NEXT {rows} ROWS ONLY"
            ));
        }
        (_, None) => text.push_str(&format!("\nLIMIT {rows}")),
        (_, Some(offset)) => text.push_str(&format!("\nLIMIT {rows} OFFSET {offset}")),
    }
    text
}

fn push_list(text: &mut String, separator: &str, items: impl Iterator<Item = String>) {
    for (index, item) in items.enumerate() {
        if index > 0 {
            text.push_str(separator);
        }
        text.push_str(&item);
    }
}

#[cfg(test)]
#[path = "sql_tests.rs"]
mod tests;
