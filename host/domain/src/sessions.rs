//! Sessions of users who are signed in: their tokens, and how long they last.
//!
//! A token is 43 random base62 characters (256 bits), like the secret of a key, and like there only its SHA-256 is stored. What a browser shows
//! beside it with each change ([`Token::csrf`]) follows from the token, so that nothing has to be stored for it, and not from what is stored.

use crate::ids::random_base62;
use crate::keys::KeyDigest;
use crate::time::{DAY, HOUR, Timestamp};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::time::Duration;
use subtle::ConstantTimeEq;

/// A session that is not used ends after a working day.
pub const IDLE_MAX: Duration = Duration::from_secs(12 * HOUR.as_secs());
/// Whoever has copied a cookie has it for a week at most.
pub const LIFE_MAX: Duration = Duration::from_secs(7 * DAY.as_secs());
/// Browsers in which one user is signed in: one more ends the session that was idle for longest.
pub const SESSIONS_MAX: i64 = 20;
/// An invitation waits for somebody to come back from a holiday, but not for ever.
pub const INVITATION_LIFE: Duration = Duration::from_secs(7 * DAY.as_secs());

const TOKEN_CHARS: usize = 43;

/// A secret that lets somebody in: of a session, or of an invitation. Never stored; its `Debug` shows nothing.
#[derive(Clone)]
pub struct Token(String);

/// A text that is no token of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a token: check that it was copied completely")]
pub struct TokenError;

impl Token {
    /// A new one of 256 random bits.
    pub fn generate() -> Token {
        let mut text = String::with_capacity(TOKEN_CHARS);
        random_base62(&mut text, TOKEN_CHARS);
        Token(text)
    }

    pub fn parse(text: &str) -> Result<Token, TokenError> {
        let fits =
            text.len() == TOKEN_CHARS && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        fits.then(|| Token(text.to_owned())).ok_or(TokenError)
    }

    /// The plain text, for whoever is let in by it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What is stored of it.
    pub fn digest(&self) -> KeyDigest {
        KeyDigest::of(&self.0)
    }

    /// What proves beside a cookie that its holder's own page asks: another site can have the cookie sent, but cannot read this.
    pub fn csrf(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"souk csrf ");
        hash.update(self.0.as_bytes());
        hex::encode(hash.finalize())
    }

    /// Compares in constant time.
    pub fn is_csrf(&self, shown: &[u8]) -> bool {
        self.csrf().as_bytes().ct_eq(shown).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// When a session ends by itself, if it is not used again.
pub fn ends_at(last_seen_at: Timestamp, expires_at: Timestamp) -> Timestamp {
    last_seen_at.after(IDLE_MAX).min(expires_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens differ, read back, and neither what is stored nor what is shown beside one tells it.
    #[test]
    fn a_token_is_a_secret() {
        let (one, two) = (Token::generate(), Token::generate());
        assert_ne!(one.expose(), two.expose());
        let again = Token::parse(one.expose()).unwrap();
        assert_eq!(again.digest(), one.digest());
        assert!(again.is_csrf(one.csrf().as_bytes()));
        for wrong in [&*two.csrf(), &one.digest().to_hex(), one.expose(), ""] {
            assert!(!one.is_csrf(wrong.as_bytes()), "{wrong}");
        }
        assert_eq!(format!("{one:?}"), "Token(..)");
        for wrong in ["", &one.expose()[1..], &format!("{}-", &one.expose()[1..])] {
            assert!(Token::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// A session ends when it is idle or old, whichever comes first.
    #[test]
    fn a_session_ends_by_itself() {
        let began = Timestamp::from_micros(1_800_000_000_000_000);
        let expires_at = began.after(LIFE_MAX);
        assert_eq!(ends_at(began, expires_at), began.after(IDLE_MAX));
        let late = began.after(LIFE_MAX - Duration::from_secs(60));
        assert_eq!(ends_at(late, expires_at), expires_at);
    }
}
