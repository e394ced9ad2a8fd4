//! `souk connector push`: an author's component into a registry, signed where a key is given.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::json;
use souk_app::connectors::COMPONENT_BYTES_MAX;
use souk_conformance::{KitError, describe};

use super::local;
use super::quick::{self, Unchecked};
use super::registry::signature::SigningKey;
use super::registry::{self, Registry, RegistryArgs, artifact};
use crate::commands::output;

#[derive(Args)]
pub struct Push {
    /// The component: a .wasm file.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Where it goes: oci://registry.example/acme/hello:1.2
    #[arg(value_name = "REFERENCE")]
    reference: String,

    /// Sign it as cosign does, with this private key: ECDSA on P-256, PKCS #8 in PEM, without a passphrase.
    #[arg(long, env = "SOUK_SIGN_KEY", value_name = "FILE")]
    sign_key: Option<PathBuf>,

    #[command(flatten)]
    registry: RegistryArgs,

    #[command(flatten)]
    unchecked: Unchecked,

    /// Print JSON, for scripts.
    #[arg(long)]
    json: bool,
}

/// Whether the component is one that a host would take.
pub async fn run(command: Push) -> Result<bool> {
    let reference = registry::parse(&command.reference)?;
    ensure!(
        reference.digest().is_none(),
        "{reference} names a digest, which the registry makes of what it gets: name a tag"
    );
    // Before anything is there that would have to be signed afterwards.
    let key = command.sign_key.as_deref().map(SigningKey::read);
    let key = key.transpose()?;
    let wasm = local::component(&command.file)?;
    ensure!(
        wasm.len() <= COMPONENT_BYTES_MAX,
        "{} has {} bytes, and a host takes {COMPONENT_BYTES_MAX} at most",
        command.file.display(),
        wasm.len()
    );
    let info = match describe(wasm.clone(), local::sandbox_options()?).await {
        Ok(info) => info,
        Err(KitError::Load(refused)) => {
            eprintln!("souk: no host would take it, so it is not pushed: {refused}");
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    };
    quick::hold(&wasm, &command.unchecked).await?;
    let registry = Registry::of(&reference, &command.registry)?;
    let digest = artifact::push(&registry, &reference, &info, wasm).await?;
    let signed_by = match &key {
        Some(key) => Some(registry.sign(&reference, &digest, key).await?.fingerprint()),
        None => None,
    };
    let by = match &signed_by {
        Some(fingerprint) => format!(", signed by {fingerprint}"),
        None => ", not signed".to_owned(),
    };
    let sentence = format!(
        "{} {} is at oci://{}@{digest}{by}",
        info.name, info.version, reference
    );
    let value = json!({
        "name": info.name, "version": info.version, "reference": reference.to_string(),
        "digest": digest, "component": format!("sha256:{}", info.digest), "signed_by": signed_by,
    });
    output::done(command.json, &sentence, &value)?;
    Ok(true)
}
