//! The success envelopes.

use crate::describe::{Describe, Description};
use crate::problem::Problem;
use crate::query::Page;
use crate::schemas::{enveloped, found, listed, schema};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use souk_store::Listed;
use souk_store::idempotency::KeptAnswer;
use std::marker::PhantomData;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

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

/// A [`Slice`] beside which something is recommended, if that was asked for.
pub struct Found<T> {
    pub data: Vec<T>,
    pub total: i64,
    pub limit: i64,
    pub offset: i64,
    pub recommended: Option<Vec<T>>,
}

/// 204.
pub struct Deleted;

/// 200 `{"data": […]}`: all there are.
pub struct All<T>(pub Vec<T>);

/// 200 `{"data": […], "meta": {"total"}}`: all there are.
pub struct Whole<T>(pub Vec<T>);

/// 200 `{"data": […], "meta": …}` of a list that says of itself what it is.
pub struct Grouped<T, M> {
    pub data: Vec<T>,
    pub meta: M,
}

/// 200 with a body that is JSON of a `T` already, envelope included.
pub struct Prepared<T> {
    body: Bytes,
    shape: PhantomData<fn() -> T>,
}

impl<T> Prepared<T> {
    pub fn new(body: impl Into<Bytes>) -> Prepared<T> {
        let (body, shape) = (body.into(), PhantomData);
        Prepared { body, shape }
    }
}

/// 200 `{"data": …}` of which the body is JSON already, envelope included: a [`Data`] that is too large for a worker to write.
pub struct PreparedData<T>(Prepared<T>);

impl<T> PreparedData<T> {
    pub fn new(body: impl Into<Bytes>) -> PreparedData<T> {
        PreparedData(Prepared::new(body))
    }
}

impl<T: Serialize> PreparedData<T> {
    /// Writes it, wherever it is called.
    pub fn of(data: &T) -> Result<PreparedData<T>, Problem> {
        encode(&Envelope { data }).map(PreparedData::new)
    }
}

/// 200 for a billed run: a [`Prepared`], or what a request with the same `Idempotency-Key` was answered.
pub enum Ran<T> {
    Now(Prepared<T>),
    Before(Response),
}

/// A JSON object whose members are somebody else's business: results of a seller's query, events of a payment provider.
pub struct AnyObject;

impl PartialSchema for AnyObject {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .into()
    }
}

impl ToSchema for AnyObject {}

impl<T> List<T> {
    pub fn of<R>(page: Page, (rows, total): Listed<R>, show: impl FnMut(R) -> T) -> List<T> {
        let data = rows.into_iter().map(show).collect();
        List { data, total, page }
    }

    /// A page of what is all here.
    pub fn within(page: Page, all: Vec<T>) -> List<T> {
        let total = i64::try_from(all.len()).unwrap_or(i64::MAX);
        let start = usize::try_from((page.page - 1) * page.per_page).unwrap_or(usize::MAX);
        let count = usize::try_from(page.per_page).unwrap_or_default();
        let data = all.into_iter().skip(start).take(count).collect();
        List { data, total, page }
    }
}

/// In an answer's extensions: what to keep of it for a replay, when not the answer itself.
#[derive(Clone)]
pub(crate) struct Kept(pub Bytes);

/// An answer that can be kept before it is given: it is rendered as it will be.
pub(crate) trait ToKeep {
    fn to_keep(&self) -> Result<KeptAnswer, Problem>;
}

impl<T: Serialize> ToKeep for Data<T> {
    fn to_keep(&self) -> Result<KeptAnswer, Problem> {
        let body = encode(&Envelope { data: &self.0 })?;
        Ok(KeptAnswer::of(StatusCode::OK.as_u16(), None, &body, None))
    }
}

impl<T: Serialize> ToKeep for Created<T> {
    fn to_keep(&self) -> Result<KeptAnswer, Problem> {
        let body = encode(&Envelope { data: &self.data })?;
        let location = Some(self.location.clone());
        Ok(KeptAnswer::of(
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

/// `meta` of a whole list.
#[derive(Serialize, ToSchema)]
struct Total {
    total: usize,
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

/// An answer of 200 whose body may be written anywhere.
pub trait Written {
    fn written(&self) -> Result<Bytes, Problem>;
}

impl<T: Serialize> Written for List<T> {
    fn written(&self) -> Result<Bytes, Problem> {
        encode(&ListEnvelope {
            data: &self.data,
            meta: Meta {
                total: self.total,
                page: self.page.page,
                per_page: self.page.per_page,
            },
        })
    }
}

impl<T: Serialize> Written for Slice<T> {
    fn written(&self) -> Result<Bytes, Problem> {
        encode(&ListEnvelope {
            data: &self.data,
            meta: SliceMeta {
                total: self.total,
                limit: self.limit,
                offset: self.offset,
            },
        })
    }
}

impl<T: Serialize> Written for Found<T> {
    fn written(&self) -> Result<Bytes, Problem> {
        #[derive(Serialize)]
        struct FoundEnvelope<'a, T> {
            data: &'a [T],
            meta: SliceMeta,
            #[serde(skip_serializing_if = "Option::is_none")]
            recommended: Option<&'a [T]>,
        }
        encode(&FoundEnvelope {
            data: &self.data,
            meta: SliceMeta {
                total: self.total,
                limit: self.limit,
                offset: self.offset,
            },
            recommended: self.recommended.as_deref(),
        })
    }
}

impl<T: Serialize> IntoResponse for List<T> {
    fn into_response(self) -> Response {
        render(self.written().map(|body| json(StatusCode::OK, body)))
    }
}

impl<T: Serialize> IntoResponse for Slice<T> {
    fn into_response(self) -> Response {
        render(self.written().map(|body| json(StatusCode::OK, body)))
    }
}

impl<T: Serialize> IntoResponse for Found<T> {
    fn into_response(self) -> Response {
        render(self.written().map(|body| json(StatusCode::OK, body)))
    }
}

impl IntoResponse for Deleted {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl<T: Serialize> IntoResponse for All<T> {
    fn into_response(self) -> Response {
        Data(self.0).into_response()
    }
}

impl<T: Serialize> IntoResponse for Whole<T> {
    fn into_response(self) -> Response {
        let envelope = ListEnvelope {
            data: &self.0,
            meta: Total {
                total: self.0.len(),
            },
        };
        render(encode(&envelope).map(|body| json(StatusCode::OK, body)))
    }
}

impl<T: Serialize, M: Serialize> IntoResponse for Grouped<T, M> {
    fn into_response(self) -> Response {
        let envelope = ListEnvelope {
            data: &self.data,
            meta: self.meta,
        };
        render(encode(&envelope).map(|body| json(StatusCode::OK, body)))
    }
}

impl<T> IntoResponse for Prepared<T> {
    fn into_response(self) -> Response {
        json(StatusCode::OK, self.body)
    }
}

impl<T> IntoResponse for PreparedData<T> {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl<T> IntoResponse for Ran<T> {
    fn into_response(self) -> Response {
        match self {
            Ran::Now(prepared) => prepared.into_response(),
            Ran::Before(response) => response,
        }
    }
}

macro_rules! described {
    ($($answer:ident: $status:literal $shape:expr;)+) => {
        $(impl<T: ToSchema> Describe for $answer<T> {
            fn describe(into: &mut Description) {
                into.json($status, $shape);
            }
        })+
    };
}

described! {
    Data: 200 enveloped::<T>;
    DataOnce: 200 enveloped::<T>;
    Created: 201 enveloped::<T>;
    CreatedOnce: 201 enveloped::<T>;
    Accepted: 202 enveloped::<T>;
    List: 200 |schemas| listed::<T>(schemas, "List", Some("Meta"));
    Slice: 200 |schemas| listed::<T>(schemas, "Slice", Some("SliceMeta"));
    Found: 200 found::<T>;
    All: 200 |schemas| listed::<T>(schemas, "All", None);
    Whole: 200 |schemas| {
        schema::<Total>(schemas);
        listed::<T>(schemas, "Whole", Some("Total"))
    };
    Prepared: 200 schema::<T>;
    PreparedData: 200 enveloped::<T>;
    Ran: 200 schema::<T>;
}

impl<T: ToSchema, M: ToSchema> Describe for Grouped<T, M> {
    fn describe(into: &mut Description) {
        into.json(200, |schemas| {
            schema::<M>(schemas);
            listed::<T>(schemas, &M::name(), Some(&M::name()))
        });
    }
}

impl Describe for Deleted {
    fn describe(into: &mut Description) {
        into.answer(204, None);
    }
}

/// A text for people.
impl Describe for &'static str {
    fn describe(into: &mut Description) {
        into.answer(
            200,
            Some(("text/plain", |_| serde_json::json!({"type": "string"}))),
        );
    }
}
