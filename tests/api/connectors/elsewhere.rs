//! What becomes of a version on a host that was not there when another one of its store was given it.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::host::Builder;
use souk_tests::process::{free_port, signal_pid};
use souk_tests::{Client, PgCluster, TestHost, guests};

use super::FOLLOWED_WITHIN;
use crate::shares::padded;

/// A host on this store.
fn host_on(url: &str) -> Builder {
    let host = TestHost::builder().arg("--database-url", url);
    host.env("SOUK_MASTER_KEY", crate::hosts::MASTER_KEY)
}

/// For how many seconds a host has compiled what companies have.
async fn compiled(metrics: &str) -> f64 {
    let scraped = Client::new(&format!("http://{metrics}"), None);
    let scraped = scraped.get("/metrics").await.expect(200);
    let text = scraped.body.as_str().expect("a text");
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix("souk_compile_seconds_total "));
    value.expect("a counter").parse().expect("a number")
}

/// What there is to go back to, and has run on another host only, is compiled as what is put to work is: before anybody who changes a connector would have
/// to wait for it, and on its company's account.
#[tokio::test]
async fn what_is_gone_back_to_is_compiled_before() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("").await);
    let one = host_on(&url).start().await;
    let seller = one.company("returns").await;
    for wasm in [guests::FIXED_ROWS, guests::FIXED_ROWS_NEXT] {
        // Of other bytes than those that hosts of other tests have compiled.
        seller.connector(&padded(wasm, 11)).await;
    }
    let metrics = format!("127.0.0.1:{}", free_port());
    let other = host_on(&url).arg("--metrics-listen", &metrics);
    let other = other.compiles_uploads().start().await;
    // What is at work is loaded at the start, on nobody's account.
    assert_eq!(compiled(&metrics).await, 0.0);
    let there = other.client(&seller.key);
    let rollback = seller.path("/connectors/fixed-rows/rollback");
    let back = there.post(&rollback, json!({})).await.expect(200);
    assert_eq!(back.at("/data/version"), "1.0.0");
    assert!(compiled(&metrics).await > 0.0);
}

/// What was deleted is run nowhere: a host that was away while a version was deleted, and uploaded with other bytes, comes to have those at work; of a
/// company's and of the platform's.
#[tokio::test]
async fn a_host_that_was_away_runs_what_was_uploaded_anew() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("").await);
    let (one, other) = (host_on(&url).start().await, host_on(&url).start().await);
    let seller = one.company("anew").await;
    let platform = one.ready["platform"]["api_key"].as_str().expect("a key");
    let staff = one.platform();
    let of_seller = (&seller.client, seller.path("/connectors"), &*seller.key);
    let of_staff = (&staff, "/connectors".to_owned(), platform);
    for (wasm, name, (client, connectors, key)) in [
        (guests::FIXED_ROWS, "fixed-rows", of_seller),
        (guests::MOODY, "moody", of_staff),
    ] {
        let there = other.client(key);
        let upload = format!("{connectors}?activate=true");
        let given = client.post_wasm(&upload, wasm.to_vec()).await.expect(201);
        let version = given.text("/data/version");
        is_at_work(&there, name, &given.text("/data/digest")).await;

        signal_pid(other.pid(), libc::SIGSTOP);
        let connector = format!("{connectors}/{name}");
        let deactivate = format!("{connector}/deactivate");
        client.post(&deactivate, json!({})).await.expect(200);
        let version_path = format!("{connector}/versions/{version}");
        client.delete(&version_path).await.expect(204);
        let given = client.post_wasm(&upload, padded(wasm, 1)).await.expect(201);
        assert_eq!(given.text("/data/version"), version);
        signal_pid(other.pid(), libc::SIGCONT);
        is_at_work(&there, name, &given.text("/data/digest")).await;
    }
}

/// Waits until this is at work, by its digest.
async fn is_at_work(client: &Client, name: &str, digest: &str) {
    let begun = Instant::now();
    loop {
        let answer = client.get(&format!("/connectors/{name}")).await;
        let seen = ["status", "digest"].map(|member| {
            let member = answer.at(&format!("/data/versions/0/{member}"));
            member.as_str().unwrap_or_default().to_owned()
        });
        if seen == ["active", digest] {
            return;
        }
        assert!(begun.elapsed() < FOLLOWED_WITHIN, "{seen:?} of {digest}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
