//! Attempts to deliver: one claimant at a time, companies and webhooks by turns, and failures that follow each other.

use crate::support::{self, Market, company, roll_back, stores};
use crate::{market, top_up, waiting, webhook, written};
use futures_util::future::join_all;
use souk_domain::ids::{CompanyId, WebhookId};
use souk_domain::time::Timestamp;
use souk_domain::webhooks::FAILING_GAP_MAX;
use souk_store::deliveries::{self, Attempted, DeliveryStatus};
use souk_store::leases::Claim;
use souk_store::{db, top_ups, webhooks};
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(60);

/// Of many who claim at once one gets a delivery; when its lease has ended another may, and what the first says then is not heard.
#[tokio::test]
async fn a_delivery_has_one_claimant_at_a_time() {
    for store in stores().await {
        let (market, hook) = market(&store, 0, &[]).await;
        let id = top_up(&store.db, &market).await;
        store
            .db
            .write(async |write| top_ups::settle(write, &id, "r", None, db::now()).await)
            .await
            .unwrap();
        let now = support::later(db::now(), 1);
        let due = async |now: Timestamp| {
            let mut read = store.db.read().await.unwrap();
            deliveries::due(&mut read, now, 4, 8, 10).await.unwrap()
        };
        let found = due(now).await;
        assert_eq!(found.len(), 1);
        let delivery = found[0].id.clone();
        assert_eq!(found[0].webhook, hook);
        let claim = async |by: &str, now: Timestamp| {
            store
                .db
                .write(async |write| {
                    let until = now.after(LEASE);
                    deliveries::claim(write, &delivery, &Claim { by, now, until }).await
                })
                .await
                .unwrap()
        };
        let names: Vec<_> = (0..8).map(|host| format!("host-{host}")).collect();
        let claims = join_all(names.iter().map(|name| claim(name, now))).await;
        let first = claims.iter().position(Option::is_some).unwrap();
        assert_eq!(
            claims.iter().flatten().count(),
            1,
            "{}: {claims:#?}",
            store.name
        );
        assert_eq!(claims[first].as_ref().unwrap().attempts, 1);
        assert!(due(support::later(now, 59)).await.is_empty(), "leased");
        let after = now.after(LEASE);
        assert_eq!(due(after).await.len(), 1, "the lease has ended");
        assert_eq!(claim("another", after).await.unwrap().attempts, 2);
        let record = async |by: &str, attempted: Attempted, now: Timestamp| {
            let recorded = store.db.write(async |write| {
                deliveries::record(write, &delivery, by, &attempted, Some(200), None, now).await
            });
            recorded.await.unwrap()
        };
        assert!(!record(&names[first], Attempted::Delivered, after).await);
        let again = support::later(after, 5);
        assert!(record("another", Attempted::Again(again), after).await);
        assert!(due(after).await.is_empty());
        assert_eq!(due(again).await.len(), 1);
        claim("another", again).await.unwrap();
        assert!(record("another", Attempted::Delivered, again).await);
        assert!(due(again.after(LEASE)).await.is_empty());
        let told = &written(&store.db, &hook).await[0];
        assert_eq!(
            (told.status, told.attempts, told.next_attempt_at),
            (DeliveryStatus::Delivered, 3, None)
        );
    }
}

/// Whoever has claimed a delivery may claim it again, where the commit of that was not answered, and has begun one attempt; nobody else may.
#[tokio::test]
async fn a_claim_is_taken_again_by_whoever_has_it() {
    for store in stores().await {
        let (market, hook) = market(&store, 0, &[]).await;
        let id = top_up(&store.db, &market).await;
        store
            .db
            .write(async |write| top_ups::settle(write, &id, "r", None, db::now()).await)
            .await
            .unwrap();
        let delivery = written(&store.db, &hook).await[0].id.clone();
        let now = support::later(db::now(), 1);
        let claims = [
            ("one", now, Some(1)),
            ("one", support::later(now, 1), Some(1)),
            ("other", support::later(now, 1), None),
            // Its lease has ended: it may have been attempted meanwhile.
            ("one", support::later(now, 1).after(LEASE), Some(2)),
        ];
        for (by, now, attempts) in claims {
            let until = now.after(LEASE);
            let claim = Claim { by, now, until };
            let claimed = store
                .db
                .write(async |write| deliveries::claim(write, &delivery, &claim).await);
            let claimed = claimed.await.unwrap().map(|claimed| claimed.attempts);
            assert_eq!(claimed, attempts, "{}: {by}", store.name);
        }
    }
}

/// A webhook with much waiting does not keep another one's deliveries away.
#[tokio::test]
async fn what_is_due_is_shared_between_webhooks() {
    for store in stores().await {
        let (market, busy) = market(&store, 0, &[]).await;
        for _ in 0..10 {
            let id = top_up(&store.db, &market).await;
            store
                .db
                .write(async |write| top_ups::settle(write, &id, "r", None, db::now()).await)
                .await
                .unwrap();
        }
        let quiet = webhook(&store.db, &market.buyer, &[]).await;
        let id = top_up(&store.db, &market).await;
        store
            .db
            .write(async |write| top_ups::settle(write, &id, "r", None, db::now()).await)
            .await
            .unwrap();
        let mut read = store.db.read().await.unwrap();
        let now = support::later(db::now(), 1);
        let due = deliveries::due(&mut read, now, 4, 8, 100).await.unwrap();
        let to = |hook: &WebhookId| due.iter().filter(|due| due.webhook == *hook).count();
        assert_eq!((to(&busy), to(&quiet)), (4, 1), "{}", store.name);
    }
}

/// Companies are served by turns: one with much waiting, and for longer, takes its share of what is looked at and no more.
#[tokio::test]
async fn what_is_due_is_shared_between_companies() {
    for store in stores().await {
        let (market, first) = market(&store, 0, &[]).await;
        let mut busy = vec![first];
        for _ in 0..4 {
            busy.push(webhook(&store.db, &market.buyer, &[]).await);
        }
        let settle = async |market: &Market| {
            let id = top_up(&store.db, market).await;
            store
                .db
                .write(async |write| top_ups::settle(write, &id, "r", None, db::now()).await)
                .await
                .unwrap();
        };
        for _ in 0..4 {
            settle(&market).await;
        }
        let quiet = Market {
            buyer: company(&store.db, "quiet").await.company.id,
            seller: market.seller.clone(),
            product: market.product.clone(),
            actor: market.actor.clone(),
        };
        let hook = webhook(&store.db, &quiet.buyer, &[]).await;
        settle(&quiet).await;

        let mut read = store.db.read().await.unwrap();
        let now = support::later(db::now(), 1);
        // Twenty deliveries of the busy company are older, and four places are given out.
        let due = deliveries::due(&mut read, now, 4, 8, 4).await.unwrap();
        let of = |company: &CompanyId| {
            due.iter()
                .filter(|due| due.company.as_ref() == Some(company))
                .count()
        };
        assert_eq!(
            (of(&market.buyer), of(&quiet.buyer)),
            (3, 1),
            "{}",
            store.name
        );
        let due = deliveries::due(&mut read, now, 4, 8, 100).await.unwrap();
        let to = |hooks: &[WebhookId]| {
            due.iter()
                .filter(|due| hooks.contains(&due.webhook))
                .count()
        };
        assert_eq!((to(&busy), to(&[hook])), (8, 1), "{}", store.name);
    }
}

/// Failures add up while they follow each other; a success, or more than a day without one, begins anew.
#[tokio::test]
async fn a_series_of_failures_has_no_gaps() {
    for store in stores().await {
        let (_, hook) = market(&store, 0, &[]).await;
        roll_back(&store.db, async |write| {
            let begun = db::now();
            let hours = |hours: u64| begun.after(Duration::from_secs(hours * 3_600));
            let mut fail = async |at: Timestamp| {
                webhooks::note_failure(write, &hook, at)
                    .await
                    .unwrap()
                    .unwrap()
            };
            assert_eq!(fail(begun).await, begun);
            for at in [10, 30, 53] {
                assert_eq!(fail(hours(at)).await, begun, "{}: {at}", store.name);
            }
            let late = hours(53)
                .after(FAILING_GAP_MAX)
                .after(Duration::from_secs(1));
            assert_eq!(fail(late).await, late);
            webhooks::note_success(write, &hook).await.unwrap();
            let next = support::later(late, 60);
            let since = webhooks::note_failure(write, &hook, next).await;
            assert_eq!(since.unwrap(), Some(next));
        })
        .await;
    }
}

/// Failures at an address are none of the one that takes its place; whatever else is changed leaves them.
#[tokio::test]
async fn another_address_has_not_failed() {
    for store in stores().await {
        let (market, hook) = market(&store, 0, &[]).await;
        roll_back(&store.db, async |write| {
            let begun = db::now();
            let found = webhooks::get(write, &market.buyer, &hook).await;
            let mut webhook = found.unwrap().unwrap();
            webhooks::note_failure(write, &hook, begun).await.unwrap();
            webhook.description = Some("ours".to_owned());
            webhooks::update(write, &webhook, begun).await.unwrap();
            let later = support::later(begun, 60);
            let since = webhooks::note_failure(write, &hook, later).await;
            assert_eq!(since.unwrap(), Some(begun), "{}", store.name);
            webhook.url = "https://example.com/another".to_owned();
            webhooks::update(write, &webhook, later).await.unwrap();
            let moved = webhooks::get(write, &market.buyer, &hook).await;
            assert_eq!(moved.unwrap().unwrap().failing_since, None);
            let last = support::later(later, 60);
            let since = webhooks::note_failure(write, &hook, last).await;
            assert_eq!(since.unwrap(), Some(last), "{}", store.name);
        })
        .await;
    }
}

/// However many wait for one webhook, companies have turns, of each its webhooks, and of these the most overdue first; what somebody has claimed is
/// passed over.
#[tokio::test]
async fn what_is_due_is_found_by_turns() {
    for store in stores().await {
        let (market, busy) = market(&store, 0, &[]).await;
        let beside = webhook(&store.db, &market.buyer, &[]).await;
        let other = webhook(&store.db, &market.seller, &[]).await;
        let deleted = WebhookId::generate();
        let at = |seconds| support::later(db::now(), seconds);
        let [first, second, third, fourth, last] = [0, 10, 20, 30, 40].map(at);
        for (hook, count, since) in [
            (&busy, 2_000, first),
            (&beside, 3, second),
            (&other, 1, third),
            (&deleted, 1, fourth),
        ] {
            let fill = store
                .db
                .write(async |fill| waiting(fill, hook, count, since).await);
            fill.await.unwrap();
        }
        let due = async |per_company: i64, limit: i64| {
            let mut read = store.db.read().await.unwrap();
            deliveries::due(&mut read, last, 4, per_company, limit)
                .await
                .unwrap()
        };
        let of = |found: &[deliveries::Due]| -> Vec<WebhookId> {
            found.iter().map(|due| due.webhook.clone()).collect()
        };
        let found = due(6, 64).await;
        let expected = [
            &busy, &other, &deleted, &beside, &busy, &beside, &busy, &beside,
        ];
        assert_eq!(of(&found), expected.map(Clone::clone), "{}", store.name);
        let companies: Vec<_> = found[..3].iter().map(|due| due.company.as_ref()).collect();
        let expected = [Some(&market.buyer), Some(&market.seller), None];
        assert_eq!(companies, expected, "{}", store.name);
        assert_eq!(of(&due(8, 2).await), [busy.clone(), other.clone()]);

        let claim = Claim {
            by: "a host",
            now: last,
            until: last.after(LEASE),
        };
        let id = &found[0].id;
        let claimed = store
            .db
            .write(async |write| deliveries::claim(write, id, &claim).await);
        assert!(claimed.await.unwrap().is_some());
        let next: Vec<_> = due(8, 64).await;
        let of_busy = next.iter().filter(|due| due.webhook == busy);
        assert_eq!(of_busy.count(), 4, "{}", store.name);
        assert!(next.iter().all(|due| due.id != *id), "{}", store.name);
    }
}
