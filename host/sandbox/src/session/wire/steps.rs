//! What a guest wants done and has to say: its commands are carried out, its events heard, and requests end.

use std::time::{Duration, Instant};

use futures_util::stream::FuturesUnordered;

use super::{
    Wire, WireSession,
    idle::{NOBODY, WINDS_UP, WINDS_UP_MS},
};
use crate::{
    fault::Fault,
    memory::{MemoryRefused, hold},
    pool::{Job, timed_out},
    session::{
        errand::confer,
        guests::{UNSENT_BYTES_MAX, broken, is_unavailable},
        in_flight::Wrong,
        lease::{End, Lease},
        outgoing::{About, LATER_MAX, Later, aside, exchange, has_room, make_room, pause, refused},
    },
    v1::{CallError, CheckedStep, Command, Heard, reported},
};

/// How long a request that nobody waits for any more may take to end before its session is dropped.
const GRACE: Duration = Duration::from_secs(2);
/// So long a request has before the guest is told that its caller has gone: what is fast ends sooner. To stop one takes a connection to the source, of which
/// a company has only so many, and what is stopped there may be those that it shares a session with.
const HASTE: Duration = Duration::from_millis(5);
/// And so much longer for each other one that is in flight on the same stream: their answers come one behind the other, or together.
const HASTE_EACH: Duration = Duration::from_millis(1);

impl WireSession {
    /// Carries out a step. `culprit`: the request that the call was about. `at`: when it has returned, if that is known.
    #[inline]
    pub(super) fn apply(
        &mut self,
        lease: &mut Lease,
        result: Result<CheckedStep, CallError>,
        culprit: Option<u32>,
        at: Option<Instant>,
    ) -> Result<(), End> {
        let heard = self.about.take();
        let about = culprit.or(heard);
        let step = match result {
            Ok(step) => step,
            Err(CallError::Lost(fault)) => return Err(End::Lost(about, fault)),
            Err(CallError::Cut(fault, excess)) => {
                lease.pool.was_cut(excess);
                return Err(End::Cut(fault));
            }
            Err(CallError::Ended(error)) if is_unavailable(&error) || self.peer_closed => {
                return Err(End::Broke(reported(error)));
            }
            Err(CallError::Ended(error)) => return Err(End::Ended(reported(error))),
        };
        for command in step.commands {
            self.carry_out(command, lease, about, at)
                .map_err(|fault| End::Lost(about, fault))?;
        }
        if step.events.is_empty() {
            return Ok(());
        }
        if step.is_full {
            lease.handle.close();
        }
        if lease.pool.connector.groups {
            let ends = |event: &&Heard| matches!(event, Heard::Done(_) | Heard::Failed(..));
            lease.end_together(step.events.iter().filter(ends).count());
        }
        let now = at.unwrap_or_else(Instant::now);
        for event in step.events {
            self.hear(lease, event, about, now)?;
        }
        if lease.in_flight.is_empty() {
            self.streamed = 0;
        }
        Ok(())
    }

    #[inline]
    fn carry_out(
        &mut self,
        command: Command,
        lease: &Lease,
        about: About,
        at: Option<Instant>,
    ) -> Result<(), Fault> {
        match (command, &mut self.wire) {
            (Command::Send(bytes), Wire::Tcp { unsent, .. }) => {
                if unsent.is_empty() {
                    *unsent = bytes;
                } else {
                    unsent.extend_from_slice(&bytes);
                }
                if unsent.len() > UNSENT_BYTES_MAX {
                    return Err(broken(format!(
                        "it sent more than {UNSENT_BYTES_MAX} bytes ahead"
                    )));
                }
                hold(
                    &mut self.unsent_held,
                    lease.in_flight.account(),
                    unsent.len(),
                )
                .map_err(MemoryRefused::fault)?;
            }
            // A second wire is for telling the source to stop: one for each request, and one more if it is given up.
            (Command::Aside(_) | Command::Confer(_), Wire::Tcp { .. }) if self.asides == 0 => {
                return Err(broken(
                    "it sent more aside, or more errands, than it had requests to stop",
                ));
            }
            (Command::Confer(_), Wire::Tcp { .. }) if self.on_errand => {
                return Err(broken("it sent an errand while it was on one"));
            }
            (Command::Confer(message), Wire::Tcp { dialer, .. }) => {
                self.asides -= 1;
                let errand = confer(&lease.pool, dialer, message)?;
                begin(&mut self.errands, errand)?;
            }
            (Command::Aside(bytes), Wire::Tcp { dialer, .. }) => {
                self.asides -= 1;
                aside(dialer.clone(), bytes)?;
            }
            // Else a session could go on calling the seller for ever, and nobody would see it.
            (Command::Request(_), Wire::Http { .. })
                if lease.in_flight.is_empty() && !self.idle.may_ask() =>
            {
                return Err(broken("it made an HTTP request that nobody asked for"));
            }
            (Command::Request(mut request), Wire::Http { origin, exchanges }) => {
                if lease.in_flight.is_empty() {
                    request.timeout_ms = request.timeout_ms.min(WINDS_UP_MS);
                }
                let now = at.unwrap_or_else(Instant::now);
                let is_in_flight = |id| lease.in_flight.contains(id);
                if !has_room(exchanges, is_in_flight)? {
                    exchanges.push(refused(request.id, about, &mut self.pace, now));
                    return Ok(());
                }
                let within = Duration::from_millis(u64::from(request.timeout_ms));
                if within <= WINDS_UP {
                    let until = now + within;
                    self.winds_up_until = self.winds_up_until.max(Some(until));
                }
                let exchange = exchange(origin, request, about, &mut self.pace, now)?;
                exchanges.push(exchange);
            }
            (Command::Wake(asked), _) => {
                let Some(latest) = lease.in_flight.latest() else {
                    return Err(broken(
                        "it asked for a pause while nobody asked it for anything",
                    ));
                };
                let is_in_flight = |id| lease.in_flight.contains(id);
                make_room(&mut self.pauses, is_in_flight)?;
                // What an answer does after its end is for somebody else.
                let about = about.filter(|id| is_in_flight(*id));
                let pausing = pause(asked, about, &mut self.pace, latest);
                self.pauses.push(pausing);
            }
            (Command::Close, _) => self.closing = true,
            (Command::StartTls(_), _) => {
                return Err(broken("it asked for TLS in the middle of a session"));
            }
            _ => return Err(broken("it sent a command of another kind of wire")),
        }
        Ok(())
    }

    /// `about`: what the call was about that said this, if that is known.
    #[inline]
    fn hear(
        &mut self,
        lease: &mut Lease,
        event: Heard,
        about: About,
        now: Instant,
    ) -> Result<(), End> {
        let heard = match event {
            Heard::Columns(id, columns) => lease.in_flight.columns(id, columns),
            Heard::Batch(id, batch, bytes, overhead) => {
                lease.in_flight.batch(id, batch, bytes, overhead)
            }
            Heard::TooLarge(id, fault) => Err(Wrong::TooLarge(id, fault)),
            Heard::Broken(id, reason) => Err(Wrong::Broken(id, reason)),
            Heard::Done(id) => match lease.in_flight.take(id) {
                Some(entry) => {
                    self.streamed = 0;
                    lease.complete(entry, now, Ok(()));
                    Ok(())
                }
                None => Err(Wrong::Broken(
                    id,
                    format!("it finished request {id}, which is not in flight"),
                )),
            },
            // On a closed wire this is about the session: it is decided with the others.
            Heard::Failed(_, error) if self.peer_closed && is_unavailable(&error) => Ok(()),
            Heard::Failed(id, error) => match lease.in_flight.take(id) {
                Some(entry) => {
                    self.streamed = 0;
                    let exhausted = self.exhausted.told(&error);
                    let fault = exhausted.unwrap_or_else(|| reported(error));
                    lease.complete(entry, now, Err(fault));
                    Ok(())
                }
                None => Err(Wrong::Broken(
                    id,
                    format!("it failed request {id}, which is not in flight"),
                )),
            },
            Heard::Ready => Err(Wrong::Broken(0, "it was ready twice".into())),
        };
        match heard {
            Ok(()) => Ok(()),
            Err(Wrong::Broken(id, reason)) => {
                // Of a request that is not there, or of none, it spoke while it was called about another one.
                let named = lease.in_flight.contains(id).then_some(id);
                Err(End::Lost(named.or(about), broken(reason)))
            }
            Err(Wrong::TooLarge(id, fault)) => self.abandon(lease, id, now, Some(fault)),
        }
    }

    /// Ends the wait for a request: its caller hears `fault`, the source is told to stop.
    fn abandon(
        &mut self,
        lease: &mut Lease,
        id: u32,
        now: Instant,
        fault: Option<Fault>,
    ) -> Result<(), End> {
        let others = match self.wire {
            Wire::Tcp { .. } => lease.in_flight.len().saturating_sub(1),
            Wire::Http { .. } => 0,
        };
        let Some(entry) = lease
            .in_flight
            .iter_mut()
            .find(|entry| entry.id == id && entry.quit.is_none())
        else {
            return Ok(());
        };
        entry.quits(now + GRACE);
        let give_up_at = match fault {
            None => {
                let others = u32::try_from(others).unwrap_or(u32::MAX);
                entry.submitted + HASTE + HASTE_EACH * others
            }
            Some(_) => now,
        };
        if let Some(fault) = fault {
            lease
                .pool
                .answer(&entry.job, Err(fault), Some(now - entry.submitted));
        }
        self.arm(now + GRACE);
        if give_up_at <= now {
            return self.give_up(lease, id);
        }
        self.leaving.push((id, give_up_at));
        self.arm(give_up_at);
        Ok(())
    }

    /// The guest is told that nobody waits for a request. Where it cannot give one up, only the end of its session stops the source: over HTTP, where others
    /// do not wait behind it, they have as long to be answered as it has to end.
    fn give_up(&mut self, lease: &Lease, id: u32) -> Result<(), End> {
        if lease.pool.connector.cancels {
            self.cancels.push(id);
            return Ok(());
        }
        match self.wire {
            Wire::Http { .. } if lease.in_flight.is_awaited() => Ok(()),
            _ => Err(End::Overdue),
        }
    }

    /// Abandons requests whose caller has gone.
    pub(super) fn leave_gone(&mut self, lease: &mut Lease, now: Instant) -> Result<(), End> {
        if !std::mem::take(&mut self.nudged) {
            return Ok(());
        }
        let gone: Vec<u32> = lease
            .in_flight
            .iter_mut()
            .filter(|entry| entry.quit.is_none() && entry.job.ticket.is_gone())
            .map(|entry| entry.id)
            .collect();
        for id in gone {
            self.abandon(lease, id, now, None)?;
        }
        Ok(())
    }

    /// Some request is at its deadline, at the end of its grace, or still there though its caller has gone; or nobody has asked for anything for a while.
    pub(super) fn sound_alarm(&mut self, lease: &mut Lease) -> Result<(), End> {
        let now = Instant::now();
        if lease
            .in_flight
            .iter_mut()
            .any(|entry| entry.quit.is_some_and(|until| until <= now))
        {
            return Err(End::Overdue);
        }
        let late: Vec<u32> = lease
            .in_flight
            .iter_mut()
            .filter(|entry| entry.quit.is_none() && entry.job.deadline <= now)
            .map(|entry| entry.id)
            .collect();
        for id in late {
            self.abandon(lease, id, now, Some(timed_out()))?;
        }
        let left = self.leaving.extract_if(.., |(_, at)| *at <= now);
        let left: Vec<(u32, Instant)> = left.collect();
        for (id, _) in left {
            if lease.in_flight.contains(id) {
                self.give_up(lease, id)?;
            }
        }
        let late: Vec<Job> = lease
            .unsubmitted
            .extract_if(.., |job| job.deadline <= now)
            .collect();
        for job in late {
            lease.refuse(&job, now, timed_out());
        }
        let in_flight = lease
            .in_flight
            .iter_mut()
            .map(|entry| entry.quit.unwrap_or(entry.job.deadline));
        let next = in_flight
            .chain(lease.unsubmitted.iter().map(|job| job.deadline))
            .chain(self.leaving.iter().map(|(_, at)| *at))
            .min();
        if let Some(next) = next {
            self.arm(next);
        }
        if self.idle.is_due(now) {
            self.cancels.push(NOBODY);
        }
        if let Some(at) = self.idle.at() {
            self.arm(at);
        }
        Ok(())
    }

    /// Makes sure that the alarm sounds at `at` or before. It is not put back when a request ends in
    /// time: with one timer for all, a request costs none.
    #[inline]
    pub(super) fn arm(&mut self, at: Instant) {
        if self.alarm_at.is_some_and(|set| set <= at) {
            return;
        }
        self.alarm_at = Some(at);
        match &mut self.alarm {
            Some(alarm) => alarm.as_mut().reset(at.into()),
            none => *none = Some(Box::pin(tokio::time::sleep_until(at.into()))),
        }
    }
}

fn begin(errands: &mut FuturesUnordered<Later>, errand: Later) -> Result<(), Fault> {
    if errands.len() >= LATER_MAX {
        return Err(broken(format!(
            "it had more than {LATER_MAX} errands at once"
        )));
    }
    errands.push(errand);
    Ok(())
}
