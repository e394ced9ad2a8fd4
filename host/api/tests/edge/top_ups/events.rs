//! What a payment provider tells of a top-up, and what of that is believed.

use super::{Shop, WEBHOOK};
use crate::stripe::{StandIn, WEBHOOK_SECRET, sign};
use crate::world::{World, now, request};
use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use souk_app::payments::manual::Manual;
use souk_app::payments::{self, Payments, Received};
use std::sync::Arc;

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

/// Whoever pays at the provider what staff has settled by hand has paid twice: it is not credited again, and staff is told. Another event about the payment
/// that has settled a top-up is no second payment, one about another session is.
#[tokio::test]
async fn a_payment_on_top_is_told() {
    let shop = Shop::open().await;
    let receive = async |event: &Value| {
        let app = shop.world.state.app();
        let stripe = app.payments.by_name("stripe").unwrap();
        let body = event.to_string();
        let signature = sign(WEBHOOK_SECRET, now().seconds(), &body);
        let received = payments::receive(app, stripe.as_ref(), Some(&signature), body.as_bytes());
        received.await.unwrap()
    };
    let paid = |event: &str, kind: &str, top_up: &str| {
        let kind = format!("checkout.session.{kind}");
        shop.stripe.event(event, &kind, top_up, "paid")
    };

    let by_hand = shop.order("by-hand").await;
    let settle = format!("/admin/top-ups/{by_hand}/settle");
    let bank = json!({"reference": "statement 7, line 3"});
    let settled = shop.world.post(&shop.world.platform, &settle, bank).await;
    settled.expect(200);
    let on_top = paid("evt_1", "completed", &by_hand);
    assert_eq!(receive(&on_top).await, Received::PaidAgain);
    // It was told once.
    assert_eq!(receive(&on_top).await, Received::Nothing);
    assert_eq!(shop.balance().await, 40);

    let at_stripe = shop.order("at-stripe").await;
    let first = paid("evt_2", "completed", &at_stripe);
    assert_eq!(receive(&first).await, Received::Settled);
    let same = paid("evt_3", "async_payment_succeeded", &at_stripe);
    assert_eq!(receive(&same).await, Received::Nothing);
    let mut other = paid("evt_4", "completed", &at_stripe);
    other["data"]["object"]["id"] = json!("cs_test_other");
    assert_eq!(receive(&other).await, Received::PaidAgain);
    assert_eq!(shop.balance().await, 80);
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
