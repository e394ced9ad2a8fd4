//! The schedule of alerts: how one that is due is found, evaluated and written down ([`crate::leases`] does so).

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use souk_domain::ids::{AlertId, CompanyId};
use souk_domain::time::Timestamp;
use souk_store::alerts::{self, Alert, Evaluated};
use souk_store::{Read, StoreError, Write};
use tokio::sync::Notify;

use super::evaluate::evaluate;
use crate::App;
use crate::background::Background;
use crate::leases::{self, Claim, Due};
use crate::products::TIMEOUT_MS_MAX;

/// An evaluation that takes longer is given up: the longest run, and what is around it.
const EVALUATION_MAX: Duration = Duration::from_millis(TIMEOUT_MS_MAX as u64 + 15_000);
const LEASE: Duration = Duration::from_secs(150);
const _: () = assert!(LEASE.as_millis() >= 2 * EVALUATION_MAX.as_millis());

/// Evaluates from now on, on the current runtime, which should be one that waits little (not a worker's).
pub async fn start(app: &App) -> Result<Background, StoreError> {
    let kind = Evaluations { app: app.clone() };
    leases::start(app, kind, Arc::new(Notify::new())).await
}

#[derive(Clone)]
struct Evaluations {
    app: App,
}

impl leases::Kind for Evaluations {
    const WHAT: &'static str = "evaluations of alerts";
    /// Each waits for a source. Ten thousand in a minute need half of them when each takes three quarters of a second.
    const IN_FLIGHT_MAX: usize = 256;
    const LEASE: Duration = LEASE;
    /// Nothing is due more often than each minute, so nobody notices a second.
    const POLL: Duration = Duration::from_secs(1);
    const GATHER: Duration = Duration::from_millis(20);

    type Id = AlertId;
    type Concerned = CompanyId;
    type Claimed = Alert;
    type Ended = (Alert, Evaluated);

    async fn due(
        &self,
        read: &mut Read,
        now: Timestamp,
        limit: i64,
    ) -> Result<Vec<Due<Self>>, StoreError> {
        let per_company = self.app.bounds.evaluations as usize;
        let found = alerts::due(read, now, per_company as i64, limit).await?;
        let due = found.into_iter().map(|found| Due::of(found, per_company));
        Ok(due.collect())
    }

    async fn claim(
        &self,
        write: &mut Write,
        id: &AlertId,
        claim: &Claim<'_>,
    ) -> Result<Option<Alert>, StoreError> {
        alerts::claim(write, id, claim).await
    }

    async fn attempt(self, alert: Alert) -> Self::Ended {
        let evaluated = evaluate(&self.app, &alert, EVALUATION_MAX).await;
        (alert, evaluated)
    }

    fn order((one, _): &Self::Ended, (other, _): &Self::Ended) -> Ordering {
        one.id.cmp(&other.id)
    }

    async fn record(
        &self,
        write: &mut Write,
        (alert, evaluated): &Self::Ended,
        by: &str,
        now: Timestamp,
        is_again: bool,
    ) -> Result<(), StoreError> {
        alerts::record(write, alert, by, evaluated, now, is_again).await?;
        Ok(())
    }

    async fn release_all(&self, write: &mut Write) -> Result<(), StoreError> {
        alerts::release_all(write).await
    }
}
