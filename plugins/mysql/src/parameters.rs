//! Bound parameters. Each goes with its own type; what the server makes of it is the server's to judge.

use crate::protocol::{self, EXECUTE};
use crate::types::id;
use souk_sdk::time::{DAY_US, Date};
use souk_sdk::{Error, Value};

/// Years that a date of the server's has.
const YEARS: std::ops::RangeInclusive<i64> = 0..=9_999;

/// Digits that the server's decimals have. Of more it would cut some off, and compare another number.
const DIGITS_MAX: usize = 65;

/// Appends the command that runs a prepared statement with these values.
pub fn execute(
    out: &mut Vec<u8>,
    statement: u32,
    wanted: usize,
    values: &[Value],
) -> Result<(), Error> {
    if values.len() != wanted {
        let given = values.len();
        return Err(Error::invalid_request(
            "parameter_count",
            format!("the statement takes {wanted} parameters, {given} were given"),
        ));
    }
    let start = out.len();
    let mut refused = None;
    protocol::message(out, 0, |out| {
        out.push(EXECUTE);
        out.extend_from_slice(&statement.to_le_bytes());
        // No cursor, once.
        out.extend_from_slice(&[0, 1, 0, 0, 0]);
        if values.is_empty() {
            return;
        }
        let nulls = out.len();
        out.resize(nulls + values.len().div_ceil(8), 0);
        // Types follow.
        out.push(1);
        for (i, value) in values.iter().enumerate() {
            out.extend_from_slice(&[type_of(value), 0]);
            if matches!(value, Value::Null(_)) {
                out[nulls + i / 8] |= 1 << (i % 8);
            }
        }
        for (i, value) in values.iter().enumerate() {
            if let Err(wanted) = encode(value, out) {
                let error = Error::invalid_request("parameter_type", format!("must be {wanted}"));
                refused = Some(error.parameter(i));
                return;
            }
        }
    });
    match refused {
        None => Ok(()),
        Some(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

/// What values are called on the wire.
pub fn types(values: &[Value]) -> impl Iterator<Item = u8> {
    values.iter().map(type_of)
}

fn type_of(value: &Value) -> u8 {
    match value {
        Value::Null(_) => id::NULL,
        Value::Boolean(_) => id::TINY,
        Value::Int64(_) => id::LONGLONG,
        Value::Float64(_) => id::DOUBLE,
        Value::Decimal(_) => id::NEWDECIMAL,
        Value::Text(_) | Value::Json(_) => id::VAR_STRING,
        Value::Bytes(_) => id::BLOB,
        Value::Date(_) => id::DATE,
        Value::Time(_) => id::TIME,
        // The session's zone is UTC.
        Value::Timestamp(_) | Value::LocalTimestamp(_) => id::DATETIME,
    }
}

/// Appends one value. The error is what it should have been.
fn encode(value: &Value, out: &mut Vec<u8>) -> Result<(), &'static str> {
    match value {
        Value::Null(_) => {}
        Value::Boolean(value) => out.push(u8::from(*value)),
        Value::Int64(value) => out.extend_from_slice(&value.to_le_bytes()),
        Value::Float64(value) if value.is_finite() => out.extend_from_slice(&value.to_le_bytes()),
        Value::Float64(_) => return Err("a finite number"),
        Value::Decimal(text) if digits(text) > DIGITS_MAX => {
            return Err("a number of at most 65 digits");
        }
        Value::Decimal(text) | Value::Text(text) | Value::Json(text) => {
            protocol::sized(out, text.as_bytes())
        }
        Value::Bytes(bytes) => protocol::sized(out, bytes),
        Value::Date(days) => {
            out.push(4);
            date(i64::from(*days), "a date of the years 0 to 9999", out)?;
        }
        Value::Time(micros) => {
            out.push(12);
            // Not negative, and so many days.
            out.push(0);
            out.extend_from_slice(&((micros / DAY_US) as u32).to_le_bytes());
            clock(micros % DAY_US, out);
        }
        Value::Timestamp(micros) | Value::LocalTimestamp(micros) => {
            out.push(11);
            let wanted = "a timestamp of the years 0 to 9999";
            date(micros.div_euclid(DAY_US), wanted, out)?;
            clock(micros.rem_euclid(DAY_US), out);
        }
    }
    Ok(())
}

fn clock(of_day: i64, out: &mut Vec<u8>) {
    let seconds = of_day / 1_000_000;
    let parts = [seconds / 3_600, seconds / 60 % 60, seconds % 60];
    out.extend(parts.map(|part| part as u8));
    out.extend_from_slice(&((of_day % 1_000_000) as u32).to_le_bytes());
}

fn date(days: i64, wanted: &'static str, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let date = Date::from_days(days);
    if !YEARS.contains(&date.year) {
        return Err(wanted);
    }
    out.extend_from_slice(&(date.year as u16).to_le_bytes());
    out.extend_from_slice(&[date.month, date.day]);
    Ok(())
}

/// How many digits a number has, zeros before it left out.
fn digits(text: &str) -> usize {
    let rest = text.trim_start_matches(['-', '+', '0']);
    rest.bytes().filter(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A refused parameter leaves nothing on the wire.
    #[test]
    fn a_refused_value_writes_nothing() {
        for value in [
            Value::Date(i32::MAX),
            Value::Timestamp(i64::MIN),
            Value::Float64(f64::NAN),
            Value::Decimal(format!("-0.{}", "1".repeat(66))),
            Value::Decimal("1".repeat(66)),
        ] {
            let mut out = vec![1, 2];
            let error = execute(&mut out, 7, 2, &[Value::Int64(1), value]).unwrap_err();
            assert_eq!(error.code, "parameter_type");
            assert_eq!(error.parameter, Some(1));
            assert_eq!(out, [1, 2]);
        }
        let error = execute(&mut Vec::new(), 7, 0, &[Value::Null(None)]).unwrap_err();
        assert_eq!(error.code, "parameter_count");
    }

    /// What the server's decimals hold goes as it is.
    #[test]
    fn decimals_go_with_all_their_digits() {
        for text in ["1".repeat(65), format!("-0.{}", "1".repeat(65))] {
            let mut out = Vec::new();
            encode(&Value::Decimal(text.clone()), &mut out).unwrap();
            assert!(out.ends_with(text.as_bytes()));
        }
    }

    /// Nine values: two bytes of NULLs, all types, then the values that there are.
    #[test]
    fn values_are_written_in_order() {
        let mut values = vec![Value::Null(None); 8];
        values.push(Value::Date(0));
        let mut out = Vec::new();
        execute(&mut out, 7, 9, &values).unwrap();
        let wanted = [
            &[41, 0, 0, 0, EXECUTE, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0xff, 0, 1][..],
            &[id::NULL, 0].repeat(8),
            &[id::DATE, 0, 4, 0xb2, 7, 1, 1],
        ]
        .concat();
        assert_eq!(wanted.len(), out.len());
        assert_eq!(out[4..], wanted[4..]);
        assert_eq!(usize::from(out[0]), out.len() - 4);
    }
}
