//! Bound values, each with the type that it is declared as.
//!
//! A time with its day is bound as text: of a lower rank than any type of a column's, it is read as the column's own type, so that what a column showed
//! finds it again. As `datetime2` it would make a `datetime` beside it one, whose thousandths are thirds to the server then.

use std::borrow::Cow;

use bytes::Bytes;
use souk_sdk::time::{Date, iso8601};
use souk_sdk::{ColumnType, Error, Value, short};
use tds_protocol::rpc::{RpcParam, TypeInfo};

use crate::types::DECIMAL_DIGITS_MAX;

/// What a call of the server's has at most, less what the connector itself sends.
const VALUES_MAX: usize = 2_100 - 4;
/// The longest text and the most bytes that are no large object.
const TEXT_UNITS_MAX: usize = 4_000;
const BYTES_MAX: usize = 8_000;
/// How much of a value a message may quote.
const QUOTED_BYTES_MAX: usize = 4_000;
/// The longest decimal, with its sign.
const DECIMAL_BYTES_MAX: u8 = 17;
/// In the place of a length: there is no longest one.
const LONG: u16 = 0xffff;
/// `time(6)` and no digit of it lost.
const TIME_DIGITS: u8 = 6;
const DAY_US: i64 = souk_sdk::time::DAY_US;
/// 0001-01-01, from which days are counted, and 9999-12-31.
const FIRST_DAY: i64 = -719_162;
const LAST_DAY: i64 = 2_932_896;

/// What a value is declared as. Whether the server has the value at all is known with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    Bit,
    BigInt,
    Float,
    /// Digits, and how many of them are behind the point.
    Decimal(u8, u8),
    Words,
    LongWords,
    Bytes,
    LongBytes,
    Date,
    Time,
}

/// What each value is declared as.
pub fn declared(values: &[Value]) -> Result<Vec<Declared>, Error> {
    if values.len() > VALUES_MAX {
        return Err(Error::invalid_request(
            "too_many_values",
            format!("SQL Server takes {VALUES_MAX} values at most"),
        ));
    }
    let values = values.iter().enumerate();
    let declared =
        values.map(|(at, value)| Declared::of(value).map_err(|error| error.parameter(at)));
    declared.collect()
}

impl Declared {
    pub fn of(value: &Value) -> Result<Declared, Error> {
        Ok(match value {
            Value::Null(kind) => Declared::of_null(*kind),
            Value::Boolean(_) => Declared::Bit,
            Value::Int64(_) => Declared::BigInt,
            Value::Float64(value) if value.is_finite() => Declared::Float,
            Value::Float64(_) => {
                return Err(invalid(
                    "must be a number: SQL Server has none that is not finite",
                ));
            }
            Value::Decimal(digits) => {
                let decimal = decimal(digits)?;
                Declared::Decimal(decimal.precision, decimal.scale)
            }
            Value::Text(text) | Value::Json(text) => Declared::of_text(text),
            Value::Bytes(bytes) => match bytes.len() {
                0..=BYTES_MAX => Declared::Bytes,
                _ => Declared::LongBytes,
            },
            Value::Date(days) => {
                within(i64::from(*days))?;
                Declared::Date
            }
            Value::Time(0..DAY_US) => Declared::Time,
            Value::Time(_) => return Err(invalid("must be a time before 24:00:00")),
            Value::Timestamp(micros) | Value::LocalTimestamp(micros) => {
                within(micros.div_euclid(DAY_US))?;
                Declared::Words
            }
        })
    }

    fn of_text(text: &str) -> Declared {
        // As many units as bytes at most.
        match text.len() <= TEXT_UNITS_MAX || text.encode_utf16().count() <= TEXT_UNITS_MAX {
            true => Declared::Words,
            false => Declared::LongWords,
        }
    }

    /// What NULL is of, so that it compares with a column of that type.
    fn of_null(kind: Option<ColumnType>) -> Declared {
        match kind {
            Some(ColumnType::Boolean) => Declared::Bit,
            Some(ColumnType::Int64) => Declared::BigInt,
            Some(ColumnType::Float64) => Declared::Float,
            // One that takes no digits from what stands beside it.
            Some(ColumnType::Decimal) => Declared::Decimal(1, 0),
            Some(ColumnType::Bytes) => Declared::Bytes,
            Some(ColumnType::Date) => Declared::Date,
            Some(ColumnType::Time) => Declared::Time,
            _ => Declared::Words,
        }
    }

    /// `bigint`
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Declared::Bit => "bit",
            Declared::BigInt => "bigint",
            Declared::Float => "float(53)",
            Declared::Decimal(precision, scale) => {
                return format!("decimal({precision}, {scale})").into();
            }
            Declared::Words => "nvarchar(4000)",
            Declared::LongWords => "nvarchar(max)",
            Declared::Bytes => "varbinary(8000)",
            Declared::LongBytes => "varbinary(max)",
            Declared::Date => "date",
            Declared::Time => "time(6)",
        }
        .into()
    }

    /// As a value says of which type it is (MS-TDS 2.2.5.4).
    fn write(self, out: &mut Vec<u8>) {
        match self {
            Declared::Bit => out.extend_from_slice(&[0x68, 1]),
            Declared::BigInt => out.extend_from_slice(&[0x26, 8]),
            Declared::Float => out.extend_from_slice(&[0x6d, 8]),
            Declared::Decimal(precision, scale) => {
                out.extend_from_slice(&[0x6c, DECIMAL_BYTES_MAX, precision, scale]);
            }
            Declared::Words => out.extend_from_slice(&words_of(2 * TEXT_UNITS_MAX as u16)),
            Declared::LongWords => out.extend_from_slice(&words_of(LONG)),
            Declared::Bytes => out.extend_from_slice(&bytes_of(BYTES_MAX as u16)),
            Declared::LongBytes => out.extend_from_slice(&bytes_of(LONG)),
            Declared::Date => out.push(0x28),
            Declared::Time => out.extend_from_slice(&[0x29, TIME_DIGITS]),
        }
    }
}

/// With a collation, as [`TypeInfo::nvarchar`] has it.
const fn words_of(bytes_max: u16) -> [u8; 8] {
    let [low, high] = bytes_max.to_le_bytes();
    [0xe7, low, high, 0x09, 0x04, 0xd0, 0x00, 0x34]
}

const fn bytes_of(bytes_max: u16) -> [u8; 3] {
    let [low, high] = bytes_max.to_le_bytes();
    [0xa5, low, high]
}

/// Appends a value as a parameter, `@P1` if its number is 1.
pub fn write(out: &mut Vec<u8>, number: usize, value: &Value) -> Result<(), Error> {
    let declared = Declared::of(value)?;
    name(out, number);
    // No flags.
    out.push(0);
    declared.write(out);
    match value {
        Value::Null(_) => match declared {
            Declared::Words | Declared::Bytes => out.extend_from_slice(&[0xff, 0xff]),
            _ => out.push(0),
        },
        Value::Boolean(value) => out.extend_from_slice(&[1, u8::from(*value)]),
        Value::Int64(value) => eight(out, value.to_le_bytes()),
        Value::Float64(value) => eight(out, value.to_le_bytes()),
        Value::Decimal(digits) => decimal(digits)?.write(out),
        Value::Text(text) | Value::Json(text) => {
            sized(out, declared, |out| units(text, out));
        }
        Value::Bytes(bytes) => sized(out, declared, |out| short::append(out, bytes)),
        Value::Date(days) => {
            let [a, b, c, _] = ((i64::from(*days) - FIRST_DAY) as u32).to_le_bytes();
            out.extend_from_slice(&[3, a, b, c]);
        }
        Value::Time(micros) => {
            let [a, b, c, d, e, ..] = micros.to_le_bytes();
            out.extend_from_slice(&[5, a, b, c, d, e]);
        }
        Value::Timestamp(micros) | Value::LocalTimestamp(micros) => {
            let text = clock(*micros)?;
            sized(out, declared, |out| units(&text, out));
        }
    }
    Ok(())
}

/// `@P12`, behind the number of its letters.
fn name(out: &mut Vec<u8>, number: usize) {
    let begin = out.len();
    out.extend_from_slice(&[0, b'@', 0, b'P', 0]);
    let mut power = 1;
    while number / power >= 10 {
        power *= 10;
    }
    while power > 0 {
        out.extend_from_slice(&[b'0' + (number / power % 10) as u8, 0]);
        power /= 10;
    }
    out[begin] = ((out.len() - begin) / 2) as u8;
}

fn eight(out: &mut Vec<u8>, bytes: [u8; 8]) {
    out.push(8);
    out.extend_from_slice(&bytes);
}

/// Appends what `write` writes behind its length; what is long is one piece, behind which there is none.
fn sized(out: &mut Vec<u8>, declared: Declared, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    match declared {
        Declared::LongWords | Declared::LongBytes => {
            out.extend_from_slice(&[0; 12]);
            write(out);
            let length = out.len() - begin - 12;
            out[begin..begin + 8].copy_from_slice(&(length as u64).to_le_bytes());
            out[begin + 8..begin + 12].copy_from_slice(&(length as u32).to_le_bytes());
            out.extend_from_slice(&[0; 4]);
        }
        _ => {
            out.extend_from_slice(&[0; 2]);
            write(out);
            let length = out.len() - begin - 2;
            out[begin..begin + 2].copy_from_slice(&(length as u16).to_le_bytes());
        }
    }
}

/// Those of the values of which messages of the server's may have something.
pub fn quotable(mut values: Vec<Value>, count: usize) -> Vec<Value> {
    values.truncate(count);
    values.retain(|value| match value {
        Value::Text(text) | Value::Json(text) | Value::Decimal(text) => {
            text.len() <= QUOTED_BYTES_MAX
        }
        Value::Int64(_) | Value::Timestamp(_) | Value::LocalTimestamp(_) => true,
        _ => false,
    });
    values
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
    let info = match Declared::of_text(text) {
        Declared::LongWords => TypeInfo::nvarchar_max(),
        _ => TypeInfo::nvarchar(TEXT_UNITS_MAX as u16),
    };
    let mut bytes = Vec::new();
    units(text, &mut bytes);
    RpcParam::new(name, info, Bytes::from(bytes))
}

/// Appends UTF-16, as the server reads texts.
fn units(text: &str, out: &mut Vec<u8>) {
    if text.is_ascii() {
        // Which most of it is, and is done many at a time.
        let begin = out.len();
        out.resize(begin + 2 * text.len(), 0);
        for (unit, byte) in out[begin..].chunks_exact_mut(2).zip(text.bytes()) {
            unit[0] = byte;
        }
        return;
    }
    out.reserve(2 * text.len());
    for unit in text.encode_utf16() {
        out.extend_from_slice(&unit.to_le_bytes());
    }
}

/// Digits, and how many of them are behind the point.
struct Decimal {
    /// Whether it is positive, as the server has it.
    sign: u8,
    magnitude: u128,
    precision: u8,
    scale: u8,
}

impl Decimal {
    fn write(&self, out: &mut Vec<u8>) {
        let length = match self.precision {
            1..=9 => 4,
            10..=19 => 8,
            20..=28 => 12,
            _ => 16,
        };
        out.extend_from_slice(&[length + 1, self.sign]);
        let magnitude = self.magnitude.to_le_bytes();
        short::append(out, &magnitude[..usize::from(length)]);
    }
}

/// With as many digits as it has: more would take some from what it is computed with.
fn decimal(text: &str) -> Result<Decimal, Error> {
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
    Ok(Decimal {
        sign,
        // Of so few digits it is one.
        magnitude: all.parse().map_err(|_| invalid("must be a number"))?,
        precision: precision as u8,
        scale: fraction.len() as u8,
    })
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
        // Of those that are kept for it the same.
        assert_eq!(quoted(&quotable(values.to_vec(), 6)), quoted(&values));
        assert_eq!(quotable(values.to_vec(), 6).len(), 4);
        assert_eq!(quotable(values.to_vec(), 1), values[..1]);
    }

    /// A value as it is sent, without its name, and what it is declared as.
    fn sent(value: Value) -> (String, Vec<u8>) {
        let mut bytes = Vec::new();
        write(&mut bytes, 1, &value).unwrap();
        // A length, `@P1`, and no flags.
        assert_eq!(bytes[..8], [3, b'@', 0, b'P', 0, b'1', 0, 0]);
        let declared = Declared::of(&value).unwrap();
        (format!("@P1 {}", declared.name()), bytes[8..].to_vec())
    }

    #[test]
    fn each_value_has_a_name() {
        for number in [1, 9, 10, 99, 100, 2_096] {
            let mut bytes = Vec::new();
            name(&mut bytes, number);
            let written = format!("@P{number}");
            let units: Vec<u8> = written.encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert_eq!(bytes, [&[written.len() as u8][..], &units].concat());
        }
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
            let error = declared(&[Value::Int64(1), wrong.clone()]).unwrap_err();
            assert_eq!(
                error.class,
                souk_sdk::ErrorClass::InvalidRequest,
                "{wrong:?}"
            );
            assert_eq!(error.parameter, Some(1), "{wrong:?}");
        }
        assert!(declared(&vec![Value::Int64(1); VALUES_MAX + 1]).is_err());
        let exact = "9".repeat(38);
        let (as_declared, _) = sent(Value::Decimal(exact));
        assert_eq!(as_declared, "@P1 decimal(38, 0)");
    }
}
