//! `souk connector dev`: from a save to a version at work. Builds, holds the component against what needs no source, gives it to a host as a
//! version of its own, and prints what it says there. What fails on the way is told, and what was at work before goes on.

use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use anyhow::{Context, Error, Result, ensure};
use clap::Args;
use serde_json::Value;
use souk_conformance::{KitError, Outcome, describe};
use souk_sandbox::LoadError;

use super::build::{self, BUILD_NUMBER, HowBuilt};
use super::changes::Seen;
use super::local::{self, SourceArgs};
use super::logs::Reader;
use super::quick;
use super::remote;
use super::versions::{self, Whose, text};
use crate::commands::client::{Client, Refused, segment};

/// What the version of a build has before its number.
const MARK: &str = "-dev.";

#[derive(Args)]
pub struct Dev {
    /// The project.
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// Build and load once, and end.
    #[arg(long)]
    once: bool,

    /// Build and check only, though there is a key.
    #[arg(long)]
    no_load: bool,

    /// Watch this directory too. Repeatable.
    #[arg(long, value_name = "DIR")]
    watch: Vec<PathBuf>,

    #[command(flatten)]
    how: HowBuilt,

    #[command(flatten)]
    source: SourceArgs,

    #[command(flatten)]
    whose: Whose,
}

pub async fn run(command: Dev) -> Result<bool> {
    ensure!(
        command.dir.is_dir(),
        "{} is no directory",
        command.dir.display()
    );
    if command.whose.at.api_key.is_none() && !command.no_load {
        println!("no API key (SOUK_API_KEY): it is built and checked, and given to no host");
    }
    let mut roots = vec![command.dir.clone()];
    roots.extend(command.watch.iter().cloned());
    let mut is_followed = false;
    loop {
        // What changes while it is built is built next.
        let seen = Seen::of(&roots)?;
        let is_well = match round(&command, &mut is_followed).await {
            Err(error) => remote::told(error),
            done => done,
        };
        if command.once {
            return is_well;
        }
        if let Err(error) = is_well {
            eprintln!("souk: {error:#}");
        }
        println!("waiting for a change in {}", command.dir.display());
        seen.changes(&roots).await?;
    }
}

/// From the sources to a version at work, once. `Ok(false)`: the connector is not well, which has been told.
async fn round(command: &Dev, is_followed: &mut bool) -> Result<bool> {
    let begun = Instant::now();
    let number = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let number = u64::try_from(number.as_millis())?;
    let component = build::component(&command.dir, &command.how, Some(number)).await?;
    let wasm = local::component(&component)?;
    println!(
        "built {} in {:.1} s",
        component.display(),
        begun.elapsed().as_secs_f64()
    );
    let Some(name) = well(command, &wasm).await? else {
        println!("it is given to no host: what is at work there goes on");
        return Ok(false);
    };
    if command.no_load || command.whose.at.api_key.is_none() {
        return Ok(true);
    }
    let (client, base) = command.whose.reach().await?;
    if !*is_followed && !command.once {
        let (client, _) = command.whose.reach().await?;
        follow(Reader::from_now(client, &base, &name).await?);
        *is_followed = true;
    }
    give(&client, &base, wasm).await?;
    Ok(true)
}

/// The connector's name, if it holds against what can be known without a source. The whole kit is `souk connector test`.
async fn well(command: &Dev, wasm: &[u8]) -> Result<Option<String>> {
    let info = match describe(wasm.to_vec(), local::sandbox_options()?).await {
        Ok(info) => info,
        Err(KitError::Load(error @ (LoadError::Internal(_) | LoadError::Compile(_)))) => {
            return Err(error.into());
        }
        Err(KitError::Load(refused)) => {
            println!("refused: {refused}");
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    for warning in &info.warnings {
        println!("warning: {warning}");
    }
    let profile = command.source.profile_in(&command.dir)?;
    let subject = match local::load(wasm.to_vec(), profile).await {
        Ok(Ok(subject)) => subject,
        Ok(Err(refused)) => {
            println!("refused: {refused}");
            return Ok(None);
        }
        // The kit knows nothing of platforms.
        Err(error) if quick::is_publisher(&error) => return Ok(Some(info.name)),
        Err(error) => return Err(error),
    };
    let report = souk_conformance::run_quick(&subject).await;
    subject.close().await;
    let report = report?;
    for found in &report.findings {
        if matches!(found.outcome, Outcome::Failed | Outcome::Warned) {
            println!("{}", quick::told(found));
        }
    }
    println!(
        "{} {}: {} checks passed, {} failed, {} warnings",
        info.name, info.version, report.passed, report.failed, report.warned
    );
    Ok((report.failed == 0).then_some(info.name))
}

/// Puts a build to work; those before it go.
async fn give(client: &Client, base: &str, wasm: Vec<u8>) -> Result<()> {
    let active = versions::upload(client, base, wasm, true).await;
    let active = active.map_err(of_one_version)?;
    let [name, version] = ["name", "version"].map(|member| text(&active, member));
    println!("{name} {version} is at work");
    let known = client
        .get(&format!("/connectors/{}", segment(name)))
        .await?;
    for old in known["versions"].as_array().into_iter().flatten() {
        if is_build_before(old, &active) {
            let gone = versions::remove(client, base, name, text(old, "version")).await;
            gone.with_context(|| format!("{name} {} is still there", text(old, "version")))?;
        }
    }
    Ok(())
}

fn is_build_before(old: &Value, active: &Value) -> bool {
    let version = text(old, "version");
    version.contains(MARK)
        && version != text(active, "version")
        && ["scope", "company_id"]
            .iter()
            .all(|member| old[*member] == active[*member])
}

/// A version that is in the source is the same for each build.
fn of_one_version(error: Error) -> Error {
    match error.downcast_ref::<Refused>() {
        Some(refused) if refused.code == "CONFLICT" => Error::msg(format!(
            "{refused}\n  → each build needs a version of its own: in Rust let the descriptor say env!(\"CARGO_PKG_VERSION\"), elsewhere let it \
             end in \"{MARK}\" and the number that ./build finds in ${BUILD_NUMBER}"
        )),
        _ => error,
    }
}

/// Until this program ends.
fn follow(mut reader: Reader) {
    tokio::spawn(async move {
        if let Err(error) = reader.follow().await {
            eprintln!("souk: the connector's log cannot be read: {error:#}");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_builds_of_the_same_owner_are_replaced() {
        let version = |version: &str, company: &str| json!({"version": version, "scope": "company", "company_id": company});
        let active = version("0.1.0-dev.2", "cmp_1");
        assert!(is_build_before(&version("0.1.0-dev.1", "cmp_1"), &active));
        for other in [
            version("0.1.0-dev.1", "cmp_2"),
            version("0.1.0", "cmp_1"),
            active.clone(),
        ] {
            assert!(!is_build_before(&other, &active), "{other}");
        }
    }
}
