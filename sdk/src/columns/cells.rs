//! Values on their way into columns.

use crate::{ColumnType, Error};
use serde_json::value::RawValue;

/// One value on its way into a column. Units as in the contract: days, microseconds, exact decimal text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    Null,
    Boolean(bool),
    Int64(i64),
    Float64(f64),
    Decimal(&'a str),
    Text(&'a str),
    Bytes(&'a [u8]),
    Date(i32),
    Time(i64),
    /// A moment.
    Timestamp(i64),
    /// What a clock showed, nobody knows where.
    LocalTimestamp(i64),
    Json(&'a str),
}

impl Cell<'_> {
    pub(super) fn kind(&self) -> Option<ColumnType> {
        Some(match self {
            Cell::Null => return None,
            Cell::Boolean(_) => ColumnType::Boolean,
            Cell::Int64(_) => ColumnType::Int64,
            Cell::Float64(_) => ColumnType::Float64,
            Cell::Decimal(_) => ColumnType::Decimal,
            Cell::Text(_) => ColumnType::Text,
            Cell::Bytes(_) => ColumnType::Bytes,
            Cell::Date(_) => ColumnType::Date,
            Cell::Time(_) => ColumnType::Time,
            Cell::Timestamp(_) => ColumnType::Timestamp,
            Cell::LocalTimestamp(_) => ColumnType::LocalTimestamp,
            Cell::Json(_) => ColumnType::Json,
        })
    }
}

macro_rules! cells {
    ($($cell:ident of $value:ty;)*) => {
        $(impl<'a> From<$value> for Cell<'a> {
            fn from(value: $value) -> Cell<'a> {
                Cell::$cell(value)
            }
        })*
    };
}

cells! {
    Boolean of bool;
    Int64 of i64;
    Float64 of f64;
    Text of &'a str;
}

impl<'a> From<i32> for Cell<'a> {
    fn from(value: i32) -> Cell<'a> {
        Cell::Int64(value.into())
    }
}

impl<'a> From<u32> for Cell<'a> {
    fn from(value: u32) -> Cell<'a> {
        Cell::Int64(value.into())
    }
}

impl<'a> From<&'a String> for Cell<'a> {
    fn from(value: &'a String) -> Cell<'a> {
        Cell::Text(value)
    }
}

impl<'a> Cell<'a> {
    /// A number of a JSON document, digit for digit: `1.50` stays `1.50`, and no float is in between. A text that holds a number is one
    /// (money is often written so); `null` is NULL; anything else is the source's failure.
    ///
    /// To get at it, read the member as `&RawValue`: `#[serde(borrow)] price: &'a RawValue`.
    pub fn number(value: &'a RawValue) -> Result<Cell<'a>, Error> {
        let text = value.get();
        let digits = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'))
            .unwrap_or(text);
        if text == "null" {
            return Ok(Cell::Null);
        }
        match is_number(digits) {
            true => Ok(Cell::Decimal(digits)),
            false => Err(Error::source_failed(
                "no_number",
                "the source sent something else where a number was expected",
            )
            .detail(kind_and_length(text))),
        }
    }

    /// A part of a JSON document as it is; `null` is NULL.
    pub fn json(value: &'a RawValue) -> Cell<'a> {
        match value.get() {
            "null" => Cell::Null,
            text => Cell::Json(text),
        }
    }
}

/// What a value is, and no part of it, which may be anybody's data.
fn kind_and_length(value: &str) -> String {
    let kind = match value.bytes().next() {
        Some(b'"') => "a text",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        _ => "a value",
    };
    format!("{kind} of {} bytes", value.len())
}

/// Whether a text is a number as JSON writes them: what a decimal column takes.
fn is_number(text: &str) -> bool {
    let is_like_one = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    is_like_one && serde_json::from_str::<&RawValue>(text).is_ok_and(|value| value.get() == text)
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Cell<'a> {
        value.map_or(Cell::Null, Into::into)
    }
}
