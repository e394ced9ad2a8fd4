//! Answers of things that their owners describe at length, and of very many. A page of long ones, and what is made of many lines, is shown and written in
//! the compute lanes: a worker that did it would keep others waiting.

use crate::answer::{Written, json};
use crate::describe::{Describe, Description};
use crate::problem::Problem;
use crate::{ApiState, Caller};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::StatusCode;

/// What is stored of a page that a worker shows: well under a millisecond.
const SHOWN_HERE_BYTES_MAX: usize = 256 << 10;
/// The same of lines of a table: each is a few microseconds.
const LINES_HERE_MAX: usize = 250;
/// What a line takes in the store: ids, for the most part.
const LINE_BYTES: usize = 300;
/// What it takes beside that while it is shown and written: its values, and the answer.
const TIMES_AS_SHOWN: u64 = 3;

/// 200 with an answer, or with what was written of it.
pub enum Large<A> {
    Here(A),
    Written(Bytes),
}

impl<A: Written + 'static> Large<A> {
    /// What `show` makes of so many bytes of the store. Those of a company whose clients leave too much unread are refused.
    pub(crate) async fn show(
        api: &ApiState,
        caller: &Caller,
        bytes: usize,
        show: impl FnOnce() -> Result<A, Problem> + Send + 'static,
    ) -> Result<Large<A>, Problem> {
        if bytes <= SHOWN_HERE_BYTES_MAX {
            return show().map(Large::Here);
        }
        let write = move || show().and_then(|shown| shown.written());
        let body = in_lane(api, caller, bytes, write).await?;
        Ok(Large::Written(body))
    }
}

/// What `work` makes of so many lines of the store: here, or of many in a lane, as [`Large::show`] does.
pub(crate) async fn of_lines<T: Send + 'static>(
    api: &ApiState,
    caller: &Caller,
    lines: usize,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    if lines <= LINES_HERE_MAX {
        return work();
    }
    in_lane(api, caller, lines * LINE_BYTES, work).await
}

async fn in_lane<T: Send + 'static>(
    api: &ApiState,
    caller: &Caller,
    bytes: usize,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let room = caller.unread().room(TIMES_AS_SHOWN * bytes as u64);
    let _room = room.map_err(|unread| Problem::unread(unread.bytes, unread.bytes_max))?;
    let worked = api.app().compute_in_turn(caller.payer(), work).await;
    worked.ok_or_else(|| Problem::internal("the host stops"))?
}

impl<A: Describe> Describe for Large<A> {
    fn describe(into: &mut Description) {
        A::describe(into);
    }
}

impl<A: IntoResponse> IntoResponse for Large<A> {
    fn into_response(self) -> Response {
        match self {
            Large::Here(answer) => answer.into_response(),
            Large::Written(body) => json(StatusCode::OK, body),
        }
    }
}
