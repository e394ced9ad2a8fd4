//! The conformance kit: one suite for any connector, without a host. It gives a component the same sandbox that a host gives it
//! (`souk_sandbox`), asks it what a host asks, in the words that a host uses (`souk_domain::sql`), over wires that the kit can cut, stall and
//! lie on, and says of each promise of the contract whether it was kept and, where it was not, what to do.
//!
//! What a source holds is not known beforehand: the kit finds a table by the connector's own catalog, reads it once, and holds every other
//! answer against that. Whoever knows better says so in a [`Profile`]: a table, statements with the rows that they must have, functions with
//! their answers.
//!
//! Refuses to know: companies, prices, stores, a running host. Start reading at [`run`], then `checks`.

mod checks;
mod doors;
mod profile;
mod relay;
mod report;
mod scripted;
pub mod servers;
mod subject;

pub use doors::{Door, Doors};
pub use profile::{Place, Profile, ProfileError, parameter};
pub use report::{Finding, Outcome, Report};
pub use subject::{KitError, Subject, describe, options};

use checks::Suite;

/// Runs the whole suite. Only what keeps it from beginning is an error: everything else is a finding.
pub async fn run(subject: &Subject) -> Result<Report, KitError> {
    Suite::new(subject).run().await
}

/// The whole suite but for `cancel.*`, which is told as skipped: for a source that requests which are given up bring down, by a fault of its own.
pub async fn run_without_cancels(subject: &Subject) -> Result<Report, KitError> {
    Suite::new(subject).without_cancels().run().await
}

/// The part that needs no source, in a second: what the connector says of itself, and that it stands what it is told at opening.
pub async fn run_quick(subject: &Subject) -> Result<Report, KitError> {
    Suite::new(subject).run_quick().await
}
