//! Serves a session over a wire. The hot path: all requests that wait become one write, one read
//! becomes one call into the guest, and nothing is allocated in between that need not be.

use std::{
    cell::RefCell,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use futures_util::{
    future::BoxFuture,
    stream::{FuturesUnordered, Stream as _},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    time::Sleep,
};

use super::{
    End, GRACE, Lease, broken,
    flights::{Flight, Wrong},
    is_unavailable,
};
use crate::{
    fault::{Blame, Fault, FaultKind},
    pool::{Job, shutting_down, timed_out},
    v1::{
        CallError, Command, Event, HttpFailure, HttpRequest, HttpResponse, Input, Step, WireGuest,
        reported,
    },
    wire::{Dialer, HttpOrigin, Stream},
};

/// Bytes read at once and given to the guest in one call. One buffer for each thread: a read and the
/// call that takes it happen in one go.
const READ_BYTES: usize = 128 << 10;
/// Bytes that may wait to be written: past that the guest is sending without being asked.
const UNSENT_BYTES_MAX: usize = 64 << 20;
/// For a second wire that only carries a cancel request.
const ASIDE_TIMEOUT: Duration = Duration::from_secs(5);
/// HTTP requests of one session at once.
const EXCHANGES_MAX: usize = 64;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

type Exchange = BoxFuture<'static, Result<HttpResponse, HttpFailure>>;

pub(crate) struct WireSession {
    guest: WireGuest,
    wire: Wire,
    next_id: u32,
    jobs: Vec<Job>,
    alarm: Option<Pin<Box<Sleep>>>,
    alarm_at: Option<Instant>,
    /// The peer has closed: what the guest says now is about that.
    peer_closed: bool,
    /// The guest asked to close.
    closing: bool,
    /// Some caller has gone.
    nudged: bool,
}

enum Wire {
    Tcp {
        stream: Stream,
        unsent: Vec<u8>,
        sent: usize,
        dialer: Dialer,
    },
    Http {
        origin: HttpOrigin,
        exchanges: FuturesUnordered<Exchange>,
    },
}

/// What happened next.
enum Turn {
    /// The pool has something to say.
    Pool,
    Step(Result<Step, CallError>),
    Broke(io::Error),
    Alarm,
}

impl WireSession {
    pub fn tcp(guest: WireGuest, stream: Stream, dialer: Dialer) -> WireSession {
        WireSession::new(
            guest,
            Wire::Tcp {
                stream,
                unsent: Vec::new(),
                sent: 0,
                dialer,
            },
        )
    }

    pub fn http(guest: WireGuest, origin: HttpOrigin) -> WireSession {
        WireSession::new(
            guest,
            Wire::Http {
                origin,
                exchanges: FuturesUnordered::new(),
            },
        )
    }

    fn new(guest: WireGuest, wire: Wire) -> WireSession {
        WireSession {
            guest,
            wire,
            next_id: 0,
            jobs: Vec::new(),
            alarm: None,
            alarm_at: None,
            peer_closed: false,
            closing: false,
            nudged: false,
        }
    }

    pub async fn serve(mut self: Box<Self>, lease: &mut Lease) -> End {
        loop {
            let turn = std::future::poll_fn(|cx| self.poll_turn(cx, lease)).await;
            let done = match turn {
                Turn::Pool => self.take_jobs(lease),
                Turn::Step(result) => self.apply(lease, result, None),
                Turn::Broke(error) => Err(End::Broke(reset(error))),
                Turn::Alarm => self.sound_alarm(lease),
            };
            if let Err(end) = done {
                return end;
            }
            if self.peer_closed {
                return End::Broke(closed());
            }
            if lease.handle.is_closing() && lease.pool.is_cut() {
                return End::Ended(shutting_down());
            }
            if lease.flights.is_empty()
                && (self.closing || (lease.handle.is_closing() && !lease.handle.has_jobs()))
            {
                return if self.closing {
                    End::Broke(closed())
                } else {
                    End::Closed
                };
            }
        }
    }

    #[inline]
    fn poll_turn(&mut self, cx: &mut Context<'_>, lease: &Lease) -> Poll<Turn> {
        let handle = &lease.handle;
        handle.register(cx);
        self.nudged |= handle.take_nudge();
        let ends = || lease.flights.is_empty() || lease.pool.is_cut();
        if self.nudged || handle.has_jobs() || (handle.is_closing() && ends()) {
            return Poll::Ready(Turn::Pool);
        }
        if let Poll::Ready(turn) = self.poll_wire(cx) {
            return Poll::Ready(turn);
        }
        match &mut self.alarm {
            Some(alarm) if self.alarm_at.is_some() => {
                ready!(alarm.as_mut().poll(cx));
                self.alarm_at = None;
                Poll::Ready(Turn::Alarm)
            }
            _ => Poll::Pending,
        }
    }

    #[inline]
    fn poll_wire(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        match &mut self.wire {
            Wire::Tcp {
                stream,
                unsent,
                sent,
                ..
            } => {
                match poll_write(stream, unsent, sent, cx) {
                    Poll::Ready(Err(error)) => return Poll::Ready(Turn::Broke(error)),
                    // Reading goes on while the peer does not: it may wait for us to read.
                    Poll::Ready(Ok(())) | Poll::Pending => {}
                }
                BUFFER.with_borrow_mut(|buffer| {
                    let mut read = ReadBuf::new(buffer);
                    match ready!(Pin::new(stream).poll_read(cx, &mut read)) {
                        Err(error) => Poll::Ready(Turn::Broke(error)),
                        Ok(()) => {
                            let bytes = read.filled();
                            let input = if bytes.is_empty() {
                                Input::Closed
                            } else {
                                Input::Bytes(bytes)
                            };
                            self.peer_closed = bytes.is_empty();
                            Poll::Ready(Turn::Step(self.guest.receive(input)))
                        }
                    }
                })
            }
            Wire::Http { exchanges, .. } => match ready!(Pin::new(exchanges).poll_next(cx)) {
                Some(Ok(response)) => {
                    Poll::Ready(Turn::Step(self.guest.receive(Input::Response(&response))))
                }
                Some(Err(failure)) => Poll::Ready(Turn::Step(
                    self.guest.receive(Input::RequestFailed(&failure)),
                )),
                None => Poll::Pending,
            },
        }
    }

    /// Submits what the pool has given, and looks after those whose caller has gone.
    fn take_jobs(&mut self, lease: &mut Lease) -> Result<(), End> {
        let now = Instant::now();
        let mut jobs = std::mem::take(&mut self.jobs);
        lease.handle.take(&mut jobs);
        let mut waiting = jobs.drain(..);
        while let Some(job) = waiting.next() {
            if let Err(end) = self.submit(lease, job, now) {
                lease.unsubmitted.extend(waiting);
                return Err(end);
            }
        }
        drop(waiting);
        self.jobs = jobs;
        if std::mem::take(&mut self.nudged) {
            self.leave_gone(lease, now)
        } else {
            Ok(())
        }
    }

    #[inline]
    fn submit(&mut self, lease: &mut Lease, mut job: Job, now: Instant) -> Result<(), End> {
        let left = job.deadline.saturating_duration_since(now);
        if left.is_zero() || job.ticket.is_gone() {
            lease.refuse(&job, now, timed_out());
            return Ok(());
        }
        self.next_id = self.next_id.wrapping_add(1);
        let id = self.next_id;
        job.request.limits_mut().timeout_ms =
            u32::try_from(left.as_millis()).unwrap_or(u32::MAX).max(1);
        self.arm(job.deadline);
        let request = &job.request;
        let result = self.guest.submit(id, request);
        lease.flights.push(Flight::new(id, job, now));
        self.apply(lease, result, Some(id))
    }

    /// Carries out a step. `culprit`: the request that the call was about.
    #[inline]
    fn apply(
        &mut self,
        lease: &mut Lease,
        result: Result<Step, CallError>,
        culprit: Option<u32>,
    ) -> Result<(), End> {
        let step = match result {
            Ok(step) => step,
            Err(CallError::Lost(fault)) => return Err(End::Lost(culprit, fault)),
            Err(CallError::Ended(error)) if is_unavailable(&error) || self.peer_closed => {
                return Err(End::Broke(reported(error)));
            }
            Err(CallError::Ended(error)) => return Err(End::Ended(reported(error))),
        };
        let asked = !lease.flights.is_empty();
        for command in step.commands {
            self.carry_out(command, asked)
                .map_err(|fault| End::Lost(culprit, fault))?;
        }
        if step.events.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        for event in step.events {
            self.hear(lease, event, now)?;
        }
        Ok(())
    }

    #[inline]
    fn carry_out(&mut self, command: Command, asked: bool) -> Result<(), Fault> {
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
            }
            (Command::Aside(bytes), Wire::Tcp { dialer, .. }) => aside(dialer.clone(), bytes),
            // Else a session could go on calling the seller for ever, and nobody would see it.
            (Command::Request(_), Wire::Http { .. }) if !asked => {
                return Err(broken("it made an HTTP request that nobody asked for"));
            }
            (Command::Request(request), Wire::Http { origin, exchanges }) => {
                if exchanges.len() >= EXCHANGES_MAX {
                    return Err(broken(format!(
                        "it made more than {EXCHANGES_MAX} HTTP requests at once"
                    )));
                }
                exchanges.push(exchange(origin, request)?);
            }
            (Command::Close, _) => self.closing = true,
            (Command::StartTls, _) => {
                return Err(broken("it asked for TLS in the middle of a session"));
            }
            _ => return Err(broken("it sent a command of another kind of wire")),
        }
        Ok(())
    }

    #[inline]
    fn hear(&mut self, lease: &mut Lease, event: Event, now: Instant) -> Result<(), End> {
        let heard = match event {
            Event::Columns(shape) => lease.flights.columns(shape),
            Event::Batch(rows) => lease.flights.batch(rows),
            Event::Done(id) => match lease.flights.take(id) {
                Some(flight) => {
                    lease.complete(flight, now, Ok(()));
                    if lease.flights.is_full() {
                        lease.handle.close();
                    }
                    Ok(())
                }
                None => Err(Wrong::Broken(
                    id,
                    format!("it finished request {id}, which is not in flight"),
                )),
            },
            // On a closed wire this is about the session: it is decided with the others.
            Event::Failed(failure) if self.peer_closed && is_unavailable(&failure.error) => Ok(()),
            Event::Failed(failure) => match lease.flights.take(failure.id) {
                Some(flight) => {
                    lease.complete(flight, now, Err(reported(failure.error)));
                    Ok(())
                }
                None => Err(Wrong::Broken(
                    failure.id,
                    format!("it failed request {}, which is not in flight", failure.id),
                )),
            },
            Event::Ready => Err(Wrong::Broken(0, "it was ready twice".into())),
        };
        match heard {
            Ok(()) => Ok(()),
            Err(Wrong::Broken(id, reason)) => {
                let culprit = lease.flights.contains(id).then_some(id);
                Err(End::Lost(culprit, broken(reason)))
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
        let Some(flight) = lease
            .flights
            .iter_mut()
            .find(|flight| flight.id == id && flight.quit.is_none())
        else {
            return Ok(());
        };
        flight.quit = Some(now + GRACE);
        if let Some(fault) = fault {
            lease
                .pool
                .answer(&flight.job, Err(fault), Some(now - flight.submitted));
        }
        if !lease.pool.connector.cancels {
            return Err(End::Overdue);
        }
        self.arm(now + GRACE);
        let result = self.guest.cancel(id);
        self.apply(lease, result, Some(id))
    }

    /// Abandons requests whose caller has gone.
    fn leave_gone(&mut self, lease: &mut Lease, now: Instant) -> Result<(), End> {
        let gone: Vec<u32> = lease
            .flights
            .iter_mut()
            .filter(|flight| flight.quit.is_none() && flight.job.ticket.is_gone())
            .map(|flight| flight.id)
            .collect();
        for id in gone {
            self.abandon(lease, id, now, None)?;
        }
        Ok(())
    }

    /// Some request is at its deadline, or at the end of its grace.
    fn sound_alarm(&mut self, lease: &mut Lease) -> Result<(), End> {
        let now = Instant::now();
        if lease
            .flights
            .iter_mut()
            .any(|flight| flight.quit.is_some_and(|until| until <= now))
        {
            return Err(End::Overdue);
        }
        let late: Vec<u32> = lease
            .flights
            .iter_mut()
            .filter(|flight| flight.quit.is_none() && flight.job.deadline <= now)
            .map(|flight| flight.id)
            .collect();
        for id in late {
            self.abandon(lease, id, now, Some(timed_out()))?;
        }
        let next = lease
            .flights
            .iter_mut()
            .map(|flight| flight.quit.unwrap_or(flight.job.deadline))
            .min();
        if let Some(next) = next {
            self.arm(next);
        }
        Ok(())
    }

    /// Makes sure that the alarm sounds at `at` or before. It is not put back when a request ends in
    /// time: with one timer for all, a request costs none.
    #[inline]
    fn arm(&mut self, at: Instant) {
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

#[inline]
fn poll_write(
    stream: &mut Stream,
    unsent: &mut Vec<u8>,
    sent: &mut usize,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    if unsent.is_empty() {
        return Poll::Ready(Ok(()));
    }
    while *sent < unsent.len() {
        match ready!(Pin::new(&mut *stream).poll_write(cx, &unsent[*sent..])) {
            Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Ok(count) => *sent += count,
            Err(error) => return Poll::Ready(Err(error)),
        }
    }
    unsent.clear();
    *sent = 0;
    if stream.is_protected() {
        ready!(Pin::new(stream).poll_flush(cx))?;
    }
    Poll::Ready(Ok(()))
}

fn exchange(origin: &HttpOrigin, request: HttpRequest) -> Result<Exchange, Fault> {
    let id = request.id;
    let exchange = origin.send(request).map_err(|refused| broken(refused.0))?;
    Ok(Box::pin(async move {
        exchange.await.map_err(|error| HttpFailure {
            id,
            fault: error.fault,
            message: error.message,
        })
    }))
}

/// Opens a second wire to the same address, sends, closes. Nobody waits for it.
fn aside(dialer: Dialer, bytes: Vec<u8>) {
    tokio::spawn(async move {
        let sent = tokio::time::timeout(ASIDE_TIMEOUT, async {
            let mut stream = dialer.dial().await.map_err(|error| error.message)?;
            stream
                .write_all(&bytes)
                .await
                .map_err(|error| error.to_string())?;
            stream.shutdown().await.map_err(|error| error.to_string())
        })
        .await;
        if let Ok(Err(error)) = sent {
            tracing::debug!(error, "a cancel request was not sent");
        }
    });
}

fn reset(error: io::Error) -> Fault {
    Fault::new(
        Blame::Source,
        FaultKind::Unreachable,
        "the source broke the connection",
    )
    .code("connection_reset")
    .detail(error.to_string())
}

fn closed() -> Fault {
    Fault::new(
        Blame::Source,
        FaultKind::Unreachable,
        "the source closed the connection",
    )
    .code("connection_closed")
}
