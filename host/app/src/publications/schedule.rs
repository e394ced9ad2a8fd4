//! The scheduler: takes publications that are due, has them attempted, and writes down what became of them.
//!
//! One task per host decides and writes; attempts run beside it, bounded in number for the host and for each company. Hosts that share a
//! store share the work by leases, as alerts do (`crate::alerts::schedule`): whoever claims a publication has it until it is written down, and
//! a host that dies in between is followed by another when the lease has ended. So each is attempted at least once, and an attempt whose
//! answer was lost is made again. Start reading at [`Loop::run`].

use std::collections::HashMap;
use std::time::Duration;

use souk_domain::ids::{CompanyId, PublicationId};
use souk_domain::time::Timestamp;
use souk_store::StoreError;
use souk_store::publications::{self, Attempted, Due, Publication};
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};

use super::attempt::{ATTEMPT_MAX, attempt, unfinished};
use crate::App;
use crate::background::Background;

/// Attempts in flight on this host: each is a session in the sandbox and a socket.
const IN_FLIGHT_MAX: usize = 32;
/// Publications looked at in one turn: those of companies that are busy to their bound may come first, so there is room for as many others.
const LOOKED_AT_MAX: i64 = 2 * IN_FLIGHT_MAX as i64;
/// An attempt that takes longer is given up: what a run may take, and what is around it.
const GIVEN_UP_AFTER: Duration = ATTEMPT_MAX.saturating_add(Duration::from_secs(10));
/// How long a claim holds: an attempt, its writing down, and a generous difference between the clocks of two hosts.
const LEASE: Duration = Duration::from_secs(150);
const _: () = assert!(LEASE.as_secs() >= 2 * GIVEN_UP_AFTER.as_secs());
/// Who publishes a post does not wait for it.
const POLL: Duration = Duration::from_millis(500);
/// Of randomness, in the name under which this host claims.
const CLAIMANT_BYTES: usize = 16;

/// Publishes from now on, on the current runtime, which should be one that waits little (not a worker's).
pub async fn start(app: &App) -> Result<Background, StoreError> {
    if !app.db.is_shared() {
        // Nobody else has this store open, so whoever held a claim is gone.
        app.db
            .write(async |write| publications::release_all(write).await)
            .await?;
    }
    let schedule = Loop {
        app: app.clone(),
        claimant: hex::encode(rand::random::<[u8; CLAIMANT_BYTES]>()),
        attempts: JoinSet::new(),
        in_flight: HashMap::new(),
        finished: Vec::new(),
    };
    let what = "publications of posts";
    Ok(Background::start(what, |stopped| schedule.run(stopped)))
}

struct Loop {
    app: App,
    /// The name under which this process claims.
    claimant: String,
    attempts: JoinSet<(Publication, Attempted)>,
    /// Whose room each takes.
    in_flight: HashMap<Id, CompanyId>,
    /// Not written down yet: at most [`IN_FLIGHT_MAX`], and counted as in flight.
    finished: Vec<(Publication, Attempted)>,
}

impl Loop {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let mut stopping = false;
        loop {
            let idle = self.attempts.is_empty();
            if stopping && idle && self.finished.is_empty() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(POLL) => {}
                Some(ended) = self.attempts.join_next_with_id(), if !idle => self.end(ended),
                _ = stopped.changed(), if !stopping => stopping = true,
            }
            while let Some(ended) = self.attempts.try_join_next_with_id() {
                self.end(ended);
            }
            stopping |= *stopped.borrow();
            if let Err(error) = self.turn(stopping).await {
                tracing::warn!(%error, "publications wait for the store");
                tokio::time::sleep(POLL).await;
            }
        }
    }

    fn end(&mut self, ended: Result<(Id, (Publication, Attempted)), JoinError>) {
        match ended {
            Ok((id, finished)) => {
                self.in_flight.remove(&id);
                self.finished.push(finished);
            }
            // Its lease ends, and it is attempted again.
            Err(error) => {
                self.in_flight.remove(&error.id());
                tracing::error!(%error, "an attempt to publish a post panicked");
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
        // Every host locks publications in one order, so that none waits for another in a circle.
        self.finished
            .sort_unstable_by(|(one, _), (other, _)| one.id.cmp(&other.id));
        let claimed = self
            .app
            .db
            .write(async |write| -> Result<_, StoreError> {
                for (publication, attempted) in &self.finished {
                    let by = &self.claimant;
                    publications::record(write, publication, by, attempted, now).await?;
                }
                let mut claimed = Vec::with_capacity(due.len());
                for id in &due {
                    let until = now.after(LEASE);
                    claimed
                        .extend(publications::claim(write, id, &self.claimant, now, until).await?);
                }
                Ok(claimed)
            })
            .await?;
        self.finished.clear();
        for publication in claimed {
            self.begin(publication);
        }
        Ok(())
    }

    /// What may be attempted now, within the bounds, by id.
    async fn due(&self, now: Timestamp) -> Result<Vec<PublicationId>, StoreError> {
        let mut room = IN_FLIGHT_MAX.saturating_sub(self.in_flight.len() + self.finished.len());
        if room == 0 {
            return Ok(Vec::new());
        }
        let mut busy: HashMap<&CompanyId, usize> = HashMap::new();
        for company in self.in_flight.values() {
            *busy.entry(company).or_default() += 1;
        }
        let per_company = self.app.bounds.publications as usize;
        let mut read = self.app.db.read().await?;
        let found = publications::due(&mut read, now, per_company as i64, LOOKED_AT_MAX).await?;
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

    fn begin(&mut self, publication: Publication) {
        let (app, company) = (self.app.clone(), publication.company_id.clone());
        let task = self.attempts.spawn(async move {
            let attempted = tokio::time::timeout(GIVEN_UP_AFTER, attempt(&app, &publication)).await;
            let attempted = attempted.unwrap_or_else(|_| unfinished(&app, &publication));
            (publication, attempted)
        });
        self.in_flight.insert(task.id(), company);
    }
}
