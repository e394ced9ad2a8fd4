//! A cell of an answer as a value of a column. Trino writes whole numbers, floats and truth as JSON does, everything else as a text, an array
//! and a row as a list, a map as an object.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use souk_sdk::Error;
use souk_sdk::json::{self, Kind, Place, Written, write_f64, write_text};
use souk_sdk::time::{DAY_US, Date, MOMENTS, TimeOfDay, iso8601, rfc3339};

use crate::answers::malformed;
use crate::types::Type;

/// Years that a column has.
const YEAR_MAX: i64 = 99_999;
const SECOND_US: i64 = 1_000_000;
/// Zones that are no further than their name.
const UTC: [&str; 9] = [
    "UTC", "Z", "GMT", "UT", "UCT", "Zulu", "Etc/UTC", "Etc/GMT", "Etc/UCT",
];

impl Kind for Type {
    fn is_raw(&self) -> bool {
        use Type::{Array, Map, Other, Row};
        matches!(self, Other | Array(_) | Map(_) | Row(_))
    }

    fn push(&self, cell: Written<'_>, into: &mut Place<'_>) -> Result<(), Error> {
        let (room, into) = (into.room, &mut *into.column);
        match (self, cell) {
            (_, Written::Null) => {
                into.null();
                Ok(())
            }
            (Type::Boolean, Written::Truth(value)) => into.boolean(value),
            (Type::Integer, Written::Whole(value)) => into.i64(value),
            (Type::Float, Written::Whole(value)) => into.f64(value as f64),
            (Type::Float, Written::Number(digits)) => into.f64(finite(digits)?),
            (Type::Float, Written::Text(word)) => into.f64(no_number(word)?),
            (Type::Decimal, Written::Text(text)) => into.var(decimal(text)?.as_bytes()),
            (Type::Text, Written::Text(text)) => into.var(text.as_bytes()),
            (Type::Bytes, Written::Text(text)) => into.var(&bytes(text)?),
            (Type::Date, Written::Text(text)) => into.i32(days(text)?),
            (Type::Time, Written::Text(text)) => into.i64(time(text)?),
            (Type::Clock, Written::Text(text)) => into.i64(clock(text)?),
            (Type::Moment, Written::Text(text)) => into.i64(moment(text)?),
            (Type::Json, Written::Text(text)) => into.var(document(text)?.as_bytes()),
            (Type::Other, Written::Raw(cell)) => match text(cell) {
                Ok(text) => into.var(text.as_bytes()),
                Err(_) => into.var(cell.get().as_bytes()),
            },
            (kind, Written::Raw(cell)) => into.var_with(|out| document_of(kind, cell, out, room)),
            _ => Err(malformed()),
        }
    }

    fn malformed() -> Error {
        malformed()
    }
}

/// A text, or nothing where there is none.
pub fn plain(cell: &RawValue) -> Result<String, Error> {
    match cell.get() {
        "null" => Ok(String::new()),
        _ => text(cell).map(Cow::into_owned),
    }
}

pub fn integer(cell: &RawValue) -> Result<i64, Error> {
    cell.get().parse().map_err(|_| malformed())
}

fn text(cell: &RawValue) -> Result<Cow<'_, str>, Error> {
    json::text(cell).ok_or_else(malformed)
}

fn boolean(cell: &RawValue) -> Result<bool, Error> {
    match cell.get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(malformed()),
    }
}

fn float(cell: &RawValue) -> Result<f64, Error> {
    let raw = cell.get();
    match raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) {
        Some(word) => no_number(word),
        None => finite(raw),
    }
}

/// JSON has no number for three of them, which are texts.
fn no_number(word: &str) -> Result<f64, Error> {
    match word {
        "NaN" => Ok(f64::NAN),
        "Infinity" => Ok(f64::INFINITY),
        "-Infinity" => Ok(f64::NEG_INFINITY),
        _ => Err(malformed()),
    }
}

/// A number as JSON writes it.
fn finite(digits: &str) -> Result<f64, Error> {
    match json::float(digits) {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(malformed()),
    }
}

/// Digits, as they were sent.
fn decimal(text: &str) -> Result<&str, Error> {
    match json::is_decimal(text) {
        true => Ok(text),
        false => Err(malformed()),
    }
}

fn bytes(text: &str) -> Result<Vec<u8>, Error> {
    STANDARD.decode(text).map_err(|_| malformed())
}

fn document(text: &str) -> Result<&str, Error> {
    match json::is_document(text) {
        true => Ok(text),
        false => Err(malformed()),
    }
}

/// `2024-02-29`; years beyond four digits have a sign.
fn date(text: &str) -> Result<Date, Error> {
    let date = Date::parse_expanded(text).ok_or_else(malformed)?;
    match date.year.abs() > YEAR_MAX {
        true => Err(out_of_range()),
        false => Ok(date),
    }
}

fn out_of_range() -> Error {
    Error::source_failed(
        "year_out_of_range",
        "the result has a date of a year beyond 99999: write CAST(… AS varchar)",
    )
}

fn days(text: &str) -> Result<i32, Error> {
    i32::try_from(date(text)?.days()).map_err(|_| malformed())
}

/// Microseconds since midnight: `12:00:00.5`.
fn time(text: &str) -> Result<i64, Error> {
    let TimeOfDay(micros) = TimeOfDay::parse(text).ok_or_else(malformed)?;
    Ok(micros)
}

/// Microseconds since 1970 on a clock of no zone: `2024-02-29 12:00:00.5`.
fn clock(text: &str) -> Result<i64, Error> {
    let (day, time_of_day) = text.split_once(' ').ok_or_else(malformed)?;
    // Of years that a column has it fits.
    Ok(date(day)?.days() * DAY_US + time(time_of_day)?)
}

/// Microseconds since 1970: `2024-02-29 12:00:00.5 UTC`, `… +01:00`.
fn moment(text: &str) -> Result<i64, Error> {
    let (local, zone) = text.rsplit_once(' ').ok_or_else(malformed)?;
    let offset = match UTC.contains(&zone) {
        true => 0,
        false => minutes_of(zone).ok_or_else(|| of_a_region(zone))?,
    };
    // Some hours from the first day or the last it is of another year.
    match clock(local)? - offset * 60 * SECOND_US {
        micros if MOMENTS.contains(&micros) => Ok(micros),
        _ => Err(out_of_range()),
    }
}

/// `+01:00`.
fn minutes_of(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = zone[1..].split_once(':')?;
    let two = |text: &str| -> Option<i64> {
        let is_two = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_two.then(|| text.parse().ok()).flatten()
    };
    Some(sign * (two(hours)? * 60 + two(minutes)?))
}

/// Trino writes what a clock shows there. Once a year it shows an hour twice, and nothing says which of the two is meant.
fn of_a_region(zone: &str) -> Error {
    let is_zone = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte);
    match zone.is_empty() || !zone.bytes().all(is_zone) {
        true => malformed(),
        false => Error::source_failed(
            "zone_of_a_region",
            "the result has a moment on the clock of a region, which does not say exactly when it was: write … AT TIME ZONE 'UTC'",
        )
        .detail(zone),
    }
}

/// Members of an object in their order, doubled ones too.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Of<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Of<'a> {
            type Value = Members<'a>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'a>, A::Error> {
                let mut members = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    members.push((Cow::Owned(name), map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Of(std::marker::PhantomData))
    }
}

/// A value as a part of a JSON document, written as a column of it is when it leaves as JSON.
fn document_of(kind: &Type, cell: &RawValue, out: &mut Vec<u8>, room: usize) -> Result<(), Error> {
    // Names are longer than the brackets that stand for them.
    if out.len() > room {
        return Err(Error::limit_exceeded(
            "bytes_limit",
            "a nested value of the result is larger than is allowed",
        ));
    }
    if cell.get() == "null" {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    match kind {
        Type::Array(element) => {
            let elements = list(cell)?;
            let elements = elements.into_iter().map(|cell| (element.as_ref(), cell));
            array(elements, out, room)?;
        }
        Type::Row(fields) => {
            let cells = list(cell)?;
            if cells.len() != fields.len() {
                return Err(malformed());
            }
            match names(fields) {
                Some(names) => {
                    let members = names.into_iter().zip(fields).zip(cells);
                    let members = members.map(|((name, (_, kind)), cell)| (name, kind, cell));
                    object(members, out, room)?;
                }
                None => {
                    let elements = fields.iter().map(|(_, kind)| kind).zip(cells);
                    array(elements, out, room)?;
                }
            }
        }
        Type::Map(value) => {
            let Members(members) = serde_json::from_str(cell.get()).map_err(|_| malformed())?;
            let mut names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
            if is_doubled(&mut names) {
                return Err(Error::source_failed(
                    "doubled_key",
                    "the result has a map of which two keys are written the same: write map_entries(…)",
                ));
            }
            let members = members
                .iter()
                .map(|(name, cell)| (&**name, &**value, *cell));
            object(members, out, room)?;
        }
        kind => part(kind, cell, out)?,
    }
    Ok(())
}

fn list(cell: &RawValue) -> Result<Vec<&RawValue>, Error> {
    serde_json::from_str(cell.get()).map_err(|_| malformed())
}

/// The names of a row's fields, where all have one and no two the same: an object else loses a value.
fn names(fields: &[(Option<String>, Type)]) -> Option<Vec<&str>> {
    let names: Option<Vec<&str>> = fields.iter().map(|(name, _)| name.as_deref()).collect();
    match is_doubled(&mut names.clone()?) {
        true => None,
        false => names,
    }
}

fn is_doubled(names: &mut [&str]) -> bool {
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

fn array<'a>(
    elements: impl Iterator<Item = (&'a Type, &'a RawValue)>,
    out: &mut Vec<u8>,
    room: usize,
) -> Result<(), Error> {
    out.push(b'[');
    for (place, (kind, cell)) in elements.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        document_of(kind, cell, out, room)?;
    }
    out.push(b']');
    Ok(())
}

fn object<'a>(
    members: impl Iterator<Item = (&'a str, &'a Type, &'a RawValue)>,
    out: &mut Vec<u8>,
    room: usize,
) -> Result<(), Error> {
    out.push(b'{');
    for (place, (name, kind, cell)) in members.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write_text(name, out);
        out.push(b':');
        document_of(kind, cell, out, room)?;
    }
    out.push(b'}');
    Ok(())
}

fn part(kind: &Type, cell: &RawValue, out: &mut Vec<u8>) -> Result<(), Error> {
    match kind {
        Type::Boolean => written(out, format_args!("{}", boolean(cell)?)),
        Type::Integer => written(out, format_args!("{}", integer(cell)?)),
        Type::Decimal => out.extend_from_slice(decimal(&text(cell)?)?.as_bytes()),
        Type::Float => write_f64(float(cell)?, out),
        Type::Json => out.extend_from_slice(document(&text(cell)?)?.as_bytes()),
        Type::Date => write_text(&date(&text(cell)?)?.to_string(), out),
        Type::Time => write_text(&TimeOfDay(time(&text(cell)?)?).to_string(), out),
        Type::Clock => write_text(&iso8601(clock(&text(cell)?)?), out),
        Type::Moment => write_text(&rfc3339(moment(&text(cell)?)?), out),
        Type::Text | Type::Bytes => write_text(&text(cell)?, out),
        // These are written by `document_of`; another type's value is whatever JSON it is.
        Type::Other | Type::Array(_) | Type::Map(_) | Type::Row(_) => {
            out.extend_from_slice(cell.get().as_bytes())
        }
    }
    Ok(())
}

fn written(out: &mut Vec<u8>, what: fmt::Arguments<'_>) {
    // A Vec takes everything.
    let _ = out.write_fmt(what);
}
