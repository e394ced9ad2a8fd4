//! Buying credits: through Stripe, by bank transfer, and with play money. Whatever is repeated or races, a top-up is credited once.

use crate::stripe::{Mood, StandIn, WEBHOOK_SECRET, sign};
use crate::world::{Answer, Company, World, now, request};
use axum::body::Body;
use futures_util::future::BoxFuture;
use futures_util::poll;
use futures_util::stream::{FuturesUnordered, StreamExt};
use http::Method;
use serde_json::{Value, json};
use souk_app::payments::instant::Instant;
use souk_app::payments::manual::Manual;
use souk_app::payments::{BeginError, Begun, Order, Payments, Provider};
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::Semaphore;

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

/// Credits bought through Stripe are there when its signed event says that they were paid, and only then.
#[tokio::test]
async fn stripe_top_ups_are_settled_by_their_event() {
    let shop = Shop::open().await;
    let body = json!({"amount_usd": 20.0, "payment_method": "card", "return_url": "https://acme.example/paid"});
    let begun = shop.buy("one", body).await.expect(201);
    let id = begun.text("/data/id");
    assert_eq!(
        (
            begun.at("/data/credits"),
            begun.at("/data/amount_usd"),
            begun.at("/data/status"),
            begun.at("/data/settled_at")
        ),
        (&json!(40), &json!(20), &json!("pending"), &Value::Null)
    );
    assert!(
        begun
            .text("/data/checkout_url")
            .starts_with("https://checkout.stripe.com/")
    );
    assert!(
        begun
            .header("location")
            .ends_with(&format!("/credits/top-ups/{id}"))
    );
    let (form, _) = shop.stripe.session(&id);
    for (name, value) in [
        ("mode", "payment"),
        ("client_reference_id", id.as_str()),
        ("metadata[company_id]", shop.acme.id.as_str()),
        ("line_items[0][quantity]", "1"),
        ("line_items[0][price_data][currency]", "usd"),
        ("line_items[0][price_data][unit_amount]", "2000"),
        (
            "line_items[0][price_data][product_data][name]",
            "40 credits",
        ),
        ("payment_method_types[0]", "card"),
        ("success_url", "https://acme.example/paid"),
    ] {
        assert_eq!(form[name], value, "{name}");
    }
    assert_eq!(shop.balance().await, 0);

    let paid = shop
        .stripe
        .event("evt_1", "checkout.session.completed", &id, "paid");
    let told = shop.tell_signed(&paid).await.expect(200);
    // The top-up and its transaction are in the audit log, as of nobody with a key.
    let operations = shop.world.audited(&told).await;
    assert_eq!(operations, ["receive_payment_event"; 2]);
    assert_eq!(shop.balance().await, 40);
    let settled = shop.top_up(&id).await.expect(200);
    assert_eq!(settled.at("/data/status"), "settled");
    assert!(settled.at("/data/settled_at").is_string());
    assert!(settled.at("/data/checkout_url").is_null());
    let statement = shop
        .world
        .get(
            &shop.acme.key,
            &shop.acme.path("/credits/transactions?type=top_up"),
        )
        .await
        .expect(200);
    assert_eq!(
        (
            statement.at("/meta/total"),
            statement.at("/data/0/amount_credits"),
            statement.at("/data/0/amount_usd_cents")
        ),
        (&json!(1), &json!(40), &json!(2000))
    );
    shop.world.assert_books().await;
}

/// The same event again, another event about the same payment, and both at once: one credit.
#[tokio::test]
async fn repeated_and_racing_events_credit_once() {
    let shop = Shop::open().await;
    let id = shop.order("one").await;
    let events = [
        shop.stripe
            .event("evt_1", "checkout.session.completed", &id, "paid"),
        shop.stripe.event(
            "evt_2",
            "checkout.session.async_payment_succeeded",
            &id,
            "paid",
        ),
    ];
    let settle = format!("/admin/top-ups/{id}/settle");
    let staff = || {
        shop.world
            .post(&shop.world.platform, &settle, json!({"reference": "bank"}))
    };
    // On PostgreSQL they meet in the store; on SQLite they queue.
    let (a, b, c, d, e) = tokio::join!(
        shop.tell_signed(&events[0]),
        shop.tell_signed(&events[0]),
        shop.tell_signed(&events[1]),
        staff(),
        shop.tell_signed(&events[1]),
    );
    for answer in [a, b, c, e] {
        answer.expect(200);
    }
    assert!([200, 409].contains(&d.status.as_u16()), "{}", d.body);
    for event in &events {
        shop.tell_signed(event).await.expect(200);
    }
    staff().await.expect_error(409, "INVALID_STATE");
    assert_eq!(shop.balance().await, 40);
    shop.world.assert_books().await;
}

/// An event counts only with a signature over exactly this body, by the webhook's secret, of about now.
#[tokio::test]
async fn forged_and_old_events_are_refused() {
    let shop = Shop::open().await;
    let id = shop.order("one").await;
    let body = shop
        .stripe
        .event("evt_1", "checkout.session.completed", &id, "paid")
        .to_string();
    let seconds = now().seconds();
    let other = body.replace("evt_1", "evt_2");
    for signature in [
        String::new(),
        "nonsense".to_owned(),
        format!("t={seconds},v1="),
        sign("whsec_other", seconds, &body),
        sign("sk_test_souk", seconds, &body),
        sign(WEBHOOK_SECRET, seconds, &other),
        sign(WEBHOOK_SECRET, seconds - 310, &body),
        sign(WEBHOOK_SECRET, seconds + 310, &body),
        sign(WEBHOOK_SECRET, seconds - 310, &body)
            .replace(&(seconds - 310).to_string(), &seconds.to_string()),
    ] {
        shop.tell(&signature, &body)
            .await
            .expect_error(400, "INVALID_SIGNATURE");
    }
    let unsigned = request(Method::POST, "", WEBHOOK)
        .body(Body::from(body.clone()))
        .unwrap();
    shop.world
        .send(unsigned)
        .await
        .expect_error(400, "INVALID_SIGNATURE");
    assert_eq!(
        (shop.balance().await, shop.status(&id).await.as_str()),
        (0, "pending")
    );

    let garbage = "{";
    shop.tell(&sign(WEBHOOK_SECRET, seconds, garbage), garbage)
        .await
        .expect_error(400, "INVALID_REQUEST");
    for provider in ["manual", "paypal"] {
        shop.world
            .post("", &format!("/webhooks/payments/{provider}"), json!({}))
            .await
            .expect_error(404, "PAYMENT_PROVIDER_NOT_FOUND");
    }
    // Nearly too old is good, and a second signature beside the right one does no harm (secrets are replaced that way).
    let good = sign(WEBHOOK_SECRET, seconds - 200, &body).replace(",v0=0000", ",v1=0000");
    shop.tell(&good, &body).await.expect(200);
    assert_eq!(shop.balance().await, 40);
}

/// Unpaid, failed, expired, foreign and wrong payments credit nothing; a payment that comes late after all does.
#[tokio::test]
async fn only_a_full_payment_credits() {
    let shop = Shop::open().await;
    let (id, late) = (shop.order("one").await, shop.order("two").await);
    let event = |id: &str, kind: &str, top_up: &str, paid: &str| {
        shop.stripe
            .event(id, &format!("checkout.session.{kind}"), top_up, paid)
    };
    let mut short = event("evt_1", "completed", &id, "paid");
    short["data"]["object"]["amount_total"] = json!(1999);
    let mut euros = event("evt_2", "completed", &id, "paid");
    euros["data"]["object"]["currency"] = json!("eur");
    let mut foreign = event("evt_3", "completed", &id, "paid");
    foreign["data"]["object"]["client_reference_id"] = json!("top_unknown");
    let mut nameless = event("evt_4", "completed", &id, "paid");
    nameless["data"]["object"]["client_reference_id"] = Value::Null;
    let customer =
        json!({"id": "evt_5", "type": "customer.created", "data": {"object": {"id": "cus_1"}}});
    let unpaid = event("evt_6", "completed", &id, "unpaid");
    for harmless in [short, euros, foreign, nameless, customer, unpaid] {
        shop.tell_signed(&harmless).await.expect(200);
        assert_eq!(shop.status(&id).await, "pending", "{harmless}");
    }
    let failed = event("evt_7", "async_payment_failed", &id, "unpaid");
    shop.tell_signed(&failed).await.expect(200);
    let expired = event("evt_8", "expired", &late, "unpaid");
    shop.tell_signed(&expired).await.expect(200);
    for id in [&id, &late] {
        let top_up = shop.top_up(id).await.expect(200);
        assert_eq!(top_up.at("/data/status"), "failed");
        assert!(top_up.at("/data/failure_reason").is_string());
    }
    assert_eq!(shop.balance().await, 0);

    let after_all = event("evt_9", "async_payment_succeeded", &late, "paid");
    shop.tell_signed(&after_all).await.expect(200);
    assert_eq!(
        (shop.balance().await, shop.status(&late).await.as_str()),
        (40, "settled")
    );
    // What is settled does not fail any more.
    let too_late = event("evt_10", "expired", &late, "unpaid");
    shop.tell_signed(&too_late).await.expect(200);
    assert_eq!(shop.status(&late).await, "settled");
    shop.world.assert_books().await;
}

/// A provider that fails leaves a top-up that failed, and the same key may be tried again; one that stumbles is asked again, once.
#[tokio::test]
async fn a_failing_provider_costs_nothing() {
    let shop = Shop::open().await;
    let credits = json!({"credits": 2});
    for (mood, status, code, requests) in [
        (Mood::Down, 503, "PAYMENT_PROVIDER_UNAVAILABLE", 2),
        (Mood::Flooding, 503, "PAYMENT_PROVIDER_UNAVAILABLE", 2),
        (Mood::Refusing, 502, "PAYMENT_PROVIDER_ERROR", 1),
    ] {
        shop.stripe.feel(mood);
        let before = shop.stripe.requests();
        let refused = shop.buy("one", credits.clone()).await;
        refused.expect_error(status, code);
        assert_eq!(shop.stripe.requests() - before, requests);
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

/// After a change of provider, payments that have begun with the former one still arrive.
#[tokio::test]
async fn former_providers_are_heard() {
    let stripe = StandIn::start().await;
    let payments = Payments::new(Arc::new(Manual)).also_listen(stripe.provider());
    let world = World::with_payments(payments).await;
    let body =
        json!({"id": "evt_1", "type": "customer.created", "data": {"object": {}}}).to_string();
    let signed = request(Method::POST, "", WEBHOOK).header(
        "stripe-signature",
        sign(WEBHOOK_SECRET, now().seconds(), &body),
    );
    world
        .send(signed.body(Body::from(body)).unwrap())
        .await
        .expect(200);
}

/// A host that dies between asking for the money and answering has begun one top-up, and the retry goes on with that one; what the same key
/// then asks for must be the same.
#[tokio::test]
async fn a_retry_after_a_crash_goes_on_with_its_top_up() {
    let shop = Shop::open().await;
    shop.world.break_answers().await;
    let broken = shop.buy("once", json!({"credits": 40})).await;
    assert_eq!(broken.status.as_u16(), 500, "{}", broken.body);
    shop.world.mend_answers().await;
    shop.buy("once", json!({"credits": 41}))
        .await
        .expect_error(422, "IDEMPOTENCY_KEY_REUSED");
    let begun = shop.buy("once", json!({"credits": 40})).await.expect(201);
    let again = shop.buy("once", json!({"credits": 40})).await.expect(201);
    assert_eq!(begun.body, again.body);
    let path = shop.acme.path("/credits/top-ups");
    let listed = shop.world.get(&shop.acme.key, &path).await.expect(200);
    assert_eq!(listed.at("/meta/total"), 1, "{}", listed.body);
    assert_eq!(listed.at("/data/0/id"), begun.at("/data/id"));
    let other = shop.buy("other", json!({"credits": 40})).await.expect(201);
    assert_ne!(other.at("/data/id"), begun.at("/data/id"));
}

/// Where the money is here at once, it is credited once.
#[tokio::test]
async fn a_retry_after_a_crash_credits_once() {
    let world = World::with_payments(Payments::new(Arc::new(Instant))).await;
    let acme = world.company("acme").await;
    let path = acme.path("/credits/top-ups");
    let buy = async || {
        let body = json!({"credits": 40});
        world.post_keyed(&acme.key, &path, "once", body).await
    };
    world.break_answers().await;
    assert_eq!(buy().await.status.as_u16(), 500);
    world.mend_answers().await;
    let begun = buy().await.expect(201);
    assert_eq!(begun.at("/data/status"), "settled");
    assert_eq!(buy().await.expect(201).body, begun.body);
    assert_eq!(world.balance(&acme).await, 40);
    world.assert_books().await;
}

/// A provider that answers when it is let.
struct Held {
    asked: Semaphore,
    let_go: Semaphore,
}

impl Provider for Held {
    fn name(&self) -> &'static str {
        "held"
    }

    fn begin<'a>(&'a self, _: &'a Order) -> BoxFuture<'a, Result<Begun, BeginError>> {
        Box::pin(async {
            self.asked.add_permits(1);
            self.let_go.acquire().await.unwrap().forget();
            let reference = "paid".to_owned();
            Ok(Begun::Paid { reference })
        })
    }
}

/// Two top-ups of a company are at the provider at once. One more waits for a moment, and is refused with nothing written; another company's is not in
/// its line.
#[tokio::test]
async fn few_top_ups_of_a_company_are_at_the_provider() {
    let held = Arc::new(Held {
        asked: Semaphore::new(0),
        let_go: Semaphore::new(0),
    });
    let world = World::with_payments(Payments::new(held.clone())).await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let mut bought: FuturesUnordered<_> = ["one", "two", "three"]
        .into_iter()
        .map(|key| buy(&world, &acme, key))
        .collect();
    let refused = bought.next().await.unwrap();
    let refused = refused.expect_error(429, "CONCURRENCY_LIMIT_EXCEEDED");
    assert_eq!(
        refused.text("/error/details/exhausted"),
        "top_ups_exhausted"
    );
    assert_eq!(held.asked.available_permits(), 2);
    tokio::select! {
        answer = buy(&world, &other, "one") => panic!("answered before the provider did: {}", answer.body),
        asked = held.asked.acquire_many(3) => asked.unwrap().forget(),
    }
    held.let_go.add_permits(3);
    while let Some(answer) = bought.next().await {
        answer.expect(201);
    }
    let path = acme.path("/credits/top-ups");
    let listed = world.get(&acme.key, &path).await.expect(200);
    assert_eq!(listed.at("/meta/total"), 2);
}

/// A host that stops waits for a top-up whose provider has been asked, also when its client has hung up meanwhile: it is finished, and its
/// answer is kept.
#[tokio::test]
async fn a_stopping_host_finishes_a_top_up() {
    let held = Arc::new(Held {
        asked: Semaphore::new(0),
        let_go: Semaphore::new(0),
    });
    let world = World::with_payments(Payments::new(held.clone())).await;
    let acme = world.company("acme").await;
    let path = acme.path("/credits/top-ups");
    let buy = || world.post_keyed(&acme.key, &path, "one", json!({"credits": 40}));
    tokio::select! {
        answer = buy() => panic!("answered before the provider did: {}", answer.body),
        asked = held.asked.acquire() => asked.unwrap().forget(),
    }

    let mut ended = pin!(world.state.detached_ended());
    let is_pending = poll!(&mut ended).is_pending();
    assert!(is_pending, "the host would have stopped");
    held.let_go.add_permits(1);
    ended.await;
    // From here on nothing runs that a stopping host would cut: what was to be written has been.
    assert_eq!(world.balance(&acme).await, 40);
    let again = buy().await.expect(201);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.at("/data/status"), "settled");
    assert_eq!(held.asked.available_permits(), 0, "asked once");
}
