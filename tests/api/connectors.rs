//! Connectors as an operator and a seller handle them: uploaded, activated, rolled back, deleted; and
//! still there after a restart and on every host of a store.

mod activations;
mod companies;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::{Client, Company, PgCluster, TestHost, guests};

use crate::{host, unique};

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

/// What the store does not take is not at work either: the version of before answers, and the other one does once the store takes it.
#[tokio::test]
async fn a_version_that_the_store_does_not_take_is_not_at_work() {
    let host = own_host().await;
    let platform = host.platform();
    let store = host.data_dir.join("souk.db");
    let in_store = |sql: &str| {
        let store = rusqlite::Connection::open(&store).expect("the store");
        store.execute_batch(sql).expect("done");
    };
    let refuse = "CREATE TRIGGER refusal BEFORE INSERT ON connector_choices BEGIN SELECT RAISE(ABORT, 'refused'); END";
    let (activate, rollback) = (
        "/connectors/fixed-rows/activate",
        "/connectors/fixed-rows/rollback",
    );
    let first = upload(&platform, guests::FIXED_ROWS, "").await;
    first.expect(201);
    in_store(refuse);
    let none = platform.post(activate, json!({"version": "1.0.0"})).await;
    assert!(none.status.is_server_error(), "{none:?}");
    let listed = versions(&platform, "fixed-rows").await;
    assert!(!listed.contains(&"1.0.0: active".to_owned()), "{listed:?}");
    in_store("DROP TRIGGER refusal");
    let first = platform.post(activate, json!({"version": "1.0.0"})).await;
    first.expect(200);

    let (seller, asset) = labels(&host, "not-taken").await;
    upload(&platform, guests::FIXED_ROWS_NEXT, "")
        .await
        .expect(201);
    in_store(refuse);
    let next = platform.post(activate, json!({"version": "2.0.0"})).await;
    assert!(next.status.is_server_error(), "{next:?}");
    assert_eq!(label(&seller, &asset).await, "row");
    in_store("DROP TRIGGER refusal");
    let next = platform.post(activate, json!({"version": "2.0.0"})).await;
    next.expect(200);
    assert_eq!(label(&seller, &asset).await, "next");

    in_store(refuse);
    let back = platform.post(rollback, json!({})).await;
    assert!(back.status.is_server_error(), "{back:?}");
    assert_eq!(label(&seller, &asset).await, "next");
    in_store("DROP TRIGGER refusal");
    platform.post(rollback, json!({})).await.expect(200);
    assert_eq!(label(&seller, &asset).await, "row");
}

/// Which of the two is not there: the connector or its version.
fn is_told(missing: souk_tests::Answer, words: &str) {
    let missing = missing.expect_error(404, "CONNECTOR_NOT_FOUND");
    let message = missing.text("/error/message");
    assert!(message.starts_with(words), "{message}");
}

/// A version without the engine that a connection names is not put to work in place of one that has it; without such a connection it is.
#[tokio::test]
async fn an_engine_in_use_is_not_dropped() {
    let seller = host().await.company(&unique("drops")).await;
    seller.connector(guests::FIXED_ROWS).await;
    let connection = seller.nowhere("fixed").await;
    let path = seller.path("/connectors");
    let elsewhere = guests::FIXED_ROWS_ELSEWHERE.to_vec();
    let staged = seller.client.post_wasm(&path, elsewhere).await;
    staged.expect(201);
    let activate = format!("{path}/fixed-rows/activate");
    let dropping = json!({"version": "6.0.0"});
    let refused = seller.client.post(&activate, dropping.clone()).await;
    let refused = refused.expect_error(409, "CONNECTOR_UNHEALTHY");
    let message = refused.text("/error/message");
    assert!(
        message.contains("it drops engine \"fixed\", which 1 connections name"),
        "{message}"
    );
    assert_eq!(
        versions(&seller.client, "fixed-rows").await,
        ["1.0.0: active", "6.0.0: rejected"]
    );
    let connection = seller.path(&format!("/connections/{connection}"));
    seller.client.delete(&connection).await.expect(204);
    let done = seller.client.post(&activate, dropping).await.expect(200);
    assert_eq!(done.at("/data/status"), "active");
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

/// What is no connector is refused in plain words, and what ran before goes on.
#[tokio::test]
async fn a_bad_component_is_refused_with_its_reason() {
    let host = own_host().await;
    let platform = host.platform();
    let cases: [(&[u8], &str); 4] = [
        (guests::NOT_A_COMPONENT, "not a WebAssembly component"),
        (guests::CORE_MODULE, "component"),
        (guests::WRONG_WORLD, "another world"),
        (guests::FUTURE_VERSION, "2.0"),
    ];
    for (wasm, word) in cases {
        let refusal = upload(&platform, wasm, "?activate=true")
            .await
            .expect_error(400, "CONNECTOR_INVALID");
        assert!(
            refusal.text("/error/message").contains(word),
            "{word}: {}",
            refusal.body
        );
    }
    let unhealthy = upload(&platform, guests::UNHEALTHY, "?activate=true").await;
    unhealthy.expect_error(409, "CONNECTOR_UNHEALTHY");
    // Kept, but not at work, with its reason.
    assert_eq!(versions(&platform, "unhealthy").await, ["1.0.0: rejected"]);
    let kept = platform.get("/connectors/unhealthy").await.expect(200);
    let error = kept.text("/data/versions/0/error");
    assert!(error.contains("failed its health check"), "{error}");
    assert_eq!(versions(&platform, "postgres").await.len(), 1);

    let text = platform
        .request(reqwest::Method::POST, "/connectors")
        .header("content-type", "text/plain");
    souk_tests::Answer::of(text.body("x"))
        .await
        .expect_error(415, "UNSUPPORTED_MEDIA_TYPE");
    let too_large = vec![0; (64 << 20) + 1];
    upload(&platform, &too_large, "")
        .await
        .expect_error(413, "PAYLOAD_TOO_LARGE");
}

/// A version on which a connection in use would fail is not activated, and says why: the version before goes on
/// answering, also after a restart. The connection decides, since a session with empty settings opens on both.
#[tokio::test]
async fn a_version_that_fails_a_connection_in_use_is_not_activated() {
    let mut host = own_host().await;
    let platform = host.platform();
    for wasm in [guests::FIXED_ROWS, guests::FIXED_ROWS_BROKEN] {
        upload(&platform, wasm, "?activate=true").await.expect(201);
    }
    // Nobody used it yet, so nothing spoke against it.
    assert_eq!(
        versions(&platform, "fixed-rows").await,
        ["1.0.0: retired", "3.0.0: active"]
    );
    platform
        .post("/connectors/fixed-rows/rollback", json!({}))
        .await
        .expect(200);
    let (seller, asset) = labels(&host, "in-use").await;
    assert_eq!(label(&seller, &asset).await, "row");

    let uploaded = upload(&platform, guests::FIXED_ROWS_BROKEN, "?activate=true").await;
    let again = platform
        .post(
            "/connectors/fixed-rows/activate",
            json!({"version": "3.0.0"}),
        )
        .await;
    for refusal in [uploaded, again] {
        let refusal = refusal.expect_error(409, "CONNECTOR_UNHEALTHY");
        let message = refusal.text("/error/message");
        for reason in [
            "connector \"fixed-rows\" 3.0.0",
            "a connection of \"fixed\" that works fails with it",
            "forgot what a base URL is",
        ] {
            assert!(message.contains(reason), "{reason}: {message}");
        }
        assert_eq!(
            versions(&platform, "fixed-rows").await,
            ["1.0.0: active", "3.0.0: retired"]
        );
        assert_eq!(label(&seller, &asset).await, "row");
    }

    host.stop().await;
    host.start_again().await;
    assert_eq!(
        versions(&host.platform(), "fixed-rows").await,
        ["1.0.0: active", "3.0.0: rejected"]
    );
    let seller = Company {
        client: host.client(&seller.key),
        ..seller
    };
    assert_eq!(label(&seller, &asset).await, "row");
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
