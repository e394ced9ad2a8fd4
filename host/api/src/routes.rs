//! From operations and handlers to a router.
//!
//! Every route is of one type, that runs the gate, the operation's own handler and the finish, in that order and in one boxed future.
//! What matches no route or no method gets the same envelope and headers from the same code.

use crate::body::beside;
use crate::compression::Wish;
use crate::describe::{Description, Erased, Handler, JSON};
use crate::gate::{self, Passed};
use crate::mounted::Mounted;
use crate::operation::{Access, Operation, Verb};
use crate::problem::Problem;
use crate::router::{Methods, Names, Router};
use crate::state::ApiState;
use crate::{acting, finish, idempotency, refusals, unwanted};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::{HeaderValue, Method, header};
use souk_app::context::within;
use souk_domain::roles::Permission;
use souk_store::{audit, db};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// An operation, what its handler's types say of it, and the handler.
struct Entry {
    operation: Operation,
    description: Description,
    handler: Erased,
}

/// Operations with their handlers; every resource module makes one, `lib.rs` merges them.
#[derive(Default)]
pub struct Routes {
    entries: Vec<Entry>,
}

impl Routes {
    pub fn new() -> Routes {
        Routes::default()
    }

    /// Panics when the handler cannot be that of this operation: it reads other parameters than the path has, say.
    pub fn add<T>(mut self, operation: Operation, handler: impl Handler<T>) -> Routes {
        let description = described(&operation, handler);
        let handler = handler.erase();
        self.entries.push(Entry {
            operation,
            description,
            handler,
        });
        self
    }

    pub fn merge(mut self, other: Routes) -> Routes {
        self.entries.extend(other.entries);
        self
    }

    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.described().map(|(operation, _)| operation)
    }

    /// Operations with what their handlers' types say of them.
    pub fn described(&self) -> impl Iterator<Item = (&Operation, &Description)> {
        let entries = self.entries.iter();
        entries.map(|entry| (&entry.operation, &entry.description))
    }

    /// The operations that have a limit of their own, in the order of their buckets.
    pub fn limited(&self) -> Vec<(&'static str, u32)> {
        self.operations()
            .filter_map(|operation| Some((operation.id, operation.hourly?)))
            .collect()
    }

    pub fn into_router(self, state: ApiState) -> Router {
        let mut buckets = 0;
        let mut paths: BTreeMap<&'static str, Vec<(Method, Erased)>> = BTreeMap::new();
        for Entry {
            operation,
            description,
            handler,
        } in self.entries
        {
            let bucket = operation.hourly.map(|_| {
                buckets += 1;
                buckets - 1
            });
            let mounted = Arc::new(Mounted {
                operation,
                description,
                handler,
                bucket,
                prefix: prefix(operation.path),
                counts: state
                    .observed()
                    .route(operation.path, operation.verb.name()),
            });
            let answers_head = answers_head(&mounted.operation);
            for (path, _) in operation.paths() {
                let methods = paths.entry(path).or_default();
                let method = operation.verb.method();
                let names = Names::of(path);
                let is_new = methods.iter().all(|(known, _)| *known != method);
                assert!(is_new, "{method} {path} is mounted twice");
                methods.push((method, gated(mounted.clone(), names.clone())));
                if answers_head {
                    methods.push((Method::HEAD, gated(mounted.clone(), names.clone())));
                }
            }
        }
        let paths = paths.into_iter().map(|(path, taken)| {
            let names: Vec<_> = taken.iter().map(|(method, _)| method.as_str()).collect();
            let allow = HeaderValue::from_str(&names.join(", "));
            let methods = Methods {
                taken,
                other: unrouted(Some(allow.unwrap_or(HeaderValue::from_static("")))),
            };
            (path, methods)
        });
        Router::new(paths, unrouted(None), state)
    }
}

/// What costs something, or takes long, must not be done for somebody who does not want the answer.
fn answers_head(operation: &Operation) -> bool {
    let is_read = match operation.access {
        Access::Public => true,
        Access::Key { permission, .. } => permission == Permission::Read,
        Access::Data => false,
    };
    operation.verb == Verb::Get && is_read && !operation.billed && !operation.runs_connector
}

/// What the types of `handler` say, if it can be the handler of `operation` at all.
fn described<T, H: Handler<T>>(operation: &Operation, _: H) -> Description {
    let description = H::description();
    let id = operation.id;
    let is_public = operation.access == Access::Public;
    assert!(
        !(description.takes_caller && is_public),
        "{id} has a caller without a key"
    );
    if let Some(segments) = &description.segments {
        for (path, _) in operation.paths() {
            let count = path.matches('{').count();
            assert!(
                count == segments.len(),
                "{id} reads {} of {path}",
                segments.len()
            );
        }
    }
    description
}

/// An operation's handler behind the gate.
fn gated(mounted: Arc<Mounted>, names: Names) -> Erased {
    Box::new(move |mut request, state| {
        let (mounted, names) = (mounted.clone(), names.clone());
        // As an erased handler's: made where it stays.
        let place = Box::new_uninit();
        let answer = Box::write(place, async move {
            let mut call = finish::Call::begin(&request, &state);
            let context = call.context(&mounted, &request, &state);
            within(context, async move {
                let wish = Wish::of(&request);
                let passed = gate::pass(&state, &mounted, names, &mut request, &mut call).await;
                let mut response = match passed {
                    Err(problem) => {
                        Box::pin(unwanted::discard_of(request, &call.pace(&state))).await;
                        problem.into_response()
                    }
                    Ok(Passed {
                        in_flight,
                        read,
                        turn,
                        wrong_query: Some(problem),
                    }) => {
                        drop((in_flight, read, turn));
                        let told = refuse_query(problem, &mounted, request, &state, &call);
                        Box::pin(told).await.into_response()
                    }
                    Ok(Passed {
                        in_flight,
                        read,
                        turn,
                        ..
                    }) => {
                        // A caller knows what it calls; where there is none, its body may contradict the path all the same.
                        let is_public = mounted.operation.access == Access::Public;
                        if is_public && mounted.description.repeats_path {
                            request.extensions_mut().insert(mounted.clone());
                        }
                        let in_flight = idempotency::take_along(in_flight, &mut request);
                        let work = audited(&mounted, request, state.clone(), &call);
                        let response = match is_public || read.is_some() {
                            // A client may hang up while the store works for it.
                            true => {
                                let read = read.map(Arc::new);
                                let place = read.as_ref().map(Arc::downgrade).unwrap_or_default();
                                let work = Box::pin(db::holding(place, work));
                                AssertUnwindSafe(work).catch_unwind().await
                            }
                            false => AssertUnwindSafe(work).catch_unwind().await,
                        };
                        drop((in_flight, turn));
                        response.unwrap_or_else(|_| {
                            Problem::internal(format!("{} panicked", mounted.operation.id))
                                .into_response()
                        })
                    }
                };
                let principal = call.finish(&state, &mut response);
                let tally = match &principal {
                    Some(principal) => &principal.unread,
                    None => state.nobodys_answers(&mounted.operation),
                };
                wish.grant(response, Some(tally)).await
            })
            .await
        });
        Box::into_pin(answer)
    })
}

/// What is wrong with the query, and with the body that came with it: of one that is no JSON, or that the client waits to send, nothing is said.
async fn refuse_query(
    problem: Problem,
    mounted: &Arc<Mounted>,
    mut request: Request,
    state: &ApiState,
    call: &finish::Call,
) -> Problem {
    let body = mounted.description.body.as_ref();
    let is_json = body.is_some_and(|body| body.content_type == JSON);
    if !is_json || request.headers().contains_key(header::EXPECT) {
        unwanted::discard_of(request, &call.pace(state)).await;
        return problem;
    }
    request.extensions_mut().insert(mounted.clone());
    beside(problem, mounted, request, state).await
}

/// Does what is asked, in the name of whoever asks: what it changes goes into the audit log.
async fn audited(
    mounted: &Arc<Mounted>,
    request: Request,
    state: ApiState,
    call: &finish::Call,
) -> Response {
    if !mounted.operation.is_audited() {
        return respond(mounted, request, state, call).await;
    }
    let act = acting::act(
        &mounted.operation,
        request.extensions().get(),
        request.uri(),
        call.peer,
        &call.request_id,
    );
    // Boxed, here and below: a request carries the room for all that may happen on its way from one place to the next.
    Box::pin(audit::acting(act, respond(mounted, request, state, call))).await
}

async fn respond(
    mounted: &Arc<Mounted>,
    request: Request,
    state: ApiState,
    call: &finish::Call,
) -> Response {
    let operation = &mounted.operation;
    match request.headers().get(idempotency::HEADER) {
        None if operation.key_required => {
            Box::pin(unwanted::discard_of(request, &call.pace(&state))).await;
            idempotency::missing().into_response()
        }
        Some(_) if operation.keeps_answers() => {
            Box::pin(idempotency::respond(mounted, request, state)).await
        }
        _ => mounted.answer(request, state).await,
    }
}

/// What no operation takes: an unknown path, or a known one with another method.
fn unrouted(allow: Option<HeaderValue>) -> Erased {
    Box::new(move |request, state| {
        let allow = allow.clone();
        Box::pin(async move {
            let mut call = finish::Call::begin(&request, &state);
            let problem = match gate::pass_unrouted(&state, request.headers(), &mut call).await {
                Err(problem) => problem,
                Ok(()) => match allow {
                    None => Problem::of(
                        refusals::ROUTE_NOT_FOUND,
                        "there is no such route; see /openapi.json",
                    ),
                    Some(allow) => {
                        let names = allow.to_str().unwrap_or_default().to_owned();
                        Problem::of(
                            refusals::METHOD_NOT_ALLOWED,
                            format!("this route takes {names}"),
                        )
                        .detail("allow", names)
                        .header(header::ALLOW, allow)
                    }
                },
            };
            unwanted::discard_of(request, &call.pace(&state)).await;
            let mut response = problem.into_response();
            call.finish(&state, &mut response);
            response
        })
    })
}

/// `/assets` of `/companies/{company_id}/assets/{asset_id}`, `/companies` of `/companies/me`.
fn prefix(path: &'static str) -> &'static str {
    let rest = path
        .strip_prefix("/companies/{company_id}")
        .filter(|rest| !rest.is_empty())
        .unwrap_or(path);
    let end = rest[1..].find('/').map_or(rest.len(), |place| place + 1);
    &rest[..end]
}
