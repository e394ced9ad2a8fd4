//! Version 1.0 of the contracts (`wit/v1`, `wit/publisher-v1`): how a guest is instantiated and called. Knows nothing of
//! wires or pools: it turns a call into a step or into the reason why the guest is lost. The two contracts differ in what
//! `submit` takes ([`World`]), and in nothing else.

mod budget;
mod check;
mod exports;
mod faults;
mod linker;
mod printer;
mod reads;
mod state;
mod turns;
mod types;

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use wasmtime::{Store, UpdateDeadline, component::ResourceAny};

pub(crate) use budget::Budget;
use check::Checker;
pub(crate) use check::{CheckedStep, Heard};
use exports::{Asked, Functions, NOT_ASKED, StepResult};
pub(crate) use exports::{Exports, World};
pub(crate) use faults::reported;
use faults::{BUDGET_EXCEEDED, LIFT_EXCEEDED, OUTGREW_WORKER, fault};
pub(crate) use linker::{directory as link_directory, wire as link_wire};
pub(crate) use printer::Printer;
pub(crate) use state::{DirectoryState, GuestState, Held, MemoryGrant, WireState};
pub(crate) use types::*;

use crate::{
    clock::now_seconds,
    fault::{Blame, Excess, Fault, FaultKind},
    memory::HeldMemory,
    request::Request,
};

/// Handles between host and guest: one session, one borrow of it.
const HANDLES_MAX: usize = 64;

/// Why a call did not return a step. Either way the session is over.
pub(crate) enum CallError {
    /// The guest broke: a trap, a loop, no memory, or an answer outside the contract.
    Lost(Fault),
    /// It was too much for a worker. The same call may well succeed in a lane.
    Cut(Fault, Excess),
    /// The guest says that the session cannot go on.
    Ended(GuestError),
}

/// Runs `describe` without any grant.
pub(crate) async fn describe(
    pre: &wasmtime::component::InstancePre<WireState>,
    exports: &Exports,
    budget: &Budget,
) -> Result<Descriptor, Fault> {
    let state = WireState::new(budget, Printer::default());
    let mut store = store(pre.engine(), state, budget);
    store.data_mut().turns().in_turns(budget.call, false);
    let instance = pre
        .instantiate_async(&mut store)
        .await
        .map_err(|error| fault(&mut store, error))?;
    exports
        .resolve(&mut store, &instance)
        .map_err(|error| fault(&mut store, error))?;
    let describe = instance
        .get_typed_func::<(), (Descriptor,)>(&mut store, &exports.describe)
        .map_err(|error| fault(&mut store, error))?;
    store.data_mut().turns().in_turns(budget.call, false);
    let described = describe.call_async(&mut store, ()).await;
    described
        .map(|(descriptor,)| descriptor)
        .map_err(|error| fault(&mut store, error))
}

/// Proves that a directory connector can be instantiated with what it will be given.
pub(crate) async fn probe_directory(
    pre: &wasmtime::component::InstancePre<DirectoryState>,
    exports: &Exports,
    budget: &Budget,
) -> Result<(), Fault> {
    let state = DirectoryState::new(budget, Printer::default(), None);
    let state = state.map_err(|error| {
        Fault::new(Blame::Host, FaultKind::Internal, "cannot prepare a sandbox")
            .detail(format!("{error:#}"))
    })?;
    let mut store = store(pre.engine(), state, budget);
    store.data_mut().turns().in_turns(budget.call, false);
    let instance = pre
        .instantiate_async(&mut store)
        .await
        .map_err(|error| fault(&mut store, error))?;
    exports
        .resolve(&mut store, &instance)
        .map_err(|error| fault(&mut store, error))?;
    Ok(())
}

/// A session inside a guest.
pub(crate) struct Guest<T: 'static> {
    store: Store<T>,
    functions: Functions,
    session: ResourceAny,
    budget: Budget,
    checker: Checker,
}

/// Speaks over a wire. Its calls are plain function calls on a worker, or run in turns.
pub(crate) type WireGuest = Guest<WireState>;
/// Reads a directory. Its calls run in turns, the first of which is taken on a worker.
pub(crate) type DirectoryGuest = Guest<DirectoryState>;

/// A call that runs in turns, with what it needs.
pub(crate) enum Call {
    Start,
    Submit(u32, Request),
    Receive(Received),
    Cancel(u32),
}

impl Call {
    /// How much the guest is given at once.
    pub fn bytes(&self) -> usize {
        match self {
            Call::Receive(received) => received.bytes(),
            Call::Start | Call::Submit(..) | Call::Cancel(_) => 0,
        }
    }
}

/// A response as it came. Nothing in it is copied before the guest gets it.
pub(crate) struct HttpAnswer {
    pub id: u32,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// An input that outlives the wire's buffer.
pub(crate) enum Received {
    Bytes(Vec<u8>),
    TlsEstablished,
    /// With the memory that it holds until the guest has it.
    Response(
        HttpAnswer,
        #[expect(dead_code, reason = "given back when the response is dropped")] Option<HeldMemory>,
    ),
    RequestFailed(HttpFailure),
    Closed,
    Woken(u32),
    Conferred(Reply),
}

impl Received {
    /// The headers that the guest gets: those whose values are text.
    pub fn headers(&self) -> Vec<SentHeader<'_>> {
        let Received::Response(answer, _) = self else {
            return Vec::new();
        };
        let mut headers = Vec::with_capacity(answer.headers.len());
        headers.extend(answer.headers.iter().filter_map(|(name, value)| {
            Some(SentHeader {
                name: name.as_str(),
                value: value.to_str().ok()?,
            })
        }));
        headers
    }

    /// `headers`: its own.
    pub fn input<'a>(&'a self, headers: &'a [SentHeader<'a>]) -> Input<'a> {
        match self {
            Received::Bytes(bytes) => Input::Bytes(bytes),
            Received::TlsEstablished => Input::TlsEstablished,
            Received::Response(answer, _) => Input::Response(HttpResponse {
                id: answer.id,
                status: answer.status,
                headers,
                body: &answer.body,
            }),
            Received::RequestFailed(failure) => Input::RequestFailed(failure),
            Received::Closed => Input::Closed,
            Received::Woken(id) => Input::Woken(*id),
            Received::Conferred(reply) => Input::Conferred(reply),
        }
    }

    /// How much the guest is given at once.
    pub fn bytes(&self) -> usize {
        match self {
            Received::Bytes(bytes) => bytes.len(),
            Received::Response(answer, _) => answer.body.len(),
            _ => 0,
        }
    }
}

impl<T: GuestState> Guest<T> {
    /// In turns: a guest may compute as it likes while it is opened (SCRAM hashes thousands of times).
    pub async fn open(
        pre: &wasmtime::component::InstancePre<T>,
        exports: &Exports,
        state: T,
        budget: Budget,
        settings: Settings<'_>,
    ) -> Result<Box<Guest<T>>, CallError> {
        let mut store = store(pre.engine(), state, &budget);
        let lost = |store: &mut Store<T>, error| CallError::Lost(fault(store, error));
        store.data_mut().turns().in_turns(budget.call, false);
        let instance = pre
            .instantiate_async(&mut store)
            .await
            .map_err(|error| lost(&mut store, error))?;
        let functions = exports
            .resolve(&mut store, &instance)
            .map_err(|error| lost(&mut store, error))?;
        let (session,) = functions
            .open()
            .call_async(&mut store, (settings,))
            .await
            .map_err(|error| lost(&mut store, error))?;
        store.data().printer().hear();
        store.data_mut().turns().end();
        let session = session.map_err(CallError::Ended)?;
        Ok(Box::new(Guest {
            checker: Checker::new(budget.columns_max),
            store,
            functions,
            session,
            budget,
        }))
    }

    /// Makes a call in turns, the first of them `on_worker` or in a lane. It has to be let run to its end: a guest whose call was dropped is
    /// lost, which is why the call has the guest.
    pub async fn call(
        mut self: Box<Self>,
        call: Call,
        on_worker: bool,
    ) -> (Box<Self>, Result<CheckedStep, CallError>) {
        let (budget, turns) = (&self.budget, self.store.data_mut().begin());
        turns.in_turns(budget.of(call.bytes()), on_worker);
        self.store.set_hostcall_fuel(match on_worker {
            true => budget.inline_bytes,
            false => budget.call_bytes,
        });
        self.store.set_epoch_deadline(1);
        let (store, session) = (&mut self.store, self.session);
        let result = match &call {
            Call::Start => {
                let start = &self.functions.start;
                start.call_async(store, (session, now_seconds())).await
            }
            Call::Submit(id, request) => match self.functions.asked(request) {
                Asked::Connector(request) => {
                    let submit = self.functions.submit();
                    let now = now_seconds();
                    submit.call_async(store, (session, *id, request, now)).await
                }
                Asked::Publisher(request) => {
                    let submit = self.functions.submit_to_publisher();
                    submit.call_async(store, (session, *id, request)).await
                }
                Asked::Nobody => Err(wasmtime::Error::msg(NOT_ASKED)),
            },
            Call::Receive(received) => {
                let receive = self.functions.receive();
                let headers = received.headers();
                let input = received.input(&headers);
                receive.call_async(store, (session, input)).await
            }
            Call::Cancel(id) => {
                self.functions
                    .cancel
                    .call_async(store, (session, *id))
                    .await
            }
        };
        let step = self.finish(result);
        (self, step)
    }

    /// Whether the last call took so long that the engine's clock ticked.
    #[inline]
    pub fn met_tick(&mut self) -> bool {
        self.store.data_mut().turns().met_tick()
    }

    /// Whether it has more memory than it may have on a worker.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.store.data().limits().is_large()
    }

    /// What an inline call has computed since then.
    pub fn since_tick(&mut self) -> Duration {
        self.store.data_mut().turns().since_tick()
    }

    #[inline]
    fn finish(&mut self, result: wasmtime::Result<StepResult>) -> Result<CheckedStep, CallError> {
        self.store.data_mut().turns().end();
        let printer = self.store.data().printer();
        // Of a call that failed, `fault` hears it.
        if result.is_ok() && !printer.is_silent() {
            printer.hear();
        }
        match result {
            Ok((Ok(step),)) => Ok(self.checker.check(step)),
            Ok((Err(error),)) => Err(CallError::Ended(error)),
            Err(error) => {
                let turns = self.store.data_mut().turns();
                let (in_turns, returns_little) = (turns.is_in_turns(), turns.returns_little());
                let fault = fault(&mut self.store, error);
                Err(match fault.code.as_str() {
                    BUDGET_EXCEEDED if !in_turns => CallError::Cut(fault, Excess::Time),
                    LIFT_EXCEEDED if returns_little => CallError::Cut(fault, Excess::Bytes),
                    OUTGREW_WORKER => CallError::Cut(fault, Excess::Memory),
                    _ => CallError::Lost(fault),
                })
            }
        }
    }
}

impl WireGuest {
    #[inline]
    fn inline(&mut self) {
        let turns = self.store.data_mut().begin();
        // Else the fuel is that of a worker already.
        let was_in_turns = turns.is_in_turns();
        turns.inline();
        if was_in_turns {
            self.store.set_hostcall_fuel(self.budget.inline_bytes);
        }
        self.store.set_epoch_deadline(1);
    }

    #[inline]
    pub fn submit(&mut self, id: u32, request: &Request) -> Result<CheckedStep, CallError> {
        self.inline();
        let result = match self.functions.asked(request) {
            Asked::Connector(request) => {
                let submit = self.functions.submit();
                let now = now_seconds();
                submit.call(&mut self.store, (self.session, id, request, now))
            }
            Asked::Publisher(request) => {
                let submit = self.functions.submit_to_publisher();
                submit.call(&mut self.store, (self.session, id, request))
            }
            Asked::Nobody => Err(wasmtime::Error::msg(NOT_ASKED)),
        };
        self.finish(result)
    }

    #[inline]
    pub fn receive(&mut self, input: Input<'_>) -> Result<CheckedStep, CallError> {
        self.inline();
        let receive = self.functions.receive();
        let result = receive.call(&mut self.store, (self.session, input));
        self.finish(result)
    }

    pub fn cancel(&mut self, id: u32) -> Result<CheckedStep, CallError> {
        self.inline();
        let cancel = &self.functions.cancel;
        let result = cancel.call(&mut self.store, (self.session, id));
        self.finish(result)
    }
}

fn store<T: GuestState>(engine: &wasmtime::Engine, state: T, budget: &Budget) -> Store<T> {
    let mut store = Store::new(engine, state);
    match budget.is_suspended {
        true => store.limiter_async(|state| state.limits_mut()),
        false => store.limiter(|state| state.limits_mut()),
    }
    store.set_hostcall_fuel(budget.call_bytes);
    store.set_max_component_handles(HANDLES_MAX);
    let in_lane = budget.call_bytes;
    store.epoch_deadline_callback(move |mut store| {
        let update = store.data_mut().turns().tick();
        if matches!(update, UpdateDeadline::YieldCustom(..)) {
            // From here on the call is in a lane.
            store.set_hostcall_fuel(in_lane);
        }
        Ok(update)
    });
    store.set_epoch_deadline(1);
    store
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// A guest gets each header whose value is text, as often as it came.
    #[test]
    fn a_response_reaches_a_guest_as_it_came() {
        let mut headers = HeaderMap::new();
        let came: [(&'static str, &[u8]); 3] = [
            ("set-cookie", b"a=1"),
            ("x-name", b"\xff"),
            ("set-cookie", b"b=2"),
        ];
        for (name, value) in came {
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        let answer = HttpAnswer {
            id: 7,
            status: 201,
            headers,
            body: Bytes::from_static(b"{}"),
        };
        let received = Received::Response(answer, None);
        assert_eq!(received.bytes(), 2);
        let headers = received.headers();
        let Input::Response(response) = received.input(&headers) else {
            panic!("it is a response");
        };
        let told = response.headers.iter();
        let told: Vec<_> = told.map(|header| (header.name, header.value)).collect();
        assert_eq!(told, [("set-cookie", "a=1"), ("set-cookie", "b=2")]);
        assert_eq!((response.id, response.status), (7, 201));
        assert_eq!(response.body, b"{}");
    }
}
