//! A request's values as DataFusion binds them, each of its declared type.

use datafusion::arrow::datatypes::{DataType, i256};
use datafusion::common::ScalarValue;
use souk_sdk::{ColumnType, Error, Value};
use std::sync::Arc;

/// Digits that a decimal of 128 bits holds, and one of 256.
const DIGITS_MAX: usize = 38;
const WIDE_DIGITS_MAX: usize = 76;

pub fn bound(value: &Value) -> Result<ScalarValue, Error> {
    Ok(match value {
        Value::Null(kind) => null(*kind)?,
        Value::Boolean(value) => ScalarValue::Boolean(Some(*value)),
        Value::Int64(value) => ScalarValue::Int64(Some(*value)),
        Value::Float64(value) => ScalarValue::Float64(Some(*value)),
        Value::Decimal(text) => decimal(text)?,
        Value::Text(text) | Value::Json(text) => ScalarValue::Utf8(Some(text.clone())),
        Value::Bytes(bytes) => ScalarValue::Binary(Some(bytes.clone())),
        Value::Date(days) => ScalarValue::Date32(Some(*days)),
        Value::Time(micros) => ScalarValue::Time64Microsecond(Some(*micros)),
        Value::Timestamp(micros) => ScalarValue::TimestampMicrosecond(Some(*micros), utc()),
        Value::LocalTimestamp(micros) => ScalarValue::TimestampMicrosecond(Some(*micros), None),
    })
}

fn utc() -> Option<Arc<str>> {
    Some("UTC".into())
}

fn null(kind: Option<ColumnType>) -> Result<ScalarValue, Error> {
    let Some(kind) = kind else {
        return Ok(ScalarValue::Null);
    };
    let kind = match kind {
        ColumnType::Boolean => DataType::Boolean,
        ColumnType::Int64 => DataType::Int64,
        ColumnType::Float64 => DataType::Float64,
        ColumnType::Decimal => DataType::Decimal128(DIGITS_MAX as u8, 0),
        ColumnType::Text | ColumnType::Json => DataType::Utf8,
        ColumnType::Bytes => DataType::Binary,
        ColumnType::Date => DataType::Date32,
        ColumnType::Time => return Ok(ScalarValue::Time64Microsecond(None)),
        ColumnType::Timestamp => return Ok(ScalarValue::TimestampMicrosecond(None, utc())),
        ColumnType::LocalTimestamp => return Ok(ScalarValue::TimestampMicrosecond(None, None)),
    };
    ScalarValue::try_new_null(&kind).map_err(|error| {
        Error::internal("no_null", "the connector could not bind NULL").detail(error.to_string())
    })
}

/// As many digits as were written, none of them lost.
fn decimal(text: &str) -> Result<ScalarValue, Error> {
    let not_a_number = || {
        Error::invalid_request(
            "value_not_a_number",
            "a decimal parameter is no number of at most 76 digits",
        )
    };
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
        return Err(not_a_number());
    }
    let whole = whole.trim_start_matches('0');
    let digits = (whole.len() + fraction.len()).max(1);
    if digits > WIDE_DIGITS_MAX {
        return Err(not_a_number());
    }
    if digits > DIGITS_MAX {
        let sign = if text.starts_with('-') { "-" } else { "" };
        let number = i256::from_string(&format!("{sign}{whole}{fraction}"));
        return Ok(ScalarValue::Decimal256(
            Some(number.ok_or_else(not_a_number)?),
            digits as u8,
            fraction.len() as i8,
        ));
    }
    let number: i128 = match whole.len() + fraction.len() {
        0 => 0,
        _ => format!("{whole}{fraction}")
            .parse()
            .map_err(|_| not_a_number())?,
    };
    let number = if text.starts_with('-') {
        -number
    } else {
        number
    };
    Ok(ScalarValue::Decimal128(
        Some(number),
        digits.max(fraction.len()) as u8,
        fraction.len() as i8,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_keep_their_digits() {
        for (text, number, precision, scale) in [
            ("1.50", 150, 3, 2),
            ("-0.05", -5, 2, 2),
            ("0", 0, 1, 0),
            ("007", 7, 1, 0),
            (
                "12345678901234567890123456789012345.678",
                12_345_678_901_234_567_890_123_456_789_012_345_678,
                38,
                3,
            ),
        ] {
            let bound = decimal(text).unwrap();
            assert_eq!(
                bound,
                ScalarValue::Decimal128(Some(number), precision, scale),
                "{text}"
            );
        }
        let wide = decimal(&format!("-{}.5", "9".repeat(75))).unwrap();
        let number = i256::from_string(&format!("-{}5", "9".repeat(75)));
        assert_eq!(wide, ScalarValue::Decimal256(number, 76, 1));
        for text in ["", "-", "1e5", "NaN", "1.2.3", "1 ", &"9".repeat(77)] {
            assert_eq!(
                decimal(text).unwrap_err().code,
                "value_not_a_number",
                "{text}"
            );
        }
    }
}
