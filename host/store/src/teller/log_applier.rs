//! The log applier: books what is in the charge log.
//!
//! On a store that this host has to itself a charge is durable, and answered, when it is in the charge log. The log applier books logged charges
//! behind, many in one transaction, which also notes how far the log is booked: a frame is booked once, whatever happens. Nobody can see
//! the difference (`db/backlog.rs`).

use super::bookings::{Booking, accounts, decode, low, script};
use crate::accounts::{self, Account};
use crate::bulk::{Bulk, ROWS_MAX, Script, Style};
use crate::charge_log::Frame;
use crate::db::{self, Db, Turn, Write};
use crate::error::StoreError;
use crate::events::{self, Event};
use crate::fields::Fields;
use sqlx::{AnyConnection, Executor};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::mpsc;

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
