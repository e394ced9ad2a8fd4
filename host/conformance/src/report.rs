//! What the suite found, for people and for programs.

use std::fmt;

use serde::Serialize;

/// How one promise came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Passed,
    /// The contract is broken.
    Failed,
    /// Allowed, and likely not what its author wants.
    Warned,
    /// It could not be tried; `detail` says what would be needed.
    Skipped,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "FAILED",
            Outcome::Warned => "warning",
            Outcome::Skipped => "skipped",
        }
    }
}

/// One promise that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Stable: `paging.no_overlap`.
    pub check: String,
    pub outcome: Outcome,
    /// What was seen, or why it was not tried. Empty where it passed and there is nothing to add.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// What to do about it. Empty where it passed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub advice: String,
    pub ms: u64,
}

/// Everything that was tried on one component.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub connector: String,
    pub version: String,
    /// SHA-256 of the component, hex.
    pub digest: String,
    pub engine: String,
    pub passed: usize,
    pub failed: usize,
    pub warned: usize,
    pub skipped: usize,
    pub ms: u64,
    pub findings: Vec<Finding>,
}

impl Report {
    pub(crate) fn new(
        [connector, version, digest, engine]: [&str; 4],
        findings: Vec<Finding>,
        ms: u64,
    ) -> Report {
        let count = |outcome| {
            findings
                .iter()
                .filter(move |found| found.outcome == outcome)
        };
        Report {
            connector: connector.to_owned(),
            version: version.to_owned(),
            digest: digest.to_owned(),
            engine: engine.to_owned(),
            passed: count(Outcome::Passed).count(),
            failed: count(Outcome::Failed).count(),
            warned: count(Outcome::Warned).count(),
            skipped: count(Outcome::Skipped).count(),
            ms,
            findings,
        }
    }

    /// Nothing failed, and something was tried.
    pub fn is_conforming(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }

    /// The finding of a check, if it was made.
    pub fn finding(&self, check: &str) -> Option<&Finding> {
        self.findings.iter().find(|found| found.check == check)
    }

    /// The checks that came out so.
    pub fn checks(&self, outcome: Outcome) -> Vec<&str> {
        let found = self.findings.iter();
        let found = found.filter(|found| found.outcome == outcome);
        found.map(|found| found.check.as_str()).collect()
    }
}

/// A line a finding; below what did not pass, what was seen and what to do.
impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{} {} as engine \"{}\"",
            self.connector, self.version, self.engine
        )?;
        for found in &self.findings {
            writeln!(
                out,
                "  {:<8} {:<32} {:>6} ms",
                found.outcome.as_str(),
                found.check,
                found.ms
            )?;
            if found.outcome != Outcome::Passed && !found.detail.is_empty() {
                writeln!(out, "           {}", indented(&found.detail))?;
            }
            if !found.advice.is_empty() {
                writeln!(out, "           → {}", indented(&found.advice))?;
            }
        }
        write!(
            out,
            "{} passed, {} failed, {} warnings, {} skipped in {:.1} s",
            self.passed,
            self.failed,
            self.warned,
            self.skipped,
            self.ms as f64 / 1_000.0
        )
    }
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n           ")
}
