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
    errand::confer,
    guests::{Called, Kept, broken, is_unavailable},
    in_flight::{Submitted, Wrong},
    lease::{End, Lease},
    open::OpenWire,
    outgoing::{EXCHANGES_MAX, Exchange, LATER_MAX, Later, Pace, aside, exchange, pause},
};
use crate::{
    engine::TICK,
    fault::{Blame, Fault, FaultKind},
    lanes::Task,
    pool::{Job, Sampled, shutting_down, timed_out},
    threads::thread_time,
    v1::{Call, CallError, CheckedStep, Command, Heard, Input, Received, WireState, reported},
    wire::{Dialer, HttpOrigin},
};

/// How long a request that nobody waits for any more may take to end before its session is dropped.
const GRACE: Duration = Duration::from_secs(2);

/// Bytes read at once and given to the guest in one call. One buffer for each thread: a read and the
/// call that takes it happen in one go.
const READ_BYTES: usize = 128 << 10;
/// Bytes that may wait to be written: past that the guest is sending without being asked.
const UNSENT_BYTES_MAX: usize = 16 << 20;
/// Bytes of one answer that are given to the guest on this worker. A page of a thousand rows is a tenth of it; what is
/// larger is taken apart in the lanes.
const INLINE_STREAM_MAX: usize = 512 << 10;
/// Of one response of an API: it comes at once.
const INLINE_RESPONSE_MAX: usize = 256 << 10;
/// What is read in one go before others on this worker have their turn. Each read counts at least `READ_COST`.
const GO_BYTES: usize = 256 << 10;
const READ_COST: usize = 4 << 10;
/// A first turn that holds this worker for longer is one too many: the connection's calls are made in the lanes from then on.
const HELD_MAX: Duration = Duration::from_millis(5);
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
    /// Requests that the guest is still to be told to give up.
    cancels: Vec<u32>,
    /// Second wires and errands that the guest may ask for.
    asides: usize,
    /// Of its HTTP requests and pauses.
    pace: Pace,
    pauses: FuturesUnordered<Later>,
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

/// What ended the wait for a call in a lane.
enum Waited {
    Returned(Option<Called<WireState>>),
    /// Some request is at its deadline, or at the end of its grace.
    Alarm,
    /// The host stops.
    Cut,
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
            asides: 0,
            pace: Pace::default(),
            pauses: FuturesUnordered::new(),
            has_forgotten: false,
            errands: FuturesUnordered::new(),
            on_errand: false,
            sampled: Sampled::default(),
            uncounted: Duration::ZERO,
            streamed: 0,
            read: 0,
        }
    }

    pub fn is_on_errand(&mut self) {
        self.on_errand = true;
    }

    pub async fn serve(mut self: Box<Self>, lease: &mut Lease) -> End {
        loop {
            let turn = std::future::poll_fn(|cx| self.poll_turn(cx, lease)).await;
            let done = match turn {
                Turn::Pool if self.is_in_turns(lease) => self.take_jobs_in_turns(lease).await,
                Turn::Pool => match self.take_jobs(lease) {
                    Ok(()) if !lease.unsubmitted.is_empty() => self.take_jobs_in_turns(lease).await,
                    done => done,
                },
                Turn::Step(result) => self.apply(lease, result, None),
                Turn::Heavy(received) => self.receive_in_turns(lease, received).await,
                Turn::Broke(error) => Err(End::Broke(reset(error))),
                Turn::Alarm => self.sound_alarm(lease),
            };
            if let Err(end) = done {
                return end;
            }
            if !self.cancels.is_empty()
                && let Err(end) = self.tell_cancels(lease).await
            {
                return end;
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
                if lease.handle.is_closing() && !lease.handle.has_jobs() {
                    return End::Closed;
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
        let pool = &lease.pool;
        pool.pressure
            .is_laned(|| pool.shared.micros(Instant::now()))
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
        let ends = || lease.in_flight.is_empty() || lease.pool.is_cut();
        if self.nudged || handle.has_jobs() || (handle.is_closing() && ends()) {
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
            let came = match Pin::new(&mut self.errands).poll_next(cx) {
                Poll::Ready(Some(came)) => came,
                _ => match Pin::new(&mut self.pauses).poll_next(cx) {
                    Poll::Ready(Some(came)) => came,
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
            self.read += READ_COST;
            if self.is_in_turns(lease) {
                return Poll::Ready(Turn::Heavy(received));
            }
            return Poll::Ready(self.receive(lease, received.input()));
        }
    }

    #[inline]
    fn poll_wire(&mut self, cx: &mut Context<'_>, lease: &Lease) -> Poll<Turn> {
        match &mut self.wire {
            Wire::Tcp { .. } => BUFFER.with_borrow_mut(|buffer| self.poll_bytes(cx, lease, buffer)),
            Wire::Http { exchanges, .. } => {
                let received = match ready!(Pin::new(exchanges).poll_next(cx)) {
                    Some(Ok(response)) => Received::Response(response),
                    Some(Err(failure)) => Received::RequestFailed(failure),
                    None => return Poll::Pending,
                };
                self.read += READ_COST;
                if received.bytes() > INLINE_RESPONSE_MAX || self.is_in_turns(lease) {
                    return Poll::Ready(Turn::Heavy(received));
                }
                Poll::Ready(self.receive(lease, received.input()))
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
            // Reading goes on while the peer does not: it may wait for us to read.
            Poll::Ready(Ok(())) | Poll::Pending => {}
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

    /// Calls the guest on this worker.
    #[inline]
    fn receive(&mut self, lease: &Lease, input: Input<'_>) -> Turn {
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
        let met_tick = self.guest.here().is_some_and(|guest| guest.met_tick());
        let pool = &lease.pool;
        if met_tick {
            pool.tenant.computed(TICK.as_micros() as u64);
        }
        if self.sampled.are_long(met_tick) {
            pool.make_way();
        }
    }

    /// Submits what the pool has given, up to the first that is to be submitted in turns, and looks after those whose caller has gone.
    fn take_jobs(&mut self, lease: &mut Lease) -> Result<(), End> {
        let now = Instant::now();
        let mut jobs = std::mem::take(&mut self.jobs);
        lease.handle.take(&mut jobs);
        let mut waiting = jobs.drain(..);
        while let Some(job) = waiting.next() {
            if !job.request.is_repeatable() || lease.in_flight.has_unrepeatable() {
                lease.unsubmitted.push(job);
                lease.unsubmitted.extend(waiting.by_ref());
                break;
            }
            if let Err(end) = self.submit(lease, job, now) {
                lease.unsubmitted.extend(waiting);
                return Err(end);
            }
        }
        drop(waiting);
        self.jobs = jobs;
        self.leave_gone(lease, now)
    }

    #[inline]
    fn submit(&mut self, lease: &mut Lease, mut job: Job, now: Instant) -> Result<(), End> {
        let Some(id) = self.begin(lease, &mut job, now) else {
            return Ok(());
        };
        let Some(guest) = self.guest.here() else {
            lease.unsubmitted.push(job);
            return Err(End::Ended(shutting_down()));
        };
        let result = guest.submit(id, &job.request);
        self.sample(lease);
        lease.in_flight.push(Submitted::new(id, job, now));
        self.apply(lease, result, Some(id))
    }

    /// The number of a request, if somebody still waits for it.
    #[inline]
    fn begin(&mut self, lease: &mut Lease, job: &mut Job, now: Instant) -> Option<u32> {
        let left = job.deadline.saturating_duration_since(now);
        if left.is_zero() || job.ticket.is_gone() {
            lease.refuse(job, now, timed_out());
            return None;
        }
        if lease.in_flight.is_empty() {
            self.streamed = 0;
            // They were for requests that have ended.
            self.pauses.clear();
            self.has_forgotten = false;
        }
        self.next_id = self.next_id.wrapping_add(1);
        self.asides += 1;
        self.pace.begin_answer();
        job.request.limits_mut().timeout_ms =
            u32::try_from(left.as_millis()).unwrap_or(u32::MAX).max(1);
        self.arm(job.deadline);
        Some(self.next_id)
    }

    /// As `take_jobs`, where the guest is called in turns.
    async fn take_jobs_in_turns(&mut self, lease: &mut Lease) -> Result<(), End> {
        if lease.unsubmitted.is_empty() {
            lease.handle.take(&mut lease.unsubmitted);
        }
        while !lease.unsubmitted.is_empty() {
            let now = Instant::now();
            let mut job = lease.unsubmitted.remove(0);
            let Some(id) = self.begin(lease, &mut job, now) else {
                continue;
            };
            let call = Call::Submit(id, job.request.clone());
            lease.in_flight.push(Submitted::new(id, job, now));
            let result = self.call_in_turns(lease, call).await?;
            self.apply(lease, result, Some(id))?;
            if self.read >= GO_BYTES {
                self.give_way(lease).await?;
            }
        }
        self.leave_gone(lease, Instant::now())
    }

    async fn receive_in_turns(&mut self, lease: &mut Lease, received: Received) -> Result<(), End> {
        let result = self.call_in_turns(lease, Call::Receive(received)).await?;
        self.apply(lease, result, None)
    }

    /// Tells the guest which requests to give up.
    async fn tell_cancels(&mut self, lease: &mut Lease) -> Result<(), End> {
        while let Some(id) = self.cancels.pop() {
            self.asides += 1;
            let may_be_cut = self.may_be_cut(lease);
            let result = match self.guest.here() {
                Some(guest) if may_be_cut && !lease.pool.pressure.is_laned(|| 0) => {
                    guest.cancel(id)
                }
                _ => self.call_in_turns(lease, Call::Cancel(id)).await?,
            };
            self.apply(lease, result, Some(id))?;
        }
        Ok(())
    }

    /// Makes a call in turns, the first of them here where it promises to be short. Deadlines hold meanwhile: whoever has waited long enough is
    /// answered, and a guest that does not come back soon after is left behind.
    async fn call_in_turns(
        &mut self,
        lease: &mut Lease,
        call: Call,
    ) -> Result<Result<CheckedStep, CallError>, End> {
        let is_short = self.streamed <= INLINE_STREAM_MAX && call.bytes() <= INLINE_RESPONSE_MAX;
        let is_here = is_short && !self.is_laned(lease);
        let begun = is_here.then(thread_time);
        let Some(mut task) = self.guest.call_in_lane(is_here, call) else {
            return Err(End::Ended(shutting_down()));
        };
        if let Some(begun) = begun {
            self.computed_here(lease, thread_time().saturating_sub(begun));
        }
        loop {
            let waited =
                std::future::poll_fn(|cx| self.poll_lane(cx, lease, Pin::new(&mut task))).await;
            match waited {
                Waited::Returned(Some((guest, result))) => {
                    self.guest = guest;
                    return Ok(result);
                }
                Waited::Returned(None) | Waited::Cut => return Err(End::Ended(shutting_down())),
                Waited::Alarm => self.sound_alarm(lease)?,
            }
        }
    }

    /// What a first turn took of this worker: it counts as its company's, and is weighed as ticks are that plain calls meet.
    fn computed_here(&mut self, lease: &Lease, used: Duration) {
        let pool = &lease.pool;
        pool.tenant.computed(used.as_micros() as u64);
        if used > HELD_MAX {
            // What the guest has returned is looked at at once, however much it is.
            pool.pressure.cut_off(pool.shared.micros(Instant::now()));
        }
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
        self.poll_alarm(cx).map(|()| Waited::Alarm)
    }

    /// Carries out a step. `culprit`: the request that the call was about.
    #[inline]
    fn apply(
        &mut self,
        lease: &mut Lease,
        result: Result<CheckedStep, CallError>,
        culprit: Option<u32>,
    ) -> Result<(), End> {
        let step = match result {
            Ok(step) => step,
            Err(CallError::Lost(fault)) => return Err(End::Lost(culprit, fault)),
            Err(CallError::TooSlow(fault)) => {
                let pool = &lease.pool;
                pool.pressure.cut_off(pool.shared.micros(Instant::now()));
                return Err(End::Cut(fault));
            }
            Err(CallError::Ended(error)) if is_unavailable(&error) || self.peer_closed => {
                return Err(End::Broke(reported(error)));
            }
            Err(CallError::Ended(error)) => return Err(End::Ended(reported(error))),
        };
        for command in step.commands {
            self.carry_out(command, lease)
                .map_err(|fault| End::Lost(culprit, fault))?;
        }
        if step.events.is_empty() {
            return Ok(());
        }
        if step.is_full {
            lease.handle.close();
        }
        let now = Instant::now();
        for event in step.events {
            self.hear(lease, event, now)?;
        }
        if lease.in_flight.is_empty() {
            self.streamed = 0;
        }
        Ok(())
    }

    #[inline]
    fn carry_out(&mut self, command: Command, lease: &Lease) -> Result<(), Fault> {
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
            (Command::Request(_), Wire::Http { .. }) if lease.in_flight.is_empty() => {
                return Err(broken("it made an HTTP request that nobody asked for"));
            }
            (Command::Request(request), Wire::Http { origin, exchanges }) => {
                if exchanges.len() >= EXCHANGES_MAX {
                    return Err(broken(format!(
                        "it made more than {EXCHANGES_MAX} HTTP requests at once"
                    )));
                }
                exchanges.push(exchange(origin, request, &mut self.pace)?);
            }
            (Command::Wake(asked), _) => {
                let Some(latest) = lease.in_flight.latest() else {
                    return Err(broken(
                        "it asked for a pause while nobody asked it for anything",
                    ));
                };
                begin(&mut self.pauses, pause(asked, &mut self.pace, latest))?;
            }
            (Command::Close, _) => self.closing = true,
            (Command::StartTls(_), _) => {
                return Err(broken("it asked for TLS in the middle of a session"));
            }
            _ => return Err(broken("it sent a command of another kind of wire")),
        }
        Ok(())
    }

    #[inline]
    fn hear(&mut self, lease: &mut Lease, event: Heard, now: Instant) -> Result<(), End> {
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
                    lease.complete(entry, now, Err(reported(error)));
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
                let culprit = lease.in_flight.contains(id).then_some(id);
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
        let Some(entry) = lease
            .in_flight
            .iter_mut()
            .find(|entry| entry.id == id && entry.quit.is_none())
        else {
            return Ok(());
        };
        entry.quit = Some(now + GRACE);
        if let Some(fault) = fault {
            lease
                .pool
                .answer(&entry.job, Err(fault), Some(now - entry.submitted));
        }
        if !lease.pool.connector.cancels {
            return Err(End::Overdue);
        }
        self.arm(now + GRACE);
        self.cancels.push(id);
        Ok(())
    }

    /// Abandons requests whose caller has gone.
    fn leave_gone(&mut self, lease: &mut Lease, now: Instant) -> Result<(), End> {
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

    /// Some request is at its deadline, or at the end of its grace.
    fn sound_alarm(&mut self, lease: &mut Lease) -> Result<(), End> {
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
        let next = lease
            .in_flight
            .iter_mut()
            .map(|entry| entry.quit.unwrap_or(entry.job.deadline))
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

fn begin(running: &mut FuturesUnordered<Later>, later: Later) -> Result<(), Fault> {
    if running.len() >= LATER_MAX {
        return Err(broken(format!(
            "it had more than {LATER_MAX} pauses or errands at once"
        )));
    }
    running.push(later);
    Ok(())
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
