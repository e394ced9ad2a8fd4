//! Secrets and signatures, as [Standard Webhooks](https://www.standardwebhooks.com) has them: receivers verify with the library they have.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const PREFIX: &str = "whsec_";
/// Of the 24 to 64 that Standard Webhooks allows: as many as SHA-256 has.
const SECRET_BYTES: usize = 32;

/// `whsec_` and base64. Shown once.
#[derive(Clone)]
pub struct Secret(String);

/// Without the secret.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    pub fn generate() -> Secret {
        let bytes: [u8; SECRET_BYTES] = rand::random();
        Secret(format!("{PREFIX}{}", STANDARD.encode(bytes)))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Reads what [`Secret::expose`] gave.
    pub(super) fn read(plain: Vec<u8>) -> Option<Secret> {
        let text = String::from_utf8(plain).ok()?;
        STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        Some(Secret(text))
    }

    fn sign(&self, id: &str, timestamp: i64, body: &str) -> String {
        // `generate` and `read` make no other secrets, and HMAC takes keys of any length.
        let key = STANDARD
            .decode(self.0.trim_start_matches(PREFIX))
            .unwrap_or_default();
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key) else {
            unreachable!("HMAC takes keys of any length")
        };
        mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// The header `webhook-signature`: one signature per secret, with a space between.
pub(super) fn header(secrets: &[Secret], id: &str, timestamp: i64, body: &str) -> String {
    let signatures: Vec<_> = secrets
        .iter()
        .map(|secret| secret.sign(id, timestamp, body))
        .collect();
    signatures.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the reference implementation verifies.
    #[test]
    fn the_reference_example_is_signed_alike() {
        let secret = Secret::read(b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_vec()).unwrap();
        let signed = header(
            std::slice::from_ref(&secret),
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    /// No two secrets are alike, each reads back, and each signs by itself.
    #[test]
    fn secrets_sign_side_by_side() {
        let (one, other) = (Secret::generate(), Secret::generate());
        assert_ne!(one.expose(), other.expose());
        assert!(Secret::read(one.expose().as_bytes().to_vec()).is_some());
        assert!(Secret::read(b"whsec_!".to_vec()).is_none());
        let both = header(&[one.clone(), other], "dlv_1", 1, "{}");
        assert_eq!(both.split(' ').count(), 2);
        assert!(both.starts_with(&one.sign("dlv_1", 1, "{}")));
    }
}
