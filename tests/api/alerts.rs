//! Alerts that fire: a real asset is watched, and a real receiver is told. The minute between two evaluations is cut short in the store.

mod claims;
mod mails;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::receiver::ARRIVES_WITHIN;
use souk_tests::{Company, PgCluster, Receiver, TestHost};

use crate::hosts::MASTER_KEY;
use crate::unique;
use crate::webhooks::Hook;

/// A gauge that somebody turns.
const GAUGE: &str = "CREATE TABLE gauge (value double precision); INSERT INTO gauge VALUES (5);";
const READ: &str = "SELECT value FROM gauge";

/// Hosts on one PostgreSQL store that the test can look into.
struct Stage {
    store: tokio_postgres::Client,
    url: String,
    one: TestHost,
}

impl Stage {
    async fn new() -> Stage {
        let cluster = PgCluster::shared().await;
        let database = cluster.database("SELECT 1").await;
        let url = cluster.url(&database);
        Stage {
            one: start(&url).await,
            store: cluster.client(&database).await,
            url,
        }
    }

    /// Makes all alerts due, and waits until each of them was evaluated once more.
    async fn evaluate(&self) {
        let since = Instant::now();
        self.settle("lease_until IS NULL", since).await;
        let begun = self.store.query_one(
            "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
            &[],
        );
        let begun: i64 = begun.await.expect("a time").get(0);
        let wake = "UPDATE alerts SET next_check_at = 1 WHERE is_active = 1";
        self.store.execute(wake, &[]).await.expect("an update");
        let done = format!("last_checked_at >= {begun} AND lease_until IS NULL");
        self.settle(&done, since).await;
    }

    async fn count(&self, sql: &str) -> i64 {
        let row = self.store.query_one(sql, &[]).await;
        row.expect("a count").get(0)
    }

    /// Waits until this is so of every alert that is active.
    async fn settle(&self, condition: &str, since: Instant) {
        let open = format!(
            "SELECT COUNT(*) FROM alerts WHERE is_active = 1 AND NOT COALESCE({condition}, FALSE)"
        );
        loop {
            let open: i64 = self
                .store
                .query_one(&open, &[])
                .await
                .expect("a count")
                .get(0);
            if open == 0 {
                return;
            }
            assert!(
                since.elapsed() < ARRIVES_WITHIN,
                "{open} alerts wait: {condition}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn start(url: &str) -> TestHost {
    TestHost::builder()
        .arg("--database-url", url)
        .env("SOUK_MASTER_KEY", MASTER_KEY)
        .start()
        .await
}

/// A seller's gauge, on sale for two credits.
struct Gauge {
    source: tokio_postgres::Client,
    seller: Company,
    asset: String,
}

impl Gauge {
    async fn new(host: &TestHost) -> Gauge {
        let cluster = PgCluster::shared().await;
        let database = cluster.database(GAUGE).await;
        let seller = host.company(&unique("gauges")).await;
        let connection = seller.postgres(cluster, &database).await;
        let asset = seller.asset(&connection, json!({"sql_logic": READ})).await;
        seller.publish(&asset, 2).await;
        Gauge {
            source: cluster.client(&database).await,
            seller,
            asset,
        }
    }

    async fn turn(&self, sql: &str) {
        self.source.batch_execute(sql).await.expect(sql);
    }
}

async fn watch(company: &Company, asset: &str, mut body: Value) -> String {
    body["asset_id"] = json!(asset);
    // Nothing is due before the test says so.
    body["check_interval_seconds"] = json!(31 * 86_400);
    let path = company.path(&format!("/users/{}/alerts", company.user_id));
    let made = company.client.post(&path, body).await.expect(201);
    company.path(&format!("/alerts/{}", made.text("/data/id")))
}

async fn show(company: &Company, alert: &str) -> Value {
    let shown = company.client.get(alert).await.expect(200);
    shown.at("/data").clone()
}

/// Breaches in a row trigger, a good answer resolves, a source that fails is an error; each change is told once, signed, and each answer is
/// charged like any other, failures not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_triggers_resolves_and_fails() {
    let stage = Stage::new().await;
    let gauge = Gauge::new(&stage.one).await;
    let buyer = stage.one.buyer(&unique("watches"), 100).await;
    let receiver = Receiver::start().await;
    let types = ["alert.triggered", "alert.resolved", "alert.error"];
    let _hook = Hook::new(&buyer, &receiver, &types).await;
    let body = json!({"name": "hot", "condition": {"operator": "gt", "threshold": 10}, "consecutive_breaches": 2});
    let alert = watch(&buyer, &gauge.asset, body).await;
    stage
        .settle("last_checked_at IS NOT NULL", Instant::now())
        .await;
    let shown = show(&buyer, &alert).await;
    assert_eq!(
        [
            &shown["state"],
            &shown["last_value"],
            &shown["credits_spent_today"],
            &shown["last_error"]
        ],
        [&json!("ok"), &json!(5), &json!(2), &Value::Null]
    );
    buyer.holds(0).await;
    assert_eq!(buyer.balance().await, 98);

    gauge.turn("UPDATE gauge SET value = 20.5").await;
    stage.evaluate().await;
    let shown = show(&buyer, &alert).await;
    assert_eq!(
        (&shown["state"], &shown["breaches"]),
        (&json!("ok"), &json!(1))
    );
    assert_eq!(receiver.received().len(), 0);
    stage.evaluate().await;
    let triggered = receiver.wait_for(1).await.remove(0);
    assert_eq!(triggered.kind(), "alert.triggered");
    let id = alert.rsplit('/').next().expect("an id");
    let data = &triggered.body["data"];
    assert_eq!(
        [
            &data["alert_id"],
            &data["name"],
            &data["asset_id"],
            &data["state"],
            &data["previous_state"],
            &data["value"],
            &data["threshold"],
            &data["breaches"]
        ],
        [
            &json!(id),
            &json!("hot"),
            &json!(gauge.asset),
            &json!("triggered"),
            &json!("ok"),
            &json!(20.5),
            &json!(10),
            &json!(2)
        ]
    );
    // As long as it stays so, nothing more is told.
    stage.evaluate().await;
    let shown = show(&buyer, &alert).await;
    assert_eq!(
        (&shown["state"], &shown["breaches"]),
        (&json!("triggered"), &json!(3))
    );
    gauge.turn("UPDATE gauge SET value = 10").await;
    stage.evaluate().await;
    assert_eq!(receiver.wait_for(2).await[1].kind(), "alert.resolved");
    buyer.holds(0).await;
    assert_eq!(buyer.balance().await, 90);

    gauge.turn("ALTER TABLE gauge RENAME TO hidden_gauge").await;
    stage.evaluate().await;
    let failed = receiver.wait_for(3).await.remove(2);
    assert_eq!(failed.kind(), "alert.error");
    assert!(failed.body["data"]["message"].is_string());
    assert!(
        !failed.text.contains("relation"),
        "the source's own words: {}",
        failed.text
    );
    stage.evaluate().await;
    let shown = show(&buyer, &alert).await;
    assert_eq!(
        (&shown["state"], &shown["last_value"]),
        (&json!("error"), &json!(10))
    );
    assert!(shown["last_error"].is_string());
    // What a failed run held is let go of a moment after it was written down.
    let (left, held) = buyer.credits().await;
    assert_eq!(
        (left + held, &shown["credits_spent_today"]),
        (90, &json!(10))
    );
    gauge.turn("ALTER TABLE hidden_gauge RENAME TO gauge").await;
    stage.evaluate().await;
    assert_eq!(receiver.wait_for(4).await[3].kind(), "alert.resolved");

    let events = format!("{alert}/events");
    let since = Instant::now();
    let events = loop {
        let found = buyer.client.get(&events).await.expect(200);
        let all = found.at("/data").as_array().expect("events").clone();
        if all
            .iter()
            .take(4)
            .all(|event| event["delivery_status"] == "delivered")
        {
            break all;
        }
        assert!(since.elapsed() < ARRIVES_WITHIN, "{all:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let states: Vec<_> = events
        .iter()
        .map(|event| event["state"].as_str().expect("a state"))
        .collect();
    assert_eq!(states, ["ok", "error", "ok", "triggered", "ok"]);
    assert_eq!(
        (&events[4]["previous_state"], &events[4]["delivery_status"]),
        (&json!("unknown"), &json!("none"))
    );
    assert_eq!(events[3]["value"], 20.5);

    // Each run is a charge in the alert's name.
    let charges = buyer.path("/credits/transactions?type=charge");
    let charges = buyer.client.get(&charges).await.expect(200);
    let charges = charges.at("/data").as_array().expect("charges").clone();
    assert_eq!(charges.len(), 6);
    assert!(
        charges
            .iter()
            .all(|charge| charge["api_key_id"] == json!(id)),
        "{charges:#?}"
    );
    assert!(
        charges
            .iter()
            .any(|charge| charge["execution_id"] == events[3]["execution_id"])
    );
    let books = stage
        .one
        .platform()
        .get("/admin/ledger/reconciliation")
        .await
        .expect(200);
    assert_eq!(books.at("/data/balanced"), &json!(true), "{}", books.body);
}

/// What is unlike all that was answered before, or has changed by much, triggers; and what has triggered is let be for as long as it says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_unusual_triggers() {
    let stage = Stage::new().await;
    let gauge = Gauge::new(&stage.one).await;
    let seller = &gauge.seller;
    let mut alerts = Vec::new();
    for body in [
        json!({"condition": {"operator": "anomaly"}}),
        json!({"condition": {"operator": "change_pct_gt", "threshold": 50}}),
        json!({"condition": {"operator": "gt", "threshold": 10}, "rearm_seconds": 3600}),
    ] {
        alerts.push(watch(seller, &gauge.asset, body).await);
    }
    let states = async || {
        let mut states = Vec::new();
        for alert in &alerts {
            let shown = show(seller, alert).await;
            states.push(shown["state"].as_str().expect("a state").to_owned());
        }
        states
    };
    let turn = async |value: &str| {
        gauge
            .turn(&format!("UPDATE gauge SET value = {value}"))
            .await;
        stage.evaluate().await;
        states().await
    };
    stage
        .settle("last_checked_at IS NOT NULL", Instant::now())
        .await;
    // Far from the only one: too little is known of what is usual.
    assert_eq!(turn("7").await, ["ok", "ok", "ok"]);
    for value in ["5", "5.1", "5.2", "5", "5.1", "5.2", "5", "5.1", "5.2"] {
        assert_eq!(turn(value).await, ["ok", "ok", "ok"], "{value}");
    }
    assert_eq!(turn("20").await, ["triggered", "triggered", "triggered"]);
    let steady = ["ok", "triggered", "ok"];
    assert_eq!(turn("5").await, steady, "down by three quarters");
    assert_eq!(turn("5.1").await, ["ok", "ok", "ok"]);

    assert_eq!(turn("20").await, ["triggered", "triggered", "ok"]);
    let shown = show(seller, &alerts[2]).await;
    assert_eq!(shown["breaches"], 1, "it is seen, and not told");
    let earlier = "UPDATE alerts SET last_triggered_at = last_triggered_at - 3600000000";
    stage.store.execute(earlier, &[]).await.expect("an update");
    assert_eq!(turn("20").await, ["triggered", "ok", "triggered"]);
}

/// An asset that answers nothing for once ends nothing: what has triggered goes on behind the error, which tells nobody, until an answer is well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_in_between_resolves_nothing() {
    let stage = Stage::new().await;
    let gauge = Gauge::new(&stage.one).await;
    let seller = &gauge.seller;
    let receiver = Receiver::start().await;
    let types = ["alert.triggered", "alert.resolved", "alert.error"];
    let _hook = Hook::new(seller, &receiver, &types).await;
    let body = json!({"condition": {"operator": "gt", "threshold": 10}, "rearm_seconds": 3600});
    let alert = watch(seller, &gauge.asset, body).await;
    stage
        .settle("last_checked_at IS NOT NULL", Instant::now())
        .await;
    let mut triggered_at = Vec::new();
    for (value, state, told) in [
        ("20", "triggered", &["alert.triggered"][..]),
        ("NULL", "error", &["alert.triggered", "alert.error"][..]),
        ("20", "triggered", &["alert.triggered", "alert.error"][..]),
        (
            "5",
            "ok",
            &["alert.triggered", "alert.error", "alert.resolved"][..],
        ),
    ] {
        let turn = format!("UPDATE gauge SET value = {value}");
        gauge.turn(&turn).await;
        stage.evaluate().await;
        let shown = show(seller, &alert).await;
        assert_eq!(shown["state"], state, "{value}");
        triggered_at.push(shown["last_triggered_at"].clone());
        let received = receiver.wait_for(told.len()).await;
        let kinds: Vec<&str> = received.iter().map(|one| one.kind()).collect();
        assert_eq!(kinds, told, "{value}");
    }
    triggered_at.dedup();
    assert_eq!(triggered_at.len(), 1, "{triggered_at:?}");
}

/// An alert spends no more than it may, says so, and goes on the next day; who owns the asset spends nothing; who has nothing is told that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_spends_no_more_than_it_may() {
    let stage = Stage::new().await;
    let gauge = Gauge::new(&stage.one).await;
    let buyer = stage.one.buyer(&unique("saves"), 100).await;
    let poor = stage.one.buyer(&unique("poor"), 1).await;
    let condition = json!({"operator": "no_data"});
    let body = || json!({"condition": condition, "max_credits_per_day": 5});
    let saving = watch(&buyer, &gauge.asset, body()).await;
    let own = watch(&gauge.seller, &gauge.asset, body()).await;
    let broke = watch(&poor, &gauge.asset, body()).await;
    for _ in 0..4 {
        stage.evaluate().await;
    }
    let shown = show(&buyer, &saving).await;
    assert_eq!(
        (&shown["state"], &shown["credits_spent_today"]),
        (&json!("error"), &json!(4)),
        "{shown}"
    );
    assert!(
        shown["last_error"]
            .as_str()
            .expect("an error")
            .contains("4 of the 5"),
        "{shown}"
    );
    let next: jiff::Timestamp = shown["next_check_at"]
        .as_str()
        .expect("a time")
        .parse()
        .expect("a time");
    assert_eq!(next.as_second() % 86_400, 0, "{shown}");
    buyer.holds(0).await;
    assert_eq!(buyer.balance().await, 96);
    let shown = show(&gauge.seller, &own).await;
    assert_eq!(
        (&shown["state"], &shown["credits_spent_today"]),
        (&json!("ok"), &json!(0))
    );
    let shown = show(&poor, &broke).await;
    assert_eq!(
        (&shown["state"], &shown["credits_spent_today"]),
        (&json!("error"), &json!(0))
    );
    assert!(
        shown["last_error"]
            .as_str()
            .expect("an error")
            .contains("2 credits"),
        "{shown}"
    );
    assert_eq!(poor.balance().await, 1);

    // What was spent yesterday does not count.
    let yesterday = "UPDATE alerts SET spent_on = spent_on - 86400000000";
    stage
        .store
        .execute(yesterday, &[])
        .await
        .expect("an update");
    stage.evaluate().await;
    let shown = show(&buyer, &saving).await;
    assert_eq!(
        (&shown["state"], &shown["credits_spent_today"]),
        (&json!("ok"), &json!(2))
    );

    // An asset that is gone cannot be watched; a missing row is what no_data looks for, and nobody pays for it.
    gauge.turn("DELETE FROM gauge").await;
    stage.evaluate().await;
    let shown = show(&buyer, &saving).await;
    assert_eq!(
        (&shown["state"], &shown["last_value"]),
        (&json!("triggered"), &Value::Null)
    );
    buyer.holds(0).await;
    assert_eq!(buyer.balance().await, 94);
    let path = gauge
        .seller
        .path(&format!("/assets/{}?force=true", gauge.asset));
    gauge.seller.client.delete(&path).await.expect(204);
    stage.evaluate().await;
    assert_eq!(show(&buyer, &saving).await["state"], "error");
}
