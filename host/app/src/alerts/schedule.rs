//! The scheduler: takes alerts that are due, evaluates them, and writes down what became of them.
//!
//! One task per host decides and writes; evaluations run beside it, bounded in number for the host and for each company. Hosts that share a
//! store share the work by leases, as deliveries do (`crate::webhooks::dispatch`): whoever claims an alert has it until it is written down, and a
//! host that dies in between is followed by another when the lease has ended. Start reading at [`Loop::run`].

use std::collections::HashMap;
use std::time::Duration;

use souk_domain::ids::{AlertId, CompanyId};
use souk_domain::time::Timestamp;
use souk_store::StoreError;
use souk_store::alerts::{self, Alert, Due, Evaluated};
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};

use super::evaluate::{evaluate, unfinished};
use crate::App;
use crate::background::Background;
use crate::products::TIMEOUT_MS_MAX;

/// Evaluations in flight on this host: each waits for a source. Ten thousand in a minute need half of them when each takes three quarters of
/// a second.
const IN_FLIGHT_MAX: usize = 256;
/// Alerts looked at in one turn: those of companies that are busy to their bound may come first, so there is room for as many others.
const LOOKED_AT_MAX: i64 = 2 * IN_FLIGHT_MAX as i64;
/// An evaluation that takes longer is given up: the longest run, and what is around it.
const EVALUATION_MAX: Duration = Duration::from_millis(TIMEOUT_MS_MAX as u64 + 15_000);
/// How long a claim holds: an evaluation, its writing down, and a generous difference between the clocks of two hosts.
const LEASE: Duration = Duration::from_secs(150);
const _: () = assert!(LEASE.as_millis() >= 2 * EVALUATION_MAX.as_millis());
/// Nothing is due more often than each minute, so nobody notices a second.
const POLL: Duration = Duration::from_secs(1);
/// What ends within this is written down together.
const GATHER: Duration = Duration::from_millis(20);
/// Of randomness, in the name under which this host claims.
const CLAIMANT_BYTES: usize = 16;

/// Evaluates from now on, on the current runtime, which should be one that waits little (not a worker's).
pub async fn start(app: &App) -> Result<Background, StoreError> {
    if !app.db.is_shared() {
        // Nobody else has this store open, so whoever held a claim is gone.
        app.db
            .write(async |write| alerts::release_all(write).await)
            .await?;
    }
    let schedule = Loop {
        app: app.clone(),
        claimant: hex::encode(rand::random::<[u8; CLAIMANT_BYTES]>()),
        evaluations: JoinSet::new(),
        in_flight: HashMap::new(),
        finished: Vec::new(),
    };
    let what = "evaluations of alerts";
    Ok(Background::start(what, |stopped| schedule.run(stopped)))
}

struct Loop {
    app: App,
    /// The name under which this process claims.
    claimant: String,
    evaluations: JoinSet<(Alert, Evaluated)>,
    /// Whose room each takes.
    in_flight: HashMap<Id, CompanyId>,
    /// Not written down yet: at most [`IN_FLIGHT_MAX`] and what an unavailable store has held up, which counts as in flight.
    finished: Vec<(Alert, Evaluated)>,
}

impl Loop {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let mut stopping = false;
        loop {
            let idle = self.evaluations.is_empty();
            if stopping && idle && self.finished.is_empty() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(POLL) => {}
                Some(ended) = self.evaluations.join_next_with_id(), if !idle => {
                    self.end(ended);
                    tokio::time::sleep(GATHER).await;
                }
                _ = stopped.changed(), if !stopping => stopping = true,
            }
            while let Some(ended) = self.evaluations.try_join_next_with_id() {
                self.end(ended);
            }
            stopping |= *stopped.borrow();
            if let Err(error) = self.turn(stopping).await {
                tracing::warn!(%error, "alerts wait for the store");
                tokio::time::sleep(POLL).await;
            }
        }
    }

    fn end(&mut self, ended: Result<(Id, (Alert, Evaluated)), JoinError>) {
        match ended {
            Ok((id, finished)) => {
                self.in_flight.remove(&id);
                self.finished.push(finished);
            }
            // Its lease ends, and it is evaluated again.
            Err(error) => {
                self.in_flight.remove(&error.id());
                tracing::error!(%error, "an evaluation of an alert panicked");
            }
        }
    }

    /// Writes down what has ended and takes what is due, in one transaction; then begins what was taken.
    async fn turn(&mut self, stopping: bool) -> Result<(), StoreError> {
        let now = self.app.clock.now();
        let due = match stopping {
            true => Vec::new(),
            false => self.due(now).await?,
        };
        if due.is_empty() && self.finished.is_empty() {
            return Ok(());
        }
        // Every host locks alerts in one order, so that none waits for another in a circle.
        self.finished
            .sort_unstable_by(|(one, _), (other, _)| one.id.cmp(&other.id));
        let claimed = self
            .app
            .db
            .write(async |write| -> Result<_, StoreError> {
                for (alert, evaluated) in &self.finished {
                    alerts::record(write, alert, &self.claimant, evaluated, now).await?;
                }
                let mut claimed = Vec::with_capacity(due.len());
                for id in &due {
                    let until = now.after(LEASE);
                    claimed.extend(alerts::claim(write, id, &self.claimant, now, until).await?);
                }
                Ok(claimed)
            })
            .await?;
        self.finished.clear();
        for alert in claimed {
            self.begin(alert);
        }
        Ok(())
    }

    /// What may be evaluated now, within the bounds, by id.
    async fn due(&self, now: Timestamp) -> Result<Vec<AlertId>, StoreError> {
        let mut room = IN_FLIGHT_MAX.saturating_sub(self.in_flight.len() + self.finished.len());
        if room == 0 {
            return Ok(Vec::new());
        }
        let mut busy: HashMap<&CompanyId, usize> = HashMap::new();
        for company in self.in_flight.values() {
            *busy.entry(company).or_default() += 1;
        }
        let per_company = self.app.bounds.evaluations as usize;
        let mut read = self.app.db.read().await?;
        let found = alerts::due(&mut read, now, per_company as i64, LOOKED_AT_MAX).await?;
        let mut due = Vec::new();
        for Due { id, company } in &found {
            let theirs = busy.entry(company).or_default();
            if room > 0 && *theirs < per_company {
                *theirs += 1;
                room -= 1;
                due.push(id.clone());
            }
        }
        due.sort_unstable();
        Ok(due)
    }

    fn begin(&mut self, alert: Alert) {
        let (app, company) = (self.app.clone(), alert.company_id.clone());
        let task = self.evaluations.spawn(async move {
            let evaluated = tokio::time::timeout(EVALUATION_MAX, evaluate(&app, &alert)).await;
            let evaluated = evaluated.unwrap_or_else(|_| {
                let message = "the evaluation did not end in time";
                unfinished(&alert, message, app.clock.now())
            });
            (alert, evaluated)
        });
        self.in_flight.insert(task.id(), company);
    }
}
