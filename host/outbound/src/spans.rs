//! Calls that are followed: what was done for one and how long that took, for the operator's collector of traces. Who sends it there is the
//! host (`host/src/traces/`); here it is only noted, and lies in a bounded queue.
//!
//! Without a collector no call is followed, and whoever could note something asks one relaxed load ([`current`]).

use std::num::{NonZeroU64, NonZeroU128};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::context::{self, Trace};

/// Calls that wait to be sent: what comes faster than a collector takes it is dropped, and counted. Mostly of 1 KiB or 2, as their parts are one
/// or two; with [`PARTS_MAX`] of them, each with six or seven labels, about 35 KiB: some 70 MiB for a full queue at the worst.
pub const QUEUE_MAX: usize = 2_048;
/// What is noted of one call. An asset is one, a page two.
const PARTS_MAX: usize = 32;
/// Calls a second that are followed because a proxy's client says so. A twentieth of the queue: a proxy that passes strangers' headers on lets
/// anybody say it, and what they fill must leave room for the share.
const ASKED_MAX: u32 = 100;
/// A sampling share is a number of these.
pub const SHARE_OF: u32 = 10_000;

/// Whether this process has a recorder at all.
static FOLLOWING: AtomicBool = AtomicBool::new(false);

/// A value that something is labelled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Number(i64),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Number(number)
    }
}

pub type Labels = Vec<(&'static str, Value)>;

/// Something that took time.
#[derive(Debug)]
pub struct Span {
    /// Not zero.
    pub id: u64,
    pub name: String,
    pub began: SystemTime,
    pub took: Duration,
    pub labels: Labels,
    /// Why it failed, in a word.
    pub failure: Option<String>,
}

/// A call that has ended.
#[derive(Debug)]
pub struct Ended {
    pub trace: Trace,
    /// `trace` names the span of its client that it belongs to.
    pub has_parent: bool,
    pub call: Span,
    pub parts: Vec<Span>,
}

/// Decides which calls are followed, and takes those that have ended.
pub struct Recorder {
    queue: mpsc::Sender<Ended>,
    /// Of [`SHARE_OF`].
    share: u32,
    born: Instant,
    /// A second since then, and how many calls were followed in it because their clients asked for that.
    asked: Mutex<(u64, u32)>,
    dropped: AtomicU64,
    sent: AtomicU64,
}

impl Recorder {
    /// With the queue's other end. `share`: how many of [`SHARE_OF`] calls are followed.
    pub fn new(share: u32) -> (Arc<Recorder>, mpsc::Receiver<Ended>) {
        let (queue, ended) = mpsc::channel(QUEUE_MAX);
        FOLLOWING.store(true, Relaxed);
        let recorder = Arc::new(Recorder {
            queue,
            share,
            born: Instant::now(),
            asked: Mutex::default(),
            dropped: AtomicU64::new(0),
            sent: AtomicU64::new(0),
        });
        (recorder, ended)
    }

    /// Follows a call, if it is to be. `given`: the trace that its client has begun. `is_trusted`: who sent it is one of the operator's, whose
    /// word it is whether the trace is sampled, within [`ASKED_MAX`]; other calls are drawn, so that nobody can fill the queue by asking to be followed.
    pub fn follow(
        self: &Arc<Recorder>,
        given: Option<Trace>,
        is_trusted: bool,
    ) -> Option<Arc<Followed>> {
        let is_wanted = match given {
            Some(trace) if is_trusted && !trace.is_sampled() => false,
            Some(_) if is_trusted && self.may_ask() => true,
            _ => rand::random_range(0..SHARE_OF) < self.share,
        };
        is_wanted.then(|| {
            Arc::new(Followed {
                trace: given.unwrap_or_else(|| Trace::of(rand::random::<NonZeroU128>().get())),
                has_parent: given.is_some(),
                id: id(),
                parts: Mutex::default(),
                recorder: self.clone(),
            })
        })
    }

    /// Whether one more call may be followed in this second because its client asks for that.
    fn may_ask(&self) -> bool {
        let second = self.born.elapsed().as_secs();
        let mut asked = self.asked.lock();
        if asked.0 != second {
            *asked = (second, 0);
        }
        asked.1 += 1;
        asked.1 <= ASKED_MAX
    }

    /// Spans that were lost: the collector did not take them, or not in time.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    pub fn note_dropped(&self, spans: usize) {
        self.dropped.fetch_add(spans as u64, Relaxed);
    }

    /// Spans that a collector has taken.
    pub fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    pub fn note_sent(&self, spans: usize) {
        self.sent.fetch_add(spans as u64, Relaxed);
    }
}

impl Ended {
    pub fn spans(&self) -> usize {
        1 + self.parts.len()
    }
}

/// A call that is followed.
pub struct Followed {
    trace: Trace,
    has_parent: bool,
    id: u64,
    parts: Mutex<Vec<Span>>,
    recorder: Arc<Recorder>,
}

impl std::fmt::Debug for Followed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Followed({})", self.trace.id())
    }
}

impl Followed {
    pub fn trace(&self) -> Trace {
        self.trace
    }

    /// Notes what was done for it, from `began` until now.
    pub fn note(&self, name: String, began: Instant, labels: Labels, failure: Option<String>) {
        let took = began.elapsed();
        let mut parts = self.parts.lock();
        if parts.len() >= PARTS_MAX {
            self.recorder.note_dropped(1);
            return;
        }
        parts.push(Span {
            id: id(),
            name,
            began: SystemTime::now() - took,
            took,
            labels,
            failure,
        });
    }

    /// The call has ended, `took` after it began. What is noted of it from now on is lost.
    pub fn end(&self, name: String, took: Duration, labels: Labels, failure: Option<String>) {
        let ended = Ended {
            trace: self.trace,
            has_parent: self.has_parent,
            call: Span {
                id: self.id,
                name,
                began: SystemTime::now() - took,
                took,
                labels,
                failure,
            },
            parts: std::mem::take(&mut self.parts.lock()),
        };
        if let Err(lost) = self.recorder.queue.try_send(ended) {
            let (mpsc::error::TrySendError::Full(ended) | mpsc::error::TrySendError::Closed(ended)) =
                lost;
            self.recorder.note_dropped(ended.spans());
        }
    }
}

fn id() -> u64 {
    rand::random::<NonZeroU64>().get()
}

/// The call for which something is done here, if that is followed.
#[inline]
pub fn current() -> Option<Arc<Followed>> {
    if !FOLLOWING.load(Relaxed) {
        return None;
    }
    context::look(|context| context.followed.clone()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn followed(recorder: &Arc<Recorder>, header: &str, is_trusted: bool) -> bool {
        let trace = Trace::parse(header.as_bytes()).unwrap();
        recorder.follow(Some(trace), is_trusted).is_some()
    }

    /// Whom the operator trusts decides; a stranger's wish is not asked.
    #[test]
    fn only_a_trusted_client_decides() {
        let unsampled = &format!("{}0", SAMPLED.strip_suffix('1').unwrap());
        let (none, _ended) = Recorder::new(0);
        let (all, _ended) = Recorder::new(SHARE_OF);
        assert!(followed(&none, SAMPLED, true) && !followed(&none, SAMPLED, false));
        assert!(followed(&all, unsampled, false) && !followed(&all, unsampled, true));
        assert!(none.follow(None, true).is_none() && all.follow(None, false).is_some());
    }

    /// Nor does a trusted one without bound: its proxy may pass on what strangers say.
    #[test]
    fn what_clients_ask_for_is_bounded() {
        let (none, _ended) = Recorder::new(0);
        let asked = (0..10 * ASKED_MAX).filter(|_| followed(&none, SAMPLED, true));
        let (asked, max) = (asked.count(), ASKED_MAX as usize);
        // A second may end meanwhile.
        assert!((max..=3 * max).contains(&asked), "{asked}");
        let (all, _ended) = Recorder::new(SHARE_OF);
        assert!((0..10 * ASKED_MAX).all(|_| followed(&all, SAMPLED, true)));
    }

    /// A share of the calls is followed, in traces of their own.
    #[test]
    fn a_share_is_drawn() {
        let (recorder, _ended) = Recorder::new(SHARE_OF / 10);
        let drawn: Vec<_> = (0..10_000)
            .filter_map(|_| recorder.follow(None, false))
            .collect();
        assert!((800..1_200).contains(&drawn.len()), "{}", drawn.len());
        let ids: std::collections::HashSet<_> = drawn
            .iter()
            .map(|one| one.trace().id().to_owned())
            .collect();
        assert_eq!(ids.len(), drawn.len());
    }

    /// What a collector does not take in time is dropped, and counted; nobody waits.
    #[test]
    fn the_queue_is_bounded() {
        let (recorder, mut ended) = Recorder::new(SHARE_OF);
        for _ in 0..QUEUE_MAX + 3 {
            let followed = recorder.follow(None, false).unwrap();
            for _ in 0..PARTS_MAX + 1 {
                followed.note("part".into(), Instant::now(), Labels::new(), None);
            }
            followed.end("call".into(), Duration::ZERO, Labels::new(), None);
        }
        let calls = (QUEUE_MAX + 3) as u64;
        assert_eq!(recorder.dropped(), calls + 3 * (PARTS_MAX as u64 + 1));
        assert_eq!(ended.try_recv().unwrap().spans(), PARTS_MAX + 1);
    }
}
