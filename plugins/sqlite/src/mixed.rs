//! Columns that hold values of several types: numbers stay numbers, everything else becomes JSON documents.

use crate::declared::Declared;
use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use rusqlite::types::ValueRef;
use souk_sdk::{Chunk, ColumnBuilder, ColumnData, ColumnType, Error, VarLen};

/// A value of a column that holds several types.
pub enum Scalar {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

impl From<ValueRef<'_>> for Scalar {
    fn from(value: ValueRef<'_>) -> Scalar {
        match value {
            ValueRef::Null => Scalar::Null,
            ValueRef::Integer(integer) => Scalar::Integer(integer),
            ValueRef::Real(real) => Scalar::Real(real),
            ValueRef::Text(bytes) => Scalar::text(bytes),
            ValueRef::Blob(bytes) => Scalar::Blob(bytes.to_vec()),
        }
    }
}

impl Scalar {
    /// A text that is not UTF-8 counts as a blob.
    fn text(bytes: &[u8]) -> Scalar {
        match std::str::from_utf8(bytes) {
            Ok(text) => Scalar::Text(text.to_owned()),
            Err(_) => Scalar::Blob(bytes.to_vec()),
        }
    }

    fn may_be_bytes(&self) -> bool {
        matches!(self, Scalar::Null | Scalar::Blob(_))
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Storage {
    Integers,
    Reals,
    Text,
    Blobs,
}

/// The values of a uniform chunk, one by one.
pub fn scalars(chunk: &Chunk, storage: Storage) -> Vec<Scalar> {
    let valid = |row: usize| {
        chunk
            .validity
            .as_ref()
            .is_none_or(|bits| bits[row >> 3] >> (row & 7) & 1 == 1)
    };
    let or_null = |row, value: Scalar| if valid(row) { value } else { Scalar::Null };
    match &chunk.data {
        ColumnData::I64s(values) => values
            .iter()
            .enumerate()
            .map(|(row, &v)| or_null(row, Scalar::Integer(v)))
            .collect(),
        ColumnData::F64s(values) => values
            .iter()
            .enumerate()
            .map(|(row, &v)| or_null(row, Scalar::Real(v)))
            .collect(),
        ColumnData::VarLen(var) => pieces(var)
            .enumerate()
            .map(|(row, bytes)| match storage {
                Storage::Text => or_null(row, Scalar::text(bytes)),
                _ => or_null(row, Scalar::Blob(bytes.to_vec())),
            })
            .collect(),
        ColumnData::Bits(_) | ColumnData::I32s(_) => Vec::new(),
    }
}

pub fn pieces(var: &VarLen) -> impl Iterator<Item = &[u8]> {
    var.offsets
        .windows(2)
        .map(|ends| &var.bytes[ends[0] as usize..ends[1] as usize])
}

pub fn mixed(declared: Declared, values: &[Scalar]) -> Result<(ColumnType, Chunk), Error> {
    /// Every integer up to here is a float64, and its neighbours are too.
    const EXACT_MAX: u64 = 1 << 53;
    let mut numbers = true;
    let mut exact = true;
    for value in values {
        match value {
            Scalar::Integer(integer) => exact &= integer.unsigned_abs() <= EXACT_MAX,
            Scalar::Text(_) | Scalar::Blob(_) => numbers = false,
            Scalar::Null | Scalar::Real(_) => {}
        }
    }
    match (numbers, declared) {
        (true, Declared::Decimal) => decimals(values),
        (true, _) if exact => floats(values),
        (true, _) => decimals(values),
        (false, _) if values.iter().all(Scalar::may_be_bytes) => blobs(values),
        (false, _) => documents(values),
    }
}

fn blobs(values: &[Scalar]) -> Result<(ColumnType, Chunk), Error> {
    let mut column = ColumnBuilder::with_capacity(ColumnType::Bytes, values.len(), 0);
    for value in values {
        match value {
            Scalar::Blob(bytes) => column.var(bytes)?,
            _ => column.null(),
        }
    }
    Ok((ColumnType::Bytes, column.finish()))
}

fn floats(values: &[Scalar]) -> Result<(ColumnType, Chunk), Error> {
    let mut column = ColumnBuilder::with_capacity(ColumnType::Float64, values.len(), 0);
    for value in values {
        match value {
            Scalar::Integer(integer) => column.f64(*integer as f64)?,
            Scalar::Real(real) => column.f64(*real)?,
            _ => column.null(),
        }
    }
    Ok((ColumnType::Float64, column.finish()))
}

pub fn decimals(values: &[Scalar]) -> Result<(ColumnType, Chunk), Error> {
    let mut column =
        ColumnBuilder::with_capacity(ColumnType::Decimal, values.len(), values.len() * 8);
    for value in values {
        match value {
            Scalar::Integer(integer) => column.var(integer.to_string().as_bytes())?,
            Scalar::Real(real) => column.var(decimal(*real).as_bytes())?,
            _ => column.null(),
        }
    }
    Ok((ColumnType::Decimal, column.finish()))
}

/// The shortest text that reads back as the same float64, without an exponent.
fn decimal(real: f64) -> String {
    match real {
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        _ => format!("{real}"),
    }
}

fn documents(values: &[Scalar]) -> Result<(ColumnType, Chunk), Error> {
    let mut column = ColumnBuilder::with_capacity(ColumnType::Json, values.len(), values.len() * 8);
    for value in values {
        match value {
            Scalar::Null => column.null(),
            Scalar::Integer(integer) => column.var(integer.to_string().as_bytes())?,
            Scalar::Real(real) if real.is_finite() => {
                column.var(serde_json::Value::from(*real).to_string().as_bytes())?
            }
            Scalar::Real(real) => column.var(format!("\"{}\"", decimal(*real)).as_bytes())?,
            Scalar::Text(text) => column.var(
                serde_json::Value::from(text.as_str())
                    .to_string()
                    .as_bytes(),
            )?,
            Scalar::Blob(bytes) => column.var(
                format!(
                    "{{\"base64\":\"{}\"}}",
                    Base64Display::new(bytes, &STANDARD)
                )
                .as_bytes(),
            )?,
        }
    }
    Ok((ColumnType::Json, column.finish()))
}
