//! Values of JSON as sources write them and as columns of `json` hold them, without a tree in between.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;

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

/// Whether a text is digits, with a sign and a point where there is one: what a decimal column takes, whatever JSON says of zeros before it.
pub fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    is_number(whole) && is_number(fraction)
}

/// Appends a text, quoted.
pub fn write_text(text: &str, out: &mut Vec<u8>) {
    // A Vec takes everything.
    let _ = serde_json::to_writer(out, text);
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

    #[test]
    fn digits_are_told_from_other_texts() {
        for text in ["0", "-0.10", "007", &"9".repeat(100)] {
            assert!(is_decimal(text), "{text}");
        }
        for text in [
            "", "-", ".5", "5.", "+1", "1e5", "NaN", "1.2.3", "--1", "１",
        ] {
            assert!(!is_decimal(text), "{text}");
        }
        assert!(is_document("{\"a\": [1]}") && !is_document("{\"a\":") && !is_document("1 2"));
    }

    #[test]
    fn numbers_are_written() {
        let mut out = Vec::new();
        for value in [0.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            write_f64(value, &mut out);
        }
        write_text("a\"b\n", &mut out);
        let wanted = r#"0.1"NaN""Infinity""-Infinity""a\"b\n""#;
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }
}
