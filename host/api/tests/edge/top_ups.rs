//! Buying credits: through Stripe, by bank transfer, and with play money. Whatever is repeated or races, a top-up is credited once.

mod disputes;
mod events;
mod under_way;

use crate::stripe::{Mood, StandIn, WEBHOOK_SECRET, sign};
use crate::world::{Answer, Company, World, now, request};
use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use souk_app::payments::Payments;
use souk_app::payments::instant::Instant;
use std::sync::Arc;

const WEBHOOK: &str = "/webhooks/payments/stripe";

async fn buy(world: &World, company: &Company, key: &str) -> Answer {
    let path = company.path("/credits/top-ups");
    let body = json!({"credits": 40});
    world.post_keyed(&company.key, &path, key, body).await
}

struct Shop {
    world: World,
    stripe: StandIn,
    acme: Company,
}

impl Shop {
    async fn open() -> Shop {
        let stripe = StandIn::start().await;
        let world = World::with_payments(Payments::new(stripe.provider())).await;
        let acme = world.company("acme").await;
        Shop {
            world,
            stripe,
            acme,
        }
    }

    async fn buy(&self, key: &str, body: Value) -> Answer {
        let path = self.acme.path("/credits/top-ups");
        self.world
            .post_keyed(&self.acme.key, &path, key, body)
            .await
    }

    /// A pending top-up of 40 credits.
    async fn order(&self, key: &str) -> String {
        let begun = self.buy(key, json!({"credits": 40})).await.expect(201);
        begun.text("/data/id")
    }

    async fn tell(&self, signature: &str, body: &str) -> Answer {
        let request = request(Method::POST, "", WEBHOOK)
            .header("content-type", "application/json")
            .header("stripe-signature", signature);
        self.world
            .send(request.body(Body::from(body.to_owned())).unwrap())
            .await
    }

    async fn tell_signed(&self, event: &Value) -> Answer {
        let body = event.to_string();
        self.tell(&sign(WEBHOOK_SECRET, now().seconds(), &body), &body)
            .await
    }

    async fn top_up(&self, id: &str) -> Answer {
        let path = self.acme.path(&format!("/credits/top-ups/{id}"));
        self.world.get(&self.acme.key, &path).await
    }

    async fn status(&self, id: &str) -> String {
        self.top_up(id).await.expect(200).text("/data/status")
    }

    async fn balance(&self) -> i64 {
        self.world.balance(&self.acme).await
    }
}

/// A provider that fails leaves a top-up that failed, and the same key may be tried again; one that stumbles is asked again, once.
#[tokio::test]
async fn a_failing_provider_costs_nothing() {
    let shop = Shop::open().await;
    let credits = json!({"credits": 2});
    let unusable = "the payment provider could not be used";
    let closed = "the payment provider refused: your account is closed";
    for (mood, status, code, requests, told) in [
        (Mood::Down, 503, "PAYMENT_PROVIDER_UNAVAILABLE", 2, unusable),
        (
            Mood::Flooding,
            503,
            "PAYMENT_PROVIDER_UNAVAILABLE",
            2,
            unusable,
        ),
        (Mood::Refusing, 502, "PAYMENT_PROVIDER_ERROR", 1, closed),
    ] {
        shop.stripe.feel(mood);
        let before = shop.stripe.requests();
        let refused = shop.buy("one", credits.clone()).await;
        refused.expect_error(status, code);
        assert_eq!(shop.stripe.requests() - before, requests);
        let newest = shop.acme.path("/credits/top-ups?per_page=1");
        let newest = shop.world.get(&shop.acme.key, &newest).await.expect(200);
        assert_eq!(newest.at("/data/0/failure_reason"), told);
    }
    shop.stripe.feel(Mood::Well);
    let body = json!({"credits": 2, "payment_method": "barter"});
    let refused = shop.buy("three", body).await;
    assert_eq!(
        refused.expect_error(400, "VALIDATION_ERROR").field(),
        "payment_method"
    );
    shop.stripe.feel(Mood::Stumbling);
    let begun = shop.buy("one", credits).await.expect(201);
    assert_eq!(begun.at("/data/status"), "pending");
    let list = shop
        .world
        .get(
            &shop.acme.key,
            &shop.acme.path("/credits/top-ups?per_page=1"),
        )
        .await
        .expect(200);
    assert_eq!(list.at("/data/0/id"), begun.at("/data/id"));
    assert_eq!(shop.balance().await, 0);
}

/// A repeated request gets the first answer, and the provider is asked once; without a key nothing happens.
#[tokio::test]
async fn a_repeated_order_is_one_order() {
    let shop = Shop::open().await;
    let path = shop.acme.path("/credits/top-ups");
    let refused = shop
        .world
        .post(&shop.acme.key, &path, json!({"credits": 40}))
        .await;
    assert_eq!(
        refused.expect_error(400, "INVALID_REQUEST").field(),
        "Idempotency-Key"
    );
    let first = shop.order("one").await;
    let again = shop.buy("one", json!({"credits": 40})).await.expect(201);
    assert_eq!(again.text("/data/id"), first);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(shop.stripe.requests(), 1);
    shop.buy("one", json!({"credits": 41}))
        .await
        .expect_error(422, "IDEMPOTENCY_KEY_REUSED");

    for (body, field) in [
        (json!({}), "credits"),
        (json!({"credits": 1, "amount_usd": 0.5}), "credits"),
        (json!({"credits": 0}), "credits"),
        (json!({"credits": 100_001}), "credits"),
        (json!({"amount_usd": 19.99}), "amount_usd"),
        (json!({"amount_usd": -1}), "amount_usd"),
        (
            json!({"credits": 1, "return_url": "javascript:alert(1)"}),
            "return_url",
        ),
    ] {
        let refused = shop.buy("bad", body).await;
        assert_eq!(refused.expect_error(400, "VALIDATION_ERROR").field(), field);
    }
    let other = shop.world.company("other").await;
    shop.world
        .get(
            &other.key,
            &other.path(&format!("/credits/top-ups/{first}")),
        )
        .await
        .expect_error(404, "TOP_UP_NOT_FOUND");
}

/// A company has a hundred top-ups an hour, whatever comes of them: beyond that nothing is written, and the provider is not asked. What was answered
/// is answered again, and another company has its own.
#[tokio::test]
async fn top_ups_are_counted_for_their_company() {
    let shop = Shop::open().await;
    let first = shop.order("first").await;
    let wrong = json!({"credits": 2, "payment_method": "barter"});
    for number in 1..100 {
        let key = format!("wrong-{number}");
        shop.buy(&key, wrong.clone()).await.expect(400);
    }
    for body in [wrong, json!({"credits": 40})] {
        let refused = shop.buy("late", body).await;
        let refused = refused.expect_error(429, "RATE_LIMIT_EXCEEDED");
        assert_eq!(refused.text("/error/details/scope"), "company");
        let wait: u64 = refused.header("retry-after").parse().unwrap();
        assert!((3_000..=3_600).contains(&wait), "{wait}");
    }
    assert_eq!(shop.stripe.requests(), 100);
    let path = shop.acme.path("/credits/top-ups");
    let listed = shop.world.get(&shop.acme.key, &path).await.expect(200);
    assert_eq!(listed.at("/meta/total"), 100);
    assert_eq!(shop.order("first").await, first);
    let other = shop.world.company("other").await;
    buy(&shop.world, &other, "first").await.expect(201);
}

/// A bank transfer is settled by platform staff, once, and by nobody else.
#[tokio::test]
async fn staff_settles_bank_transfers() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let path = acme.path("/credits/top-ups");
    let begun = world
        .post_keyed(&acme.key, &path, "one", json!({"credits": 10}))
        .await
        .expect(201);
    assert_eq!(
        (begun.at("/data/status"), begun.at("/data/checkout_url")),
        (&json!("pending"), &Value::Null)
    );
    let settle = format!("/admin/top-ups/{}/settle", begun.text("/data/id"));
    let reference = json!({"reference": "statement 7, line 3"});
    world
        .post(&acme.key, &settle, reference.clone())
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    world
        .post(&world.platform, &settle, json!({}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    let attempt = || world.post(&world.platform, &settle, reference.clone());
    let (first, second) = tokio::join!(attempt(), attempt());
    let mut statuses = [first.status.as_u16(), second.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    assert_eq!(world.balance(&acme).await, 10);
    world
        .post(&world.platform, "/admin/top-ups/top_no/settle", reference)
        .await
        .expect_error(404, "TOP_UP_NOT_FOUND");
    world.assert_books().await;
}

/// Staff sees which top-ups of all companies wait, and whose they are; nobody else does.
#[tokio::test]
async fn staff_sees_which_top_ups_wait() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let mut begun = Vec::new();
    for company in [&acme, &other] {
        let made = buy(&world, company, "one").await.expect(201);
        begun.push(made.text("/data/id"));
    }
    let listed = async |query: &str| {
        let path = format!("/admin/top-ups{query}");
        let listed = world.get(&world.platform, &path).await.expect(200);
        let rows = listed.at("/data").as_array().unwrap().iter();
        let text = |row: &Value, member: &str| row[member].as_str().unwrap().to_owned();
        let mut rows: Vec<(String, String)> = rows
            .map(|row| (text(row, "id"), text(row, "company_id")))
            .collect();
        rows.sort();
        assert_eq!(listed.at("/meta/total"), rows.len());
        rows
    };
    let row = |place: usize, company: &Company| (begun[place].clone(), company.id.clone());
    let mut both = vec![row(0, &acme), row(1, &other)];
    both.sort();
    assert_eq!(listed("?status=pending").await, both);
    let settle = format!("/admin/top-ups/{}/settle", begun[0]);
    let reference = json!({"reference": "statement 7, line 3"});
    world
        .post(&world.platform, &settle, reference)
        .await
        .expect(200);
    assert_eq!(listed("?status=pending").await, [row(1, &other)]);
    assert_eq!(listed("?status=settled").await, [row(0, &acme)]);
    assert!(listed("?status=failed").await.is_empty());
    assert_eq!(listed("").await, both);
    world
        .get(&acme.key, "/admin/top-ups?status=pending")
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    world
        .get(&world.platform, "/admin/top-ups?status=open")
        .await
        .expect_error(400, "INVALID_PARAMETER");
}

/// In the demo a top-up is paid at once, and a repeated request is paid once.
#[tokio::test]
async fn play_money_is_there_at_once() {
    let world = World::with_payments(Payments::new(Arc::new(Instant))).await;
    let acme = world.company("acme").await;
    let path = acme.path("/credits/top-ups");
    for _ in 0..2 {
        let bought = world
            .post_keyed(&acme.key, &path, "one", json!({"credits": 10}))
            .await
            .expect(201);
        assert_eq!(bought.at("/data/status"), "settled");
        assert!(bought.at("/data/settled_at").is_string());
    }
    assert_eq!(world.balance(&acme).await, 10);
    world.assert_books().await;
}
