//! The wires of sessions: on whose account they are dialled, what a connector may ask of them, and what their failures mean to it.
//! `souk_outbound` dials, protects and speaks HTTP.

mod http;

use std::sync::{Arc, Weak};

use souk_outbound::{Error, ErrorKind, Lends, Lookups};

pub use http::refused_header;
pub(crate) use http::{HttpOrigin, Origin};

use crate::{
    fault::{Blame, Fault, FaultKind},
    memory::MemoryAccount,
    tenants::{Held, Tenant},
    v1::WireFault,
};

const SOCKETS_EXHAUSTED: &str = "sockets_exhausted";

/// How to reach the source of a data connection.
pub(crate) type Dialer = souk_outbound::Dialer<Account>;

/// On whose account a source is reached.
#[derive(Clone)]
pub(crate) struct Account {
    pub tenant: Arc<Tenant>,
    pub sockets_max: usize,
    pub memory: MemoryAccount,
}

impl Account {
    /// As [`take_socket`](souk_outbound::Account::take_socket), for a wire that carries one cancel request or one errand. `None`: the company has sent
    /// as many as it may lately, or has no socket left for it.
    pub fn aside(&self) -> Option<Held> {
        match self.tenant.may_send_aside() {
            true => self.tenant.take_socket(self.sockets_max),
            false => None,
        }
    }
}

/// Sockets beyond the wires of sessions, which are counted with those.
impl souk_outbound::Account for Account {
    type Place = Held;

    fn take_socket(&self) -> Result<Held, Error> {
        let sockets_max = self.sockets_max;
        self.tenant.take_socket(sockets_max).ok_or_else(|| {
            Error::new(
                ErrorKind::Exhausted(SOCKETS_EXHAUSTED),
                format!(
                    "{sockets_max} connections to this company's sources are open, as many as one company may have: try again shortly"
                ),
            )
        })
    }

    fn may_borrow(&self, from: Weak<dyn Lends<Held>>) {
        self.tenant.may_borrow(from);
    }

    fn lookups(&self) -> Arc<Lookups> {
        self.tenant.lookups()
    }
}

/// As a connector is told.
impl From<ErrorKind> for WireFault {
    fn from(kind: ErrorKind) -> WireFault {
        match kind {
            ErrorKind::Refused => WireFault::Refused,
            ErrorKind::Unreachable | ErrorKind::Exhausted(_) => WireFault::Unreachable,
            ErrorKind::EgressRefused => WireFault::EgressRefused,
            ErrorKind::Tls => WireFault::Tls,
            ErrorKind::Timeout => WireFault::Timeout,
            ErrorKind::Reset => WireFault::Reset,
            ErrorKind::BadResponse => WireFault::BadResponse,
        }
    }
}

/// As an answer to a request that could not get a session.
impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        let (kind, message) = match error.kind {
            ErrorKind::Exhausted(code) => return Fault::exhausted(code, error.message),
            ErrorKind::Refused => (FaultKind::Refused, "the source refused the connection"),
            ErrorKind::Unreachable => (FaultKind::Unreachable, "the source cannot be reached"),
            ErrorKind::EgressRefused => (
                FaultKind::EgressRefused,
                "the source's address is not one that this service connects to",
            ),
            ErrorKind::Tls => (
                FaultKind::Tls,
                "no protected connection to the source can be made",
            ),
            ErrorKind::Timeout => (
                FaultKind::Unreachable,
                "the source did not accept a connection in time",
            ),
            ErrorKind::Reset => (FaultKind::Unreachable, "the source broke the connection"),
            ErrorKind::BadResponse => (
                FaultKind::BadAnswer,
                "the source answered with what its protocol does not allow",
            ),
        };
        let code = match error.kind {
            ErrorKind::Timeout => "connect_timeout",
            ErrorKind::Reset => "connection_reset",
            _ => kind.as_str(),
        };
        Fault::new(Blame::Source, kind, message)
            .code(code)
            .detail(error.message)
    }
}
