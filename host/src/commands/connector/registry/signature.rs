//! Signatures as cosign makes them: a payload of JSON that names the digest of a manifest ("simple signing"), signed with ECDSA on P-256 over
//! SHA-256. Keys are PEM files, as cosign and openssl write them.
//!
//! Nothing here knows a registry. Certificates, identities and the transparency log of sigstore are not asked: an operator says which keys are
//! believed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use serde::{Deserialize, Serialize};

use super::digest;

/// What the payload says that it is.
const KIND: &str = "cosign container image signature";
/// What stands before the point in a public key of P-256 (RFC 5480): the algorithm, the curve, and that the point is uncompressed, as everybody
/// writes it.
const P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// 0x04 and two coordinates.
const POINT_BYTES: usize = 65;
const HOW_TO_MAKE: &str =
    "`openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out signing.pem` makes one";

/// Whose signatures are believed.
#[derive(Args)]
pub struct Trust {
    /// A public key (PEM, P-256; cosign.pub) whose signature is believed. Repeatable. What comes from a registry is taken with a signature of one
    /// of them only.
    #[arg(
        long = "trusted-key",
        env = "SOUK_TRUSTED_KEYS",
        value_name = "FILE",
        value_delimiter = ',',
        help_heading = "Registry"
    )]
    trusted_keys: Vec<PathBuf>,

    /// Take from a registry what no trusted key has signed, too.
    #[arg(long, help_heading = "Registry")]
    pub allow_unsigned: bool,
}

impl Trust {
    pub fn keys(&self) -> Result<Vec<PublicKey>> {
        let keys = self.trusted_keys.iter().map(|path| PublicKey::read(path));
        let keys = keys.collect::<Result<Vec<PublicKey>>>()?;
        ensure!(
            self.allow_unsigned || !keys.is_empty(),
            "nobody says whose signature is believed: name a public key with --trusted-key (or SOUK_TRUSTED_KEYS), or take what nobody has signed \
             with --allow-unsigned"
        );
        Ok(keys)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    point: [u8; POINT_BYTES],
}

impl PublicKey {
    pub fn read(path: &Path) -> Result<PublicKey> {
        let pem = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        PublicKey::parse(&pem).with_context(|| path.display().to_string())
    }

    fn parse(pem: &[u8]) -> Result<PublicKey> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem)
            .map_err(|error| anyhow!("this is no public key in PEM: {error}"))?;
        let point = der.strip_prefix(&P256[..]);
        let point = point.and_then(|point| point.try_into().ok()).context(
            "this is a key of another kind: signatures are ECDSA on P-256, as cosign makes them",
        )?;
        Ok(PublicKey { point })
    }

    /// SHA-256 of the key as DER: `openssl pkey -pubin -in FILE -outform DER | sha256sum`.
    pub fn fingerprint(&self) -> String {
        digest(&[&P256[..], &self.point].concat())
    }

    pub fn has_signed(&self, payload: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.point)
            .verify(payload, signature)
            .is_ok()
    }
}

pub struct SigningKey(EcdsaKeyPair);

impl SigningKey {
    pub fn read(path: &Path) -> Result<SigningKey> {
        let pem = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        // What is wrong with it is not repeated: it is a secret.
        let der = PrivatePkcs8KeyDer::from_pem_slice(&pem).map_err(|_| {
            anyhow!(
                "{} holds no private key in PKCS #8 without a passphrase: {HOW_TO_MAKE}",
                path.display()
            )
        })?;
        let pair = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_ASN1_SIGNING,
            der.secret_pkcs8_der(),
            &SystemRandom::new(),
        );
        pair.map(SigningKey).map_err(|_| {
            anyhow!(
                "{} holds a key of another kind: signatures are ECDSA on P-256. {HOW_TO_MAKE}",
                path.display()
            )
        })
    }

    pub fn public(&self) -> Result<PublicKey> {
        let point = self.0.public_key().as_ref().try_into();
        let point = point.context("a public key of P-256 has 65 bytes")?;
        Ok(PublicKey { point })
    }

    /// The signature in ASN.1 and base64, as it stands in an annotation.
    pub fn sign(&self, payload: &[u8]) -> Result<String> {
        let signed = self.0.sign(&SystemRandom::new(), payload);
        let signature = signed.map_err(|_| anyhow!("this machine has no random numbers"))?;
        Ok(STANDARD.encode(signature))
    }
}

#[derive(Serialize, Deserialize)]
struct Payload {
    critical: Critical,
    /// Whatever its signer adds.
    #[serde(default)]
    optional: serde_json::Value,
}

#[derive(Serialize, Deserialize)]
struct Critical {
    identity: Identity,
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Serialize, Deserialize)]
struct Identity {
    #[serde(rename = "docker-reference")]
    reference: String,
}

#[derive(Serialize, Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

/// What is signed of a manifest in a repository.
pub fn payload(repository: &str, digest: &str) -> Result<Vec<u8>> {
    let payload = Payload {
        critical: Critical {
            identity: Identity {
                reference: repository.to_owned(),
            },
            image: Image {
                digest: digest.to_owned(),
            },
            kind: KIND.to_owned(),
        },
        optional: serde_json::Value::Null,
    };
    Ok(serde_json::to_vec(&payload)?)
}

/// Which of the keys has signed, with this signature in base64, that it stands for the manifest of this digest. The repository that the payload
/// names is not looked at: a mirror has another name, and the digest says which bytes are meant.
pub fn signer<'k>(
    keys: &'k [PublicKey],
    payload: &[u8],
    signature: &str,
    digest: &str,
) -> Option<&'k PublicKey> {
    let signature = STANDARD.decode(signature.trim()).ok()?;
    // Before a word of it is read.
    let key = keys
        .iter()
        .find(|key| key.has_signed(payload, &signature))?;
    let said: Payload = serde_json::from_slice(payload).ok()?;
    (said.critical.kind == KIND && said.critical.image.digest == digest).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by cosign; the vector of sigstore-rs's own tests (`src/cosign/signature_layers.rs`).
    const COSIGN_KEY: &[u8] = b"-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAENptdY/l3nB0yqkXLBWkZWQwo6+cu
OSWS1X9vPavpiQOoTTGC0xX57OojUadxF1cdQmrsiReWg2Wn4FneJfa8xw==
-----END PUBLIC KEY-----";
    const OTHER_KEY: &[u8] = b"-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAETJP9cqpUQsn2ggmJniWGjHdlsHzD
JsB89BPhZYch0U0hKANx5TY+ncrm0s8bfJxxHoenAEFhwhuXeb4PqIrtoQ==
-----END PUBLIC KEY-----";
    const COSIGN_SIGNATURE: &str = "MEUCIQD6q/COgzOyW0YH1Dk+CCYSt4uAhm3FDHUwvPI55zwnlwIgE0ZK58ZOWpZw8YVmBapJhBqCfdPekIknimuO0xH8Jh8=";
    const SIGNED: &str = "sha256:f3cfc9d0dbf931d3db4685ec659b7ac68e2a578219da4aae65427886e649b06b";

    /// Our payload of the same image is cosign's to the byte, so its signature holds for it; for another image, or another key, it does not.
    #[test]
    fn a_signature_of_cosign_is_believed() {
        let keys = [OTHER_KEY, COSIGN_KEY].map(|pem| PublicKey::parse(pem).unwrap());
        let payload = payload("registry-testing.svc.lan/busybox", SIGNED).unwrap();
        let found = signer(&keys, &payload, COSIGN_SIGNATURE, SIGNED);
        assert_eq!(found, Some(&keys[1]));
        let other = SIGNED.replace("f3cf", "0000");
        assert_eq!(signer(&keys, &payload, COSIGN_SIGNATURE, &other), None);
        assert_eq!(signer(&keys[..1], &payload, COSIGN_SIGNATURE, SIGNED), None);
        let changed = [&payload[..], b" "].concat();
        assert_eq!(signer(&keys, &changed, COSIGN_SIGNATURE, SIGNED), None);
        for odd in ["", "no base64", "AAAA"] {
            assert_eq!(signer(&keys, &payload, odd, SIGNED), None, "{odd}");
        }
    }

    /// A key of P-384, and what is no key.
    #[test]
    fn keys_of_another_kind_are_refused() {
        let p384 = b"-----BEGIN PUBLIC KEY-----
MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEyKAdjhS5yHdAYpOKnNLDPtt6zsO+wPmA
whGaQpE6IJoPwpaHHTnUUkMHu/iJJpRGf02JFESOZ8rAQkoZry8N3yxoLgADC0Zz
ggJKfBg1dZlo0t3tZJBwzUS3yAG4JjPX
-----END PUBLIC KEY-----";
        let refused = PublicKey::parse(p384).unwrap_err().to_string();
        assert!(refused.contains("of another kind"), "{refused}");
        let refused = PublicKey::parse(b"hello").unwrap_err().to_string();
        assert!(refused.contains("no public key in PEM"), "{refused}");
    }
}
