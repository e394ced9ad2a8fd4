//! `Idempotency-Key`: a retried POST gets the first answer and does nothing twice.
//!
//! All of it is [`once`]. The router asks for it on behalf of operations that are not billed ([`respond`]) and keeps their answers. A billed
//! operation asks itself, because its answer is kept in the transaction that posts its charge. An operation that moves money, or that sets
//! what things cost or goes on costing (prices, discounts, alerts), keeps its answer in the transaction that does it ([`Once::keep`]): a host
//! that dies has done both, or neither.

mod renewed;

use crate::answer::{Kept, ToKeep, json};
use crate::caller::Caller;
use crate::describe::{Argument, Describe, Description, Incoming};
use crate::gate::InFlight;
use crate::mounted::Mounted;
use crate::problem::{FieldError, Problem};
use crate::reading;
use crate::refusals;
use crate::state::ApiState;
use crate::state::SWEEP_EVERY;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};
use souk_app::claims::{self, Written};
use souk_app::context::carried;
use souk_domain::time::{DAY, Timestamp};
use souk_store::audit::on_behalf;
use souk_store::idempotency::{self as store, KeptAnswer, Scope, Ticket};
use souk_store::{StoreError, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tokio::runtime::Handle;

pub const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const KEY_CHARS_MAX: usize = 255;
/// How long an answer is kept.
pub const KEPT: Duration = DAY;

/// Of an answer, and how long after each: about as long as the teller tries to book a charge.
const KEEP_TRIES: u32 = 4;
const KEEP_PAUSE: Duration = Duration::from_millis(200);

/// A request as its key sees it.
pub struct Keyed {
    /// The key, and what it was sent with.
    key: Option<(String, String)>,
    lapses_at: Timestamp,
    /// What it has of the calls in flight ([`take_along`]).
    place: Option<Arc<InFlight>>,
}

impl Keyed {
    /// Whether a request carries a key, of whatever form.
    pub fn is_asked(headers: &HeaderMap) -> bool {
        headers.contains_key(HEADER)
    }

    /// `product`: what the request runs, where its path alone does not say. Its claim holds without an answer until `lapses_at`.
    pub fn read(
        parts: &Parts,
        body: &[u8],
        product: Option<&str>,
        lapses_at: Timestamp,
    ) -> Result<Keyed, Problem> {
        let key = key(&parts.headers)?;
        let key = key.map(|key| (key, fingerprint(parts, body, product)));
        Ok(Keyed {
            key,
            lapses_at,
            place: parts.extensions.get().cloned(),
        })
    }
}

/// Has a request with a key take its place among the calls in flight along: it goes on when its client hangs up, and whoever hangs up could begin as many as
/// he likes. Any other request ends with its client, and so does its place.
pub(crate) fn take_along(place: Option<InFlight>, request: &mut Request) -> Option<InFlight> {
    let place = place?;
    if !Keyed::is_asked(request.headers()) {
        return Some(place);
    }
    request.extensions_mut().insert(Arc::new(place));
    None
}

/// What came of a request.
pub enum Attempt<T> {
    Now(T),
    /// It was executed before: this is its answer.
    Before(Response),
}

/// The claim that a request came with, if it carries a key, for a handler that keeps its answer itself.
#[derive(Clone, Default)]
pub struct Once(Option<Arc<Claimed>>);

struct Claimed {
    ticket: Ticket,
    /// The handler has kept its answer.
    is_kept: AtomicBool,
}

impl Once {
    fn new(ticket: Ticket) -> Once {
        Once(Some(Arc::new(Claimed {
            ticket,
            is_kept: AtomicBool::new(false),
        })))
    }

    fn is_kept(&self) -> bool {
        let claimed = self.0.as_ref();
        claimed.is_some_and(|claimed| claimed.is_kept.load(Ordering::Relaxed))
    }

    pub fn ticket(&self) -> Option<&Ticket> {
        self.0.as_ref().map(|claimed| &claimed.ticket)
    }

    /// Keeps an answer in the transaction of what it answers, as its last statement.
    pub(crate) async fn keep(
        &self,
        write: &mut Write,
        answer: &impl ToKeep,
    ) -> Result<(), Problem> {
        let Some(ticket) = self.ticket() else {
            return Ok(());
        };
        if !store::complete(write, ticket, &answer.to_keep()?, kept_until()).await? {
            return Err(in_progress());
        }
        self.note_kept();
        Ok(())
    }

    /// The answer was kept. If that is not committed, the request fails, and its claim is given up.
    pub(crate) fn note_kept(&self) {
        if let Some(claimed) = &self.0 {
            claimed.is_kept.store(true, Ordering::Relaxed);
        }
    }
}

impl Describe for Once {
    fn describe(_: &mut Description) {}
}

impl Argument for Once {
    async fn take(incoming: &mut Incoming) -> Result<Once, Problem> {
        let once = incoming.parts.extensions.get::<Once>().cloned();
        Ok(once.unwrap_or_default())
    }
}

/// Until when an answer that is given now is kept.
pub(crate) fn kept_until() -> Timestamp {
    Timestamp::from(SystemTime::now()).after(KEPT)
}

/// Does `work` at most once per key. What a key protects goes on to its end when its client hangs up, which will ask again, and a host that
/// stops waits for it; when it fails its claim is given up, so that a retry executes anew. What it reads of the store is told in time by itself: what
/// handlers and caches read is, and the rest [asks](souk_store::Db::ask).
pub async fn once<T, F>(
    state: &ApiState,
    caller: &Caller,
    keyed: Keyed,
    work: impl FnOnce(Once) -> F,
) -> Result<Attempt<T>, Problem>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Problem>> + Send + 'static,
{
    let in_flight = keyed.place.clone();
    let ticket = match claim(state, caller, keyed).await? {
        Claim::None => return work(Once::default()).await.map(Attempt::Now),
        Claim::Done(response) => return Ok(Attempt::Before(response)),
        Claim::Granted(unbegun) => unbegun.begin(),
    };
    let work = work(Once::new(ticket.clone()));
    let (state, places) = (state.clone(), (state.detach(), in_flight));
    let work = tokio::spawn(carried(on_behalf(async move {
        let _places = places;
        let done = work.await;
        if done.is_err() {
            let_go(&state, &ticket, Written::Surely).await;
        }
        done
    })));
    work.await.map_err(Problem::internal)?.map(Attempt::Now)
}

enum Claim {
    /// There is no key.
    None,
    Granted(Unbegun),
    Done(Response),
}

/// A claim for which nothing has begun. Whoever leaves now lets go of it: nobody works for it, and retries would be told to wait until it lapses.
struct Unbegun {
    state: ApiState,
    ticket: Ticket,
    has_begun: bool,
}

impl Unbegun {
    fn begin(mut self) -> Ticket {
        self.has_begun = true;
        self.ticket.clone()
    }
}

impl Drop for Unbegun {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if self.has_begun {
            return;
        }
        let (state, ticket, place) = (self.state.clone(), self.ticket.clone(), self.state.detach());
        let work = async move {
            let _place = place;
            let_go(&state, &ticket, Written::Surely).await;
        };
        runtime.spawn(carried(on_behalf(work)));
    }
}

async fn claim(state: &ApiState, caller: &Caller, keyed: Keyed) -> Result<Claim, Problem> {
    match keyed.key {
        // Boxed: runs without a key need no room for it.
        Some(key) => Box::pin(claim_key(state, caller, key, keyed.lapses_at)).await,
        None => Ok(Claim::None),
    }
}

async fn claim_key(
    state: &ApiState,
    caller: &Caller,
    (key, fingerprint): (String, String),
    lapses_at: Timestamp,
) -> Result<Claim, Problem> {
    let scope = Scope {
        company: caller.payer().clone(),
        route: caller.operation().operation.path,
        key,
    };
    let (state, times) = (state.clone(), (caller.now(), lapses_at));
    // A commit that has begun ends, whoever waits for it: so somebody has to learn of the claim.
    let claiming = tokio::spawn(carried(on_behalf(async move {
        let mut granted = None;
        let claimed = claim_scope(&state, scope, &fingerprint, times, &mut granted).await;
        match (claimed, granted) {
            (Ok(Some(response)), _) => Ok(Claim::Done(response)),
            (Ok(None), Some(ticket)) => Ok(Claim::Granted(Unbegun {
                state,
                ticket,
                has_begun: false,
            })),
            (Ok(None), None) => Err(in_progress()),
            // The claim may be there, if its commit was not answered.
            (Err(problem), Some(ticket)) => {
                let_go(&state, &ticket, Written::Perhaps).await;
                Err(problem)
            }
            (Err(problem), None) => Err(problem),
        }
    })));
    claiming.await.map_err(Problem::internal)?
}

/// What was answered before, if anything was. The ticket of a claim is in `granted` before its commit.
async fn claim_scope(
    state: &ApiState,
    scope: Scope,
    fingerprint: &str,
    (now, lapses_at): (Timestamp, Timestamp),
    granted: &mut Option<Ticket>,
) -> Result<Option<Response>, Problem> {
    let bytes_max = state.settings().kept_answer_bytes_max;
    state
        .db()
        .write(async |write| {
            match store::claim(write, scope, fingerprint, now, lapses_at, bytes_max).await? {
                store::Claim::Full => Err(full(bytes_max)),
                store::Claim::Granted(ticket) => {
                    *granted = Some(ticket);
                    Ok(None)
                }
                store::Claim::Done(answer) => replay(answer).map(Some),
                store::Claim::InFlight => Err(in_progress()),
                store::Claim::Reused => Err(reused()),
            }
        })
        .await
}

fn in_progress() -> Problem {
    Problem::of(
        refusals::IDEMPOTENCY_IN_PROGRESS,
        "a request with this Idempotency-Key is being executed; retry in a moment",
    )
    .retry_after(1)
}

pub(crate) fn reused() -> Problem {
    Problem::of(
        refusals::IDEMPOTENCY_KEY_REUSED,
        "this Idempotency-Key was used for another request; use a new key for every new request",
    )
}

/// Nothing was executed: an answer that cannot be kept could not protect its request.
fn full(bytes_max: i64) -> Problem {
    let seconds = SWEEP_EVERY.as_secs();
    Problem::of(
        refusals::IDEMPOTENCY_LIMIT_EXCEEDED,
        "the answers kept for your company's Idempotency-Keys take all the room they may; they are kept for 24 hours: send fewer requests \
         with a key, or try again later",
    )
    .detail("limit_bytes", bytes_max)
    .detail("retry_after", seconds)
    .retry_after(seconds)
}

fn too_large(answer: KeptAnswer) -> Problem {
    let execution = answer.execution.map(|execution| execution.to_string());
    Problem::of(
        refusals::IDEMPOTENCY_ANSWER_TOO_LARGE,
        "the request with this Idempotency-Key was executed, once, and its answer was not kept, being large or no JSON; send a new key to execute it anew",
    )
    .detail("execution_id", execution)
    .detail("location", answer.location)
    .detail("answer_bytes_max", store::ANSWER_BYTES_MAX)
}

/// The refusal of an operation that does nothing without a key.
pub(crate) fn missing() -> Problem {
    let error = FieldError::new(
        "Idempotency-Key",
        "required",
        "is required here: send a new one with every new request, and the same one when you repeat it",
    );
    Problem::fields(refusals::INVALID_REQUEST, vec![error])
}

/// What stops the host waits for it.
async fn let_go(state: &ApiState, ticket: &Ticket, written: Written) {
    claims::let_go(state.app(), ticket, written, state.detach()).await;
}

/// Has a handler respond at most once per key.
pub(crate) async fn respond(mounted: &Arc<Mounted>, request: Request, state: ApiState) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return mounted.answer(request, state).await;
    };
    let (parts, body) = request.into_parts();
    let read = async {
        let bytes = reading::read(&parts, body, &state).await?;
        let keyed = Keyed::read(&parts, &bytes, None, renewed::lapses_at(&state))?;
        Ok((bytes, keyed))
    };
    let (bytes, keyed) = match read.await {
        Ok(read) => read,
        Err(problem) => return Problem::into_response(problem),
    };
    let handle = |once: Once| {
        let mut request = Request::from_parts(parts, Body::from(bytes));
        request.extensions_mut().insert(once.clone());
        let response = mounted.answer(request, state.clone());
        let state = state.clone();
        async move {
            let Some(ticket) = once.ticket() else {
                return Ok(response.await);
            };
            let kept = async {
                let response = response.await;
                match once.is_kept() && response.status().is_success() {
                    true => Ok(response),
                    false => keep(&state, ticket, response).await,
                }
            };
            renewed::meanwhile(&state, ticket, kept).await
        }
    };
    match once(&state, &caller, keyed, handle).await {
        Ok(Attempt::Now(response) | Attempt::Before(response)) => response,
        Err(problem) => problem.into_response(),
    }
}

/// Keeps what was executed, and lets go of what failed.
async fn keep(state: &ApiState, ticket: &Ticket, response: Response) -> Result<Response, Problem> {
    if !response.status().is_success() {
        let_go(state, ticket, Written::Surely).await;
        return Ok(response);
    }
    let (mut parts, body) = response.into_parts();
    let bytes = body.collect().await.map_err(Problem::internal)?.to_bytes();
    let kept = parts
        .extensions
        .remove::<Kept>()
        .map_or_else(|| bytes.clone(), |kept| kept.0);
    let location = parts
        .headers
        .get(header::LOCATION)
        .and_then(|location| location.to_str().ok())
        .map(str::to_owned);
    let answer = KeptAnswer::of(parts.status.as_u16(), location, &kept, None);
    complete(state, ticket, &answer).await;
    Ok(Response::from_parts(parts, Body::from(bytes)))
}

/// Keeps the answer of what was executed and committed before: whoever was told that it failed would have it executed again. Where the store does
/// not take it, the claim stays until it lapses.
async fn complete(state: &ApiState, ticket: &Ticket, answer: &KeptAnswer) {
    let until = kept_until();
    for tried in 1..=KEEP_TRIES {
        let kept = state.db().write(async |write| -> Result<_, StoreError> {
            // One that was kept by a commit that was not answered stays as it is.
            store::complete(write, ticket, answer, until).await
        });
        match kept.await {
            Ok(_) => return,
            Err(error) => tracing::warn!(%error, tried, "an answer could not be kept"),
        }
        tokio::time::sleep(KEEP_PAUSE).await;
    }
}

fn replay(answer: KeptAnswer) -> Result<Response, Problem> {
    let Some(body) = answer.body.clone() else {
        return Err(too_large(answer));
    };
    let status = u16::try_from(answer.status)
        .ok()
        .and_then(|status| StatusCode::from_u16(status).ok())
        .unwrap_or(StatusCode::OK);
    let mut response = match body.is_empty() {
        true => status.into_response(),
        false => json(status, Bytes::from(body)),
    };
    response
        .headers_mut()
        .insert(REPLAYED, HeaderValue::from_static("true"));
    let lines = answer.headers.as_deref().unwrap_or_default().lines();
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        let name = HeaderName::try_from(name).map_err(Problem::internal)?;
        let value = HeaderValue::from_str(value).map_err(Problem::internal)?;
        response.headers_mut().insert(name, value);
    }
    if let Some(location) = answer.location {
        response.headers_mut().insert(
            header::LOCATION,
            HeaderValue::from_str(&location).map_err(Problem::internal)?,
        );
    }
    Ok(response)
}

/// Headers of an answer as they are kept with it: a line for each.
pub(crate) fn lines(headers: &HeaderMap) -> String {
    let mut lines = String::new();
    for (name, value) in headers {
        if let Ok(value) = value.to_str() {
            lines += &format!("{name}: {value}\n");
        }
    }
    lines
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
            Err(Problem::fields(refusals::INVALID_REQUEST, vec![error]))
        }
    }
}

/// SHA-256 over method, path, query and raw body, and the product: on the data route host and key decide which one a path means.
fn fingerprint(parts: &Parts, body: &[u8], product: Option<&str>) -> String {
    let mut hash = Sha256::new();
    for part in [
        parts.method.as_str().as_bytes(),
        parts.uri.path().as_bytes(),
        parts.uri.query().unwrap_or_default().as_bytes(),
    ] {
        hash.update(part);
        hash.update([0]);
    }
    if let Some(product) = product {
        hash.update(product);
        hash.update([0]);
    }
    hash.update(body);
    hex::encode(hash.finalize())
}
