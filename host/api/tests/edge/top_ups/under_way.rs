//! Top-ups whose provider has been asked and has not answered, or whose host ends before it does.

use super::{Shop, buy};
use crate::world::World;
use futures_util::future::BoxFuture;
use futures_util::poll;
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::json;
use souk_app::payments::instant::Instant;
use souk_app::payments::{BeginError, Begun, Order, Payments, Provider};
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::Semaphore;

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
