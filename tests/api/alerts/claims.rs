//! Hosts that share the alerts of one store: which of them evaluates which, and when one has died.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::PgCluster;
use souk_tests::receiver::ARRIVES_WITHIN;

use super::{GAUGE, Gauge, Stage, show, start, watch};
use crate::unique;
use crate::webhooks::QUIET;

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
    assert_eq!(show(&gauge.seller, &alert).await["state"], "ok");
    gauge.turn("UPDATE gauge SET value = 20").await;
    let died = "UPDATE alerts
        SET claimed_by = 'a host that died', next_check_at = 1,
            lease_until = CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) + 4000000
        RETURNING lease_until";
    // The host looks for what is due several times meanwhile.
    let until = stage.count(died).await;
    stage.settle("state = 'triggered'", Instant::now()).await;
    let checked = stage.count("SELECT last_checked_at FROM alerts").await;
    assert!(checked >= until, "{} µs too early", until - checked);
    let mine = stage.count("SELECT COUNT(*) FROM alerts WHERE claimed_by IS NULL");
    assert_eq!(mine.await, 1);
}
