//! The wires that the host owns: how they are dialled, protected, written and read. Knows nothing of
//! guests: it is told an address and a policy, and returns streams or the reason why there is none.

mod dial;
mod http;
mod stream;
mod tls;

pub(crate) use dial::{Account, Dialer, resolve_and_check, shared_lookups};
pub(crate) use http::{HttpOrigin, Origin};
pub(crate) use stream::Stream;
pub(crate) use tls::{Trust, protect};

use crate::{
    fault::{Blame, Fault, FaultKind},
    v1::WireFault,
};

/// What went wrong on a wire.
#[derive(Clone, Debug)]
pub(crate) struct WireError {
    pub fault: WireFault,
    pub message: String,
}

impl WireError {
    pub fn new(fault: WireFault, message: impl Into<String>) -> WireError {
        WireError {
            fault,
            message: message.into(),
        }
    }
}

/// As an answer to a request that could not get a session.
impl From<WireError> for Fault {
    fn from(error: WireError) -> Fault {
        let (kind, message) = match error.fault {
            WireFault::Refused => (FaultKind::Refused, "the source refused the connection"),
            WireFault::Unreachable => (FaultKind::Unreachable, "the source cannot be reached"),
            WireFault::EgressRefused => (
                FaultKind::EgressRefused,
                "the source's address is not one that this service connects to",
            ),
            WireFault::Tls => (
                FaultKind::Tls,
                "no protected connection to the source can be made",
            ),
            WireFault::Timeout => (
                FaultKind::Unreachable,
                "the source did not accept a connection in time",
            ),
            WireFault::Reset => (FaultKind::Unreachable, "the source broke the connection"),
            WireFault::BadResponse => (
                FaultKind::BadAnswer,
                "the source answered with what its protocol does not allow",
            ),
        };
        let code = match error.fault {
            WireFault::Timeout => "connect_timeout",
            WireFault::Reset => "connection_reset",
            _ => kind.as_str(),
        };
        Fault::new(Blame::Source, kind, message)
            .code(code)
            .detail(error.message)
    }
}
