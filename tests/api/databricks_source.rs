//! A Databricks as a source, through the connector `databricks`. The server is of the tests; Databricks' own client takes it for one.

use serde_json::json;
use souk_tests::{Company, Databricks};

use crate::exact::Exact;
use crate::league::{League, ends_in_time, is_stopped};
use crate::{host, unique};

const LEAGUE: &str = r#"ATTACH ':memory:' AS league;
    CREATE TABLE league.matches (id bigint NOT NULL, club string text, goals int, fee decimal(20, 5), played timestamp, kickoff timestamp_ntz, day date, tags "array<string>");
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 100)
    INSERT INTO league.matches SELECT n, 'Club ' || (n % 7), CASE WHEN n % 11 > 0 THEN n % 5 END, n / 8.0, 1767225600000000 + n * 60000000,
        strftime('%Y-%m-%d %H:%M:%S.000000', '2026-01-01', '+' || n || ' minutes'), date('2026-01-01', '+' || n || ' days'), json_array('n', '' || n) FROM s;"#;

const SOLD: League = League {
    schema: "league",
    name: str::to_owned,
    digits: Some("SELECT 12345678901234567890.00100 AS fee"),
};

const EXACT: Exact = Exact {
    schema: "league",
    name: str::to_owned,
    wide: ["bigint", "string text", "decimal(38,5) text"],
    kinds: &[
        ("boolean", "1", "true"),
        ("tinyint", "-128", "-128"),
        ("smallint", "-32768", "-32768"),
        ("int", "-2147483648", "-2147483648"),
        ("bigint", "-9223372036854775808", "-9223372036854775808"),
        ("float", "0.1", "0.1"),
        ("double", "0.30000000000000004", "0.30000000000000004"),
        (
            "decimal(38,5) text",
            "'12345678901234567890.00100'",
            "12345678901234567890.00100",
        ),
        (
            "string text",
            r#"'it''s "ä", 日本 😀 \'"#,
            r#"it's "ä", 日本 😀 \"#,
        ),
        ("varchar(4)", "'ab'", "ab"),
        ("char(4)", "'ab  '", "ab  "),
        ("binary", "x'00ff'", "AP8="),
        ("date", "'9999-12-31'", "9999-12-31"),
        ("timestamp", "-1", "1969-12-31T23:59:59.999999Z"),
        (
            "timestamp_ntz",
            "'1969-12-31 23:59:59.999999'",
            "1969-12-31T23:59:59.999999",
        ),
        ("interval year to month", "'1-2'", "1-2"),
        (
            "interval day to second",
            "'2 03:04:05.500000000'",
            "2 03:04:05.500000000",
        ),
        (
            "array<decimal(38,5)>",
            "'[12345678901234567890.00100,null]'",
            "[12345678901234567890.00100,null]",
        ),
        (
            "map<string,bigint>",
            r#"'{"a":9007199254740993}'"#,
            r#"{"a":9007199254740993}"#,
        ),
        (
            "struct<n:decimal(38,5),at:timestamp>",
            r#"'{"n":0.00001,"at":"1969-12-31T23:59:59.999999Z"}'"#,
            r#"{"n":0.00001,"at":"1969-12-31T23:59:59.999999Z"}"#,
        ),
        ("variant", r#"'{"a":[1.50,null]}'"#, r#"{"a":[1.50,null]}"#),
        (
            "geography(4326)",
            "'SRID=4326;POINT(1 2)'",
            "SRID=4326;POINT(1 2)",
        ),
        ("geometry(0)", "'POINT(1 2)'", "POINT(1 2)"),
    ],
    empty_for_null: None,
};

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

    SOLD.is_sold(&seller, &connection).await;
    assert_eq!(server.running(), 0);
}

/// A value of every type and NULL in each, what finds no row, and two hundred columns: each digit in its place.
#[tokio::test]
async fn values_of_databricks_leave_to_the_last_digit() {
    let server = Databricks::start().await;
    let (seller, connection) = seller(&server).await;
    server.admin(&EXACT.tables());
    EXACT.leaves(&seller, &connection).await;
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
    is_stopped(
        &seller,
        &connection,
        "SELECT id FROM endless",
        || {
            server
                .requests()
                .contains(&"POST SELECT id FROM endless".to_owned())
        },
        || server.running() > 0,
    )
    .await;
    assert!(server.requests().contains(&"POST cancel".to_owned()));
}

/// What takes longer than its asset may is stopped at Databricks and costs the buyer nothing; the next one is answered.
#[tokio::test]
async fn what_takes_too_long_at_databricks_is_free() {
    let server = Databricks::start().await;
    let (seller, connection) = seller(&server).await;
    let asset = json!({"sql_logic": "SELECT COUNT(*) AS n FROM matches"});
    let takes = |time| {
        server.takes(time);
        json!({})
    };
    let runs = || server.running() > 0;
    ends_in_time(seller, &connection, asset, takes, runs).await;
}
