//! Competitors, and what is measured of them.

use std::time::Duration;

use anyhow::Context;
use souk_load::generator;

/// One way to answer one query.
pub struct Competitor {
    pub name: &'static str,
    /// The process that answers.
    pub process: u32,
    pub address: String,
    pub requests: Vec<Vec<u8>>,
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Before each slice: charges are booked behind their answers, and whoever comes next would pay for it.
const SETTLE: Duration = Duration::from_millis(100);

/// Rounds in which every competitor runs once; ratios are taken within a round. The order rotates, and every second round it is the other way round, so
/// that nobody always comes after the same one.
pub fn measure(
    query: &str,
    competitors: &[&Competitor],
    clients: usize,
    rounds: usize,
    slice: Duration,
) -> anyhow::Result<()> {
    let mut rates = vec![Vec::new(); competitors.len()];
    let mut latencies = vec![Vec::new(); competitors.len()];
    let mut costs = vec![Vec::new(); competitors.len()];
    for round in 0..rounds.max(2) {
        let mut order: Vec<_> = (0..competitors.len()).collect();
        order.rotate_left(round % competitors.len());
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let competitor = competitors[index];
            std::thread::sleep(SETTLE);
            let before = processor_time(competitor.process);
            let run = generator::run(&competitor.address, &competitor.requests, clients, slice)
                .with_context(|| format!("{} on {query}", competitor.name))?;
            let used = processor_time(competitor.process).saturating_sub(before);
            if round > 0 {
                // The warm-up is in both.
                let requests = run.requests_per_second * slice.as_secs_f64();
                costs[index].push(used.as_secs_f64() * 1e6 / requests);
                rates[index].push(run.requests_per_second);
                latencies[index].push(run.median_us);
            }
        }
    }
    for (index, competitor) in competitors.iter().enumerate() {
        let ratio = |of: &[Vec<f64>]| {
            median(
                &mut of[index]
                    .iter()
                    .zip(&of[0])
                    .map(|(a, b)| a / b)
                    .collect::<Vec<_>>(),
            )
        };
        let (rate_ratio, latency_ratio) = (ratio(&rates), ratio(&latencies));
        let cost_ratio = ratio(&costs);
        println!(
            "{query:<22} {clients:>7}  {:<15} {:>9.0}/s {:>8.0} us   throughput {rate_ratio:>5.2}x   latency {latency_ratio:>5.2}x   processor {:>6.1} us {cost_ratio:>5.2}x",
            competitor.name,
            median(&mut rates[index]),
            median(&mut latencies[index]),
            median(&mut costs[index]),
        );
    }
    Ok(())
}

/// What a process has used so far on all its threads. Unlike the clock on the wall it does not count what others take of the machine.
#[allow(unsafe_code)]
fn processor_time(process: u32) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both functions are given valid places to write to; a process that is gone leaves zero.
    unsafe {
        let mut clock = 0;
        if libc::clock_getcpuclockid(process as libc::pid_t, &mut clock) == 0 {
            libc::clock_gettime(clock, &mut time);
        }
    }
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
