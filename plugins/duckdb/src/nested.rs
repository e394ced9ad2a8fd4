//! A nested value as a JSON document: lists and arrays as lists, structs and maps as objects, a struct of fields without names (`row(1, 2)`) as a list,
//! of a union the member that there is.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use souk_sdk::Error;
use souk_sdk::json::{write_f64, write_text};
use souk_sdk::time::{Date, TimeOfDay, iso8601, rfc3339};

use crate::errors::malformed;
use crate::types::Type;
use crate::values::{
    boolean, bytes, day, float, instant, integer, json, number, text, time, word, written,
};
use crate::vectors::{Found, Vector};

/// A document that is being written.
pub struct Document<'d> {
    pub out: &'d mut Vec<u8>,
    /// How many bytes there may be.
    pub room: usize,
}

/// Writes a value as a part of a document, as a column of it is written when it leaves as JSON.
pub fn document_of(
    kind: &Type,
    found: &Found<'_, '_>,
    into: &mut Document<'_>,
) -> Result<(), Error> {
    // Names are longer than the brackets that stand for them.
    if into.out.len() > into.room {
        return Err(Error::limit_exceeded(
            "bytes_limit",
            "a nested value of the result is larger than is allowed",
        ));
    }
    match (kind, found) {
        (_, Found::Null) => into.out.extend_from_slice(b"null"),
        (Type::List(element) | Type::Array(element, _), Found::List(values, places)) => {
            into.out.push(b'[');
            for place in places.clone() {
                comma(place > places.start, into.out);
                document_of(element, &values.at(place)?, into)?;
            }
            into.out.push(b']');
        }
        (Type::Map(key, value), Found::List(entries, places)) => {
            into.out.push(b'{');
            for place in places.clone() {
                comma(place > places.start, into.out);
                entry(key, value, &entries.at(place)?, into)?;
            }
            into.out.push(b'}');
        }
        (Type::Struct(fields), Found::Struct(values, row)) => {
            let members = fields.iter().zip(*values);
            match fields.iter().any(|(name, _)| name.is_empty()) {
                true => unnamed(members, *row, into)?,
                false => object(members, *row, into)?,
            }
        }
        (Type::Union(members), Found::Struct(values, row)) => {
            let (tag, values) = values.split_first().ok_or_else(malformed)?;
            let tag = integer(&Type::Unsigned(1), &tag.at(*row)?)?;
            let tag = usize::try_from(tag).map_err(|_| malformed())?;
            let member = members.iter().zip(values).nth(tag).ok_or_else(malformed)?;
            object([member].into_iter(), *row, into)?;
        }
        (kind, found) => part(kind, found, into.out)?,
    }
    Ok(())
}

fn comma(is_wanted: bool, out: &mut Vec<u8>) {
    if is_wanted {
        out.push(b',');
    }
}

fn object<'m, 'v: 'm>(
    members: impl Iterator<Item = (&'m (String, Type), &'m Vector<'v>)>,
    row: usize,
    into: &mut Document<'_>,
) -> Result<(), Error> {
    into.out.push(b'{');
    for (place, ((name, kind), values)) in members.enumerate() {
        comma(place > 0, into.out);
        write_text(name, into.out);
        into.out.push(b':');
        document_of(kind, &values.at(row)?, into)?;
    }
    into.out.push(b'}');
    Ok(())
}

/// The values of fields that have no names, or not all.
fn unnamed<'m, 'v: 'm>(
    members: impl Iterator<Item = (&'m (String, Type), &'m Vector<'v>)>,
    row: usize,
    into: &mut Document<'_>,
) -> Result<(), Error> {
    into.out.push(b'[');
    for (place, ((_, kind), values)) in members.enumerate() {
        comma(place > 0, into.out);
        document_of(kind, &values.at(row)?, into)?;
    }
    into.out.push(b']');
    Ok(())
}

/// One of a map's. A key that is no text is its digits or its time, as a text.
fn entry(
    key: &Type,
    value: &Type,
    found: &Found<'_, '_>,
    into: &mut Document<'_>,
) -> Result<(), Error> {
    let Found::Struct([keys, values], row) = found else {
        return Err(malformed());
    };
    let out = &mut *into.out;
    let begin = out.len();
    part(key, &keys.at(*row)?, out)?;
    if out.get(begin) != Some(&b'"') {
        let name = String::from_utf8_lossy(&out[begin..]).into_owned();
        out.truncate(begin);
        write_text(&name, out);
    }
    out.push(b':');
    document_of(value, &values.at(*row)?, into)
}

/// A value that is not nested.
fn part(kind: &Type, found: &Found<'_, '_>, out: &mut Vec<u8>) -> Result<(), Error> {
    match kind {
        Type::Boolean => {
            // A Vec takes everything.
            let _ = write!(out, "{}", boolean(found)?);
        }
        Type::Signed(_) | Type::Unsigned(_) | Type::Decimal { .. } | Type::Bignum => {
            number(kind, found, out)?
        }
        Type::Float | Type::Double => write_f64(float(kind, found)?, out),
        Type::Varchar => write_text(text(found)?, out),
        Type::Json => out.extend_from_slice(json(found)?.as_bytes()),
        Type::Blob | Type::Geometry => write_text(&STANDARD.encode(bytes(found)?), out),
        Type::Date => write_text(&Date::from_days(i64::from(day(found)?)).to_string(), out),
        Type::Time => write_text(&TimeOfDay(time(found)?).to_string(), out),
        Type::TimestampS | Type::TimestampMs | Type::Timestamp => {
            write_text(&iso8601(instant(kind, found)?), out)
        }
        Type::TimestampTz => write_text(&rfc3339(instant(kind, found)?), out),
        Type::Bit
        | Type::Uuid
        | Type::TimeNs
        | Type::TimeTz
        | Type::TimestampNs
        | Type::Interval => write_text(&written(kind, found)?, out),
        Type::Enum(words) => write_text(word(words, found)?, out),
        Type::List(_) | Type::Array(..) | Type::Map(..) | Type::Struct(_) | Type::Union(_) => {
            return Err(malformed());
        }
    }
    Ok(())
}
