//! The rows of a result, chunk by chunk, as batches of columns. They are told while an answer is read, since Databricks sends what they are
//! before them; where it does not, they are kept as they stand until it has.

use std::rc::Rc;

use serde::de::Error as _;
use souk_sdk::json::{self, Reader, Table, once};
use souk_sdk::results::{Shape, Shapes, Told};
use souk_sdk::{Column, Error, HttpResponse, Limits, Step};

use crate::answers::{Chunk, Manifest, State, Statement, Status, malformed, part_once};
use crate::described::Description;
use crate::errors::{columns_changed, truncated};
use crate::types::{self, Sent, Type, Way};

/// A result as far as it was read.
#[derive(Default)]
pub struct Reading {
    shape: Option<Rc<Shape<Sent>>>,
    told: Told,
}

/// Where the rows of an answer go.
pub struct Telling<'s> {
    pub id: u32,
    pub limits: &'s Limits,
    /// What was asked for in other words than the statement's own.
    pub exact: Option<&'s Description>,
    pub reading: &'s mut Reading,
    pub shapes: &'s mut Shapes<Sent>,
    pub step: &'s mut Step,
}

/// Reads how it is with a statement. The first rows of one that has ended well are told if they are wanted, with the columns.
pub fn statement<'a>(
    response: &'a HttpResponse,
    telling: Option<Telling<'_>>,
) -> Result<Statement<'a>, Error> {
    let mut page = Page::new(telling);
    let read = read(response, |name, value| page.of_statement(name, value));
    page.end(read)?;
    let (Some(statement_id), Some(status)) = (page.statement_id, page.status) else {
        return Err(malformed().detail("an answer without a statement"));
    };
    Ok(Statement {
        statement_id,
        status,
        manifest: page.manifest,
        is_told: page.chunk.as_ref().is_some_and(Chunk::is_told),
        result: page.chunk,
    })
}

/// Reads more rows, which are told if they are wanted.
pub fn chunk<'a>(
    response: &'a HttpResponse,
    telling: Option<Telling<'_>>,
) -> Result<Chunk<'a>, Error> {
    let mut page = Page::new(telling);
    let read = read(response, |name, value| page.of_chunk(name, value));
    page.end(read)?;
    Ok(page.chunk.unwrap_or_default())
}

/// Reads an object, of which `member` takes each member.
fn read<'a>(
    response: &'a HttpResponse,
    member: impl FnMut(&str, &mut Reader<'a>) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    let mut from = Reader::of(json::utf8(&response.body)?);
    from.object(member)?;
    from.end()
}

/// An answer as far as it was read.
struct Page<'a, 's> {
    statement_id: Option<String>,
    status: Option<Status>,
    manifest: Option<Manifest<'a>>,
    chunk: Option<Chunk<'a>>,
    telling: Option<Telling<'s>>,
    refused: Option<Error>,
}

impl<'a, 's> Page<'a, 's> {
    fn new(telling: Option<Telling<'s>>) -> Page<'a, 's> {
        Page {
            statement_id: None,
            status: None,
            manifest: None,
            chunk: None,
            telling,
            refused: None,
        }
    }

    fn of_statement(&mut self, name: &str, from: &mut Reader<'a>) -> serde_json::Result<()> {
        match name {
            "statement_id" => once(&mut self.statement_id, from),
            "status" => part_once(&mut self.status, from),
            "manifest" => part_once(&mut self.manifest, from),
            "result" if self.chunk.is_some() => Err(serde_json::Error::duplicate_field("result")),
            "result" => match from.null()? {
                true => Ok(()),
                false => {
                    self.chunk = Some(Chunk::default());
                    from.object(|name, value| self.of_chunk(name, value))
                }
            },
            _ => from.skip(),
        }
    }

    fn of_chunk(&mut self, name: &str, from: &mut Reader<'a>) -> serde_json::Result<()> {
        let chunk = self.chunk.get_or_insert_default();
        let (status, manifest) = (self.status.as_ref(), self.manifest.as_ref());
        match &mut self.telling {
            Some(telling)
                if name == "data_array" && chunk.is_empty() && telling.knows(status, manifest) =>
            {
                let told = telling.rows(manifest, |table| table.rows(from));
                let rows = told.map_err(|error| {
                    self.refused = Some(error);
                    serde_json::Error::custom("rows are not taken")
                })?;
                chunk.tells(rows);
                Ok(())
            }
            _ => chunk.member(name, from),
        }
    }

    /// What reading it has come to. Rows that were kept are told, or that there are none.
    fn end(&mut self, read: serde_json::Result<()>) -> Result<(), Error> {
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        read.map_err(|error| malformed().detail(error.to_string()))?;
        let (status, manifest) = (self.status.as_ref(), self.manifest.as_ref());
        let Some(telling) = &mut self.telling else {
            return Ok(());
        };
        if !telling.knows(status, manifest) {
            return Ok(());
        }
        let chunk = self.chunk.get_or_insert_default();
        let kept = chunk.list()?;
        if !chunk.is_told() {
            let rows = telling.rows(manifest, |table| match kept {
                Some(kept) => table.rows(&mut Reader::of(kept.get())),
                None => Ok(()),
            })?;
            chunk.tells(rows);
        }
        Ok(())
    }
}

impl Telling<'_> {
    /// Whether it is known what rows are, and of nothing that they are not those of a statement that has ended well.
    fn knows(&self, status: Option<&Status>, manifest: Option<&Manifest<'_>>) -> bool {
        let is_over = |status: &Status| matches!(status.state(), Ok(State::Succeeded));
        status.is_none_or(is_over) && (manifest.is_some() || self.reading.shape.is_some())
    }

    /// Tells the columns, if they are not told, and the rows that `read` reads. How many there were.
    fn rows(
        &mut self,
        manifest: Option<&Manifest<'_>>,
        read: impl FnOnce(&mut Table<'_, Sent>) -> serde_json::Result<()>,
    ) -> Result<u64, Error> {
        let shape = self.shape(manifest)?;
        let batches = self.reading.told.page(&shape, self.limits);
        let mut table = Table::new(batches, self.limits, self.id, self.step, malformed);
        let read = read(&mut table);
        table.end(read)
    }

    fn shape(&mut self, manifest: Option<&Manifest<'_>>) -> Result<Rc<Shape<Sent>>, Error> {
        if let Some(shape) = &self.reading.shape {
            return Ok(shape.clone());
        }
        let manifest = manifest.ok_or_else(malformed)?;
        if manifest.truncated {
            return Err(truncated(manifest.total_row_count, self.limits));
        }
        let described = manifest.schema.columns.ok_or_else(malformed)?.get();
        let shape = match self.exact {
            None => plain(described, self.shapes)?,
            Some(exact) => in_other_words(described, exact, self.shapes)?,
        };
        self.step
            .columns(self.id, shape.number, shape.columns.describe());
        Ok(self.reading.shape.insert(shape).clone())
    }
}

/// The shape of a result as the API describes it.
fn plain(described: &str, shapes: &mut Shapes<Sent>) -> Result<Rc<Shape<Sent>>, Error> {
    if let Some(known) = shapes.find(|known| known == described.as_bytes()) {
        return Ok(known);
    }
    let columns = types::columns(described)?;
    let (columns, kinds) = split(&columns);
    // It was described as another, or else it had been asked for in other words.
    if kinds.iter().any(|kind| kind.way() != Way::Plain) {
        return Err(columns_changed());
    }
    let kinds = kinds.into_iter().map(|kind| Sent {
        kind,
        way: Way::Plain,
    });
    let kinds = kinds.collect();
    Ok(shapes.add(described.as_bytes(), columns, kinds))
}

/// The shape of a result that comes in other words.
fn in_other_words(
    described: &str,
    exact: &Description,
    shapes: &mut Shapes<Sent>,
) -> Result<Rc<Shape<Sent>>, Error> {
    let sent = types::columns(described)?;
    let (columns, kinds) = split(&exact.columns);
    let fits = |(kind, (_, sent)): (&Type, &(String, String))| {
        let wanted = match kind.way() {
            Way::Plain => *kind,
            Way::Micros => Type::Integer,
            Way::Sql | Way::Base64 | Way::Json => Type::Text,
        };
        Type::of(sent) == wanted
    };
    if sent.len() != kinds.len() || !kinds.iter().zip(&sent).all(fits) {
        return Err(columns_changed());
    }
    let key = exact.key();
    if let Some(known) = shapes.find(|known| known == key) {
        return Ok(known);
    }
    let kinds = kinds.into_iter().map(|kind| Sent {
        kind,
        way: kind.way(),
    });
    let kinds = kinds.collect();
    Ok(shapes.add(&key, columns, kinds))
}

fn split(columns: &[(String, String)]) -> (Vec<Column>, Vec<Type>) {
    let columns = columns.iter();
    columns
        .map(|(name, kind)| types::column(name, kind))
        .unzip()
}
