//! Why an execution did not succeed. Free of status codes: `api` maps them.

use std::borrow::Cow;

use souk_domain::fields::FieldError;
use souk_domain::ids::ExecutionId;
use souk_domain::pages::PageError;
use souk_sandbox::{Blame, Fault, FaultKind};
use souk_store::StoreError;
use souk_store::purchases::PurchaseStatus;

use crate::connections::ConnectionError;
use crate::release::Withheld;

/// What stood in the way. Nothing was charged.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// There is no such product, or this company may not know of it.
    #[error("there is no such product")]
    NotFound,
    #[error("{} parameters are not valid", .0.len())]
    Parameters(Vec<FieldError>),
    #[error(transparent)]
    Page(#[from] PageError),
    /// The buyer's purchase is not active any more.
    #[error("the purchase of this product is {}", .status.as_str())]
    NotEntitled { status: PurchaseStatus },
    #[error("the product has no active price")]
    NoPrice,
    #[error("{required} credits are needed")]
    InsufficientCredits {
        required: i64,
        balance: i64,
        held: i64,
    },
    /// Without an order that is the same every time, pages would overlap.
    #[error("the table has no primary key: name the columns to sort by in order_by")]
    NoOrder,
    /// It was changed since its sample was taken, or never tested.
    #[error(
        "this product has no preview at the moment; it gets one when its seller tests or publishes it"
    )]
    NoPreview,
    #[error("the seller of this product is suspended; nothing was run and nothing charged")]
    SellerSuspended,
    /// `filters` or `order_by` name columns that the source's result does not have.
    #[error("{}", missing_columns(.0))]
    NoSuchColumns(Vec<(&'static str, String)>),
    #[error(transparent)]
    Withheld(#[from] Withheld),
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("no connector for engine \"{0}\" is active")]
    NoConnector(String),
    /// A stored product that cannot be read back, or a secret that cannot be opened.
    #[error("{0}")]
    Internal(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Refusal {
    /// The public code and the blame, as they are recorded with a failed run.
    pub fn recorded(&self) -> (&'static str, &'static str) {
        match self {
            Refusal::Fault(fault) => (fault_code(fault), fault.blame.as_str()),
            Refusal::Withheld(Withheld::Private { .. }) => ("PRIVACY_THRESHOLD", "source"),
            Refusal::Withheld(Withheld::Abandoned) => ("INTERNAL_ERROR", "host"),
            Refusal::Withheld(_) => ("SOURCE_ERROR", "source"),
            Refusal::NoConnector(_) => ("CONNECTOR_UNAVAILABLE", "host"),
            Refusal::Internal(_) | Refusal::Store(_) => ("INTERNAL_ERROR", "host"),
            _ => ("INVALID_REQUEST", "caller"),
        }
    }
}

fn missing_columns(missing: &[(&'static str, String)]) -> String {
    let names: Vec<String> = missing
        .iter()
        .map(|(member, name)| format!("\"{name}\" in {member}"))
        .collect();
    let (is, column) = match names.len() {
        1 => ("is", "column"),
        _ => ("are", "columns"),
    };
    let names = names.join(", ");
    format!("{names} {is} no {column} of the source's result")
}

/// The stable code of a fault.
pub fn fault_code(fault: &Fault) -> &'static str {
    match (fault.kind, fault.blame) {
        (FaultKind::Timeout, _) => "EXECUTION_TIMEOUT",
        (FaultKind::Busy, Blame::Host | Blame::Caller) => "CONCURRENCY_LIMIT_EXCEEDED",
        (FaultKind::ShuttingDown, _) => "SHUTTING_DOWN",
        (FaultKind::Paused, _) => "CONNECTOR_PAUSED",
        (FaultKind::InvalidRequest, Blame::Caller) => "INVALID_PARAMETER",
        (_, Blame::Connector) => "CONNECTOR_FAULT",
        (_, Blame::Host) => "CONNECTOR_UNAVAILABLE",
        (_, Blame::Source | Blame::Caller) => "SOURCE_ERROR",
    }
}

impl From<ConnectionError> for Refusal {
    fn from(error: ConnectionError) -> Refusal {
        match error {
            ConnectionError::Store(error) => Refusal::Store(error),
            ConnectionError::Fault(fault) => Refusal::Fault(fault),
            ConnectionError::NoConnector(engine) => Refusal::NoConnector(engine),
            error => Refusal::Internal(error.to_string()),
        }
    }
}

/// A refusal, with the run it belongs to if one had begun.
#[derive(Debug)]
pub struct Failure {
    pub execution: Option<ExecutionId>,
    /// The caller owns the product: it may see the source's own words.
    pub owner: bool,
    /// The source is a seller's API and not a database.
    pub seller_api: bool,
    pub refusal: Refusal,
}

impl Failure {
    pub fn before(owner: bool, refusal: impl Into<Refusal>) -> Failure {
        Failure {
            execution: None,
            owner,
            seller_api: false,
            refusal: refusal.into(),
        }
    }
}

/// What kind of trouble the source made, for `api` to find a status for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The source refused a value of the caller's.
    Parameter,
    Source,
    Connector,
    Timeout,
    /// Too many requests wait already.
    Busy,
    ShuttingDown,
    /// The connector fails again and again, and is left alone for a while.
    Paused,
    Host,
}

/// Trouble at or on the way to the source, in words.
#[derive(Clone, Debug)]
pub struct Trouble<'a> {
    pub class: Class,
    pub code: &'static str,
    pub blame: &'static str,
    /// Stable, lower_snake: `unreachable`, `bad_answer`.
    pub reason: &'a str,
    /// Safe to show to any caller.
    pub message: Cow<'a, str>,
    /// The source's own text: for the owner only.
    pub detail: Option<&'a str>,
    pub source_code: Option<&'a str>,
    pub retry_after_ms: Option<u64>,
    /// Whose share was used up, and of what: `sessions_exhausted`.
    pub exhausted: Option<&'a str>,
}

impl Failure {
    pub fn trouble(&self) -> Option<Trouble<'_>> {
        match &self.refusal {
            Refusal::Fault(fault) => Some(self.of_fault(fault)),
            Refusal::Withheld(withheld @ (Withheld::BadAnswer(_) | Withheld::NoRow)) => {
                Some(Trouble {
                    class: Class::Source,
                    code: self.source_code_word("SOURCE_ERROR"),
                    blame: Blame::Source.as_str(),
                    reason: FaultKind::BadAnswer.as_str(),
                    message: Cow::Owned(withheld.to_string()),
                    detail: None,
                    source_code: None,
                    retry_after_ms: None,
                    exhausted: None,
                })
            }
            _ => None,
        }
    }

    fn of_fault<'a>(&self, fault: &'a Fault) -> Trouble<'a> {
        let class = match (fault.kind, fault.blame) {
            (FaultKind::Timeout, _) => Class::Timeout,
            (FaultKind::Busy, Blame::Host | Blame::Caller) => Class::Busy,
            (FaultKind::ShuttingDown, _) => Class::ShuttingDown,
            (FaultKind::Paused, _) => Class::Paused,
            (FaultKind::InvalidRequest, Blame::Caller) => Class::Parameter,
            (_, Blame::Connector) => Class::Connector,
            (_, Blame::Host) => Class::Host,
            (_, Blame::Source | Blame::Caller) => Class::Source,
        };
        Trouble {
            class,
            code: self.source_code_word(fault_code(fault)),
            blame: fault.blame.as_str(),
            reason: fault.kind.as_str(),
            message: Cow::Borrowed(&fault.message),
            detail: fault.detail.as_deref(),
            source_code: fault.source_code.as_deref(),
            retry_after_ms: fault.retry_after_ms,
            exhausted: (class == Class::Busy).then_some(&fault.code),
        }
    }

    fn source_code_word(&self, code: &'static str) -> &'static str {
        match (self.seller_api, code) {
            (true, "SOURCE_ERROR") => "SELLER_API_ERROR",
            (_, code) => code,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::before(false, refusal)
    }
}
