//! Earnings become payable by and by: a background job, which any number of hosts may run at once.

use std::time::Duration;

use souk_domain::time::Timestamp;
use souk_store::maturity::{self, Recent};
use souk_store::{Db, StoreError};

use crate::App;

/// Earnings wait for days, so an hour more does not matter.
const EVERY_MAX: Duration = Duration::from_secs(3600);
const EVERY_MIN: Duration = Duration::from_secs(1);
/// A charge is committed so long after its time, on whatever host, at the latest. Those of before are added up without keeping charges waiting.
const COMMITTED_WITHIN: Duration = Duration::from_secs(600);

/// Lets earnings mature when their charge is `age` old, now and from then on, on the current runtime.
pub fn start(app: &App, age: Duration) {
    let app = app.clone();
    let every = age.clamp(EVERY_MIN, EVERY_MAX);
    tokio::spawn(async move {
        loop {
            let now = app.clock.now();
            match mature(&app.db, now.before(age), now).await {
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
    let mut gained = 0;
    for seller in maturity::sellers(db).await? {
        let until = now.before(COMMITTED_WITHIN);
        let recent = Recent::seen(&mut *db.read().await?, &seller, before, until).await?;
        let moved = db
            .write(async |write| maturity::mature(write, &seller, &recent, now).await)
            .await?;
        gained += usize::from(moved.is_some());
    }
    Ok(gained)
}
