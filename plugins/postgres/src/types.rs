//! PostgreSQL's types: which column each becomes, in which format it is asked for, and how a value gets there.
//!
//! A type that is not listed is asked for as text and becomes text.

use crate::protocol::{Reader, malformed};
use crate::{arrays, numeric};
use souk_sdk::json::{is_decimal, is_document};
use souk_sdk::numbers::widened;
use souk_sdk::time::DAY_US;
use souk_sdk::{ColumnBuilder, ColumnType, Error};
use std::borrow::Cow;

/// Days and microseconds from 1970-01-01 to the server's epoch, 2000-01-01.
pub const EPOCH_DAYS: i32 = 10_957;
pub const EPOCH_US: i64 = 946_684_800_000_000;

pub mod oid {
    pub const BOOL: u32 = 16;
    pub const BYTEA: u32 = 17;
    pub const NAME: u32 = 19;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT4: u32 = 23;
    pub const TEXT: u32 = 25;
    pub const OID: u32 = 26;
    pub const JSON: u32 = 114;
    pub const FLOAT4: u32 = 700;
    pub const FLOAT8: u32 = 701;
    pub const UNKNOWN: u32 = 705;
    pub const BPCHAR: u32 = 1042;
    pub const VARCHAR: u32 = 1043;
    pub const DATE: u32 = 1082;
    pub const TIME: u32 = 1083;
    pub const TIMESTAMP: u32 = 1114;
    pub const TIMESTAMPTZ: u32 = 1184;
    pub const INTERVAL: u32 = 1186;
    pub const NUMERIC: u32 = 1700;
    pub const UUID: u32 = 2950;
    pub const JSONB: u32 = 3802;
    /// Types from here on belong to the database, not to the server.
    pub const FIRST_OWN: u32 = 16_384;
}

/// How a value of one type is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Numeric,
    /// A number as a text: Redshift has a binary form of its own.
    Digits,
    /// Text in either format, and what is asked for as text.
    Text,
    Bytes,
    Date,
    Time,
    /// A moment.
    Timestamp,
    /// What a clock showed, without a zone.
    LocalTimestamp,
    Uuid,
    Json,
    Jsonb,
    Array,
}

/// Types that are asked for in the binary format.
const BINARY: &[(u32, Reading)] = &[
    (oid::BOOL, Reading::Bool),
    (oid::INT2, Reading::Int2),
    (oid::INT4, Reading::Int4),
    (oid::INT8, Reading::Int8),
    (oid::OID, Reading::Oid),
    (oid::FLOAT4, Reading::Float4),
    (oid::FLOAT8, Reading::Float8),
    (oid::NUMERIC, Reading::Numeric),
    (oid::TEXT, Reading::Text),
    (oid::VARCHAR, Reading::Text),
    (oid::BPCHAR, Reading::Text),
    (oid::NAME, Reading::Text),
    (oid::BYTEA, Reading::Bytes),
    (oid::DATE, Reading::Date),
    (oid::TIME, Reading::Time),
    (oid::TIMESTAMP, Reading::LocalTimestamp),
    (oid::TIMESTAMPTZ, Reading::Timestamp),
    (oid::UUID, Reading::Uuid),
    (oid::JSON, Reading::Json),
    (oid::JSONB, Reading::Jsonb),
];

/// The server's own array types and their elements'.
const ARRAYS: &[(u32, u32)] = &[
    (1000, oid::BOOL),
    (1001, oid::BYTEA),
    (1003, oid::NAME),
    (1005, oid::INT2),
    (1007, oid::INT4),
    (1016, oid::INT8),
    (1009, oid::TEXT),
    (1028, oid::OID),
    (199, oid::JSON),
    (1021, oid::FLOAT4),
    (1022, oid::FLOAT8),
    (1014, oid::BPCHAR),
    (1015, oid::VARCHAR),
    (1182, oid::DATE),
    (1183, oid::TIME),
    (1115, oid::TIMESTAMP),
    (1185, oid::TIMESTAMPTZ),
    (1231, oid::NUMERIC),
    (2951, oid::UUID),
    (3807, oid::JSONB),
];

/// Names of the types that `native` shows; the rest are looked up at the server.
const NAMES: &[(u32, &str)] = &[
    (oid::BOOL, "bool"),
    (oid::BYTEA, "bytea"),
    (18, "\"char\""),
    (oid::NAME, "name"),
    (oid::INT8, "int8"),
    (oid::INT2, "int2"),
    (oid::INT4, "int4"),
    (oid::TEXT, "text"),
    (oid::OID, "oid"),
    (oid::JSON, "json"),
    (142, "xml"),
    (600, "point"),
    (650, "cidr"),
    (oid::FLOAT4, "float4"),
    (oid::FLOAT8, "float8"),
    (oid::UNKNOWN, "unknown"),
    (790, "money"),
    (829, "macaddr"),
    (869, "inet"),
    (oid::BPCHAR, "char"),
    (oid::VARCHAR, "varchar"),
    (oid::DATE, "date"),
    (oid::TIME, "time"),
    (oid::TIMESTAMP, "timestamp"),
    (oid::TIMESTAMPTZ, "timestamptz"),
    (oid::INTERVAL, "interval"),
    (1266, "timetz"),
    (1560, "bit"),
    (1562, "varbit"),
    (oid::NUMERIC, "numeric"),
    (2249, "record"),
    (2278, "void"),
    (oid::UUID, "uuid"),
    (oid::JSONB, "jsonb"),
];

impl Reading {
    /// How values of a type are read in the binary format, if we do.
    pub fn of(type_oid: u32) -> Option<Reading> {
        let scalar = BINARY
            .iter()
            .find(|(known, _)| *known == type_oid)
            .map(|&(_, reading)| reading);
        scalar.or_else(|| element_of(type_oid).map(|_| Reading::Array))
    }

    /// As a server of version 8 is asked for it.
    pub fn of_ancient(self) -> Reading {
        match self {
            Reading::Numeric => Reading::Digits,
            other => other,
        }
    }

    pub fn is_binary(self) -> bool {
        self != Reading::Digits
    }

    /// Whether a value of a few bytes may be a text of many thousands: zeros of a number are not sent.
    pub fn may_grow(self) -> bool {
        matches!(self, Reading::Numeric | Reading::Array)
    }

    pub fn column_type(self) -> ColumnType {
        match self {
            Reading::Bool => ColumnType::Boolean,
            Reading::Int2 | Reading::Int4 | Reading::Int8 | Reading::Oid => ColumnType::Int64,
            Reading::Float4 | Reading::Float8 => ColumnType::Float64,
            Reading::Numeric | Reading::Digits => ColumnType::Decimal,
            Reading::Text | Reading::Uuid => ColumnType::Text,
            Reading::Bytes => ColumnType::Bytes,
            Reading::Date => ColumnType::Date,
            Reading::Time => ColumnType::Time,
            Reading::Timestamp => ColumnType::Timestamp,
            Reading::LocalTimestamp => ColumnType::LocalTimestamp,
            Reading::Json | Reading::Jsonb | Reading::Array => ColumnType::Json,
        }
    }

    /// Appends one value as the server sent it.
    #[inline]
    pub fn push(self, value: &[u8], into: &mut ColumnBuilder) -> Result<(), Error> {
        match self {
            Reading::Int4 => into.i64(i64::from(i32::from_be_bytes(exact(value)?))),
            Reading::Int8 => into.i64(i64::from_be_bytes(exact(value)?)),
            // Whether texts are such is looked at when a batch is whole.
            Reading::Text | Reading::Bytes => into.var(value),
            Reading::Float8 => into.f64(f64::from_be_bytes(exact(value)?)),
            Reading::Timestamp | Reading::LocalTimestamp => {
                into.i64(timestamp(value)?.ok_or_else(|| infinite(value))?)
            }
            Reading::Numeric => into.var_with(|out| numeric::write(value, out)),
            Reading::Digits => match is_decimal(value) || value == b"NaN" {
                true => into.var(value),
                false => Err(malformed()),
            },
            Reading::Bool => into.boolean(boolean(value)?),
            Reading::Int2 => into.i64(i64::from(i16::from_be_bytes(exact(value)?))),
            Reading::Oid => into.i64(i64::from(u32::from_be_bytes(exact(value)?))),
            Reading::Float4 => into.f64(widened(f32::from_be_bytes(exact(value)?))),
            Reading::Date => into.i32(date(value)?.ok_or_else(|| infinite(value))?),
            Reading::Time => into.i64(time(value)?),
            Reading::Uuid => into.var(&uuid(value)?),
            Reading::Json => into.var(document(value)?),
            Reading::Jsonb => into.var(document(jsonb(value)?)?),
            Reading::Array => into.var_with(|out| arrays::write(value, out)),
        }
    }
}

/// The element type of one of the server's own array types.
pub fn element_of(array: u32) -> Option<u32> {
    ARRAYS
        .iter()
        .find(|(known, _)| *known == array)
        .map(|&(_, element)| element)
}

/// A day, a moment, or a part of one.
pub fn is_time(type_oid: u32) -> bool {
    matches!(
        type_oid,
        oid::DATE | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ
    )
}

/// The type's name for people: `int4`, `numeric(10,2)`, `text[]`. None if the server must be asked.
pub fn native(type_oid: u32, modifier: i32) -> Option<Cow<'static, str>> {
    let name = |type_oid| {
        NAMES
            .iter()
            .find(|(known, _)| *known == type_oid)
            .map(|&(_, name)| name)
    };
    if let Some(element) = element_of(type_oid) {
        return name(element).map(|name| format!("{name}[]").into());
    }
    let name = name(type_oid)?;
    if modifier < 4 {
        return Some(name.into());
    }
    let modifier = modifier - 4;
    Some(match type_oid {
        oid::NUMERIC => {
            // The scale is a signed number of eleven bits.
            let scale = ((modifier & 0x7ff) ^ 1024) - 1024;
            format!("{name}({},{scale})", (modifier >> 16) & 0xffff).into()
        }
        oid::VARCHAR | oid::BPCHAR => format!("{name}({modifier})").into(),
        _ => name.into(),
    })
}

#[inline]
pub fn exact<const N: usize>(value: &[u8]) -> Result<[u8; N], Error> {
    value.try_into().map_err(|_| malformed())
}

pub fn boolean(value: &[u8]) -> Result<bool, Error> {
    Ok(exact::<1>(value)? != [0])
}

/// Days since 1970-01-01; None is infinite.
pub fn date(value: &[u8]) -> Result<Option<i32>, Error> {
    match i32::from_be_bytes(exact(value)?) {
        i32::MIN | i32::MAX => Ok(None),
        days => match days.checked_add(EPOCH_DAYS) {
            Some(days) if DAYS.contains(&days) => Ok(Some(days)),
            _ => Err(too_far()),
        },
    }
}

/// Microseconds since 1970-01-01T00:00:00, in UTC if it has a zone; None is infinite.
#[inline]
pub fn timestamp(value: &[u8]) -> Result<Option<i64>, Error> {
    match i64::from_be_bytes(exact(value)?) {
        i64::MIN | i64::MAX => Ok(None),
        us => match us.checked_add(EPOCH_US) {
            Some(us) if DAYS.contains(&((us.div_euclid(DAY_US)) as i32)) => Ok(Some(us)),
            _ => Err(too_far()),
        },
    }
}

/// Microseconds since midnight, up to 24:00:00.
pub fn time(value: &[u8]) -> Result<i64, Error> {
    match i64::from_be_bytes(exact(value)?) {
        us @ 0..=DAY_US => Ok(us),
        _ => Err(malformed()),
    }
}

pub fn uuid(value: &[u8]) -> Result<[u8; 36], Error> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let bytes: [u8; 16] = exact(value)?;
    let mut out = [b'-'; 36];
    let mut at = 0;
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            at += 1;
        }
        out[at] = DIGITS[usize::from(byte >> 4)];
        out[at + 1] = DIGITS[usize::from(byte & 15)];
        at += 2;
    }
    Ok(out)
}

/// The document's text, after the version.
pub fn jsonb(value: &[u8]) -> Result<&[u8], Error> {
    let mut reader = Reader(value);
    if reader.array::<1>()? != [1] {
        return Err(malformed());
    }
    Ok(reader.0)
}

/// A document's own text. That the server calls it one is not enough for who reads it.
pub fn document(text: &[u8]) -> Result<&[u8], Error> {
    let is_one = std::str::from_utf8(text).is_ok_and(is_document);
    match is_one {
        true => Ok(text),
        false => Err(broken_json()),
    }
}

/// Which of the infinities: they are the smallest and the greatest number.
pub fn infinity(value: &[u8]) -> &'static str {
    match value.first() {
        Some(0x80) => "-infinity",
        _ => "infinity",
    }
}

/// No column has it, and NULL would be another value.
#[cold]
fn infinite(value: &[u8]) -> Error {
    let shown = infinity(value);
    Error::source_failed(
        "infinite_time",
        "a date or timestamp in the result is infinite, and would leave as text only",
    )
    .detail(format!(
        "{shown}: select it as CAST(… AS text), or as NULLIF(…, '{shown}') if NULL will do"
    ))
}

#[cold]
fn broken_json() -> Error {
    Error::source_failed(
        "broken_json",
        "a value of the result is called JSON, and is none: select it as CAST(… AS text)",
    )
}

#[cold]
fn too_far() -> Error {
    Error::source_failed(
        "distant_time",
        "a date or timestamp in the result is of a year after 99999, and would leave as text only",
    )
    .detail("a year after 99999: select it as CAST(… AS text)")
}

/// The years from -99999 to 99999, which a host takes; the server has more.
const DAYS: std::ops::RangeInclusive<i32> = -37_243_412..=35_804_721;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_their_modifiers() {
        assert_eq!(
            native(oid::NUMERIC, (10 << 16 | 2) + 4).unwrap(),
            "numeric(10,2)"
        );
        assert_eq!(
            native(oid::NUMERIC, (5 << 16 | 0x7fe) + 4).unwrap(),
            "numeric(5,-2)"
        );
        assert_eq!(native(oid::VARCHAR, 24).unwrap(), "varchar(20)");
        assert_eq!(native(1007, -1).unwrap(), "int4[]");
        assert_eq!(native(99_999, -1), None);
    }

    /// What no column takes is told of the source, not found by the host: it would end the session and blame the connector.
    #[test]
    fn what_no_column_takes_is_the_sources() {
        let code = |reading: Reading, value: &[u8]| {
            let mut into = ColumnBuilder::new(reading.column_type());
            reading.push(value, &mut into).map_err(|error| error.code)
        };
        let refused = |code: &str| Err(code.to_owned());
        for good in ["{\"a\":[1,null]}", " 1.50", "\"\\ud800\""] {
            let binary = [&b"\x01"[..], good.as_bytes()].concat();
            assert_eq!(code(Reading::Json, good.as_bytes()), Ok(()), "{good}");
            assert_eq!(code(Reading::Jsonb, &binary), Ok(()), "{good}");
        }
        for broken in [&b""[..], b"{", b"no", b"1 2", b"\"\xe4\""] {
            let binary = [&b"\x01"[..], broken].concat();
            assert_eq!(code(Reading::Json, broken), refused("broken_json"));
            assert_eq!(code(Reading::Jsonb, &binary), refused("broken_json"));
        }
        for good in [0, DAY_US] {
            assert_eq!(code(Reading::Time, &good.to_be_bytes()), Ok(()));
        }
        for broken in [-1, DAY_US + 1, i64::MIN] {
            let code = code(Reading::Time, &broken.to_be_bytes());
            assert_eq!(code, refused("protocol_error"), "{broken}");
        }
    }

    #[test]
    fn uuids_are_written_in_groups() {
        let bytes: Vec<u8> = (0..16).collect();
        assert_eq!(
            &uuid(&bytes).unwrap(),
            b"00010203-0405-0607-0809-0a0b0c0d0e0f"
        );
    }
}
