//! Why a guest is lost, and what it reports itself, as faults with their blame.

use wasmtime::{Store, Trap};

use super::{
    linker,
    state::GuestState,
    types::{ErrorClass, GuestError},
};
use crate::fault::{Blame, Fault, FaultKind, clip};

pub(super) const BUDGET_EXCEEDED: &str = "call_budget_exceeded";
pub(super) const LIFT_EXCEEDED: &str = "call_bytes_exceeded";
pub(super) const OUTGREW_WORKER: &str = "outgrew_worker";
const NOT_GRANTED: &str = "not_granted";
const COMPUTED_LONGER: &str = "the connector computed for longer than one call may take";

/// Names what broke a guest. Always the connector's fault, but where memory was refused that it may have had.
pub(super) fn fault<T: GuestState>(store: &mut Store<T>, error: wasmtime::Error) -> Fault {
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
        field: None,
        is_stopped: false,
    }
}
