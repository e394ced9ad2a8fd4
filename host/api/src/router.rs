//! Finds the operation of a request by its path and method.
//!
//! The paths are in `matchit`, as axum's own router has them. Around it axum makes a service of each handler and copies the path's parameters for
//! every request, which was a fortieth of a request for a single row; it answers some errors itself, and HEAD as GET. Here a request goes
//! straight to what was mounted.

use crate::describe::{BoxFuture, Erased};
use crate::state::ApiState;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use futures_util::FutureExt;
use futures_util::future::Map;
use http::{HeaderValue, Method, header};
use http_body::Body as _;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::Service;

/// All that is mounted.
#[derive(Clone)]
pub struct Router(Arc<Table>);

struct Table {
    paths: matchit::Router<Methods>,
    unknown: Erased,
    state: ApiState,
}

/// What a path takes.
pub(crate) struct Methods {
    pub taken: Vec<(Method, Erased)>,
    /// Every other method.
    pub other: Erased,
}

/// The parameters of a path, each with the number of its segment.
#[derive(Clone)]
pub(crate) struct Names(Arc<[(&'static str, usize)]>);

impl Names {
    /// Panics where a parameter is a part of a segment: those are not told apart here.
    pub fn of(path: &'static str) -> Names {
        let segments = path.split('/').enumerate();
        let named = segments.filter_map(|(at, segment)| {
            if !segment.contains(['{', '}']) {
                return None;
            }
            let name = segment
                .strip_prefix('{')
                .and_then(|it| it.strip_suffix('}'));
            Some((name.unwrap_or_else(|| panic!("{segment:?} of {path}")), at))
        });
        Names(named.collect())
    }

    /// The names and their values, percent-decoded. `Err` names one that is no text.
    pub fn values<'a>(
        &self,
        path: &'a str,
    ) -> Result<Vec<(&'static str, Cow<'a, str>)>, &'static str> {
        let mut values = Vec::with_capacity(self.0.len());
        let mut segments = path.split('/').enumerate();
        for (name, at) in self.0.iter() {
            let raw = segments.find(|(number, _)| number == at);
            let (_, raw) = raw.ok_or(*name)?;
            let text = percent_decode_str(raw).decode_utf8();
            values.push((*name, text.map_err(|_| *name)?));
        }
        Ok(values)
    }
}

impl Router {
    /// Panics where two paths cannot be told apart.
    pub(crate) fn new(
        paths: impl IntoIterator<Item = (&'static str, Methods)>,
        unknown: Erased,
        state: ApiState,
    ) -> Router {
        let mut table = matchit::Router::new();
        for (path, methods) in paths {
            if let Err(error) = table.insert(path, methods) {
                panic!("{path}: {error}");
            }
        }
        Router(Arc::new(Table {
            paths: table,
            unknown,
            state,
        }))
    }

    /// The answer, whatever it is.
    pub fn answer(&self, request: Request) -> BoxFuture {
        let is_head = *request.method() == Method::HEAD;
        let answer = self.routed(request);
        match is_head {
            true => Box::pin(answer.map(without_body)),
            false => answer,
        }
    }

    fn routed(&self, request: Request) -> BoxFuture {
        let table = &*self.0;
        let state = table.state.clone();
        let Ok(found) = table.paths.at(request.uri().path()) else {
            return (table.unknown)(request, state);
        };
        let methods = found.value;
        let mut taken = methods.taken.iter();
        match taken.find(|(method, _)| method == request.method()) {
            Some((_, answer)) => answer(request, state),
            None => (methods.other)(request, state),
        }
    }
}

/// What HEAD is answered: it says how long the body would be.
fn without_body(mut response: Response) -> Response {
    if let Some(length) = response.body().size_hint().exact() {
        let headers = response.headers_mut();
        headers
            .entry(header::CONTENT_LENGTH)
            .or_insert_with(|| HeaderValue::from(length));
    }
    *response.body_mut() = Body::empty();
    response
}

impl Service<Request> for Router {
    type Response = Response;
    type Error = Infallible;
    type Future = Map<BoxFuture, fn(Response) -> Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.answer(request).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parameters are whole segments, decoded; one that is no text is named.
    #[test]
    fn parameters_are_read() {
        let names = Names::of("/companies/{company_id}/files/{name}");
        let read = |path| names.values(path).map(|read| format!("{read:?}"));
        assert_eq!(
            read("/companies/c1/files/a%2Fb%20c").unwrap(),
            r#"[("company_id", "c1"), ("name", "a/b c")]"#
        );
        assert_eq!(read("/companies/c1/files/%ff"), Err("name"));
        assert!(std::panic::catch_unwind(|| Names::of("/files/{name}.csv")).is_err());
    }
}
