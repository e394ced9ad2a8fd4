//! Tokens that a connector signs itself (JWT, RS256) by a private key in PEM, and keeps while they are good.
//!
//! What stands in a token is the connector's business, byte for byte: vendors' own programs are held against it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// No key of 4096 bits is longer in PEM, and reading a larger one would take longer than a call may.
const PEM_BYTES_MAX: usize = 4 << 10;

/// A private key that signs: RSASSA-PKCS1-v1_5 with SHA-256.
pub struct Key(imp::Key);

impl Key {
    /// Reads a key in PEM (PKCS #8). The error says what is wrong with it, and nothing of what stands in it.
    pub fn parse(pem: &str) -> Result<Key, String> {
        match pem.len() {
            ..=PEM_BYTES_MAX => imp::parse(pem).map(Key),
            _ => Err("it is longer than a key of 4096 bits".to_owned()),
        }
    }

    /// A JWT of this header and these claims, which are JSON.
    pub fn token(&self, header: &str, claims: &str) -> Result<String, String> {
        let signed = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(claims)
        );
        let signature = imp::sign(&self.0, signed.as_bytes())?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// SHA-256 of the public key, as `SubjectPublicKeyInfo` has it in DER.
    pub fn fingerprint(&self) -> Result<[u8; 32], String> {
        imp::fingerprint(&self.0)
    }
}

/// A token that is made anew before it is too old.
pub struct Kept {
    renewed_after_s: u64,
    made: Option<(u64, String)>,
}

impl Kept {
    pub fn new(renewed_after_s: u64) -> Kept {
        Kept {
            renewed_after_s,
            made: None,
        }
    }

    /// Makes a new one where there is none that is good at `now`. The host's clock may fall: one of the future would not be taken.
    pub fn renew<E>(
        &mut self,
        now: u64,
        make: impl FnOnce() -> Result<String, E>,
    ) -> Result<(), E> {
        let is_good = |made: u64| (made..made.saturating_add(self.renewed_after_s)).contains(&now);
        if !self.made.as_ref().is_some_and(|(made, _)| is_good(*made)) {
            self.made = Some((now, format!("Bearer {}", make()?)));
        }
        Ok(())
    }

    /// The token in use, as the header `authorization` has it: each request does. Nothing before there was one.
    pub fn authorization(&self) -> &str {
        self.made.as_ref().map_or("", |(_, value)| value)
    }
}

/// In a component.
#[cfg(target_arch = "wasm32")]
mod imp {
    use rsa::RsaPrivateKey;
    use rsa::pkcs1v15::SigningKey;
    use rsa::pkcs8::{DecodePrivateKey, EncodePublicKey};
    use rsa::sha2::{Digest, Sha256};
    use rsa::signature::{SignatureEncoding, Signer};

    pub type Key = SigningKey<Sha256>;

    pub fn parse(pem: &str) -> Result<Key, String> {
        let key = RsaPrivateKey::from_pkcs8_pem(pem);
        key.map(SigningKey::new).map_err(|error| error.to_string())
    }

    pub fn sign(key: &Key, message: &[u8]) -> Result<Vec<u8>, String> {
        let signature = key.try_sign(message);
        signature
            .map(|signature| signature.to_vec())
            .map_err(|error| error.to_string())
    }

    pub fn fingerprint(key: &Key) -> Result<[u8; 32], String> {
        let key: &RsaPrivateKey = key.as_ref();
        let public = key.to_public_key().to_public_key_der();
        let public = public.map_err(|error| error.to_string())?;
        Ok(Sha256::digest(public.as_bytes()).into())
    }
}

/// In tests, which run natively: the component's crate would have half of the workspace built anew. A signature of this kind has nothing
/// random in it, so that the two can only be equal.
#[cfg(not(target_arch = "wasm32"))]
mod imp {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use ring::digest;
    use ring::rand::SystemRandom;
    use ring::signature::{KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};

    /// `rsaEncryption`, with the NULL behind it.
    const RSA: [u8; 15] = [
        0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
    ];

    pub type Key = RsaKeyPair;

    pub fn parse(pem: &str) -> Result<Key, String> {
        let base64: String = pem
            .lines()
            .filter(|line| !line.starts_with("-----"))
            .collect();
        let der = STANDARD.decode(base64).map_err(|error| error.to_string())?;
        RsaKeyPair::from_pkcs8(&der).map_err(|error| error.to_string())
    }

    pub fn sign(key: &Key, message: &[u8]) -> Result<Vec<u8>, String> {
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(
            &RSA_PKCS1_SHA256,
            &SystemRandom::new(),
            message,
            &mut signature,
        )
        .map_err(|error| error.to_string())?;
        Ok(signature)
    }

    pub fn fingerprint(key: &Key) -> Result<[u8; 32], String> {
        let key = key.public_key().as_ref();
        let bits = tagged(0x03, [&[0], key].concat());
        let public = tagged(0x30, [&RSA[..], &bits].concat());
        let hash = digest::digest(&digest::SHA256, &public);
        <[u8; 32]>::try_from(hash.as_ref()).map_err(|error| error.to_string())
    }

    /// A value in DER, of less than 64 KiB.
    fn tagged(tag: u8, value: Vec<u8>) -> Vec<u8> {
        let [high, low] = (value.len() as u16).to_be_bytes();
        let mut der = match value.len() {
            0..0x80 => vec![tag, low],
            0x80..0x100 => vec![tag, 0x81, low],
            _ => vec![tag, 0x82, high, low],
        };
        der.extend(value);
        der
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made again before it is too old, and where the clock has fallen; not in between.
    #[test]
    fn a_token_is_kept_while_it_is_good() {
        let mut kept = Kept::new(3_000);
        assert_eq!(kept.authorization(), "");
        for (now, wanted) in [
            (10_000, "Bearer 10000"),
            (12_999, "Bearer 10000"),
            (13_000, "Bearer 13000"),
            (10_000, "Bearer 10000"),
            (13_000, "Bearer 13000"),
        ] {
            kept.renew(now, || Ok::<_, ()>(now.to_string())).unwrap();
            assert_eq!(kept.authorization(), wanted);
        }
        assert_eq!(kept.renew(99_999, || Err("no")), Err("no"));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for pem in [
            "",
            "sample",
            &"x".repeat(5_000),
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        ] {
            assert!(Key::parse(pem).is_err(), "{pem}");
        }
    }
}
