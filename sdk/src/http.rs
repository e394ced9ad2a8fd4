//! Requests to the connection's origin. The host joins the path to the base URL, adds the credentials that
//! are attached at egress, and follows no redirect.

use crate::io::{Exchange, Shared};
use crate::{Error, Header, HttpFailure, HttpRequest, HttpResponse};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// What a response may hold unless the request says otherwise.
const RESPONSE_BYTES_DEFAULT: u64 = 8 << 20;
/// How long a request may take unless it says otherwise; the host's own deadline holds as well.
const TIMEOUT_MS_DEFAULT: u32 = 30_000;

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
    /// with `?`.
    pub async fn send(&self, request: Request) -> Result<HttpResponse, HttpFailure> {
        let id = {
            let mut exchanges = self.shared.exchanges.borrow_mut();
            exchanges.next_id = exchanges.next_id.wrapping_add(1);
            let id = exchanges.next_id;
            exchanges.waiting.insert(id, Exchange::default());
            id
        };
        let _forget = Forget {
            shared: &self.shared,
            id,
        };
        self.shared.step.borrow_mut().request(HttpRequest {
            id,
            ..request.inner
        });
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
        let waker = match self.exchanges.borrow_mut().waiting.get_mut(&id) {
            None => return,
            Some(exchange) => {
                exchange.outcome = Some(outcome);
                exchange.waker.take()
            }
        };
        if let Some(waker) = waker {
            waker.wake();
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
                headers: Vec::new(),
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
}

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

    /// The body as JSON. The error says nothing of the content.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Error::source_failed(
                "bad_json",
                "the source's answer is not the JSON that was expected",
            )
            .detail(error.to_string())
        })
    }
}
