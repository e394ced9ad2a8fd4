//! A cell of a result as a value of a column. BigQuery writes each scalar as a text (`{"v": "1.50"}`), an array as a list of cells, a struct
//! as a row within the row.

use std::borrow::Cow;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use souk_sdk::json::{self, Kind, Place, Written, write_f64, write_text};
use souk_sdk::time::{DAY_US, Date, MOMENTS, TimeOfDay, iso8601, parse_iso8601, rfc3339};
use souk_sdk::{ColumnBuilder, Error};

use crate::answers::{Cell, Row, malformed};
use crate::types::{Scalar, Type};

/// A range's beginning or end that it has not.
const UNBOUNDED: &str = "UNBOUNDED";

impl Kind for Type {
    fn is_raw(&self) -> bool {
        matches!(self, Type::Array(_) | Type::Struct(_))
    }

    fn push(&self, cell: Written<'_>, into: &mut Place<'_>) -> Result<(), Error> {
        let (room, into) = (into.room, &mut *into.column);
        let digits;
        let (scalar, text) = match (self, cell) {
            // An array is not NULL: what says so has an empty one.
            (Type::Array(_), Written::Null) => return into.var(b"[]"),
            (_, Written::Null) => {
                into.null();
                return Ok(());
            }
            // Numbers and truth may stand there as such, and keep their digits.
            (Type::Scalar(scalar), Written::Text(text) | Written::Number(text)) => (*scalar, text),
            (Type::Scalar(scalar), Written::Whole(value)) => {
                digits = value.to_string();
                (*scalar, digits.as_str())
            }
            (Type::Scalar(scalar), Written::Truth(value)) => {
                digits = value.to_string();
                (*scalar, digits.as_str())
            }
            (kind, Written::Raw(cell)) => {
                return into.var_with(|out| document_of(kind, cell, out, room));
            }
            _ => return Err(malformed()),
        };
        push(scalar, text, into)
    }

    fn malformed() -> Error {
        malformed()
    }
}

/// Appends a scalar.
fn push(scalar: Scalar, text: &str, into: &mut ColumnBuilder) -> Result<(), Error> {
    match scalar {
        Scalar::Bool => into.boolean(boolean(text)?),
        Scalar::Int64 => into.i64(int64(text)?),
        Scalar::Float64 => into.f64(float64(text)?),
        Scalar::Numeric => into.var(numeric(text)?.as_bytes()),
        Scalar::String => into.var(text.as_bytes()),
        Scalar::Bytes => into.var(&STANDARD.decode(text).map_err(|_| malformed())?),
        Scalar::Date => into.i32(days(text)?),
        Scalar::Time => into.i64(time(text)?),
        Scalar::DateTime => into.i64(clock(text)?),
        Scalar::Timestamp => into.i64(moment(text)?),
        Scalar::Timestamps => into.var(moments(text)?.as_bytes()),
        Scalar::Json => into.var(document(text)?.as_bytes()),
    }
}

/// The text of a scalar; nothing where there is none.
pub fn plain(cell: &RawValue) -> Result<String, Error> {
    match cell.get() {
        "null" => Ok(String::new()),
        _ => text(cell).map(Cow::into_owned),
    }
}

/// The text of a scalar. Numbers and truth may stand there as such.
fn text(cell: &RawValue) -> Result<Cow<'_, str>, Error> {
    match (json::text(cell), cell.get()) {
        (Some(text), _) => Ok(text),
        (None, raw) if raw.starts_with(['"', '{', '[']) => Err(malformed()),
        (None, raw) => Ok(Cow::Borrowed(raw)),
    }
}

fn boolean(text: &str) -> Result<bool, Error> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(malformed()),
    }
}

fn int64(text: &str) -> Result<i64, Error> {
    json::whole(text).ok_or_else(malformed)
}

/// `NaN`, `Infinity` and `-Infinity` are numbers, too.
fn float64(text: &str) -> Result<f64, Error> {
    json::float(text).map_err(|_| malformed())
}

/// Digits, as they were sent.
fn numeric(text: &str) -> Result<&str, Error> {
    match json::is_decimal(text) {
        true => Ok(text),
        false => Err(malformed()),
    }
}

fn days(text: &str) -> Result<i32, Error> {
    let days = Date::parse(text).ok_or_else(malformed)?.days();
    i32::try_from(days).map_err(|_| malformed())
}

/// Microseconds since midnight.
fn time(text: &str) -> Result<i64, Error> {
    match clock(&format!("1970-01-01T{text}"))? {
        micros @ 0..DAY_US => Ok(micros),
        _ => Err(malformed()),
    }
}

fn clock(text: &str) -> Result<i64, Error> {
    parse_iso8601(text).ok_or_else(malformed)
}

/// Microseconds since 1970, of years that a column has.
fn moment(text: &str) -> Result<i64, Error> {
    let micros = json::whole(text).filter(|micros| MOMENTS.contains(micros));
    micros.ok_or_else(malformed)
}

/// `[1577836800000000, UNBOUNDED)`: in microseconds as well, since that is asked for, and written as moments are elsewhere. (Those of a
/// `RANGE<DATETIME>` come as clocks.)
fn moments(text: &str) -> Result<String, Error> {
    let bound = |text: &str| match text {
        UNBOUNDED => Ok(text.to_owned()),
        _ => moment(text).map(rfc3339),
    };
    let bounds = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(')'));
    let (from, until) = bounds
        .and_then(|bounds| bounds.split_once(", "))
        .ok_or_else(malformed)?;
    Ok(format!("[{}, {})", bound(from)?, bound(until)?))
}

fn document(text: &str) -> Result<&str, Error> {
    match json::is_document(text) {
        true => Ok(text),
        false => Err(malformed()),
    }
}

/// A value as a part of a JSON document.
fn document_of(kind: &Type, cell: &RawValue, out: &mut Vec<u8>, room: usize) -> Result<(), Error> {
    // Names are longer than the brackets that stand for them.
    if out.len() > room {
        return Err(Error::limit_exceeded(
            "bytes_limit",
            "a nested value of the result is larger than is allowed",
        ));
    }
    match kind {
        _ if cell.get() == "null" => out.extend_from_slice(b"null"),
        Type::Array(inner) => {
            let elements: Vec<Cell<'_>> =
                serde_json::from_str(cell.get()).map_err(|_| malformed())?;
            out.push(b'[');
            for (place, element) in elements.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                document_of(inner, element.value, out, room)?;
            }
            out.push(b']');
        }
        Type::Struct(fields) => {
            let row: Row<'_> = serde_json::from_str(cell.get()).map_err(|_| malformed())?;
            if row.cells.len() != fields.len() {
                return Err(malformed());
            }
            out.push(b'{');
            for (place, ((name, kind), cell)) in fields.iter().zip(&row.cells).enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write_text(name, out);
                out.push(b':');
                document_of(kind, cell.value, out, room)?;
            }
            out.push(b'}');
        }
        Type::Scalar(scalar) => part(*scalar, &text(cell)?, out)?,
    }
    Ok(())
}

/// A scalar within a document, written as a column of it is when it leaves as JSON.
fn part(scalar: Scalar, text: &str, out: &mut Vec<u8>) -> Result<(), Error> {
    match scalar {
        Scalar::Bool => written(out, format_args!("{}", boolean(text)?)),
        Scalar::Int64 => written(out, format_args!("{}", int64(text)?)),
        Scalar::Numeric => out.extend_from_slice(numeric(text)?.as_bytes()),
        Scalar::Float64 => write_f64(float64(text)?, out),
        Scalar::Json => out.extend_from_slice(document(text)?.as_bytes()),
        Scalar::Time => write_text(&TimeOfDay(time(text)?).to_string(), out),
        Scalar::DateTime => write_text(&iso8601(clock(text)?), out),
        Scalar::Timestamp => write_text(&rfc3339(moment(text)?), out),
        Scalar::Timestamps => write_text(&moments(text)?, out),
        Scalar::String | Scalar::Bytes | Scalar::Date => write_text(text, out),
    }
    Ok(())
}

fn written(out: &mut Vec<u8>, what: std::fmt::Arguments<'_>) {
    // A Vec takes everything.
    let _ = out.write_fmt(what);
}
