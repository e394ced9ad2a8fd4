//! What a coordinator answers, as far as it is read.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use souk_sdk::json::{self, Unread, part_or_none, scalar};
use souk_sdk::{Error, HttpFailure};

use crate::types::FIELDS_MAX;

/// Of a statement: one of the answers to it.
#[derive(Default)]
pub struct Results<'a> {
    /// Every answer has one; what has none is no coordinator's.
    pub id: Option<Cow<'a, str>>,
    /// Where it goes on. Without it this was the last.
    pub next_uri: Option<Cow<'a, str>>,
    /// As soon as they are known, and with every answer from then on; as they stand.
    pub columns: Option<&'a str>,
    /// Rows, where they were not told while the answer was read. (Where it is an object the rows lie elsewhere, which nobody asked for.)
    pub data: Option<&'a RawValue>,
    pub error: Option<QueryError>,
    /// How many rows were told.
    pub told: u64,
}

impl<'a> Results<'a> {
    /// The columns. Before a statement's plan is there, some releases tell that it has none.
    pub fn described(&self) -> Option<&'a str> {
        self.columns.filter(|columns| !is_empty(columns))
    }

    pub fn has_rows(&self) -> bool {
        self.told > 0 || self.data.is_some_and(|rows| !is_empty(rows.get()))
    }

    /// Hands on the cells of one row after the other, until one is refused.
    pub fn rows(
        &self,
        each: impl FnMut(&[&'a RawValue]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(rows) = self.data else {
            return Ok(());
        };
        json::rows(rows, FIELDS_MAX, each).map_err(|unread| match unread {
            Unread::Refused(error) => error,
            Unread::Malformed(error) => malformed().detail(json::what_is_wrong(&error)),
        })
    }
}

/// Nothing stands in a list.
fn is_empty(list: &str) -> bool {
    let inside = list.strip_prefix('[');
    inside.is_some_and(|inside| inside.trim_start() == "]")
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
    #[serde(default, deserialize_with = "part_or_none")]
    pub error_location: Option<Location>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    #[serde(default, deserialize_with = "scalar")]
    pub line_number: u32,
    #[serde(default, deserialize_with = "scalar")]
    pub column_number: u32,
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
