//! A charge on its way: what waits for its batch, and what whoever posted it is told.
//!
//! Refuses to know how a batch becomes durable. Start reading at [`Item`] and [`answer`].

use super::bookings::{Booking, Charge};
use super::hold::Hold;
use super::posting::{PostError, Posted, Receipt};
use crate::accounts::{Account, Level};
use crate::db;
use crate::error::StoreError;
use souk_domain::ids::TransactionId;
use souk_domain::money::CENTS_PER_CREDIT;
use souk_domain::throttle::Throttle;
use souk_domain::time::Timestamp;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A run that succeeded, with what it is to be charged, if it is. It waits for its batch.
pub(super) struct Item {
    pub(super) hold: Hold,
    pub(super) receipt: Receipt,
    /// The hold's. `None` when there is nothing to pay.
    pub(super) transaction: Option<TransactionId>,
    /// Since when it waits.
    pub(super) posted: Instant,
    reply: oneshot::Sender<Result<Posted, PostError>>,
}

impl Item {
    pub(super) fn new(
        hold: Hold,
        receipt: Receipt,
        reply: oneshot::Sender<Result<Posted, PostError>>,
    ) -> Self {
        let transaction = hold.transaction.clone();
        Self {
            hold,
            receipt,
            transaction,
            posted: Instant::now(),
            reply,
        }
    }

    /// What is booked for it: `levels` has where the buyers stand before it, `at` when the charge before it was booked.
    pub(super) fn booking(
        &self,
        levels: &mut HashMap<String, Level>,
        at: &mut Timestamp,
    ) -> Booking {
        let buyer = &self.hold.buyer;
        let charge = self.transaction.as_ref().map(|id| {
            *at = at.after(Duration::from_micros(1));
            let level = levels
                .entry(Account::Buyer(buyer.clone()).id())
                .or_default();
            let is_low_now = level.spend(self.hold.amount.cents().get());
            Charge {
                transaction: id.clone(),
                balance_after: level.balance / CENTS_PER_CREDIT,
                at: *at,
                low: is_low_now.then_some(*level),
            }
        });
        Booking {
            run: self.receipt.run.clone(),
            buyer: buyer.clone(),
            amount: self.hold.amount,
            charge,
        }
    }
}

/// What became of one charge of a batch that was committed.
pub(super) enum Committed {
    Booked {
        balance_after: Option<i64>,
    },
    /// The hold had expired. Of a batch that was found in the books: this run is not there.
    Expired,
    /// The claim on the idempotency key had lapsed and was taken over.
    Superseded,
}

/// Why a batch was not booked, as far as that is known.
pub(super) struct Failure {
    pub(super) error: StoreError,
    /// The commit was sent, so it may have happened.
    pub(super) in_doubt: bool,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self {
            error,
            in_doubt: false,
        }
    }
}

/// Answers everyone in a batch that is in the books.
pub(super) fn answer(batch: Vec<Item>, outcomes: Vec<Committed>) {
    for (mut item, outcome) in batch.into_iter().zip(outcomes) {
        let result = match outcome {
            Committed::Booked { balance_after } => {
                item.hold.settle();
                Ok(Posted {
                    transaction: item.transaction,
                    balance_credits: balance_after,
                })
            }
            // Its row has gone. It has not where a batch was found booked without this run, because its claim had been taken over: then it goes now.
            Committed::Expired => Err(PostError::Expired),
            Committed::Superseded => Err(PostError::Superseded),
        };
        // First: whoever hears that nothing was charged may spend the credits again.
        drop(item.hold);
        item.reply.send(result).ok();
    }
}

/// Answers everyone in a batch that is not, or of which that is not known.
pub(super) fn fail(batch: Vec<Item>, failure: &Failure) {
    if batch.is_empty() {
        return;
    }
    if let Some(unsaid) = said(&NOT_BOOKED) {
        tracing::error!(error = %failure.error, in_doubt = failure.in_doubt, charges = batch.len(), unsaid, "charges were not booked");
    }
    for mut item in batch {
        let message = failure.error.to_string();
        let error = if failure.in_doubt {
            item.hold.keep();
            PostError::Unknown(message)
        } else {
            PostError::NotBooked(message)
        };
        drop(item.hold);
        item.reply.send(Err(error)).ok();
    }
}

/// A disk that is full fails every batch: a line a second says as much as thousands.
static NOT_BOOKED: Throttle = Throttle::new(1);

/// `Some`: it may be said now, and was not so often before.
pub(super) fn said(throttle: &Throttle) -> Option<u64> {
    throttle.may(u32::try_from(db::now().seconds()).unwrap_or(u32::MAX))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::balance::Balance;
    use super::super::balances::Balances;
    use super::super::hold::{HoldRequest, Release};
    use super::super::tests::run;
    use super::*;
    use souk_domain::ids::CompanyId;
    use souk_domain::money::Credits;
    use std::sync::Arc;

    pub(in super::super) fn item(buyer: &CompanyId, credits: i64) -> Item {
        let run = run(buyer);
        let request = HoldRequest {
            execution: run.id.clone(),
            buyer: buyer.clone(),
            amount: Credits::new(credits).unwrap(),
            expires_at: db::now(),
        };
        let hold = Hold::new(request, 0, Release::Nothing);
        let receipt = Receipt {
            run,
            idempotency: None,
        };
        Item::new(hold, receipt, oneshot::channel().0)
    }

    /// A run that is not in the books beside its batch, when that is read back, does not keep its credits.
    #[test]
    fn what_is_not_found_booked_is_given_back() {
        let buyer = CompanyId::generate();
        let [before, after] = [4, 0].map(|held| Balance { posted: 10, held });
        let balances = Arc::new(Balances::of(&buyer, before));
        let mut missing = item(&buyer, 4);
        let request = HoldRequest {
            execution: missing.hold.execution.clone(),
            buyer: buyer.clone(),
            amount: missing.hold.amount,
            expires_at: db::now(),
        };
        missing.hold = Hold::new(request, 0, Release::Memory(balances.clone()));
        answer(vec![missing], vec![Committed::Expired]);
        assert_eq!(balances.balance(&buyer), after);
    }
}
