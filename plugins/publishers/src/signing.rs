//! HMAC-SHA256, as webhooks and tokens are signed.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

pub fn hmac_sha256(key: &[u8], signed: &[u8]) -> Vec<u8> {
    match <Hmac<Sha256> as KeyInit>::new_from_slice(key) {
        Ok(mut mac) => {
            mac.update(signed);
            mac.finalize().into_bytes().to_vec()
        }
        // A key of any length is one.
        Err(_) => Vec::new(),
    }
}
