//! `souk connector sync`: brings a host to what a lock file says, one connector after the other. What the host has already is asked of no
//! registry; connectors that the file does not name are left alone. Where it stops it says why, and goes on from there when it is run again.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::Value;

use super::activation::{self, Consent};
use super::add::locked;
use super::lock::{self, Lock, Locked, Pinned};
use super::quick::{self, Unchecked};
use super::registry::artifact::{self, Pulled};
use super::registry::signature::Trust;
use super::registry::{self, RegistryArgs};
use super::versions::{self, Whose, text};
use crate::commands::client::Client;
use crate::commands::output::{self, Column};

#[derive(Args)]
pub struct Sync {
    /// The lock file.
    #[arg(long = "lock", value_name = "FILE", default_value = lock::FILE)]
    file: PathBuf,
    /// Refuse entries that do not say digest and component yet, and leave the file as it is.
    #[arg(long)]
    locked: bool,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    unchecked: Unchecked,
    #[command(flatten)]
    trust: Trust,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    whose: Whose,
}

const VERSIONS: &[Column] = &[
    ("NAME", "/name"),
    ("VERSION", "/version"),
    ("STATUS", "/status"),
    ("DIGEST", "/digest"),
];

pub async fn run(command: &Sync) -> Result<()> {
    let mut lock = Lock::read(&command.file)?;
    check(command, &lock)?;
    let (client, base) = command.whose.reach().await?;
    let mut done = Vec::with_capacity(lock.connectors.len());
    for at in 0..lock.connectors.len() {
        let entry = lock.connectors[at].clone();
        let version = match entry.pinned()? {
            Some(pinned) => bring(command, &client, &base, &entry, &pinned).await,
            None => find_out(command, &client, &base, &mut lock, at).await,
        };
        done.push(version.with_context(|| entry.reference.clone())?);
    }
    output::list(command.whose.at.json, VERSIONS, &done)
}

/// All that can be said of the file before a host is asked.
fn check(command: &Sync, lock: &Lock) -> Result<()> {
    for entry in &lock.connectors {
        registry::parse(&entry.reference)?;
        ensure!(
            entry.pinned()?.is_some() || !command.locked,
            "the entry of {} says no digest: `souk connector sync` without --locked finds it out",
            entry.reference
        );
        let same = lock
            .connectors
            .iter()
            .filter(|other| entry.name.is_some() && other.name == entry.name);
        ensure!(
            same.count() <= 1,
            "{} is in the file twice",
            entry.name.as_deref().unwrap_or_default()
        );
    }
    Ok(())
}

/// Puts exactly this version to work. The file is the consent to what it may do, and says that it was held against the kit: both were so when the
/// entry was written.
async fn bring(
    command: &Sync,
    client: &Client,
    base: &str,
    entry: &Locked,
    pinned: &Pinned<'_>,
) -> Result<Value> {
    let known = versions::known(client, base, pinned.name)
        .await?
        .into_iter();
    let mut known = known.filter(|known| text(known, "version") == pinned.version);
    let version = match known.next() {
        Some(known) if is_component(&known, pinned.component) => known,
        Some(known) => bail!(
            "the host has another {} {}, with the component sha256:{}: `souk connector remove` takes it away if it is not at work",
            pinned.name,
            pinned.version,
            text(&known, "digest")
        ),
        None => {
            let reference = registry::parse(&entry.reference)?;
            let reference = reference.clone_with_digest(pinned.digest.to_owned());
            let pulled = artifact::pull(&reference, &command.registry, &command.trust).await?;
            check_pulled(entry, pinned, &pulled)?;
            let version = versions::stage(client, base, pulled.wasm).await?;
            ensure!(
                text(&version, "name") == pinned.name
                    && text(&version, "version") == pinned.version,
                "the component is {} {}, and the lock file says {} {}",
                text(&version, "name"),
                text(&version, "version"),
                pinned.name,
                pinned.version
            );
            version
        }
    };
    // A canary beside it takes calls from it: that is ended.
    if version["status"] == "active" && version["share_percent"] == 100 {
        return Ok(version);
    }
    let consent = Consent {
        accept_capabilities: true,
    };
    activation::put_to_work(client, base, &version, None, &consent).await
}

fn is_component(version: &Value, component: &str) -> bool {
    component.strip_prefix("sha256:") == Some(text(version, "digest"))
}

/// The digest has said which bytes they are; what else the file says has to be so, too.
fn check_pulled(entry: &Locked, pinned: &Pinned<'_>, pulled: &Pulled) -> Result<()> {
    ensure!(
        pulled.component == pinned.component,
        "the manifest names the component {}, and the lock file {}",
        pulled.component,
        pinned.component
    );
    if let Some(signer) = &entry.signed_by {
        ensure!(
            pulled
                .signed_by
                .iter()
                .any(|key| key.fingerprint() == *signer),
            "the lock file says that {signer} has signed it, and that is none of the trusted keys that have"
        );
    }
    Ok(())
}

/// Asks the registry what is there now, puts it to work if whoever runs this agrees, and keeps what was found out: after each connector, so that
/// none is lost by another.
async fn find_out(
    command: &Sync,
    client: &Client,
    base: &str,
    lock: &mut Lock,
    at: usize,
) -> Result<Value> {
    let entry = &lock.connectors[at];
    let reference = registry::parse(&entry.reference)?;
    let mut pulled = artifact::pull(&reference, &command.registry, &command.trust).await?;
    let wasm = std::mem::take(&mut pulled.wasm);
    quick::hold(&wasm, &command.unchecked).await?;
    let version = versions::stage(client, base, wasm).await?;
    for (member, said) in [("name", &entry.name), ("version", &entry.version)] {
        ensure!(
            said.as_deref()
                .is_none_or(|said| said == text(&version, member)),
            "the component's {member} is {}, and the lock file says {}",
            text(&version, member),
            said.as_deref().unwrap_or_default()
        );
    }
    let version = activation::put_to_work(client, base, &version, None, &command.consent).await?;
    lock.connectors[at] = locked(&pulled, &version);
    lock.write(&command.file)?;
    Ok(version)
}
