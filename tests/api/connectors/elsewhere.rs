//! What becomes of a version on a host that was not there when another one of its store was given it.

use serde_json::json;
use souk_tests::host::Builder;
use souk_tests::process::free_port;
use souk_tests::{Client, PgCluster, TestHost, guests};

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
        seller.connector(wasm).await;
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
