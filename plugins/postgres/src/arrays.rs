//! Arrays in their binary form to JSON, nested as deep as their dimensions.
//!
//! Elements are written as the host writes such values on their own: finite numbers as numbers, bytes in
//! base64, times in ISO 8601. What JSON has no number for is a string.

use crate::numeric;
use crate::protocol::{Reader, malformed};
use crate::types::{self, Reading};
use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use souk_sdk::Error;
use souk_sdk::numbers::widened;
use souk_sdk::time::{DAY_US, Date, TimeOfDay};
use std::fmt;
use std::io::Write;

/// The server's own bound.
const DIMENSIONS_MAX: usize = 6;

/// Appends the array as one JSON document.
pub fn write(value: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let mut reader = Reader(value);
    let dimensions = usize::try_from(reader.i32()?).map_err(|_| malformed())?;
    reader.i32()?;
    let element = reader.u32()?;
    if dimensions == 0 {
        out.extend_from_slice(b"[]");
        return Ok(());
    }
    if dimensions > DIMENSIONS_MAX {
        return Err(malformed());
    }
    let mut lengths = [0; DIMENSIONS_MAX];
    for length in &mut lengths[..dimensions] {
        *length = reader.u32()?;
        reader.i32()?;
    }
    // So that every element takes bytes of the message, whatever the counts say.
    if lengths[..dimensions].contains(&0) {
        return Err(malformed());
    }
    // An element type that is not one of ours is an enumeration: its binary form is its text.
    let reading = Reading::of(element).unwrap_or(Reading::Text);
    level(&lengths[..dimensions], reading, &mut reader, out)
}

fn level(
    lengths: &[u32],
    reading: Reading,
    reader: &mut Reader<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let Some((&length, inner)) = lengths.split_first() else {
        return match reader.value()? {
            None => write_all(out, b"null"),
            Some(value) => element(reading, value, out),
        };
    };
    out.push(b'[');
    for i in 0..length {
        if i > 0 {
            out.push(b',');
        }
        level(inner, reading, reader, out)?;
    }
    out.push(b']');
    Ok(())
}

fn element(reading: Reading, value: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    match reading {
        Reading::Bool => write_all(
            out,
            if types::boolean(value)? {
                b"true"
            } else {
                b"false"
            },
        ),
        Reading::Int2 => display(out, i16::from_be_bytes(types::exact(value)?)),
        Reading::Int4 => display(out, i32::from_be_bytes(types::exact(value)?)),
        Reading::Int8 => display(out, i64::from_be_bytes(types::exact(value)?)),
        Reading::Oid => display(out, u32::from_be_bytes(types::exact(value)?)),
        Reading::Float4 => {
            let single = f32::from_be_bytes(types::exact(value)?);
            float(out, widened(single))
        }
        Reading::Float8 => float(out, f64::from_be_bytes(types::exact(value)?)),
        Reading::Numeric => {
            let start = out.len();
            numeric::write(value, out)?;
            // NaN and the infinities; every finite number ends with a digit.
            if !out.last().is_some_and(u8::is_ascii_digit) {
                out.insert(start, b'"');
                out.push(b'"');
            }
            Ok(())
        }
        Reading::Text | Reading::Digits => {
            string(out, std::str::from_utf8(value).map_err(|_| malformed())?)
        }
        Reading::Uuid => string(
            out,
            std::str::from_utf8(&types::uuid(value)?).map_err(|_| malformed())?,
        ),
        Reading::Bytes => base64(out, value),
        Reading::Date => quoted(out, |out| match types::date(value)? {
            None => write_all(out, types::infinity(value).as_bytes()),
            Some(days) => display(out, Date::from_days(i64::from(days))),
        }),
        Reading::Time => quoted(out, |out| display(out, TimeOfDay(types::time(value)?))),
        Reading::Timestamp => quoted(out, |out| match types::timestamp(value)? {
            None => write_all(out, types::infinity(value).as_bytes()),
            Some(us) => display(out, format_args!("{}Z", Clock(us))),
        }),
        Reading::LocalTimestamp => quoted(out, |out| match types::timestamp(value)? {
            None => write_all(out, types::infinity(value).as_bytes()),
            Some(us) => display(out, Clock(us)),
        }),
        Reading::Json => write_all(out, types::document(value)?),
        Reading::Jsonb => write_all(out, types::document(types::jsonb(value)?)?),
        // The server has no arrays of arrays: they are dimensions.
        Reading::Array => Err(malformed()),
    }
}

fn write_all(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Error> {
    out.extend_from_slice(bytes);
    Ok(())
}

fn display(out: &mut Vec<u8>, value: impl std::fmt::Display) -> Result<(), Error> {
    write!(out, "{value}").map_err(|_| malformed())
}

fn float(out: &mut Vec<u8>, value: f64) -> Result<(), Error> {
    if value.is_finite() {
        return serde_json::to_writer(out, &value).map_err(|_| malformed());
    }
    let word = match value.is_nan() {
        true => "NaN",
        false if value > 0.0 => "Infinity",
        false => "-Infinity",
    };
    string(out, word)
}

fn string(out: &mut Vec<u8>, value: &str) -> Result<(), Error> {
    serde_json::to_writer(out, value).map_err(|_| malformed())
}

fn quoted(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    out.push(b'"');
    write(out)?;
    out.push(b'"');
    Ok(())
}

fn base64(out: &mut Vec<u8>, value: &[u8]) -> Result<(), Error> {
    display(
        out,
        format_args!("\"{}\"", Base64Display::new(value, &STANDARD)),
    )
}

/// Microseconds since 1970-01-01T00:00:00, written as `2024-01-31T12:30:00.000000`.
struct Clock(i64);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (day, time) = (
            Date::from_days(self.0.div_euclid(DAY_US)),
            TimeOfDay::of(self.0),
        );
        write!(f, "{day}T{time}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(lengths: &[u32], element: u32, values: &[Option<&[u8]>]) -> String {
        String::from_utf8(written(lengths, element, values).unwrap()).unwrap()
    }

    fn written(lengths: &[u32], element: u32, values: &[Option<&[u8]>]) -> Result<Vec<u8>, Error> {
        let mut bytes = (lengths.len() as u32).to_be_bytes().to_vec();
        bytes.extend(0u32.to_be_bytes());
        bytes.extend(element.to_be_bytes());
        lengths
            .iter()
            .for_each(|n| bytes.extend([n.to_be_bytes(), 1u32.to_be_bytes()].concat()));
        for value in values {
            bytes.extend(value.map_or(-1, |value| value.len() as i32).to_be_bytes());
            bytes.extend(value.unwrap_or_default());
        }
        let mut out = Vec::new();
        write(&bytes, &mut out).map(|()| out)
    }

    #[test]
    fn arrays_become_json() {
        let n = |n: i32| n.to_be_bytes();
        assert_eq!(array(&[], 23, &[]), "[]");
        assert_eq!(
            array(&[2, 2], 23, &[Some(&n(1)), None, Some(&n(-3)), Some(&n(4))]),
            "[[1,null],[-3,4]]"
        );
        assert_eq!(
            array(&[2], 25, &[Some(b"a\"b\n"), Some("é".as_bytes())]),
            "[\"a\\\"b\\n\",\"é\"]"
        );
        assert_eq!(
            array(&[3], 17, &[Some(b"a"), Some(b"ab"), Some(b"abc")]),
            r#"["YQ==","YWI=","YWJj"]"#
        );
        let floats = [f64::NAN, f64::NEG_INFINITY, 0.1].map(f64::to_be_bytes);
        assert_eq!(
            array(&[3], 701, &floats.each_ref().map(|float| Some(&float[..]))),
            "[\"NaN\",\"-Infinity\",0.1]"
        );
        let singles = [f32::INFINITY, 0.1, 123_456_792.0].map(f32::to_be_bytes);
        assert_eq!(
            array(
                &[3],
                700,
                &singles.each_ref().map(|single| Some(&single[..]))
            ),
            "[\"Infinity\",0.1,123456790.0]"
        );
        assert_eq!(
            array(
                &[3],
                1082,
                &[Some(&n(8825)), Some(&n(2_921_940)), Some(&n(-746_117))]
            ),
            "[\"2024-02-29\",\"+10000-01-01\",\"-0043-03-15\"]"
        );
        assert_eq!(
            array(&[1], 1184, &[Some(&(-1i64).to_be_bytes())]),
            "[\"1999-12-31T23:59:59.999999Z\"]"
        );
        assert_eq!(
            array(&[1], 1114, &[Some(&(-1i64).to_be_bytes())]),
            "[\"1999-12-31T23:59:59.999999\"]"
        );
        assert_eq!(array(&[1], 90_000, &[Some(b"red")]), "[\"red\"]");
    }

    /// An element that is no document would make none of the whole.
    #[test]
    fn documents_are_documents() {
        let code = |element, value: &[u8]| {
            let written = written(&[1], element, &[Some(value)]);
            written.unwrap_err().code
        };
        assert_eq!(
            array(&[2], 114, &[Some(b"{\"a\":1}"), Some(b"null")]),
            "[{\"a\":1},null]"
        );
        assert_eq!(array(&[1], 3802, &[Some(b"\x01[1]")]), "[[1]]");
        for broken in [&b""[..], b"{", b"1,2"] {
            assert_eq!(code(114, broken), "broken_json");
            assert_eq!(code(3802, &[&b"\x01"[..], broken].concat()), "broken_json");
        }
    }

    /// A count that no bytes stand behind is an error, and no memory is set aside for it.
    #[test]
    fn a_lying_count_is_refused() {
        let mut bytes = Vec::new();
        [1u32, 0, 23, u32::MAX, 1]
            .iter()
            .for_each(|n| bytes.extend(n.to_be_bytes()));
        assert!(write(&bytes, &mut Vec::new()).is_err());
    }
}
