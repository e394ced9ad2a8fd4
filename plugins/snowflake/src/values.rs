//! A cell of a result as a value of a column. Snowflake writes each as a text: dates and times by the formats that were asked for, or, where
//! it keeps to its own, as numbers since 1970 (`18262`, `1616173619.000000001 1440`). Both are read.

use souk_sdk::json::{Kind, Place, Written, float as float_of, is_decimal, whole};
use souk_sdk::time::{DAY_US, DAYS, Date, MOMENTS, parse_iso8601, parse_rfc3339};
use souk_sdk::{ColumnBuilder, Error};

use crate::documents::{document, document_or_text};
use crate::errors::{malformed, unreadable};
use crate::rows::text_of;
use crate::types::Type;

const SECOND_US: i64 = 1_000_000;
const MICROS_DIGITS: usize = 6;
/// Minutes east of Greenwich, and a day of them more.
const ZONES: std::ops::RangeInclusive<i64> = 0..=2_880;

impl Kind for Type {
    /// Every value is a text, of what is nested as well.
    fn is_raw(&self) -> bool {
        false
    }

    /// An answer's own bound is that of its values, too.
    fn push(&self, cell: Written<'_>, into: &mut Place<'_>) -> Result<(), Error> {
        let mut digits = String::new();
        let text = text_of(cell, &mut digits).map_err(unreadable)?;
        push(*self, text, into.column)
    }

    fn malformed() -> Error {
        malformed()
    }
}

/// Appends a cell. (Where it is called it is a part of who calls: with the place for its error it has five arguments, of which a component has room
/// for four in registers.)
#[inline(always)]
pub fn push(kind: Type, cell: Option<&str>, into: &mut ColumnBuilder) -> Result<(), Error> {
    let Some(text) = cell else {
        into.null();
        return Ok(());
    };
    match kind {
        Type::Boolean => into.boolean(boolean(text)?),
        Type::Int64 => into.i64(whole(text).ok_or_else(malformed)?),
        Type::Decimal => into.var(decimal(text)?.as_bytes()),
        Type::Float => into.f64(float(text)?),
        Type::Text => into.var(text.as_bytes()),
        Type::Bytes => into.var_with(|out| bytes(text, out)),
        Type::Date => into.i32(days(text)?),
        Type::Time => into.i64(time(text)?),
        Type::Clock => into.i64(clock(text)?),
        Type::Moment => into.i64(moment(text)?),
        Type::Json => into.var(document(text).ok_or_else(malformed)?.as_bytes()),
        Type::Loose => into.var(document_or_text(text).as_bytes()),
    }
}

fn boolean(text: &str) -> Result<bool, Error> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(malformed()),
    }
}

/// `inf`, `-inf` and `NaN` are numbers, too; digits that are too many for one are not.
fn float(text: &str) -> Result<f64, Error> {
    match float_of(text) {
        Ok(value) if value.is_infinite() && !text.contains('n') => Err(malformed()),
        Ok(value) => Ok(value),
        Err(_) => Err(malformed()),
    }
}

/// Digits, as they were sent.
fn decimal(text: &str) -> Result<&str, Error> {
    match is_decimal(text) {
        true => Ok(text),
        false => Err(malformed()),
    }
}

fn bytes(text: &str, out: &mut Vec<u8>) -> Result<(), Error> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    for pair in pairs {
        let (Some(high), Some(low)) = (digit(pair[0]), pair.get(1).and_then(|byte| digit(*byte)))
        else {
            return Err(malformed());
        };
        // Two digits of sixteen.
        out.push((high << 4 | low) as u8);
    }
    Ok(())
}

/// Days since 1970.
fn days(text: &str) -> Result<i32, Error> {
    let days = match text.parse::<i64>() {
        Ok(days) => days,
        Err(_) => Date::parse(text).ok_or_else(malformed)?.days(),
    };
    match DAYS.contains(&days) {
        true => Ok(days as i32),
        false => Err(malformed()),
    }
}

/// Microseconds since midnight.
fn time(text: &str) -> Result<i64, Error> {
    let micros = match text.contains(':') {
        true => clock(&format!("1970-01-01T{text}"))?,
        false => micros(text)?,
    };
    match (0..DAY_US).contains(&micros) {
        true => Ok(micros),
        false => Err(malformed()),
    }
}

/// Microseconds since 1970 on a clock of no zone.
fn clock(text: &str) -> Result<i64, Error> {
    match text.contains(':') {
        true => {
            fits_micros(text)?;
            parse_iso8601(text).ok_or_else(malformed)
        }
        false => micros(text),
    }
}

/// Microseconds since 1970. A zone beside them says what a clock showed, and nothing more of when it was.
fn moment(text: &str) -> Result<i64, Error> {
    if text.contains(':') {
        fits_micros(text)?;
        return parse_rfc3339(text).ok_or_else(malformed);
    }
    match text.split_once(' ') {
        None => micros(text),
        Some((seconds, zone)) => match zone.parse::<i64>() {
            Ok(zone) if ZONES.contains(&zone) => micros(seconds),
            _ => Err(malformed()),
        },
    }
}

/// Of seconds with a fraction, of years that a column has: `1616173619.000001`, `-0.5`.
fn micros(text: &str) -> Result<i64, Error> {
    if !is_decimal(text) {
        return Err(malformed());
    }
    fits_micros(text)?;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let kept = &fraction[..fraction.len().min(MICROS_DIGITS)];
    let scale = 10_i64.pow((MICROS_DIGITS - kept.len()) as u32);
    let number = |text: &str| text.parse::<i64>().ok();
    number(whole)
        .and_then(|seconds| seconds.checked_mul(SECOND_US))
        .and_then(|micros| micros.checked_add(number(kept)? * scale))
        .map(|micros| sign * micros)
        .filter(|micros| MOMENTS.contains(micros))
        .ok_or_else(malformed)
}

/// A column keeps microseconds: no digit that says something is cut off.
fn fits_micros(text: &str) -> Result<(), Error> {
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit);
    match digits.skip(MICROS_DIGITS).all(|digit| digit == b'0') {
        true => Ok(()),
        false => Err(Error::source_failed(
            "finer_than_microseconds",
            "the result has a time that is finer than microseconds: write …::TIMESTAMP_NTZ(6), …::TIME(6) or TO_VARCHAR(…)",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::{ColumnData, ColumnType};

    fn micros_of(kind: Type, text: &str) -> Result<i64, Error> {
        let column = match kind {
            Type::Time => ColumnType::Time,
            Type::Clock => ColumnType::LocalTimestamp,
            _ => ColumnType::Timestamp,
        };
        let mut builder = ColumnBuilder::new(column);
        push(kind, Some(text), &mut builder)?;
        match builder.finish().data {
            ColumnData::I64s(values) => Ok(values[0]),
            other => panic!("{other:?}"),
        }
    }

    /// As numbers, and by the formats that are asked for.
    #[test]
    fn times_are_exact_however_they_are_written() {
        for (kind, text, wanted) in [
            // Of Snowflake's documentation.
            (Type::Time, "82919.000000000", 82_919_000_000),
            (Type::Clock, "1611871777.123456000", 1_611_871_777_123_456),
            (Type::Moment, "1611871777.123456", 1_611_871_777_123_456),
            (
                Type::Moment,
                "1616173619.000000000 960",
                1_616_173_619_000_000,
            ),
            (Type::Moment, "-0.000001000", -1),
            (Type::Clock, "-1.5", -1_500_000),
            (Type::Clock, "0", 0),
            (Type::Time, "23:59:59.999999000", DAY_US - 1),
            (
                Type::Clock,
                "2021-01-28T22:09:37.123456000",
                1_611_871_777_123_456,
            ),
            (
                Type::Moment,
                "2021-03-19T10:06:59.000000000-07:00",
                1_616_173_619_000_000,
            ),
            (Type::Moment, "1970-01-01T00:00:00Z", 0),
        ] {
            assert_eq!(micros_of(kind, text).unwrap(), wanted, "{text}");
        }
        for (kind, text) in [
            (Type::Time, "86400.0"),
            (Type::Time, "-1"),
            (Type::Time, "24:00:00"),
            (Type::Clock, ""),
            (Type::Clock, "1616173619000000000000"),
            // Of the year 160413: 64 bits have it, a column has not.
            (Type::Clock, "5000000000000"),
            (Type::Moment, "-5000000000000 1440"),
            (Type::Clock, "1616173619 1440"),
            (Type::Clock, "1e9"),
            (Type::Clock, "2021-01-28T22:09:37Z"),
            (Type::Moment, "2021-01-28T22:09:37"),
            (Type::Moment, "1 x"),
            (Type::Moment, "1 2881"),
            (Type::Moment, "1.5.5 1440"),
        ] {
            let error = micros_of(kind, text).unwrap_err();
            assert_eq!(error.code, "malformed_answer", "{text}");
        }
    }

    #[test]
    fn no_digit_is_cut_off() {
        for (kind, text) in [
            (Type::Time, "0.0000001"),
            (Type::Clock, "2021-01-28T22:09:37.123456789"),
            (Type::Moment, "1611871777.123456789 1440"),
            (Type::Moment, "2021-01-28T22:09:37.123456789+00:00"),
        ] {
            let error = micros_of(kind, text).unwrap_err();
            assert_eq!(error.code, "finer_than_microseconds", "{text}");
        }
    }

    #[test]
    fn days_are_read_both_ways() {
        assert_eq!(days("18262").unwrap(), 18_262);
        assert_eq!(days("-1").unwrap(), -1);
        assert_eq!(days("2020-01-01").unwrap(), 18_262);
        for text in [
            "",
            "x",
            "99999999999",
            "35804722",
            "2020-02-30",
            "2020-01-01T00:00:00",
        ] {
            assert!(days(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_are_sixteens() {
        let mut out = Vec::new();
        bytes("DEadBE00", &mut out).unwrap();
        assert_eq!(out, [0xde, 0xad, 0xbe, 0]);
        for text in ["A", "0g", "é"] {
            assert!(bytes(text, &mut out).is_err(), "{text}");
        }
    }
}
