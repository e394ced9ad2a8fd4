//! Serves a session over a wire. The hot path: all requests that wait become one write, one read
//! becomes one call into the guest, and nothing is allocated in between that need not be.

use std::{
    cell::RefCell,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use futures_util::stream::{FuturesUnordered, Stream as _};
use souk_outbound::Stream;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Sleep,
};

use super::{
    guests::{Kept, broken},
    lease::{End, Lease},
    open::OpenWire,
    outgoing::{About, Exchange, Later, Pace, Pausing},
};
use crate::{
    fault::{Blame, Fault, FaultKind},
    memory::HeldMemory,
    pool::{Job, Sampled, shutting_down},
    v1::{CallError, CheckedStep, Input, Received, WireState},
    wire::{Dialer, HttpOrigin},
};

mod calls;
mod exhausted;
mod idle;
mod steps;

use exhausted::Exhausted;
use idle::{Idle, NOBODY};

/// Bytes read at once and given to the guest in one call. One buffer for each thread: a read and the
/// call that takes it happen in one go.
const READ_BYTES: usize = 128 << 10;
/// Bytes of one answer that are given to the guest on this worker. A page of a thousand rows is a tenth of it; what is
/// larger is taken apart in the lanes.
const INLINE_STREAM_MAX: usize = 512 << 10;
/// Of one response of an API: it comes at once.
const INLINE_RESPONSE_MAX: usize = 256 << 10;
/// What is read in one go before others on this worker have their turn. Each read counts at least `READ_COST`.
const GO_BYTES: usize = 256 << 10;
const READ_COST: usize = 4 << 10;
/// What a source may send while nothing is asked of it: notices, parameters that change.
const UNASKED_BYTES_MAX: usize = 1 << 20;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

pub(crate) struct WireSession {
    guest: Kept<WireState>,
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
    /// Requests that the guest is still to be told to give up, or that there are none.
    cancels: Vec<u32>,
    /// Those whose callers have gone so soon that they may end by themselves, and when the guest is told.
    leaving: Vec<(u32, Instant)>,
    idle: Idle,
    /// Second wires and errands that the guest may ask for.
    asides: usize,
    /// Of its HTTP requests and pauses.
    pace: Pace,
    pauses: FuturesUnordered<Pausing>,
    /// What the next call is about, where that is not said with it.
    about: About,
    /// When the last of its short HTTP requests has ended.
    winds_up_until: Option<Instant>,
    /// A pause that outlasts what was in flight is forgotten: the guest still waits for it.
    has_forgotten: bool,
    errands: FuturesUnordered<Later>,
    /// It was opened for an errand, and sends none.
    on_errand: bool,
    sampled: Sampled,
    /// What first turns took of this worker since they last made a tick.
    uncounted: Duration,
    /// Bytes that came since something was asked of an idle session, or since an answer was complete: with several requests in flight a
    /// session may never be idle.
    streamed: usize,
    /// Bytes read since others had their turn.
    read: usize,
    exhausted: Exhausted,
    /// The memory of what waits to be written.
    unsent_held: Option<HeldMemory>,
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
    Step(Result<CheckedStep, CallError>),
    /// Too much for this worker.
    Heavy(Received),
    Broke(io::Error),
    Alarm,
}

impl WireSession {
    pub fn new(wire: OpenWire) -> WireSession {
        let (guest, wire) = match wire {
            OpenWire::Tcp(guest, stream, dialer) => {
                let (unsent, sent) = (Vec::new(), 0);
                let wire = Wire::Tcp {
                    stream,
                    unsent,
                    sent,
                    dialer,
                };
                (guest, wire)
            }
            OpenWire::Http(guest, origin) => {
                let exchanges = FuturesUnordered::new();
                (guest, Wire::Http { origin, exchanges })
            }
        };
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
            cancels: Vec::new(),
            leaving: Vec::new(),
            idle: Idle::default(),
            asides: 0,
            pace: Pace::default(),
            pauses: FuturesUnordered::new(),
            about: None,
            winds_up_until: None,
            has_forgotten: false,
            errands: FuturesUnordered::new(),
            on_errand: false,
            sampled: Sampled::default(),
            uncounted: Duration::ZERO,
            streamed: 0,
            read: 0,
            exhausted: Exhausted::default(),
            unsent_held: None,
        }
    }

    pub fn is_on_errand(&mut self) {
        self.on_errand = true;
    }

    pub async fn serve(mut self: Box<Self>, lease: &mut Lease) -> End {
        if lease.pool.connector.hears_of_idleness && !self.on_errand {
            self.idle.want();
            // So that it knows beforehand that it is told.
            self.cancels.push(NOBODY);
        }
        loop {
            let turn = std::future::poll_fn(|cx| self.poll_turn(cx, lease)).await;
            let done = match turn {
                Turn::Pool if self.is_in_turns(lease) => self.take_jobs_in_turns(lease).await,
                Turn::Pool => self.take_jobs(lease),
                Turn::Step(result) => self.apply(lease, result, None, None),
                Turn::Heavy(received) => self.receive_in_turns(lease, received).await,
                Turn::Broke(error) => Err(End::Broke(reset(error))),
                Turn::Alarm => self.sound_alarm(lease),
            };
            if let Err(end) = done {
                return end;
            }
            while !(lease.unsubmitted.is_empty() && self.cancels.is_empty()) {
                if let Err(end) = self.catch_up(lease).await {
                    return end;
                }
            }
            if self.peer_closed {
                return End::Broke(closed());
            }
            if lease.handle.is_closing() && lease.pool.is_cut() {
                return End::Ended(shutting_down());
            }
            if lease.in_flight.is_empty() {
                if self.closing {
                    return End::Broke(closed());
                }
                if let Some(at) = self.idle.begins() {
                    self.arm(at);
                }
                // What it would write then the end of its wire says as well.
                let is_http = matches!(self.wire, Wire::Http { .. });
                if is_http && lease.is_closed() && self.idle.is_untold() {
                    self.cancels.push(NOBODY);
                    if let Err(end) = self.catch_up(lease).await {
                        return end;
                    }
                }
                if lease.is_closed() {
                    match self.winds_up() {
                        Some(until) => self.arm(until),
                        None => return End::Closed,
                    }
                }
                if self.streamed > UNASKED_BYTES_MAX {
                    return End::Broke(unasked());
                }
            }
            if self.waits_for_nothing(lease) {
                let reason = "it waits for nothing, and has not answered";
                return End::Lost(None, broken(reason));
            }
            if self.read >= GO_BYTES
                && let Err(end) = self.give_way(lease).await
            {
                return end;
            }
        }
    }

    /// Somebody waits for an answer, and the guest for nothing: nothing that could come would be given to it. Over a stream that is never so,
    /// for a source may always say something.
    #[inline]
    fn waits_for_nothing(&self, lease: &Lease) -> bool {
        let Wire::Http { exchanges, .. } = &self.wire else {
            return false;
        };
        exchanges.is_empty()
            && self.pauses.is_empty()
            && !self.has_forgotten
            && lease.in_flight.is_awaited()
            && !lease.handle.has_jobs()
    }

    /// Until when a session that is to be closed waits for what it has asked beside its last answer: that it is done with something at its source.
    /// What was given longer is of a request that nobody waits for any more.
    fn winds_up(&self) -> Option<Instant> {
        match &self.wire {
            Wire::Http { exchanges, .. } if !exchanges.is_empty() => {
                self.winds_up_until.filter(|until| Instant::now() < *until)
            }
            _ => None,
        }
    }

    /// A wire that can always be read must not keep others on this worker from their turn, nor requests from
    /// their deadline.
    async fn give_way(&mut self, lease: &mut Lease) -> Result<(), End> {
        self.read = 0;
        tokio::task::yield_now().await;
        if self.alarm_at.is_some_and(|at| at <= Instant::now()) {
            self.alarm_at = None;
            self.sound_alarm(lease)?;
        }
        Ok(())
    }

    #[inline]
    fn is_laned(&self, lease: &Lease) -> bool {
        lease.pool.is_laned(self.guest.is_large())
    }

    /// Whether the guest is to be called in turns.
    #[inline]
    fn is_in_turns(&self, lease: &Lease) -> bool {
        !self.may_be_cut(lease) || self.is_laned(lease)
    }

    /// Whether a worker may cut the guest off when it computes for long, so that its requests are asked again: on a stream, where microseconds
    /// count and a broken connection ends what was asked on it. Not while something is in flight that may be asked only once, nor of HTTP,
    /// where a source goes on with what nobody comes back for.
    #[inline]
    fn may_be_cut(&self, lease: &Lease) -> bool {
        matches!(self.wire, Wire::Tcp { .. }) && !lease.in_flight.has_unrepeatable()
    }

    #[inline]
    fn poll_turn(&mut self, cx: &mut Context<'_>, lease: &Lease) -> Poll<Turn> {
        let handle = &lease.handle;
        handle.register(cx);
        self.nudged |= handle.take_nudge();
        let ends =
            || lease.pool.is_cut() || (lease.in_flight.is_empty() && self.winds_up().is_none());
        let is_asked = self.nudged || handle.has_jobs() || !self.cancels.is_empty();
        if is_asked || (handle.is_closing() && ends()) {
            return Poll::Ready(Turn::Pool);
        }
        // Before the wire, which may always have something to read: pauses last long enough to leave it its turn.
        if !(self.pauses.is_empty() && self.errands.is_empty())
            && let Poll::Ready(turn) = self.poll_later(cx, lease)
        {
            return Poll::Ready(turn);
        }
        if let Poll::Ready(turn) = self.poll_wire(cx, lease) {
            return Poll::Ready(turn);
        }
        // Others have their turn now.
        self.read = 0;
        self.poll_alarm(cx).map(|()| Turn::Alarm)
    }

    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.alarm {
            Some(alarm) if self.alarm_at.is_some() => {
                ready!(alarm.as_mut().poll(cx));
                self.alarm_at = None;
                Poll::Ready(())
            }
            _ => Poll::Pending,
        }
    }

    fn poll_later(&mut self, cx: &mut Context<'_>, lease: &Lease) -> Poll<Turn> {
        loop {
            let (about, came) = match Pin::new(&mut self.errands).poll_next(cx) {
                Poll::Ready(Some(came)) => (None, came),
                _ => match Pin::new(&mut self.pauses).poll_next(cx) {
                    Poll::Ready(Some(over)) => over,
                    _ => return Poll::Pending,
                },
            };
            let Some(received) = came else {
                self.has_forgotten = true;
                continue;
            };
            // What it wanted to do then nobody waits for.
            if matches!(received, Received::Woken(_)) && lease.in_flight.is_empty() {
                continue;
            }
            self.about = about;
            self.read += READ_COST;
            if self.is_in_turns(lease) {
                return Poll::Ready(Turn::Heavy(received));
            }
            return Poll::Ready(self.receive(lease, received.input(&received.headers())));
        }
    }

    #[inline]
    fn poll_wire(&mut self, cx: &mut Context<'_>, lease: &Lease) -> Poll<Turn> {
        match &mut self.wire {
            Wire::Tcp { .. } => BUFFER.with_borrow_mut(|buffer| self.poll_bytes(cx, lease, buffer)),
            Wire::Http { exchanges, .. } => {
                let Some((about, exchanged)) = ready!(Pin::new(exchanges).poll_next(cx)) else {
                    return Poll::Pending;
                };
                self.about = about;
                let received = match exchanged {
                    Ok((answer, held)) => {
                        self.exhausted.ended(None);
                        Received::Response(answer, held)
                    }
                    Err(failed) => {
                        self.exhausted.ended(failed.exhausted);
                        Received::RequestFailed(failed.failure)
                    }
                };
                self.read += READ_COST;
                if !lease.in_flight.is_empty() {
                    // Of many small responses a guest may return as much as of a large one.
                    self.streamed += received.bytes();
                }
                if received.bytes() > INLINE_RESPONSE_MAX || self.is_in_turns(lease) {
                    return Poll::Ready(Turn::Heavy(received));
                }
                Poll::Ready(self.receive(lease, received.input(&received.headers())))
            }
        }
    }

    #[inline]
    fn poll_bytes(&mut self, cx: &mut Context<'_>, lease: &Lease, buffer: &mut [u8]) -> Poll<Turn> {
        let Wire::Tcp {
            stream,
            unsent,
            sent,
            ..
        } = &mut self.wire
        else {
            return Poll::Pending;
        };
        match poll_write(stream, unsent, sent, cx) {
            Poll::Ready(Err(error)) => return Poll::Ready(Turn::Broke(error)),
            Poll::Ready(Ok(())) => self.unsent_held = None,
            // Reading goes on while the peer does not: it may wait for us to read.
            Poll::Pending => {}
        }
        let mut read = ReadBuf::new(buffer);
        if let Err(error) = ready!(Pin::new(stream).poll_read(cx, &mut read)) {
            return Poll::Ready(Turn::Broke(error));
        }
        let bytes = read.filled();
        self.peer_closed = bytes.is_empty();
        self.streamed += bytes.len();
        self.read += bytes.len() + READ_COST;
        if self.streamed > INLINE_STREAM_MAX || self.is_in_turns(lease) {
            let received = match bytes.is_empty() {
                true => Received::Closed,
                false => Received::Bytes(bytes.to_vec()),
            };
            return Poll::Ready(Turn::Heavy(received));
        }
        let input = match bytes.is_empty() {
            true => Input::Closed,
            false => Input::Bytes(bytes),
        };
        Poll::Ready(self.receive(lease, input))
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
    // Until this is done there is something unsent: within TLS it may be all of it, and nothing else would send that.
    if stream.is_protected() {
        ready!(Pin::new(stream).poll_flush(cx))?;
    }
    unsent.clear();
    *sent = 0;
    Poll::Ready(Ok(()))
}

fn unasked() -> Fault {
    Fault::new(
        Blame::Source,
        FaultKind::BadAnswer,
        "the source sent more than it was asked for",
    )
    .code("bad_answer")
    .detail(format!(
        "more than {UNASKED_BYTES_MAX} bytes came while nothing was asked of it"
    ))
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
