//! What is sent in place of a password: each method's own proof. The cryptography is that of published crates.

use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
use sha1::{Digest as _, Sha1};
use sha2_of_ed25519::{Digest as _, Sha256, Sha512};

/// What `mysql_native_password` and the like are given to mix in.
pub const NONCE_BYTES: usize = 20;
/// What `client_ed25519` signs.
pub const MESSAGE_BYTES: usize = 32;

/// `mysql_native_password`: SHA1(password) XOR SHA1(nonce, SHA1(SHA1(password))).
pub fn native(password: &str, nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password);
    let proof = Sha1::new()
        .chain_update(nonce)
        .chain_update(Sha1::digest(once))
        .finalize();
    xor(&once, &proof)
}

/// `caching_sha2_password`, for a server that remembers the password: SHA256(password) XOR SHA256(SHA256(SHA256(password)) and the nonce).
pub fn caching_sha2(password: &str, nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha256::digest(password);
    let proof = Sha256::new()
        .chain_update(Sha256::digest(once))
        .chain_update(nonce)
        .finalize();
    xor(&once, &proof)
}

/// `client_ed25519`: the nonce, signed with the key that the password's hash is.
pub fn ed25519(password: &str, message: &[u8]) -> Vec<u8> {
    let hash: [u8; 64] = Sha512::digest(password).into();
    let key = ExpandedSecretKey::from_bytes(&hash);
    let public = ed25519_dalek::VerifyingKey::from(&key);
    raw_sign::<Sha512>(&key, message, &public)
        .to_bytes()
        .to_vec()
}

/// The password for a wire that TLS protects.
pub fn clear(password: &str) -> Vec<u8> {
    let mut clear = password.as_bytes().to_vec();
    clear.push(0);
    clear
}

fn xor(one: &[u8], other: &[u8]) -> Vec<u8> {
    one.iter()
        .zip(other)
        .map(|(one, other)| one ^ other)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonce() -> Vec<u8> {
        (1..=20).collect()
    }

    /// A server that knows SHA1(SHA1(password)) finds SHA1(password) in the proof, and knows it by its hash.
    #[test]
    fn a_native_proof_is_understood() {
        let stored = Sha1::digest(Sha1::digest("pässw'ord"));
        let mask = Sha1::new()
            .chain_update(nonce())
            .chain_update(stored)
            .finalize();
        let once = xor(&native("pässw'ord", &nonce()), &mask);
        assert_eq!(Sha1::digest(once), stored);
        assert!(native("", &nonce()).is_empty());
    }

    /// A server that knows SHA256(SHA256(password)) finds SHA256(password) in the proof; and this is what a MySQL 9.7.4 with this nonce has let in.
    #[test]
    fn a_sha2_proof_is_understood() {
        let stored = Sha256::digest(Sha256::digest("pässw'ord"));
        let mask = Sha256::new()
            .chain_update(stored)
            .chain_update(nonce())
            .finalize();
        let once = xor(&caching_sha2("pässw'ord", &nonce()), &mask);
        assert_eq!(Sha256::digest(once), stored);
        assert!(caching_sha2("", &nonce()).is_empty());
        let nonce = hex("086e7d640c23663d7c6c053848580833381d1963");
        let proof = caching_sha2("correct horse battery staple", &nonce);
        assert_eq!(
            proof,
            hex("cffa4006783f4eb53cbba7859827c83b5c12ac909626eddc9da9c5518ae46edb")
        );
    }

    fn hex(digits: &str) -> Vec<u8> {
        let pair = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (0..digits.len()).step_by(2).map(pair).collect()
    }

    /// The public key that MariaDB's documentation shows for this password checks the signature.
    #[test]
    fn a_signature_is_valid() {
        let message = [7; MESSAGE_BYTES];
        let hash: [u8; 64] = Sha512::digest("secret").into();
        let public = ed25519_dalek::VerifyingKey::from(&ExpandedSecretKey::from_bytes(&hash));
        let signature: [u8; 64] = ed25519("secret", &message).try_into().unwrap();
        let signature = ed25519_dalek::Signature::from_bytes(&signature);
        assert!(public.verify_strict(&message, &signature).is_ok());
        assert!(
            public
                .verify_strict(&[8; MESSAGE_BYTES], &signature)
                .is_err()
        );
    }
}
