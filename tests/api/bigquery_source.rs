//! A BigQuery as a source, through the connector `bigquery`. The server is of the tests; Google's client takes it for one.

use serde_json::json;
use souk_tests::{BigQuery, Company};

use crate::exact::Exact;
use crate::league::{League, ends_in_time, is_stopped};
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

const EXACT: Exact = Exact {
    schema: "league",
    name: str::to_owned,
    wide: ["INT64", "STRING TEXT", "NUMERIC TEXT"],
    kinds: &[
        ("BOOL", "1", "true"),
        ("INT64", "-9223372036854775808", "-9223372036854775808"),
        ("FLOAT64", "0.30000000000000004", "0.30000000000000004"),
        (
            "NUMERIC TEXT",
            "'-99999999999999999999999999999.999999999'",
            "-99999999999999999999999999999.999999999",
        ),
        (
            "BIGNUMERIC TEXT",
            "'0.00000000000000000000000000000000000001'",
            "0.00000000000000000000000000000000000001",
        ),
        (
            "STRING TEXT",
            r#"'it''s "ä", 日本 😀 \'"#,
            r#"it's "ä", 日本 😀 \"#,
        ),
        ("BYTES BLOB", "x'00ff'", "AP8="),
        ("DATE", "'9999-12-31'", "9999-12-31"),
        ("TIME", "'23:59:59.999999'", "23:59:59.999999"),
        (
            "DATETIME",
            "'1969-12-31T23:59:59.999999'",
            "1969-12-31T23:59:59.999999",
        ),
        ("TIMESTAMP", "-1", "1969-12-31T23:59:59.999999Z"),
        ("JSON", r#"'{"a":[1.50,null]}'"#, r#"{"a":[1.50,null]}"#),
        ("GEOGRAPHY", "'POINT(1 2)'", "POINT(1 2)"),
        ("INTERVAL", "'1-2 3 4:5:6.789'", "1-2 3 4:5:6.789"),
        (
            "RANGE<DATE>",
            "'[2020-01-01, UNBOUNDED)'",
            "[2020-01-01, UNBOUNDED)",
        ),
        ("STRINGS TEXT", r#"'["a",""]'"#, r#"["a",""]"#),
        (
            "STRUCT<n NUMERIC, at TIMESTAMP>",
            r#"'["12345678901234567890.001","-1"]'"#,
            r#"{"n":12345678901234567890.001,"at":"1969-12-31T23:59:59.999999Z"}"#,
        ),
    ],
    empty_for_null: Some("STRINGS TEXT"),
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

/// A value of every type and NULL in each, which is an empty list of an array, what finds no row, and two hundred columns: each digit in its place.
#[tokio::test]
async fn values_of_bigquery_leave_to_the_last_digit() {
    let server = BigQuery::start().await;
    let (seller, connection) = seller(&server).await;
    server.admin(&EXACT.tables());
    EXACT.leaves(&seller, &connection).await;
}

/// A text that writes may be saved by nobody; one that the host does not see through is run dry, is no query by BigQuery's own word, and is not run.
#[tokio::test]
async fn bigquery_refuses_what_writes() {
    let server = BigQuery::start().await;
    let (seller, connection) = seller(&server).await;
    for text in [
        "DELETE FROM matches",
        "WITH a AS (SELECT 1) INSERT INTO matches SELECT * FROM a",
        "SELECT 1; DELETE FROM matches",
    ] {
        let path = seller.path("/assets");
        let fields = json!({"connection_id": connection, "asset_type": "CALCULATION", "name": "writes", "result_type": "number", "sql_logic": text});
        seller.client.post(&path, fields).await.expect(400);
    }
    // To the host a backslash takes the quote behind it into the text; to this server it ends there, and what follows is another statement.
    let text =
        r"SELECT COUNT(*) AS n FROM matches WHERE club = '\'; DELETE FROM league.matches; --'";
    let writes = seller.asset(&connection, json!({"sql_logic": text})).await;
    let count = json!({"sql_logic": "SELECT COUNT(*) AS n FROM matches"});
    let count = seller.asset(&connection, count).await;
    let seen = server.requests().len();
    for _ in 0..2 {
        let refused = seller.execute(&writes, json!({})).await;
        let refused = refused.expect_error(502, "SOURCE_ERROR");
        let details = refused.at("/error/details");
        assert_eq!(details["fault_code"], "read_only", "{}", refused.body);
        assert_eq!(details["source_code"], "SCRIPT", "{}", refused.body);
    }
    let asked = server.requests().split_off(seen);
    let times = |what: &str| asked.iter().filter(|line| *line == what).count();
    // Dry each time, besides what a session begins with.
    assert!(times("POST jobs") >= 2, "{asked:?}");
    assert_eq!(times("POST queries"), 0, "{asked:?}");
    let left = seller.execute(&count, json!({})).await.expect(200);
    assert_eq!(left.at("/data/answer_value"), 100);
    // It would have been one.
    server.admin(text);
    let left = seller.execute(&count, json!({})).await.expect(200);
    assert_eq!(left.at("/data/answer_value"), 0);
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

/// What takes longer than its asset may is cancelled at BigQuery and costs the buyer nothing; the next one is answered.
#[tokio::test]
async fn what_takes_too_long_at_bigquery_is_free() {
    let server = BigQuery::start().await;
    let (seller, connection) = seller(&server).await;
    let asset = json!({"sql_logic": "SELECT COUNT(*) AS n FROM matches"});
    let takes = |time| {
        server.takes(time);
        json!({})
    };
    let runs = || server.running() > 0;
    ends_in_time(seller, &connection, asset, takes, runs).await;
}
