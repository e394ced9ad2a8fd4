//! The chapters of the suite, in the order in which a session lives: what the connector says of itself, how it opens, what its source holds,
//! how it reads, what it refuses, what a wire and a source do to it.

mod catalog;
mod descriptor;
mod errors;
mod expected;
mod hostile;
mod liar;
mod limits;
mod opening;
mod reading;
mod sample;
mod spoilt;
mod together;
mod truth;
mod types;
mod wire;
mod writing;

use std::time::Instant;

use souk_domain::sql::Dialect;
use souk_sandbox::{Blame, Fault, FaultKind, Output};

use crate::report::{Finding, Outcome, Report};
use crate::subject::{KitError, Subject};

use sample::Sample;
use truth::Truth;

/// What one check has to say: [`Verdict::passed`] or why not.
pub(crate) struct Verdict {
    outcome: Outcome,
    detail: String,
    advice: String,
}

impl Verdict {
    pub fn passed() -> Verdict {
        Verdict {
            outcome: Outcome::Passed,
            detail: String::new(),
            advice: String::new(),
        }
    }

    /// Passed, with something worth knowing.
    pub fn noted(detail: impl Into<String>) -> Verdict {
        Verdict {
            detail: detail.into(),
            ..Verdict::passed()
        }
    }

    pub fn failed(detail: impl Into<String>, advice: impl Into<String>) -> Verdict {
        Verdict {
            outcome: Outcome::Failed,
            detail: detail.into(),
            advice: advice.into(),
        }
    }

    pub fn warned(detail: impl Into<String>, advice: impl Into<String>) -> Verdict {
        Verdict {
            outcome: Outcome::Warned,
            ..Verdict::failed(detail, advice)
        }
    }

    pub fn skipped(detail: impl Into<String>) -> Verdict {
        Verdict {
            outcome: Outcome::Skipped,
            ..Verdict::noted(detail)
        }
    }

    pub fn is_failed(&self) -> bool {
        self.outcome == Outcome::Failed
    }
}

/// A suite at work: the subject, and what has been found so far.
pub(crate) struct Suite<'a> {
    pub subject: &'a Subject,
    /// How the host writes SQL for the engine; `None` where it takes none, or takes text of its own.
    pub dialect: Option<Dialect>,
    /// Whether requests are given up to see what comes of it.
    pub has_cancels: bool,
    findings: Vec<Finding>,
    begun: Instant,
}

impl<'a> Suite<'a> {
    pub fn new(subject: &'a Subject) -> Suite<'a> {
        Suite {
            subject,
            dialect: dialect(&subject.engine.dialect),
            has_cancels: true,
            findings: Vec::new(),
            begun: Instant::now(),
        }
    }

    pub fn without_cancels(self) -> Suite<'a> {
        Suite {
            has_cancels: false,
            ..self
        }
    }

    pub async fn run_quick(mut self) -> Result<Report, KitError> {
        descriptor::run(&mut self).await;
        opening::quick(&mut self).await;
        Ok(self.conclude())
    }

    pub async fn run(mut self) -> Result<Report, KitError> {
        descriptor::run(&mut self).await;
        opening::run(&mut self).await?;
        let Some(place) = self.subject.place.clone() else {
            hostile::run(&mut self, &Sample::Ping).await?;
            self.note("source", || {
                Verdict::skipped(
                    "no source was named: reading, filters, paging, limits and wires were not tried. Name one in the profile or by --address, --base-url or --file",
                )
            });
            self.aftermath();
            return Ok(self.conclude());
        };
        let table = catalog::run(&mut self, &place).await;
        let truth = match &table {
            Some(table) => Truth::read(&mut self, &place, table).await,
            None => None,
        };
        if let Some(truth) = &truth {
            types::columns(&mut self, truth);
            reading::run(&mut self, &place, truth).await;
        }
        types::run(&mut self, &place).await;
        expected::run(&mut self, &place).await;
        let sample = Sample::choose(&self, truth.as_ref());
        limits::run(&mut self, &place, &sample).await;
        writing::run(&mut self, &place, truth.as_ref()).await;
        errors::run(&mut self, &place, &sample).await;
        let questions = together::questions(&self, &place, truth.as_ref()).await;
        together::run(&mut self, &place, &questions).await;
        wire::run(&mut self, &place, &sample, &questions).await?;
        hostile::run(&mut self, &sample).await?;
        self.aftermath();
        Ok(self.conclude())
    }

    /// Makes a finding of a check that is done at once.
    pub fn note(&mut self, check: &str, made: impl FnOnce() -> Verdict) {
        let begun = Instant::now();
        let verdict = made();
        self.found(check, begun, verdict);
    }

    /// Makes a finding of a check that began at `begun`.
    pub fn found(&mut self, check: &str, begun: Instant, verdict: Verdict) {
        self.findings.push(Finding {
            check: check.to_owned(),
            outcome: verdict.outcome,
            detail: verdict.detail,
            advice: verdict.advice,
            ms: begun.elapsed().as_millis() as u64,
        });
    }

    /// After all that was done to it: nothing trapped.
    fn aftermath(&mut self) {
        let traps: u64 = self
            .subject
            .sandbox
            .connectors()
            .iter()
            .map(|connector| connector.traps_total)
            .sum();
        self.note("aftermath.no_traps", || match traps {
            0 => Verdict::passed(),
            traps => Verdict::failed(
                format!("sessions trapped {traps} times in this run"),
                "a trap is a panic, an endless loop or a call of what is not granted: return an error of class `source` for what a source does, `internal` for what must not happen",
            ),
        });
    }

    fn conclude(self) -> Report {
        let info = &self.subject.info;
        Report::new(
            [
                &info.name,
                &info.version,
                &info.digest,
                &self.subject.engine.slug,
            ],
            self.findings,
            self.begun.elapsed().as_millis() as u64,
        )
    }
}

/// The words of the contract in which the host writes SQL. `none` and words for text of the engine's own are none of them.
fn dialect(word: &str) -> Option<Dialect> {
    match word {
        "none" | "opaque" => None,
        word => Dialect::of(word),
    }
}

/// A fault as a line for the report.
pub(crate) fn told(fault: &Fault) -> String {
    let mut told = format!(
        "{} (blame: {}, kind: {}, code: {})",
        fault.message,
        fault.blame.as_str(),
        fault.kind.as_str(),
        fault.code
    );
    if let Some(detail) = &fault.detail {
        let detail: String = detail.chars().take(400).collect();
        told.push_str(&format!(": {detail}"));
    }
    told
}

/// What is to be done about a fault that no check expected.
pub(crate) fn advice(fault: &Fault) -> &'static str {
    match (fault.blame, fault.kind) {
        (_, FaultKind::Trapped) => {
            "the component trapped: look for a panic, an `unwrap`, or a loop in what it was doing; a result that does not fit is an error, not a panic"
        }
        (_, FaultKind::ContractBroken) => {
            "the component broke the contract (wit/v1/connector.wit): what is wrong with the batch or the event is in the text above"
        }
        (_, FaultKind::OutOfMemory) => {
            "the component asked for more memory than a session has: read in pieces, stop at `limits`"
        }
        (_, FaultKind::Timeout) => {
            "nothing came in time: if the source is fast enough, the connector awaits something that never happens"
        }
        (_, FaultKind::Authentication | FaultKind::Configuration) => {
            "check the settings and credentials that the kit was given"
        }
        (_, FaultKind::Refused | FaultKind::Unreachable) => {
            "is the source running, and is its address right?"
        }
        (Blame::Connector, _) => "the connector failed in its own right",
        _ => "the source refused what the host asks of every source of this dialect",
    }
}

/// The values of a row as the JSON that a buyer reads.
pub(crate) fn row(output: &Output, row: usize) -> Vec<String> {
    (0..output.columns.len())
        .map(|column| {
            let mut text = Vec::new();
            souk_sandbox::json::write_cell(&mut text, &output.cell(row, column));
            String::from_utf8_lossy(&text).into_owned()
        })
        .collect()
}

pub(crate) fn rows(output: &Output) -> Vec<Vec<String>> {
    (0..output.rows).map(|at| row(output, at)).collect()
}

/// A row for people.
pub(crate) fn shown(row: &[String]) -> String {
    let text: String = row.join(", ").chars().take(200).collect();
    format!("({text})")
}
