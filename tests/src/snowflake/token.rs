//! Whom Snowflake lets in: who shows a token that it knows, or a JWT that the key of its user has signed, for no longer than an hour.

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};

use super::{ACCESS_TOKEN, ACCOUNT, OAUTH_TOKEN, PRIVATE_KEY, USER, header};
use crate::remembered::ByText;

/// Clocks differ by no more.
const SKEW_S: u64 = 60;
const LIFETIME_S: u64 = 3_600;
/// Of the public key that belongs to the private one, as Snowflake shows it (`DESC USER`).
const FINGERPRINT: &str = "SHA256:AzeF+5+qxm5HVPGprqYwtNgZFEJy3k9YYMZju/XVS+s=";

/// What tokens say, whose signatures are looked at once.
static CLAIMS: LazyLock<ByText<Option<Value>>> = LazyLock::new(ByText::default);

pub fn is_good(headers: &HeaderMap) -> bool {
    let shown = header(headers, "authorization").strip_prefix("Bearer ");
    match (
        shown,
        header(headers, "x-snowflake-authorization-token-type"),
    ) {
        (Some(token), "KEYPAIR_JWT") => {
            matches!(&*CLAIMS.of(token, || claims(token)), Some(claims) if is_users(claims))
        }
        (Some(token), "OAUTH") => token == OAUTH_TOKEN,
        (Some(token), "PROGRAMMATIC_ACCESS_TOKEN") => token == ACCESS_TOKEN,
        _ => false,
    }
}

/// What is said of one that is not.
pub fn refusal(headers: &HeaderMap) -> (&'static str, &'static str) {
    match header(headers, "x-snowflake-authorization-token-type") {
        "KEYPAIR_JWT" => ("390144", "JWT token is invalid."),
        "OAUTH" => ("390303", "Invalid OAuth access token."),
        _ => ("394400", "Programmatic access token is invalid."),
    }
}

fn is_users(claims: &Value) -> bool {
    let subject = format!("{}.{}", ACCOUNT.to_uppercase(), USER.to_uppercase());
    let number = |name: &str| claims[name].as_u64().unwrap_or_default();
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.expect("a clock").as_secs();
    claims["sub"] == subject
        && claims["iss"] == format!("{subject}.{FINGERPRINT}")
        && number("iat") <= now + SKEW_S
        && number("exp") + SKEW_S >= now
        && number("exp").saturating_sub(number("iat")) <= LIFETIME_S
}

/// What a token says whose signature is good.
fn claims(token: &str) -> Option<Value> {
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, claims) = signed.split_once('.')?;
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    let header: Value = serde_json::from_slice(&decoded(header)?).ok()?;
    if header != json!({"typ": "JWT", "alg": "RS256"}) {
        return None;
    }
    let lines = PRIVATE_KEY.lines();
    let base64: String = lines.filter(|line| !line.starts_with('-')).collect();
    let key = RsaKeyPair::from_pkcs8(&STANDARD.decode(base64).expect("base64")).expect("a key");
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref());
    public
        .verify(signed.as_bytes(), &decoded(signature)?)
        .ok()?;
    serde_json::from_slice(&decoded(claims)?).ok()
}
