//! The rows of an answer, one after the other, in place of each other: all of them at once would take many times the memory of their text.

use std::fmt::Write;

use serde::de::Error as _;
use souk_sdk::Error;
use souk_sdk::json::{self, Reader, Written};

/// Cells of a row; a result has no more columns.
const CELLS_MAX: usize = 16_384;

/// Cells of a row: texts, or nothing.
#[derive(Default)]
pub struct Row {
    text: String,
    /// Where each begins and ends.
    cells: Vec<Option<(usize, usize)>>,
}

impl Row {
    /// Takes the cells of a row that stands alone in place of those of the last one.
    pub fn read(&mut self, text: &[u8]) -> serde_json::Result<()> {
        let mut from = Reader::of(json::utf8(text)?);
        self.fill(&mut from)?;
        from.end()
    }

    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// `None`: NULL.
    pub fn cell(&self, place: usize) -> Option<&str> {
        let (begin, end) = (*self.cells.get(place)?)?;
        self.text.get(begin..end)
    }

    /// Takes the cells of a row in place of those of the last one.
    fn fill(&mut self, from: &mut Reader<'_>) -> serde_json::Result<()> {
        self.text.clear();
        self.cells.clear();
        from.list("a row", |from| {
            from.cell(false, |cell| self.push(cell))??;
            match self.cells.len() {
                ..=CELLS_MAX => Ok(()),
                _ => Err(serde_json::Error::custom("a row has too many cells")),
            }
        })
    }

    fn push(&mut self, cell: Written<'_>) -> serde_json::Result<()> {
        let mut digits = String::new();
        let cell = text_of(cell, &mut digits)?.map(|text| {
            let begin = self.text.len();
            self.text.push_str(text);
            (begin, self.text.len())
        });
        self.cells.push(cell);
        Ok(())
    }
}

/// The text that a cell is; `None`: NULL. Whole numbers and truth may stand there as such: `digits` holds what is written for those.
pub fn text_of<'c>(
    cell: Written<'c>,
    digits: &'c mut String,
) -> serde_json::Result<Option<&'c str>> {
    Ok(Some(match cell {
        Written::Null => return Ok(None),
        Written::Text(text) => text,
        Written::Truth(true) => "true",
        Written::Truth(false) => "false",
        Written::Whole(value) => {
            // A String takes everything.
            let _ = write!(digits, "{value}");
            digits.as_str()
        }
        Written::Number(written) if is_whole(written) => written,
        Written::Number(_) | Written::Raw(_) => {
            return Err(serde_json::Error::custom(
                "a number with a fraction in place of a text",
            ));
        }
    }))
}

fn is_whole(digits: &str) -> bool {
    json::is_decimal(digits) && !digits.contains('.')
}

/// Rows on their way through an answer.
pub struct Rows<F> {
    each: F,
    row: Row,
    /// Why the last one was not taken.
    pub refused: Option<Error>,
}

impl<F: FnMut(&Row) -> Result<(), Error>> Rows<F> {
    pub fn new(each: F) -> Rows<F> {
        Rows {
            each,
            row: Row::default(),
            refused: None,
        }
    }

    /// Reads an answer: an object that has its rows as `data`, or only the rows.
    pub fn read(&mut self, document: &str) -> serde_json::Result<()> {
        let mut from = Reader::of(document);
        if from.is_list() {
            self.list(&mut from)?;
            return from.end();
        }
        let mut has_data = false;
        from.object(|name, value| match name {
            "data" if std::mem::replace(&mut has_data, true) => {
                Err(serde_json::Error::duplicate_field("data"))
            }
            "data" => self.list(value),
            _ => value.skip(),
        })?;
        match has_data {
            true => from.end(),
            false => Err(serde_json::Error::missing_field("data")),
        }
    }

    fn list(&mut self, from: &mut Reader<'_>) -> serde_json::Result<()> {
        from.list("rows", |from| {
            self.row.fill(from)?;
            (self.each)(&self.row).map_err(|error| {
                self.refused = Some(error);
                serde_json::Error::custom("a row is not taken")
            })
        })
    }
}
