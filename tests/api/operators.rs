//! Operators load engines while the host runs: from a directory that it watches, and they see in the metrics what connectors do.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::process::free_port;
use souk_tests::{Client, TestHost, guests};

/// The directory is looked at every second; a loaded machine compiles slowly.
const LOADED_WITHIN: Duration = Duration::from_secs(60);

/// Puts a file there in one rename, so that it is never seen half.
fn put(directory: &Path, bytes: &[u8]) {
    let half = directory.join("fixed.half");
    std::fs::write(&half, bytes).expect("a file");
    std::fs::rename(half, directory.join("fixed.wasm")).expect("a rename");
}

async fn wait_for(platform: &Client, seen: impl Fn(&Value) -> bool) {
    let since = Instant::now();
    loop {
        let versions = platform.get("/connectors/fixed-rows").await.expect(200);
        if seen(versions.at("/data")) {
            return;
        }
        assert!(since.elapsed() < LOADED_WITHIN, "{}", versions.body);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What lies in the directory when the host starts is an engine from the first request on; a newer version takes over while the host
/// runs, one that cannot be loaded is rejected with the reason, and the one before it goes on.
#[tokio::test]
async fn a_connector_directory_is_followed_while_the_host_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    put(directory.path(), guests::FIXED_ROWS);
    let metrics = format!("127.0.0.1:{}", free_port());
    let host = TestHost::builder()
        .arg("--connector-dir", directory.path().to_string_lossy())
        .arg("--metrics-listen", &metrics)
        .start()
        .await;
    let platform = host.platform();
    let seller = host.company("watched").await;
    let connection = seller.nowhere("fixed").await;
    let label = json!({"result_type": "string", "sql_logic": "SELECT label FROM fixed LIMIT 1"});
    let asset = seller.asset(&connection, label).await;
    let label = async || {
        let answer = seller.execute(&asset, json!({})).await.expect(200);
        answer.text("/data/answer_value")
    };
    assert_eq!(label().await, "row 1");

    put(directory.path(), guests::FIXED_ROWS_NEXT);
    wait_for(&platform, |fixed| fixed["active_version"] == "2.0.0").await;
    assert_eq!(label().await, "next 1");

    put(directory.path(), guests::NOT_A_COMPONENT);
    let is_rejected = |connector: &Value| connector["status"] == "rejected";
    let since = Instant::now();
    let rejected = loop {
        let all = platform.get("/connectors").await.expect(200);
        let mut found = all.at("/data").as_array().expect("a list").iter();
        if let Some(rejected) = found.find(|one| is_rejected(one)) {
            break rejected.clone();
        }
        assert!(since.elapsed() < LOADED_WITHIN, "{}", all.body);
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let reason = rejected["error"].as_str().unwrap_or_default();
    assert!(reason.contains("component"), "{rejected}");
    assert_eq!(label().await, "next 1");

    let text = reqwest::get(format!("http://{metrics}/metrics")).await;
    let text = text.expect("an answer").text().await.expect("text");
    let count = |what: &str, version: &str| {
        let line = format!(
            "souk_connector_{what}_total{{connector=\"fixed-rows\",version=\"{version}\",scope=\"platform\"}} "
        );
        let count = text.lines().find_map(|text| text.strip_prefix(&line));
        let count = count.and_then(|count| count.parse::<u64>().ok());
        count.unwrap_or_else(|| panic!("no {line} in {text}"))
    };
    // Its health checks are calls too.
    assert!(
        count("calls", "1.0.0") >= 1 && count("calls", "2.0.0") >= 2,
        "{text}"
    );
    assert_eq!(count("traps", "2.0.0"), 0);
    assert!(text.contains("\nsouk_sandbox_sessions_open "), "{text}");
}

/// A seller's password, a key and a webhook's secret, as they were sent and answered over REST, are neither in a copied data directory nor
/// in the log.
#[tokio::test]
async fn no_secret_lies_in_the_data_directory() {
    let mut host = TestHost::builder().start().await;
    let seller = host.company("discreet").await;
    let password = "needle-in-a-haystack-7f3a";
    let credentials = json!({"username": "reader", "password": password}).to_string();
    let source = json!({"credential_type": "PASSWORD", "credentials": credentials, "host": "127.0.0.1", "port": 1, "database": "d"});
    let connection = seller.connection("postgres", source).await;
    let test = seller.path(&format!("/connections/{connection}/test"));
    seller.client.post(&test, json!({})).await.expect(200);
    let hook = json!({"url": "http://127.0.0.1:1/", "event_types": ["credits.low"]});
    let hook = seller.client.post(&seller.path("/webhooks"), hook).await;
    let hook = hook.expect(201).text("/data/secret");
    assert!(host.stop().await.success());
    let mut directories = vec![host.data_dir.clone()];
    let mut plain = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let content = std::fs::read(&path).expect("a file");
            let has = |text: &str| {
                let text = text.as_bytes();
                content.windows(text.len()).any(|window| window == text)
            };
            for secret in [password, &seller.key, &hook] {
                assert!(!has(secret), "{} has {secret}", path.display());
            }
            // What is no secret is found where it should be.
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if has("discreet") || has("accepting requests") {
                plain.push(name.into_owned());
            }
        }
    }
    for file in ["souk.db", "test.log"] {
        assert!(plain.iter().any(|name| name == file), "{file}: {plain:?}");
    }
}
