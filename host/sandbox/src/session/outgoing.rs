//! What a guest sends otherwise than over its stream (HTTP requests, second wires that tell a source to stop), and what it waits for besides.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use futures_util::{future::BoxFuture, stream::FuturesUnordered};
use souk_outbound::{Error, ErrorKind, Handshake, Records};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::Sleep,
};

use super::guests::broken;
use crate::{
    asking::asking,
    fault::Fault,
    memory::HeldMemory,
    v1::{
        HttpAnswer, HttpFailure, HttpRequest, Pause, Received, TlsHandshake, TlsRecords, WireFault,
    },
    wire::{Dialer, HttpOrigin},
};

/// For a second wire that only carries a cancel request.
const ASIDE_TIMEOUT: Duration = Duration::from_secs(5);
/// A cancel request has 16 bytes.
const ASIDE_BYTES_MAX: usize = 4 << 10;
/// HTTP requests of one session at once: one for each request that it has in flight at most, and one beside it that stops the one before at the source.
const EXCHANGES_MAX: usize = 128;
/// With those that were not made, which are on their way to the guest: as many, for all that it may have in flight and what stops them.
const EXCHANGES_LEFT_MAX: usize = 2 * EXCHANGES_MAX;
/// HTTP requests and pauses for one answer that are as fast as they are asked for; further ones at this pace. What one answer needs less, others that are
/// in flight with it may have. A page takes an API longer, and a guest that asks for ever does so two hundred times a second, however many it asks for at once.
const EXCHANGES_FREE: usize = 64;
const EXCHANGE_PACE: Duration = Duration::from_millis(5);

/// The pace of what one guest asks for.
pub(super) struct Pace {
    /// How many may go at once.
    free: usize,
    /// When the last one that had to wait may go.
    last: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            free: EXCHANGES_FREE,
            last: None,
        }
    }
}

impl Pace {
    /// For another answer there are free ones again, beside what `others` in flight may not have needed yet.
    pub fn begin_answer(&mut self, others: usize) {
        self.free = (self.free + EXCHANGES_FREE).min((others + 1) * EXCHANGES_FREE);
    }

    /// How long the next one has to wait.
    pub fn next(&mut self, now: Instant) -> Duration {
        if let Some(free) = self.free.checked_sub(1) {
            self.free = free;
            return Duration::ZERO;
        }
        let at = self.last.map_or(now, |last| last.max(now)) + EXCHANGE_PACE;
        self.last = Some(at);
        at - now
    }
}

/// Errands of one session at once, and pauses while it is being opened.
pub(super) const LATER_MAX: usize = 64;
/// Pauses of one session at once that somebody may wait for: as many as the contract promises, one for each request that it may have in flight, and as many
/// for what a connector has beside them (a clock, a token that all of them need).
const PAUSES_MAX: usize = 128;
/// With those of requests that have ended, which are on their way to the guest.
const PAUSES_LEFT_MAX: usize = 2 * PAUSES_MAX;
/// No pause is shorter: without one a guest would be called again and again with nothing in between.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// Protocols of one handshake, and the bytes of their names.
const PROTOCOLS_MAX: usize = 8;
const PROTOCOL_BYTES_MAX: usize = 255;

/// The request that a call of the guest was about, as far as that can be told: nobody knows what it does meanwhile for others.
pub(super) type About = Option<u32>;
/// A response with the memory that it holds, or why there is none.
pub(super) type Exchanged = Result<(HttpAnswer, Option<HeldMemory>), Failed>;

/// An HTTP request that failed.
pub(super) struct Failed {
    /// As the guest is told.
    pub failure: HttpFailure,
    /// It was not the source that failed: the company has used up what the request needed.
    pub exhausted: Option<Fault>,
}

impl Failed {
    pub fn new(id: u32, error: Error) -> Failed {
        let failure = HttpFailure {
            id,
            fault: error.kind.into(),
            message: error.message.clone(),
        };
        let is_exhausted = matches!(error.kind, ErrorKind::Exhausted(_));
        Failed {
            failure,
            exhausted: is_exhausted.then(|| error.into()),
        }
    }
}

/// An HTTP request under way.
pub(super) struct Exchange {
    /// What the guest was called about when it made it.
    about: About,
    /// There was no room for it: it fails.
    is_refused: bool,
    exchanged: BoxFuture<'static, Exchanged>,
}

impl Future for Exchange {
    /// What it was made about, and how it ended.
    type Output = (About, Exchanged);

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let exchanged = ready!(self.exchanged.as_mut().poll(cx));
        Poll::Ready((self.about, exchanged))
    }
}

/// What comes to a guest without its wire, if it comes.
pub(super) type Later = BoxFuture<'static, Option<Received>>;

/// A pause under way. It is a timer of the runtime that polls the session.
pub(super) struct Pausing {
    id: u32,
    /// What the guest was called about when it asked for it.
    about: About,
    is_forgotten: bool,
    timer: Pin<Box<Sleep>>,
}

impl Future for Pausing {
    /// What it was asked for about, and what the guest is told, if it is.
    type Output = (About, Option<Received>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(self.timer.as_mut().poll(cx));
        let woken = (!self.is_forgotten).then_some(Received::Woken(self.id));
        Poll::Ready((self.about, woken))
    }
}

/// A pause, which is forgotten where it lasts longer than until `latest`.
pub(super) fn pause(asked: Pause, about: About, pace: &mut Pace, latest: Instant) -> Pausing {
    let now = Instant::now();
    let least = pace.next(now).max(PAUSE_MIN);
    let wanted = Duration::from_millis(u64::from(asked.ms)).max(least);
    let left = latest.saturating_duration_since(now);
    Pausing {
        id: asked.id,
        about,
        is_forgotten: wanted > left,
        timer: Box::pin(tokio::time::sleep(wanted.min(left))),
    }
}

/// Makes room for one more. A request that has ended, as one does whose caller leaves, holds nobody's place with its pauses: where places are short they are
/// over at once. They are not dropped, for a guest may have others wait for the same one.
pub(super) fn make_room(
    pauses: &mut FuturesUnordered<Pausing>,
    is_in_flight: impl Fn(u32) -> bool,
) -> Result<(), Fault> {
    if pauses.len() < PAUSES_MAX {
        return Ok(());
    }
    let now = tokio::time::Instant::now();
    let (all, mut held) = (pauses.len(), 0);
    for pausing in pauses.iter_mut() {
        if pausing.about.is_none_or(&is_in_flight) {
            held += 1;
        } else if pausing.timer.deadline() > now {
            pausing.timer.as_mut().reset(now);
        }
    }
    if held >= PAUSES_MAX || all >= PAUSES_LEFT_MAX {
        return Err(broken(format!(
            "it had more than {PAUSES_MAX} pauses at once"
        )));
    }
    Ok(())
}

/// A handshake as the guest wants it.
pub(super) fn handshake(asked: TlsHandshake) -> Result<Handshake, Fault> {
    let fits = |name: &String| !name.is_empty() && name.len() <= PROTOCOL_BYTES_MAX;
    if asked.protocols.len() > PROTOCOLS_MAX || !asked.protocols.iter().all(fits) {
        return Err(broken(format!(
            "it offered more than {PROTOCOLS_MAX} protocols, or one that is not of 1 to {PROTOCOL_BYTES_MAX} bytes"
        )));
    }
    let protocols = asked.protocols.into_iter();
    Ok(Handshake {
        records: match asked.records {
            TlsRecords::Bare => Records::Bare,
            TlsRecords::TdsPrelogin => Records::Tds,
        },
        protocols: protocols.map(String::into_bytes).collect(),
    })
}

/// Whether there is room for one more. An exchange ends with its answer or its time, and not with the request that it was made for, which ends at once where
/// its caller leaves. As long as such ones take the room it is the source that hangs; a guest need not have counted them.
#[inline]
pub(super) fn has_room(
    exchanges: &FuturesUnordered<Exchange>,
    is_in_flight: impl Fn(u32) -> bool,
) -> Result<bool, Fault> {
    let all = exchanges.len();
    if all < EXCHANGES_MAX {
        return Ok(true);
    }
    let (mut made, mut held) = (0, 0);
    for exchange in exchanges.iter().filter(|exchange| !exchange.is_refused) {
        made += 1;
        held += usize::from(exchange.about.is_none_or(&is_in_flight));
    }
    if held >= EXCHANGES_MAX || all >= EXCHANGES_LEFT_MAX {
        return Err(broken(format!(
            "it made more than {EXCHANGES_MAX} HTTP requests at once"
        )));
    }
    Ok(made < EXCHANGES_MAX)
}

/// An HTTP request for which there is no room: it fails in its turn, as one that could not be made.
#[cold]
pub(super) fn refused(id: u32, about: About, pace: &mut Pace, now: Instant) -> Exchange {
    let wait = pace.next(now);
    let failure = HttpFailure {
        id,
        fault: WireFault::Unreachable,
        message: format!(
            "the source has not answered {EXCHANGES_MAX} requests, those that were given up among them"
        ),
    };
    Exchange {
        about,
        is_refused: true,
        exchanged: Box::pin(async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            Err(Failed {
                failure,
                exhausted: None,
            })
        }),
    }
}

/// An HTTP request under way, which waits for its turn first.
pub(super) fn exchange(
    origin: &mut HttpOrigin,
    request: HttpRequest,
    about: About,
    pace: &mut Pace,
    now: Instant,
) -> Result<Exchange, Fault> {
    let id = request.id;
    let wait = pace.next(now);
    let checked = origin
        .checked(request)
        .map_err(|refused| broken(refused.0))?;
    asking();
    // Made where it stays, and not moved there.
    let place = Box::new_uninit();
    let exchanged = Box::write(place, async move {
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let exchanged = checked.exchange(now + wait).await;
        exchanged.map_err(|error| Failed::new(id, error))
    });
    Ok(Exchange {
        about,
        is_refused: false,
        exchanged: Box::into_pin(exchanged),
    })
}

/// Opens a second wire to the same address, sends, and leaves it to the peer to close it, who may drop a request whose sender has gone
/// (PgBouncer does). Nobody waits for it; where the company may not have it now, the source is not told.
pub(super) fn aside(dialer: Dialer, bytes: Vec<u8>) -> Result<(), Fault> {
    if bytes.len() > ASIDE_BYTES_MAX {
        return Err(broken(format!(
            "it sent more than {ASIDE_BYTES_MAX} bytes aside"
        )));
    }
    let Some(socket) = dialer.account.aside() else {
        return Ok(());
    };
    tokio::spawn(async move {
        let _socket = socket;
        let sent = tokio::time::timeout(ASIDE_TIMEOUT, async {
            let mut stream = dialer.dial().await.map_err(|error| error.message)?;
            stream
                .write_all(&bytes)
                .await
                .map_err(|error| error.to_string())?;
            // What it says is nobody's.
            let mut said = stream.take(ASIDE_BYTES_MAX as u64);
            let ended = said.read_to_end(&mut Vec::new()).await;
            ended.map_err(|error| error.to_string())
        })
        .await;
        if let Ok(Err(error)) = sent {
            tracing::debug!(error, "a cancel request was not sent");
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first ones are free; then, however many are asked for at once, they follow each other; another answer has free ones again.
    #[test]
    fn what_is_asked_for_at_once_follows_in_a_row() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        assert!((0..EXCHANGES_FREE).all(|_| pace.next(now).is_zero()));
        let waits: Vec<Duration> = (0..3).map(|_| pace.next(now)).collect();
        assert_eq!(waits, [1, 2, 3].map(|place| place * EXCHANGE_PACE));
        let later = now + 10 * EXCHANGE_PACE;
        assert_eq!(pace.next(later), EXCHANGE_PACE);
        pace.begin_answer(0);
        assert!(pace.next(later).is_zero());
    }

    /// Those of many answers that are asked for together have as many free ones each, whoever asks first; one answer does not save them for the next.
    #[test]
    fn each_answer_has_its_own_free_ones() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let answers = 50;
        (0..answers).for_each(|others| pace.begin_answer(others));
        assert!((0..answers * EXCHANGES_FREE).all(|_| pace.next(now).is_zero()));
        assert!(!pace.next(now).is_zero());
        (0..answers).for_each(|_| pace.begin_answer(0));
        assert!((0..EXCHANGES_FREE).all(|_| pace.next(now).is_zero()));
        assert!(!pace.next(now).is_zero());
    }

    /// Of the request of this number, which the source does not answer.
    fn unanswered(about: u32) -> Exchange {
        Exchange {
            about: Some(about),
            is_refused: false,
            exchanged: Box::pin(std::future::pending()),
        }
    }

    /// A guest is at fault that has as many requests made as there is room for, all for somebody who waits. What others have left behind fails the next ones,
    /// as long as the guest hears of them.
    #[test]
    fn what_is_left_behind_is_no_fault() {
        let awaited = |id: u32| id == 1;
        let exchanges: FuturesUnordered<_> = (1..EXCHANGES_MAX).map(|_| unanswered(1)).collect();
        assert!(matches!(has_room(&exchanges, awaited), Ok(true)));
        exchanges.push(unanswered(2));
        let (mut pace, now) = (Pace::default(), Instant::now());
        for _ in 0..EXCHANGES_MAX {
            assert!(matches!(has_room(&exchanges, awaited), Ok(false)));
            exchanges.push(refused(7, Some(1), &mut pace, now));
        }
        assert!(has_room(&exchanges, awaited).is_err());
        let exchanges: FuturesUnordered<_> = (0..EXCHANGES_MAX).map(|_| unanswered(1)).collect();
        assert!(has_room(&exchanges, awaited).is_err());
    }
}
