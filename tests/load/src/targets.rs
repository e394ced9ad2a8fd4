//! What the owner's path of souk is held to (`--hold`): how much of a native client's throughput it has at the least. [`TARGETS`] has all of them.

use anyhow::ensure;
use souk_load::market::{self, GROUP_BY};

use crate::measure::{Ratio, Seen};

/// The competitor that is held to them.
const HELD: &str = "souk";

struct Target {
    sources: &'static [&'static str],
    queries: &'static [&'static str],
    /// Whose throughput is meant.
    competitor: &'static str,
    clients: &'static [usize],
    least: f64,
}

const TARGETS: &[Target] = &[
    Target {
        sources: &["file"],
        queries: &["single row", "50 rows", "1,000 rows"],
        competitor: "native",
        clients: &[1, 16, 64],
        least: 0.9,
    },
    Target {
        sources: &["file"],
        queries: &["aggregate", GROUP_BY],
        competitor: "native",
        clients: &[1, 16, 64],
        least: 0.8,
    },
    Target {
        sources: &[""],
        queries: &["single row"],
        competitor: "native pooled",
        clients: &[16],
        least: 1.1,
    },
    Target {
        sources: &[""],
        queries: &["single row"],
        competitor: "native pooled",
        clients: &[64],
        least: 1.7,
    },
    Target {
        sources: &[""],
        queries: &["single row"],
        competitor: "native local",
        clients: &[64],
        least: 0.9,
    },
    Target {
        sources: &[
            "mariadb",
            "sqlserver",
            "trino",
            "databricks",
            "snowflake",
            "bigquery",
            "clickhouse",
            "duckdb",
        ],
        queries: &["single row", "1,000 rows"],
        competitor: "native",
        clients: &[1, 16],
        least: 0.9,
    },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Reached,
    /// The target is between the bounds.
    NotKnown,
    Missed,
}

impl Verdict {
    fn of(ratio: &Ratio, least: f64) -> Verdict {
        if ratio.high < least {
            Verdict::Missed
        } else if ratio.low < least {
            Verdict::NotKnown
        } else {
            Verdict::Reached
        }
    }

    fn word(self) -> &'static str {
        match self {
            Verdict::Reached => "reached",
            Verdict::NotKnown => "not known",
            Verdict::Missed => "MISSED",
        }
    }
}

/// A target that was measured.
pub struct Line {
    text: String,
    verdict: Verdict,
}

impl Line {
    fn of(query: &str, clients: usize, target: &Target, ratio: &Ratio) -> Line {
        let (competitor, least) = (target.competitor, target.least);
        let verdict = Verdict::of(ratio, least);
        let word = verdict.word();
        Line {
            text: format!(
                "{query:<22} {clients:>7}  of {competitor:<15} {ratio}   at the least {least:.1}: {word}"
            ),
            verdict,
        }
    }
}

/// The targets of what was measured of a query, by so many clients: of those competitors that took part.
pub fn lines(query: &str, clients: usize, all: &[Seen]) -> Vec<Line> {
    let (source, what) = market::parts(query);
    let is_meant = |target: &&Target| {
        target.sources.contains(&source)
            && target.queries.contains(&what)
            && target.clients.contains(&clients)
    };
    let line = |target: &Target| {
        let rates = |name: &str| Some(&all.iter().find(|seen| seen.name == name)?.rates);
        let ratio = Ratio::between(rates(HELD)?, rates(target.competitor)?);
        Some(Line::of(query, clients, target, &ratio))
    };
    TARGETS.iter().filter(is_meant).filter_map(line).collect()
}

/// Says of each what became of it, and fails for those that are missed.
pub fn hold(lines: &[Line]) -> anyhow::Result<()> {
    ensure!(
        !lines.is_empty(),
        "nothing that was measured has a target: src/targets.rs"
    );
    println!("throughput of souk, owner");
    for line in lines {
        println!("{}", line.text);
    }
    let missed = lines.iter().filter(|line| line.verdict == Verdict::Missed);
    let missed = missed.count();
    ensure!(missed == 0, "{missed} of {} targets missed", lines.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_load::servers::SOURCES;

    /// The verdicts on rates that are the same in each round.
    fn verdicts(query: &str, clients: usize, rates: &[(&'static str, f64)]) -> Vec<Verdict> {
        let all: Vec<Seen> = rates
            .iter()
            .map(|&(name, rate)| {
                let mut seen = Seen::of(name);
                seen.rates = vec![rate; 9];
                seen
            })
            .collect();
        let lines = lines(query, clients, &all);
        lines.iter().map(|line| line.verdict).collect()
    }

    /// Missed is what is below the target even by its upper bound.
    #[test]
    fn what_lies_between_the_bounds_is_not_known() {
        for (low, high, expected) in [
            (0.95, 1.05, Verdict::Reached),
            (0.90, 0.94, Verdict::Reached),
            (0.89, 1.20, Verdict::NotKnown),
            (0.80, 0.90, Verdict::NotKnown),
            (0.80, 0.89, Verdict::Missed),
        ] {
            let median = f64::midpoint(low, high);
            let ratio = Ratio { low, median, high };
            assert_eq!(Verdict::of(&ratio, 0.9), expected, "{ratio}");
        }
    }

    #[test]
    fn each_competitor_has_its_own_target() {
        let rates = [
            ("native pooled", 100.0),
            ("native local", 200.0),
            ("souk", 175.0),
            ("souk, charged", 10.0),
        ];
        let of = |clients| verdicts("single row", clients, &rates);
        assert!(of(1).is_empty());
        assert_eq!(of(16), [Verdict::Reached]);
        assert_eq!(of(64), [Verdict::Reached, Verdict::Missed]);
        // Of those that did not take part nothing is asked.
        assert!(verdicts("trino: 1,000 rows", 16, &rates).is_empty());
        let rates = [("native", 100.0), ("souk", 89.0)];
        let verdicts = verdicts("trino: 1,000 rows", 16, &rates);
        assert_eq!(verdicts, [Verdict::Missed]);
    }

    #[test]
    fn a_target_that_is_missed_is_an_error() {
        let line = |verdict| Line {
            text: String::new(),
            verdict,
        };
        assert!(hold(&[line(Verdict::Reached), line(Verdict::NotKnown)]).is_ok());
        assert!(hold(&[line(Verdict::Reached), line(Verdict::Missed)]).is_err());
        // Whoever asks for other queries than he thinks is told.
        assert!(hold(&[]).is_err());
    }

    /// A target that names a source, or a query, that is not measured would hold nothing.
    #[test]
    fn targets_are_of_what_is_measured() {
        let measured: Vec<String> = market::queries().collect();
        for target in TARGETS {
            for source in target.sources {
                for query in target.queries {
                    let is_it = |name: &String| market::parts(name) == (*source, *query);
                    assert!(measured.iter().any(is_it), "{source}: {query}");
                }
            }
        }
        for source in SOURCES {
            let has = |target: &Target| target.sources.contains(&source);
            assert!(TARGETS.iter().any(has), "{source} has no target");
        }
    }
}
