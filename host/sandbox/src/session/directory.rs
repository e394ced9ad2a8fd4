//! Serves a session on a directory: one request at a time, each one call into the guest, which runs
//! on a fiber and lets others run after every tick.

use std::{
    future::poll_fn,
    task::Poll,
    time::{Duration, Instant},
};

use super::{
    End, Lease, broken, call_fault,
    flights::{Flight, Wrong},
};
use crate::{
    pool::{Job, shutting_down, timed_out},
    v1::{CallError, DirectoryGuest, Event, Step, reported},
};

/// How long after its deadline a request may still end by itself, which saves its session.
const GRACE: Duration = Duration::from_millis(500);

/// What ended the wait for a call.
enum Outcome {
    Returned(Result<Step, CallError>),
    /// The deadline has passed, the host stops, or nobody waits any more.
    Given(Option<crate::fault::Fault>),
}

pub(crate) async fn serve(mut guest: DirectoryGuest, lease: &mut Lease) -> End {
    let mut next_id = 0u32;
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
            next_id = next_id.wrapping_add(1);
            let job = lease.unsubmitted.remove(0);
            if let Err(end) = execute(&mut guest, lease, next_id, job).await {
                return end;
            }
        }
    }
}

async fn execute(
    guest: &mut DirectoryGuest,
    lease: &mut Lease,
    id: u32,
    mut job: Job,
) -> Result<(), End> {
    let now = Instant::now();
    let left = job.deadline.saturating_duration_since(now);
    if left.is_zero() || job.ticket.is_gone() {
        lease.refuse(&job, now, timed_out());
        return Ok(());
    }
    job.request.limits_mut().timeout_ms =
        u32::try_from(left.as_millis()).unwrap_or(u32::MAX).max(1);
    // A copy for the guest: the flight must be the lease's while the call is suspended, so that its
    // caller hears of it if this task is dropped.
    let (request, ticket, deadline) = (job.request.clone(), job.ticket.clone(), job.deadline);
    let pool = lease.pool.clone();
    lease.flights.push(Flight::new(id, job, now));
    let handle = lease.handle.clone();
    let mut call = std::pin::pin!(guest.submit(id, &request));
    let outcome = tokio::select! {
        biased;
        result = &mut call => Outcome::Returned(result),
        () = tokio::time::sleep_until(deadline.into()) => Outcome::Given(Some(timed_out())),
        is_cut = poll_fn(|cx| {
            handle.register(cx);
            let is_cut = handle.is_closing() && pool.is_cut();
            if is_cut || (handle.take_nudge() && ticket.is_gone()) { Poll::Ready(is_cut) } else { Poll::Pending }
        }) => Outcome::Given(is_cut.then(shutting_down)),
    };
    let result = match outcome {
        Outcome::Returned(result) => result,
        Outcome::Given(fault) => {
            let now = Instant::now();
            for flight in lease.flights.iter_mut() {
                flight.quit = Some(now + GRACE);
                if let Some(fault) = &fault {
                    lease.pool.answer(
                        &flight.job,
                        Err(fault.clone()),
                        Some(now - flight.submitted),
                    );
                }
            }
            match tokio::time::timeout(GRACE, call).await {
                Ok(result) => result,
                Err(_) => return Err(End::Overdue),
            }
        }
    };
    let step = match result {
        Ok(step) => step,
        Err(CallError::Ended(error)) => return Err(End::Ended(reported(error))),
        Err(lost) => return Err(End::Lost(Some(id), call_fault(lost))),
    };
    apply(lease, id, step)
}

fn apply(lease: &mut Lease, id: u32, step: Step) -> Result<(), End> {
    let lost = |reason: String| Err(End::Lost(Some(id), broken(reason)));
    if !step.commands.is_empty() {
        return lost("it sent a command, and there is no wire".into());
    }
    let now = Instant::now();
    for event in step.events {
        let heard = match event {
            Event::Columns(shape) => lease.flights.columns(shape),
            Event::Batch(rows) => lease.flights.batch(rows),
            Event::Done(done) => match lease.flights.take(done) {
                Some(flight) => {
                    lease.complete(flight, now, Ok(()));
                    if lease.flights.is_full() {
                        lease.handle.close();
                    }
                    Ok(())
                }
                None => {
                    return lost(format!(
                        "it finished request {done}, which is not in flight"
                    ));
                }
            },
            Event::Failed(failure) => match lease.flights.take(failure.id) {
                Some(flight) => {
                    lease.complete(flight, now, Err(reported(failure.error)));
                    Ok(())
                }
                None => {
                    return lost(format!(
                        "it failed request {}, which is not in flight",
                        failure.id
                    ));
                }
            },
            Event::Ready => return lost("it was ready twice".into()),
        };
        match heard {
            Ok(()) => {}
            Err(Wrong::Broken(_, reason)) => return lost(reason),
            // The call is over: the session goes on, only this answer is lost.
            Err(Wrong::TooLarge(too_large, fault)) => match lease.flights.take(too_large) {
                Some(flight) => {
                    lease.complete(flight, now, Err(fault));
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
    if lease.flights.contains(id) {
        return lost(
            "its call returned without ending the request, and there is nothing to wait for".into(),
        );
    }
    Ok(())
}
