//! Identifiers: a short prefix that says what is meant, `_`, and 22 base62 characters.
//!
//! Two kinds. Most ids are 22 random characters (131 bits). Ids of rows that are written thousands of times a second (transactions, executions,
//! requests) begin with 9 characters of time in microseconds and end with 13 random ones (77 bits), so that they sort by time of creation and
//! an index over them grows at its end instead of being dirtied everywhere. Nothing is read out of an id; both kinds are opaque.

use crate::time::Timestamp;
use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Digits in ascending order of their bytes, so that encoded numbers sort like the numbers.
pub(crate) const BASE62: &[u8; 62] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// 62^22 > 2^130: no two ids ever meet.
const RANDOM_CHARS: usize = 22;
/// 62^9 microseconds reach beyond the year 2390.
const TIME_CHARS: usize = 9;
/// What the specification allows as an id in a path.
pub const ID_CHARS_MAX: usize = 255;

/// An id that is not `^[a-zA-Z0-9_-]{1,255}$`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an id has 1 to 255 characters of a-z, A-Z, 0-9, _ and -")]
pub struct IdError;

/// Fills `out` with uniformly distributed base62 characters.
pub(crate) fn random_base62(out: &mut String, count: usize) {
    let mut digits = vec![0; count];
    random_digits(&mut digits);
    out.extend(digits.into_iter().map(char::from));
}

/// Fills `out` with uniformly distributed base62 characters, from as few random bits as there are in them.
fn random_digits(out: &mut [u8]) {
    let mut rng = rand::rng();
    for chunk in out.chunks_mut(DRAWN_CHARS) {
        let mut number = loop {
            let number: u64 = rng.random();
            // The rest would come more often than others.
            if number < EVEN {
                break number;
            }
        };
        for digit in chunk {
            *digit = BASE62[(number % 62) as usize];
            number /= 62;
        }
    }
}

/// Characters that a random number is good for: 62^10 < 2^60.
const DRAWN_CHARS: usize = 10;
/// The largest multiple of 62^10 in 64 bits.
const EVEN: u64 = u64::MAX - u64::MAX % 62u64.pow(DRAWN_CHARS as u32);

/// `number` as exactly `WIDTH` base62 digits; higher digits are cut off.
pub(crate) fn base62<const WIDTH: usize>(mut number: u64) -> [u8; WIDTH] {
    let mut digits = [b'0'; WIDTH];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(number % 62) as usize];
        number /= 62;
    }
    digits
}

/// Whether `text` may stand in a path as an id.
pub fn is_id(text: &str) -> bool {
    (1..=ID_CHARS_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        ///
        /// Cheap to clone; compares and hashes as its text.
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            pub const PREFIX: &'static str = $prefix;

            /// A new id that no other ever equals.
            pub fn generate() -> Self {
                let mut text = String::with_capacity($prefix.len() + 1 + RANDOM_CHARS);
                text.push_str($prefix);
                text.push('_');
                random_base62(&mut text, RANDOM_CHARS);
                Self(text.into())
            }

            /// Accepts any id that the specification allows in a path; whether it exists is for the store to say.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                if is_id(text) { Ok(Self(text.into())) } else { Err(IdError) }
            }

            /// One that was made here: with its prefix. For names of directories, among which there are others.
            pub fn made(text: &str) -> Option<Self> {
                let rest = text.strip_prefix($prefix)?;
                rest.starts_with('_').then(|| Self::parse(text).ok())?
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Its text, not copied.
            pub fn shared(&self) -> Arc<str> {
                self.0.clone()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.as_ref().to_owned()
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                /// A text is read where it stands: serde's `Cow` would copy it.
                struct Text;

                impl serde::de::Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a string")
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        $name::parse(text).map_err(E::custom)
                    }
                }

                deserializer.deserialize_str(Text)
            }
        }
    };
}

macro_rules! timed_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        id!($(#[$doc])* $name, $prefix);

        impl $name {
            /// A new id that sorts after those made in earlier microseconds.
            pub fn generate_at(now: Timestamp) -> Self {
                const BEGIN: &[u8] = concat!($prefix, "_").as_bytes();
                const TIME: usize = BEGIN.len() + TIME_CHARS;
                // Several are made for each request: in place, without a text that is copied into the shared one.
                let mut text = [b'0'; BEGIN.len() + RANDOM_CHARS];
                text[..BEGIN.len()].copy_from_slice(BEGIN);
                let time = base62::<TIME_CHARS>(now.micros().max(0) as u64);
                text[BEGIN.len()..TIME].copy_from_slice(&time);
                random_digits(&mut text[TIME..]);
                Self(str::from_utf8(&text).unwrap_or_default().into())
            }
        }
    };
}

id!(/// A company: a tenant that sells, buys or both.
    CompanyId, "cmp");
id!(/// A person of a company.
    UserId, "usr");
id!(/// A browser in which a user is signed in; never its token.
    SessionId, "ses");
id!(/// An API key; never the secret itself.
    KeyId, "key");
id!(/// A connection to a seller's source.
    ConnectionId, "con");
id!(/// A file in a company's directory.
    FileId, "fil");
id!(/// An analytics asset.
    AssetId, "ast");
id!(/// A data endpoint.
    EndpointId, "end");
id!(/// One price of a product, from an instant to an instant.
    PriceId, "prc");
id!(/// A buyer's purchase of a product.
    PurchaseId, "pur");
id!(/// A top-up of credits.
    TopUpId, "top");
id!(/// A payout to a seller.
    PayoutId, "pay");
id!(/// A version of a connector in the registry.
    ConnectorId, "cnr");
id!(/// An alert on an asset.
    AlertId, "alr");
id!(/// A product that a user marked.
    FavoriteId, "fav");
id!(/// What a company has written to be read.
    PostId, "pst");
id!(/// Where a company's posts are published besides.
    IntegrationId, "int");
id!(/// A post at an integration.
    PublicationId, "pub");
id!(/// A company's webhook.
    WebhookId, "whk");
timed_id!(/// One business event of the ledger.
    TransactionId, "txn");
timed_id!(/// One run of an asset or one request of an endpoint.
    ExecutionId, "exe");
timed_id!(/// One HTTP request.
    RequestId, "req");
timed_id!(/// One transaction that the audit log tells of.
    AuditId, "aud");
timed_id!(/// One event on its way to one webhook.
    DeliveryId, "dlv");
timed_id!(/// One change of an alert's state.
    AlertEventId, "aev");

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids made later sort later, which is what keeps their indexes compact.
    #[test]
    fn timed_ids_sort_by_time() {
        let early = TransactionId::generate_at(Timestamp::from_micros(1_700_000_000_000_000));
        let late = TransactionId::generate_at(Timestamp::from_micros(1_700_000_000_000_001));
        assert!(early < late);
        assert_eq!(early.as_str().len(), "txn_".len() + 22);
    }

    /// Every character comes as often as any other, wherever it stands.
    #[test]
    fn characters_are_even() {
        let mut counts = [[0u32; 62]; 13];
        for _ in 0..62_000 {
            let mut digits = [0; 13];
            random_digits(&mut digits);
            for (counts, digit) in counts.iter_mut().zip(digits) {
                let place = BASE62.iter().position(|known| *known == digit);
                counts[place.unwrap()] += 1;
            }
        }
        // A thousand each, give or take six deviations.
        assert!(
            counts
                .as_flattened()
                .iter()
                .all(|count| (810..1_190).contains(count)),
            "{counts:?}"
        );
    }

    /// What the specification's pattern refuses is refused.
    #[test]
    fn parse_refuses_what_a_path_refuses() {
        assert!(CompanyId::parse("cmp_abc-DEF_9").is_ok());
        for bad in ["", "a/b", "a b", "ä", &"x".repeat(256)] {
            assert_eq!(CompanyId::parse(bad), Err(IdError), "{bad:?}");
        }
    }
}
