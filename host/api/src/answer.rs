//! The success envelopes.

use crate::operation::Param;
use crate::problem::Problem;
use crate::query::Query;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use souk_store::idempotency::Answer;

/// 200 `{"data": …}`.
pub struct Data<T>(pub T);

/// 201 `{"data": …}` with `Location`.
pub struct Created<T> {
    pub location: String,
    pub data: T,
}

/// 201 for what carries a secret: `kept` is what a replay of the request shows.
pub struct CreatedOnce<T> {
    pub location: String,
    pub data: T,
    pub kept: T,
}

/// 200 for what carries a secret: `kept` is what a replay of the request shows.
pub struct DataOnce<T> {
    pub data: T,
    pub kept: T,
}

/// 202 `{"data": …}`: it is going to happen.
pub struct Accepted<T>(pub T);

/// 200 `{"data": […], "meta": {"total", "page", "per_page"}}`.
pub struct List<T> {
    pub data: Vec<T>,
    pub total: i64,
    pub page: Page,
}

/// 200 `{"data": […], "meta": {"total", "limit", "offset"}}`.
pub struct Slice<T> {
    pub data: Vec<T>,
    pub total: i64,
    pub limit: i64,
    pub offset: i64,
}

/// 204.
pub struct Deleted;

/// 200 with a body that is JSON already, envelope included.
pub struct Prepared(pub Bytes);

/// `page` and `per_page` of a list.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    pub page: i64,
    pub per_page: i64,
}

const PER_PAGE_DEFAULT: i64 = 50;
/// The parameters that [`Page::of`] reads.
pub const PAGING: &[Param] = &[crate::operation::PAGE, crate::operation::PER_PAGE];

impl Page {
    pub fn of(query: &Query) -> Page {
        Page {
            page: query.integer("page").unwrap_or(1),
            per_page: query.integer("per_page").unwrap_or(PER_PAGE_DEFAULT),
        }
    }

    pub fn limit(&self) -> i64 {
        self.per_page
    }

    pub fn offset(&self) -> i64 {
        (self.page - 1) * self.per_page
    }
}

/// In an answer's extensions: what to keep of it for a replay, when not the answer itself.
#[derive(Clone)]
pub(crate) struct Kept(pub Bytes);

/// An answer that can be kept before it is given: it is rendered as it will be.
pub(crate) trait ToKeep {
    fn to_keep(&self) -> Result<Answer, Problem>;
}

impl<T: Serialize> ToKeep for Data<T> {
    fn to_keep(&self) -> Result<Answer, Problem> {
        let body = encode(&Envelope { data: &self.0 })?;
        Ok(Answer::of(StatusCode::OK.as_u16(), None, &body, None))
    }
}

impl<T: Serialize> ToKeep for Created<T> {
    fn to_keep(&self) -> Result<Answer, Problem> {
        let body = encode(&Envelope { data: &self.data })?;
        let location = Some(self.location.clone());
        Ok(Answer::of(
            StatusCode::CREATED.as_u16(),
            location,
            &body,
            None,
        ))
    }
}

#[derive(Serialize)]
struct Envelope<'a, T> {
    data: &'a T,
}

#[derive(Serialize)]
struct ListEnvelope<'a, T, M> {
    data: &'a [T],
    meta: M,
}

#[derive(Serialize)]
struct Meta {
    total: i64,
    page: i64,
    per_page: i64,
}

#[derive(Serialize)]
struct SliceMeta {
    total: i64,
    limit: i64,
    offset: i64,
}

fn encode(value: &impl Serialize) -> Result<Bytes, Problem> {
    serde_json::to_vec(value)
        .map(Bytes::from)
        .map_err(Problem::internal)
}

/// An answer whose body is JSON.
pub fn json(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

fn located(location: &str, body: Bytes) -> Result<Response, Problem> {
    let mut response = json(StatusCode::CREATED, body);
    response.headers_mut().insert(
        header::LOCATION,
        HeaderValue::from_str(location).map_err(Problem::internal)?,
    );
    Ok(response)
}

fn render(response: Result<Response, Problem>) -> Response {
    response.unwrap_or_else(IntoResponse::into_response)
}

impl<T: Serialize> IntoResponse for Data<T> {
    fn into_response(self) -> Response {
        render(encode(&Envelope { data: &self.0 }).map(|body| json(StatusCode::OK, body)))
    }
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        render(
            encode(&Envelope { data: &self.data }).and_then(|body| located(&self.location, body)),
        )
    }
}

impl<T: Serialize> IntoResponse for CreatedOnce<T> {
    fn into_response(self) -> Response {
        render(encode(&Envelope { data: &self.kept }).and_then(|kept| {
            let mut response = located(&self.location, encode(&Envelope { data: &self.data })?)?;
            response.extensions_mut().insert(Kept(kept));
            Ok(response)
        }))
    }
}

impl<T: Serialize> IntoResponse for DataOnce<T> {
    fn into_response(self) -> Response {
        render(encode(&Envelope { data: &self.kept }).and_then(|kept| {
            let body = encode(&Envelope { data: &self.data })?;
            let mut response = json(StatusCode::OK, body);
            response.extensions_mut().insert(Kept(kept));
            Ok(response)
        }))
    }
}

impl<T: Serialize> IntoResponse for Accepted<T> {
    fn into_response(self) -> Response {
        render(encode(&Envelope { data: &self.0 }).map(|body| json(StatusCode::ACCEPTED, body)))
    }
}

impl<T: Serialize> IntoResponse for List<T> {
    fn into_response(self) -> Response {
        let meta = Meta {
            total: self.total,
            page: self.page.page,
            per_page: self.page.per_page,
        };
        render(
            encode(&ListEnvelope {
                data: &self.data,
                meta,
            })
            .map(|body| json(StatusCode::OK, body)),
        )
    }
}

impl<T: Serialize> IntoResponse for Slice<T> {
    fn into_response(self) -> Response {
        let envelope = ListEnvelope {
            data: &self.data,
            meta: SliceMeta {
                total: self.total,
                limit: self.limit,
                offset: self.offset,
            },
        };
        render(encode(&envelope).map(|body| json(StatusCode::OK, body)))
    }
}

impl IntoResponse for Deleted {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl IntoResponse for Prepared {
    fn into_response(self) -> Response {
        json(StatusCode::OK, self.0)
    }
}
