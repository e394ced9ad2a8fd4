//! Changes of a connection: which of them are tested, which need its credentials again, and what they leave of before.

use std::time::Duration;

use serde_json::json;
use souk_tests::talking_server::TalkingServer;
use souk_tests::{PgCluster, TestHost, guests};

use crate::{host, league, unique};

/// A change that sessions depend on is tested at once; another label is not.
#[tokio::test]
async fn a_change_is_tested_where_it_matters() {
    let league = league().await;
    let (client, path) = (
        &league.seller.client,
        league
            .seller
            .path(&format!("/connections/{}", league.connection)),
    );
    let named = client
        .patch(
            &path,
            json!({"name": "another name", "verified_usage_ability": true}),
        )
        .await
        .expect(200);
    assert_eq!(
        (named.at("/data/status"), named.at("/data/name")),
        (&json!("unverified"), &json!("another name"))
    );
    let broken = client
        .patch(&path, json!({"database": "no_such_database"}))
        .await
        .expect(200);
    assert_eq!(broken.at("/data/status"), "failed");
    assert!(
        broken.text("/data/last_error").contains("no_such_database"),
        "{}",
        broken.body
    );
    let mended = client
        .patch(&path, json!({"database": league.database}))
        .await
        .expect(200);
    assert_eq!(
        (mended.at("/data/status"), mended.at("/data/last_error")),
        (&json!("active"), &json!(null))
    );
    // New credentials without the rest; the address stays.
    let cluster = PgCluster::shared().await;
    let credentials = json!({"username": cluster.user, "password": "wrong"}).to_string();
    let locked = client
        .patch(&path, json!({"credentials": credentials}))
        .await
        .expect(200);
    assert_eq!(locked.at("/data/status"), "failed");
    client
        .patch(&path, json!({"engine_id": 4}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    client
        .patch(&path, json!({"host": "169.254.169.254"}))
        .await
        .expect_error(400, "UNSAFE_URL");
    client
        .patch(&path, json!({"host": null}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    client
        .patch(&path, json!({"company_id": "cmp_other"}))
        .await
        .expect_error(400, "PATH_BODY_MISMATCH");
}

/// Stored credentials go to the server that they were given for and to no other: another address needs them again.
#[tokio::test]
async fn stored_credentials_stay_with_their_server() {
    let seller = host().await.company(&unique("moving")).await;
    let password = json!({"username": "u", "password": "p"}).to_string();
    let database = seller
        .connection(
            "postgres",
            json!({"credential_type": "PASSWORD", "credentials": password, "host": "127.0.0.1", "port": 1, "database": "d"}),
        )
        .await;
    let api = seller.seller_api("http://127.0.0.1:1/v1", "secret").await;
    // Somebody else's server: whatever is sent there is learned there.
    let spy = souk_tests::Receiver::start().await;
    let (spied, port) = (format!("http://{}/v1", spy.address), spy.address.port());
    let key = json!({"api_key": "secret"}).to_string();
    for (id, change, credentials) in [
        (&database, json!({"host": "localhost"}), &password),
        (&database, json!({"port": port}), &password),
        (&api, json!({"base_url": spied}), &key),
        (&api, json!({"base_url": "http://127.0.0.1:1/v2"}), &key),
    ] {
        let path = seller.path(&format!("/connections/{id}"));
        let heard = spy.received().len();
        let refusal = seller.client.patch(&path, change.clone()).await;
        let refusal = refusal.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(
            refusal.at("/error/details/errors/0/field"),
            "credentials",
            "{}",
            refusal.body
        );
        let unchanged = seller.client.get(&path).await.expect(200);
        for (member, value) in change.as_object().expect("an object") {
            assert_ne!(&unchanged.body["data"][member], value);
        }
        assert_eq!(spy.received().len(), heard, "{:?}", spy.received());
        // Whoever knows them may say where they go. The same address, and all that is no address, needs nothing.
        let mut whole = change;
        whole["credentials"] = json!(credentials);
        seller.client.patch(&path, whole.clone()).await.expect(200);
        whole
            .as_object_mut()
            .expect("an object")
            .remove("credentials");
        whole["statement_timeout_ms"] = json!(5_000);
        seller.client.patch(&path, whole).await.expect(200);
    }
}

/// Where there are no credentials there is nothing to give again.
#[tokio::test]
async fn a_connection_without_credentials_moves_freely() {
    let seller = host().await.company(&unique("mover")).await;
    seller.connector(souk_tests::guests::SILENT).await;
    let id = seller.nowhere("silent").await;
    let path = seller.path(&format!("/connections/{id}"));
    let elsewhere = json!({"base_url": "http://127.0.0.1:2"});
    let moved = seller.client.patch(&path, elsewhere).await.expect(200);
    assert_eq!(moved.at("/data/base_url"), "http://127.0.0.1:2");
}

/// A change that has begun is made although its client hangs up, and then no session is left that was opened before it.
#[tokio::test]
async fn a_change_whose_client_hangs_up_leaves_no_session_of_before() {
    // Its store is held for a moment, which others would wait for.
    let host = TestHost::builder().start().await;
    let seller = host.company("leaving").await;
    let server = TalkingServer::start().await;
    seller.connector(guests::TALKER).await;
    let fields = json!({"credential_type": "NONE", "credentials": "{}", "host": "127.0.0.1", "port": server.address.port(),
        "ssl_mode": "disable"});
    let connection = seller.connection("talker", fields).await;
    let asset = json!({"result_type": "string", "timeout_ms": 4000, "sql_logic": "SELECT answer FROM t WHERE wish = :wish",
        "parameters": [{"name": "wish", "type": "string", "default": "fine"}]});
    let asset = seller.asset(&connection, asset).await;
    let fine = json!({"wish": "fine"});
    seller.execute(&asset, fine).await.expect(200);
    server.wait(|seen| seen.open > 0).await;

    let store = rusqlite::Connection::open(host.data_dir.join("souk.db")).expect("the store");
    let path = seller.path(&format!("/connections/{connection}"));
    // On a loaded machine it may take longer to begin.
    let mut left = None;
    for seconds in [1, 2, 4] {
        store.execute_batch("BEGIN IMMEDIATE").expect("the writer");
        let change = seller
            .client
            .patch(&path, json!({"statement_timeout_ms": 7000}));
        let answered = tokio::time::timeout(Duration::from_secs(seconds), change).await;
        assert!(answered.is_err(), "nobody may write: {answered:?}");
        store.execute_batch("ROLLBACK").expect("rolled back");
        let limit = Duration::from_secs(30);
        left = server.wait_for(limit, |seen| seen.open == 0).await;
        if left.is_some() {
            break;
        }
    }

    assert!(left.is_some(), "{:?}", server.seen());
    let read = seller.client.get(&path).await.expect(200);
    assert_eq!(read.at("/data/statement_timeout_ms"), 7000);
}
