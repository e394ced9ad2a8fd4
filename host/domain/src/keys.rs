//! API keys as text: `sk_service_` or `ep_`, 43 base62 characters of randomness, 6 base62 characters of CRC32.
//!
//! The checksum lets a mistyped key be refused without asking the store; the store only ever sees the digest.

use rand::Rng;
use sha2::{Digest, Sha256};

const ANALYTICS_PREFIX: &str = "sk_service_";
const ENDPOINT_PREFIX: &str = "ep_";
/// 43 base62 characters carry 256 bits.
const RANDOM_LENGTH: usize = 43;
/// 62^6 > 2^32, so every CRC32 fits.
const CHECKSUM_LENGTH: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// Company-wide, role-gated.
    Analytics,
    /// Reads exactly one endpoint through the customer data route.
    Endpoint,
}

impl KeyKind {
    pub const fn prefix(self) -> &'static str {
        match self {
            KeyKind::Analytics => ANALYTICS_PREFIX,
            KeyKind::Endpoint => ENDPOINT_PREFIX,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            KeyKind::Analytics => "analytics",
            KeyKind::Endpoint => "endpoint",
        }
    }
}

/// SHA-256 of the whole key. 256 bits of randomness need no slow hash.
pub type KeyDigest = [u8; 32];

/// A plain key, on its way to its owner. Never stored, never logged.
pub struct KeySecret(String);

impl KeySecret {
    pub fn generate(kind: KeyKind) -> KeySecret {
        let mut rng = rand::rng();
        let mut text = String::with_capacity(kind.prefix().len() + RANDOM_LENGTH + CHECKSUM_LENGTH);
        text.push_str(kind.prefix());
        for _ in 0..RANDOM_LENGTH {
            text.push(BASE62[rng.random_range(0..BASE62.len())] as char);
        }
        let checksum = checksum(text.as_bytes());
        text.extend(checksum.iter().map(|byte| *byte as char));
        KeySecret(text)
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn digest(&self) -> KeyDigest {
        digest(&self.0)
    }

    pub fn last4(&self) -> &str {
        &self.0[self.0.len() - 4..]
    }
}

impl std::fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeySecret(..)")
    }
}

/// How a key is shown after it was created: `sk_****` or `ep_****`, then its last four characters.
pub fn masked(kind: KeyKind, last4: &str) -> String {
    match kind {
        KeyKind::Analytics => format!("sk_****{last4}"),
        KeyKind::Endpoint => format!("ep_****{last4}"),
    }
}

/// The kind and digest of a key that a caller sent, if prefix, length, alphabet and checksum are right.
pub fn parse(text: &str) -> Option<(KeyKind, KeyDigest)> {
    let (kind, random) = if let Some(rest) = text.strip_prefix(ENDPOINT_PREFIX) {
        (KeyKind::Endpoint, rest)
    } else {
        (KeyKind::Analytics, text.strip_prefix(ANALYTICS_PREFIX)?)
    };
    let well_formed = random.len() == RANDOM_LENGTH + CHECKSUM_LENGTH
        && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !well_formed {
        return None;
    }
    let (body, sum) = text.as_bytes().split_at(text.len() - CHECKSUM_LENGTH);
    (checksum(body) == sum).then(|| (kind, digest(text)))
}

fn digest(text: &str) -> KeyDigest {
    Sha256::digest(text.as_bytes()).into()
}

fn checksum(body: &[u8]) -> [u8; CHECKSUM_LENGTH] {
    let mut sum = crc32fast::hash(body);
    let mut text = [b'0'; CHECKSUM_LENGTH];
    for place in text.iter_mut().rev() {
        *place = BASE62[(sum % 62) as usize];
        sum /= 62;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_key_parses_to_its_kind_and_digest() {
        for kind in [KeyKind::Analytics, KeyKind::Endpoint] {
            let secret = KeySecret::generate(kind);
            assert_eq!(parse(secret.reveal()), Some((kind, secret.digest())));
            assert!(secret.reveal().ends_with(secret.last4()));
        }
    }

    #[test]
    fn any_changed_character_is_noticed() {
        let secret = KeySecret::generate(KeyKind::Analytics);
        for place in 0..secret.reveal().len() {
            let mut changed = secret.reveal().as_bytes().to_vec();
            changed[place] = if changed[place] == b'x' { b'y' } else { b'x' };
            assert_eq!(
                parse(std::str::from_utf8(&changed).unwrap()),
                None,
                "place {place}"
            );
        }
        for text in [
            "",
            "sk_",
            "ep_",
            "sk_service_",
            "nonsense",
            &secret.reveal()[1..],
            &format!("{}0", secret.reveal()),
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_key_is_never_printed() {
        let secret = KeySecret::generate(KeyKind::Endpoint);
        assert!(!format!("{secret:?}").contains(secret.reveal()));
        assert_eq!(
            masked(KeyKind::Endpoint, secret.last4()),
            format!("ep_****{}", secret.last4())
        );
    }
}
