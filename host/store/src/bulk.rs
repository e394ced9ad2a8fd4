//! Many rows in one statement, with few distinct texts, so that every one stays prepared.
//!
//! Rows become a `VALUES` table whose size is rounded up to a power of two; the rows that fill it up are NULL and filtered out again by
//! `WHERE column1 IS NOT NULL`. Both backends name the columns of a `VALUES` table `column1`, `column2`, and so on.

use crate::error::StoreError;
use futures_util::TryStreamExt;
use parking_lot::Mutex;
use sqlx::any::AnyArguments;
use sqlx::sqlite::SqliteArguments;
use sqlx::{AnyConnection, Arguments, AssertSqlSafe, Executor, SqliteConnection};
use std::collections::HashMap;
use std::iter;
use std::sync::{Arc, LazyLock, OnceLock};

/// Rows of one statement. With up to 20 columns this is far below SQLite's 32,766 parameters.
pub(crate) const ROWS_MAX: usize = 256;
const SIZES: usize = ROWS_MAX.ilog2() as usize + 1;

/// How the parameters of a statement with very many of them are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parameters {
    /// `$1`, `$2`, and so on: PostgreSQL knows no others.
    Numbered,
    /// `?`: SQLite would look each number up by going through all before it, which costs more than the statement.
    Nameless,
}

/// How they are written for this connection.
fn parameters(connection: &AnyConnection) -> Parameters {
    match connection.backend_name() {
        "SQLite" => Parameters::Nameless,
        _ => Parameters::Numbered,
    }
}

/// `head FROM (VALUES …) AS v tail`; `tail` filters on `column1 IS NOT NULL`.
pub(crate) struct Bulk {
    head: &'static str,
    tail: &'static str,
    columns: usize,
    /// With numbered parameters and with nameless ones.
    texts: [[OnceLock<Arc<str>>; SIZES]; 2],
}

/// The parameters of one statement, in order.
#[derive(Default)]
pub struct Values {
    values: Vec<Value>,
    /// Columns of the rows that they are of. 0: they are no rows.
    columns: usize,
}

enum Value {
    Text(Option<Arc<str>>),
    Number(Option<i64>),
}

impl Values {
    pub(crate) fn text(&mut self, value: Option<&str>) -> &mut Self {
        let text = value.map(|text| self.above(text).unwrap_or_else(|| text.into()));
        self.values.push(Value::Text(text));
        self
    }

    pub(crate) fn number(&mut self, value: Option<i64>) -> &mut Self {
        self.values.push(Value::Number(value));
        self
    }

    /// The same text in the row above: most columns of charges repeat it, and so share it.
    fn above(&self, text: &str) -> Option<Arc<str>> {
        let place = self.values.len().checked_sub(self.columns)?;
        match self.values.get(place) {
            Some(Value::Text(Some(above))) if **above == *text => Some(above.clone()),
            _ => None,
        }
    }

    pub(crate) fn finish(self) -> Result<AnyArguments, StoreError> {
        let mut arguments = AnyArguments::default();
        arguments.reserve(self.values.len(), 0);
        for value in &self.values {
            let added = match value {
                Value::Text(text) => arguments.add(text.as_deref()),
                Value::Number(number) => arguments.add(*number),
            };
            added.map_err(|error| StoreError::Other(sqlx::Error::Encode(error)))?;
        }
        Ok(arguments)
    }

    /// The same for SQLite itself, with texts that stay where they are.
    fn finish_for_sqlite(self) -> Result<SqliteArguments, StoreError> {
        let mut arguments = SqliteArguments::default();
        arguments.reserve(self.values.len(), 0);
        for value in self.values {
            let added = match value {
                Value::Text(text) => arguments.add(text),
                Value::Number(number) => arguments.add(number),
            };
            added.map_err(|error| StoreError::Other(sqlx::Error::Encode(error)))?;
        }
        Ok(arguments)
    }
}

impl Bulk {
    pub(crate) const fn new(head: &'static str, columns: usize, tail: &'static str) -> Self {
        Self {
            head,
            tail,
            columns,
            texts: [const { [const { OnceLock::new() }; SIZES] }; 2],
        }
    }

    /// Runs the statement for all rows. `bind` adds exactly as many parameters as there are columns; for `None` it adds NULLs of the
    /// same types. Returns the number of rows affected.
    pub(crate) async fn run<R>(
        &self,
        db: &mut AnyConnection,
        rows: &[R],
        bind: impl Fn(&mut Values, Option<&R>),
    ) -> Result<u64, StoreError> {
        let mut affected = 0;
        for rows in rows.chunks(ROWS_MAX) {
            let (sql, arguments) = self.statement(parameters(db), rows, &bind)?;
            affected += sqlx::query_with(AssertSqlSafe(sql), arguments)
                .execute(&mut *db)
                .await?
                .rows_affected();
        }
        Ok(affected)
    }

    /// Like [`Bulk::run`], for statements that return rows.
    pub(crate) async fn fetch<R>(
        &self,
        db: &mut AnyConnection,
        rows: &[R],
        bind: impl Fn(&mut Values, Option<&R>),
    ) -> Result<Vec<sqlx::any::AnyRow>, StoreError> {
        let mut fetched = Vec::new();
        for rows in rows.chunks(ROWS_MAX) {
            let (sql, arguments) = self.statement(parameters(db), rows, &bind)?;
            let some = sqlx::query_with(AssertSqlSafe(sql), arguments)
                .fetch_all(&mut *db)
                .await?;
            fetched.extend(some);
        }
        Ok(fetched)
    }

    fn statement<R>(
        &self,
        parameters: Parameters,
        rows: &[R],
        bind: impl Fn(&mut Values, Option<&R>),
    ) -> Result<(Arc<str>, AnyArguments), StoreError> {
        let size = rows.len().next_power_of_two();
        let mut values = Values::default();
        self.bind(&mut values, rows, size, &bind);
        Ok((self.text(parameters, size), values.finish()?))
    }

    fn bind<R>(
        &self,
        values: &mut Values,
        rows: &[R],
        size: usize,
        bind: &impl Fn(&mut Values, Option<&R>),
    ) {
        let before = values.values.len();
        values.values.reserve(size * self.columns);
        values.columns = self.columns;
        for row in rows {
            bind(values, Some(row));
        }
        for _ in rows.len()..size {
            bind(values, None);
        }
        debug_assert_eq!(values.values.len() - before, size * self.columns);
    }

    fn text(&self, parameters: Parameters, size: usize) -> Arc<str> {
        let text = self.texts[parameters as usize][size.ilog2() as usize].get_or_init(|| {
            let mut text = String::new();
            self.write_text(&mut text, parameters, size, 0);
            text.into()
        });
        text.clone()
    }

    /// Writes the statement for `size` rows, with parameters numbered (if they are) from `offset + 1` on.
    fn write_text(&self, text: &mut String, parameters: Parameters, size: usize, offset: usize) {
        text.push_str(self.head);
        text.push_str(" FROM (VALUES ");
        for row in 0..size {
            text.push_str(if row == 0 { "(" } else { ", (" });
            for column in 0..self.columns {
                let separator = if column == 0 { "" } else { ", " };
                text.push_str(separator);
                match parameters {
                    Parameters::Nameless => text.push('?'),
                    Parameters::Numbered => {
                        let number = offset + row * self.columns + column + 1;
                        text.push_str(&format!("${number}"));
                    }
                }
            }
            text.push(')');
        }
        text.push_str(") AS v ");
        text.push_str(self.tail);
    }
}

/// Several statements that change exactly as many rows as they are given.
pub(crate) struct Script {
    style: Style,
    parts: Vec<(&'static Bulk, usize)>,
    values: Vec<Values>,
    /// Rows of every part.
    rows: Vec<u64>,
}

/// How the statements of a script reach the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Style {
    /// One trip each.
    Separate,
    /// One after the other, in one trip to SQLite's thread. PostgreSQL takes prepared statements one by one.
    Joined,
    /// As parts of the last statement's `WITH`, in one trip to PostgreSQL. SQLite takes no changes there. No two parts may
    /// touch the same row, and only the last one's rows are counted.
    Nested,
}

/// Texts of joined and nested statements by how they begin, their parts (each at its address) and sizes.
type Texts = HashMap<(Style, Option<&'static str>, Vec<(usize, usize)>), Arc<str>>;
static TEXTS: LazyLock<Mutex<Texts>> = LazyLock::new(Mutex::default);

/// Beyond this many rows in any part, statements for SQLite are not joined: the trips matter little, and fewer texts stay prepared.
pub(crate) const JOINED_ROWS_MAX: usize = 128;

impl Script {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            style,
            parts: Vec::new(),
            values: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Adds a statement for all rows; see [`Bulk::run`].
    pub(crate) fn add<R>(
        &mut self,
        bulk: &'static Bulk,
        rows: &[R],
        bind: impl Fn(&mut Values, Option<&R>),
    ) {
        for rows in rows.chunks(ROWS_MAX) {
            let size = rows.len().next_power_of_two();
            let mut values = match self.values.pop() {
                Some(values) if self.style != Style::Separate => values,
                former => {
                    self.values.extend(former);
                    Values::default()
                }
            };
            bulk.bind(&mut values, rows, size, &bind);
            self.values.push(values);
            self.parts.push((bulk, size));
            self.rows.push(rows.len() as u64);
        }
    }

    /// Runs all statements, in the order in which they were added.
    pub(crate) async fn run(self, db: &mut AnyConnection) -> Result<(), StoreError> {
        if self.parts.is_empty() {
            return Ok(());
        }
        let parameters = parameters(db);
        let texts = match self.style {
            Style::Nested | Style::Joined => {
                vec![one_text(self.style, None, parameters, &self.parts)]
            }
            Style::Separate => self
                .parts
                .iter()
                .map(|(bulk, size)| bulk.text(parameters, *size))
                .collect(),
        };
        let expected = match self.style {
            Style::Nested => self.rows.last().copied().unwrap_or(0),
            Style::Separate | Style::Joined => self.rows.iter().sum(),
        };
        // What several statements in one text changed comes back as a sum.
        let mut affected = 0;
        for (sql, values) in texts.into_iter().zip(self.values) {
            let arguments = values.finish()?;
            affected += sqlx::query_with(AssertSqlSafe(sql), arguments)
                .execute(&mut *db)
                .await?
                .rows_affected();
        }
        check(&[expected], &[affected])
    }

    /// Runs all statements as one whole transaction, `begin` before them and `COMMIT` after them: joined ones in one trip to SQLite's thread.
    pub(crate) async fn run_whole(
        self,
        begin: &'static str,
        db: &mut SqliteConnection,
    ) -> Result<(), WholeError> {
        let rows = self.rows.clone();
        let mut changed = Vec::with_capacity(rows.len() + 2);
        for (sql, values) in self.whole(begin) {
            let arguments = values.finish_for_sqlite().map_err(WholeError::undone)?;
            let mut results = db.fetch_many(sqlx::query_with(AssertSqlSafe(sql), arguments));
            loop {
                match results.try_next().await {
                    Ok(Some(result)) => {
                        changed.extend(result.left().map(|done| done.rows_affected()));
                    }
                    Ok(None) => break,
                    Err(error) => {
                        return Err(WholeError {
                            error: error.into(),
                            // All before it went well, so it was the commit that failed.
                            in_doubt: changed.len() > rows.len(),
                        });
                    }
                }
            }
        }
        // After `BEGIN`; for it and for `COMMIT` SQLite repeats what the statement before changed.
        let counted = changed.get(1..=rows.len()).unwrap_or_default();
        check(&rows, counted).map_err(|error| {
            // Every row that is inserted is counted and accounts are never closed, so this is a defect.
            tracing::error!(%error, "a booking changed other rows than it should have");
            WholeError {
                error,
                in_doubt: true,
            }
        })
    }

    /// The texts of a whole transaction, with their parameters.
    fn whole(self, begin: &'static str) -> Vec<(Arc<str>, Values)> {
        let parameters = Parameters::Nameless;
        if self.style == Style::Joined {
            let text = one_text(self.style, Some(begin), parameters, &self.parts);
            return iter::once(text).zip(self.values).collect();
        }
        let texts = self.parts.iter().zip(self.values);
        let texts = texts.map(|((bulk, size), values)| (bulk.text(parameters, *size), values));
        let alone = |text: &str| iter::once((text.into(), Values::default()));
        alone(begin).chain(texts).chain(alone("COMMIT")).collect()
    }
}

/// Why a whole transaction failed.
pub(crate) struct WholeError {
    pub error: StoreError,
    /// It may have been committed.
    pub in_doubt: bool,
}

impl WholeError {
    pub(crate) fn undone(error: StoreError) -> Self {
        Self {
            error,
            in_doubt: false,
        }
    }
}

fn check(expected: &[u64], affected: &[u64]) -> Result<(), StoreError> {
    if affected == expected {
        Ok(())
    } else {
        Err(StoreError::Corrupt(format!(
            "{expected:?} rows were to be changed, {affected:?} were"
        )))
    }
}

fn one_text(
    style: Style,
    begin: Option<&'static str>,
    parameters: Parameters,
    parts: &[(&'static Bulk, usize)],
) -> Arc<str> {
    let addresses = parts
        .iter()
        .map(|(bulk, size)| (std::ptr::from_ref(*bulk).addr(), *size))
        .collect();
    let mut texts = TEXTS.lock();
    let text = texts.entry((style, begin, addresses)).or_insert_with(|| {
        let mut text = String::new();
        if let Some(begin) = begin {
            text.push_str(begin);
            text.push_str(";\n");
        }
        let mut offset = 0;
        let last = parts.len() - 1;
        for (number, (bulk, size)) in parts.iter().enumerate() {
            match (style, number) {
                (Style::Nested, 0) if last > 0 => text.push_str("WITH p0 AS ("),
                (Style::Nested, _) if number < last => text.push_str(&format!(", p{number} AS (")),
                _ => {}
            }
            bulk.write_text(&mut text, parameters, *size, offset);
            match style {
                Style::Nested if number < last => text.push_str(")\n"),
                Style::Nested => {}
                Style::Separate | Style::Joined => text.push_str(";\n"),
            }
            offset += size * bulk.columns;
        }
        if begin.is_some() {
            text.push_str("COMMIT");
        }
        text.into()
    });
    text.clone()
}
