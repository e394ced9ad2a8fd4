//! A SQL Server as a source, through the connector `sqlserver`. The server is of the tests; FreeTDS and tedious take it for one.

use serde_json::json;
use souk_tests::sqlserver::{self, Fate};
use souk_tests::{Company, SqlServer};

use crate::exact::Exact;
use crate::formats::Sold;
use crate::league::{ends_in_time, is_stopped};
use crate::{host, unique};

const LEAGUE: &str = r#"ATTACH ':memory:' AS league;
    CREATE TABLE league.matches (id int NOT NULL PRIMARY KEY, club "nvarchar(20)", goals int, fee "decimal(20, 5)", played "datetimeoffset(6)", kickoff "datetime2(3)", day date, seen datetime);
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 100)
    INSERT INTO league.matches SELECT n, 'Club ' || (n % 7), CASE WHEN n % 11 > 0 THEN n % 5 END, n / 8.0, strftime('%Y-%m-%dT%H:%M:%S.0000000', '2026-01-01', '+' || n || ' minutes'),
        strftime('%Y-%m-%dT%H:%M:%S.0000000', '2026-01-01', '+' || n || ' minutes'), date('2026-01-01', '+' || n || ' days'),
        strftime('%Y-%m-%dT%H:%M:%S.0030000', '2026-01-01', '+' || n || ' minutes') FROM s;"#;

const EXACT: Exact = Exact {
    schema: "dbo",
    name: str::to_owned,
    wide: ["bigint", "nvarchar(20)", "decimal(38, 5) text"],
    kinds: &[
        ("bit", "1", "true"),
        ("tinyint", "255", "255"),
        ("smallint", "-32768", "-32768"),
        ("int", "-2147483648", "-2147483648"),
        ("bigint", "-9223372036854775808", "-9223372036854775808"),
        ("real", "0.1", "0.1"),
        ("float", "0.30000000000000004", "0.30000000000000004"),
        ("smallmoney text", "'-214748.3648'", "-214748.3648"),
        (
            "money text",
            "'-922337203685477.5808'",
            "-922337203685477.5808",
        ),
        (
            "decimal(38, 5) text",
            "'12345678901234567890.00100'",
            "12345678901234567890.00100",
        ),
        (
            "numeric(38, 0) text",
            "'-99999999999999999999999999999999999999'",
            "-99999999999999999999999999999999999999",
        ),
        (
            "numeric(38, 38) text",
            "'0.00000000000000000000000000000000000001'",
            "0.00000000000000000000000000000000000001",
        ),
        ("date", "'9999-12-31'", "9999-12-31"),
        ("time(6)", "'23:59:59.999999'", "23:59:59.999999"),
        ("time(7)", "'23:59:59.9999999'", "23:59:59.9999999"),
        (
            "datetime",
            "'1969-12-31T23:59:59.9970000'",
            "1969-12-31T23:59:59.997000",
        ),
        (
            "smalldatetime",
            "'2079-06-06T23:59:00.0000000'",
            "2079-06-06T23:59:00.000000",
        ),
        (
            "datetime2(3)",
            "'1969-12-31T23:59:59.9990000'",
            "1969-12-31T23:59:59.999000",
        ),
        (
            "datetime2(6)",
            "'1969-12-31T23:59:59.9999990'",
            "1969-12-31T23:59:59.999999",
        ),
        (
            "datetime2(7)",
            "'1969-12-31T23:59:59.9999999'",
            "1969-12-31T23:59:59.9999999",
        ),
        (
            "datetimeoffset(6)",
            "'1970-01-01T05:29:59.9999990+05:30'",
            "1969-12-31T23:59:59.999999Z",
        ),
        (
            "datetimeoffset(7)",
            "'2026-01-01T09:01:00.0000001+09:00'",
            "2026-01-01T09:01:00.0000001+09:00",
        ),
        ("char(4)", "'ab'", "ab  "),
        ("varchar(20)", r#"'it''s "ä" €'"#, r#"it's "ä" €"#),
        ("varchar(max)", "'ä'", "ä"),
        ("text", "'ä'", "ä"),
        ("nchar(4)", "'äb'", "äb  "),
        (
            "nvarchar(40)",
            r#"'it''s "ä", 日本 😀 \'"#,
            r#"it's "ä", 日本 😀 \"#,
        ),
        ("nvarchar(max)", "'日本 😀'", "日本 😀"),
        ("ntext", "'日本 😀'", "日本 😀"),
        ("xml", r#"'<a b="1">日本</a>'"#, r#"<a b="1">日本</a>"#),
        (
            "uniqueidentifier",
            "'0e984725-c51c-4bf4-9960-e1c80e27aba0'",
            "0E984725-C51C-4BF4-9960-E1C80E27ABA0",
        ),
        ("binary(2)", "x'00ff'", "AP8="),
        ("varbinary(8)", "x'00ff'", "AP8="),
        ("varbinary(max)", "x'00ff'", "AP8="),
        ("image", "x'00ff'", "AP8="),
        ("sql_variant", "7", "7"),
    ],
    empty_for_null: None,
};

async fn seller(server: &SqlServer, user: &str) -> (Company, String) {
    server.admin(LEAGUE);
    let seller = host().await.company(&unique("sqlserver")).await;
    let connection = seller.sqlserver(server, user).await;
    (seller, connection)
}

/// A seller connects a SQL Server by a login and a certificate of its own, sees that it works, that it refuses writes and what is in it, and
/// sells an asset and an endpoint of it; a buyer pays and reads pages, filtered, to the last digit.
#[tokio::test]
async fn a_seller_sells_from_sqlserver() {
    let server = SqlServer::start().await;
    let (seller, connection) = seller(&server, sqlserver::USER).await;
    let path = seller.path(&format!("/connections/{connection}/test"));
    let test = seller.client.post(&path, json!({})).await.expect(200);
    assert_eq!(test.at("/data/success"), true, "{}", test.body);
    // The source itself refused to write.
    let tried = server.seen().writes;
    assert!(
        tried.iter().all(|(_, fate)| *fate == Fate::Refused) && !tried.is_empty(),
        "{tried:?}"
    );
    assert_eq!(test.at("/data/read_only_verified"), true, "{}", test.body);
    let path = seller.path(&format!("/connections/{connection}/schema"));
    let schema = seller.client.get(&path).await.expect(200);
    let schema = schema.body.to_string();
    assert!(schema.contains("datetimeoffset(6)"), "{schema}");

    let asset = seller
        .asset(&connection, json!({"sql_logic": "SELECT SUM(goals) AS goals FROM matches WHERE club = :club AND goals >= :least",
            "parameters": [{"name": "club", "type": "string"}, {"name": "least", "type": "integer"}]}))
        .await;
    let digits = seller
        .asset(
            &connection,
            json!({"sql_logic": "SELECT CAST('12345678901234567890.00100' AS decimal(38, 5)) AS fee"}),
        )
        .await;
    let endpoint = seller
        .endpoint(&connection, json!({"slug": "matches", "source": {"schema": "league", "table": "matches"},
            "fields": [{"name": "id"}, {"name": "club"}, {"name": "goals"}, {"name": "fee"}, {"name": "played"}, {"name": "kickoff"}, {"name": "day"}, {"name": "seen"}],
            "order_by": ["id"],
            "filters": [{"field": "club", "operators": ["eq", "like"]}, {"field": "goals", "operators": ["eq", "gt", "in"]}, {"field": "fee", "operators": ["gte"]},
                {"field": "played", "operators": ["lt", "in"]}, {"field": "kickoff", "operators": ["lt"]}, {"field": "day", "operators": ["eq"]}, {"field": "seen", "operators": ["eq"]}]}))
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
            "kickoff": "2026-01-01T00:01:00.000000", "day": "2026-01-02", "seen": "2026-01-01T00:01:00.003000"})
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
        ("seen=2026-01-01T00:01:00.003", vec![1]),
    ] {
        let page = page(query).await;
        let rows = page.at("/data/response/data").as_array().unwrap().clone();
        let ids: Vec<i64> = rows.iter().map(|row| row["id"].as_i64().unwrap()).collect();
        assert_eq!(ids, wanted, "{query}");
    }
    let seen = server.seen();
    assert_eq!((seen.running, seen.transactions), (0, 0));
}

/// A value of every type and NULL in each, what finds no row, and two hundred columns: each digit in its place.
#[tokio::test]
async fn values_of_sqlserver_leave_to_the_last_digit() {
    let server = SqlServer::start().await;
    let (seller, connection) = seller(&server, sqlserver::USER).await;
    server.admin(&EXACT.tables());
    EXACT.leaves(&seller, &connection).await;
}

/// A moment that is kept on another clock than UTC's is the same moment, and a clock without a zone claims none.
#[tokio::test]
async fn zones_of_sqlserver_do_not_count() {
    let server = SqlServer::start().await;
    server.admin(
        r#"CREATE TABLE dbo.shifts (id int NOT NULL PRIMARY KEY, seen "datetimeoffset(6)", shown "datetime2(6)", rough datetime);
            INSERT INTO dbo.shifts VALUES (1, '2026-01-01T09:01:00.5000000+09:00', '2026-01-01T09:01:00.5000000', '2026-01-01T09:01:00.0030000');
            INSERT INTO dbo.shifts VALUES (2, '2025-12-31T19:31:00.0000010-04:30', '2025-12-31T19:31:00.0000010', '2025-12-31T19:31:00.0000000');
            INSERT INTO dbo.shifts VALUES (3, NULL, NULL, NULL);"#,
    );
    let (seller, connection) = seller(&server, sqlserver::USER).await;
    let names = ["id", "seen", "shown", "rough"];
    let definition = json!({"source": {"schema": "dbo", "table": "shifts"}, "order_by": ["id"], "fields": names.map(|name| json!({"name": name}))});
    let sold = Sold::new(&seller, &connection, definition, 1, 10).await;
    let page = sold.feed.get(&sold.path).await.expect(200);
    assert_eq!(
        page.at("/data/response/data"),
        &json!([
            {"id": 1, "seen": "2026-01-01T00:01:00.500000Z", "shown": "2026-01-01T09:01:00.500000", "rough": "2026-01-01T09:01:00.003000"},
            {"id": 2, "seen": "2026-01-01T00:01:00.000001Z", "shown": "2025-12-31T19:31:00.000001", "rough": "2025-12-31T19:31:00.000000"},
            {"id": 3, "seen": null, "shown": null, "rough": null},
        ])
    );
}

/// A login that may write is told as one, by the server's own word: nothing is written, since triggers would run.
#[tokio::test]
async fn a_login_of_sqlserver_that_may_write_is_told() {
    let server = SqlServer::start().await;
    server.admin("CREATE TABLE dbo.stock (id int); INSERT INTO dbo.stock VALUES (1);");
    let (seller, connection) = seller(&server, sqlserver::WRITER).await;
    let path = seller.path(&format!("/connections/{connection}/test"));
    let test = seller.client.post(&path, json!({})).await.expect(200);
    assert_eq!(test.at("/data/read_only_verified"), false, "{}", test.body);
    assert_eq!(server.seen().writes, []);
}

/// What no word tells, a function that writes while it is asked, the server refuses to a login that may only read; to one that may write it is undone.
#[tokio::test]
async fn what_a_function_of_sqlserver_writes_does_not_stay() {
    for (user, fate) in [
        (sqlserver::USER, Fate::Refused),
        (sqlserver::WRITER, Fate::Undone),
    ] {
        let server = SqlServer::start().await;
        server.admin(
            "CREATE TABLE dbo.stock (id int); INSERT INTO dbo.stock VALUES (1); INSERT INTO dbo.stock VALUES (2);",
        );
        let (seller, connection) = seller(&server, user).await;
        for text in [
            "SELECT id INTO copy FROM stock",
            "SELECT 1 EXEC clear_stock",
            "SELECT 1e5DELETE FROM stock",
        ] {
            let path = seller.path("/assets");
            let fields = json!({"connection_id": connection, "asset_type": "CALCULATION", "name": "writes", "result_type": "number", "sql_logic": text});
            seller.client.post(&path, fields).await.expect(400);
        }
        let writes = json!({"sql_logic": "SELECT dbo.cleared(N'stock') AS n"});
        let writes = seller.asset(&connection, writes).await;
        let answer = seller.execute(&writes, json!({})).await;
        if fate == Fate::Refused {
            let refused = answer.expect_error(502, "SOURCE_ERROR");
            let reason = refused.at("/error/details/reason");
            assert_eq!(reason, "permission", "{}", refused.body);
        } else {
            assert_eq!(answer.expect(200).at("/data/answer_value"), 1);
        }
        let seen = server.seen();
        let wrote = ("DELETE FROM dbo.stock".to_owned(), fate);
        assert!(seen.writes.contains(&wrote), "{seen:?}");
        // A connection's test tries one, too, where the server lets nobody write.
        let stays = |(_, fate): &(String, Fate)| matches!(fate, Fate::Kept | Fate::Open);
        assert!(!seen.writes.iter().any(stays), "{seen:?}");
        assert_eq!(seen.transactions, 0, "{seen:?}");
        let count = json!({"sql_logic": "SELECT COUNT(*) AS n FROM stock"});
        let count = seller.asset(&connection, count).await;
        let left = seller.execute(&count, json!({})).await.expect(200);
        assert_eq!(left.at("/data/answer_value"), 2);
    }
}

/// What nobody waits for any more is stopped at SQL Server.
#[tokio::test]
async fn sqlserver_stops_what_is_abandoned() {
    let server = SqlServer::start().await;
    let (seller, connection) = seller(&server, sqlserver::USER).await;
    is_stopped(
        &seller,
        &connection,
        "SELECT id FROM endless",
        || {
            let statements = server.seen().statements;
            statements.contains(&"SELECT id FROM endless".to_owned())
        },
        || {
            let seen = server.seen();
            seen.attentions == 0 || seen.running + seen.transactions > 0
        },
    )
    .await;
}

/// What takes longer than its asset may is stopped at SQL Server, its transaction undone, and costs the buyer nothing; the next one is answered.
#[tokio::test]
async fn what_takes_too_long_at_sqlserver_is_free() {
    let server = SqlServer::start().await;
    let (seller, connection) = seller(&server, sqlserver::USER).await;
    let asset = json!({"sql_logic": "SELECT COUNT(*) AS n FROM matches"});
    let takes = |time| {
        server.takes(time);
        json!({})
    };
    let runs = || {
        let seen = server.seen();
        seen.running + seen.transactions > 0
    };
    ends_in_time(seller, &connection, asset, takes, runs).await;
}
