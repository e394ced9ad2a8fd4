//! Versions that are not put to work, and what goes on in their place.

use axum::Router;
use axum::routing::get;
use serde_json::json;
use souk_tests::{Company, guests};

use super::{label, labels, own_host, upload, versions};
use crate::{host, unique};

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

/// What another host has deleted a moment ago is not put to work here, though this one has not heard of that: nobody could load it again.
#[tokio::test]
async fn a_version_that_is_gone_is_not_put_to_work() {
    let host = own_host().await;
    let platform = host.platform();
    let first = upload(&platform, guests::FIXED_ROWS, "?activate=true").await;
    first.expect(201);
    upload(&platform, guests::FIXED_ROWS_LATER, "")
        .await
        .expect(201);
    let (seller, asset) = labels(&host, "gone").await;
    let store = rusqlite::Connection::open(host.data_dir.join("souk.db")).expect("the store");
    let gone = store.execute("DELETE FROM connectors WHERE version = '5.0.0'", []);
    assert_eq!(gone.expect("done"), 1);
    let activate = json!({"version": "5.0.0"});
    let refused = platform
        .post("/connectors/fixed-rows/activate", activate)
        .await;
    refused.expect_error(404, "CONNECTOR_NOT_FOUND");
    assert_eq!(label(&seller, &asset).await, "row");
    let seen = versions(&platform, "fixed-rows").await;
    assert!(seen.contains(&"1.0.0: active".to_owned()), "{seen:?}");
}

/// A version that says something else of itself than when it was uploaded is not loaded: its settings' schema was looked at then.
#[tokio::test]
async fn a_version_stays_what_it_said_that_it_is() {
    let host = own_host().await;
    let seller = host.company("fickle").await;
    let path = seller.path("/connectors");
    let wasm = guests::FIXED_ROWS.to_vec();
    seller.client.post_wasm(&path, wasm).await.expect(201);
    let store = rusqlite::Connection::open(host.data_dir.join("souk.db")).expect("the store");
    let said = r#"UPDATE connectors SET described = replace(described, '"fixed"', '"other"')"#;
    assert_eq!(store.execute(said, []).expect("done"), 1);
    drop(store);
    let activate = format!("{path}/fixed-rows/activate");
    let version = json!({"version": "1.0.0"});
    let refused = seller.client.post(&activate, version).await;
    let refused = refused.expect_error(400, "CONNECTOR_INVALID");
    let message = refused.text("/error/message");
    assert!(message.contains("describes itself otherwise"), "{message}");
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

/// The component with each of these words, as its texts have them, replaced by one that is as long.
fn with_words(wasm: &[u8], words: &[(&str, &str)]) -> Vec<u8> {
    let mut wasm = wasm.to_vec();
    for (word, other) in words {
        assert_eq!(word.len(), other.len());
        let places = wasm.windows(word.len()).enumerate();
        let places = places.filter(|(_, found)| *found == word.as_bytes());
        let places: Vec<usize> = places.map(|(at, _)| at).collect();
        assert!(!places.is_empty(), "{word}");
        for at in places {
            wasm[at..at + word.len()].copy_from_slice(other.as_bytes());
        }
    }
    wasm
}

/// A version that asks for a setting which connections in use do not have is not put to work in place of one that they work with. Where nothing is at
/// work it is, so that they can be changed.
#[tokio::test]
async fn a_version_that_asks_for_other_settings_is_not_activated() {
    let board = Router::new().route("/", get(|| async { "a board" }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move { axum::serve(listener, board).await });
    let seller = host().await.company(&unique("renames")).await;
    seller.connector(guests::HELLO).await;
    let connection = json!({"credential_type": "NONE", "credentials": r#"{"league":"north"}"#, "base_url": format!("http://{address}")});
    let connection = seller.connection("hello", connection).await;
    let test = seller.path(&format!("/connections/{connection}/test"));
    let tested = seller.client.post(&test, json!({})).await.expect(200);
    assert_eq!(tested.at("/data/success"), true, "{}", tested.body);

    let version = env!("CARGO_PKG_VERSION");
    let next = format!("{}9", &version[..version.len() - 1]);
    let renamed = with_words(
        guests::HELLO,
        &[("league", "region"), (version, next.as_str())],
    );
    let path = seller.path("/connectors?activate=true");
    let refused = seller.client.post_wasm(&path, renamed).await;
    let refused = refused.expect_error(409, "CONNECTOR_UNHEALTHY");
    let message = refused.text("/error/message");
    assert!(
        message.contains("a connection of \"hello\" that works fails with it")
            && message.contains("settings do not fit"),
        "{message}"
    );
    let [at_work, kept] = [format!("{version}: active"), format!("{next}: rejected")];
    assert_eq!(versions(&seller.client, "hello").await, [at_work, kept]);
    let tested = seller.client.post(&test, json!({})).await.expect(200);
    assert_eq!(tested.at("/data/success"), true, "{}", tested.body);

    let off = seller.path("/connectors/hello/deactivate");
    seller.client.post(&off, json!({})).await.expect(200);
    let activate = seller.path("/connectors/hello/activate");
    let done = seller
        .client
        .post(&activate, json!({"version": next}))
        .await;
    assert_eq!(done.expect(200).at("/data/status"), "active");
    let changed = json!({"credentials": r#"{"region":"north"}"#});
    let connection = seller.path(&format!("/connections/{connection}"));
    seller.client.patch(&connection, changed).await.expect(200);
}
