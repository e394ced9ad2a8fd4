//! Bound values as literals of Trino's, each of its own type: they stand behind the statement (`EXECUTE IMMEDIATE … USING`), never in it.

use std::fmt::Write;

use souk_sdk::statements::callers_values;
use souk_sdk::time::{DAY_US, Date, TimeOfDay};
use souk_sdk::{ColumnType, Error, Value};

/// Years of which a literal is read without doubt.
const YEARS: std::ops::RangeInclusive<i64> = 1..=9999;
/// Digits of a `DECIMAL`.
const DIGITS_MAX: usize = 38;
/// A longer value is in no error as a whole.
const SHOWN_BYTES_MAX: usize = 1_000;

/// The values in their order.
pub fn literals(values: &[Value]) -> Result<Vec<String>, Error> {
    let values = values.iter().enumerate().map(|(place, value)| {
        literal(value).map_err(|wanted| {
            Error::invalid_request("parameter_type", format!("must be {wanted}")).parameter(place)
        })
    });
    values.collect()
}

/// The caller's values, as an error may quote them. Those of the page are the host's own.
pub fn callers(text: &str, values: &[Value]) -> Vec<String> {
    let callers = values.iter().take(callers_values(text, values.len()));
    callers.filter_map(shown).collect()
}

fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Int64(value) => Some(value.to_string()),
        Value::Text(text) | Value::Json(text) | Value::Decimal(text)
            if text.len() <= SHOWN_BYTES_MAX =>
        {
            Some(text.clone())
        }
        _ => None,
    }
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
        Value::Float64(value) => double(*value),
        Value::Decimal(text) => decimal(text)?,
        Value::Text(text) => quoted(text),
        Value::Bytes(bytes) => binary(bytes),
        Value::Json(text) => format!("JSON {}", quoted(text)),
        Value::Date(days) => {
            let date = date(i64::from(*days), "a date of the years 1 to 9999")?;
            format!("DATE '{date}'")
        }
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

/// The shortest digits that say the number, as Java reads them.
fn double(value: f64) -> String {
    let text = match value {
        value if value.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        value => format!("{value:e}"),
    };
    format!("DOUBLE '{text}'")
}

fn decimal(text: &str) -> Result<String, &'static str> {
    let wanted = "a number of at most 38 digits";
    let (sign, digits) = match text.as_bytes() {
        [b'-', ..] => ("-", &text[1..]),
        [b'+', ..] => ("", &text[1..]),
        _ => ("", text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return Err(wanted);
    }
    let count = whole.trim_start_matches('0').len() + fraction.len();
    match (count <= DIGITS_MAX, fraction) {
        (false, _) => Err(wanted),
        (true, "") => Ok(format!("DECIMAL '{sign}{whole}'")),
        (true, fraction) => Ok(format!("DECIMAL '{sign}{whole}.{fraction}'")),
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

fn clock(micros: i64) -> Result<String, &'static str> {
    let wanted = "a timestamp of the years 1 to 9999";
    let date = date(micros.div_euclid(DAY_US), wanted)?;
    Ok(format!("{date} {}", TimeOfDay::of(micros)))
}

fn date(days: i64, wanted: &'static str) -> Result<Date, &'static str> {
    let date = Date::from_days(days);
    match YEARS.contains(&date.year) {
        true => Ok(date),
        false => Err(wanted),
    }
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
