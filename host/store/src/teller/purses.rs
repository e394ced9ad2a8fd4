//! Balances and holds in memory, on a store that this host has to itself.
//!
//! Exact because every way in which a buyer's balance changes passes here: charges through the poster, everything else announces what it
//! credited while its transaction still is the only writer.

use super::standing::{HoldError, Standing};
use crate::accounts::{self, Account, Level};
use crate::changes::PurseChange;
use crate::db::Db;
use crate::error::StoreError;
use parking_lot::Mutex;
use souk_domain::ids::CompanyId;
use souk_domain::money::{CENTS_PER_CREDIT, Credits};
use souk_domain::payments::CREDITS_LOW_DEFAULT;
use std::collections::HashMap;
use std::sync::Arc;

/// What every buyer has, in credits. A company without a purse has nothing.
pub(super) struct Purses {
    by_buyer: Mutex<HashMap<CompanyId, Standing>>,
    /// Below how many credits a balance is low, where the company has chosen. Most have not.
    low_at: Mutex<HashMap<CompanyId, i64>>,
}

/// Reads all balances, with no writer in between, and keeps them up from then on.
pub(super) async fn open(db: &Db) -> Result<Arc<Purses>, StoreError> {
    let mut write = db.writers_view().await?;
    let mut by_buyer = HashMap::new();
    for (account, balance) in accounts::buyer_balances(&mut write).await? {
        if let Account::Buyer(company) = account {
            let posted = balance.get() / CENTS_PER_CREDIT;
            by_buyer.insert(company, Standing { posted, held: 0 });
        }
    }
    let low_at = accounts::chosen_lows(&mut write).await?;
    let purses = Arc::new(Purses {
        by_buyer: Mutex::new(by_buyer),
        low_at: Mutex::new(low_at.into_iter().collect()),
    });
    let weak = Arc::downgrade(&purses);
    db.on_credit(Box::new(move |changes| {
        let Some(purses) = weak.upgrade() else { return };
        for (buyer, change) in changes {
            purses.apply(buyer, *change);
        }
    }))?;
    Ok(purses)
}

impl Purses {
    fn apply(&self, buyer: &CompanyId, change: PurseChange) {
        match change {
            PurseChange::Gained(amount) => {
                let mut by_buyer = self.by_buyer.lock();
                by_buyer.entry(buyer.clone()).or_default().posted +=
                    amount.get() / CENTS_PER_CREDIT;
            }
            PurseChange::LowAt(Some(credits)) => {
                self.low_at.lock().insert(buyer.clone(), credits);
            }
            PurseChange::LowAt(None) => {
                self.low_at.lock().remove(buyer);
            }
        }
    }

    /// Where the account stands. Exact for whoever has the turn to write.
    pub(super) fn level(&self, buyer: &CompanyId) -> Level {
        let standing = self.standing(buyer);
        let low_at = self.low_at.lock().get(buyer).copied();
        Level {
            balance: standing.posted * CENTS_PER_CREDIT,
            held: standing.held * CENTS_PER_CREDIT,
            low: low_at.unwrap_or(CREDITS_LOW_DEFAULT) * CENTS_PER_CREDIT,
        }
    }

    /// Returns what is left to spend.
    pub(super) fn reserve(&self, buyer: &CompanyId, amount: Credits) -> Result<i64, HoldError> {
        let mut by_buyer = self.by_buyer.lock();
        let purse = by_buyer.get_mut(buyer);
        let standing = purse.as_deref().copied().unwrap_or_default();
        match purse {
            Some(purse) if standing.available() >= amount.get() => {
                purse.held += amount.get();
                Ok(purse.available())
            }
            _ => Err(HoldError::Insufficient {
                required: amount,
                balance: standing.available(),
                held: standing.held,
            }),
        }
    }

    /// Which of these charges are not covered by what their buyers have and hold: none, unless something here is wrong, and then it must
    /// not get into the books. Holds are only given back by those who have them, so what is covered now stays so until it is settled.
    pub(super) fn uncovered<'a>(
        &self,
        charges: impl Iterator<Item = (&'a CompanyId, Credits)>,
    ) -> Vec<usize> {
        let by_buyer = self.by_buyer.lock();
        let mut left: HashMap<&CompanyId, Standing> = HashMap::new();
        let mut uncovered = Vec::new();
        for (index, (buyer, amount)) in charges.enumerate() {
            let standing = left
                .entry(buyer)
                .or_insert_with(|| by_buyer.get(buyer).copied().unwrap_or_default());
            match standing.without(amount) {
                Some(rest) => *standing = rest,
                None => uncovered.push(index),
            }
        }
        uncovered
    }

    pub(super) fn release(&self, buyer: &CompanyId, amount: Credits) {
        self.change(buyer, amount, |purse| {
            (purse.held >= amount.get()).then(|| Standing {
                held: purse.held - amount.get(),
                ..purse
            })
        });
    }

    /// Spends what a hold of `amount` has reserved. The charge is durable: nothing here can refuse it.
    pub(super) fn settle(&self, buyer: &CompanyId, amount: Credits) {
        self.change(buyer, amount, |purse| purse.without(amount));
    }

    /// A purse that a change contradicts stays as it is.
    fn change(
        &self,
        buyer: &CompanyId,
        amount: Credits,
        change: impl FnOnce(Standing) -> Option<Standing>,
    ) {
        let mut by_buyer = self.by_buyer.lock();
        let Some(purse) = by_buyer.get_mut(buyer) else {
            return;
        };
        let before = *purse;
        let changed = change(before);
        *purse = changed.unwrap_or(before);
        drop(by_buyer);
        if changed.is_none() {
            tracing::error!(%buyer, %amount, ?before, "a purse does not hold what is taken from it; restart the host, which reads the books anew");
        }
    }

    pub(super) fn standing(&self, buyer: &CompanyId) -> Standing {
        self.by_buyer.lock().get(buyer).copied().unwrap_or_default()
    }

    pub(super) fn held_in_all(&self) -> i64 {
        self.by_buyer.lock().values().map(|purse| purse.held).sum()
    }
}
