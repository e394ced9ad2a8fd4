//! RSASSA-PKCS1-v1_5 with SHA-256, by a key in PEM (PKCS #8), as Google writes it into a key file.

use souk_sdk::Error;

/// No key of 4096 bits is longer in PEM, and reading a larger one would take longer than a call may.
const PEM_BYTES_MAX: usize = 4 << 10;

/// A private key that signs.
pub struct Key(imp::Key);

impl Key {
    pub fn parse(pem: &str) -> Result<Key, Error> {
        let key = match pem.len() {
            ..=PEM_BYTES_MAX => imp::parse(pem),
            _ => Err("it is longer than a key of 4096 bits".to_owned()),
        };
        key.map(Key).map_err(|why| {
            Error::authentication(
                "bad_private_key",
                "the private key cannot be used: give the service account's key file as Google wrote it",
            )
            .detail(why)
        })
    }

    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        imp::sign(&self.0, message).map_err(|why| {
            Error::internal("signing_failed", "the connector could not sign its token").detail(why)
        })
    }
}

/// In the component.
#[cfg(target_arch = "wasm32")]
mod imp {
    use rsa::RsaPrivateKey;
    use rsa::pkcs1v15::SigningKey;
    use rsa::pkcs8::DecodePrivateKey;
    use rsa::sha2::Sha256;
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
}

/// In tests, which run natively: the component's crate would have half of the workspace built anew. A signature of this kind has nothing
/// random in it, so that the two can only be equal.
#[cfg(not(target_arch = "wasm32"))]
mod imp {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use ring::rand::SystemRandom;
    use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};

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
}
