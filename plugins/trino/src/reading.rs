//! The rows of a result, page by page, as batches of columns. They are told while the page is read, since Trino sends what they are before
//! them; where it does not, they are kept as they stand until it has.

use std::rc::Rc;

use serde::de::Error as _;
use souk_sdk::json::{self, Reader, Table, once};
use souk_sdk::results::{Shape, Shapes, Told};
use souk_sdk::{Error, HttpResponse, Limits, Step};

use crate::answers::{Results, malformed};
use crate::types::{self, Type};

/// The text that describes columns.
const DESCRIBED_BYTES_MAX: usize = 1 << 20;

/// A result as far as it was read.
#[derive(Default)]
pub struct Reading {
    shape: Option<Rc<Shape<Type>>>,
    told: Told,
}

impl Reading {
    /// A statement that has ended was one with columns.
    pub fn is_described(&self) -> bool {
        self.shape.is_some()
    }
}

/// Where the rows of a page go.
pub struct Telling<'s> {
    pub id: u32,
    pub limits: &'s Limits,
    pub reading: &'s mut Reading,
    pub shapes: &'s mut Shapes<Type>,
    pub step: &'s mut Step,
}

/// Reads a page. Its rows are told if they are wanted, with those of the first page that has them the columns.
pub fn page<'a>(
    response: &'a HttpResponse,
    telling: Option<Telling<'_>>,
) -> Result<Results<'a>, Error> {
    let mut page = Page {
        results: Results::default(),
        telling,
        is_told: false,
        refused: None,
    };
    let read = json::members(&response.body, &mut page);
    if let Some(error) = page.refused {
        return Err(error);
    }
    read.map_err(|error| malformed().detail(error.to_string()))?;
    let results = page.results;
    if results.id.is_none() {
        return Err(malformed().detail("an answer without an id"));
    }
    if let (Some(mut telling), false) = (page.telling, page.is_told) {
        telling.rows(&results, |table| match results.data {
            Some(kept) => table.rows(&mut Reader::of(kept.get())),
            None => Ok(()),
        })?;
    }
    Ok(results)
}

/// A page as far as it was read.
struct Page<'a, 's> {
    results: Results<'a>,
    telling: Option<Telling<'s>>,
    is_told: bool,
    refused: Option<Error>,
}

impl<'a> json::Members<'a> for Page<'a, '_> {
    fn member(&mut self, name: &str, from: &mut Reader<'a>) -> serde_json::Result<()> {
        let results = &mut self.results;
        match (name, &mut self.telling) {
            ("id", _) => once(&mut results.id, from),
            ("nextUri", _) => once(&mut results.next_uri, from),
            ("columns", _) => once(&mut results.columns, from),
            ("error", _) => once(&mut results.error, from),
            ("data", _) if self.is_told => Err(serde_json::Error::duplicate_field("data")),
            ("data", Some(telling)) if results.described().is_some() && results.data.is_none() => {
                self.is_told = true;
                let told = telling.rows(results, |table| table.rows(from));
                results.told = told.map_err(|error| {
                    self.refused = Some(error);
                    serde_json::Error::custom("rows are not taken")
                })?;
                Ok(())
            }
            ("data", _) => once(&mut results.data, from),
            _ => from.skip(),
        }
    }
}

impl Telling<'_> {
    /// Tells the columns, if they are not told, and the rows that `read` reads. How many there were.
    fn rows(
        &mut self,
        page: &Results<'_>,
        read: impl FnOnce(&mut Table<'_, Type>) -> serde_json::Result<()>,
    ) -> Result<u64, Error> {
        let Some(shape) = self.shape(page)? else {
            // They come before the first row, and not with the first answer.
            return match page.has_rows() {
                true => Err(malformed()),
                false => Ok(0),
            };
        };
        let batches = self.reading.told.page(&shape, self.limits);
        let mut table = Table::new(batches, self.limits, self.id, self.step, malformed);
        let read = read(&mut table);
        table.end(read)
    }

    fn shape(&mut self, page: &Results<'_>) -> Result<Option<Rc<Shape<Type>>>, Error> {
        match (&self.reading.shape, page.described()) {
            (known, None) => Ok(known.clone()),
            (Some(shape), Some(same)) if same.get().as_bytes() == shape.described() => {
                Ok(Some(shape.clone()))
            }
            // Of one statement they do not change.
            (Some(_), Some(_)) => Err(malformed()),
            (None, Some(columns)) => {
                let shape = shape_of(self.shapes, columns.get())?;
                let described = shape.columns.describe();
                self.step.columns(self.id, shape.number, described);
                self.reading.shape = Some(shape.clone());
                Ok(Some(shape))
            }
        }
    }
}

/// The shape of a description: one that is known, or a new one.
fn shape_of(shapes: &mut Shapes<Type>, described: &str) -> Result<Rc<Shape<Type>>, Error> {
    if let Some(known) = shapes.find(|known| known == described.as_bytes()) {
        return Ok(known);
    }
    if described.len() > DESCRIBED_BYTES_MAX {
        return Err(Error::limit_exceeded(
            "columns_too_long",
            "the names and types of the result's columns are longer than 1 MiB",
        ));
    }
    let (columns, types) = types::columns(described)?;
    Ok(shapes.add(described.as_bytes(), columns, types))
}
