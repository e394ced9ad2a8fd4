//! JSON bodies, parsed strictly and refused with the name of the field that does not fit.

use crate::fitting::Shape;
use crate::problem::{FieldError, Problem};
use crate::refusals;
use crate::spelling::misspelt;
use bytes::Bytes;
use http::{HeaderMap, header};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};
use serde_path_to_error::Segment;
use souk_app::wording::plain;
use souk_domain::fields::FieldErrors;
use souk_domain::parameters::integer;
use std::borrow::Cow;
use utoipa::ToSchema;

type ReadError = serde_path_to_error::Error<serde_json::Error>;

/// A larger body with a wrong field is held against its schema only: reading it again and again would hold a worker.
const REREAD_BYTES_MAX: usize = 16 << 10;
/// As many wrong fields are named at once, beside those that are missing.
const REREAD_MAX: usize = 20;

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
pub const VALUES_MAX: usize = 20_000;

/// Parses a JSON object, naming every field that does not fit and every one that a `T` lacks.
pub fn parse<T: DeserializeOwned + ToSchema>(bytes: &[u8]) -> Result<T, Problem> {
    read(bytes, || Shape::of::<T>(false))
}

/// The same of what to change of a `T`: nothing is lacking.
pub fn parse_change<T: DeserializeOwned + ToSchema>(bytes: &[u8]) -> Result<T, Problem> {
    read(bytes, || Shape::of::<T>(true))
}

/// A body that was read, for the case that its operation refuses it after all.
pub(crate) struct Sent {
    bytes: Bytes,
    shape: fn() -> Shape,
}

impl Sent {
    /// `None`: it is too large to be read again.
    pub fn of<T: ToSchema>(bytes: &Bytes) -> Option<Sent> {
        Sent::with(bytes, || Shape::of::<T>(false))
    }

    /// The same of what to change of a `T`.
    pub fn change_of<T: ToSchema>(bytes: &Bytes) -> Option<Sent> {
        Sent::with(bytes, || Shape::of::<T>(true))
    }

    fn with(bytes: &Bytes, shape: fn() -> Shape) -> Option<Sent> {
        let bytes = bytes.clone();
        (bytes.len() <= REREAD_BYTES_MAX).then_some(Sent { bytes, shape })
    }

    /// Adds what does not fit and is not named yet.
    pub fn misfits(&self, errors: &mut FieldErrors) {
        if let Ok(body) = serde_json::from_slice(&self.bytes) {
            let shape = (self.shape)();
            shape.misfits(&body, errors);
            misspelt(&shape, &body, errors);
        }
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8], shape: fn() -> Shape) -> Result<T, Problem> {
    check_object(bytes)?;
    let mut bytes = Cow::Borrowed(bytes);
    for _ in 0..REREAD_MAX {
        let error = match deserialize(&bytes)? {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        match with_integer(&bytes, &error) {
            Some(mended) if bytes.len() <= REREAD_BYTES_MAX => bytes = Cow::Owned(mended),
            _ => return Err(wrong_fields::<T>(&bytes, &error, &shape())),
        }
    }
    match deserialize(&bytes)? {
        Ok(value) => Ok(value),
        Err(error) => Err(wrong_fields::<T>(&bytes, &error, &shape())),
    }
}

/// A `T`, or what is wrong with a member. No JSON at all is refused at once.
fn deserialize<T: DeserializeOwned>(bytes: &[u8]) -> Result<Result<T, ReadError>, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = match serde_path_to_error::deserialize(&mut deserializer) {
        Ok(value) => value,
        // Of a number where a word belongs the parser says that there is no value.
        Err(error) => match serde_json::from_slice::<IgnoredAny>(bytes) {
            Ok(_) => return Ok(Err(error)),
            Err(broken) if error.inner().is_data() => return Err(not_json(&broken)),
            Err(_) => return Err(not_json(error.inner())),
        },
    };
    deserializer.end().map_err(|error| not_json(&error))?;
    Ok(Ok(value))
}

const NO_INTEGER: &str = "invalid type: floating point";

/// JSON has one kind of number, and JSON Schema says that `100.0` is the integer 100: the body with that written instead of it, if that is
/// what serde stumbled over. Its bytes are changed and not its value, so that what is refused of a body is refused of this one too.
fn with_integer(bytes: &[u8], error: &ReadError) -> Option<Vec<u8>> {
    let error = error.inner();
    if !error.to_string().starts_with(NO_INTEGER) {
        return None;
    }
    // Serde has just read the number, and counts from one.
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines
        .by_ref()
        .take(error.line().checked_sub(1)?)
        .map(<[u8]>::len)
        .sum();
    let end = before + error.column();
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let length = bytes
        .get(..end)?
        .iter()
        .rev()
        .take_while(|byte| is_of_number(byte))
        .count();
    let start = end - length;
    let integer = integer(std::str::from_utf8(&bytes[start..end]).ok()?)?;
    let mut mended = bytes.to_vec();
    mended.splice(start..end, integer.to_string().into_bytes());
    Some(mended)
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

/// Parses a JSON object, whatever its members are.
pub fn parse_members(bytes: &[u8]) -> Result<Map<String, Value>, Problem> {
    check_object(bytes)?;
    serde_json::from_slice(bytes).map_err(|error| not_json(&error))
}

fn check_object(bytes: &[u8]) -> Result<(), Problem> {
    check_text(bytes)?;
    check_values(bytes)?;
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_none_or(|byte| *byte == b'{') {
        return Ok(());
    }
    match serde_json::from_slice::<IgnoredAny>(bytes) {
        Ok(_) => Err(
            Problem::of(refusals::VALIDATION_ERROR, "the body must be a JSON object")
                .detail("errors", serde_json::json!([])),
        ),
        Err(error) => Err(not_json(&error)),
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
    if error.is_eof() && (error.line(), error.column()) == (1, 0) {
        return Problem::of(
            refusals::INVALID_REQUEST,
            "the body is empty: send a JSON object",
        );
    }
    Problem::of(
        refusals::INVALID_REQUEST,
        format!("the body is not valid JSON: {error}"),
    )
}

/// Serde reports one error at a time: what it has named is taken out, and the rest read again. What is missing, or beyond its bounds, is
/// found by the schema.
fn wrong_fields<T: DeserializeOwned>(bytes: &[u8], first: &ReadError, shape: &Shape) -> Problem {
    let mut errors = FieldErrors::default();
    errors.push(wrong_field(first));
    let mut named = vec![member(first)];
    if let Ok(whole) = serde_json::from_slice::<Value>(bytes) {
        let mut body = match bytes.len() <= REREAD_BYTES_MAX {
            true => whole.clone(),
            false => Value::Null,
        };
        while let Some(members) = body.as_object_mut()
            && named.len() < REREAD_MAX
            && named
                .last()
                .is_some_and(|name| members.remove(name).is_some())
        {
            match serde_path_to_error::deserialize::<_, T>(&body) {
                Err(error) if !named.contains(&member(&error)) => {
                    named.push(member(&error));
                    if !is_integer(&body, &error) {
                        errors.push(wrong_field(&error));
                    }
                }
                _ => break,
            }
        }
        shape.misfits(&whole, &mut errors);
        misspelt(shape, &whole, &mut errors);
    }
    Problem::fields(refusals::VALIDATION_ERROR, errors.into_vec())
}

/// It is `100.0`, and right.
fn is_integer(body: &Value, error: &ReadError) -> bool {
    if !error.inner().to_string().starts_with(NO_INTEGER) {
        return false;
    }
    let mut place = body;
    for segment in error.path().iter() {
        let part = match segment {
            Segment::Map { key } => place.get(key),
            Segment::Seq { index } => place.get(index),
            _ => None,
        };
        match part {
            Some(part) => place = part,
            None => return false,
        }
    }
    matches!(place, Value::Number(number) if integer(&number.to_string()).is_some())
}

/// The member of the body that is wrong, or that is missing from it.
fn member(error: &ReadError) -> String {
    match error.path().iter().next() {
        Some(Segment::Map { key }) => key.clone(),
        _ => wrong_field(error).field,
    }
}

/// Serde appends the position, and reports a missing field at its parent.
fn wrong_field(error: &ReadError) -> FieldError {
    let path = error.path().to_string();
    let text = error.inner().to_string();
    let message = text.split(" at line ").next().unwrap_or(&text);
    let parent = if path == "." { "" } else { &path };
    let missing = message.strip_prefix("missing field `");
    match missing.and_then(|rest| rest.strip_suffix('`')) {
        Some(name) if parent.is_empty() => FieldError::new(name, "required", "is required"),
        Some(name) => FieldError::new(format!("{parent}.{name}"), "required", "is required"),
        None if parent.is_empty() => FieldError::new("body", "invalid", plain(message)),
        None => FieldError::new(parent, "invalid", plain(message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Patch, Text};
    use serde::Deserialize;

    #[derive(Debug, Deserialize, ToSchema)]
    #[allow(dead_code)]
    struct Example {
        #[schema(value_type = String)]
        name: Text<1, 5>,
        count: Option<i64>,
        #[serde(default)]
        #[schema(value_type = Option<String>)]
        note: Patch<String>,
    }

    #[derive(Debug, Deserialize, ToSchema)]
    #[allow(dead_code)]
    struct Order {
        name: String,
        count: i64,
        flag: bool,
        #[schema(value_type = Vec<Object>)]
        lines: Vec<Example>,
        note: Option<String>,
    }

    /// Wrong ones in their order, then missing ones; each of them once.
    #[test]
    fn all_that_is_wrong_is_named_at_once() {
        let wrong = |body: &str| {
            let (_, _, bytes) = parse::<Order>(body.as_bytes())
                .unwrap_err()
                .into_parts("req_1");
            let body: Value = serde_json::from_slice(&bytes).unwrap();
            let errors = body["error"]["details"]["errors"].as_array().unwrap();
            let named = errors.iter().map(|error| {
                let text = |member: &str| error[member].as_str().unwrap_or_default();
                format!("{} {}", text("field"), text("code"))
            });
            named.collect::<Vec<_>>()
        };
        assert_eq!(
            wrong("{}"),
            [
                "name required",
                "count required",
                "flag required",
                "lines required"
            ]
        );
        assert_eq!(
            wrong(r#"{"note":1,"count":"1","lines":[{"name":"x"},{"name":""}]}"#),
            [
                "note invalid",
                "count invalid",
                "lines[1].name invalid",
                "name required",
                "flag required"
            ]
        );
        assert_eq!(
            wrong(r#"{"name":"x","count":1,"flag":true,"lines":[{}]}"#),
            ["lines[0].name required"]
        );
    }

    /// As JSON Schema counts; what is none is refused, in words of ours.
    #[test]
    fn an_integer_may_have_a_fraction_of_zeros() {
        for (text, count) in [
            ("100.0", 100),
            ("-7.000", -7),
            ("1e3", 1_000),
            ("12.50E1", 125),
            ("0.0", 0),
            ("9223372036854775807.0", i64::MAX),
        ] {
            let body =
                format!("{{\n \"more\": [1.5, \"é\"],\n\n \"count\": {text},\n \"name\": \"x\"}}");
            let example: Example = parse(body.as_bytes()).unwrap();
            assert_eq!(example.count, Some(count), "{text}");
        }
        for text in ["1.5", "1e-1", "1e19", "9223372036854775808.0", "1e300"] {
            let body = format!("{{\"name\":\"x\",\"count\":{text}}}");
            assert_eq!(refusal(&body).1, "count", "{text}");
        }
        let orders = r#"{"name":"x","count":1.0,"flag":true,"lines":[{"name":"a","count":2.0},{"name":"b","count":30e-1}]}"#;
        let order: Order = parse(orders.as_bytes()).unwrap();
        assert_eq!((order.count, order.lines[1].count), (1, Some(3)));
        // What is refused beside it stays refused, and is the only thing that is named.
        let twice = br#"{"name":"x","count":1.0,"count":2}"#;
        assert!(parse::<Example>(twice).is_err());
        assert_eq!(refusal(r#"{"name":"","count":1.0}"#).1, "name");
        let (_, _, bytes) = parse::<Example>(br#"{"name":1,"count":1.5}"#)
            .unwrap_err()
            .into_parts("req_1");
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("must be a string"), "{text}");
        assert!(text.contains("must be an integer"), "{text}");
        assert!(!text.contains("expected"), "{text}");
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
