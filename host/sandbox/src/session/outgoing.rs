//! What a guest sends otherwise than over its stream (HTTP requests, second wires that tell a source to stop), and what it waits for besides.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use souk_outbound::{Error, ErrorKind, Handshake, Records};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::guests::broken;
use crate::{
    asking::asking,
    fault::Fault,
    memory::HeldMemory,
    v1::{HttpAnswer, HttpFailure, HttpRequest, Pause, Received, TlsHandshake, TlsRecords},
    wire::{Dialer, HttpOrigin},
};

/// For a second wire that only carries a cancel request.
const ASIDE_TIMEOUT: Duration = Duration::from_secs(5);
/// A cancel request has 16 bytes.
const ASIDE_BYTES_MAX: usize = 4 << 10;
/// HTTP requests of one session at once: one for each request that it has in flight at most, and one beside it that stops the one before at the source.
pub(super) const EXCHANGES_MAX: usize = 128;
/// HTTP requests and pauses for one answer that are as fast as they are asked for; further ones at this pace. A page takes an API longer, and
/// a guest that asks for ever does so two hundred times a second, however many it asks for at once.
const EXCHANGES_FREE: usize = 64;
const EXCHANGE_PACE: Duration = Duration::from_millis(5);

/// The pace of what one guest asks for.
#[derive(Default)]
pub(super) struct Pace {
    asked: usize,
    /// When the last one that had to wait may go.
    last: Option<Instant>,
}

impl Pace {
    /// For another answer the first ones are free again.
    pub fn begin_answer(&mut self) {
        self.asked = 0;
    }

    /// How long the next one has to wait.
    pub fn next(&mut self, now: Instant) -> Duration {
        self.asked += 1;
        if self.asked <= EXCHANGES_FREE {
            return Duration::ZERO;
        }
        let at = self.last.map_or(now, |last| last.max(now)) + EXCHANGE_PACE;
        self.last = Some(at);
        at - now
    }
}

/// Pauses of one session at once, and errands.
pub(super) const LATER_MAX: usize = 64;
/// No pause is shorter: without one a guest would be called again and again with nothing in between.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// Protocols of one handshake, and the bytes of their names.
const PROTOCOLS_MAX: usize = 8;
const PROTOCOL_BYTES_MAX: usize = 255;

pub(super) type Exchange = BoxFuture<'static, Exchanged>;
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

/// What comes to a guest without its wire, if it comes.
pub(super) type Later = BoxFuture<'static, Option<Received>>;

/// A pause, which is forgotten where it lasts longer than until `latest`. It is a timer of the runtime that polls the session.
pub(super) fn pause(pause: Pause, pace: &mut Pace, latest: Instant) -> Later {
    let now = Instant::now();
    let least = pace.next(now).max(PAUSE_MIN);
    let wanted = Duration::from_millis(u64::from(pause.ms)).max(least);
    let left = latest.saturating_duration_since(now);
    Box::pin(async move {
        tokio::time::sleep(wanted.min(left)).await;
        (wanted <= left).then_some(Received::Woken(pause.id))
    })
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

/// An HTTP request under way, which waits for its turn first.
pub(super) fn exchange(
    origin: &mut HttpOrigin,
    request: HttpRequest,
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
    let exchange = Box::write(place, async move {
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let exchanged = checked.exchange(now + wait).await;
        exchanged.map_err(|error| Failed::new(id, error))
    });
    Ok(Box::into_pin(exchange))
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
        pace.begin_answer();
        assert!(pace.next(later).is_zero());
    }
}
