//! Connectors as an operator and a seller handle them: uploaded, activated, rolled back, deleted; and
//! still there after a restart and on every host of a store.

mod activations;
mod companies;
mod dialects;
mod elsewhere;
mod refusals;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::{Client, Company, TestHost, guests};

/// A version is compiled and checked on the way, by a debug build on a loaded machine.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(60);

/// A host of its own, because the platform's connectors are everybody's.
async fn own_host() -> TestHost {
    TestHost::builder().start().await
}

async fn upload(client: &Client, wasm: &[u8], query: &str) -> souk_tests::Answer {
    client
        .post_wasm(&format!("/connectors{query}"), wasm.to_vec())
        .await
}

/// `version: status` of every version of the connector.
async fn versions(client: &Client, name: &str) -> Vec<String> {
    let answer = client.get(&format!("/connectors/{name}")).await.expect(200);
    let versions = answer
        .at("/data/versions")
        .as_array()
        .cloned()
        .unwrap_or_default();
    let text =
        |version: &Value| format!("{}: {}", version["version"], version["status"]).replace('"', "");
    versions.iter().map(text).collect()
}

/// A seller with an asset that answers the label of the first row: `row 1` or `next 1`.
async fn labels(host: &TestHost, handle: &str) -> (Company, String) {
    let seller = host.company(handle).await;
    let connection = seller.nowhere("fixed").await;
    seller
        .client
        .post(
            &seller.path(&format!("/connections/{connection}/test")),
            json!({}),
        )
        .await
        .expect(200);
    let asset = seller
        .asset(
            &connection,
            json!({"result_type": "string", "sql_logic": "SELECT label FROM fixed LIMIT 1"}),
        )
        .await;
    (seller, asset)
}

async fn label(seller: &Company, asset: &str) -> String {
    let answer = seller.execute(asset, json!({})).await.expect(200);
    answer
        .text("/data/answer_value")
        .split(' ')
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Uploaded, activated, replaced, rolled back: calls reach the active version each time, also after a
/// restart; what is active cannot be deleted, what is deleted stays deleted.
#[tokio::test]
async fn a_connector_lives_through_versions_and_restarts() {
    let mut host = own_host().await;
    let platform = host.platform();
    let staged = upload(&platform, guests::FIXED_ROWS, "").await.expect(201);
    assert_eq!(
        (staged.at("/data/status"), staged.at("/data/scope")),
        (&json!("staged"), &json!("platform"))
    );
    assert_eq!(staged.header("location"), "/connectors/fixed-rows");
    let path = "/connectors/fixed-rows";
    let first = platform
        .post(&format!("{path}/activate"), json!({"version": "1.0.0"}))
        .await
        .expect(200);
    assert_eq!(first.at("/data/status"), "active");
    let (seller, asset) = labels(&host, "versions").await;
    assert_eq!(label(&seller, &asset).await, "row");

    let second = upload(&platform, guests::FIXED_ROWS_NEXT, "?activate=true")
        .await
        .expect(201);
    // The same engine keeps its id.
    assert_eq!(
        (second.at("/data/status"), second.at("/data/engine_ids")),
        (&json!("active"), first.at("/data/engine_ids"))
    );
    assert_eq!(label(&seller, &asset).await, "next");

    platform
        .post(&format!("{path}/rollback"), json!({}))
        .await
        .expect(200);
    assert_eq!(label(&seller, &asset).await, "row");
    platform
        .post(&format!("{path}/rollback"), json!({}))
        .await
        .expect(200);
    assert_eq!(label(&seller, &asset).await, "next");

    host.stop().await;
    host.start_again().await;
    let platform = host.platform();
    let seller = Company {
        client: host.client(&seller.key),
        ..seller
    };
    assert_eq!(
        versions(&platform, "fixed-rows").await,
        ["1.0.0: staged", "2.0.0: active"]
    );
    assert_eq!(label(&seller, &asset).await, "next");
    platform
        .post(&format!("{path}/rollback"), json!({}))
        .await
        .expect(200);
    assert_eq!(label(&seller, &asset).await, "row");

    platform
        .delete(&format!("{path}/versions/1.0.0"))
        .await
        .expect_error(409, "CONFLICT");
    platform
        .delete(&format!("{path}/versions/2.0.0"))
        .await
        .expect(204);
    let gone = platform.delete(&format!("{path}/versions/2.0.0")).await;
    is_told(gone, "there is no version \"2.0.0\" of the connector");
    let gone = json!({"version": "2.0.0"});
    let gone = platform.post(&format!("{path}/activate"), gone).await;
    is_told(gone, "there is no version \"2.0.0\" of the connector");
    let nobody = platform.delete("/connectors/nobody/versions/2.0.0").await;
    is_told(nobody, "there is no connector \"nobody\"");
    platform
        .post(&format!("{path}/rollback"), json!({}))
        .await
        .expect_error(409, "CONFLICT");
    host.stop().await;
    host.start_again().await;
    assert_eq!(
        versions(&host.platform(), "fixed-rows").await,
        ["1.0.0: active"]
    );
}

/// Which of the two is not there: the connector or its version.
fn is_told(missing: souk_tests::Answer, words: &str) {
    let missing = missing.expect_error(404, "CONNECTOR_NOT_FOUND");
    let message = missing.text("/error/message");
    assert!(message.starts_with(words), "{message}");
}

/// What is listed can be chosen: an id that is kept for an engine without a connector is not there; an engine whose connector was taken off work stays,
/// with its id, and says so.
#[tokio::test]
async fn engines_that_nobody_serves_are_not_offered() {
    let host = own_host().await;
    let engines = async || -> Vec<(String, bool)> {
        let listed = host.platform().get("/storage-engines").await.expect(200);
        let listed = listed.at("/data").as_array().cloned().unwrap_or_default();
        let told = |engine: &Value| {
            let slug = engine["slug"].as_str().expect("a slug");
            (slug.to_owned(), engine["usable"] == true)
        };
        listed.iter().map(told).collect()
    };
    let all = engines().await;
    assert!(all.iter().all(|(_, usable)| *usable), "{all:?}");
    assert!(all.iter().any(|(slug, _)| slug == "mysql"), "{all:?}");
    let off = "/connectors/mysql/deactivate";
    host.platform().post(off, json!({})).await.expect(200);
    assert!(engines().await.contains(&("mysql".to_owned(), false)));
}

/// A connector is taken off work at once, on every restart, and by staff for good: buyers pay nothing meanwhile, its company is told why it
/// cannot put it back, and whom it concerns is known before.
#[tokio::test]
async fn a_connector_is_taken_off_work() {
    let mut host = own_host().await;
    let (seller, buyer) = (host.company("seller").await, host.buyer("buyer", 10).await);
    seller.connector(guests::MOODY).await;
    let connection = seller.nowhere("moody").await;
    let asset = json!({"result_type": "string", "sql_logic": "SELECT mood FROM t"});
    let asset = seller.asset(&connection, asset).await;
    seller.publish(&asset, 2).await;
    buyer.execute(&asset, json!({})).await.expect(200);

    let own = seller.path("/connectors/moody");
    let depending = seller
        .client
        .get(&format!("{own}/connections"))
        .await
        .expect(200);
    assert_eq!(depending.at("/meta/total"), 1);
    let one = depending.at("/data/0");
    assert_eq!(
        (
            &one["connection_id"],
            &one["published_products"],
            &one["engine"]
        ),
        (&json!(connection), &json!(1), &json!("moody"))
    );
    let off = |client: Client, body: Value| {
        let path = format!("{own}/deactivate");
        async move { client.post(&path, body).await }
    };
    let on = |client: Client| {
        let path = format!("{own}/activate");
        async move { client.post(&path, json!({"version": "1.0.0"})).await }
    };
    off(seller.client.clone(), json!({})).await.expect(200);
    buyer
        .execute(&asset, json!({}))
        .await
        .expect_error(503, "CONNECTOR_UNAVAILABLE");
    off(seller.client.clone(), json!({}))
        .await
        .expect_error(409, "CONFLICT");
    on(seller.client.clone()).await.expect(200);
    buyer.execute(&asset, json!({})).await.expect(200);

    // Staff sees it, takes it off and means it.
    let platform = host.platform();
    assert_eq!(versions(&platform, "moody").await, ["1.0.0: active"]);
    let body = json!({"reason": "it mines coins"});
    off(platform, body).await.expect(200);
    buyer
        .execute(&asset, json!({}))
        .await
        .expect_error(503, "CONNECTOR_UNAVAILABLE");
    let refusal = on(seller.client.clone())
        .await
        .expect_error(409, "CONNECTOR_BLOCKED");
    assert!(
        refusal.text("/error/message").contains("it mines coins"),
        "{}",
        refusal.body
    );
    let again = seller.path("/connectors?activate=true");
    let again = seller
        .client
        .post_wasm(&again, guests::MOODY.to_vec())
        .await;
    again.expect_error(409, "CONNECTOR_BLOCKED");

    host.stop().await;
    host.start_again().await;
    let (seller, buyer) = (
        host.client(&seller.key),
        Company {
            client: host.client(&buyer.key),
            ..buyer
        },
    );
    buyer
        .execute(&asset, json!({}))
        .await
        .expect_error(503, "CONNECTOR_UNAVAILABLE");
    on(seller).await.expect_error(409, "CONNECTOR_BLOCKED");
    on(host.platform()).await.expect(200);
    buyer.execute(&asset, json!({})).await.expect(200);
    assert_eq!(buyer.credits().await, (10 - 3 * 2, 0));

    // What is off can be deleted, and what staff has taken off stays so for whatever comes under its name.
    off(host.platform(), json!({})).await.expect(200);
    let version = format!("{own}/versions/1.0.0");
    host.platform().delete(&version).await.expect(204);
    on(host.platform())
        .await
        .expect_error(404, "CONNECTOR_NOT_FOUND");
}

/// What was chosen by hand after a file was put into the connector directory runs after a restart, too; and a version that a file has put to
/// work can be left for the one before.
#[tokio::test]
async fn a_choice_by_hand_outlives_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = directory.path().join("fixed.wasm");
    std::fs::write(&first, guests::FIXED_ROWS).expect("a file");
    let path = directory.path().to_string_lossy().into_owned();
    let mut host = TestHost::builder()
        .arg("--connector-dir", path)
        .start()
        .await;
    let platform = host.platform();
    std::fs::write(directory.path().join("next.wasm"), guests::FIXED_ROWS_NEXT).expect("a file");
    let begun = Instant::now();
    while versions(&platform, "fixed-rows")
        .await
        .last()
        .is_none_or(|last| last != "2.0.0: active")
    {
        assert!(begun.elapsed() < FOLLOWED_WITHIN, "the file is not at work");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let path = "/connectors/fixed-rows/rollback";
    platform.post(path, json!({})).await.expect(200);
    let chosen = ["1.0.0: active", "2.0.0: retired"];
    assert_eq!(versions(&platform, "fixed-rows").await, chosen);
    host.stop().await;
    host.start_again().await;
    let kept = versions(&host.platform(), "fixed-rows").await;
    assert!(kept.contains(&"1.0.0: active".to_owned()), "{kept:?}");
}

/// One name and version is one component; the same component again is no error.
#[tokio::test]
async fn a_version_has_one_digest() {
    let host = own_host().await;
    let platform = host.platform();
    upload(&platform, guests::FIXED_ROWS, "").await.expect(201);
    upload(&platform, guests::FIXED_ROWS, "").await.expect(201);
    // A custom section changes the bytes and nothing else.
    let mut other = guests::FIXED_ROWS.to_vec();
    other.extend_from_slice(&[0, 2, 1, b'x']);
    upload(&platform, &other, "")
        .await
        .expect_error(409, "CONFLICT");
    assert_eq!(versions(&platform, "fixed-rows").await, ["1.0.0: staged"]);
    let bundled = platform
        .get("/connectors/postgres")
        .await
        .expect(200)
        .text("/data/versions/0/version");
    platform
        .delete(&format!("/connectors/postgres/versions/{bundled}"))
        .await
        .expect_error(409, "CONFLICT");
}
