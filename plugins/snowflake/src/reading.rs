//! The rows of a result, part by part, as batches of columns. They are told while an answer is read, since Snowflake sends what they are
//! before them; where it does not, they are kept as they stand until it has. Parts that come compressed are told as they are unpacked.

use std::rc::Rc;

use serde::de::Error as _;
use serde_json::value::RawValue;
use souk_sdk::json::{Reader, Table, once};
use souk_sdk::results::{Shape, Shapes, Told};
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
    shape: Option<Rc<Shape<Type>>>,
    told: Told,
    /// Rows that there are, and those that came.
    rows: u64,
    came: u64,
    partitions: usize,
    /// The part that is read next.
    next: usize,
}

impl Reading {
    /// Tells the columns.
    fn begin(
        &mut self,
        id: u32,
        described: &MetaData<'_>,
        limits: &Limits,
        shapes: &mut Shapes<Type>,
        step: &mut Step,
    ) -> Result<(), Error> {
        if described.num_rows > u64::from(limits.rows_max) {
            return Err(Error::too_many_rows(limits.rows_max));
        }
        self.rows = described.num_rows;
        self.partitions = described.partition_info.len().max(1);
        if self.partitions > PARTITIONS_MAX {
            return Err(malformed());
        }
        let shape = shape_of(shapes, described.row_type.get())?;
        step.columns(id, shape.number, shape.columns.describe());
        self.shape = Some(shape);
        Ok(())
    }

    /// Tells rows of a part that came compressed, as they are handed on; whether these were the last of it is handed back.
    pub fn rows(
        &mut self,
        id: u32,
        limits: &Limits,
        step: &mut Step,
        hand_on: impl FnOnce(&mut dyn FnMut(&Row) -> Result<(), Error>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let shape = self.shape.clone().ok_or_else(malformed)?;
        let mut batches = self.told.page(&shape, limits);
        let mut came = 0;
        let is_over = hand_on(&mut |row| {
            if row.len() != shape.types.len() {
                return Err(malformed());
            }
            came += 1;
            let full = batches.row(|place, kind, into| push(*kind, row.cell(place), into))?;
            full.into_iter().for_each(|batch| step.batch(id, batch));
            Ok(())
        })?;
        let rest = batches.rest();
        rest.into_iter().for_each(|batch| step.batch(id, batch));
        self.came += came;
        self.next += usize::from(is_over);
        Ok(is_over)
    }

    /// The part to ask for next; `None`: all have come, and all of their rows.
    pub fn next(&self) -> Result<Option<usize>, Error> {
        match self.next < self.partitions {
            true => Ok(Some(self.next)),
            false if self.came == self.rows => Ok(None),
            false => Err(Error::source_failed(
                "rows_missing",
                "the result has more or fewer rows than Snowflake said it has",
            )),
        }
    }
}

/// Where the rows of an answer go.
pub struct Telling<'s> {
    pub id: u32,
    pub limits: &'s Limits,
    pub reading: &'s mut Reading,
    pub shapes: &'s mut Shapes<Type>,
    pub step: &'s mut Step,
}

/// Reads an answer. Its rows are told if they are wanted and described, by it or by one before, with the first ones the columns.
pub fn answer<'a>(body: &'a Body<'_>, telling: Option<Telling<'_>>) -> Result<Head<'a>, Error> {
    let mut page = Page {
        head: Head::default(),
        kept: None,
        has_data: false,
        telling,
        is_told: false,
        refused: None,
    };
    let read = page.read(body.text()?);
    if let Some(error) = page.refused.take() {
        return Err(error);
    }
    read.map_err(unreadable)?;
    page.whole()
}

/// An answer as far as it was read.
struct Page<'a, 's> {
    head: Head<'a>,
    /// Rows that stand before what they are, or that nobody wants.
    kept: Option<&'a RawValue>,
    has_data: bool,
    telling: Option<Telling<'s>>,
    is_told: bool,
    refused: Option<Error>,
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
        if std::mem::replace(&mut self.has_data, true) {
            return Err(serde_json::Error::duplicate_field("data"));
        }
        let described = self.head.result_set_meta_data.as_ref();
        match &mut self.telling {
            Some(telling) if telling.knows(described) => {
                self.is_told = true;
                let told = telling.rows(described, |table| table.rows(from));
                told.map_err(|error| {
                    self.refused = Some(error);
                    serde_json::Error::custom("rows are not taken")
                })
            }
            _ => once(&mut self.kept, from),
        }
    }

    /// Tells rows that were kept.
    fn whole(self) -> Result<Head<'a>, Error> {
        let described = self.head.result_set_meta_data.as_ref();
        if let (Some(mut telling), false) = (self.telling, self.is_told)
            && telling.knows(described)
        {
            if !self.has_data {
                return Err(unreadable("an answer without rows"));
            }
            telling.rows(described, |table| match self.kept {
                Some(kept) => table.rows(&mut Reader::of(kept.get())),
                None => Ok(()),
            })?;
        }
        Ok(self.head)
    }
}

impl Telling<'_> {
    /// Whether it is known what rows are.
    fn knows(&self, described: Option<&MetaData<'_>>) -> bool {
        described.is_some() || self.reading.shape.is_some()
    }

    /// Tells the columns, if they are not told, and the rows of a part, which `read` reads.
    fn rows(
        &mut self,
        described: Option<&MetaData<'_>>,
        read: impl FnOnce(&mut Table<'_, Type>) -> serde_json::Result<()>,
    ) -> Result<(), Error> {
        let shape = self.shape(described)?;
        let batches = self.reading.told.page(&shape, self.limits);
        let mut table = Table::new(batches, self.limits, self.id, self.step, malformed);
        let read = read(&mut table);
        let came = table.end(read)?;
        self.reading.came += came;
        self.reading.next += 1;
        Ok(())
    }

    fn shape(&mut self, described: Option<&MetaData<'_>>) -> Result<Rc<Shape<Type>>, Error> {
        if self.reading.shape.is_none() {
            let described = described.ok_or_else(malformed)?;
            self.reading
                .begin(self.id, described, self.limits, self.shapes, self.step)?;
        }
        self.reading.shape.clone().ok_or_else(malformed)
    }
}

/// The shape of a description: one that is known, or a new one.
fn shape_of(shapes: &mut Shapes<Type>, row_type: &str) -> Result<Rc<Shape<Type>>, Error> {
    if let Some(known) = shapes.find(|known| known == row_type.as_bytes()) {
        return Ok(known);
    }
    let (columns, types) = types::columns(&answers::columns(row_type)?);
    Ok(shapes.add(row_type.as_bytes(), columns, types))
}
