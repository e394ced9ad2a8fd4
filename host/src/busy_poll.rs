//! Keeps a worker awake for a moment after a request has begun, asked its source something, or ended, if it has nothing else to do.
//!
//! A core falls asleep and is woken more slowly than a source that is near answers a small query, or a client that is near asks the
//! next one; above all in a virtual machine, where both leave the guest. A single row took 93 us, and takes 67 when the worker stays
//! awake (tests/load/README.md). So it does with each further exchange that a statement takes. It gives way to whoever else wants the core,
//! leaves it to them when that has happened twice in one look, and looks no longer than the bound: then once more if something has happened
//! meanwhile. With several requests in flight it does not look at all: then there is work to wake up for, and cores are better left to
//! it. Nor for a while after many were, as in a moment between the requests of many clients: they are about to come.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// So many requests in flight at once are many: as few have moments in which each waits for its source, and who then looks answers sooner.
const MANY: usize = 16;
/// So many beginnings and ends of requests, since many were in flight, are a while.
const WHILE: usize = 32;
/// Who comes back so late from giving way has met somebody with work to do: by itself that takes less than a microsecond.
const GIVEN_WAY: Duration = Duration::from_micros(10);
/// A core that so many others wanted, one after the other, does not fall asleep when it is left to them. (The first of them is often the client, or the
/// source, and nobody else.)
const WANTED: usize = 2;

/// Belongs to one worker and its `current_thread` runtime; the atomics are there because tasks must be `Send`.
pub struct BusyPoll {
    bound: Duration,
    /// [`GIVEN_WAY`], but in tests.
    given_way: Duration,
    in_flight: AtomicUsize,
    /// Beginnings and ends of requests that are still to come before the worker looks again.
    looks_after: AtomicUsize,
    /// A request has begun, ended or asked its source something, at most one is in flight, and there were not many for a while.
    quiet: Notify,
}

impl BusyPoll {
    pub fn new(bound: Duration) -> Arc<BusyPoll> {
        Self::giving_way(bound, GIVEN_WAY)
    }

    fn giving_way(bound: Duration, given_way: Duration) -> Arc<BusyPoll> {
        Arc::new(BusyPoll {
            bound,
            given_way,
            in_flight: AtomicUsize::new(0),
            looks_after: AtomicUsize::new(0),
            quiet: Notify::new(),
        })
    }

    /// Counts a request in until what comes back is dropped.
    pub fn request(self: &Arc<BusyPoll>) -> InFlight {
        let before = self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.happened(before + 1);
        InFlight(self.clone())
    }

    /// The request in flight asks its source something: as likely to be answered at once as when it began.
    pub fn asks(&self) {
        if self.in_flight.load(Ordering::Relaxed) == 1 && self.is_quiet() {
            self.quiet.notify_one();
        }
    }

    fn happened(&self, in_flight: usize) {
        let looks_after = match in_flight {
            MANY.. => WHILE,
            _ => self.looks_after.load(Ordering::Relaxed).saturating_sub(1),
        };
        self.looks_after.store(looks_after, Ordering::Relaxed);
        if in_flight <= 1 && looks_after == 0 {
            self.quiet.notify_one();
        }
    }

    /// At most one request is in flight, and there were not many for a while.
    pub fn is_quiet(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) <= 1 && self.looks_after.load(Ordering::Relaxed) == 0
    }

    /// Runs as a task beside the requests. While it is ready to run, the runtime asks the kernel for events without waiting for them.
    pub async fn run(&self) {
        if self.bound.is_zero() {
            return;
        }
        loop {
            // What happens while the worker looks is remembered, and has it look once more.
            self.quiet.notified().await;
            let begun = Instant::now();
            let mut wanted = 0;
            while self.is_quiet() {
                let before = Instant::now();
                if before - begun >= self.bound {
                    break;
                }
                std::thread::yield_now();
                if before.elapsed() > self.given_way {
                    wanted += 1;
                    if wanted == WANTED {
                        break;
                    }
                }
                tokio::task::yield_now().await;
            }
        }
    }
}

pub struct InFlight(Arc<BusyPoll>);

impl Drop for InFlight {
    fn drop(&mut self) {
        let before = self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.happened(before - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a worker falls asleep at all in a while after this has happened. That holds on a loaded machine too, where
    /// one that stays awake gets little of its core.
    fn sleeps_after<T>(bound: Duration, happens: impl FnOnce(&Arc<BusyPoll>) -> T) -> bool {
        sleeps(BusyPoll::giving_way(bound, LONG), happens)
    }

    fn sleeps<T>(poll: Arc<BusyPoll>, happens: impl FnOnce(&Arc<BusyPoll>) -> T) -> bool {
        let asleep = Arc::new(AtomicUsize::new(0));
        let counter = asleep.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_park(move || {
                counter.fetch_add(1, Ordering::Relaxed);
            })
            .build()
            .unwrap();
        runtime.block_on(async {
            let polling = poll.clone();
            tokio::spawn(async move { polling.run().await });
            let kept = happens(&poll);
            // The bound may end within the first while.
            let while_long = || tokio::time::sleep(Duration::from_millis(50));
            while_long().await;
            let before = asleep.load(Ordering::Relaxed);
            while_long().await;
            drop(kept);
            asleep.load(Ordering::Relaxed) > before
        })
    }

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_micros(100);

    #[test]
    fn a_worker_stays_awake_for_one_request_and_no_longer_than_the_bound() {
        assert!(!sleeps_after(LONG, |poll| poll.request()));
        assert!(sleeps_after(SHORT, |poll| poll.request()));
        assert!(sleeps_after(Duration::ZERO, |poll| poll.request()));
    }

    #[test]
    fn a_worker_leaves_its_core_to_those_who_want_it() {
        let poll = BusyPoll::giving_way(LONG, Duration::ZERO);
        assert!(sleeps(poll, |poll| poll.request()));
    }

    #[test]
    fn a_worker_with_several_requests_sleeps() {
        assert!(sleeps_after(LONG, |poll| [poll.request(), poll.request()]));
    }

    #[test]
    fn a_worker_sleeps_in_a_moment_between_many_requests() {
        let many = |poll: &Arc<BusyPoll>| drop([(); MANY].map(|()| poll.request()));
        assert!(sleeps_after(LONG, many));
        assert!(!sleeps_after(LONG, |poll| {
            many(poll);
            (0..WHILE).for_each(|_| drop(poll.request()));
        }));
    }

    /// A statement of several exchanges has the worker look at each of them anew, if nobody else is in flight.
    #[test]
    fn a_worker_looks_again_when_its_one_request_asks_further() {
        use futures_util::FutureExt;

        let poll = BusyPoll::new(LONG);
        let looks = || poll.quiet.notified().now_or_never().is_some();
        let asks_and_looks = || {
            poll.asks();
            looks()
        };
        assert!(!asks_and_looks());
        let first = poll.request();
        assert!(looks() && !looks());
        assert!(asks_and_looks());
        let second = poll.request();
        assert!(!asks_and_looks());
        drop((first, second));
        assert!(looks() && !asks_and_looks());
    }

    /// The next request of the same client is likely to follow at once.
    #[test]
    fn a_worker_stays_awake_after_a_request() {
        assert!(!sleeps_after(LONG, |poll| drop([
            poll.request(),
            poll.request()
        ])));
    }
}
