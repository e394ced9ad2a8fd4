//! Rows as CSV (RFC 4180) with a head. NULL is an empty field, an empty text and no bytes are `""`.

use std::ops::Range;

use crate::columns::{Chunk, ColumnData, ColumnKind, Output, bit};
use crate::json::{
    Field, push_base64, push_date, push_local_timestamp, push_time, push_timestamp, walk,
    write_bool, write_i64,
};

pub fn write_head(out: &mut Vec<u8>, fields: &[Field]) {
    for (position, field) in fields.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        push_text(out, field.name.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

pub fn write_rows(out: &mut Vec<u8>, output: &Output, fields: &[Field], range: Range<usize>) {
    walk(output, fields, range, |columns, row| {
        for (position, column) in columns.iter().enumerate() {
            if position > 0 {
                out.push(b',');
            }
            match column {
                Some((chunk, kind)) if !chunk.is_null(row) => push_value(out, chunk, *kind, row),
                _ => {}
            }
        }
        out.extend_from_slice(b"\r\n");
    });
}

fn push_value(out: &mut Vec<u8>, chunk: &Chunk, kind: ColumnKind, row: usize) {
    match &chunk.data {
        ColumnData::Bits(bits) => write_bool(out, bit(bits, row)),
        ColumnData::I32s(days) => push_date(out, i64::from(days[row])),
        ColumnData::I64s(values) => match kind {
            ColumnKind::Time => push_time(out, values[row]),
            ColumnKind::Timestamp => push_timestamp(out, values[row]),
            ColumnKind::LocalTimestamp => push_local_timestamp(out, values[row]),
            _ => write_i64(out, values[row]),
        },
        ColumnData::F64s(values) => push_f64(out, values[row]),
        ColumnData::VarLen(values) => match kind {
            ColumnKind::Bytes if !values.at(row).is_empty() => push_base64(out, values.at(row)),
            _ => push_text(out, values.at(row)),
        },
    }
}

/// In the words that decimals have for what is no number.
fn push_f64(out: &mut Vec<u8>, value: f64) {
    let text = match value {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        value if value.is_nan() => "NaN",
        value => {
            out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
            return;
        }
    };
    out.extend_from_slice(text.as_bytes());
}

/// In quotes where it would not be read as it is. Empty it would be NULL.
fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    let is_plain = !text.is_empty()
        && !text
            .iter()
            .any(|byte| matches!(byte, b'"' | b',' | b'\r' | b'\n'));
    if is_plain {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for byte in text {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::VarLen;

    fn text(value: &str) -> String {
        let mut out = Vec::new();
        push_text(&mut out, value.as_bytes());
        String::from_utf8(out).unwrap()
    }

    /// A text is quoted where it must be, and an empty one can be told from NULL.
    #[test]
    fn texts_are_quoted_where_they_must_be() {
        assert_eq!(text("plain text"), "plain text");
        assert_eq!(text(""), "\"\"");
        assert_eq!(text("a,b"), "\"a,b\"");
        assert_eq!(text("say \"hi\"\r\n"), "\"say \"\"hi\"\"\r\n\"");
    }

    /// As those that are empty are.
    #[test]
    fn no_bytes_are_no_null() {
        let data = ColumnData::VarLen(VarLen {
            offsets: vec![0, 0, 1],
            bytes: b"a".to_vec(),
        });
        let chunk = Chunk {
            validity: None,
            data,
        };
        let mut out = Vec::new();
        for row in 0..2 {
            push_value(&mut out, &chunk, ColumnKind::Bytes, row);
        }
        assert_eq!(out, b"\"\"YQ==");
    }

    /// Numbers that are none have a word.
    #[test]
    fn floats_are_written_shortest() {
        for (value, expected) in [
            (0.1, "0.1"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            let mut out = Vec::new();
            push_f64(&mut out, value);
            assert_eq!(out, expected.as_bytes());
        }
    }
}
