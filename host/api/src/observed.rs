//! What operators see of calls: how many and how long by route and status, which codes were refused with, and a line in the log for each call
//! that failed, bounded.
//!
//! The numbers are atomics that each thread has its own of: a call adds to three of them, without a lock, without memory of its own, and without
//! fetching them from another core.

use crate::refusals::INTERNAL_ERROR;
use parking_lot::Mutex;
use souk_domain::throttle::{Rate, Throttle};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper ends in microseconds. What is answered from a cache takes some hundred, a source some thousand; an execution ends after ten seconds.
const BOUNDS_US: [u64; 14] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000,
];
/// Every status that an operation answers with; others are counted as the first of their hundred.
const STATUSES: [u16; 30] = [
    200, 201, 202, 204, 300, 302, 303, 304, 400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 412,
    413, 415, 422, 429, 431, 499, 500, 501, 502, 503, 504,
];
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// Lines a second about calls that failed: of one company ([`Said`]) …
const FIRSTS_SAID_EACH: u32 = 1;
/// … of all companies' first ones together …
const FIRSTS_SAID: u32 = 100;
/// … of all others, whosever they are …
const OTHERS_SAID: u32 = 50;
/// … and of those that failed because the store does.
const STORE_SAID: u32 = 1;

/// The calls of one route.
#[derive(Debug, Default)]
pub struct Counts {
    classes: [Latencies; CLASSES.len()],
    statuses: [AtomicU64; STATUSES.len()],
}

#[derive(Debug, Default)]
struct Latencies {
    /// The last: slower than all bounds.
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
}

impl Counts {
    pub(crate) fn add(&self, status: u16, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let class = usize::from(status / 100).saturating_sub(2);
        let latencies = &self.classes[class.min(CLASSES.len() - 1)];
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        latencies.buckets[bucket].fetch_add(1, Relaxed);
        latencies.sum_us.fetch_add(us, Relaxed);
        self.statuses[place(status)].fetch_add(1, Relaxed);
    }

    /// What another thread has counted.
    fn join(&self, other: &Counts) {
        let join = |count: &AtomicU64, other: &AtomicU64| {
            count.fetch_add(other.load(Relaxed), Relaxed);
        };
        for (latencies, other) in self.classes.iter().zip(&other.classes) {
            let buckets = latencies.buckets.iter().zip(&other.buckets);
            buckets.for_each(|(count, other)| join(count, other));
            join(&latencies.sum_us, &other.sum_us);
        }
        let statuses = self.statuses.iter().zip(&other.statuses);
        statuses.for_each(|(count, other)| join(count, other));
    }
}

fn place(status: u16) -> usize {
    let known = |status: u16| STATUSES.binary_search(&status).ok();
    let found = known(status).or_else(|| known(status / 100 * 100));
    found.unwrap_or(STATUSES.len() - 1)
}

/// What a route's calls came to, to be shown.
pub struct Seen {
    pub route: &'static str,
    pub method: &'static str,
    pub latencies: Vec<SeenLatencies>,
    pub statuses: Vec<(u16, u64)>,
}

pub struct SeenLatencies {
    /// `2xx`.
    pub class: &'static str,
    pub count: u64,
    pub sum_seconds: f64,
    /// Upper ends in seconds, the last one infinite, and how many were between this and the one before.
    pub buckets: Vec<(f64, u64)>,
}

impl Seen {
    /// `None`: it was never called.
    fn of(route: &'static str, method: &'static str, counts: &Counts) -> Option<Seen> {
        let statuses = STATUSES.iter().zip(&counts.statuses);
        let statuses = statuses.map(|(status, count)| (*status, count.load(Relaxed)));
        let statuses: Vec<_> = statuses.filter(|(_, count)| *count > 0).collect();
        let latencies = CLASSES.iter().zip(&counts.classes);
        let latencies = latencies.map(|(class, latencies)| SeenLatencies::of(class, latencies));
        let latencies: Vec<_> = latencies.filter(|seen| seen.count > 0).collect();
        (!statuses.is_empty()).then_some(Seen {
            route,
            method,
            latencies,
            statuses,
        })
    }
}

impl SeenLatencies {
    fn of(class: &'static str, latencies: &Latencies) -> SeenLatencies {
        let bounds = BOUNDS_US.iter().map(|us| *us as f64 / 1e6);
        let buckets: Vec<_> = bounds
            .chain([f64::INFINITY])
            .zip(&latencies.buckets)
            .map(|(bound, count)| (bound, count.load(Relaxed)))
            .collect();
        SeenLatencies {
            class,
            count: buckets.iter().map(|(_, count)| count).sum(),
            sum_seconds: latencies.sum_us.load(Relaxed) as f64 / 1e6,
            buckets,
        }
    }
}

/// An operation's path and method.
type Route = (&'static str, &'static str);

/// Of this host.
pub(crate) struct Observed {
    /// Of each thread that serves, in the order in which they were mounted.
    routes: Mutex<Vec<(Route, Vec<Arc<Counts>>)>>,
    /// What no operation takes.
    pub unrouted: Counts,
    refusals: Mutex<BTreeMap<String, u64>>,
    firsts: Rate,
    others: Rate,
    store: Throttle,
}

/// What the log has said of one company's calls that failed, or of those of all together who have no key. Each has a line a second that
/// nobody else's calls can take from it.
#[derive(Debug)]
pub(crate) struct Said {
    first: Rate,
    /// Calls that had no line since its last.
    unsaid: AtomicU64,
}

impl Default for Said {
    fn default() -> Said {
        Said {
            first: Rate::new(FIRSTS_SAID_EACH),
            unsaid: AtomicU64::new(0),
        }
    }
}

impl Default for Observed {
    fn default() -> Observed {
        Observed {
            routes: Mutex::default(),
            unrouted: Counts::default(),
            // There is an alert about the first of them, which has to be one more than before.
            refusals: Mutex::new(BTreeMap::from([(INTERNAL_ERROR.code.to_owned(), 0)])),
            firsts: Rate::new(FIRSTS_SAID),
            others: Rate::new(OTHERS_SAID),
            store: Throttle::new(STORE_SAID),
        }
    }
}

impl Observed {
    /// New counts of a route, for the thread that asks.
    pub fn route(&self, path: &'static str, method: &'static str) -> Arc<Counts> {
        let (route, counts) = ((path, method), Arc::<Counts>::default());
        let mut routes = self.routes.lock();
        match routes.iter_mut().find(|(known, _)| *known == route) {
            Some((_, all)) => all.push(counts.clone()),
            None => routes.push((route, vec![counts.clone()])),
        }
        counts
    }

    /// Codes are those of the catalogue, so there are never many.
    pub fn refuse(&self, code: &str) {
        let mut refusals = self.refusals.lock();
        match refusals.get_mut(code) {
            Some(count) => *count += 1,
            None => {
                refusals.insert(code.to_owned(), 1);
            }
        }
    }

    /// Whether there may be a line about a call that failed, and how many of its company's had none since the last.
    pub fn may_say(&self, of: &Said, second: u32) -> Option<u64> {
        let is_first = of.first.take(second) && self.firsts.take(second);
        if is_first || self.others.take(second) {
            return Some(of.unsaid.swap(0, Relaxed));
        }
        of.unsaid.fetch_add(1, Relaxed);
        None
    }

    /// The same of one that failed because the store does, whosever it is: how many of all had none.
    pub fn may_say_of_store(&self, second: u32) -> Option<u64> {
        self.store.may(second)
    }

    pub fn seen(&self) -> Vec<Seen> {
        let routes = self.routes.lock();
        let seen = routes.iter().filter_map(|((path, method), each)| {
            let all = Counts::default();
            each.iter().for_each(|counts| all.join(counts));
            Seen::of(path, method, &all)
        });
        seen.chain(Seen::of("none", "any", &self.unrouted))
            .collect()
    }

    pub fn refused(&self) -> Vec<(String, u64)> {
        let refusals = self.refusals.lock();
        let refusals = refusals.iter();
        refusals
            .map(|(code, count)| (code.clone(), *count))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_found_by_their_order() {
        assert!(STATUSES.is_sorted());
        let counts = Counts::default();
        for (status, micros) in [
            (200, 100),
            (200, 250),
            (299, 251),
            (418, 1),
            (599, 20_000_000),
        ] {
            counts.add(status, Duration::from_micros(micros));
        }
        let seen = Seen::of("/", "GET", &counts).unwrap();
        assert_eq!(seen.statuses, [(200, 3), (400, 1), (500, 1)]);
        let fast = &seen.latencies[0];
        assert_eq!((fast.class, fast.count), ("2xx", 3));
        assert_eq!(fast.buckets[0], (0.000_25, 2));
        assert_eq!(fast.buckets[1], (0.000_5, 1));
        let slow = &seen.latencies[2];
        assert_eq!((slow.class, slow.buckets[14].1), ("5xx", 1));
        assert!(Seen::of("/", "GET", &Counts::default()).is_none());
    }

    /// Whoever watches a count sees its first step only if it was there before.
    #[test]
    fn failures_of_the_host_are_counted_from_zero() {
        let observed = Observed::default();
        let code = INTERNAL_ERROR.code.to_owned();
        assert_eq!(observed.refused(), [(code.clone(), 0)]);
        observed.refuse(&code);
        assert_eq!(observed.refused(), [(code, 1)]);
    }

    /// However often one company's calls fail, the first of another's in a second has its line; how many had none is told to each by itself.
    #[test]
    fn who_fails_often_takes_nobody_elses_line() {
        let (observed, [often, seldom]) = (Observed::default(), [(); 2].map(|()| Said::default()));
        let say = |of: &Said, times: u32, second: u32| {
            let said = (0..times).filter_map(|_| observed.may_say(of, second));
            said.collect::<Vec<u64>>()
        };
        let all_said = (FIRSTS_SAID_EACH + OTHERS_SAID) as usize;
        assert_eq!(say(&often, 1_000, 7), vec![0; all_said]);
        assert_eq!(say(&seldom, 3, 7), [0]);
        assert_eq!(say(&often, 1, 8), [1_000 - all_said as u64]);
        assert_eq!(say(&seldom, 2, 8), [2, 0]);
    }

    /// However many companies there are, the log has so many lines a second.
    #[test]
    fn lines_of_all_companies_are_bounded() {
        let observed = Observed::default();
        let companies: Vec<_> = (0..1_000).map(|_| Said::default()).collect();
        let said = companies
            .iter()
            .filter(|of| observed.may_say(of, 7).is_some());
        assert_eq!(said.count(), (FIRSTS_SAID + OTHERS_SAID) as usize);
        assert_eq!(observed.may_say_of_store(7), Some(0));
        assert_eq!(observed.may_say_of_store(7), None);
    }

    /// What a call costs, for whoever asks: `cargo test --release -p souk-api observed -- --ignored --nocapture`.
    #[test]
    #[ignore = "measures"]
    fn what_counting_costs() {
        let counts = Counts::default();
        let begun = std::time::Instant::now();
        const CALLS: u32 = 10_000_000;
        for call in 0..CALLS {
            counts.add(200, Duration::from_micros(u64::from(call % 4_000)));
        }
        println!("{:?} a call", begun.elapsed() / CALLS);
    }
}
