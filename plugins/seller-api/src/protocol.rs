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
    Ok(Answer {
        value: value.get().to_owned(),
        timestamp_micros,
    })
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
            (302, "", ErrorClass::Source, "unexpected_status"),
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
        for status in [404, 405] {
            let error = read(status, "<html>").unwrap_err();
            assert!(error.message.contains("base_url"), "{}", error.message);
        }
        let error = read(302, "").unwrap_err();
        assert!(!error.message.contains("base_url"), "{}", error.message);
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
