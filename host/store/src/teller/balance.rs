//! What a company has, and why that may not be enough.

use crate::error::StoreError;
use souk_domain::money::Credits;

/// What a company has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Balance {
    /// Posted, holds not deducted.
    pub posted: i64,
    pub held: i64,
}

impl Balance {
    /// What may be spent.
    pub const fn available(&self) -> i64 {
        self.posted - self.held
    }

    /// When a hold of `amount` has been spent. `None`: it was not there, or not covered.
    pub(super) fn without(self, amount: Credits) -> Option<Balance> {
        let is_covered = self.held >= amount.get() && self.posted >= self.held;
        is_covered.then(|| Balance {
            posted: self.posted - amount.get(),
            held: self.held - amount.get(),
        })
    }
}

/// Why nothing was reserved.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    #[error(
        "{required} credits are required, {balance} are available ({held} more are held by runs in flight)"
    )]
    Insufficient {
        required: Credits,
        /// Net of holds.
        balance: i64,
        held: i64,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}
