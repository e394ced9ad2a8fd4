//! A retried POST does nothing twice.

use crate::world::{Answer, World, request};
use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use souk_api::limiter::IN_FLIGHT_MAX;
use souk_api::{Access, Deleted, Operation, Problem, Routes};
use souk_domain::products::SourceKind;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::Poll;
use std::time::{Duration, Instant};
use tower::ServiceExt;

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

/// Whoever leaves, at whatever moment, may ask again at once with the same key, and it is done once.
#[tokio::test]
async fn who_leaves_at_any_moment_may_ask_again() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let path = acme.path("/webhooks");
    let body = json!({"url": "https://93.184.216.34/souk"});
    for moment in 1.. {
        let key = format!("moment-{moment}");
        let asked = request(Method::POST, &acme.key, &path)
            .header("content-type", "application/json")
            .header("idempotency-key", &key)
            .body(Body::from(body.to_string()))
            .unwrap();
        let has_ended = given_up_at(moment, world.router.clone().oneshot(asked)).await;
        let since = Instant::now();
        let webhook = loop {
            let again = post(&world, &acme.key, &path, &key, body.clone()).await;
            if again.status == 201 {
                break again.text("/data/id");
            }
            again.expect_error(409, "IDEMPOTENCY_IN_PROGRESS");
            let waited = since.elapsed();
            assert!(waited < Duration::from_secs(60), "left at moment {moment}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let all = world.get(&acme.key, &path).await.expect(200);
        assert_eq!(all.at("/meta/total"), 1, "left at moment {moment}");
        let gone = acme.path(&format!("/webhooks/{webhook}"));
        let gone = request(Method::DELETE, &acme.key, &gone).body(Body::empty());
        world.send(gone.unwrap()).await.expect(204);
        if has_ended {
            return;
        }
    }
}

/// Polls so often and gives up where it would be polled once more. Whether it has ended before.
async fn given_up_at(moment: usize, asked: impl Future) -> bool {
    let mut asked = Box::pin(asked);
    let mut left = moment;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        asked.as_mut().poll(context).map(|_| true)
    })
    .await
}

/// What a key protects goes on when its client hangs up, and is a call in flight until it ends: who hangs up begins no more than who waits.
#[tokio::test]
async fn a_call_that_its_client_has_left_is_in_flight() {
    static ENTERED: AtomicU32 = AtomicU32::new(0);
    static ENDS: AtomicU32 = AtomicU32::new(0);
    async fn waits() -> Result<Deleted, Problem> {
        ENTERED.fetch_add(1, Relaxed);
        while ENDS.load(Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(Deleted)
    }
    async fn entered(count: u32) {
        while ENTERED.load(Relaxed) < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let world = World::new().await;
    let acme = world.company("acme").await;
    let operation = Operation::post("waits", "/waits").access(Access::Data);
    let router = Routes::new()
        .add(operation.runs_connector(), waits)
        .into_router(world.state.clone());
    let asked = || request(Method::POST, &acme.key, "/waits");
    for count in 1..=IN_FLIGHT_MAX {
        let asked = asked().header("idempotency-key", format!("call-{count}"));
        let mut asked = Box::pin(router.clone().oneshot(asked.body(Body::empty()).unwrap()));
        tokio::select! {
            _ = &mut asked => panic!("it does not end yet"),
            () = entered(count) => {}
        }
    }
    let one_more = async || {
        let asked = asked().body(Body::empty()).unwrap();
        Answer::of(router.clone().oneshot(asked).await.unwrap()).await
    };
    let refused = one_more().await;
    refused.expect_error(429, "CONCURRENCY_LIMIT_EXCEEDED");

    ENDS.store(1, Relaxed);
    let since = Instant::now();
    loop {
        let answer = one_more().await;
        if answer.status == 204 {
            break;
        }
        answer.expect_error(429, "CONCURRENCY_LIMIT_EXCEEDED");
        assert!(since.elapsed() < Duration::from_secs(60), "a place is lost");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
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

/// A company's kept answers take what they may; then requests with a key are refused before anything is done, and those without go on.
#[tokio::test]
async fn kept_answers_are_bounded_for_each_company() {
    let room = souk_store::idempotency::CLAIM_BYTES + 4_000;
    let world = World::with_kept_answers(room).await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let path = acme.path("/api-keys");
    let mut made = 0;
    let refused = loop {
        let body = json!({"name": "k"});
        let answer = post(&world, &acme.key, &path, &format!("k{made}"), body).await;
        match answer.status.as_u16() {
            201 => made += 1,
            _ => break answer,
        }
    };
    let refused = refused.expect_error(429, "IDEMPOTENCY_LIMIT_EXCEEDED");
    assert_eq!(refused.header("retry-after"), "600");
    assert_eq!(refused.at("/error/details/limit_bytes"), room);
    assert!((1..10).contains(&made), "{made}");
    let total = world.get(&acme.key, &path).await.expect(200);
    assert_eq!(total.at("/meta/total"), 1 + made);
    let again = post(&world, &acme.key, &path, "k0", json!({"name": "k"})).await;
    assert_eq!(again.expect(201).header("idempotency-replayed"), "true");
    world
        .post(&acme.key, &acme.path("/webhooks"), json!({"url": "x"}))
        .await
        .expect(400);
    let body = json!({"name": "k"});
    post(&world, &other.key, &other.path("/api-keys"), "k", body)
        .await
        .expect(201);
}

/// What moves money and the answer that is kept for a retry are one: where the answer cannot be kept nothing is moved, as when the host dies
/// in between, and the retry moves it once.
#[tokio::test]
async fn money_and_its_kept_answer_are_one() {
    let world = World::new().await;
    let (seller, buyer) = (world.company("seller").await, world.company("buyer").await);
    world.grant(&buyer, 1_000).await;
    let asset = world.asset(&seller).await;
    let charge = world.charge(&buyer, &seller, &asset, 100).await;
    let later = crate::world::now().after(std::time::Duration::from_secs(1));
    souk_app::earnings::mature(&world.db, later, crate::world::now())
        .await
        .unwrap();
    let method = json!({"type": "paypal", "account_holder": "S", "destination": "s@example.com"});
    world
        .put(&seller.key, &seller.path("/payout-method"), method)
        .await
        .expect(200);
    let grants = format!("/admin/companies/{}/credits/grants", buyer.id);
    let refund = seller.path(&format!("/credits/transactions/{charge}/refund"));
    let requests = [
        (
            &world.platform,
            grants,
            json!({"credits": 5, "reason": "x"}),
            "grant",
        ),
        (
            &seller.key,
            seller.path("/payouts"),
            json!({"amount_usd": 15}),
            "payout",
        ),
        (&seller.key, refund, json!({"reason": "x"}), "refund"),
    ];
    for (key, path, body, kind) in requests {
        let booked = async || {
            let mut read = world.db.read().await.unwrap();
            let row: (i64,) = sqlx::query_as("SELECT COUNT(*) FROM transactions WHERE type = $1")
                .bind(kind)
                .fetch_one(&mut *read)
                .await
                .unwrap();
            row.0
        };
        // The payout has taken what the refund needs.
        if kind == "refund" {
            world.charge(&buyer, &seller, &asset, 100).await;
        }
        let before = booked().await;
        world.break_answers().await;
        let broken = post(&world, key, &path, "once", body.clone()).await;
        assert_eq!(broken.status.as_u16(), 500, "{kind}: {}", broken.body);
        world.mend_answers().await;
        assert_eq!(booked().await, before, "{kind}: moved without its answer");
        let first = post(&world, key, &path, "once", body.clone())
            .await
            .expect(201);
        let again = post(&world, key, &path, "once", body).await.expect(201);
        assert_eq!(again.header("idempotency-replayed"), "true");
        assert_eq!(
            (&first.body, booked().await),
            (&again.body, before + 1),
            "{kind}"
        );
        assert_eq!(first.header("location"), again.header("location"));
    }
    world.assert_books().await;
}

/// So it is with what a retry would do once more: a price, a discount, which would be taken off the discounted price, and an alert.
#[tokio::test]
async fn prices_and_alerts_and_their_kept_answers_are_one() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let asset = world.asset_with(&acme, |asset| {
        asset.details.source_kind = SourceKind::Path;
        asset.details.source = "/goals".into();
    });
    let asset = asset.await;
    let prices = acme.path(&format!("/assets/{asset}/prices"));
    let discounts = format!("{prices}/discount");
    let alerts = acme.path(&format!("/users/{}/alerts", acme.user_id));
    for (path, list, body) in [
        (&prices, &prices, json!({"price_credits": 10})),
        (&discounts, &prices, json!({"discount_percent": 50})),
        (&alerts, &alerts, json!({"asset_id": asset})),
    ] {
        let total = async || {
            let listed = world.get(&acme.key, list).await.expect(200);
            listed.at("/meta/total").as_i64().unwrap()
        };
        let before = total().await;
        world.break_answers().await;
        let broken = post(&world, &acme.key, path, "once", body.clone()).await;
        assert_eq!(broken.status.as_u16(), 500, "{path}: {}", broken.body);
        world.mend_answers().await;
        assert_eq!(total().await, before, "{path}: done without its answer");
        let first = post(&world, &acme.key, path, "once", body.clone()).await;
        let first = first.expect(201);
        let again = post(&world, &acme.key, path, "once", body).await;
        let again = again.expect(201);
        assert_eq!(again.header("idempotency-replayed"), "true");
        assert_eq!(first.header("location"), again.header("location"));
        assert_eq!(
            (&first.body, total().await),
            (&again.body, before + 1),
            "{path}"
        );
    }
    let active = world.get(&acme.key, &format!("{prices}/active")).await;
    assert_eq!(active.expect(200).at("/data/price_credits"), 5);
}
