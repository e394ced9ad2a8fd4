//! Serves a session on a directory: one request at a time, each one call into the guest. Its first turn is taken
//! here; a call that takes longer than a tick goes on in the compute lanes.

use std::{
    future::poll_fn,
    task::Poll,
    time::{Duration, Instant},
};

use super::{
    guests::{Called, Kept, broken, call_fault},
    in_flight::{Submitted, Wrong},
    lease::{End, Lease},
};
use crate::{
    engine::TICK,
    pool::{Job, Sampled, shutting_down, timed_out},
    v1::{Call, CallError, CheckedStep, DirectoryState, Heard, reported},
};

/// A first turn that took a worker longer has waited for a cold disk: the next ones are made in the lanes, where others are served, until it is warm.
const STOOD_STILL: Duration = Duration::from_millis(10);
/// How long after its deadline a request may still end by itself, which saves its session.
const GRACE: Duration = Duration::from_millis(500);

/// What ended the wait for a call.
enum Waited {
    Returned(Option<Called<DirectoryState>>),
    /// The deadline has passed, the host stops, or nobody waits any more.
    Given(Option<crate::fault::Fault>),
}

struct DirectorySession {
    guest: Kept<DirectoryState>,
    next_id: u32,
    sampled: Sampled,
}

pub(crate) async fn serve(guest: Kept<DirectoryState>, lease: &mut Lease) -> End {
    let mut session = DirectorySession {
        guest,
        next_id: 0,
        sampled: Sampled::default(),
    };
    session.serve(lease).await
}

impl DirectorySession {
    async fn serve(&mut self, lease: &mut Lease) -> End {
        let mut since = Instant::now();
        loop {
            let handle = lease.handle.clone();
            poll_fn(|cx| {
                handle.register(cx);
                if handle.has_jobs() || handle.is_closing() {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
            handle.take(&mut lease.unsubmitted);
            if lease.unsubmitted.is_empty() && handle.is_closing() {
                return End::Closed;
            }
            while !lease.unsubmitted.is_empty() {
                let job = lease.unsubmitted.remove(0);
                if let Err(end) = self.execute(lease, job).await {
                    return end;
                }
                // Each is short; many are not.
                if since.elapsed() > TICK {
                    tokio::task::yield_now().await;
                    since = Instant::now();
                }
            }
        }
    }

    async fn execute(&mut self, lease: &mut Lease, mut job: Job) -> Result<(), End> {
        let now = Instant::now();
        let left = job.deadline.saturating_duration_since(now);
        if left.is_zero() || job.ticket.is_gone() {
            lease.refuse(&job, now, timed_out());
            return Ok(());
        }
        self.next_id = self.next_id.wrapping_add(1);
        let id = self.next_id;
        job.request.limits_mut().timeout_ms =
            u32::try_from(left.as_millis()).unwrap_or(u32::MAX).max(1);
        // A copy for the guest: the entry must be the lease's while the call is suspended, so that its
        // caller hears of it if this task is dropped.
        let (request, ticket, deadline) = (job.request.clone(), job.ticket.clone(), job.deadline);
        let pool = lease.pool.clone();
        lease.in_flight.push(Submitted::new(id, job, now));
        let handle = lease.handle.clone();
        let inline = !pool.is_laned(self.guest.is_large());
        let call = Call::Submit(id, request);
        let Some(mut call) = self.guest.call_in_lane(inline, call) else {
            return Err(End::Ended(shutting_down()));
        };
        // What cannot be interrupted, and a disk, may hold a worker for longer than a tick.
        let first_turn = now.elapsed();
        let stood_still = first_turn > STOOD_STILL;
        if inline && (self.sampled.are_long(!call.is_finished()) || stood_still) {
            pool.make_way();
        }
        if !call.is_finished() {
            lease.give_back();
        }
        let waited = tokio::select! {
            biased;
            returned = &mut call => Waited::Returned(returned),
            () = tokio::time::sleep_until(deadline.into()) => Waited::Given(Some(timed_out())),
            is_cut = poll_fn(|cx| {
                handle.register(cx);
                let is_cut = handle.is_closing() && pool.is_cut();
                if is_cut || (handle.take_nudge() && ticket.is_gone()) { Poll::Ready(is_cut) } else { Poll::Pending }
            }) => Waited::Given(is_cut.then(shutting_down)),
        };
        let returned = match waited {
            Waited::Returned(returned) => returned,
            Waited::Given(fault) => {
                let now = Instant::now();
                for entry in lease.in_flight.iter_mut() {
                    entry.quits(now + GRACE);
                    if let Some(fault) = &fault {
                        let elapsed = Some(now - entry.submitted);
                        lease.pool.answer(&entry.job, Err(fault.clone()), elapsed);
                    }
                }
                match tokio::time::timeout(GRACE, call).await {
                    Ok(returned) => returned,
                    // The call was dropped, and its guest with it.
                    Err(_) => return Err(End::Overdue),
                }
            }
        };
        let Some((guest, result)) = returned else {
            return Err(End::Ended(shutting_down()));
        };
        self.guest = guest;
        if inline && self.guest.here().is_some_and(|guest| guest.met_tick()) {
            // Its first turn was this worker's, which no lane has counted.
            let used = if stood_still { first_turn } else { TICK };
            lease.pool.tenant.computed(used.as_micros() as u64);
        }
        let step = match result {
            Ok(step) => step,
            Err(CallError::Cut(fault, excess)) => {
                lease.pool.was_cut(excess);
                return Err(End::Cut(fault));
            }
            Err(CallError::Ended(error)) => return Err(End::Ended(reported(error))),
            Err(lost) => return Err(End::Lost(Some(id), call_fault(lost))),
        };
        apply(lease, id, step)
    }
}

fn apply(lease: &mut Lease, id: u32, step: CheckedStep) -> Result<(), End> {
    let lost = |reason: String| Err(End::Lost(Some(id), broken(reason)));
    if !step.commands.is_empty() {
        return lost("it sent a command, and there is no wire".into());
    }
    let now = Instant::now();
    if step.is_full {
        lease.handle.close();
    }
    for event in step.events {
        let heard = match event {
            Heard::Columns(id, columns) => lease.in_flight.columns(id, columns),
            Heard::Batch(id, batch, bytes, overhead) => {
                lease.in_flight.batch(id, batch, bytes, overhead)
            }
            Heard::TooLarge(id, fault) => Err(Wrong::TooLarge(id, fault)),
            Heard::Broken(id, reason) => Err(Wrong::Broken(id, reason)),
            Heard::Done(done) => match lease.in_flight.take(done) {
                Some(entry) => {
                    lease.complete(entry, now, Ok(()));
                    Ok(())
                }
                None => {
                    return lost(format!(
                        "it finished request {done}, which is not in flight"
                    ));
                }
            },
            Heard::Failed(failed, error) => match lease.in_flight.take(failed) {
                Some(entry) => {
                    lease.complete(entry, now, Err(reported(error)));
                    Ok(())
                }
                None => {
                    return lost(format!(
                        "it failed request {failed}, which is not in flight"
                    ));
                }
            },
            Heard::Ready => return lost("it was ready twice".into()),
        };
        match heard {
            Ok(()) => {}
            Err(Wrong::Broken(_, reason)) => return lost(reason),
            // The call is over: the session goes on, only this answer is lost.
            Err(Wrong::TooLarge(too_large, fault)) => match lease.in_flight.take(too_large) {
                Some(entry) => {
                    lease.complete(entry, now, Err(fault));
                    return Ok(());
                }
                None => {
                    return lost(format!(
                        "it spoke of request {too_large}, which is not in flight"
                    ));
                }
            },
        }
    }
    if lease.in_flight.contains(id) {
        return lost(
            "its call returned without ending the request, and there is nothing to wait for".into(),
        );
    }
    Ok(())
}
