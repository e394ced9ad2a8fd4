//! A version speaks its own dialect of SQL, which whoever asks it has to follow.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::{Client, Company, PgCluster, TestHost, guests};

use super::{FOLLOWED_WITHIN, upload};

/// The statement as the connector of the engine `fixed` gets it, after the label of its version.
async fn statement(client: &Client, seller: &Company, asset: &str) -> String {
    let path = seller.path(&format!("/assets/{asset}/execute"));
    let body = json!({"params": {"n": 1}});
    let answer = client.post(&path, body).await.expect(200);
    answer.text("/data/answer_value")
}

async fn asks_with_a_parameter(host: &TestHost) -> (Company, String) {
    let seller = host.company("asks").await;
    let connection = seller.nowhere("fixed").await;
    let asset = seller.asset(
        &connection,
        json!({
            "result_type": "string",
            "sql_logic": "SELECT statement FROM fixed WHERE n = :n LIMIT 1",
            "parameters": [{"name": "n", "type": "integer"}],
        }),
    );
    let asset = asset.await;
    let first = statement(&host.client(&seller.key), &seller, &asset).await;
    assert!(
        first.starts_with("row 1: ") && first.contains("n = ?"),
        "{first}"
    );
    (seller, asset)
}

/// Calls until version 2 answers; the call after that was written for it.
async fn speaks_the_new_dialect(client: &Client, seller: &Company, asset: &str) {
    let begun = Instant::now();
    while !statement(client, seller, asset).await.starts_with("next") {
        assert!(begun.elapsed() < FOLLOWED_WITHIN, "version 1 still answers");
        // A key has a thousand calls an hour.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let asked = statement(client, seller, asset).await;
    assert!(asked.contains("n = $1"), "{asked}");
}

/// A host that follows another one's choice asks the new version in its own dialect, although calls went on while it was compiled.
#[tokio::test]
async fn a_host_that_follows_speaks_the_new_dialect() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("SELECT 1").await);
    let start = || {
        TestHost::builder()
            .arg("--database-url", &url)
            .env("SOUK_MASTER_KEY", crate::hosts::MASTER_KEY)
            .start()
    };
    let one = start().await;
    let platform = one.platform();
    let uploaded = upload(&platform, guests::FIXED_ROWS, "?activate=true").await;
    uploaded.expect(201);
    let other = start().await;
    let (seller, asset) = asks_with_a_parameter(&one).await;
    let there = other.client(&seller.key);
    statement(&there, &seller, &asset).await;
    let activate = upload(&platform, guests::FIXED_ROWS_NEXT, "?activate=true");
    let follow = speaks_the_new_dialect(&there, &seller, &asset);
    let (activated, ()) = tokio::join!(activate, follow);
    activated.expect(201);
}

/// What lies in the connector directory is at work within seconds, and asked in its own dialect. What is taken out of it is said, and goes on.
#[tokio::test]
async fn a_file_in_the_directory_speaks_its_dialect() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("fixed.wasm");
    std::fs::write(&file, guests::FIXED_ROWS).expect("a file");
    let path = directory.path().to_string_lossy();
    let host = TestHost::builder().arg("--connector-dir", path);
    let host = host.start().await;
    let (seller, asset) = asks_with_a_parameter(&host).await;
    std::fs::write(&file, guests::FIXED_ROWS_NEXT).expect("a file");
    let client = host.client(&seller.key);
    speaks_the_new_dialect(&client, &seller, &asset).await;

    std::fs::remove_file(&file).expect("a file");
    let begun = Instant::now();
    while !host.log().contains("connector file removed") {
        assert!(begun.elapsed() < FOLLOWED_WITHIN, "{}", host.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let answer = statement(&client, &seller, &asset).await;
    assert!(answer.starts_with("next"), "{answer}");
}
