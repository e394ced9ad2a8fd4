//! Why a request did not succeed, and whose fault that is. Free of status codes: `api` maps them.

use std::fmt;

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The connector's code: it trapped, looped, broke its contract.
    Connector,
    /// The seller's database or API, or the settings of the connection to it.
    Source,
    /// A value or a request of the caller's.
    Caller,
    /// This host.
    Host,
}

/// What of a call was too much for a worker.
#[derive(Clone, Copy)]
pub(crate) enum Excess {
    /// The time that it took.
    Time,
    /// What it returned.
    Bytes,
    /// The memory that it asked for.
    Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// No address, no route, or the wire broke.
    Unreachable,
    /// The address refused the connection.
    Refused,
    Authentication,
    Permission,
    /// The source failed in its own right, as in a bad statement.
    SourceError,
    /// The source answered what its protocol does not allow.
    BadAnswer,
    /// The address is outside what the operator allows.
    EgressRefused,
    Tls,
    /// The source refused a value of the caller's.
    InvalidRequest,
    NotFound,
    Unsupported,
    /// The connection's settings cannot work.
    Configuration,
    Timeout,
    /// More rows, bytes or columns than allowed.
    LimitExceeded,
    /// Too many requests wait already, here.
    Busy,
    /// The source asks for patience.
    RateLimited,
    Trapped,
    ContractBroken,
    OutOfMemory,
    ShuttingDown,
    /// The connector has failed so often in a row that it is left alone for a while.
    Paused,
    Internal,
}

impl FaultKind {
    /// Stable, lower_snake: for answers, metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            FaultKind::Unreachable => "unreachable",
            FaultKind::Refused => "refused",
            FaultKind::Authentication => "authentication",
            FaultKind::Permission => "permission",
            FaultKind::SourceError => "error",
            FaultKind::BadAnswer => "bad_answer",
            FaultKind::EgressRefused => "egress_refused",
            FaultKind::Tls => "tls",
            FaultKind::InvalidRequest => "invalid_request",
            FaultKind::NotFound => "not_found",
            FaultKind::Unsupported => "unsupported",
            FaultKind::Configuration => "configuration",
            FaultKind::Timeout => "timeout",
            FaultKind::LimitExceeded => "limit_exceeded",
            FaultKind::Busy => "busy",
            FaultKind::RateLimited => "rate_limited",
            FaultKind::Trapped => "trapped",
            FaultKind::ContractBroken => "contract_broken",
            FaultKind::OutOfMemory => "out_of_memory",
            FaultKind::ShuttingDown => "shutting_down",
            FaultKind::Paused => "paused",
            FaultKind::Internal => "internal",
        }
    }
}

impl Blame {
    pub fn as_str(self) -> &'static str {
        match self {
            Blame::Connector => "connector",
            Blame::Source => "source",
            Blame::Caller => "caller",
            Blame::Host => "host",
        }
    }
}

/// A failed request.
#[derive(Clone, Debug, thiserror::Error)]
pub struct Fault {
    pub blame: Blame,
    pub kind: FaultKind,
    /// Stable, lower_snake: `password_rejected`, `statement_timeout`.
    pub code: String,
    /// One sentence, safe to show to any caller.
    pub message: String,
    /// The source's or the connector's own text: for the connection's owner and the log only.
    pub detail: Option<String>,
    /// SQLSTATE or the like.
    pub source_code: Option<String>,
    pub retry_after_ms: Option<u64>,
    /// Which of the query's parameters it is about, the first one being 0; `message` does not name it.
    pub parameter: Option<u32>,
    /// What that is in the caller's request. The sandbox does not know it: whoever bound the values fills it in, and names it in `message`.
    pub field: Option<Box<RefusedField>>,
    /// This host has stopped the connector, which had taken more than it was allowed: rows or bytes of a result, or memory of its company.
    pub is_stopped: bool,
}

/// A field of the caller's whose value the source refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedField {
    /// As the caller wrote it: `season[gte]`.
    pub name: String,
    /// What was said of it before it was named.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} ({}, blame: {})",
            self.message,
            self.code,
            self.blame.as_str()
        )
    }
}

impl Fault {
    pub fn new(blame: Blame, kind: FaultKind, message: impl Into<String>) -> Fault {
        Fault {
            blame,
            kind,
            code: kind.as_str().to_owned(),
            message: message.into(),
            detail: None,
            source_code: None,
            retry_after_ms: None,
            parameter: None,
            field: None,
            is_stopped: false,
        }
    }

    /// There is none left of something: it is nobody's fault, and likely to be over in a moment.
    pub(crate) fn exhausted(code: &str, message: impl Into<String>) -> Fault {
        let mut fault = Fault::new(Blame::Host, FaultKind::Busy, message).code(code);
        fault.retry_after_ms = Some(1_000);
        fault
    }

    pub fn code(mut self, code: &str) -> Fault {
        self.code = code.to_owned();
        self
    }

    /// `code`, where it is what it should be: a short word that stays the same, and nothing that was made up for this call.
    pub fn stable_code(&self) -> Option<&str> {
        const CODE_BYTES_MAX: usize = 64;
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let is_word =
            (1..=CODE_BYTES_MAX).contains(&self.code.len()) && self.code.bytes().all(plain);
        is_word.then_some(&self.code)
    }

    pub fn detail(mut self, detail: impl Into<String>) -> Fault {
        self.detail = Some(clip(detail.into()));
        self
    }

    /// In one line: what happened, and the first of what was said about it.
    pub(crate) fn told(&self) -> String {
        let detail = self.detail.as_deref().unwrap_or_default();
        let first = detail.lines().find(|line| !line.trim().is_empty());
        match first {
            Some(first) => format!("{} ({}): {}", self.message, self.code, first.trim()),
            None => format!("{} ({})", self.message, self.code),
        }
    }

    /// The result is larger than the request allows, and the connector did not stop by itself.
    pub(crate) fn too_large(reason: String) -> Fault {
        Fault::new(Blame::Source, FaultKind::LimitExceeded, reason)
            .code("result_too_large")
            .stopped()
    }

    /// The connector was stopped.
    pub(crate) fn stopped(mut self) -> Fault {
        self.is_stopped = true;
        self
    }

    /// Whether the connector's own code failed: it trapped, broke its contract, ignored a limit that it was
    /// told, or asked for memory without end. Such a fault is likely to come again with the next request. What it says itself is judged by its blame,
    /// whatever the code: a source may call a result too large, too, and the next caller asks for less.
    pub(crate) fn is_connectors(&self) -> bool {
        self.blame == Blame::Connector || self.is_stopped
    }

    /// Whether it is told at the company's pace: all but what a caller may have done wrong, and what a host that
    /// stops says.
    pub(crate) fn is_paced(&self) -> bool {
        self.blame != Blame::Caller && self.kind != FaultKind::ShuttingDown
    }
}

pub(crate) const MEMORY_EXHAUSTED: &str = "memory_exhausted";

/// Texts that come from outside are for people: none is longer than a screen.
pub(crate) fn clip(mut text: String) -> String {
    const TEXT_BYTES_MAX: usize = 4096;
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        memory::MemoryRefused,
        v1::{ErrorClass, GuestError, reported},
    };

    /// A connector has failed where this host had to stop it, and not where it says by itself what its source has, whatever the words; nor where other
    /// companies have the host's memory.
    #[test]
    fn a_connector_is_judged_by_what_was_seen() {
        let stopped = Fault::too_large("more than 1 row".into());
        assert!(stopped.is_connectors());
        let said = reported(GuestError {
            class: ErrorClass::LimitExceeded,
            code: stopped.code.clone(),
            message: stopped.message.clone(),
            detail: None,
            source_code: None,
            retry_after_ms: None,
            parameter: None,
        });
        assert_eq!((said.blame, said.kind), (stopped.blame, stopped.kind));
        assert!(!said.is_connectors());
        assert!(MemoryRefused::Session.fault().is_connectors());
        assert!(MemoryRefused::Company.fault().is_connectors());
        assert!(!MemoryRefused::Host.fault().is_connectors());
    }
}
