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

/// What was seen of a competitor, in each round but the first.
pub struct Seen {
    pub name: &'static str,
    /// Requests a second.
    pub rates: Vec<f64>,
    latencies: Vec<f64>,
    costs: Vec<f64>,
}

impl Seen {
    pub fn of(name: &'static str) -> Seen {
        Seen {
            name,
            rates: Vec::new(),
            latencies: Vec::new(),
            costs: Vec::new(),
        }
    }
}

/// Of values that stay in the order of their rounds, by which they belong together.
fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The median of the ratios within rounds, and between which bounds it is with a probability of 95 %: between two of the values in their order, whatever their
/// distribution is.
pub struct Ratio {
    pub low: f64,
    pub median: f64,
    pub high: f64,
}

impl Ratio {
    /// Of one to the other, round by round.
    pub fn between(one: &[f64], other: &[f64]) -> Ratio {
        let rounds = one.iter().zip(other);
        Ratio::of(rounds.map(|(one, other)| one / other).collect())
    }

    fn of(mut values: Vec<f64>) -> Ratio {
        values.sort_by(f64::total_cmp);
        let middle = values.len() as f64 / 2.0;
        let away = 0.98 * (values.len() as f64).sqrt();
        Ratio {
            low: values[(middle - away).floor().max(0.0) as usize],
            median: median(&values),
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
) -> anyhow::Result<Vec<Seen>> {
    let mut all: Vec<Seen> = competitors.iter().map(|one| Seen::of(one.name)).collect();
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
                let seen = &mut all[index];
                seen.costs.push(used.as_secs_f64() * 1e6 / requests);
                seen.rates.push(run.requests_per_second);
                seen.latencies.push(run.median_us);
            }
        }
    }
    for seen in &all {
        tell(query, clients, seen, &all[0]);
    }
    Ok(all)
}

/// The line of one competitor, beside the first one of its group.
fn tell(query: &str, clients: usize, seen: &Seen, first: &Seen) {
    let rate_ratio = Ratio::between(&seen.rates, &first.rates);
    let latency_ratio = Ratio::between(&seen.latencies, &first.latencies);
    let cost_ratio = Ratio::between(&seen.costs, &first.costs);
    println!(
        "{query:<22} {clients:>7}  {:<15} {:>9.0}/s {:>8.0} us   throughput {rate_ratio}   latency {latency_ratio}   processor {:>6.1} us {cost_ratio}",
        seen.name,
        median(&seen.rates),
        median(&seen.latencies),
        median(&seen.costs),
    );
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

    /// What halts the machine for a while slows all that run in that round.
    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let (one, other) = ([90.0, 45.0, 180.0], [100.0, 50.0, 200.0]);
        let ratio = Ratio::between(&one, &other);
        assert_eq!(ratio.to_string(), " 0.90x (0.90 to 0.90)");
    }
}
