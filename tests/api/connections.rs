//! Connections to real databases: what a test says, what a schema shows, what is never shown.

mod beginners;
mod changes;
mod strangers;

use serde_json::{Value, json};
use souk_tests::{PgCluster, Receiver};

use crate::{LEAGUE, host, league, unique};

/// A working connection says so, with the server's version and that writes are refused.
#[tokio::test]
async fn a_working_connection_is_verified() {
    let league = league().await;
    let test = league
        .seller
        .client
        .post(
            &league
                .seller
                .path(&format!("/connections/{}/test", league.connection)),
            json!({}),
        )
        .await
        .expect(200);
    assert_eq!(test.at("/data/success"), true, "{}", test.body);
    assert_eq!(test.at("/data/read_only_verified"), true, "{}", test.body);
    assert!(
        test.text("/data/server_version").starts_with("1"),
        "{}",
        test.body
    );
    let read = league
        .seller
        .client
        .get(
            &league
                .seller
                .path(&format!("/connections/{}", league.connection)),
        )
        .await
        .expect(200);
    assert_eq!(read.at("/data/status"), "active");
    assert_eq!(read.at("/data/has_credentials"), true);
    assert!(
        !read.body.to_string().contains("battery staple"),
        "credentials are never shown"
    );
}

/// What is wrong is named: the password, the address, the database.
#[tokio::test]
async fn a_bad_connection_says_what_is_wrong() {
    let cluster = PgCluster::shared().await;
    let database = cluster.database(LEAGUE).await;
    let seller = host().await.company(&unique("wrong")).await;
    let good = json!({"credential_type": "PASSWORD", "host": "127.0.0.1", "port": cluster.port, "database": database, "ssl_mode": "disable",
        "credentials": json!({"username": cluster.user, "password": cluster.password}).to_string()});
    let closed = souk_tests::process::free_port();
    let cases = [
        (
            json!({"credentials": json!({"username": cluster.user, "password": "wrong"}).to_string()}),
            "password",
        ),
        (json!({"port": closed}), "refused"),
        (json!({"database": "no_such_database"}), "database"),
    ];
    for (change, word) in cases {
        let mut fields = good.clone();
        fields
            .as_object_mut()
            .expect("an object")
            .extend(change.as_object().expect("an object").clone());
        let id = seller.connection("postgres", fields).await;
        let test = seller
            .client
            .post(&seller.path(&format!("/connections/{id}/test")), json!({}))
            .await
            .expect(200);
        assert_eq!(test.at("/data/success"), false, "{word}: {}", test.body);
        let error = test.at("/data/error").to_string().to_lowercase();
        assert!(error.contains(word), "{word}: {error}");
        let read = seller
            .client
            .get(&seller.path(&format!("/connections/{id}")))
            .await
            .expect(200);
        assert_eq!(read.at("/data/status"), "failed");
    }
}

/// The catalog, with types, nullability and the primary key.
#[tokio::test]
async fn a_schema_shows_tables_and_fields() {
    let league = league().await;
    let path = league
        .seller
        .path(&format!("/connections/{}/schema", league.connection));
    let schema = league
        .seller
        .client
        .get(&format!("{path}?schemas=public"))
        .await
        .expect(200);
    let table = schema.at("/data/schemas/0/tables/0");
    assert_eq!(table["name"], "matches");
    let fields = table["fields"].as_array().expect("fields");
    let id = fields
        .iter()
        .find(|field| field["name"] == "id")
        .expect("id");
    assert_eq!(
        (&id["primary_key"], &id["nullable"]),
        (&json!(true), &json!(false))
    );
    let secret = fields
        .iter()
        .find(|field| field["name"] == "secret")
        .expect("secret");
    assert_eq!(
        (&secret["primary_key"], &secret["nullable"]),
        (&json!(false), &json!(true))
    );
}

/// TLS: encrypted without a check, checked against the right authority, refused against another; and only `verify-full` minds that the
/// server's certificate is for another name.
#[tokio::test]
async fn tls_modes_hold_what_they_promise() {
    let cluster = PgCluster::shared().await;
    let database = cluster.database(LEAGUE).await;
    let elsewhere = PgCluster::start_named(&["db.example.com"], &[]).await;
    let other_database = elsewhere.database(LEAGUE).await;
    let seller = host().await.company(&unique("tls")).await;
    let stranger = souk_tests::tls::TestCa::new("somebody else").pem();
    let named = (cluster, &database, &cluster.ca_pem);
    let misnamed = (&elsewhere, &other_database, &elsewhere.ca_pem);
    let cases = [
        (named, "require", None, true),
        (named, "verify-ca", Some(named.2), true),
        (named, "verify-full", Some(named.2), true),
        (named, "verify-ca", Some(&stranger), false),
        (named, "verify-full", Some(&stranger), false),
        (named, "verify-full", None, false),
        (misnamed, "require", None, true),
        (misnamed, "verify-ca", Some(misnamed.2), true),
        (misnamed, "verify-full", Some(misnamed.2), false),
    ];
    for ((cluster, database, _), mode, ca, works) in cases {
        let mut fields = json!({"credential_type": "PASSWORD", "host": "127.0.0.1", "port": cluster.port, "database": database, "ssl_mode": mode,
            "credentials": json!({"username": cluster.user, "password": cluster.password}).to_string()});
        if let Some(ca) = &ca {
            fields["ca_pem"] = json!(ca);
        }
        let id = seller.connection("postgres", fields).await;
        let test = seller
            .client
            .post(&seller.path(&format!("/connections/{id}/test")), json!({}))
            .await
            .expect(200);
        assert_eq!(
            test.at("/data/success"),
            works,
            "{mode}, own authority: {}: {}",
            ca.is_some(),
            test.body
        );
        if !works {
            assert!(
                test.at("/data/error")
                    .to_string()
                    .to_lowercase()
                    .contains("certificate"),
                "{}",
                test.body
            );
        }
    }
}

/// An address that the operator did not allow is refused when it is saved.
#[tokio::test]
async fn a_refused_address_is_unsafe_url() {
    let seller = host().await.company(&unique("egress")).await;
    let engine = souk_tests::world::engine_id(&seller.client, "postgres").await;
    for address in [
        "169.254.169.254",
        "10.0.0.1",
        "::ffff:10.0.0.1",
        "[::1]",
        "0.0.0.0",
        "100.64.0.1",
    ] {
        let body = json!({"engine_id": engine, "name": "inside", "credential_type": "PASSWORD", "host": address, "port": 5432, "database": "d",
            "credentials": json!({"username": "u", "password": "p"}).to_string()});
        let refusal = seller.client.post(&seller.path("/connections"), body).await;
        assert_eq!(
            (refusal.status.as_u16(), refusal.at("/error/code")),
            (400, &json!("UNSAFE_URL")),
            "{address}: {}",
            refusal.body
        );
    }
}

/// A credential type that the engine does not list is refused.
#[tokio::test]
async fn a_foreign_credential_type_is_refused() {
    let seller = host().await.company(&unique("credentials")).await;
    let engine = souk_tests::world::engine_id(&seller.client, "postgres").await;
    let body = json!({"engine_id": engine, "name": "x", "credential_type": "API_KEY", "credentials": "{}", "host": "127.0.0.1", "port": 1, "database": "d"});
    seller
        .client
        .post(&seller.path("/connections"), body)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    let body =
        json!({"engine_id": 9999, "name": "x", "credential_type": "PASSWORD", "credentials": "{}"});
    seller
        .client
        .post(&seller.path("/connections"), body)
        .await
        .expect_error(400, "VALIDATION_ERROR");
}

/// Host, port and database may come in the credentials' JSON, as the original service had it.
#[tokio::test]
async fn the_address_may_come_in_the_credentials() {
    let cluster = PgCluster::shared().await;
    let database = cluster.database(LEAGUE).await;
    let seller = host().await.company(&unique("injson")).await;
    let credentials = json!({"user": cluster.user, "password": cluster.password, "host": "127.0.0.1", "port": cluster.port,
        "database": database, "ssl_mode": "disable"});
    let id = seller
        .connection(
            "postgres",
            json!({"credential_type": "PASSWORD", "credentials": credentials.to_string()}),
        )
        .await;
    let path = seller.path(&format!("/connections/{id}"));
    let test = seller
        .client
        .post(&format!("{path}/test"), json!({}))
        .await
        .expect(200);
    assert_eq!(test.at("/data/success"), true, "{}", test.body);
    assert_eq!(
        seller.client.get(&path).await.expect(200).at("/data/port"),
        cluster.port
    );
}

/// Every broken member is named in one answer, and nothing of the credentials is repeated.
#[tokio::test]
async fn all_faults_are_named_at_once() {
    let seller = host().await.company(&unique("faulty")).await;
    let engine = souk_tests::world::engine_id(&seller.client, "postgres").await;
    let body = json!({"engine_id": engine, "name": "", "credential_type": "PASSWORD", "credentials": r#"{"username": "hunter2"}"#,
        "host": "postgres://x", "port": 70000, "ssl_mode": "prefer", "statement_timeout_ms": 60001, "ca_pem": "x"});
    let refusal = seller
        .client
        .post(&seller.path("/connections"), body)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    let fields = refusal.fields();
    assert_eq!(
        fields,
        [
            "name",
            "credentials",
            "statement_timeout_ms",
            "host",
            "port",
            "database",
            "ssl_mode",
            "ca_pem"
        ]
    );
    assert!(
        !refusal.body.to_string().contains("hunter2"),
        "{}",
        refusal.body
    );
    let text = json!({"engine_id": engine, "name": "x", "credential_type": "PASSWORD", "credentials": "hunter2 is no JSON"});
    let refusal = seller
        .client
        .post(&seller.path("/connections"), text)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert!(
        !refusal.body.to_string().contains("hunter2"),
        "{}",
        refusal.body
    );
}

/// A connection can be tried before it is saved, and is not saved by that.
#[tokio::test]
async fn an_unsaved_connection_can_be_tried() {
    let cluster = PgCluster::shared().await;
    let database = cluster.database(LEAGUE).await;
    let seller = host().await.company(&unique("unsaved")).await;
    let engine = souk_tests::world::engine_id(&seller.client, "postgres").await;
    let mut body = json!({"engine_id": engine, "name": "x", "credential_type": "PASSWORD", "host": "127.0.0.1", "port": cluster.port,
        "database": database, "ssl_mode": "disable", "credentials": json!({"username": cluster.user, "password": cluster.password}).to_string()});
    let path = seller.path("/connections/test");
    let good = seller.client.post(&path, body.clone()).await.expect(200);
    assert_eq!(
        (good.at("/data/success"), good.at("/data/error")),
        (&json!(true), &json!(null)),
        "{}",
        good.body
    );
    body["host"] = json!("no-such-host.invalid");
    let bad = seller.client.post(&path, body).await.expect(200);
    assert_eq!(bad.at("/data/success"), false);
    assert!(
        bad.text("/data/error").contains("no-such-host.invalid"),
        "{}",
        bad.body
    );
    assert_eq!(
        seller
            .client
            .get(&seller.path("/connections"))
            .await
            .expect(200)
            .at("/meta/total"),
        0
    );
}

/// Lists are filtered; a connection that a product runs on stays, and a deleted one is gone.
#[tokio::test]
async fn a_connection_goes_when_nothing_runs_on_it() {
    let league = league().await;
    let (client, seller) = (&league.seller.client, &league.seller);
    let path = seller.path(&format!("/connections/{}", league.connection));
    let asset = seller
        .asset(
            &league.connection,
            json!({"sql_logic": "SELECT count(*) FROM matches"}),
        )
        .await;
    assert_eq!(
        client
            .get(&seller.path("/connections?status=unverified&engine_id=1"))
            .await
            .expect(200)
            .at("/meta/total"),
        1
    );
    assert_eq!(
        client
            .get(&seller.path("/connections?status=failed"))
            .await
            .expect(200)
            .at("/meta/total"),
        0
    );
    let refusal = client
        .delete(&path)
        .await
        .expect_error(409, "RESOURCE_IN_USE");
    assert_eq!(refusal.at("/error/details/assets"), 1);
    // A refused deletion has changed nothing.
    seller.execute(&asset, json!({})).await.expect(200);
    let idle = seller
        .postgres(PgCluster::shared().await, &league.database)
        .await;
    let path = seller.path(&format!("/connections/{idle}"));
    client.delete(&path).await.expect(204);
    client
        .get(&path)
        .await
        .expect_error(404, "CONNECTION_NOT_FOUND");
    client
        .post(&format!("{path}/test"), json!({}))
        .await
        .expect_error(404, "CONNECTION_NOT_FOUND");
    client
        .delete(&path)
        .await
        .expect_error(404, "CONNECTION_NOT_FOUND");
}

/// Two routings are the seller API's: another engine with functions is not asked for them.
#[tokio::test]
async fn routings_are_compared_of_seller_apis_alone() {
    let seller = host().await.company(&unique("routed")).await;
    seller
        .connector(souk_tests::guests::FIXED_ROWS_ELSEWHERE)
        .await;
    let id = seller.nowhere("fixed-elsewhere").await;
    let path = seller.path(&format!("/connections/{id}/test"));
    let tested = seller.client.post(&path, json!({})).await.expect(200);
    assert_eq!(tested.at("/data/success"), true, "{}", tested.body);
    let warnings = tested.at("/data/warnings").to_string();
    assert!(!warnings.contains("routings"), "{warnings}");
}

/// What a schema says is a header (`x-souk-header`) goes to the source as that header, once and with its prefix, and the connector is not told;
/// nothing goes out beside it that nobody asked for.
#[tokio::test]
async fn a_secret_that_is_a_header_reaches_its_source() {
    let seller = host().await.company(&unique("bearer")).await;
    let source = Receiver::start().await;
    let base_url = format!("http://{}", source.address);
    let of = |kind: &str, credentials: Value| {
        json!({"credential_type": kind, "credentials": credentials.to_string(), "base_url": base_url,
            "database": "default"})
    };
    let password = json!({"username": "reader", "password": "a.b.c"});
    for (fields, asked) in [
        (
            of("API_KEY", json!({"api_key": "a.b.c"})),
            ("authorization", "Bearer a.b.c"),
        ),
        (of("PASSWORD", password), ("x-clickhouse-key", "a.b.c")),
    ] {
        let before = source.received().len();
        let id = seller.connection("clickhouse", fields).await;
        let path = seller.path(&format!("/connections/{id}/test"));
        // It is no ClickHouse, and was asked.
        seller.client.post(&path, json!({})).await.expect(200);
        for received in &source.wait_for(before + 1).await[before..] {
            for header in ["authorization", "x-clickhouse-key", "x-api-key", "cookie"] {
                let sent: Vec<&str> = match header == asked.0 {
                    true => vec![asked.1],
                    false => vec![],
                };
                assert_eq!(received.header(header), sent, "{header}: {received:?}");
            }
            assert!(!received.text.contains("a.b.c"), "{received:?}");
            assert!(!received.path.contains("a.b.c"), "{received:?}");
        }
    }
}
