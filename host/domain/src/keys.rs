//! API keys: the shape of a secret, its checksum, its digest and its mask.
//!
//! A secret is `sk_service_` (analytics) or `ep_` (endpoint), 43 random base62 characters (256 bits) and 6 base62 characters of CRC32 over
//! everything before them. The checksum rejects typing errors and random guesses without asking the store. Only the SHA-256 of a secret is
//! ever stored: a slow password hash would add nothing, because 256 random bits cannot be searched, and would cost every request.

use crate::ids::{BASE62, base62, random_base62};
use crate::time::Timestamp;
use sha2::{Digest as _, Sha256};
use std::fmt;
use subtle::ConstantTimeEq;

/// Keys of a company that work: what changes all of them at once ends soon.
pub const LIVE_KEYS_MAX: i64 = 1_000;
/// Keys that a company may get within a day, rotated ones among them: what is kept of each stays.
pub const NEW_KEYS_A_DAY_MAX: i64 = 2_000;

const RANDOM_CHARS: usize = 43;
const CHECKSUM_CHARS: usize = 6;
const ENDPOINT_PREFIX: &str = "ep_";
const ANALYTICS_PREFIX: &str = "sk_service_";
/// `sk_<word>_`: other platform words than `service` are readable too, up to this length.
const WORD_CHARS_MAX: usize = 16;
/// What list and detail responses show before the last four characters.
const MASK: &str = "****";
const LAST: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyType {
    /// Scope: the whole company.
    Analytics,
    /// Scope: exactly one endpoint.
    Endpoint,
}

impl KeyType {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Analytics => "analytics",
            Self::Endpoint => "endpoint",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "analytics" => Some(Self::Analytics),
            "endpoint" => Some(Self::Endpoint),
            _ => None,
        }
    }

    const fn short_prefix(self) -> &'static str {
        match self {
            Self::Analytics => "sk_",
            Self::Endpoint => ENDPOINT_PREFIX,
        }
    }
}

/// Whether a key works at an instant. Deactivation wins over expiry: it answers 410, expiry 401.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    Active,
    Expired,
    Deactivated,
}

impl KeyState {
    /// A rotated key is deactivated only once its grace period is over, so `deactivated_at` may lie ahead.
    pub fn at(
        now: Timestamp,
        expires_at: Option<Timestamp>,
        deactivated_at: Option<Timestamp>,
    ) -> Self {
        if deactivated_at.is_some_and(|at| at <= now) {
            Self::Deactivated
        } else if expires_at.is_some_and(|at| at <= now) {
            Self::Expired
        } else {
            Self::Active
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Deactivated => "deactivated",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "active" => Some(Self::Active),
            "expired" => Some(Self::Expired),
            "deactivated" => Some(Self::Deactivated),
            _ => None,
        }
    }
}

/// SHA-256 of a secret: what the store keeps and looks up by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyDigest(pub [u8; 32]);

impl KeyDigest {
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// Lower-case hexadecimal, as stored.
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }

    /// Compares in constant time.
    pub fn matches(&self, other: &KeyDigest) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigest(..)")
    }
}

/// A text that is not a key of ours: wrong prefix, length, alphabet or checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an API key: check that it was copied completely")]
pub struct KeyFormatError;

/// The plain secret. Shown once, never stored; its `Debug` shows the mask.
#[derive(Clone)]
pub struct KeySecret {
    text: String,
    key_type: KeyType,
}

impl KeySecret {
    /// A new secret of 256 random bits.
    pub fn generate(key_type: KeyType) -> Self {
        let prefix = match key_type {
            KeyType::Analytics => ANALYTICS_PREFIX,
            KeyType::Endpoint => ENDPOINT_PREFIX,
        };
        let mut text = String::with_capacity(prefix.len() + RANDOM_CHARS + CHECKSUM_CHARS);
        text.push_str(prefix);
        random_base62(&mut text, RANDOM_CHARS);
        text.extend(checksum(&text).map(char::from));
        Self { text, key_type }
    }

    /// The plain text, for the one response that shows it.
    pub fn expose(&self) -> &str {
        &self.text
    }

    pub const fn key_type(&self) -> KeyType {
        self.key_type
    }

    pub fn digest(&self) -> KeyDigest {
        KeyDigest::of(&self.text)
    }

    /// The last four characters, which are kept so that people can tell their keys apart.
    pub fn last4(&self) -> &str {
        &self.text[self.text.len() - LAST..]
    }

    pub fn masked(&self) -> String {
        mask(self.key_type, self.last4())
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

/// `sk_****` or `ep_****` plus the last four characters.
pub fn mask(key_type: KeyType, last4: &str) -> String {
    format!("{}{MASK}{last4}", key_type.short_prefix())
}

/// Checks prefix, length, alphabet and checksum, and says which kind of key it is. Allocates nothing.
pub fn check_format(text: &str) -> Result<KeyType, KeyFormatError> {
    let (key_type, rest) = if let Some(rest) = text.strip_prefix(ENDPOINT_PREFIX) {
        (KeyType::Endpoint, rest)
    } else if let Some(rest) = text.strip_prefix(ANALYTICS_PREFIX) {
        (KeyType::Analytics, rest)
    } else {
        let rest = text.strip_prefix("sk_").ok_or(KeyFormatError)?;
        let (word, rest) = rest.split_once('_').ok_or(KeyFormatError)?;
        let is_word = (1..=WORD_CHARS_MAX).contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_lowercase());
        (
            KeyType::Analytics,
            if is_word {
                rest
            } else {
                return Err(KeyFormatError);
            },
        )
    };
    if rest.len() != RANDOM_CHARS + CHECKSUM_CHARS
        || !rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    {
        return Err(KeyFormatError);
    }
    let (covered, given) = text.split_at(text.len() - CHECKSUM_CHARS);
    if checksum(covered) == given.as_bytes() {
        Ok(key_type)
    } else {
        Err(KeyFormatError)
    }
}

/// CRC32 of everything before it as six base62 digits, zero-padded (62^6 > 2^32).
fn checksum(text: &str) -> [u8; CHECKSUM_CHARS] {
    const _: () = assert!(BASE62.len() == 62);
    base62(u64::from(crc32fast::hash(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Generated keys pass their own check, and any single changed character fails it.
    #[test]
    fn checksum_catches_every_single_change() {
        for key_type in [KeyType::Analytics, KeyType::Endpoint] {
            let secret = KeySecret::generate(key_type);
            assert_eq!(check_format(secret.expose()), Ok(key_type));
            for at in secret.expose().len() - RANDOM_CHARS - CHECKSUM_CHARS..secret.expose().len() {
                let mut bytes = secret.expose().as_bytes().to_vec();
                bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
                assert_eq!(
                    check_format(std::str::from_utf8(&bytes).unwrap()),
                    Err(KeyFormatError)
                );
            }
        }
    }

    /// Shape errors of every kind are refused without looking anything up.
    #[test]
    fn malformed_keys_are_refused() {
        let good = KeySecret::generate(KeyType::Analytics);
        let text = good.expose();
        for bad in [
            "",
            "sk_",
            "ep_",
            "sk_service_",
            &text[1..],
            &text[..text.len() - 1],
            &format!("{text}0"),
            &text.to_uppercase(),
            "Bearer x",
        ] {
            assert_eq!(check_format(bad), Err(KeyFormatError), "{bad}");
        }
    }

    /// Nothing printable reveals the secret.
    #[test]
    fn masks_hide_all_but_four_characters() {
        let secret = KeySecret::generate(KeyType::Analytics);
        assert_eq!(secret.masked(), format!("sk_****{}", secret.last4()));
        assert_eq!(format!("{secret:?}"), secret.masked());
    }
}
