//! A retried POST does nothing twice.

use crate::world::{Answer, World, request};
use axum::body::Body;
use http::Method;
use serde_json::{Value, json};

async fn post(world: &World, key: &str, path: &str, token: &str, body: Value) -> Answer {
    let request = request(Method::POST, key, path)
        .header("content-type", "application/json")
        .header("idempotency-key", token);
    world
        .send(request.body(Body::from(body.to_string())).unwrap())
        .await
}

/// The first answer again, marked, and without the plain key.
#[tokio::test]
async fn a_replay_is_the_first_answer_without_its_secret() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let path = acme.path("/api-keys");
    let first = post(&world, &acme.key, &path, "once", json!({"name": "ci"}))
        .await
        .expect(201);
    let again = post(&world, &acme.key, &path, "once", json!({"name": "ci"}))
        .await
        .expect(201);
    assert_eq!(
        (
            first.header("idempotency-replayed"),
            again.header("idempotency-replayed")
        ),
        ("", "true")
    );
    assert_eq!(first.text("/data/id"), again.text("/data/id"));
    assert_eq!(first.header("location"), again.header("location"));
    assert!(again.text("/data/key").starts_with("sk_****"));
    assert_ne!(first.header("x-request-id"), again.header("x-request-id"));
    let total = world
        .get(&acme.key, &path)
        .await
        .expect(200)
        .at("/meta/total")
        .clone();
    assert_eq!(total, 2, "the company's first key and one more");
}

/// The same key for another request is a mistake; other companies and other routes do not meet.
#[tokio::test]
async fn a_reused_key_is_422() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    post(
        &world,
        &acme.key,
        &acme.path("/api-keys"),
        "k",
        json!({"name": "one"}),
    )
    .await
    .expect(201);
    post(
        &world,
        &acme.key,
        &acme.path("/api-keys"),
        "k",
        json!({"name": "two"}),
    )
    .await
    .expect_error(422, "IDEMPOTENCY_KEY_REUSED");
    post(
        &world,
        &other.key,
        &other.path("/api-keys"),
        "k",
        json!({"name": "one"}),
    )
    .await
    .expect(201);
}

/// What failed is executed anew.
#[tokio::test]
async fn a_failure_is_not_kept() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let path = acme.path("/api-keys");
    post(
        &world,
        &acme.key,
        &path,
        "k",
        json!({"name": "x", "role_id": 9}),
    )
    .await
    .expect_error(400, "VALIDATION_ERROR");
    post(&world, &acme.key, &path, "k", json!({"name": "x"}))
        .await
        .expect(201);
}

/// Of concurrent twins one works; the other waits its turn or gets the first's answer.
#[tokio::test]
async fn twins_create_once() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let path = acme.path("/api-keys");
    let (one, two) = tokio::join!(
        post(&world, &acme.key, &path, "k", json!({"name": "twin"})),
        post(&world, &acme.key, &path, "k", json!({"name": "twin"})),
    );
    let statuses = [one.status.as_u16(), two.status.as_u16()];
    assert!(
        statuses.contains(&201) && statuses.iter().all(|status| [201, 409].contains(status)),
        "{statuses:?}"
    );
    assert_eq!(
        world
            .get(&acme.key, &path)
            .await
            .expect(200)
            .at("/meta/total"),
        2
    );
}

/// A key that is empty, too long or not visible ASCII is refused.
#[tokio::test]
async fn malformed_keys_are_refused() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    for token in ["", "a b", &"x".repeat(256)] {
        let refused = post(
            &world,
            &acme.key,
            &acme.path("/api-keys"),
            token,
            json!({"name": "x"}),
        )
        .await;
        refused.expect_error(400, "INVALID_REQUEST");
    }
}
