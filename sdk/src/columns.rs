//! Builds columns in Arrow's physical layout, a value at a time.
//!
//! Only flat buffers, so that crossing to the host is a memcpy. The validity bitmap comes into being with the
//! first NULL: a column without one costs nothing for it.

use crate::{Chunk, Column, ColumnData, ColumnType, Error, VarLen, short};
use serde_json::value::RawValue;

/// A batch is cut at this many rows or bytes of values: small enough to stream, large enough that its overhead vanishes.
pub(crate) const BATCH_ROWS: usize = 8_192;
pub(crate) const BATCH_BYTES: u64 = 1 << 20;

/// A column's description; `native` is the source's own name of the type, for people.
pub fn column(name: impl Into<String>, kind: ColumnType, native: impl Into<String>) -> Column {
    Column {
        name: name.into(),
        kind,
        nullable: true,
        native: native.into(),
    }
}

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
    fn kind(&self) -> Option<ColumnType> {
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
            .detail(text.chars().take(100).collect::<String>())),
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

enum Data {
    Bits(Vec<u8>),
    I32s(Vec<i32>),
    I64s(Vec<i64>),
    F64s(Vec<f64>),
    VarLen { offsets: Vec<i32>, bytes: Vec<u8> },
}

/// One column of a batch under construction. The typed pushes are for a caller that chose the column's type
/// itself: a value of another layout is refused with `internal`.
pub struct ColumnBuilder {
    kind: ColumnType,
    rows: usize,
    validity: Option<Vec<u8>>,
    data: Data,
    /// Of a type of variable length: how many bytes are expected, for which room is made with the first value; and whether that is expected to be
    /// the only one.
    bytes_expected: usize,
    is_single: bool,
}

impl ColumnBuilder {
    pub fn new(kind: ColumnType) -> ColumnBuilder {
        ColumnBuilder::with_capacity(kind, 0, 0)
    }

    /// Room for `rows` values and, where the type is of variable length, `bytes` bytes. A value that is the only one has as much as it needs: what
    /// has more is cut to its length when it is handed to the host.
    pub fn with_capacity(kind: ColumnType, rows: usize, bytes: usize) -> ColumnBuilder {
        let data = match kind {
            ColumnType::Boolean => Data::Bits(Vec::with_capacity(rows.div_ceil(8))),
            ColumnType::Date => Data::I32s(Vec::with_capacity(rows)),
            ColumnType::Int64
            | ColumnType::Time
            | ColumnType::Timestamp
            | ColumnType::LocalTimestamp => Data::I64s(Vec::with_capacity(rows)),
            ColumnType::Float64 => Data::F64s(Vec::with_capacity(rows)),
            ColumnType::Decimal | ColumnType::Text | ColumnType::Bytes | ColumnType::Json => {
                let mut offsets = Vec::with_capacity(rows + 1);
                offsets.push(0);
                Data::VarLen {
                    offsets,
                    bytes: Vec::new(),
                }
            }
        };
        ColumnBuilder {
            kind,
            rows: 0,
            validity: None,
            data,
            bytes_expected: bytes,
            is_single: rows <= 1,
        }
    }

    pub fn kind(&self) -> ColumnType {
        self.kind
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the values so far (not of offsets and bitmaps).
    pub fn bytes(&self) -> usize {
        match &self.data {
            Data::Bits(bits) => bits.len(),
            Data::I32s(values) => values.len() * 4,
            Data::I64s(values) => values.len() * 8,
            Data::F64s(values) => values.len() * 8,
            Data::VarLen { bytes, .. } => bytes.len(),
        }
    }

    /// Appends any cell; its type must be the column's.
    pub fn push(&mut self, cell: Cell<'_>) -> Result<(), Error> {
        if cell.kind().is_some_and(|kind| kind != self.kind) {
            return Err(mismatch(self.kind));
        }
        match cell {
            Cell::Null => {
                self.null();
                Ok(())
            }
            Cell::Boolean(value) => self.boolean(value),
            Cell::Int64(value)
            | Cell::Time(value)
            | Cell::Timestamp(value)
            | Cell::LocalTimestamp(value) => self.i64(value),
            Cell::Float64(value) => self.f64(value),
            Cell::Date(value) => self.i32(value),
            Cell::Decimal(text) | Cell::Text(text) | Cell::Json(text) => self.var(text.as_bytes()),
            Cell::Bytes(bytes) => self.var(bytes),
        }
    }

    pub fn null(&mut self) {
        let row = self.rows;
        let validity = self.validity.get_or_insert_with(|| ones(row));
        if row & 7 == 0 {
            validity.push(0);
        }
        match &mut self.data {
            Data::Bits(bits) => {
                if row & 7 == 0 {
                    bits.push(0);
                }
            }
            Data::I32s(values) => values.push(0),
            Data::I64s(values) => values.push(0),
            Data::F64s(values) => values.push(0.0),
            Data::VarLen { offsets, bytes } => offsets.push(bytes.len() as i32),
        }
        self.rows += 1;
    }

    pub fn boolean(&mut self, value: bool) -> Result<(), Error> {
        let row = self.rows;
        let Data::Bits(bits) = &mut self.data else {
            return Err(mismatch(self.kind));
        };
        if row & 7 == 0 {
            bits.push(0);
        }
        if let Some(last) = bits.last_mut() {
            *last |= u8::from(value) << (row & 7);
        }
        self.valid();
        Ok(())
    }

    /// date.
    #[inline]
    pub fn i32(&mut self, value: i32) -> Result<(), Error> {
        let Data::I32s(values) = &mut self.data else {
            return Err(mismatch(self.kind));
        };
        values.push(value);
        self.valid();
        Ok(())
    }

    /// int64, time, timestamp, local-timestamp.
    #[inline]
    pub fn i64(&mut self, value: i64) -> Result<(), Error> {
        let Data::I64s(values) = &mut self.data else {
            return Err(mismatch(self.kind));
        };
        values.push(value);
        self.valid();
        Ok(())
    }

    #[inline]
    pub fn f64(&mut self, value: f64) -> Result<(), Error> {
        let Data::F64s(values) = &mut self.data else {
            return Err(mismatch(self.kind));
        };
        values.push(value);
        self.valid();
        Ok(())
    }

    /// text, json and decimal (the caller vouches for UTF-8; the host checks) and bytes.
    #[inline]
    pub fn var(&mut self, value: &[u8]) -> Result<(), Error> {
        let Data::VarLen { offsets, bytes } = &mut self.data else {
            return Err(mismatch(self.kind));
        };
        let end = i32::try_from(bytes.len() + value.len()).map_err(|_| too_long())?;
        make_room(bytes, value.len(), self.bytes_expected, self.is_single);
        short::append(bytes, value);
        offsets.push(end);
        self.valid();
        Ok(())
    }

    /// Says that the next value, which is rendered in place, has about so many bytes. If it is the first one, room is made for it as by
    /// [`var`](Self::var).
    #[inline]
    pub fn expect(&mut self, length: usize) {
        let Data::VarLen { bytes, .. } = &mut self.data else {
            return;
        };
        make_room(bytes, length, self.bytes_expected, self.is_single);
    }

    /// Like [`var`](Self::var) for a value that is rendered in place: `write` appends to the column's bytes.
    /// If it fails, nothing has been added.
    pub fn var_with(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Data::VarLen { offsets, bytes } = &mut self.data else {
            return Err(mismatch(self.kind));
        };
        if bytes.capacity() == 0 {
            bytes.reserve_exact(self.bytes_expected);
        }
        let start = bytes.len();
        let written =
            write(bytes).and_then(|()| i32::try_from(bytes.len()).map_err(|_| too_long()));
        match written {
            Ok(end) => offsets.push(end),
            Err(error) => {
                bytes.truncate(start);
                return Err(error);
            }
        }
        self.valid();
        Ok(())
    }

    /// The column as it crosses to the host.
    pub fn finish(self) -> Chunk {
        let data = match self.data {
            Data::Bits(bits) => ColumnData::Bits(bits),
            Data::I32s(values) => ColumnData::I32s(values),
            Data::I64s(values) => ColumnData::I64s(values),
            Data::F64s(values) => ColumnData::F64s(values),
            Data::VarLen { offsets, bytes } => ColumnData::VarLen(VarLen { offsets, bytes }),
        };
        Chunk {
            validity: self.validity,
            data,
        }
    }

    #[inline]
    fn valid(&mut self) {
        let row = self.rows;
        if let Some(validity) = &mut self.validity {
            if row & 7 == 0 {
                validity.push(0);
            }
            if let Some(last) = validity.last_mut() {
                *last |= 1 << (row & 7);
            }
        }
        self.rows += 1;
    }
}

/// Room for a column's values, with the first of them.
#[inline]
fn make_room(bytes: &mut Vec<u8>, first: usize, expected: usize, is_single: bool) {
    if bytes.capacity() == 0 {
        bytes.reserve_exact(match is_single {
            true => first,
            false => first.max(expected),
        });
    }
}

/// A bitmap of `rows` ones; bits past the end are zero.
fn ones(rows: usize) -> Vec<u8> {
    let mut bits = vec![0xff; rows / 8];
    if rows & 7 != 0 {
        bits.push((1u8 << (rows & 7)) - 1);
    }
    bits
}

fn mismatch(kind: ColumnType) -> Error {
    Error::internal(
        "column_type",
        format!("the connector pushed a value of another type into a {kind:?} column"),
    )
}

fn too_long() -> Error {
    Error::limit_exceeded("batch_bytes", "a batch holds more than 2 GiB of text")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A column without NULLs carries no bitmap; the first NULL makes one that is right for the rows before it.
    #[test]
    fn the_bitmap_comes_with_the_first_null() {
        let mut plain = ColumnBuilder::new(ColumnType::Int64);
        (0..9).for_each(|i| plain.i64(i).unwrap());
        assert_eq!(plain.finish().validity, None);

        let mut holed = ColumnBuilder::new(ColumnType::Text);
        (0..9).for_each(|_| holed.push(Cell::Text("é")).unwrap());
        holed.null();
        holed.push(Cell::Text("z")).unwrap();
        let chunk = holed.finish();
        assert_eq!(chunk.validity, Some(vec![0xff, 0b0000_0101]));
        let ColumnData::VarLen(text) = chunk.data else {
            panic!()
        };
        assert_eq!(text.offsets, [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 18, 19]);
    }

    /// A value that is the only one of its batch, as the one before was, has as much room as it needs, whatever that one needed.
    #[test]
    fn a_single_value_has_its_own_room() {
        let room = |builder: ColumnBuilder| match builder.finish().data {
            ColumnData::VarLen(text) => (text.bytes.len(), text.bytes.capacity()),
            _ => panic!(),
        };
        for length in [0, 1, 7, 8, 20, 40, 100] {
            let value = "x".repeat(length);
            let mut single = ColumnBuilder::with_capacity(ColumnType::Text, 1, 20);
            single.var(value.as_bytes()).unwrap();
            assert_eq!(room(single), (length, length));
        }
        let mut many = ColumnBuilder::with_capacity(ColumnType::Text, 9, 64);
        (0..9).for_each(|_| many.push(Cell::Text("seven")).unwrap());
        assert_eq!(room(many), (45, 64));
        // How long a value is that is written in place is not known before.
        let mut written = ColumnBuilder::with_capacity(ColumnType::Json, 1, 20);
        let all = |out: &mut Vec<u8>| {
            b"[1, 2]".iter().for_each(|byte| out.push(*byte));
            Ok(())
        };
        written.var_with(all).unwrap();
        assert_eq!(room(written), (6, 20));
        let mut expected = ColumnBuilder::with_capacity(ColumnType::Json, 1, 20);
        expected.expect(6);
        expected.var_with(all).unwrap();
        assert_eq!(room(expected), (6, 6));
        let mut number = ColumnBuilder::new(ColumnType::Int64);
        number.expect(6);
        assert_eq!(number.bytes(), 0);
    }

    /// Booleans are packed, least significant bit first.
    #[test]
    fn booleans_are_packed() {
        let mut bits = ColumnBuilder::new(ColumnType::Boolean);
        [true, false, true, true, false, false, false, false, true]
            .iter()
            .for_each(|&b| bits.boolean(b).unwrap());
        bits.null();
        let chunk = bits.finish();
        assert_eq!(chunk.data, ColumnData::Bits(vec![0b0000_1101, 0b0000_0001]));
        assert_eq!(chunk.validity, Some(vec![0xff, 0b01]));
    }

    /// Digits stay as they were written, and what is no number is no cell.
    #[test]
    fn numbers_keep_their_digits() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        for digits in [
            "1.50",
            "-0",
            "9007199254740993",
            "12345678901234567890.00100",
            "1e400",
        ] {
            let (number, text) = (raw(digits), raw(&format!("\"{digits}\"")));
            assert_eq!(Cell::number(&number).unwrap(), Cell::Decimal(digits));
            assert_eq!(Cell::number(&text).unwrap(), Cell::Decimal(digits));
        }
        assert_eq!(Cell::number(&raw("null")).unwrap(), Cell::Null);
        for other in [
            "\"12,5 EUR\"",
            "true",
            "[]",
            "\"\"",
            "\"-\"",
            "\"0x10\"",
            "\"007\"",
            "\"1 \"",
            "\"NaN\"",
        ] {
            assert!(Cell::number(&raw(other)).is_err(), "{other}");
        }
        assert_eq!(Cell::json(&raw("null")), Cell::Null);
        assert_eq!(Cell::json(&raw("[1]")), Cell::Json("[1]"));
    }

    /// A value of another type is refused and the column keeps its length.
    #[test]
    fn a_wrong_type_is_refused() {
        let mut date = ColumnBuilder::new(ColumnType::Date);
        assert_eq!(
            date.push(Cell::Int64(1)).unwrap_err().class,
            crate::ErrorClass::Internal
        );
        let mut json = ColumnBuilder::new(ColumnType::Json);
        assert!(
            json.var_with(|out| {
                out.extend(b"half");
                Err(too_long())
            })
            .is_err()
        );
        json.push(Cell::Json("{}")).unwrap();
        assert_eq!(
            json.finish().data,
            ColumnData::VarLen(VarLen {
                offsets: vec![0, 2],
                bytes: b"{}".to_vec()
            })
        );
    }
}
