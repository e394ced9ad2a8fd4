//! What the API answers, as far as it is read.

use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use souk_sdk::{Error, HttpFailure, HttpResponse};

/// Columns that a result has at most.
pub const COLUMNS_MAX: usize = 10_000;
/// An id is a UUID.
const ID_BYTES_MAX: usize = 128;

/// Of a statement: how it is with it, and its first rows.
#[derive(Deserialize)]
pub struct Statement<'a> {
    pub statement_id: String,
    pub status: Status,
    #[serde(borrow)]
    pub manifest: Option<Manifest<'a>>,
    #[serde(borrow)]
    pub result: Option<Chunk<'a>>,
}

#[derive(Deserialize)]
pub struct Status {
    state: String,
    pub error: Option<Told>,
    pub sql_state: Option<String>,
}

/// An error, of a statement or of the API.
#[derive(Default, Deserialize)]
pub struct Told {
    /// A word, or the status as a number.
    pub error_code: Option<serde_json::Value>,
    #[serde(default)]
    pub message: String,
}

/// What a result is made of.
#[derive(Deserialize)]
pub struct Manifest<'a> {
    #[serde(borrow)]
    pub schema: Schema<'a>,
    /// Rows were left out.
    #[serde(default)]
    pub truncated: bool,
    /// Of all chunks.
    pub total_row_count: Option<u64>,
}

#[derive(Deserialize)]
pub struct Schema<'a> {
    #[serde(borrow)]
    pub columns: Option<&'a RawValue>,
}

/// Rows, and where there are more.
#[derive(Deserialize)]
pub struct Chunk<'a> {
    #[serde(default)]
    pub chunk_index: u32,
    pub next_chunk_index: Option<u32>,
    #[serde(borrow)]
    data_array: Option<&'a RawValue>,
    /// Where rows lie elsewhere, which nobody asked for.
    #[serde(borrow)]
    external_links: Option<&'a RawValue>,
    #[serde(skip)]
    taken: Cell<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Running,
    Succeeded,
    Failed,
    Canceled,
    /// Its rows are gone.
    Closed,
}

impl Status {
    pub fn state(&self) -> Result<State, Error> {
        Ok(match self.state.as_str() {
            "PENDING" | "RUNNING" => State::Running,
            "SUCCEEDED" => State::Succeeded,
            "FAILED" => State::Failed,
            "CANCELED" => State::Canceled,
            "CLOSED" => State::Closed,
            _ => return Err(malformed()),
        })
    }
}

impl Statement<'_> {
    /// Its id, if it may stand in a path.
    pub fn id(&self) -> Result<&str, Error> {
        let id = self.statement_id.as_str();
        let is_id = (1..=ID_BYTES_MAX).contains(&id.len())
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        match is_id {
            true => Ok(id),
            false => Err(malformed()),
        }
    }
}

impl<'a> Chunk<'a> {
    /// How many rows were handed on.
    pub fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// Hands on the cells of one row after the other, until one is refused: all of them at once take many times the memory of their text.
    pub fn rows(
        &self,
        mut each: impl FnMut(&[&'a RawValue]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.external_links.is_some() {
            return Err(malformed().detail("rows that lie elsewhere"));
        }
        let Some(rows) = self.data_array.filter(|rows| rows.get() != "null") else {
            return Ok(());
        };
        let mut refused = None;
        let visitor = Rows(|row: &[&'a RawValue]| {
            let outcome = each(row);
            self.taken.set(self.taken.get() + 1);
            outcome.is_ok() || refused.insert(outcome).is_ok()
        });
        let outcome = serde_json::Deserializer::from_str(rows.get()).deserialize_seq(visitor);
        match refused {
            Some(refused) => refused,
            None => outcome.map_err(|error| malformed().detail(error.to_string())),
        }
    }
}

/// Goes through rows as long as it is told to go on.
struct Rows<F>(F);

impl<'de, F: FnMut(&[&'de RawValue]) -> bool> Visitor<'de> for Rows<F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut rows: A) -> Result<(), A::Error> {
        let mut cells = Vec::new();
        while rows.next_element_seed(Cells(&mut cells))?.is_some() {
            if !self.0(&cells) {
                return Err(A::Error::custom("a row is not taken"));
            }
        }
        Ok(())
    }
}

/// Takes the cells of a row in place of those of the last one.
struct Cells<'c, 'de>(&'c mut Vec<&'de RawValue>);

impl<'de> DeserializeSeed<'de> for Cells<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Cells<'_, 'de> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a row")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut row: A) -> Result<(), A::Error> {
        self.0.clear();
        while let Some(cell) = row.next_element()? {
            if self.0.len() == COLUMNS_MAX {
                return Err(A::Error::custom("a row has too many cells"));
            }
            self.0.push(cell);
        }
        Ok(())
    }
}

/// What stands in an answer.
pub fn read<'a, T: Deserialize<'a>>(response: &'a HttpResponse) -> Result<T, Error> {
    serde_json::from_slice(&response.body).map_err(|error| malformed().detail(error.to_string()))
}

/// No answer came.
pub fn broken(failure: HttpFailure) -> Error {
    failure.within("24 MiB or what the request's limits leave room for")
}

pub fn malformed() -> Error {
    Error::source_failed(
        "malformed_answer",
        "what answers at the connection's address does not speak as Databricks' SQL Statement Execution API does",
    )
}
