//! A DuckDB as a source, through the connector `duckdb`: the vendor's own server of Quack.

use std::time::Duration;

use serde_json::json;
use souk_tests::{Company, DuckDb};

use crate::exact::{wide_leaves, wide_table};
use crate::league::{League, ends_in_time, is_stopped, ties};
use crate::{host, unique};

const LEAGUE: [&str; 2] = [
    "CREATE SCHEMA league",
    "CREATE TABLE league.matches AS SELECT n::BIGINT AS id, 'Club ' || n % 7 AS club, CASE WHEN n % 11 > 0 THEN (n % 5)::INTEGER END AS goals, (n / 8.0)::DECIMAL(20, 5) AS fee, \
     TIMESTAMPTZ '2026-01-01 00:00:00+00' + to_minutes(n) AS played, TIMESTAMP '2026-01-01' + to_minutes(n) AS kickoff, DATE '2026-01-01' + n::INTEGER AS day, ['n', n::VARCHAR] AS tags \
     FROM range(1, 101) AS r(n)",
];

const SOLD: League = League {
    schema: "league",
    name: str::to_owned,
    digits: Some("SELECT 12345678901234567890.00100::DECIMAL(25, 5) AS fee"),
};

async fn seller(server: &DuckDb) -> (Company, String) {
    LEAGUE.into_iter().for_each(|statement| {
        server.admin(statement);
    });
    let seller = host().await.company(&unique("duckdb")).await;
    let connection = seller.duckdb(server, "league").await;
    (seller, connection)
}

/// A seller connects a DuckDB behind a proxy with a certificate of its own, sees that it works, that it refuses writes and what is in it, and
/// sells an asset and an endpoint of it; a buyer pays and reads pages, filtered, to the last digit.
#[tokio::test]
async fn a_seller_sells_from_duckdb() {
    let server = DuckDb::start_tls().await;
    let (seller, connection) = seller(&server).await;
    let path = seller.path(&format!("/connections/{connection}/test"));
    let test = seller.client.post(&path, json!({})).await.expect(200);
    assert_eq!(test.at("/data/success"), true, "{}", test.body);
    assert_eq!(test.at("/data/read_only_verified"), true, "{}", test.body);
    let path = seller.path(&format!("/connections/{connection}/schema"));
    let schema = seller.client.get(&path).await.expect(200);
    assert!(
        schema.body.to_string().contains("DECIMAL(20,5)"),
        "{}",
        schema.body
    );

    SOLD.is_sold(&seller, &connection).await;
    server.is_left().await;
}

/// Two hundred columns leave in their order, to the last digit.
#[tokio::test]
async fn two_hundred_columns_of_duckdb_leave() {
    let server = DuckDb::start();
    let (seller, connection) = seller(&server).await;
    let declared = ["BIGINT", "VARCHAR", "DECIMAL(25, 5)"];
    server.admin(&wide_table("league.wide", str::to_owned, declared));
    let table = json!({"schema": "league", "table": "wide"});
    wide_leaves(&seller, &connection, table, str::to_owned, true).await;
}

/// The server's own zone does not count: moments leave in UTC, clocks without a zone claim none, filters find both, and a moment that is compared with a clock
/// is compared in UTC. Where the configuration is locked the zone stays, and the rest is as it was.
#[tokio::test]
async fn the_zone_of_duckdb_does_not_count() {
    let server = DuckDb::start();
    server.admin("SET GLOBAL TimeZone = 'Asia/Tokyo'");
    let (seller, connection) = seller(&server).await;
    // To what it shows itself it does.
    let shown = server.admin("SELECT CAST(min(played) AS VARCHAR) FROM league.matches");
    assert_eq!(shown[0][0].as_deref(), Some("2026-01-01 09:01:00+09"));
    SOLD.is_sold(&seller, &connection).await;
    let until = "SELECT count(*) AS n FROM matches WHERE kickoff < :until";
    let parameters = json!([{"name": "until", "type": "timestamp", "required": true}]);
    let fields = json!({"sql_logic": until, "parameters": parameters});
    let asset = seller.asset(&connection, fields).await;
    let values = json!({"until": "2026-01-01T00:10:00Z"});
    let answer = seller.execute(&asset, values).await.expect(200);
    assert_eq!(answer.at("/data/answer_value"), 9, "{}", answer.body);

    let locked = DuckDb::start();
    locked.admin("SET GLOBAL TimeZone = 'Asia/Tokyo'");
    locked.admin("CREATE SCHEMA league");
    locked.admin("SET GLOBAL lock_configuration = true");
    let connection = seller.duckdb(&locked, "league").await;
    let fields = json!({"sql_logic": "SELECT 7 AS n"});
    let asset = seller.asset(&connection, fields).await;
    let answer = seller.execute(&asset, json!({})).await.expect(200);
    assert_eq!(answer.at("/data/answer_value"), 7, "{}", answer.body);
}

/// A test says where the order does not tell rows apart.
#[tokio::test]
async fn rows_of_duckdb_that_tie_are_told_by_the_test() {
    let server = DuckDb::start();
    let (seller, connection) = seller(&server).await;
    server.admin("CREATE TABLE league.shirts (n INTEGER, club VARCHAR)");
    server.admin("INSERT INTO league.shirts VALUES (1, 'a'), (7, 'b'), (7, 'c')");
    ties(&seller, &connection, json!({"table": "shirts"})).await;
}

/// A row that is asked for by its primary key is asked for without a LIMIT, which DuckDB plans as a stage of its own. Where keys are equal to the column's
/// collation the page has as many rows as it was asked for all the same, and says that there are more.
#[tokio::test]
async fn duckdb_is_asked_for_a_row_by_its_key_without_a_limit() {
    let server = DuckDb::start();
    let (seller, connection) = seller(&server).await;
    server.admin("CREATE TABLE league.words (word VARCHAR COLLATE NOCASE PRIMARY KEY, n INTEGER)");
    server.admin(
        "INSERT INTO league.words VALUES ('Goal', 1), ('goal', 2), ('post', 3), ('GOAL', 4)",
    );
    let fields =
        json!({"source": {"table": "words"}, "fields": [{"name": "n"}], "filters": ["word"]});
    let endpoint = seller.endpoint(&connection, fields).await;
    let test = seller.path(&format!("/endpoints/{endpoint}/test"));
    seller.client.get(&test).await.expect(200);
    server.writes_down();
    let page = async |asked: &str| {
        let path = seller.path(&format!("/endpoints/{endpoint}/execute?{asked}"));
        let answer = seller.client.get(&path).await.expect(200);
        let numbers = answer.at("/data/response/data").as_array().map(|rows| {
            let numbers = rows.iter().filter_map(|row| row["n"].as_i64());
            numbers.collect::<Vec<i64>>()
        });
        (
            numbers.unwrap_or_default(),
            answer.at("/data/service/pagination/has_more").clone(),
        )
    };
    assert_eq!(page("word=post").await, (vec![3], json!(false)));
    assert_eq!(page("word=none").await, (vec![], json!(false)));
    let (numbers, has_more) = page("word=goal&limit=1").await;
    assert_eq!((numbers.len(), has_more), (1, json!(true)));
    let (mut numbers, has_more) = page("word=goal").await;
    numbers.sort_unstable();
    assert_eq!((numbers, has_more), (vec![1, 2, 4], json!(false)));
    assert_eq!(page("limit=2").await.1, json!(true));
    let texts = server.texts();
    let of_words = texts.iter().filter(|text| text.contains("words"));
    let (by_key, others): (Vec<&String>, _) =
        of_words.partition(|text| text.contains("\"word\" = "));
    // But for the page of one row: three came.
    let (bounded, by_key): (Vec<&String>, Vec<&String>) =
        by_key.into_iter().partition(|text| text.contains("LIMIT"));
    assert!(by_key.len() >= 4, "{by_key:?}");
    assert!(!bounded.is_empty(), "{by_key:?}");
    assert!(
        bounded.iter().all(|text| text.contains("OFFSET")),
        "{bounded:?}"
    );
    assert!(
        others.iter().any(|text| text.contains("LIMIT 3")),
        "{others:?}"
    );
}

/// A text that writes may be saved by nobody; one that the host does not see through is refused before it is run, by what DuckDB's parser
/// says of it, or by the transaction.
#[tokio::test]
async fn duckdb_refuses_what_writes() {
    let server = DuckDb::start();
    let (seller, connection) = seller(&server).await;
    server.admin("CREATE SEQUENCE league.ids");
    for text in [
        "DELETE FROM matches",
        "COPY matches TO '/tmp/matches.csv'",
        "SELECT 1; DELETE FROM matches",
    ] {
        let path = seller.path("/assets");
        let fields = json!({"connection_id": connection, "asset_type": "CALCULATION", "name": "writes", "result_type": "number", "sql_logic": text});
        seller.client.post(&path, fields).await.expect(400);
    }
    for text in [
        "SELECT nextval('ids') AS n",
        "SELECT count(*) AS n FROM read_text('/etc/hostname')",
        "SELECT count(*) AS n FROM '/etc/hostname'",
    ] {
        let asset = seller.asset(&connection, json!({"sql_logic": text})).await;
        let path = seller.path(&format!("/assets/{asset}/execute"));
        let answer = seller.client.post(&path, json!({"params": {}})).await;
        assert_eq!(
            answer.at("/error/details/fault_code"),
            "read_only",
            "{text}: {}",
            answer.body
        );
    }
    assert_eq!(server.number("SELECT count(*) FROM league.matches"), 100);
}

/// What nobody waits for any more has no connection at DuckDB, long before it is over. DuckDB itself goes on with it to its first row, which nothing in version
/// 1 of Quack stops: that is not looked at here.
#[tokio::test]
async fn duckdb_has_no_connection_of_what_is_abandoned() {
    let server = DuckDb::start();
    let (seller, connection) = seller(&server).await;
    is_stopped(
        &seller,
        &connection,
        "SELECT sum(sleep_ms(100)) AS n FROM range(600) AS r(i)",
        || {
            server
                .asked()
                .iter()
                .any(|text| text.contains("sleep_ms(100)) AS n"))
        },
        || server.connections() > 0,
    )
    .await;
}

/// What takes longer than its asset may has no connection at DuckDB any more and costs the buyer nothing; the next one is answered. That DuckDB goes on with it
/// to its first row is not looked at here, either.
#[tokio::test]
async fn what_takes_too_long_at_duckdb_is_free() {
    const ROWS: u64 = 100;
    let server = DuckDb::start();
    let (seller, connection) = seller(&server).await;
    let text = format!("SELECT coalesce(sum(sleep_ms(:ms)), 0) AS n FROM range({ROWS}) AS r(i)");
    let asset =
        json!({"sql_logic": text, "parameters": [{"name": "ms", "type": "integer", "default": 0}]});
    let takes = |time: Duration| json!({"ms": time.as_secs() * 1_000 / ROWS});
    let runs = || server.connections() > 0;
    ends_in_time(seller, &connection, asset, takes, runs).await;
}
