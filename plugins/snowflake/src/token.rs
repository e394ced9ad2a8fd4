//! Who asks: a JWT that the user's private key has signed. There is no server of tokens to be asked.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use souk_sdk::Error;
use souk_signing::{Kept, Key};

/// How long a token is good for: Snowflake takes none that is good for longer.
const LIFETIME_S: u64 = 3_600;
/// A new one is made after this long: no request that goes with the old one takes ten minutes.
const RENEWED_AFTER_S: u64 = 3_000;
/// As Snowflake's own connectors have it.
const HEADER: &str = r#"{"alg":"RS256","typ":"JWT"}"#;

/// A user with a key, and the token that was made last.
pub struct Signer {
    /// `ACCOUNT.USER`.
    subject: String,
    fingerprint: String,
    key: Key,
    made: Kept,
}

impl Signer {
    pub fn new(account: &str, username: &str, pem: &str) -> Result<Signer, Error> {
        let key = Key::parse(pem).map_err(|why| {
            Error::authentication(
                "bad_private_key",
                "the private key cannot be used: give an RSA key in PEM (PKCS #8) without a passphrase",
            )
            .detail(why)
        })?;
        let fingerprint = key.fingerprint().map_err(failed)?;
        Ok(Signer {
            subject: format!(
                "{}.{}",
                without_region(account).to_uppercase(),
                username.to_uppercase()
            ),
            fingerprint: format!("SHA256:{}", STANDARD.encode(fingerprint)),
            key,
            made: Kept::new(RENEWED_AFTER_S),
        })
    }

    /// Makes a new token where there is none that is good at `now`.
    pub fn renew(&mut self, now: u64) -> Result<(), Error> {
        let Signer {
            subject,
            fingerprint,
            key,
            made,
        } = self;
        made.renew(now, || {
            let issuer = Value::from(format!("{subject}.{fingerprint}"));
            let subject = Value::from(subject.as_str());
            let until = now + LIFETIME_S;
            let claims =
                format!("{{\"iss\":{issuer},\"sub\":{subject},\"iat\":{now},\"exp\":{until}}}");
            key.token(HEADER, &claims).map_err(failed)
        })
    }

    /// The token in use, as the header `authorization` has it.
    pub fn authorization(&self) -> &str {
        self.made.authorization()
    }
}

/// The name of an account may end with where it is, which a token does not say.
fn without_region(account: &str) -> &str {
    let end = match account.contains(".global") {
        true => '-',
        false => '.',
    };
    account.split(end).next().unwrap_or(account)
}

fn failed(why: String) -> Error {
    Error::internal("signing_failed", "the connector could not sign its token").detail(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Snowflake's own connector makes of the same key at the same time, byte for byte (`tests/engines/snowflake.py token`).
    #[test]
    fn it_is_the_vendors() {
        let pem = souk_tests::snowflake::PRIVATE_KEY;
        let recorded = include_str!("../tests/recorded/tokens.txt");
        for line in recorded.lines().filter(|line| !line.starts_with('#')) {
            let [account, username, token] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let mut signer = Signer::new(account, username, pem).unwrap();
            signer.renew(1_790_000_000).unwrap();
            let wanted = format!("Bearer {token}");
            assert_eq!(signer.authorization(), wanted, "{account} {username}");
        }
        assert_eq!(recorded.lines().count(), 4);
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let error = Signer::new("a", "b", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n");
        assert_eq!(error.err().unwrap().code, "bad_private_key");
    }
}
