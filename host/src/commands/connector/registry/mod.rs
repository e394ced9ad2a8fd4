//! Connectors in an OCI registry: what is there by a tag or a digest ([`artifact`]), and whose word stands for it ([`signature`]).
//!
//! It is the command that speaks to a registry, with its user's login and over its user's network; the host is given bytes, as ever
//! (decision 38). Nothing here knows a host.

pub mod artifact;
pub mod signature;
mod signed;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use bytes::Bytes;
use clap::Args;
use docker_credential::{CredentialRetrievalError, DockerCredential};
use futures_util::StreamExt;
use oci_client::Reference;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::manifest::{OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest, OciManifest};
use oci_client::secrets::RegistryAuth;
use reqwest::header::HeaderValue;
use sha2::{Digest, Sha256};

use crate::commands::client;
use crate::commands::output::plain;
use crate::commands::progress;

/// What a reference begins with where a file could be meant.
const SCHEME: &str = "oci://";
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// A registry that says nothing for so long has gone.
const SILENT_MAX: Duration = Duration::from_secs(60);
/// A docker login is kept for Docker Hub under this name.
const DOCKER_HUB_LOGIN: &str = "https://index.docker.io/v1/";

/// How a registry is spoken to.
#[derive(Args)]
pub struct RegistryArgs {
    /// Speak http to the registry, not https: for one on this machine. What is pulled is still held against its digest and signature.
    #[arg(long, help_heading = "Registry")]
    pub plain_http: bool,
}

/// What `oci://…` names, if that is what the path says.
pub fn named(path: &Path) -> Option<Result<Reference>> {
    let text = path.to_str()?.strip_prefix(SCHEME)?;
    Some(parse(text))
}

/// `registry.example/acme/hello:1.2` or `…@sha256:…`, with or without the scheme.
pub fn parse(text: &str) -> Result<Reference> {
    let bare = text.strip_prefix(SCHEME).unwrap_or(text);
    let registry = bare.split('/').next().unwrap_or_default();
    // Elsewhere a name without a registry means Docker Hub: here it is a slip of the pen.
    ensure!(
        registry.contains(['.', ':']) || registry == "localhost",
        "{text:?} names no registry: write it as in oci://registry.example/acme/hello:1.2"
    );
    bare.parse().with_context(|| {
        format!("{text:?} is no reference: write it as in oci://registry.example/acme/hello:1.2")
    })
}

pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// Whether this is a digest of the only kind that is known here, and nothing that leads a request or a terminal astray.
pub fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256:").unwrap_or_default();
    hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A client of one registry, with the login that `docker login` has kept for it.
pub struct Registry {
    client: oci_client::Client,
    auth: RegistryAuth,
    name: String,
}

impl Registry {
    pub fn of(reference: &Reference, args: &RegistryArgs) -> Result<Registry> {
        client::use_ring();
        let name = reference.resolve_registry().to_owned();
        let protocol = match args.plain_http {
            true => ClientProtocol::Http,
            false => ClientProtocol::Https,
        };
        let client = oci_client::Client::try_from(ClientConfig {
            protocol,
            connect_timeout: Some(CONNECT_WITHIN),
            read_timeout: Some(SILENT_MAX),
            user_agent: concat!("souk/", env!("CARGO_PKG_VERSION")),
            ..ClientConfig::default()
        });
        Ok(Registry {
            client: client.context("this machine's certificates cannot be used")?,
            auth: login(&name)?,
            name,
        })
    }

    /// The manifest and its digest, which the bytes were held against. `None`: there is none by this tag or digest.
    async fn manifest(&self, reference: &Reference) -> Result<Option<(OciImageManifest, String)>> {
        let (manifest, digest) = match self.client.pull_manifest(reference, &self.auth).await {
            Ok(found) => found,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        ensure!(
            is_digest(&digest),
            "{reference} has the digest {digest:?}: only sha256 is known here"
        );
        match manifest {
            OciManifest::Image(manifest) => Ok(Some((manifest, digest))),
            OciManifest::ImageIndex(_) => {
                bail!("{reference} is a list for several platforms: a connector is one artifact")
            }
        }
    }

    /// The bytes of a blob, which are those of its digest. `bytes_max` holds for what the manifest says of it before anything is read, and for what
    /// is read whatever the manifest says.
    async fn blob(
        &self,
        reference: &Reference,
        blob: &OciDescriptor,
        bytes_max: usize,
    ) -> Result<Vec<u8>> {
        ensure!(
            is_digest(&blob.digest),
            "{reference} names something by {:?}: only digests of sha256 are known here",
            blob.digest
        );
        let size = usize::try_from(blob.size).unwrap_or(usize::MAX);
        ensure!(
            size <= bytes_max,
            "{} of {reference} has {size} bytes, and may have {bytes_max}: nothing of it was read",
            blob.digest
        );
        // Not the descriptor: its `urls` could send this machine anywhere.
        let stream = self
            .client
            .pull_blob_stream(reference, blob.digest.as_str());
        let mut stream = stream.await.map_err(|error| self.failed(error))?;
        let mut bytes = Vec::with_capacity(size);
        let progress = progress::bytes("pulled", Some(size as u64));
        while let Some(next) = stream.next().await {
            let next = next.map_err(|error| {
                anyhow!("{} of {reference} cannot be used: {error}", blob.digest)
            })?;
            ensure!(
                bytes.len() + next.len() <= size,
                "{} of {reference} is longer than the {size} bytes that its manifest says",
                blob.digest
            );
            bytes.extend_from_slice(&next);
            progress.set_position(bytes.len() as u64);
        }
        Ok(bytes)
    }

    async fn push_blob(&self, reference: &Reference, bytes: Vec<u8>) -> Result<()> {
        self.client
            .store_auth_if_needed(&self.name, &self.auth)
            .await;
        let digest = digest(&bytes);
        let _busy = progress::busy("pushing");
        let pushed = self.client.push_blob(reference, bytes, &digest).await;
        pushed.map(drop).map_err(|error| self.failed(error))
    }

    /// Puts a manifest under the reference's tag. The answer is the digest of what was sent, not of what the registry says it got.
    async fn push_manifest(
        &self,
        reference: &Reference,
        manifest: &OciImageManifest,
    ) -> Result<String> {
        let bytes = Bytes::from(serde_json::to_vec(manifest)?);
        let digest = digest(&bytes);
        let kind = HeaderValue::from_static(OCI_IMAGE_MEDIA_TYPE);
        let pushed = self.client.push_manifest_raw(reference, bytes, kind).await;
        pushed.map_err(|error| self.failed(error))?;
        Ok(digest)
    }

    /// What the registry refused with, and what to do about it.
    fn failed(&self, error: OciDistributionError) -> Error {
        let name = &self.name;
        if wants_login(&error) {
            return anyhow!(
                "{name} lets nobody in without a login, or not this one: `docker login {name}` keeps one for this command"
            );
        }
        match error {
            OciDistributionError::RequestError(error) => {
                let mut reason: &dyn std::error::Error = &error;
                while let Some(source) = reason.source() {
                    reason = source;
                }
                anyhow!(
                    "{name} cannot be reached: {reason}. Is it there? One that speaks http wants --plain-http"
                )
            }
            OciDistributionError::DigestError(error) => {
                anyhow!("what {name} sent is not what it was asked for: {error}")
            }
            error => anyhow!("{name} says: {}", plain(&error.to_string())),
        }
    }
}

fn login(registry: &str) -> Result<RegistryAuth> {
    let kept_for = match registry {
        "index.docker.io" => DOCKER_HUB_LOGIN,
        registry => registry,
    };
    match docker_credential::get_credential(kept_for) {
        Ok(DockerCredential::UsernamePassword(user, password)) => {
            Ok(RegistryAuth::Basic(user, password))
        }
        Ok(DockerCredential::IdentityToken(_)) => bail!(
            "the login that docker keeps for {registry} is an identity token, which only docker can use: log in with a user and a password or token"
        ),
        // A file that is not there cannot be told from one that cannot be read.
        Err(
            CredentialRetrievalError::ConfigNotFound
            | CredentialRetrievalError::ConfigReadError
            | CredentialRetrievalError::NoCredentialConfigured,
        ) => Ok(RegistryAuth::Anonymous),
        Err(error) => Err(anyhow!(
            "the login that docker keeps for {registry} cannot be used: {error}"
        )),
    }
}

fn is_absent(error: &OciDistributionError) -> bool {
    match error {
        OciDistributionError::RegistryError { envelope, .. } => {
            envelope.errors.iter().any(|error| {
                matches!(
                    error.code,
                    OciErrorCode::ManifestUnknown
                        | OciErrorCode::NameUnknown
                        | OciErrorCode::NotFound
                )
            })
        }
        OciDistributionError::ServerError { code, .. } => *code == 404,
        OciDistributionError::ImageManifestNotFoundError(_) => true,
        _ => false,
    }
}

fn wants_login(error: &OciDistributionError) -> bool {
    match error {
        OciDistributionError::UnauthorizedError { .. }
        | OciDistributionError::AuthenticationFailure(_) => true,
        OciDistributionError::ServerError { code, .. } => matches!(code, 401 | 403),
        OciDistributionError::RegistryError { envelope, .. } => {
            envelope.errors.iter().any(|error| {
                matches!(
                    error.code,
                    OciErrorCode::Unauthorized | OciErrorCode::Denied
                )
            })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file stays a file, and a name without a registry is not silently looked for on Docker Hub.
    #[test]
    fn references_name_their_registry() {
        let reference = |text: &str| named(Path::new(text)).map(|parsed| parsed.map(String::from));
        let tagged = reference("oci://registry.example/acme/hello:1.2");
        assert_eq!(tagged.unwrap().unwrap(), "registry.example/acme/hello:1.2");
        let pinned = format!("oci://127.0.0.1:5000/hello@sha256:{}", "a".repeat(64));
        assert_eq!(
            reference(&pinned).unwrap().unwrap(),
            pinned.strip_prefix(SCHEME).unwrap()
        );
        assert!(reference("hello.wasm").is_none());
        for odd in [
            "oci://acme/hello:1.2",
            "oci://registry.example/Acme",
            "oci://",
        ] {
            let refused = reference(odd).unwrap().unwrap_err().to_string();
            assert!(refused.contains("oci://registry.example/"), "{refused}");
        }
    }
}
