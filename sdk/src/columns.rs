//! Builds columns in Arrow's physical layout, a value at a time.
//!
//! Only flat buffers, so that crossing to the host is a memcpy. The validity bitmap comes into being with the
//! first NULL: a column without one costs nothing for it.

mod cells;

use crate::{Batch, Chunk, Column, ColumnData, ColumnType, Error, VarLen, short};
pub use cells::Cell;

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
mod tests;
