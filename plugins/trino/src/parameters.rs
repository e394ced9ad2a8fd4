//! Bound values as literals of Trino's, each of its own type: they stand behind the statement (`EXECUTE IMMEDIATE … USING`), never in it.

use std::fmt::Write;

use souk_sdk::parameters::{Decimal, clock, date, each, float};
use souk_sdk::time::{DAY_US, TimeOfDay};
use souk_sdk::{ColumnType, Error, Value};

/// The values in their order.
pub fn literals(values: &[Value]) -> Result<Vec<String>, Error> {
    each(values, literal)
}

/// A text as a literal. Nothing but a quote has a meaning in it.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The error is what it should have been.
fn literal(value: &Value) -> Result<String, &'static str> {
    Ok(match value {
        Value::Null(declared) => null(*declared).to_owned(),
        Value::Boolean(value) => value.to_string().to_ascii_uppercase(),
        Value::Int64(value) => format!("BIGINT '{value}'"),
        // As Java reads it.
        Value::Float64(value) => format!("DOUBLE '{}'", float(*value, "NaN", "Infinity")),
        Value::Decimal(text) => format!("DECIMAL '{}'", Decimal::of(text)?),
        Value::Text(text) => quoted(text),
        Value::Bytes(bytes) => binary(bytes),
        Value::Json(text) => format!("JSON {}", quoted(text)),
        Value::Date(days) => format!("DATE '{}'", date(*days)?),
        Value::Time(micros) if *micros < DAY_US => format!("TIME '{}'", TimeOfDay(*micros)),
        Value::Time(_) => return Err("a time before 24:00:00"),
        Value::Timestamp(micros) => format!("TIMESTAMP '{} UTC'", clock(*micros)?),
        Value::LocalTimestamp(micros) => format!("TIMESTAMP '{}'", clock(*micros)?),
    })
}

/// Of no type a NULL takes that of what it stands beside.
fn null(declared: Option<ColumnType>) -> &'static str {
    match declared {
        None => "NULL",
        Some(ColumnType::Boolean) => "CAST(NULL AS boolean)",
        Some(ColumnType::Int64) => "CAST(NULL AS bigint)",
        Some(ColumnType::Float64) => "CAST(NULL AS double)",
        // What it stands beside keeps its digits: with more of them here it would be cut to the 38 that there are.
        Some(ColumnType::Decimal) => "CAST(NULL AS decimal(1, 0))",
        Some(ColumnType::Text) => "CAST(NULL AS varchar)",
        Some(ColumnType::Bytes) => "CAST(NULL AS varbinary)",
        Some(ColumnType::Date) => "CAST(NULL AS date)",
        Some(ColumnType::Time) => "CAST(NULL AS time(6))",
        Some(ColumnType::Timestamp) => "CAST(NULL AS timestamp(6) with time zone)",
        Some(ColumnType::LocalTimestamp) => "CAST(NULL AS timestamp(6))",
        Some(ColumnType::Json) => "CAST(NULL AS json)",
    }
}

fn binary(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len() + 3);
    text.push_str("X'");
    for byte in bytes {
        // A String takes everything.
        let _ = write!(text, "{byte:02X}");
    }
    text.push('\'');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_every_digit() {
        for (value, wanted) in [
            (Value::Int64(i64::MIN), "BIGINT '-9223372036854775808'"),
            (Value::Float64(0.1), "DOUBLE '1e-1'"),
            (Value::Float64(-1.5e300), "DOUBLE '-1.5e300'"),
            (Value::Float64(f64::NEG_INFINITY), "DOUBLE '-Infinity'"),
            (Value::Float64(f64::NAN), "DOUBLE 'NaN'"),
            (
                Value::Decimal("-12345678901234567890.00100".into()),
                "DECIMAL '-12345678901234567890.00100'",
            ),
            (Value::Decimal("+7".into()), "DECIMAL '7'"),
            (Value::Text("it's \\ 日本\n".into()), "'it''s \\ 日本\n'"),
            (Value::Bytes(vec![0xff, 0, 10]), "X'FF000A'"),
            (Value::Boolean(true), "TRUE"),
            (Value::Json("{\"a\":\"'\"}".into()), "JSON '{\"a\":\"''\"}'"),
            (Value::Date(19_782), "DATE '2024-02-29'"),
            (Value::Time(1), "TIME '00:00:00.000001'"),
            (
                Value::Timestamp(-1),
                "TIMESTAMP '1969-12-31 23:59:59.999999 UTC'",
            ),
            (
                Value::LocalTimestamp(0),
                "TIMESTAMP '1970-01-01 00:00:00.000000'",
            ),
            (Value::Null(None), "NULL"),
            (
                Value::Null(Some(ColumnType::Decimal)),
                "CAST(NULL AS decimal(1, 0))",
            ),
            (
                Value::Null(Some(ColumnType::Timestamp)),
                "CAST(NULL AS timestamp(6) with time zone)",
            ),
        ] {
            assert_eq!(literal(&value).as_deref(), Ok(wanted), "{value:?}");
        }
    }

    /// What Trino's types do not have is the caller's mistake, and named by its place.
    #[test]
    fn what_does_not_fit_is_the_callers() {
        for value in [
            Value::Decimal("9".repeat(39)),
            Value::Decimal("1e5".into()),
            Value::Decimal("NaN".into()),
            Value::Decimal("1.'; DROP".into()),
            Value::Decimal(String::new()),
            Value::Date(i32::MAX),
            Value::Time(DAY_US),
            Value::Timestamp(i64::MIN),
        ] {
            let error = literals(&[Value::Int64(1), value]).unwrap_err();
            assert_eq!(error.parameter, Some(1));
        }
    }
}
