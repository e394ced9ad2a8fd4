//! Who asks: a JWT that the service account signs itself, which BigQuery takes as a bearer. There is no server of tokens to be asked, which
//! would be another origin.

use serde_json::Value;
use souk_sdk::Error;
use souk_signing::{Kept, Key};

/// Whom the token is for.
const AUDIENCE: &str = "https://bigquery.googleapis.com/";
/// How long a token is good for: Google takes none that is good for longer.
const LIFETIME_S: u64 = 3_600;
/// A new one is made after this long: no request that goes with the old one takes ten minutes.
const RENEWED_AFTER_S: u64 = 3_000;

/// A service account, and the token that it has made last.
pub struct Signer {
    email: String,
    key_id: Option<String>,
    key: Key,
    made: Kept,
}

impl Signer {
    pub fn new(email: String, key_id: Option<String>, pem: &str) -> Result<Signer, Error> {
        let key = Key::parse(pem).map_err(|why| {
            Error::authentication(
                "bad_private_key",
                "the private key cannot be used: give the service account's key file as Google wrote it",
            )
            .detail(why)
        })?;
        Ok(Signer {
            email,
            key_id,
            key,
            made: Kept::new(RENEWED_AFTER_S),
        })
    }

    /// Makes a new token where there is none that is good at `now`.
    pub fn renew(&mut self, now: u64) -> Result<(), Error> {
        let Signer {
            email,
            key_id,
            key,
            made,
        } = self;
        made.renew(now, || token(email, key_id.as_deref(), key, now))
    }

    /// The token in use, as the header `authorization` has it.
    pub fn authorization(&self) -> &str {
        self.made.authorization()
    }
}

/// Blanks and order are those of google-auth, so that one can be held against the other.
fn token(email: &str, key_id: Option<&str>, key: &Key, now: u64) -> Result<String, Error> {
    let quoted = |text: &str| Value::from(text).to_string();
    let kid = match key_id {
        Some(id) => format!(", \"kid\": {}", quoted(id)),
        None => String::new(),
    };
    let header = format!("{{\"typ\": \"JWT\", \"alg\": \"RS256\"{kid}}}");
    let (email, until) = (quoted(email), now + LIFETIME_S);
    let claims = format!(
        "{{\"iss\": {email}, \"sub\": {email}, \"iat\": {now}, \"exp\": {until}, \"aud\": \"{AUDIENCE}\"}}"
    );
    key.token(&header, &claims).map_err(|why| {
        Error::internal("signing_failed", "the connector could not sign its token").detail(why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer() -> Signer {
        let file: Value = serde_json::from_str(souk_tests::bigquery::KEY_FILE).unwrap();
        let text = |name: &str| file[name].as_str().unwrap().to_owned();
        let key_id = Some(text("private_key_id"));
        Signer::new(text("client_email"), key_id, &text("private_key")).unwrap()
    }

    /// What google-auth makes of the same key file at the same time, byte for byte (`tests/engines/bigquery.py token`).
    #[test]
    fn it_is_google_auths() {
        let mut signer = signer();
        signer.renew(1_790_000_000).unwrap();
        let recorded = include_str!("../tests/recorded/token.txt");
        let token = signer.authorization().strip_prefix("Bearer ");
        assert_eq!(token, Some(recorded.trim()));
    }

    /// Made again before it is too old, and where the clock has fallen; not in between.
    #[test]
    fn it_is_kept_while_it_is_good() {
        let mut signer = signer();
        let mut at = |now: u64| {
            signer.renew(now).unwrap();
            signer.authorization().to_owned()
        };
        let first = at(10_000);
        assert_eq!(at(12_999), first);
        let second = at(13_000);
        assert_ne!(second, first);
        assert_eq!(at(10_000), first, "a signature has nothing random in it");
        assert_eq!(at(13_000), second);
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for pem in [
            "",
            "sample",
            &"x".repeat(5_000),
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        ] {
            let error = Signer::new("a@b".into(), None, pem).err().unwrap();
            assert_eq!(error.code, "bad_private_key");
        }
    }
}
