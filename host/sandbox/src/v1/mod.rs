//! Version 1.0 of the contracts (`wit/v1`, `wit/publisher-v1`): how a guest is instantiated and called. Knows nothing of
//! wires or pools: it turns a call into a step or into the reason why the guest is lost. The two contracts differ in what
//! `submit` takes ([`World`]), and in nothing else.

mod budget;
mod check;
mod linker;
mod printer;
mod reads;
mod state;
mod turns;
mod types;

use std::time::Duration;

use wasmtime::{
    AsContextMut, Store, Trap, UpdateDeadline,
    component::{Component, ComponentExportIndex, Func, Instance, ResourceAny, TypedFunc},
};

pub(crate) use budget::Budget;
use check::Checker;
pub(crate) use check::{CheckedStep, Heard};
pub(crate) use linker::{directory as link_directory, wire as link_wire};
pub(crate) use printer::Printer;
pub(crate) use state::{DirectoryState, GuestState, Held, MemoryGrant, WireState};
pub(crate) use types::*;

use crate::{
    clock::now_seconds,
    fault::{Blame, Excess, Fault, FaultKind, clip},
    memory::HeldMemory,
    request::{ConnectorRequest, PublisherRequest, Request},
};

/// Which contract a guest keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum World {
    Connector,
    Publisher,
}

impl World {
    pub const ALL: [World; 2] = [World::Connector, World::Publisher];

    /// The interface that its guests export, without its version.
    pub fn interface(self) -> &'static str {
        match self {
            World::Connector => "souk:connector/connector",
            World::Publisher => "souk:publisher/publications",
        }
    }
}

/// Handles between host and guest: one session, one borrow of it.
const HANDLES_MAX: usize = 64;

/// Where the functions of the interface are in one component.
#[derive(Clone)]
pub(crate) struct Exports {
    world: World,
    describe: ComponentExportIndex,
    open: ComponentExportIndex,
    start: ComponentExportIndex,
    submit: ComponentExportIndex,
    receive: ComponentExportIndex,
    cancel: ComponentExportIndex,
}

type StepResult = (Result<Step, GuestError>,);
type Open<'a> = TypedFunc<(Settings<'a>,), (Result<ResourceAny, GuestError>,)>;
/// The last parameter is the time of day, in seconds.
type Start = TypedFunc<(ResourceAny, u64), StepResult>;
type Submit<'a> = TypedFunc<(ResourceAny, u32, ConnectorRequest<'a>, u64), StepResult>;
type SubmitToPublisher<'a> = TypedFunc<(ResourceAny, u32, PublisherRequest<'a>), StepResult>;
type Receive<'a> = TypedFunc<(ResourceAny, Input<'a>), StepResult>;
type Cancel = TypedFunc<(ResourceAny, u32), StepResult>;

impl Exports {
    /// `interface` is the exported name with its version. `None`: a function is missing.
    pub fn find(component: &Component, world: World, interface: &str) -> Option<Exports> {
        let (_, instance) = component.get_export(None, interface)?;
        let function = |name: &str| {
            component
                .get_export(Some(&instance), name)
                .map(|(_, index)| index)
        };
        Some(Exports {
            world,
            describe: function("describe")?,
            open: function("[static]session.open")?,
            start: function("[method]session.start")?,
            submit: function("[method]session.submit")?,
            receive: function("[method]session.receive")?,
            cancel: function("[method]session.cancel")?,
        })
    }

    pub fn world(&self) -> World {
        self.world
    }

    /// The functions in one instance. Their types are checked against the contract here, each time,
    /// so that the calls below may leave it out.
    fn resolve<T: 'static>(
        &self,
        mut store: impl AsContextMut<Data = T>,
        instance: &Instance,
    ) -> wasmtime::Result<Functions> {
        let mut store = store.as_context_mut();
        Ok(Functions {
            open: *instance
                .get_typed_func::<(Settings<'static>,), (Result<ResourceAny, GuestError>,)>(
                    &mut store, &self.open,
                )?
                .func(),
            start: instance.get_typed_func(&mut store, self.start)?,
            world: self.world,
            submit: match self.world {
                World::Connector => *instance
                    .get_typed_func::<(ResourceAny, u32, ConnectorRequest<'static>, u64), StepResult>(
                        &mut store,
                        &self.submit,
                    )?
                    .func(),
                World::Publisher => *instance
                    .get_typed_func::<(ResourceAny, u32, PublisherRequest<'static>), StepResult>(
                        &mut store,
                        &self.submit,
                    )?
                    .func(),
            },
            receive: *instance
                .get_typed_func::<(ResourceAny, Input<'static>), StepResult>(
                    &mut store,
                    &self.receive,
                )?
                .func(),
            cancel: instance.get_typed_func(&mut store, self.cancel)?,
        })
    }
}

struct Functions {
    world: World,
    open: Func,
    start: Start,
    submit: Func,
    receive: Func,
    cancel: Cancel,
}

/// A request as the guest of one world takes it.
enum Asked<'a> {
    Connector(ConnectorRequest<'a>),
    Publisher(PublisherRequest<'a>),
    /// A request of the other world. `Sandbox` refuses those before they reach a session.
    Nobody,
}

const NOT_ASKED: &str = "a guest of this world is not asked that";

impl Functions {
    #[inline]
    fn asked<'a>(&self, request: &'a Request) -> Asked<'a> {
        match self.world {
            World::Connector => request.of_connector().map(Asked::Connector),
            World::Publisher => request.of_publisher().map(Asked::Publisher),
        }
        .unwrap_or(Asked::Nobody)
    }
}

// The same types as in `resolve`, with another lifetime: nothing is left to check.
#[allow(unsafe_code)]
impl Functions {
    fn open<'a>(&self) -> Open<'a> {
        // SAFETY: `resolve` has checked the type of this function.
        unsafe { TypedFunc::new_unchecked(self.open) }
    }

    #[inline]
    fn submit<'a>(&self) -> Submit<'a> {
        // SAFETY: `resolve` has checked the type of this function.
        unsafe { TypedFunc::new_unchecked(self.submit) }
    }

    fn submit_to_publisher<'a>(&self) -> SubmitToPublisher<'a> {
        // SAFETY: `resolve` has checked the type of this function, of a publisher: who calls it has looked.
        unsafe { TypedFunc::new_unchecked(self.submit) }
    }

    #[inline]
    fn receive<'a>(&self) -> Receive<'a> {
        // SAFETY: `resolve` has checked the type of this function.
        unsafe { TypedFunc::new_unchecked(self.receive) }
    }
}

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

/// An input that outlives the wire's buffer.
pub(crate) enum Received {
    Bytes(Vec<u8>),
    TlsEstablished,
    /// With the memory that it holds until the guest has it.
    Response(
        HttpResponse,
        #[expect(dead_code, reason = "given back when the response is dropped")] Option<HeldMemory>,
    ),
    RequestFailed(HttpFailure),
    Closed,
    Woken(u32),
    Conferred(Reply),
}

impl Received {
    pub fn input(&self) -> Input<'_> {
        match self {
            Received::Bytes(bytes) => Input::Bytes(bytes),
            Received::TlsEstablished => Input::TlsEstablished,
            Received::Response(response, _) => Input::Response(response),
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
            Received::Response(response, _) => response.body.len(),
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
        let (budget, turns) = (&self.budget, self.store.data_mut().turns());
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
                receive.call_async(store, (session, received.input())).await
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
        let turns = self.store.data_mut().turns();
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

const BUDGET_EXCEEDED: &str = "call_budget_exceeded";
const LIFT_EXCEEDED: &str = "call_bytes_exceeded";
const OUTGREW_WORKER: &str = "outgrew_worker";
const NOT_GRANTED: &str = "not_granted";
const COMPUTED_LONGER: &str = "the connector computed for longer than one call may take";

/// Names what broke a guest. Always the connector's fault, but where memory was refused that it may have had.
fn fault<T: GuestState>(store: &mut Store<T>, error: wasmtime::Error) -> Fault {
    let said = store.data().printer().hear();
    let limits = store.data().limits();
    let (refused, outgrew_worker) = (limits.refused, limits.outgrew_worker);
    let budget = store.data_mut().turns().budget();
    let whole = format!("{error:#}");
    let fault = match error.downcast_ref::<Trap>() {
        _ if let Some(refused) = refused => refused.fault(),
        _ if outgrew_worker => Fault::new(
            Blame::Host,
            FaultKind::Internal,
            "the connector wanted more memory than it may have where others are served: try again",
        )
        .code(OUTGREW_WORKER),
        Some(Trap::Interrupt) => Fault::new(
            Blame::Connector,
            FaultKind::Trapped,
            match budget {
                Some(budget) => format!("{COMPUTED_LONGER} ({} ms)", budget.as_millis()),
                None => COMPUTED_LONGER.to_owned(),
            },
        )
        .code(BUDGET_EXCEEDED),
        Some(_) => Fault::new(
            Blame::Connector,
            FaultKind::Trapped,
            "the connector crashed",
        ),
        None if whole.contains("fuel allocated for hostcalls") => Fault::new(
            Blame::Connector,
            FaultKind::ContractBroken,
            "the connector returned more than one call may return",
        )
        .code(LIFT_EXCEEDED),
        None if let Some(import) = linker::not_granted(&whole) => Fault::new(
            Blame::Connector,
            FaultKind::Trapped,
            format!("the connector called {import}, which it was not granted"),
        )
        .code(NOT_GRANTED),
        None if whole.contains(linker::ENDED_ITSELF) || whole.contains("wasm trap") => Fault::new(
            Blame::Connector,
            FaultKind::Trapped,
            "the connector crashed",
        ),
        None => Fault::new(
            Blame::Connector,
            FaultKind::ContractBroken,
            "the connector broke its contract",
        ),
    };
    // First what a person can act on: a panic's own words, then what happened, then where.
    let happened = error.root_cause().to_string();
    let place = error.to_string();
    let mut detail = said.unwrap_or_default();
    for more in [&happened, &place] {
        if !detail.contains(more.as_str()) {
            if !detail.is_empty() && !detail.ends_with('\n') {
                detail.push('\n');
            }
            detail.push_str(more);
        }
    }
    fault.detail(detail)
}

/// What a guest reports, with its blame.
pub(crate) fn reported(error: GuestError) -> Fault {
    let (blame, kind) = match error.class {
        // What this host saw on a wire has the same kind whether or not a connector passed it on: the
        // contract's codes for a `wire-fault`.
        ErrorClass::Configuration if error.code == "tls_failed" => (Blame::Source, FaultKind::Tls),
        ErrorClass::Configuration if error.code == "egress_refused" => {
            (Blame::Source, FaultKind::EgressRefused)
        }
        ErrorClass::Unavailable if error.code == "connection_refused" => {
            (Blame::Source, FaultKind::Refused)
        }
        ErrorClass::Configuration => (Blame::Source, FaultKind::Configuration),
        ErrorClass::Authentication => (Blame::Source, FaultKind::Authentication),
        ErrorClass::Permission => (Blame::Source, FaultKind::Permission),
        ErrorClass::InvalidRequest => (Blame::Caller, FaultKind::InvalidRequest),
        ErrorClass::NotFound => (Blame::Source, FaultKind::NotFound),
        ErrorClass::Unsupported => (Blame::Caller, FaultKind::Unsupported),
        ErrorClass::RateLimited => (Blame::Source, FaultKind::RateLimited),
        ErrorClass::Unavailable => (Blame::Source, FaultKind::Unreachable),
        ErrorClass::Timeout => (Blame::Source, FaultKind::Timeout),
        ErrorClass::LimitExceeded => (Blame::Source, FaultKind::LimitExceeded),
        ErrorClass::Source if error.code.starts_with("bad_answer") => {
            (Blame::Source, FaultKind::BadAnswer)
        }
        ErrorClass::Source => (Blame::Source, FaultKind::SourceError),
        ErrorClass::Internal => (Blame::Connector, FaultKind::Internal),
    };
    Fault {
        blame,
        kind,
        code: clip(error.code),
        message: clip(error.message),
        detail: error.detail.map(clip),
        source_code: error.source_code.map(clip),
        retry_after_ms: error.retry_after_ms,
        parameter: error.parameter,
    }
}
