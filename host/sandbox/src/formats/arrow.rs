//! Columns as Arrow's arrays. The layout is Arrow's already, so numbers are handed over and not copied.
//!
//! | column | Arrow |
//! |---|---|
//! | boolean, int64, float64 | Boolean, Int64, Float64 |
//! | decimal, declared with at most 76 digits | Decimal128 or Decimal256 with the declared scale |
//! | decimal otherwise, or one whose digits do not fit | Utf8, `souk.type` = `decimal` |
//! | text; json | Utf8; Utf8, extension `arrow.json` |
//! | bytes | Binary |
//! | date, time | Date32, Time64(µs), which ends before 24:00:00 |
//! | timestamp, local_timestamp | Timestamp(µs, UTC), Timestamp(µs) |

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{Decimal128Type, Decimal256Type};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Float64Array, Int64Array, NullArray,
    PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer, i256,
};
use arrow_schema::{DataType, Field as ArrowField, Schema, SchemaRef, TimeUnit};

use super::kinds::Unfit;
use crate::columns::{Chunk, ColumnData, ColumnKind, DAY_MICROS, Output, VarLen};
use crate::json::Field;

/// Digits that Arrow's decimals hold.
const DIGITS_128: u8 = 38;
const DIGITS_256: u8 = 76;

/// How the columns of a feed are laid out, from its first page to its last.
pub struct Layout {
    pub schema: SchemaRef,
    kinds: Vec<Option<ColumnKind>>,
}

impl Layout {
    /// That of a result's fields. `is_exact`: a decimal whose digits do not fit its declared type is text; else it is what it was declared as.
    pub fn of(output: &Output, fields: &[Field], rows: usize) -> Layout {
        let kind = |field: &Field| output.columns.get(field.index).map(|column| column.kind);
        let arrow = |field: &Field| {
            let Some(column) = output.columns.get(field.index) else {
                return ArrowField::new(&field.name, DataType::Null, true);
            };
            let declared = match column.kind {
                ColumnKind::Decimal => {
                    declared(&column.native).filter(|kind| all_fit(output, field.index, kind, rows))
                }
                _ => None,
            };
            let (kind, said) = match column.kind {
                ColumnKind::Boolean => (DataType::Boolean, None),
                ColumnKind::Int64 => (DataType::Int64, None),
                ColumnKind::Float64 => (DataType::Float64, None),
                ColumnKind::Decimal => match declared {
                    Some(decimal) => (decimal, None),
                    None => (DataType::Utf8, Some(("souk.type", "decimal"))),
                },
                ColumnKind::Text => (DataType::Utf8, None),
                ColumnKind::Json => (DataType::Utf8, Some(("ARROW:extension:name", "arrow.json"))),
                ColumnKind::Bytes => (DataType::Binary, None),
                ColumnKind::Date => (DataType::Date32, None),
                ColumnKind::Time => (DataType::Time64(TimeUnit::Microsecond), None),
                ColumnKind::Timestamp => (
                    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
                    None,
                ),
                ColumnKind::LocalTimestamp => {
                    (DataType::Timestamp(TimeUnit::Microsecond, None), None)
                }
            };
            let said = said.map(|(name, value)| (name.to_owned(), value.to_owned()));
            ArrowField::new(&field.name, kind, true)
                .with_metadata(said.into_iter().collect::<HashMap<_, _>>())
        };
        Layout {
            kinds: fields.iter().map(kind).collect(),
            schema: Arc::new(Schema::new(
                fields.iter().map(arrow).collect::<Vec<ArrowField>>(),
            )),
        }
    }

    /// The first `rows` rows of a result, batch by batch.
    pub fn batches(
        &self,
        mut output: Output,
        fields: &[Field],
        rows: usize,
    ) -> Result<Vec<RecordBatch>, Unfit> {
        output.truncate(rows);
        for (field, kind) in fields.iter().zip(&self.kinds) {
            let now = output.columns.get(field.index).map(|column| column.kind);
            if now != *kind && output.rows > 0 {
                return Err(Unfit::Type(field.name.clone()));
            }
        }
        let mut batches = Vec::with_capacity(output.batches.len());
        for batch in output.batches {
            let rows = batch.rows as usize;
            let mut chunks: Vec<Option<Chunk>> = batch.chunks.into_iter().map(Some).collect();
            let arrays = fields.iter().enumerate().map(|(place, field)| {
                let wanted = self.schema.field(place).data_type();
                // A column may be published under two names.
                let is_wanted_again = fields[place + 1..]
                    .iter()
                    .any(|other| other.index == field.index);
                let chunk = match chunks.get_mut(field.index) {
                    Some(chunk) if is_wanted_again => chunk.clone(),
                    Some(chunk) => chunk.take(),
                    None => None,
                };
                match chunk {
                    Some(chunk) => array(chunk, wanted, rows).ok_or_else(|| match wanted {
                        DataType::Time64(_) => Unfit::EndOfDay(field.name.clone()),
                        _ => Unfit::Digits(field.name.clone()),
                    }),
                    None => Ok(Arc::new(NullArray::new(rows)) as ArrayRef),
                }
            });
            let arrays = arrays.collect::<Result<Vec<ArrayRef>, Unfit>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options);
            batches.push(batch.map_err(|error| Unfit::Writer(error.to_string()))?);
        }
        Ok(batches)
    }
}

/// The first `rows` values of a chunk. `None`: a decimal or a time does not fit.
fn array(chunk: Chunk, wanted: &DataType, rows: usize) -> Option<ArrayRef> {
    let nulls = chunk
        .validity
        .map(|bits| NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, rows)));
    Some(match (chunk.data, wanted) {
        (ColumnData::Bits(bits), _) => {
            let bits = BooleanBuffer::new(Buffer::from_vec(bits), 0, rows);
            Arc::new(BooleanArray::new(bits, nulls))
        }
        (ColumnData::I32s(days), _) => Arc::new(Date32Array::new(first(days, rows), nulls)),
        (ColumnData::I64s(values), DataType::Time64(_)) => {
            let array = Time64MicrosecondArray::new(first(values, rows), nulls);
            // Some readers refuse the end of the day, others take it for midnight.
            let is_short = array.iter().flatten().all(|micros| micros < DAY_MICROS);
            is_short.then(|| Arc::new(array))?
        }
        (ColumnData::I64s(values), DataType::Timestamp(_, zone)) => {
            let array = TimestampMicrosecondArray::new(first(values, rows), nulls);
            Arc::new(array.with_timezone_opt(zone.clone()))
        }
        (ColumnData::I64s(values), _) => Arc::new(Int64Array::new(first(values, rows), nulls)),
        (ColumnData::F64s(values), _) => Arc::new(Float64Array::new(first(values, rows), nulls)),
        (ColumnData::VarLen(values), DataType::Decimal128(digits, scale)) => {
            let read = |text: &str| text.parse::<i128>().ok();
            let values = decimals(&values, nulls.as_ref(), rows, (*digits, *scale), read)?;
            let array = PrimitiveArray::<Decimal128Type>::new(values.into(), nulls);
            Arc::new(array.with_data_type(wanted.clone()))
        }
        (ColumnData::VarLen(values), DataType::Decimal256(digits, scale)) => {
            let values = decimals(
                &values,
                nulls.as_ref(),
                rows,
                (*digits, *scale),
                i256::from_string,
            )?;
            let array = PrimitiveArray::<Decimal256Type>::new(values.into(), nulls);
            Arc::new(array.with_data_type(wanted.clone()))
        }
        (ColumnData::VarLen(values), DataType::Binary) => {
            let (offsets, bytes) = texts(values, rows);
            Arc::new(BinaryArray::new(offsets, bytes, nulls))
        }
        (ColumnData::VarLen(values), _) => {
            let (offsets, bytes) = texts(values, rows);
            Arc::new(StringArray::new(offsets, bytes, nulls))
        }
    })
}

/// A page may end within a batch: then the vectors are longer than it.
fn first<T: ArrowNativeType>(values: Vec<T>, rows: usize) -> ScalarBuffer<T> {
    ScalarBuffer::new(Buffer::from_vec(values), 0, rows)
}

fn texts(values: VarLen, rows: usize) -> (OffsetBuffer<i32>, Buffer) {
    let mut bytes = values.bytes;
    bytes.truncate(values.offsets.get(rows).map_or(0, |end| *end as usize));
    let offsets = OffsetBuffer::new(first(values.offsets, rows + 1));
    (offsets, Buffer::from_vec(bytes))
}

/// What `numeric(12,2)` says, or what an engine calls it, if Arrow has a type for it.
fn declared(native: &str) -> Option<DataType> {
    let native = native.trim().to_ascii_lowercase();
    // As ClickHouse writes it.
    let inner = native.strip_prefix("nullable(");
    let inner = inner.and_then(|inner| inner.strip_suffix(')'));
    let kind = inner.unwrap_or(&native);
    let (name, arguments) = kind.strip_suffix(')')?.split_once('(')?;
    let (digits, scale) = match (name.trim(), arguments.split_once(',')) {
        ("numeric" | "decimal" | "dec" | "number" | "bignumeric", both) => {
            both.unwrap_or((arguments, "0"))
        }
        // As Arrow writes it, always with both.
        ("decimal32" | "decimal64" | "decimal128" | "decimal256", Some(both)) => both,
        _ => return None,
    };
    let digits: u8 = digits.trim().parse().ok()?;
    let scale: i8 = scale.trim().parse().ok()?;
    let is_ordinary = scale >= 0 && scale as u8 <= digits;
    match digits {
        1..=DIGITS_128 if is_ordinary => Some(DataType::Decimal128(digits, scale)),
        1..=DIGITS_256 if is_ordinary => Some(DataType::Decimal256(digits, scale)),
        _ => None,
    }
}

fn all_fit(output: &Output, column: usize, kind: &DataType, rows: usize) -> bool {
    let (DataType::Decimal128(digits, scale) | DataType::Decimal256(digits, scale)) = kind else {
        return false;
    };
    output
        .cells(column)
        .take(rows)
        .all(|cell| match cell.as_str() {
            Some(text) => unscaled(text, *digits, *scale).is_some(),
            None => cell.is_null(),
        })
}

fn decimals<T: Default>(
    values: &VarLen,
    nulls: Option<&NullBuffer>,
    rows: usize,
    (digits, scale): (u8, i8),
    read: impl Fn(&str) -> Option<T>,
) -> Option<Vec<T>> {
    let value = |row: usize| match nulls.is_some_and(|nulls| nulls.is_null(row)) {
        true => Some(T::default()),
        false => {
            let text = std::str::from_utf8(values.at(row)).ok()?;
            read(&unscaled(text, digits, scale)?)
        }
    };
    (0..rows).map(value).collect()
}

/// The digits of a number without its point, as many after it as `scale`; `None` when that would lose one.
fn unscaled(text: &str, digits: u8, scale: i8) -> Option<String> {
    let (sign, number) = match text.strip_prefix('-') {
        Some(number) => ("-", number),
        None => ("", text),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let scale = usize::from(scale.unsigned_abs());
    let (kept, rest) = fraction.split_at_checked(scale).unwrap_or((fraction, ""));
    let whole = whole.trim_start_matches('0');
    let is_number = !number.is_empty()
        && [whole, fraction]
            .iter()
            .all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let fits = rest.bytes().all(|byte| byte == b'0') && whole.len() + scale <= usize::from(digits);
    (is_number && fits)
        .then(|| format!("{sign}{whole}{kept:0<scale$}"))
        .map(|text| {
            if text.is_empty() || text == "-" {
                "0".to_owned()
            } else {
                text
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No digit is lost, and what would lose one does not fit.
    #[test]
    fn decimals_fit_exactly_or_not_at_all() {
        let fits = |text| unscaled(text, 5, 2);
        for (text, expected) in [
            ("1", "100"),
            ("-12.3", "-1230"),
            ("0.05", "05"),
            ("0", "00"),
            ("12.340", "1234"),
            ("999.99", "99999"),
        ] {
            assert_eq!(fits(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["1.234", "1000", "NaN", "Infinity", "1e3", ""] {
            assert_eq!(fits(text), None, "{text}");
        }
        assert_eq!(unscaled("0", 5, 0).as_deref(), Some("0"));
    }

    /// Only what a declaration promises has a type of its own.
    #[test]
    fn declarations_decide() {
        assert_eq!(declared("numeric(10,2)"), Some(DataType::Decimal128(10, 2)));
        assert_eq!(declared("DECIMAL(9)"), Some(DataType::Decimal128(9, 0)));
        assert_eq!(declared("numeric(50,4)"), Some(DataType::Decimal256(50, 4)));
        for native in [
            "Decimal64(10, 2)",
            "NUMBER(10,2)",
            "BIGNUMERIC(10, 2)",
            "Nullable(Decimal(10, 2))",
        ] {
            let found = declared(native);
            assert_eq!(found, Some(DataType::Decimal128(10, 2)), "{native}");
        }
        assert_eq!(
            declared("Decimal256(40, 2)"),
            Some(DataType::Decimal256(40, 2))
        );
        for native in [
            "numeric",
            "Decimal128(5)",
            "Decimal128(5, -2)",
            "Nullable(Decimal)",
            "Array(Decimal(10, 2))",
            "Dictionary(Int8, Decimal128(10, 2))",
            "numeric(90,2)",
            "numeric(5,-2)",
            "varchar(10)",
            "numeric(2,3)",
        ] {
            assert_eq!(declared(native), None, "{native}");
        }
    }
}
