//! Reading bodies: whole, bounded, at a company's pace.

use crate::caller::Caller;
use crate::operation::BODY_BYTES_MAX;
use crate::pace::{PIECE_BYTES, Pace};
use crate::problem::Problem;
use crate::refusals;
use crate::standing::after_body;
use crate::state::ApiState;
use crate::unwanted::discard;
use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;
use tokio::time::Instant;

/// An upload that is read whole after all, because it carries an `Idempotency-Key`: the largest connector.
const BUFFERED_BYTES_MAX: u64 = 64 << 20;

/// More than this at once is paced, and more in all needs room: statements, descriptions and parameters of people are smaller.
const ORDINARY_BYTES: usize = 16 << 10;

/// How long a body that needs room may take without a key, once it has that: all have the same room, and a payment provider, whose events are
/// the only such ones that are ever long, sends them at once.
const NOBODYS_WITHIN: Duration = Duration::from_secs(10);

const TOO_MANY: &str = "too many large bodies are on their way at once; send fewer, or faster, and try again in a moment";

/// Reads a whole body, bounded by its operation. Where it was waited for, its caller is looked at again: who sends it slowly may have lost meanwhile
/// what they began with.
pub(crate) async fn read(parts: &Parts, body: Body, state: &ApiState) -> Result<Bytes, Problem> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let mut has_waited = false;
    let mut work = pin!(whole(parts, body, state));
    let bytes = poll_fn(|context| {
        let done = work.as_mut().poll(context);
        has_waited |= done.is_pending();
        done
    })
    .await?;
    if has_waited && let Some(caller) = parts.extensions.get::<Caller>() {
        Box::pin(after_body(state, &parts.headers, caller)).await?;
    }
    Ok(bytes)
}

async fn whole(parts: &Parts, mut body: Body, state: &ApiState) -> Result<Bytes, Problem> {
    let caller = parts.extensions.get::<Caller>();
    let pace = || Pace::of(state, caller.map(Caller::payer));
    let tally = caller.map_or_else(|| state.nobody(), Caller::unread);
    let bytes_max = match caller {
        Some(caller) => caller.operation().description.body_bytes_max,
        None => Some(BODY_BYTES_MAX),
    };
    let limit = bytes_max.unwrap_or(BUFFERED_BYTES_MAX);
    let expected = body.size_hint().lower().min(limit) as usize;
    let at_most = body.size_hint().upper().unwrap_or(limit).min(limit);
    // An upload has its place already.
    let mut needs_room = bytes_max.is_some();
    let mut room = None;
    let mut until = None;
    let mut first = Bytes::new();
    let mut whole = Vec::new();
    // As many small pieces take as long as a large one.
    let mut unpaced = 0;
    // What says itself that it has ended is not asked for its end, which may come a moment later.
    while !body.is_end_stream()
        && let Some(frame) = next(&mut body, until).await?
    {
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let bytes = first.len() + whole.len() + data.len();
        if bytes as u64 > limit {
            discard(body, &pace()).await;
            return Err(Problem::too_large(limit));
        }
        unpaced += data.len().max(PIECE_BYTES);
        if unpaced > ORDINARY_BYTES {
            pace().keep(std::mem::take(&mut unpaced)).await;
        }
        if needs_room && bytes > ORDINARY_BYTES && !body.is_end_stream() {
            needs_room = false;
            room = tally.arriving().room(at_most).await;
            if room.is_none() {
                discard(body, &pace()).await;
                return Err(Problem::unavailable(TOO_MANY));
            }
            until = caller.is_none().then(|| Instant::now() + NOBODYS_WITHIN);
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
    Ok(match (whole.is_empty(), room) {
        (true, _) => first,
        (false, Some(room)) => room.keep(whole),
        (false, None) => Bytes::from(whole),
    })
}

/// The next of a body, which comes in time. `None`: it is whole.
async fn next(body: &mut Body, until: Option<Instant>) -> Result<Option<Frame<Bytes>>, Problem> {
    let frame = match until {
        None => body.frame().await,
        Some(until) => {
            let frame = tokio::time::timeout_at(until, body.frame()).await;
            frame.map_err(|_| too_slow())?
        }
    };
    frame.transpose().map_err(|error| {
        Problem::of(
            refusals::INVALID_REQUEST,
            format!("the body ended early: {error}"),
        )
    })
}

fn too_slow() -> Problem {
    let seconds = NOBODYS_WITHIN.as_secs();
    let message = format!(
        "the body did not come within {seconds} s, which is all the time that a long one has without a key; send it again, faster"
    );
    Problem::of(refusals::INVALID_REQUEST, message)
}
