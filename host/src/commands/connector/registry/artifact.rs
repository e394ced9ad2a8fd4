//! A connector as the CNCF lays out WebAssembly in a registry: one layer with the component, and a configuration that says what it exports.
//! <https://tag-runtime.cncf.io/wgs/wasm/deliverables/wasm-oci-artifact/>

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use oci_client::Reference;
use oci_client::annotations::{ORG_OPENCONTAINERS_IMAGE_TITLE, ORG_OPENCONTAINERS_IMAGE_VERSION};
use oci_client::manifest::{OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest};
use serde_json::json;
use souk_app::connectors::COMPONENT_BYTES_MAX;
use souk_sandbox::ConnectorInfo;

use super::signature::{PublicKey, Trust};
use super::{Registry, RegistryArgs, digest};

const CONFIG: &str = "application/vnd.wasm.config.v0+json";
const COMPONENT: &str = "application/wasm";

/// A component from a registry.
pub struct Pulled {
    /// As it was asked for.
    pub reference: Reference,
    /// Of the manifest: what `@sha256:…` names.
    pub digest: String,
    /// Of the component, as a host shows it.
    pub component: String,
    /// Those of the trusted keys that have signed it.
    pub signed_by: Vec<PublicKey>,
    pub wasm: Vec<u8>,
}

/// Reads the component that a reference names, once it is known to be small enough and signed by whom the operator believes.
pub async fn pull(reference: &Reference, args: &RegistryArgs, trust: &Trust) -> Result<Pulled> {
    let keys = trust.keys()?;
    let registry = Registry::of(reference, args)?;
    let (manifest, digest) = registry.manifest(reference).await?.with_context(|| {
        format!("{reference} is not there: the registry knows no such tag or digest")
    })?;
    let layer = component_of(&manifest, reference)?;
    // From here on by digest: a tag may be put elsewhere meanwhile.
    let pinned = reference.clone_with_digest(digest.clone());
    let signed_by = match keys.is_empty() {
        true => Vec::new(),
        false => registry.signers(&pinned, &digest, &keys).await?,
    };
    if signed_by.is_empty() {
        ensure!(
            trust.allow_unsigned,
            "{pinned} is signed by none of the trusted keys: nothing of it was read. --trusted-key names another one, --allow-unsigned takes it \
             all the same"
        );
        eprintln!("souk: no trusted key has signed {pinned}");
    }
    let wasm = registry.blob(&pinned, layer, COMPONENT_BYTES_MAX).await?;
    Ok(Pulled {
        reference: reference.clone(),
        digest,
        component: layer.digest.clone(),
        signed_by,
        wasm,
    })
}

fn component_of<'m>(
    manifest: &'m OciImageManifest,
    reference: &Reference,
) -> Result<&'m OciDescriptor> {
    ensure!(
        manifest.config.media_type == CONFIG,
        "{reference} is no WebAssembly artifact: its configuration is {:?}, not {CONFIG:?}. `souk connector push` makes one",
        manifest.config.media_type
    );
    let [layer] = &manifest.layers[..] else {
        bail!(
            "{reference} has {} layers: a connector is one component",
            manifest.layers.len()
        );
    };
    ensure!(
        layer.media_type == COMPONENT,
        "{reference} holds {:?}, and a connector is {COMPONENT:?}",
        layer.media_type
    );
    Ok(layer)
}

/// Puts a component under the reference's tag and answers the digest of its manifest. The same component again has the same digest.
pub async fn push(
    registry: &Registry,
    reference: &Reference,
    info: &ConnectorInfo,
    wasm: Vec<u8>,
) -> Result<String> {
    let layer = OciDescriptor {
        media_type: COMPONENT.to_owned(),
        digest: digest(&wasm),
        size: wasm.len() as i64,
        ..OciDescriptor::default()
    };
    let config = config(info, &layer.digest);
    let annotations = BTreeMap::from([
        (ORG_OPENCONTAINERS_IMAGE_TITLE.to_owned(), info.name.clone()),
        (
            ORG_OPENCONTAINERS_IMAGE_VERSION.to_owned(),
            info.version.clone(),
        ),
    ]);
    let manifest = OciImageManifest {
        media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()),
        config: OciDescriptor {
            media_type: CONFIG.to_owned(),
            digest: digest(&config),
            size: config.len() as i64,
            ..OciDescriptor::default()
        },
        layers: vec![layer],
        annotations: Some(annotations),
        ..OciImageManifest::default()
    };
    registry.push_blob(reference, wasm).await?;
    registry.push_blob(reference, config).await?;
    registry.push_manifest(reference, &manifest).await
}

fn config(info: &ConnectorInfo, component: &str) -> Vec<u8> {
    let config = json!({
        // No time of day: it would give the same component another digest at each push.
        "created": "1970-01-01T00:00:00Z",
        "architecture": "wasm", "os": "wasip2",
        "layerDigests": [component],
        "component": {"exports": info.exports, "imports": info.imports, "target": null},
    });
    config.to_string().into_bytes()
}
