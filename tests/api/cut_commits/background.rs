//! What a host does beside its requests: deliveries, alerts and counts, each of them once.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::cut_commits::Cut;
use souk_tests::{PgCluster, Receiver};

use super::{PRICE, SEEN_WITHIN, host, is_balanced};
use crate::charges::slow_asset;
use crate::unique;
use crate::voids::until;
use crate::webhooks::{Hook, QUIET, revoke_a_key};

/// Of what takes work that has come due, by which a host has it for a minute at least.
const LEASE: &str = "lease_until = $4";
/// What is looked for again has been by then, on any machine that is not overloaded.
const LOOKED_AGAIN: Duration = Duration::from_secs(5);

/// A delivery that was claimed without an answer is attempted, once, before its lease has ended.
#[tokio::test]
async fn a_delivery_whose_claim_is_cut_arrives_once() {
    let (wire, host) = host().await;
    for side in Cut::BOTH {
        let company = host.company(&unique("told")).await;
        let receiver = Receiver::start().await;
        let hook = Hook::new(&company, &receiver, &["api_key.revoked"]).await;
        let before = wire.cuts();
        wire.cut(side, LEASE);
        revoke_a_key(&company).await;
        receiver.wait_for(1).await;
        assert_eq!(wire.cuts() - before, 1, "{side:?}");
        let is_delivered = |delivery: &Value| delivery["status"] == "delivered";
        let delivery = hook.delivery(&company, is_delivered).await;
        assert_eq!(delivery["attempts"], 1, "{side:?}");
        tokio::time::sleep(QUIET).await;
        assert_eq!(receiver.received().len(), 1, "{side:?}");
    }
}

/// What an alert has spent counts once against what it may spend in a day, also where that was written down without an answer; and where its claim was
/// not answered it is evaluated before its lease has ended.
#[tokio::test]
async fn what_an_alert_spends_counts_once() {
    let (wire, host) = host().await;
    let seller = host.company("seller").await;
    let asset = slow_asset(&seller, PgCluster::shared().await, PRICE as u64).await;
    let cuts = [LEASE, "SET spent_credits"];
    for (statement, side) in cuts
        .into_iter()
        .flat_map(|cut| Cut::BOTH.map(|side| (cut, side)))
    {
        let buyer = host.buyer(&unique("watching"), 10).await;
        let path = buyer.path(&format!("/users/{}/alerts", buyer.user_id));
        let condition = json!({"operator": "gt", "threshold": 1_000_000});
        let body = json!({"name": "n", "asset_id": asset, "condition": condition, "check_interval_seconds": 31 * 86_400});
        let before = wire.cuts();
        wire.cut(side, statement);
        // It is evaluated at once.
        let alert = buyer.client.post(&path, body).await.expect(201);
        let alert = buyer.path(&format!("/alerts/{}", alert.text("/data/id")));
        let begun = Instant::now();
        let is_checked = async || {
            let shown = buyer.client.get(&alert).await.expect(200);
            !shown.at("/data/last_checked_at").is_null()
        };
        while wire.cuts() == before || !is_checked().await {
            assert!(begun.elapsed() < SEEN_WITHIN, "{side:?} {statement}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::time::sleep(LOOKED_AGAIN).await;
        let shown = buyer.client.get(&alert).await.expect(200);
        let spent = shown.at("/data/credits_spent_today");
        assert_eq!(spent, PRICE, "{side:?} {statement}: {}", shown.body);
        until(&buyer.client, &buyer, (10 - PRICE, 0, 1)).await;
    }
    is_balanced(&host).await;
}

/// Use of a key counts once, also where that was written without an answer, and where the commit comes later.
#[tokio::test]
async fn use_that_was_counted_without_an_answer_counts_once() {
    const USES: i64 = 5;
    let (wire, host) = host().await;
    let company = host.company(&unique("counted")).await;
    let keys = company.path("/api-keys");
    for fate in [Some(Cut::Before), Some(Cut::Behind), None] {
        let made = company.client.post(&keys, json!({"name": "used"})).await;
        let made = made.expect(201);
        let user = host.client(&made.text("/data/key"));
        let key = format!("{keys}/{}", made.text("/data/id"));
        let credits = company.path("/credits");
        let counted = async || {
            let shown = company.client.get(&key).await.expect(200);
            shown.at("/data/usage_count").as_i64()
        };
        let before = wire.cuts();
        match fate {
            Some(side) => wire.cut(side, "INSERT INTO key_usage"),
            None => wire.delay("INSERT INTO key_usage"),
        }
        for _ in 0..USES {
            user.get(&credits).await;
        }
        let begun = Instant::now();
        while wire.cuts() == before || counted().await < Some(USES) {
            assert!(begun.elapsed() < SEEN_WITHIN, "{fate:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::time::sleep(LOOKED_AGAIN).await;
        assert_eq!(counted().await, Some(USES), "{fate:?}");
    }
}
