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

    /// Takes a cell: a text. Whole numbers and truth may stand there as such.
    fn push(&mut self, cell: Written<'_>) -> serde_json::Result<()> {
        let begin = self.text.len();
        match cell {
            Written::Null => {
                self.cells.push(None);
                return Ok(());
            }
            Written::Text(text) => self.text.push_str(text),
            Written::Truth(true) => self.text.push_str("true"),
            Written::Truth(false) => self.text.push_str("false"),
            Written::Whole(value) => {
                // A String takes everything.
                let _ = write!(self.text, "{value}");
            }
            Written::Number(digits) if is_whole(digits) => self.text.push_str(digits),
            Written::Number(_) | Written::Raw(_) => {
                return Err(serde_json::Error::custom(
                    "a number with a fraction in place of a text",
                ));
            }
        }
        self.cells.push(Some((begin, self.text.len())));
        Ok(())
    }
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
