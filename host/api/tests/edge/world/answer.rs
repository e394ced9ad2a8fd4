//! An answer, as its client looks at it.

use super::now;
use crate::contract::{self, Seen};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    /// Of a router that is not the host's.
    pub async fn of(response: axum::response::Response) -> Answer {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer::read(parts, &bytes)
    }

    /// Held against `openapi.json`.
    pub(super) async fn checked(
        method: &Method,
        path: &str,
        response: axum::response::Response,
    ) -> Answer {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let kind = parts.headers.get("content-type");
        // What a HEAD is answered has no body to hold against anything.
        if *method != Method::HEAD || !parts.status.is_success() {
            contract::check(&Seen {
                method: method.as_str(),
                path,
                status: parts.status.as_u16(),
                content_type: kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default(),
                body: &bytes,
            });
        }
        Answer::read(parts, &bytes)
    }

    fn read(parts: http::response::Parts, bytes: &[u8]) -> Answer {
        let body = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(bytes).unwrap()
        };
        Answer {
            status: parts.status,
            headers: parts.headers,
            body,
        }
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        self
    }

    /// The fields that a refusal names, in its order.
    pub fn fields(&self) -> Vec<&str> {
        let errors = self.at("/error/details/errors").as_array();
        let errors = errors.map(Vec::as_slice).unwrap_or_default().iter();
        errors.filter_map(|error| error["field"].as_str()).collect()
    }

    /// A refusal, with all that every refusal has.
    #[track_caller]
    pub fn expect_error(self, status: u16, code: &str) -> Answer {
        assert_eq!(
            (self.status.as_u16(), self.at("/error/code").as_str()),
            (status, Some(code)),
            "{}",
            self.body
        );
        assert!(self.at("/error/message").is_string(), "{}", self.body);
        assert_eq!(
            self.at("/error/details/request_id"),
            self.header("x-request-id"),
            "{}",
            self.body
        );
        assert_eq!(self.header("content-type"), "application/json");
        self.check_headers();
        self
    }

    /// What every answer carries.
    #[track_caller]
    pub fn check_headers(&self) {
        for name in [
            "x-ratelimit-limit",
            "x-ratelimit-remaining",
            "x-ratelimit-reset",
        ] {
            assert!(
                self.header(name).parse::<u64>().is_ok(),
                "{name}: {:?}",
                self.headers
            );
        }
        assert!(
            self.header("x-request-id").starts_with("req_"),
            "{:?}",
            self.headers
        );
        self.check_quota();
    }

    /// The fields of the draft say what those say that are older than it.
    #[track_caller]
    fn check_quota(&self) {
        let number = |name| self.header(name).parse::<u64>().unwrap();
        let (limit, remaining) = (number("x-ratelimit-limit"), number("x-ratelimit-remaining"));
        let policy = self.header("ratelimit-policy");
        let (name, quota) = policy.split_once(';').unwrap_or_default();
        let window = match name {
            "\"company\"" => 31 * 86_400,
            _ => 3_600,
        };
        assert_eq!(quota, format!("q={limit};w={window}"), "{policy}");
        let state = self.header("ratelimit");
        let begins = format!("{name};r={remaining};t=");
        let left = state.strip_prefix(&begins);
        let left = left.and_then(|left| left.parse::<u64>().ok());
        let left = left.unwrap_or_else(|| panic!("{state} does not begin {begins}"));
        let resets_in = number("x-ratelimit-reset").saturating_sub(now().seconds() as u64);
        // Some seconds may have gone by since.
        assert!(
            left <= window && left.abs_diff(resets_in) <= 60,
            "{state}, and the window ends in {resets_in} s"
        );
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    pub fn at(&self, pointer: &str) -> &Value {
        self.body.pointer(pointer).unwrap_or(&Value::Null)
    }

    #[track_caller]
    pub fn text(&self, pointer: &str) -> String {
        self.at(pointer)
            .as_str()
            .unwrap_or_else(|| panic!("no {pointer} in {}", self.body))
            .to_owned()
    }

    /// The first wrong field that the answer names.
    pub fn field(&self) -> &str {
        self.at("/error/details/errors/0/field")
            .as_str()
            .unwrap_or_default()
    }
}
