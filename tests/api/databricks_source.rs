//! A Databricks as a source, through the connector `databricks`. The server is of the tests; Databricks' own client takes it for one.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::{Company, Databricks};

use crate::{host, unique};

const LEAGUE: &str = r#"ATTACH ':memory:' AS league;
    CREATE TABLE league.matches (id bigint NOT NULL, club string text, goals int, fee decimal(20, 5), played timestamp, kickoff timestamp_ntz, day date, tags "array<string>");
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 100)
    INSERT INTO league.matches SELECT n, 'Club ' || (n % 7), CASE WHEN n % 11 > 0 THEN n % 5 END, n / 8.0, 1767225600000000 + n * 60000000,
        strftime('%Y-%m-%d %H:%M:%S.000000', '2026-01-01', '+' || n || ' minutes'), date('2026-01-01', '+' || n || ' days'), json_array('n', '' || n) FROM s;"#;

async fn seller(server: &Databricks) -> (Company, String) {
    server.admin(LEAGUE);
    let seller = host().await.company(&unique("databricks")).await;
    let connection = seller.databricks(server, "league").await;
    (seller, connection)
}

/// A seller connects a Databricks as a service principal and with a certificate of its own, sees that it works, that it refuses writes and what
/// is in it, and sells an asset and an endpoint of it; a buyer pays and reads pages, filtered, to the last digit.
#[tokio::test]
async fn a_seller_sells_from_databricks() {
    let server = Databricks::start_tls().await;
    let (seller, connection) = seller(&server).await;
    let path = seller.path(&format!("/connections/{connection}/test"));
    let test = seller.client.post(&path, json!({})).await.expect(200);
    assert_eq!(test.at("/data/success"), true, "{}", test.body);
    // The source itself refused to take a write for a query.
    let tried = server.requests();
    assert!(
        tried
            .iter()
            .any(|line| line.starts_with("POST DESCRIBE QUERY INSERT INTO")),
        "{tried:?}"
    );
    assert_eq!(test.at("/data/read_only_verified"), true, "{}", test.body);
    let path = seller.path(&format!("/connections/{connection}/schema"));
    let schema = seller.client.get(&path).await.expect(200);
    assert!(
        schema.body.to_string().contains("array<string>"),
        "{}",
        schema.body
    );

    let asset = seller
        .asset(&connection, json!({"sql_logic": "SELECT SUM(goals) AS goals FROM matches WHERE club = :club AND goals >= :least",
            "parameters": [{"name": "club", "type": "string"}, {"name": "least", "type": "integer"}]}))
        .await;
    let digits = seller
        .asset(
            &connection,
            json!({"sql_logic": "SELECT 12345678901234567890.00100 AS fee"}),
        )
        .await;
    let endpoint = seller
        .endpoint(&connection, json!({"slug": "matches", "source": {"schema": "league", "table": "matches"},
            "fields": [{"name": "id"}, {"name": "club"}, {"name": "goals"}, {"name": "fee"}, {"name": "played"}, {"name": "kickoff"}, {"name": "day"}, {"name": "tags"}],
            "order_by": ["id"],
            "filters": [{"field": "club", "operators": ["eq", "like"]}, {"field": "goals", "operators": ["eq", "gt", "in"]}, {"field": "fee", "operators": ["gte"]},
                {"field": "played", "operators": ["lt", "in"]}, {"field": "kickoff", "operators": ["lt"]}, {"field": "day", "operators": ["eq"]}]}))
        .await;
    seller.publish(&asset, 2).await;
    seller.publish(&digits, 1).await;
    seller.publish(&endpoint, 1).await;

    let buyer = host().await.buyer(&unique("buyer"), 100).await;
    buyer.buy(&asset).await;
    buyer.buy(&digits).await;
    let bought = buyer.buy(&endpoint).await;
    let key = bought.text("/data/endpoint_key/key");
    let reader = buyer.client.with_key(&key);
    let parameters = json!({"club": "Club 3", "least": 2});
    let answer = buyer.execute(&asset, parameters).await.expect(200);
    assert_eq!(answer.at("/data/answer_value"), 27);
    // Its text, because what these tests read of JSON has the digits of a double.
    let path = buyer.path(&format!("/assets/{digits}/execute"));
    let response = buyer.client.request(reqwest::Method::POST, &path);
    let response = response.json(&json!({"params": {}})).send().await;
    let text = response.expect("an answer").text().await.expect("a body");
    assert!(text.contains("12345678901234567890.00100"), "{text}");

    let page = async |query: &str| {
        let path = format!("/endpoints/v1/{}/matches?{query}", seller.handle);
        reader.get(&path).await.expect(200)
    };
    let first = page("limit=2").await;
    assert_eq!(first.at("/data/service/billing/credits_used"), 1);
    let rows = first.at("/data/response/data").clone();
    assert_eq!(
        rows[0],
        json!({"id": 1, "club": "Club 1", "goals": 1, "fee": 0.125, "played": "2026-01-01T00:01:00.000000Z",
            "kickoff": "2026-01-01T00:01:00.000000", "day": "2026-01-02", "tags": ["n", "1"]})
    );
    let mut seen = Vec::new();
    for start in [0, 40, 80] {
        let page = page(&format!("limit=40&start={start}")).await;
        let rows = page.at("/data/response/data").as_array().unwrap().clone();
        seen.extend(rows.iter().map(|row| row["id"].as_i64().unwrap()));
    }
    assert_eq!(seen, (1..=100).collect::<Vec<i64>>());
    for (query, wanted) in [
        ("club=Club%203&goals[gt]=2", vec![3, 24, 38, 59, 73, 94]),
        ("goals[in]=4&club=Club%202", vec![9, 79]),
        ("fee[gte]=12.375&limit=10", vec![99, 100]),
        ("fee[gte]=12.3751&limit=10", vec![100]),
        ("club[like]=Club%206&limit=3", vec![6, 13, 20]),
        ("club[like]=Club%25", vec![]),
        ("club=%27%20OR%20%271%5C", vec![]),
        ("played[lt]=2026-01-01T00:03:00Z", vec![1, 2]),
        ("played[in]=2026-01-01T00:03:00Z", vec![3]),
        ("kickoff[lt]=2026-01-01T00:03:00", vec![1, 2]),
        ("day=2026-01-05", vec![4]),
    ] {
        let page = page(query).await;
        let rows = page.at("/data/response/data").as_array().unwrap().clone();
        let ids: Vec<i64> = rows.iter().map(|row| row["id"].as_i64().unwrap()).collect();
        assert_eq!(ids, wanted, "{query}");
    }
    assert_eq!(server.running(), 0);
}

/// A text that begins as a query and writes may be saved by nobody; one that the host does not see through is refused by Databricks.
#[tokio::test]
async fn databricks_refuses_what_writes() {
    let server = Databricks::start().await;
    let (seller, connection) = seller(&server).await;
    for text in [
        "DELETE FROM matches",
        "WITH a AS (SELECT 1) DELETE FROM matches",
        "SELECT 1; DELETE FROM matches",
    ] {
        let path = seller.path("/assets");
        let fields = json!({"connection_id": connection, "asset_type": "CALCULATION", "name": "writes", "result_type": "number", "sql_logic": text});
        let answer = seller.client.post(&path, fields).await;
        answer.expect(400);
    }
    // The host takes it for text, Databricks for a method of Java's that is called.
    let asset = seller
        .asset(
            &connection,
            json!({"sql_logic": "SELECT reflect('java.lang.System', 'getProperty', 'x') AS n"}),
        )
        .await;
    let path = seller.path(&format!("/assets/{asset}/execute"));
    let answer = seller.client.post(&path, json!({"params": {}})).await;
    assert_eq!(
        answer.at("/error/details/fault_code"),
        "read_only",
        "{}",
        answer.body
    );
    let asked = server.requests();
    assert!(
        !asked
            .iter()
            .any(|line| line.contains("DELETE") || line.contains("reflect")),
        "{asked:?}"
    );
}

/// What nobody waits for any more is stopped at Databricks.
#[tokio::test]
async fn databricks_stops_what_is_abandoned() {
    let server = Databricks::start().await;
    let (seller, connection) = seller(&server).await;
    let asset = seller
        .asset(&connection, json!({"sql_logic": "SELECT id FROM endless"}))
        .await;
    let path = seller.path(&format!("/assets/{asset}/execute"));
    let client = seller.client.clone();
    let call = tokio::spawn(async move { client.post(&path, json!({"params": {}})).await });
    let since = Instant::now();
    while !server
        .requests()
        .contains(&"POST SELECT id FROM endless".to_owned())
    {
        assert!(since.elapsed() < Duration::from_secs(20), "it does not run");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    call.abort();
    let since = Instant::now();
    while server.running() > 0 {
        assert!(since.elapsed() < Duration::from_secs(10), "it goes on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(server.requests().contains(&"POST cancel".to_owned()));
}
