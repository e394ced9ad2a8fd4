//! Connections to real databases: what a test says, what a schema shows, what is never shown.

use serde_json::json;
use souk_tests::PgCluster;

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

/// TLS: encrypted without a check, checked against the right authority, refused against another.
#[tokio::test]
async fn tls_modes_hold_what_they_promise() {
    let cluster = PgCluster::shared().await;
    let database = cluster.database(LEAGUE).await;
    let seller = host().await.company(&unique("tls")).await;
    let stranger = souk_tests::tls::TestCa::new("somebody else").pem();
    let cases = [
        ("require", None, true),
        ("verify-ca", Some(cluster.ca_pem.clone()), true),
        ("verify-full", Some(cluster.ca_pem.clone()), true),
        ("verify-ca", Some(stranger.clone()), false),
        ("verify-full", Some(stranger), false),
        ("verify-full", None, false),
    ];
    for (mode, ca, works) in cases {
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
