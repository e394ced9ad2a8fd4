//! Everything that a request can be refused with, and the one mapping to status codes.
//!
//! A [`Problem`] knows status, code, message and details; the request id and the rate-limit numbers are added when the answer
//! leaves ([`crate::finish`]). Public text says what to do next; what happened inside goes to the log.

use crate::refusals::{self, Refusal};
use crate::uploads::Full;
use axum::response::{IntoResponse, Response};
use http::header::{HeaderName, HeaderValue};
use http::{StatusCode, header};
use serde_json::{Map, Value, json};
pub use souk_domain::fields::FieldError;
use souk_domain::fields::FieldErrors;
use souk_domain::time::Timestamp;
use souk_store::StoreError;
use souk_store::keys::ENDPOINT_ARCHIVED;
use std::borrow::Cow;

/// A refusal in the shape of the error envelope: `{"error": {"code", "message", "details"}}`.
#[derive(Clone, Debug)]
pub struct Problem(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    status: StatusCode,
    code: Cow<'static, str>,
    message: Cow<'static, str>,
    details: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// What happened inside: for the log.
    cause: Option<Cow<'static, str>>,
    /// It is the store that fails, and with it every request that needs it.
    is_stores: bool,
}

/// Where whoever calls with a deactivated key gets another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextKey {
    /// By creating one.
    Created,
    /// The key came with a purchase of its company, and so does the next one.
    Bought,
    /// The key was rotated, which has made another one.
    Replaced,
    /// The endpoint was archived by its seller.
    Nowhere,
}

impl NextKey {
    fn told(self) -> Cow<'static, str> {
        match self {
            NextKey::Created => refusals::API_KEY_DEACTIVATED.message.into(),
            NextKey::Bought => {
                "this endpoint key has been deactivated; accept the terms of its product again (POST …/purchases) and your company gets a new one".into()
            }
            NextKey::Replaced => {
                "this endpoint key was replaced, and its purchase (GET …/purchases) shows which one reads the endpoint now: ask whoever rotated it".into()
            }
            NextKey::Nowhere => format!(
                "this endpoint key has been deactivated: {ENDPOINT_ARCHIVED}, and no other key reads it; look for another product (GET /marketplace/products)"
            )
            .into(),
        }
    }
}

/// What two checks of a request have read, or all that they find wrong with its fields.
pub fn both<A, B>(one: Result<A, Problem>, other: Result<B, Problem>) -> Result<(A, B), Problem> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(one), Err(other)) => Err(one.and(other)),
        (Err(problem), Ok(_)) | (Ok(_), Err(problem)) => Err(problem),
    }
}

pub fn mismatch(field: &str) -> FieldError {
    let message = format!("must equal the `{field}` of the path, or be left out");
    FieldError::new(field, "mismatch", message)
}

fn several(fields: usize) -> String {
    format!("{fields} fields are not valid; see details.errors")
}

impl Problem {
    /// As the catalogue has it.
    pub fn of(refusal: Refusal, message: impl Into<Cow<'static, str>>) -> Problem {
        let status = StatusCode::from_u16(refusal.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Problem::new(status, refusal.code, message)
    }

    pub(crate) fn new(
        status: StatusCode,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Problem {
        let code = code.into();
        debug_assert!(
            refusals::is_known(status.as_u16(), &code),
            "{status} {code} is not in the catalogue of refusals"
        );
        Problem(Box::new(Inner {
            status,
            code,
            message: message.into(),
            details: Map::new(),
            headers: Vec::new(),
            cause: None,
            is_stores: false,
        }))
    }

    /// Adds a member to `details`.
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Problem {
        self.0.details.insert(name.to_owned(), value.into());
        self
    }

    /// With words of its own.
    pub fn worded(mut self, message: impl Into<Cow<'static, str>>) -> Problem {
        self.0.message = message.into();
        self
    }

    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Problem {
        self.0.headers.push((name, value));
        self
    }

    /// What happened inside, for the line that the log has of this call.
    pub fn caused_by(mut self, cause: impl Into<Cow<'static, str>>) -> Problem {
        self.0.cause = Some(cause.into());
        self
    }

    pub(crate) fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }

    pub(crate) fn is_stores(&self) -> bool {
        self.0.is_stores
    }

    /// Such as whose fault it was.
    pub(crate) fn member(&self, name: &str) -> Option<&str> {
        self.0.details.get(name)?.as_str()
    }

    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn code(&self) -> &str {
        &self.0.code
    }

    // 400

    /// A body that breaks a rule of one field.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem::fields(
            refusals::VALIDATION_ERROR,
            vec![FieldError::new(field, "invalid", message)],
        )
    }

    /// A query parameter, or a parameter of an asset, that cannot be used.
    pub fn parameter(name: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem::fields(
            refusals::INVALID_PARAMETER,
            vec![FieldError::new(name, "invalid", message)],
        )
    }

    /// Several fields at once, under the code of the whole.
    pub fn fields(refusal: Refusal, errors: Vec<FieldError>) -> Problem {
        let message = match errors.as_slice() {
            [one] => format!("{}: {}", one.field, one.message),
            many => several(many.len()),
        };
        let errors = serde_json::to_value(errors).unwrap_or_default();
        Problem::of(refusal, message).detail("errors", errors)
    }

    /// Both, if they are about fields under one code; else the first.
    pub fn and(mut self, mut other: Problem) -> Problem {
        if self.code() != other.code() {
            return self;
        }
        if let Some(Value::Array(errors)) = self.0.details.get_mut("errors")
            && let Some(Value::Array(more)) = other.0.details.remove("errors")
        {
            errors.extend(more);
            self.0.message = several(errors.len()).into();
        }
        self
    }

    /// With what `find` adds to the fields of a body that are named already, if it is such a refusal.
    pub(crate) fn completed(self, find: impl FnOnce(&mut FieldErrors)) -> Problem {
        if self.code() != refusals::VALIDATION_ERROR.code {
            return self;
        }
        let named = self.0.details.get("errors").and_then(Value::as_array);
        let mut errors = FieldErrors::default();
        for name in named.into_iter().flatten() {
            errors.add(name["field"].as_str().unwrap_or_default(), "invalid", "");
        }
        let known = errors.names().count();
        find(&mut errors);
        let found = errors.into_vec().split_off(known);
        match found.is_empty() {
            true => self,
            false => self.and(Problem::fields(refusals::VALIDATION_ERROR, found)),
        }
    }

    // 401, 410

    pub fn missing_key() -> Problem {
        Problem::unauthenticated(
            refusals::MISSING_API_KEY,
            "send your API key in the header x-api-key",
        )
    }

    /// A key that is malformed or unknown (both null) or expired.
    pub fn invalid_key(
        message: &'static str,
        key_id: Option<&str>,
        expires_at: Option<String>,
    ) -> Problem {
        Problem::unauthenticated(refusals::INVALID_API_KEY, message)
            .detail("key_id", key_id)
            .detail("expires_at", expires_at)
    }

    fn unauthenticated(refusal: Refusal, message: impl Into<Cow<'static, str>>) -> Problem {
        const CHALLENGE: HeaderValue =
            HeaderValue::from_static(r#"ApiKey realm="api", header="x-api-key""#);
        Problem::of(refusal, message).header(header::WWW_AUTHENTICATE, CHALLENGE)
    }

    /// What was shown does not prove who shows it.
    pub fn sign_in_refused(message: String) -> Problem {
        Problem::unauthenticated(refusals::SIGN_IN_REFUSED, message)
    }

    /// A session that is unknown, ended, idle for too long or over. The browser forgets its cookie.
    pub fn session_expired() -> Problem {
        Problem::unauthenticated(
            refusals::SESSION_EXPIRED,
            "this session is over; sign in again",
        )
        .header(header::SET_COOKIE, crate::cookies::FORGET)
    }

    pub fn deactivated_key(
        key_id: &str,
        deactivated_at: Option<Timestamp>,
        next: NextKey,
    ) -> Problem {
        let problem = Problem::of(refusals::API_KEY_DEACTIVATED, next.told())
            .detail("key_id", key_id)
            .detail("deactivated_at", deactivated_at.map(|at| at.to_string()));
        match next {
            NextKey::Created | NextKey::Bought | NextKey::Replaced => problem,
            NextKey::Nowhere => problem.detail("reason", ENDPOINT_ARCHIVED),
        }
    }

    // 402

    pub fn insufficient_credits(required: i64, balance: i64, held: i64) -> Problem {
        Problem::of(
            refusals::INSUFFICIENT_CREDITS,
            refusals::INSUFFICIENT_CREDITS.message,
        )
        .detail("required_credits", required)
        .detail("balance_credits", balance)
        .detail("held_credits", held)
    }

    // 404, 409

    /// `resource` is a word such as `asset`; the code is `ASSET_NOT_FOUND`.
    pub fn not_found(resource: &str, id: &str) -> Problem {
        let code = format!(
            "{}_NOT_FOUND",
            resource.replace([' ', '-'], "_").to_ascii_uppercase()
        );
        Problem::new(
            StatusCode::NOT_FOUND,
            code,
            format!("there is no {resource} {id:?} that this key can see"),
        )
        .detail("id", id)
    }

    /// The resource exists but its state does not allow this.
    pub fn state(status: &str, message: impl Into<Cow<'static, str>>) -> Problem {
        Problem::of(refusals::INVALID_STATE, message).detail("status", status)
    }

    // 413, 415

    pub fn too_large(limit: u64) -> Problem {
        Problem::of(
            refusals::PAYLOAD_TOO_LARGE,
            format!("the body is larger than {limit} bytes"),
        )
        .detail("limit_bytes", limit)
    }

    pub fn unsupported_media_type(expected: &str) -> Problem {
        Problem::of(
            refusals::UNSUPPORTED_MEDIA_TYPE,
            format!("send the body with Content-Type: {expected}"),
        )
    }

    // 429

    /// Too many calls at once. Consumes nothing of the hourly limits.
    pub fn busy(retry_after_seconds: u64) -> Problem {
        Problem::of(
            refusals::CONCURRENCY_LIMIT_EXCEEDED,
            "too many calls are in flight; try again shortly",
        )
        .retry_after(retry_after_seconds)
        .detail("retry_after", retry_after_seconds)
    }

    /// A key has spent what it has an hour while its company has very many calls in flight. It has more once some of them have ended.
    pub(crate) fn loaded(limit: u32) -> Problem {
        let message = format!(
            "your company has very many calls in flight, and while it has, this key sends no more than {limit} requests an hour that run a connector; \
             try again when some of them have ended"
        );
        Problem::of(refusals::CONCURRENCY_LIMIT_EXCEEDED, message)
            .retry_after(1)
            .detail("retry_after", 1)
    }

    /// The company's clients do not read what they asked for.
    pub(crate) fn unread(bytes: u64, bytes_max: u64) -> Problem {
        let message = format!(
            "{bytes} bytes of answers wait for this company's clients to read them, more than {bytes_max}; read them, or close those connections"
        );
        Problem::of(refusals::TOO_MANY_UNREAD_ANSWERS, message)
            .retry_after(1)
            .detail("unread_bytes", bytes)
            .detail("unread_bytes_max", bytes_max)
    }

    /// No place for an upload: the company's own others take it (429), or everybody's (503).
    pub(crate) fn no_place(full: Full) -> Problem {
        let (status, bytes_max, message) = match full {
            Full::Company { bytes_max } => (
                StatusCode::TOO_MANY_REQUESTS,
                bytes_max,
                "other uploads of this company are under way; send this one when one of them has ended",
            ),
            Full::Host { bytes_max } => (
                StatusCode::SERVICE_UNAVAILABLE,
                bytes_max,
                "this host is busy with the uploads of others; try again shortly",
            ),
        };
        Problem::new(status, "TOO_MANY_UPLOADS", message)
            .retry_after(1)
            .detail("upload_bytes_max", bytes_max)
    }

    /// A client connection that was refused: its own address has too many of them (429), or everybody together (503).
    fn no_connection(status: StatusCode) -> Problem {
        let message = match status {
            StatusCode::TOO_MANY_REQUESTS => {
                "this address has too many connections open; use those, or close some"
            }
            _ => "this host has no room for another connection; try again shortly",
        };
        Problem::new(status, "TOO_MANY_CONNECTIONS", message).retry_after(1)
    }

    pub fn retry_after(self, seconds: u64) -> Problem {
        self.header(header::RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// Whether the call was refused for want of room rather than spent.
    pub(crate) fn consumes_nothing(&self) -> bool {
        self.0.code == refusals::CONCURRENCY_LIMIT_EXCEEDED.code
    }

    // 500, 503

    /// Our own failure: the cause goes to the log, not to the caller.
    pub fn internal(cause: impl std::fmt::Display) -> Problem {
        tracing::error!(%cause, "request failed");
        Problem::of(
            refusals::INTERNAL_ERROR,
            "the request failed on our side; try again, and report the request id if it persists",
        )
    }

    pub fn unavailable(message: &'static str) -> Problem {
        Problem::of(refusals::SERVICE_UNAVAILABLE, message).retry_after(1)
    }

    /// What could not be written: a disk that is full has room again when somebody has made it.
    pub fn of_disk(error: &std::io::Error) -> Problem {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded => Problem::full_disk(error),
            _ => Problem::internal(error),
        }
    }

    pub fn full_disk(cause: impl std::fmt::Display) -> Problem {
        Problem::unavailable("the disk of this service is full; try again later")
            .caused_by(cause.to_string())
    }

    /// The envelope, with the request id in its details.
    pub(crate) fn into_parts(
        self,
        request_id: &str,
    ) -> (StatusCode, Vec<(HeaderName, HeaderValue)>, Vec<u8>) {
        let Inner {
            status,
            code,
            message,
            mut details,
            headers,
            ..
        } = *self.0;
        details.insert("request_id".to_owned(), request_id.into());
        let body = json!({"error": {"code": code, "message": message, "details": details}});
        (status, headers, body.to_string().into_bytes())
    }

    /// Stands in for an answer that some library made: same status, our envelope.
    pub(crate) fn for_status(status: StatusCode) -> Problem {
        match status {
            StatusCode::NOT_FOUND => Problem::new(
                status,
                "ROUTE_NOT_FOUND",
                "there is no such route; see /openapi.json",
            ),
            StatusCode::PAYLOAD_TOO_LARGE => Problem::too_large(crate::operation::BODY_BYTES_MAX),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                Problem::unsupported_media_type("application/json")
            }
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Problem::new(
                status,
                "HEADERS_TOO_LARGE",
                "the request line and headers are too large; send at most 100 headers of 32 KiB together",
            ),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Problem::no_connection(status)
            }
            status if status.is_client_error() => {
                Problem::new(status, "INVALID_REQUEST", "the request cannot be read")
            }
            status => Problem::internal(format!("a library answered {status}")),
        }
    }
}

/// The body is written when the answer leaves, because only then its request id is known.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.0.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        match error {
            StoreError::Busy | StoreError::Unavailable(_) => {
                let mut problem = Problem::unavailable("the store is not available; try again")
                    .caused_by(error.to_string());
                problem.0.is_stores = true;
                problem
            }
            error => Problem::internal(error),
        }
    }
}
