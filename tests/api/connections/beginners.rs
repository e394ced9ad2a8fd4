//! What goes wrong when a source is connected for the first time, and what its seller is told to do about it.

use serde_json::{Value, json};
use souk_tests::PgCluster;
use tokio::net::TcpListener;

use crate::{LEAGUE, host, unique};

/// What a test of this connection says is wrong, of a seller of its own.
async fn told(engine: &str, fields: Value) -> String {
    let seller = host().await.company(&unique("beginner")).await;
    let id = seller.connection(engine, fields).await;
    let path = seller.path(&format!("/connections/{id}/test"));
    let test = seller.client.post(&path, json!({})).await.expect(200);
    assert_eq!(test.at("/data/success"), false, "{}", test.body);
    test.text("/data/error")
}

/// A connection to a PostgreSQL.
fn postgres(port: u16, database: &str, user: &str, password: &str) -> Value {
    json!({"credential_type": "PASSWORD", "host": "127.0.0.1", "port": port, "database": database, "ssl_mode": "disable",
        "credentials": json!({"username": user, "password": password}).to_string()})
}

/// A server that was reached and lets nobody in is not said to be out of reach: what it lacks is, and what to grant.
#[tokio::test]
async fn a_server_that_answers_is_not_out_of_reach() {
    let cluster = PgCluster::shared().await;
    let database = cluster.database(LEAGUE).await;
    let role = format!("crowded_{database}");
    let admin = cluster.client("postgres").await;
    let statements = [
        format!("REVOKE CONNECT ON DATABASE {database} FROM PUBLIC"),
        format!("CREATE ROLE {role} LOGIN PASSWORD 'pw' CONNECTION LIMIT 0"),
    ];
    admin
        .batch_execute(&statements.join(";"))
        .await
        .expect("a role");
    for (database, says) in [
        ("postgres", "takes no more connections"),
        (&database, "GRANT CONNECT ON DATABASE"),
    ] {
        // Who may connect nowhere is told that first.
        let limit = if database == "postgres" { 0 } else { -1 };
        let limited = format!("ALTER ROLE {role} CONNECTION LIMIT {limit}");
        admin.batch_execute(&limited).await.expect("a limit");
        let said = told("postgres", postgres(cluster.port, database, &role, "pw")).await;
        assert!(said.contains(says), "{said}");
        assert!(!said.contains("cannot reach"), "{said}");
        assert!(!said.contains("firewall"), "{said}");
    }
}

/// A form that is made of an engine's schema offers the times that a connection may have, and the one that it has where it says none.
#[tokio::test]
async fn the_time_of_statements_is_shown_as_it_holds() {
    let seller = host().await.company(&unique("times")).await;
    let engines = seller.client.get("/storage-engines").await.expect(200);
    let engines = engines.at("/data").as_array().cloned().unwrap_or_default();
    let schemas = engines.iter().map(|engine| &engine["settings_schema"]);
    let times: Vec<&Value> = schemas
        .map(|schema| &schema["properties"]["statement_timeout_ms"])
        .filter(|time| time.is_object())
        .collect();
    assert!(!times.is_empty());
    for time in times {
        let shown = ["minimum", "maximum", "default"].map(|word| time[word].as_i64());
        assert_eq!(shown, [Some(100), Some(60_000), Some(10_000)], "{time}");
    }
    let cluster = PgCluster::shared().await;
    let id = seller
        .connection("postgres", postgres(cluster.port, "postgres", "u", "p"))
        .await;
    let path = seller.path(&format!("/connections/{id}"));
    let saved = seller.client.get(&path).await.expect(200);
    assert_eq!(saved.at("/data/statement_timeout_ms"), 10_000);
}

/// Whoever hangs up may be another kind of server, or one that does not know this service's address.
#[tokio::test]
async fn a_server_that_hangs_up_has_a_list_of_addresses() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(stream);
        }
    });
    let base_url = format!("http://127.0.0.1:{port}");
    let credentials = json!({"username": "souk", "password": "pw"}).to_string();
    let clickhouse =
        json!({"credential_type": "PASSWORD", "base_url": base_url, "credentials": credentials});
    for (engine, fields) in [
        ("postgres", postgres(port, "shop", "souk", "pw")),
        ("clickhouse", clickhouse),
    ] {
        let said = told(engine, fields).await;
        assert!(said.contains("was reached, and no more"), "{said}");
        assert!(said.contains("allowed addresses"), "{said}");
    }
}
