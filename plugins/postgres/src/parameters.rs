//! Bound parameters, encoded for the types that the server inferred.
//!
//! A value that does not fit is refused here as the caller's fault; what only the server can judge (the text of
//! a uuid, of a date) goes there as text and comes back as an SQLSTATE of class 22.

use crate::protocol;
use crate::types::{EPOCH_DAYS, EPOCH_US, is_time, oid};
use souk_sdk::time::{DAY_US, Date, TimeOfDay, iso8601};
use souk_sdk::{ColumnType, Error, Value, short};

const BINARY: [u8; 2] = [0, 1];
const TEXT: [u8; 2] = [0, 0];

/// Appends `Bind` of the unnamed portal. `head` is the statement's name in place, `tail` its result formats.
pub fn bind(
    out: &mut Vec<u8>,
    head: &[u8],
    types: &[u32],
    values: &[Value],
    tail: &[u8],
) -> Result<(), Error> {
    if values.len() != types.len() {
        let (given, wanted) = (values.len(), types.len());
        return Err(Error::invalid_request(
            "parameter_count",
            format!("the statement takes {wanted} parameters, {given} were given"),
        ));
    }
    let start = out.len();
    let mut refused = None;
    protocol::message(out, b'B', |out| {
        short::append(out, head);
        let count = (values.len() as u16).to_be_bytes();
        out.extend_from_slice(&count);
        let formats = out.len();
        for _ in values {
            out.extend_from_slice(&TEXT);
        }
        out.extend_from_slice(&count);
        for (i, (value, type_oid)) in values.iter().zip(types).enumerate() {
            let at = out.len();
            out.extend_from_slice(&[0xff; 4]);
            match encode(value, *type_oid, out) {
                Ok(None) => {}
                Ok(Some(format)) => {
                    let length = (out.len() - at - 4) as u32;
                    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
                    out[formats + 2 * i..formats + 2 * i + 2].copy_from_slice(&format);
                }
                Err(wanted) => {
                    let error =
                        Error::invalid_request("parameter_type", format!("must be {wanted}"));
                    refused = Some(error.parameter(i));
                    return;
                }
            }
        }
        short::append(out, tail);
    });
    match refused {
        None => Ok(()),
        Some(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

/// The server's type for what a parameter was declared to be; a value shows it. None: it says nothing.
pub fn declared(value: &Value) -> Option<u32> {
    Some(match value {
        Value::Boolean(_) | Value::Null(Some(ColumnType::Boolean)) => oid::BOOL,
        Value::Int64(_) | Value::Null(Some(ColumnType::Int64)) => oid::INT8,
        // Exact with whole and exact numbers, and a float with floats.
        Value::Float64(_) | Value::Decimal(_) => oid::NUMERIC,
        Value::Null(Some(ColumnType::Float64 | ColumnType::Decimal)) => oid::NUMERIC,
        Value::Text(_) | Value::Null(Some(ColumnType::Text)) => oid::TEXT,
        Value::Bytes(_) | Value::Null(Some(ColumnType::Bytes)) => oid::BYTEA,
        Value::Date(_) | Value::Null(Some(ColumnType::Date)) => oid::DATE,
        Value::Time(_) | Value::Null(Some(ColumnType::Time)) => oid::TIME,
        Value::Timestamp(_) | Value::Null(Some(ColumnType::Timestamp)) => oid::TIMESTAMPTZ,
        Value::LocalTimestamp(_) | Value::Null(Some(ColumnType::LocalTimestamp)) => oid::TIMESTAMP,
        // An array as well as a document.
        Value::Json(_) | Value::Null(Some(ColumnType::Json) | None) => return None,
    })
}

/// Whether the server has taken for something else what a parameter is declared to be, so that its value would be refused, cut off, or answered
/// as another one.
pub fn is_mistaken(value: &Value, type_oid: u32) -> bool {
    let is_any_number = matches!(
        value,
        Value::Float64(_) | Value::Decimal(_) | Value::Null(Some(ColumnType::Float64))
    );
    let is_declared = |is: fn(u32) -> bool| declared(value).is_some_and(is);
    match type_oid {
        // Where nothing in the statement says what it is, a parameter is a text: 10 is less than 9.
        oid::TEXT => is_declared(|told| told != oid::TEXT),
        // A fraction would be refused or cut off. And what stands beside a number or a span of time is read as another one, also a day.
        oid::INT2 | oid::INT4 | oid::INT8 => is_any_number || is_declared(is_time),
        oid::INTERVAL => is_declared(is_time),
        // What is taken from a day is read as another day, also a number of them.
        oid::DATE => is_declared(|told| told == oid::INT8),
        _ => false,
    }
}

/// Appends one value and says in which format; None is NULL. The error is what it should have been.
fn encode(
    value: &Value,
    type_oid: u32,
    out: &mut Vec<u8>,
) -> Result<Option<[u8; 2]>, &'static str> {
    if matches!(value, Value::Null(_)) {
        return Ok(None);
    }
    let format = match type_oid {
        oid::INT2 => binary(
            out,
            &integer::<i16>(value, "an integer between -32768 and 32767")?.to_be_bytes(),
        ),
        oid::INT4 => binary(
            out,
            &integer::<i32>(value, "an integer between -2147483648 and 2147483647")?.to_be_bytes(),
        ),
        oid::INT8 => binary(
            out,
            &integer::<i64>(value, "an integer of 64 bits")?.to_be_bytes(),
        ),
        oid::OID => binary(
            out,
            &integer::<u32>(value, "an integer between 0 and 4294967295")?.to_be_bytes(),
        ),
        oid::FLOAT4 => {
            let wide = number(value)?;
            let narrow = wide as f32;
            if narrow.is_infinite() && wide.is_finite() {
                return Err("a number that fits float4");
            }
            binary(out, &narrow.to_be_bytes())
        }
        oid::FLOAT8 => binary(out, &number(value)?.to_be_bytes()),
        oid::BOOL => match value {
            Value::Boolean(value) => binary(out, &[u8::from(*value)]),
            Value::Text(_) => text(out, value)?,
            _ => return Err("true or false"),
        },
        oid::NUMERIC => match value {
            Value::Int64(_) | Value::Float64(_) | Value::Decimal(_) | Value::Text(_) => {
                text(out, value)?
            }
            _ => return Err("a number"),
        },
        oid::DATE => match value {
            Value::Date(days) => binary(
                out,
                &days.checked_sub(EPOCH_DAYS).ok_or("a date")?.to_be_bytes(),
            ),
            Value::Timestamp(us) | Value::LocalTimestamp(us) if us % DAY_US == 0 => {
                let days = i32::try_from(us / DAY_US)
                    .ok()
                    .and_then(|days| days.checked_sub(EPOCH_DAYS));
                binary(out, &days.ok_or("a date")?.to_be_bytes())
            }
            Value::Text(_) => text(out, value)?,
            _ => return Err("a date"),
        },
        oid::TIME => match value {
            Value::Time(us) => binary(out, &us.to_be_bytes()),
            Value::Text(_) => text(out, value)?,
            _ => return Err("a time of day"),
        },
        // A moment is compared with what has no zone as its clock shows in UTC, and the other way round.
        oid::TIMESTAMP | oid::TIMESTAMPTZ => match value {
            Value::Timestamp(us) | Value::LocalTimestamp(us) => binary(
                out,
                &us.checked_sub(EPOCH_US).ok_or("a timestamp")?.to_be_bytes(),
            ),
            Value::Date(days) => binary(out, &(i64::from(*days) * DAY_US - EPOCH_US).to_be_bytes()),
            Value::Text(_) => text(out, value)?,
            _ => return Err("a timestamp"),
        },
        oid::BYTEA => match value {
            Value::Bytes(bytes) => binary(out, bytes),
            Value::Text(_) => text(out, value)?,
            _ => return Err("bytes"),
        },
        oid::JSON | oid::JSONB => match value {
            Value::Bytes(_)
            | Value::Date(_)
            | Value::Time(_)
            | Value::Timestamp(_)
            | Value::LocalTimestamp(_) => return Err("a JSON document"),
            _ => text(out, value)?,
        },
        oid::UUID => match value {
            Value::Text(_) => text(out, value)?,
            _ => return Err("a UUID"),
        },
        // Texts, times, intervals, networks, enumerations, arrays: the server reads them from text.
        _ => match value {
            Value::Json(json)
                if !matches!(type_oid, oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME) =>
            {
                array(out, json)?
            }
            _ => text(out, value)?,
        },
    };
    Ok(Some(format))
}

fn binary(out: &mut Vec<u8>, bytes: &[u8]) -> [u8; 2] {
    short::append(out, bytes);
    BINARY
}

/// Any value but bytes in the server's text form.
fn text(out: &mut Vec<u8>, value: &Value) -> Result<[u8; 2], &'static str> {
    match value {
        Value::Text(text) | Value::Decimal(text) | Value::Json(text) => {
            if text.contains('\0') {
                return Err("text without the character NUL");
            }
            short::append(out, text.as_bytes());
        }
        Value::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Int64(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Float64(value) => out.extend_from_slice(float_text(*value).as_bytes()),
        Value::Date(days) => {
            let date = Date::from_days(i64::from(*days));
            out.extend_from_slice(date.to_string().as_bytes());
        }
        Value::Time(us) => out.extend_from_slice(TimeOfDay(*us).to_string().as_bytes()),
        Value::Timestamp(us) | Value::LocalTimestamp(us) => {
            out.extend_from_slice(iso8601(*us).as_bytes());
        }
        Value::Bytes(_) | Value::Null(_) => return Err("text"),
    }
    Ok(TEXT)
}

fn float_text(value: f64) -> String {
    if value.is_nan() {
        "NaN".into()
    } else if value.is_infinite() {
        if value > 0.0 {
            "Infinity".into()
        } else {
            "-Infinity".into()
        }
    } else {
        // The shortest text that reads back as the same number. A whole one has no point, which would be a digit more of an exact number.
        let text = format!("{value:?}");
        match text.strip_suffix(".0") {
            Some(whole) => whole.to_owned(),
            None => text,
        }
    }
}

fn integer<T: TryFrom<i64>>(value: &Value, wanted: &'static str) -> Result<T, &'static str> {
    /// Whole numbers up to 2^53 are exact as floats.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = match value {
        Value::Int64(value) => Some(*value),
        Value::Float64(value) if value.fract() == 0.0 && value.abs() <= EXACT => {
            Some(*value as i64)
        }
        Value::Decimal(text) | Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    whole
        .and_then(|whole| T::try_from(whole).ok())
        .ok_or(wanted)
}

fn number(value: &Value) -> Result<f64, &'static str> {
    match value {
        Value::Int64(value) => Ok(*value as f64),
        Value::Float64(value) => Ok(*value),
        Value::Decimal(text) | Value::Text(text) => match text.trim().parse::<f64>() {
            // `Infinity` is one; a number of more digits than any float has is another one, and the server refuses it as well.
            Ok(number) if number.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) => {
                Err("a number that fits float8")
            }
            Ok(number) => Ok(number),
            Err(_) => Err("a number"),
        },
        _ => Err("a number"),
    }
}

/// A JSON array as the server's array literal: `[1,null,"a"]` is `{"1",NULL,"a"}`.
fn array(out: &mut Vec<u8>, json: &str) -> Result<[u8; 2], &'static str> {
    const WANTED: &str = "a JSON array";
    let parsed: serde_json::Value = serde_json::from_str(json).map_err(|_| WANTED)?;
    if !parsed.is_array() {
        return Err(WANTED);
    }
    array_item(out, &parsed)?;
    Ok(TEXT)
}

fn array_item(out: &mut Vec<u8>, item: &serde_json::Value) -> Result<(), &'static str> {
    match item {
        serde_json::Value::Null => out.extend_from_slice(b"NULL"),
        serde_json::Value::Array(items) => {
            out.push(b'{');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                array_item(out, item)?;
            }
            out.push(b'}');
        }
        serde_json::Value::String(text) => array_text(out, text)?,
        other => array_text(out, &other.to_string())?,
    }
    Ok(())
}

fn array_text(out: &mut Vec<u8>, text: &str) -> Result<(), &'static str> {
    if text.contains('\0') {
        return Err("text without the character NUL");
    }
    out.push(b'"');
    for &byte in text.as_bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: Value, type_oid: u32) -> Result<(Option<[u8; 2]>, Vec<u8>), &'static str> {
        let mut out = Vec::new();
        let format = encode(&value, type_oid, &mut out)?;
        Ok((format, out))
    }

    /// A number goes in the server's width, or is refused.
    #[test]
    fn integers_fit_or_are_refused() {
        assert_eq!(
            encoded(Value::Int64(7), oid::INT2).unwrap(),
            (Some(BINARY), vec![0, 7])
        );
        assert_eq!(
            encoded(Value::Float64(7.0), oid::INT4).unwrap().1,
            [0, 0, 0, 7]
        );
        assert_eq!(
            encoded(Value::Text(" -1 ".into()), oid::INT8).unwrap().1,
            [0xff; 8]
        );
        assert!(encoded(Value::Int64(40_000), oid::INT2).is_err());
        assert!(encoded(Value::Float64(1.5), oid::INT4).is_err());
        assert!(encoded(Value::Boolean(true), oid::INT4).is_err());
        assert!(encoded(Value::Int64(-1), oid::OID).is_err());
    }

    /// A number that no float holds is refused, and is no infinity; one that was meant is.
    #[test]
    fn floats_fit_or_are_refused() {
        let digits = format!("1{}", "0".repeat(309));
        for type_oid in [oid::FLOAT4, oid::FLOAT8] {
            for beyond in [Value::Decimal(digits.clone()), Value::Text("-1e309".into())] {
                assert!(encoded(beyond, type_oid).is_err(), "{type_oid}");
            }
            assert!(encoded(Value::Text("-Infinity".into()), type_oid).is_ok());
        }
    }

    /// An exact number has the digits that its caller has written.
    #[test]
    fn whole_numbers_have_no_point() {
        for (value, text) in [
            (4.0, "4"),
            (-0.5, "-0.5"),
            (1e21, "1e21"),
            (100.0, "100"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            let (format, out) = encoded(Value::Float64(value), oid::NUMERIC).unwrap();
            assert_eq!((format, out.as_slice()), (Some(TEXT), text.as_bytes()));
        }
    }

    /// JSON arrays become array literals, quoted so that no element can break out.
    #[test]
    fn arrays_are_quoted() {
        let (format, out) = encoded(Value::Json(r#"[1,null,["a\"},{\\"]]"#.into()), 1009).unwrap();
        assert_eq!(format, Some(TEXT));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"1",NULL,{"a\"},{\\"}}"#
        );
        assert!(encoded(Value::Json("{}".into()), 1009).is_err());
    }

    /// `Bind` says how long it is, names its statement, and has a format and a value for each parameter, in order.
    #[test]
    fn a_bind_has_a_format_for_each_value() {
        let text = "x".repeat(100);
        let values = [
            Value::Int64(7),
            Value::Null(None),
            Value::Text(text.clone()),
            Value::Boolean(true),
        ];
        let types = [oid::INT4, oid::INT8, oid::TEXT, oid::BOOL];
        let mut out = vec![9];
        bind(&mut out, b"\0s12\0", &types, &values, &[0, 1, 0, 1]).unwrap();
        let body = [
            &b"\0s12\0\0\x04\0\x01\0\0\0\0\0\x01\0\x04"[..],
            b"\0\0\0\x04\0\0\0\x07\xff\xff\xff\xff\0\0\0\x64",
            text.as_bytes(),
            b"\0\0\0\x01\x01\0\x01\0\x01",
        ]
        .concat();
        let length = (body.len() as u32 + 4).to_be_bytes();
        assert_eq!(out, [&[9, b'B'][..], &length, &body[..]].concat());
    }

    /// A refused parameter leaves nothing on the wire.
    #[test]
    fn a_refused_bind_writes_nothing() {
        let mut out = vec![1, 2];
        let error = bind(
            &mut out,
            b"\0s1\0",
            &[oid::INT2],
            &[Value::Text("x".into())],
            &[0, 0],
        )
        .unwrap_err();
        assert_eq!(
            (out.as_slice(), error.code.as_str()),
            ([1, 2].as_slice(), "parameter_type")
        );
        assert_eq!(
            bind(&mut out, b"\0s1\0", &[], &[Value::Null(None)], &[])
                .unwrap_err()
                .code,
            "parameter_count"
        );
    }
}
