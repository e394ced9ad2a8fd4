//! Competitors, and what is measured of them.

use std::time::Duration;

use anyhow::Context;
use souk_load::{generator, processor};

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

/// The median of the ratios within rounds, and between which bounds it is with a probability of 95 %: between two of the values in their order, whatever their
/// distribution is.
struct Ratio {
    low: f64,
    median: f64,
    high: f64,
}

impl Ratio {
    fn of(mut values: Vec<f64>) -> Ratio {
        let median = median(&mut values);
        let middle = values.len() as f64 / 2.0;
        let away = 0.98 * (values.len() as f64).sqrt();
        Ratio {
            low: values[(middle - away).floor().max(0.0) as usize],
            median,
            high: values[((middle + away).ceil() as usize).min(values.len() - 1)],
        }
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ratio { low, median, high } = self;
        write!(out, "{median:>5.2}x ({low:.2} to {high:.2})")
    }
}

/// Before each slice: charges are booked behind their answers, and whoever comes next would pay for it.
const SETTLE: Duration = Duration::from_millis(100);

/// Who comes when in a round. The order rotates, and is the other way round after each whole rotation: nobody has a place more often than others, nor
/// always comes after the same one.
fn order(round: usize, competitors: usize) -> Vec<usize> {
    let mut order: Vec<_> = (0..competitors).collect();
    order.rotate_left(round % competitors);
    if round / competitors % 2 == 1 {
        order.reverse();
    }
    order
}

/// Rounds in which every competitor runs once; ratios are taken within a round.
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
        for index in order(round, competitors.len()) {
            let competitor = competitors[index];
            std::thread::sleep(SETTLE);
            let before = processor::time_of(competitor.process);
            let run = generator::run(&competitor.address, &competitor.requests, clients, slice)
                .with_context(|| format!("{} on {query}", competitor.name))?;
            let used = processor::time_of(competitor.process).saturating_sub(before);
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
            let pairs = of[index].iter().zip(&of[0]);
            Ratio::of(pairs.map(|(a, b)| a / b).collect())
        };
        let (rate_ratio, latency_ratio) = (ratio(&rates), ratio(&latencies));
        let cost_ratio = ratio(&costs);
        println!(
            "{query:<22} {clients:>7}  {:<15} {:>9.0}/s {:>8.0} us   throughput {rate_ratio}   latency {latency_ratio}   processor {:>6.1} us {cost_ratio}",
            competitor.name,
            median(&mut rates[index]),
            median(&mut latencies[index]),
            median(&mut costs[index]),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two, too, each is as often the first.
    #[test]
    fn everybody_is_in_every_place_equally_often() {
        for competitors in 1..=5 {
            for place in 0..competitors {
                let at_place = |of: usize| {
                    let rounds = 0..4 * competitors;
                    rounds
                        .filter(|&round| order(round, competitors)[place] == of)
                        .count()
                };
                assert!(
                    (0..competitors).all(|of| at_place(of) == 4),
                    "{competitors}"
                );
            }
        }
    }

    #[test]
    fn a_ratio_has_its_bounds() {
        let of = |count: i32| Ratio::of((1..=count).rev().map(f64::from).collect());
        assert_eq!(of(100).to_string(), "51.00x (41.00 to 61.00)");
        // Of few values nothing is known.
        assert_eq!(of(2).to_string(), " 2.00x (1.00 to 2.00)");
    }
}
