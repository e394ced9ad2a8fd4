//! What only the store knows of what is scraped, if it says so in time: scrapers give up after ten seconds, and all other figures would be lost with the
//! store's, when they are needed most.
//!
//! Refuses to know how figures are written. Start reading at [`Looks::now`].

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use souk_domain::time::Timestamp;
use souk_store::db::READ_WITHIN;
use souk_store::idempotency::{self, Kept};
use souk_store::shares::{self, Taken};
use souk_store::{AnyConnection, Db, StoreError, deliveries};
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

/// How long a scrape waits for the store. What it asks each time is answered in milliseconds.
const WAITED_FOR: Duration = Duration::from_secs(3);
/// What companies have in the store is not looked at with each scrape: that reads whole tables, and changes slowly.
const SHARES_EVERY: Duration = Duration::from_secs(300);

/// What the store has said.
pub struct Stored {
    pub now: Changing,
    /// As it was when it was looked at last. `None`: the first look takes longer than a scrape waits.
    pub shares: Option<Shares>,
}

/// What is looked at with each scrape.
pub struct Changing {
    pub kept: Kept,
    pub deliveries_waiting: i64,
    /// How long the first of them has been due.
    pub delivery_delay: Duration,
}

/// What companies have in the store.
#[derive(Clone, Copy)]
pub struct Shares {
    pub connections: Taken,
    pub connector_bytes: Taken,
    pub file_bytes: Taken,
}

/// Looks into the store. Cheap to clone.
#[derive(Clone, Default)]
pub struct Looks {
    /// When they were looked at last, and what was there.
    shares: watch::Sender<Option<(Instant, Shares)>>,
    /// Of whoever looks at them.
    turn: Arc<Mutex<()>>,
}

impl Looks {
    /// What the store says. `None`: it does not answer in time.
    pub async fn now(&self, db: &Db) -> Option<Stored> {
        let now = async { Changing::read(&mut *db.read().await?).await };
        let (now, shares) = tokio::join!(timeout(WAITED_FOR, now), self.shares(db));
        let now = now.ok()?.ok()?;
        Some(Stored { now, shares })
    }

    /// As they were within the last [`SHARES_EVERY`], or when they were looked at last: a look that takes longer is for whoever scrapes next.
    async fn shares(&self, db: &Db) -> Option<Shares> {
        let known = *self.shares.borrow();
        let is_old = known.is_none_or(|(at, _)| at.elapsed() >= SHARES_EVERY);
        if is_old && let Ok(turn) = self.turn.clone().try_lock_owned() {
            let (db, shares) = (db.clone(), self.shares.clone());
            let look = tokio::spawn(async move {
                let asked = async { Shares::read(&mut *db.read().await?).await };
                if let Ok(read) = db.answered(READ_WITHIN, asked).await {
                    shares.send_replace(Some((Instant::now(), read)));
                }
                drop(turn);
            });
            timeout(WAITED_FOR, look).await.ok();
        }
        let known = *self.shares.borrow();
        known.map(|(_, shares)| shares)
    }
}

impl Changing {
    async fn read(db: &mut AnyConnection) -> Result<Changing, StoreError> {
        let kept = idempotency::kept_in_all(db).await?;
        let (deliveries_waiting, first) = deliveries::waiting(db).await?;
        let now = Timestamp::from(SystemTime::now());
        let late = first.map_or(0, |first| now.micros() - first.micros());
        Ok(Changing {
            kept,
            deliveries_waiting,
            delivery_delay: Duration::from_micros(u64::try_from(late).unwrap_or(0)),
        })
    }
}

impl Shares {
    async fn read(db: &mut AnyConnection) -> Result<Shares, StoreError> {
        Ok(Shares {
            connections: shares::connections(db).await?,
            connector_bytes: shares::connector_bytes(db).await?,
            file_bytes: shares::file_bytes(db).await?,
        })
    }
}
