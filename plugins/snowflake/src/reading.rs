//! The rows of a result, part by part, as batches of columns. They are told while an answer is read, since Snowflake sends what they are
//! before them; where it does not, they are kept as they stand until it has. Parts that come compressed are told as they are unpacked.

use serde::de::Error as _;
use souk_sdk::json::{self, Answer, Reader, Telling, once};
use souk_sdk::{Error, Limits, Step};

use crate::answers::{self, Body, Head, MetaData};
use crate::errors::{malformed, unreadable};
use crate::rows::Row;
use crate::types::{self, Type};
use crate::values::push;

/// A result of more parts is not believed.
const PARTITIONS_MAX: usize = 10_000;

/// A result as far as it was read.
#[derive(Default)]
pub struct Reading {
    pub rows: json::Reading<Type>,
    pub parts: Parts,
}

/// Parts of a result.
#[derive(Default)]
pub struct Parts {
    /// How many there are; none, as long as that is not known.
    count: usize,
    /// The one that is read next.
    next: usize,
    /// Rows that there are, and those that came.
    rows: u64,
    came: u64,
}

/// Rows of an answer that are wanted.
pub struct Wanted<'s> {
    pub telling: Telling<'s, Type>,
    pub parts: &'s mut Parts,
}

impl Reading {
    /// Tells rows of a part that came compressed, as they are handed on; whether these were the last of it is handed back.
    pub fn rows(
        &mut self,
        id: u32,
        limits: &Limits,
        step: &mut Step,
        hand_on: impl FnOnce(&mut dyn FnMut(&Row) -> Result<(), Error>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let columns = self.rows.shape().ok_or_else(malformed)?.types.len();
        let mut batches = self.rows.page(limits).ok_or_else(malformed)?;
        let mut came = 0;
        let is_over = hand_on(&mut |row| {
            if row.len() != columns {
                return Err(malformed());
            }
            came += 1;
            let full = batches.row(|place, kind, into| push(*kind, row.cell(place), into))?;
            full.into_iter().for_each(|batch| step.batch(id, batch));
            Ok(())
        })?;
        let rest = batches.rest();
        rest.into_iter().for_each(|batch| step.batch(id, batch));
        self.parts.came += came;
        self.parts.next += usize::from(is_over);
        Ok(is_over)
    }
}

impl Parts {
    /// The part to ask for next; `None`: all have come, and all of their rows.
    pub fn next(&self) -> Result<Option<usize>, Error> {
        match self.next < self.count {
            true => Ok(Some(self.next)),
            false if self.came == self.rows => Ok(None),
            false => Err(Error::source_failed(
                "rows_missing",
                "the result has more or fewer rows than Snowflake said it has",
            )),
        }
    }

    /// A part of so many rows was told. With the first one comes how many there are.
    fn told(&mut self, rows: u64, described: Option<&MetaData<'_>>) {
        if let (0, Some(described)) = (self.count, described) {
            self.count = partitions(described);
            self.rows = described.num_rows;
        }
        self.came += rows;
        self.next += 1;
    }
}

fn partitions(described: &MetaData<'_>) -> usize {
    described.partition_info.len().max(1)
}

/// Reads an answer. Its rows are told if they are wanted and described, by it or by one before, with the first ones the columns.
pub fn answer<'a>(body: &'a Body<'_>, wanted: Option<Wanted<'_>>) -> Result<Head<'a>, Error> {
    let (telling, parts) = wanted.map(|wanted| (wanted.telling, wanted.parts)).unzip();
    let mut page = Page {
        head: Head::default(),
        has_data: false,
        rows: Answer::new("data", telling),
    };
    let read = page.read(body.text()?);
    page.end(read)?;
    if let (Some(parts), Some(rows)) = (parts, page.rows.told()) {
        parts.told(rows, page.head.result_set_meta_data.as_ref());
    }
    Ok(page.head)
}

/// An answer as far as it was read.
struct Page<'a, 's> {
    head: Head<'a>,
    has_data: bool,
    rows: Answer<'a, 's, Type>,
}

impl<'a> Page<'a, '_> {
    /// An object that has its rows as `data`, or only the rows.
    fn read(&mut self, document: &'a str) -> serde_json::Result<()> {
        let mut from = Reader::of(document);
        match from.is_list() {
            true => self.data(&mut from)?,
            false => from.object(|name, value| match name {
                "statementHandle" => once(&mut self.head.statement_handle, value),
                "resultSetMetaData" => once(&mut self.head.result_set_meta_data, value),
                "data" => self.data(value),
                _ => value.skip(),
            })?,
        }
        from.end()
    }

    fn data(&mut self, from: &mut Reader<'a>) -> serde_json::Result<()> {
        // Not even `null` stands beside them.
        if std::mem::replace(&mut self.has_data, true) {
            return Err(serde_json::Error::duplicate_field("data"));
        }
        let is_known = self.is_known();
        let described = self.head.result_set_meta_data.as_ref();
        self.rows.take(is_known, from, |telling, from| {
            tell(telling, described, from)
        })
    }

    /// Whether it is known what rows are.
    fn is_known(&self) -> bool {
        self.head.result_set_meta_data.is_some() || self.rows.is_described()
    }

    /// What reading it has come to. Rows that were kept are told.
    fn end(&mut self, read: serde_json::Result<()>) -> Result<(), Error> {
        self.rows.end(read)?;
        if !self.rows.is_wanted() || !self.is_known() {
            return Ok(());
        }
        if !self.has_data {
            return Err(unreadable("an answer without rows"));
        }
        let described = self.head.result_set_meta_data.as_ref();
        self.rows
            .tell_kept(|telling, from| tell(telling, described, from))
    }
}

/// Tells the columns, if they are not told, and the rows that stand there. How many there were.
fn tell(
    telling: &mut Telling<'_, Type>,
    described: Option<&MetaData<'_>>,
    from: Option<&mut Reader<'_>>,
) -> Result<u64, Error> {
    let rows_max = telling.limits.rows_max;
    telling.describe(|shapes| {
        let described = described.ok_or_else(malformed)?;
        if described.num_rows > u64::from(rows_max) {
            return Err(Error::too_many_rows(rows_max));
        }
        if partitions(described) > PARTITIONS_MAX {
            return Err(malformed());
        }
        let row_type = described.row_type.get();
        shapes.of(row_type.as_bytes(), || {
            Ok(types::columns(&answers::columns(row_type)?))
        })
    })?;
    telling.rows(from, |from, table| table.rows(from))
}
