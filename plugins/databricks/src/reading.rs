//! The rows of a result, chunk by chunk, as batches of columns. They are told while an answer is read, since Databricks sends what they are
//! before them; where it does not, they are kept as they stand until it has.

use std::rc::Rc;

use serde::de::Error as _;
use souk_sdk::json::{self, Answer, Reader, Telling, once};
use souk_sdk::results::{Shape, Shapes};
use souk_sdk::{Column, Error, HttpResponse};

use crate::answers::{Chunk, Manifest, State, Statement, Status, malformed, part_once};
use crate::described::Description;
use crate::errors::{columns_changed, truncated};
use crate::types::{self, Sent, Type, Way};

/// Rows of a statement's answers that are wanted.
pub struct Wanted<'s> {
    pub telling: Telling<'s, Sent>,
    /// What was asked for in other words than the statement's own.
    pub exact: Option<&'s Description>,
}

/// Reads how it is with a statement. The first rows of one that has ended well are told if they are wanted, with the columns.
pub fn statement<'a>(
    response: &'a HttpResponse,
    wanted: Option<Wanted<'_>>,
) -> Result<Statement<'a>, Error> {
    let mut page = Page::new(wanted);
    let read = json::members(&response.body, |name, from| page.of_statement(name, from));
    page.end(read)?;
    let (Some(statement_id), Some(status)) = (page.statement_id, page.status) else {
        return Err(malformed().detail("an answer without a statement"));
    };
    Ok(Statement {
        statement_id,
        status,
        manifest: page.manifest,
        is_told: page.rows.told().is_some(),
        result: page.chunk,
    })
}

/// Reads more rows, which are told if they are wanted.
pub fn chunk<'a>(
    response: &'a HttpResponse,
    wanted: Option<Wanted<'_>>,
) -> Result<Chunk<'a>, Error> {
    let mut page = Page::new(wanted);
    let read = json::members(&response.body, |name, from| page.of_chunk(name, from));
    page.end(read)?;
    Ok(page.chunk.unwrap_or_default())
}

/// An answer as far as it was read.
struct Page<'a, 's> {
    statement_id: Option<String>,
    status: Option<Status>,
    manifest: Option<Manifest<'a>>,
    chunk: Option<Chunk<'a>>,
    rows: Answer<'a, 's, Sent>,
    exact: Option<&'s Description>,
}

impl<'a, 's> Page<'a, 's> {
    fn new(wanted: Option<Wanted<'s>>) -> Page<'a, 's> {
        Page {
            statement_id: None,
            status: None,
            manifest: None,
            chunk: None,
            exact: wanted.as_ref().and_then(|wanted| wanted.exact),
            rows: Answer::new("data_array", wanted.map(|wanted| wanted.telling)),
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
        if name != "data_array" {
            return chunk.member(name, from);
        }
        let is_known = !chunk.lies_elsewhere() && self.is_known();
        let (manifest, exact) = (self.manifest.as_ref(), self.exact);
        self.rows.take(is_known, from, |telling, from| {
            tell(telling, manifest, exact, from)
        })
    }

    /// Whether it is known what rows are, and of nothing that they are not those of a statement that has ended well.
    fn is_known(&self) -> bool {
        let is_over = |status: &Status| matches!(status.state(), Ok(State::Succeeded));
        let is_described = self.manifest.is_some() || self.rows.is_described();
        self.status.as_ref().is_none_or(is_over) && is_described
    }

    /// What reading it has come to. Rows that were kept are told, or that there are none.
    fn end(&mut self, read: serde_json::Result<()>) -> Result<(), Error> {
        self.rows.end(read)?;
        if let Some(chunk) = &mut self.chunk {
            chunk.keep(self.rows.kept());
        }
        if !self.rows.is_wanted() || !self.is_known() {
            return Ok(());
        }
        let chunk = self.chunk.get_or_insert_default();
        // Which they have to be.
        chunk.list()?;
        let (manifest, exact) = (self.manifest.as_ref(), self.exact);
        self.rows
            .tell_kept(|telling, from| tell(telling, manifest, exact, from))?;
        chunk.told(self.rows.told().unwrap_or_default());
        Ok(())
    }
}

/// Tells the columns, if they are not told, and the rows that stand there. How many there were.
fn tell(
    telling: &mut Telling<'_, Sent>,
    manifest: Option<&Manifest<'_>>,
    exact: Option<&Description>,
    from: Option<&mut Reader<'_>>,
) -> Result<u64, Error> {
    let limits = telling.limits;
    telling.describe(|shapes| {
        let manifest = manifest.ok_or_else(malformed)?;
        if manifest.truncated {
            return Err(truncated(manifest.total_row_count, limits));
        }
        let described = manifest.schema.columns.ok_or_else(malformed)?.get();
        match exact {
            None => plain(described, shapes),
            Some(exact) => in_other_words(described, exact, shapes),
        }
    })?;
    telling.rows(from, |from, table| table.rows(from))
}

/// The shape of a result as the API describes it.
fn plain(described: &str, shapes: &mut Shapes<Sent>) -> Result<Rc<Shape<Sent>>, Error> {
    shapes.of(described.as_bytes(), || {
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
        Ok((columns, kinds.collect()))
    })
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
    shapes.of(&exact.key(), || {
        let kinds = kinds.into_iter().map(|kind| Sent {
            kind,
            way: kind.way(),
        });
        Ok((columns, kinds.collect()))
    })
}

fn split(columns: &[(String, String)]) -> (Vec<Column>, Vec<Type>) {
    let columns = columns.iter();
    columns
        .map(|(name, kind)| types::column(name, kind))
        .unzip()
}
