//! What is held against the part of the conformance kit that needs no source before it leaves this machine: a component that fails it is
//! given to no host and no registry, unless whoever gives it insists.

use std::fmt;

use anyhow::{Error, Result};
use clap::Args;
use souk_conformance::{Finding, KitError, Outcome, Profile};

use super::local;

#[derive(Args)]
pub struct Unchecked {
    /// Give it away as it is, without the checks of `souk connector test --quick` before.
    #[arg(long)]
    pub unchecked: bool,
}

/// What keeps a component here. It is the connector's fault, and nobody else's.
#[derive(Debug)]
pub struct Kept(String);

impl fmt::Display for Kept {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Kept {}

/// Whether a component may go. Takes a second, and the time that compiling takes where it is new here.
pub async fn hold(wasm: &[u8], how: &Unchecked) -> Result<()> {
    if how.unchecked {
        return Ok(());
    }
    let subject = match local::load(wasm.to_vec(), Profile::default()).await {
        Ok(Ok(subject)) => subject,
        Ok(Err(refused)) => return Err(kept(&format!("no host would take it: {refused}"))),
        // The kit knows nothing of platforms.
        Err(error) if is_publisher(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    let report = souk_conformance::run_quick(&subject).await;
    subject.close().await;
    let report = report?;
    let failed: Vec<String> = report
        .findings
        .iter()
        .filter(|found| found.outcome == Outcome::Failed)
        .map(told)
        .collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(kept(&failed.join("\n"))),
    }
}

fn kept(why: &str) -> Error {
    let advice =
        "`souk connector check FILE` says more, and --unchecked gives it away all the same";
    Kept(format!("it is given to nobody\n{why}\n  → {advice}")).into()
}

/// What was found, and what to do about it.
pub fn told(found: &Finding) -> String {
    let word = found.outcome.as_str();
    format!(
        "{word} {}: {}\n  → {}",
        found.check, found.detail, found.advice
    )
}

/// Of platforms the kit knows nothing.
pub fn is_publisher(error: &Error) -> bool {
    matches!(error.downcast_ref(), Some(KitError::Publisher))
}
