//! Calls of the guest: plain ones on this worker, and those in turns, which go on in a lane where they take longer.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use super::{
    GO_BYTES, INLINE_RESPONSE_MAX, INLINE_STREAM_MAX, Turn, Wire, WireSession, idle::NOBODY,
};
use crate::{
    asking::is_alone,
    connector::Scope,
    engine::TICK,
    fault::Excess,
    lanes::Task,
    pool::{Job, shutting_down, timed_out},
    session::{
        guests::{Begun, Called},
        in_flight::Submitted,
        lease::{End, Lease},
    },
    v1::{Call, CallError, CheckedStep, Input, Received, WireState},
};

/// What a plain call computes after it has met a tick, where it can be cut off. One that took longer, and returned, could not: the next ones go on in
/// the lanes.
const HELD_MAX: Duration = Duration::from_millis(4);

/// In the number of a request that another one follows at once, where the connector has the ability `groups`.
const FOLLOWED: u32 = 1 << 31;
/// In that of a request that is all there is to do, where it has the ability `alone`.
const ALONE: u32 = 1 << 30;

/// Whether somebody still waits for a request, and may. If not it is answered.
#[inline]
fn is_due(lease: &mut Lease, job: &Job, now: Instant) -> bool {
    let is_due = job.deadline > now && !job.ticket.is_gone();
    if !is_due {
        lease.refuse(job, now, timed_out());
    }
    is_due
}

/// What ended the wait for a call in a lane.
enum Waited {
    Returned(Option<Called<WireState>>),
    /// Some request is at its deadline, or at the end of its grace.
    Alarm,
    /// More was asked of the session.
    Asked,
    /// The host stops.
    Cut,
}

impl WireSession {
    /// Calls the guest on this worker.
    #[inline]
    pub(super) fn receive(&mut self, lease: &Lease, input: Input<'_>) -> Turn {
        let Some(guest) = self.guest.here() else {
            return Turn::Broke(io::ErrorKind::NotConnected.into());
        };
        let result = guest.receive(input);
        self.sample(lease);
        Turn::Step(result)
    }

    /// Learns how long calls take.
    #[inline]
    fn sample(&mut self, lease: &Lease) {
        let pool = &lease.pool;
        let mut met_tick = false;
        if let Some(guest) = self.guest.here()
            && guest.met_tick()
        {
            met_tick = true;
            let since = guest.since_tick();
            pool.tenant.computed((TICK + since).as_micros() as u64);
            if since > HELD_MAX {
                pool.was_cut(Excess::Time);
            }
        }
        if self.sampled.are_long(met_tick) {
            pool.make_way();
        }
    }

    /// Submits what the pool has given, up to the first that is to be submitted in turns, and looks after those whose caller has gone.
    pub(super) fn take_jobs(&mut self, lease: &mut Lease) -> Result<(), End> {
        let now = Instant::now();
        let mut jobs = std::mem::take(&mut self.jobs);
        lease.handle.take(&mut jobs);
        let plain = match lease.in_flight.has_unrepeatable() {
            true => 0,
            false => jobs
                .iter()
                .take_while(|job| job.request.is_repeatable())
                .count(),
        };
        lease.unsubmitted.extend(jobs.drain(plain..));
        // All before the first is submitted: it is told that another follows.
        jobs.retain(|job| is_due(lease, job, now));
        let mut waiting = jobs.drain(..);
        while let Some(job) = waiting.next() {
            let is_followed = waiting.len() > 0 && lease.pool.connector.groups;
            if let Err(end) = self.submit(lease, job, now, is_followed) {
                lease.unsubmitted.extend(waiting);
                return Err(end);
            }
        }
        drop(waiting);
        self.jobs = jobs;
        self.leave_gone(lease, now)
    }

    #[inline]
    fn submit(
        &mut self,
        lease: &mut Lease,
        mut job: Job,
        now: Instant,
        is_followed: bool,
    ) -> Result<(), End> {
        let mut id = self.begin(lease, &mut job, now);
        if is_followed {
            id |= FOLLOWED;
        } else if lease.pool.connector.alone && lease.in_flight.is_empty() && is_alone() {
            id |= ALONE;
        }
        let Some(guest) = self.guest.here() else {
            lease.unsubmitted.push(job);
            return Err(End::Ended(shutting_down()));
        };
        let result = guest.submit(id, &job.request);
        self.sample(lease);
        lease.in_flight.push(Submitted::new(id, job, now));
        self.apply(lease, result, Some(id), None)
    }

    /// The number of a request that is being submitted.
    #[inline]
    fn begin(&mut self, lease: &mut Lease, job: &mut Job, now: Instant) -> u32 {
        let left = job.deadline.saturating_duration_since(now);
        if lease.in_flight.is_empty() {
            self.streamed = 0;
            // They were for requests that have ended.
            self.pauses.clear();
            self.has_forgotten = false;
        }
        self.next_id = match self.next_id + 1 {
            ALONE => NOBODY + 1,
            next => next,
        };
        self.asides += 1;
        self.idle.ends();
        self.pace.begin_answer(lease.in_flight.len());
        job.request.limits_mut().timeout_ms =
            u32::try_from(left.as_millis()).unwrap_or(u32::MAX).max(1);
        self.arm(job.deadline);
        self.next_id
    }

    /// What came while the guest was in a lane, or has to be told it in turns.
    pub(super) async fn catch_up(&mut self, lease: &mut Lease) -> Result<(), End> {
        if !lease.unsubmitted.is_empty() {
            self.take_jobs_in_turns(lease).await?;
        }
        self.tell_cancels(lease).await
    }

    /// As `take_jobs`, where the guest is called in turns.
    pub(super) async fn take_jobs_in_turns(&mut self, lease: &mut Lease) -> Result<(), End> {
        if lease.unsubmitted.is_empty() {
            lease.handle.take(&mut lease.unsubmitted);
        }
        while !lease.unsubmitted.is_empty() {
            let now = Instant::now();
            let mut job = lease.unsubmitted.remove(0);
            if !is_due(lease, &job, now) {
                continue;
            }
            let id = self.begin(lease, &mut job, now);
            let call = Call::Submit(id, job.request.clone());
            lease.in_flight.push(Submitted::new(id, job, now));
            let (result, at) = self.call_in_turns(lease, call, Some(now)).await?;
            self.apply(lease, result, Some(id), at)?;
            if self.read >= GO_BYTES {
                self.give_way(lease).await?;
            }
        }
        if !self.nudged {
            return Ok(());
        }
        self.leave_gone(lease, Instant::now())
    }

    pub(super) async fn receive_in_turns(
        &mut self,
        lease: &mut Lease,
        received: Received,
    ) -> Result<(), End> {
        let call = Call::Receive(received);
        let (result, at) = self.call_in_turns(lease, call, None).await?;
        self.apply(lease, result, None, at)
    }

    /// Tells the guest which requests to give up, or that nobody asks for anything.
    async fn tell_cancels(&mut self, lease: &mut Lease) -> Result<(), End> {
        while let Some(id) = self.cancels.pop() {
            if id == NOBODY {
                self.idle.told(lease.in_flight.is_empty());
            } else {
                self.asides += 1;
            }
            let may_be_cut = self.may_be_cut(lease);
            let (result, at) = match self.guest.here() {
                Some(guest)
                    if may_be_cut && !guest.is_large() && !lease.pool.pressure.is_laned(|| 0) =>
                {
                    (guest.cancel(id), None)
                }
                _ => self.call_in_turns(lease, Call::Cancel(id), None).await?,
            };
            self.apply(lease, result, Some(id), at)?;
        }
        Ok(())
    }

    /// Makes a call in turns, the first of them here where it promises to be short. Deadlines hold meanwhile: whoever has waited long enough is
    /// answered, and a guest that does not come back soon after is left behind. `now`: if it is known. When it has returned comes with the answer, if
    /// that is known.
    async fn call_in_turns(
        &mut self,
        lease: &mut Lease,
        call: Call,
        now: Option<Instant>,
    ) -> Result<(Result<CheckedStep, CallError>, Option<Instant>), End> {
        let is_short = self.streamed <= INLINE_STREAM_MAX && call.bytes() <= INLINE_RESPONSE_MAX;
        let task = match is_short && self.may_begin_here(lease) {
            false => self.guest.call_in_lane(false, call),
            true => {
                let begun = now.unwrap_or_else(Instant::now);
                let called = self.guest.call_here(call);
                let at = Instant::now();
                // Time on the wall is at hand where processor time is a system call, twice in each call of microseconds; a thread that stood still in
                // between has computed for a tick at most, as a plain call that met one counts for one.
                self.computed_here(lease, (at - begun).min(TICK));
                match called {
                    Some(Begun::Returned(result)) => return Ok((result, Some(at))),
                    Some(Begun::GoesOn(task)) => Some(task),
                    None => None,
                }
            }
        };
        let Some(mut task) = task else {
            return Err(End::Ended(shutting_down()));
        };
        loop {
            let waited =
                std::future::poll_fn(|cx| self.poll_lane(cx, lease, Pin::new(&mut task))).await;
            match waited {
                Waited::Returned(Some((guest, result))) => {
                    self.guest = guest;
                    return Ok((result, None));
                }
                Waited::Returned(None) | Waited::Cut => return Err(End::Ended(shutting_down())),
                Waited::Alarm => self.sound_alarm(lease)?,
                Waited::Asked => self.keep_asked(lease),
            }
        }
    }

    /// Whether a call in turns may have its first turn here. On a stream a company's connector could ask for memory in it that it may not have here, and
    /// could not be suspended.
    fn may_begin_here(&self, lease: &Lease) -> bool {
        let can_be_suspended = match self.wire {
            Wire::Http { .. } => true,
            Wire::Tcp { .. } => lease.pool.connector.scope == Scope::Platform,
        };
        can_be_suspended && !self.is_laned(lease)
    }

    /// What is asked while the guest is in a lane waits for it, each until its own deadline.
    fn keep_asked(&mut self, lease: &mut Lease) {
        let mut jobs = Vec::new();
        lease.handle.take(&mut jobs);
        for job in &jobs {
            self.arm(job.deadline);
        }
        lease.unsubmitted.append(&mut jobs);
    }

    /// What a first turn took of this worker: it counts as its company's, and is weighed as ticks are that plain calls meet.
    fn computed_here(&mut self, lease: &Lease, used: Duration) {
        let pool = &lease.pool;
        pool.tenant.computed(used.as_micros() as u64);
        self.uncounted += used;
        let is_tick = self.uncounted >= TICK;
        if is_tick {
            self.uncounted = Duration::ZERO;
            // Others have their turn.
            self.read = GO_BYTES;
        }
        if self.sampled.are_long(is_tick) {
            pool.make_way();
        }
    }

    fn poll_lane(
        &mut self,
        cx: &mut Context<'_>,
        lease: &Lease,
        task: Pin<&mut Task<Called<WireState>>>,
    ) -> Poll<Waited> {
        if let Poll::Ready(returned) = task.poll(cx) {
            return Poll::Ready(Waited::Returned(returned));
        }
        lease.handle.register(cx);
        if lease.handle.is_closing() && lease.pool.is_cut() {
            return Poll::Ready(Waited::Cut);
        }
        if lease.handle.has_jobs() {
            return Poll::Ready(Waited::Asked);
        }
        self.poll_alarm(cx).map(|()| Waited::Alarm)
    }
}
