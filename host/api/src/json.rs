//! JSON bodies, parsed strictly and refused with the name of the field that does not fit.

use crate::problem::{FieldError, Problem};
use crate::refusals;
use http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    let kind = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match kind == "application/json"
        || (kind.starts_with("application/") && kind.ends_with("+json"))
    {
        true => Ok(()),
        false => Err(Problem::unsupported_media_type("application/json")),
    }
}

/// A megabyte of numbers would hold its worker for tens of milliseconds, what that many values take is one or two.
const VALUES_MAX: usize = 20_000;

/// Parses a JSON object, naming the field that does not fit.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    check_text(bytes)?;
    check_values(bytes)?;
    if bytes
        .iter()
        .find(|byte| !byte.is_ascii_whitespace())
        .is_some_and(|byte| *byte != b'{')
    {
        return match serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
            Ok(_) => Err(
                Problem::of(refusals::VALIDATION_ERROR, "the body must be a JSON object")
                    .detail("errors", serde_json::json!([])),
            ),
            Err(error) => Err(not_json(&error)),
        };
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        match error.inner().classify() {
            Category::Data => wrong_field(&path, error.inner()),
            _ => not_json(error.inner()),
        }
    })?;
    deserializer.end().map_err(|error| not_json(&error))?;
    Ok(value)
}

/// Refuses what has too many values, at the cost of one look at each byte.
fn check_values(bytes: &[u8]) -> Result<(), Problem> {
    // Each takes two bytes at least.
    if bytes.len() <= 2 * VALUES_MAX {
        return Ok(());
    }
    let (mut values, mut in_text, mut escaped) = (0, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    match values <= VALUES_MAX {
        true => Ok(()),
        false => Err(Problem::of(
            refusals::INVALID_REQUEST,
            format!("the body has more than {VALUES_MAX} values: send fewer at a time"),
        )),
    }
}

/// The parser does not look into members that nobody asks for, but what is no text is no JSON either: a body that one reader refuses
/// and another executes is charged to somebody who meant something else.
fn check_text(bytes: &[u8]) -> Result<(), Problem> {
    let refuse = |what: &str, place: usize| {
        let message = format!("the body is not valid JSON: {what} at byte {place}");
        Err(Problem::of(refusals::INVALID_REQUEST, message))
    };
    if let Err(error) = std::str::from_utf8(bytes) {
        return refuse("it is not UTF-8", error.valid_up_to());
    }
    let mut place = 0;
    // Outside of a string a backslash is the parser's to refuse.
    while let Some(found) = bytes[place..].iter().position(|byte| *byte == b'\\') {
        place += found;
        place += match (unit(&bytes[place..]), bytes.get(place + 6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => return refuse("half a surrogate pair", place),
            (Some(_), _) => 6,
            (None, _) => 2,
        };
        place = place.min(bytes.len());
    }
    Ok(())
}

/// The UTF-16 unit of the escape that `bytes` begin with, if it is `\uXXXX`.
fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn not_json(error: &serde_json::Error) -> Problem {
    Problem::of(
        refusals::INVALID_REQUEST,
        format!("the body is not valid JSON: {error}"),
    )
}

/// Serde reports one error at a time, with its position appended, and a missing field at its parent.
fn wrong_field(path: &str, error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    let message = text.split(" at line ").next().unwrap_or(&text);
    let parent = if path == "." { "" } else { path };
    let (field, code, message) = match message
        .strip_prefix("missing field `")
        .and_then(|rest| rest.strip_suffix('`'))
    {
        Some(name) if parent.is_empty() => (name.to_owned(), "required", "is required".to_owned()),
        Some(name) => (
            format!("{parent}.{name}"),
            "required",
            "is required".to_owned(),
        ),
        None if parent.is_empty() => ("body".to_owned(), "invalid", message.to_owned()),
        None => (parent.to_owned(), "invalid", message.to_owned()),
    };
    Problem::fields(
        refusals::VALIDATION_ERROR,
        vec![FieldError::new(field, code, message)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Patch, Text};
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Example {
        name: Text<1, 5>,
        count: Option<i64>,
        #[serde(default)]
        note: Patch<String>,
    }

    fn refusal(body: &str) -> (String, String) {
        let (_, _, bytes) = parse::<Example>(body.as_bytes())
            .unwrap_err()
            .into_parts("req_1");
        let body: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let field = body["error"]["details"]["errors"][0]["field"]
            .as_str()
            .unwrap_or_default();
        (
            body["error"]["code"].as_str().unwrap().to_owned(),
            field.to_owned(),
        )
    }

    /// Bad JSON is not a bad field, and a bad field is named.
    #[test]
    fn what_is_wrong_is_named() {
        let named = |code: &str, field: &str| (code.to_owned(), field.to_owned());
        assert_eq!(refusal("{"), named("INVALID_REQUEST", ""));
        assert_eq!(
            refusal(r#"{"name":"x"} trailing"#),
            named("INVALID_REQUEST", "")
        );
        assert_eq!(refusal(""), named("INVALID_REQUEST", ""));
        assert_eq!(refusal("[]"), named("VALIDATION_ERROR", ""));
        assert_eq!(refusal("{}"), named("VALIDATION_ERROR", "name"));
        assert_eq!(refusal(r#"{"name":""}"#), named("VALIDATION_ERROR", "name"));
        assert_eq!(
            refusal(r#"{"name":"toolong"}"#),
            named("VALIDATION_ERROR", "name")
        );
        assert_eq!(
            refusal(r#"{"name":"x","count":"1"}"#),
            named("VALIDATION_ERROR", "count")
        );
    }

    /// Also in a member that nobody reads: what is no text is refused, what merely looks odd is not.
    #[test]
    fn what_is_no_text_is_refused_wherever_it_stands() {
        let with = |ignored: &[u8]| [br#"{"name":"x","more":[""#, ignored, br#""]}"#].concat();
        let broken: [&[u8]; 6] = [
            b"\xff",
            b"\xed\xa0\x80",
            br"\ud800",
            br"\uDC00 \ud800",
            br"\ud83d\u0041",
            br"\\\ud83d\n",
        ];
        for ignored in broken {
            let problem = parse::<Example>(&with(ignored)).unwrap_err();
            assert_eq!(
                (problem.status().as_u16(), problem.code()),
                (400, "INVALID_REQUEST")
            );
        }
        for sound in [r"\ud83d\ude00", r"\\ud800", r"\u0041", "\u{1f600}", r"\\"] {
            assert!(parse::<Example>(&with(sound.as_bytes())).is_ok(), "{sound}");
        }
        assert!(parse::<Example>(br#"{"name":"x\"#).is_err());
    }

    /// A body may be large, but not of many values: also in members that nobody reads, and texts do not count.
    #[test]
    fn values_are_bounded() {
        let with = |ignored: String| format!(r#"{{"name":"x","more":[{ignored}]}}"#);
        let many = with(vec!["0"; VALUES_MAX].join(","));
        let problem = parse::<Example>(many.as_bytes()).unwrap_err();
        assert_eq!(problem.code(), "INVALID_REQUEST");
        let fewer = with(vec!["0"; VALUES_MAX - 3].join(","));
        assert!(parse::<Example>(fewer.as_bytes()).is_ok());
        let text = with(format!("\"{}\\\"\"", "[,{".repeat(VALUES_MAX)));
        assert!(parse::<Example>(text.as_bytes()).is_ok());
    }

    /// Unknown members pass; an absent field differs from null.
    #[test]
    fn unknown_members_are_ignored() {
        let example: Example = parse(br#"{"name":"x","note":null,"more":[1]}"#).unwrap();
        assert_eq!(example.note, Patch::Null);
        assert_eq!(
            parse::<Example>(br#"{"name":"x"}"#).unwrap().note,
            Patch::Absent
        );
    }
}
