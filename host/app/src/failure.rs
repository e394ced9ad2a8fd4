//! Why a run, a preview or a publication did not succeed: the one type that travels from the flows to `api`, which has a code and a status
//! for each [`Class`].

use crate::readers::Unread;
use souk_domain::fields::FieldError;
use souk_domain::ids::ExecutionId;
pub use souk_sandbox::{Blame, Fault, FaultKind, RefusedField};
use souk_store::StoreError;
use souk_store::failures::Reason;
use souk_store::purchases::PurchaseStatus;
use std::time::Duration;

/// What stood in the way, and in whose. Nothing was charged, unless that is [in doubt](Cause::ChargeInDoubt).
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct Failure {
    pub cause: Cause,
    /// The run that had begun.
    pub execution: Option<ExecutionId>,
    /// The caller owns the product: it may see the source's own words.
    pub owner: bool,
    /// The source is a seller's API and not a database.
    pub seller_api: bool,
    /// It was the test before a publication that failed.
    pub in_test: bool,
    /// Parameters that the test had no value of, and made one up for.
    pub made_up: Vec<String>,
}

/// What stood in the way.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// There is no such product, or this company may not know of it.
    #[error("there is no such product")]
    NotFound,
    /// This company has bought it.
    #[error("the product was archived by its seller")]
    Archived,
    #[error("{} parameters are not valid", .0.len())]
    Parameters(Vec<FieldError>),
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
    /// The caller has said that it pays no more than so much.
    #[error(
        "it costs {price} credits now, more than the {most} that the caller would pay; nothing was run and nothing charged"
    )]
    TooDear { price: i64, most: i64 },
    /// Without an order that is the same every time, pages would overlap.
    #[error(
        "the table has no primary key: name in order_by columns that together tell all rows apart"
    )]
    NoOrder,
    /// As the source's catalog shows it to the connection's user.
    #[error(
        "the source's catalog shows the connection's user no table \"{0}\": GET …/connections/{{connection_id}}/schema lists what there is"
    )]
    NoSuchTable(String),
    /// In several schemas, with other keys. Which of them is read the source decides.
    #[error(
        "the source's catalog shows the connection's user several tables \"{0}\" with different primary keys: name the schema of yours in source, or in order_by columns that together tell all rows apart"
    )]
    SeveralTables(String),
    /// It was changed since its sample was taken, or never tested.
    #[error(
        "this product has no preview at the moment; it gets one when its seller tests or publishes it, unless what it answers then is larger than 64 KiB"
    )]
    NoPreview,
    #[error("the seller of this product is suspended; nothing was run and nothing charged")]
    SellerSuspended,
    /// `filters`, `order_by` or `sorts` name columns that the source's result does not have.
    #[error("{}", missing_columns(.0))]
    NoSuchColumns(Vec<(&'static str, String)>),
    /// `filters`, `order_by` or `sorts` name columns that cannot be compared.
    #[error("{}", incomparable_columns(.0))]
    Incomparable(Vec<Incomparable>),
    /// Too few stand behind the result.
    #[error("the result stands for fewer than {min_group_size} units and is withheld")]
    Private { min_group_size: u32 },
    /// While it was tested for its publication, or exported.
    #[error("the product, or the file that it is read from, was changed meanwhile; try again")]
    Changed,
    /// The payer's clients leave too much unread. Found before the charge.
    #[error("{} bytes of answers are not read yet", .0.bytes)]
    Unread(Unread),
    /// An export that its client takes too slowly.
    #[error("an export ends after {} s; go on from its last page", .0.as_secs())]
    TooLong(Duration),
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("no connector for engine \"{0}\" is active")]
    NoConnector(String),
    /// A stored product that cannot be read back, or a secret that cannot be opened.
    #[error("{0}")]
    Internal(String),
    /// The store went away in the middle of the charge's commit, and did not come back in time.
    #[error("it is not known whether the run was charged: {0}")]
    ChargeInDoubt(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where a failure comes from. It decides about what is answered, and is recorded with a failed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// What was asked for cannot be done, whatever the source says.
    Request,
    /// The source refused a value of the caller's.
    Parameter,
    /// The result may not be released.
    Private,
    /// A seller's database, or what it answered.
    Source,
    /// A seller's API, or what it answered.
    SellerApi,
    /// The source, or a seller's API, asks for patience.
    SourceLimited,
    /// The source, or a seller's API, is away, and says for how long.
    SourceAway,
    Connector,
    /// The connector fails again and again, and is left alone for a while.
    Paused,
    Timeout,
    /// Too many requests wait already.
    Busy,
    ShuttingDown,
    /// This host could not reach the connector or the source.
    Host,
    /// Something of ours is broken.
    Internal,
}

impl Class {
    pub const ALL: [Class; 14] = [
        Class::Request,
        Class::Parameter,
        Class::Private,
        Class::Source,
        Class::SellerApi,
        Class::SourceLimited,
        Class::SourceAway,
        Class::Connector,
        Class::Paused,
        Class::Timeout,
        Class::Busy,
        Class::ShuttingDown,
        Class::Host,
        Class::Internal,
    ];

    /// Stable, lower_snake.
    pub const fn as_str(self) -> &'static str {
        match self {
            Class::Request => "request",
            Class::Parameter => "parameter",
            Class::Private => "private",
            Class::Source => "source",
            Class::SellerApi => "seller_api",
            Class::SourceLimited => "source_limited",
            Class::SourceAway => "source_away",
            Class::Connector => "connector",
            Class::Paused => "paused",
            Class::Timeout => "timeout",
            Class::Busy => "busy",
            Class::ShuttingDown => "shutting_down",
            Class::Host => "host",
            Class::Internal => "internal",
        }
    }

    fn of(fault: &Fault) -> Class {
        match (fault.kind, fault.blame) {
            (FaultKind::Timeout, _) => Class::Timeout,
            (FaultKind::Busy, Blame::Host | Blame::Caller) => Class::Busy,
            (FaultKind::ShuttingDown, _) => Class::ShuttingDown,
            (FaultKind::Paused, _) => Class::Paused,
            (FaultKind::InvalidRequest, Blame::Caller) => Class::Parameter,
            (FaultKind::RateLimited, Blame::Source) => Class::SourceLimited,
            (FaultKind::Unreachable, Blame::Source) if fault.retry_after_ms.is_some() => {
                Class::SourceAway
            }
            (_, Blame::Connector) => Class::Connector,
            (_, Blame::Host) => Class::Host,
            (_, Blame::Source | Blame::Caller) => Class::Source,
        }
    }
}

impl Cause {
    /// The seller's answer is not what its product promises.
    pub(crate) fn bad_answer(message: impl Into<String>) -> Cause {
        Fault::new(Blame::Source, FaultKind::BadAnswer, message).into()
    }

    /// The same where more is to be said than any caller may know, as the names of columns that are in no answer: `detail` is for the product's owner.
    pub(crate) fn bad_answer_in(message: impl Into<String>, detail: impl Into<String>) -> Cause {
        Fault::new(Blame::Source, FaultKind::BadAnswer, message)
            .detail(detail)
            .into()
    }

    /// The result lacks a column that its product names. Which one is told to the owner alone: it may be one that is never released.
    pub(crate) fn no_column(name: &str) -> Cause {
        Cause::bad_answer_in(
            "the query returned no column of a name that the product needs",
            format!("it returned no column \"{name}\""),
        )
    }

    /// Where its own words have what the source calls its tables or columns: the same for whoever does not own the product. Its pages may publish those
    /// under other names, or not at all. `None`: any caller may be told its own words.
    pub fn without_names(&self) -> Option<&'static str> {
        match self {
            Cause::NoSuchTable(_) => Some(
                "the source does not show the table that is published here: tell the seller, whose test of it says which",
            ),
            Cause::SeveralTables(_) => Some(
                "the source shows several tables where one is published here: tell the seller, whose test of it says which",
            ),
            Cause::NoSuchColumns(_) => Some(
                "the source's result has not all columns that are needed here: tell the seller, whose test of it says which are missing",
            ),
            Cause::Incomparable(_) => Some(
                "the source cannot compare a column as it is needed here: tell the seller, whose test of it says which",
            ),
            _ => None,
        }
    }

    fn class(&self) -> Class {
        match self {
            Cause::Fault(fault) => Class::of(fault),
            Cause::Private { .. } => Class::Private,
            Cause::TooLong(_) => Class::Timeout,
            Cause::NoConnector(_) => Class::Host,
            Cause::Internal(_) | Cause::ChargeInDoubt(_) | Cause::Store(_) => Class::Internal,
            _ => Class::Request,
        }
    }

    /// What the seller is told of it afterwards. Trouble of this host is the operator's: its words are in the log.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Cause::Fault(fault) => Reason {
                reason: Some(fault.kind.as_str()),
                code: fault.stable_code().map(str::to_owned),
                source_code: fault.source_code.clone(),
                message: fault.message.clone(),
                detail: match fault.blame {
                    Blame::Host => None,
                    _ => fault.detail.clone(),
                },
            },
            cause => Reason {
                reason: None,
                code: None,
                source_code: None,
                message: match cause {
                    Cause::Internal(_) | Cause::ChargeInDoubt(_) | Cause::Store(_) => {
                        "this host failed".to_owned()
                    }
                    cause => cause.to_string(),
                },
                detail: None,
            },
        }
    }

    pub fn blame(&self) -> Blame {
        match self {
            Cause::Fault(fault) => fault.blame,
            Cause::Private { .. } => Blame::Source,
            Cause::NoConnector(_)
            | Cause::Internal(_)
            | Cause::ChargeInDoubt(_)
            | Cause::Store(_) => Blame::Host,
            _ => Blame::Caller,
        }
    }
}

/// What a host that stops does not compute any more.
pub(crate) fn abandoned() -> Cause {
    Cause::Internal("the result was abandoned".to_owned())
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

/// A column that cannot be compared as it is to be.
#[derive(Debug)]
pub struct Incomparable {
    /// `filters`, `order_by` or `sorts`.
    pub member: &'static str,
    pub column: String,
    pub type_name: String,
    /// ` by like`, where by other operators it can.
    pub by: String,
}

fn incomparable_columns(all: &[Incomparable]) -> String {
    let told = all.iter().map(|one| {
        let cannot = match one.member {
            "filters" => "compared with a value",
            _ => "sorted by",
        };
        let Incomparable {
            member,
            column,
            type_name,
            by,
        } = one;
        format!("\"{column}\" in {member} is {type_name}, which cannot be {cannot}{by}")
    });
    let told: Vec<String> = told.collect();
    let instead = match all.iter().all(|one| !one.by.is_empty()) {
        true => "one that can be (sql_logic can make a text of it)",
        false => {
            "a column that is a number, a text or a time (sql_logic can make one of a part of it)"
        }
    };
    format!("{}: leave it out, or name {instead}", told.join("; "))
}

impl Failure {
    /// Before anything was run.
    pub fn before(owner: bool, cause: impl Into<Cause>) -> Failure {
        Failure {
            cause: cause.into(),
            execution: None,
            owner,
            seller_api: false,
            in_test: false,
            made_up: Vec::new(),
        }
    }

    /// Of the test before a publication.
    pub(crate) fn in_test(self) -> Failure {
        Failure {
            in_test: true,
            ..self
        }
    }

    pub fn class(&self) -> Class {
        match self.cause.class() {
            Class::Source if self.seller_api => Class::SellerApi,
            class => class,
        }
    }
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Failure {
        Failure::before(false, cause)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Cause::from(error).into()
    }
}
