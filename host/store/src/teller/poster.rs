//! Makes charges durable, many at once. While a batch is being synced, the next collects in the queue.
//!
//! On a store that this host has to itself a batch goes into the charge log and is booked behind ([`bookings`]); only charges whose answer
//! is kept for a retry are booked at once, like all charges on a shared store.
//!
//! One batch is a handful of statements ([`batch`]), however many charges it has. Either all of it is booked or nothing; a batch that the store refuses
//! is tried again charge by charge, so that one bad charge fails alone. When a commit's outcome is unknown, the batch is tried again with
//! the same ids: where those are in the books already, that is its outcome, and else it books now.

use super::balances::Balances;
use super::batch::{self, Attempted, Known, levels_in_memory};
use super::bookings;
use super::hold::Keeper;
use super::item::{Committed, Failure, Item, answer, fail, said};
use super::log_applier::{self, Logged};
use crate::bulk::ROWS_MAX;
use crate::charge_log::AppendError;
use crate::db::{self, Backlog, Db, Pen};
use crate::error::StoreError;
use souk_domain::throttle::Throttle;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Tries of one batch before its charges fail, and the pause before the second; it doubles each time. About 0.75 s in all, well within a
/// caller's patience and long enough for a PostgreSQL failover's quick cases.
const TRIES_MAX: u32 = 5;
const PAUSE: Duration = Duration::from_millis(50);
/// A batch is not tried again so long after it was tried first: all other charges of this host wait behind it, and most of what was held for it has expired.
/// A network that loses one connection after the other would take up all tries; whatever it swallows of the first, there is time for a second.
const TRIED_WITHIN: Duration = Duration::from_secs(60);
/// So long a charge waits behind batches that the store does not answer; then it fails untried. Sixteen batches may wait, and each would take as many tries as
/// the one before it.
const WAITS_WITHIN: Duration = Duration::from_secs(30);

pub(super) enum Message {
    Post(Box<Item>),
    Flush(oneshot::Sender<()>),
}

struct Poster {
    db: Db,
    keeper: Keeper,
    /// Where logged charges are booked.
    applier: mpsc::UnboundedSender<Logged>,
    known: Known,
    /// The store has not answered what was to be booked last.
    is_unanswered: bool,
}

pub(super) async fn run(db: Db, keeper: Keeper, mut queue: mpsc::Receiver<Message>) {
    let (applier, logged) = mpsc::unbounded_channel();
    tokio::spawn(log_applier::run(db.clone(), logged));
    let mut poster = Poster {
        db,
        keeper,
        applier,
        known: Known::default(),
        is_unanswered: false,
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
        if self.is_unanswered {
            let late;
            (batch, late) = split_late(batch, Instant::now());
            let error =
                "what was to be booked before it was not answered, and it has waited for too long";
            fail(late, &StoreError::unavailable(error).into());
        }
        if batch.is_empty() {
            return;
        }
        match self.book(&batch).await {
            Ok(outcomes) => answer(batch, outcomes),
            Err(failure) if !failure.in_doubt && batch.len() > 1 && failure.error.is_refusal() => {
                self.settle_each(batch).await;
            }
            Err(failure) => fail(batch, &failure),
        }
    }

    /// Books the charges of a batch that was refused one by one. When the store goes away meanwhile, those that are left fail with the one that met that: each
    /// would take as many tries as a batch, and all other charges wait.
    async fn settle_each(&mut self, batch: Vec<Item>) {
        let mut left = batch.into_iter();
        while let Some(item) = left.next() {
            let single = vec![item];
            match self.book(&single).await {
                Ok(outcomes) => answer(single, outcomes),
                Err(failure) if failure.error.is_refusal() => fail(single, &failure),
                Err(failure) => {
                    fail(single, &failure);
                    // Nothing was sent for them.
                    let untried = Failure {
                        in_doubt: false,
                        ..failure
                    };
                    return fail(left.collect(), &untried);
                }
            }
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
        let mut at = db::now().max(self.known.last_at);
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
        self.known.last_at = at;
        Ok((pen, Logged { number, bookings }))
    }

    /// Books the batch, and notes whether the store answers.
    async fn book(&mut self, batch: &[Item]) -> Result<Vec<Committed>, Failure> {
        let booked = self.try_to_book(batch).await;
        self.is_unanswered = matches!(&booked, Err(failure) if !failure.error.is_refusal());
        booked
    }

    /// Tries until the batch is booked, or certainly is not, or patience ends.
    async fn try_to_book(&mut self, batch: &[Item]) -> Result<Vec<Committed>, Failure> {
        let mut in_doubt = false;
        let mut pause = PAUSE;
        let begun = Instant::now();
        for tries in 1.. {
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
            if !is_tried_again(&failure.error, tries, begun.elapsed()) {
                // Of what was never sent to be committed the books say nothing that is not known.
                if !in_doubt {
                    return Err(failure);
                }
                // A last look: a store that answers again can still say that nothing was booked.
                let (found, error) = (self.read_back(batch).await, failure.error);
                return match found {
                    Ok(Some(outcomes)) => Ok(outcomes),
                    Ok(None) => Err(error.into()),
                    Err(_) => Err(Failure { error, in_doubt }),
                };
            }
            if let Some(unsaid) = said(&TRIED_AGAIN) {
                tracing::warn!(error = %failure.error, in_doubt, charges = batch.len(), unsaid, "charges are tried again");
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        unreachable!("the last try returns")
    }

    /// Books the batch. `in_doubt`: an attempt before this one may have done so.
    async fn attempt(&mut self, batch: &[Item], in_doubt: bool) -> Result<Vec<Committed>, Failure> {
        let mut write = self.db.write_charges().await?;
        let patience = write.patience();
        let attempted = batch::write(&mut write, &self.keeper, &self.known, batch, in_doubt);
        let attempted = patience.with(attempted).await;
        let (outcomes, new, at) = match write.answered(attempted)? {
            Attempted::Found(outcomes) => return Ok(outcomes),
            Attempted::Written { outcomes, new, at } => (outcomes, new, at),
        };
        write.commit().await.map_err(|error| Failure {
            error,
            in_doubt: true,
        })?;
        self.known.accounts.extend(new);
        self.known.last_at = at;
        Ok(outcomes)
    }

    /// What a batch that may have been booked before left; `None`: it was not booked.
    async fn read_back(&self, batch: &[Item]) -> Result<Option<Vec<Committed>>, StoreError> {
        // The writer's connection: on SQLite no other could be sure to see what it saw last.
        let mut write = self.db.writers_view().await?;
        let patience = write.patience();
        let found = batch::find(&mut write, &self.keeper, batch);
        let found = patience.with(found).await;
        write.answered(found)
    }
}

/// Whether a batch that has failed with this is tried again, after so many tries in so much time.
fn is_tried_again(error: &StoreError, tries: u32, took: Duration) -> bool {
    !error.is_refusal() && tries < TRIES_MAX && took < TRIED_WITHIN
}

/// The charges that are tried, and those that have waited for too long by now.
fn split_late(batch: Vec<Item>, now: Instant) -> (Vec<Item>, Vec<Item>) {
    let waits = |item: &Item| now.saturating_duration_since(item.posted) < WAITS_WITHIN;
    batch.into_iter().partition(waits)
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

/// Some hundred times what a sync takes.
const SLOW_DISK: Duration = Duration::from_millis(250);

/// A disk that is full fails every batch: a line a second says as much as thousands.
static SLOW: Throttle = Throttle::new(1);
static TRIED_AGAIN: Throttle = Throttle::new(1);

#[cfg(test)]
mod tests {
    use super::super::balance::Balance;
    use super::super::item::tests::item;
    use super::*;
    use souk_domain::ids::CompanyId;

    /// What a store refuses is not tried again, nor what it does not answer again and again: whoever is charged next waits for that.
    #[test]
    fn tries_are_bounded_in_number_and_time() {
        let silent = || StoreError::Unavailable("PostgreSQL does not answer".into());
        let soon = Duration::from_secs(1);
        assert!(is_tried_again(&silent(), 1, TRIED_WITHIN - soon));
        assert!(is_tried_again(&StoreError::Busy, TRIES_MAX - 1, soon));
        assert!(!is_tried_again(&silent(), 1, TRIED_WITHIN));
        assert!(!is_tried_again(&silent(), TRIES_MAX, soon));
        assert!(!is_tried_again(&StoreError::Conflict, 1, soon));
    }

    /// Who has waited for too long is set apart, and nobody who came later.
    #[test]
    fn who_has_waited_for_too_long_is_set_apart() {
        let buyer = CompanyId::generate();
        let (first, mut later) = (item(&buyer, 4), item(&buyer, 7));
        later.posted = first.posted + Duration::from_secs(1);
        let now = first.posted + WAITS_WITHIN;
        let amounts = |items: Vec<Item>| -> Vec<i64> {
            let amounts = items.iter().map(|item| item.hold.amount.get());
            amounts.collect()
        };
        let (tried, late) = split_late(vec![first, later], now);
        assert_eq!((amounts(tried), amounts(late)), (vec![7], vec![4]));
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
