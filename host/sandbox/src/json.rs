//! Results as JSON. Exact: integers and exact numbers are written digit for digit. Everything it is
//! given has been validated, JSON columns included, so what it writes is always well-formed.

use std::ops::Range;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::columns::{Cell, Chunk, ColumnData, ColumnKind, DAY_MICROS, Output, bit};
use crate::short::{self, Stamp};

/// One published field: which column, under which name. Prepare once, use for every execution.
#[derive(Clone, Debug)]
pub struct Field {
    pub index: usize,
    pub name: String,
    /// `,"name":`, escaped.
    key: Stamp,
    /// Of the name, for the digests of pages.
    pub(crate) digest: u64,
}

impl Field {
    pub fn new(index: usize, name: impl Into<String>) -> Field {
        let name = name.into();
        let mut key = Vec::with_capacity(name.len() + 4);
        key.push(b',');
        write_string(&mut key, name.as_bytes());
        key.push(b':');
        Field {
            index,
            key: Stamp::new(key),
            digest: xxhash_rust::xxh3::xxh3_64(name.as_bytes()),
            name,
        }
    }

    /// Bytes that its name, as it is escaped, and punctuation add to each row.
    pub fn key_bytes(&self) -> usize {
        self.key.bytes()
    }

    /// Every column of a result under its own name.
    pub fn all(output: &Output) -> Vec<Field> {
        output
            .columns
            .iter()
            .enumerate()
            .map(|(index, column)| Field::new(index, &column.name))
            .collect()
    }
}

/// Appends the rows of `range` as a JSON array of objects with `fields` in their order. A field
/// whose column does not exist is null; rows outside the result are left out.
pub fn write_rows(out: &mut Vec<u8>, output: &Output, fields: &[Field], range: Range<usize>) {
    out.push(b'[');
    write_objects(out, output, fields, range, (b",", b""));
    out.push(b']');
}

/// The same, one object a line. What a document has between its values may be lines of its own: those are blanks here.
pub fn write_lines(out: &mut Vec<u8>, output: &Output, fields: &[Field], range: Range<usize>) {
    write_objects(out, output, fields, range, (b"", b"\n"));
}

/// `between` objects, and `after` each.
fn write_objects(
    out: &mut Vec<u8>,
    output: &Output,
    fields: &[Field],
    range: Range<usize>,
    (between, after): (&[u8], &[u8]),
) {
    let is_line = after == b"\n";
    let mut is_first = true;
    walk(output, fields, range, |columns, row| {
        if !std::mem::take(&mut is_first) {
            out.extend_from_slice(between);
        }
        let begin = out.len();
        for (field, column) in fields.iter().zip(columns) {
            field.key.append(out);
            match column {
                Some((chunk, kind)) if !chunk.is_null(row) => {
                    let value = out.len();
                    write_value(out, chunk, *kind, row);
                    if is_line && *kind == ColumnKind::Json {
                        join_lines(&mut out[value..]);
                    }
                }
                _ => out.extend_from_slice(b"null"),
            }
        }
        match out.get_mut(begin) {
            // The comma before the first field.
            Some(first) => *first = b'{',
            None => out.push(b'{'),
        }
        out.push(b'}');
        out.extend_from_slice(after);
    });
}

/// Within a text they are escaped, so that all there are stand between values.
fn join_lines(document: &mut [u8]) {
    for byte in document {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// Calls `write` for each row of `range` with the columns of `fields` in its batch, as far as there are any, and its place there.
#[inline]
pub(crate) fn walk(
    output: &Output,
    fields: &[Field],
    range: Range<usize>,
    mut write: impl FnMut(&[Option<(&Chunk, ColumnKind)>], usize),
) {
    let mut first = 0;
    for batch in &output.batches {
        let rows = batch.rows as usize;
        let from = range.start.clamp(first, first + rows) - first;
        let to = range.end.clamp(first, first + rows) - first;
        first += rows;
        let columns: Vec<Option<(&Chunk, ColumnKind)>> = fields
            .iter()
            .map(|field| {
                Some((
                    batch.chunks.get(field.index)?,
                    output.columns.get(field.index)?.kind,
                ))
            })
            .collect();
        for row in from..to {
            write(&columns, row);
        }
    }
}

/// Appends one value.
pub fn write_cell(out: &mut Vec<u8>, cell: &Cell<'_>) {
    match cell {
        Cell::Null => out.extend_from_slice(b"null"),
        Cell::Boolean(value) => write_bool(out, *value),
        Cell::Int64(value) => write_i64(out, *value),
        Cell::Float64(value) => write_f64(out, *value),
        Cell::Decimal(text) => write_decimal(out, text.as_bytes()),
        Cell::Text(text) => write_string(out, text.as_bytes()),
        Cell::Bytes(bytes) => write_base64(out, bytes),
        Cell::Date(days) => write_date(out, *days),
        Cell::Time(micros) => write_time(out, *micros),
        Cell::Timestamp(micros) => write_timestamp(out, *micros),
        Cell::LocalTimestamp(micros) => write_local_timestamp(out, *micros),
        Cell::Json(text) => out.extend_from_slice(text.as_bytes()),
    }
}

#[inline]
fn write_value(out: &mut Vec<u8>, chunk: &Chunk, kind: ColumnKind, row: usize) {
    match &chunk.data {
        ColumnData::Bits(bits) => write_bool(out, bit(bits, row)),
        ColumnData::I32s(days) => write_date(out, days[row]),
        ColumnData::I64s(values) => match kind {
            ColumnKind::Time => write_time(out, values[row]),
            ColumnKind::Timestamp => write_timestamp(out, values[row]),
            ColumnKind::LocalTimestamp => write_local_timestamp(out, values[row]),
            _ => write_i64(out, values[row]),
        },
        ColumnData::F64s(values) => write_f64(out, values[row]),
        ColumnData::VarLen(values) => match kind {
            ColumnKind::Decimal => write_decimal(out, values.at(row)),
            ColumnKind::Json => out.extend_from_slice(values.at(row)),
            ColumnKind::Bytes => write_base64(out, values.at(row)),
            _ => write_string(out, values.at(row)),
        },
    }
}

pub(crate) fn write_bool(out: &mut Vec<u8>, value: bool) {
    // Of one length, so that it is no call of `memmove`.
    let text = if value { b"true " } else { b"false" };
    let end = out.len() + text.len() - usize::from(value);
    out.extend_from_slice(text);
    out.truncate(end);
}

#[inline]
pub(crate) fn write_i64(out: &mut Vec<u8>, value: i64) {
    match u16::try_from(value) {
        Ok(value) if value < 10_000 => short::append_small(out, value),
        _ => short::append(out, itoa::Buffer::new().format(value).as_bytes()),
    }
}

/// JSON has no NaN and no infinity: they are strings, as those of exact numbers are.
fn write_f64(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        short::append(out, zmij::Buffer::new().format_finite(value).as_bytes());
        return;
    }
    out.extend_from_slice(match (value.is_nan(), value > 0.0) {
        (true, _) => b"\"NaN\"",
        (false, true) => b"\"Infinity\"",
        (false, false) => b"\"-Infinity\"",
    });
}

/// A number literal where JSON has one, else (`NaN`, `Infinity`) a string.
fn write_decimal(out: &mut Vec<u8>, text: &[u8]) {
    if is_number(text) {
        out.extend_from_slice(text);
    } else {
        write_string(out, text);
    }
}

/// JSON's grammar of a number, to the letter.
pub(crate) fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    match digits(rest) {
        0 => return false,
        count if count > 1 && rest[0] == b'0' => return false,
        count => rest = &rest[count..],
    }
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let Some(exponent) = rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")) {
        let exponent = exponent
            .strip_prefix(b"+")
            .or_else(|| exponent.strip_prefix(b"-"))
            .unwrap_or(exponent);
        let count = digits(exponent);
        return count > 0 && count == exponent.len();
    }
    rest.is_empty()
}

/// What stands for a byte inside a string: 0 itself, `u` as `\u00XX`, else `\` and this.
static ESCAPE: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = b'u';
        byte += 1;
    }
    table[b'\n' as usize] = b'n';
    table[b'\r' as usize] = b'r';
    table[b'\t' as usize] = b't';
    table[8] = b'b';
    table[12] = b'f';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
};

/// Appends a JSON string. `text` is UTF-8.
#[inline]
pub fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    if is_short_and_plain(text) {
        short::append_quoted(out, text);
    } else {
        write_any_string(out, text);
    }
}

fn write_any_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    let mut start = 0;
    for (at, byte) in text.iter().enumerate().skip(plain(text)) {
        let escape = ESCAPE[*byte as usize];
        if escape == 0 {
            continue;
        }
        out.extend_from_slice(&text[start..at]);
        start = at + 1;
        out.push(b'\\');
        out.push(escape);
        if escape == b'u' {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(&[
                b'0',
                b'0',
                HEX[(byte >> 4) as usize],
                HEX[(byte & 15) as usize],
            ]);
        }
    }
    out.extend_from_slice(&text[start..]);
    out.push(b'"');
}

/// How many bytes at its beginning are written as they are, as far as eight of them can be told at once.
fn plain(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks::<8>();
    let plain = words.iter().take_while(|word| is_plain(**word)).count() * 8;
    match text.last_chunk::<8>() {
        Some(last) if plain + rest.len() == text.len() && is_plain(*last) => text.len(),
        _ => plain,
    }
}

/// Whether none of these bytes is escaped.
#[inline]
fn is_plain(bytes: [u8; 8]) -> bool {
    const ONES: u64 = u64::MAX / 255;
    let word = u64::from_ne_bytes(bytes);
    let below = |word: u64, byte: u8| word.wrapping_sub(ONES * u64::from(byte)) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    // The highest bit of a byte says what holds of it; of one above another that holds it may be wrong, which matters to nobody.
    let special = below(word, 0x20) | is(b'"') | is(b'\\');
    special & (ONES << 7) == 0
}

/// Of up to 16 bytes, none of which is escaped.
#[inline]
fn is_short_and_plain(text: &[u8]) -> bool {
    match text.len() {
        0..4 => text.iter().all(|byte| ESCAPE[*byte as usize] == 0),
        4..8 => match (text.first_chunk::<4>(), text.last_chunk::<4>()) {
            (Some([a, b, c, d]), Some([e, f, g, h])) => is_plain([*a, *b, *c, *d, *e, *f, *g, *h]),
            _ => false,
        },
        8..=16 => match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
            (Some(first), Some(last)) => is_plain(*first) && is_plain(*last),
            _ => false,
        },
        _ => false,
    }
}

fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    push_base64(out, bytes);
    out.push(b'"');
}

pub(crate) fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    // It fits exactly.
    let written = STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
}

fn write_date(out: &mut Vec<u8>, days: i32) {
    out.push(b'"');
    push_date(out, i64::from(days));
    out.push(b'"');
}

fn write_time(out: &mut Vec<u8>, micros: i64) {
    out.push(b'"');
    push_time(out, micros);
    out.push(b'"');
}

/// RFC 3339 in UTC, microseconds always written.
fn write_timestamp(out: &mut Vec<u8>, micros: i64) {
    out.push(b'"');
    push_timestamp(out, micros);
    out.push(b'"');
}

/// The same of a clock whose zone nobody knows.
fn write_local_timestamp(out: &mut Vec<u8>, micros: i64) {
    out.push(b'"');
    push_local_timestamp(out, micros);
    out.push(b'"');
}

pub(crate) fn push_timestamp(out: &mut Vec<u8>, micros: i64) {
    push_local_timestamp(out, micros);
    out.push(b'Z');
}

pub(crate) fn push_local_timestamp(out: &mut Vec<u8>, micros: i64) {
    push_date(out, micros.div_euclid(DAY_MICROS));
    out.push(b'T');
    push_time(out, micros.rem_euclid(DAY_MICROS));
}

/// `YYYY-MM-DD`; years before 0 and of five digits with a sign, as ISO 8601 has them: `+10000-01-01`.
pub(crate) fn push_date(out: &mut Vec<u8>, days: i64) {
    let (year, month, day) = civil(days);
    if year < 0 {
        out.push(b'-');
    } else if year > 9_999 {
        out.push(b'+');
    }
    let mut year = year.unsigned_abs();
    if year > 9_999 {
        write_i64(out, (year / 10_000) as i64);
        year %= 10_000;
    }
    let mut text = *b"YYYY-MM-DD";
    put_pair(&mut text, 0, year / 100);
    put_pair(&mut text, 2, year % 100);
    put_pair(&mut text, 5, month);
    put_pair(&mut text, 8, day);
    out.extend_from_slice(&text);
}

/// `HH:MM:SS.ffffff`.
pub(crate) fn push_time(out: &mut Vec<u8>, micros: i64) {
    let micros = micros as u64;
    let seconds = micros / 1_000_000;
    let fraction = micros % 1_000_000;
    let mut text = *b"HH:MM:SS.ffffff";
    put_pair(&mut text, 0, seconds / 3600);
    put_pair(&mut text, 3, seconds / 60 % 60);
    put_pair(&mut text, 6, seconds % 60);
    put_pair(&mut text, 9, fraction / 10_000);
    put_pair(&mut text, 11, fraction / 100 % 100);
    put_pair(&mut text, 13, fraction % 100);
    out.extend_from_slice(&text);
}

/// The last two digits.
#[inline]
fn put_pair<const LENGTH: usize>(text: &mut [u8; LENGTH], at: usize, value: u64) {
    text[at] = b'0' + (value / 10 % 10) as u8;
    text[at + 1] = b'0' + (value % 10) as u8;
}

/// Days since 1970-01-01 to a proleptic Gregorian date (Hinnant's `civil_from_days`).
fn civil(days: i64) -> (i64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (
        year_of_era + era * 400 + i64::from(month <= 2),
        month as u64,
        day as u64,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Batch, Column, VarLen};

    fn cell(cell: Cell<'_>) -> String {
        let mut out = Vec::new();
        write_cell(&mut out, &cell);
        String::from_utf8(out).unwrap()
    }

    /// Every kind of value has one exact spelling.
    #[test]
    fn values_are_written_exactly() {
        assert_eq!(cell(Cell::Boolean(true)), "true");
        assert_eq!(cell(Cell::Boolean(false)), "false");
        assert_eq!(cell(Cell::Int64(i64::MIN)), "-9223372036854775808");
        assert_eq!(cell(Cell::Float64(0.1)), "0.1");
        assert_eq!(cell(Cell::Float64(f64::NAN)), r#""NaN""#);
        assert_eq!(cell(Cell::Float64(f64::NEG_INFINITY)), r#""-Infinity""#);
        assert_eq!(cell(Cell::Decimal("-12.340")), "-12.340");
        assert_eq!(
            cell(Cell::Decimal("123456789012345678901234567890.5")),
            "123456789012345678901234567890.5"
        );
        assert_eq!(cell(Cell::Decimal("1e5")), "1e5");
        for odd in [
            "NaN", "Infinity", "007", ".5", "5.", "1e", "+1", "", "-", "1,5", "0x1",
        ] {
            assert_eq!(cell(Cell::Decimal(odd)), format!("\"{odd}\""));
        }
        assert_eq!(cell(Cell::Text("a\"b\\c\n\u{1}é")), r#""a\"b\\c\n\u0001é""#);
        assert_eq!(cell(Cell::Bytes(b"")), r#""""#);
        assert_eq!(cell(Cell::Bytes(b"a")), r#""YQ==""#);
        assert_eq!(cell(Cell::Bytes(b"ab")), r#""YWI=""#);
        assert_eq!(cell(Cell::Bytes(b"abc")), r#""YWJj""#);
        assert_eq!(cell(Cell::Date(0)), r#""1970-01-01""#);
        assert_eq!(cell(Cell::Date(-719_529)), r#""-0001-12-31""#);
        assert_eq!(cell(Cell::Date(19_782)), r#""2024-02-29""#);
        assert_eq!(cell(Cell::Date(2_932_896)), r#""9999-12-31""#);
        assert_eq!(cell(Cell::Date(2_932_897)), r#""+10000-01-01""#);
        assert_eq!(cell(Cell::Date(35_804_721)), r#""+99999-12-31""#);
        assert_eq!(cell(Cell::Date(-37_243_412)), r#""-99999-01-01""#);
        assert_eq!(cell(Cell::Time(86_399_999_999)), r#""23:59:59.999999""#);
        assert_eq!(
            cell(Cell::Timestamp(-1)),
            r#""1969-12-31T23:59:59.999999Z""#
        );
        assert_eq!(
            cell(Cell::Timestamp(951_782_400_000_000)),
            r#""2000-02-29T00:00:00.000000Z""#
        );
        assert_eq!(
            cell(Cell::LocalTimestamp(-1)),
            r#""1969-12-31T23:59:59.999999""#
        );
        assert_eq!(
            cell(Cell::LocalTimestamp(253_402_300_800_000_000)),
            r#""+10000-01-01T00:00:00.000000""#
        );
        assert_eq!(cell(Cell::Time(86_400_000_000)), r#""24:00:00.000000""#);
        assert_eq!(cell(Cell::Json(r#"{"a":1}"#)), r#"{"a":1}"#);
    }

    /// Whatever stands wherever in a text, it is written as serde_json writes it.
    #[test]
    fn every_character_is_escaped_everywhere() {
        for length in 1..36 {
            for place in 0..length {
                for special in (0..=0x7f).map(char::from).chain(['é', '\u{10ffff}']) {
                    let mut text = vec!['x'; length];
                    text[place] = special;
                    let text: String = text.into_iter().collect();
                    let mut out = Vec::new();
                    write_string(&mut out, text.as_bytes());
                    let expected = serde_json::to_string(&text).unwrap();
                    assert_eq!(String::from_utf8(out).unwrap(), expected);
                }
            }
        }
    }

    /// A page may begin and end inside batches.
    #[test]
    fn a_range_crosses_batches() {
        let column = |name: &str, kind| Column {
            name: name.into(),
            kind,
            nullable: true,
            native: String::new(),
        };
        let batch = |numbers: Vec<i64>, validity| Batch {
            rows: numbers.len() as u32,
            chunks: vec![
                Chunk {
                    validity,
                    data: ColumnData::I64s(numbers.clone()),
                },
                Chunk {
                    validity: None,
                    data: ColumnData::VarLen(VarLen {
                        offsets: (0..=numbers.len() as i32).collect(),
                        bytes: vec![b'x'; numbers.len()],
                    }),
                },
            ],
        };
        let columns = [
            column("n", ColumnKind::Int64),
            column("t", ColumnKind::Text),
        ];
        let batches = vec![
            batch(vec![1, 2, 3], Some(vec![0b101])),
            batch(vec![4, 5], None),
        ];
        let output = Output::new(columns.into(), batches, 45);
        let mut out = Vec::new();
        write_rows(&mut out, &output, &[Field::new(0, "a\"b")], 1..4);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"[{"a\"b":null},{"a\"b":3},{"a\"b":4}]"#
        );
        let mut out = Vec::new();
        write_rows(
            &mut out,
            &output,
            &[Field::new(1, "t"), Field::new(7, "gone")],
            4..900,
        );
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"[{"t":"x","gone":null}]"#
        );
    }
}
