//! Connectors of the platform and of companies: who sees them, who may change them, and whose an engine is.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::{Client, Company, PgCluster, TestHost, guests};

use super::{FOLLOWED_WITHIN, label, labels, own_host, upload, versions};
use crate::{host, unique};

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
    // Staff sees it, and none of its own calls reaches it.
    let reached = async |client: &Client| {
        let seen = client.get("/connectors/traps").await.expect(200);
        seen.at("/data/active_version").clone()
    };
    assert_eq!(reached(&owner.client).await, "1.0.0");
    assert_eq!(reached(&host.platform()).await, json!(null));
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
    let start = || {
        TestHost::builder()
            .arg("--database-url", &url)
            .env("SOUK_MASTER_KEY", crate::hosts::MASTER_KEY)
            .start()
    };
    let first = start().await;
    let second = start().await;
    let platform = first.platform();
    let elsewhere = second.client(first.ready["platform"]["api_key"].as_str().expect("a key"));
    upload(&platform, guests::FIXED_ROWS, "?activate=true")
        .await
        .expect(201);
    for wanted in ["1.0.0: active", "2.0.0: active"] {
        let mut seen = Vec::new();
        let since = Instant::now();
        while since.elapsed() < FOLLOWED_WITHIN {
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

/// An engine that the platform serves is no company's to serve: a connector that claims it would be handed what was saved for the
/// platform's, passwords included.
#[tokio::test]
async fn a_company_cannot_claim_an_engine_of_the_platform() {
    let host = own_host().await;
    upload(&host.platform(), guests::FIXED_ROWS, "?activate=true")
        .await
        .expect(201);
    let (seller, asset) = labels(&host, "claimant").await;
    assert_eq!(label(&seller, &asset).await, "row");
    for query in ["", "?activate=true"] {
        let path = seller.path(&format!("/connectors{query}"));
        let claim = seller
            .client
            .post_wasm(&path, guests::FIXED_ROWS_NEXT.to_vec())
            .await;
        let claim = claim.expect_error(409, "ENGINE_RESERVED");
        assert_eq!(claim.at("/error/details/engine"), "fixed");
        let message = claim.text("/error/message");
        assert!(message.contains("acme-fixed"), "{message}");
    }
    // Nothing of it was kept.
    assert_eq!(
        versions(&seller.client, "fixed-rows").await,
        ["1.0.0: active"]
    );
    assert_eq!(label(&seller, &asset).await, "row");
}

/// An engine that the platform brings under a slug which a company has: what was saved for one of them is never handed to the other, now
/// and after a restart; the company goes on under the platform's by saving another connection.
#[tokio::test]
async fn connections_never_change_engines() {
    let mut host = own_host().await;
    let seller = host.company("first").await;
    seller.connector(guests::FIXED_ROWS).await;
    let connection = seller.nowhere("fixed").await;
    let sql = json!({"result_type": "string", "sql_logic": "SELECT label FROM fixed LIMIT 1"});
    let own = seller.asset(&connection, sql.clone()).await;
    assert_eq!(label(&seller, &own).await, "row");

    upload(&host.platform(), guests::FIXED_ROWS_NEXT, "?activate=true")
        .await
        .expect(201);
    let refused = seller.execute(&own, json!({})).await;
    refused.expect_error(503, "CONNECTOR_UNAVAILABLE");
    let engines = seller.client.get("/storage-engines").await.expect(200);
    let usable: Vec<(bool, bool)> = engines
        .at("/data")
        .as_array()
        .into_iter()
        .flatten()
        .filter(|engine| engine["slug"] == "fixed")
        .map(|engine| (engine["usable"] == true, engine["id"].as_i64() > Some(1000)))
        .collect();
    assert_eq!(usable, [(false, false), (true, true)], "{}", engines.body);

    host.stop().await;
    host.start_again().await;
    let seller = Company {
        client: host.client(&seller.key),
        ..seller
    };
    let refused = seller.execute(&own, json!({})).await;
    refused.expect_error(503, "CONNECTOR_UNAVAILABLE");
    let ids = seller.client.get("/storage-engines").await.expect(200);
    let id = ids
        .at("/data")
        .as_array()
        .into_iter()
        .flatten()
        .filter(|engine| engine["usable"] == true)
        .find(|engine| engine["slug"] == "fixed")
        .map(|engine| engine["id"].clone());
    let body = json!({"engine_id": id, "name": "anew", "credential_type": "NONE", "credentials": "{}", "base_url": "http://127.0.0.1:1"});
    let anew = seller
        .client
        .post(&seller.path("/connections"), body)
        .await
        .expect(201)
        .text("/data/id");
    let other = seller.asset(&anew, sql).await;
    assert_eq!(label(&seller, &other).await, "next");
}

/// What was compiled here before is loaded by its digest: a start reads none of its bytes in the store, which may be many and far away.
#[tokio::test]
async fn a_start_reads_no_component_that_was_compiled() {
    let mut host = own_host().await;
    let seller = host.company("seller").await;
    seller.connector(guests::FIXED_ROWS).await;
    let connection = seller.nowhere("fixed").await;
    let sql = json!({"result_type": "string", "sql_logic": "SELECT label FROM fixed LIMIT 1"});
    let asset = seller.asset(&connection, sql).await;

    host.stop().await;
    let store = rusqlite::Connection::open(host.data_dir.join("souk.db")).expect("the store");
    let gone = store.execute("DELETE FROM connector_chunks", []);
    assert_eq!(gone.expect("a store"), 1);
    drop(store);
    host.start_again().await;
    let seller = Company {
        client: host.client(&seller.key),
        ..seller
    };
    assert_eq!(label(&seller, &asset).await, "row");
}

/// Of a company's connectors a start loads the versions at work and no other; the others are listed as they were, and loaded when they are
/// asked for.
#[tokio::test]
async fn a_start_loads_what_is_at_work() {
    let mut host = own_host().await;
    let seller = host.company("hoarder").await;
    seller.connector(guests::FIXED_ROWS).await;
    let staged = [guests::FIXED_ROWS_NEXT, guests::FIXED_ROWS_BROKEN];
    for wasm in staged {
        let path = seller.path("/connectors");
        let uploaded = seller.client.post_wasm(&path, wasm.to_vec()).await;
        assert_eq!(uploaded.expect(201).at("/data/status"), "staged");
    }
    let all = ["1.0.0: active", "2.0.0: staged", "3.0.0: staged"];
    assert_eq!(versions(&seller.client, "fixed-rows").await, all);
    let connection = seller.nowhere("fixed").await;
    let sql = json!({"result_type": "string", "sql_logic": "SELECT label FROM fixed LIMIT 1"});
    let asset = seller.asset(&connection, sql).await;

    host.stop().await;
    let before = host.log().len();
    host.start_again().await;
    let seller = Company {
        client: host.client(&seller.key),
        ..seller
    };
    let log = host.log();
    let loaded: Vec<&str> = log[before..]
        .lines()
        .filter(|line| line.contains("stored connector loaded"))
        .collect();
    assert_eq!(loaded.len(), 1, "{loaded:#?}");
    assert_eq!(versions(&seller.client, "fixed-rows").await, all);
    let listed = seller
        .client
        .get("/connectors/fixed-rows")
        .await
        .expect(200);
    let (active, other) = (listed.at("/data/versions/0"), listed.at("/data/versions/1"));
    for member in [
        "engines",
        "engine_ids",
        "needs",
        "exports",
        "settings_schema",
        "wit_version",
    ] {
        assert_eq!(active[member], other[member], "{member}");
    }
    assert_eq!(label(&seller, &asset).await, "row");

    let path = seller.path("/connectors/fixed-rows");
    let next = json!({"version": "2.0.0"});
    let next = seller.client.post(&format!("{path}/activate"), next).await;
    assert_eq!(next.expect(200).at("/data/status"), "active");
    assert_eq!(label(&seller, &asset).await, "next");
    host.stop().await;
    host.start_again().await;
    let seller = Company {
        client: host.client(&seller.key),
        ..seller
    };
    // The version before is in the store only.
    let back = seller
        .client
        .post(&format!("{path}/rollback"), json!({}))
        .await;
    assert_eq!(back.expect(200).at("/data/version"), "1.0.0");
    assert_eq!(label(&seller, &asset).await, "row");
    for version in ["2.0.0", "3.0.0"] {
        let version = format!("{path}/versions/{version}");
        seller.client.delete(&version).await.expect(204);
    }
    assert_eq!(
        versions(&seller.client, "fixed-rows").await,
        ["1.0.0: active"]
    );
}
