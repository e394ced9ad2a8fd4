//! A provider whose keys change, or that is slow, away or another one.

use super::{AT_ONCE, ROUTE, VERIFIER};
use crate::provider::{Key, Provider, signed};
use crate::world::World;
use serde_json::json;
use std::time::Duration;

/// A stranger's token names a key that nobody knows, for which the provider is asked; whoever has one of a known key does not wait for that.
#[tokio::test]
async fn a_made_up_key_keeps_nobody_waiting() {
    let provider = Provider::start().await;
    let (world, _) = World::of_provider(&provider, AT_ONCE).await;
    world
        .with_token(&provider.token(json!({})))
        .await
        .expect(200);
    let token = provider.token(json!({"nonce": "another"}));
    let head = json!({"alg": "RS256", "kid": "made up"});
    let made_up = signed(head, &provider.claims(json!({})), &Key::rsa());
    provider.set_slow(Duration::from_secs(60));
    let mut stranger = std::pin::pin!(world.with_token(&made_up));
    let known = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        world.with_token(&token).await.expect(200)
    };
    tokio::select! {
        _ = &mut stranger => panic!("it did not wait for the provider"),
        _ = known => {}
    }
}

/// A new key is believed as soon as the provider publishes it, and the former one no more; made-up keys cost the provider nothing.
#[tokio::test]
async fn keys_are_rotated() {
    let provider = Provider::start().await;
    let (world, _) = World::of_provider(&provider, AT_ONCE).await;
    let [before, stale] = [(); 2].map(|()| provider.token(json!({})));
    world.with_token(&before).await.expect(200);
    provider.rotate("second", Key::es256());
    world
        .with_token(&provider.token(json!({})))
        .await
        .expect(200);
    world
        .with_token(&stale)
        .await
        .expect_error(401, "SIGN_IN_REFUSED");

    let (patient, _) = World::of_provider(&provider, Duration::from_secs(3_600)).await;
    patient
        .with_token(&provider.token(json!({})))
        .await
        .expect(200);
    let asked = provider.asked();
    for number in 0..5 {
        let head = json!({"alg": "ES256", "kid": format!("made up {number}")});
        let made_up = signed(head, &provider.claims(json!({})), &Key::es256());
        patient
            .with_token(&made_up)
            .await
            .expect_error(401, "SIGN_IN_REFUSED");
    }
    assert_eq!(provider.asked(), asked);
}

/// A provider that fails, is slow or is another one lets nobody in and says so; what is known of it holds meanwhile.
#[tokio::test]
async fn a_provider_may_fail() {
    const UNAVAILABLE: &str = "IDENTITY_PROVIDER_UNAVAILABLE";
    let provider = Provider::start().await;
    let (world, _) = World::of_provider(&provider, AT_ONCE).await;
    provider.set_down(true);
    let refused = world.with_token(&provider.token(json!({}))).await;
    let refused = refused.expect_error(503, UNAVAILABLE);
    assert_eq!(refused.header("retry-after"), "10");
    provider.set_down(false);
    world
        .with_token(&provider.token(json!({})))
        .await
        .expect(200);
    provider.set_down(true);
    world
        .with_token(&provider.token(json!({})))
        .await
        .expect(200);
    provider.code("one", VERIFIER, json!({}));
    let code = json!({"code": "one", "code_verifier": VERIFIER, "redirect_uri": "https://app.example/back", "nonce": "n-1"});
    world
        .sign_in(ROUTE, code.clone())
        .await
        .expect_error(503, UNAVAILABLE);

    // One that has just failed is left alone.
    let (patient, _) = World::of_provider(&provider, Duration::from_secs(3_600)).await;
    for is_down in [true, false] {
        provider.set_down(is_down);
        patient
            .with_token(&provider.token(json!({})))
            .await
            .expect_error(503, UNAVAILABLE);
    }
    let (hasty, _) = World::of_provider(&provider, AT_ONCE).await;
    provider.set_slow(Duration::from_secs(60));
    let began = std::time::Instant::now();
    hasty
        .with_token(&provider.token(json!({})))
        .await
        .expect_error(503, UNAVAILABLE);
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    provider.set_slow(Duration::ZERO);
    provider.name_itself("https://evil.example");
    hasty
        .with_token(&provider.token(json!({})))
        .await
        .expect_error(503, UNAVAILABLE);

    let unconfigured = World::new().await;
    let body = json!({"id_token": provider.token(json!({})), "nonce": "n-1"});
    unconfigured
        .sign_in(ROUTE, body)
        .await
        .expect_error(503, "SIGN_IN_NOT_CONFIGURED");
}
