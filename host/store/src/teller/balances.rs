//! Balances and holds in memory, on a store that this host has to itself.
//!
//! Exact because every way in which a buyer's balance changes passes here: charges through the poster, everything else announces what it
//! credited while its transaction still is the only writer.

use super::balance::{Balance, HoldError};
use crate::accounts::{self, Account, Level};
use crate::changes::BalanceChange;
use crate::db::Db;
use crate::error::StoreError;
use hashbrown::HashMap;
use parking_lot::Mutex;
use souk_domain::ids::CompanyId;
use souk_domain::money::{CENTS_PER_CREDIT, Credits};
use souk_domain::payments::CREDITS_LOW_DEFAULT;
use std::sync::Arc;

/// What every buyer has, in credits. A company that is not here has nothing.
pub(super) struct Balances {
    by_buyer: Mutex<HashMap<CompanyId, Balance>>,
    /// Below how many credits a balance is low, where the company has chosen. Most have not.
    low_at: Mutex<HashMap<CompanyId, i64>>,
}

/// Reads all balances, with no writer in between, and keeps them up from then on.
pub(super) async fn open(db: &Db) -> Result<Arc<Balances>, StoreError> {
    let mut write = db.writers_view().await?;
    let mut by_buyer = HashMap::new();
    for (account, balance) in accounts::buyer_balances(&mut write).await? {
        if let Account::Buyer(company) = account {
            let posted = balance.get() / CENTS_PER_CREDIT;
            by_buyer.insert(company, Balance { posted, held: 0 });
        }
    }
    let low_at = accounts::chosen_lows(&mut write).await?;
    let balances = Arc::new(Balances {
        by_buyer: Mutex::new(by_buyer),
        low_at: Mutex::new(low_at.into_iter().collect()),
    });
    let weak = Arc::downgrade(&balances);
    db.on_credit(Box::new(move |changes| {
        let Some(balances) = weak.upgrade() else {
            return;
        };
        for (buyer, change) in changes {
            balances.apply(buyer, *change);
        }
    }))?;
    Ok(balances)
}

impl Balances {
    fn apply(&self, buyer: &CompanyId, change: BalanceChange) {
        match change {
            BalanceChange::Gained(amount) => {
                let mut by_buyer = self.by_buyer.lock();
                by_buyer.entry(buyer.clone()).or_default().posted +=
                    amount.get() / CENTS_PER_CREDIT;
            }
            BalanceChange::LowAt(Some(credits)) => {
                self.low_at.lock().insert(buyer.clone(), credits);
            }
            BalanceChange::LowAt(None) => {
                self.low_at.lock().remove(buyer);
            }
        }
    }

    /// Where the account stands. Exact for whoever has the turn to write.
    pub(super) fn level(&self, buyer: &CompanyId) -> Level {
        let balance = self.balance(buyer);
        let low_at = self.low_at.lock().get(buyer).copied();
        Level {
            balance: balance.posted * CENTS_PER_CREDIT,
            held: balance.held * CENTS_PER_CREDIT,
            low: low_at.unwrap_or(CREDITS_LOW_DEFAULT) * CENTS_PER_CREDIT,
        }
    }

    /// Returns what is left to spend.
    pub(super) fn reserve(&self, buyer: &CompanyId, amount: Credits) -> Result<i64, HoldError> {
        let mut by_buyer = self.by_buyer.lock();
        let kept = by_buyer.get_mut(buyer);
        let balance = kept.as_deref().copied().unwrap_or_default();
        match kept {
            Some(kept) if balance.available() >= amount.get() => {
                kept.held += amount.get();
                Ok(kept.available())
            }
            _ => Err(HoldError::Insufficient {
                required: amount,
                balance: balance.available(),
                held: balance.held,
            }),
        }
    }

    /// Reserves as much of `most` as is there.
    pub(super) fn reserve_most(&self, buyer: &CompanyId, most: Credits) -> Credits {
        let mut by_buyer = self.by_buyer.lock();
        let Some(kept) = by_buyer.get_mut(buyer) else {
            return Credits::ZERO;
        };
        let there = kept.available().clamp(0, most.get());
        let there = Credits::new(there).unwrap_or_default();
        kept.held += there.get();
        there
    }

    /// Which of these charges are not covered by what their buyers have and hold: none, unless something here is wrong, and then it must
    /// not get into the books. Holds are only given back by those who have them, so what is covered now stays so until it is settled.
    pub(super) fn uncovered<'a>(
        &self,
        charges: impl Iterator<Item = (&'a CompanyId, Credits)>,
    ) -> Vec<usize> {
        let by_buyer = self.by_buyer.lock();
        let mut left: HashMap<&CompanyId, Balance> = HashMap::new();
        let mut uncovered = Vec::new();
        for (index, (buyer, amount)) in charges.enumerate() {
            let balance = left
                .entry(buyer)
                .or_insert_with(|| by_buyer.get(buyer).copied().unwrap_or_default());
            match balance.without(amount) {
                Some(rest) => *balance = rest,
                None => uncovered.push(index),
            }
        }
        uncovered
    }

    pub(super) fn release(&self, buyer: &CompanyId, amount: Credits) {
        self.change(buyer, amount, |balance| {
            (balance.held >= amount.get()).then(|| Balance {
                held: balance.held - amount.get(),
                ..balance
            })
        });
    }

    /// Spends what a hold of `amount` has reserved. The charge is durable: nothing here can refuse it.
    pub(super) fn settle(&self, buyer: &CompanyId, amount: Credits) {
        self.change(buyer, amount, |balance| balance.without(amount));
    }

    /// A balance that a change contradicts stays as it is.
    fn change(
        &self,
        buyer: &CompanyId,
        amount: Credits,
        change: impl FnOnce(Balance) -> Option<Balance>,
    ) {
        let mut by_buyer = self.by_buyer.lock();
        let Some(balance) = by_buyer.get_mut(buyer) else {
            return;
        };
        let before = *balance;
        let changed = change(before);
        *balance = changed.unwrap_or(before);
        drop(by_buyer);
        if changed.is_none() {
            tracing::error!(%buyer, %amount, ?before, "a balance does not cover what is taken from it; restart the host, which reads the books anew");
        }
    }

    pub(super) fn balance(&self, buyer: &CompanyId) -> Balance {
        self.by_buyer.lock().get(buyer).copied().unwrap_or_default()
    }

    pub(super) fn held_in_all(&self) -> i64 {
        self.by_buyer
            .lock()
            .values()
            .map(|balance| balance.held)
            .sum()
    }
}

#[cfg(test)]
impl Balances {
    /// Of one buyer alone.
    pub(super) fn of(buyer: &CompanyId, balance: Balance) -> Balances {
        Balances {
            by_buyer: Mutex::new(HashMap::from_iter([(buyer.clone(), balance)])),
            low_at: Mutex::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credits(credits: i64) -> Credits {
        Credits::new(credits).unwrap()
    }

    /// Neither what is held nor what is there can become less than nothing: what would make it so is refused, and changes nothing.
    #[test]
    fn what_is_taken_beyond_a_balance_changes_nothing() {
        let [buyer, stranger] = [(); 2].map(|()| CompanyId::generate());
        for (posted, held) in [(10, 7), (0, 0), (5, 7)] {
            let before = Balance { posted, held };
            let balances = Balances::of(&buyer, before);
            let beyond = credits(held + 1);
            balances.settle(&buyer, beyond);
            balances.release(&buyer, beyond);
            let more = credits(before.available().max(0) + 1);
            let refused = balances.reserve(&buyer, more);
            assert!(matches!(refused, Err(HoldError::Insufficient { .. })));
            balances.settle(&stranger, credits(1));
            balances.release(&stranger, credits(1));
            assert!(balances.reserve(&stranger, credits(1)).is_err());
            assert_eq!(balances.balance(&buyer), before);
            assert_eq!(balances.balance(&stranger), Balance::default());
        }
        // Held, but not there.
        let before = Balance { posted: 5, held: 7 };
        let balances = Balances::of(&buyer, before);
        balances.settle(&buyer, credits(3));
        assert_eq!(balances.balance(&buyer), before);
    }

    /// Who takes what is there has no more than that, and nothing of what is held; a second time there is nothing left.
    #[test]
    fn no_more_is_reserved_than_is_there() {
        let [buyer, stranger] = [(); 2].map(|()| CompanyId::generate());
        let before = Balance {
            posted: 10,
            held: 7,
        };
        let balances = Balances::of(&buyer, before);
        let most = |of: &CompanyId, most: i64| balances.reserve_most(of, credits(most)).get();
        assert_eq!(most(&buyer, 2), 2);
        assert_eq!(most(&buyer, 9), 1);
        assert_eq!(most(&buyer, 9), 0);
        assert_eq!(most(&stranger, 9), 0);
        balances.settle(&buyer, credits(3));
        let after = Balance { posted: 7, held: 7 };
        assert_eq!(balances.balance(&buyer), after);
    }

    /// Charges of one buyer count together, those that are not covered take nothing from the others, and to ask changes nothing.
    #[test]
    fn charges_are_covered_together_or_told() {
        let [buyer, stranger] = [(); 2].map(|()| CompanyId::generate());
        let before = Balance {
            posted: 10,
            held: 7,
        };
        let balances = Balances::of(&buyer, before);
        let uncovered = |charges: &[(&CompanyId, i64)]| {
            let charges = charges
                .iter()
                .map(|&(buyer, amount)| (buyer, credits(amount)));
            balances.uncovered(charges)
        };
        let none: [usize; 0] = [];
        assert_eq!(uncovered(&[(&buyer, 7)]), none);
        assert_eq!(uncovered(&[(&buyer, 4), (&buyer, 3)]), none);
        assert_eq!(uncovered(&[(&buyer, 8)]), [0]);
        assert_eq!(uncovered(&[(&buyer, 4), (&buyer, 4), (&buyer, 3)]), [1]);
        assert_eq!(
            uncovered(&[(&stranger, 1), (&buyer, 7), (&buyer, 1)]),
            [0, 2]
        );
        assert_eq!(balances.balance(&buyer), before);
    }
}
