//! What an ID token has to say (OpenID Connect Core 1.0, 3.1.3.7), and which of a provider's keys has to have signed it.

use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde::Deserialize;
use souk_domain::emails::parse_email;
use souk_domain::time::Timestamp;

use super::Config;
use super::IdentityError::{self, Refused};

/// Clocks differ.
const LEEWAY_SECONDS: u64 = 60;
/// Longer than any provider's; what is longer is not looked at.
const TOKEN_BYTES_MAX: usize = 16 << 10;
const GOOGLE: &str = "https://accounts.google.com";

/// How a provider may sign: with a key that only it has, and that is public.
const ALGORITHMS: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Somebody, as the provider knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// By which the provider knows them for ever.
    pub subject: String,
    pub email: Email,
    /// From when on nobody is identified by the same token.
    pub proof_ends_at: Timestamp,
}

/// What a provider says of somebody's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Email {
    /// In lower case.
    Verified(String),
    /// It does not vouch for it, or it is none.
    Unverified,
    Untold,
    /// It would say so elsewhere, and could not be asked there: why. Whoever is known by the subject comes in without.
    Unasked(String),
}

impl Identity {
    pub fn verified_email(&self) -> Option<&str> {
        match &self.email {
            Email::Verified(email) => Some(email),
            Email::Unverified | Email::Untold | Email::Unasked(_) => None,
        }
    }
}

/// What a provider answers with where it is asked about somebody (OpenID Connect Core 1.0, 5.3.2).
#[derive(Deserialize)]
pub struct UserInfo {
    pub sub: String,
    email: Option<String>,
    #[serde(default)]
    email_verified: Flag,
}

impl UserInfo {
    pub fn email(self) -> Email {
        email(self.email, &self.email_verified)
    }
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: Audience,
    azp: Option<String>,
    /// Seconds, which may have a fraction.
    exp: f64,
    nonce: Option<String>,
    email: Option<String>,
    #[serde(default)]
    email_verified: Flag,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// Some providers write their booleans as texts.
#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Flag {
    Is(bool),
    Says(String),
    #[default]
    Absent,
}

/// How a token says that it was signed.
pub fn head(token: &str) -> Result<Header, IdentityError> {
    let malformed = || Refused("this is not an ID token".to_owned());
    if token.len() > TOKEN_BYTES_MAX {
        return Err(malformed());
    }
    let head = decode_header(token).map_err(|_| malformed())?;
    match ALGORITHMS.contains(&head.alg) {
        true => Ok(head),
        false => Err(Refused(format!(
            "the ID token is signed with {:?}, which proves nothing here",
            head.alg
        ))),
    }
}

/// The provider's key that a token names; of a provider with one key, that one. `None`: it has no such key.
pub fn key(keys: &JwkSet, head: &Header) -> Option<Result<DecodingKey, IdentityError>> {
    let fits = |key: &&Jwk| {
        let is_for_signatures = key
            .common
            .public_key_use
            .as_ref()
            .is_none_or(|used| *used == PublicKeyUse::Signature);
        let algorithm = key.common.key_algorithm;
        let is_for_this = algorithm.is_none_or(|known| known == head.alg.into());
        let is_of_kind = || {
            let read = DecodingKey::from_jwk(key);
            read.is_ok_and(|key| key.family() == head.alg.family())
        };
        is_for_signatures && is_for_this && is_of_kind()
    };
    let mut found = keys
        .keys
        .iter()
        .filter(|key| head.kid.is_none() || key.common.key_id == head.kid)
        .filter(fits);
    let key = found.next()?;
    if found.next().is_some() {
        let message = "the ID token does not say with which of its issuer's keys it is signed";
        return Some(Err(Refused(message.to_owned())));
    }
    let key = DecodingKey::from_jwk(key);
    Some(key.map_err(|_| Refused("the ID token's key is of no kind that is known".to_owned())))
}

/// Who a token speaks of, if it is signed with this key, by this issuer, for this client and this attempt, and holds now.
pub fn check(
    token: &str,
    key: &DecodingKey,
    algorithm: Algorithm,
    config: &Config,
    nonce: &str,
) -> Result<Identity, IdentityError> {
    let issuers = issuers(&config.issuer);
    let mut validation = Validation::new(algorithm);
    validation.leeway = LEEWAY_SECONDS;
    validation.validate_nbf = true;
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    validation.set_issuer(&issuers);
    validation.set_audience(&[&config.client_id]);
    let claims = decode::<Claims>(token, key, &validation)
        .map_err(|error| Refused(format!("the ID token is refused: {error}")))?
        .claims;

    if !issuers.contains(&claims.iss) {
        return Err(Refused("the ID token is another issuer's".to_owned()));
    }
    let is_only_audience = match &claims.aud {
        Audience::One(one) => *one == config.client_id,
        Audience::Several(several) => several.len() == 1,
    };
    let is_for_us = match &claims.azp {
        Some(party) => *party == config.client_id,
        None => is_only_audience,
    };
    if !is_for_us {
        return Err(Refused("the ID token is for another client".to_owned()));
    }
    if claims.nonce.as_deref() != Some(nonce) {
        return Err(Refused(
            "the ID token was made for another attempt: its nonce differs".to_owned(),
        ));
    }
    if claims.sub.is_empty() {
        return Err(Refused("the ID token names nobody".to_owned()));
    }
    Ok(Identity {
        subject: claims.sub,
        email: email(claims.email, &claims.email_verified),
        proof_ends_at: ends_at(claims.exp),
    })
}

fn email(told: Option<String>, verified: &Flag) -> Email {
    let is_verified = match verified {
        Flag::Is(verified) => *verified,
        Flag::Says(text) => text == "true",
        Flag::Absent => false,
    };
    match told {
        None => Email::Untold,
        Some(email) if is_verified => {
            parse_email(&email).map_or(Email::Unverified, Email::Verified)
        }
        Some(_) => Email::Unverified,
    }
}

/// When a token is over for everybody: each host allows for a clock that differs, and theirs may differ by as much.
fn ends_at(exp: f64) -> Timestamp {
    let seconds = (exp.ceil() as i64).saturating_add(2 * LEEWAY_SECONDS.cast_signed());
    Timestamp::from_micros(seconds.saturating_mul(1_000_000))
}

/// How an issuer may be written. Google says that it names itself with and without `https://`.
fn issuers(issuer: &str) -> Vec<String> {
    let mut issuers = vec![issuer.to_owned(), format!("{issuer}/")];
    if issuer == GOOGLE {
        issuers.push("accounts.google.com".to_owned());
    }
    issuers
}
