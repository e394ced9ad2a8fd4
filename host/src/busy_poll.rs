//! Keeps a worker awake for a moment after a request has begun or ended, if it has nothing else to do.
//!
//! A core falls asleep and is woken more slowly than a source that is near answers a small query, or a client that is near asks the
//! next one; above all in a virtual machine, where both leave the guest. A single row took 93 us, and takes 67 when the worker stays
//! awake (tests/load/README.md). It gives way to whoever else wants the core, and looks no longer than the bound. With several
//! requests in flight it does not look at all: then there is work to wake up for, and cores are better left to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Belongs to one worker and its `current_thread` runtime; the atomics are there because tasks must be `Send`.
pub struct BusyPoll {
    bound: Duration,
    in_flight: AtomicUsize,
    /// Beginnings and ends of requests.
    events: AtomicUsize,
    quiet: Notify,
    /// Times that the kernel was asked without waiting, for the tests: processor time says nothing on a loaded machine.
    looks: AtomicUsize,
}

impl BusyPoll {
    pub fn new(bound: Duration) -> Arc<BusyPoll> {
        Arc::new(BusyPoll {
            bound,
            in_flight: AtomicUsize::new(0),
            events: AtomicUsize::new(0),
            quiet: Notify::new(),
            looks: AtomicUsize::new(0),
        })
    }

    /// Counts a request in until what comes back is dropped.
    pub fn request(self: &Arc<BusyPoll>) -> InFlight {
        let before = self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.happened(before + 1);
        InFlight(self.clone())
    }

    fn happened(&self, in_flight: usize) {
        self.events.fetch_add(1, Ordering::Relaxed);
        if in_flight <= 1 {
            self.quiet.notify_one();
        }
    }

    /// Runs as a task beside the requests. While it is ready to run, the runtime asks the kernel for events without waiting for them.
    pub async fn run(&self) {
        if self.bound.is_zero() {
            return;
        }
        loop {
            self.quiet.notified().await;
            let (mut seen, mut since) = (self.events.load(Ordering::Relaxed), Instant::now());
            while self.in_flight.load(Ordering::Relaxed) <= 1 && since.elapsed() < self.bound {
                self.looks.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
                tokio::task::yield_now().await;
                let events = self.events.load(Ordering::Relaxed);
                if events != seen {
                    (seen, since) = (events, Instant::now());
                }
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

    fn start(bound: Duration) -> Arc<BusyPoll> {
        let poll = BusyPoll::new(bound);
        let polling = poll.clone();
        tokio::spawn(async move { polling.run().await });
        poll
    }

    /// How often the worker looks while the test sleeps, once what was going on before has ended.
    async fn looks(poll: &BusyPoll) -> usize {
        let sleep = || tokio::time::sleep(Duration::from_millis(50));
        sleep().await;
        let before = poll.looks.load(Ordering::Relaxed);
        sleep().await;
        poll.looks.load(Ordering::Relaxed) - before
    }

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_micros(100);
    /// A worker that stays awake looks at least once more while the test sleeps, however busy the machine is.
    const ASLEEP: usize = 0;

    #[tokio::test]
    async fn a_worker_stays_awake_for_one_request_and_no_longer_than_the_bound() {
        for (bound, awake) in [(LONG, true), (SHORT, false), (Duration::ZERO, false)] {
            let poll = start(bound);
            let in_flight = poll.request();
            assert_eq!(looks(&poll).await > ASLEEP, awake, "{bound:?}");
            drop(in_flight);
        }
    }

    #[tokio::test]
    async fn a_worker_with_several_requests_sleeps() {
        let poll = start(LONG);
        let in_flight = [poll.request(), poll.request()];
        assert_eq!(looks(&poll).await, ASLEEP);
        drop(in_flight);
    }

    /// The next request of the same client is likely to follow at once.
    #[tokio::test]
    async fn a_worker_stays_awake_after_a_request() {
        let poll = start(LONG);
        drop((poll.request(), poll.request()));
        assert!(looks(&poll).await > ASLEEP);
    }
}
