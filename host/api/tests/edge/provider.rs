//! An identity provider over real HTTP: it tells of itself, publishes its keys, changes codes for tokens, and signs what a test wants, lies included.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{HeaderMap, StatusCode};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use souk_app::identity::{Config, IdentityProvider};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const CLIENT: &str = "souk-client";
const SECRET: &str = "hush & hush";
/// Made for this test, with `openssl genpkey`.
const RSA_KEY: &str = include_str!("provider_rsa.txt");

pub enum Key {
    Rsa(Box<RsaKeyPair>),
    Es256(Box<EcdsaKeyPair>),
}

impl Key {
    pub fn rsa() -> Key {
        let der = STANDARD.decode(RSA_KEY.replace('\n', "")).unwrap();
        Key::Rsa(Box::new(RsaKeyPair::from_pkcs8(&der).unwrap()))
    }

    pub fn es256() -> Key {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Key::Es256(Box::new(
            EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).unwrap(),
        ))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Key::Rsa(_) => "RS256",
            Key::Es256(_) => "ES256",
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Key::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .unwrap();
                signature
            }
            Key::Es256(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
        }
    }

    /// As the provider publishes it.
    fn public(&self, id: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Key::Rsa(key) => {
                let PublicKeyComponents { n, e } =
                    PublicKeyComponents::<Vec<u8>>::from(key.public());
                json!({"kty": "RSA", "use": "sig", "alg": "RS256", "kid": id, "n": text(&n), "e": text(&e)})
            }
            Key::Es256(key) => {
                let point = key.public_key().as_ref();
                json!({"kty": "EC", "use": "sig", "crv": "P-256", "kid": id, "x": text(&point[1..33]), "y": text(&point[33..])})
            }
        }
    }
}

/// A code that the provider gave out.
struct Code {
    challenge: String,
    redirect_uri: String,
    claims: Value,
}

/// With which whoever redeemed a code asks about its user.
const ACCESS_TOKEN: &str = "who/is+it";

struct Inside {
    issuer: String,
    /// What it says that it is, if not that.
    named: Option<String>,
    key: (String, Key),
    codes: HashMap<String, Code>,
    /// What it tells of the user to whoever has the access token.
    told: Option<Value>,
    is_down: bool,
    slow: Duration,
    /// How often it was asked for its keys.
    asked: usize,
}

#[derive(Clone)]
pub struct Provider(Arc<Mutex<Inside>>);

impl Provider {
    pub async fn start() -> Provider {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}/realm", listener.local_addr().unwrap());
        let provider = Provider(Arc::new(Mutex::new(Inside {
            issuer,
            named: None,
            key: ("first".to_owned(), Key::rsa()),
            codes: HashMap::new(),
            told: None,
            is_down: false,
            slow: Duration::ZERO,
            asked: 0,
        })));
        let router = Router::new()
            .route("/realm/.well-known/openid-configuration", get(discovery))
            .route("/realm/keys", get(keys))
            .route("/realm/token", post(token))
            .route("/realm/me", get(me))
            .with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        provider
    }

    /// How souk asks it.
    pub fn client(&self, again_after: Duration) -> IdentityProvider {
        IdentityProvider::new(Config {
            name: "google".to_owned(),
            issuer: self.issuer(),
            client_id: CLIENT.to_owned(),
            client_secret: Some(SECRET.to_owned()),
            again_after,
        })
        .unwrap()
    }

    pub fn issuer(&self) -> String {
        self.0.lock().unwrap().issuer.clone()
    }

    /// Signs with another key from here on, and forgets the former one.
    pub fn rotate(&self, id: &str, key: Key) {
        self.0.lock().unwrap().key = (id.to_owned(), key);
    }

    pub fn set_down(&self, is_down: bool) {
        self.0.lock().unwrap().is_down = is_down;
    }

    pub fn set_slow(&self, slow: Duration) {
        self.0.lock().unwrap().slow = slow;
    }

    pub fn name_itself(&self, named: &str) {
        self.0.lock().unwrap().named = Some(named.to_owned());
    }

    /// Says this of the user where it is asked, which it announces from here on.
    pub fn tell(&self, told: Value) {
        self.0.lock().unwrap().told = Some(told);
    }

    pub fn asked(&self) -> usize {
        self.0.lock().unwrap().asked
    }

    /// What a good token of another attempt says, with these members in place of its own; `null` leaves one out.
    pub fn claims(&self, change: Value) -> Value {
        static ATTEMPT: AtomicU32 = AtomicU32::new(0);
        let attempt = ATTEMPT.fetch_add(1, Ordering::Relaxed);
        let now = crate::world::now().seconds();
        let mut claims = json!({
            "iss": self.issuer(), "sub": "1001", "aud": CLIENT, "exp": now + 300, "iat": now, "nonce": format!("attempt {attempt}"),
            "email": "Ann@example.org", "email_verified": true, "name": "Ann",
        });
        for (name, value) in change.as_object().unwrap() {
            match value {
                Value::Null => claims.as_object_mut().unwrap().remove(name),
                value => claims
                    .as_object_mut()
                    .unwrap()
                    .insert(name.clone(), value.clone()),
            };
        }
        claims
    }

    /// A token with these changes, signed as the provider signs.
    pub fn token(&self, change: Value) -> String {
        let claims = self.claims(change);
        let inside = self.0.lock().unwrap();
        let (id, key) = &inside.key;
        signed(json!({"alg": key.algorithm(), "kid": id}), &claims, key)
    }

    /// A code for such a token, asked for with this verifier's challenge.
    pub fn code(&self, name: &str, verifier: &str, change: Value) {
        let code = Code {
            challenge: URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)),
            redirect_uri: "https://app.example/back".to_owned(),
            claims: self.claims(change),
        };
        self.0.lock().unwrap().codes.insert(name.to_owned(), code);
    }

    async fn delay(&self) -> Result<(), Response> {
        let (slow, is_down) = {
            let inside = self.0.lock().unwrap();
            (inside.slow, inside.is_down)
        };
        tokio::time::sleep(slow).await;
        match is_down {
            true => Err(StatusCode::INTERNAL_SERVER_ERROR.into_response()),
            false => Ok(()),
        }
    }
}

/// The nonce of a token, if it has one.
pub fn nonce(token: &str) -> String {
    let claims = token.split('.').nth(1).unwrap_or_default();
    let claims = URL_SAFE_NO_PAD.decode(claims).unwrap_or_default();
    let claims: Value = serde_json::from_slice(&claims).unwrap_or_default();
    claims["nonce"].as_str().unwrap_or("n-1").to_owned()
}

/// A token of whatever head and claims, signed with whatever key.
pub fn signed(head: Value, claims: &Value, key: &Key) -> String {
    let message = unsigned(head, claims);
    let signature = URL_SAFE_NO_PAD.encode(key.sign(message.as_bytes()));
    format!("{message}.{signature}")
}

pub fn unsigned(head: Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(&head), part(claims))
}

async fn discovery(State(provider): State<Provider>) -> Response {
    if let Err(down) = provider.delay().await {
        return down;
    }
    let inside = provider.0.lock().unwrap();
    let issuer = &inside.issuer;
    let named = inside.named.as_ref().unwrap_or(issuer);
    let mut document = json!({
        "issuer": named, "jwks_uri": format!("{issuer}/keys"), "token_endpoint": format!("{issuer}/token"),
        "authorization_endpoint": format!("{issuer}/auth"), "id_token_signing_alg_values_supported": ["RS256", "ES256"],
    });
    if inside.told.is_some() {
        document["userinfo_endpoint"] = json!(format!("{issuer}/me"));
    }
    axum::Json(document).into_response()
}

async fn keys(State(provider): State<Provider>) -> Response {
    if let Err(down) = provider.delay().await {
        return down;
    }
    let mut inside = provider.0.lock().unwrap();
    inside.asked += 1;
    let (id, key) = &inside.key;
    axum::Json(json!({"keys": [{"kty": "oct", "kid": "odd", "k": "aGVsbG8"}, key.public(id)]}))
        .into_response()
}

/// Changes a code, once, for whoever shows the client's secret and the verifier of its challenge.
async fn token(State(provider): State<Provider>, headers: HeaderMap, body: String) -> Response {
    if let Err(down) = provider.delay().await {
        return down;
    }
    let form: HashMap<String, String> = form_urlencoded::parse(body.as_bytes())
        .into_owned()
        .collect();
    let refuse = |status: StatusCode, error: &str| {
        (status, axum::Json(json!({"error": error}))).into_response()
    };
    let basic = STANDARD.encode(format!("{CLIENT}:hush+%26+hush"));
    if headers
        .get("authorization")
        .and_then(|sent| sent.to_str().ok())
        != Some(&format!("Basic {basic}"))
    {
        return refuse(StatusCode::UNAUTHORIZED, "invalid_client");
    }
    let code = provider.0.lock().unwrap().codes.remove(&form["code"]);
    let verifier = URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
    let fits = |code: &Code| {
        form["grant_type"] == "authorization_code"
            && code.challenge == verifier
            && code.redirect_uri == form["redirect_uri"]
    };
    match code.filter(fits) {
        Some(code) => {
            let inside = provider.0.lock().unwrap();
            let (id, key) = &inside.key;
            let token = signed(
                json!({"alg": key.algorithm(), "kid": id}),
                &code.claims,
                key,
            );
            axum::Json(
                json!({"id_token": token, "access_token": ACCESS_TOKEN, "token_type": "Bearer"}),
            )
            .into_response()
        }
        None => refuse(StatusCode::BAD_REQUEST, "invalid_grant"),
    }
}

/// Says who somebody is to whoever has the access token.
async fn me(State(provider): State<Provider>, headers: HeaderMap) -> Response {
    let sent = headers.get("authorization").map(|sent| sent.as_bytes());
    if sent != Some(format!("Bearer {ACCESS_TOKEN}").as_bytes()) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    axum::Json(provider.0.lock().unwrap().told.clone()).into_response()
}
