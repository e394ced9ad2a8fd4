//! Bound values: the server's type for each, and its text as `param_p1` carries it (tab separated, escaped).

use std::borrow::Cow;

use souk_sdk::time::{DAY_US, Date, TimeOfDay};
use souk_sdk::{ColumnType, Value};

/// Years that `Date32` and `DateTime64` have.
const YEARS: std::ops::RangeInclusive<i64> = 1900..=2299;
/// Digits of `Decimal128` and `Decimal256`.
const DIGITS: usize = 38;
const DIGITS_MAX: usize = 76;
/// The largest whole numbers that there are, and the smallest without its sign.
const INT256_MAX: &str =
    "57896044618658097711785492504343953926634992332820282019728792003956564819967";
const INT256_MIN: &str =
    "57896044618658097711785492504343953926634992332820282019728792003956564819968";
const UINT256_MAX: &str =
    "115792089237316195423570985008687907853269984665640564039457584007913129639935";
/// `2024-02-29 12:00:00`.
const SECOND_CHARS: usize = 19;
const MOMENT: &str = "DateTime64(6, 'UTC')";

/// The type under which a value is bound. The error is what it should have been.
pub fn type_of(value: &Value) -> Result<Cow<'static, str>, &'static str> {
    let name = match value {
        Value::Null(declared) => match declared {
            Some(ColumnType::Boolean) => "Nullable(Bool)",
            Some(ColumnType::Int64) => "Nullable(Int64)",
            Some(ColumnType::Float64) => "Nullable(Float64)",
            Some(ColumnType::Decimal) => "Nullable(Decimal(38, 10))",
            Some(ColumnType::Date) => "Nullable(Date32)",
            Some(ColumnType::Timestamp | ColumnType::LocalTimestamp) => {
                "Nullable(DateTime64(6, 'UTC'))"
            }
            _ => "Nullable(String)",
        },
        Value::Boolean(_) => "Bool",
        Value::Int64(_) => "Int64",
        // Its bits.
        Value::Float64(_) => "UInt64",
        Value::Decimal(text) => return decimal_type(text),
        // What has hours beyond a day leaves as text.
        Value::Text(_) | Value::Bytes(_) | Value::Json(_) | Value::Time(_) => "String",
        Value::Date(_) => "Date32",
        // No column here is without a zone: it is read as UTC.
        Value::Timestamp(micros) | Value::LocalTimestamp(micros) => moment_type(*micros),
    };
    Ok(Cow::Borrowed(name))
}

/// As wide as its digits need. A whole number is an integer, since a list (`IN`) of decimals has no place for a column of integers.
fn decimal_type(text: &str) -> Result<Cow<'static, str>, &'static str> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || whole.is_empty() {
        return Err("a number");
    }
    let (whole, scale) = (whole.trim_start_matches('0'), fraction.len());
    if scale == 0 {
        return whole_type(text.starts_with('-'), whole).map(Cow::Borrowed);
    }
    let mut widths = [DIGITS, DIGITS_MAX].into_iter();
    let width = widths.find(|width| whole.len() + scale <= *width);
    let width = width.ok_or("a number of at most 76 digits")?;
    Ok(format!("Decimal({width}, {scale})").into())
}

/// The type of a whole number, of its digits without zeros before them.
fn whole_type(is_negative: bool, digits: &str) -> Result<&'static str, &'static str> {
    let is_within = |last: &str| (digits.len(), digits) <= (last.len(), last);
    let last = if is_negative { INT256_MIN } else { INT256_MAX };
    match () {
        () if digits.len() <= DIGITS => Ok("Int128"),
        () if is_within(last) => Ok("Int256"),
        () if !is_negative && is_within(UINT256_MAX) => Ok("UInt256"),
        () => Err("a whole number of at most 256 bits"),
    }
}

/// Whole seconds that `DateTime` has are bound as one: a list of anything else has no place for a column of it.
fn moment_type(micros: i64) -> &'static str {
    let seconds = micros.div_euclid(1_000_000);
    match micros.rem_euclid(1_000_000) == 0 && u32::try_from(seconds).is_ok() {
        true => "DateTime('UTC')",
        false => MOMENT,
    }
}

/// The value's text. The error is what it should have been.
pub fn text_of(value: &Value) -> Result<Vec<u8>, &'static str> {
    Ok(match value {
        Value::Null(_) => b"\\N".to_vec(),
        Value::Boolean(value) => value.to_string().into_bytes(),
        Value::Int64(value) => value.to_string().into_bytes(),
        Value::Float64(value) => value.to_bits().to_string().into_bytes(),
        Value::Decimal(text) => text.clone().into_bytes(),
        Value::Text(text) | Value::Json(text) => escaped(text.as_bytes()),
        Value::Bytes(bytes) => escaped(bytes),
        Value::Date(days) => date(i64::from(*days), "a date of the years 1900 to 2299")?
            .to_string()
            .into_bytes(),
        Value::Time(micros) => TimeOfDay(*micros).to_string().into_bytes(),
        Value::Timestamp(micros) | Value::LocalTimestamp(micros) => {
            let wanted = "a timestamp of the years 1900 to 2299";
            let date = date(micros.div_euclid(DAY_US), wanted)?;
            let mut text = format!("{date} {}", TimeOfDay::of(*micros));
            if moment_type(*micros) != MOMENT {
                text.truncate(SECOND_CHARS);
            }
            text.into_bytes()
        }
    })
}

fn date(days: i64, wanted: &'static str) -> Result<Date, &'static str> {
    let date = Date::from_days(days);
    match YEARS.contains(&date.year) {
        true => Ok(date),
        false => Err(wanted),
    }
}

/// What the server reads as these bytes. A quote has no meaning in it, but a list's reader would give it one.
fn escaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 8);
    for byte in bytes {
        let letter = match byte {
            b'\\' | b'\'' => *byte,
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            0 => b'0',
            _ => {
                out.push(*byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let text = |text: &str| text_of(&Value::Text(text.into())).unwrap();
        assert_eq!(
            text("a\tb\nc\\d'e\r\0ü"),
            "a\\tb\\nc\\\\d\\'e\\r\\0ü".as_bytes()
        );
        // A text is never NULL.
        assert_eq!(text("\\N"), b"\\\\N");
        assert_eq!(text_of(&Value::Null(None)).unwrap(), b"\\N");
        assert_eq!(text_of(&Value::Bytes(vec![0xff, 9])).unwrap(), b"\xff\\t");
    }

    #[test]
    fn numbers_and_moments_keep_every_digit() {
        let decimal = |text: &str| type_of(&Value::Decimal(text.into()));
        assert_eq!(
            decimal("-12345678901234567890.00100").unwrap(),
            "Decimal(38, 5)"
        );
        assert_eq!(decimal("0.5").unwrap(), "Decimal(38, 1)");
        assert_eq!(decimal("18446744073709551614").unwrap(), "Int128");
        assert_eq!(decimal(&"9".repeat(39)).unwrap(), "Int256");
        for (most, kind, more) in [
            (INT256_MAX, "Int256", "UInt256"),
            (UINT256_MAX, "UInt256", ""),
            (format!("-{INT256_MIN}").as_str(), "Int256", ""),
            (format!("-0{INT256_MAX}").as_str(), "Int256", "Int256"),
        ] {
            assert_eq!(decimal(most).unwrap(), kind, "{most}");
            // None of them ends with a nine.
            let (rest, last) = most.split_at(most.len() - 1);
            let next = format!("{rest}{}", last.parse::<u8>().unwrap() + 1);
            assert_eq!(decimal(&next).unwrap_or_default(), more, "{next}");
        }
        let second = Value::Timestamp(1_000_000);
        assert_eq!(type_of(&second).unwrap(), "DateTime('UTC')");
        assert_eq!(text_of(&second).unwrap(), b"1970-01-01 00:00:01");
        for text in ["", "1e5", "NaN", ".5", "1.2.3", &"9".repeat(78)] {
            assert!(decimal(text).is_err(), "{text}");
        }
        let moment = text_of(&Value::Timestamp(-1)).unwrap();
        assert_eq!(moment, b"1969-12-31 23:59:59.999999");
        assert_eq!(text_of(&Value::Date(19_782)).unwrap(), b"2024-02-29");
        assert!(text_of(&Value::Date(i32::MAX)).is_err());
        assert!(text_of(&Value::Timestamp(i64::MIN)).is_err());
        let float = |value| String::from_utf8(text_of(&Value::Float64(value)).unwrap()).unwrap();
        assert_eq!(
            [float(0.1), float(f64::NEG_INFINITY), float(f64::NAN)],
            [0.1, f64::NEG_INFINITY, f64::NAN].map(|value| value.to_bits().to_string())
        );
    }
}
