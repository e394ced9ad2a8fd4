//! Which session takes a job, when another one is opened for it, and who waits. Start reading at [`Pool::submit`].

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use super::{
    Permit, Pool, State, home,
    pools::Refused,
    session::{Handle, Job},
    shutting_down,
};
use crate::{
    fault::{Blame, Fault, FaultKind},
    request::Request,
};

/// How exactly it is known when a pool was used last.
const USED_PACE_US: u64 = 100_000;

/// Where a job goes.
enum Place {
    On(Arc<Handle>),
    Open(Permit),
    Wait,
    /// Room is being made: who waits is woken when it is there.
    WaitForRoom,
}

impl Pool {
    /// Gives the job to a session or to the queue. `Ok(true)`: a session has it.
    pub fn submit(self: &Arc<Pool>, mut job: Job, now: Instant) -> Result<bool, Fault> {
        let now_us = self.shared.micros(now);
        // Now and then: other cores read what is beside it.
        if now_us.saturating_sub(self.used_us.load(Ordering::Relaxed)) > USED_PACE_US {
            self.used_us.store(now_us, Ordering::Relaxed);
        }
        job.joins_below = self.joins_below(&job.request);
        let mut state = self.state.lock();
        let home = home();
        let max = self.source.limits.queue_max;
        if state.queue.len() >= max {
            state.queue.forget_gone();
            self.waiting.store(state.queue.len(), Ordering::Release);
            if state.queue.len() >= max && !state.queue.yields_to(job.caller) {
                return Err(busy(max));
            }
        }
        let is_served = state.is_served();
        // Behind others, unless nobody serves those: then it depends on whether anybody will.
        let place = if state.queue.is_empty() || !is_served {
            self.place(&state, home, now_us, job.joins_below, true)
        } else {
            Place::Wait
        };
        match place {
            Place::On(session) => {
                let local = session.home == home;
                session.push(job, now_us);
                // Served by another thread this time; the next request finds a session of its own.
                if !local
                    && state.opening == 0
                    && state.may_open(now_us)
                    && self
                        .sharing
                        .is_worth_one_here(&state.sessions, home, &self.foreign)
                    && let Ok(permit) = self.spare_permit()
                {
                    state.opening += 1;
                    drop(state);
                    self.spawn(permit);
                }
                Ok(true)
            }
            Place::Open(permit) => {
                state.opening += 1;
                let last = self.enqueue(&mut state, job);
                drop(state);
                self.turn_away(last);
                self.spawn(permit);
                Ok(false)
            }
            Place::Wait | Place::WaitForRoom => {
                // Nobody here will answer, and nobody makes room.
                if matches!(place, Place::Wait)
                    && !is_served
                    && let Some(short) = self.is_short()
                {
                    return Err(self.shortage(short));
                }
                let last = self.enqueue(&mut state, job);
                drop(state);
                self.turn_away(last);
                self.kick();
                Ok(false)
            }
        }
    }

    /// Below how many requests in flight a session is joined by this one.
    #[inline]
    pub fn joins_below(&self, request: &Request) -> usize {
        self.sharing.joins_below(request, &self.pace)
    }

    /// Gives queued jobs to sessions that can take them, and opens sessions for the others.
    pub fn kick(self: &Arc<Pool>) {
        if self.has_queue() {
            self.give_out();
        }
    }

    /// The same for those too that are being queued at this moment.
    pub(super) fn give_out(self: &Arc<Pool>) {
        let now_us = self.shared.micros(Instant::now());
        let home = home();
        loop {
            let mut state = self.state.lock();
            let Some(joins_below) = state.queue.front().map(|job| job.joins_below) else {
                return;
            };
            match self.place(&state, home, now_us, joins_below, false) {
                Place::On(session) => {
                    if let Some(job) = self.dequeue(&mut state) {
                        session.push(job, now_us);
                    }
                }
                Place::Open(permit) => {
                    // Nobody logs in for those who have left.
                    if state.queue.forget_gone() {
                        self.waiting.store(state.queue.len(), Ordering::Release);
                        drop(state);
                        drop(permit);
                        continue;
                    }
                    state.opening += 1;
                    drop(state);
                    self.spawn(permit);
                }
                Place::Wait | Place::WaitForRoom => return,
            }
        }
    }

    pub(super) fn put_back(&self, state: &mut State, jobs: Vec<Job>) {
        for job in jobs.into_iter().rev() {
            job.ticket.assign(None);
            state.queue.push_front(job);
        }
        self.waiting.store(state.queue.len(), Ordering::Release);
    }

    /// `joins_below`: of the job, see there. `is_new`: it is not in the queue yet.
    fn place(
        self: &Arc<Pool>,
        state: &State,
        home: u64,
        now_us: u64,
        joins_below: usize,
        is_new: bool,
    ) -> Place {
        let sharing = self.sharing;
        if let Some(session) = sharing.session_for(&state.sessions, home, now_us, joins_below) {
            return Place::On(session.clone());
        }
        // Who waits is served by those that are there, or by the one that is being opened.
        if !state.may_open(now_us) {
            return Place::Wait;
        }
        let queued = state.queue.iter().map(|job| job.joins_below);
        let waiting = queued.chain(is_new.then_some(joins_below));
        if sharing.will_do_for(state.opening, waiting, state.takes_sessions()) {
            return Place::Wait;
        }
        match self.permit() {
            Ok(permit) => Place::Open(permit),
            Err(Refused::MakingRoom) => Place::WaitForRoom,
            Err(Refused::Full) => Place::Wait,
        }
    }

    fn spawn(self: &Arc<Pool>, permit: Permit) {
        // Dropped with its runtime at the latest; then `Opening` says so.
        let open = self.pools.open;
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => open(&runtime, self.clone(), permit, home()),
            Err(_) => match &self.shared.runtime {
                Some(runtime) => open(runtime, self.clone(), permit, 0),
                None => {
                    self.open_failed(&shutting_down());
                }
            },
        }
    }

    /// Where there is no place left it has that of the last one, which comes back.
    fn enqueue(&self, state: &mut State, job: Job) -> Option<Job> {
        let last = match state.queue.len() >= self.source.limits.queue_max {
            true => state.queue.pop_back(),
            false => None,
        };
        state.queue.push(job);
        self.waiting.store(state.queue.len(), Ordering::Release);
        last
    }

    /// Another caller has the place of a job that waited. It is as if it had come now: nothing is counted.
    fn turn_away(&self, last: Option<Job>) {
        if let Some(job) = last {
            job.ticket.answer(Err(busy(self.source.limits.queue_max)));
        }
    }

    /// The next job that somebody still waits for.
    pub(super) fn dequeue(&self, state: &mut State) -> Option<Job> {
        loop {
            let job = state.queue.pop_front();
            self.waiting.store(state.queue.len(), Ordering::Release);
            match job {
                Some(job) if job.ticket.is_gone() => continue,
                job => return job,
            }
        }
    }
}

fn busy(queue_max: usize) -> Fault {
    Fault::new(
        Blame::Host,
        FaultKind::Busy,
        format!("{queue_max} requests wait for this data connection already: try again later"),
    )
}
