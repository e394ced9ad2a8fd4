//! Section 4.7 of the interface specification as pure functions: what is posted, and what an answer
//! means. Knows no wire and no session; `lib.rs` moves the bytes.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use souk_sdk::{Error, ErrorClass, HttpFailure, Route, WireFault, http, time};

/// A seller's answer is one insight; more than this is not one.
pub const RESPONSE_BYTES_MAX: u64 = 1 << 20;
/// Nobody waits longer for a seller's API, whatever the request would allow.
pub const TIMEOUT_MS_MAX: u32 = 10_000;
/// Of the seller's own text no more than this is passed on, and only to the owner.
const DETAIL_CHARS_MAX: usize = 200;
/// A function that no seller has: asking for it proves the address, the key and the contract, and
/// runs nothing.
pub const PING_FUNCTION: &str = "souk_ping";
/// Functions named in the answer to a ping.
const FUNCTIONS_LISTED_MAX: usize = 100;

/// The body of a success, 2.7.
#[derive(Debug, PartialEq)]
pub struct Answer {
    /// JSON, byte for byte as the seller wrote it, so that numbers stay exact.
    pub value: String,
    pub timestamp_micros: i64,
}

/// Where to post and what, for either routing.
pub fn post(route: &Route, parameters: &str) -> Result<(String, Vec<u8>), Error> {
    let params: &RawValue = serde_json::from_str(parameters)
        .ok()
        .filter(|raw: &&RawValue| raw.get().starts_with('{'))
        .ok_or_else(|| Error::internal("bad_parameters", "the parameters are not a JSON object"))?;
    match route {
        Route::Function(function_id) => {
            #[derive(Serialize)]
            struct Body<'a> {
                function_id: &'a str,
                params: &'a RawValue,
            }
            let body = serde_json::to_vec(&Body {
                function_id,
                params,
            })
            .map_err(|error| Error::internal("bad_parameters", error.to_string()))?;
            Ok(("/".to_owned(), body))
        }
        Route::Path(path) => {
            // What a host does not send is the seller's mistake here: taken for the connector's it would end the session, and in the end the data connection.
            let sound =
                path.bytes().all(|byte| byte.is_ascii_graphic()) && http::led_to(path).is_ok();
            if !sound {
                let message = "the asset's path must begin with `/`, be percent-encoded, and have no `.` or `..` between its slashes";
                return Err(Error::configuration("bad_path", message));
            }
            Ok((path.clone(), params.get().as_bytes().to_vec()))
        }
    }
}

/// The body without the mark that some servers begin a text of UTF-8 with, which a reader of JSON may pass over (RFC 8259, 8.1).
pub fn unmarked(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

/// A body that is read must come as it is, which was asked for (`Accept-Encoding: identity`). Of other statuses the number says enough. Some servers
/// write there what belongs into `Content-Type` (`utf-8`): what is JSON all the same is read.
pub fn comes_as_it_is(status: u16, encoding: Option<&str>, body: &[u8]) -> Result<(), Error> {
    let is_json = || unmarked(body).trim_ascii_start().starts_with(b"{");
    match (status, encoding.map(str::trim)) {
        (200..=299 | 400, Some(encoding))
            if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") && !is_json() =>
        {
            Err(Error::source_failed(
                "bad_answer",
                "the seller's API answered in a Content-Encoding, though asked for none (Accept-Encoding: identity)",
            )
            .detail(shortened(encoding))
            .source_code(status.to_string()))
        }
        _ => Ok(()),
    }
}

/// Reads the answer to a call: exactly the contract, or whose fault it is that it is not.
pub fn answer(
    asset_id: &str,
    status: u16,
    retry_after_ms: Option<u64>,
    body: &[u8],
) -> Result<Answer, Error> {
    if !(200..=299).contains(&status) {
        return Err(refusal(status, retry_after_ms, body));
    }

    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow, default)]
        timestamp: Option<&'a RawValue>,
        /// Present and `null` is an answer; absent is none.
        #[serde(borrow, default, deserialize_with = "present")]
        answer_value: Option<&'a RawValue>,
        #[serde(borrow, default)]
        asset_id: Option<&'a RawValue>,
    }
    let parsed: Body<'_> = serde_json::from_slice(body).map_err(|_| {
        bad_answer(
            "the seller's API answered with a body that is not the contract's JSON object",
            body,
        )
    })?;

    let echoed = parsed.asset_id.and_then(text);
    if echoed.as_deref() != Some(asset_id) {
        return Err(bad_answer(
            "the seller's API did not echo the header X-Asset-ID as `asset_id`",
            body,
        ));
    }
    let timestamp_micros = parsed
        .timestamp
        .and_then(text)
        .and_then(|moment| time::parse_rfc3339(&moment))
        .ok_or_else(|| {
            bad_answer(
                "the seller's API answered without an ISO 8601 UTC `timestamp`",
                body,
            )
        })?;
    let value = parsed
        .answer_value
        .ok_or_else(|| bad_answer("the seller's API answered without `answer_value`", body))?;
    if has_half_a_character(value.get()) {
        return Err(bad_answer(
            "the seller's API answered with half a character (a lone surrogate, as \\ud83d): a text was cut in its middle",
            body,
        ));
    }
    Ok(Answer {
        value: value.get().to_owned(),
        timestamp_micros,
    })
}

/// Whether half of a pair of UTF-16 stands in a document alone: many readers of JSON refuse all of it then. A backslash stands in texts only.
fn has_half_a_character(document: &str) -> bool {
    let mut rest = document;
    while let Some((_, escape)) = rest.split_once('\\') {
        let length = match unit(escape) {
            None => 1,
            Some(0xd800..=0xdbff) => {
                let second = escape[5..].strip_prefix('\\').and_then(unit);
                if !matches!(second, Some(0xdc00..=0xdfff)) {
                    return true;
                }
                11
            }
            Some(0xdc00..=0xdfff) => return true,
            Some(_) => 5,
        };
        rest = escape.get(length..).unwrap_or_default();
    }
    false
}

/// What an escape stands for that is a number, behind its backslash: `u00e9`.
fn unit(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix('u')?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

/// Reads the answer to a ping, which asked for [`PING_FUNCTION`]: the functions that there are.
pub fn pong(status: u16, retry_after_ms: Option<u64>, body: &[u8]) -> Result<String, Error> {
    match (status, available_functions(body)) {
        (400, Some(functions)) => {
            let listed: Vec<String> = functions
                .iter()
                .take(FUNCTIONS_LISTED_MAX)
                .map(|function| shortened(function))
                .collect();
            Ok(format!("seller API, functions: {}", listed.join(", ")))
        }
        (400 | 200..=299, _) => Err(bad_answer(
            "the seller's API must refuse an unknown function_id with status 400 and `available_functions`",
            body,
        )
        .source_code(status.to_string())),
        _ => Err(refusal(status, retry_after_ms, body)),
    }
}

/// Any status that is no success.
fn refusal(status: u16, retry_after_ms: Option<u64>, body: &[u8]) -> Error {
    let (class, code, message) = match status {
        400 if available_functions(body).is_some() => (
            ErrorClass::Source,
            "unknown_function",
            "the seller's API does not have the function of this asset",
        ),
        400 => (
            ErrorClass::InvalidRequest,
            "parameters_refused",
            "the seller's API refused the parameters",
        ),
        300..=399 => (
            ErrorClass::Configuration,
            "redirected",
            "the seller's API is at another address, and nobody follows there: base_url, and the path of the asset, must name it",
        ),
        401 => (
            ErrorClass::Authentication,
            "api_key_refused",
            "the seller's API refused the connection's API key",
        ),
        403 => (
            ErrorClass::Permission,
            "forbidden",
            "the seller's API does not allow this call with the connection's API key",
        ),
        404 | 405 => (
            ErrorClass::Source,
            "unexpected_status",
            "the seller's API takes no POST at this path: does base_url name the API, and the asset its function or path?",
        ),
        429 => (
            ErrorClass::RateLimited,
            "rate_limited",
            "the seller's API allows no more calls for now",
        ),
        500..=599 => (
            ErrorClass::Source,
            "seller_failed",
            "the seller's API failed",
        ),
        _ => (
            ErrorClass::Source,
            "unexpected_status",
            "the seller's API answered with a status outside the contract",
        ),
    };
    let error = Error::new(class, code, message)
        .detail(said(body))
        .source_code(status.to_string());
    match retry_after_ms {
        Some(ms) => error.retry_after_ms(ms),
        None => error,
    }
}

fn bad_answer(message: &str, body: &[u8]) -> Error {
    Error::source_failed("bad_answer", message).detail(said(body))
}

/// No answer at all. One that is too long, or no HTTP, is a bad answer like any other.
pub fn broken(failure: HttpFailure) -> Error {
    match failure.fault {
        WireFault::BadResponse => Error::source_failed(
            "bad_answer",
            "the seller's API answered with more than 1 MiB or not in HTTP",
        )
        .detail(shortened(&failure.message)),
        WireFault::Tls => Error {
            message: "the seller's API cannot prove over TLS who it is: its seller must mend the certificate or the connection".into(),
            ..Error::from(failure)
        },
        _ => Error::from(failure),
    }
}

/// The seller's `error` text when there is one, else what there is.
fn said(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Refused<'a> {
        #[serde(borrow)]
        error: Cow<'a, str>,
    }
    match serde_json::from_slice::<Refused<'_>>(body) {
        Ok(refused) => shortened(&refused.error),
        // Four bytes are the longest character.
        Err(_) => shortened(&String::from_utf8_lossy(
            &body[..body.len().min(4 * DETAIL_CHARS_MAX)],
        )),
    }
}

/// Control characters have no business in a message that lands in logs and terminals.
fn shortened(text: &str) -> String {
    text.chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .take(DETAIL_CHARS_MAX)
        .collect()
}

fn available_functions(body: &[u8]) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Unknown {
        available_functions: Vec<String>,
    }
    serde_json::from_slice::<Unknown>(body)
        .ok()
        .map(|unknown| unknown.available_functions)
}

fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&'de RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASSET: &str = "ast_1";

    fn read(status: u16, body: &str) -> Result<Answer, Error> {
        answer(ASSET, status, None, body.as_bytes())
    }

    #[test]
    fn function_routing_posts_the_id_and_the_exact_parameters_to_the_root() {
        let route = Route::Function("mean_goals_v2".to_owned());
        let (path, body) = post(&route, r#"{"n":1.000000000000000000001}"#).unwrap();
        assert_eq!(path, "/");
        assert_eq!(
            String::from_utf8(body).unwrap(),
            r#"{"function_id":"mean_goals_v2","params":{"n":1.000000000000000000001}}"#
        );
    }

    #[test]
    fn direct_routing_posts_the_parameters_themselves() {
        let route = Route::Path("/goals/mean?v=2".to_owned());
        let (path, body) = post(&route, r#"{"team":"A"}"#).unwrap();
        assert_eq!(
            (path.as_str(), body.as_slice()),
            ("/goals/mean?v=2", br#"{"team":"A"}"#.as_slice())
        );
    }

    #[test]
    fn a_path_that_is_none_is_the_sellers_to_change() {
        for path in [
            "",
            "goals",
            "/a b",
            "/a\r\nX: y",
            "/a#b",
            "/\u{e9}",
            "/../secret",
            "/a/%2E%2e/b",
            "/.",
            "/a\\b",
            "/a<b>",
        ] {
            let error = post(&Route::Path(path.to_owned()), "{}").unwrap_err();
            assert_eq!(error.class, ErrorClass::Configuration, "{path:?}");
        }
    }

    #[test]
    fn keeps_the_answer_value_as_written() {
        for value in [
            "3",
            "1.10",
            "12345678901234567890.5",
            "\"text\"",
            "null",
            "[1, 2]",
            r#"{"a" :1}"#,
        ] {
            let body = format!(
                r#"{{"timestamp":"2026-01-01T00:00:00Z","answer_value":{value},"asset_id":"ast_1"}}"#
            );
            let answer = read(200, &body).unwrap();
            assert_eq!(answer.value, value);
            assert_eq!(answer.timestamp_micros, 1_767_225_600_000_000);
        }
    }

    #[test]
    fn every_departure_from_the_contract_is_a_bad_answer_of_the_source() {
        let bodies = [
            "",
            "not json",
            "[]",
            r#"{"timestamp":"2026-01-01T00:00:00Z","asset_id":"ast_1"}"#,
            r#"{"timestamp":"2026-01-01T00:00:00Z","answer_value":1}"#,
            r#"{"timestamp":"2026-01-01T00:00:00Z","answer_value":1,"asset_id":"ast_2"}"#,
            r#"{"timestamp":"2026-01-01T00:00:00Z","answer_value":1,"asset_id":1}"#,
            r#"{"timestamp":"yesterday","answer_value":1,"asset_id":"ast_1"}"#,
            r#"{"timestamp":1767225600,"answer_value":1,"asset_id":"ast_1"}"#,
            r#"{"answer_value":1,"asset_id":"ast_1"}"#,
        ];
        for body in bodies {
            let error = read(200, body).unwrap_err();
            assert_eq!(
                (error.class, error.code.as_str()),
                (ErrorClass::Source, "bad_answer"),
                "{body}"
            );
        }
    }

    #[test]
    fn every_status_has_its_class() {
        let unknown =
            r#"{"error":"Invalid function_id","available_functions":["a"],"received":"b"}"#;
        let table = [
            (400, unknown, ErrorClass::Source, "unknown_function"),
            (
                400,
                r#"{"error":"team is missing"}"#,
                ErrorClass::InvalidRequest,
                "parameters_refused",
            ),
            (400, "", ErrorClass::InvalidRequest, "parameters_refused"),
            (
                401,
                r#"{"error":"Invalid API key"}"#,
                ErrorClass::Authentication,
                "api_key_refused",
            ),
            (403, "{}", ErrorClass::Permission, "forbidden"),
            (302, "", ErrorClass::Configuration, "redirected"),
            (308, "", ErrorClass::Configuration, "redirected"),
            (418, "", ErrorClass::Source, "unexpected_status"),
            (404, "", ErrorClass::Source, "unexpected_status"),
            (
                500,
                r#"{"error":"boom"}"#,
                ErrorClass::Source,
                "seller_failed",
            ),
            (503, "<html>", ErrorClass::Source, "seller_failed"),
        ];
        for (status, body, class, code) in table {
            let error = read(status, body).unwrap_err();
            assert_eq!(
                (error.class, error.code.as_str()),
                (class, code),
                "{status} {body}"
            );
            assert_eq!(error.source_code, Some(status.to_string()));
        }
    }

    /// Whose address leads past the API learns which two settings say where it is.
    #[test]
    fn a_path_that_is_none_is_told_as_one() {
        for status in [302, 308, 404, 405] {
            let error = read(status, "<html>").unwrap_err();
            assert!(error.message.contains("base_url"), "{}", error.message);
        }
        let error = read(418, "").unwrap_err();
        assert!(!error.message.contains("base_url"), "{}", error.message);
    }

    /// A mark of UTF-8 is no part of a document.
    #[test]
    fn a_mark_before_the_body_is_passed_over() {
        assert_eq!(unmarked("\u{feff}{}".as_bytes()), b"{}");
        for body in ["", "{}", "{\"a\":\"\u{feff}\"}"] {
            assert_eq!(unmarked(body.as_bytes()), body.as_bytes());
        }
    }

    /// What is compressed is not read, and told as that. A status that says all keeps its class.
    #[test]
    fn what_comes_compressed_is_told_as_that() {
        for status in [200, 400] {
            let error = comes_as_it_is(status, Some("gzip"), b"\x1f\x8b\x08").unwrap_err();
            assert_eq!(
                (error.class, error.code.as_str()),
                (ErrorClass::Source, "bad_answer")
            );
            assert_eq!(error.detail.as_deref(), Some("gzip"));
        }
        for encoding in [None, Some(""), Some("Identity")] {
            assert!(comes_as_it_is(200, encoding, b"").is_ok());
        }
        assert!(comes_as_it_is(401, Some("br"), b"\x0b").is_ok());
        assert!(comes_as_it_is(200, Some("utf-8"), b"\xef\xbb\xbf {}").is_ok());
    }

    /// A text that was cut in the middle of a character is none that every client reads.
    #[test]
    fn half_a_character_is_a_bad_answer() {
        let with = |value: &str| {
            read(
                200,
                &format!(
                    r#"{{"timestamp":"2026-01-01T00:00:00Z","answer_value":{value},"asset_id":"ast_1"}}"#
                ),
            )
        };
        for value in [
            r#""\ud83d""#,
            r#""a\uDE00b""#,
            r#""\ud83d\n\ude00""#,
            r#""\ud83d\ud83d\ude00""#,
            r#"[{"\ud83d": 1}]"#,
            r#""\\\ud83d""#,
        ] {
            let error = with(value).unwrap_err();
            assert_eq!(error.code, "bad_answer", "{value}");
            assert!(error.message.contains("surrogate"), "{value}");
        }
        for value in [
            r#""\ud83d\ude00 \u00e9\\ud83d\"\ud83d\ude00""#,
            r#"["\u0000", "\\", "😀"]"#,
        ] {
            assert_eq!(with(value).unwrap().value, value);
        }
    }

    #[test]
    fn a_rate_limit_says_when_to_come_back() {
        let error = answer(ASSET, 429, Some(7_000), b"").unwrap_err();
        assert_eq!(
            (error.class, error.retry_after_ms),
            (ErrorClass::RateLimited, Some(7000))
        );
    }

    #[test]
    fn seller_text_is_cut_and_stays_out_of_the_message() {
        let body = format!(r#"{{"error":"{}\u0007"}}"#, "é".repeat(500));
        let error = read(500, &body).unwrap_err();
        assert_eq!(error.detail.unwrap().chars().count(), DETAIL_CHARS_MAX);
        assert!(!error.message.contains('é'));
    }

    #[test]
    fn a_ping_wants_the_refusal_that_the_contract_prescribes() {
        let body =
            br#"{"error":"Invalid function_id","available_functions":["mean_goals","top_team"]}"#;
        assert_eq!(
            pong(400, None, body).unwrap(),
            "seller API, functions: mean_goals, top_team"
        );
        assert_eq!(pong(200, None, b"{}").unwrap_err().code, "bad_answer");
        assert_eq!(pong(400, None, b"{}").unwrap_err().code, "bad_answer");
        assert_eq!(
            pong(401, None, b"{}").unwrap_err().class,
            ErrorClass::Authentication
        );
        assert_eq!(pong(502, None, b"{}").unwrap_err().code, "seller_failed");
    }
}
