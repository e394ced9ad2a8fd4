//! What is posted, and what comes of it.

use crate::executions::Run;
use crate::idempotency::{KeptAnswer, Ticket};
use souk_domain::ids::TransactionId;
use souk_domain::time::Timestamp;

/// What is booked when a run succeeded.
#[derive(Debug, Clone)]
pub struct Receipt {
    pub run: Run,
    /// The answer to keep for a repeated request, booked in the same commit.
    pub idempotency: Option<IdempotencyEntry>,
}

/// The answer to a request with an idempotency key, for the claim that `ticket` holds.
#[derive(Debug, Clone)]
pub struct IdempotencyEntry {
    pub ticket: Ticket,
    pub answer: KeptAnswer,
    pub expires_at: Timestamp,
}

/// What a posted charge left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// `None` for a run that cost nothing.
    pub transaction: Option<TransactionId>,
    /// The buyer's credits after it, holds of other runs not deducted.
    pub balance_credits: Option<i64>,
}

/// Why a run was not charged. The run's result must not be handed out then.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    #[error("the hold has expired; nothing was charged")]
    Expired,
    #[error("another request took over the idempotency key; nothing was charged")]
    Superseded,
    #[error("nothing was charged: {0}")]
    NotBooked(String),
    /// The store went away in the middle of the commit and did not come back in time.
    #[error("it is not known whether the run was charged: {0}")]
    Unknown(String),
}
