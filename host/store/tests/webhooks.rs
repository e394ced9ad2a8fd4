//! Webhooks in the store, on SQLite and on PostgreSQL: events exist exactly when what caused them does, and whoever claims one has it alone.

mod support;

use futures_util::future::join_all;
use souk_domain::ids::{AssetId, CompanyId, KeyId, TopUpId, WebhookId};
use souk_domain::products::Product;
use souk_domain::time::Timestamp;
use souk_domain::webhooks::{EventType, FAILING_GAP_MAX};
use souk_store::deliveries::{self, Attempted, Delivery, DeliveryStatus};
use souk_store::leases::Claim;
use souk_store::payouts::{self, Method, PayoutStatus};
use souk_store::purchases::{self, NewPurchase, PurchaseStatus};
use souk_store::teller::Teller;
use souk_store::top_ups::{self, NewTopUp};
use souk_store::webhooks::{self, DisabledReason, Webhook};
use souk_store::{Db, Part, StoreError, Write, db, ledger};
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;
use support::{Market, Store, company, credits, grant, open, roll_back, stores};

const LEASE: Duration = Duration::from_secs(60);

/// A buyer with credits and a webhook for these types, and somebody who sells to it.
async fn market(store: &Store, buyer_credits: i64, types: &[EventType]) -> (Market, WebhookId) {
    let buyer = company(&store.db, "buyer").await.company.id;
    let seller = company(&store.db, "seller").await.company.id;
    if buyer_credits > 0 {
        grant(&store.db, &buyer, buyer_credits).await;
    }
    let hook = webhook(&store.db, &buyer, types).await;
    let product = Product::Asset(AssetId::generate());
    let actor = KeyId::generate().into();
    let market = Market {
        buyer,
        seller,
        product,
        actor,
    };
    (market, hook)
}

async fn webhook(db: &Db, company: &CompanyId, types: &[EventType]) -> WebhookId {
    let now = db::now();
    let webhook = Webhook {
        id: WebhookId::generate(),
        company_id: company.clone(),
        url: "https://example.com/".into(),
        description: None,
        event_types: types.to_vec(),
        sealed_secret: vec![1],
        former_secret: None,
        failing_since: None,
        disabled: None,
        created_at: now,
        updated_at: now,
    };
    db.write(async |write| -> Result<_, StoreError> {
        assert!(webhooks::insert(write, &webhook).await.unwrap());
        Ok(())
    })
    .await
    .unwrap();
    webhook.id
}

async fn written(db: &Db, webhook: &WebhookId) -> Vec<Delivery> {
    let mut read = db.read().await.unwrap();
    let (found, _) = deliveries::list(&mut read, webhook, None, None, Part::first(100))
        .await
        .unwrap();
    found
}

fn data(delivery: &Delivery) -> serde_json::Value {
    let body: serde_json::Value = serde_json::from_str(&delivery.body).unwrap();
    assert_eq!(body["type"], delivery.event_type);
    body["data"].clone()
}

/// One top-up that has begun.
async fn top_up(db: &Db, market: &Market) -> TopUpId {
    let id = TopUpId::generate();
    let new = NewTopUp {
        id: &id,
        company: &market.buyer,
        credits: credits(7),
        provider: "manual",
        payment_method: None,
        actor: &market.actor,
        idempotency_key: None,
    };
    db.write(async |write| top_ups::insert(write, &new, db::now()).await)
        .await
        .unwrap();
    id
}

/// Fifty charges at once that together cross the threshold write one event, with the balance that the crossing charge left; a grant arms it
/// again; the threshold is the company's, from the next charge on.
#[tokio::test]
async fn low_credits_are_told_once_per_crossing() {
    for store in stores().await {
        let (market, hook) = market(&store, 130, &[EventType::CreditsLow]).await;
        let teller = Teller::open(&store.db).await.unwrap();
        // On a shared store another host charges the same buyer.
        let other = match store.name {
            "sqlite" => teller.clone(),
            _ => Teller::open(&open(&store.url).await).await.unwrap(),
        };
        let tellers = [&teller, &other];
        join_all((0..50).map(|charge| market.charge(tellers[charge % 2], 1))).await;
        let told = written(&store.db, &hook).await;
        assert_eq!(told.len(), 1, "{}: {told:#?}", store.name);
        let event = data(&told[0]);
        assert_eq!(
            (
                event["balance_credits"].as_i64(),
                event["threshold_credits"].as_i64(),
                event["company_id"].as_str(),
            ),
            (Some(99), Some(100), Some(market.buyer.as_str())),
            "{}",
            store.name
        );

        market.charge(&teller, 5).await;
        grant(&store.db, &market.buyer, 25).await;
        assert_eq!(
            written(&store.db, &hook).await.len(),
            1,
            "neither further down nor up"
        );
        market.charge(&teller, 1).await;
        assert_eq!(
            written(&store.db, &hook).await.len(),
            2,
            "100 is not low, 99 is"
        );

        for (threshold, charge, expected) in [(Some(90), 9, 2), (Some(90), 1, 3), (Some(0), 80, 3)]
        {
            store
                .db
                .write(async |write| ledger::set_low_at(write, &market.buyer, threshold).await)
                .await
                .unwrap();
            market.charge(&other, charge).await;
            let told = written(&store.db, &hook).await.len();
            assert_eq!(told, expected, "{}: {threshold:?}", store.name);
        }
        // A host that opens the store anew knows what was chosen.
        store
            .db
            .write(async |write| ledger::set_low_at(write, &market.buyer, Some(5)).await)
            .await
            .unwrap();
        if store.name == "sqlite" {
            teller.flush().await;
            store.db.close().await;
            let again = open(&store.url).await;
            let teller = Teller::open(&again).await.unwrap();
            assert_eq!(market.charge(&teller, 6).await.balance_credits, Some(3));
            assert_eq!(written(&again, &hook).await.len(), 4);
        }
    }
}

/// Without an active webhook that wants the type nothing is written, and what is rolled back was never told.
#[tokio::test]
async fn events_are_written_with_their_cause_or_not_at_all() {
    for store in stores().await {
        let (market, hook) = market(&store, 0, &[EventType::PayoutPaid]).await;
        let settle = async |commit: bool| {
            let id = top_up(&store.db, &market).await;
            let settle = async |write: &mut Write| {
                let settled = top_ups::settle(write, &id, "r", None, db::now()).await;
                settled.map(|settled| settled.expect("it waits"))
            };
            match commit {
                true => store.db.write(settle).await.map(drop),
                false => roll_back(&store.db, settle).await.map(drop),
            }
            .unwrap();
        };
        settle(true).await;
        assert!(written(&store.db, &hook).await.is_empty(), "another type");
        let all = webhook(&store.db, &market.buyer, &[]).await;
        let other = webhook(&store.db, &market.seller, &[]).await;
        settle(false).await;
        assert!(written(&store.db, &all).await.is_empty(), "rolled back");
        settle(true).await;
        let told = written(&store.db, &all).await;
        assert_eq!(told.len(), 1);
        assert_eq!(data(&told[0])["credits"], 7);
        assert_eq!(data(&told[0])["amount_usd"], 3.5);
        store
            .db
            .write(async |write| {
                webhooks::disable(write, &all, DisabledReason::Request, db::now()).await
            })
            .await
            .unwrap();
        settle(true).await;
        let told = written(&store.db, &all).await;
        assert_eq!(told.len(), 1, "a disabled webhook is told nothing");
        assert_eq!(
            told[0].status,
            DeliveryStatus::Failed,
            "what waited is given up"
        );
        assert!(
            written(&store.db, &other).await.is_empty(),
            "another company"
        );
    }
}

/// A payout that is paid and one that has failed are told to the seller; one that its company cancelled is not.
#[tokio::test]
async fn the_end_of_a_payout_is_told() {
    for store in stores().await {
        let (market, _) = market(&store, 300, &[EventType::CreditsLow]).await;
        let hook = webhook(&store.db, &market.seller, &[]).await;
        let teller = Teller::open(&store.db).await.unwrap();
        market.charge(&teller, 300).await;
        teller.flush().await;
        let now = store
            .db
            .write(async |write| -> Result<_, StoreError> {
                let now = support::later(db::now(), 1);
                support::mature(write, &market.seller, now, now)
                    .await
                    .unwrap();
                let method = Method {
                    kind: "paypal".into(),
                    account_holder: "S".into(),
                    sealed_destination: vec![1],
                    last4: "1234".into(),
                };
                payouts::set_method(write, &market.seller, &method, now)
                    .await
                    .unwrap();
                Ok(now)
            })
            .await
            .unwrap();
        for (status, reason) in [
            (PayoutStatus::Cancelled, None),
            (PayoutStatus::Failed, Some("account closed")),
            (PayoutStatus::Paid, None),
        ] {
            store
                .db
                .write(async |write| -> Result<_, StoreError> {
                    let minimum = souk_domain::money::UsdCents::new(1_000);
                    let payout =
                        payouts::request(write, &market.seller, None, minimum, &market.actor, now)
                            .await
                            .unwrap();
                    payouts::advance(
                        write,
                        &payout.id,
                        status,
                        Some("r"),
                        reason,
                        &market.actor,
                        now,
                    )
                    .await
                    .unwrap();
                    Ok(())
                })
                .await
                .unwrap();
        }
        let mut told: Vec<_> = written(&store.db, &hook).await;
        told.sort_by(|one, other| one.event_type.cmp(&other.event_type));
        let types: Vec<_> = told.iter().map(|told| told.event_type.as_str()).collect();
        assert_eq!(types, ["payout.failed", "payout.paid"], "{}", store.name);
        assert_eq!(data(&told[0])["failure_reason"], "account closed");
        assert_eq!(data(&told[1])["amount_usd"], 120);
        assert_eq!(data(&told[1])["reference"], "r");
    }
}

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

/// So many deliveries wait for a webhook, each a microsecond younger than the last.
async fn waiting(
    write: &mut Write,
    webhook: &WebhookId,
    count: i64,
    now: Timestamp,
) -> Result<(), StoreError> {
    let filled = sqlx::query(
        "INSERT INTO webhook_deliveries (id, webhook_id, event_type, body, status, attempts, next_attempt_at, created_at)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < $3)
         SELECT 'dlv_' || n || $4, $1, 'payout.paid', '{}', 'pending', 0, $2, $2 + n FROM numbers",
    );
    filled
        .bind(webhook.as_str())
        .bind(now.micros())
        .bind(count)
        .bind(&webhook.as_str()[4..])
        .execute(&mut **write)
        .await?;
    Ok(())
}

/// However many wait for one webhook, companies have turns, of each the most overdue first; what somebody has claimed is passed over.
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
            &busy, &other, &deleted, &busy, &busy, &busy, &beside, &beside,
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
        let next: Vec<_> = due(4, 64).await;
        let of_busy = next.iter().filter(|due| due.webhook == busy);
        assert_eq!(of_busy.count(), 4, "{}", store.name);
        assert!(next.iter().all(|due| due.id != *id), "{}", store.name);
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

/// A buyer who cancels and accepts again and again fills no queue but its own: the seller is told when the terms were last accepted an hour ago or
/// earlier.
#[tokio::test]
async fn renewals_in_a_row_are_told_to_the_buyer_only() {
    const TYPES: &[EventType] = &[EventType::PurchaseCreated];
    for store in stores().await {
        let (market, buyers) = market(&store, 0, TYPES).await;
        let sellers = webhook(&store.db, &market.seller, TYPES).await;
        let new = NewPurchase {
            buyer: &market.buyer,
            seller: &market.seller,
            product: &market.product,
            credits: credits(0),
            ai_training_allowed: false,
            accepted_by: "key_1",
        };
        let now = db::now();
        let bought = store
            .db
            .write(async |write| purchases::implicit(write, &new, now).await);
        let id = bought.await.unwrap().id;
        let told = async || {
            let (buyers, sellers) = (
                written(&store.db, &buyers).await,
                written(&store.db, &sellers).await,
            );
            (buyers.len(), sellers.len())
        };
        assert_eq!(told().await, (1, 1), "{}", store.name);
        let mut accepted_at = now;
        for (seconds, expected) in [(1, (2, 1)), (10, (3, 1)), (3_599, (4, 1)), (3_600, (5, 2))] {
            accepted_at = support::later(accepted_at, seconds);
            let renewed = store.db.write(async |write| -> Result<_, StoreError> {
                let (from, to) = (PurchaseStatus::Active, PurchaseStatus::Cancelled);
                assert!(purchases::set_status(write, &id, from, to).await?);
                purchases::renew(write, &id, &new, accepted_at).await
            });
            assert!(renewed.await.unwrap().is_some());
            assert_eq!(told().await, expected, "{} {seconds}", store.name);
        }
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
