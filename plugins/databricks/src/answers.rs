//! What the API answers, as far as it is read.

use std::borrow::Cow;
use std::cell::Cell;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::value::RawValue;
use souk_sdk::json::{self, Reader, Unread, once, once_scalar, part_or_none, what_is_wrong};
use souk_sdk::{Error, HttpFailure, HttpResponse};

/// Columns that a result has at most.
pub const COLUMNS_MAX: usize = 10_000;
/// An id is a UUID.
const ID_BYTES_MAX: usize = 128;
/// What is read of a text that says how something failed, and of a word of one or a number: a text may be as long as the answer.
const MESSAGE_BYTES_MAX: usize = 8 << 10;
const WORD_BYTES_MAX: usize = 64;
/// What an escaped character beyond the basic plane takes, of two parts.
const ESCAPE_BYTES_MAX: usize = 12;

/// Of a statement: how it is with it, and its first rows.
pub struct Statement<'a> {
    pub statement_id: Cow<'a, str>,
    pub status: Status,
    pub manifest: Option<Manifest<'a>>,
    pub result: Option<Chunk<'a>>,
    /// Rows were told.
    pub is_told: bool,
}

#[derive(Deserialize)]
pub struct Status {
    state: String,
    #[serde(default, deserialize_with = "part_or_none")]
    pub error: Option<Told>,
    #[serde(default, deserialize_with = "word")]
    pub sql_state: String,
}

/// An error, of a statement or of the API.
#[derive(Default, Deserialize)]
pub struct Told {
    /// A word, or the status as a number.
    #[serde(default, deserialize_with = "word")]
    pub error_code: String,
    /// Its beginning.
    #[serde(default, deserialize_with = "beginning")]
    pub message: String,
}

/// What a result is made of.
#[derive(Default)]
pub struct Manifest<'a> {
    /// What describes its columns, as it stands.
    pub columns: Option<&'a str>,
    truncated: Option<bool>,
    total_row_count: Option<u64>,
}

/// Rows, and where there are more.
#[derive(Default)]
pub struct Chunk<'a> {
    index: Option<u32>,
    next: Option<u32>,
    /// Where they were not told while the answer was read.
    data_array: Option<&'a RawValue>,
    /// Where rows lie elsewhere, which nobody asked for.
    external_links: Option<&'a RawValue>,
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
    /// Whether the statement has not begun: its warehouse has to start, or has others before it.
    pub fn is_pending(&self) -> bool {
        self.state == "PENDING"
    }

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
        let id = &*self.statement_id;
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

impl<'a> Manifest<'a> {
    /// Reads one; `described` takes what describes the columns.
    pub fn read(
        from: &mut Reader<'a>,
        mut described: impl FnMut(&mut Option<&'a str>, &mut Reader<'a>) -> serde_json::Result<()>,
    ) -> serde_json::Result<Manifest<'a>> {
        let (mut manifest, mut has_schema) = (Manifest::default(), false);
        from.object(|name, value| match name {
            "schema" if std::mem::replace(&mut has_schema, true) => {
                Err(serde_json::Error::duplicate_field("schema"))
            }
            "schema" => value.object(|name, value| match name {
                "columns" => described(&mut manifest.columns, value),
                _ => value.skip(),
            }),
            "truncated" => once_scalar(&mut manifest.truncated, value),
            "total_row_count" => once_scalar(&mut manifest.total_row_count, value),
            _ => value.skip(),
        })?;
        match has_schema {
            true => Ok(manifest),
            false => Err(serde_json::Error::missing_field("schema")),
        }
    }

    /// Whether rows were left out.
    pub fn is_truncated(&self) -> bool {
        self.truncated.unwrap_or_default()
    }

    /// The rows of all chunks.
    pub fn total_row_count(&self) -> Option<u64> {
        self.total_row_count
    }
}

impl<'a> Chunk<'a> {
    /// Takes a member of it, but for its rows.
    pub fn member(&mut self, name: &str, from: &mut Reader<'a>) -> serde_json::Result<()> {
        match name {
            "chunk_index" => once_scalar(&mut self.index, from),
            "next_chunk_index" => once_scalar(&mut self.next, from),
            "external_links" => once(&mut self.external_links, from),
            _ => from.skip(),
        }
    }

    /// Whether its rows lie elsewhere.
    pub fn lies_elsewhere(&self) -> bool {
        self.external_links.is_some()
    }

    /// Takes its rows as they stand, where they were not told while the answer was read.
    pub fn keep(&mut self, rows: Option<&'a RawValue>) {
        self.data_array = rows;
    }

    /// So many of its rows were told.
    pub fn told(&mut self, rows: u64) {
        self.taken.set(rows);
    }

    /// Its number, from 0 on.
    pub fn index(&self) -> u32 {
        self.index.unwrap_or_default()
    }

    /// The number of the next one.
    pub fn next(&self) -> Option<u32> {
        self.next
    }

    /// How many rows were handed on.
    pub fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// Hands on the cells of one row after the other, until one is refused.
    pub fn rows(
        &self,
        mut each: impl FnMut(&[&'a RawValue]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(rows) = self.list()? else {
            return Ok(());
        };
        let each = |row: &[&'a RawValue]| {
            self.taken.set(self.taken.get() + 1);
            each(row)
        };
        json::rows(rows, COLUMNS_MAX, each).map_err(|unread| match unread {
            Unread::Refused(error) => error,
            Unread::Malformed(error) => unreadable(&error),
        })
    }

    /// The rows that were kept.
    pub fn list(&self) -> Result<Option<&'a RawValue>, Error> {
        if self.lies_elsewhere() {
            return Err(malformed().detail("rows that lie elsewhere"));
        }
        let Some(rows) = self.data_array.filter(|rows| rows.get() != "null") else {
            return Ok(None);
        };
        match rows.get().starts_with('[') {
            true => Ok(Some(rows)),
            false => Err(malformed()),
        }
    }
}

/// A short text, or a number as one; anything else says nothing.
fn word<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let raw = <&RawValue>::deserialize(from)?;
    let is_number = || raw.get().starts_with(|char: char| char.is_ascii_digit());
    Ok(match json::text(raw) {
        _ if raw.get().len() > WORD_BYTES_MAX => String::new(),
        Some(text) => text.into_owned(),
        None if is_number() => raw.get().to_owned(),
        None => String::new(),
    })
}

/// The beginning of a text; anything else says nothing.
fn beginning<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let raw = <&RawValue>::deserialize(from)?.get();
    if !raw.starts_with('"') {
        return Ok(String::new());
    }
    if raw.len() <= MESSAGE_BYTES_MAX {
        return serde_json::from_str(raw).map_err(D::Error::custom);
    }
    // Not in the middle of a character, however it is written.
    let ends = (MESSAGE_BYTES_MAX - ESCAPE_BYTES_MAX..=MESSAGE_BYTES_MAX).rev();
    let mut parts = ends.filter_map(|end| raw.get(..end));
    let read = parts.find_map(|part| serde_json::from_str(&format!("{part}\"")).ok());
    Ok(read.unwrap_or_default())
}

/// What stands in an answer.
pub fn read<'a, T: Deserialize<'a>>(response: &'a HttpResponse) -> Result<T, Error> {
    let read = json::utf8(&response.body).and_then(json::read_part);
    read.map_err(|error| unreadable(&error))
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

/// What is wrong with an answer's JSON, without its content.
pub fn unreadable(error: &serde_json::Error) -> Error {
    malformed().detail(what_is_wrong(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands where it does not belong is the seller's data, and not told.
    #[test]
    fn what_cannot_be_read_is_told_without_its_content() {
        let response = |body: &str| HttpResponse {
            id: 1,
            status: 200,
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
        };
        let rows = |list: &str| {
            let list: &RawValue = serde_json::from_str(list).unwrap();
            let mut chunk = Chunk::default();
            chunk.keep(Some(list));
            chunk.rows(|_| Ok(())).err()
        };
        for error in [
            read::<Status>(&response(r#"{"state": 7007}"#)).err(),
            read::<Status>(&response(r#"{"state": "FAILED", "error": [7007]}"#)).err(),
            rows("[7007]"),
            rows(r#"["hush"]"#),
        ] {
            let error = error.unwrap();
            assert_eq!(error.code, "malformed_answer");
            let told = error.detail.unwrap();
            assert!(!told.contains("hush") && !told.contains("7007"), "{told}");
        }
    }

    /// Of a text that is as long as an answer may be, little is kept, and no character is cut.
    #[test]
    fn texts_are_read_as_far_as_they_matter() {
        let told = |told: &str| serde_json::from_str::<Told>(told).unwrap();
        for (code, wanted) in [
            ("\"BAD_REQUEST\"", "BAD_REQUEST"),
            ("401", "401"),
            ("null", ""),
            ("[0,0]", ""),
            ("{}", ""),
        ] {
            let read = told(&format!("{{\"error_code\":{code},\"message\":7}}"));
            assert_eq!(
                (read.error_code.as_str(), read.message.as_str()),
                (wanted, "")
            );
        }
        for long in ["9".repeat(100), format!("\"{}\"", "x".repeat(100))] {
            assert_eq!(told(&format!("{{\"error_code\":{long}}}")).error_code, "");
        }
        assert_eq!(told(r#"{"message":"a\n\"ä"}"#).message, "a\n\"ä");
        for (written, char) in [
            ("x", 'x'),
            ("ä", 'ä'),
            ("\\n", '\n'),
            ("\\u00e4", 'ä'),
            ("\\ud83d\\ude00", '😀'),
        ] {
            for before in 0..13 {
                let text = format!("{}{}", "a".repeat(before), written.repeat(10_000));
                let message = told(&format!("{{\"message\":\"{text}\"}}")).message;
                let rest = message.trim_start_matches('a');
                assert!(rest.chars().all(|read| read == char), "{written} {before}");
                let raw = before + rest.chars().count() * written.len();
                assert!(raw <= MESSAGE_BYTES_MAX && raw > MESSAGE_BYTES_MAX - 2 * ESCAPE_BYTES_MAX);
            }
        }
    }
}
