//! `Idempotency-Key`: a retried POST gets the first answer and does nothing twice.
//!
//! Operations that are not billed get this from the router ([`once`]). A billed operation asks for its claim itself ([`claim`]), because
//! its answer is kept in the transaction that posts its charge. An operation that moves money keeps its answer in the transaction that moves
//! it ([`Once::keep`]): a host that dies has done both, or neither.

use crate::ApiState;
use crate::answer::{Kept, ToKeep, json};
use crate::body;
use crate::caller::Caller;
use crate::describe::{Argument, Describe, Description, Incoming};
use crate::finish::Call;
use crate::problem::{FieldError, Problem};
use crate::refusals;
use crate::routes::Mounted;
use crate::state::SWEEP_EVERY;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};
use souk_domain::time::{DAY, Timestamp};
use souk_store::Write;
use souk_store::idempotency::{self as store, Answer, Scope, Ticket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

pub const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const KEY_CHARS_MAX: usize = 255;
/// How long an answer is kept.
pub const KEPT: Duration = DAY;
/// How long a claim of an operation that runs no connector holds without an answer: none takes nearly that long.
const CLAIM: Duration = Duration::from_secs(60);

/// What a request with an `Idempotency-Key` is.
pub enum Attempt {
    /// It carries no key.
    Plain,
    /// Execute it, then complete or release the ticket.
    First(Ticket),
    /// It was executed before: this is its answer.
    Replay(Response),
}

/// The claim that a request came with, if it carries a key, for a handler that keeps its answer itself.
#[derive(Clone, Default)]
pub struct Once(Option<Arc<Claimed>>);

struct Claimed {
    ticket: Ticket,
    /// The handler has kept its answer.
    is_kept: AtomicBool,
}

impl Once {
    pub fn ticket(&self) -> Option<&Ticket> {
        self.0.as_ref().map(|claimed| &claimed.ticket)
    }

    /// Keeps an answer in the transaction of what it answers, as its last statement.
    pub(crate) async fn keep(
        &self,
        write: &mut Write,
        answer: &impl ToKeep,
    ) -> Result<(), Problem> {
        let Some(ticket) = self.ticket() else {
            return Ok(());
        };
        if !store::complete(write, ticket, &answer.to_keep()?, kept_until()).await? {
            return Err(in_progress());
        }
        self.note_kept();
        Ok(())
    }

    /// The answer was kept. If that is not committed, the request fails, and its claim is given up.
    pub(crate) fn note_kept(&self) {
        if let Some(claimed) = &self.0 {
            claimed.is_kept.store(true, Ordering::Relaxed);
        }
    }
}

impl Describe for Once {
    fn describe(_: &mut Description) {}
}

impl Argument for Once {
    async fn take(incoming: &mut Incoming) -> Result<Once, Problem> {
        let once = incoming.parts.extensions.get::<Once>().cloned();
        Ok(once.unwrap_or_default())
    }
}

/// Until when an answer that is given now is kept.
pub(crate) fn kept_until() -> Timestamp {
    Timestamp::from(SystemTime::now()).after(KEPT)
}

/// Claims the right to execute a billed request until `lapses_at`, if the request carries a key. `product`: what it runs, which its path
/// alone does not say.
pub async fn claim(
    state: &ApiState,
    caller: &Caller,
    parts: &Parts,
    body: &[u8],
    product: Option<&str>,
    lapses_at: Timestamp,
) -> Result<Attempt, Problem> {
    let Some(key) = key(&parts.headers)? else {
        return Ok(Attempt::Plain);
    };
    let scope = Scope {
        company: caller.payer().clone(),
        route: caller.operation().operation.path,
        key,
    };
    let bytes_max = state.settings().kept_answer_bytes_max;
    let fingerprint = fingerprint(parts, body, product);
    state
        .db()
        .write(async |write| {
            let now = caller.now();
            match store::claim(write, scope, &fingerprint, now, lapses_at, bytes_max).await? {
                store::Claim::Full => Err(full(bytes_max)),
                store::Claim::Granted(ticket) => Ok(Attempt::First(ticket)),
                store::Claim::Done(answer) => replay(answer).map(Attempt::Replay),
                store::Claim::InFlight => Err(in_progress()),
                store::Claim::Reused => Err(reused()),
            }
        })
        .await
}

fn in_progress() -> Problem {
    Problem::of(
        refusals::IDEMPOTENCY_IN_PROGRESS,
        "a request with this Idempotency-Key is being executed; retry in a moment",
    )
    .retry_after(1)
}

pub(crate) fn reused() -> Problem {
    Problem::of(
        refusals::IDEMPOTENCY_KEY_REUSED,
        "this Idempotency-Key was used for another request; use a new key for every new request",
    )
}

/// Nothing was executed: an answer that cannot be kept could not protect its request.
fn full(bytes_max: i64) -> Problem {
    let seconds = SWEEP_EVERY.as_secs();
    Problem::of(
        refusals::IDEMPOTENCY_LIMIT_EXCEEDED,
        "the answers kept for your company's Idempotency-Keys take all the room they may; they are kept for 24 hours: send fewer requests \
         with a key, or try again later",
    )
    .detail("limit_bytes", bytes_max)
    .detail("retry_after", seconds)
    .retry_after(seconds)
}

fn too_large(answer: Answer) -> Problem {
    let execution = answer.execution.map(|execution| execution.to_string());
    Problem::of(
        refusals::IDEMPOTENCY_ANSWER_TOO_LARGE,
        "the request with this Idempotency-Key was executed, once, and its answer was too large to be kept; send a new key to execute it anew",
    )
    .detail("execution_id", execution)
    .detail("location", answer.location)
    .detail("answer_bytes_max", store::ANSWER_BYTES_MAX)
}

/// The refusal of an operation that does nothing without a key.
pub(crate) fn missing() -> Problem {
    let error = FieldError::new(
        "Idempotency-Key",
        "required",
        "is required here: send a new one with every new request, and the same one when you repeat it",
    );
    Problem::fields(refusals::INVALID_REQUEST, vec![error])
}

/// Gives up a claim after a failure, so that a retry executes anew.
pub async fn release(state: &ApiState, ticket: &Ticket) -> Result<(), Problem> {
    state
        .db()
        .write(async |write| {
            store::release(write, ticket).await?;
            Ok(())
        })
        .await
}

/// Runs a handler at most once per key. The work goes on to its end when the client hangs up: it will ask again.
pub(crate) async fn once(
    mounted: &Arc<Mounted>,
    request: Request,
    state: ApiState,
    call: &Call,
) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return (mounted.handler)(request, state).await;
    };
    let (parts, body) = request.into_parts();
    let bytes = match body::read(&parts, body, &state).await {
        Ok(bytes) => bytes,
        Err(problem) => return problem.into_response(),
    };
    let lapses_at = call.now.after(CLAIM);
    let ticket = match claim(&state, &caller, &parts, &bytes, None, lapses_at).await {
        Ok(Attempt::First(ticket)) => ticket,
        Ok(Attempt::Replay(response)) => return response,
        Ok(Attempt::Plain) => {
            let request = Request::from_parts(parts, Body::from(bytes));
            return (mounted.handler)(request, state).await;
        }
        Err(problem) => return problem.into_response(),
    };
    let claimed = Arc::new(Claimed {
        ticket,
        is_kept: AtomicBool::new(false),
    });
    let mut request = Request::from_parts(parts, Body::from(bytes));
    request.extensions_mut().insert(Once(Some(claimed.clone())));
    let work = (mounted.handler)(request, state.clone());
    let work = tokio::spawn(async move {
        let response = work.await;
        if claimed.is_kept.load(Ordering::Relaxed) && response.status().is_success() {
            return response;
        }
        keep(&state, &claimed.ticket, response)
            .await
            .unwrap_or_else(IntoResponse::into_response)
    });
    work.await.unwrap_or_else(|error| {
        Problem::internal(format!("{}: {error}", mounted.operation.id)).into_response()
    })
}

/// Keeps what was executed, and lets go of what failed.
async fn keep(state: &ApiState, ticket: &Ticket, response: Response) -> Result<Response, Problem> {
    if !response.status().is_success() {
        release(state, ticket).await?;
        return Ok(response);
    }
    let (mut parts, body) = response.into_parts();
    let bytes = body.collect().await.map_err(Problem::internal)?.to_bytes();
    let kept = parts
        .extensions
        .remove::<Kept>()
        .map_or_else(|| bytes.clone(), |kept| kept.0);
    let location = parts
        .headers
        .get(header::LOCATION)
        .and_then(|location| location.to_str().ok())
        .map(str::to_owned);
    let answer = Answer::of(parts.status.as_u16(), location, &kept, None);
    state
        .db()
        .write(async |write| {
            store::complete(write, ticket, &answer, kept_until()).await?;
            Ok(Response::from_parts(parts, Body::from(bytes)))
        })
        .await
}

fn replay(answer: Answer) -> Result<Response, Problem> {
    let Some(body) = answer.body.clone() else {
        return Err(too_large(answer));
    };
    let status = u16::try_from(answer.status)
        .ok()
        .and_then(|status| StatusCode::from_u16(status).ok())
        .unwrap_or(StatusCode::OK);
    let mut response = match body.is_empty() {
        true => status.into_response(),
        false => json(status, Bytes::from(body)),
    };
    response
        .headers_mut()
        .insert(REPLAYED, HeaderValue::from_static("true"));
    if let Some(location) = answer.location {
        response.headers_mut().insert(
            header::LOCATION,
            HeaderValue::from_str(&location).map_err(Problem::internal)?,
        );
    }
    Ok(response)
}

fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(HEADER) else {
        return Ok(None);
    };
    let is_valid = (1..=KEY_CHARS_MAX).contains(&value.len())
        && value.as_bytes().iter().all(u8::is_ascii_graphic);
    match value.to_str() {
        Ok(text) if is_valid && headers.get_all(HEADER).iter().count() == 1 => {
            Ok(Some(text.to_owned()))
        }
        _ => {
            let error = FieldError::new(
                "Idempotency-Key",
                "invalid",
                format!("must be one value of 1 to {KEY_CHARS_MAX} visible ASCII characters"),
            );
            Err(Problem::fields(refusals::INVALID_REQUEST, vec![error]))
        }
    }
}

/// SHA-256 over method, path, query and raw body, and the product: on the data route host and key decide which one a path means.
fn fingerprint(parts: &Parts, body: &[u8], product: Option<&str>) -> String {
    let mut hash = Sha256::new();
    for part in [
        parts.method.as_str().as_bytes(),
        parts.uri.path().as_bytes(),
        parts.uri.query().unwrap_or_default().as_bytes(),
    ] {
        hash.update(part);
        hash.update([0]);
    }
    if let Some(product) = product {
        hash.update(product);
        hash.update([0]);
    }
    hash.update(body);
    hex::encode(hash.finalize())
}
