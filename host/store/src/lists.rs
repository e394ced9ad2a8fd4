//! Lists by page: the one way in which rows are listed.
//!
//! The API counts pages and says how many rows match in all, so a page begins at an offset, and not behind the last row of the page before it,
//! which would be cheaper far down a list. How far down a page may be is bounded instead ([`OFFSET_MAX`]). Every order ends with what is unique,
//! so that pages neither overlap nor leave a row out.

use futures_util::{Stream, TryStreamExt};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe};
use std::pin::pin;
use std::sync::{Arc, OnceLock};

pub(crate) use crate::bulk::Values;
use crate::{Fields, StoreError};

/// Rows that may be left out before a page begins: read in some ten milliseconds. Whoever wants more filters.
pub const OFFSET_MAX: i64 = 100_000;
/// The longest page of any list: a statement as one file.
pub const LIMIT_MAX: i64 = 10_000;
/// Rows that a worker reads before others have a turn: about a millisecond.
const ROWS_AT_A_STRETCH: usize = 256;

/// Which part of a list is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    limit: i64,
    offset: i64,
}

impl Part {
    /// At most [`LIMIT_MAX`] rows; beyond [`OFFSET_MAX`] none.
    pub fn new(limit: i64, offset: i64) -> Part {
        match offset {
            0..=OFFSET_MAX => Part {
                limit: limit.clamp(0, LIMIT_MAX),
                offset,
            },
            _ => Part::first(0),
        }
    }

    pub fn first(limit: i64) -> Part {
        Part::new(limit, 0)
    }
}

/// Rows of a part, and how many match in all.
pub type Listed<T> = (Vec<T>, i64);

/// `SELECT columns matching ORDER BY order`: `matching` is FROM and WHERE, with the parameters `$1` to the one whose number is `parameters`.
pub(crate) struct List {
    columns: &'static str,
    matching: &'static str,
    order: &'static str,
    parameters: usize,
    /// Made once, so that they stay prepared.
    texts: OnceLock<Texts>,
}

struct Texts {
    rows: Arc<str>,
    total: Arc<str>,
}

/// A LIKE pattern that finds `part` anywhere, taken literally. For any case, `LOWER` stands on both sides in SQL: SQLite's knows a to z only, and
/// what Rust had made small of an Ä would find none there.
pub(crate) fn containing(part: &str) -> String {
    let literal = part
        .replace('!', "!!")
        .replace('%', "!%")
        .replace('_', "!_");
    format!("%{literal}%")
}

impl List {
    pub(crate) const fn new(
        columns: &'static str,
        matching: &'static str,
        order: &'static str,
        parameters: usize,
    ) -> List {
        List {
            columns,
            matching,
            order,
            parameters,
            texts: OnceLock::new(),
        }
    }

    /// `bind` adds the parameters in their order.
    pub(crate) async fn fetch<T>(
        &self,
        db: &mut AnyConnection,
        part: Part,
        bind: impl Fn(&mut Values),
        read: impl Fn(&AnyRow) -> Result<T, StoreError>,
    ) -> Result<Listed<T>, StoreError> {
        let texts = self.texts.get_or_init(|| {
            let (columns, matching, order) = (self.columns, self.matching, self.order);
            Texts::new(columns, matching, order, self.parameters)
        });
        fetch(db, texts, part, bind, read).await
    }
}

impl Texts {
    fn new(columns: &str, matching: &str, order: &str, parameters: usize) -> Texts {
        let (limit, offset) = (parameters + 1, parameters + 2);
        Texts {
            rows: format!(
                "SELECT {columns} {matching} ORDER BY {order} LIMIT ${limit} OFFSET ${offset}"
            )
            .into(),
            total: format!("SELECT COUNT(*) AS total {matching}").into(),
        }
    }
}

/// The same of a list whose text is put together when it is asked for, because its order is.
pub(crate) async fn sorted<T>(
    db: &mut AnyConnection,
    (columns, matching, order): (&str, &str, &str),
    parameters: usize,
    part: Part,
    bind: impl Fn(&mut Values),
    read: impl Fn(&AnyRow) -> Result<T, StoreError>,
) -> Result<Listed<T>, StoreError> {
    let texts = Texts::new(columns, matching, order, parameters);
    fetch(db, &texts, part, bind, read).await
}

/// The same of a list that is counted in another way than its rows are fetched, with the same parameters: an index that is best for the one may
/// be bad for the other.
pub(crate) async fn counted_apart<T>(
    db: &mut AnyConnection,
    (columns, matching, order): (&str, &str, &str),
    counting: &str,
    parameters: usize,
    part: Part,
    bind: impl Fn(&mut Values),
    read: impl Fn(&AnyRow) -> Result<T, StoreError>,
) -> Result<Listed<T>, StoreError> {
    let texts = Texts {
        total: format!("SELECT COUNT(*) AS total {counting}").into(),
        ..Texts::new(columns, matching, order, parameters)
    };
    fetch(db, &texts, part, bind, read).await
}

/// The same of a list whose rows are wide: the keys of a page come first, by an index alone where there is one, so that rows before the page are
/// not read. `matching` is FROM and WHERE of the keys and of their number; `from` is what the columns are of.
pub(crate) async fn keys_first<T>(
    db: &mut AnyConnection,
    (columns, from, key): (&str, &str, &str),
    (matching, order): (&str, &str),
    parameters: usize,
    part: Part,
    bind: impl Fn(&mut Values),
    read: impl Fn(&AnyRow) -> Result<T, StoreError>,
) -> Result<Listed<T>, StoreError> {
    let keys = Texts::new(key, matching, order, parameters);
    let rows = &keys.rows;
    let texts = Texts {
        rows: format!("SELECT {columns} {from} WHERE {key} IN ({rows}) ORDER BY {order}").into(),
        total: keys.total,
    };
    fetch(db, &texts, part, bind, read).await
}

/// The same of a list whose rows are wide and found in several ways: `keys` selects the columns of `key` of all that match, and `order` is by
/// those, so that a page is found by indexes alone where they have this order.
pub(crate) async fn keys_joined<T>(
    db: &mut AnyConnection,
    (columns, table, key): (&str, &str, &str),
    (keys, order): (&str, &str),
    parameters: usize,
    part: Part,
    bind: impl Fn(&mut Values),
    read: impl Fn(&AnyRow) -> Result<T, StoreError>,
) -> Result<Listed<T>, StoreError> {
    let texts = Texts {
        rows: joined((columns, table, key), (keys, order), parameters),
        total: format!("SELECT COUNT(*) AS total FROM ({keys}) AS k").into(),
    };
    fetch(db, &texts, part, bind, read).await
}

/// The same where it is known already how many there are in all. A row that was not counted is on its page all the same, and counts there.
pub(crate) async fn keys_joined_of<T>(
    db: &mut AnyConnection,
    found: (&str, &str, &str),
    ordered: (&str, &str),
    parameters: usize,
    (part, total): (Part, i64),
    bind: impl Fn(&mut Values),
    read: impl Fn(&AnyRow) -> Result<T, StoreError>,
) -> Result<Listed<T>, StoreError> {
    let text = joined(found, ordered, parameters);
    let (listed, _) = rows(db, text, (part, i64::MAX), bind, read).await?;
    let seen = match listed.len() {
        0 => 0,
        count => part.offset + count as i64,
    };
    Ok((listed, total.max(seen)))
}

fn joined(
    (columns, table, key): (&str, &str, &str),
    (keys, order): (&str, &str),
    parameters: usize,
) -> Arc<str> {
    let (limit, offset) = (parameters + 1, parameters + 2);
    format!(
        "SELECT {columns} FROM ({keys} ORDER BY {order} LIMIT ${limit} OFFSET ${offset}) AS k JOIN {table} USING ({key}) ORDER BY {order}"
    )
    .into()
}

/// The same of a list whose rows are dear to find: they bring their number along, and only a page behind the last row is counted by itself.
pub(crate) async fn counted_along<T>(
    db: &mut AnyConnection,
    (columns, matching, order): (&str, &str, &str),
    parameters: usize,
    part: Part,
    bind: impl Fn(&mut Values),
    read: impl Fn(&AnyRow) -> Result<T, StoreError>,
) -> Result<Listed<T>, StoreError> {
    let columns = format!("{columns}, COUNT(*) OVER () AS total");
    let texts = Texts::new(&columns, matching, order, parameters);
    let mut values = Values::default();
    bind(&mut values);
    values.number(Some(part.limit)).number(Some(part.offset));
    let rows = sqlx::query_with(AssertSqlSafe(texts.rows.clone()), values.finish()?)
        .fetch_all(&mut *db)
        .await?;
    match rows.first() {
        Some(first) => {
            let total = first.number("total")?;
            Ok((rows.iter().map(read).collect::<Result<_, _>>()?, total))
        }
        None => fetch(db, &texts, Part::first(0), bind, read).await,
    }
}

async fn fetch<T>(
    db: &mut AnyConnection,
    texts: &Texts,
    part: Part,
    bind: impl Fn(&mut Values),
    read: impl Fn(&AnyRow) -> Result<T, StoreError>,
) -> Result<Listed<T>, StoreError> {
    let mut values = Values::default();
    bind(&mut values);
    let total = sqlx::query_with(AssertSqlSafe(texts.total.clone()), values.finish()?)
        .fetch_one(&mut *db)
        .await?
        .number("total")?;
    rows(db, texts.rows.clone(), (part, total), bind, read).await
}

async fn rows<T>(
    db: &mut AnyConnection,
    text: Arc<str>,
    (part, total): (Part, i64),
    bind: impl Fn(&mut Values),
    read: impl Fn(&AnyRow) -> Result<T, StoreError>,
) -> Result<Listed<T>, StoreError> {
    // Nothing is looked for where there is nothing.
    if part.limit == 0 || part.offset >= total {
        return Ok((Vec::new(), total));
    }
    let mut values = Values::default();
    bind(&mut values);
    values.number(Some(part.limit)).number(Some(part.offset));
    let rows = sqlx::query_with(AssertSqlSafe(text), values.finish()?).fetch(db);
    Ok((read_all(rows, read).await?, total))
}

/// What `read` makes of rows as they come. A store that has them all ready would otherwise hold a worker until the last one.
pub(crate) async fn read_all<R, T>(
    rows: impl Stream<Item = Result<R, sqlx::Error>>,
    read: impl Fn(&R) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut rows = pin!(rows);
    let mut all = Vec::new();
    while let Some(row) = rows.try_next().await? {
        all.push(read(&row)?);
        if all.len().is_multiple_of(ROWS_AT_A_STRETCH) {
            tokio::task::yield_now().await;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{poll, stream};
    use std::task::Poll;

    /// However quickly rows come, others have a turn after each stretch of them.
    #[tokio::test]
    async fn long_lists_are_read_in_stretches() {
        const ROWS: usize = 10_000;
        let rows = stream::iter((0..ROWS).map(Ok::<_, sqlx::Error>));
        let mut reading = pin!(read_all(rows, |row: &usize| Ok(*row)));
        let mut turns = 0;
        let read = loop {
            match poll!(reading.as_mut()) {
                Poll::Ready(read) => break read.unwrap(),
                Poll::Pending => turns += 1,
            }
        };
        assert!(read.into_iter().eq(0..ROWS));
        assert_eq!(turns, ROWS / ROWS_AT_A_STRETCH);
    }
}
