//! Makes charges durable, many at once. While a batch is being synced, the next collects in the queue.
//!
//! On a store that this host has to itself a batch goes into the charge log and is booked behind ([`bookings`]); only charges whose answer
//! is kept for a retry are booked at once, like all charges on a shared store.
//!
//! One batch is a handful of statements, however many charges it has. Either all of it is booked or nothing; a batch that the store refuses
//! is tried again charge by charge, so that one bad charge fails alone. When a commit's outcome is unknown, the batch is tried again with
//! the same ids: where those are in the books already, that is its outcome, and else it books now.

use super::answers::{forget_answers, keep_answers};
use super::balances::Balances;
use super::bookings::{self, Booking, Charge};
use super::hold::{Hold, Keeper};
use super::log_applier::{self, Logged};
use super::posting::{PostError, Posted, Receipt};
use super::reservations;
use crate::accounts::{self, Account, AccountChanges, Level};
use crate::bulk::ROWS_MAX;
use crate::charge_log::AppendError;
use crate::db::{self, Backlog, Db, Pen, TOLD_WITHIN, Write, in_time};
use crate::error::StoreError;
use crate::events;
use crate::fields::Fields;
use crate::ledger;
use souk_domain::ids::TransactionId;
use souk_domain::money::CENTS_PER_CREDIT;
use souk_domain::throttle::Throttle;
use souk_domain::time::Timestamp;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Tries of one batch before its charges fail, and the pause before the second; it doubles each time. About 0.75 s in all, well within a
/// caller's patience and long enough for a PostgreSQL failover's quick cases.
const TRIES_MAX: u32 = 5;
const PAUSE: Duration = Duration::from_millis(50);

pub(super) enum Message {
    Post(Box<Item>),
    Flush(oneshot::Sender<()>),
}

pub(super) struct Item {
    pub(super) hold: Hold,
    pub(super) receipt: Receipt,
    /// The hold's. `None` when there is nothing to pay.
    transaction: Option<TransactionId>,
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
            reply,
        }
    }

    /// What is booked for it: `levels` has where the buyers stand before it, `at` when the charge before it was booked.
    fn booking(&self, levels: &mut HashMap<String, Level>, at: &mut Timestamp) -> Booking {
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

struct Poster {
    db: Db,
    keeper: Keeper,
    /// Where logged charges are booked.
    applier: mpsc::UnboundedSender<Logged>,
    /// Accounts that are known to exist.
    known: HashSet<Account>,
    /// When the last charge was booked: each is later than the one before, so that statements show them in their order.
    last_at: Timestamp,
}

pub(super) async fn run(db: Db, keeper: Keeper, mut queue: mpsc::Receiver<Message>) {
    let (applier, logged) = mpsc::unbounded_channel();
    tokio::spawn(log_applier::run(db.clone(), logged));
    let mut poster = Poster {
        db,
        keeper,
        applier,
        known: HashSet::new(),
        last_at: Timestamp::from_micros(0),
    };
    let mut messages = Vec::with_capacity(ROWS_MAX);
    while queue.recv_many(&mut messages, ROWS_MAX).await > 0 {
        let mut batch = Vec::with_capacity(messages.len());
        let mut flushes = Vec::new();
        for message in messages.drain(..) {
            match message {
                Message::Post(item) => batch.push(*item),
                Message::Flush(done) => flushes.push(done),
            }
        }
        if !batch.is_empty() {
            poster.settle(batch).await;
        }
        if let (false, Some(backlog)) = (flushes.is_empty(), poster.db.backlog()) {
            backlog.caught_up().await.ok();
        }
        for done in flushes {
            done.send(()).ok();
        }
    }
}

/// What became of one charge of a batch that was committed.
enum Committed {
    Booked {
        balance_after: Option<i64>,
    },
    /// The hold had expired. Of a batch that was found in the books: this run is not there.
    Expired,
    /// The claim on the idempotency key had lapsed and was taken over.
    Superseded,
}

/// A batch in a transaction that is yet to be committed.
enum Attempted {
    /// It was in the books already.
    Found(Vec<Committed>),
    Written {
        outcomes: Vec<Committed>,
        /// Accounts that are there from then on.
        new: Vec<Account>,
        /// The last charge's time.
        at: Timestamp,
    },
}

struct Failure {
    error: StoreError,
    /// The commit was sent, so it may have happened.
    in_doubt: bool,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self {
            error,
            in_doubt: false,
        }
    }
}

impl Poster {
    /// Makes a batch durable and answers everyone in it.
    async fn settle(&mut self, mut batch: Vec<Item>) {
        if let Keeper::Memory(balances) = &self.keeper {
            let wrong;
            (batch, wrong) = split_covered(balances, batch);
            if !wrong.is_empty() {
                let error = "the buyer's balance in memory does not cover its hold; restart the host, which reads the books anew";
                fail(wrong, &StoreError::Corrupt(error.into()).into());
            }
            // Whether an answer may be kept only the database knows.
            let (keyed, plain) = batch
                .into_iter()
                .partition(|item| item.receipt.idempotency.is_some());
            let balances = balances.clone();
            self.log(&balances, plain).await;
            batch = keyed;
        }
        if batch.is_empty() {
            return;
        }
        match self.book(&batch).await {
            Ok(outcomes) => answer(batch, outcomes),
            Err(failure) if !failure.in_doubt && batch.len() > 1 && failure.error.is_refusal() => {
                for item in batch {
                    let single = [item];
                    let result = self.book(&single).await;
                    let single = Vec::from(single);
                    match result {
                        Ok(outcomes) => answer(single, outcomes),
                        Err(failure) => fail(single, &failure),
                    }
                }
            }
            Err(failure) => fail(batch, &failure),
        }
    }

    /// Logs a batch and answers everyone in it: what is in the log is durable, and nobody can see that it is not booked yet.
    async fn log(&mut self, balances: &Balances, batch: Vec<Item>) {
        let db = self.db.clone();
        let (Some(backlog), false) = (db.backlog(), batch.is_empty()) else {
            return;
        };
        let pen = match backlog.pen().await {
            Ok(pen) => pen,
            Err(error) => return fail(batch, &error.into()),
        };
        match self.log_with(pen, backlog, balances, &batch).await {
            Ok((pen, logged)) => {
                let outcomes = logged.bookings.iter().map(|booking| {
                    let balance_after = booking.charge.as_ref().map(|charge| charge.balance_after);
                    Committed::Booked { balance_after }
                });
                let outcomes = outcomes.collect();
                let number = logged.number;
                // To the log applier first: whoever then waits for this frame hurries a log applier that has it.
                if self.applier.send(logged).is_err() {
                    let error =
                        StoreError::Unavailable("the log applier is gone; restart the host".into());
                    backlog.note_stalled(&error);
                }
                backlog.note_logged(number);
                answer(batch, outcomes);
                drop(pen);
            }
            Err(failure) => fail(batch, &failure),
        }
    }

    /// Gives the pen back only when the batch is logged, so that no transaction comes between this and what it does to the balances.
    async fn log_with(
        &mut self,
        mut pen: Pen,
        backlog: &Backlog,
        balances: &Balances,
        batch: &[Item],
    ) -> Result<(Pen, Logged), Failure> {
        if let Some(reason) = backlog.stalled() {
            return Err(StoreError::Unavailable(reason).into());
        }
        let mut at = db::now().max(self.last_at);
        let mut levels = levels_in_memory(balances, batch);
        let bookings: Vec<_> = batch
            .iter()
            .map(|item| item.booking(&mut levels, &mut at))
            .collect();
        let frame = bookings::encode(&bookings)?;
        if let Some(number) = pen.must_wait_for(frame.len()) {
            backlog.wait_for(number).await?;
        }
        let begun = Instant::now();
        let appended = pen.append(&frame);
        if begun.elapsed() > SLOW_DISK
            && let Some(unsaid) = said(&SLOW)
        {
            let seconds = begun.elapsed().as_secs_f64();
            tracing::warn!(seconds, unsaid, "the charge log's disk is slow");
        }
        let number = appended.map_err(|error| match error {
            AppendError::Refused(error) => StoreError::Unavailable(error.to_string()).into(),
            AppendError::InDoubt(error) => Failure {
                error: StoreError::Unavailable(error.to_string()),
                in_doubt: true,
            },
        })?;
        self.last_at = at;
        Ok((pen, Logged { number, bookings }))
    }

    /// Tries until the batch is booked, or certainly is not, or patience ends.
    async fn book(&mut self, batch: &[Item]) -> Result<Vec<Committed>, Failure> {
        let mut in_doubt = false;
        let mut pause = PAUSE;
        for attempt in 1.. {
            let failure = match self.attempt(batch, in_doubt).await {
                Ok(outcomes) => return Ok(outcomes),
                Err(failure) => failure,
            };
            in_doubt |= failure.in_doubt;
            if in_doubt
                && matches!(failure.error, StoreError::Conflict)
                && let Ok(Some(outcomes)) = self.read_back(batch).await
            {
                return Ok(outcomes);
            }
            if attempt == TRIES_MAX || failure.error.is_refusal() {
                // A last look: a store that answers again can still say that nothing was booked.
                return match self.read_back(batch).await {
                    Ok(Some(outcomes)) if in_doubt => Ok(outcomes),
                    Ok(_) => Err(Failure {
                        error: failure.error,
                        in_doubt: false,
                    }),
                    Err(_) => Err(Failure {
                        error: failure.error,
                        in_doubt,
                    }),
                };
            }
            if let Some(unsaid) = said(&TRIED_AGAIN) {
                tracing::warn!(error = %failure.error, in_doubt, charges = batch.len(), unsaid, "charges are tried again");
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        unreachable!("the last attempt returns")
    }

    /// Books the batch. `in_doubt`: an attempt before this one may have done so.
    async fn attempt(&mut self, batch: &[Item], in_doubt: bool) -> Result<Vec<Committed>, Failure> {
        let mut write = self.db.write_charges().await?;
        let limit = write.limit(TOLD_WITHIN);
        let attempted = in_time(limit, self.write_batch(&mut write, batch, in_doubt)).await;
        let (outcomes, new, at) = match write.answered(attempted)? {
            Attempted::Found(outcomes) => return Ok(outcomes),
            Attempted::Written { outcomes, new, at } => (outcomes, new, at),
        };
        write.commit().await.map_err(|error| Failure {
            error,
            in_doubt: true,
        })?;
        self.known.extend(new);
        self.last_at = at;
        Ok(outcomes)
    }

    async fn write_batch(
        &self,
        write: &mut Write,
        batch: &[Item],
        in_doubt: bool,
    ) -> Result<Attempted, Failure> {
        let touched = touched(batch);
        let new: Vec<Account> = touched
            .accounts()
            .filter(|account| !self.known.contains(account))
            .cloned()
            .collect();
        let (superseded, mut given_back) = keep_answers(write, batch).await?;
        if !new.is_empty() {
            accounts::ensure_accounts(write, new.iter()).await?;
        }
        let mut levels = match &self.keeper {
            Keeper::Memory(balances) => levels_in_memory(balances, batch),
            Keeper::Rows(_) => {
                let accounts = touched.accounts().cloned().collect();
                accounts::lock(write, accounts).await?
            }
        };
        // Behind the locks: a commit that was still on its way has ended. If it went through, the holds are not there because they are spent, and
        // the answers that were kept stay.
        if in_doubt && let Some(outcomes) = booked(write, batch).await? {
            return Ok(Attempted::Found(outcomes));
        }
        let mut expired = HashSet::new();
        if let Keeper::Rows(_) = &self.keeper {
            expired = take_holds(write, batch, &superseded).await?;
            forget_answers(write, batch, &expired, &mut given_back).await?;
        }

        let mut at = db::now().max(self.last_at);
        let mut outcomes = Vec::with_capacity(batch.len());
        let mut bookings = Vec::with_capacity(batch.len());
        for (index, item) in batch.iter().enumerate() {
            if superseded.contains(&index) {
                outcomes.push(Committed::Superseded);
                continue;
            }
            if expired.contains(item.hold.execution.as_str()) {
                outcomes.push(Committed::Expired);
                continue;
            }
            let booking = item.booking(&mut levels, &mut at);
            let balance_after = booking.charge.as_ref().map(|charge| charge.balance_after);
            bookings.push(booking);
            outcomes.push(Committed::Booked { balance_after });
        }
        let script = bookings::script(&bookings, matches!(self.keeper, Keeper::Rows(_)));
        script.run(write).await?;
        events::emit(write, &bookings::low(&bookings)).await?;
        given_back.apply(write).await?;
        Ok(Attempted::Written { outcomes, new, at })
    }

    /// What a batch that may have been booked before left; `None`: it was not booked.
    async fn read_back(&self, batch: &[Item]) -> Result<Option<Vec<Committed>>, StoreError> {
        // The writer's connection: on SQLite no other could be sure to see what it saw last.
        let mut write = self.db.writers_view().await?;
        let limit = write.limit(TOLD_WITHIN);
        let found = async {
            if let Keeper::Rows(_) = &self.keeper {
                // A commit that is still on its way is not seen before it ends, and has them locked until then.
                let accounts = touched(batch).accounts().cloned().collect();
                accounts::lock(&mut write, accounts).await?;
            }
            booked(&mut write, batch).await
        };
        let found = in_time(limit, found).await;
        write.answered(found)
    }
}

/// The accounts that a batch moves money between.
fn touched(batch: &[Item]) -> AccountChanges {
    let mut touched = AccountChanges::default();
    for item in batch.iter().filter(|item| item.transaction.is_some()) {
        let (buyer, seller) = (&item.hold.buyer, &item.receipt.run.seller);
        for entry in ledger::charge_entries(buyer, seller, item.hold.amount) {
            touched.add(&entry);
        }
    }
    touched
}

/// What became of a batch that is in the books; `None`: it is not there.
async fn booked(write: &mut Write, batch: &[Item]) -> Result<Option<Vec<Committed>>, StoreError> {
    let mut outcomes = Vec::with_capacity(batch.len());
    let mut found = false;
    for item in batch {
        let row = sqlx::query(
            "SELECT e.id, t.balance_after_credits
             FROM executions e
             LEFT JOIN transactions t ON t.id = e.transaction_id
             WHERE e.id = $1 AND (e.transaction_id = $2 OR (e.transaction_id IS NULL AND $2 IS NULL))",
        )
        .bind(item.receipt.run.id.as_str())
        .bind(item.transaction.as_ref().map(TransactionId::as_str))
        .fetch_optional(&mut **write)
        .await?;
        outcomes.push(match row {
            Some(row) => {
                found = true;
                Committed::Booked {
                    balance_after: row.number_opt("balance_after_credits")?,
                }
            }
            None => Committed::Expired,
        });
    }
    Ok(found.then_some(outcomes))
}

/// The charges that the buyers' balances cover, and those that only a defect can have made: they must not get into the books.
fn split_covered(balances: &Balances, batch: Vec<Item>) -> (Vec<Item>, Vec<Item>) {
    let charges = batch
        .iter()
        .map(|item| (&item.hold.buyer, item.hold.amount));
    let uncovered = balances.uncovered(charges);
    if uncovered.is_empty() {
        return (batch, Vec::new());
    }
    let (wrong, covered): (Vec<_>, Vec<_>) = batch
        .into_iter()
        .enumerate()
        .partition(|(index, _)| uncovered.contains(index));
    let items = |numbered: Vec<(usize, Item)>| numbered.into_iter().map(|(_, item)| item).collect();
    (items(covered), items(wrong))
}

/// Where the buyers in the batch stand: nobody else can change it while this has the turn to write.
fn levels_in_memory(balances: &Balances, batch: &[Item]) -> HashMap<String, Level> {
    let buyers: HashSet<_> = batch.iter().map(|item| &item.hold.buyer).collect();
    buyers
        .into_iter()
        .map(|buyer| (Account::Buyer(buyer.clone()).id(), balances.level(buyer)))
        .collect()
}

/// Deletes the holds that are being spent, on a shared store. Returns the runs whose hold was gone.
async fn take_holds(
    write: &mut Write,
    batch: &[Item],
    superseded: &HashSet<usize>,
) -> Result<HashSet<String>, StoreError> {
    // The hold of a superseded run stays until it is released like any other that is not posted.
    let paying: Vec<_> = batch
        .iter()
        .enumerate()
        .filter(|(index, item)| item.transaction.is_some() && !superseded.contains(index))
        .map(|(_, item)| &item.hold.execution)
        .collect();
    let held: HashSet<_> = reservations::delete(write, &paying)
        .await?
        .into_iter()
        .map(|(execution, _, _)| execution)
        .collect();
    let expired = paying
        .into_iter()
        .filter(|execution| !held.contains(*execution));
    Ok(expired.map(|execution| execution.to_string()).collect())
}

fn answer(batch: Vec<Item>, outcomes: Vec<Committed>) {
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

/// Some hundred times what a sync takes.
const SLOW_DISK: Duration = Duration::from_millis(250);

/// A disk that is full fails every batch: a line a second says as much as thousands.
static SLOW: Throttle = Throttle::new(1);
static NOT_BOOKED: Throttle = Throttle::new(1);
static TRIED_AGAIN: Throttle = Throttle::new(1);

/// `Some`: it may be said now, and was not so often before.
fn said(throttle: &Throttle) -> Option<u64> {
    throttle.may(u32::try_from(crate::db::now().seconds()).unwrap_or(u32::MAX))
}

fn fail(batch: Vec<Item>, failure: &Failure) {
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

#[cfg(test)]
mod tests {
    use super::super::balance::Balance;
    use super::super::hold::{HoldRequest, Release};
    use super::super::tests::run;
    use super::*;
    use souk_domain::ids::CompanyId;
    use souk_domain::money::Credits;
    use std::sync::Arc;

    fn item(buyer: &CompanyId, credits: i64) -> Item {
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

    /// What a balance does not cover is set apart; the others keep their order, and the balance stays as it is.
    #[test]
    fn what_a_balance_does_not_cover_is_set_apart() {
        let [buyer, stranger] = [(); 2].map(|()| CompanyId::generate());
        let before = Balance {
            posted: 10,
            held: 10,
        };
        let balances = Balances::of(&buyer, before);
        let amounts = |items: Vec<Item>| -> Vec<i64> {
            let amounts = items.iter().map(|item| item.hold.amount.get());
            amounts.collect()
        };
        let batch = vec![
            item(&buyer, 4),
            item(&stranger, 1),
            item(&buyer, 7),
            item(&buyer, 6),
        ];
        let (covered, wrong) = split_covered(&balances, batch);
        assert_eq!((amounts(covered), amounts(wrong)), (vec![4, 6], vec![1, 7]));
        let (covered, wrong) = split_covered(&balances, vec![item(&buyer, 10)]);
        assert_eq!((amounts(covered), amounts(wrong)), (vec![10], vec![]));
        assert_eq!(balances.balance(&buyer), before);
    }
}
