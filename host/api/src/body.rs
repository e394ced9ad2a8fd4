//! Bodies by their types, refused in the envelope.

use crate::caller::Caller;
use crate::describe::{Argument, Describe, Described, Description, Incoming, JSON};
use crate::fitting::Shape;
use crate::json::{Sent, parse, parse_change, parse_members, require_json};
use crate::mounted::Mounted;
use crate::pace::Pace;
use crate::problem::{FieldError, Problem, mismatch};
use crate::reading::read;
use crate::refusals::{self, Refusal};
use crate::schemas::{change, schema};
use crate::spelling::spelt;
use crate::standing::after_body;
use crate::state::ApiState;
use axum::extract::Request;
use bytes::Bytes;
use futures_util::{StreamExt, future, stream};
use http::HeaderMap;
use http::request::Parts;
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use souk_domain::fields::FieldErrors;
use std::marker::PhantomData;
use std::sync::Arc;
use utoipa::ToSchema;

/// A JSON object. Unknown members are ignored, but for what is misspelt in an object within it (`spelling`); types are strict, a wrong field is
/// named.
pub struct Body<T>(pub T);

impl<T: ToSchema> Describe for Body<T> {
    fn describe(into: &mut Description) {
        into.take_body(json::<T>(true));
        into.repeats_path = true;
        into.refuse(UNREADABLE);
    }
}

impl<T: DeserializeOwned + ToSchema> FromBytes for Body<T> {
    fn from_bytes(incoming: &mut Incoming, bytes: &Bytes) -> Result<Body<T>, Problem> {
        require_json(&incoming.parts.headers)?;
        incoming.sent = Sent::of::<T>(bytes);
        let body = spelt(parse(bytes), bytes, || Shape::of::<T>(false)).map(Body);
        agreed(&incoming.parts, bytes, incoming.sent.as_ref(), body)
    }
}

impl<T: DeserializeOwned + ToSchema + Send> Argument for Body<T> {
    async fn take(incoming: &mut Incoming) -> Result<Body<T>, Problem> {
        let bytes = incoming.read().await?;
        Self::from_bytes(incoming, &bytes)
    }
}

/// A JSON object that may also be absent or empty: then it is the default.
pub struct OptionalBody<T>(pub T);

impl<T: ToSchema> Describe for OptionalBody<T> {
    fn describe(into: &mut Description) {
        into.take_body(json::<T>(false));
        into.repeats_path = true;
        into.refuse(UNREADABLE);
    }
}

impl<T: DeserializeOwned + Default + ToSchema> FromBytes for OptionalBody<T> {
    fn from_bytes(incoming: &mut Incoming, bytes: &Bytes) -> Result<OptionalBody<T>, Problem> {
        let body = or_default(&incoming.parts.headers, bytes);
        let body = spelt(body, bytes, || Shape::of::<T>(false)).map(OptionalBody);
        incoming.sent = Sent::of::<T>(bytes);
        agreed(&incoming.parts, bytes, incoming.sent.as_ref(), body)
    }
}

impl<T: DeserializeOwned + Default + ToSchema + Send> Argument for OptionalBody<T> {
    async fn take(incoming: &mut Incoming) -> Result<OptionalBody<T>, Problem> {
        let bytes = incoming.read().await?;
        Self::from_bytes(incoming, &bytes)
    }
}

/// What is read of a body that has come whole.
pub trait FromBytes: Sized {
    fn from_bytes(incoming: &mut Incoming, bytes: &Bytes) -> Result<Self, Problem>;
}

/// A body with the bytes that it was read from: for an operation that refuses some of the members that its type does not know.
pub struct AsSent<B> {
    pub body: B,
    pub bytes: Bytes,
}

impl<B: Describe> Describe for AsSent<B> {
    fn describe(into: &mut Description) {
        B::describe(into);
    }
}

impl<B: FromBytes + Describe + Send> Argument for AsSent<B> {
    async fn take(incoming: &mut Incoming) -> Result<AsSent<B>, Problem> {
        let bytes = incoming.read().await?;
        let body = B::from_bytes(incoming, &bytes)?;
        Ok(AsSent { body, bytes })
    }
}

/// A JSON object of members to change: what `T` has, each of them optional. What it becomes is for whoever lays it over what there is.
pub struct Changes<T> {
    pub members: Map<String, Value>,
    shape: PhantomData<fn() -> T>,
}

impl<T: ToSchema> Describe for Changes<T> {
    fn describe(into: &mut Description) {
        Change::<T>::describe(into);
    }
}

/// A JSON object of what to change of a `T`: nothing is lacking in it.
pub struct Change<T>(pub T);

impl<T: ToSchema> Describe for Change<T> {
    fn describe(into: &mut Description) {
        into.take_body(Described {
            content_type: JSON,
            required: true,
            shape: change::<T>,
            sent: Sent::change_of::<T>,
        });
        into.repeats_path = true;
        into.refuse(UNREADABLE);
    }
}

impl<T: DeserializeOwned + ToSchema + Send> Argument for Change<T> {
    async fn take(incoming: &mut Incoming) -> Result<Change<T>, Problem> {
        let bytes = incoming.read().await?;
        require_json(&incoming.parts.headers)?;
        incoming.sent = Sent::change_of::<T>(&bytes);
        let body = spelt(parse_change(&bytes), &bytes, || Shape::of::<T>(true)).map(Change);
        agreed(&incoming.parts, &bytes, incoming.sent.as_ref(), body)
    }
}

impl<T: ToSchema> Argument for Changes<T> {
    async fn take(incoming: &mut Incoming) -> Result<Changes<T>, Problem> {
        let bytes = incoming.read().await?;
        require_json(&incoming.parts.headers)?;
        incoming.sent = Sent::change_of::<T>(&bytes);
        let members = spelt(parse_members(&bytes), &bytes, || Shape::of::<T>(true));
        let members = agreed(&incoming.parts, &bytes, incoming.sent.as_ref(), members)?;
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
    /// A thing that the body is, which does not contradict the path.
    pub fn agreed<U: DeserializeOwned + Default + ToSchema>(&self) -> Result<U, Problem> {
        let sent = Sent::of::<U>(&self.bytes);
        agreed(&self.parts, &self.bytes, sent.as_ref(), self.json_as())
    }

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

/// What a body may repeat of its path.
#[derive(Deserialize)]
struct Repeated {
    company_id: Option<Value>,
    user_id: Option<Value>,
}

/// What was read of a body, unless it contradicts its path: a client that says two things would have one of them done.
fn agreed<T>(
    parts: &Parts,
    bytes: &[u8],
    sent: Option<&Sent>,
    read: Result<T, Problem>,
) -> Result<T, Problem> {
    let contradictions = contradictions(parts, bytes);
    if contradictions.is_empty() {
        return read;
    }
    if let Err(problem) = read {
        let contradictions = Problem::fields(refusals::VALIDATION_ERROR, contradictions);
        return Err(problem.and(contradictions));
    }
    let known = contradictions.len();
    let mut errors = FieldErrors::default();
    errors.extend(contradictions);
    if let Some(sent) = sent {
        sent.misfits(&mut errors);
    }
    let is_more = errors.names().count() > known;
    let refusal = match is_more {
        true => refusals::VALIDATION_ERROR,
        false => refusals::PATH_BODY_MISMATCH,
    };
    Err(Problem::fields(refusal, errors.into_vec()))
}

fn contradictions(parts: &Parts, bytes: &[u8]) -> Vec<FieldError> {
    let caller = parts.extensions.get::<Caller>().map(Caller::operation);
    let Some(mounted) = caller.or_else(|| parts.extensions.get::<Arc<Mounted>>().map(Arc::as_ref))
    else {
        return Vec::new();
    };
    let path = mounted.operation.path.split('/');
    let path = || path.clone().zip(parts.uri.path().split('/'));
    if !path().any(|(part, _)| part == "{company_id}") {
        return Vec::new();
    }
    let given = match serde_json::from_slice::<Repeated>(bytes) {
        Ok(Repeated {
            company_id,
            user_id,
        }) => [("company_id", company_id), ("user_id", user_id)],
        // One of them twice; what is no JSON is refused for that.
        Err(error) if error.is_data() && parse_members(bytes).is_ok() => {
            let message = "company_id and user_id may be given only once";
            return vec![FieldError::new("body", "repeated", message)];
        }
        Err(_) => return Vec::new(),
    };
    let mut errors = Vec::new();
    for (name, given) in given {
        let is_name = |part: &str| {
            part.strip_prefix('{')
                .and_then(|part| part.strip_suffix('}'))
                == Some(name)
        };
        let known = path()
            .find(|(part, _)| is_name(part))
            .map(|(_, known)| known);
        if let (Some(given), Some(known)) = (given, known)
            && given.as_str() != Some(known)
        {
            errors.push(mismatch(name));
        }
    }
    errors
}

/// A body of another kind than JSON, which the handler reads as a stream.
pub struct Upload<M> {
    pub body: axum::body::Body,
    /// For who is refused what they have sent whole.
    pub lost: Lost,
    kind: PhantomData<fn() -> M>,
}

/// Why whoever sends an upload may not any more, once all of it has come: its body ends with an error, of which nobody but this knows what it was.
#[derive(Clone, Default)]
pub struct Lost(Arc<Mutex<Option<Problem>>>);

impl Lost {
    /// What an upload that failed is answered: that its sender may not any more, if that is why, else `other`.
    pub fn or(&self, other: Problem) -> Problem {
        self.0.lock().take().unwrap_or(other)
    }
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
            sent: |_| None,
        });
        into.body_bytes_max = None;
        into.upload_bytes_max = M::MEMORY_BYTES_MAX;
    }
}

impl<M: Media> Argument for Upload<M> {
    async fn take(incoming: &mut Incoming) -> Result<Self, Problem> {
        let caller = incoming.parts.extensions.get::<Caller>().cloned();
        let pace = Pace::of(&incoming.state, caller.as_ref().map(Caller::payer));
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
        let (state, headers) = (incoming.state.clone(), incoming.parts.headers.clone());
        let lost = Lost::default();
        let told = lost.clone();
        // An upload takes its time: who may not go on has sent nothing whole.
        let end = stream::once(async move {
            let still = after_body(&state, &headers, caller.as_ref()?).await;
            still.err().map(|problem| {
                let error = no_more(&problem);
                *told.0.lock() = Some(problem);
                Err(error)
            })
        });
        let body = paced.chain(end.filter_map(future::ready));
        let kind = PhantomData;
        let body = axum::body::Body::from_stream(body);
        Ok(Upload { body, lost, kind })
    }
}

fn no_more(problem: &Problem) -> axum::Error {
    let (code, message) = (problem.code(), problem.message());
    axum::Error::new(format!("{code}: {message}"))
}

fn json<T: ToSchema>(required: bool) -> Described {
    Described {
        content_type: JSON,
        required,
        shape: schema::<T>,
        sent: Sent::of::<T>,
    }
}

/// Adds to what is wrong with a query what is wrong with the body, as far as its schema and its path say, if it is one that can be read.
pub(crate) async fn beside(
    wrong_query: Problem,
    mounted: &Mounted,
    request: Request,
    state: &ApiState,
) -> Problem {
    let (parts, body) = request.into_parts();
    let Some(described) = &mounted.description.body else {
        return wrong_query;
    };
    let Ok(bytes) = read(&parts, body, state).await else {
        return wrong_query;
    };
    let mut errors = FieldErrors::default();
    if require_json(&parts.headers).is_ok() {
        errors.extend(contradictions(&parts, &bytes));
        if let Some(sent) = (described.sent)(&bytes) {
            sent.misfits(&mut errors);
        }
    }
    let errors = errors.into_vec();
    match errors.is_empty() {
        true => wrong_query,
        false => wrong_query.and(Problem::fields(refusals::INVALID_PARAMETER, errors)),
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
