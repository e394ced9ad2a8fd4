//! `souk connector add`: a component of this machine, of a project or of a registry, given to a running host.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::Value;

use super::activation::{self, Consent};
use super::build::{self, HowBuilt};
use super::local;
use super::lock::{self, Lock, Locked};
use super::quick::{self, Unchecked};
use super::registry::artifact::{self, Pulled};
use super::registry::signature::{PublicKey, Trust};
use super::registry::{self, RegistryArgs};
use super::versions::{self, Whose, is_now, text};
use crate::commands::output;

#[derive(Args)]
pub struct Add {
    /// The component: a .wasm file, the directory of a project, which is built first, or oci://REGISTRY/REPOSITORY:TAG (or @sha256:…).
    #[arg(value_name = "FILE|DIR|REFERENCE")]
    path: PathBuf,
    /// Put it to work at once. What it needs beyond the version at work is shown before.
    #[arg(long)]
    activate: bool,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    unchecked: Unchecked,
    /// Keep in this file what was put to work, for `souk connector sync` [default file: souk-connectors.lock].
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = lock::FILE,
        requires = "activate",
        help_heading = "Registry"
    )]
    lock: Option<PathBuf>,
    #[command(flatten)]
    trust: Trust,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    how: HowBuilt,
    #[command(flatten)]
    whose: Whose,
}

pub async fn run(command: &Add) -> Result<()> {
    let (wasm, pulled) = component(command).await?;
    // Read before anything is changed: one that is no lock file changes nothing.
    let lock = command.lock.as_deref().map(|path| {
        ensure!(
            pulled.is_some(),
            "--lock keeps what came from a registry, and {} did not",
            command.path.display()
        );
        Ok((path, Lock::read_or_new(path)?))
    });
    let lock = lock.transpose()?;
    quick::hold(&wasm, &command.unchecked).await?;
    let (client, base) = command.whose.reach().await?;
    let mut version = versions::stage(&client, &base, wasm).await?;
    if command.activate {
        version = activation::put_to_work(&client, &base, &version, None, &command.consent).await?;
    }
    if let (Some((path, mut lock)), Some(pulled)) = (lock, pulled) {
        lock.put(locked(&pulled, &version));
        lock.write(path)?;
    }
    output::done(command.whose.at.json, &is_now(&version), &version)
}

/// The bytes, and where they came from if that was a registry.
async fn component(command: &Add) -> Result<(Vec<u8>, Option<Pulled>)> {
    if let Some(reference) = registry::named(&command.path) {
        let mut pulled = artifact::pull(&reference?, &command.registry, &command.trust).await?;
        return Ok((std::mem::take(&mut pulled.wasm), Some(pulled)));
    }
    let path = match command.path.is_dir() {
        true => build::component(&command.path, &command.how, None).await?,
        false => command.path.clone(),
    };
    Ok((local::component(&path)?, None))
}

/// What is kept of a version that came from a registry.
pub fn locked(pulled: &Pulled, version: &Value) -> Locked {
    let said = |member: &str| Some(text(version, member).to_owned());
    Locked {
        name: said("name"),
        version: said("version"),
        reference: pulled.reference.to_string(),
        digest: Some(pulled.digest.clone()),
        component: Some(pulled.component.clone()),
        signed_by: pulled.signed_by.first().map(PublicKey::fingerprint),
    }
}
