//! A batch of charges in a transaction: a handful of statements, however many charges it has.
//!
//! Refuses to know how the transaction begins and ends, and when it is tried again: that is the [poster](super::poster)'s. Start reading at [`write`].

use super::answers::{forget_answers, keep_answers};
use super::balances::Balances;
use super::bookings;
use super::hold::Keeper;
use super::item::{Committed, Item};
use super::reservations;
use crate::accounts::{self, Account, AccountChanges, Level};
use crate::db::{self, Write};
use crate::error::StoreError;
use crate::events;
use crate::fields::Fields;
use crate::ledger;
use souk_domain::ids::TransactionId;
use souk_domain::time::Timestamp;
use std::collections::{HashMap, HashSet};

/// What the batches before this one leave to it.
#[derive(Default)]
pub(super) struct Known {
    /// Accounts that are known to exist.
    pub accounts: HashSet<Account>,
    /// When the last charge was booked: each is later than the one before, so that statements show them in their order.
    pub last_at: Timestamp,
}

/// A batch in a transaction that is yet to be committed.
pub(super) enum Attempted {
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

/// Books the batch, if it is not in the books already: `in_doubt`, a transaction before this one may have put it there. On a store of this host's own the
/// turn to write makes sure that the balances in memory are those of the books.
pub(super) async fn write(
    write: &mut Write,
    keeper: &Keeper,
    known: &Known,
    batch: &[Item],
    in_doubt: bool,
) -> Result<Attempted, StoreError> {
    let touched = touched(batch);
    let new: Vec<Account> = touched
        .accounts()
        .filter(|account| !known.accounts.contains(account))
        .cloned()
        .collect();
    let (superseded, mut given_back) = keep_answers(write, batch).await?;
    if !new.is_empty() {
        accounts::ensure_accounts(write, new.iter()).await?;
    }
    let mut levels = match keeper {
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
    if let Keeper::Rows(_) = keeper {
        expired = take_holds(write, batch, &superseded).await?;
        forget_answers(write, batch, &expired, &mut given_back).await?;
    }

    let mut at = db::now().max(known.last_at);
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
    let script = bookings::script(&bookings, matches!(keeper, Keeper::Rows(_)));
    script.run(write).await?;
    events::emit(write, &bookings::low(&bookings)).await?;
    given_back.apply(write).await?;
    Ok(Attempted::Written { outcomes, new, at })
}

/// What a batch that may have been booked before left; `None`: it was not booked.
pub(super) async fn find(
    write: &mut Write,
    keeper: &Keeper,
    batch: &[Item],
) -> Result<Option<Vec<Committed>>, StoreError> {
    if let Keeper::Rows(_) = keeper {
        // A commit that is still on its way is not seen before it ends, and has them locked until then.
        let accounts = touched(batch).accounts().cloned().collect();
        accounts::lock(write, accounts).await?;
    }
    booked(write, batch).await
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

/// Where the buyers in the batch stand: nobody else can change it while this has the turn to write.
pub(super) fn levels_in_memory(balances: &Balances, batch: &[Item]) -> HashMap<String, Level> {
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
