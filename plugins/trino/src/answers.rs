//! What a coordinator answers, as far as it is read.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use souk_sdk::{Error, HttpFailure, HttpResponse};

use crate::types::FIELDS_MAX;

/// Of a statement: one of the answers to it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Results<'a> {
    /// Every answer has one; what has none is no coordinator's.
    pub id: String,
    /// Where it goes on. Without it this was the last.
    pub next_uri: Option<String>,
    /// As soon as they are known, and with every answer from then on.
    #[serde(borrow)]
    pub columns: Option<&'a RawValue>,
    /// Rows. (Where it is an object the rows lie elsewhere, which nobody asked for.)
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    pub error: Option<QueryError>,
}

impl<'a> Results<'a> {
    pub fn has_rows(&self) -> bool {
        self.data.is_some_and(|rows| !is_empty(rows))
    }

    /// Hands on the cells of one row after the other, until one is refused: all of them at once take many times the memory of their text.
    pub fn rows(
        &self,
        mut each: impl FnMut(&[&'a RawValue]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(rows) = self.data else {
            return Ok(());
        };
        let mut refused = None;
        let visitor = Rows(|row: &[&'a RawValue]| {
            let outcome = each(row);
            outcome.is_ok() || refused.insert(outcome).is_ok()
        });
        let outcome = serde_json::Deserializer::from_str(rows.get()).deserialize_seq(visitor);
        match refused {
            Some(refused) => refused,
            None => outcome.map_err(|error| malformed().detail(error.to_string())),
        }
    }
}

/// Nothing stands in a list.
pub fn is_empty(list: &RawValue) -> bool {
    let inside = list.get().strip_prefix('[');
    inside.is_some_and(|inside| inside.trim_start() == "]")
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
            if self.0.len() == FIELDS_MAX {
                return Err(A::Error::custom("a row has too many cells"));
            }
            self.0.push(cell);
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryError {
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub error_name: String,
    #[serde(default)]
    pub error_type: String,
    pub error_location: Option<Location>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    #[serde(default)]
    pub line_number: u32,
    #[serde(default)]
    pub column_number: u32,
}

/// What stands in an answer.
pub fn read(response: &HttpResponse) -> Result<Results<'_>, Error> {
    serde_json::from_slice(&response.body).map_err(|error| malformed().detail(error.to_string()))
}

/// No answer came.
pub fn broken(failure: HttpFailure) -> Error {
    failure.within("16 MiB or what the request's limits leave room for")
}

pub fn malformed() -> Error {
    Error::source_failed(
        "malformed_answer",
        "what answers at the connection's address does not speak as Trino's coordinator does",
    )
}
