//! Faults at the source and in connectors: each has its status and its blame, costs nothing, and the
//! next request succeeds.

use axum::Router;
use axum::routing::get;
use serde_json::json;
use souk_tests::{PgCluster, guests};

use crate::{LEAGUE, host, league, unique};

/// SQL that fails, values that the source refuses, statements that take too long, results that are
/// too large.
#[tokio::test]
async fn a_fault_at_the_source_costs_nothing() {
    let league = league().await;
    let seller = &league.seller;
    let asset_within = |sql: &str, timeout_ms: u32| {
        let fields = json!({"sql_logic": sql, "slug": unique("fault"), "timeout_ms": timeout_ms, "parameters": [{"name": "n", "type": "integer", "default": 0}]});
        let connection = league.connection.clone();
        async move { seller.asset(&connection, fields).await }
    };
    // What is answered has all the time that a loaded machine may take for it.
    let asset = |sql: &str| asset_within(sql, 20_000);
    let failing = asset("SELECT goals / :n FROM matches WHERE id = 1").await;
    seller.execute(&failing, json!({"n": 1})).await.expect(200);
    // Division by zero is SQLSTATE 22012: the caller's value.
    seller
        .execute(&failing, json!({"n": 0}))
        .await
        .expect_error(400, "INVALID_PARAMETER");

    let gone = asset("SELECT goals FROM no_such_table WHERE id = :n").await;
    let answer = seller
        .execute(&gone, json!({}))
        .await
        .expect_error(502, "SOURCE_ERROR");
    assert_eq!(answer.at("/error/details/blame"), "source");
    assert_eq!(answer.at("/error/details/source_code"), "42P01");

    let slow = asset_within("SELECT count(*) + :n FROM pg_sleep(30)", 1_500).await;
    let late = seller
        .execute(&slow, json!({}))
        .await
        .expect_error(504, "EXECUTION_TIMEOUT");
    let said = late.text("/error/message");
    assert!(
        said.contains("it had 1500 ms, the asset's timeout_ms; allow it more"),
        "{said}"
    );

    let many = asset("SELECT id FROM matches WHERE id > :n").await;
    let answer = seller
        .execute(&many, json!({}))
        .await
        .expect_error(502, "SOURCE_ERROR");
    for (name, expected) in [
        ("blame", json!("source")),
        ("reason", json!("bad_answer")),
        ("charged", json!(false)),
    ] {
        assert_eq!(answer.body["error"]["details"][name], expected);
    }
    assert!(
        answer.text("/error/message").contains("rows"),
        "{}",
        answer.body
    );
    seller.execute(&failing, json!({"n": 1})).await.expect(200);
}

/// A statement that its connection allows less than its asset does is told by that limit, and to the buyer without what only the seller can change.
#[tokio::test]
async fn a_timeout_says_whose_limit_it_was() {
    let league = league().await;
    let seller = &league.seller;
    let sql = "SELECT count(*) FROM pg_sleep(:seconds)";
    let parameters = json!([{"name": "seconds", "type": "number", "default": 0}]);
    let fields = json!({"sql_logic": sql, "slug": unique("short"), "timeout_ms": 30_000, "parameters": parameters});
    let asset = seller.asset(&league.connection, fields).await;
    seller.publish(&asset, 1).await;
    let connection = seller.path(&format!("/connections/{}", league.connection));
    let short = json!({"statement_timeout_ms": 500});
    seller.client.patch(&connection, short).await.expect(200);
    let buyer = host().await.buyer(&unique("patient"), 10).await;
    for (caller, advice) in [
        (seller, "; allow it more, or ask the source for less"),
        (&buyer, "; ask for less, or tell the seller"),
    ] {
        let late = caller.execute(&asset, json!({"seconds": 20})).await;
        let late = late.expect_error(504, "EXECUTION_TIMEOUT");
        assert_eq!(late.at("/error/details/fault_code"), "statement_timeout");
        let said = late.text("/error/message");
        assert!(said.contains("connection's statement_timeout_ms"), "{said}");
        assert!(said.contains("the asset's timeout_ms is 30000"), "{said}");
        assert!(said.ends_with(advice), "{said}");
    }
    assert_eq!(buyer.balance().await, 10);
}

/// What a connector that expects JSON is answered instead is told its owner by place and kind: what stands there may be anybody's data, and would be in
/// the host's log.
#[tokio::test]
async fn json_of_another_form_is_told_without_its_content() {
    let board = Router::new()
        .route("/", get(|| async { "a board" }))
        .route(
            "/words",
            get(|| async { "[[\"ada\", 7],\n [\"bob\", \"hush-hush\"]]" }),
        )
        .route("/page", get(|| async { "<p>hush-hush</p>" }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move { axum::serve(listener, board).await });
    let seller = host().await.company(&unique("board")).await;
    seller.connector(guests::HELLO).await;
    let connection = json!({"credential_type": "NONE", "credentials": r#"{"league":"north"}"#, "base_url": format!("http://{address}")});
    let connection = seller.connection("hello", connection).await;
    for (path, told) in [
        (
            "/words",
            "a value of another type than was expected, line 2, column ",
        ),
        ("/page", "it is no JSON, line 1, column "),
    ] {
        let endpoint =
            json!({"slug": unique("scores"), "sql_logic": path, "fields": [{"name": "player"}]});
        let endpoint = seller.endpoint(&connection, endpoint).await;
        let test = seller.path(&format!("/endpoints/{endpoint}/test"));
        let refused = seller.client.get(&test).await;
        let refused = refused.expect_error(502, "SOURCE_ERROR");
        assert_eq!(refused.at("/error/details/fault_code"), "bad_json");
        let said = refused.text("/error/details/source_message");
        assert!(said.starts_with(told), "{said}");
        let body = refused.body.to_string();
        assert!(!body.contains("hush"), "{body}");
    }
}

/// The source's own words go to the owner of the connection only.
#[tokio::test]
async fn the_sources_text_is_for_the_owner_only() {
    let league = league().await;
    let asset = league.total_goals(2).await;
    let buyer = host().await.buyer(&unique("outsider"), 10).await;
    buyer.execute(&asset, json!({})).await.expect(200);
    PgCluster::shared()
        .await
        .client(&league.database)
        .await
        .batch_execute("ALTER TABLE matches RENAME TO renamed_secretly")
        .await
        .expect("DDL");
    let refusal = buyer
        .execute(&asset, json!({}))
        .await
        .expect_error(502, "SOURCE_ERROR");
    assert!(
        !refusal.body.to_string().contains("matches"),
        "{}",
        refusal.body
    );
    assert_eq!(refusal.at("/error/details/charged"), false);
    assert_eq!(buyer.balance().await, 8);
}

/// A database that goes away and comes back: 502 meanwhile, 200 again, nobody charged.
#[tokio::test]
async fn a_database_that_drops_its_clients_is_found_again() {
    let cluster = PgCluster::start(&[]).await;
    let database = cluster.database(LEAGUE).await;
    let seller = host().await.company(&unique("dropper")).await;
    let connection = seller.postgres(&cluster, &database).await;
    let asset = seller
        .asset(
            &connection,
            json!({"sql_logic": "SELECT count(*) FROM matches"}),
        )
        .await;
    for _ in 0..5 {
        assert_eq!(
            seller
                .execute(&asset, json!({}))
                .await
                .expect(200)
                .at("/data/answer_value"),
            250
        );
        let admin = cluster.client("postgres").await;
        let ended = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
        );
        admin.batch_execute(&ended).await.expect("terminate");
    }
    drop(cluster);
    let refusal = seller
        .execute(&asset, json!({}))
        .await
        .expect_error(502, "SOURCE_ERROR");
    assert_eq!(refusal.at("/error/details/blame"), "source");
}

/// Whatever a statement did to its session, the next statement cannot write.
#[tokio::test]
async fn read_only_is_held_on_every_statement() {
    let cluster = PgCluster::shared().await;
    let schema = format!(
        "{LEAGUE} CREATE FUNCTION sneaky() RETURNS bigint LANGUAGE plpgsql AS $$
         BEGIN INSERT INTO matches VALUES (9999, 'Sneaky', 1, NULL, now()); RETURN 1; END $$;"
    );
    let database = cluster.database(&schema).await;
    let seller = host().await.company(&unique("readonly")).await;
    let connection = seller.postgres(cluster, &database).await;
    let asset = |sql: &'static str| {
        let (seller, connection) = (seller.clone(), connection.clone());
        async move {
            seller
                .asset(
                    &connection,
                    json!({"sql_logic": sql, "slug": unique("ro"), "result_type": "string"}),
                )
                .await
        }
    };
    let unlock = asset("SELECT set_config('default_transaction_read_only', 'off', false)").await;
    let unlock_now = asset("SELECT set_config('transaction_read_only', 'off', false)").await;
    let write = asset("SELECT sneaky()::text").await;
    for _ in 0..4 {
        for opener in [&unlock, &unlock_now] {
            let _ = seller.execute(opener, json!({})).await;
            let refusal = seller.execute(&write, json!({})).await.expect(502);
            assert_eq!(
                refusal.at("/error/details/source_code"),
                "25006",
                "{}",
                refusal.body
            );
        }
    }
    let row = cluster
        .client(&database)
        .await
        .query_one("SELECT count(*) FROM matches WHERE id = 9999", &[])
        .await
        .expect("count");
    assert_eq!(row.get::<_, i64>(0), 0);
}
