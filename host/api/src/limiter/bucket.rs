//! A window as this host sees it: its own count, or its lot of what hosts count together.

use super::shared::{Lot, Shared};
use super::window::{Quota, WINDOW_SECONDS, Window};
use std::sync::{Arc, OnceLock};

#[derive(Default)]
pub struct Bucket {
    own: Window,
    /// Made when hosts count together.
    lot: OnceLock<Arc<Lot>>,
}

impl Bucket {
    /// Spends one call. `name` is the window's for all hosts.
    pub async fn take(
        &self,
        shared: Option<&Shared>,
        name: impl FnOnce() -> String,
        limit: u32,
        now: u32,
    ) -> Result<Quota, Quota> {
        let Some(shared) = shared else {
            return self.own.take(limit, now);
        };
        let lot = self.lot.get_or_init(Arc::default);
        match lot.take(limit, now) {
            Some(quota) => Ok(quota),
            // Boxed: few requests ask, and most hosts do not.
            None => Box::pin(self.ask(shared, lot, name, limit, now)).await,
        }
    }

    async fn ask(
        &self,
        shared: &Shared,
        lot: &Arc<Lot>,
        name: impl FnOnce() -> String,
        limit: u32,
        now: u32,
    ) -> Result<Quota, Quota> {
        let _asking = lot.asking.lock().await;
        if let Some(quota) = lot.take(limit, now) {
            return Ok(quota);
        }
        if let Some(quota) = lot.refused(limit, now) {
            return Err(quota);
        }
        let window = (WINDOW_SECONDS, now);
        match shared.refill(&name(), lot, limit, window).await {
            Some(spent) => spent,
            None => self.own.take(limit, now),
        }
    }

    /// The same where nobody can be waited for: of shared calls only those that this host has at hand are spent, and the rest pass.
    pub fn take_at_hand(&self, is_shared: bool, limit: u32, now: u32) -> Result<Quota, Quota> {
        match is_shared {
            false => self.own.take(limit, now),
            true => {
                let lot = self.lot.get_or_init(Arc::default);
                Ok(lot
                    .take(limit, now)
                    .unwrap_or_else(|| self.peek(limit, now)))
            }
        }
    }

    pub fn peek(&self, limit: u32, now: u32) -> Quota {
        let shared = self.lot.get().and_then(|lot| lot.peek(limit, now));
        shared.unwrap_or_else(|| self.own.peek(limit, now))
    }

    /// Undoes a [`Bucket::take`], if its window still runs.
    pub fn give_back(&self, now: u32) {
        match self.lot.get() {
            Some(lot) => lot.give_back(now),
            None => self.own.give_back(now),
        }
    }

    pub fn is_over(&self, now: u32) -> bool {
        let shared = self.lot.get().and_then(|lot| lot.peek(1, now));
        shared.is_none() && self.own.is_over(now)
    }
}
