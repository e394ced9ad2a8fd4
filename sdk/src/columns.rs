//! Builds columns in Arrow's physical layout, a value at a time.
//!
//! Only flat buffers, so that crossing to the host is a memcpy. The validity bitmap comes into being with the
//! first NULL: a column without one costs nothing for it.

use crate::{Batch, Chunk, Column, ColumnData, ColumnType, Error, VarLen, short};
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

    /// Many dates, none of which is NULL.
    pub fn i32s(&mut self, values: impl Iterator<Item = i32>) -> Result<(), Error> {
        let Data::I32s(all) = &mut self.data else {
            return Err(mismatch(self.kind));
        };
        all.extend(values);
        let rows = all.len();
        self.valid_to(rows);
        Ok(())
    }

    /// The same of int64, time, timestamp and local-timestamp.
    pub fn i64s(&mut self, values: impl Iterator<Item = i64>) -> Result<(), Error> {
        let Data::I64s(all) = &mut self.data else {
            return Err(mismatch(self.kind));
        };
        all.extend(values);
        let rows = all.len();
        self.valid_to(rows);
        Ok(())
    }

    /// The same of float64.
    pub fn f64s(&mut self, values: impl Iterator<Item = f64>) -> Result<(), Error> {
        let Data::F64s(all) = &mut self.data else {
            return Err(mismatch(self.kind));
        };
        all.extend(values);
        let rows = all.len();
        self.valid_to(rows);
        Ok(())
    }

    /// The same of boolean: a byte each, of which the lowest bit counts.
    pub fn booleans(&mut self, values: &[u8]) -> Result<(), Error> {
        let Data::Bits(bits) = &mut self.data else {
            return Err(mismatch(self.kind));
        };
        let rows = self.rows + values.len();
        // Up to the end of the last byte, then eight at once.
        let open = self.rows.wrapping_neg() & 7;
        let (first, values) = values.split_at(open.min(values.len()));
        if let Some(last) = bits.last_mut() {
            *last |= packed(first) << (self.rows & 7);
        }
        let (eights, rest) = values.as_chunks::<8>();
        bits.extend(eights.iter().map(packed_eight));
        if !rest.is_empty() {
            bits.push(packed(rest));
        }
        self.valid_to(rows);
        Ok(())
    }

    /// The same of [`var`](Self::var): of text, json, decimal and bytes.
    pub fn vars(&mut self, values: &[&[u8]]) -> Result<(), Error> {
        let Data::VarLen { offsets, bytes } = &mut self.data else {
            return Err(mismatch(self.kind));
        };
        let lengths = values.iter().map(|value| value.len());
        let more = lengths.fold(0, usize::saturating_add);
        // Then the end of each of them has a number, too.
        i32::try_from(bytes.len().saturating_add(more)).map_err(|_| too_long())?;
        bytes.reserve(more);
        offsets.extend(values.iter().map(|value| {
            short::append(bytes, value);
            bytes.len() as i32
        }));
        let rows = offsets.len() - 1;
        self.valid_to(rows);
        Ok(())
    }

    /// Whether the values from this row on are UTF-8, each by itself: they are looked at together, which is much quicker than one after the
    /// other. True of a column of fixed width.
    pub fn is_text(&self, from: usize) -> bool {
        match &self.data {
            Data::VarLen { offsets, bytes } => {
                are_texts(offsets.get(from..).unwrap_or_default(), bytes)
            }
            _ => true,
        }
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

    /// Those that were appended up to this row are there.
    fn valid_to(&mut self, rows: usize) {
        if let Some(validity) = &mut self.validity {
            add_ones(validity, self.rows, rows);
        }
        self.rows = rows;
    }
}

impl Batch {
    /// Whether its values of variable length are UTF-8, each by itself: as [`ColumnBuilder::is_text`], of all columns.
    pub fn is_text(&self) -> bool {
        self.chunks.iter().all(|chunk| match &chunk.data {
            ColumnData::VarLen(values) => are_texts(&values.offsets, &values.bytes),
            _ => true,
        })
    }
}

/// Whether the bytes between each of these offsets and the next are UTF-8.
fn are_texts(offsets: &[i32], bytes: &[u8]) -> bool {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
        return true;
    };
    let begin = *first as usize;
    let Some(all) = bytes.get(begin..*last as usize) else {
        return false;
    };
    if is_ascii(all) {
        return true;
    }
    // A character that goes on in the next value would make a text of two that are none.
    let mut ends = offsets.iter().map(|offset| *offset as usize - begin);
    std::str::from_utf8(all).is_ok_and(|text| ends.all(|end| text.is_char_boundary(end)))
}

/// Sixteen bytes at a time.
fn is_ascii(bytes: &[u8]) -> bool {
    const HIGH: u128 = u128::from_ne_bytes([0x80; 16]);
    let (chunks, rest) = bytes.as_chunks::<16>();
    let mut chunks = chunks.iter();
    chunks.all(|chunk| u128::from_ne_bytes(*chunk) & HIGH == 0) && rest.is_ascii()
}

/// The lowest bit of each of up to eight bytes.
fn packed(bytes: &[u8]) -> u8 {
    let bits = bytes.iter().rev();
    bits.fold(0, |bits, byte| bits << 1 | byte & 1)
}

/// The same of eight: byte `i` is multiplied to bit `i` of the highest one, and no two of the products meet.
fn packed_eight(bytes: &[u8; 8]) -> u8 {
    let lowest = u64::from_le_bytes(*bytes) & 0x0101_0101_0101_0101;
    (lowest.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
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
    let mut bits = Vec::new();
    add_ones(&mut bits, 0, rows);
    bits
}

/// Makes a bitmap of `from` bits one of `to`, those that are new being ones.
fn add_ones(bits: &mut Vec<u8>, from: usize, to: usize) {
    if let (used @ 1.., Some(last)) = (from & 7, bits.last_mut()) {
        *last |= 0xff << used;
    }
    bits.resize(to.div_ceil(8), 0xff);
    if let (used @ 1.., Some(last)) = (to & 7, bits.last_mut()) {
        *last &= (1 << used) - 1;
    }
}

#[cold]
fn mismatch(kind: ColumnType) -> Error {
    Error::internal(
        "column_type",
        format!("the connector pushed a value of another type into a {kind:?} column"),
    )
}

#[cold]
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

    /// However many values come at once, after however many others and NULLs: the column is the same as of one after the other.
    #[test]
    fn many_values_are_each_of_them() {
        let texts: Vec<String> = (0..40).map(|n| "é".repeat(n)).collect();
        let texts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        for kind in [
            ColumnType::Boolean,
            ColumnType::Date,
            ColumnType::Int64,
            ColumnType::Float64,
            ColumnType::Text,
        ] {
            for (before, nulls, count) in (0..18_usize)
                .flat_map(|before| [0, 1].map(|nulls| (before, nulls)))
                .flat_map(|(before, nulls)| (0..20_usize).map(move |count| (before, nulls, count)))
            {
                let (mut one, mut many) = (ColumnBuilder::new(kind), ColumnBuilder::new(kind));
                for _ in 0..nulls {
                    one.null();
                    many.null();
                }
                for part in [0..before, before..before + count, 0..count] {
                    let bytes: Vec<u8> = part.clone().map(|n| (n % 3) as u8).collect();
                    for (n, byte) in part.clone().zip(&bytes) {
                        match kind {
                            ColumnType::Boolean => one.boolean(byte & 1 == 1),
                            ColumnType::Date => one.i32(n as i32 - 9),
                            ColumnType::Int64 => one.i64(n as i64 - i64::MAX),
                            ColumnType::Float64 => one.f64(n as f64 / 3.0),
                            _ => one.var(texts[n]),
                        }
                        .unwrap();
                    }
                    match kind {
                        ColumnType::Boolean => many.booleans(&bytes),
                        ColumnType::Date => many.i32s(part.map(|n| n as i32 - 9)),
                        ColumnType::Int64 => many.i64s(part.map(|n| n as i64 - i64::MAX)),
                        ColumnType::Float64 => many.f64s(part.map(|n| n as f64 / 3.0)),
                        _ => many.vars(&texts[part]),
                    }
                    .unwrap();
                    assert_eq!(one.rows(), many.rows());
                }
                one.null();
                many.null();
                let (one, many) = (one.finish(), many.finish());
                assert_eq!(one.data, many.data, "{kind:?} {before} {nulls} {count}");
                assert_eq!(one.validity, many.validity, "{kind:?} {before} {count}");
            }
        }
        let mut date = ColumnBuilder::new(ColumnType::Date);
        assert!(date.i64s([1].into_iter()).is_err() && date.vars(&[b"a"]).is_err());
        assert!(date.booleans(&[1]).is_err() && date.f64s([1.0].into_iter()).is_err());
        assert_eq!(date.rows(), 0);
    }

    /// Texts are looked at together, and each has to be one by itself.
    #[test]
    fn each_text_is_utf8() {
        let is_text = |values: &[&[u8]]| {
            let mut builder = ColumnBuilder::new(ColumnType::Text);
            builder.var(b"\xff").unwrap();
            builder.vars(values).unwrap();
            assert!(!builder.is_text(0));
            let is_text = builder.is_text(1);
            let mut batch = ColumnBuilder::new(ColumnType::Text);
            batch.vars(values).unwrap();
            let batch = Batch {
                rows: values.len() as u32,
                chunks: vec![batch.finish()],
            };
            assert_eq!(batch.is_text(), is_text, "{values:?}");
            is_text
        };
        let long = "x".repeat(40);
        let texts = ["", "a", "é", "😀", long.as_str(), "", "ä"].map(str::as_bytes);
        assert!(is_text(&[]) && is_text(&[b""]) && is_text(&texts));
        let halves: [&[u8]; 2] = [b"a\xc3", b"\xa9b"];
        assert!(is_text(&[b"a\xc3\xa9b"]) && !is_text(&halves));
        // Wherever a wrong byte stands.
        for at in 0..long.len() {
            let mut broken = long.clone().into_bytes();
            broken[at] = 0x80;
            assert!(!is_text(&[&broken]), "{at}");
        }
        assert!(ColumnBuilder::new(ColumnType::Int64).is_text(0));
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
