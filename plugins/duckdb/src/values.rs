//! A cell of a vector as a value of a column.

use std::ops::Range;

use souk_sdk::json::{Place, is_document};
use souk_sdk::numbers::widened;
use souk_sdk::time::{DAY_US, DAYS, MOMENTS};
use souk_sdk::{ColumnBuilder, Error};

use crate::errors::malformed;
use crate::nested::{Document, document_of};
use crate::notation::{bignum, bits, decimal, interval, time_ns, time_tz, timestamp_ns, uuid};
use crate::types::Type;
use crate::vectors::{Found, Run, Vector};

const SECOND_US: i64 = 1_000_000;

/// Appends the cells of these rows. `room`: how many bytes a column may become.
pub fn push_all(
    kind: &Type,
    vector: &Vector<'_>,
    rows: Range<usize>,
    into: &mut ColumnBuilder,
    room: usize,
) -> Result<(), Error> {
    if let Some(run) = vector.run(rows.clone())
        && push_run(kind, &run, into)?
    {
        return Ok(());
    }
    let mut place = Place { column: into, room };
    for row in rows {
        push(kind, &vector.at(row)?, &mut place)?;
        // One long value may stand for all of them.
        if place.column.bytes() > room {
            return Err(Error::too_many_bytes(room as u64));
        }
    }
    Ok(())
}

/// Appends values that lie one behind the other, if they lie as they do in a column. Whether it has: of others each is looked at.
fn push_run(kind: &Type, run: &Run<'_, '_>, into: &mut ColumnBuilder) -> Result<bool, Error> {
    match (kind, run) {
        (Type::Signed(8), Run::Fixed(bytes)) => into.i64s(longs(bytes))?,
        (Type::Signed(4), Run::Fixed(bytes)) => into.i64s(ints(bytes).map(i64::from))?,
        (Type::Double, Run::Fixed(bytes)) => {
            let values = bytes.as_chunks::<8>().0.iter();
            into.f64s(values.map(|value| f64::from_le_bytes(*value)))?;
        }
        (Type::Boolean, Run::Fixed(bytes)) if bytes.iter().all(|byte| *byte <= 1) => {
            into.booleans(bytes)?;
        }
        // What is infinite is none of them, and DuckDB has more years than a column.
        (Type::Date, Run::Fixed(bytes))
            if ints(bytes).all(|day| DAYS.contains(&i64::from(day))) =>
        {
            into.i32s(ints(bytes))?;
        }
        (Type::Timestamp | Type::TimestampTz, Run::Fixed(bytes))
            if longs(bytes).all(|micros| MOMENTS.contains(&micros)) =>
        {
            into.i64s(longs(bytes))?;
        }
        (Type::Varchar, Run::Texts(texts)) => {
            let before = into.rows();
            into.vars(texts)?;
            if !into.is_text(before) {
                return Err(malformed());
            }
        }
        (Type::Blob | Type::Geometry, Run::Texts(texts)) => into.vars(texts)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn longs(bytes: &[u8]) -> impl Iterator<Item = i64> {
    let values = bytes.as_chunks::<8>().0.iter();
    values.map(|value| i64::from_le_bytes(*value))
}

fn ints(bytes: &[u8]) -> impl Iterator<Item = i32> {
    let values = bytes.as_chunks::<4>().0.iter();
    values.map(|value| i32::from_le_bytes(*value))
}

/// Appends a cell. (With the place for its error these are the four arguments that a component has room for in registers.)
fn push(kind: &Type, found: &Found<'_, '_>, into: &mut Place<'_>) -> Result<(), Error> {
    let (room, into) = (into.room, &mut *into.column);
    if let Found::Null = found {
        into.null();
        return Ok(());
    }
    match kind {
        Type::Boolean => into.boolean(boolean(found)?),
        Type::Signed(..=8) | Type::Unsigned(..=4) => into.i64(integer(kind, found)?),
        Type::Signed(_) | Type::Unsigned(_) | Type::Decimal { .. } | Type::Bignum => {
            into.var_with(|out| number(kind, found, out))
        }
        Type::Float | Type::Double => into.f64(float(kind, found)?),
        Type::Blob | Type::Geometry => into.var(bytes(found)?),
        Type::Date => into.i32(day(found)?),
        Type::Time => into.i64(time(found)?),
        Type::TimestampS | Type::TimestampMs | Type::Timestamp | Type::TimestampTz => {
            into.i64(instant(kind, found)?)
        }
        Type::Varchar => into.var(text(found)?.as_bytes()),
        Type::Json => into.var(json(found)?.as_bytes()),
        Type::Bit
        | Type::Uuid
        | Type::TimeNs
        | Type::TimeTz
        | Type::TimestampNs
        | Type::Interval => into.var(written(kind, found)?.as_bytes()),
        Type::Enum(words) => into.var(word(words, found)?.as_bytes()),
        Type::List(_) | Type::Array(..) | Type::Map(..) | Type::Struct(_) | Type::Union(_) => {
            into.var_with(|out| document_of(kind, found, &mut Document { out, room }))
        }
    }
}

/// A text, or nothing where there is none.
pub fn plain<'a>(vector: &Vector<'a>, row: usize) -> Result<&'a str, Error> {
    match vector.at(row)? {
        Found::Null => Ok(""),
        found => text(&found),
    }
}

pub fn text<'a>(found: &Found<'_, 'a>) -> Result<&'a str, Error> {
    std::str::from_utf8(bytes(found)?).map_err(|_| malformed())
}

/// A document. That the server calls it one is not enough for who reads it.
pub fn json<'a>(found: &Found<'_, 'a>) -> Result<&'a str, Error> {
    let document = text(found)?;
    match is_document(document) {
        true => Ok(document),
        false => Err(broken_json()),
    }
}

pub fn bytes<'a>(found: &Found<'_, 'a>) -> Result<&'a [u8], Error> {
    match found {
        Found::Text(bytes) => Ok(bytes),
        _ => Err(malformed()),
    }
}

pub fn boolean(found: &Found<'_, '_>) -> Result<bool, Error> {
    match fixed(found)? {
        [0] => Ok(false),
        [1] => Ok(true),
        _ => Err(malformed()),
    }
}

/// A whole number of at most 64 bits that has a sign, or of 32 that has none.
pub fn integer(kind: &Type, found: &Found<'_, '_>) -> Result<i64, Error> {
    // Most are of one of these widths, for which 128 bits are a detour.
    if !matches!(kind, Type::Unsigned(_))
        && let Found::Fixed(bytes) = found
    {
        if let Ok(bytes) = <[u8; 8]>::try_from(*bytes) {
            return Ok(i64::from_le_bytes(bytes));
        }
        if let Ok(bytes) = <[u8; 4]>::try_from(*bytes) {
            return Ok(i32::from_le_bytes(bytes).into());
        }
    }
    i64::try_from(whole(kind, found)?).map_err(|_| malformed())
}

/// Any whole number but those of 128 bits without a sign.
fn whole(kind: &Type, found: &Found<'_, '_>) -> Result<i128, Error> {
    let bytes = match found {
        Found::Number(number) => return Ok(i128::from(*number)),
        Found::Fixed(bytes) => *bytes,
        _ => return Err(malformed()),
    };
    let has_sign = !matches!(kind, Type::Unsigned(_) | Type::Enum(_));
    let is_negative = has_sign && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if is_negative { 0xff } else { 0 }; 16];
    let place = wide.get_mut(..bytes.len()).ok_or_else(malformed)?;
    place.copy_from_slice(bytes);
    Ok(i128::from_le_bytes(wide))
}

/// A number of as many digits as it has.
pub fn number(kind: &Type, found: &Found<'_, '_>, out: &mut Vec<u8>) -> Result<(), Error> {
    match kind {
        Type::Bignum => out.extend_from_slice(bignum(bytes(found)?)?.as_bytes()),
        Type::Unsigned(16) => {
            let number = u128::from_le_bytes(fixed(found)?);
            out.extend_from_slice(number.to_string().as_bytes());
        }
        Type::Decimal { scale, .. } => decimal(whole(kind, found)?, *scale, out),
        _ => decimal(whole(kind, found)?, 0, out),
    }
    Ok(())
}

pub fn float(kind: &Type, found: &Found<'_, '_>) -> Result<f64, Error> {
    match kind {
        Type::Float => Ok(widened(f32::from_le_bytes(fixed(found)?))),
        _ => Ok(f64::from_le_bytes(fixed(found)?)),
    }
}

/// Days since 1970.
pub fn day(found: &Found<'_, '_>) -> Result<i32, Error> {
    let days = integer(&Type::Date, found)?;
    match i32::try_from(days) {
        Ok(i32::MAX) => Err(infinite("infinity")),
        Ok(days) if days == -i32::MAX => Err(infinite("-infinity")),
        Ok(days) if DAYS.contains(&i64::from(days)) => Ok(days),
        _ => Err(too_far()),
    }
}

/// Microseconds since midnight, 24:00 among them.
pub fn time(found: &Found<'_, '_>) -> Result<i64, Error> {
    match integer(&Type::Time, found)? {
        micros @ 0..=DAY_US => Ok(micros),
        _ => Err(malformed()),
    }
}

/// Microseconds since 1970.
pub fn instant(kind: &Type, found: &Found<'_, '_>) -> Result<i64, Error> {
    let units = integer(kind, found)?;
    let each = match kind {
        Type::TimestampS => SECOND_US,
        Type::TimestampMs => SECOND_US / 1_000,
        _ => 1,
    };
    is_finite(units)?;
    let micros = units.checked_mul(each).ok_or_else(too_far)?;
    match DAYS.contains(&micros.div_euclid(DAY_US)) {
        true => Ok(micros),
        false => Err(too_far()),
    }
}

fn is_finite(units: i64) -> Result<(), Error> {
    match units {
        i64::MAX => Err(infinite("infinity")),
        units if units == -i64::MAX => Err(infinite("-infinity")),
        _ => Ok(()),
    }
}

/// A value that is a text here, and none at DuckDB.
pub fn written(kind: &Type, found: &Found<'_, '_>) -> Result<String, Error> {
    match kind {
        Type::Bit => bits(bytes(found)?),
        Type::Uuid => Ok(uuid(fixed(found)?)),
        Type::TimeNs => time_ns(integer(kind, found)?),
        Type::TimeTz => time_tz(integer(kind, found)?),
        Type::TimestampNs => {
            let nanos = integer(kind, found)?;
            is_finite(nanos)?;
            Ok(timestamp_ns(nanos))
        }
        Type::Interval => {
            let bytes: [u8; 16] = fixed(found)?;
            let [months, days] = [&bytes[..4], &bytes[4..8]].map(|part| {
                let part: [u8; 4] = part.try_into().unwrap_or_default();
                i32::from_le_bytes(part)
            });
            let micros = i64::from_le_bytes(bytes[8..].try_into().unwrap_or_default());
            Ok(interval(months, days, micros))
        }
        _ => Err(malformed()),
    }
}

/// The word of an enumeration.
pub fn word<'t>(words: &'t [String], found: &Found<'_, '_>) -> Result<&'t str, Error> {
    let place = whole(&Type::Enum(Vec::new()), found)?;
    let place = usize::try_from(place).map_err(|_| malformed())?;
    words.get(place).map(String::as_str).ok_or_else(malformed)
}

/// Exactly so many bytes.
fn fixed<const N: usize>(found: &Found<'_, '_>) -> Result<[u8; N], Error> {
    match found {
        Found::Fixed(bytes) => (*bytes).try_into().map_err(|_| malformed()),
        _ => Err(malformed()),
    }
}

#[cold]
fn broken_json() -> Error {
    Error::source_failed(
        "broken_json",
        "a value of the result is called JSON, and is none: select it as CAST(… AS VARCHAR)",
    )
}

/// No column has it, and NULL would be another value.
#[cold]
fn infinite(shown: &str) -> Error {
    Error::source_failed(
        "infinite_time",
        "a date or timestamp in the result is infinite, and would leave as text only",
    )
    .detail(format!(
        "{shown}: select it as CAST(… AS VARCHAR), or as NULLIF(…, '{shown}') if NULL will do"
    ))
}

#[cold]
fn too_far() -> Error {
    Error::source_failed(
        "distant_time",
        "a date or timestamp in the result is of a year after 99999, and would leave as text only",
    )
    .detail("a year after 99999: select it as CAST(… AS VARCHAR)")
}
