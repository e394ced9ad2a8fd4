//! Charges on their way into the books: what is written for each, and the log applier that books what was logged.
//!
//! On a store that this host has to itself a charge is durable, and answered, when it is in the charge log. The log applier books logged charges
//! behind, many in one transaction, which also notes how far the log is booked: a frame is booked once, whatever happens. Nobody can see
//! the difference (`db/backlog.rs`).

use crate::accounts::{self, Account, AccountChanges, Level};
use crate::bulk::{Bulk, JOINED_ROWS_MAX, ROWS_MAX, Script, Style};
use crate::charge_log::Frame;
use crate::db::{self, Db, Turn, Write};
use crate::error::StoreError;
use crate::events::{self, Event};
use crate::executions::{self, DayCounts, DayKey, Run};
use crate::fields::Fields;
use crate::ledger::{self, Entry, Transaction, TransactionType};
use serde::{Deserialize, Serialize};
use serde_json::json;
use souk_domain::ids::{CompanyId, TransactionId};
use souk_domain::money::{CENTS_PER_CREDIT, Credits};
use souk_domain::time::Timestamp;
use souk_domain::webhooks::EventType;
use sqlx::{AnyConnection, Executor};
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;
use tokio::sync::mpsc;

/// A run that is going to be in the books, with its charge if it has one.
///
/// This is also what a frame of the charge log holds, as JSON: an update must read what the version before it logged. New fields need
/// `#[serde(default)]`; that goes for [`Run`] and what is in it, too.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Booking {
    pub run: Run,
    pub buyer: CompanyId,
    pub amount: Credits,
    pub charge: Option<Charge>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Charge {
    pub transaction: TransactionId,
    /// The buyer's credits after it.
    pub balance_after: i64,
    pub at: Timestamp,
    /// Where the account stands, if this charge made its balance low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<Level>,
}

impl Booking {
    fn entries(&self) -> Vec<Entry> {
        match self.charge {
            Some(_) => ledger::charge_entries(&self.buyer, &self.run.seller, self.amount),
            None => Vec::new(),
        }
    }

    fn transaction(&self) -> Option<Transaction> {
        let charge = self.charge.as_ref()?;
        let run = &self.run;
        Some(Transaction {
            id: charge.transaction.clone(),
            seller: Some(run.seller.clone()),
            balance_after: Some(charge.balance_after),
            product_type: Some(run.product.product_type()),
            product_id: Some(run.product.id().to_owned()),
            purchase: run.purchase.clone(),
            price: run.price.clone(),
            execution: Some(run.id.clone()),
            actor: Some(run.actor.clone()),
            request: Some(run.request.clone()),
            ..Transaction::new(
                TransactionType::Charge,
                self.buyer.clone(),
                -self.amount.get(),
                self.amount.cents(),
                charge.at,
            )
        })
    }
}

/// The accounts that bookings touch.
pub(super) fn accounts(bookings: &[Booking]) -> AccountChanges {
    let mut touched = AccountChanges::default();
    for entry in bookings.iter().flat_map(Booking::entries) {
        touched.add(&entry);
    }
    touched
}

/// What is told of the charges that took a balance below what is low for its buyer.
pub(super) fn low(bookings: &[Booking]) -> Vec<Event> {
    bookings
        .iter()
        .filter_map(|booking| {
            let charge = booking.charge.as_ref()?;
            let level = charge.low?;
            Some(Event {
                company: booking.buyer.clone(),
                kind: EventType::CreditsLow,
                at: charge.at,
                data: json!({
                    "company_id": booking.buyer,
                    "balance_credits": level.balance / CENTS_PER_CREDIT,
                    "threshold_credits": level.low / CENTS_PER_CREDIT,
                    "transaction_id": charge.transaction,
                }),
            })
        })
        .collect()
}

/// The statements that book. On a shared store they also take back what the holds reserved.
pub(super) fn script(bookings: &[Booking], is_shared: bool) -> Script {
    let style = match is_shared {
        true => Style::Nested,
        false if bookings.len() <= JOINED_ROWS_MAX / 2 => Style::Joined,
        false => Style::Separate,
    };
    let transactions: Vec<_> = bookings.iter().filter_map(Booking::transaction).collect();
    let mut changes = AccountChanges::default();
    let mut entries = Vec::with_capacity(bookings.len() * 2);
    let mut days: BTreeMap<DayKey, DayCounts> = BTreeMap::new();
    for booking in bookings {
        for entry in booking.entries() {
            changes.add(&entry);
            if let Some(charge) = &booking.charge {
                entries.push((&charge.transaction, entry));
            }
        }
        if is_shared && booking.charge.is_some() {
            changes.hold(&booking.buyer, -booking.amount.cents().get());
        }
        days.entry(DayKey::of(&booking.run))
            .or_default()
            .add_run(&booking.run, booking.amount);
    }
    let runs: Vec<_> = bookings
        .iter()
        .map(|booking| executions::Row {
            run: &booking.run,
            transaction: booking.charge.as_ref().map(|charge| &charge.transaction),
            credits: booking.amount,
        })
        .collect();
    let mut script = Script::new(style);
    ledger::insert_transactions(&mut script, &transactions);
    let entries: Vec<_> = entries.iter().map(|(id, entry)| (*id, entry)).collect();
    ledger::insert_entries(&mut script, &entries);
    executions::insert(&mut script, &runs);
    executions::add_days(&mut script, &days.into_iter().collect::<Vec<_>>());
    changes.apply(&mut script);
    script
}

/// What a frame holds.
pub(super) fn encode(bookings: &[Booking]) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(bookings).map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn decode(frame: &Frame) -> Result<Vec<Booking>, StoreError> {
    serde_json::from_slice(&frame.payload)
        .map_err(|error| StoreError::Corrupt(format!("charge log, {}: {error}", frame.number)))
}

static BOOKED: Bulk = Bulk::new(
    "UPDATE charge_log SET booked = v.column1",
    1,
    "WHERE charge_log.id = 1",
);

/// Up to which frame the charge log is booked.
pub(crate) async fn booked(db: &mut AnyConnection) -> Result<u64, StoreError> {
    let row = sqlx::query("SELECT booked FROM charge_log WHERE id = 1")
        .fetch_one(db)
        .await?;
    u64::try_from(row.number("booked")?).map_err(|error| crate::fields::corrupt("booked", error))
}

fn note_booked(script: &mut Script, number: u64) {
    script.add(&BOOKED, &[number], |values, row| {
        values.number(row.and_then(|number| i64::try_from(*number).ok()));
    });
}

/// Books logged charges.
struct LogApplier {
    db: Db,
    /// Accounts that are known to exist.
    known: HashSet<Account>,
}

impl LogApplier {
    /// Books all of them. One that the books refuse is set aside: it was answered, so it must not be lost, and the others must go on.
    async fn settle(&mut self, bookings: &[Booking], number: u64) -> Result<(), StoreError> {
        match self.book(bookings, number).await {
            Err(error) if error.is_contradiction() => {
                tracing::error!(%error, number, "the books refuse a logged charge");
                let mut write = self.db.turn_for_backlog().await?.begin().await?;
                accounts::ensure_accounts(&mut write, accounts(bookings).accounts()).await?;
                for booking in bookings {
                    book_or_set_aside(&mut write, booking, number).await?;
                }
                let mut script = Script::new(Style::Separate);
                note_booked(&mut script, number);
                script.run(&mut write).await?;
                write.commit().await
            }
            result => result,
        }
    }

    /// Books all of them, and that the log is booked up to `number`, or nothing.
    async fn book(&mut self, bookings: &[Booking], number: u64) -> Result<(), StoreError> {
        let turn = self.db.turn_for_backlog().await?;
        let touched = accounts(bookings);
        let new: Vec<Account> = touched
            .accounts()
            .filter(|account| !self.known.contains(account))
            .cloned()
            .collect();
        let mut script = script(bookings, false);
        note_booked(&mut script, number);
        let low = low(bookings);
        let booked = match new.is_empty() && low.is_empty() {
            true => turn.run_whole(script).await.map_err(|failed| failed.error),
            false => book_in_steps(turn, &new, script, &low).await,
        };
        if let Err(error) = booked {
            // A commit that failed may have happened all the same.
            let mut write = self.db.turn_for_backlog().await?.begin().await?;
            if self::booked(&mut write).await? != number {
                return Err(error);
            }
        }
        self.known.extend(new);
        Ok(())
    }
}

async fn book_or_set_aside(
    write: &mut Write,
    booking: &Booking,
    number: u64,
) -> Result<(), StoreError> {
    let one = std::slice::from_ref(booking);
    write.execute("SAVEPOINT one").await?;
    let error = match script(one, false).run(write).await {
        Ok(()) => {
            write.execute("RELEASE one").await?;
            return tell_low(write, &low(one)).await;
        }
        Err(error) if error.is_contradiction() => error,
        Err(error) => return Err(error),
    };
    write.execute("ROLLBACK TO one").await?;
    write.execute("RELEASE one").await?;
    let execution = &booking.run.id;
    tracing::error!(%error, %execution, credits = %booking.amount, "a charge was set aside; reconciliation shows it");
    let whole =
        serde_json::to_string(booking).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    sqlx::query(
        "INSERT INTO refused_charges (execution_id, frame, credits, booking, error, refused_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (frame, execution_id) DO NOTHING",
    )
    .bind(execution.as_str())
    .bind(i64::try_from(number).unwrap_or(i64::MAX))
    .bind(booking.amount.get())
    .bind(whole)
    .bind(error.to_string())
    .bind(db::now().micros())
    .execute(&mut **write)
    .await?;
    Ok(())
}

async fn book_in_steps(
    turn: Turn,
    new: &[Account],
    script: Script,
    low: &[Event],
) -> Result<(), StoreError> {
    let mut write: Write = turn.begin().await?;
    accounts::ensure_accounts(&mut write, new.iter()).await?;
    script.run(&mut write).await?;
    tell_low(&mut write, low).await?;
    write.commit().await
}

/// Writes the events, if they can be written: a logged charge must be booked even if a webhook is not told.
async fn tell_low(write: &mut Write, low: &[Event]) -> Result<(), StoreError> {
    if low.is_empty() {
        return Ok(());
    }
    write.execute("SAVEPOINT told").await?;
    match events::emit(write, low).await {
        Err(error) if error.is_refusal() => {
            tracing::error!(%error, "that credits are low was not told");
            write.execute("ROLLBACK TO told").await?;
        }
        result => result?,
    }
    write.execute("RELEASE told").await?;
    Ok(())
}

/// Books what a former process left in the log, before anybody else can read or write.
pub(crate) async fn book_frames(db: &Db, frames: &[Frame]) -> Result<(), StoreError> {
    let mut applier = LogApplier {
        db: db.clone(),
        known: HashSet::new(),
    };
    let mut due = Vec::new();
    let mut last = 0;
    for frame in frames {
        let bookings = decode(frame)?;
        if !due.is_empty() && due.len() + bookings.len() > ROWS_MAX {
            applier.settle(&due, last).await?;
            due.clear();
        }
        due.extend(bookings);
        last = frame.number;
    }
    match due.is_empty() {
        true => Ok(()),
        false => applier.settle(&due, last).await,
    }
}

/// A frame that was just logged.
pub(super) struct Logged {
    pub number: u64,
    pub bookings: Vec<Booking>,
}

/// How long charges wait for others to be booked with, as long as nobody waits for the books: fewer, larger transactions leave the
/// processor and the disk to the log.
const LINGER: Duration = Duration::from_millis(25);
/// Failed tries after which nobody waits for the books any more and nothing more is logged, until one succeeds.
const FAILURES_MAX: u32 = 3;
/// Between two tries, which doubles up to the maximum.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Books what is logged until the teller is gone. As the log has a fixed size, so has the queue.
pub(super) async fn run(db: Db, mut queue: mpsc::UnboundedReceiver<Logged>) {
    let Some(backlog) = db.backlog() else { return };
    let mut applier = LogApplier {
        db: db.clone(),
        known: HashSet::new(),
    };
    let mut next = queue.recv().await;
    while let Some(first) = next.take() {
        let Logged {
            mut number,
            mut bookings,
        } = first;
        let full = async {
            while bookings.len() < ROWS_MAX
                && let Some(more) = queue.recv().await
            {
                if bookings.len() + more.bookings.len() > ROWS_MAX {
                    next = Some(more);
                    return;
                }
                number = more.number;
                bookings.extend(more.bookings);
            }
        };
        tokio::select! {
            // In this order: who hurries waits for everything that is in the queue.
            biased;
            () = full => {}
            () = backlog.hurried() => {}
            () = tokio::time::sleep(LINGER) => {}
        }
        let mut pause = PAUSE;
        let mut failures = 0;
        while let Err(error) = applier.settle(&bookings, number).await {
            if db.is_closed() {
                // The next start books them.
                return;
            }
            failures += 1;
            tracing::error!(%error, failures, charges = bookings.len(), "logged charges cannot be booked; they are tried again");
            if failures >= FAILURES_MAX {
                backlog.note_stalled(&error);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        backlog.note_booked(number);
        if next.is_none() {
            next = queue.recv().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executions::{Billing, Outcome};
    use souk_domain::ids::{AssetId, ExecutionId, KeyId, PriceId, PurchaseId, RequestId};
    use souk_domain::products::Product;

    /// A charge comes out of the log as it went in, to the microsecond.
    #[test]
    fn a_booking_survives_the_log() {
        let at = Timestamp::from_micros(1_795_000_000_123_457);
        let run = Run {
            id: ExecutionId::generate_at(at),
            company: CompanyId::generate(),
            seller: CompanyId::generate(),
            product: Product::Asset(AssetId::generate()),
            purchase: Some(PurchaseId::generate()),
            price: Some(PriceId::generate()),
            actor: KeyId::generate().into(),
            request: RequestId::generate_at(at),
            outcome: Outcome::Failed {
                code: "A".into(),
                blame: "b".into(),
            },
            billing: Billing::Charged,
            rows: 3,
            bytes: 4,
            started_at: at,
            duration_us: 5,
        };
        let charge = Some(Charge {
            transaction: TransactionId::generate_at(at),
            balance_after: 9,
            at: at.after(Duration::from_micros(1)),
            low: Some(Level {
                balance: 9,
                held: 1,
                low: 10,
            }),
        });
        let booking = Booking {
            buyer: run.company.clone(),
            run,
            amount: Credits::new(7).unwrap(),
            charge,
        };
        let frame = Frame {
            number: 1,
            payload: encode(std::slice::from_ref(&booking)).unwrap(),
        };
        let back = decode(&frame).unwrap();
        assert_eq!(format!("{back:?}"), format!("{:?}", [booking]));
    }
}
