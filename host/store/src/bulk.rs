//! Many rows in one statement, with few distinct texts, so that every one stays prepared.
//!
//! Rows become a `VALUES` table whose size is rounded up to a power of two; the rows that fill it up are NULL and filtered out again by
//! `WHERE column1 IS NOT NULL`. Both backends name the columns of a `VALUES` table `column1`, `column2`, and so on.

use crate::error::StoreError;
use sqlx::any::AnyArguments;
use sqlx::{AnyConnection, Arguments, AssertSqlSafe};
use std::sync::{Arc, OnceLock};

/// Rows of one statement. With up to 20 columns this is far below SQLite's 32,766 parameters.
pub(crate) const ROWS_MAX: usize = 256;
const SIZES: usize = ROWS_MAX.ilog2() as usize + 1;

/// `head FROM (VALUES …) AS v tail`; `tail` filters on `column1 IS NOT NULL`.
pub(crate) struct Bulk {
    head: &'static str,
    tail: &'static str,
    columns: usize,
    texts: [OnceLock<Arc<str>>; SIZES],
}

/// The parameters of one statement, in order.
pub(crate) struct Values {
    arguments: AnyArguments,
    failed: Option<sqlx::error::BoxDynError>,
}

impl Values {
    pub(crate) fn text(&mut self, value: Option<&str>) -> &mut Self {
        let added = self.arguments.add(value);
        self.failed = self.failed.take().or(added.err());
        self
    }

    pub(crate) fn number(&mut self, value: Option<i64>) -> &mut Self {
        let added = self.arguments.add(value);
        self.failed = self.failed.take().or(added.err());
        self
    }
}

impl Bulk {
    pub(crate) const fn new(head: &'static str, columns: usize, tail: &'static str) -> Self {
        Self {
            head,
            tail,
            columns,
            texts: [const { OnceLock::new() }; SIZES],
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
            let (sql, arguments) = self.statement(rows, &bind)?;
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
            let (sql, arguments) = self.statement(rows, &bind)?;
            let some = sqlx::query_with(AssertSqlSafe(sql), arguments)
                .fetch_all(&mut *db)
                .await?;
            fetched.extend(some);
        }
        Ok(fetched)
    }

    fn statement<R>(
        &self,
        rows: &[R],
        bind: impl Fn(&mut Values, Option<&R>),
    ) -> Result<(Arc<str>, AnyArguments), StoreError> {
        let size = rows.len().next_power_of_two();
        let mut values = Values {
            arguments: AnyArguments::default(),
            failed: None,
        };
        values.arguments.reserve(size * self.columns, 0);
        for row in rows {
            bind(&mut values, Some(row));
        }
        for _ in rows.len()..size {
            bind(&mut values, None);
        }
        debug_assert_eq!(values.arguments.len(), size * self.columns);
        match values.failed {
            Some(error) => Err(StoreError::Other(sqlx::Error::Encode(error))),
            None => Ok((self.text(size), values.arguments)),
        }
    }

    fn text(&self, size: usize) -> Arc<str> {
        let text = self.texts[size.ilog2() as usize].get_or_init(|| {
            let mut text = String::from(self.head);
            text.push_str(" FROM (VALUES ");
            for row in 0..size {
                text.push_str(if row == 0 { "(" } else { ", (" });
                for column in 0..self.columns {
                    let separator = if column == 0 { "" } else { ", " };
                    let number = row * self.columns + column + 1;
                    text.push_str(&format!("{separator}${number}"));
                }
                text.push(')');
            }
            text.push_str(") AS v ");
            text.push_str(self.tail);
            text.into()
        });
        text.clone()
    }
}
