//! Bound values as Snowflake takes them: texts beside the statement, never in it. Dates travel as milliseconds, times as nanoseconds.

use std::fmt::Write;

use serde::ser::{Serialize, SerializeMap, Serializer};
use souk_sdk::parameters::{Decimal, date, each, float, moment};
use souk_sdk::time::DAY_US;
use souk_sdk::{ColumnType, Error, Value};

const DAY_MS: i64 = 86_400_000;

/// Values as a request has them, in their order.
#[derive(Debug, Default)]
pub struct Bindings(Vec<Binding>);

#[derive(Debug, serde::Serialize)]
struct Binding {
    #[serde(rename = "type")]
    kind: &'static str,
    /// `None`: NULL.
    value: Option<String>,
}

impl Bindings {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// They are numbered from 1.
impl Serialize for Bindings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (place, binding) in self.0.iter().enumerate() {
            map.serialize_entry(&(place + 1), binding)?;
        }
        map.end()
    }
}

pub fn bindings(values: &[Value]) -> Result<Bindings, Error> {
    let bound = each(values, |value| {
        let (kind, value) = binding(value)?;
        Ok(Binding { kind, value })
    })?;
    Ok(Bindings(bound))
}

/// The type and the text; the error is what it should have been.
fn binding(value: &Value) -> Result<(&'static str, Option<String>), &'static str> {
    let (kind, text) = match value {
        Value::Null(declared) => return Ok((null(*declared), None)),
        Value::Boolean(value) => ("BOOLEAN", value.to_string()),
        Value::Int64(value) => ("FIXED", value.to_string()),
        Value::Float64(value) => ("REAL", float(*value, "NaN", "Infinity")),
        Value::Decimal(text) => ("FIXED", Decimal::of(text)?.to_string()),
        // There is no type of a binding for JSON: PARSE_JSON reads it.
        Value::Text(text) | Value::Json(text) => ("TEXT", text.clone()),
        Value::Bytes(bytes) => ("BINARY", hex(bytes)),
        Value::Date(days) => {
            date(*days)?;
            ("DATE", (i64::from(*days) * DAY_MS).to_string())
        }
        Value::Time(micros) if (0..DAY_US).contains(micros) => ("TIME", nanos(*micros)),
        Value::Time(_) => return Err("a time before 24:00:00"),
        Value::Timestamp(micros) => ("TIMESTAMP_LTZ", nanos(moment(*micros)?)),
        Value::LocalTimestamp(micros) => ("TIMESTAMP_NTZ", nanos(moment(*micros)?)),
    };
    Ok((kind, Some(text)))
}

fn null(declared: Option<ColumnType>) -> &'static str {
    match declared {
        None | Some(ColumnType::Text | ColumnType::Json) => "TEXT",
        Some(ColumnType::Boolean) => "BOOLEAN",
        Some(ColumnType::Int64 | ColumnType::Decimal) => "FIXED",
        Some(ColumnType::Float64) => "REAL",
        Some(ColumnType::Bytes) => "BINARY",
        Some(ColumnType::Date) => "DATE",
        Some(ColumnType::Time) => "TIME",
        Some(ColumnType::Timestamp) => "TIMESTAMP_LTZ",
        Some(ColumnType::LocalTimestamp) => "TIMESTAMP_NTZ",
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // A String takes everything.
        let _ = write!(text, "{byte:02X}");
    }
    text
}

fn nanos(micros: i64) -> String {
    (i128::from(micros) * 1_000).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_every_digit() {
        for (value, kind, text) in [
            (Value::Int64(i64::MIN), "FIXED", "-9223372036854775808"),
            (Value::Float64(0.1), "REAL", "1e-1"),
            (Value::Float64(f64::NEG_INFINITY), "REAL", "-Infinity"),
            (Value::Float64(f64::NAN), "REAL", "NaN"),
            (
                Value::Decimal("-12345678901234567890.00100".into()),
                "FIXED",
                "-12345678901234567890.00100",
            ),
            (Value::Decimal("+7".into()), "FIXED", "7"),
            (Value::Decimal("007".into()), "FIXED", "007"),
            (
                Value::Text("it's ? \\ 日本\n".into()),
                "TEXT",
                "it's ? \\ 日本\n",
            ),
            (Value::Bytes(vec![0xff, 0, 10]), "BINARY", "FF000A"),
            (Value::Boolean(true), "BOOLEAN", "true"),
            (Value::Json("{\"a\":1}".into()), "TEXT", "{\"a\":1}"),
            // 2021-03-19T18:20:19Z is that of Snowflake's documentation.
            (
                Value::Timestamp(1_616_173_619_000_000),
                "TIMESTAMP_LTZ",
                "1616173619000000000",
            ),
            (Value::Date(18_262), "DATE", "1577836800000"),
            (Value::Time(1), "TIME", "1000"),
            (Value::LocalTimestamp(-1), "TIMESTAMP_NTZ", "-1000"),
            (
                // Of the year 9999: more nanoseconds than 64 bits hold.
                Value::Timestamp(253_402_300_799_999_999),
                "TIMESTAMP_LTZ",
                "253402300799999999000",
            ),
        ] {
            let wanted = (kind, Some(text.to_owned()));
            assert_eq!(binding(&value), Ok(wanted), "{value:?}");
        }
        let nulls = [Value::Null(None), Value::Null(Some(ColumnType::Timestamp))];
        assert_eq!(
            serde_json::to_string(&bindings(&nulls).unwrap()).unwrap(),
            r#"{"1":{"type":"TEXT","value":null},"2":{"type":"TIMESTAMP_LTZ","value":null}}"#
        );
    }

    /// What Snowflake's types do not have is the caller's mistake, and named by its place.
    #[test]
    fn what_does_not_fit_is_the_callers() {
        for value in [
            Value::Decimal("9".repeat(39)),
            Value::Decimal("1e5".into()),
            Value::Decimal("NaN".into()),
            Value::Decimal(String::new()),
            Value::Date(i32::MAX),
            Value::Time(DAY_US),
            Value::Timestamp(i64::MIN),
        ] {
            let error = bindings(&[Value::Int64(1), value]).unwrap_err();
            assert_eq!(error.parameter, Some(1));
        }
        let longest = Value::Decimal(format!("-0.{}", "9".repeat(38)));
        assert!(bindings(&[longest]).is_ok());
    }
}
