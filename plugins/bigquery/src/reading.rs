//! The rows of a result, page by page, as batches of columns. They are told while the page is read, since BigQuery sends what they are before
//! them; where it does not, they are kept as they stand until it has.

use std::rc::Rc;

use serde::de::Error as _;
use souk_sdk::json::{self, Reader, Table, once};
use souk_sdk::results::{Shape, Shapes, Told};
use souk_sdk::{Error, HttpResponse, Limits, Step};

use crate::answers::{Results, malformed, rows};
use crate::types::{self, Type};

/// A result as far as it was read.
#[derive(Default)]
pub struct Reading {
    shape: Option<Rc<Shape<Type>>>,
    told: Told,
}

/// Where the rows of a page go.
pub struct Telling<'s> {
    pub id: u32,
    pub limits: &'s Limits,
    pub reading: &'s mut Reading,
    pub shapes: &'s mut Shapes<Type>,
    pub step: &'s mut Step,
}

/// Reads a page. Its rows are told if they are wanted and it is complete, with those of the first one the columns.
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
    match (page.results.is_complete(), page.telling) {
        (true, Some(mut telling)) if !page.is_told => telling.kept(&page.results)?,
        // What has rows is complete, by BigQuery's own word.
        (false, _) if page.is_told => return Err(malformed()),
        _ => {}
    }
    Ok(page.results)
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
            ("jobComplete", _) => once(&mut results.job_complete, from),
            ("jobReference", _) => once(&mut results.job_reference, from),
            ("schema", _) => once(&mut results.schema, from),
            ("totalRows", _) => once(&mut results.total_rows, from),
            ("pageToken", _) => once(&mut results.page_token, from),
            ("rows", _) if self.is_told => Err(serde_json::Error::duplicate_field("rows")),
            ("rows", Some(telling)) if telling.can_tell(results) => {
                self.is_told = true;
                let told = telling.rows(results, |table| rows(from, table));
                told.map_err(|error| {
                    self.refused = Some(error);
                    serde_json::Error::custom("rows are not taken")
                })
            }
            ("rows", _) => once(&mut results.rows, from),
            _ => from.skip(),
        }
    }
}

impl Telling<'_> {
    /// Whether all is known that comes before rows, and none are kept.
    fn can_tell(&self, page: &Results<'_>) -> bool {
        let is_described = page.schema.is_some() && page.total_rows.is_some();
        (is_described || self.reading.shape.is_some())
            && page.job_complete != Some(false)
            && page.rows.is_none()
    }

    /// Tells rows that were kept, or that there are none.
    fn kept(&mut self, page: &Results<'_>) -> Result<(), Error> {
        self.rows(page, |table| match page.rows {
            Some(kept) => rows(&mut Reader::of(kept.get()), table),
            None => Ok(()),
        })
    }

    /// Tells the columns, if they are not told, and the rows that `read` reads.
    fn rows(
        &mut self,
        page: &Results<'_>,
        read: impl FnOnce(&mut Table<'_, Type>) -> serde_json::Result<()>,
    ) -> Result<(), Error> {
        let shape = self.shape(page)?;
        let batches = self.reading.told.page(&shape, self.limits);
        let mut table = Table::new(batches, self.limits, self.id, self.step, malformed);
        let read = read(&mut table);
        table.end(read).map(drop)
    }

    fn shape(&mut self, page: &Results<'_>) -> Result<Rc<Shape<Type>>, Error> {
        if let Some(shape) = &self.reading.shape {
            return Ok(shape.clone());
        }
        if page.total_rows() > u64::from(self.limits.rows_max) {
            return Err(Error::too_many_rows(self.limits.rows_max));
        }
        let shape = shape_of(self.shapes, page.schema.ok_or_else(malformed)?.get())?;
        self.step
            .columns(self.id, shape.number, shape.columns.describe());
        Ok(self.reading.shape.insert(shape).clone())
    }
}

/// The shape of a schema: one that is known, or a new one.
fn shape_of(shapes: &mut Shapes<Type>, schema: &str) -> Result<Rc<Shape<Type>>, Error> {
    if let Some(known) = shapes.find(|known| known == schema.as_bytes()) {
        return Ok(known);
    }
    let (columns, types) = types::columns(schema)?;
    Ok(shapes.add(schema.as_bytes(), columns, types))
}
