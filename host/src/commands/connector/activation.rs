//! Putting a version to work: what it needs beyond the version at work is shown, and somebody agrees to it first. The host does the rest: it looks
//! whether the version is healthy, and keeps the one before until then.

use std::io::{self, IsTerminal, Write};

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::Value;

use super::capabilities::Difference;
use super::versions::{self, text};
use crate::commands::client::Client;

#[derive(Args)]
pub struct Consent {
    /// Agree to what the version may do more than the one at work; without this a terminal is asked, and a script is refused.
    #[arg(long)]
    pub accept_capabilities: bool,
}

/// Puts a version that the host has to work, for all calls or for so many percent of them. `candidate`: as the host shows it.
pub async fn put_to_work(
    client: &Client,
    base: &str,
    candidate: &Value,
    share: Option<u8>,
    consent: &Consent,
) -> Result<Value> {
    let [name, version] = ["name", "version"].map(|member| text(candidate, member));
    let known = versions::known(client, base, name).await?;
    let at_work = known.iter().find(|known| known["status"] == "active");
    if at_work.is_none_or(|at_work| text(at_work, "version") != version) {
        let difference = Difference::between(at_work, candidate);
        eprintln!("souk: {difference}");
        if difference.widens() {
            agree(consent, name, version)?;
        }
    }
    versions::activate(client, base, name, version, share).await
}

fn agree(consent: &Consent, name: &str, version: &str) -> Result<()> {
    let agreed = consent.accept_capabilities || asked()?;
    ensure!(
        agreed,
        "{name} {version} may do more than the version at work, and nobody has agreed to that: it is kept and not at work. \
         `souk connector activate {name} {version} --accept-capabilities` puts it there"
    );
    Ok(())
}

/// Asks whoever sits there; nobody does in a script.
fn asked() -> Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(false);
    }
    eprint!("souk: may it? [y/N] ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
