//! The password for a server that says its public key, on a wire that nothing protects: `caching_sha2_password` and `sha256_password`.
//!
//! Who is in the wire may say a key of their own: TLS is what prevents that. This keeps the password from those who only listen.

use crate::secrets::clear;
use rsa::pkcs8::DecodePublicKey;
use rsa::{Oaep, RsaPublicKey};
use sha1::Sha1;
use souk_sdk::Error;

/// No server's key is longer in PEM; reading a hostile one must not take long.
const PEM_BYTES_MAX: usize = 4 << 10;

pub fn sealed(password: &str, nonce: &[u8], pem: &[u8]) -> Result<Vec<u8>, Error> {
    let refused = || {
        Error::source_failed(
            "bad_public_key",
            "the database's public key cannot be used to send the password",
        )
    };
    let pem = std::str::from_utf8(pem)
        .ok()
        .filter(|pem| pem.len() <= PEM_BYTES_MAX && !nonce.is_empty())
        .ok_or_else(refused)?;
    let key = RsaPublicKey::from_public_key_pem(pem.trim_end_matches('\0'))
        .map_err(|error| refused().detail(error.to_string()))?;
    let mixed: Vec<u8> = clear(password)
        .iter()
        .zip(nonce.iter().cycle())
        .map(|(byte, mask)| byte ^ mask)
        .collect();
    key.encrypt(&mut Random, Oaep::<Sha1>::new(), &mixed)
        .map_err(|error| refused().detail(error.to_string()))
}

/// The host's random bytes.
struct Random;

impl rsa::rand_core::TryRng for Random {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        // A host always has some: a session that cannot have any must not go on.
        getrandom::fill(bytes).expect("random bytes");
        Ok(())
    }
}

impl rsa::rand_core::TryCryptoRng for Random {}
