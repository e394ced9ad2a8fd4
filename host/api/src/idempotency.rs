//! `Idempotency-Key`: a retried POST gets the first answer and does nothing twice.
//!
//! Operations that are not billed get this from the router ([`once`]). A billed operation asks for its claim itself ([`claim`]), because
//! its answer is kept in the transaction that posts its charge.

use crate::ApiState;
use crate::answer::{Kept, json};
use crate::body;
use crate::caller::Caller;
use crate::finish::Call;
use crate::problem::{FieldError, Problem};
use crate::routes::Mounted;
use axum::body::Body;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};
use souk_domain::time::{DAY, Timestamp};
use souk_store::idempotency::{self as store, Answer, Scope, Ticket};
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

/// Claims the right to execute a billed request until `lapses_at`, if the request carries a key.
pub async fn claim(
    state: &ApiState,
    caller: &Caller,
    parts: &Parts,
    body: &[u8],
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
    let mut write = state.db().write().await?;
    let claim = store::claim(
        &mut write,
        scope,
        &fingerprint(parts, body),
        caller.now(),
        lapses_at,
    )
    .await?;
    write.commit().await?;
    match claim {
        store::Claim::Granted(ticket) => Ok(Attempt::First(ticket)),
        store::Claim::Done(answer) => replay(answer).map(Attempt::Replay),
        store::Claim::InFlight => Err(Problem::conflict(
            "IDEMPOTENCY_IN_PROGRESS",
            "a request with this Idempotency-Key is being executed; retry in a moment",
        )
        .retry_after(1)),
        store::Claim::Reused => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "IDEMPOTENCY_KEY_REUSED",
            "this Idempotency-Key was used for another request; use a new key for every new request",
        )),
    }
}

/// The refusal of an operation that does nothing without a key.
pub(crate) fn missing() -> Problem {
    let error = FieldError::new(
        "Idempotency-Key",
        "required",
        "is required here: send a new one with every new request, and the same one when you repeat it",
    );
    Problem::fields("INVALID_REQUEST", vec![error])
}

/// Gives up a claim after a failure, so that a retry executes anew.
pub async fn release(state: &ApiState, ticket: &Ticket) -> Result<(), Problem> {
    let mut write = state.db().write().await?;
    store::release(&mut write, ticket).await?;
    write.commit().await?;
    Ok(())
}

/// Runs a handler at most once per key. The work goes on to its end when the client hangs up: it will ask again.
pub(crate) async fn once<H, T>(
    handler: H,
    request: Request,
    state: ApiState,
    mounted: &Mounted,
    call: &Call,
) -> Response
where
    H: Handler<T, ApiState>,
    T: 'static,
{
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return handler.call(request, state).await;
    };
    let (parts, bytes) = match body::read(request).await {
        Ok(read) => read,
        Err(problem) => return problem.into_response(),
    };
    let ticket = match claim(&state, &caller, &parts, &bytes, call.now.after(CLAIM)).await {
        Ok(Attempt::First(ticket)) => ticket,
        Ok(Attempt::Replay(response)) => return response,
        Ok(Attempt::Plain) => {
            return handler
                .call(Request::from_parts(parts, Body::from(bytes)), state)
                .await;
        }
        Err(problem) => return problem.into_response(),
    };
    let request = Request::from_parts(parts, Body::from(bytes));
    let work = tokio::spawn(async move {
        let response = handler.call(request, state.clone()).await;
        keep(&state, &ticket, response)
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
    let answer = Answer {
        status: i64::from(parts.status.as_u16()),
        location: parts
            .headers
            .get(header::LOCATION)
            .and_then(|location| location.to_str().ok())
            .map(str::to_owned),
        body: String::from_utf8_lossy(&kept).into_owned(),
    };
    let mut write = state.db().write().await?;
    store::complete(
        &mut write,
        ticket,
        &answer,
        Timestamp::from(SystemTime::now()).after(KEPT),
    )
    .await?;
    write.commit().await?;
    Ok(Response::from_parts(parts, Body::from(bytes)))
}

fn replay(answer: Answer) -> Result<Response, Problem> {
    let status = u16::try_from(answer.status)
        .ok()
        .and_then(|status| StatusCode::from_u16(status).ok())
        .unwrap_or(StatusCode::OK);
    let mut response = match answer.body.is_empty() {
        true => status.into_response(),
        false => json(status, Bytes::from(answer.body)),
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
            Err(Problem::fields("INVALID_REQUEST", vec![error]))
        }
    }
}

/// SHA-256 over method, path, query and raw body.
fn fingerprint(parts: &Parts, body: &[u8]) -> String {
    let mut hash = Sha256::new();
    for part in [
        parts.method.as_str().as_bytes(),
        parts.uri.path().as_bytes(),
        parts.uri.query().unwrap_or_default().as_bytes(),
    ] {
        hash.update(part);
        hash.update([0]);
    }
    hash.update(body);
    hex::encode(hash.finalize())
}
