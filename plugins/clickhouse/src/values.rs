//! RowBinary: values as they stand in an answer, into columns and, of nested ones, into json.

mod reader;

use souk_sdk::json::{Place, is_document, write_f64, write_text};
use souk_sdk::time::{Date, TimeOfDay, rfc3339};
use souk_sdk::{Batch, Error};
use std::collections::HashSet;
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use reader::MICROS;
pub use reader::{Reader, malformed};

use crate::types::Type;

/// Appends the next value of an answer. Whether a text is one is looked at in a whole batch ([`are_texts`]), which takes a fraction of the time. (With
/// the place for its error these are the four arguments that a component has room for in registers.)
#[inline]
pub fn push(kind: &Type, from: &mut Reader<'_>, into: &mut Place<'_>) -> Result<(), Error> {
    let (room, column) = (into.room, &mut *into.column);
    match kind {
        Type::Int(8, false) | Type::Int(9.., _) | Type::Decimal(..) => {
            column.var_with(|out| digits(kind, from, out))
        }
        Type::Int(bytes, is_signed) => column.i64(from.int(*bytes, *is_signed)?),
        Type::String => column.var(from.sized()?),
        Type::Json => column.var(document(from.sized()?)?.as_bytes()),
        Type::Nullable(inner) => match from.u8()? {
            0 => push(inner, from, into),
            1 => {
                column.null();
                Ok(())
            }
            _ => Err(malformed()),
        },
        Type::Float64 | Type::Float32 | Type::BFloat16 => column.f64(from.float(kind)?),
        Type::Bool => column.boolean(from.u8()? != 0),
        Type::Date | Type::Date32 => column.i32(from.days(kind)?),
        Type::DateTime | Type::DateTime64(..=MICROS) => column.i64(from.moment(kind)?),
        Type::Variant(kinds) => match variant(kinds, from)? {
            Some(kind) => column.var_with(|out| json(kind, from, &mut Document { out, room })),
            None => {
                column.null();
                Ok(())
            }
        },
        Type::Array(_) | Type::Tuple(_) | Type::Map(..) => {
            column.var_with(|out| json(kind, from, &mut Document { out, room }))
        }
        Type::Fixed(_)
        | Type::Uuid
        | Type::DateTime64(_)
        | Type::Time
        | Type::Time64(_)
        | Type::Enum(..)
        | Type::IpV4
        | Type::IpV6
        | Type::Nothing => column.var_with(|out| text(kind, from, out)),
    }
}

/// Whether all that was pushed as text is text. No column here is of bytes.
pub fn are_texts(batch: &Batch) -> Result<(), Error> {
    match batch.is_text() {
        true => Ok(()),
        false => Err(broken_text()),
    }
}

fn utf8(value: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(value).map_err(|_| broken_text())
}

/// What is one where it leaves, too.
fn document(value: &[u8]) -> Result<&str, Error> {
    let text = utf8(value)?;
    match is_document(text) {
        true => Ok(text),
        false => Err(malformed()),
    }
}

#[cold]
fn broken_text() -> Error {
    Error::source_failed(
        "broken_text",
        "a text of the result is not UTF-8: read such a column with hex or base64Encode",
    )
}

/// Which of a variant's types comes; `None` is NULL.
fn variant<'t>(kinds: &'t [Type], from: &mut Reader<'_>) -> Result<Option<&'t Type>, Error> {
    match from.u8()? {
        0xff => Ok(None),
        at => kinds.get(usize::from(at)).map(Some).ok_or_else(malformed),
    }
}

/// What is text for people, without quotes.
fn text(kind: &Type, from: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    match kind {
        Type::String => out.extend_from_slice(utf8(from.sized()?)?.as_bytes()),
        Type::Fixed(length) => {
            let value = from.take(*length)?;
            // Shorter ones are padded.
            let end = value.iter().rposition(|byte| *byte != 0);
            let value = utf8(&value[..end.map_or(0, |end| end + 1)])?;
            out.extend_from_slice(value.as_bytes());
        }
        Type::Uuid => {
            let (high, low) = (
                u64::from_le_bytes(from.array()?),
                u64::from_le_bytes(from.array()?),
            );
            written(
                out,
                format_args!(
                    "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                    high >> 32,
                    high >> 16 & 0xffff,
                    high & 0xffff,
                    low >> 48,
                    low & 0xffff_ffff_ffff
                ),
            );
        }
        Type::Date | Type::Date32 => {
            let date = Date::from_days(i64::from(from.days(kind)?));
            written(out, format_args!("{date}"));
        }
        Type::DateTime | Type::DateTime64(..=MICROS) => {
            written(out, format_args!("{}", rfc3339(from.moment(kind)?)));
        }
        Type::DateTime64(digits) => {
            let ticks = i64::from_le_bytes(from.array()?);
            let per_second = 10i64.pow(*digits);
            let seconds = ticks.div_euclid(per_second);
            let date = Date::from_days(seconds.div_euclid(86_400));
            let of_day = TimeOfDay((seconds.rem_euclid(86_400)) * 1_000_000).to_string();
            let (clock, fraction) = (&of_day[..8], ticks.rem_euclid(per_second));
            let width = *digits as usize;
            written(out, format_args!("{date}T{clock}.{fraction:0width$}Z"));
        }
        Type::Time => span(i64::from(i32::from_le_bytes(from.array()?)), 0, out),
        Type::Time64(digits) => span(i64::from_le_bytes(from.array()?), *digits, out),
        Type::Enum(bytes, names) => {
            let number = from.int(*bytes, true)?;
            let found = names.binary_search_by_key(&number, |(number, _)| i64::from(*number));
            let (_, name) = found
                .ok()
                .and_then(|at| names.get(at))
                .ok_or_else(malformed)?;
            out.extend_from_slice(name.as_bytes());
        }
        Type::IpV4 => {
            let address = Ipv4Addr::from(u32::from_le_bytes(from.array()?));
            written(out, format_args!("{address}"));
        }
        Type::IpV6 => {
            let address = Ipv6Addr::from(from.array::<16>()?);
            match address.segments() {
                // As the server writes it: what ends as an IPv4 address is shown as one.
                [0, 0, 0, 0, 0, 0, 1..=u16::MAX, _] => {
                    let [.., a, b, c, d] = address.octets();
                    written(out, format_args!("::{a}.{b}.{c}.{d}"));
                }
                _ => written(out, format_args!("{address}")),
            }
        }
        Type::Bool => written(out, format_args!("{}", from.u8()? != 0)),
        Type::Int(8, false) | Type::Int(9.., _) | Type::Decimal(..) => digits(kind, from, out)?,
        Type::Int(bytes, is_signed) => {
            written(out, format_args!("{}", from.int(*bytes, *is_signed)?))
        }
        _ => return Err(malformed()),
    }
    Ok(())
}

/// A document that is being written.
struct Document<'d> {
    out: &'d mut Vec<u8>,
    /// How many bytes a column may become.
    room: usize,
}

/// A value as a part of a JSON document.
fn json(kind: &Type, from: &mut Reader<'_>, into: &mut Document<'_>) -> Result<(), Error> {
    // Names are longer than the bytes that stand for them.
    if into.out.len() > into.room {
        return Err(Error::limit_exceeded(
            "bytes_limit",
            "a nested value of the result is larger than is allowed",
        ));
    }
    match kind {
        Type::Nullable(inner) => match from.u8()? {
            0 => json(inner, from, into)?,
            1 => into.out.extend_from_slice(b"null"),
            _ => return Err(malformed()),
        },
        Type::Variant(kinds) => match variant(kinds, from)? {
            Some(kind) => json(kind, from, into)?,
            None => into.out.extend_from_slice(b"null"),
        },
        Type::Array(inner) => {
            into.out.push(b'[');
            for place in 0..from.length()? {
                if place > 0 {
                    into.out.push(b',');
                }
                json(inner, from, into)?;
            }
            into.out.push(b']');
        }
        Type::Tuple(elements) => {
            let is_named = elements.iter().all(|(name, _)| name.is_some());
            into.out.push(if is_named { b'{' } else { b'[' });
            for (place, (name, kind)) in elements.iter().enumerate() {
                if place > 0 {
                    into.out.push(b',');
                }
                if let (true, Some(name)) = (is_named, name) {
                    write_text(name, into.out);
                    into.out.push(b':');
                }
                json(kind, from, into)?;
            }
            into.out.push(if is_named { b'}' } else { b']' });
        }
        Type::Map(key, value) => {
            let mut names = HashSet::new();
            into.out.push(b'{');
            for place in 0..from.length()? {
                if place > 0 {
                    into.out.push(b',');
                }
                let mut name = Vec::new();
                match &**key {
                    Type::Nullable(inner) if from.u8()? == 0 => name_of(inner, from, &mut name)?,
                    Type::Nullable(_) => {}
                    key => name_of(key, from, &mut name)?,
                }
                write_text(utf8(&name)?, into.out);
                into.out.push(b':');
                json(value, from, into)?;
                // Of two members of one name nearly every reader of JSON keeps one.
                if !names.insert(name) {
                    return Err(Error::source_failed(
                        "doubled_key",
                        "the result has a map of which two keys are written the same: write CAST(… AS Array(Tuple(…)))",
                    ));
                }
            }
            into.out.push(b'}');
        }
        Type::Float32 | Type::Float64 | Type::BFloat16 => write_f64(from.float(kind)?, into.out),
        Type::Bool | Type::Int(..) | Type::Decimal(..) => text(kind, from, into.out)?,
        Type::Json => {
            let document = document(from.sized()?)?;
            into.out.extend_from_slice(document.as_bytes());
        }
        _ => {
            let mut plain = Vec::new();
            text(kind, from, &mut plain)?;
            write_text(utf8(&plain)?, into.out);
        }
    }
    Ok(())
}

/// A key of a map.
fn name_of(kind: &Type, from: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    match kind {
        Type::Float32 | Type::Float64 | Type::BFloat16 => {
            write_f64(from.float(kind)?, out);
            // Those that are no numbers of JSON's are texts already.
            out.retain(|byte| *byte != b'"');
            Ok(())
        }
        _ => text(kind, from, out),
    }
}

fn written(out: &mut Vec<u8>, what: std::fmt::Arguments<'_>) {
    // A Vec takes everything.
    let _ = out.write_fmt(what);
}

/// `-999:59:59.123`.
fn span(ticks: i64, digits: u32, out: &mut Vec<u8>) {
    let per_second = 10u64.pow(digits);
    let (sign, ticks) = (if ticks < 0 { "-" } else { "" }, ticks.unsigned_abs());
    let (seconds, fraction) = (ticks / per_second, ticks % per_second);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    written(
        out,
        format_args!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
    );
    if digits > 0 {
        let width = digits as usize;
        written(out, format_args!(".{fraction:0width$}"));
    }
}

/// A whole or exact number, digit for digit.
fn digits(kind: &Type, from: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let (bytes, is_signed, scale) = match kind {
        Type::Int(bytes, is_signed) => (*bytes, *is_signed, 0),
        Type::Decimal(bytes, scale) => (*bytes, true, *scale),
        _ => return Err(malformed()),
    };
    let value = from.take(bytes)?;
    let is_negative = is_signed && value.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut limbs = [0u32; 8];
    for (limb, part) in limbs.iter_mut().zip(value.chunks(4)) {
        let mut whole = [0; 4];
        whole[..part.len()].copy_from_slice(part);
        *limb = u32::from_le_bytes(whole);
    }
    let limbs = &mut limbs[..bytes / 4];
    if is_negative {
        out.push(b'-');
        let mut carry = true;
        for limb in limbs.iter_mut() {
            (*limb, carry) = (!*limb).overflowing_add(u32::from(carry));
        }
    }
    // From the last digit on.
    let start = out.len();
    let mut count = 0;
    while limbs.iter().any(|limb| *limb != 0) {
        let mut rest = 0u64;
        for limb in limbs.iter_mut().rev() {
            let part = rest << 32 | u64::from(*limb);
            *limb = (part / 1_000_000_000) as u32;
            rest = part % 1_000_000_000;
        }
        for _ in 0..9 {
            if count == scale && scale > 0 {
                out.push(b'.');
            }
            out.push(b'0' + (rest % 10) as u8);
            rest /= 10;
            count += 1;
        }
    }
    while count <= scale {
        if count == scale && scale > 0 {
            out.push(b'.');
        }
        out.push(b'0');
        count += 1;
    }
    // Zeros in front of the number, but for the one before its point.
    while let [.., before, b'0'] = &out[start..]
        && *before != b'.'
    {
        out.pop();
    }
    out[start..].reverse();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::ColumnBuilder;

    fn number(kind: &Type, value: &[u8]) -> String {
        let mut out = Vec::new();
        digits(kind, &mut Reader(value), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Keys of a map are members' names, floats as they are written; two of the same name are none.
    #[test]
    fn keys_are_names() {
        let map = |key: Type| Type::Map(Box::new(key), Box::new(Type::Bool));
        let of = |kind: &Type, bytes: &[u8]| {
            let mut out = Vec::new();
            let mut into = Document {
                out: &mut out,
                room: 1_000,
            };
            json(kind, &mut Reader(bytes), &mut into)?;
            Ok::<_, Error>(String::from_utf8(out).unwrap())
        };
        let mut floats = vec![2];
        for key in [0.5, f64::INFINITY] {
            floats.extend(f64::to_le_bytes(key));
            floats.push(1);
        }
        let floats = of(&map(Type::Float64), &floats).unwrap();
        assert_eq!(floats, r#"{"0.5":true,"Infinity":true}"#);
        let texts = map(Type::String);
        let two = of(&texts, b"\x02\x01a\x01\x01b\x00").unwrap();
        assert_eq!(two, r#"{"a":true,"b":false}"#);
        let error = of(&texts, b"\x02\x01a\x01\x01a\x00").unwrap_err();
        assert_eq!(error.code, "doubled_key");
    }

    /// Against the arithmetic of the language, as far as that goes, and beyond.
    #[test]
    fn every_digit_is_kept() {
        for value in [
            0,
            1,
            -1,
            9,
            10,
            -10,
            999_999_999,
            1_000_000_000,
            i128::MAX,
            i128::MIN,
            10i128.pow(37),
        ] {
            assert_eq!(
                number(&Type::Int(16, true), &value.to_le_bytes()),
                value.to_string()
            );
        }
        for value in [0, u64::MAX, 10u64.pow(18)] {
            assert_eq!(
                number(&Type::Int(8, false), &value.to_le_bytes()),
                value.to_string()
            );
        }
        let most = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        assert_eq!(number(&Type::Int(32, false), &[0xff; 32]), most);
        assert_eq!(number(&Type::Int(32, true), &[0xff; 32]), "-1");
        let decimal = |value: i32, scale| number(&Type::Decimal(4, scale), &value.to_le_bytes());
        assert_eq!(decimal(0, 0), "0");
        assert_eq!(decimal(0, 3), "0.000");
        assert_eq!(decimal(-5, 3), "-0.005");
        assert_eq!(decimal(-12_340, 3), "-12.340");
        assert_eq!(decimal(100, 0), "100");
        assert_eq!(decimal(i32::MIN, 9), "-2.147483648");
        assert_eq!(decimal(1_000, 9), "0.000001000");
    }

    #[test]
    fn addresses_are_written_as_the_server_does() {
        for (address, wanted) in [
            ("::", "::"),
            ("::1", "::1"),
            ("::102", "::102"),
            ("::102:304", "::1.2.3.4"),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
            ("1:0:0:2::3", "1:0:0:2::3"),
            ("64:ff9b::102:304", "64:ff9b::102:304"),
        ] {
            let address: Ipv6Addr = address.parse().unwrap();
            let mut out = Vec::new();
            text(&Type::IpV6, &mut Reader(&address.octets()), &mut out).unwrap();
            assert_eq!(out, wanted.as_bytes());
        }
    }

    /// A document that is none is no column's.
    #[test]
    fn documents_are_documents() {
        let push = |text: &str| {
            let bytes = [&[text.len() as u8][..], text.as_bytes()].concat();
            let mut into = Place {
                column: &mut ColumnBuilder::new(Type::Json.column_type()),
                room: 100,
            };
            push(&Type::Json, &mut Reader(&bytes), &mut into)
        };
        for good in ["{\"a\":[1,null]}", "1.50"] {
            push(good).unwrap();
        }
        for broken in ["", "{", "no", "1 2"] {
            assert_eq!(push(broken).unwrap_err().code, "bad_answer", "{broken}");
        }
    }

    #[test]
    fn spans_are_texts() {
        let text = |ticks, digits| {
            let mut out = Vec::new();
            span(ticks, digits, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(-3_599_999, 0), "-999:59:59");
        assert_eq!(text(1_500, 3), "00:00:01.500");
        assert_eq!(text(i64::MIN, 9), "-2562047:47:16.854775808");
    }
}
