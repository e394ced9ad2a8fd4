//! Alerts that fire: a real asset is watched, and a real receiver is told. The minute between two evaluations is cut short in the store.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::receiver::ARRIVES_WITHIN;
use souk_tests::{Company, PgCluster, Receiver, TestHost};

use crate::hosts::MASTER_KEY;
use crate::unique;
use crate::users::Relay;
use crate::webhooks::{Hook, QUIET};

/// A gauge that somebody turns.
const GAUGE: &str = "CREATE TABLE gauge (value double precision); INSERT INTO gauge VALUES (5);";
const READ: &str = "SELECT value FROM gauge";

/// Hosts on one PostgreSQL store that the test can look into.
struct Stage {
    store: tokio_postgres::Client,
    url: String,
    one: TestHost,
}

async fn start(url: &str) -> TestHost {
    TestHost::builder()
        .arg("--database-url", url)
        .env("SOUK_MASTER_KEY", MASTER_KEY)
        .start()
        .await
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

/// Two hosts share the alerts of one store: each is evaluated exactly once whenever it is due, by one of them, and both take part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hosts_evaluate_each_alert_once() {
    const COMPANIES: usize = 4;
    const ALERTS: i64 = 240;
    const ROUNDS: i64 = 3;
    let stage = Stage::new().await;
    let other = start(&stage.url).await;
    let cluster = PgCluster::shared().await;
    let database = cluster.database(GAUGE).await;
    for _ in 0..COMPANIES {
        let company = stage.one.company(&unique("shares")).await;
        let connection = company.postgres(cluster, &database).await;
        // So slow that one host cannot be done before the other looks.
        let slow = json!({"sql_logic": "SELECT value FROM gauge, (SELECT pg_sleep(0.2)) AS slept"});
        let asset = company.asset(&connection, slow).await;
        let body = json!({"condition": {"operator": "changed"}, "is_active": false});
        for _ in 0..ALERTS as usize / COMPANIES {
            watch(&company, &asset, body.clone()).await;
        }
    }
    let mut claimants = HashSet::new();
    let wake = "UPDATE alerts SET is_active = 1, next_check_at = 1";
    for round in 1..=ROUNDS {
        stage.store.execute(wake, &[]).await.expect("an update");
        let since = Instant::now();
        loop {
            let claimed = "SELECT claimed_by FROM alerts WHERE claimed_by IS NOT NULL";
            for row in stage.store.query(claimed, &[]).await.expect("claims") {
                claimants.insert(row.get::<_, String>(0));
            }
            let open =
                "SELECT COUNT(*) FROM alerts WHERE next_check_at = 1 OR claimed_by IS NOT NULL";
            if stage.count(open).await == 0 {
                break;
            }
            assert!(
                since.elapsed() < ARRIVES_WITHIN,
                "round {round} does not end"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    // Runs that are free are recorded behind the answers.
    tokio::time::sleep(QUIET).await;
    let runs =
        "SELECT COUNT(*) FROM executions WHERE api_key_id LIKE 'alr%' AND status = 'succeeded'";
    assert_eq!(stage.count(runs).await, ALERTS * ROUNDS);
    let fine = "SELECT COUNT(*) FROM alerts WHERE state = 'ok' AND last_value = '5'";
    assert_eq!(stage.count(fine).await, ALERTS);
    assert_eq!(claimants.len(), 2);
    drop(other);
}

/// An alert that a host had claimed when it died is evaluated by another as soon as the claim is over, and not before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_hosts_alert_is_taken_over() {
    let stage = Stage::new().await;
    let gauge = Gauge::new(&stage.one).await;
    let body = json!({"condition": {"operator": "gt", "threshold": 10}});
    let alert = watch(&gauge.seller, &gauge.asset, body).await;
    stage.evaluate().await;
    let before = show(&gauge.seller, &alert).await;
    assert_eq!(before["state"], "ok");
    gauge.turn("UPDATE gauge SET value = 20").await;
    let died = "UPDATE alerts
        SET claimed_by = 'a host that died', next_check_at = 1,
            lease_until = CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) + 4000000";
    stage.store.execute(died, &[]).await.expect("a claim");
    let claimed = Instant::now();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let still = show(&gauge.seller, &alert).await;
    assert_eq!(still["last_checked_at"], before["last_checked_at"]);
    stage.settle("state = 'triggered'", claimed).await;
    assert!(claimed.elapsed() > Duration::from_secs(4));
    let mine = stage.count("SELECT COUNT(*) FROM alerts WHERE claimed_by IS NULL");
    assert_eq!(mine.await, 1);
}

/// Waits until the newest event of an alert says so of its mail.
async fn wait_for_mail(company: &Company, alert: &str, status: &str) {
    let since = Instant::now();
    loop {
        let events = company.client.get(&format!("{alert}/events")).await;
        let events = events.expect(200);
        let newest = events.at("/data/0/mail_status");
        if newest == status {
            return;
        }
        assert!(
            since.elapsed() < ARRIVES_WITHIN,
            "the mail is {newest}, not {status}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A user who wants it is told by mail, once for each change. A relay that is away is asked again. Whoever is no user (yet) is told nothing, and
/// watches nothing any more once removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_mailed() {
    let mut relay = Relay::start().await;
    let host = TestHost::builder()
        .arg("--smtp-url", format!("smtp://127.0.0.1:{}", relay.port))
        .arg("--mail-from", "souk@example.org")
        .start()
        .await;
    let gauge = Gauge::new(&host).await;
    let seller = &gauge.seller;
    let body = json!({"name": "hot", "condition": {"operator": "gt", "threshold": 4}, "notify_by_mail": true});
    let alert = watch(seller, &gauge.asset, body.clone()).await;
    wait_for_mail(seller, &alert, "sent").await;
    let mail = relay.taken();
    let told = [
        "Subject: Alert \"hot\" has triggered",
        "Answer: 5",
        "Condition: gt 4",
    ];
    for line in told {
        assert!(mail.contains(line), "{line} is not in {mail}");
    }
    assert!(sends_a_test_mail(seller, &alert).await);
    let both = relay.taken();
    let test = &both[mail.len()..];
    for line in told.into_iter().chain(["Why: this is a test"]) {
        assert!(test.contains(line), "{line} is not in {test}");
    }
    // It changes nothing of what is known.
    let events = seller.client.get(&format!("{alert}/events")).await;
    assert_eq!(events.expect(200).at("/meta/total"), &json!(1));
    let silent = watch(seller, &gauge.asset, json!({})).await;
    assert!(!sends_a_test_mail(seller, &silent).await);

    let users = seller.path("/users");
    let ann = json!({"email": "ann@example.org", "name": "Ann", "role_id": 3});
    let ann = seller.client.post(&users, ann).await.expect(201);
    let ann = ann.text("/data/id");
    let mut hers = body;
    hers["asset_id"] = json!(gauge.asset);
    let path = seller.path(&format!("/users/{ann}/alerts"));
    let hers = seller.client.post(&path, hers).await.expect(201);
    let hers = seller.path(&format!("/alerts/{}", hers.text("/data/id")));
    wait_for_mail(seller, &hers, "failed").await;
    assert!(!sends_a_test_mail(seller, &hers).await);
    let removed = seller.client.delete(&format!("{users}/{ann}")).await;
    assert!(removed.status.is_success(), "{}", removed.body);
    let shown = show(seller, &hers).await;
    assert_eq!(
        (&shown["state"], &shown["is_active"]),
        (&json!("paused"), &json!(false))
    );

    relay.stop();
    let anew = json!({"condition": {"operator": "gt", "threshold": 3}});
    seller.client.patch(&alert, anew).await.expect(200);
    wait_for_mail(seller, &alert, "pending").await;
    let since = Instant::now();
    while !host.log().contains("a mail could not be sent") {
        assert!(since.elapsed() < ARRIVES_WITHIN, "the relay is not asked");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    wait_for_mail(seller, &alert, "pending").await;
    assert!(!sends_a_test_mail(seller, &alert).await);
    assert_eq!(relay.taken().matches("Subject: Alert").count(), 2);
}

async fn sends_a_test_mail(company: &Company, alert: &str) -> bool {
    let test = format!("{alert}/test");
    let sent = company.client.post(&test, json!({})).await.expect(202);
    sent.at("/data/mail_sent").as_bool().expect("a flag")
}

/// Where there is no relay nobody is promised a mail.
#[tokio::test]
async fn a_host_without_a_relay_promises_no_mail() {
    let gauge = Gauge::new(crate::host().await).await;
    let seller = &gauge.seller;
    let path = seller.path(&format!("/users/{}/alerts", seller.user_id));
    let body = json!({"asset_id": gauge.asset, "notify_by_mail": true});
    let refused = seller.client.post(&path, body).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(
        refused.at("/error/details/errors/0/field"),
        "notify_by_mail"
    );
    let alert = watch(seller, &gauge.asset, json!({})).await;
    let wanted = json!({"notify_by_mail": true});
    let refused = seller.client.patch(&alert, wanted).await;
    refused.expect_error(400, "VALIDATION_ERROR");
}
