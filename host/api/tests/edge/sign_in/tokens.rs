//! What a token must say, by whom it must be signed, and that it is good for once.

use super::{AT_ONCE, ROUTE, VERIFIER};
use crate::provider::{CLIENT, Key, Provider, nonce, signed, unsigned};
use crate::world::World;
use hmac::{KeyInit, Mac};
use serde_json::json;
use souk_domain::time::Timestamp;
use souk_store::nonces;
use std::time::Duration;

/// A token that is not for this client and this attempt, not by this issuer, not valid now, or not signed by its key, proves nothing.
#[tokio::test]
async fn a_lie_is_refused() {
    let provider = Provider::start().await;
    let (world, _) = World::of_provider(&provider, AT_ONCE).await;
    let now = crate::world::now().seconds();
    for lie in [
        json!({"aud": "another"}),
        json!({"aud": [CLIENT, "another"]}),
        json!({"aud": []}),
        json!({"aud": null}),
        json!({"azp": "another"}),
        json!({"iss": "https://accounts.google.com"}),
        json!({"iss": [provider.issuer()]}),
        json!({"iss": null}),
        json!({"nonce": null}),
        json!({"nonce": ["n-1"]}),
        json!({"exp": now - 120}),
        json!({"exp": null}),
        json!({"exp": "never"}),
        json!({"nbf": now + 120}),
        json!({"sub": null}),
        json!({"sub": ""}),
    ] {
        let refused = world.with_token(&provider.token(lie.clone())).await;
        let refused = refused.expect_error(401, "SIGN_IN_REFUSED");
        assert_eq!(refused.header("set-cookie"), "", "{lie}");
    }
    let others = json!({"id_token": provider.token(json!({"nonce": "n-2"})), "nonce": "n-1"});
    world
        .sign_in(ROUTE, others)
        .await
        .expect_error(401, "SIGN_IN_REFUSED");
    let claims = provider.claims(json!({}));
    let good = provider.token(json!({}));
    let (message, signature) = good.rsplit_once('.').unwrap();
    let other = provider.claims(json!({"email": "admin@example.org"}));
    let (head, _) = message.split_once('.').unwrap();
    let changed = unsigned(json!({}), &other);
    let changed = changed.split_once('.').unwrap().1;
    let confused = |algorithm: &str| {
        // Signed with what is public of the provider's key, as if that were a shared secret.
        let message = unsigned(json!({"alg": algorithm, "kid": "first"}), &claims);
        let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(b"hello").unwrap();
        mac.update(message.as_bytes());
        let signature = base64::Engine::encode(
            &base64::engine::general_purpose::URL_SAFE_NO_PAD,
            mac.finalize().into_bytes(),
        );
        format!("{message}.{signature}")
    };
    for (token, what) in [
        (format!("{head}.{changed}.{signature}"), "other claims"),
        (format!("{message}."), "no signature"),
        (
            format!("{}.", unsigned(json!({"alg": "none"}), &claims)),
            "none",
        ),
        (confused("HS256"), "a shared secret"),
        (
            signed(
                json!({"alg": "ES256", "kid": "first"}),
                &claims,
                &Key::es256(),
            ),
            "another kind of key",
        ),
        (
            signed(
                json!({"alg": "RS256", "kid": "other"}),
                &claims,
                &Key::rsa(),
            ),
            "an unknown key",
        ),
        (
            signed(json!({"alg": "ES256"}), &claims, &Key::es256()),
            "no key of the kind",
        ),
        ("x".repeat(100), "no token"),
        ("a.b.c".to_owned(), "no token"),
    ] {
        let refused = world.with_token(&token).await;
        assert_eq!(refused.status, 401, "{what}: {}", refused.body);
        refused.expect_error(401, "SIGN_IN_REFUSED");
    }
    // After all of that, the truth.
    world.with_token(&good).await.expect(200);
    let several = provider.token(json!({"aud": [CLIENT, "another"], "azp": CLIENT}));
    world.with_token(&several).await.expect(200);
    let unnamed = signed(json!({"alg": "RS256"}), &claims, &Key::rsa());
    world.with_token(&unnamed).await.expect(200);
}

/// A nonce is good for one session, whoever shows which token with it and on however many hosts at once; an attempt that came to nothing does
/// not spend it. It is remembered for as long as its token holds.
#[tokio::test]
async fn a_nonce_signs_in_once() {
    let provider = Provider::start().await;
    let (world, acme) = World::of_provider(&provider, AT_ONCE).await;
    let stolen = provider.token(json!({}));
    let others = provider.token(json!({"nonce": nonce(&stolen), "iat": 1}));
    assert_ne!(stolen, others);
    let (one, two) = tokio::join!(world.with_token(&stolen), world.with_token(&stolen));
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401]);
    for token in [&stolen, &others] {
        let refused = world.with_token(token).await;
        let refused = refused.expect_error(401, "SIGN_IN_REFUSED");
        assert!(refused.text("/error/message").contains("nonce"));
        assert_eq!(refused.header("set-cookie"), "");
    }
    let body = json!({"code": "one", "code_verifier": VERIFIER, "redirect_uri": "https://app.example/back", "nonce": nonce(&stolen)});
    provider.code("one", VERIFIER, json!({"nonce": nonce(&stolen)}));
    world
        .sign_in(ROUTE, body)
        .await
        .expect_error(401, "SIGN_IN_REFUSED");

    let early = provider.token(json!({"sub": "1002", "email": "eve@example.org"}));
    world
        .with_token(&early)
        .await
        .expect_error(403, "NOT_INVITED");
    let eve = json!({"email": "eve@example.org"});
    world.invite(&acme, eve).await.expect(201);
    world.with_token(&early).await.expect(200);

    let sweep = async |at: Timestamp| {
        let swept = world.db.write(async |write| nonces::sweep(write, at).await);
        swept.await.unwrap()
    };
    let minutes = |count: u64| Duration::from_secs(60 * count);
    let now = crate::world::now();
    // They hold for five minutes, and clocks differ.
    assert!(!sweep(now.after(minutes(6))).await);
    assert!(sweep(now.after(minutes(8))).await);
}
