//! From SQLite's values to the contract's columns. The README has the rules as a table; no value is ever
//! changed to fit one.

use crate::dates;
use crate::declared::Declared;
use crate::mixed::{Scalar, Storage, decimals, mixed, pieces, scalars};
use crate::prepared::Value;
use rusqlite::types::ValueRef;
use serde::de::IgnoredAny;
use souk_sdk::{Chunk, ColumnBuilder, ColumnData, ColumnType, Error, VarLen};

/// One column of a result while it is read: uniform as long as the values are, which is nearly always.
pub struct Series {
    declared: Declared,
    room: Room,
    data: Data,
}

/// How large a column was the last time, which it will be again.
#[derive(Clone, Copy, Default)]
pub struct Room {
    rows: usize,
    /// Of texts and blobs.
    bytes: usize,
}

impl Room {
    /// Nothing is made larger than this before it is seen to be.
    const MAX: usize = 256 << 10;

    pub fn of(chunk: &Chunk, rows: u32) -> Room {
        let bytes = match &chunk.data {
            ColumnData::VarLen(var) => var.bytes.len(),
            _ => 0,
        };
        Room {
            rows: (rows as usize).min(Room::MAX),
            bytes: bytes.min(Room::MAX),
        }
    }
}

enum Data {
    /// So many NULLs so far.
    Nulls(usize),
    Integers(ColumnBuilder),
    Reals(ColumnBuilder),
    /// Whether all of them are UTF-8 is looked at in the end, at once.
    Text(ColumnBuilder),
    Blobs(ColumnBuilder),
    Mixed(Vec<Scalar>),
}

impl Series {
    pub fn new(declared: Declared, room: Room) -> Series {
        Series {
            declared,
            room,
            data: Data::Nulls(0),
        }
    }

    /// Appends a value and says how many bytes it counts for.
    #[inline]
    pub fn take(&mut self, value: Value<'_>) -> Result<u64, Error> {
        match &mut self.data {
            Data::Integers(column) => {
                if let Some(integer) = value.integer() {
                    column.i64(integer)?;
                    return Ok(8);
                }
            }
            Data::Reals(column) => {
                if let Some(real) = value.real() {
                    column.f64(real)?;
                    return Ok(8);
                }
            }
            Data::Text(column) => {
                if let Some(text) = value.text() {
                    column.var(text)?;
                    return Ok(text.len() as u64);
                }
            }
            Data::Nulls(_) | Data::Blobs(_) | Data::Mixed(_) => {}
        }
        self.push(value.get()?)
    }

    /// The same, of whatever it may be.
    fn push(&mut self, value: ValueRef<'_>) -> Result<u64, Error> {
        match (&mut self.data, value) {
            (Data::Integers(column), ValueRef::Integer(integer)) => column.i64(integer)?,
            (Data::Reals(column), ValueRef::Real(real)) => column.f64(real)?,
            (Data::Text(column), ValueRef::Text(bytes))
            | (Data::Blobs(column), ValueRef::Blob(bytes)) => column.var(bytes)?,
            (
                Data::Integers(column)
                | Data::Reals(column)
                | Data::Text(column)
                | Data::Blobs(column),
                ValueRef::Null,
            ) => {
                column.null();
            }
            (Data::Nulls(nulls), ValueRef::Null) => *nulls += 1,
            (Data::Nulls(nulls), first) => {
                self.data = Data::begin(*nulls, first, self.room);
                return self.push(first);
            }
            (Data::Mixed(values), value) => values.push(Scalar::from(value)),
            (_, another) => {
                self.data =
                    Data::Mixed(std::mem::replace(&mut self.data, Data::Nulls(0)).scalars());
                return self.push(another);
            }
        }
        Ok(match value {
            ValueRef::Null => 1,
            ValueRef::Integer(_) | ValueRef::Real(_) => 8,
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len() as u64,
        })
    }

    /// Decides the column's type from all that was seen.
    pub fn finish(self) -> Result<(ColumnType, Chunk), Error> {
        let declared = self.declared;
        match self.data {
            Data::Nulls(rows) => {
                let kind = declared.suggests();
                let mut column = ColumnBuilder::new(kind);
                (0..rows).for_each(|_| column.null());
                Ok((kind, column.finish()))
            }
            Data::Integers(column) => integers(declared, column.finish()),
            Data::Reals(column) if declared == Declared::Decimal => {
                decimals(&scalars(&column.finish(), Storage::Reals))
            }
            Data::Reals(column) => Ok((ColumnType::Float64, column.finish())),
            Data::Text(column) => match column.finish() {
                chunk if is_utf8(&chunk) => Ok(text(declared, chunk)),
                chunk => mixed(declared, &scalars(&chunk, Storage::Text)),
            },
            Data::Blobs(column) => Ok((ColumnType::Bytes, column.finish())),
            Data::Mixed(values) => mixed(declared, &values),
        }
    }
}

/// Whether each text is.
fn is_utf8(chunk: &Chunk) -> bool {
    let ColumnData::VarLen(var) = &chunk.data else {
        return false;
    };
    if is_ascii(&var.bytes) {
        return true;
    }
    let ends = |text: &str| {
        let mut offsets = var.offsets.iter();
        offsets.all(|end| text.is_char_boundary(*end as usize))
    };
    std::str::from_utf8(&var.bytes).is_ok_and(ends)
}

/// As the standard library's, which in a component looks at four bytes at once: here it is 32 between two looks at the time.
fn is_ascii(bytes: &[u8]) -> bool {
    const HIGH: u64 = (u64::MAX / 255) << 7;
    let (blocks, rest) = bytes.as_chunks::<32>();
    let is_plain = |block: &[u8; 32]| {
        let (words, _) = block.as_chunks::<8>();
        let bits = |all: u64, word: &[u8; 8]| all | u64::from_ne_bytes(*word);
        words.iter().fold(0u64, bits) & HIGH == 0
    };
    blocks.iter().all(is_plain) && rest.is_ascii()
}

impl Data {
    fn begin(nulls: usize, first: ValueRef<'_>, room: Room) -> Data {
        let filled = |kind| {
            let mut column = ColumnBuilder::with_capacity(kind, room.rows, room.bytes);
            (0..nulls).for_each(|_| column.null());
            column
        };
        match first {
            ValueRef::Null => Data::Nulls(nulls),
            ValueRef::Integer(_) => Data::Integers(filled(ColumnType::Int64)),
            ValueRef::Real(_) => Data::Reals(filled(ColumnType::Float64)),
            ValueRef::Text(_) => Data::Text(filled(ColumnType::Text)),
            ValueRef::Blob(_) => Data::Blobs(filled(ColumnType::Bytes)),
        }
    }

    fn scalars(self) -> Vec<Scalar> {
        match self {
            Data::Nulls(nulls) => (0..nulls).map(|_| Scalar::Null).collect(),
            Data::Integers(column) => scalars(&column.finish(), Storage::Integers),
            Data::Reals(column) => scalars(&column.finish(), Storage::Reals),
            Data::Text(column) => scalars(&column.finish(), Storage::Text),
            Data::Blobs(column) => scalars(&column.finish(), Storage::Blobs),
            Data::Mixed(values) => values,
        }
    }
}

fn integers(declared: Declared, chunk: Chunk) -> Result<(ColumnType, Chunk), Error> {
    let ColumnData::I64s(values) = &chunk.data else {
        return Ok((ColumnType::Int64, chunk));
    };
    match declared {
        Declared::Boolean if values.iter().fold(0i64, |all, value| all | value) & !1 == 0 => {
            let eight = |values: &[i64]| {
                let bits = values.iter().enumerate();
                bits.fold(0u8, |bits, (at, value)| bits | ((*value as u8) << at))
            };
            let (eights, rest) = values.as_chunks::<8>();
            let mut bits: Vec<u8> = eights.iter().map(|values| eight(values)).collect();
            if !rest.is_empty() {
                bits.push(eight(rest));
            }
            Ok((
                ColumnType::Boolean,
                Chunk {
                    validity: chunk.validity,
                    data: ColumnData::Bits(bits),
                },
            ))
        }
        Declared::Decimal => decimals(&scalars(&chunk, Storage::Integers)),
        _ => Ok((ColumnType::Int64, chunk)),
    }
}

/// Text of a declared type becomes that type if every value reads as one.
fn text(declared: Declared, chunk: Chunk) -> (ColumnType, Chunk) {
    let (kind, data) = {
        let ColumnData::VarLen(var) = &chunk.data else {
            return (ColumnType::Text, chunk);
        };
        let valid = |row: usize| {
            chunk
                .validity
                .as_ref()
                .is_none_or(|bits| bits[row >> 3] >> (row & 7) & 1 == 1)
        };
        match declared {
            Declared::Date => (
                ColumnType::Date,
                every(var, valid, dates::date).map(ColumnData::I32s),
            ),
            Declared::Time => (
                ColumnType::Time,
                every(var, valid, dates::time).map(ColumnData::I64s),
            ),
            // All without a zone, or all with one: a mixture stays as it is written.
            Declared::Timestamp => match every(var, valid, dates::local_timestamp) {
                Some(values) => (ColumnType::LocalTimestamp, Some(ColumnData::I64s(values))),
                None => (
                    ColumnType::Timestamp,
                    every(var, valid, dates::timestamp).map(ColumnData::I64s),
                ),
            },
            Declared::ZonedTimestamp => {
                let either =
                    |text: &[u8]| dates::timestamp(text).or_else(|| dates::local_timestamp(text));
                (
                    ColumnType::Timestamp,
                    every(var, valid, either).map(ColumnData::I64s),
                )
            }
            Declared::Json => {
                let json = every(var, valid, |text| {
                    serde_json::from_slice::<IgnoredAny>(text).ok().map(|_| ())
                });
                return if json.is_some() {
                    (ColumnType::Json, chunk)
                } else {
                    (ColumnType::Text, chunk)
                };
            }
            _ => return (ColumnType::Text, chunk),
        }
    };
    match data {
        Some(data) => (
            kind,
            Chunk {
                validity: chunk.validity,
                data,
            },
        ),
        None => (ColumnType::Text, chunk),
    }
}

/// All values parsed (a NULL as the type's default), or nothing if one does not parse.
fn every<T: Default>(
    var: &VarLen,
    valid: impl Fn(usize) -> bool,
    parse: impl Fn(&[u8]) -> Option<T>,
) -> Option<Vec<T>> {
    pieces(var)
        .enumerate()
        .map(|(row, text)| {
            if valid(row) {
                parse(text)
            } else {
                Some(T::default())
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ValueRef::{Blob, Integer, Null, Real, Text};

    fn column(declared: &str, values: &[ValueRef<'_>]) -> (ColumnType, Chunk) {
        let mut series = Series::new(Declared::parse(Some(declared)), Room::default());
        for value in values {
            series.push(*value).unwrap();
        }
        series.finish().unwrap()
    }

    fn texts(chunk: &Chunk) -> Vec<&str> {
        let ColumnData::VarLen(var) = &chunk.data else {
            panic!("{:?}", chunk.data)
        };
        pieces(var)
            .map(|bytes| std::str::from_utf8(bytes).unwrap())
            .collect()
    }

    #[test]
    fn uniform_values_keep_their_type() {
        assert_eq!(
            column("", &[Null, Integer(i64::MIN), Integer(2)]).1.data,
            ColumnData::I64s(vec![0, i64::MIN, 2])
        );
        assert_eq!(
            column("INTEGER", &[Real(0.5)]),
            (
                ColumnType::Float64,
                Chunk {
                    validity: None,
                    data: ColumnData::F64s(vec![0.5])
                }
            )
        );
        assert_eq!(
            column("TEXT", &[Text(b"a\0b"), Null]).1.validity,
            Some(vec![1])
        );
        assert_eq!(column("", &[Blob(b"\xff")]).0, ColumnType::Bytes);
    }

    /// Integers among reals never lose a digit: past 2^53 the column becomes decimal.
    #[test]
    fn mixed_numbers_stay_exact() {
        let (kind, chunk) = column("REAL", &[Integer(1 << 53), Real(0.5), Null]);
        assert_eq!(
            (kind, chunk.data),
            (
                ColumnType::Float64,
                ColumnData::F64s(vec![9007199254740992.0, 0.5, 0.0])
            )
        );
        let (kind, chunk) = column(
            "REAL",
            &[
                Integer((1 << 53) + 1),
                Real(0.1),
                Real(f64::INFINITY),
                Real(1e21),
            ],
        );
        assert_eq!(kind, ColumnType::Decimal);
        assert_eq!(
            texts(&chunk),
            [
                "9007199254740993",
                "0.1",
                "Infinity",
                "1000000000000000000000"
            ]
        );
    }

    #[test]
    fn a_decimal_column_is_decimal_whatever_it_holds() {
        for values in [
            &[Integer(1)][..],
            &[Real(2.5)],
            &[Integer(1), Real(2.5)],
            &[],
        ] {
            assert_eq!(column("DECIMAL(10,2)", values).0, ColumnType::Decimal);
        }
    }

    /// Text beside numbers or blobs keeps its type as a JSON value.
    #[test]
    fn other_mixtures_are_json() {
        let (kind, chunk) = column(
            "",
            &[
                Integer(1),
                Text(b"1\""),
                Null,
                Real(0.5),
                Blob(b"\x00\xff"),
                Real(f64::NEG_INFINITY),
            ],
        );
        assert_eq!(kind, ColumnType::Json);
        assert_eq!(
            texts(&chunk),
            [
                "1",
                "\"1\\\"\"",
                "",
                "0.5",
                "{\"base64\":\"AP8=\"}",
                "\"-Infinity\""
            ]
        );
        assert_eq!(chunk.validity, Some(vec![0b111011]));
    }

    #[test]
    fn text_that_is_not_utf8_is_bytes() {
        assert_eq!(column("TEXT", &[Text(b"\xff")]).0, ColumnType::Bytes);
        assert_eq!(
            texts(&column("TEXT", &[Text(b"a"), Text(b"\xff")]).1),
            ["\"a\"", "{\"base64\":\"/w==\"}"]
        );
    }

    #[test]
    fn declared_types_hold_only_if_every_value_fits() {
        assert_eq!(
            column("BOOLEAN", &[Integer(1), Null, Integer(0), Integer(1)])
                .1
                .data,
            ColumnData::Bits(vec![0b1001])
        );
        assert_eq!(column("BOOLEAN", &[Integer(2)]).0, ColumnType::Int64);
        assert_eq!(
            column("DATE", &[Text(b"1970-01-02"), Null]).1.data,
            ColumnData::I32s(vec![1, 0])
        );
        assert_eq!(
            column("DATE", &[Text(b"1970-01-02"), Text(b"soon")]).0,
            ColumnType::Text
        );
        assert_eq!(column("DATE", &[Integer(5)]).0, ColumnType::Int64);
        assert_eq!(
            column("timestamp with time zone", &[Text(b"1970-01-01 00:00:01")])
                .1
                .data,
            ColumnData::I64s(vec![1_000_000])
        );
        for declared in ["DATETIME", "timestamp", "TIMESTAMP(3)"] {
            let of = |texts: &[ValueRef<'_>]| column(declared, texts);
            let local = of(&[Text(b"1970-01-01 00:00:01"), Null]);
            assert_eq!(local.0, ColumnType::LocalTimestamp, "{declared}");
            assert_eq!(local.1.data, ColumnData::I64s(vec![1_000_000, 0]));
            let moment = of(&[Text(b"1970-01-01T00:00:01Z"), Null]);
            assert_eq!(moment.0, ColumnType::Timestamp, "{declared}");
            assert_eq!(moment.1.data, ColumnData::I64s(vec![1_000_000, 0]));
            let mixed = [Text(b"1970-01-01 00:00:01"), Text(b"1970-01-01 00:00:01Z")];
            assert_eq!(of(&mixed).0, ColumnType::Text, "{declared}");
        }
        for declared in ["TIMESTAMPTZ", "TIMESTAMP(3) with time zone"] {
            let both = [Text(b"1970-01-01 00:00:01"), Text(b"1970-01-01 00:00:01Z")];
            assert_eq!(column(declared, &both).0, ColumnType::Timestamp);
        }
        assert_eq!(
            column("JSON", &[Text(b"{}"), Text(b"[1]")]).0,
            ColumnType::Json
        );
        assert_eq!(
            column("JSON", &[Text(b"{}"), Text(b"{")]).0,
            ColumnType::Text
        );
    }

    /// Past eight values and past 32 bytes, where they are looked at together.
    #[test]
    fn long_columns_are_looked_at_to_their_end() {
        let mut values: Vec<ValueRef<'_>> = (0..19).map(|row| Integer(row % 3 % 2)).collect();
        let bits = vec![0b1001_0010, 0b0010_0100, 0b001];
        let (kind, chunk) = column("BOOLEAN", &values);
        assert_eq!(
            (kind, chunk.data),
            (ColumnType::Boolean, ColumnData::Bits(bits))
        );
        for (row, other) in [(18, -1), (0, 2), (9, 256)] {
            let was = std::mem::replace(&mut values[row], Integer(other));
            assert_eq!(column("BOOLEAN", &values).0, ColumnType::Int64, "{other}");
            values[row] = was;
        }
        for at in 0..70 {
            let mut long = [b'a'; 70];
            assert!(is_ascii(&long));
            long[at] = 0xff;
            assert!(!is_ascii(&long), "{at}");
            assert_eq!(column("TEXT", &[Text(&long)]).0, ColumnType::Bytes, "{at}");
        }
    }

    #[test]
    fn without_values_the_declaration_decides() {
        assert_eq!(column("BIGINT", &[Null]).0, ColumnType::Int64);
        assert_eq!(column("DATETIME", &[]).0, ColumnType::LocalTimestamp);
        assert_eq!(column("TIMESTAMPTZ", &[]).0, ColumnType::Timestamp);
        assert_eq!(
            Series::new(Declared::Nothing, Room::default())
                .finish()
                .unwrap()
                .0,
            ColumnType::Text
        );
    }
}
