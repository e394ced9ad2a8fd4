//! What a handler's own types say of its operation: its arguments say what it takes, its answer says what it gives.
//!
//! [`Handler`] is implemented for every async function whose arguments are [`Argument`]s and whose answer is an [`Answer`]. Both implement
//! [`Describe`], so that routing, the gate and `openapi.json` read from the function itself what it does: a description cannot say anything
//! else. A handler is erased to one type ([`Erased`]) when it is mounted, and all that surrounds it is compiled once. Knows no operation.

use crate::json::Sent;
use crate::operation::BODY_BYTES_MAX;
use crate::pace::Pace;
use crate::problem::Problem;
use crate::query::{Parameters, Query, Reader};
use crate::refusals::{self, Refusal};
use crate::schemas::SchemaFn;
use crate::state::ApiState;
use crate::unwanted::discard;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, header};
use http_body::Body as _;
use std::pin::Pin;

/// All that the types of a handler say.
pub struct Description {
    /// It has a caller, so it is not for operations without a key.
    pub takes_caller: bool,
    /// The schemas of the path's parameters in their order, if it reads them all.
    pub segments: Option<Vec<serde_json::Value>>,
    pub query: Reader,
    pub body: Option<Described>,
    /// The body may repeat the path's ids, and is refused if it contradicts them.
    pub repeats_path: bool,
    /// `None`: the handler reads the body as a stream and bounds it.
    pub body_bytes_max: Option<u64>,
    /// The most memory that a streamed body may come to hold; 0 when the body is not streamed.
    pub upload_bytes_max: u64,
    pub answers: Vec<Answered>,
    pub refusals: Vec<Refusal>,
}

/// A body that is taken.
pub struct Described {
    pub content_type: &'static str,
    pub required: bool,
    pub shape: SchemaFn,
    /// To look at one that no handler gets to see.
    pub(crate) sent: fn(&Bytes) -> Option<Sent>,
}

/// A body that is answered, with its status.
pub struct Answered {
    pub status: u16,
    /// `None`: without a body.
    pub content: Option<(&'static str, SchemaFn)>,
}

impl Description {
    fn new() -> Description {
        Description {
            takes_caller: false,
            segments: None,
            query: Reader::of::<()>(),
            body: None,
            repeats_path: false,
            body_bytes_max: Some(BODY_BYTES_MAX),
            upload_bytes_max: 0,
            answers: Vec::new(),
            refusals: Vec::new(),
        }
    }

    pub fn answer(&mut self, status: u16, content: Option<(&'static str, SchemaFn)>) {
        self.answers.push(Answered { status, content });
    }

    pub fn json(&mut self, status: u16, shape: SchemaFn) {
        self.answer(status, Some((JSON, shape)));
    }

    pub fn refuse(&mut self, refusals: &[Refusal]) {
        self.refusals.extend_from_slice(refusals);
    }

    /// A request has one body.
    pub fn take_body(&mut self, body: Described) {
        assert!(
            self.body.is_none(),
            "two arguments of a handler read the body"
        );
        self.body = Some(body);
    }
}

pub const JSON: &str = "application/json";

/// Says what a type means for an operation that takes or answers it.
pub trait Describe {
    fn describe(into: &mut Description);
}

/// What a handler takes.
pub trait Argument: Describe + Sized + Send {
    fn take(incoming: &mut Incoming) -> impl Future<Output = Result<Self, Problem>> + Send;
}

/// What a handler answers.
pub trait Answer: Describe + IntoResponse {}

impl<T: Describe + IntoResponse> Answer for T {}

/// A request that the gate let pass, on its way into a handler's arguments.
pub struct Incoming {
    pub parts: Parts,
    pub body: Body,
    pub state: ApiState,
    /// What the handler gets of the body, if it is JSON: when it refuses that, all that is wrong is named.
    pub(crate) sent: Option<Sent>,
}

pub type BoxFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler whatever its arguments.
pub type Erased = Box<dyn Fn(Request, ApiState) -> BoxFuture + Send + Sync>;

/// An async function that can be mounted. One that does not say what it answers cannot:
///
/// ```
/// use souk_api::{Access, Deleted, Operation, Problem, Routes};
/// const OPERATION: Operation = Operation::get("quiet", "/quiet").access(Access::Public);
/// async fn quiet() -> Result<Deleted, Problem> { Ok(Deleted) }
/// Routes::new().add(OPERATION, quiet);
/// ```
/// ```compile_fail
/// use souk_api::{Access, Deleted, Operation, Problem, Routes};
/// const OPERATION: Operation = Operation::get("quiet", "/quiet").access(Access::Public);
/// async fn quiet() -> Result<axum::response::Response, Problem> { todo!() }
/// Routes::new().add(OPERATION, quiet);
/// ```
///
/// `Arguments` keeps functions of different arity apart.
pub trait Handler<Arguments>: Copy + Send + Sync + 'static {
    fn description() -> Description;
    fn erase(self) -> Erased;
}

macro_rules! handlers {
    ($($argument:ident),*) => {
        impl<F, Work, A, $($argument),*> Handler<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Work + Copy + Send + Sync + 'static,
            Work: Future<Output = A> + Send + 'static,
            A: Answer,
            $($argument: Argument + 'static,)*
        {
            fn description() -> Description {
                let mut description = Description::new();
                $($argument::describe(&mut description);)*
                A::describe(&mut description);
                description
            }

            #[allow(unused_mut, unused_variables, non_snake_case)]
            fn erase(self) -> Erased {
                Box::new(move |request, state| {
                    // Made where it stays: `Box::pin` would move it there, 6 KB of which hardly anything is filled yet.
                    let place = Box::new_uninit();
                    let work = Box::write(place, async move {
                        let mut incoming = Incoming::new(request, state);
                        $(let $argument = match $argument::take(&mut incoming).await {
                            Ok(argument) => argument,
                            Err(problem) => {
                                incoming.leave().await;
                                return problem.into_response();
                            }
                        };)*
                        let sent = incoming.sent.take();
                        let response = completed(self($($argument),*).await.into_response(), sent);
                        incoming.leave().await;
                        response
                    });
                    Box::into_pin(work)
                })
            }
        }
    };
}

/// A refusal of the body's fields names all of them.
fn completed(mut response: Response, sent: Option<Sent>) -> Response {
    let extensions = response.extensions_mut();
    if let Some(sent) = sent
        && let Some(problem) = extensions.remove::<Problem>()
    {
        extensions.insert(problem.completed(|errors| sent.misfits(errors)));
    }
    response
}

handlers!();
handlers!(A1);
handlers!(A1, A2);
handlers!(A1, A2, A3);
handlers!(A1, A2, A3, A4);
handlers!(A1, A2, A3, A4, A5);
handlers!(A1, A2, A3, A4, A5, A6);

impl Incoming {
    fn new(request: Request, state: ApiState) -> Incoming {
        let (parts, body) = request.into_parts();
        Incoming {
            parts,
            body,
            state,
            sent: None,
        }
    }

    /// Takes what nobody has read of the body: a connection whose request has not arrived whole is closed behind its answer without a word, and
    /// takes the client's next request with it.
    async fn leave(&mut self) {
        if self.body.is_end_stream() || self.parts.headers.contains_key(header::EXPECT) {
            return;
        }
        let pace = self.parts.extensions.get::<Pace>().cloned();
        let pace = pace.unwrap_or_else(|| Pace::of(&self.state, None));
        let body = std::mem::take(&mut self.body);
        Box::pin(async move { discard(body, &pace).await }).await;
    }

    /// The request's head, for the argument that reads it last.
    pub fn take_parts(&mut self) -> Parts {
        let (empty, ()) = http::Request::new(()).into_parts();
        std::mem::replace(&mut self.parts, empty)
    }
}

impl<A: Describe> Describe for Result<A, Problem> {
    fn describe(into: &mut Description) {
        A::describe(into);
        into.refuse(&[refusals::INTERNAL_ERROR, refusals::SERVICE_UNAVAILABLE]);
    }
}

/// One of two answers.
pub enum Either<A, B> {
    This(A),
    That(B),
}

impl<A: Describe, B: Describe> Describe for Either<A, B> {
    fn describe(into: &mut Description) {
        A::describe(into);
        B::describe(into);
    }
}

impl<A: IntoResponse, B: IntoResponse> IntoResponse for Either<A, B> {
    fn into_response(self) -> Response {
        match self {
            Either::This(answer) => answer.into_response(),
            Either::That(answer) => answer.into_response(),
        }
    }
}

impl Describe for State<ApiState> {
    fn describe(_: &mut Description) {}
}

impl Argument for State<ApiState> {
    async fn take(incoming: &mut Incoming) -> Result<Self, Problem> {
        Ok(State(incoming.state.clone()))
    }
}

impl Describe for HeaderMap {
    fn describe(_: &mut Description) {}
}

impl Argument for HeaderMap {
    async fn take(incoming: &mut Incoming) -> Result<Self, Problem> {
        Ok(incoming.parts.headers.clone())
    }
}

impl<T: Parameters> Describe for Query<T> {
    fn describe(into: &mut Description) {
        into.query = Reader::of::<T>();
    }
}

impl<T: Parameters> Argument for Query<T> {
    async fn take(incoming: &mut Incoming) -> Result<Query<T>, Problem> {
        let read = incoming.parts.extensions.remove::<Query<T>>();
        Ok(read.unwrap_or_default())
    }
}
