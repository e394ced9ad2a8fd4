//! What a value is declared as, and which values the server has none for.

use std::borrow::Cow;

use souk_sdk::time::Date;
use souk_sdk::{ColumnType, Error, Value, short};

use crate::types::DECIMAL_DIGITS_MAX;

/// The longest text and the most bytes that are no large object.
pub(super) const TEXT_UNITS_MAX: usize = 4_000;
const BYTES_MAX: usize = 8_000;
/// The longest decimal, with its sign.
const DECIMAL_BYTES_MAX: u8 = 17;
/// In the place of a length: there is no longest one.
const LONG: u16 = 0xffff;
/// `time(6)` and no digit of it lost.
const TIME_DIGITS: u8 = 6;
pub(super) const DAY_US: i64 = souk_sdk::time::DAY_US;
/// 0001-01-01, from which days are counted, and 9999-12-31.
pub(super) const FIRST_DAY: i64 = -719_162;
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

    pub(super) fn of_text(text: &str) -> Declared {
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
    pub(super) fn write(self, out: &mut Vec<u8>) {
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

/// With a collation, as [`TypeInfo::nvarchar`](tds_protocol::rpc::TypeInfo::nvarchar) has it.
const fn words_of(bytes_max: u16) -> [u8; 8] {
    let [low, high] = bytes_max.to_le_bytes();
    [0xe7, low, high, 0x09, 0x04, 0xd0, 0x00, 0x34]
}

const fn bytes_of(bytes_max: u16) -> [u8; 3] {
    let [low, high] = bytes_max.to_le_bytes();
    [0xa5, low, high]
}

/// Digits, and how many of them are behind the point.
pub(super) struct Decimal {
    /// Whether it is positive, as the server has it.
    sign: u8,
    magnitude: u128,
    precision: u8,
    scale: u8,
}

impl Decimal {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
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
pub(super) fn decimal(text: &str) -> Result<Decimal, Error> {
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

pub(super) fn within(days: i64) -> Result<i64, Error> {
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
