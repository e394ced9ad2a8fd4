//! Earnings become payable by and by: a background job, which any number of hosts may run at once.

use std::time::{Duration, Instant};

use souk_domain::time::Timestamp;
use souk_store::db::SWEPT_WITHIN;
use souk_store::maturity::{self, Seen};
use souk_store::{Db, StoreError};

use crate::App;

/// Earnings wait for days, so an hour more does not matter.
const EVERY_MAX: Duration = Duration::from_secs(3600);
const EVERY_MIN: Duration = Duration::from_secs(1);

/// Lets earnings mature when their charge is `age` old, now and from then on, on the current runtime.
pub fn start(app: &App, age: Duration) {
    let app = app.clone();
    let every = age.clamp(EVERY_MIN, EVERY_MAX);
    tokio::spawn(async move {
        loop {
            let now = app.clock.now();
            let matured = mature(&app.db, now.before(age), now);
            match app.db.answered(SWEPT_WITHIN, matured).await {
                Ok(0) => {}
                Ok(sellers) => tracing::info!(sellers, "earnings became payable"),
                Err(error) => {
                    tracing::warn!(%error, "earnings could not become payable; trying again later");
                }
            }
            tokio::time::sleep(every).await;
        }
    });
}

/// Makes what was earned before `before` payable. A transaction per seller, so that none waits long. Returns how many sellers gained by it.
pub async fn mature(db: &Db, before: Timestamp, now: Timestamp) -> Result<usize, StoreError> {
    let begun = Instant::now();
    // Charges of many sellers take their time to be added up, and a transaction's time is that of its commit, or little before.
    let at = || now.after(begun.elapsed());
    let mut gained = 0;
    for seller in maturity::sellers(db).await? {
        let seen = Seen::of(&mut *db.snapshot().await?, &seller, before, at()).await?;
        let moved = db
            .write(async |write| maturity::mature(write, &seller, &seen, at()).await)
            .await?;
        gained += usize::from(moved.is_some());
    }
    Ok(gained)
}
