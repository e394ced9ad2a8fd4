//! What a platform's answer means when it is no success: whose fault, whether it passes by itself, and what of the
//! platform's own words may be kept.

use serde_json::Value;
use souk_sdk::{Error, HttpResponse};

/// Of a platform's own words, so much is kept.
const TEXT_CHARS_MAX: usize = 300;
/// A longer pause than this is not waited for on a platform's word.
const RETRY_AFTER_MAX_MS: u64 = 86_400_000;
/// Addresses of posts; longer ones are not kept.
const URL_BYTES_MAX: usize = 2_000;
/// What a platform calls a post; longer ones are not kept.
const REMOTE_ID_BYTES_MAX: usize = 200;

/// Why a platform did not do what it was asked for. `secrets` were sent: a platform that repeats them is not repeated.
pub fn refusal(response: &HttpResponse, secrets: &[&str]) -> Error {
    let status = response.status;
    let error = match status {
        300..400 => Error::configuration(
            "redirected",
            "the platform redirects, which is not followed: give its final address as base_url",
        ),
        400 | 422 => Error::invalid_request("refused", "the platform refuses this post"),
        401 => Error::authentication(
            "credentials_rejected",
            "the platform refuses the credentials",
        ),
        403 => Error::permission(
            "not_allowed",
            "these credentials may not do that at the platform",
        ),
        404 | 405 | 410 => Error::not_found(
            "not_there",
            "the platform does not answer at this address: check base_url",
        ),
        408 | 425 => Error::timeout("platform_timeout", "the platform did not answer in time"),
        409 => Error::source_failed(
            "changed_meanwhile",
            "somebody else changed the post at the platform at the same time",
        ),
        413 => Error::limit_exceeded("too_large", "the post is too large for the platform"),
        429 => Error::rate_limited(
            "rate_limited",
            "the platform takes no more requests at the moment",
        ),
        500.. => Error::unavailable("platform_failed", "the platform failed"),
        _ => Error::source_failed("bad_answer", "the platform answered what it should not"),
    };
    let error = match words(&response.body, secrets) {
        Some(words) => error.detail(words),
        None => error,
    };
    let error = error.source_code(status.to_string());
    match response.retry_after_ms() {
        Some(ms) if status == 429 || status >= 500 => {
            error.retry_after_ms(ms.min(RETRY_AFTER_MAX_MS))
        }
        _ => error,
    }
}

/// A success whose body is not what the platform's interface says.
pub fn bad_answer(what: &str) -> Error {
    Error::source_failed(
        "bad_answer",
        format!("the platform answered without {what}"),
    )
}

/// An address that people may be sent to.
pub fn url(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>'));
    (is_web && is_plain && text.len() <= URL_BYTES_MAX).then(|| text.to_owned())
}

/// What a platform calls a post, if it is something that can be kept and sent again.
pub fn remote_id(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    (is_plain && (1..=REMOTE_ID_BYTES_MAX).contains(&text.len())).then_some(text)
}

/// The platform's own words, cut, in one line, without what was sent to it in confidence. A page of HTML says nothing to anybody.
fn words(body: &[u8], secrets: &[&str]) -> Option<String> {
    let text = match serde_json::from_slice::<Value>(body) {
        // WordPress; Ghost; others.
        Ok(value) => [
            &value["message"],
            &value["errors"][0]["message"],
            &value["error"],
        ]
        .into_iter()
        .find_map(Value::as_str)?
        .to_owned(),
        Err(_) => std::str::from_utf8(body).ok()?.to_owned(),
    };
    if text.trim().is_empty() || text.trim_start().starts_with('<') {
        return None;
    }
    let mut text = text;
    for secret in secrets.iter().filter(|secret| secret.len() > 3) {
        text = text.replace(secret, "…");
    }
    let line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let kept: String = line.take(TEXT_CHARS_MAX).collect();
    Some(kept.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::{ErrorClass, Header};

    fn response(status: u16, body: &str) -> HttpResponse {
        HttpResponse {
            id: 1,
            status,
            headers: vec![Header {
                name: "Retry-After".into(),
                value: "7".into(),
            }],
            body: body.into(),
        }
    }

    /// The class says whether it passes by itself; a pause is taken over where it means something.
    #[test]
    fn a_status_has_a_class() {
        for (status, class, waits) in [
            (301, ErrorClass::Configuration, false),
            (400, ErrorClass::InvalidRequest, false),
            (401, ErrorClass::Authentication, false),
            (403, ErrorClass::Permission, false),
            (404, ErrorClass::NotFound, false),
            (429, ErrorClass::RateLimited, true),
            (500, ErrorClass::Unavailable, true),
            (503, ErrorClass::Unavailable, true),
            (101, ErrorClass::Source, false),
        ] {
            let error = refusal(&response(status, "{}"), &[]);
            assert_eq!(error.class, class, "{status}");
            assert_eq!(error.retry_after_ms, waits.then_some(7_000), "{status}");
        }
    }

    /// A pause may be a date, which counts from the platform's own clock; the longest is a day.
    #[test]
    fn a_pause_may_be_a_date() {
        for (retry, expected) in [
            ("Sun, 06 Nov 1994 08:49:40 GMT", Some(3_000)),
            ("Tue, 06 Dec 1994 08:49:37 GMT", Some(RETRY_AFTER_MAX_MS)),
            ("999999999999", Some(RETRY_AFTER_MAX_MS)),
            ("soon", None),
        ] {
            let header = |name: &str, value: &str| Header {
                name: name.into(),
                value: value.into(),
            };
            let busy = HttpResponse {
                headers: vec![
                    header("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                    header("retry-after", retry),
                ],
                ..response(503, "{}")
            };
            assert_eq!(refusal(&busy, &[]).retry_after_ms, expected, "{retry}");
        }
    }

    /// A platform's words are kept, but not what was told to it in confidence, and no pages.
    #[test]
    fn words_are_kept_without_secrets() {
        let detail = |body: &str| refusal(&response(403, body), &["hunter2hunter2"]).detail;
        assert_eq!(
            detail(r#"{"message":"no, \"hunter2hunter2\" is wrong\nreally"}"#).unwrap(),
            "no, \"…\" is wrong really"
        );
        assert_eq!(detail(r#"{"errors":[{"message":"bad"}]}"#).unwrap(), "bad");
        assert_eq!(detail("<html>hunter2hunter2</html>"), None);
        assert_eq!(detail(&"x".repeat(10_000)).unwrap().len(), TEXT_CHARS_MAX);
    }

    /// Nobody is sent where a platform should not send anybody.
    #[test]
    fn addresses_are_of_the_web() {
        assert!(url(&"https://example.com/a?b=c".into()).is_some());
        for bad in [
            "javascript:alert(1)",
            "//x",
            "https://a/\"onload=",
            "https://a b",
            "",
        ] {
            assert_eq!(url(&bad.into()), None, "{bad}");
        }
        assert_eq!(remote_id(&7.into()).unwrap(), "7");
        assert_eq!(remote_id(&"a b".into()), None);
    }
}
