//! Where cosign keeps signatures: as layers of a manifest beside the artifact, under the tag `sha256-<digest>.sig`, each payload with its signature
//! in an annotation.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use oci_client::Reference;
use oci_client::manifest::{
    IMAGE_CONFIG_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest,
};
use serde_json::json;

use super::signature::{self, PublicKey, SigningKey};
use super::{Registry, digest};

const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// A payload takes some hundred bytes, of which an annotation or two may make more.
const PAYLOAD_BYTES_MAX: usize = 64 << 10;
/// As many people sign a version; each costs a request.
const SIGNATURES_MAX: usize = 32;

impl Registry {
    /// Those of the keys that have signed the manifest of this digest.
    pub async fn signers(
        &self,
        reference: &Reference,
        manifest: &str,
        keys: &[PublicKey],
    ) -> Result<Vec<PublicKey>> {
        let at = beside(reference, manifest);
        match self.manifest(&at).await? {
            Some((found, _)) => self.signers_in(&at, &found, manifest, keys).await,
            None => Ok(Vec::new()),
        }
    }

    async fn signers_in(
        &self,
        at: &Reference,
        found: &OciImageManifest,
        manifest: &str,
        keys: &[PublicKey],
    ) -> Result<Vec<PublicKey>> {
        let mut signers = Vec::new();
        let payloads = found.layers.iter();
        let payloads = payloads.filter(|layer| layer.media_type == PAYLOAD);
        for layer in payloads.take(SIGNATURES_MAX) {
            let annotations = layer.annotations.as_ref();
            let Some(signature) = annotations.and_then(|all| all.get(SIGNATURE)) else {
                continue;
            };
            let payload = self.blob(at, layer, PAYLOAD_BYTES_MAX).await?;
            if let Some(key) = signature::signer(keys, &payload, signature, manifest)
                && !signers.contains(key)
            {
                signers.push(key.clone());
            }
        }
        Ok(signers)
    }

    /// Signs the manifest of this digest, beside those who have signed it. Who has signed it already does nothing.
    pub async fn sign(
        &self,
        reference: &Reference,
        manifest: &str,
        key: &SigningKey,
    ) -> Result<PublicKey> {
        let public = key.public()?;
        let at = beside(reference, manifest);
        let mut layers = Vec::new();
        if let Some((found, _)) = self.manifest(&at).await? {
            let own = std::slice::from_ref(&public);
            let signers = self.signers_in(&at, &found, manifest, own).await?;
            if !signers.is_empty() {
                return Ok(public);
            }
            layers = found.layers;
        }
        if layers.len() >= SIGNATURES_MAX {
            bail!("{at} holds {SIGNATURES_MAX} signatures already, and no more are read");
        }
        let repository = format!("{}/{}", reference.registry(), reference.repository());
        let payload = signature::payload(&repository, manifest)?;
        let signature = key.sign(&payload)?;
        layers.push(OciDescriptor {
            media_type: PAYLOAD.to_owned(),
            digest: digest(&payload),
            size: payload.len() as i64,
            annotations: Some(BTreeMap::from([(SIGNATURE.to_owned(), signature)])),
            ..OciDescriptor::default()
        });
        let config = config(&layers);
        let signatures = OciImageManifest {
            media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()),
            config: OciDescriptor {
                media_type: IMAGE_CONFIG_MEDIA_TYPE.to_owned(),
                digest: digest(&config),
                size: config.len() as i64,
                ..OciDescriptor::default()
            },
            layers,
            ..OciImageManifest::default()
        };
        self.push_blob(&at, payload).await?;
        self.push_blob(&at, config).await?;
        self.push_manifest(&at, &signatures).await?;
        let own = std::slice::from_ref(&public);
        let seen = self.signers(reference, manifest, own).await?;
        ensure!(
            !seen.is_empty(),
            "{at} does not hold the signature that was put there: somebody else has signed at the same moment. Push again"
        );
        Ok(public)
    }
}

/// Where the signatures of a manifest are.
fn beside(reference: &Reference, manifest: &str) -> Reference {
    Reference::with_tag(
        reference.registry().to_owned(),
        reference.repository().to_owned(),
        format!("{}.sig", manifest.replace(':', "-")),
    )
}

/// What cosign writes: an image of nothing but these layers.
fn config(layers: &[OciDescriptor]) -> Vec<u8> {
    let digests: Vec<&str> = layers.iter().map(|layer| layer.digest.as_str()).collect();
    let config = json!({
        "architecture": "", "os": "", "created": "0001-01-01T00:00:00Z", "config": {},
        "rootfs": {"type": "layers", "diff_ids": digests},
    });
    config.to_string().into_bytes()
}
