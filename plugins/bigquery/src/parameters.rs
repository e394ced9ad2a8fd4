//! Bound values, each with its type, at the places where the host wrote `?`: GoogleSQL reads that itself, so that no text is rewritten.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use souk_sdk::json::write_text;
use souk_sdk::parameters::{clock, date, refused};
use souk_sdk::time::{DAY_US, TimeOfDay};
use souk_sdk::{ColumnType, Error, Value};

/// Digits of `NUMERIC` before and behind the point, and of `BIGNUMERIC`.
const NUMERIC: (usize, usize) = (29, 9);
const BIGNUMERIC: (usize, usize) = (38, 38);

/// Appends the values, as members of a request that follow others; nothing where there are none.
pub fn write(values: &[Value], out: &mut Vec<u8>) -> Result<(), Error> {
    for (place, value) in values.iter().enumerate() {
        let (kind, text) = typed(value).map_err(|wanted| refused(place, wanted))?;
        let begin: &[u8] = match place {
            0 => br#","parameterMode":"POSITIONAL","queryParameters":[{"parameterType":{"type":""#,
            _ => br#",{"parameterType":{"type":""#,
        };
        out.extend_from_slice(begin);
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(br#""},"parameterValue":{"value":"#);
        match text {
            Some(text) => write_text(&text, out),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b"}}");
    }
    if !values.is_empty() {
        out.push(b']');
    }
    Ok(())
}

/// The type under which a value is bound, and its text; `None`: NULL. The error is what it should have been.
fn typed(value: &Value) -> Result<(&'static str, Option<Cow<'_, str>>), &'static str> {
    let (kind, text) = match value {
        Value::Null(declared) => return Ok((null_type(*declared), None)),
        Value::Decimal(text) => (numeric_type(text)?, Cow::Borrowed(text.as_str())),
        Value::Text(text) => ("STRING", Cow::Borrowed(text.as_str())),
        Value::Json(text) => ("JSON", Cow::Borrowed(text.as_str())),
        Value::Boolean(value) => ("BOOL", value.to_string().into()),
        Value::Int64(value) => ("INT64", value.to_string().into()),
        // `NaN`, `inf` and `-inf` are read as what they say.
        Value::Float64(value) => ("FLOAT64", value.to_string().into()),
        Value::Bytes(bytes) => ("BYTES", STANDARD.encode(bytes).into()),
        Value::Date(days) => ("DATE", date(*days)?.to_string().into()),
        Value::Time(micros) if *micros < DAY_US => ("TIME", TimeOfDay(*micros).to_string().into()),
        Value::Time(_) => return Err("a time before 24:00:00"),
        Value::Timestamp(micros) => ("TIMESTAMP", format!("{}+00:00", clock(*micros)?).into()),
        Value::LocalTimestamp(micros) => ("DATETIME", clock(*micros)?.into()),
    };
    Ok((kind, Some(text)))
}

fn null_type(declared: Option<ColumnType>) -> &'static str {
    match declared {
        Some(ColumnType::Boolean) => "BOOL",
        Some(ColumnType::Int64) => "INT64",
        Some(ColumnType::Float64) => "FLOAT64",
        Some(ColumnType::Decimal) => "NUMERIC",
        Some(ColumnType::Bytes) => "BYTES",
        Some(ColumnType::Date) => "DATE",
        Some(ColumnType::Time) => "TIME",
        Some(ColumnType::Timestamp) => "TIMESTAMP",
        Some(ColumnType::LocalTimestamp) => "DATETIME",
        Some(ColumnType::Json) => "JSON",
        Some(ColumnType::Text) | None => "STRING",
    }
}

/// The narrower of the two that loses no digit.
fn numeric_type(text: &str) -> Result<&'static str, &'static str> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let size = (
        whole.trim_start_matches('0').len(),
        fraction.trim_end_matches('0').len(),
    );
    let fits = |most: (usize, usize)| size.0 <= most.0 && size.1 <= most.1;
    match is_number(whole) && is_number(fraction) && !whole.is_empty() {
        true if fits(NUMERIC) => Ok("NUMERIC"),
        true if fits(BIGNUMERIC) => Ok("BIGNUMERIC"),
        _ => Err("a number of at most 38 digits before and 38 behind its point"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(value: Value) -> (&'static str, Option<String>) {
        let (kind, text) = typed(&value).unwrap();
        (kind, text.map(Cow::into_owned))
    }

    #[test]
    fn values_keep_every_digit() {
        let text = |kind, text: &str| (kind, Some(text.to_owned()));
        for (value, wanted) in [
            (
                Value::Int64(i64::MIN),
                text("INT64", "-9223372036854775808"),
            ),
            (Value::Float64(0.1), text("FLOAT64", "0.1")),
            (Value::Float64(f64::NEG_INFINITY), text("FLOAT64", "-inf")),
            (Value::Float64(f64::NAN), text("FLOAT64", "NaN")),
            (Value::Bytes(vec![0xff, 0]), text("BYTES", "/wA=")),
            (Value::Date(19_782), text("DATE", "2024-02-29")),
            (Value::Time(1), text("TIME", "00:00:00.000001")),
            (
                Value::Timestamp(-1),
                text("TIMESTAMP", "1969-12-31 23:59:59.999999+00:00"),
            ),
            (
                Value::LocalTimestamp(0),
                text("DATETIME", "1970-01-01 00:00:00.000000"),
            ),
            (Value::Text("a'b\\".into()), text("STRING", "a'b\\")),
            (Value::Null(None), ("STRING", None)),
            (
                Value::Null(Some(ColumnType::LocalTimestamp)),
                ("DATETIME", None),
            ),
        ] {
            assert_eq!(bound(value), wanted);
        }
    }

    #[test]
    fn a_number_is_as_wide_as_its_digits() {
        let kind = |text: &str| numeric_type(text);
        let (nine, many) = ("9".repeat(29), "9".repeat(38));
        assert_eq!(kind(&format!("-{nine}.999999999")), Ok("NUMERIC"));
        assert_eq!(kind("000.1000000000000"), Ok("NUMERIC"));
        assert_eq!(kind(&format!("{nine}9")), Ok("BIGNUMERIC"));
        assert_eq!(kind("0.0000000001"), Ok("BIGNUMERIC"));
        assert_eq!(kind(&format!("{many}.{many}")), Ok("BIGNUMERIC"));
        for text in ["", "1e5", "NaN", ".5", "1.2.3", &"9".repeat(39)] {
            assert!(kind(text).is_err(), "{text}");
        }
    }

    /// A request with them is one, whatever stands in a text.
    #[test]
    fn values_are_members_of_a_request() {
        let written = |values: &[Value]| {
            let mut body = br#"{"query":"""#.to_vec();
            write(values, &mut body).unwrap();
            body.push(b'}');
            serde_json::from_slice::<serde_json::Value>(&body).unwrap()
        };
        assert_eq!(written(&[]), serde_json::json!({"query": ""}));
        let values = [
            Value::Text("a\"b\\\n".into()),
            Value::Null(None),
            Value::Int64(-7),
        ];
        let request = written(&values);
        assert_eq!(request["parameterMode"], "POSITIONAL");
        let bound = |kind: &str, value: Option<&str>| serde_json::json!({"parameterType": {"type": kind}, "parameterValue": {"value": value}});
        let wanted = [
            bound("STRING", Some("a\"b\\\n")),
            bound("STRING", None),
            bound("INT64", Some("-7")),
        ];
        assert_eq!(request["queryParameters"], serde_json::json!(wanted));
    }

    /// What GoogleSQL's calendar does not have is the caller's mistake, and named by its place.
    #[test]
    fn what_does_not_fit_is_the_callers() {
        for value in [
            Value::Date(i32::MAX),
            Value::Time(DAY_US),
            Value::Timestamp(i64::MIN),
            Value::Decimal("1e5".into()),
        ] {
            let error = write(&[Value::Int64(1), value], &mut Vec::new()).unwrap_err();
            assert_eq!(error.parameter, Some(1));
        }
    }
}
