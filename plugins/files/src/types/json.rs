//! Lists, structures and maps as JSON: numbers with all their digits, NULLs included.

use super::Digits;
use crate::errors;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use souk_sdk::Error;
use souk_sdk::json::write_f64;
use souk_sdk::numbers::widened;
use std::collections::HashSet;
use std::fmt::Display;
use std::io::Write as _;
use std::ops::Range;

type Write = Box<dyn Fn(usize, &mut Vec<u8>) -> Result<(), Error>>;

/// Writes the values of one array.
pub struct Writer {
    nulls: Option<NullBuffer>,
    write: Write,
}

impl Writer {
    pub fn of(array: &ArrayRef) -> Result<Writer, Error> {
        let array = super::plain(array)?;
        Ok(Writer {
            nulls: array.logical_nulls(),
            write: writer(&array)?,
        })
    }

    pub fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        match self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            true => out.extend_from_slice(b"null"),
            false => (self.write)(row, out)?,
        }
        Ok(())
    }

    fn list(&self, rows: Range<usize>, out: &mut Vec<u8>) -> Result<(), Error> {
        out.push(b'[');
        for (at, row) in rows.enumerate() {
            if at > 0 {
                out.push(b',');
            }
            self.write(row, out)?;
        }
        out.push(b']');
        Ok(())
    }
}

fn writer(array: &ArrayRef) -> Result<Write, Error> {
    let array = array.clone();
    Ok(match array.data_type() {
        DataType::Boolean => Box::new(move |row, out| shown(array.as_boolean().value(row), out)),
        DataType::Int8 => numbers::<Int8Type>(array),
        DataType::Int16 => numbers::<Int16Type>(array),
        DataType::Int32 => numbers::<Int32Type>(array),
        DataType::Int64 => numbers::<Int64Type>(array),
        DataType::UInt8 => numbers::<UInt8Type>(array),
        DataType::UInt16 => numbers::<UInt16Type>(array),
        DataType::UInt32 => numbers::<UInt32Type>(array),
        DataType::UInt64 => numbers::<UInt64Type>(array),
        DataType::Float16 => Box::new(move |row, out| {
            float(array.as_primitive::<Float16Type>().value(row).into(), out)
        }),
        DataType::Float32 => Box::new(move |row, out| {
            float(widened(array.as_primitive::<Float32Type>().value(row)), out)
        }),
        DataType::Float64 => {
            Box::new(move |row, out| float(array.as_primitive::<Float64Type>().value(row), out))
        }
        DataType::Decimal32(..) => {
            Box::new(move |row, out| shown(array.as_primitive::<Decimal32Type>().digits(row), out))
        }
        DataType::Decimal64(..) => {
            Box::new(move |row, out| shown(array.as_primitive::<Decimal64Type>().digits(row), out))
        }
        DataType::Decimal128(..) => {
            Box::new(move |row, out| shown(array.as_primitive::<Decimal128Type>().digits(row), out))
        }
        DataType::Decimal256(..) => {
            Box::new(move |row, out| shown(array.as_primitive::<Decimal256Type>().digits(row), out))
        }
        DataType::Utf8 => Box::new(move |row, out| text(array.as_string::<i32>().value(row), out)),
        DataType::LargeUtf8 => {
            Box::new(move |row, out| text(array.as_string::<i64>().value(row), out))
        }
        DataType::Utf8View => {
            Box::new(move |row, out| text(array.as_string_view().value(row), out))
        }
        DataType::Binary => {
            Box::new(move |row, out| bytes(array.as_binary::<i32>().value(row), out))
        }
        DataType::LargeBinary => {
            Box::new(move |row, out| bytes(array.as_binary::<i64>().value(row), out))
        }
        DataType::BinaryView => {
            Box::new(move |row, out| bytes(array.as_binary_view().value(row), out))
        }
        DataType::FixedSizeBinary(_) => {
            Box::new(move |row, out| bytes(array.as_fixed_size_binary().value(row), out))
        }
        DataType::List(_) => {
            let values = Writer::of(array.as_list::<i32>().values())?;
            Box::new(move |row, out| {
                let ends = array.as_list::<i32>().value_offsets();
                values.list(ends[row] as usize..ends[row + 1] as usize, out)
            })
        }
        DataType::LargeList(_) => {
            let values = Writer::of(array.as_list::<i64>().values())?;
            Box::new(move |row, out| {
                let ends = array.as_list::<i64>().value_offsets();
                values.list(ends[row] as usize..ends[row + 1] as usize, out)
            })
        }
        DataType::FixedSizeList(..) => {
            let values = Writer::of(array.as_fixed_size_list().values())?;
            Box::new(move |row, out| {
                let list = array.as_fixed_size_list();
                let start = list.value_offset(row) as usize;
                values.list(start..start + list.value_length() as usize, out)
            })
        }
        DataType::Struct(_) => structure(&array)?,
        DataType::Map(..) => map(&array)?,
        _ => displayed(array),
    })
}

fn numbers<T: ArrowPrimitiveType>(array: ArrayRef) -> Write
where
    T::Native: Display,
{
    Box::new(move |row, out| shown(array.as_primitive::<T>().value(row), out))
}

/// An object; where two fields have one name, a list of the values.
fn structure(array: &ArrayRef) -> Result<Write, Error> {
    let array = array.as_struct();
    let names: Vec<String> = array
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    let writers = array
        .columns()
        .iter()
        .map(Writer::of)
        .collect::<Result<Vec<_>, Error>>()?;
    let distinct: HashSet<&String> = names.iter().collect();
    let is_object = distinct.len() == names.len();
    let (open, close) = if is_object {
        (b'{', b'}')
    } else {
        (b'[', b']')
    };
    Ok(Box::new(move |row, out| {
        out.push(open);
        for (at, (name, writer)) in names.iter().zip(&writers).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            if is_object {
                text(name, out)?;
                out.push(b':');
            }
            writer.write(row, out)?;
        }
        out.push(close);
        Ok(())
    }))
}

/// An object; a key that is no text is written as one. Two keys that are written the same cannot be told apart there.
fn map(array: &ArrayRef) -> Result<Write, Error> {
    let map = array.as_map().clone();
    let keys = Writer::of(map.keys())?;
    let values = Writer::of(map.values())?;
    Ok(Box::new(move |row, out| {
        let ends = map.value_offsets();
        let mut seen = HashSet::new();
        out.push(b'{');
        for (at, entry) in (ends[row] as usize..ends[row + 1] as usize).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            let mut key = Vec::new();
            keys.write(entry, &mut key)?;
            if key.first() != Some(&b'"') {
                let bare = String::from_utf8_lossy(&key).into_owned();
                key.clear();
                text(&bare, &mut key)?;
            }
            out.extend_from_slice(&key);
            if !seen.insert(key) {
                return Err(Error::source_failed(
                    "map_key_twice",
                    "the source holds a map of which two keys are written the same: map_entries(…)",
                ));
            }
            out.push(b':');
            values.write(entry, out)?;
        }
        out.push(b'}');
        Ok(())
    }))
}

/// Dates, times and what else there is, as Arrow writes them.
fn displayed(array: ArrayRef) -> Write {
    Box::new(move |row, out| {
        let options = FormatOptions::default();
        let formatter =
            ArrayFormatter::try_new(&array, &options).map_err(|error| errors::of_file(&error))?;
        let written = formatter.value(row).try_to_string();
        text(&written.map_err(|_| unwritable())?, out)
    })
}

fn shown(value: impl Display, out: &mut Vec<u8>) -> Result<(), Error> {
    write!(out, "{value}").map_err(|_| unwritable())
}

fn float(value: f64, out: &mut Vec<u8>) -> Result<(), Error> {
    write_f64(value, out);
    Ok(())
}

fn text(value: &str, out: &mut Vec<u8>) -> Result<(), Error> {
    serde_json::to_writer(out, value).map_err(|_| unwritable())
}

fn bytes(value: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    text(&STANDARD.encode(value), out)
}

fn unwritable() -> Error {
    Error::source_failed(
        "value_unreadable",
        "the source holds a value that cannot be written",
    )
}
