//! How values of the protocol's binary rows become columns.
//!
//! - Integers are int64, but for the unsigned ones of 64 bits, which are decimal. `TINYINT(1)` is an integer too: it holds what it likes.
//! - `BIT(1)` is boolean, a longer `BIT` a number (of 64 bits decimal).
//! - `TIMESTAMP` is a moment in UTC (the session's zone is UTC), `DATETIME` what a clock showed, without a zone. What is in no
//!   calendar, `0000-00-00` and `2024-02-00` among it, is NULL.
//! - `TIME` is a span of up to 838 hours, not a time of day: it is text, as the server writes it.
//! - `FLOAT` becomes the number with its own shortest digits: 0.1, not 0.10000000149011612.
//! - MariaDB's JSON is `LONGTEXT`, hence text. What has the character set `binary` is bytes.

use crate::dates::{Span, date, moment};
use crate::protocol::{Reader, malformed};
use souk_sdk::json::{is_decimal, is_document};
use souk_sdk::numbers::widened;
use souk_sdk::{ColumnBuilder, ColumnType, Error};
use std::io::Write;

/// How a value of one type is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    Text,
    Json,
    Bytes,
    Decimal,
    Date,
    Moment,
    /// Without a zone.
    LocalMoment,
    /// With so many digits after the point.
    Time(u8),
    /// So many bits of a table or a view.
    Bits(u8),
    /// So many, which a statement has made of a column's.
    ComputedBits(u8),
    /// An integer of so many bytes that stands for true or false.
    Flag(u8),
    /// Never has a value.
    Null,
}

impl Reading {
    pub fn column_type(self) -> ColumnType {
        match self {
            Reading::I8
            | Reading::U8
            | Reading::I16
            | Reading::U16
            | Reading::I32
            | Reading::U32
            | Reading::I64
            | Reading::Bits(2..=63)
            | Reading::ComputedBits(2..=63) => ColumnType::Int64,
            Reading::U64 | Reading::Decimal => ColumnType::Decimal,
            Reading::F32 | Reading::F64 => ColumnType::Float64,
            Reading::Text | Reading::Time(_) | Reading::Null => ColumnType::Text,
            Reading::Json => ColumnType::Json,
            Reading::Bytes => ColumnType::Bytes,
            Reading::Date => ColumnType::Date,
            Reading::Moment => ColumnType::Timestamp,
            Reading::LocalMoment => ColumnType::LocalTimestamp,
            Reading::Bits(0..=1) | Reading::ComputedBits(0..=1) | Reading::Flag(_) => {
                ColumnType::Boolean
            }
            Reading::Bits(_) | Reading::ComputedBits(_) => ColumnType::Decimal,
        }
    }

    /// The same value as true or false, where it is an integer.
    pub fn as_flag(self) -> Reading {
        match self {
            Reading::I8 | Reading::U8 => Reading::Flag(1),
            Reading::I16 | Reading::U16 => Reading::Flag(2),
            Reading::I32 | Reading::U32 => Reading::Flag(4),
            Reading::I64 | Reading::U64 => Reading::Flag(8),
            other => other,
        }
    }

    /// Appends the next value of a row.
    #[inline]
    pub fn push(self, row: &mut Reader<'_>, into: &mut ColumnBuilder) -> Result<(), Error> {
        match self {
            Reading::I32 => into.i64(i64::from(i32::from_le_bytes(row.array()?))),
            Reading::I64 => into.i64(i64::from_le_bytes(row.array()?)),
            Reading::Text => {
                let value = row.sized()?;
                match std::str::from_utf8(value) {
                    Ok(_) => into.var(value),
                    Err(_) => Err(broken_text()),
                }
            }
            Reading::Bytes => into.var(row.sized()?),
            Reading::F64 => into.f64(f64::from_le_bytes(row.array()?)),
            Reading::Decimal => decimal(row.sized()?, into),
            Reading::Moment | Reading::LocalMoment => match moment(row)? {
                Some(value) => into.i64(value),
                None => {
                    into.null();
                    Ok(())
                }
            },
            Reading::Date => match date(row)? {
                Some(value) => into.i32(value),
                None => {
                    into.null();
                    Ok(())
                }
            },
            Reading::U32 => into.i64(i64::from(row.u32()?)),
            Reading::I16 => into.i64(i64::from(i16::from_le_bytes(row.array()?))),
            Reading::U16 => into.i64(i64::from(row.u16()?)),
            Reading::I8 => into.i64(i64::from(i8::from_le_bytes(row.array()?))),
            Reading::U8 => into.i64(i64::from(row.u8()?)),
            Reading::U64 => unsigned(u64::from_le_bytes(row.array()?), into),
            Reading::F32 => into.f64(widened(f32::from_le_bytes(row.array()?))),
            Reading::Time(decimals) => {
                let value = Span::read(row)?;
                into.var_with(|out| {
                    value.write(decimals, out);
                    Ok(())
                })
            }
            Reading::Bits(length) | Reading::ComputedBits(length) => {
                let is_of_table = matches!(self, Reading::Bits(_));
                let value = bits_or_digits(row.sized()?, length, is_of_table)?;
                match length {
                    0..=1 => into.boolean(value != 0),
                    2..=63 => into.i64(value as i64),
                    _ => unsigned(value, into),
                }
            }
            Reading::Json => into.var(document(row.sized()?)?),
            Reading::Flag(bytes) => {
                let value = row.take(usize::from(bytes))?;
                into.boolean(value.iter().any(|byte| *byte != 0))
            }
            Reading::Null => Err(malformed()),
        }
    }
}

fn unsigned(value: u64, into: &mut ColumnBuilder) -> Result<(), Error> {
    into.var_with(|out| {
        // A Vec takes everything.
        let _ = write!(out, "{value}");
        Ok(())
    })
}

/// The digits as the server sent them, without those that ZEROFILL put in front. What is no number a column would not take.
fn decimal(value: &[u8], into: &mut ColumnBuilder) -> Result<(), Error> {
    if is_decimal(value) {
        return into.var(value);
    }
    let mut mended = Vec::new();
    let number = match value {
        [b'0', b'0'..=b'9', ..] => {
            let zeros = value.iter().take_while(|byte| **byte == b'0').count();
            let is_digit = value.get(zeros).is_some_and(u8::is_ascii_digit);
            &value[zeros - usize::from(!is_digit)..]
        }
        // MariaDB leaves the zero before the point out where there is no room for it.
        [b'.', ..] => {
            mended.push(b'0');
            mended.extend_from_slice(value);
            mended.as_slice()
        }
        _ => return Err(malformed()),
    };
    match is_decimal(number) {
        true => into.var(number),
        false => Err(malformed()),
    }
}

/// A document. That the server calls it one is not enough for who reads it.
fn document(value: &[u8]) -> Result<&[u8], Error> {
    let text = std::str::from_utf8(value).map_err(|_| broken_text())?;
    match is_document(text) {
        true => Ok(value),
        false => Err(broken_json()),
    }
}

/// What so many bits stand for. Of a table they come as they are, zeros before them as well. What a statement has made of others (`COALESCE(b, c)`, `MAX(b)`)
/// servers call bits, too, and mostly write as digits, some of MySQL's functions as bits, and these where they had a byte that is no character of its
/// own as something else (`IF(…, b, c)`); a view of MySQL's that computes looks like a table.
fn bits_or_digits(value: &[u8], length: u8, is_of_table: bool) -> Result<u64, Error> {
    let bytes = usize::from(length).div_ceil(8).max(1);
    let is_whole = value.len() == bytes;
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return match value.len() <= bytes {
            true => bits(value),
            false => Err(unclear_bits()),
        };
    }
    // The first byte of five bits, or thirteen, is below that of a digit.
    let are_digits = value.len() > bytes || is_whole && matches!(length % 8, 1..=5);
    match (are_digits, is_of_table) {
        (false, true) if is_whole => bits(value),
        (false, false) => Err(unclear_bits()),
        _ => {
            let digits = std::str::from_utf8(value).ok();
            digits
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(malformed)
        }
    }
}

#[cold]
fn unclear_bits() -> Error {
    Error::source_failed(
        "unclear_bits",
        "the statement computes a BIT of which the database does not say how it is written: select it as CAST(… AS UNSIGNED)",
    )
}

fn bits(value: &[u8]) -> Result<u64, Error> {
    if value.len() > 8 {
        return Err(malformed());
    }
    Ok(value
        .iter()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

#[cold]
fn broken_json() -> Error {
    Error::source_failed(
        "broken_json",
        "a value of the result is called JSON, and is none: select it as CAST(… AS CHAR)",
    )
}

#[cold]
fn broken_text() -> Error {
    Error::source_failed(
        "invalid_text",
        "a text in the result is not valid UTF-8: the database holds broken characters",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol;
    use crate::types::{Definition, id};
    use souk_sdk::ColumnData;
    use souk_sdk::time::DAY_US;

    fn read(reading: Reading, bytes: &[u8]) -> Result<String, Error> {
        let mut column = ColumnBuilder::new(reading.column_type());
        let mut reader = Reader(bytes);
        reading.push(&mut reader, &mut column)?;
        assert!(reader.0.is_empty(), "{reading:?} {bytes:?}");
        let chunk = column.finish();
        if chunk.validity.is_some() {
            return Ok("NULL".into());
        }
        Ok(match chunk.data {
            ColumnData::Bits(bits) => (bits[0] == 1).to_string(),
            ColumnData::I32s(values) => values[0].to_string(),
            ColumnData::I64s(values) => values[0].to_string(),
            ColumnData::F64s(values) => format!("{:?}", values[0]),
            ColumnData::VarLen(values) => String::from_utf8(values.bytes).unwrap(),
        })
    }

    #[test]
    fn numbers_are_exact() {
        let value = |reading, bytes: &[u8]| read(reading, bytes).unwrap();
        assert_eq!(value(Reading::U64, &[0xff; 8]), u64::MAX.to_string());
        assert_eq!(value(Reading::I64, &[0xff; 8]), "-1");
        assert_eq!(value(Reading::U32, &[0xff; 4]), u32::MAX.to_string());
        assert_eq!(value(Reading::U8, &[0xff]), "255");
        assert_eq!(value(Reading::I8, &[0x80]), "-128");
        assert_eq!(value(Reading::F32, &0.1f32.to_le_bytes()), "0.1");
        assert_eq!(
            value(Reading::F32, &16_777_216f32.to_le_bytes()),
            "16777216.0"
        );
        for (single, told) in [
            (1e38f32, "1e38"),
            (f32::MAX, "3.4028235e38"),
            (123_456_792f32, "123456790.0"),
        ] {
            assert_eq!(value(Reading::F32, &single.to_le_bytes()), told);
        }
        assert_eq!(value(Reading::Decimal, b"\x07-12.340"), "-12.340");
        assert_eq!(value(Reading::Decimal, b"\x0800012.30"), "12.30");
        assert_eq!(value(Reading::Decimal, b"\x0500.30"), "0.30");
        assert_eq!(value(Reading::Decimal, b"\x03000"), "0");
        assert_eq!(value(Reading::Decimal, b"\x03.30"), "0.30");
        assert_eq!(value(Reading::Bits(1), &[1, 1]), "true");
        assert_eq!(value(Reading::Bits(9), &[2, 1, 2]), "258");
        assert_eq!(value(Reading::Bits(16), b"\x0210"), "12592");
        assert_eq!(value(Reading::Bits(8), b"\x015"), "53");
        // A view of MySQL's that has computed them.
        assert_eq!(value(Reading::Bits(1), b"\x010"), "false");
        assert_eq!(value(Reading::Bits(9), b"\x0210"), "10");
        assert_eq!(value(Reading::Bits(9), b"\x017"), "7");
        assert_eq!(value(Reading::Bits(16), b"\x03125"), "125");
        assert_eq!(
            value(
                Reading::Bits(64),
                &[8, 255, 255, 255, 255, 255, 255, 255, 255]
            ),
            u64::MAX.to_string()
        );
        assert!(read(Reading::Bits(64), &[9; 10]).is_err());
        // As `CASE` of MySQL writes them, and as everything else does.
        for (length, bytes, told) in [
            (1, &[1, 0][..], "false"),
            (1, &[1, 1], "true"),
            (1, b"\x010", "false"),
            (1, b"\x011", "true"),
            (5, &[1, 31], "31"),
            (5, b"\x017", "7"),
            (5, b"\x0231", "31"),
            (8, b"\x0253", "53"),
            (8, &[1, 200], "200"),
            (20, &[3, 0, 4, 210], "1234"),
            (64, b"\x1418446744073709551615", "18446744073709551615"),
        ] {
            assert_eq!(
                value(Reading::ComputedBits(length), bytes),
                told,
                "{bytes:?}"
            );
        }
        assert_eq!(value(Reading::ComputedBits(9), b"\x0253"), "53");
        for (length, bytes) in [
            (8, &b"\x015"[..]),
            (9, b"\x015"),
            (16, b"\x0253"),
            // 500 of nine bits, of which `IF` has taken the last eight for a character.
            (9, b"\x03\x01\xc3\xb4"),
        ] {
            let unclear = read(Reading::ComputedBits(length), bytes).unwrap_err();
            assert_eq!(unclear.code, "unclear_bits", "{bytes:?}");
        }
        assert!(read(Reading::ComputedBits(8), b"\x02-1").is_err());
        assert!(read(Reading::ComputedBits(64), b"\x1418446744073709551616").is_err());
    }

    /// A day that no calendar has is NULL.
    #[test]
    fn days_are_days() {
        let value = |reading, bytes: &[u8]| read(reading, bytes).unwrap();
        assert_eq!(value(Reading::Date, &[4, 0xb2, 7, 1, 1]), "0");
        assert_eq!(value(Reading::Date, &[4, 0xe8, 7, 2, 29]), "19782");
        for zero in [
            &[0][..],
            &[4, 0, 0, 0, 0],
            &[4, 0xe7, 7, 2, 29],
            &[4, 0xe8, 7, 0, 0],
        ] {
            assert_eq!(value(Reading::Date, zero), "NULL");
        }
        assert_eq!(value(Reading::Moment, &[0]), "NULL");
        assert_eq!(
            value(Reading::Moment, &[4, 0xb2, 7, 1, 2]),
            DAY_US.to_string()
        );
        let long = [11, 0xb2, 7, 1, 1, 0, 0, 1, 1, 0, 0, 0];
        assert_eq!(value(Reading::Moment, &long), "1000001");
        assert!(read(Reading::Moment, &[7, 0xb2, 7, 1, 1, 24, 0, 0]).is_err());
        assert!(read(Reading::Moment, &[5, 0xb2, 7, 1, 1, 0]).is_err());
    }

    /// A span is written as the server writes it.
    #[test]
    fn spans_are_texts() {
        let value = |decimals, bytes: &[u8]| read(Reading::Time(decimals), bytes).unwrap();
        assert_eq!(value(0, &[0]), "00:00:00");
        assert_eq!(value(3, &[0]), "00:00:00.000");
        let longest = [12, 1, 34, 0, 0, 0, 22, 59, 59, 0x40, 0x42, 0x0f, 0];
        assert!(read(Reading::Time(6), &longest).is_err());
        let longest = [8, 1, 34, 0, 0, 0, 22, 59, 59];
        assert_eq!(value(0, &longest), "-838:59:59");
        let short = [12, 0, 0, 0, 0, 0, 1, 2, 3, 0x20, 0xa1, 7, 0];
        assert_eq!(value(1, &short), "01:02:03.5");
        assert_eq!(value(6, &short), "01:02:03.500000");
    }

    /// A column `c` that may be NULL, as MySQL describes what it has a type of its own for.
    fn definition(kind: u8, length: u32) -> Vec<u8> {
        let mut body = Vec::new();
        for text in ["def", "shop", "t", "t", "c", "c"] {
            protocol::sized(&mut body, text.as_bytes());
        }
        let mut rest = protocol::BINARY.to_le_bytes().to_vec();
        rest.extend_from_slice(&length.to_le_bytes());
        rest.push(kind);
        // BLOB and BINARY; no decimals, and two bytes that stand for nothing.
        rest.extend_from_slice(&[144, 0, 0, 0, 0]);
        protocol::sized(&mut body, &rest);
        body
    }

    /// What only MySQL has types of the protocol for: a document is JSON as it was sent, a vector the bytes of its numbers.
    #[test]
    fn documents_and_vectors_have_their_types() {
        let document = br#"{"b": [1, null]}"#;
        let vector = [2f32, 32.0].map(f32::to_le_bytes).concat();
        for (kind, length, column_type, native, value) in [
            (
                id::JSON,
                u32::MAX,
                ColumnType::Json,
                "json",
                document.as_slice(),
            ),
            (
                id::VECTOR,
                8,
                ColumnType::Bytes,
                "vector",
                vector.as_slice(),
            ),
        ] {
            let body = definition(kind, length);
            let definition = Definition::read(&body).unwrap();
            let reading = definition.reading().unwrap();
            assert_eq!(definition.name, b"c");
            assert_eq!(reading.column_type(), column_type);
            assert_eq!(definition.native(), native);
            let mut row = Vec::new();
            protocol::sized(&mut row, value);
            assert_eq!(read(reading, &row).unwrap().as_bytes(), value, "{native}");
        }
        let unknown = definition(243, 8);
        let error = Definition::read(&unknown).unwrap().reading().unwrap_err();
        assert_eq!(error.code, "unsupported");
    }

    /// What no column takes is told of the source, not found by the host: it would end the session and blame the connector.
    #[test]
    fn what_is_broken_is_the_sources() {
        let code = |reading, value: &[u8]| {
            let mut row = Vec::new();
            protocol::sized(&mut row, value);
            read(reading, &row).unwrap_err().code
        };
        assert_eq!(code(Reading::Text, b"\xe4"), "invalid_text");
        assert_eq!(code(Reading::Json, b"\"\xe4\""), "invalid_text");
        for broken in ["", "{", "no", "1 2", "{}]"] {
            assert_eq!(code(Reading::Json, broken.as_bytes()), "broken_json");
        }
        for broken in [
            "", "-", ".", "1.", "-.5", "-00", "00x", "000.", ".x", "+1", "1,5", "1e5", "1 ", "NaN",
        ] {
            let code = code(Reading::Decimal, broken.as_bytes());
            assert_eq!(code, "protocol_error", "{broken}");
        }
    }
}
