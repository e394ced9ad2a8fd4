//! Work that comes due in the store and that hosts share by leases: alerts to evaluate, posts to publish, webhooks to call.
//!
//! One task per host and kind decides and writes; attempts run beside it, bounded in number for the host and for those whom they concern.
//! Whoever claims a piece of work has it until what became of it is written down or its lease has ended, so that no two hosts attempt it at
//! once, and a host that dies in between is followed by another (by its own next start, when it has its store to itself). At least once, in
//! no promised order: an attempt whose end was lost is made again. Start reading at [`Loop::run`].

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use souk_domain::ids::CompanyId;
use souk_domain::time::Timestamp;
use souk_store::db::READ_WITHIN;
pub(crate) use souk_store::leases::Claim;
use souk_store::{Read, StoreError, Write};
use tokio::sync::{Notify, watch};
use tokio::task::{Id, JoinError, JoinSet};

use crate::App;
use crate::background::Background;

/// Of randomness, in the name under which a host claims.
const CLAIMANT_BYTES: usize = 16;

/// One kind of such work: how it is found, claimed, attempted and written down.
pub(crate) trait Kind: Clone + Send + Sync + 'static {
    /// In the log, in the plural: `publications of posts`.
    const WHAT: &'static str;
    /// Attempts in flight on this host.
    const IN_FLIGHT_MAX: usize;
    /// How long a claim holds: an attempt, its writing down, and a generous difference between the clocks of two hosts.
    const LEASE: Duration;
    /// How often it is looked whether something has come due, if nobody says so earlier.
    const POLL: Duration;
    /// What ends within this is written down together.
    const GATHER: Duration = Duration::ZERO;

    /// Of a piece of work. Hosts claim in its order, so that none waits for another in a circle.
    type Id: Ord + Send + Sync;
    /// Whom an attempt concerns, and who has room for so many at once: a company, a receiver.
    type Concerned: Eq + Hash + Clone + Send + Sync;
    type Claimed: Send + 'static;
    /// What was attempted, and what became of it.
    type Ended: Send + Sync + 'static;

    /// What may be attempted now: those who wait by turns, and of each the most overdue first. At most `limit`. Of these, those go first of whom least is
    /// under way.
    fn due(
        &self,
        read: &mut Read,
        now: Timestamp,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<Due<Self>>, StoreError>> + Send;

    /// `None`: another host was faster, or there is nothing to attempt any more. Whoever has the claim already may take it again: the commit of that was
    /// not answered.
    fn claim(
        &self,
        write: &mut Write,
        id: &Self::Id,
        claim: &Claim<'_>,
    ) -> impl Future<Output = Result<Option<Self::Claimed>, StoreError>> + Send;

    /// Ends well within the lease.
    fn attempt(self, claimed: Self::Claimed) -> impl Future<Output = Self::Ended> + Send + 'static;

    /// In which order ends are written down, the same on every host.
    fn order(one: &Self::Ended, other: &Self::Ended) -> Ordering;

    /// Changes nothing where the claim is not this host's any more. `is_again`: a transaction in which it was written down before was not
    /// answered, so that this may be why.
    fn record(
        &self,
        write: &mut Write,
        ended: &Self::Ended,
        by: &str,
        now: Timestamp,
        is_again: bool,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// What else is done until the host stops.
    fn beside(self, stopped: watch::Receiver<bool>) -> impl Future<Output = ()> + Send + 'static {
        drop(stopped);
        async {}
    }

    /// Every claim ends: on a store that nobody else has open, whoever held one is gone.
    fn release_all(&self, write: &mut Write)
    -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// A piece of work that has come due.
pub(crate) struct Due<K: Kind> {
    pub id: K::Id,
    /// Whom it concerns, with how many attempts each may have in flight.
    pub concerns: Vec<(K::Concerned, usize)>,
}

/// A piece of work that is this host's, and whom it concerns.
type Taken<K> = (<K as Kind>::Claimed, Vec<<K as Kind>::Concerned>);

impl<K: Kind> Due<K> {
    fn taken(&self, claimed: K::Claimed) -> Taken<K> {
        let concerned = self.concerns.iter().map(|(who, _)| who.clone());
        (claimed, concerned.collect())
    }
}

impl<K: Kind<Concerned = CompanyId>> Due<K> {
    /// One that concerns its company alone, which may have `most` attempts in flight.
    pub fn of(found: souk_store::leases::Due<K::Id>, most: usize) -> Due<K> {
        Due {
            id: found.id,
            concerns: vec![(found.company, most)],
        }
    }
}

/// Works from now on, on the current runtime, which should be one that waits little (not a worker's). Whoever writes what is due at once
/// notifies `written`.
pub(crate) async fn start<K: Kind>(
    app: &App,
    kind: K,
    written: Arc<Notify>,
) -> Result<Background, StoreError> {
    if !app.db.is_shared() {
        app.db
            .write(async |write| kind.release_all(write).await)
            .await?;
    }
    let work = Loop {
        app: app.clone(),
        kind: kind.clone(),
        claimant: hex::encode(rand::random::<[u8; CLAIMANT_BYTES]>()),
        attempts: JoinSet::new(),
        in_flight: HashMap::new(),
        ended: Vec::new(),
        unclaimed: Vec::new(),
    };
    Ok(Background::start(K::WHAT, |stopped| {
        tokio::spawn(kind.beside(stopped.clone()));
        work.run(written, stopped)
    }))
}

struct Loop<K: Kind> {
    app: App,
    kind: K,
    /// The name under which this process claims.
    claimant: String,
    attempts: JoinSet<K::Ended>,
    /// Whose room each attempt takes.
    in_flight: HashMap<Id, Vec<K::Concerned>>,
    /// Not written down yet: at most [`Kind::IN_FLIGHT_MAX`] and what an unavailable store has held up, which counts as in flight. With whether a
    /// commit of it was not answered.
    ended: Vec<(K::Ended, bool)>,
    /// What was to be claimed when the store failed, which may have been in the middle of the commit: these may have a lease of this host, and are found
    /// by nobody until that has ended.
    unclaimed: Vec<Due<K>>,
}

impl<K: Kind> Loop<K> {
    async fn run(mut self, written: Arc<Notify>, mut stopped: watch::Receiver<bool>) {
        let mut stopping = false;
        loop {
            let idle = self.attempts.is_empty();
            if stopping && idle && self.ended.is_empty() {
                return;
            }
            tokio::select! {
                () = written.notified(), if !stopping => {}
                () = tokio::time::sleep(K::POLL) => {}
                Some(ended) = self.attempts.join_next_with_id(), if !idle => {
                    self.end(ended);
                    if !K::GATHER.is_zero() {
                        tokio::time::sleep(K::GATHER).await;
                    }
                }
                _ = stopped.changed(), if !stopping => stopping = true,
            }
            while let Some(ended) = self.attempts.try_join_next_with_id() {
                self.end(ended);
            }
            stopping |= *stopped.borrow();
            if let Err(error) = self.turn(stopping).await {
                tracing::warn!(%error, "{} wait for the store", K::WHAT);
                tokio::time::sleep(K::POLL).await;
            }
        }
    }

    fn end(&mut self, ended: Result<(Id, K::Ended), JoinError>) {
        match ended {
            Ok((id, ended)) => {
                self.in_flight.remove(&id);
                self.ended.push((ended, false));
            }
            // Its lease ends, and it is attempted again.
            Err(error) => {
                self.in_flight.remove(&error.id());
                tracing::error!(%error, "an attempt of {} panicked", K::WHAT);
            }
        }
    }

    /// Writes down what has ended and takes what is due, in one transaction; then begins what was taken.
    async fn turn(&mut self, stopping: bool) -> Result<(), StoreError> {
        let now = self.app.clock.now();
        // What may have been done is done again before anything else: an end that is written down again shall not meet a new claim.
        let is_again = self.ended.iter().any(|(_, is_again)| *is_again);
        let due = match stopping {
            true => Vec::new(),
            false if is_again || !self.unclaimed.is_empty() => std::mem::take(&mut self.unclaimed),
            false => self.due(now).await?,
        };
        if due.is_empty() && self.ended.is_empty() {
            return Ok(());
        }
        self.ended
            .sort_unstable_by(|(one, _), (other, _)| K::order(one, other));
        let mut is_written = false;
        let claimed = self
            .app
            .db
            .write(async |write| -> Result<_, StoreError> {
                for (ended, is_again) in &self.ended {
                    let by = &self.claimant;
                    self.kind.record(write, ended, by, now, *is_again).await?;
                }
                let mut claimed = Vec::with_capacity(due.len());
                for piece in &due {
                    let taken = self.kind.claim(write, &piece.id, &self.claim(now)).await?;
                    claimed.extend(taken.map(|taken| piece.taken(taken)));
                }
                is_written = true;
                Ok(claimed)
            })
            .await;
        if is_written && claimed.is_err() {
            for (_, is_again) in &mut self.ended {
                *is_again = true;
            }
        }
        let claimed = match claimed {
            Ok(claimed) => claimed,
            // It would be refused again and again.
            Err(error) if error.is_refusal() => {
                tracing::error!(%error, "{} could not be written down together", K::WHAT);
                if let Err(error) = self.record_each(now).await {
                    self.unclaimed = due;
                    return Err(error);
                }
                self.claim_each(due, now).await
            }
            Err(error) => {
                self.unclaimed = due;
                return Err(error);
            }
        };
        self.ended.clear();
        for (claimed, concerned) in claimed {
            let task = self.attempts.spawn(self.kind.clone().attempt(claimed));
            self.in_flight.insert(task.id(), concerned);
        }
        Ok(())
    }

    fn claim(&self, now: Timestamp) -> Claim<'_> {
        Claim {
            by: &self.claimant,
            now,
            until: now.after(K::LEASE),
        }
    }

    /// Takes what is due piece by piece: what the store refuses is left, so that the others do not wait with it. What is left when the store has
    /// no time waits for the next turn.
    async fn claim_each(&mut self, due: Vec<Due<K>>, now: Timestamp) -> Vec<Taken<K>> {
        let mut claimed = Vec::new();
        let mut left = VecDeque::from(due);
        while let Some(piece) = left.pop_front() {
            let taken = self
                .app
                .db
                .write(async |write| -> Result<_, StoreError> {
                    self.kind.claim(write, &piece.id, &self.claim(now)).await
                })
                .await;
            match taken {
                Ok(taken) => claimed.extend(taken.map(|taken| piece.taken(taken))),
                Err(error) if error.is_refusal() => {
                    tracing::error!(%error, "one of the {} could not be taken", K::WHAT);
                }
                Err(error) => {
                    tracing::warn!(%error, "{} wait for the store", K::WHAT);
                    self.unclaimed.push(piece);
                    self.unclaimed.extend(left);
                    break;
                }
            }
        }
        claimed
    }

    /// Writes down what has ended one by one: what the store refuses is left out, so that the others do not wait with it. Its lease ends, and it is
    /// attempted again.
    async fn record_each(&mut self, now: Timestamp) -> Result<(), StoreError> {
        while let Some((ended, is_again)) = self.ended.last() {
            let mut is_written = false;
            let recorded = self
                .app
                .db
                .write(async |write| -> Result<_, StoreError> {
                    let by = &self.claimant;
                    self.kind.record(write, ended, by, now, *is_again).await?;
                    is_written = true;
                    Ok(())
                })
                .await;
            match recorded {
                Ok(()) => {}
                Err(error) if error.is_refusal() => {
                    tracing::error!(%error, "the end of one of the {} could not be written down", K::WHAT);
                }
                Err(error) => {
                    if is_written && let Some((_, is_again)) = self.ended.last_mut() {
                        *is_again = true;
                    }
                    return Err(error);
                }
            }
            self.ended.pop();
        }
        Ok(())
    }

    /// What may be attempted now, within the bounds, by id.
    async fn due(&self, now: Timestamp) -> Result<Vec<Due<K>>, StoreError> {
        let mut room = K::IN_FLIGHT_MAX.saturating_sub(self.in_flight.len() + self.ended.len());
        if room == 0 {
            return Ok(Vec::new());
        }
        let mut busy: HashMap<K::Concerned, usize> = HashMap::new();
        for concerned in self.in_flight.values().flatten() {
            *busy.entry(concerned.clone()).or_default() += 1;
        }
        // Those of who is busy to the bound may come first, so there is a look at as many others.
        let looked_at = 2 * K::IN_FLIGHT_MAX as i64;
        let found = async {
            let mut read = self.app.db.read().await?;
            self.kind.due(&mut read, now, looked_at).await
        };
        let mut due = self.app.db.answered(READ_WITHIN, found).await?;
        // Those of whom least is under way go first: what waits for somebody who takes long is the oldest each time that one of theirs ends.
        due.sort_by_key(|piece| {
            let theirs = piece.concerns.iter().map(|(who, _)| busy.get(who));
            theirs.flatten().sum::<usize>()
        });
        due.retain(|piece| {
            let mut concerns = piece.concerns.iter();
            let fits = room > 0
                && concerns.all(|(who, most)| busy.get(who).is_none_or(|theirs| theirs < most));
            if fits {
                room -= 1;
                for (who, _) in &piece.concerns {
                    *busy.entry(who.clone()).or_default() += 1;
                }
            }
            fits
        });
        due.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        Ok(due)
    }
}

#[cfg(test)]
#[path = "leases_tests.rs"]
mod tests;
