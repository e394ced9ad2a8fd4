//! Whom Google lets in: who shows a JWT that a service account it knows has signed, for BigQuery, for no longer than an hour.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};

use super::KEY_FILE;

/// Clocks differ by no more.
const SKEW_S: u64 = 60;
const LIFETIME_S: u64 = 3_600;

pub fn is_good(authorization: &str) -> bool {
    authorization
        .strip_prefix("Bearer ")
        .and_then(claims)
        .is_some_and(|claims| {
            let file: Value = serde_json::from_str(KEY_FILE).expect("JSON");
            let number = |name: &str| claims[name].as_u64().unwrap_or_default();
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = since.expect("a clock").as_secs();
            claims["aud"] == "https://bigquery.googleapis.com/"
                && claims["iss"] == file["client_email"]
                && claims["sub"] == file["client_email"]
                && number("iat") <= now + SKEW_S
                && number("exp") + SKEW_S >= now
                && number("exp").saturating_sub(number("iat")) <= LIFETIME_S
        })
}

/// What a token says whose signature is good.
fn claims(token: &str) -> Option<Value> {
    let file: Value = serde_json::from_str(KEY_FILE).expect("JSON");
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, claims) = signed.split_once('.')?;
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    let header: Value = serde_json::from_slice(&decoded(header)?).ok()?;
    if header != json!({"typ": "JWT", "alg": "RS256", "kid": file["private_key_id"]}) {
        return None;
    }
    let pem = file["private_key"].as_str().expect("a key");
    let base64: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let key = RsaKeyPair::from_pkcs8(&STANDARD.decode(base64).expect("base64")).expect("a key");
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref());
    public
        .verify(signed.as_bytes(), &decoded(signature)?)
        .ok()?;
    serde_json::from_slice(&decoded(claims)?).ok()
}
