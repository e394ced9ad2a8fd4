//! The frame of every call: a request id and the time at the start, the headers that every answer carries at the end.

use crate::limiter::{Limits, Quota, Scope};
use crate::mounted::Mounted;
use crate::pace::Pace;
use crate::principal::Principal;
use crate::problem::Problem;
use crate::settings::peer;
use crate::state::ApiState;
use crate::unread;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::BytesMut;
use http::StatusCode;
use http::header::{self, HeaderName, HeaderValue};
use souk_app::context::{Context, Trace};
use souk_app::spans::{Followed, Labels};
use souk_domain::ids::RequestId;
use souk_domain::time::Timestamp;
use souk_store::Cached;
use souk_store::teller::Asked;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// What is said of calls, for filters: `--log warn,souk::access=debug` has a line for every call.
const ACCESS: &str = "souk::access";
const JSON: HeaderValue = HeaderValue::from_static("application/json");

const HOUR_SECONDS: u32 = 3_600;
/// Of the longest month.
const MONTH_SECONDS: u32 = 31 * 86_400;

/// A piece of a header's value. Formatting is dear for what each answer says six times.
#[derive(Clone, Copy)]
enum Part<'a> {
    Text(&'a str),
    Number(u32),
}

/// One request on its way through.
pub struct Call {
    pub now: Timestamp,
    pub request_id: RequestId,
    pub peer: IpAddr,
    pub operation: Option<Arc<Mounted>>,
    began: Instant,
    caller: Option<(Cached<Principal>, Limits)>,
    shown: Option<(Quota, Scope)>,
    spent: bool,
    followed: Option<Arc<Followed>>,
    /// Of a call that is followed: what it was refused with.
    code: Option<String>,
}

impl Call {
    pub fn begin(request: &Request, state: &ApiState) -> Call {
        let peer = peer(request.extensions());
        Call::of(state.settings().client(peer, request.headers()))
    }

    fn of(peer: IpAddr) -> Call {
        let now = Timestamp::from(SystemTime::now());
        Call {
            now,
            request_id: RequestId::generate_at(now),
            peer,
            operation: None,
            began: Instant::now(),
            caller: None,
            shown: None,
            spent: false,
            followed: None,
            code: None,
        }
    }

    /// What is done for this call is known by.
    pub(crate) fn context(
        &mut self,
        mounted: &Mounted,
        request: &Request,
        state: &ApiState,
    ) -> Context {
        let trace = request.headers().get(TRACEPARENT);
        let trace = trace.and_then(|header| Trace::parse(header.as_bytes()));
        let settings = state.settings();
        if let Some(recorder) = &settings.recorder {
            let is_trusted = settings.trusts(peer(request.extensions()));
            self.followed = recorder.follow(trace, is_trusted);
        }
        let followed = self.followed.clone();
        Context {
            request_id: self.request_id.shared(),
            operation: mounted.operation.id,
            trace: followed.as_ref().map(|followed| followed.trace()).or(trace),
            followed,
        }
    }

    fn seconds(&self) -> u32 {
        u32::try_from(self.now.seconds()).unwrap_or(u32::MAX)
    }

    /// From here on the key's numbers are shown.
    pub fn recognise(&mut self, principal: Cached<Principal>, limits: Limits) {
        self.caller = Some((principal, limits));
    }

    /// The pace at which the rest of the request may come.
    pub(crate) fn pace(&self, state: &ApiState) -> Pace {
        let company = self
            .caller
            .as_ref()
            .map(|(principal, _)| &principal.company);
        Pace::of(state, company)
    }

    /// Spends one call of the key, unless its company has none left this month.
    pub async fn spend(&mut self, limits: Limits) -> Result<(), Problem> {
        let Some((principal, _)) = &self.caller else {
            return Ok(());
        };
        let (plan, allotment) = &principal.allotted;
        let left = allotment.left(plan.monthly_requests(), self.now);
        if left.remaining == 0 && !self.manages_keys() {
            self.shown = Some((left, Scope::Company));
            return Err(self.exceeded(left, Scope::Company));
        }
        match principal.buckets.take(limits, self.seconds()).await {
            Ok(shown) => {
                self.shown = Some(shown);
                self.spent = true;
                Ok(())
            }
            Err((quota, scope)) => {
                let full = Limits {
                    own: principal.rate_limit,
                    operation: None,
                };
                let (of_full, _) = principal.buckets.peek(full, self.seconds());
                let is_lowered = limits.own < full.own && scope == Scope::Key;
                if is_lowered && of_full.remaining > 0 {
                    self.shown = Some((of_full, scope));
                    return Err(Problem::loaded(quota.limit));
                }
                self.shown = Some((quota, scope));
                Err(self.exceeded(quota, scope))
            }
        }
    }

    /// Spends one call of the key for `thing`, after [`Call::spend`].
    pub async fn spend_each(&mut self, thing: &str, limit: u32) -> Result<(), Problem> {
        let Some((principal, _)) = &self.caller else {
            return Ok(());
        };
        let taken = principal
            .buckets
            .take_each(thing, limit, self.seconds())
            .await;
        match taken {
            Ok(quota) => {
                let binds = |shown: (Quota, Scope)| quota.remaining <= shown.0.remaining;
                if self.shown.is_none_or(binds) {
                    self.shown = Some((quota, Scope::Operation));
                }
                Ok(())
            }
            Err(quota) => {
                self.shown = Some((quota, Scope::Operation));
                Err(self.exceeded(quota, Scope::Operation))
            }
        }
    }

    /// Spends one call of the address: for requests that no key answers for.
    pub async fn spend_address(&mut self, state: &ApiState) -> Result<(), Problem> {
        let limiter = state.limiter();
        let taken = limiter.take_address(self.peer, self.seconds()).await;
        self.show_address(taken)
    }

    /// The same where nobody can be waited for.
    fn spend_address_at_hand(&mut self, state: &ApiState) -> Result<(), Problem> {
        let limiter = state.limiter();
        let taken = limiter.take_address_at_hand(self.peer, self.seconds());
        self.show_address(taken)
    }

    fn show_address(&mut self, taken: Result<Quota, Quota>) -> Result<(), Problem> {
        match taken {
            Ok(quota) => {
                self.shown = Some((quota, Scope::Ip));
                Ok(())
            }
            Err(quota) => {
                self.shown = Some((quota, Scope::Ip));
                Err(self.exceeded(quota, Scope::Ip))
            }
        }
    }

    /// Spends one call of the address for an operation that lets somebody in, after [`Call::spend_address`].
    pub async fn spend_sign_in(&mut self, state: &ApiState, limit: u32) -> Result<(), Problem> {
        let taken = state
            .limiter()
            .take_sign_in(self.peer, limit, self.seconds())
            .await;
        let (Ok(quota) | Err(quota)) = taken;
        self.shown = Some((quota, Scope::Ip));
        taken
            .map(drop)
            .map_err(|quota| self.exceeded(quota, Scope::Ip))
    }

    /// Undoes a [`Call::spend_address`]: somebody answers for the request after all.
    pub fn give_back_address(&mut self, state: &ApiState) {
        state.limiter().give_back_address(self.peer, self.seconds());
        self.shown = None;
    }

    /// Whether a key may be looked up although the address has spent its hour.
    pub fn may_look_up(&self, state: &ApiState) -> bool {
        state.limiter().may_look_up(self.peer, self.seconds())
    }

    fn exceeded(&self, quota: Quota, scope: Scope) -> Problem {
        let retry_after = quota.reset.saturating_sub(self.seconds()).max(1);
        let limit = quota.limit;
        let message = match scope {
            Scope::Company => format!(
                "your company's plan allows {limit} requests a month, and they are used up; the next month begins in {retry_after} s"
            ),
            _ => format!(
                "the limit of {limit} requests an hour is used up; try again in {retry_after} s"
            ),
        };
        Problem::new(
            http::StatusCode::TOO_MANY_REQUESTS,
            "RATE_LIMIT_EXCEEDED",
            message,
        )
        .detail("limit", quota.limit)
        .detail("remaining", 0)
        .detail("reset", quota.reset)
        .detail("retry_after", retry_after)
        .detail("scope", scope.name())
        .detail("operation", self.operation_id())
        .retry_after(u64::from(retry_after))
    }

    fn manages_keys(&self) -> bool {
        let operation = self.operation.as_ref();
        operation.is_some_and(|mounted| mounted.operation.manages_keys())
    }

    fn operation_id(&self) -> Option<&'static str> {
        self.operation.as_ref().map(|mounted| mounted.operation.id)
    }

    /// Writes a problem's body, and the headers of every answer. Answers in whose tally its bytes are counted; without a key it is nobody's.
    pub fn finish(
        mut self,
        state: &ApiState,
        response: &mut Response,
    ) -> Option<Cached<Principal>> {
        if response.status().is_client_error() || response.status().is_server_error() {
            self.render_problem(state, response);
        } else if self.is_signed() {
            self.give_back_address(state);
        }
        let seconds = self.seconds();
        let (quota, scope) = match (self.shown, &self.caller) {
            (Some(shown), _) => shown,
            (None, Some((principal, limits))) => principal.buckets.peek(*limits, seconds),
            (None, None) => (state.limiter().peek_address(self.peer, seconds), Scope::Ip),
        };
        self.write_headers(quota, scope, response);
        self.count_use(state, response);
        self.observe(state, response.status());
        let Some((principal, _)) = self.caller else {
            let operation = self.operation.as_ref();
            let tally = operation.map_or_else(
                || state.nobody(),
                |mounted| state.nobodys_answers(&mounted.operation),
            );
            unread::count(response, tally);
            return None;
        };
        unread::count(response, &principal.unread);
        Some(principal)
    }

    /// Whether what was answered well came from somebody who signs what he sends.
    fn is_signed(&self) -> bool {
        let mounted = self.operation.as_ref();
        mounted.is_some_and(|mounted| mounted.operation.signed)
    }

    /// For the statistics of who asks, and against the company's plan. Requests that nobody answers for, or that no operation takes, are not
    /// counted.
    fn count_use(&self, state: &ApiState, response: &Response) {
        if let (Some((principal, _)), Some(mounted)) = (&self.caller, &self.operation) {
            let failed = response.status().is_client_error() || response.status().is_server_error();
            state.app().teller.count_use(Asked {
                actor: &principal.actor,
                company: &principal.company,
                route: mounted.prefix,
                at: self.now,
                failed,
                admitted: self.spent,
            });
            let (_, allotment) = &principal.allotted;
            // What a limit refuses is bounded by nothing: whoever holds one key of a company could use up its month.
            if self.spent {
                allotment.count(self.now);
            }
            allotment.keep_up(state.db(), self.now);
        }
    }

    fn observe(&self, state: &ApiState, status: StatusCode) {
        let took = self.began.elapsed();
        let counts = match &self.operation {
            Some(mounted) => &mounted.counts,
            None => &state.observed().unrouted,
        };
        counts.add(status.as_u16(), took);
        if let Some(followed) = &self.followed {
            self.end_followed(followed, status, took);
        }
        tracing::debug!(
            target: ACCESS,
            request_id = self.request_id.as_str(),
            operation = self.operation_id(),
            company = self.company(),
            status = status.as_u16(),
            us = took.as_micros() as u64,
            "answered"
        );
    }

    /// Its span, in the words of OpenTelemetry's conventions for HTTP where they have some. Neither the path nor the address: they are the
    /// client's, and may be secrets.
    #[cold]
    fn end_followed(&self, followed: &Followed, status: StatusCode, took: Duration) {
        let mut labels: Labels = vec![
            ("souk.request_id", self.request_id.as_str().into()),
            (
                "http.response.status_code",
                i64::from(status.as_u16()).into(),
            ),
        ];
        let mut name = "refused".to_owned();
        if let Some(mounted) = &self.operation {
            let operation = &mounted.operation;
            name = format!("{} {}", operation.verb.name(), operation.path);
            labels.push(("http.request.method", operation.verb.name().into()));
            labels.push(("http.route", operation.path.into()));
            labels.push(("souk.operation", operation.id.into()));
        }
        if let Some(company) = self.company() {
            labels.push(("souk.company_id", company.into()));
        }
        if let Some(code) = &self.code {
            labels.push(("souk.code", code.as_str().into()));
        }
        // A refusal that is the caller's doing is no failure of the server's.
        let failure = status.is_server_error().then(|| {
            let code = self.code.clone();
            code.unwrap_or_else(|| status.as_str().to_owned())
        });
        followed.end(name, took, labels, failure);
    }

    fn company(&self) -> Option<&str> {
        let (principal, _) = self.caller.as_ref()?;
        Some(principal.company.as_str())
    }

    /// The one line that the log has of a call that failed. Ours are warnings; a caller's own are told too, so that a request id leads somewhere.
    fn tell(&self, state: &ApiState, problem: &Problem) {
        let observed = state.observed();
        observed.refuse(problem.code());
        let is_ours = problem.status().is_server_error();
        if !is_ours && !tracing::enabled!(target: ACCESS, tracing::Level::INFO) {
            return;
        }
        // Of when it ended: calls that began at other times are told of in between.
        let ended = self.now.after(self.began.elapsed()).seconds();
        let second = u32::try_from(ended).unwrap_or(u32::MAX);
        let unsaid = match (problem.is_stores(), &self.caller) {
            (true, _) => observed.may_say_of_store(second),
            (false, Some((principal, _))) => observed.may_say(principal.unread.said(), second),
            (false, None) => observed.may_say(state.nobody().said(), second),
        };
        let Some(unsaid) = unsaid else {
            return;
        };
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: ACCESS,
                    request_id = self.request_id.as_str(),
                    operation = self.operation_id(),
                    company = self.company(),
                    address = %self.peer,
                    status = problem.status().as_u16(),
                    code = problem.code(),
                    blame = problem.member("blame"),
                    reason = problem.member("reason"),
                    execution_id = problem.member("execution_id"),
                    message = logged(problem.message()),
                    cause = problem.cause().map(logged),
                    ms = self.began.elapsed().as_millis() as u64,
                    unsaid = (unsaid > 0).then_some(unsaid),
                )
            };
        }
        match is_ours {
            true => line!(warn),
            false => line!(info),
        }
    }

    fn render_problem(&mut self, state: &ApiState, response: &mut Response) {
        let problem = match response.extensions_mut().remove::<Problem>() {
            Some(problem) => problem,
            None if is_json(response) => return,
            None => Problem::for_status(response.status()),
        };
        if let (true, true, Some((principal, limits))) =
            (problem.consumes_nothing(), self.spent, &self.caller)
        {
            principal.buckets.give_back(*limits, self.seconds());
            self.shown = None;
        }
        if self.followed.is_some() {
            self.code = Some(problem.code().to_owned());
        }
        self.tell(state, &problem);
        let (status, headers, body) = problem.into_parts(self.request_id.as_str());
        *response = Response::new(Body::from(body));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, JSON);
        for (name, value) in headers {
            response.headers_mut().insert(name, value);
        }
    }

    /// All values are cut from one buffer.
    fn write_headers(&self, quota: Quota, scope: Scope, response: &mut Response) {
        let policy = match scope {
            Scope::Operation => self.operation_id().unwrap_or("operation"),
            other => other.name(),
        };
        let Quota {
            limit,
            remaining,
            reset,
        } = quota;
        let left = reset.saturating_sub(self.seconds());
        let window = match scope {
            Scope::Company => MONTH_SECONDS,
            _ => HOUR_SECONDS,
        };
        let mut buffer = BytesMut::with_capacity(256);
        let mut value = |parts: &[Part<'_>]| {
            for part in parts {
                match part {
                    Part::Text(text) => buffer.extend_from_slice(text.as_bytes()),
                    Part::Number(number) => {
                        buffer.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
                    }
                }
            }
            // Digits and identifiers are valid in a header.
            HeaderValue::from_maybe_shared(buffer.split().freeze())
                .unwrap_or(HeaderValue::from_static(""))
        };
        let headers = response.headers_mut();
        headers.reserve(8);
        let (quote, policy) = (Part::Text("\""), Part::Text(policy));
        let (limit, remaining) = (Part::Number(limit), Part::Number(remaining));
        headers.insert(LIMIT, value(&[limit]));
        headers.insert(REMAINING, value(&[remaining]));
        headers.insert(RESET, value(&[Part::Number(reset)]));
        // "key";q=10000;w=3600
        let (q, w) = (Part::Text("\";q="), Part::Text(";w="));
        let parts = [quote, policy, q, limit, w, Part::Number(window)];
        headers.insert(POLICY, value(&parts));
        // "key";r=9999;t=1800
        let (r, t) = (Part::Text("\";r="), Part::Text(";t="));
        let parts = [quote, policy, r, remaining, t, Part::Number(left)];
        headers.insert(STATE, value(&parts));
        let request_id = Part::Text(self.request_id.as_str());
        headers.insert(REQUEST_ID, value(&[request_id]));
        let is_public = self.caller.is_none() && response.status().is_success();
        if !is_public {
            response
                .headers_mut()
                .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
    }
}

/// The answer to a request whose head could not be read, `status` being what is wrong with it. It counts against its address: no key
/// can be seen in it. Of a connection that is refused (429, 503) nothing was read.
pub fn unreadable(state: &ApiState, status: StatusCode, peer: IpAddr) -> Response<Vec<u8>> {
    let mut call = Call::of(peer);
    let refused = match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => None,
        _ => call.spend_address_at_hand(state).err(),
    };
    let problem = refused.unwrap_or_else(|| Problem::for_status(status));
    let (status, headers, body) = problem.into_parts(call.request_id.as_str());
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response.headers_mut().extend(headers);
    call.finish(state, &mut response);
    response.map(|_| body)
}

/// A line of the log has the beginning of what somebody else may have written.
fn logged(text: &str) -> &str {
    const LOGGED_BYTES_MAX: usize = 2_048;
    &text[..text.floor_char_boundary(LOGGED_BYTES_MAX)]
}

fn is_json(response: &Response) -> bool {
    response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}
