//! What a session owes: its place in the pool, its permit, and an answer to every request it was
//! given. However the session ends, each is settled exactly once.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::in_flight::{InFlight, Submitted};
use crate::{
    columns::Output,
    connector::Need,
    fault::{Blame, Fault, FaultKind},
    journal::Stream,
    pool::{Answer, Handle, Job, Permit, Pool, shutting_down},
};

/// Younger than this, a session that dies was broken by what it was asked, not by having waited.
const FRESH: Duration = Duration::from_millis(200);
/// A request moves to another session once; a second death is its own fault. Where it shared that session it may be the fault of another one, which sessions do
/// not outlive either: it moves once more then, to one that it shares with nobody. So what breaks sessions, however fast, breaks three, and fails nobody else.
const ATTEMPTS_MAX: u8 = 2;

/// How a session came to its end.
pub(crate) enum End {
    /// It was asked to close and has answered everything.
    Closed,
    /// The source or the wire ended it.
    Broke(Fault),
    /// The guest ended it, with what was in flight.
    Ended(Fault),
    /// The guest is lost; the request that did it, if it is known, even if nobody waits for that.
    Lost(Option<u32>, Fault),
    /// The guest computed for too long on a worker, and is lost: what it had in flight runs in the lanes.
    Cut(Fault),
    /// A request that nobody waits for did not end in time.
    Overdue,
}

pub(crate) struct Lease {
    pub pool: Arc<Pool>,
    pub handle: Arc<Handle>,
    pub in_flight: InFlight,
    /// Taken from the inbox, not submitted yet.
    pub unsubmitted: Vec<Job>,
    served: u64,
    /// When the last request ended: the next one had the source to itself from then on.
    ended: Option<Instant>,
    /// How many end at once where answers come together, and when the last one before them ended.
    together: (u32, Option<Instant>),
    permit: Option<Permit>,
    /// Of a session that the pool knows nothing of.
    is_errand: bool,
}

impl Lease {
    pub fn new(pool: Arc<Pool>, handle: Arc<Handle>, permit: Permit) -> Lease {
        let in_flight = InFlight::new(pool.memory_account());
        Lease {
            pool,
            handle,
            in_flight,
            unsubmitted: Vec::new(),
            served: 0,
            ended: None,
            together: (1, None),
            permit: Some(permit),
            is_errand: false,
        }
    }

    /// Of a session for an errand, whose places are held by who runs it.
    pub fn errand(pool: Arc<Pool>, handle: Arc<Handle>) -> Lease {
        Lease {
            in_flight: InFlight::new(pool.memory_account()),
            pool,
            handle,
            unsubmitted: Vec::new(),
            served: 0,
            ended: None,
            together: (1, None),
            permit: None,
            is_errand: true,
        }
    }

    /// The session is to end, and nothing more is asked of it.
    pub fn is_closed(&self) -> bool {
        self.handle.is_closing() && !self.handle.has_jobs()
    }

    /// So many of those that are in flight end now, whose answers have come together: none of them had the source to itself.
    #[inline]
    pub fn end_together(&mut self, count: usize) {
        self.together = (u32::try_from(count).unwrap_or(u32::MAX), self.ended);
    }

    /// Ends a request that is in flight. Ignored if it was answered before.
    pub fn complete(&mut self, mut entry: Submitted, now: Instant, result: Result<(), Fault>) {
        self.served += 1;
        let (count, ended_before) = self.together;
        let ended = match count > 1 {
            true => ended_before,
            false => self.ended,
        };
        let took = now - ended.map_or(entry.submitted, |ended| ended.max(entry.submitted));
        self.ended = Some(now);
        let (pace, request) = (&self.pool.pace, &entry.job.request);
        match count > 1 {
            true => pace.learn_together(request, took, count),
            false => pace.learn(request, took),
        }
        let is_idle = self.release(now);
        if entry.quit.is_none() {
            let answer: Answer = result.map(|()| -> Output { entry.output() });
            self.pool
                .answer(&entry.job, answer, Some(now - entry.submitted));
        }
        self.give_on(is_idle);
    }

    /// Answers a request that never was in flight.
    pub fn refuse(&mut self, job: &Job, now: Instant, fault: Fault) {
        let is_idle = self.release(now);
        self.pool.answer(job, Err(fault), None);
        self.give_on(is_idle);
    }

    /// What is in flight takes long: whoever waits behind it goes elsewhere.
    pub fn give_back(&mut self) {
        self.handle.will_be_long();
        let mut jobs = Vec::new();
        self.handle.take(&mut jobs);
        self.unsubmitted.append(&mut jobs);
        if !self.unsubmitted.is_empty() {
            let jobs = std::mem::take(&mut self.unsubmitted);
            self.handle.depth.fetch_sub(jobs.len(), Ordering::AcqRel);
            self.pool.give_back(jobs);
        }
    }

    /// One request less, before its answer is told: who hears it may find an idle session. Returns whether it is idle.
    fn release(&mut self, now: Instant) -> bool {
        let handle = &self.handle;
        // Those that wait in the inbox are submitted next.
        let oldest = self.in_flight.oldest().unwrap_or(now);
        handle
            .oldest_us
            .store(self.pool.shared.micros(oldest), Ordering::Relaxed);
        let is_idle = handle.depth.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_idle {
            handle
                .idle_us
                .store(self.pool.shared.micros(now), Ordering::Relaxed);
        }
        is_idle
    }

    /// Others may be given to this session.
    fn give_on(&mut self, is_idle: bool) {
        if is_idle {
            self.pool.settle(&self.handle);
        }
        if self.pool.has_queue() {
            self.pool.kick();
        }
    }

    /// The session did not outlive what was asked of it. Over a stream one of those at work may have done that, which takes the others with it wherever it is
    /// asked again: what has been long about it has a session to itself until its next run has shown what it takes.
    fn suspect(&mut self) {
        let pool = &self.pool;
        if pool.connector.need != Need::Tcp {
            return;
        }
        let (now, ended) = (Instant::now(), self.ended);
        let count = u32::try_from(self.in_flight.len()).unwrap_or(u32::MAX);
        for entry in self.in_flight.iter_mut() {
            let since = ended.map_or(entry.submitted, |ended| ended.max(entry.submitted));
            let request = &entry.job.request;
            pool.pace.learn_together(request, now - since, count);
            entry.job.joins_below = pool.joins_below(&entry.job.request);
        }
    }

    /// Settles everything. Requests that were not submitted move on; so do those that may be tried
    /// again because they are not to blame.
    pub fn finish(mut self, end: End) {
        let pool = self.pool.clone();
        self.log(&end);
        if matches!(end, End::Broke(_) | End::Overdue) {
            self.suspect();
            pool.doubt();
        }
        // With those that nobody waits for.
        let was_shared = self.in_flight.len() > 1;
        let in_flight: Vec<Submitted> = self
            .in_flight
            .drain()
            .into_iter()
            .filter(|entry| entry.quit.is_none())
            .collect();
        let culprit = match &end {
            // Without a name it is the oldest: the one whose result was being read. It may be one that nobody waits for.
            End::Lost(culprit, _) => culprit.or(in_flight.first().map(|entry| entry.id)),
            _ => None,
        };
        let (mut again, mut failed) = (Vec::new(), Vec::new());
        for mut entry in in_flight {
            entry.job.attempts += 1;
            let is_second = entry.job.attempts == ATTEMPTS_MAX;
            let may_move = entry.job.attempts < ATTEMPTS_MAX || (is_second && was_shared);
            let is_repeatable = entry.job.request.is_repeatable();
            let may_repeat = may_move && is_repeatable;
            let waited = self.served > 0 || entry.submitted - self.handle.opened > FRESH;
            let fault = match &end {
                // Nobody is to blame yet, so it does not count as an attempt.
                End::Cut(_) if is_repeatable => {
                    entry.job.attempts -= 1;
                    None
                }
                End::Broke(_) if may_repeat && (waited || is_second) => None,
                End::Lost(..) if may_repeat && culprit != Some(entry.id) => None,
                End::Overdue | End::Closed if may_repeat => None,
                // It may have reached the source, and is not to blame. (By itself it is to blame, whatever its guest has broken it by.)
                End::Lost(..) if was_shared && !is_repeatable && culprit != Some(entry.id) => {
                    Some(lost())
                }
                End::Broke(fault) | End::Ended(fault) | End::Lost(_, fault) | End::Cut(fault) => {
                    Some(fault.clone())
                }
                End::Overdue | End::Closed => Some(lost()),
            };
            match fault {
                None => {
                    if entry.job.attempts == ATTEMPTS_MAX {
                        entry.job.joins_below = 0;
                    }
                    again.push(entry.job);
                }
                Some(fault) => failed.push((entry.job, fault)),
            }
        }
        if matches!(end, End::Broke(_)) && self.served > 0 {
            pool.close_older(self.handle.opened + FRESH);
        }
        again.append(&mut self.unsubmitted);
        // Before it leaves the pool: who finds no session there finds a place for one.
        drop(self.permit.take());
        self.leave(again);
        for (job, fault) in failed {
            pool.answer(&job, Err(fault), None);
        }
        pool.kick();
        pool.made_room();
    }

    /// Out of the pool, with the jobs that were on their way here.
    fn leave(&mut self, mut again: Vec<Job>) {
        self.handle.close();
        if self.is_errand {
            // Its session ended before it was asked.
            for job in again {
                self.pool.answer(&job, Err(shutting_down()), None);
            }
            return;
        }
        self.pool.remove(&self.handle, Vec::new());
        // Nothing is pushed from here on.
        let mut inbox = Vec::new();
        self.handle.take(&mut inbox);
        again.append(&mut inbox);
        if !again.is_empty() {
            self.pool.remove(&self.handle, again);
        }
    }

    fn log(&self, end: &End) {
        let (connector, version) = (&self.pool.connector.name, &self.pool.connector.version);
        let connection = &self.pool.source.connection;
        match end {
            End::Lost(_, fault) => {
                self.pool
                    .connector
                    .stats
                    .traps
                    .fetch_add(1, Ordering::Relaxed);
                let speaker = &self.pool.speaker;
                let detail = speaker.redacted(fault.detail.clone().unwrap_or_default());
                speaker.say(Stream::Fault, &speaker.redacted(fault.told()));
                if let Some(unlogged) = self.pool.logs(Instant::now()) {
                    tracing::warn!(
                        connector,
                        version,
                        connection,
                        code = fault.code,
                        detail,
                        unlogged,
                        "a connector broke"
                    );
                }
            }
            End::Broke(fault) | End::Ended(fault) => {
                let detail = fault.detail.as_deref().unwrap_or_default();
                tracing::debug!(
                    connector,
                    version,
                    connection,
                    code = fault.code,
                    detail,
                    "a session ended"
                );
            }
            End::Cut(_) => tracing::debug!(
                connector,
                version,
                connection,
                "a connector leaves the workers for the compute lanes"
            ),
            End::Overdue => tracing::debug!(
                connector,
                version,
                connection,
                "a session was dropped with an abandoned request"
            ),
            End::Closed => {}
        }
    }
}

/// Of a request that shared a session, and cannot be asked again.
fn lost() -> Fault {
    Fault::new(
        Blame::Host,
        FaultKind::Internal,
        "the request was lost with the session of another one: try again",
    )
}

impl Drop for Lease {
    /// The task was dropped with its runtime, or `finish` has been here.
    fn drop(&mut self) {
        if self.permit.is_none() {
            return;
        }
        self.handle.close();
        self.pool.remove(&self.handle, Vec::new());
        let mut jobs = std::mem::take(&mut self.unsubmitted);
        let mut inbox = Vec::new();
        self.handle.take(&mut inbox);
        jobs.append(&mut inbox);
        jobs.extend(
            self.in_flight
                .drain()
                .into_iter()
                .filter(|entry| entry.quit.is_none())
                .map(|entry| entry.job),
        );
        for job in jobs {
            self.pool.answer(&job, Err(shutting_down()), None);
        }
    }
}
