//! Arrow's values as the contract's: which type a column gets, and its values, none of them changed.

mod json;

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, RecordBatch, StringArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    Field, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use souk_sdk::numbers::widened;
use souk_sdk::time::{DAYS, MOMENTS};
use souk_sdk::{Chunk, Column, ColumnBuilder, ColumnType, Error};

const MICROS_A_DAY: i64 = 86_400_000_000;
const MILLIS_A_DAY: i64 = 86_400_000;

/// The description of a column of an answer.
pub fn column(field: &Field) -> Column {
    Column {
        name: field.name().clone(),
        kind: match is_json(field) {
            true => ColumnType::Json,
            false => kind(field.data_type()),
        },
        nullable: true,
        native: native(field.data_type()),
    }
}

/// Arrow's own word for a text that is JSON.
pub const EXTENSION: &str = "ARROW:extension:name";
pub const JSON: &str = "arrow.json";

pub fn as_json(field: Field) -> Field {
    field.with_metadata([(EXTENSION.to_owned(), JSON.to_owned())].into())
}

fn is_json(field: &Field) -> bool {
    let is_text = matches!(
        field.data_type(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    );
    is_text
        && field
            .metadata()
            .get(EXTENSION)
            .is_some_and(|name| name == JSON)
}

/// Arrow's own name of a type, for people; that of a deep one is cut.
pub fn native(kind: &DataType) -> String {
    const CHARS_MAX: usize = 120;
    let text = kind.to_string();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn kind(of: &DataType) -> ColumnType {
    match of {
        DataType::Boolean => ColumnType::Boolean,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => ColumnType::Int64,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => ColumnType::Int64,
        DataType::UInt64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => ColumnType::Decimal,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => ColumnType::Float64,
        DataType::Date32 | DataType::Date64 => ColumnType::Date,
        DataType::Time32(_) | DataType::Time64(_) => ColumnType::Time,
        DataType::Timestamp(_, Some(_)) => ColumnType::Timestamp,
        DataType::Timestamp(_, None) => ColumnType::LocalTimestamp,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => ColumnType::Bytes,
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..)
        | DataType::Struct(_)
        | DataType::Map(..)
        | DataType::Union(..) => ColumnType::Json,
        DataType::Dictionary(_, value) => kind(value),
        DataType::RunEndEncoded(_, value) => kind(value.data_type()),
        // Texts of all sizes, intervals and durations as they are written, and what has no value but NULL.
        _ => ColumnType::Text,
    }
}

/// The columns of a batch as they cross to the host, and how many bytes of values they have; no more than `bytes_left`, or an error.
pub fn chunks(
    batch: &RecordBatch,
    columns: &[Column],
    bytes_left: u64,
) -> Result<(Vec<Chunk>, u64), Error> {
    let mut chunks = Vec::with_capacity(columns.len());
    let mut size = 0;
    for (array, column) in batch.columns().iter().zip(columns) {
        let array = plain(array)?;
        let mut filled = Filled::new(column.kind, array.len(), bytes_left - size);
        fill(&array, &mut filled)?;
        size += filled.bytes;
        chunks.push(filled.builder.finish());
    }
    Ok((chunks, size))
}

/// The values themselves, of what only refers to them.
fn plain(array: &ArrayRef) -> Result<ArrayRef, Error> {
    let of = match array.data_type() {
        DataType::Dictionary(_, value) => value.as_ref(),
        DataType::RunEndEncoded(_, value) => value.data_type(),
        DataType::ListView(value) => &DataType::List(value.clone()),
        DataType::LargeListView(value) => &DataType::LargeList(value.clone()),
        _ => return Ok(array.clone()),
    };
    let array = cast(array, of).map_err(|error| crate::errors::of_file(&error))?;
    plain(&array)
}

/// A column that is being filled, and its bound.
struct Filled {
    builder: ColumnBuilder,
    bytes: u64,
    bytes_max: u64,
}

impl Filled {
    fn new(kind: ColumnType, rows: usize, bytes_max: u64) -> Filled {
        Filled {
            builder: ColumnBuilder::with_capacity(kind, rows, 0),
            bytes: 0,
            bytes_max,
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Error> {
        self.bytes += bytes as u64;
        match self.bytes > self.bytes_max {
            true => Err(Error::limit_exceeded(
                "bytes_limit",
                "the result has more bytes than the request allows",
            )),
            false => Ok(()),
        }
    }

    fn null(&mut self) -> Result<(), Error> {
        self.builder.null();
        self.spend(1)
    }

    fn var(&mut self, value: &[u8]) -> Result<(), Error> {
        self.spend(value.len())?;
        // A file may say of any text that it is JSON.
        if self.builder.kind() == ColumnType::Json
            && serde_json::from_slice::<serde::de::IgnoredAny>(value).is_err()
        {
            return Err(Error::source_failed(
                "no_json",
                "the source holds a text that is not the JSON which its column says: CAST(… AS text)",
            ));
        }
        self.builder.var(value)
    }

    fn var_with(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let before = self.builder.bytes();
        self.builder.var_with(write)?;
        self.spend(self.builder.bytes() - before)
    }
}

fn fill(array: &ArrayRef, filled: &mut Filled) -> Result<(), Error> {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    match array.data_type() {
        DataType::Boolean => each(array, filled, |filled, row| {
            filled.builder.boolean(array.as_boolean().value(row))?;
            filled.spend(1)
        }),
        DataType::Int8 => i64s::<Int8Type>(array, filled, |value| Ok(value.into())),
        DataType::Int16 => i64s::<Int16Type>(array, filled, |value| Ok(value.into())),
        DataType::Int32 => i64s::<Int32Type>(array, filled, |value| Ok(value.into())),
        DataType::Int64 => i64s::<Int64Type>(array, filled, Ok),
        DataType::UInt8 => i64s::<UInt8Type>(array, filled, |value| Ok(value.into())),
        DataType::UInt16 => i64s::<UInt16Type>(array, filled, |value| Ok(value.into())),
        DataType::UInt32 => i64s::<UInt32Type>(array, filled, |value| Ok(value.into())),
        DataType::UInt64 => of_digits(array, filled, array.as_primitive::<UInt64Type>()),
        DataType::Decimal32(..) => of_digits(array, filled, array.as_primitive::<Decimal32Type>()),
        DataType::Decimal64(..) => of_digits(array, filled, array.as_primitive::<Decimal64Type>()),
        DataType::Decimal128(..) => {
            of_digits(array, filled, array.as_primitive::<Decimal128Type>())
        }
        DataType::Decimal256(..) => {
            of_digits(array, filled, array.as_primitive::<Decimal256Type>())
        }
        DataType::Float16 => f64s::<Float16Type>(array, filled, f64::from),
        DataType::Float32 => f64s::<Float32Type>(array, filled, widened),
        DataType::Float64 => f64s::<Float64Type>(array, filled, |value| value),
        DataType::Date32 => each(array, filled, |filled, row| {
            let days = array.as_primitive::<Date32Type>().value(row);
            filled.builder.i32(date(days.into())?)?;
            filled.spend(4)
        }),
        DataType::Date64 => each(array, filled, |filled, row| {
            let millis = array.as_primitive::<Date64Type>().value(row);
            filled.builder.i32(date(day(millis)?)?)?;
            filled.spend(4)
        }),
        DataType::Time32(Second) => {
            i64s::<Time32SecondType>(array, filled, |value| time(value.into(), 1_000_000))
        }
        DataType::Time32(_) => {
            i64s::<Time32MillisecondType>(array, filled, |value| time(value.into(), 1_000))
        }
        DataType::Time64(Nanosecond) => {
            i64s::<Time64NanosecondType>(array, filled, |value| time(of_nanos(value)?, 1))
        }
        DataType::Time64(_) => i64s::<Time64MicrosecondType>(array, filled, |value| time(value, 1)),
        DataType::Timestamp(Second, _) => {
            i64s::<TimestampSecondType>(array, filled, |value| moment(times(value, 1_000_000)?))
        }
        DataType::Timestamp(Millisecond, _) => {
            i64s::<TimestampMillisecondType>(array, filled, |value| moment(times(value, 1_000)?))
        }
        DataType::Timestamp(Microsecond, _) => {
            i64s::<TimestampMicrosecondType>(array, filled, moment)
        }
        DataType::Timestamp(Nanosecond, _) => {
            i64s::<TimestampNanosecondType>(array, filled, of_nanos)
        }
        DataType::Utf8 => each(array, filled, |filled, row| {
            filled.var(array.as_string::<i32>().value(row).as_bytes())
        }),
        DataType::LargeUtf8 => each(array, filled, |filled, row| {
            filled.var(array.as_string::<i64>().value(row).as_bytes())
        }),
        DataType::Utf8View => each(array, filled, |filled, row| {
            filled.var(array.as_string_view().value(row).as_bytes())
        }),
        DataType::Binary => each(array, filled, |filled, row| {
            filled.var(array.as_binary::<i32>().value(row))
        }),
        DataType::LargeBinary => each(array, filled, |filled, row| {
            filled.var(array.as_binary::<i64>().value(row))
        }),
        DataType::BinaryView => each(array, filled, |filled, row| {
            filled.var(array.as_binary_view().value(row))
        }),
        DataType::FixedSizeBinary(_) => each(array, filled, |filled, row| {
            filled.var(array.as_fixed_size_binary().value(row))
        }),
        _ if filled.builder.kind() == ColumnType::Json => {
            let writer = json::Writer::of(array)?;
            each(array, filled, |filled, row| {
                filled.var_with(|out| writer.write(row, out))
            })
        }
        _ => displayed(array, filled),
    }
}

/// Each row of an array: NULL, or what `push` makes of it.
fn each(
    array: &ArrayRef,
    filled: &mut Filled,
    mut push: impl FnMut(&mut Filled, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    // Of dictionaries and unions NULLs are not in the bitmap.
    let nulls = array.logical_nulls();
    for row in 0..array.len() {
        match nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            true => filled.null()?,
            false => push(filled, row)?,
        }
    }
    Ok(())
}

fn i64s<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    filled: &mut Filled,
    of: impl Fn(T::Native) -> Result<i64, Error>,
) -> Result<(), Error> {
    let values: &PrimitiveArray<T> = array.as_primitive();
    each(array, filled, |filled, row| {
        filled.builder.i64(of(values.value(row))?)?;
        filled.spend(8)
    })
}

fn f64s<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    filled: &mut Filled,
    of: impl Fn(T::Native) -> f64,
) -> Result<(), Error> {
    let values: &PrimitiveArray<T> = array.as_primitive();
    each(array, filled, |filled, row| {
        filled.builder.f64(of(values.value(row)))?;
        filled.spend(8)
    })
}

/// Exact digits.
fn of_digits<T: Digits>(array: &ArrayRef, filled: &mut Filled, values: &T) -> Result<(), Error> {
    each(array, filled, |filled, row| {
        filled.var(values.digits(row).as_bytes())
    })
}

trait Digits {
    fn digits(&self, row: usize) -> String;
}

impl Digits for PrimitiveArray<UInt64Type> {
    fn digits(&self, row: usize) -> String {
        self.value(row).to_string()
    }
}

macro_rules! decimals {
    ($($kind:ty),*) => {
        $(impl Digits for PrimitiveArray<$kind> {
            fn digits(&self, row: usize) -> String {
                scaled(&self.value(row).to_string(), self.scale())
            }
        })*
    };
}

decimals!(Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type);

/// Decimals as texts, whole; `None` where they are none.
pub fn texts(array: &ArrayRef) -> Option<StringArray> {
    match array.data_type() {
        DataType::Decimal32(..) => Some(texts_of(array.as_primitive::<Decimal32Type>())),
        DataType::Decimal64(..) => Some(texts_of(array.as_primitive::<Decimal64Type>())),
        DataType::Decimal128(..) => Some(texts_of(array.as_primitive::<Decimal128Type>())),
        DataType::Decimal256(..) => Some(texts_of(array.as_primitive::<Decimal256Type>())),
        _ => None,
    }
}

fn texts_of<T: Array + Digits>(values: &T) -> StringArray {
    let text = |row| values.is_valid(row).then(|| values.digits(row));
    (0..values.len()).map(text).collect()
}

/// A number of units of the last digit, whole. Arrow's own way cuts off what is more than the digits that the type says, which products and
/// sums may have, and files.
fn scaled(units: &str, scale: i8) -> String {
    let (sign, digits) = match units.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", units),
    };
    let places = usize::from(scale.unsigned_abs());
    match scale {
        ..=0 if digits == "0" => digits.to_owned(),
        ..=0 => format!("{units}{}", "0".repeat(places)),
        _ if digits.len() > places => {
            let (whole, fraction) = digits.split_at(digits.len() - places);
            format!("{sign}{whole}.{fraction}")
        }
        _ => format!("{sign}0.{digits:0>places$}"),
    }
}

/// Whether a zone's clocks are never put forward or back.
pub fn is_fixed(zone: &str) -> bool {
    zone.eq_ignore_ascii_case("UTC") || zone.starts_with(['+', '-'])
}

/// How many of a unit are a second.
pub fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

fn day(millis: i64) -> Result<i64, Error> {
    match millis % MILLIS_A_DAY {
        0 => Ok(millis / MILLIS_A_DAY),
        _ => Err(Error::source_failed(
            "date_with_time",
            "the source holds a date with a time of day: CAST(… AS timestamp)",
        )),
    }
}

/// Days that leave a connector.
fn date(days: i64) -> Result<i32, Error> {
    match i32::try_from(days) {
        Ok(date) if DAYS.contains(&days) => Ok(date),
        _ => Err(out_of_range()),
    }
}

/// Microseconds that leave a connector.
fn moment(micros: i64) -> Result<i64, Error> {
    match MOMENTS.contains(&micros) {
        true => Ok(micros),
        false => Err(out_of_range()),
    }
}

fn time(value: i64, micros: i64) -> Result<i64, Error> {
    let time = times(value, micros)?;
    match (0..MICROS_A_DAY).contains(&time) {
        true => Ok(time),
        false => Err(out_of_range()),
    }
}

fn times(value: i64, micros: i64) -> Result<i64, Error> {
    value.checked_mul(micros).ok_or_else(out_of_range)
}

fn of_nanos(nanos: i64) -> Result<i64, Error> {
    match nanos % 1_000 {
        0 => Ok(nanos / 1_000),
        _ => Err(crate::errors::finer_than_microseconds()),
    }
}

fn out_of_range() -> Error {
    Error::source_failed(
        "value_out_of_range",
        "the source holds a date or time that is outside of what there is",
    )
}

fn displayed(array: &ArrayRef, filled: &mut Filled) -> Result<(), Error> {
    use std::io::Write as _;
    // Else what cannot be written is a text that says so.
    let options = FormatOptions::default().with_display_error(false);
    let formatter =
        ArrayFormatter::try_new(array, &options).map_err(|error| crate::errors::of_file(&error))?;
    each(array, filled, |filled, row| {
        filled.var_with(|out| {
            write!(out, "{}", formatter.value(row)).map_err(|_| {
                Error::source_failed(
                    "value_unreadable",
                    "the source holds a value that cannot be written",
                )
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_written_whole() {
        for (units, scale, number) in [
            ("0", 0, "0"),
            ("-12", 0, "-12"),
            ("0", 2, "0.00"),
            ("5", 2, "0.05"),
            ("-5", 3, "-0.005"),
            ("150", 2, "1.50"),
            ("-12345", 4, "-1.2345"),
            ("12", -2, "1200"),
            ("-12", -2, "-1200"),
            ("0", -2, "0"),
        ] {
            assert_eq!(scaled(units, scale), number, "{units}, {scale}");
        }
    }
}
