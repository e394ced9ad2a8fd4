//! A BigQuery as a source, through the connector `bigquery`. The server is of the tests; Google's client takes it for one.

use serde_json::json;
use souk_tests::{BigQuery, Company};

use crate::league::{League, is_stopped};
use crate::{host, unique};

const LEAGUE: &str = "ATTACH ':memory:' AS league;
    CREATE TABLE league.matches (id INT64 NOT NULL, club STRING TEXT, goals INT64, fee NUMERIC, played TIMESTAMP, kickoff DATETIME, day DATE, tags STRINGS TEXT);
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 100)
    INSERT INTO league.matches SELECT n, 'Club ' || (n % 7), CASE WHEN n % 11 > 0 THEN n % 5 END, n / 8.0, 1767225600000000 + n * 60000000,
        strftime('%Y-%m-%dT%H:%M:%S', '2026-01-01', '+' || n || ' minutes'), date('2026-01-01', '+' || n || ' days'), json_array('n', '' || n) FROM s;";

const SOLD: League = League {
    schema: "league",
    name: str::to_owned,
    digits: None,
};

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

    SOLD.is_sold(&seller, &connection).await;
}

/// What nobody waits for any more is cancelled at BigQuery, which would go on, and be paid for.
#[tokio::test]
async fn bigquery_stops_what_is_abandoned() {
    let server = BigQuery::start().await;
    let (seller, connection) = seller(&server).await;
    is_stopped(
        &seller,
        &connection,
        "SELECT id FROM endless",
        // Its name is known once it is waited for.
        || server.requests().contains(&"GET queries/…".to_owned()),
        || server.running() > 0,
    )
    .await;
}
