//! Bound values as literals of Trino's, each of its own type: they stand behind the statement (`EXECUTE IMMEDIATE … USING`), never in it.

use std::fmt::Write;

use souk_sdk::parameters::{Decimal, clock, date, float, refused};
use souk_sdk::time::{DAY_US, TimeOfDay};
use souk_sdk::{ColumnType, Error, Value};

/// Appends the values in their order, with commas between them. Of a page the last two, which the host gives as limit and offset, change places.
pub fn write(values: &[Value], is_page: bool, out: &mut String) -> Result<(), Error> {
    for place in 0..values.len() {
        let of = match values.len() - place {
            2 if is_page => place + 1,
            1 if is_page => place - 1,
            _ => place,
        };
        if place > 0 {
            out.push_str(", ");
        }
        literal(&values[of], out).map_err(|wanted| refused(of, wanted))?;
    }
    Ok(())
}

/// A text as a literal. Nothing but a quote has a meaning in it.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_quoted(text, &mut out);
    out
}

fn write_quoted(text: &str, out: &mut String) {
    out.push('\'');
    write_doubled(text, out);
    out.push('\'');
}

/// Appends a text as it stands within a literal, each quote twice.
pub fn write_doubled(text: &str, out: &mut String) {
    for (place, part) in text.split('\'').enumerate() {
        if place > 0 {
            out.push_str("''");
        }
        out.push_str(part);
    }
}

/// Appends a value. The error is what it should have been.
fn literal(value: &Value, out: &mut String) -> Result<(), &'static str> {
    // A String takes everything.
    let _ = match value {
        Value::Null(declared) => out.write_str(null(*declared)),
        Value::Boolean(true) => out.write_str("TRUE"),
        Value::Boolean(false) => out.write_str("FALSE"),
        Value::Int64(value) => write!(out, "BIGINT '{value}'"),
        // As Java reads it.
        Value::Float64(value) => write!(out, "DOUBLE '{}'", float(*value, "NaN", "Infinity")),
        Value::Decimal(text) => write!(out, "DECIMAL '{}'", Decimal::of(text)?),
        Value::Date(days) => write!(out, "DATE '{}'", date(*days)?),
        Value::Time(micros) if *micros < DAY_US => write!(out, "TIME '{}'", TimeOfDay(*micros)),
        Value::Time(_) => return Err("a time before 24:00:00"),
        Value::Timestamp(micros) => write!(out, "TIMESTAMP '{} UTC'", clock(*micros)?),
        Value::LocalTimestamp(micros) => write!(out, "TIMESTAMP '{}'", clock(*micros)?),
        Value::Text(text) => {
            write_quoted(text, out);
            Ok(())
        }
        Value::Json(text) => {
            out.push_str("JSON ");
            write_quoted(text, out);
            Ok(())
        }
        Value::Bytes(bytes) => {
            write_binary(bytes, out);
            Ok(())
        }
    };
    Ok(())
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

fn write_binary(bytes: &[u8], out: &mut String) {
    out.push_str("X'");
    for byte in bytes {
        // A String takes everything.
        let _ = write!(out, "{byte:02X}");
    }
    out.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(value: &Value) -> Result<String, &'static str> {
        let mut out = String::new();
        super::literal(value, &mut out).map(|()| out)
    }

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
            (Value::Boolean(false), "FALSE"),
            (Value::Text("''".into()), "''''''"),
            (Value::Text(String::new()), "''"),
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
            let error = write(&[Value::Int64(1), value], false, &mut String::new()).unwrap_err();
            assert_eq!(error.parameter, Some(1));
        }
    }
}
