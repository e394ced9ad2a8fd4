//! Whom Google lets in: who shows a JWT that a service account it knows has signed, for BigQuery, for no longer than an hour.

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    KeyPair, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey,
};
use serde_json::{Value, json};

use super::KEY_FILE;
use crate::remembered::ByText;

/// Clocks differ by no more.
const SKEW_S: u64 = 60;
const LIFETIME_S: u64 = 3_600;

const AUDIENCE: &str = "https://bigquery.googleapis.com/";

static FILE: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(KEY_FILE).expect("JSON"));
static KEY: LazyLock<RsaKeyPair> = LazyLock::new(|| {
    let pem = FILE["private_key"].as_str().expect("a key");
    let base64: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    RsaKeyPair::from_pkcs8(&STANDARD.decode(base64).expect("base64")).expect("a key")
});
/// What tokens say, whose signatures are looked at once.
static CLAIMS: LazyLock<ByText<Option<Value>>> = LazyLock::new(ByText::default);

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("a clock").as_secs()
}

fn head() -> Value {
    json!({"typ": "JWT", "alg": "RS256", "kid": FILE["private_key_id"]})
}

/// One that the service account signs itself, good for an hour.
pub fn signed() -> String {
    let email = &FILE["client_email"];
    let claims = json!({"aud": AUDIENCE, "iss": email, "sub": email, "iat": now(), "exp": now() + LIFETIME_S});
    let [head, claims] = [head(), claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let signed = format!("{head}.{claims}");
    let mut signature = vec![0; KEY.public().modulus_len()];
    let random = SystemRandom::new();
    KEY.sign(
        &RSA_PKCS1_SHA256,
        &random,
        signed.as_bytes(),
        &mut signature,
    )
    .expect("a signature");
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

pub fn is_good(authorization: &str) -> bool {
    let Some(token) = authorization.strip_prefix("Bearer ") else {
        return false;
    };
    let known = CLAIMS.of(token, || claims(token));
    let Some(claims) = &*known else {
        return false;
    };
    let number = |name: &str| claims[name].as_u64().unwrap_or_default();
    claims["aud"] == AUDIENCE
        && claims["iss"] == FILE["client_email"]
        && claims["sub"] == FILE["client_email"]
        && number("iat") <= now() + SKEW_S
        && number("exp") + SKEW_S >= now()
        && number("exp").saturating_sub(number("iat")) <= LIFETIME_S
}

/// What a token says whose signature is good.
fn claims(token: &str) -> Option<Value> {
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, claims) = signed.split_once('.')?;
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    let header: Value = serde_json::from_slice(&decoded(header)?).ok()?;
    if header != head() {
        return None;
    }
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, KEY.public_key().as_ref());
    public
        .verify(signed.as_bytes(), &decoded(signature)?)
        .ok()?;
    serde_json::from_slice(&decoded(claims)?).ok()
}
