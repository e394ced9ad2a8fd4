//! Reserved credits, and the two places where they are kept: in memory on a store of this host's own, as rows on a shared one.

use super::balance::HoldError;
use super::balances::Balances;
use crate::db;
use souk_domain::ids::{CompanyId, ExecutionId, TransactionId};
use souk_domain::money::Credits;
use souk_domain::time::Timestamp;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// Where holds are kept.
#[derive(Clone)]
pub(super) enum Keeper {
    Memory(Arc<Balances>),
    Rows(Queue),
}

/// What the task that keeps holds as rows has before it.
#[derive(Clone)]
pub(super) struct Queue {
    /// Without an end: what is given back gets in whatever waits there, since who drops a hold cannot wait.
    pub ops: mpsc::UnboundedSender<Op>,
    /// Of those who wait there to reserve something.
    pub places: Arc<Semaphore>,
}

/// What to reserve.
#[derive(Debug, Clone)]
pub struct HoldRequest {
    /// The run that is going to be paid for.
    pub execution: ExecutionId,
    pub buyer: CompanyId,
    pub amount: Credits,
    /// When a hold whose host died is given back: the run's deadline and 10 s.
    pub expires_at: Timestamp,
}

/// Reserved credits. Dropping it gives them back.
#[must_use = "a hold that is dropped is voided"]
pub struct Hold {
    pub(super) execution: ExecutionId,
    pub(super) buyer: CompanyId,
    pub(super) amount: Credits,
    /// Of the charge that posting it makes. `None` when there is nothing to pay.
    pub(super) transaction: Option<TransactionId>,
    available: i64,
    release: Release,
}

/// How a hold is given back.
pub(super) enum Release {
    /// There is nothing to give back (any more).
    Nothing,
    Memory(Arc<Balances>),
    Rows(mpsc::UnboundedSender<Op>),
}

impl Hold {
    pub(super) fn new(request: HoldRequest, available: i64, release: Release) -> Self {
        let transaction =
            (!request.amount.is_zero()).then(|| TransactionId::generate_at(db::now()));
        Self {
            execution: request.execution,
            buyer: request.buyer,
            amount: request.amount,
            transaction,
            available,
            release,
        }
    }

    /// The transaction that posting this makes: known before, so that the answer can name it and
    /// be kept in the same commit.
    pub fn transaction(&self) -> Option<&TransactionId> {
        self.transaction.as_ref()
    }

    /// What the buyer has left to spend, this and all other holds deducted.
    pub fn available(&self) -> i64 {
        self.available
    }

    pub fn execution(&self) -> &ExecutionId {
        &self.execution
    }

    pub fn amount(&self) -> Credits {
        self.amount
    }

    /// The charge was booked: the credits are spent, not given back.
    pub(super) fn settle(&mut self) {
        if let Release::Memory(balances) = std::mem::replace(&mut self.release, Release::Nothing) {
            balances.settle(&self.buyer, self.amount);
        }
    }

    /// Whether the charge was booked is not known: the credits stay held (in memory until the host restarts, in a row until it expires).
    pub(super) fn keep(&mut self) {
        self.release = Release::Nothing;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.release, Release::Nothing) {
            Release::Nothing => {}
            Release::Memory(balances) => balances.release(&self.buyer, self.amount),
            Release::Rows(ops) => {
                let op = Op::Release {
                    execution: self.execution.clone(),
                    buyer: self.buyer.clone(),
                };
                // Without its task the row expires.
                ops.send(op).ok();
            }
        }
    }
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Hold({} credits of {} for {})",
            self.amount, self.buyer, self.execution
        )
    }
}

/// What is asked of the task that keeps holds as rows.
pub(super) enum Op {
    Reserve {
        request: HoldRequest,
        reply: oneshot::Sender<Result<Hold, HoldError>>,
        /// Until the task has taken it, whether or not anybody waits for it any more.
        place: OwnedSemaphorePermit,
    },
    Release {
        execution: ExecutionId,
        buyer: CompanyId,
    },
    Flush(oneshot::Sender<()>),
}
