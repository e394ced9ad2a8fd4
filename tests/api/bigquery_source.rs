//! A BigQuery as a source, through the connector `bigquery`. The server is of the tests; Google's client takes it for one.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::{BigQuery, Company};

use crate::{host, unique};

const LEAGUE: &str = "ATTACH ':memory:' AS league;
    CREATE TABLE league.matches (id INT64 NOT NULL, club STRING TEXT, goals INT64, fee NUMERIC, played TIMESTAMP, kickoff DATETIME, day DATE, tags STRINGS TEXT);
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 100)
    INSERT INTO league.matches SELECT n, 'Club ' || (n % 7), CASE WHEN n % 11 > 0 THEN n % 5 END, n / 8.0, 1767225600000000 + n * 60000000,
        strftime('%Y-%m-%dT%H:%M:%S', '2026-01-01', '+' || n || ' minutes'), date('2026-01-01', '+' || n || ' days'), json_array('n', '' || n) FROM s;";

async fn seller(server: &BigQuery) -> (Company, String) {
    server.admin(LEAGUE);
    let seller = host().await.company(&unique("bigquery")).await;
    let connection = seller.bigquery(server, "league").await;
    (seller, connection)
}

/// A seller connects a BigQuery by the key file of a service account, sees that it works and what is in it, and sells an asset and an
/// endpoint of it; a buyer pays and reads pages, filtered, to the last digit.
#[tokio::test]
async fn a_seller_sells_from_bigquery() {
    let server = BigQuery::start().await;
    let (seller, connection) = seller(&server).await;
    let path = seller.path(&format!("/connections/{connection}/test"));
    let test = seller.client.post(&path, json!({})).await.expect(200);
    assert_eq!(test.at("/data/success"), true, "{}", test.body);
    let path = seller.path(&format!("/connections/{connection}/schema"));
    let schema = seller.client.get(&path).await.expect(200);
    assert!(
        schema.body.to_string().contains("ARRAY<STRING>"),
        "{}",
        schema.body
    );

    let asset = seller
        .asset(&connection, json!({"sql_logic": "SELECT SUM(goals) AS goals FROM matches WHERE club = :club AND goals >= :least",
            "parameters": [{"name": "club", "type": "string"}, {"name": "least", "type": "integer"}]}))
        .await;
    let endpoint = seller
        .endpoint(&connection, json!({"slug": "matches", "source": {"schema": "league", "table": "matches"},
            "fields": [{"name": "id"}, {"name": "club"}, {"name": "goals"}, {"name": "fee"}, {"name": "played"}, {"name": "kickoff"}, {"name": "day"}, {"name": "tags"}],
            "order_by": ["id"],
            "filters": [{"field": "club", "operators": ["eq", "like"]}, {"field": "goals", "operators": ["eq", "gt", "in"]}, {"field": "fee", "operators": ["gte"]},
                {"field": "played", "operators": ["lt", "in"]}, {"field": "kickoff", "operators": ["lt"]}, {"field": "day", "operators": ["eq"]}]}))
        .await;
    seller.publish(&asset, 2).await;
    seller.publish(&endpoint, 1).await;

    let buyer = host().await.buyer(&unique("buyer"), 100).await;
    buyer.buy(&asset).await;
    let bought = buyer.buy(&endpoint).await;
    let key = bought.text("/data/endpoint_key/key");
    let reader = buyer.client.with_key(&key);
    let parameters = json!({"club": "Club 3", "least": 2});
    let answer = buyer.execute(&asset, parameters).await.expect(200);
    assert_eq!(answer.at("/data/answer_value"), 27);

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
}

/// What nobody waits for any more is cancelled at BigQuery, which would go on, and be paid for.
#[tokio::test]
async fn bigquery_stops_what_is_abandoned() {
    let server = BigQuery::start().await;
    let (seller, connection) = seller(&server).await;
    let asset = seller
        .asset(&connection, json!({"sql_logic": "SELECT id FROM endless"}))
        .await;
    let path = seller.path(&format!("/assets/{asset}/execute"));
    let client = seller.client.clone();
    let call = tokio::spawn(async move { client.post(&path, json!({"params": {}})).await });
    let since = Instant::now();
    // Its name is known once it is waited for.
    while !server.requests().contains(&"GET queries/…".to_owned()) {
        assert!(since.elapsed() < Duration::from_secs(20), "it does not run");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    call.abort();
    let since = Instant::now();
    while server.running() > 0 {
        assert!(since.elapsed() < Duration::from_secs(10), "it goes on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
