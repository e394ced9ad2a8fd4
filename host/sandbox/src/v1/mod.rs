//! Version 1.0 of the contract (`wit/v1`): how a guest is instantiated and called. Knows nothing of
//! wires or pools: it turns a call into a step or into the reason why the guest is lost.

mod linker;
mod state;
mod types;

use wasmtime::{
    AsContextMut, Store, Trap, UpdateDeadline,
    component::{Component, ComponentExportIndex, Func, Instance, ResourceAny, TypedFunc},
};

pub(crate) use linker::{directory as link_directory, wire as link_wire};
pub(crate) use state::{DirectoryState, GuestState, WireState};
pub(crate) use types::*;

use crate::{
    fault::{Blame, Fault, FaultKind},
    request::Request,
};

/// The interface that every connector exports, without its version.
pub(crate) const INTERFACE: &str = "souk:connector/connector";

/// Handles between host and guest: one session, one borrow of it.
const HANDLES_MAX: usize = 64;

/// Where the functions of the interface are in one component.
#[derive(Clone)]
pub(crate) struct Exports {
    describe: ComponentExportIndex,
    open: ComponentExportIndex,
    start: ComponentExportIndex,
    submit: ComponentExportIndex,
    receive: ComponentExportIndex,
    cancel: ComponentExportIndex,
}

type StepResult = (Result<Step, GuestError>,);
type Open<'a> = TypedFunc<(Settings<'a>,), (Result<ResourceAny, GuestError>,)>;
type Start = TypedFunc<(ResourceAny,), StepResult>;
type Submit<'a> = TypedFunc<(ResourceAny, u32, &'a Request), StepResult>;
type Receive<'a> = TypedFunc<(ResourceAny, Input<'a>), StepResult>;
type Cancel = TypedFunc<(ResourceAny, u32), StepResult>;

impl Exports {
    /// `interface` is the exported name with its version. `None`: a function is missing.
    pub fn find(component: &Component, interface: &str) -> Option<Exports> {
        let (_, instance) = component.get_export(None, interface)?;
        let function = |name: &str| {
            component
                .get_export(Some(&instance), name)
                .map(|(_, index)| index)
        };
        Some(Exports {
            describe: function("describe")?,
            open: function("[static]session.open")?,
            start: function("[method]session.start")?,
            submit: function("[method]session.submit")?,
            receive: function("[method]session.receive")?,
            cancel: function("[method]session.cancel")?,
        })
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
            submit: *instance
                .get_typed_func::<(ResourceAny, u32, &'static Request), StepResult>(
                    &mut store,
                    &self.submit,
                )?
                .func(),
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
    open: Func,
    start: Start,
    submit: Func,
    receive: Func,
    cancel: Cancel,
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
    /// The guest says that the session cannot go on.
    Ended(GuestError),
}

/// Bounds of one guest.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    /// Ticks that one call may take.
    pub call_ticks: u64,
    /// Bytes that one call may return. Aliased strings would otherwise multiply guest memory.
    pub lift_bytes: usize,
}

/// Runs `describe` without any grant.
pub(crate) fn describe(
    pre: &wasmtime::component::InstancePre<WireState>,
    exports: &Exports,
    memory_max: usize,
    budget: Budget,
) -> Result<Descriptor, Fault> {
    let mut store = store(pre.engine(), WireState::new(memory_max), budget);
    store.epoch_deadline_trap();
    let instance = pre
        .instantiate(&mut store)
        .map_err(|error| fault(&mut store, error))?;
    exports
        .resolve(&mut store, &instance)
        .map_err(|error| fault(&mut store, error))?;
    store.set_epoch_deadline(budget.call_ticks);
    instance
        .get_typed_func::<(), (Descriptor,)>(&mut store, &exports.describe)
        .and_then(|describe| describe.call(&mut store, ()))
        .map(|(descriptor,)| descriptor)
        .map_err(|error| fault(&mut store, error))
}

/// Proves that a directory connector can be instantiated with what it will be given.
pub(crate) async fn probe_directory(
    pre: &wasmtime::component::InstancePre<DirectoryState>,
    exports: &Exports,
    memory_max: usize,
    budget: Budget,
) -> Result<(), Fault> {
    let state = DirectoryState::new(memory_max, None).map_err(|error| {
        Fault::new(Blame::Host, FaultKind::Internal, "cannot prepare a sandbox")
            .detail(format!("{error:#}"))
    })?;
    let mut store = store(pre.engine(), state, budget);
    store.epoch_deadline_trap();
    let instance = pre
        .instantiate_async(&mut store)
        .await
        .map_err(|error| fault(&mut store, error))?;
    exports
        .resolve(&mut store, &instance)
        .map_err(|error| fault(&mut store, error))?;
    Ok(())
}

/// A session inside a guest that speaks over a wire. Calls are plain function calls.
pub(crate) struct WireGuest {
    store: Store<WireState>,
    functions: Functions,
    session: ResourceAny,
    budget: Budget,
}

impl WireGuest {
    pub fn open(
        pre: &wasmtime::component::InstancePre<WireState>,
        exports: &Exports,
        memory_max: usize,
        budget: Budget,
        settings: Settings<'_>,
    ) -> Result<WireGuest, CallError> {
        let mut store = store(pre.engine(), WireState::new(memory_max), budget);
        store.epoch_deadline_trap();
        let lost = |store: &mut Store<WireState>, error| CallError::Lost(fault(store, error));
        let instance = pre
            .instantiate(&mut store)
            .map_err(|error| lost(&mut store, error))?;
        let functions = exports
            .resolve(&mut store, &instance)
            .map_err(|error| lost(&mut store, error))?;
        store.set_epoch_deadline(budget.call_ticks);
        let (session,) = functions
            .open()
            .call(&mut store, (settings,))
            .map_err(|error| lost(&mut store, error))?;
        let session = session.map_err(CallError::Ended)?;
        Ok(WireGuest {
            store,
            functions,
            session,
            budget,
        })
    }

    /// Handshakes compute (SCRAM hashes thousands of times), requests do not: from here on calls are
    /// held to the tighter budget.
    pub fn opened(&mut self, call_ticks: u64) {
        self.budget.call_ticks = call_ticks;
    }

    pub fn start(&mut self) -> Result<Step, CallError> {
        self.store.set_epoch_deadline(self.budget.call_ticks);
        let result = self.functions.start.call(&mut self.store, (self.session,));
        self.finish(result)
    }

    #[inline]
    pub fn submit(&mut self, id: u32, request: &Request) -> Result<Step, CallError> {
        self.store.set_epoch_deadline(self.budget.call_ticks);
        let result = self
            .functions
            .submit()
            .call(&mut self.store, (self.session, id, request));
        self.finish(result)
    }

    #[inline]
    pub fn receive(&mut self, input: Input<'_>) -> Result<Step, CallError> {
        self.store.set_epoch_deadline(self.budget.call_ticks);
        let result = self
            .functions
            .receive()
            .call(&mut self.store, (self.session, input));
        self.finish(result)
    }

    pub fn cancel(&mut self, id: u32) -> Result<Step, CallError> {
        self.store.set_epoch_deadline(self.budget.call_ticks);
        let result = self
            .functions
            .cancel
            .call(&mut self.store, (self.session, id));
        self.finish(result)
    }

    #[inline]
    fn finish(&mut self, result: wasmtime::Result<StepResult>) -> Result<Step, CallError> {
        match result {
            Ok((Ok(step),)) => Ok(step),
            Ok((Err(error),)) => Err(CallError::Ended(error)),
            Err(error) => Err(CallError::Lost(fault(&mut self.store, error))),
        }
    }
}

/// A session inside a guest that reads a directory. Calls run on a fiber and yield after each tick;
/// dropping the future of a call leaves the guest unusable.
pub(crate) struct DirectoryGuest {
    store: Store<DirectoryState>,
    functions: Functions,
    session: ResourceAny,
}

impl DirectoryGuest {
    pub async fn open(
        pre: &wasmtime::component::InstancePre<DirectoryState>,
        exports: &Exports,
        state: DirectoryState,
        budget: Budget,
        settings: Settings<'_>,
    ) -> Result<DirectoryGuest, CallError> {
        let mut store = store(pre.engine(), state, budget);
        // Yields through the runtime: a guest that woke itself would be polled again at once, and
        // timers and sockets would wait for dozens of its ticks.
        store.epoch_deadline_callback(|_| {
            Ok(UpdateDeadline::YieldCustom(
                1,
                Box::pin(tokio::task::yield_now()),
            ))
        });
        store.set_epoch_deadline(1);
        let lost = |store: &mut Store<DirectoryState>, error| CallError::Lost(fault(store, error));
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
        let session = session.map_err(CallError::Ended)?;
        Ok(DirectoryGuest {
            store,
            functions,
            session,
        })
    }

    pub async fn start(&mut self) -> Result<Step, CallError> {
        let result = self
            .functions
            .start
            .call_async(&mut self.store, (self.session,))
            .await;
        self.finish(result)
    }

    pub async fn submit(&mut self, id: u32, request: &Request) -> Result<Step, CallError> {
        let result = self
            .functions
            .submit()
            .call_async(&mut self.store, (self.session, id, request))
            .await;
        self.finish(result)
    }

    fn finish(&mut self, result: wasmtime::Result<StepResult>) -> Result<Step, CallError> {
        match result {
            Ok((Ok(step),)) => Ok(step),
            Ok((Err(error),)) => Err(CallError::Ended(error)),
            Err(error) => Err(CallError::Lost(fault(&mut self.store, error))),
        }
    }
}

fn store<T: GuestState>(engine: &wasmtime::Engine, state: T, budget: Budget) -> Store<T> {
    let mut store = Store::new(engine, state);
    store.limiter(|state| state.limits());
    store.set_hostcall_fuel(budget.lift_bytes);
    store.set_max_component_handles(HANDLES_MAX);
    store.set_epoch_deadline(budget.call_ticks);
    store
}

/// Names what broke a guest. Always the connector's fault.
fn fault<T: GuestState>(store: &mut Store<T>, error: wasmtime::Error) -> Fault {
    let refused = store.data_mut().limits().refused;
    let detail = format!("{error:#}");
    let fault = match error.downcast_ref::<Trap>() {
        _ if refused => Fault::new(
            Blame::Connector,
            FaultKind::OutOfMemory,
            "the connector ran out of its memory",
        ),
        Some(Trap::Interrupt) => Fault::new(
            Blame::Connector,
            FaultKind::Trapped,
            "the connector computed for longer than one call may take",
        )
        .code("call_budget_exceeded"),
        Some(_) => Fault::new(
            Blame::Connector,
            FaultKind::Trapped,
            "the connector crashed",
        ),
        None if detail.contains("fuel allocated for hostcalls") => Fault::new(
            Blame::Connector,
            FaultKind::ContractBroken,
            "the connector returned more than one call may return",
        ),
        // A guest that panics in a language runtime reaches an import that is not there.
        None if detail.contains("matching implementation was not found in the linker")
            || detail.contains("unknown import") =>
        {
            Fault::new(
                Blame::Connector,
                FaultKind::Trapped,
                "the connector called something that it was not granted",
            )
        }
        None if detail.contains("wasm trap") => Fault::new(
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
        ErrorClass::RateLimited => (Blame::Source, FaultKind::Busy),
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
    }
}

/// Texts of a guest are for people: none is longer than a screen.
fn clip(mut text: String) -> String {
    const TEXT_BYTES_MAX: usize = 4096;
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    }
    text
}
