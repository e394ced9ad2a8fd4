//! Connectors as an operator and a seller handle them: uploaded, activated, rolled back, deleted; and
//! still there after a restart and on every host of a store.

use std::time::Duration;

use serde_json::{Value, json};
use souk_tests::{Client, Company, PgCluster, TestHost, guests};

use crate::{host, unique};

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
    platform
        .delete(&format!("{path}/versions/2.0.0"))
        .await
        .expect_error(404, "CONNECTOR_NOT_FOUND");
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

/// What is no connector is refused in plain words, and what ran before goes on.
#[tokio::test]
async fn a_bad_component_is_refused_with_its_reason() {
    let host = own_host().await;
    let platform = host.platform();
    let cases: [(&[u8], &str); 5] = [
        (guests::NOT_A_COMPONENT, "not a WebAssembly component"),
        (guests::CORE_MODULE, "component"),
        (guests::WRONG_WORLD, "another world"),
        (guests::IMPORTS_SOCKETS, "wasi:sockets"),
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
    // Kept, but not at work.
    assert_eq!(versions(&platform, "unhealthy").await, ["1.0.0: staged"]);
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
        ["1.0.0: active", "3.0.0: staged"]
    );
    let seller = Company {
        client: host.client(&seller.key),
        ..seller
    };
    assert_eq!(label(&seller, &asset).await, "row");
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

/// A company's own connector is seen and used by that company alone, and its engine gets an id of its own.
#[tokio::test]
async fn a_private_connector_is_private() {
    let host = host().await;
    let (owner, other) = (
        host.company(&unique("owner")).await,
        host.company(&unique("other")).await,
    );
    let path = owner.path("/connectors?activate=true");
    let made = owner
        .client
        .post_wasm(&path, guests::TRAPS.to_vec())
        .await
        .expect(201);
    assert_eq!(
        (made.at("/data/scope"), made.at("/data/company_id")),
        (&json!("company"), &json!(owner.id))
    );
    let engine = |answer: &souk_tests::Answer| {
        let engines = answer.at("/data").as_array().cloned().unwrap_or_default();
        engines.into_iter().find(|engine| engine["slug"] == "traps")
    };
    let listed =
        engine(&owner.client.get("/storage-engines").await.expect(200)).expect("the engine");
    assert_eq!(listed["usable"], true);
    assert!(listed["id"].as_i64().expect("an id") >= 1000);
    assert!(engine(&other.client.get("/storage-engines").await.expect(200)).is_none());
    other
        .client
        .get("/connectors/traps")
        .await
        .expect_error(404, "CONNECTOR_NOT_FOUND");
    let body = json!({"engine_id": listed["id"], "name": "x", "credential_type": "NONE", "credentials": "{}", "base_url": "http://127.0.0.1:1"});
    other
        .client
        .post(&other.path("/connections"), body.clone())
        .await
        .expect_error(400, "VALIDATION_ERROR");
    owner
        .client
        .post(&owner.path("/connections"), body)
        .await
        .expect(201);
    owner
        .client
        .delete(&owner.path("/connectors/traps/versions/1.0.0"))
        .await
        .expect_error(409, "CONFLICT");
}

/// Only platform staff change what all companies run on.
#[tokio::test]
async fn a_company_cannot_change_the_platforms_connectors() {
    let admin = host().await.company(&unique("admin")).await.client;
    upload(&admin, guests::FIXED_ROWS, "")
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    admin
        .post("/connectors/postgres/activate", json!({"version": "0.0.1"}))
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    admin
        .post("/connectors/postgres/rollback", json!({}))
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    admin
        .delete("/connectors/postgres/versions/0.0.1")
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
}

/// Hosts that share a store run the same versions: what one is given, the other loads.
#[tokio::test]
async fn hosts_of_one_store_share_connectors() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("").await);
    let start = || TestHost::builder().arg("--database-url", &url).start();
    let first = start().await;
    let second = start().await;
    let platform = first.platform();
    let elsewhere = second.client(first.ready["platform"]["api_key"].as_str().expect("a key"));
    upload(&platform, guests::FIXED_ROWS, "?activate=true")
        .await
        .expect(201);
    for wanted in ["1.0.0: active", "2.0.0: active"] {
        let mut seen = Vec::new();
        for _ in 0..100 {
            let answer = elsewhere.get("/connectors/fixed-rows").await;
            if answer.status == 200 {
                seen = versions(&elsewhere, "fixed-rows").await;
            }
            if seen.iter().any(|version| version == wanted) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(
            seen.iter().any(|version| version == wanted),
            "{wanted}: {seen:?}\n{}",
            second.log()
        );
        upload(&platform, guests::FIXED_ROWS_NEXT, "?activate=true")
            .await
            .expect(201);
    }
}
