//! Requests to the connection's origin. The host joins the path to the base URL, adds the credentials that
//! are attached at egress, and follows no redirect.

use crate::io::{Exchange, Shared};
use crate::json::what_is_wrong;
use crate::{Error, Header, HttpFailure, HttpRequest, HttpResponse, Input, WireFault};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt::{Display, Write};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// What a response may hold unless the request says otherwise.
const RESPONSE_BYTES_DEFAULT: u64 = 8 << 20;
/// How long a request may take unless it says otherwise; the host's own deadline holds as well.
const TIMEOUT_MS_DEFAULT: u32 = 30_000;
/// Most requests have no more.
const HEADERS_USUAL: usize = 8;

/// What stands in a path or a query as it is (RFC 3986, "unreserved").
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// So many requests a host lets a session have under way, with those that were given up and that the source has not answered yet. One more is not asked
/// for: the host would fail it, too, where some were given up, and blame the connector where none was.
const UNDER_WAY_MAX: usize = 128;
/// How much of a refusal is kept for the connection's owner.
const REFUSAL_BYTES_KEPT: usize = 500;
/// A host sends no request to a longer path.
const PATH_BYTES_MAX: usize = 8 << 10;

/// Text as one segment of a path or one value of a query: nothing in it has a meaning any more. (Segments that are only dots still have
/// one: the host refuses a path with `..`.)
pub fn encoded(text: &str) -> impl Display {
    utf8_percent_encode(text, ENCODED)
}

/// A path that the source has led to (`next`, a link), if a host sends requests to it: below the base URL, and encoded. Any other path a host takes for the
/// connector's own mistake, which ends the session; here it is the source's.
pub fn led_to(path: &str) -> Result<&str, Error> {
    match is_sent(path) {
        true => Ok(path),
        false => Err(Error::source_failed(
            "bad_path",
            "the source leads on to what is no path below its address",
        )
        .detail(path)),
    }
}

fn is_sent(path: &str) -> bool {
    let is_plain = |byte: u8| !matches!(byte, 0..=b' ' | 0x7f) && !b"\\#<>`\"".contains(&byte);
    let segments = path.split('?').next().unwrap_or(path);
    path.starts_with('/')
        && path.len() <= PATH_BYTES_MAX
        && path.bytes().all(is_plain)
        && !segments.split('/').any(is_dots)
}

/// `.` and `..`, also percent-encoded, also with an encoded slash beside them.
fn is_dots(segment: &str) -> bool {
    let plain = segment
        .to_ascii_lowercase()
        .replace("%2e", ".")
        .replace("%2f", "/")
        .replace("%5c", "/");
    plain
        .split('/')
        .any(|part| matches!(part.split(';').next(), Some("." | "..")))
}

/// Sends requests; several may be under way at once.
#[derive(Clone)]
pub struct Http {
    shared: Rc<Shared>,
}

impl Http {
    pub(crate) fn new(shared: Rc<Shared>) -> Http {
        Http { shared }
    }

    /// The response, whatever its status, or what the host saw go wrong. A failure turns into an [`Error`]
    /// with `?`. So it does where the source has not answered 128 requests yet, those that were given up among them.
    pub async fn send(&self, request: Request) -> Result<HttpResponse, HttpFailure> {
        let id = {
            let mut exchanges = self.shared.exchanges.borrow_mut();
            exchanges.next_id = exchanges.next_id.wrapping_add(1);
            let id = exchanges.next_id;
            if exchanges.under_way >= UNDER_WAY_MAX {
                return Err(unanswered(id));
            }
            exchanges.under_way += 1;
            exchanges.waiting.insert(id, Exchange::default());
            id
        };
        let _forget = Forget {
            shared: &self.shared,
            id,
        };
        self.shared.step.borrow_mut().request(request.numbered(id));
        poll_fn(|context| {
            let mut exchanges = self.shared.exchanges.borrow_mut();
            let Some(exchange) = exchanges.waiting.get_mut(&id) else {
                return Poll::Pending;
            };
            match exchange.outcome.take() {
                Some(outcome) => Poll::Ready(outcome),
                None => {
                    exchange.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// A request that is dropped half way takes its place in the table with it; a late answer is ignored.
struct Forget<'a> {
    shared: &'a Shared,
    id: u32,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.shared.exchanges.borrow_mut().waiting.remove(&self.id);
    }
}

impl Shared {
    pub(crate) fn answered(&self, id: u32, outcome: Result<HttpResponse, HttpFailure>) {
        let waker = {
            let exchanges = &mut *self.exchanges.borrow_mut();
            exchanges.under_way = exchanges.under_way.saturating_sub(1);
            let Some(exchange) = exchanges.waiting.get_mut(&id) else {
                return;
            };
            exchange.outcome = Some(outcome);
            exchange.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cold]
fn unanswered(id: u32) -> HttpFailure {
    HttpFailure {
        id,
        fault: WireFault::Unreachable,
        message: format!(
            "the source has not answered {UNDER_WAY_MAX} requests, those that were given up among them"
        ),
    }
}

/// What a [`Machine`](crate::Machine) hears whose source is an API.
#[derive(Debug)]
pub enum Heard {
    /// A request has ended.
    Answer(Result<HttpResponse, HttpFailure>),
    PauseIsOver,
}

impl Heard {
    /// What an input is, with the number of the request or the pause that it is about. `None`: there is no wire, and an errand is a matter of
    /// its own.
    pub fn of(input: Input) -> Option<(u32, Heard)> {
        match input {
            Input::Response(response) => Some((response.id, Heard::Answer(Ok(response)))),
            Input::RequestFailed(failure) => Some((failure.id, Heard::Answer(Err(failure)))),
            Input::Woken(number) => Some((number, Heard::PauseIsOver)),
            _ => None,
        }
    }
}

/// A request under construction.
#[derive(Clone, Debug)]
pub struct Request {
    inner: HttpRequest,
}

impl Request {
    /// `path` begins with `/` and may carry a query.
    pub fn new(method: impl Into<String>, path: impl Into<String>) -> Request {
        Request {
            inner: HttpRequest {
                id: 0,
                method: method.into(),
                path: path.into(),
                headers: Vec::with_capacity(HEADERS_USUAL),
                body: Vec::new(),
                timeout_ms: TIMEOUT_MS_DEFAULT,
                response_bytes_max: RESPONSE_BYTES_DEFAULT,
            },
        }
    }

    pub fn get(path: impl Into<String>) -> Request {
        Request::new("GET", path)
    }

    pub fn post(path: impl Into<String>) -> Request {
        Request::new("POST", path)
    }

    /// Appends `name=value` to the path's query, both encoded.
    pub fn query(mut self, name: &str, value: impl Display) -> Request {
        let path = &mut self.inner.path;
        path.push(if path.contains('?') { '&' } else { '?' });
        // A String takes everything.
        let _ = write!(path, "{}={}", encoded(name), encoded(&value.to_string()));
        self
    }

    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Request {
        self.inner.headers.push(Header {
            name: name.into(),
            value: value.into(),
        });
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.inner.body = body.into();
        self
    }

    /// A JSON body with its content type.
    pub fn json(self, body: impl Into<Vec<u8>>) -> Request {
        self.header("content-type", "application/json").body(body)
    }

    pub fn timeout_ms(mut self, ms: u32) -> Request {
        self.inner.timeout_ms = ms;
        self
    }

    pub fn response_bytes_max(mut self, bytes: u64) -> Request {
        self.inner.response_bytes_max = bytes;
        self
    }

    /// As a [`Machine`](crate::Machine) sends it: `id` comes back with the response.
    pub fn numbered(self, id: u32) -> HttpRequest {
        HttpRequest { id, ..self.inner }
    }
}

const BUSY_TRIES_MAX: u32 = 6;
const BUSY_PAUSE_MS: u32 = 100;
const RETRY_AFTER_MAX_MS: u64 = 5_000;

impl HttpResponse {
    /// The first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value.as_str())
    }

    /// The response, if its status is 2xx; else the source failed.
    pub fn success(self) -> Result<HttpResponse, Error> {
        match self.status {
            200..300 => Ok(self),
            status => Err(
                Error::source_failed("bad_status", "the source answered with an error")
                    .source_code(status.to_string()),
            ),
        }
    }

    /// The response, if its status is 2xx; else whose fault that is, as HTTP has it: credentials (401), permission (403), a value of the
    /// caller's (400, 422), a thing that is not there (404, 410), time (408, 504), too many requests (429), a source that is down (502, 503).
    /// `Retry-After` is handed on, the beginning of the body is for the connection's owner.
    pub fn classified(self) -> Result<HttpResponse, Error> {
        let error = match self.status {
            200..300 => return Ok(self),
            400 | 422 => Error::invalid_request("refused", "the source refused the request"),
            401 => {
                Error::authentication("credentials_refused", "the source refused the credentials")
            }
            403 => Error::permission("forbidden", "the source does not allow this request"),
            404 | 410 => {
                Error::not_found("not_found", "the source does not have what was asked for")
            }
            408 | 504 => Error::timeout("source_timeout", "the source did not answer in time"),
            429 => Error::rate_limited("rate_limited", "the source has had too many requests"),
            502 | 503 => Error::unavailable("unavailable", "the source is not available"),
            300..400 => Error::configuration(
                "redirected",
                "the source is at another address: the connection's base URL must name it",
            ),
            _ => Error::source_failed("bad_status", "the source answered with an error"),
        };
        let text = String::from_utf8_lossy(&self.body[..self.body.len().min(REFUSAL_BYTES_KEPT)]);
        let error = match text.trim() {
            "" => error,
            text => error.detail(text),
        };
        let error = error.source_code(self.status.to_string());
        Err(match self.retry_after_ms() {
            Some(ms) => error.retry_after_ms(ms),
            None => error,
        })
    }

    /// How long the source asks to wait. A date counts from the response's own `Date`: there is no clock in here.
    pub fn retry_after_ms(&self) -> Option<u64> {
        let text = self.header("retry-after")?.trim();
        if let Ok(seconds) = text.parse::<u64>() {
            return Some(seconds.saturating_mul(1_000));
        }
        let until = httpdate::parse_http_date(text).ok()?;
        let now = httpdate::parse_http_date(self.header("date")?).ok()?;
        let wait = until.duration_since(now).unwrap_or_default();
        u64::try_from(wait.as_millis()).ok()
    }

    /// How long to wait before the same is asked again of a source that is busy and was asked so often again before: as long as it asks to wait,
    /// else 100 ms, doubled each time. `None` after six times, six seconds in all, or where it wants more than five seconds: then
    /// whoever asked is to ask again. Which statuses say that a source is busy, and what may be asked twice, differs.
    pub fn busy_pause_ms(&self, tries: u32) -> Option<u32> {
        if tries >= BUSY_TRIES_MAX {
            return None;
        }
        match self.retry_after_ms() {
            Some(ms) if ms > RETRY_AFTER_MAX_MS => None,
            Some(ms) => Some(u32::try_from(ms).unwrap_or(BUSY_PAUSE_MS).max(1)),
            None => Some(BUSY_PAUSE_MS << tries),
        }
    }

    /// Where the header `Link` says that the list goes on (RFC 8288): a path as it stands there, or an address ([`led_to`]).
    pub fn next_link(&self) -> Option<&str> {
        let links = self.header("link")?.split(',');
        links
            .filter_map(|link| link.trim().strip_prefix('<')?.split_once('>'))
            .find_map(|(target, parameters)| {
                let is_next = parameters.split(';').any(|parameter| {
                    let (name, value) = parameter.split_once('=').unwrap_or_default();
                    name.trim().eq_ignore_ascii_case("rel")
                        && value
                            .trim()
                            .trim_matches('"')
                            .split(' ')
                            .any(|rel| rel == "next")
                });
                is_next.then_some(target)
            })
    }

    /// The body as JSON, which may borrow from it: `&str`, `&RawValue`. The error says where it is wrong and in which way, and nothing of the content.
    pub fn json<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Error::source_failed(
                "bad_json",
                "the source's answer is not the JSON that was expected",
            )
            .detail(what_is_wrong(&error))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorClass;

    fn response(status: u16, headers: &[(&str, &str)]) -> HttpResponse {
        let headers = headers.iter().map(|(name, value)| Header {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        });
        HttpResponse {
            id: 1,
            status,
            headers: headers.collect(),
            body: b" no such league ".to_vec(),
        }
    }

    /// What is heard has the number under which it was asked for; of anything else an API's session hears nothing.
    #[test]
    fn what_is_heard_has_its_number() {
        let failure = HttpFailure {
            id: 2,
            fault: WireFault::Reset,
            message: String::new(),
        };
        let heard = Heard::of(Input::Response(response(500, &[])));
        assert!(matches!(heard, Some((1, Heard::Answer(Ok(_))))));
        let heard = Heard::of(Input::RequestFailed(failure));
        assert!(matches!(heard, Some((2, Heard::Answer(Err(_))))));
        let heard = Heard::of(Input::Woken(3));
        assert!(matches!(heard, Some((3, Heard::PauseIsOver))));
        assert!(Heard::of(Input::Closed).is_none());
    }

    #[test]
    fn who_is_busy_is_asked_again() {
        let pause = |headers: &[(&str, &str)], tries| response(503, headers).busy_pause_ms(tries);
        assert_eq!(pause(&[], 0), Some(100));
        assert_eq!(pause(&[], 5), Some(3_200));
        assert_eq!(pause(&[], 6), None);
        assert_eq!(pause(&[("Retry-After", "0")], 3), Some(1));
        assert_eq!(pause(&[("Retry-After", "5")], 3), Some(5_000));
        assert_eq!(pause(&[("Retry-After", "6")], 0), None);
    }

    /// Whatever a value holds, it is one value.
    #[test]
    fn values_do_not_leave_their_place() {
        let request = Request::get(format!("/teams/{}", encoded("a/b?c")))
            .query("q", "x&y=1 #é")
            .query("page", 7);
        assert_eq!(
            request.inner.path,
            "/teams/a%2Fb%3Fc?q=x%26y%3D1%20%23%C3%A9&page=7"
        );
    }

    /// What a source leads to is asked for if a host sends it, and else the source's fault.
    #[test]
    fn a_source_leads_below_its_own_address() {
        for path in [
            "/",
            "/items?page=2",
            "/.well-known/b..c?d=/../e",
            "/a%20b",
            "/grüße",
        ] {
            assert_eq!(led_to(path).ok(), Some(path));
        }
        let long = "/a".repeat(PATH_BYTES_MAX);
        for path in [
            "",
            "items",
            "https://elsewhere/",
            "/a b",
            "/a\nb",
            "/a\u{7f}",
            "/a#b",
            "/a\\b",
            "/a<b",
            "/a?b=\"c\"",
            "/..",
            "/a/./b",
            "/%2E%2e/b",
            "/a/..%2fb",
            "/..;a/b",
            long.as_str(),
        ] {
            let error = led_to(path).unwrap_err();
            let told = (error.class, error.code.as_str());
            assert_eq!(told, (ErrorClass::Source, "bad_path"), "{path:?}");
        }
    }

    /// Each status has its class, and what the source said besides.
    #[test]
    fn statuses_have_classes() {
        use ErrorClass::*;
        for (status, class) in [
            (400, InvalidRequest),
            (401, Authentication),
            (403, Permission),
            (404, NotFound),
            (422, InvalidRequest),
            (429, RateLimited),
            (500, Source),
            (503, Unavailable),
            (504, Timeout),
            (301, Configuration),
        ] {
            let error = response(status, &[("Retry-After", "7")])
                .classified()
                .unwrap_err();
            assert_eq!(error.class, class, "{status}");
            assert_eq!(error.source_code, Some(status.to_string()));
            assert_eq!(error.retry_after_ms, Some(7_000));
            assert_eq!(error.detail.as_deref(), Some("no such league"));
        }
        assert!(response(204, &[]).classified().is_ok());
    }

    /// A date to wait for counts from the source's own clock.
    #[test]
    fn dates_to_wait_for_are_spans() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        let of = |retry, date: &[(&'static str, &'static str)]| {
            let headers = [&[("retry-after", retry)], date].concat();
            response(503, &headers).retry_after_ms()
        };
        assert_eq!(of("Sun, 06 Nov 1994 08:49:40 GMT", &[date]), Some(3_000));
        assert_eq!(of("Sun, 06 Nov 1994 08:49:30 GMT", &[date]), Some(0));
        assert_eq!(of("Sun, 06 Nov 1994 08:49:40 GMT", &[]), None);
        assert_eq!(of("soon", &[date]), None);
    }

    /// Where a body is not what was expected, and in which way; none of its content.
    #[test]
    fn what_is_no_json_is_told_without_its_content() {
        #[derive(Debug, serde::Deserialize)]
        #[allow(dead_code)]
        struct Score {
            player: String,
            points: i64,
        }
        for (body, told) in [
            (
                "{\"player\": \"ada\",\n \"points\": \"hush-hush\"}",
                "a value of another type than was expected, line 2, column ",
            ),
            (
                "\"hush-hush\"",
                "a value of another type than was expected, line 1, column ",
            ),
            (
                "{\"player\": \"hush-hush\"}",
                "missing field `points`, line 1, column ",
            ),
            (
                "{\"player\": \"hush-hu",
                "it ends too early, line 1, column ",
            ),
            ("hush-hush", "it is no JSON, line 1, column "),
        ] {
            let response = HttpResponse {
                body: body.as_bytes().to_vec(),
                ..response(200, &[])
            };
            let error = response.json::<Score>().unwrap_err();
            let detail = error.detail.unwrap_or_default();
            assert!(detail.starts_with(told), "{body}: {detail}");
            let said = format!("{}{detail}", error.message);
            assert!(!said.contains("hush"), "{body}: {said}");
        }
    }

    #[test]
    fn links_lead_on() {
        let link = |text| {
            response(200, &[("Link", text)])
                .next_link()
                .map(str::to_owned)
        };
        assert_eq!(
            link("</a?page=1>; rel=\"prev\", </a?page=3>; title=x; rel=\"last next\""),
            Some("/a?page=3".to_owned())
        );
        assert_eq!(link("</a>; rel=prev"), None);
        assert_eq!(link("nonsense"), None);
    }
}
