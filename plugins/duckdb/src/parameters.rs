//! Bound values as literals of DuckDB's, each of its own type. Quack binds none: they are written where the placeholders stand.

use std::fmt::Write;

use souk_sdk::parameters::{Decimal, clock, date, float, refused};
use souk_sdk::time::{DAY_US, TimeOfDay};
use souk_sdk::{ColumnType, Error, Value};

/// Blanks, and what cannot be seen, beyond those of ASCII. DuckDB makes blanks of some of them before it reads a statement.
pub fn is_blank_beyond_ascii(char: char) -> bool {
    let is_invisible = matches!(
        char,
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    );
    is_invisible || (!char.is_ascii() && char.is_whitespace())
}

/// Appends the value of this place as a literal.
pub fn write(place: usize, value: &Value, out: &mut String) -> Result<(), Error> {
    literal(value, out).map_err(|wanted| refused(place, wanted))
}

/// A text as a literal. Nothing but a quote has a meaning in it.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    for part in text.split('\'') {
        // A quote in it is doubled.
        let quotes = if out.is_empty() { "'" } else { "''" };
        out.push_str(quotes);
        out.push_str(part);
    }
    out.push('\'');
    out
}

/// Of a whole number: more than a `BIGNUM` leaves with.
const WHOLE_DIGITS_MAX: usize = 1_000;

/// The error is what it should have been.
fn literal(value: &Value, out: &mut String) -> Result<(), &'static str> {
    // A String takes everything.
    let _ = match value {
        Value::Null(declared) => out.write_str(null(*declared)),
        Value::Boolean(value) => write!(out, "CAST('{value}' AS BOOLEAN)"),
        Value::Int64(value) => write!(out, "CAST('{value}' AS BIGINT)"),
        Value::Float64(value) => {
            write!(out, "CAST('{}' AS DOUBLE)", float(*value, "nan", "inf"))
        }
        Value::Decimal(text) => out.write_str(&decimal(text)?),
        Value::Text(text) => write!(out, "CAST({} AS VARCHAR)", exact(without_nul(text)?)),
        Value::Bytes(bytes) => write!(out, "CAST('{}' AS BLOB)", binary(bytes)),
        Value::Json(text) => write!(out, "CAST({} AS JSON)", exact(without_nul(text)?)),
        Value::Date(days) => write!(out, "CAST('{}' AS DATE)", date(*days)?),
        Value::Time(micros) if *micros <= DAY_US => {
            write!(out, "CAST('{}' AS TIME)", TimeOfDay(*micros))
        }
        Value::Time(_) => return Err("a time up to 24:00:00"),
        Value::Timestamp(micros) => {
            write!(out, "CAST('{}+00' AS TIMESTAMPTZ)", clock(*micros)?)
        }
        Value::LocalTimestamp(micros) => {
            write!(out, "CAST('{}' AS TIMESTAMP)", clock(*micros)?)
        }
    };
    Ok(())
}

/// A text in which DuckDB changes nothing. It looks for blanks beyond ASCII outside of quotes, and takes what is quoted for the opposite behind an
/// apostrophe in a comment.
fn exact(text: &str) -> String {
    match !text.is_ascii() && text.contains(is_blank_beyond_ascii) {
        true => format!("decode(CAST('{}' AS BLOB))", binary(text.as_bytes())),
        false => quoted(text),
    }
}

/// DuckDB reads a statement to the first one.
fn without_nul(text: &str) -> Result<&str, &'static str> {
    match text.contains('\0') {
        true => Err("a text without the character NUL"),
        false => Ok(text),
    }
}

/// Of no type a NULL takes that of what it stands beside.
fn null(declared: Option<ColumnType>) -> &'static str {
    match declared {
        None => "NULL",
        Some(ColumnType::Boolean) => "CAST(NULL AS BOOLEAN)",
        Some(ColumnType::Int64) => "CAST(NULL AS BIGINT)",
        Some(ColumnType::Float64) => "CAST(NULL AS DOUBLE)",
        // What it stands beside keeps its digits: with more of them here it would be cut to the 38 that there are.
        Some(ColumnType::Decimal) => "CAST(NULL AS DECIMAL(1, 0))",
        Some(ColumnType::Text) => "CAST(NULL AS VARCHAR)",
        Some(ColumnType::Bytes) => "CAST(NULL AS BLOB)",
        Some(ColumnType::Date) => "CAST(NULL AS DATE)",
        Some(ColumnType::Time) => "CAST(NULL AS TIME)",
        Some(ColumnType::Timestamp) => "CAST(NULL AS TIMESTAMPTZ)",
        Some(ColumnType::LocalTimestamp) => "CAST(NULL AS TIMESTAMP)",
        Some(ColumnType::Json) => "CAST(NULL AS JSON)",
    }
}

/// A whole number is one of DuckDB's, which takes the type of what it is compared with. Beside a decimal a column's huge numbers become decimals, for
/// some of which those have too few digits; and beside a `HUGEINT` an unsigned column is cast, and no index is looked into.
fn decimal(text: &str) -> Result<String, &'static str> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_whole = (1..=WHOLE_DIGITS_MAX).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_whole {
        return Ok(match (text.parse::<u128>(), text.parse::<i128>()) {
            (Ok(number), _) => number.to_string(),
            (_, Ok(_)) => format!("CAST('{text}' AS HUGEINT)"),
            _ => format!("CAST('{text}' AS BIGNUM)"),
        });
    }
    let number = Decimal::of(text)?;
    let (sign, fraction) = (number.sign, number.fraction);
    let whole = number.whole.trim_start_matches('0');
    let (width, scale) = (number.digits().max(1), fraction.len());
    Ok(format!(
        "CAST('{sign}0{whole}.{fraction}0' AS DECIMAL({width}, {scale}))"
    ))
}

fn binary(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(4 * bytes.len());
    for byte in bytes {
        // A String takes everything.
        let _ = write!(text, "\\x{byte:02X}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(value: &Value) -> Result<String, &'static str> {
        let mut out = String::new();
        super::literal(value, &mut out).map(|()| out)
    }

    #[test]
    fn what_is_quoted_is_one_text() {
        for (text, wanted) in [
            ("", "''"),
            ("a", "'a'"),
            ("'", "''''"),
            ("'a''b'", "'''a''''b'''"),
        ] {
            assert_eq!(quoted(text), wanted);
        }
    }

    #[test]
    fn values_keep_every_digit() {
        for (value, wanted) in [
            (
                Value::Int64(i64::MIN),
                "CAST('-9223372036854775808' AS BIGINT)",
            ),
            (Value::Float64(0.1), "CAST('1e-1' AS DOUBLE)"),
            (Value::Float64(f64::NEG_INFINITY), "CAST('-inf' AS DOUBLE)"),
            (
                Value::Decimal("-12345678901234567890.00100".into()),
                "CAST('-012345678901234567890.001000' AS DECIMAL(25, 5))",
            ),
            (
                Value::Decimal("+007".into()),
                "CAST('07.0' AS DECIMAL(1, 0))",
            ),
            (
                Value::Decimal("0.05".into()),
                "CAST('0.050' AS DECIMAL(2, 2))",
            ),
            (
                Value::Decimal(i128::MAX.to_string()),
                "170141183460469231731687303715884105727",
            ),
            (
                Value::Decimal(u128::MAX.to_string()),
                "340282366920938463463374607431768211455",
            ),
            (Value::Decimal("-7".into()), "CAST('-7' AS HUGEINT)"),
            (
                Value::Decimal("-340282366920938463463374607431768211455".into()),
                "CAST('-340282366920938463463374607431768211455' AS BIGNUM)",
            ),
            (
                Value::Text("it's \\ 日本\n".into()),
                "CAST('it''s \\ 日本\n' AS VARCHAR)",
            ),
            (
                Value::Text("a\u{a0}'".into()),
                "CAST(decode(CAST('\\x61\\xC2\\xA0\\x27' AS BLOB)) AS VARCHAR)",
            ),
            (
                Value::Bytes(vec![0xff, 0, 10]),
                "CAST('\\xFF\\x00\\x0A' AS BLOB)",
            ),
            (Value::Boolean(true), "CAST('true' AS BOOLEAN)"),
            (
                Value::Json("{\"a\":\"'\"}".into()),
                "CAST('{\"a\":\"''\"}' AS JSON)",
            ),
            (Value::Date(19_782), "CAST('2024-02-29' AS DATE)"),
            (Value::Time(1), "CAST('00:00:00.000001' AS TIME)"),
            (
                Value::Timestamp(-1),
                "CAST('1969-12-31 23:59:59.999999+00' AS TIMESTAMPTZ)",
            ),
            (
                Value::LocalTimestamp(0),
                "CAST('1970-01-01 00:00:00.000000' AS TIMESTAMP)",
            ),
            (Value::Null(None), "NULL"),
            (
                Value::Null(Some(ColumnType::Timestamp)),
                "CAST(NULL AS TIMESTAMPTZ)",
            ),
        ] {
            assert_eq!(literal(&value).as_deref(), Ok(wanted), "{value:?}");
        }
    }

    /// What DuckDB's types do not have is the caller's mistake, and named by its place.
    #[test]
    fn what_does_not_fit_is_the_callers() {
        for value in [
            Value::Decimal(format!("{}.5", "9".repeat(38))),
            Value::Decimal("1e5".into()),
            Value::Decimal("NaN".into()),
            Value::Decimal("1.'; DROP".into()),
            Value::Decimal(String::new()),
            Value::Text("a\0b".into()),
            Value::Date(i32::MAX),
            Value::Time(DAY_US + 1),
            Value::Timestamp(i64::MIN),
        ] {
            let error = write(1, &value, &mut String::new()).unwrap_err();
            assert_eq!(error.parameter, Some(1));
        }
    }
}
