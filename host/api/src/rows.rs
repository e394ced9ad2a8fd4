//! The rows of a page of things that their owners describe at length. A page of long ones is shown and written in the compute lanes: a worker that did
//! it would keep others waiting.

use crate::answer::{encode, json};
use crate::problem::Problem;
use crate::{ApiState, Caller};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;

/// What is stored of a page's rows that a worker shows: well under a millisecond.
const SHOWN_HERE_BYTES_MAX: usize = 256 << 10;

/// Rows as they are shown, or the answer that is made of them.
pub struct Rows<T>(Kind<T>);

enum Kind<T> {
    Shown(Vec<T>),
    Written(Bytes),
}

#[derive(Serialize)]
struct Envelope<'a, T, M> {
    data: &'a [T],
    meta: M,
}

impl<T> From<Vec<T>> for Rows<T> {
    fn from(rows: Vec<T>) -> Rows<T> {
        Rows(Kind::Shown(rows))
    }
}

impl<T: Serialize> Rows<T> {
    /// 200 with the rows, and `meta` of them.
    pub(crate) fn respond(self, meta: impl Serialize) -> Response {
        let written = match self.0 {
            Kind::Shown(rows) => encode(&Envelope { data: &rows, meta }),
            Kind::Written(body) => Ok(body),
        };
        match written {
            Ok(body) => json(StatusCode::OK, body),
            Err(problem) => problem.into_response(),
        }
    }

    /// Of rows that have so many bytes in the store, as `show` shows them; `meta` is what their answer will say of them.
    pub(crate) async fn show(
        api: &ApiState,
        caller: &Caller,
        bytes: usize,
        meta: impl Serialize + Send + 'static,
        show: impl FnOnce() -> Vec<T> + Send + 'static,
    ) -> Result<Rows<T>, Problem> {
        if bytes <= SHOWN_HERE_BYTES_MAX {
            return Ok(show().into());
        }
        let write = move || {
            encode(&Envelope {
                data: &show(),
                meta,
            })
        };
        let written = api.app().compute_in_turn(caller.payer(), write).await;
        let body = written.ok_or_else(|| Problem::internal("the host stops"))??;
        Ok(Rows(Kind::Written(body)))
    }
}
