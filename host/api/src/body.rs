//! Bodies, read once and refused in the envelope.

use crate::caller::Caller;
use crate::describe::{Argument, Describe, Described, Description, Incoming, JSON};
use crate::json::{parse, parse_members, require_json};
use crate::operation::BODY_BYTES_MAX;
use crate::pace::Pace;
use crate::problem::Problem;
use crate::refusals::{self, Refusal};
use crate::schemas::schema;
use crate::state::ApiState;
use axum::extract::Request;
use bytes::Bytes;
use futures_util::StreamExt;
use http::request::Parts;
use http::{HeaderMap, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::marker::PhantomData;
use std::time::Duration;
use utoipa::ToSchema;

/// An upload that is read whole after all, because it carries an `Idempotency-Key`: the largest connector.
const BUFFERED_BYTES_MAX: u64 = 64 << 20;
/// What a refused client may still send: several times the largest JSON body.
const DISCARDED_BYTES_MAX: usize = 8 << 20;
const DISCARD_FOR: Duration = Duration::from_secs(1);

/// A JSON object. Unknown members are ignored, types are strict, a wrong field is named.
pub struct Body<T>(pub T);

impl<T: ToSchema> Describe for Body<T> {
    fn describe(into: &mut Description) {
        into.take_body(json::<T>(true));
        into.refuse(UNREADABLE);
    }
}

impl<T: DeserializeOwned + ToSchema + Send> Argument for Body<T> {
    async fn take(incoming: &mut Incoming) -> Result<Body<T>, Problem> {
        let bytes = incoming.read().await?;
        require_json(&incoming.parts.headers)?;
        parse(&bytes).map(Body)
    }
}

/// A JSON object that may also be absent or empty: then it is the default.
pub struct OptionalBody<T>(pub T);

impl<T: ToSchema> Describe for OptionalBody<T> {
    fn describe(into: &mut Description) {
        into.take_body(json::<T>(false));
        into.refuse(UNREADABLE);
    }
}

impl<T: DeserializeOwned + Default + ToSchema + Send> Argument for OptionalBody<T> {
    async fn take(incoming: &mut Incoming) -> Result<OptionalBody<T>, Problem> {
        let bytes = incoming.read().await?;
        or_default(&incoming.parts.headers, &bytes).map(OptionalBody)
    }
}

/// A JSON object of members to change: what `T` has, each of them optional. What it becomes is for whoever lays it over what there is.
pub struct Changes<T> {
    pub members: Map<String, Value>,
    shape: PhantomData<fn() -> T>,
}

impl<T: ToSchema> Describe for Changes<T> {
    fn describe(into: &mut Description) {
        Body::<T>::describe(into);
    }
}

impl<T: ToSchema> Argument for Changes<T> {
    async fn take(incoming: &mut Incoming) -> Result<Changes<T>, Problem> {
        let bytes = incoming.read().await?;
        require_json(&incoming.parts.headers)?;
        let members = parse_members(&bytes)?;
        let shape = PhantomData;
        Ok(Changes { members, shape })
    }
}

/// The body as it came, bounded by the operation's limit, with the request's head: for operations that fingerprint it. It is a `T`, or empty
/// unless it is `REQUIRED`.
pub struct RawBody<T, const REQUIRED: bool = false> {
    pub parts: Parts,
    pub bytes: Bytes,
    shape: PhantomData<fn() -> T>,
}

/// What a [`RawBody`] may be.
pub trait Raw {
    /// `None`: nothing is expected, and what comes is not looked at.
    fn described(required: bool) -> Option<Described>;
}

/// No body.
pub struct Nothing;

impl Raw for Nothing {
    fn described(_: bool) -> Option<Described> {
        None
    }
}

impl<T: ToSchema> Raw for T {
    fn described(required: bool) -> Option<Described> {
        Some(json::<T>(required))
    }
}

impl<T: Raw, const REQUIRED: bool> Describe for RawBody<T, REQUIRED> {
    fn describe(into: &mut Description) {
        if let Some(body) = T::described(REQUIRED) {
            into.take_body(body);
            into.refuse(UNREADABLE);
        }
    }
}

impl<T: Raw, const REQUIRED: bool> Argument for RawBody<T, REQUIRED> {
    async fn take(incoming: &mut Incoming) -> Result<Self, Problem> {
        let bytes = incoming.read().await?;
        let parts = incoming.take_parts();
        let shape = PhantomData;
        Ok(RawBody {
            parts,
            bytes,
            shape,
        })
    }
}

impl<T: DeserializeOwned + Default + ToSchema, const REQUIRED: bool> RawBody<T, REQUIRED> {
    /// The body as [`OptionalBody`] would read it.
    pub fn json(&self) -> Result<T, Problem> {
        self.json_as()
    }
}

impl<T, const REQUIRED: bool> RawBody<T, REQUIRED> {
    /// Some members of it.
    pub fn json_as<U: DeserializeOwned + Default + ToSchema>(&self) -> Result<U, Problem> {
        or_default(&self.parts.headers, &self.bytes)
    }
}

fn or_default<T: DeserializeOwned + Default + ToSchema>(
    headers: &HeaderMap,
    bytes: &[u8],
) -> Result<T, Problem> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(T::default());
    }
    require_json(headers)?;
    parse(bytes)
}

/// A body of another kind than JSON, which the handler reads as a stream.
pub struct Upload<M> {
    pub body: axum::body::Body,
    kind: PhantomData<fn() -> M>,
}

/// What is uploaded.
pub trait Media {
    const CONTENT_TYPE: &'static str;
    /// The handler holds at most this of it in memory, for which it has a place before a byte is read ([`crate::uploads`]).
    const MEMORY_BYTES_MAX: u64;
}

impl<M: Media> Describe for Upload<M> {
    fn describe(into: &mut Description) {
        into.take_body(Described {
            content_type: M::CONTENT_TYPE,
            required: true,
            shape: |_| serde_json::json!({"type": "string", "format": "binary"}),
        });
        into.body_bytes_max = None;
        into.upload_bytes_max = M::MEMORY_BYTES_MAX;
    }
}

impl<M: Media> Argument for Upload<M> {
    async fn take(incoming: &mut Incoming) -> Result<Self, Problem> {
        let company = incoming.parts.extensions.get::<Caller>();
        let pace = Pace::of(&incoming.state, company.map(Caller::payer));
        let frames = std::mem::take(&mut incoming.body).into_data_stream();
        let paced = frames.then(move |frame| {
            let pace = pace.clone();
            async move {
                if let Ok(bytes) = &frame {
                    pace.keep(bytes.len()).await;
                }
                frame
            }
        });
        let kind = PhantomData;
        let body = axum::body::Body::from_stream(paced);
        Ok(Upload { body, kind })
    }
}

fn json<T: ToSchema>(required: bool) -> Described {
    Described {
        content_type: JSON,
        required,
        shape: schema::<T>,
    }
}

/// What a body that cannot be read is refused with, beside one that is too large.
const UNREADABLE: &[Refusal] = &[
    refusals::INVALID_REQUEST,
    refusals::VALIDATION_ERROR,
    refusals::UNSUPPORTED_MEDIA_TYPE,
];

impl Incoming {
    async fn read(&mut self) -> Result<Bytes, Problem> {
        let body = std::mem::take(&mut self.body);
        read(&self.parts, body, &self.state).await
    }
}

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

/// Takes what a refused client is still sending, for a moment: closing at once would reset the connection before it has read why.
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
