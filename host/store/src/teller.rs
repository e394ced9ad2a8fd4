//! The teller: reserves credits before a run, books the charge after it, and keeps the record of runs.
//!
//! `hold` before the connector runs, then either `post` (durable before it returns) or nothing: a [`Hold`] that is dropped is voided.
//! Many charges share one commit: while one batch is being synced, the next collects.
//!
//! A host that has its store to itself (SQLite) keeps holds in memory, so reserving costs no statement and a crash voids every hold by
//! itself. Hosts that share a store (PostgreSQL) keep them as rows, which expire when their host died.
//!
//! Refuses to know prices, entitlement, or whether a run deserves to be charged. Start reading at [`Teller::hold`] and [`Teller::post`].

mod allowances;
mod answers;
mod balance;
mod balances;
mod batch;
mod bookings;
mod counters;
mod hold;
mod item;
pub(crate) mod log_applier;
mod poster;
mod posting;
mod recorder;
mod reservations;

use crate::accounts::{self, Account};
use crate::db::{self, Db, READ_WITHIN, Write};
use crate::error::StoreError;
use crate::executions::{Ended, Run};
use crate::failures::Reason;
use crate::times::Timed;
use hold::{Keeper, Op, Release};
use item::Item;
use recorder::Recorder;
use souk_domain::ids::{CompanyId, ExecutionId};
use souk_domain::money::{CENTS_PER_CREDIT, Credits};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};

pub use balance::{Balance, HoldError};
pub use counters::Asked;
pub use hold::{Hold, HoldRequest};
pub use posting::{IdempotencyEntry, PostError, Posted, Receipt};

/// Reserves, posts and records. Cheap to clone. One per store and process.
#[derive(Clone)]
pub struct Teller {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    keeper: Keeper,
    posts: mpsc::Sender<poster::Message>,
    recorder: Recorder,
    counts: Counts,
}

/// What the teller did since it was opened.
#[derive(Debug, Default)]
pub struct Counts {
    pub holds: AtomicU64,
    /// For want of credits.
    pub holds_refused: AtomicU64,
    /// That were answered.
    pub charges: AtomicU64,
    pub charged_credits: AtomicU64,
    pub charges_failed: AtomicU64,
}

/// Posts that may wait for their batch before `post` itself waits: several batches' worth.
const POSTS_MAX: usize = 4_096;

impl Teller {
    /// Takes over the store's money. Its tasks run on the current runtime, which should be one that waits little (not a worker's).
    pub async fn open(db: &Db) -> Result<Self, StoreError> {
        let keeper = if db.is_shared() {
            Keeper::Rows(reservations::start(db.clone()))
        } else {
            Keeper::Memory(balances::open(db).await?)
        };
        let (posts, queue) = mpsc::channel(POSTS_MAX);
        tokio::spawn(poster::run(db.clone(), keeper.clone(), queue));
        let inner = Inner {
            db: db.clone(),
            keeper,
            posts,
            recorder: recorder::start(db.clone()),
            counts: Counts::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Reserves credits, so that concurrent runs can never spend more than there is.
    pub async fn hold(&self, request: HoldRequest) -> Result<Hold, HoldError> {
        let held = self.reserve(request).await;
        let count = match &held {
            Ok(_) => &self.inner.counts.holds,
            Err(HoldError::Insufficient { .. }) => &self.inner.counts.holds_refused,
            Err(HoldError::Store(_)) => return held,
        };
        count.fetch_add(1, Ordering::Relaxed);
        held
    }

    async fn reserve(&self, request: HoldRequest) -> Result<Hold, HoldError> {
        let (available, release) = match &self.inner.keeper {
            _ if request.amount.is_zero() => {
                let balance = self.balance(&request.buyer).await?;
                (balance.available(), Release::Nothing)
            }
            Keeper::Memory(balances) => {
                let available = balances.reserve(&request.buyer, request.amount)?;
                (available, Release::Memory(balances.clone()))
            }
            Keeper::Rows(queue) => return reservations::reserve(queue, request).await,
        };
        Ok(Hold::new(request, available, release))
    }

    /// Books the charge and the run. When this returns `Ok`, both are durable.
    ///
    /// A caller that is cancelled while it waits may still be charged: the booking may be on its way.
    pub async fn post(&self, hold: Hold, receipt: Receipt) -> Result<Posted, PostError> {
        let credits = hold.amount().get();
        let product = receipt.run.product.clone();
        let Timed {
            day,
            at_most_us,
            counts: took,
            ..
        } = Timed::of(&Ended::of(&receipt.run));
        self.inner.recorder.note(&receipt.run);
        let posted = self.send(hold, receipt).await;
        let counts = &self.inner.counts;
        match &posted {
            Ok(_) => {
                counts.charges.fetch_add(1, Ordering::Relaxed);
                let credits = credits.cast_unsigned();
                counts.charged_credits.fetch_add(credits, Ordering::Relaxed);
                self.inner.recorder.time(&Timed {
                    product: &product,
                    day,
                    at_most_us,
                    counts: took,
                });
            }
            Err(_) => {
                counts.charges_failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        posted
    }

    async fn send(&self, hold: Hold, receipt: Receipt) -> Result<Posted, PostError> {
        let (reply, answer) = oneshot::channel();
        let item = Item::new(hold, receipt, reply);
        let closed = || PostError::NotBooked("the teller is closed".into());
        self.inner
            .posts
            .send(poster::Message::Post(Box::new(item)))
            .await
            .map_err(|_| closed())?;
        // It may have been booked, if its task ended in the middle of that.
        let ended = |_| PostError::Unknown("the teller ended before it answered".into());
        answer.await.map_err(ended)?
    }

    /// Takes as many of `most` credits as the buyer has, and no run holds, for a booking of this transaction: they are gone when it is committed. On a
    /// shared store the buyer's account is locked already.
    pub(crate) async fn take(
        &self,
        write: &mut Write,
        buyer: &CompanyId,
        most: Credits,
    ) -> Result<Credits, StoreError> {
        let Keeper::Memory(balances) = &self.inner.keeper else {
            let account = Account::Buyer(buyer.clone());
            let (balance, held) = accounts::balance_and_held(write, &account).await?;
            let there = (balance.get() - held.get()) / CENTS_PER_CREDIT;
            return Ok(Credits::new(there.clamp(0, most.get())).unwrap_or_default());
        };
        // What this transaction itself has brought is not in memory before it is committed, and then without this.
        let new = write.uncredit(buyer, most.cents()).get() / CENTS_PER_CREDIT;
        let rest = Credits::new(most.get() - new).unwrap_or_default();
        let reserved = balances.reserve_most(buyer, rest);
        let request = HoldRequest {
            execution: ExecutionId::generate_at(db::now()),
            buyer: buyer.clone(),
            amount: reserved,
            expires_at: db::now(),
        };
        let mut hold = Hold::new(request, 0, Release::Memory(balances.clone()));
        write.at_end(move |is_committed| match is_committed {
            true => hold.settle(),
            false => hold.keep(),
        });
        Ok(Credits::new(new + reserved.get()).unwrap_or_default())
    }

    /// Gives the reserved credits back.
    pub fn void(&self, hold: Hold, reason: &str) {
        tracing::debug!(execution = %hold.execution, amount = %hold.amount, reason, "hold voided");
        drop(hold);
    }

    /// Records a run that costs nothing (free, or failed). Never waits; see [`recorder`] for what is kept under pressure.
    pub fn record(&self, run: &Run) {
        self.record_ended(&Ended::of(run), || run.clone());
    }

    /// The same where there are many: `record` is asked for if it is kept.
    pub fn record_ended(&self, ended: &Ended<'_>, record: impl FnOnce() -> Run) {
        self.inner.recorder.record(ended, record);
    }

    /// The same of a run that failed, with what was said about it.
    pub fn record_failed(&self, run: &Run, reason: Reason) {
        self.inner.recorder.record_failed(run, reason);
    }

    /// Counts a request for the statistics of its key. Never waits.
    pub fn count_use(&self, asked: Asked<'_>) {
        self.inner.recorder.count_use(asked);
    }

    pub fn counts(&self) -> &Counts {
        &self.inner.counts
    }

    /// How many free runs were counted without keeping their individual record.
    pub fn records_dropped(&self) -> u64 {
        self.inner.recorder.dropped()
    }

    /// What the company has, and how much of it runs in flight hold.
    pub async fn balance(&self, company: &CompanyId) -> Result<Balance, StoreError> {
        match &self.inner.keeper {
            Keeper::Memory(balances) => Ok(balances.balance(company)),
            Keeper::Rows(_) => {
                let found = async {
                    let mut read = self.inner.db.read().await?;
                    let account = Account::Buyer(company.clone());
                    accounts::balance_and_held(&mut read, &account).await
                };
                let (balance, held) = self.inner.db.answered(READ_WITHIN, found).await?;
                Ok(Balance {
                    posted: balance.get() / CENTS_PER_CREDIT,
                    held: held.get() / CENTS_PER_CREDIT,
                })
            }
        }
    }

    /// Credits that runs in flight on this host (on a shared store: on all hosts) hold.
    pub async fn held_in_all(&self) -> Result<i64, StoreError> {
        match &self.inner.keeper {
            Keeper::Memory(balances) => Ok(balances.held_in_all()),
            Keeper::Rows(_) => {
                let mut read = self.inner.db.read().await?;
                Ok(accounts::held_in_all(&mut read).await?.get() / CENTS_PER_CREDIT)
            }
        }
    }

    /// Waits until everything that was posted, voided or recorded so far is in the store (or failed to get there).
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self
            .inner
            .posts
            .send(poster::Message::Flush(done))
            .await
            .is_ok()
        {
            flushed.await.ok();
        }
        if let Keeper::Rows(queue) = &self.inner.keeper {
            let (done, flushed) = oneshot::channel();
            if queue.ops.send(Op::Flush(done)).is_ok() {
                flushed.await.ok();
            }
        }
        self.inner.recorder.flush().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executions::{Billing, Outcome};
    use crate::{OpenOptions, ledger};
    use souk_domain::ids::{AssetId, KeyId, RequestId};
    use souk_domain::products::Product;
    use std::time::Duration;

    pub(super) fn run(buyer: &CompanyId) -> Run {
        Run {
            id: ExecutionId::generate_at(db::now()),
            company: buyer.clone(),
            seller: CompanyId::generate(),
            product: Product::Asset(AssetId::generate()),
            purchase: None,
            price: None,
            actor: KeyId::generate().into(),
            request: RequestId::generate_at(db::now()),
            outcome: Outcome::Succeeded,
            billing: Billing::Charged,
            rows: 1,
            bytes: 1,
            started_at: db::now(),
            duration_us: 1,
        }
    }

    async fn hold(teller: &Teller, buyer: &CompanyId, credits: i64) -> (Hold, Receipt) {
        let run = run(buyer);
        let request = HoldRequest {
            execution: run.id.clone(),
            buyer: buyer.clone(),
            amount: Credits::new(credits).unwrap(),
            expires_at: db::now().after(Duration::from_secs(60)),
        };
        let receipt = Receipt {
            run,
            idempotency: None,
        };
        (teller.hold(request).await.unwrap(), receipt)
    }

    /// A balance in memory that does not cover a hold, which only a defect can cause, fails that charge, which gets into neither the log nor
    /// the books; everybody else goes on being charged.
    #[tokio::test]
    async fn a_charge_that_memory_does_not_cover_fails_alone() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("a.db").display());
        let db = Db::open(&OpenOptions::new(url)).await.unwrap();
        let teller = Teller::open(&db).await.unwrap();
        let buyers = [CompanyId::generate(), CompanyId::generate()];
        for buyer in &buyers {
            let credits = Credits::new(100).unwrap();
            db.write(async |write| {
                ledger::grant(write, buyer, credits, "x", None, db::now()).await
            })
            .await
            .unwrap();
        }
        let [wrong, right] = &buyers;
        let (spoilt, receipt) = hold(&teller, wrong, 7).await;
        let (good, other) = hold(&teller, right, 7).await;
        // As if somebody else had given it back.
        let Keeper::Memory(balances) = &teller.inner.keeper else {
            panic!("a store of its own")
        };
        balances.release(wrong, Credits::new(3).unwrap());
        let (refused, posted) =
            tokio::join!(teller.post(spoilt, receipt), teller.post(good, other));
        assert!(
            matches!(refused, Err(PostError::NotBooked(_))),
            "{refused:?}"
        );
        assert_eq!(posted.unwrap().balance_credits, Some(93));
        let (hold, receipt) = hold(&teller, right, 1).await;
        assert_eq!(
            teller.post(hold, receipt).await.unwrap().balance_credits,
            Some(92)
        );
        teller.flush().await;
        assert_eq!(teller.balance(wrong).await.unwrap().posted, 100);
        let mut read = db.read().await.unwrap();
        let balance = accounts::balance(&mut read, &Account::Buyer(wrong.clone())).await;
        assert_eq!(balance.unwrap().get(), 100 * CENTS_PER_CREDIT);
        drop(read);
        let found = crate::reconciliation::reconcile(&db, db::now())
            .await
            .unwrap();
        assert!(found.is_balanced(), "{found:?}");
    }

    /// What a transaction takes may have come with it; what it has taken is gone when it is committed, and there again when it is given up.
    #[tokio::test]
    async fn what_is_taken_may_have_come_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("a.db").display());
        let db = Db::open(&OpenOptions::new(url)).await.unwrap();
        let teller = Teller::open(&db).await.unwrap();
        let buyer = CompanyId::generate();
        let credits = |credits: i64| Credits::new(credits).unwrap();
        let granted_and_taken = async |granted: i64, most: i64, is_kept: bool| {
            db.write(async |write| {
                ledger::grant(write, &buyer, credits(granted), "x", None, db::now()).await?;
                let taken = teller.take(write, &buyer, credits(most)).await?;
                let entry = ledger::Entry {
                    from: Account::Buyer(buyer.clone()),
                    to: Account::Cash,
                    amount: taken.cents(),
                };
                let booking = ledger::Transaction::new(
                    ledger::TransactionType::Adjustment,
                    buyer.clone(),
                    -taken.get(),
                    taken.cents(),
                    db::now(),
                );
                ledger::append_taken(write, booking, &[entry]).await?;
                match is_kept {
                    true => Ok(taken.get()),
                    false => Err(StoreError::NotFound),
                }
            })
            .await
            .ok()
        };
        let mut expected = 0;
        for (granted, most, is_kept, taken) in [
            (40, 40, true, Some(40)),
            (40, 30, true, Some(30)),
            (5, 12, false, None),
            (5, 12, true, Some(12)),
            (5, 12, true, Some(8)),
        ] {
            assert_eq!(granted_and_taken(granted, most, is_kept).await, taken);
            expected += taken.map_or(0, |taken| granted - taken);
            let balance = teller.balance(&buyer).await.unwrap();
            assert_eq!((balance.posted, balance.held), (expected, 0));
            let mut read = db.read().await.unwrap();
            let account = Account::Buyer(buyer.clone());
            let booked = accounts::balance(&mut read, &account).await.unwrap();
            assert_eq!(booked.get(), expected * CENTS_PER_CREDIT);
        }
    }
}
