//! Top-ups and the life of a host: what a payment provider was asked for is written down, whatever happens to the client and the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use souk_tests::TestHost;
use souk_tests::receiver::ARRIVES_WITHIN;

use crate::unique;

/// How long the provider thinks about it: longer than anything else that a stopping host does, shorter than its drain.
const THINKS: Duration = Duration::from_secs(3);

/// A provider in the manner of Stripe that takes its time, and counts.
async fn provider() -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new()
        .route("/v1/checkout/sessions", post(begin))
        .with_state(asked.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}"), asked)
}

async fn begin(State(asked): State<Arc<AtomicUsize>>) -> Json<Value> {
    let number = asked.fetch_add(1, Ordering::SeqCst);
    tokio::time::sleep(THINKS).await;
    Json(json!({
        "id": format!("cs_test_{number}"), "object": "checkout.session", "amount_total": 500, "currency": "usd",
        "livemode": false, "mode": "payment", "payment_status": "unpaid", "status": "open",
        "url": format!("https://checkout.stripe.com/c/pay/{number}"),
    }))
}

/// A host that is told to stop while the provider thinks waits for its word, although the client has gone: the answer is kept, and the
/// retry shows the payment that was begun instead of beginning another.
async fn stops_with_a_top_up_under_way(hangs_up: bool) {
    let (url, asked) = provider().await;
    let mut host = TestHost::builder()
        .arg("--payment-provider", "stripe")
        .env("SOUK_STRIPE_SECRET_KEY", "sk_test_souk")
        .env("SOUK_STRIPE_WEBHOOK_SECRET", "whsec_souk")
        .arg("--stripe-base-url", &url)
        .start()
        .await;
    let company = host.company(&unique("topped")).await;
    let path = company.path("/credits/top-ups");
    let header = [("idempotency-key", "once")];
    let running = {
        let (client, path) = (company.client.clone(), path.clone());
        tokio::spawn(async move {
            client
                .post_with(&path, &header, json!({"credits": 10}))
                .await
        })
    };
    let since = Instant::now();
    while asked.load(Ordering::SeqCst) == 0 {
        assert!(since.elapsed() < ARRIVES_WITHIN, "nobody is asked");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let answered = match hangs_up {
        true => {
            running.abort();
            None
        }
        false => Some(running),
    };
    assert!(host.stop().await.success());
    if let Some(running) = answered {
        let answer = running.await.expect("no panic").expect(201);
        assert_eq!(
            answer.text("/data/checkout_url"),
            "https://checkout.stripe.com/c/pay/0"
        );
    }
    host.start_again().await;
    let client = host.client(&company.key);
    let again = client
        .post_with(&path, &header, json!({"credits": 10}))
        .await
        .expect(201);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(
        again.text("/data/checkout_url"),
        "https://checkout.stripe.com/c/pay/0"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 1, "one payment was begun");
}

/// The client that waits is answered.
#[tokio::test]
async fn a_host_that_stops_finishes_a_top_up() {
    stops_with_a_top_up_under_way(false).await;
}

/// The one that has hung up finds the answer when it asks again.
#[tokio::test]
async fn a_host_that_stops_finishes_a_top_up_without_its_client() {
    stops_with_a_top_up_under_way(true).await;
}
