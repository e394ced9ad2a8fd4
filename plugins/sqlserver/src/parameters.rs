//! Bound values, each with the type that it is declared as.
//!
//! A time with its day is bound as text: of a lower rank than any type of a column's, it is read as the column's own type, so that what a column showed
//! finds it again. As `datetime2` it would make a `datetime` beside it one, whose thousandths are thirds to the server then.

use bytes::Bytes;
use souk_sdk::time::{Date, iso8601};
use souk_sdk::{ColumnType, Error, Value};
use tds_protocol::rpc::{RpcParam, TypeInfo};

use crate::types::DECIMAL_DIGITS_MAX;

/// What a call of the server's has at most, less what the connector itself sends.
const VALUES_MAX: usize = 2_100 - 4;
/// The longest text and the most bytes that are no large object.
const TEXT_UNITS_MAX: usize = 4_000;
const BYTES_MAX: usize = 8_000;
/// How much of a value a message may quote.
const QUOTED_BYTES_MAX: usize = 4_000;
/// `time(6)` and no digit of it lost.
const TIME_DIGITS: u8 = 6;
const DAY_US: i64 = souk_sdk::time::DAY_US;
/// 0001-01-01, from which days are counted, and 9999-12-31.
const FIRST_DAY: i64 = -719_162;
const LAST_DAY: i64 = 2_932_896;

/// A value with its name and its declaration: `@P1 bigint`.
pub struct Bound {
    pub value: RpcParam,
    pub declaration: String,
}

pub fn bind(values: &[Value]) -> Result<Vec<Bound>, Error> {
    if values.len() > VALUES_MAX {
        return Err(Error::invalid_request(
            "too_many_values",
            format!("SQL Server takes {VALUES_MAX} values at most"),
        ));
    }
    let bound = values.iter().enumerate().map(|(at, value)| {
        let name = format!("@P{}", at + 1);
        let (info, declared, bytes) = one(value).map_err(|error| error.parameter(at))?;
        Ok(Bound {
            declaration: format!("{name} {declared}"),
            value: match bytes {
                Some(bytes) => RpcParam::new(name, info, Bytes::from(bytes)),
                None => RpcParam::null(name, info),
            },
        })
    });
    bound.collect()
}

/// Values as messages of the server's quote them, which are texts and numbers.
pub fn quoted(values: &[Value]) -> Vec<String> {
    let quoted = values.iter().filter_map(|value| match value {
        Value::Text(text) | Value::Json(text) | Value::Decimal(text) => Some(text.clone()),
        Value::Int64(number) => Some(number.to_string()),
        Value::Timestamp(micros) | Value::LocalTimestamp(micros) => clock(*micros).ok(),
        _ => None,
    });
    // A long one is cut off in a message, and nowhere looked for.
    quoted
        .filter(|text| text.len() <= QUOTED_BYTES_MAX)
        .collect()
}

/// A text as a parameter of the connector's own.
pub fn text(name: &str, text: &str) -> RpcParam {
    let (info, _, bytes) = words(text);
    RpcParam::new(name, info, Bytes::from(bytes))
}

type Typed = (TypeInfo, String, Option<Vec<u8>>);

fn one(value: &Value) -> Result<Typed, Error> {
    let typed =
        |info: TypeInfo, declared: &str, bytes: Vec<u8>| (info, declared.to_owned(), Some(bytes));
    let as_text = |text: &str| {
        let (info, declared, bytes) = words(text);
        typed(info, declared, bytes)
    };
    Ok(match value {
        Value::Null(kind) => {
            let (info, declared) = null(*kind);
            (info, declared.to_owned(), None)
        }
        Value::Boolean(value) => typed(TypeInfo::bit(), "bit", vec![u8::from(*value)]),
        Value::Int64(value) => typed(TypeInfo::bigint(), "bigint", value.to_le_bytes().into()),
        Value::Float64(value) if value.is_finite() => {
            typed(TypeInfo::float(), "float(53)", value.to_le_bytes().into())
        }
        Value::Float64(_) => {
            return Err(invalid(
                "must be a number: SQL Server has none that is not finite",
            ));
        }
        Value::Decimal(digits) => decimal(digits)?,
        Value::Text(value) | Value::Json(value) => as_text(value),
        Value::Bytes(value) => {
            let (info, declared) = match value.len() {
                0..=BYTES_MAX => (TypeInfo::varbinary(BYTES_MAX as u16), "varbinary(8000)"),
                _ => (TypeInfo::varbinary_max(), "varbinary(max)"),
            };
            typed(info, declared, value.clone())
        }
        Value::Date(days) => {
            let days = within(i64::from(*days))? - FIRST_DAY;
            let bytes = (days as u32).to_le_bytes();
            typed(TypeInfo::date(), "date", bytes[..3].into())
        }
        Value::Time(micros @ 0..DAY_US) => {
            let bytes = micros.to_le_bytes();
            typed(TypeInfo::time(TIME_DIGITS), "time(6)", bytes[..5].into())
        }
        Value::Time(_) => return Err(invalid("must be a time before 24:00:00")),
        Value::Timestamp(micros) | Value::LocalTimestamp(micros) => as_text(&clock(*micros)?),
    })
}

fn words(text: &str) -> (TypeInfo, &'static str, Vec<u8>) {
    let units = units(text);
    match units.len() / 2 {
        0..=TEXT_UNITS_MAX => (
            TypeInfo::nvarchar(TEXT_UNITS_MAX as u16),
            "nvarchar(4000)",
            units,
        ),
        _ => (TypeInfo::nvarchar_max(), "nvarchar(max)", units),
    }
}

/// UTF-16, as the server reads texts.
fn units(text: &str) -> Vec<u8> {
    if text.is_ascii() {
        // Which most of it is, and is done many at a time.
        let mut units = vec![0; 2 * text.len()];
        for (unit, byte) in units.chunks_exact_mut(2).zip(text.bytes()) {
            unit[0] = byte;
        }
        return units;
    }
    let mut units = Vec::with_capacity(2 * text.len());
    for unit in text.encode_utf16() {
        units.extend_from_slice(&unit.to_le_bytes());
    }
    units
}

/// What NULL is of, so that it compares with a column of that type.
fn null(kind: Option<ColumnType>) -> (TypeInfo, &'static str) {
    match kind {
        Some(ColumnType::Boolean) => (TypeInfo::bit(), "bit"),
        Some(ColumnType::Int64) => (TypeInfo::bigint(), "bigint"),
        Some(ColumnType::Float64) => (TypeInfo::float(), "float(53)"),
        // One that takes no digits from what stands beside it.
        Some(ColumnType::Decimal) => (TypeInfo::decimal(1, 0), "decimal(1, 0)"),
        Some(ColumnType::Bytes) => (TypeInfo::varbinary(BYTES_MAX as u16), "varbinary(8000)"),
        Some(ColumnType::Date) => (TypeInfo::date(), "date"),
        Some(ColumnType::Time) => (TypeInfo::time(TIME_DIGITS), "time(6)"),
        _ => (TypeInfo::nvarchar(TEXT_UNITS_MAX as u16), "nvarchar(4000)"),
    }
}

/// With as many digits as it has: more would take some from what it is computed with.
fn decimal(text: &str) -> Result<Typed, Error> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (0, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid("must be a number written in digits"));
    }
    let significant = whole.trim_start_matches('0').len() + fraction.len();
    let precision = significant.max(1);
    if precision > usize::from(DECIMAL_DIGITS_MAX) {
        return Err(invalid("must have 38 digits at most"));
    }
    // Of so few digits it is one.
    let magnitude: u128 = all.parse().map_err(|_| invalid("must be a number"))?;
    let (precision, scale) = (precision as u8, fraction.len() as u8);
    let mut bytes = vec![sign];
    let length = match precision {
        1..=9 => 4,
        10..=19 => 8,
        20..=28 => 12,
        _ => 16,
    };
    bytes.extend_from_slice(&magnitude.to_le_bytes()[..length]);
    let declared = format!("decimal({precision}, {scale})");
    Ok((TypeInfo::decimal(precision, scale), declared, Some(bytes)))
}

/// `2026-01-01T12:00:00.5`, with no more digits than it needs: `datetime` reads three, `smalldatetime` none. A moment is what a clock in UTC shows then.
fn clock(micros: i64) -> Result<String, Error> {
    within(micros.div_euclid(DAY_US))?;
    let text = iso8601(micros);
    Ok(text.trim_end_matches('0').trim_end_matches('.').to_owned())
}

fn within(days: i64) -> Result<i64, Error> {
    match (FIRST_DAY..=LAST_DAY).contains(&days) {
        true => Ok(days),
        false => {
            let [first, last] = [FIRST_DAY, LAST_DAY].map(Date::from_days);
            Err(invalid(&format!("must be from {first} to {last}")))
        }
    }
}

fn invalid(message: &str) -> Error {
    Error::invalid_request("invalid_value", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_as_messages_do() {
        let values = [
            Value::Text("ada".into()),
            Value::Int64(-3),
            Value::Decimal("1.50".into()),
            Value::Boolean(true),
            Value::Text("x".repeat(4_001)),
            Value::Timestamp(0),
        ];
        assert_eq!(
            quoted(&values),
            ["ada", "-3", "1.50", "1970-01-01T00:00:00"]
        );
    }
    use bytes::BytesMut;

    /// A value as it is sent, without its name, and its declaration.
    fn sent(value: Value) -> (String, Vec<u8>) {
        let bound = bind(&[value]).unwrap().remove(0);
        let mut bytes = BytesMut::new();
        bound.value.encode(&mut bytes);
        // A length, `@P1`, and no flags.
        assert_eq!(bytes[..8], [3, b'@', 0, b'P', 0, b'1', 0, 0]);
        (bound.declaration, bytes[8..].to_vec())
    }

    #[test]
    fn each_value_has_its_type() {
        for (value, declared, bytes) in [
            (Value::Boolean(true), "@P1 bit", &[0x68, 1, 1, 1][..]),
            (
                Value::Int64(-1),
                "@P1 bigint",
                &[0x26, 8, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            ),
            (
                Value::Float64(0.5),
                "@P1 float(53)",
                &[0x6d, 8, 8, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f],
            ),
            (
                Value::Decimal("-12.50".into()),
                "@P1 decimal(4, 2)",
                &[0x6c, 17, 4, 2, 5, 0, 0xe2, 4, 0, 0],
            ),
            (
                Value::Decimal("0.001".into()),
                "@P1 decimal(3, 3)",
                &[0x6c, 17, 3, 3, 5, 1, 1, 0, 0, 0],
            ),
            (
                Value::Bytes(vec![7]),
                "@P1 varbinary(8000)",
                &[0xa5, 0x40, 0x1f, 1, 0, 7],
            ),
            (
                Value::Date(FIRST_DAY as i32),
                "@P1 date",
                &[0x28, 3, 0, 0, 0],
            ),
            (Value::Time(1), "@P1 time(6)", &[0x29, 6, 5, 1, 0, 0, 0, 0]),
            (
                Value::Null(Some(ColumnType::Int64)),
                "@P1 bigint",
                &[0x26, 8, 0],
            ),
            (
                Value::Null(Some(ColumnType::Bytes)),
                "@P1 varbinary(8000)",
                &[0xa5, 0x40, 0x1f, 0xff, 0xff],
            ),
        ] {
            let (declaration, sent) = sent(value);
            assert_eq!((declaration.as_str(), sent.as_slice()), (declared, bytes));
        }
        let (declared, text) = sent(Value::Text("ä".into()));
        assert_eq!(declared, "@P1 nvarchar(4000)");
        assert!(text.ends_with(&[2, 0, 0xe4, 0]), "{text:x?}");
        let (declared, long) = sent(Value::Text("x".repeat(4_001)));
        assert_eq!(declared, "@P1 nvarchar(max)");
        assert_eq!(long.len(), 1 + 2 + 5 + 8 + 4 + 8_002 + 4);
    }

    #[test]
    fn times_have_no_digit_that_they_need_not() {
        let text = |micros| clock(micros).unwrap();
        assert_eq!(text(0), "1970-01-01T00:00:00");
        assert_eq!(text(3_000), "1970-01-01T00:00:00.003");
        assert_eq!(text(-1), "1969-12-31T23:59:59.999999");
        assert_eq!(text(36_000_000_000), "1970-01-01T10:00:00");
        assert!(clock(i64::MAX).is_err() && clock(i64::MIN).is_err());
    }

    /// What the server has no value for is the caller's, and which one it is is told.
    #[test]
    fn what_does_not_fit_is_the_callers() {
        let many = "9".repeat(39);
        for wrong in [
            Value::Float64(f64::NAN),
            Value::Float64(f64::INFINITY),
            Value::Decimal("NaN".into()),
            Value::Decimal("1e5".into()),
            Value::Decimal(".".into()),
            Value::Decimal(many),
            Value::Decimal("-+1".into()),
            Value::Time(DAY_US),
            Value::Time(-1),
            Value::Date(i32::MAX),
            Value::Timestamp(i64::MAX),
        ] {
            let error = bind(&[Value::Int64(1), wrong.clone()]).err().unwrap();
            assert_eq!(
                error.class,
                souk_sdk::ErrorClass::InvalidRequest,
                "{wrong:?}"
            );
            assert_eq!(error.parameter, Some(1), "{wrong:?}");
        }
        assert!(bind(&vec![Value::Int64(1); VALUES_MAX + 1]).is_err());
        let exact = "9".repeat(38);
        let (declared, _) = sent(Value::Decimal(exact));
        assert_eq!(declared, "@P1 decimal(38, 0)");
    }
}
