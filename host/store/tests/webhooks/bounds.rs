//! What waits is bounded and shared, and given up some at a time; what is old goes.

use crate::support::stores;
use crate::{market, top_up, waiting, webhook};
use souk_domain::ids::WebhookId;
use souk_domain::time::Timestamp;
use souk_store::deliveries::{self, DeliveryStatus};
use souk_store::webhooks::{self, DisabledReason};
use souk_store::{Db, Part, Write, db, top_ups};
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

/// Of a company with many webhooks each has its share of what may wait.
#[tokio::test]
async fn what_waits_is_shared_by_a_companys_webhooks() {
    const WEBHOOKS: i64 = 4;
    for store in stores().await {
        let (market, full) = market(&store, 0, &[]).await;
        let now = db::now();
        let share = 20_000 / WEBHOOKS;
        let mut hooks = vec![full.clone()];
        for _ in 1..WEBHOOKS {
            hooks.push(webhook(&store.db, &market.buyer, &[]).await);
        }
        // One of them lacks one to be full, the first one has its share.
        for (hook, count) in [(&hooks[0], share), (&hooks[1], share - 1)] {
            store
                .db
                .write(async |fill| waiting(fill, hook, count, now).await)
                .await
                .unwrap();
        }
        for _ in 0..2 {
            let id = top_up(&store.db, &market).await;
            let settled =
                async |write: &mut Write| top_ups::settle(write, &id, "r", None, now).await;
            store.db.write(settled).await.unwrap();
        }
        let mut waits = Vec::new();
        for hook in &hooks {
            let mut read = store.db.read().await.unwrap();
            let (_, count) = deliveries::list(&mut read, hook, None, None, Part::first(1))
                .await
                .unwrap();
            waits.push(count);
        }
        assert_eq!(waits, [share, share, 2, 2], "{}", store.name);
    }
}

/// Whether there may be more to give up.
async fn give_up(db: &Db, webhook: &WebhookId, now: Timestamp) -> bool {
    let given_up = db.write(async |write| deliveries::give_up(write, webhook, now).await);
    given_up.await.unwrap()
}

/// Of thousands that wait for a webhook that is disabled one transaction gives up some; of one that is active nothing is given up.
#[tokio::test]
async fn what_waits_is_given_up_some_at_a_time() {
    for store in stores().await {
        let (_, hook) = market(&store, 0, &[]).await;
        let now = db::now();
        store
            .db
            .write(async |fill| waiting(fill, &hook, 1_200, now).await)
            .await
            .unwrap();
        let count = async |status: DeliveryStatus| {
            let mut read = store.db.read().await.unwrap();
            deliveries::list(&mut read, &hook, Some(status), None, Part::first(1))
                .await
                .unwrap()
                .1
        };
        assert!(!give_up(&store.db, &hook, now).await);
        assert_eq!(count(DeliveryStatus::Pending).await, 1_200, "active");
        store
            .db
            .write(async |write| {
                webhooks::disable(write, &hook, DisabledReason::Request, now).await
            })
            .await
            .unwrap();
        assert_eq!(count(DeliveryStatus::Failed).await, 500, "{}", store.name);
        assert!(give_up(&store.db, &hook, now).await);
        assert!(!give_up(&store.db, &hook, now).await);
        assert_eq!(count(DeliveryStatus::Failed).await, 1_200, "{}", store.name);
    }
}

/// Old deliveries go, and of many the older ones; what waits stays. What is written beyond the bound is not.
#[tokio::test]
async fn deliveries_are_bounded_in_number_and_age() {
    for store in stores().await {
        let (market, hook) = market(&store, 0, &[]).await;
        let now = db::now();
        store
            .db
            .write(async |fill| waiting(fill, &hook, 10_000, now).await)
            .await
            .unwrap();
        let id = top_up(&store.db, &market).await;
        store
            .db
            .write(async |write| top_ups::settle(write, &id, "r", None, now).await)
            .await
            .unwrap();
        let count = async || {
            let mut read = store.db.read().await.unwrap();
            deliveries::list(&mut read, &hook, None, None, Part::first(1))
                .await
                .unwrap()
                .1
        };
        assert_eq!(count().await, 10_000, "{}: full", store.name);
        assert_eq!(deliveries::sweep(&store.db, now).await.unwrap(), 0);
        store
            .db
            .write(async |write| {
                webhooks::disable(write, &hook, DisabledReason::Request, now).await
            })
            .await
            .unwrap();
        while give_up(&store.db, &hook, now).await {}
        // Others have their turn, and see how far it is.
        let mut sweeping = pin!(deliveries::sweep(&store.db, now));
        let mut seen = BTreeSet::new();
        let swept = loop {
            tokio::select! {
                swept = &mut sweeping => break swept.unwrap(),
                total = count() => {
                    seen.insert(total);
                }
            }
        };
        assert_eq!(swept, 9_000);
        assert!(
            seen.range(1_001..10_000).next().is_some(),
            "{}: {seen:?}",
            store.name
        );
        let (newest, total) = {
            let mut read = store.db.read().await.unwrap();
            deliveries::list(&mut read, &hook, None, None, Part::first(1))
                .await
                .unwrap()
        };
        assert!(newest[0].id.as_str().starts_with("dlv_10000"), "{newest:?}");
        assert_eq!(total, 1_000);
        let old = now
            .after(deliveries::KEPT_FOR)
            .after(Duration::from_secs(1));
        assert_eq!(deliveries::sweep(&store.db, old).await.unwrap(), 1_000);
    }
}
