//! Bound values as the API takes them: each with a name of its own, a type and a text. In the statement stands a marker.

use std::fmt;

use serde::{Serialize, Serializer};
use souk_sdk::parameters::{Decimal, date, float, moment};
use souk_sdk::time::{DAY_US, TimeOfDay, iso8601, rfc3339};
use souk_sdk::{ColumnType, Value};

/// A value with its marker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// What stands in the statement.
    #[serde(skip)]
    pub marker: String,
    pub name: String,
    /// A NULL has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    #[serde(rename = "type")]
    pub kind: SqlType,
}

/// What a value is in the statement: what the types of a result may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlType {
    Boolean,
    Int,
    BigInt,
    Double,
    /// Of so many digits, and so many of them behind the point.
    Decimal(u8, u8),
    String,
    Binary,
    Date,
    Timestamp,
    TimestampNtz,
}

impl SqlType {
    /// What stands around a value's name in the statement, where the API takes none of the type: bytes come as digits, since no text is every
    /// series of bytes, and a clock of no zone as a text.
    fn around(self) -> (&'static str, &'static str) {
        match self {
            SqlType::Binary => ("unhex(", ")"),
            SqlType::TimestampNtz => ("CAST(", " AS TIMESTAMP_NTZ)"),
            _ => ("", ""),
        }
    }
}

/// The type as which the API takes it.
impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            SqlType::Boolean => "BOOLEAN",
            SqlType::Int => "INT",
            SqlType::BigInt => "BIGINT",
            SqlType::Double => "DOUBLE",
            SqlType::Decimal(width, scale) => return write!(f, "DECIMAL({width},{scale})"),
            SqlType::String | SqlType::Binary | SqlType::TimestampNtz => "STRING",
            SqlType::Date => "DATE",
            SqlType::Timestamp => "TIMESTAMP",
        };
        f.write_str(name)
    }
}

impl Serialize for SqlType {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The value at this place, the first one being 0. The error is what it should have been.
pub fn bound(place: usize, value: &Value) -> Result<Bound, &'static str> {
    let some = |kind: SqlType, text: String| Ok(named(place, kind, Some(text)));
    match value {
        Value::Null(declared) => Ok(named(place, null(*declared), None)),
        Value::Boolean(value) => some(SqlType::Boolean, value.to_string()),
        Value::Int64(value) => some(SqlType::BigInt, value.to_string()),
        // As Java reads it.
        Value::Float64(value) => some(SqlType::Double, float(*value, "NaN", "Infinity")),
        Value::Decimal(text) => {
            // The type that has exactly its digits, of which there are 38 at most.
            let number = Decimal::of(text)?;
            let (width, scale) = (number.digits().max(1) as u8, number.fraction.len() as u8);
            some(SqlType::Decimal(width, scale), number.to_string())
        }
        Value::Text(text) | Value::Json(text) => some(SqlType::String, text.clone()),
        Value::Bytes(bytes) => some(SqlType::Binary, hex(bytes)),
        Value::Date(days) => some(SqlType::Date, date(*days)?.to_string()),
        // There is no type of it.
        Value::Time(micros) if *micros < DAY_US => {
            some(SqlType::String, TimeOfDay(*micros).to_string())
        }
        Value::Time(_) => Err("a time before 24:00:00"),
        Value::Timestamp(micros) => some(SqlType::Timestamp, rfc3339(moment(*micros)?)),
        Value::LocalTimestamp(micros) => some(SqlType::TimestampNtz, iso8601(moment(*micros)?)),
    }
}

/// A number of rows. Databricks counts them in `INT`.
pub fn of_page(place: usize, value: &Value) -> Result<Bound, &'static str> {
    match value {
        Value::Int64(rows) if i32::try_from(*rows).is_ok() => {
            Ok(named(place, SqlType::Int, Some(rows.to_string())))
        }
        Value::Int64(_) => Err("a page among the first two thousand million rows"),
        other => bound(place, other),
    }
}

fn named(place: usize, kind: SqlType, value: Option<String>) -> Bound {
    let name = format!("souk_{}", place + 1);
    let (before, behind) = kind.around();
    Bound {
        marker: format!("{before}:{name}{behind}"),
        name,
        value,
        kind,
    }
}

/// Of no type a NULL is a text, which becomes what it stands beside.
fn null(declared: Option<ColumnType>) -> SqlType {
    match declared {
        Some(ColumnType::Boolean) => SqlType::Boolean,
        Some(ColumnType::Int64) => SqlType::BigInt,
        Some(ColumnType::Float64) => SqlType::Double,
        // What it stands beside keeps its digits: with more of them here it would be cut to the 38 that there are.
        Some(ColumnType::Decimal) => SqlType::Decimal(1, 0),
        Some(ColumnType::Date) => SqlType::Date,
        Some(ColumnType::Timestamp) => SqlType::Timestamp,
        Some(ColumnType::Bytes) => SqlType::Binary,
        Some(ColumnType::LocalTimestamp) => SqlType::TimestampNtz,
        None | Some(ColumnType::Text | ColumnType::Json | ColumnType::Time) => SqlType::String,
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // A String takes everything.
        let _ = write!(text, "{byte:02X}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_every_digit() {
        for (value, kind, text) in [
            (Value::Int64(i64::MIN), "BIGINT", "-9223372036854775808"),
            (Value::Float64(0.1), "DOUBLE", "1e-1"),
            (Value::Float64(-1.5e300), "DOUBLE", "-1.5e300"),
            (Value::Float64(f64::NEG_INFINITY), "DOUBLE", "-Infinity"),
            (Value::Float64(f64::NAN), "DOUBLE", "NaN"),
            (
                Value::Decimal("-12345678901234567890.00100".into()),
                "DECIMAL(25,5)",
                "-12345678901234567890.00100",
            ),
            (Value::Decimal("+7".into()), "DECIMAL(1,0)", "7"),
            (Value::Decimal("0.00".into()), "DECIMAL(2,2)", "0.00"),
            (Value::Decimal("0".into()), "DECIMAL(1,0)", "0"),
            (
                Value::Text("it's \\ 日本\n".into()),
                "STRING",
                "it's \\ 日本\n",
            ),
            (Value::Bytes(vec![0xff, 0, 10]), "STRING", "FF000A"),
            (Value::Boolean(true), "BOOLEAN", "true"),
            (
                Value::Json("{\"a\":\"'\"}".into()),
                "STRING",
                "{\"a\":\"'\"}",
            ),
            (Value::Date(19_782), "DATE", "2024-02-29"),
            (Value::Time(1), "STRING", "00:00:00.000001"),
            (
                Value::Timestamp(-1),
                "TIMESTAMP",
                "1969-12-31T23:59:59.999999Z",
            ),
            (
                Value::LocalTimestamp(0),
                "STRING",
                "1970-01-01T00:00:00.000000",
            ),
        ] {
            let bound = bound(2, &value).unwrap();
            assert_eq!(
                (&*bound.name, bound.value.as_deref()),
                ("souk_3", Some(text)),
                "{value:?}"
            );
            assert_eq!(bound.kind.to_string(), kind, "{value:?}");
        }
        let marker = |value: Value| bound(0, &value).unwrap().marker;
        assert_eq!(marker(Value::Int64(1)), ":souk_1");
        assert_eq!(marker(Value::Bytes(vec![])), "unhex(:souk_1)");
        assert_eq!(
            marker(Value::LocalTimestamp(0)),
            "CAST(:souk_1 AS TIMESTAMP_NTZ)"
        );
    }

    #[test]
    fn a_null_has_the_type_that_was_declared() {
        let json = |declared| {
            let bound = bound(0, &Value::Null(declared)).unwrap();
            serde_json::to_string(&bound).unwrap()
        };
        assert_eq!(json(None), r#"{"name":"souk_1","type":"STRING"}"#);
        assert_eq!(
            json(Some(ColumnType::Timestamp)),
            r#"{"name":"souk_1","type":"TIMESTAMP"}"#
        );
    }

    /// What Databricks' types do not have is the caller's mistake.
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
            Value::LocalTimestamp(i64::MAX),
        ] {
            assert!(bound(0, &value).is_err(), "{value:?}");
        }
    }
}
