//! Reading bodies: whole, bounded, at a company's pace; and taking what a client still sends that nobody wants.

use crate::caller::Caller;
use crate::operation::BODY_BYTES_MAX;
use crate::pace::Pace;
use crate::problem::Problem;
use crate::refusals;
use crate::state::ApiState;
use axum::extract::Request;
use bytes::Bytes;
use http::header;
use http::request::Parts;
use http_body::Body as _;
use http_body_util::BodyExt;
use std::time::Duration;

/// An upload that is read whole after all, because it carries an `Idempotency-Key`: the largest connector.
const BUFFERED_BYTES_MAX: u64 = 64 << 20;
/// What a client may still send: several times the largest JSON body.
const DISCARDED_BYTES_MAX: usize = 8 << 20;
const DISCARD_FOR: Duration = Duration::from_secs(1);

/// More than this at once is paced: statements, descriptions and parameters of people are smaller.
const ORDINARY_BYTES: usize = 16 << 10;

/// Reads a whole body, bounded by its operation.
pub(crate) async fn read(
    parts: &Parts,
    mut body: axum::body::Body,
    state: &ApiState,
) -> Result<Bytes, Problem> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let caller = parts.extensions.get::<Caller>();
    let pace = || Pace::of(state, caller.map(Caller::payer));
    let limit = match caller {
        Some(caller) => caller
            .operation()
            .description
            .body_bytes_max
            .unwrap_or(BUFFERED_BYTES_MAX),
        None => BODY_BYTES_MAX,
    };
    let expected = body.size_hint().lower().min(limit) as usize;
    let mut first = Bytes::new();
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Problem::of(
                refusals::INVALID_REQUEST,
                format!("the body ended early: {error}"),
            )
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if (first.len() + whole.len() + data.len()) as u64 > limit {
            discard(body, &pace()).await;
            return Err(Problem::too_large(limit));
        }
        if data.len() > ORDINARY_BYTES {
            pace().keep(data.len()).await;
        }
        // Nearly every body is one frame, which is then not copied.
        if first.is_empty() && whole.is_empty() {
            first = data;
            continue;
        }
        if whole.is_empty() {
            // What was promised is touched only as it comes.
            whole.reserve_exact(expected);
            whole.extend_from_slice(&std::mem::take(&mut first));
        }
        whole.extend_from_slice(&data);
    }
    let whole = match whole.is_empty() {
        true => first,
        false => Bytes::from(whole),
    };
    Ok(whole)
}

/// [`discard`] for a request that was refused before its body was looked at. A client that asked whether to send it does not.
pub(crate) async fn discard_of(request: Request, pace: &Pace) {
    if !request.body().is_end_stream() && !request.headers().contains_key(header::EXPECT) {
        discard(request.into_body(), pace).await;
    }
}

/// Takes what a client is still sending that nobody wants, for a moment: closing at once would reset the connection before it has read why.
pub(crate) async fn discard(mut body: axum::body::Body, pace: &Pace) {
    let take = async {
        let mut taken = 0;
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.into_data().map_or(0, |data| data.len());
            pace.keep(bytes).await;
            taken += bytes;
            if taken > DISCARDED_BYTES_MAX {
                return;
            }
        }
    };
    // A client that sends nothing more just waits for its answer.
    tokio::time::timeout(DISCARD_FOR, take).await.ok();
}
