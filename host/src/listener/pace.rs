//! How slowly a client may send its request and take its answer: both keep memory, and an upload its place, for as long as they last.

use std::io;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::body::{Body as _, Bytes, Frame, Incoming, SizeHint};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::Counts;

/// A client that moves nothing for this long is gone; one that is slow has as long before its speed is looked at.
const GRACE: Duration = Duration::from_secs(30);
/// Half a megabit: the largest connector arrives within a quarter of an hour, and the host waits no longer for one that trickles.
const BODY_BYTES_PER_SECOND: u64 = 64 << 10;
/// An eighth of a megabit: the largest page is taken within a quarter of an hour.
const ANSWER_BYTES_PER_SECOND: u64 = 16 << 10;

/// A client may keep the host waiting for `grace`, and for a second more with every `bytes_per_second` that it moved.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub grace: Duration,
    pub bytes_per_second: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Paces {
    pub body: Pace,
    pub answer: Pace,
}

impl Default for Paces {
    fn default() -> Paces {
        let pace = |bytes_per_second| Pace {
            grace: GRACE,
            bytes_per_second,
        };
        Paces {
            body: pace(BODY_BYTES_PER_SECOND),
            answer: pace(ANSWER_BYTES_PER_SECOND),
        }
    }
}

impl Pace {
    fn allows(&self, bytes: u64) -> Duration {
        let micros = u128::from(bytes) * 1_000_000 / u128::from(self.bytes_per_second.max(1));
        self.grace + Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// A request's body whose sender keeps this pace.
    pub fn body(self, incoming: Incoming) -> axum::body::Body {
        match incoming.is_end_stream() {
            true => axum::body::Body::empty(),
            false => axum::body::Body::new(Sending {
                incoming,
                pace: self,
                received: 0,
                waited: Duration::ZERO,
                waiting: None,
            }),
        }
    }
}

/// A request's body on its way in. The timer exists only while there is something to wait for; the time in which the host does not
/// ask for more is not the client's.
struct Sending {
    incoming: Incoming,
    pace: Pace,
    received: u64,
    waited: Duration,
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl hyper::body::Body for Sending {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.incoming).poll_frame(context) {
            if let Some((since, _)) = this.waiting.take() {
                this.waited += since.elapsed();
            }
            if let Some(Ok(frame)) = &frame {
                this.received += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let left = this.pace.allows(this.received).saturating_sub(this.waited);
        let left = left.min(this.pace.grace);
        let (_, timer) = this
            .waiting
            .get_or_insert_with(|| (Instant::now(), Box::pin(tokio::time::sleep(left))));
        ready!(timer.as_mut().poll(context));
        let error = format!(
            "it comes too slowly; send at least {} bytes a second",
            this.pace.bytes_per_second
        );
        Poll::Ready(Some(Err(error.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// Whether a client takes its answer. Costs nothing while the kernel takes everything.
pub struct Taking {
    pace: Pace,
    counts: Arc<Counts>,
    held_up: Option<Box<HeldUp>>,
}

/// An answer that the kernel did not take at once. It may have many pieces, of which the next comes when the kernel has the one before: the time in which
/// there is none is not the client's.
struct HeldUp {
    /// `None`: the kernel has all that there is.
    since: Option<Instant>,
    /// In all before that.
    waited: Duration,
    /// What the kernel had taken and not delivered when it began, and has taken since.
    given: u64,
    /// What the client has taken since, when it last took something.
    taken: u64,
    taken_at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Taking {
    pub fn new(pace: Pace, counts: Arc<Counts>) -> Taking {
        Taking {
            pace,
            counts,
            held_up: None,
        }
    }

    /// To be asked about every attempt to write: what could not be written for too long is an error.
    pub fn watch(
        &mut self,
        context: &mut Context<'_>,
        stream: &TcpStream,
        attempt: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match (&attempt, &mut self.held_up) {
            (Poll::Ready(Ok(written)), Some(held_up)) => {
                held_up.given += *written as u64;
                attempt
            }
            (Poll::Ready(_), _) => attempt,
            (Poll::Pending, _) => self.wait(context, stream).map(Err),
        }
    }

    /// The kernel has all that there is of the answer.
    pub fn done(&mut self) {
        if let Some(held_up) = &mut self.held_up
            && let Some(since) = held_up.since.take()
        {
            held_up.waited += since.elapsed();
        }
    }

    /// The client has sent something: another request, whose answer has a time of its own.
    pub fn over(&mut self) {
        self.held_up = None;
    }

    fn wait(&mut self, context: &mut Context<'_>, stream: &TcpStream) -> Poll<io::Error> {
        let pace = self.pace;
        let held_up = self.held_up.get_or_insert_with(|| {
            Box::new(HeldUp {
                since: None,
                waited: Duration::ZERO,
                given: undelivered(stream),
                taken: 0,
                taken_at: Instant::now(),
                timer: Box::pin(tokio::time::sleep(pace.grace)),
            })
        });
        let since = match held_up.since {
            Some(since) => since,
            None => {
                let now = Instant::now();
                (held_up.since, held_up.taken_at) = (Some(now), now);
                let left = held_up.left(pace, now, now);
                held_up.timer.as_mut().reset((now + left).into());
                now
            }
        };
        loop {
            ready!(held_up.timer.as_mut().poll(context));
            let now = Instant::now();
            let taken = held_up.given.saturating_sub(undelivered(stream));
            if taken > held_up.taken {
                (held_up.taken, held_up.taken_at) = (taken, now);
            }
            let left = held_up.left(pace, since, now);
            if left.is_zero() {
                self.counts.too_slow.fetch_add(1, Ordering::Relaxed);
                // What the kernel still has is of no use to anybody.
                let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
                let error = "the client takes its answer too slowly";
                return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, error));
            }
            held_up.timer.as_mut().reset((now + left).into());
        }
    }
}

impl HeldUp {
    /// How long it may still be waited for, as of `now`.
    fn left(&self, pace: Pace, since: Instant, now: Instant) -> Duration {
        let waited = self.waited + (now - since);
        let patience = pace.grace.saturating_sub(now - self.taken_at);
        pace.allows(self.taken).saturating_sub(waited).min(patience)
    }
}

/// Bytes that the kernel holds for the client: not sent, or sent and not acknowledged. A kernel that cannot say counts as delivering.
#[allow(unsafe_code, reason = "one system call that writes one number of ours")]
fn undelivered(stream: &TcpStream) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open as long as `stream`, and the call writes one `c_int`.
    match unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) } {
        0 => u64::try_from(bytes).unwrap_or(0),
        _ => 0,
    }
}
