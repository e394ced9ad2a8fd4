//! What Snowflake writes of semi-structured values, as JSON: nearly that is what it writes. An element of an array that is NULL is
//! `undefined`, a float may be `NaN` or `Infinity`.

use std::borrow::Cow;

use souk_sdk::json::{is_document, write_text};

/// The document; `None`: it is none.
pub fn document(text: &str) -> Option<Cow<'_, str>> {
    if is_document(text) {
        return Some(Cow::Borrowed(text));
    }
    let mended = mended(text)?;
    is_document(&mended).then_some(Cow::Owned(mended))
}

/// The document, or a text that holds what is none (XML, WKT).
pub fn document_or_text(text: &str) -> Cow<'_, str> {
    document(text).unwrap_or_else(|| {
        let mut quoted = Vec::with_capacity(text.len() + 2);
        write_text(text, &mut quoted);
        // It is written as a text.
        Cow::Owned(String::from_utf8(quoted).unwrap_or_default())
    })
}

/// The same with words of JSON's for those that are not; `None`: a text in it has no end.
fn mended(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => text_length(rest)?,
            _ if first.is_ascii_alphabetic() || first == '-' => {
                let is_end = |char: char| !char.is_ascii_alphanumeric() && !"+-.".contains(char);
                rest.find(is_end).unwrap_or(rest.len())
            }
            _ => first.len_utf8(),
        };
        let token = &rest[..length];
        out.push_str(match token {
            "undefined" => "null",
            "NaN" => "\"NaN\"",
            "Infinity" | "inf" => "\"Infinity\"",
            "-Infinity" | "-inf" => "\"-Infinity\"",
            token => token,
        });
        rest = &rest[length..];
    }
    Some(out)
}

/// How long the text is that begins here, with its quotes.
fn text_length(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => drop(chars.next()),
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_json_is_mended() {
        for (text, wanted) in [
            ("{\"a\":[1,null]}", Some("{\"a\":[1,null]}")),
            ("[\n  1,\n  undefined\n]", Some("[\n  1,\n  null\n]")),
            (
                "[NaN,-Infinity,\"undefined \\\" NaN\",-1.5e+10,inf]",
                Some("[\"NaN\",\"-Infinity\",\"undefined \\\" NaN\",-1.5e+10,\"Infinity\"]"),
            ),
            ("undefined", Some("null")),
            ("<xml>undefined</xml>", None),
            ("POINT(1 2)", None),
            ("[\"open", None),
            ("", None),
        ] {
            assert_eq!(document(text).as_deref(), wanted, "{text}");
        }
        assert_eq!(document_or_text("POINT(1 \"2\")"), "\"POINT(1 \\\"2\\\")\"");
    }
}
