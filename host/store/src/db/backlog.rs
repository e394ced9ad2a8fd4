//! Charges that are durable in the charge log but not yet booked in the database, as the rest of the store sees them: not at all, because
//! whoever reads or writes waits until they are booked.
//!
//! Two rules make that so. A read waits for the charges that were logged before it began. A transaction takes the pen, so that no charge is
//! logged while it runs, and waits for those that were. Only what books the backlog writes without the pen.

use crate::charge_log::ChargeLog;
use crate::error::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, Notify, OwnedMutexGuard, watch};

/// The right to log charges, or to keep others from it.
pub(crate) type Pen = OwnedMutexGuard<ChargeLog>;

pub(crate) struct Backlog {
    log: Arc<Mutex<ChargeLog>>,
    /// The last frame that is in the log.
    logged: AtomicU64,
    booked: watch::Sender<Booked>,
    /// Somebody waits for the books.
    hurry: Notify,
    patience: Duration,
}

/// How far the books are.
struct Booked {
    /// The last frame that is in the database.
    number: u64,
    /// Why there is no getting on.
    stalled: Option<String>,
}

impl Backlog {
    /// Of a log that is booked completely.
    pub(crate) fn new(log: ChargeLog, booked: u64, patience: Duration) -> Self {
        let (booked_sender, _) = watch::channel(Booked {
            number: booked,
            stalled: None,
        });
        Self {
            log: Arc::new(Mutex::new(log)),
            logged: AtomicU64::new(booked),
            booked: booked_sender,
            hurry: Notify::new(),
            patience,
        }
    }

    pub(crate) async fn pen(&self) -> Result<Pen, StoreError> {
        tokio::time::timeout(self.patience, self.log.clone().lock_owned())
            .await
            .map_err(|_| {
                self.busy("a transaction or the charge log's disk kept others from writing")
            })
    }

    /// Patience has ended: an operator is to see what it was that took so long.
    fn busy(&self, reason: &str) -> StoreError {
        let (frames, seconds) = (self.frames(), self.patience.as_secs_f64());
        tracing::warn!(frames, seconds, "the store is busy: {reason}");
        StoreError::Busy
    }

    /// The pen, however long it takes: for whoever ends the store.
    pub(crate) async fn last_pen(&self) -> Pen {
        self.log.clone().lock_owned().await
    }

    /// Waits until everything that was logged before is booked.
    pub(crate) async fn caught_up(&self) -> Result<(), StoreError> {
        self.wait_for(self.logged.load(Ordering::Acquire)).await
    }

    pub(crate) async fn wait_for(&self, number: u64) -> Result<(), StoreError> {
        if self.booked.borrow().number >= number {
            return Ok(());
        }
        self.hurry.notify_one();
        let mut booked = self.booked.subscribe();
        let wait = booked.wait_for(|booked| booked.number >= number || booked.stalled.is_some());
        match tokio::time::timeout(self.patience, wait).await {
            Ok(Ok(booked)) if booked.number >= number => Ok(()),
            Ok(Ok(booked)) => Err(StoreError::unavailable(
                booked.stalled.as_deref().unwrap_or("stalled"),
            )),
            Ok(Err(_)) | Err(_) => Err(self.busy("charges that are logged were not booked")),
        }
    }

    /// Returns when somebody waits for the books.
    pub(crate) async fn hurried(&self) {
        self.hurry.notified().await;
    }

    /// Why nothing should be logged now, if there is a reason.
    pub(crate) fn stalled(&self) -> Option<String> {
        self.booked.borrow().stalled.clone()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.booked.borrow().number >= self.logged.load(Ordering::Acquire)
    }

    /// Frames that are logged and not booked.
    pub(crate) fn frames(&self) -> u64 {
        let booked = self.booked.borrow().number;
        self.logged.load(Ordering::Acquire).saturating_sub(booked)
    }

    /// Notes, with the pen in hand, what was logged.
    pub(crate) fn note_logged(&self, number: u64) {
        self.logged.store(number, Ordering::Release);
    }

    pub(crate) fn note_booked(&self, number: u64) {
        self.booked.send_replace(Booked {
            number,
            stalled: None,
        });
    }

    pub(crate) fn note_stalled(&self, error: &StoreError) {
        let reason = format!("charges wait to be booked: {error}");
        self.booked
            .send_modify(|booked| booked.stalled = Some(reason));
    }
}
