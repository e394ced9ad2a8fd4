//! The order of checks, in one place: (0) body size, (a) key present, (b) well-formed, (c) known, active and not expired,
//! (d) kind, company, role and permission, (e) limits. Then the turn of what only reads, and the query string; everything later is the handler's.
//! Without a key there are (0), the address's limits and the query string; what reads the store then takes its place itself ([`crate::nobody`]).
//!
//! The gate never reads a body and never looks a path up in the store, except for platform staff in a foreign company.

use crate::caller::Caller;
use crate::coming;
use crate::cookies;
use crate::finish::Call;
use crate::limiter::{Limits, under_load};
use crate::mounted::Mounted;
use crate::operation::{Access, CompanyRule, Operation, Verb};
use crate::pace::Pace;
use crate::principal::{Principal, Scope};
use crate::problem::Problem;
use crate::refusals;
use crate::router::Names;
use crate::state::ApiState;
use crate::unread::{NOBODYS_BYTES_MAX, Tally, Turn};
use crate::uploads::Place;
use axum::extract::Request;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body::Body as _;
use souk_domain::ids::CompanyId;
use souk_domain::keys::{KeyDigest, check_format};
use souk_domain::roles::{Permission, Role};
use souk_domain::sessions::{Token, TokenError};
use souk_domain::time::Timestamp;
use souk_store::Cached;
use souk_store::db::READ_WITHIN;
use std::sync::Arc;

/// The header that carries a key.
const KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
/// The header that shows that a session's own page asks.
const CSRF_HEADER: HeaderName = HeaderName::from_static("x-csrf-token");

/// What a call holds until its answer is ready, and whether there is any sense in asking the handler.
pub struct Passed {
    pub in_flight: Option<InFlight>,
    /// Of those who read the store.
    pub read: Option<Turn>,
    pub turn: Option<Turn>,
    /// What is wrong with the query: told beside what is wrong with the body.
    pub wrong_query: Option<Problem>,
}

/// A place among the calls in flight; dropping it frees it.
pub struct InFlight(Cached<Principal>);

impl InFlight {
    /// `None`: the key or its company have as many as they may.
    fn enter(state: &ApiState, principal: &Cached<Principal>) -> Option<InFlight> {
        let entered = principal.buckets.enter(calls_of(state, principal));
        entered.then(|| InFlight(principal.clone()))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.buckets.leave(&self.0.unread);
    }
}

/// What counts the calls in flight of a caller's company, and how many it may have.
fn calls_of<'a>(state: &ApiState, principal: &'a Principal) -> (&'a Tally, u32) {
    (&principal.unread, state.settings().company_calls_max)
}

/// Lets a request pass to its handler, with its [`Caller`] and [`Query`] in the extensions; `names` are with the caller where there is one.
pub async fn pass(
    state: &ApiState,
    mounted: &Arc<Mounted>,
    names: Names,
    request: &mut Request,
    call: &mut Call,
) -> Result<Passed, Problem> {
    let operation = &mounted.operation;
    call.operation = Some(mounted.clone());
    let size = check_size(mounted.description.body_bytes_max, request.headers());
    let (role, permission) = match operation.access {
        Access::Public => {
            if !operation.is_probe() {
                call.spend_address(state).await?;
            }
            if let Some(limit) = operation.hourly {
                call.spend_sign_in(state, limit).await?;
            }
            size?;
            check_nobodys_unread(state, operation)?;
            request.extensions_mut().insert(names);
            return Ok(Passed {
                in_flight: None,
                read: None,
                turn: None,
                wrong_query: mounted.description.query.read(request).err(),
            });
        }
        Access::Key { role, permission } => (role, permission),
        Access::Data => (Role::Analyst, Permission::Read),
    };
    if let Err(problem) = size {
        return Err(call.spend_address(state).await.err().unwrap_or(problem));
    }
    let takes_sessions = operation.takes_sessions();
    let principal = match authenticate(state, request.headers(), takes_sessions, call).await {
        Ok(principal) => principal,
        Err(Refused::Key(problem)) => {
            return Err(call.spend_address(state).await.err().unwrap_or(problem));
        }
        Err(Refused::Spent(problem) | Refused::Store(problem)) => return Err(problem),
    };
    let mut limits = Limits {
        own: principal.rate_limit,
        operation: mounted.bucket.zip(operation.hourly),
    };
    if operation.runs_connector {
        limits.own = under_load(limits.own, calls_of(state, &principal));
    }
    call.recognise(principal.clone(), limits);

    if principal.scope != Scope::Everything && operation.access != Access::Data {
        return Err(Problem::of(
            refusals::ENDPOINT_KEY_NOT_ALLOWED,
            "an endpoint key only reads its endpoint through /endpoints/v1/; use an analytics key here",
        ));
    }
    if principal.session().is_some() && operation.is_guarded() {
        check_csrf(request.headers())?;
    }
    if principal.is_suspended {
        return Err(suspended());
    }
    let foreign = check_company(mounted, &principal, request.uri().path())?;
    check_grant(&principal, role, permission)?;
    check_unread(state, operation, &principal)?;
    let place = place(state, mounted, &principal, request.headers())?;
    if let Some(place) = &place {
        coming::watch(request.body_mut(), place);
    }
    let in_flight = match operation.runs_connector {
        true => Some(InFlight::enter(state, &principal).ok_or_else(|| Problem::busy(1))?),
        false => None,
    };
    call.spend(limits).await?;
    if let Some(limit) = operation.hourly_each {
        // As the handler will read it: one thing must not have two spellings.
        let parameters = names.values(request.uri().path());
        for (_, thing) in parameters.unwrap_or_default() {
            Box::pin(call.spend_each(&thing, limit)).await?;
        }
    }

    let is_read = operation.reads_records();
    let read = match is_read {
        true => {
            let place = Box::pin(principal.unread.read()).await;
            Some(place.ok_or_else(|| Problem::busy(1))?)
        }
        false => None,
    };
    let turn = match is_read && principal.unread.are_others_served() {
        true => Box::pin(principal.unread.turn()).await,
        false => None,
    };
    if let Some(company) = &foreign {
        Box::pin(check_exists(state, company)).await?;
    }
    note_use(state, &principal, call).await;
    if !request.body().is_end_stream() {
        // For what its handler leaves of it.
        let pace = Pace::of(state, Some(&principal.company));
        request.extensions_mut().insert(pace);
    }
    request.extensions_mut().insert(Caller::new(
        principal,
        foreign,
        mounted.clone(),
        names,
        call,
        place,
    ));
    Ok(Passed {
        in_flight,
        read,
        turn,
        wrong_query: mounted.description.query.read(request).err(),
    })
}

/// Whether who was let in would still be, and as what: for a request or an answer that takes its time.
pub(crate) async fn still_passes(
    state: &ApiState,
    headers: &HeaderMap,
    now: Timestamp,
) -> Result<Cached<Principal>, Problem> {
    let key = headers.get(KEY_HEADER).and_then(|key| key.to_str().ok());
    // An empty one is none, as when it was let in.
    let key = key.filter(|key| !key.is_empty());
    let principal = match (key, cookies::session(headers)) {
        (Some(key), _) => {
            let known = state.principal(KeyDigest::of(key), now).await?;
            known.ok_or_else(gone)?
        }
        (None, Some(Ok(token))) => {
            let known = state.session_principal(token.digest(), now).await?;
            known.ok_or_else(Problem::session_expired)?
        }
        (None, _) => return Err(gone()),
    };
    match principal.refusal(now) {
        Some(problem) => Err(problem),
        None if principal.is_suspended => Err(suspended()),
        None => Ok(principal),
    }
}

/// A key that was here a moment ago.
pub(crate) fn gone() -> Problem {
    Problem::invalid_key("this API key is not known here any more", None, None)
}

pub(crate) fn suspended() -> Problem {
    Problem::of(
        refusals::COMPANY_SUSPENDED,
        "this company is suspended; ask the platform's staff",
    )
}

/// A request that no operation takes still shows whose limits it counted against.
pub async fn pass_unrouted(
    state: &ApiState,
    headers: &HeaderMap,
    call: &mut Call,
) -> Result<(), Problem> {
    match authenticate(state, headers, true, call).await {
        Ok(principal) => {
            let limits = Limits {
                own: principal.rate_limit,
                operation: None,
            };
            call.recognise(principal, limits);
            call.spend(limits).await
        }
        Err(Refused::Key(_)) => call.spend_address(state).await,
        Err(Refused::Spent(problem)) if problem.status() == StatusCode::TOO_MANY_REQUESTS => {
            Err(problem)
        }
        Err(Refused::Spent(_) | Refused::Store(_)) => Ok(()),
    }
}

enum Refused {
    Key(Problem),
    /// The same, and the address has paid for it.
    Spent(Problem),
    Store(Problem),
}

/// (a) to (c). A key goes before a cookie, which browsers send whether or not they are meant to.
async fn authenticate(
    state: &ApiState,
    headers: &HeaderMap,
    takes_sessions: bool,
    call: &mut Call,
) -> Result<Cached<Principal>, Refused> {
    let mut sent = headers.get_all(KEY_HEADER).iter();
    let text = match (sent.next(), sent.next()) {
        (Some(one), None) if !one.is_empty() => one.to_str().ok(),
        (Some(_), Some(_)) => None,
        _ => {
            let cookie = cookies::session(headers).filter(|_| takes_sessions);
            let cookie = cookie.ok_or_else(|| Refused::Key(Problem::missing_key()))?;
            return Box::pin(signed_in(state, cookie, call)).await;
        }
    };
    let malformed = || {
        Refused::Key(Problem::invalid_key(
            "this is not an API key; check that it was copied completely",
            None,
            None,
        ))
    };
    let text = text.ok_or_else(malformed)?;
    check_format(text).map_err(|_| malformed())?;
    let digest = KeyDigest::of(text);
    let principal = match state.known_principal(&digest) {
        Some(principal) => principal,
        None => Box::pin(look_up(state, Shown::Key(digest), call)).await?,
    };
    match principal.refusal(call.now) {
        Some(problem) => Err(Refused::Key(problem)),
        None => Ok(principal),
    }
}

/// The same by the cookie of a session.
async fn signed_in(
    state: &ApiState,
    cookie: Result<Token, TokenError>,
    call: &mut Call,
) -> Result<Cached<Principal>, Refused> {
    let over = || Refused::Key(Problem::session_expired());
    let digest = cookie.map_err(|_| over())?.digest();
    if let Some(principal) = state.known_principal(&digest) {
        if principal.refusal(call.now).is_none() {
            return Ok(principal);
        }
        state.forget_principal(&digest);
    }
    let principal = look_up(state, Shown::Session(digest), call).await?;
    match principal.refusal(call.now) {
        Some(problem) => Err(Refused::Key(problem)),
        None => Ok(principal),
    }
}

/// What is looked up.
enum Shown {
    Key(KeyDigest),
    Session(KeyDigest),
}

/// A credential that was not seen lately. Its address pays before the store is asked, and gets that back for one that exists.
async fn look_up(
    state: &ApiState,
    shown: Shown,
    call: &mut Call,
) -> Result<Cached<Principal>, Refused> {
    let spent = call.spend_address(state).await;
    if let Err(exceeded) = &spent
        && !call.may_look_up(state)
    {
        return Err(Refused::Spent(exceeded.clone()));
    }
    let (found, unknown) = match shown {
        Shown::Key(digest) => (
            state.principal(digest, call.now).await,
            Problem::invalid_key("this API key is not known here", None, None),
        ),
        Shown::Session(digest) => (
            state.session_principal(digest, call.now).await,
            Problem::session_expired(),
        ),
    };
    if spent.is_ok() && !matches!(found, Ok(None)) {
        call.give_back_address(state);
    }
    match found {
        Ok(Some(principal)) => Ok(principal),
        Ok(None) => Err(Refused::Spent(spent.err().unwrap_or(unknown))),
        Err(problem) => Err(Refused::Store(problem)),
    }
}

/// Another site can have a browser send its cookie along, but not this header: it does not know the token, and would have to ask first.
fn check_csrf(headers: &HeaderMap) -> Result<(), Problem> {
    let shown = headers.get(CSRF_HEADER).map(HeaderValue::as_bytes);
    let token = cookies::session(headers).and_then(Result::ok);
    match (token, shown) {
        (Some(token), Some(shown)) if token.is_csrf(shown) => Ok(()),
        _ => Err(Problem::of(
            refusals::CSRF_TOKEN_REQUIRED,
            "send the session's csrf_token (GET /users/me) in the header x-csrf-token",
        )),
    }
}

/// From time to time the store is told that a session is in use.
async fn note_use(state: &ApiState, principal: &Principal, call: &Call) {
    let Some(session) = principal.unnoted(call.now) else {
        return;
    };
    let noted = state
        .db()
        .write(async |write| souk_store::sessions::seen(write, session, call.now).await);
    if let Err(error) = Box::pin(noted).await {
        tracing::warn!(%error, %session, "the use of a session could not be noted; it may seem idle");
    }
}

/// A company whose clients leave too much unread gets no new answers that may be large. What changes something answers little.
fn check_unread(
    state: &ApiState,
    operation: &Operation,
    principal: &Principal,
) -> Result<(), Problem> {
    let (bytes, bytes_max) = (principal.unread.bytes(), state.settings().unread_bytes_max);
    match bytes > bytes_max && (operation.runs_connector || operation.verb == Verb::Get) {
        true => Err(Problem::unread(bytes, bytes_max)),
        false => Ok(()),
    }
}

/// The same of all who have no key together, by themselves of the reference. Probes are always answered.
fn check_nobodys_unread(state: &ApiState, operation: &Operation) -> Result<(), Problem> {
    let may_be_large = operation.verb == Verb::Get && !operation.is_probe();
    let bytes = state.nobodys_answers(operation).bytes();
    match may_be_large && bytes > NOBODYS_BYTES_MAX {
        true => Err(Problem::unavailable(
            "too many answers wait for clients without a key to read them; try again in a moment",
        )),
        false => Ok(()),
    }
}

/// An upload's place, for as many bytes as it says that it has: before any of them is read.
fn place(
    state: &ApiState,
    mounted: &Mounted,
    principal: &Principal,
    headers: &HeaderMap,
) -> Result<Option<Place>, Problem> {
    let bytes_max = mounted.description.upload_bytes_max;
    if bytes_max == 0 {
        return Ok(None);
    }
    let bytes = declared(headers).unwrap_or(u64::MAX);
    let bytes = bytes.min(bytes_max);
    let place = state.uploads().enter(&principal.company, bytes);
    place.map(Some).map_err(Problem::no_place)
}

/// (d), the company: by comparison only, so that companies that exist and those that do not answer alike.
/// Answers the foreign company that platform staff act in.
fn check_company(
    mounted: &Mounted,
    principal: &Principal,
    path: &str,
) -> Result<Option<CompanyId>, Problem> {
    if mounted.operation.company == CompanyRule::Unchecked {
        return Ok(None);
    }
    let denied = || {
        Problem::of(
            refusals::COMPANY_ACCESS_DENIED,
            "this key belongs to another company; use your own company_id in the path",
        )
    };
    let segment = mounted.path_company(path).ok_or_else(denied)?;
    if segment == principal.company.as_str() {
        return Ok(None);
    }
    match principal.grant.role {
        Role::SuperAdmin => CompanyId::parse(segment)
            .map(Some)
            .map_err(|_| Problem::not_found("company", segment)),
        _ => Err(denied()),
    }
}

/// (d), role and permission.
fn check_grant(principal: &Principal, role: Role, permission: Permission) -> Result<(), Problem> {
    if principal.grant.role < role {
        return Err(Problem::of(
            refusals::INSUFFICIENT_ROLE,
            format!("this needs a key with role {role} or higher"),
        )
        .detail("required_role", role.level())
        .detail("role", principal.grant.role.level()));
    }
    if !principal.grant.permissions.has(permission) {
        return Err(Problem::of(
            refusals::INSUFFICIENT_PERMISSIONS,
            format!(
                "this needs a key with the permission {}",
                permission.as_str()
            ),
        )
        .detail("required_permission", permission.as_str()));
    }
    Ok(())
}

async fn check_exists(state: &ApiState, company: &CompanyId) -> Result<(), Problem> {
    let db = state.db();
    let found = async { souk_store::companies::get(&mut *db.read().await?, company).await };
    match db.answered(READ_WITHIN, found).await? {
        Some(_) => Ok(()),
        None => Err(Problem::not_found("company", company.as_str())),
    }
}

/// (0): a body that says itself that it is too large is not waited for.
fn check_size(limit: Option<u64>, headers: &HeaderMap) -> Result<(), Problem> {
    match (limit, declared(headers)) {
        (Some(limit), Some(length)) if length > limit => Err(Problem::too_large(limit)),
        _ => Ok(()),
    }
}

fn declared(headers: &HeaderMap) -> Option<u64> {
    let length = headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}
