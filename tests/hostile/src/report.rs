//! The table: what is measured in a round, and a line of it in words.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use souk_hostile::flood::Tally;
use souk_hostile::scenarios::{Scenario, is_honest};
use souk_hostile::watch::{MIB, Usage};
use souk_load::generator::{self, Connection, Measured};

use crate::Options;

/// What is asked for while B's requests are answered, by honest computing at the most, and while they fail.
const HONEST: Bounds = Bounds {
    throughput_min: 0.45,
    p99_max: 3.0,
};
const HOSTILE: Bounds = Bounds {
    throughput_min: 0.80,
    p99_max: 2.0,
};
const HEALTH_P99_MAX_US: f64 = 10_000.0;

struct Bounds {
    throughput_min: f64,
    p99_max: f64,
}

pub struct Round {
    pub alone: (Measured, Probe, Tally),
    pub with: (Measured, Probe, Tally),
}

pub struct Shares {
    pub many: u64,
    pub one: u64,
}

/// Latencies of `/healthz`, asked now and then.
pub struct Probe {
    latencies_us: Vec<u32>,
}

pub struct Probing {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<u32>>,
}

impl Probe {
    pub fn start(address: &str, length: Duration) -> Probing {
        /// Two hundred times a second: enough for a quantile, and no load.
        const PAUSE: Duration = Duration::from_millis(5);
        let stop = Arc::<AtomicBool>::default();
        let (address, stopped) = (address.to_owned(), stop.clone());
        let thread = std::thread::spawn(move || {
            let request = generator::request("GET", "/healthz", &[], "");
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
            else {
                return Vec::new();
            };
            runtime.block_on(async {
                let mut latencies = Vec::new();
                let mut connection = Connection::open(&address).await.ok();
                while !stopped.load(Relaxed) {
                    let sent = Instant::now();
                    let answered = match &mut connection {
                        Some(connection) => {
                            let exchange = connection.exchange(&request);
                            let answer = tokio::time::timeout(length * 5, exchange).await;
                            matches!(answer, Ok(Ok((200, _))))
                        }
                        None => false,
                    };
                    latencies.push(sent.elapsed().as_micros().min(u32::MAX as u128) as u32);
                    if !answered {
                        connection = Connection::open(&address).await.ok();
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                latencies
            })
        });
        Probing { stop, thread }
    }

    fn p99_us(&self) -> f64 {
        let at = (self.latencies_us.len() as f64 * 0.99) as usize;
        let last = self.latencies_us.len().saturating_sub(1);
        self.latencies_us
            .get(at.min(last))
            .copied()
            .map_or(0.0, f64::from)
    }
}

impl Probing {
    pub fn end(self) -> Probe {
        self.stop.store(true, Relaxed);
        let mut latencies_us = self.thread.join().unwrap_or_default();
        latencies_us.sort_unstable();
        Probe { latencies_us }
    }
}

pub fn head(options: &Options) {
    println!(
        "Company A: a single row of PostgreSQL, {} clients; alone, and while company B keeps {} requests in flight. Medians of {} rounds of {} s.",
        options.clients, options.in_flight, options.rounds, options.seconds
    );
    println!(
        "{:<34} {:<5} {:>8} {:>7} {:>9} {:>7} {:>9} {:>7} {:>9}  {:<6} {:>8}  B's answers by status; memory, descriptors, sessions before and after",
        "company B",
        "build",
        "A's /s",
        "ratio",
        "p50 us",
        "ratio",
        "p99 us",
        "ratio",
        "health ms",
        "",
        "B's /s"
    );
}

/// Prints a line; returns how many of the bounds are missed in it.
pub fn line(build: &str, scenario: &Scenario, rounds: &[Round], usage: &(Usage, Usage)) -> usize {
    let of = |value: &dyn Fn(&Round) -> f64| median(rounds.iter().map(value).collect());
    let rate = |measured: &Measured| measured.run().requests_per_second;
    let p50 = |measured: &Measured| or_for_ever(measured, measured.run().median_us);
    let p99 = |measured: &Measured| or_for_ever(measured, measured.run().p99_us);
    let throughput = of(&|round| ratio(rate(&round.with.0), rate(&round.alone.0)));
    let p99_ratio = of(&|round| ratio(p99(&round.with.0), p99(&round.alone.0)));
    let health = of(&|round| round.with.1.p99_us());
    let mut statuses = Tally::default();
    for (status, count) in rounds.iter().flat_map(|round| &round.with.2.statuses) {
        *statuses.statuses.entry(*status).or_default() += count;
    }
    // A guest may mean ill and yet do what it is asked for.
    let succeeds = statuses.of(200) * 2 > statuses.answers();
    let bounds = match succeeds || is_honest(scenario) {
        true => HONEST,
        false => HOSTILE,
    };
    let missed = [
        throughput < bounds.throughput_min,
        p99_ratio > bounds.p99_max,
        health > HEALTH_P99_MAX_US,
        rounds.iter().any(|round| round.with.0.failed > 0),
    ];
    let missed = missed.into_iter().filter(|missed| *missed).count();
    let failed: u64 = rounds.iter().map(|round| round.with.0.failed).sum();
    let (before, after) = usage;
    println!(
        "{:<34} {:<5} {:>8.0} {:>6.2}x {:>9.0} {:>6.2}x {:>9.0} {:>6.2}x {:>9.1}  {:<6} {:>8.0}  {}; {} to {} MiB, {} to {}, {} to {}{}",
        scenario.name,
        build,
        of(&|round| rate(&round.with.0)),
        throughput,
        of(&|round| p50(&round.with.0)),
        of(&|round| ratio(p50(&round.with.0), p50(&round.alone.0))),
        of(&|round| p99(&round.with.0)),
        p99_ratio,
        health / 1000.0,
        if missed == 0 { "ok" } else { "MISSED" },
        of(&|round| round.with.2.answers_per_second()),
        statuses.in_words(),
        before.resident_bytes / MIB,
        after.resident_bytes / MIB,
        before.descriptors,
        after.descriptors,
        before.sessions,
        after.sessions,
        match failed {
            0 => String::new(),
            _ => format!("; A FAILED {failed} TIMES"),
        }
    );
    missed
}

pub fn shares(build: &str, shares: &Shares) {
    let all = (shares.many + shares.one).max(1) as f64;
    println!(
        "two heavy companies, {build}: the one with many in flight did {} joins ({:.0} %), the one with one did {} ({:.0} %)",
        shares.many,
        shares.many as f64 / all * 100.0,
        shares.one,
        shares.one as f64 / all * 100.0
    );
}

/// Who got no answer at all has waited for ever.
fn or_for_ever(measured: &Measured, latency_us: f64) -> f64 {
    match measured.latencies_us.is_empty() {
        true => f64::INFINITY,
        false => latency_us,
    }
}

/// An alone that was 0 makes no ratio.
fn ratio(with: f64, alone: f64) -> f64 {
    match alone > 0.0 {
        true => with / alone,
        false => f64::NAN,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
