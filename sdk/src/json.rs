//! Values of JSON as sources write them and as columns of `json` hold them, without a tree in between.

use crate::{Error, short};
use reader::plain_until;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor,
};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::num::ParseFloatError;

mod answer;
mod parts;
mod reader;
mod table;
mod wrong;
pub use answer::{Answer, Reading, Telling};
pub use parts::{once_part, once_scalar, part, part_or_none, read_part, scalar};
pub use reader::{Reader, Written};
pub use table::{Cell, Kind, Place, Table};
pub use wrong::what_is_wrong;

/// A document, of which parts may borrow. That it is text is seen once for all of it: [`serde_json::from_slice`] looks at each value by itself,
/// and twice at one that is kept as a [`RawValue`].
pub fn read<'a, T: Deserialize<'a>>(document: &'a [u8]) -> serde_json::Result<T> {
    serde_json::from_str(utf8(document)?)
}

/// Bytes as the text that a document is.
pub fn utf8(document: &[u8]) -> serde_json::Result<&str> {
    std::str::from_utf8(document).map_err(serde_json::Error::custom)
}

/// Reads a document that is an object, a member at a time, in the order in which they come: what stands before decides what becomes of what
/// follows. `member` is told the name of each, and takes its value.
pub fn members<'a>(
    document: &'a [u8],
    member: impl FnMut(&str, &mut Reader<'a>) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    let mut from = Reader::of(utf8(document)?);
    from.object(member)?;
    from.end()
}

/// Takes a value that may stand once; `null` is none.
pub fn once<'a, T: Deserialize<'a>>(
    place: &mut Option<T>,
    from: &mut Reader<'a>,
) -> serde_json::Result<()> {
    if place.is_some() {
        return Err(twice());
    }
    *place = from.read()?;
    Ok(())
}

/// The same of a text, which is copied only where something in it is escaped.
pub fn once_text<'a>(
    place: &mut Option<Cow<'a, str>>,
    from: &mut Reader<'a>,
) -> serde_json::Result<()> {
    if place.is_some() {
        return Err(twice());
    }
    if !from.null()? {
        *place = Some(from.quoted()?);
    }
    Ok(())
}

/// The same of a value of any kind, as it stands.
pub fn once_raw<'a>(place: &mut Option<&'a str>, from: &mut Reader<'a>) -> serde_json::Result<()> {
    if place.is_some() {
        return Err(twice());
    }
    if !from.null()? {
        *place = Some(from.raw()?);
    }
    Ok(())
}

#[cold]
fn twice() -> serde_json::Error {
    serde_json::Error::custom("a member stands twice")
}

/// Why rows were not read to their end.
pub enum Unread {
    /// They are no list of lists, or one of those is too long.
    Malformed(serde_json::Error),
    /// A row was refused.
    Refused(Error),
}

/// Hands on the cells of one row after the other of a list of lists, until one is refused: all of them at once would take many times the
/// memory of their text. None has more than `cells_max`.
pub fn rows<'a>(
    list: &'a RawValue,
    cells_max: usize,
    mut each: impl FnMut(&[&'a RawValue]) -> Result<(), Error>,
) -> Result<(), Unread> {
    let mut refused = None;
    let visitor = Rows {
        cells_max,
        each: |row: &[&'a RawValue]| match each(row) {
            Ok(()) => true,
            Err(error) => {
                refused = Some(error);
                false
            }
        },
    };
    let outcome = serde_json::Deserializer::from_str(list.get()).deserialize_seq(visitor);
    match refused {
        Some(error) => Err(Unread::Refused(error)),
        None => outcome.map_err(Unread::Malformed),
    }
}

/// Goes through rows as long as it is told to go on.
struct Rows<F> {
    cells_max: usize,
    each: F,
}

impl<'de, F: FnMut(&[&'de RawValue]) -> bool> Visitor<'de> for Rows<F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut rows: A) -> Result<(), A::Error> {
        let mut cells = Vec::new();
        loop {
            let row = Cells {
                cells: &mut cells,
                cells_max: self.cells_max,
            };
            if rows.next_element_seed(row)?.is_none() {
                return Ok(());
            }
            if !(self.each)(&cells) {
                return Err(A::Error::custom("a row is not taken"));
            }
        }
    }
}

/// Takes the cells of a row in place of those of the last one.
struct Cells<'c, 'de> {
    cells: &'c mut Vec<&'de RawValue>,
    cells_max: usize,
}

impl<'de> DeserializeSeed<'de> for Cells<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Cells<'_, 'de> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a row")
    }

    // Else the library's own error would tell all of it.
    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        Err(E::custom("a text where a row is expected"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut row: A) -> Result<(), A::Error> {
        self.cells.clear();
        while let Some(cell) = row.next_element()? {
            if self.cells.len() == self.cells_max {
                return Err(A::Error::custom("a row has too many cells"));
            }
            self.cells.push(cell);
        }
        Ok(())
    }
}

/// The text that a value is; `None` where it is something else.
pub fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let raw = value.get();
    match raw.as_bytes() {
        [b'"', inner @ .., b'"'] if !inner.contains(&b'\\') => {
            Some(Cow::Borrowed(&raw[1..raw.len() - 1]))
        }
        [b'"', ..] => serde_json::from_str(raw).map(Cow::Owned).ok(),
        _ => None,
    }
}

/// Whether a text is one document.
pub fn is_document(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether a text is digits, with a sign and a point where there is one, and as in JSON no zero before others: what a decimal column takes.
pub fn is_decimal(text: impl AsRef<[u8]>) -> bool {
    let text = text.as_ref();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    // Each byte is looked at once.
    let digits = |part: &[u8]| part.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(text);
    let is_short = whole == 1 || (whole > 1 && text[0] != b'0');
    is_short
        && match &text[whole..] {
            [] => true,
            [b'.', fraction @ ..] => !fraction.is_empty() && digits(fraction) == fraction.len(),
            _ => false,
        }
}

/// The whole number that a text is. So many digits fit whatever they are: the standard library looks after each of more than 15 of them, for which
/// WebAssembly multiplies 128 bits.
pub fn whole(text: &str) -> Option<i64> {
    const DIGITS: usize = 18;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain =
        (1..=DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_plain {
        return text.parse().ok();
    }
    let value = digits
        .bytes()
        .fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    match digits.len() < text.len() {
        true => Some(-value),
        false => Some(value),
    }
}

/// The double that digits are: what `parse` says, sooner where there are few of them, as mostly.
pub fn float(text: &str) -> Result<f64, ParseFloatError> {
    match short_float(text) {
        Some(value) => Ok(value),
        None => text.parse(),
    }
}

/// The same of digits with or without a point that a double has all of: divided by a power of ten that it has, too, they are rounded once.
#[inline]
fn short_float(text: &str) -> Option<f64> {
    const DIGITS: usize = 15;
    const TENS: [f64; DIGITS + 1] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    ];
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.len() > DIGITS {
        return None;
    }
    let (mut value, mut point) = (0_u64, None);
    for (at, byte) in digits.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => value = value * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    let scale = match point {
        _ if digits.is_empty() => return None,
        None => 0,
        // Digits on both sides of it.
        Some(at) if at > 0 && at + 1 < digits.len() => digits.len() - at - 1,
        Some(_) => return None,
    };
    let value = value as f64 / TENS[scale];
    match digits.len() < text.len() {
        true => Some(-value),
        false => Some(value),
    }
}

/// Appends a text, quoted, as `serde_json` writes it.
pub fn write_text(text: &str, out: &mut Vec<u8>) {
    let (bytes, mut at) = (text.as_bytes(), 0);
    out.push(b'"');
    loop {
        let end = plain_until(bytes, at);
        short::append(out, &bytes[at..end]);
        match bytes.get(end) {
            Some(byte) => write_escaped(*byte, out),
            None => break,
        }
        at = end + 1;
    }
    out.push(b'"');
}

/// Appends a character that does not stand in a text as it is.
fn write_escaped(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let letter = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            let [high, low] = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
            return out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

/// Appends a whole number.
pub fn write_whole(value: i64, out: &mut Vec<u8>) {
    // A Vec takes everything.
    let _ = serde_json::to_writer(out, &value);
}

/// Appends a number. JSON has none for three of them, which are texts: `"NaN"`, `"Infinity"`, `"-Infinity"`.
pub fn write_f64(value: f64, out: &mut Vec<u8>) {
    match value {
        value if value.is_nan() => write_text("NaN", out),
        f64::INFINITY => write_text("Infinity", out),
        f64::NEG_INFINITY => write_text("-Infinity", out),
        value => {
            // A Vec takes everything.
            let _ = serde_json::to_writer(out, &value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read() {
        for (raw, wanted) in [
            (r#""a""#, Some("a")),
            (r#""""#, Some("")),
            (r#""a\"\u00e9""#, Some("a\"é")),
            (r#""\ud800""#, None),
            ("1", None),
            ("null", None),
            ("[\"a\"]", None),
        ] {
            let value: &RawValue = serde_json::from_str(raw).unwrap();
            assert_eq!(text(value).as_deref(), wanted, "{raw}");
        }
    }

    /// A double is what the standard library reads, to the last bit, and what is none is none.
    #[test]
    fn floats_are_read_as_by_the_library() {
        let mut texts: Vec<String> = [
            "0",
            "-0",
            "0.0",
            "-0.0",
            "1.",
            ".5",
            "",
            "-",
            ".",
            "-.5",
            "1.5.5",
            "+1",
            "1e5",
            "1E-5",
            "NaN",
            "inf",
            "0.1",
            "0.3",
            "123456789012345",
            "0.12345678901234",
            "99999999999999.9",
            "1234567890123456",
            "0.30000000000000004",
            "4.35",
            "1e400",
            " 1",
            "1 ",
            "1,5",
            "٣",
        ]
        .map(str::to_owned)
        .into();
        let mut seed = 1_u64;
        for _ in 0..20_000 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let (value, scale) = ((seed >> 32) * ((seed >> 20) & 0xffff), (seed % 12) as usize);
            let digits = format!("{value:013}");
            let digits = &digits[..digits.len().min(14)];
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            let sign = if seed & 4096 == 0 { "-" } else { "" };
            texts.push(match fraction {
                "" => format!("{sign}{whole}"),
                _ => format!("{sign}{whole}.{fraction}"),
            });
        }
        for text in texts {
            let (read, wanted) = (float(&text), text.parse::<f64>());
            assert_eq!(read.map(f64::to_bits), wanted.map(f64::to_bits), "{text}");
        }
    }

    /// Rows are handed on one by one until one is refused; what is no row is told without its content.
    #[test]
    fn rows_are_handed_on() {
        let read = |list: &str, taken_max: usize| {
            let list: &RawValue = serde_json::from_str(list).unwrap();
            let mut taken = Vec::new();
            let outcome = rows(list, 2, |row| {
                if taken.len() == taken_max {
                    return Err(Error::source_failed("enough", "no more"));
                }
                taken.push(
                    row.iter()
                        .map(|cell| cell.get())
                        .collect::<Vec<_>>()
                        .join("|"),
                );
                Ok(())
            });
            let outcome = match outcome {
                Ok(()) => "whole".to_owned(),
                Err(Unread::Refused(error)) => error.code,
                Err(Unread::Malformed(error)) => error.to_string(),
            };
            (taken.join(" "), outcome)
        };
        let of = |taken: &str, outcome: &str| (taken.to_owned(), outcome.to_owned());
        assert_eq!(
            read(r#"[[1,"a"],[],[{"b":2}]]"#, 9),
            of(r#"1|"a"  {"b":2}"#, "whole")
        );
        assert_eq!(read("[[1],[2],[3]]", 1), of("1", "enough"));
        let (taken, error) = read("[[1],[1,2,3]]", 9);
        assert!(taken == "1" && error.contains("too many cells"), "{error}");
        let (_, error) = read(r#"["secret"]"#, 9);
        assert!(
            error.contains("a text") && !error.contains("secret"),
            "{error}"
        );
        assert!(super::read::<&str>(b"\"\xff\"").is_err());
    }

    /// A text, and a value as it stands, are read once as well; a text is nothing else.
    #[test]
    fn members_are_taken_as_they_stand() {
        let read = |document: &str| {
            let (mut text, mut raw) = (None, None);
            let read = members(document.as_bytes(), |name, from| match name {
                "t" => once_text(&mut text, from),
                _ => once_raw(&mut raw, from),
            });
            let text = text.map(Cow::into_owned);
            read.map(|()| (text, raw.map(str::to_owned)))
                .map_err(|error| error.to_string())
        };
        let of = |text: Option<&str>, raw: Option<&str>| {
            Ok((text.map(str::to_owned), raw.map(str::to_owned)))
        };
        assert_eq!(
            read(r#"{"t": "a" ,"r": {"b": 1} }"#),
            of(Some("a"), Some(r#"{"b": 1}"#))
        );
        assert_eq!(
            read(r#"{"t":"\u00e9\n","r":""}"#),
            of(Some("é\n"), Some("\"\""))
        );
        assert_eq!(read(r#"{"t":null,"r":null}"#), of(None, None));
        assert_eq!(read(r#"{"t":null,"t":"a"}"#), of(Some("a"), None));
        for (document, why) in [
            (r#"{"t":"a","t":"b"}"#, "twice"),
            (r#"{"r":1,"r":2}"#, "twice"),
            (r#"{"t":7}"#, "a number in place of a text"),
            (r#"{"t":nul}"#, "unknown word"),
        ] {
            let error = read(document).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    /// Members are read in their order, a value once, and what is no object is told without its content.
    #[test]
    fn members_are_read_one_by_one() {
        let read = |document: &str| {
            let (mut order, mut number) = (String::new(), None::<u32>);
            let read = members(document.as_bytes(), |name, from| {
                order.push_str(name);
                match name {
                    "n" => once(&mut number, from),
                    _ => from.skip(),
                }
            });
            match read {
                Ok(()) => Ok((order, number)),
                Err(error) => Err(error.to_string()),
            }
        };
        let whole = read(r#" {"b":[1],"\u006e":7,"a":{"n":8}} "#);
        assert_eq!(whole, Ok(("bna".to_owned(), Some(7))));
        assert_eq!(read(r#"{"n":null}"#), Ok(("n".to_owned(), None)));
        for (document, why) in [
            (r#"{"n":7,"n":8}"#, "twice"),
            (r#""secret""#, "a text"),
            ("[]", "a list in place of an object"),
            ("{} {}", "trailing"),
            ("{", "EOF"),
        ] {
            let error = read(document).unwrap_err();
            assert!(error.contains(why) && !error.contains("secret"), "{error}");
        }
        assert!(members(b"{\"\xff\":1}", |_, from| from.skip()).is_err());
    }

    #[test]
    fn digits_are_told_from_other_texts() {
        for text in ["0", "-0.10", "0.007", "10.0", &"9".repeat(100)] {
            assert!(is_decimal(text) && is_document(text), "{text}");
        }
        // What is no number of JSON's is none in a column either.
        for text in [
            "", "-", ".5", "5.", "+1", "1e5", "NaN", "1.2.3", "--1", "１", "00", "007", "-01.5",
        ] {
            assert!(!is_decimal(text), "{text}");
        }
        assert!(is_document("{\"a\": [1]}") && !is_document("{\"a\":") && !is_document("1 2"));
    }

    /// The standard library's own is what decides.
    #[test]
    fn whole_numbers_are_read() {
        let nines = "9".repeat(18);
        for text in [
            "0",
            "-0",
            "-1",
            "1732622400123456",
            "007",
            "+5",
            "",
            "-",
            "--1",
            "1-",
            "1.0",
            " 1",
            "１",
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775808",
            &nines,
            &format!("-{nines}"),
            &format!("{nines}9"),
        ] {
            assert_eq!(whole(text), text.parse().ok(), "{text}");
        }
    }

    #[test]
    fn numbers_are_written() {
        let mut out = Vec::new();
        for value in [0.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            write_f64(value, &mut out);
        }
        write_text("a\"b\n", &mut out);
        write_whole(i64::MIN, &mut out);
        let wanted = r#"0.1"NaN""Infinity""-Infinity""a\"b\n"-9223372036854775808"#;
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }

    /// A text is written as serde_json writes it, whatever stands in it and wherever.
    #[test]
    fn texts_are_written_as_serde_writes_them() {
        let chars = (0..0x100)
            .filter_map(char::from_u32)
            .chain(['日', '😀', '\u{2028}']);
        for char in chars {
            for before in 0..18 {
                for after in ["", "z", "\"\n and more than eight"] {
                    let text = format!("{}{char}{after}", "x".repeat(before));
                    let mut out = b"before".to_vec();
                    write_text(&text, &mut out);
                    let wanted = format!("before{}", serde_json::to_string(&text).unwrap());
                    assert_eq!(String::from_utf8(out).unwrap(), wanted);
                }
            }
        }
        let mut out = Vec::new();
        write_text("", &mut out);
        assert_eq!(out, b"\"\"");
    }
}
