//! Codes that a provider changes for a token, and what it is asked with what comes beside that.

use super::{AT_ONCE, ROUTE, VERIFIER};
use crate::provider::Provider;
use crate::world::World;
use serde_json::{Value, json};

/// A code is changed for a token once, with the verifier and the address that it was asked for with.
#[tokio::test]
async fn a_code_is_redeemed_with_its_verifier() {
    let provider = Provider::start().await;
    let (world, _) = World::of_provider(&provider, AT_ONCE).await;
    let body = |code: &str, verifier: &str, back: &str| json!({"code": code, "code_verifier": verifier, "redirect_uri": back, "nonce": "n-1"});
    let back = "https://app.example/back";
    for code in ["one", "two", "three", "four"] {
        provider.code(code, VERIFIER, json!({"nonce": "n-1"}));
    }
    let other = VERIFIER.replace('d', "e");
    for wrong in [
        body("one", &other, back),
        body("two", VERIFIER, "https://evil.example/"),
        body("no", VERIFIER, back),
    ] {
        world
            .sign_in(ROUTE, wrong)
            .await
            .expect_error(401, "SIGN_IN_REFUSED");
    }
    let right = body("three", VERIFIER, back);
    world.sign_in(ROUTE, right.clone()).await.expect(200);
    world
        .sign_in(ROUTE, right)
        .await
        .expect_error(401, "SIGN_IN_REFUSED");
    let mut attempt = body("four", VERIFIER, back);
    attempt["nonce"] = json!("n-2");
    world
        .sign_in(ROUTE, attempt)
        .await
        .expect_error(401, "SIGN_IN_REFUSED");

    for (wrong, fields) in [
        (
            json!({"nonce": "n-1"}),
            &["code", "code_verifier", "redirect_uri"][..],
        ),
        (
            json!({"nonce": "n-1", "code": "c", "code_verifier": VERIFIER}),
            &["redirect_uri"],
        ),
        (
            json!({"nonce": "n-1", "id_token": "t", "code": "c"}),
            &["code"],
        ),
        (json!({"id_token": ""}), &["id_token", "nonce"]),
        (
            json!({"nonce": "n-1", "code": "c", "code_verifier": "short", "redirect_uri": back}),
            &["code_verifier"],
        ),
    ] {
        let refused = world
            .sign_in(ROUTE, wrong)
            .await
            .expect_error(400, "VALIDATION_ERROR");
        assert_eq!(refused.fields(), fields);
    }
}

/// A provider that keeps an ID token to who it is tells the address where it is asked with the access token, and is believed there as far as in
/// a token: of the same person, with its own word for the address.
#[tokio::test]
async fn an_address_may_be_told_elsewhere() {
    let provider = Provider::start().await;
    let told = |change: Value| {
        let mut told = json!({"sub": "1001", "email": "Ann@example.org", "email_verified": true});
        let members = change.as_object().unwrap().clone();
        told.as_object_mut().unwrap().extend(members);
        provider.tell(told);
    };
    told(json!({}));
    let (world, _) = World::of_provider(&provider, AT_ONCE).await;
    let come = async |name: &str, claims: Value| {
        let mut claims = claims;
        claims["nonce"] = json!(name);
        provider.code(name, VERIFIER, claims);
        let back = "https://app.example/back";
        let body =
            json!({"code": name, "code_verifier": VERIFIER, "redirect_uri": back, "nonce": name});
        world.sign_in(ROUTE, body).await
    };
    let silent = || json!({"email": null, "email_verified": null});
    for (name, change) in [
        ("unverified", json!({"email_verified": false})),
        ("unsaid", json!({"email_verified": null})),
        ("none", json!({"email": null})),
        ("other", json!({"email": "eve@example.org"})),
    ] {
        told(change);
        let refused = come(name, silent()).await;
        refused.expect_error(403, "NOT_INVITED");
    }
    // It speaks of somebody else: nobody's word for this address.
    told(json!({"sub": "1002"}));
    let refused = come("another", silent()).await;
    refused.expect_error(503, "IDENTITY_PROVIDER_UNAVAILABLE");
    told(json!({}));
    // What the token says is not asked again.
    let unverified = json!({"email_verified": false});
    come("said", unverified)
        .await
        .expect_error(403, "NOT_INVITED");
    // Who comes with a token and no code has nothing to ask with.
    let token = provider.token(silent());
    world
        .with_token(&token)
        .await
        .expect_error(403, "NOT_INVITED");
    let entered = come("right", silent()).await.expect(200);
    assert_eq!(entered.at("/data/user/email_verified"), true);
    // Who is known needs no address, and is not kept out by what cannot be asked.
    told(json!({"sub": "1002"}));
    come("known", silent()).await.expect(200);
}
