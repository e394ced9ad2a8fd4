//! A cell of an answer as a value of a column. The API writes every value as a text.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use souk_sdk::json::{Kind, Place, Written};
use souk_sdk::time::{DAY_US, Date, TimeOfDay};
use souk_sdk::{Error, json};

use crate::answers::malformed;
use crate::types::{Sent, Type, Way};

/// Years that a column has.
const YEAR_MAX: i64 = 99_999;
/// Zeros that a decimal is written out with at most (`0E-38`).
const ZEROS_MAX: u32 = 100;
/// What a document says that is refused.
const DOUBLED: &str = "two members of one name";

impl Kind for Sent {
    /// Every value is a text.
    fn is_raw(&self) -> bool {
        false
    }

    fn push(&self, cell: Written<'_>, into: &mut Place<'_>) -> Result<(), Error> {
        let (room, into) = (into.room, &mut *into.column);
        let text = match cell {
            Written::Null => {
                into.null();
                return Ok(());
            }
            Written::Text(text) => text,
            _ => return Err(malformed()),
        };
        if text.len() > room {
            return Err(Error::limit_exceeded(
                "bytes_limit",
                "a value of the result is larger than is allowed",
            ));
        }
        match (self.kind, self.way) {
            (Type::Boolean, _) => into.boolean(boolean(text)?),
            (Type::Integer, _) => into.i64(integer(text)?),
            (Type::Float, _) => into.f64(float(text)?),
            (Type::Decimal, _) => into.var(decimal(text)?.as_bytes()),
            (Type::Text, _) => into.var(text.as_bytes()),
            (Type::Bytes, _) => into.var(&bytes(text)?),
            (Type::Date, _) => into.i32(days(text)?),
            (Type::Time, _) => into.i64(micros_of_day(text)?),
            (Type::Clock, _) => into.i64(clock(text)?),
            (Type::Moment, Way::Micros) => into.i64(moment(text)?),
            (Type::Json, _) => into.var(document(text)?.as_bytes()),
            // With three digits of a second it is not what it was.
            (Type::Moment, _) => Err(malformed()),
        }
    }

    fn malformed() -> Error {
        malformed()
    }
}

/// A text, or nothing where there is none.
pub fn plain(cell: &RawValue) -> Result<String, Error> {
    match cell.get() {
        "null" => Ok(String::new()),
        _ => json::text(cell).map(Cow::into_owned).ok_or_else(malformed),
    }
}

fn boolean(text: &str) -> Result<bool, Error> {
    text.parse().map_err(|_| malformed())
}

pub fn integer(text: &str) -> Result<i64, Error> {
    json::whole(text).ok_or_else(malformed)
}

/// As Java writes it: `1.0E10`, and three words.
fn float(text: &str) -> Result<f64, Error> {
    match text {
        "NaN" => Ok(f64::NAN),
        "Infinity" => Ok(f64::INFINITY),
        "-Infinity" => Ok(f64::NEG_INFINITY),
        text => match json::float(text) {
            Ok(value) if value.is_finite() => Ok(value),
            _ => Err(malformed()),
        },
    }
}

/// Digits as they were sent; with an exponent (`0E-10`, as Java writes small ones) they are written out.
fn decimal(text: &str) -> Result<Cow<'_, str>, Error> {
    if json::is_decimal(text) {
        return Ok(Cow::Borrowed(text));
    }
    let (digits, exponent) = text.split_once(['E', 'e']).ok_or_else(malformed)?;
    let exponent: i32 = exponent.parse().map_err(|_| malformed())?;
    if !json::is_decimal(digits) || exponent.unsigned_abs() > ZEROS_MAX {
        return Err(malformed());
    }
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole}{fraction}");
    // Where the point stands, counted from the first digit.
    let point = whole.len() as i32 + exponent;
    Ok(Cow::Owned(match usize::try_from(point) {
        Ok(point) if point >= digits.len() => {
            let digits = format!("{digits}{}", "0".repeat(point - digits.len()));
            format!("{sign}{}", without_zeros(&digits))
        }
        Ok(point) if point > 0 => {
            let (whole, fraction) = digits.split_at(point);
            format!("{sign}{}.{fraction}", without_zeros(whole))
        }
        _ => {
            let zeros = "0".repeat(point.unsigned_abs() as usize);
            format!("{sign}0.{zeros}{digits}")
        }
    }))
}

/// A whole number without the zeros before it, but for the last one.
fn without_zeros(digits: &str) -> &str {
    let zeros = digits.bytes().take_while(|byte| *byte == b'0').count();
    &digits[zeros.min(digits.len() - 1)..]
}

/// Base64, in one line or in several.
fn bytes(text: &str) -> Result<Vec<u8>, Error> {
    let decoded = match text.contains(['\r', '\n']) {
        false => STANDARD.decode(text),
        true => STANDARD.decode(text.replace(['\r', '\n'], "")),
    };
    decoded.map_err(|_| malformed())
}

/// `2024-02-29`; years beyond four digits have a sign.
fn date(text: &str) -> Result<Date, Error> {
    let date = Date::parse_expanded(text).ok_or_else(malformed)?;
    match date.year.abs() > YEAR_MAX {
        true => Err(out_of_range()),
        false => Ok(date),
    }
}

fn out_of_range() -> Error {
    Error::source_failed(
        "year_out_of_range",
        "the result has a date of a year beyond 99999: write CAST(… AS STRING)",
    )
}

fn days(text: &str) -> Result<i32, Error> {
    i32::try_from(date(text)?.days()).map_err(|_| malformed())
}

/// Microseconds since midnight: `12:00:00.5`.
fn micros_of_day(text: &str) -> Result<i64, Error> {
    let TimeOfDay(micros) = TimeOfDay::parse(text).ok_or_else(malformed)?;
    Ok(micros)
}

/// Microseconds since 1970 on a clock of no zone: `2024-02-29 12:00:00.5`.
fn clock(text: &str) -> Result<i64, Error> {
    let (day, time) = text.split_once(' ').ok_or_else(malformed)?;
    let time = micros_of_day(time)?;
    // Of years that a column has it fits.
    Ok(date(day)?.days() * DAY_US + time)
}

/// Microseconds since 1970, of years that a column has.
fn moment(text: &str) -> Result<i64, Error> {
    let micros = integer(text)?;
    let year = Date::from_days(micros.div_euclid(DAY_US)).year;
    match year.abs() > YEAR_MAX {
        true => Err(out_of_range()),
        false => Ok(micros),
    }
}

/// A document, none of whose objects says a member twice: who reads it would lose one.
fn document(text: &str) -> Result<&str, Error> {
    match serde_json::from_str::<Distinct>(text) {
        Ok(Distinct) => Ok(text),
        Err(error) if error.to_string().starts_with(DOUBLED) => Err(Error::source_failed(
            "doubled_key",
            "the result has a map or a struct of which two keys are written the same: write map_entries(…), or name its fields apart",
        )),
        Err(_) => Err(malformed()),
    }
}

/// Any value whose objects have each member once.
struct Distinct;

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Distinct, D::Error> {
        from.deserialize_any(Distinct)
    }
}

impl<'de> Visitor<'de> for Distinct {
    type Value = Distinct;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_str<E>(self, _: &str) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_unit<E>(self) -> Result<Distinct, E> {
        Ok(Distinct)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Distinct, A::Error> {
        while list.next_element::<Distinct>()?.is_some() {}
        Ok(Distinct)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Distinct, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = object.next_key::<String>()? {
            if !names.insert(name) {
                return Err(A::Error::custom(DOUBLED));
            }
            object.next_value::<Distinct>()?;
        }
        Ok(Distinct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_keep_their_digits() {
        for (text, wanted) in [
            ("0", "0"),
            ("-12345678901234567890.00100", "-12345678901234567890.00100"),
            ("0E-10", "0.0000000000"),
            ("1.00000000E-30", "0.00000000000000000000000000000100000000"),
            ("-1.5E-2", "-0.015"),
            ("1.25E1", "12.5"),
            ("1.25E+2", "125"),
            ("1E3", "1000"),
            ("0E+5", "0"),
            ("0.0E1", "0"),
            ("0.001E1", "0.01"),
            ("-0.0125E3", "-12.5"),
        ] {
            assert_eq!(decimal(text).unwrap(), wanted, "{text}");
            assert!(json::is_decimal(wanted), "{wanted}");
        }
        for text in [
            "",
            "1E",
            "E1",
            "007",
            "01E1",
            "1E99999999999",
            "1E101",
            "1E-2147483648",
            "NaN",
            "1.2.3",
            "1E1E1",
            "--1",
        ] {
            assert!(decimal(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_read_to_the_microsecond() {
        assert_eq!(clock("1970-01-01 00:00:00").unwrap(), 0);
        assert_eq!(clock("1970-01-02 00:00:00.000001").unwrap(), DAY_US + 1);
        assert_eq!(
            clock("+12024-02-29 12:00:00.5").unwrap() % DAY_US,
            43_200_500_000
        );
        assert!(clock("-0044-02-28 12:00:00.5").unwrap() < 0);
        assert_eq!(days("0001-01-01").unwrap(), -719_162);
        for wrong in [
            "",
            "2024-02-30 00:00:00",
            "2024-02-29T00:00:00",
            "2024-02-29 24:00:00",
            "2024-02-29 00:00:00.0000001",
            "99999999999999999999-01-01 00:00:00",
        ] {
            assert!(clock(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            clock("+100000-01-01 00:00:00").unwrap_err().code,
            "year_out_of_range"
        );
        assert_eq!(moment("1").unwrap(), 1);
        assert_eq!(
            moment(&i64::MAX.to_string()).unwrap_err().code,
            "year_out_of_range"
        );
        assert!(moment("2024-02-29").is_err());
    }

    #[test]
    fn documents_say_each_member_once() {
        for text in [
            "{\"a\":[1,null,{\"b\":1.50}],\"b\":\"x\"}",
            "null",
            "1E-30",
            "[]",
        ] {
            assert_eq!(document(text).ok(), Some(text));
        }
        let code = |text: &str| document(text).unwrap_err().code;
        assert_eq!(code("{\"a\":1,\"b\":{\"c\":1,\"c\":2}}"), "doubled_key");
        assert_eq!(code("[{\"a\":1,\"\\u0061\":1}]"), "doubled_key");
        let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
        for text in ["", "{", "{\"a\"}", "1 2", deep.as_str()] {
            assert_eq!(code(text), "malformed_answer", "{text}");
        }
    }

    #[test]
    fn bytes_may_be_in_lines() {
        assert_eq!(bytes("3q2+7w==").unwrap(), [0xde, 0xad, 0xbe, 0xef]);
        assert_eq!(bytes("3q2+\r\n7w==").unwrap(), [0xde, 0xad, 0xbe, 0xef]);
        assert!(bytes("3q2+7w=").is_err());
    }
}
