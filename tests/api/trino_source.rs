//! A Trino as a source, through the connector `trino`. The server is of the tests; Trino's own client takes it for one.

use serde_json::json;
use souk_tests::{Company, Trino, trino};

use crate::exact::Exact;
use crate::league::{League, a_token_lets_in, ends_in_time, is_stopped};
use crate::{host, unique};

const LEAGUE: &str = r#"ATTACH ':memory:' AS league;
    CREATE TABLE league.matches (id bigint NOT NULL, club varchar(20), goals integer, fee decimal(20, 5), played "timestamp(6) with time zone", kickoff timestamp(6), day date, tags "array(varchar)");
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 100)
    INSERT INTO league.matches SELECT n, 'Club ' || (n % 7), CASE WHEN n % 11 > 0 THEN n % 5 END, n / 8.0, 1767225600000000 + n * 60000000,
        strftime('%Y-%m-%d %H:%M:%S.000000', '2026-01-01', '+' || n || ' minutes'), date('2026-01-01', '+' || n || ' days'), json_array('n', '' || n) FROM s;"#;

const SOLD: League = League {
    schema: "league",
    name: str::to_owned,
    digits: Some("SELECT DECIMAL '12345678901234567890.00100' AS fee"),
};

const EXACT: Exact = Exact {
    schema: "league",
    name: str::to_owned,
    wide: ["bigint", "varchar", "decimal(38, 5) text"],
    kinds: &[
        ("boolean", "1", "true"),
        ("tinyint", "-128", "-128"),
        ("smallint", "-32768", "-32768"),
        ("integer", "-2147483648", "-2147483648"),
        ("bigint", "-9223372036854775808", "-9223372036854775808"),
        ("real", "0.1", "0.1"),
        ("double", "0.30000000000000004", "0.30000000000000004"),
        (
            "decimal(38, 5) text",
            "'12345678901234567890.00100'",
            "12345678901234567890.00100",
        ),
        (
            "varchar",
            r#"'it''s "ä", 日本 😀 \'"#,
            r#"it's "ä", 日本 😀 \"#,
        ),
        ("char(4)", "'ab  '", "ab  "),
        ("varbinary", "x'00ff'", "AP8="),
        ("json", r#"'{"a":[1.50,null]}'"#, r#"{"a":[1.50,null]}"#),
        ("date", "'9999-12-31'", "9999-12-31"),
        ("time(6)", "'23:59:59.999999'", "23:59:59.999999"),
        ("time(9)", "'23:59:59.999999999'", "23:59:59.999999999"),
        (
            "time(3) with time zone",
            "'12:00:00.000+01:00'",
            "12:00:00.000+01:00",
        ),
        (
            "timestamp(3)",
            "'1969-12-31 23:59:59.999'",
            "1969-12-31T23:59:59.999000",
        ),
        (
            "timestamp(6)",
            "'1969-12-31 23:59:59.999999'",
            "1969-12-31T23:59:59.999999",
        ),
        (
            "timestamp(12)",
            "'1969-12-31 23:59:59.999999999999'",
            "1969-12-31 23:59:59.999999999999",
        ),
        (
            "timestamp(6) with time zone",
            "-1",
            "1969-12-31T23:59:59.999999Z",
        ),
        (
            "timestamp(9) with time zone",
            "'1969-12-31 23:59:59.999999999 UTC'",
            "1969-12-31 23:59:59.999999999 UTC",
        ),
        ("interval year to month", "'1-2'", "1-2"),
        (
            "interval day to second",
            "'2 03:04:05.500'",
            "2 03:04:05.500",
        ),
        (
            "uuid",
            "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
        ("ipaddress", "'2001:db8::1'", "2001:db8::1"),
        ("HyperLogLog", "'AgwBAA=='", "AgwBAA=="),
        (
            "array(decimal(38, 5))",
            r#"'["12345678901234567890.00100",null]'"#,
            "[12345678901234567890.00100,null]",
        ),
        (
            "map(varchar, bigint)",
            r#"'{"a":9007199254740993}'"#,
            r#"{"a":9007199254740993}"#,
        ),
        (
            "row(n decimal(38, 5), at timestamp(6) with time zone)",
            r#"'["0.00001","1969-12-31 23:59:59.999999 UTC"]'"#,
            r#"{"n":0.00001,"at":"1969-12-31T23:59:59.999999Z"}"#,
        ),
    ],
    empty_for_null: None,
};

async fn seller(server: &Trino) -> (Company, String) {
    server.admin(LEAGUE);
    let seller = host().await.company(&unique("trino")).await;
    let connection = seller.trino(server, "league").await;
    (seller, connection)
}

/// A seller connects a Trino by a password and a certificate of its own, sees that it works, that it refuses writes and what is in it, and
/// sells an asset and an endpoint of it; a buyer pays and reads pages, filtered, to the last digit.
#[tokio::test]
async fn a_seller_sells_from_trino() {
    let server = Trino::start_tls().await;
    let (seller, connection) = seller(&server).await;
    let path = seller.path(&format!("/connections/{connection}/test"));
    let test = seller.client.post(&path, json!({})).await.expect(200);
    assert_eq!(test.at("/data/success"), true, "{}", test.body);
    // The source itself refused to write.
    let tried = server.requests();
    assert!(
        tried
            .iter()
            .any(|line| line.starts_with("POST INSERT INTO")),
        "{tried:?}"
    );
    assert_eq!(test.at("/data/read_only_verified"), true, "{}", test.body);
    let path = seller.path(&format!("/connections/{connection}/schema"));
    let schema = seller.client.get(&path).await.expect(200);
    assert!(
        schema.body.to_string().contains("array(varchar)"),
        "{}",
        schema.body
    );

    SOLD.is_sold(&seller, &connection).await;
    assert_eq!((server.running(), server.transactions()), (0, 0));
}

/// A value of every type and NULL in each, what finds no row, and two hundred columns: each digit in its place.
#[tokio::test]
async fn values_of_trino_leave_to_the_last_digit() {
    let server = Trino::start().await;
    let (seller, connection) = seller(&server).await;
    server.admin(&EXACT.tables());
    EXACT.leaves(&seller, &connection).await;
}

/// A text that writes may be saved by nobody; one that the host does not see through is not sent, and whatever is sent is asked in a transaction that
/// only reads.
#[tokio::test]
async fn trino_refuses_what_writes() {
    const BEGIN: &str = "START TRANSACTION READ ONLY";
    const COUNT: &str = "SELECT COUNT(*) AS n FROM matches";
    let server = Trino::start().await;
    let (seller, connection) = seller(&server).await;
    for text in [
        "DELETE FROM matches",
        "WITH a AS (SELECT 1) INSERT INTO matches SELECT * FROM a",
        "SELECT 1; DELETE FROM matches",
        "EXECUTE IMMEDIATE 'DELETE FROM matches'",
        "CALL system.runtime.kill_query('20261125_120000_00000_souk1')",
    ] {
        let path = seller.path("/assets");
        let fields = json!({"connection_id": connection, "asset_type": "CALCULATION", "name": "writes", "result_type": "number", "sql_logic": text});
        seller.client.post(&path, fields).await.expect(400);
    }
    // It would change what its session may, of which a transaction keeps nobody.
    let text = "WITH SESSION query_max_run_time = '100d' SELECT COUNT(*) AS n FROM matches";
    let changes = seller.asset(&connection, json!({"sql_logic": text})).await;
    let refused = seller.execute(&changes, json!({})).await;
    let told = refused.at("/error/details/fault_code");
    assert_eq!(told, "read_only", "{}", refused.body);
    let count = seller.asset(&connection, json!({"sql_logic": COUNT})).await;
    let left = seller.execute(&count, json!({})).await.expect(200);
    assert_eq!(left.at("/data/answer_value"), 100);
    let asked = server.requests();
    let sent: Vec<&str> = (asked.iter())
        .filter_map(|line| line.strip_prefix("POST "))
        .collect();
    assert_eq!(sent, [BEGIN, COUNT, "ROLLBACK"], "{asked:?}");
}

/// Moments that are kept on another clock than UTC's are the same moments, and clocks without a zone claim none.
#[tokio::test]
async fn zones_of_trino_do_not_count() {
    for minutes in [9 * 60, -(4 * 60 + 30)] {
        let server = Trino::start().await;
        server.keeps_moments(minutes);
        let (seller, connection) = seller(&server).await;
        SOLD.is_sold(&seller, &connection).await;
    }
}

/// Who connects without TLS sends no password, and is told so.
#[tokio::test]
async fn a_password_is_not_sent_to_trino_in_clear_text() {
    let server = Trino::start().await;
    let seller = host().await.company(&unique("trino")).await;
    let credentials = json!({"username": "souk", "password": "pässw'ord"}).to_string();
    let connection = seller
        .connection("trino", json!({"credential_type": "PASSWORD", "credentials": credentials, "base_url": server.base_url(), "database": "memory"}))
        .await;
    let path = seller.path(&format!("/connections/{connection}/test"));
    let test = seller.client.post(&path, json!({})).await;
    assert!(
        test.body.to_string().contains("clear text"),
        "{}",
        test.body
    );
    assert_eq!(server.requests(), [""; 0]);
}

/// A token that the host shows lets a seller in; another one does not, and is told as what is wrong.
#[tokio::test]
async fn a_token_lets_in_at_trino() {
    let server = Trino::start_tls().await;
    let place =
        json!({"base_url": server.base_url(), "ca_pem": server.ca_pem, "database": trino::CATALOG});
    a_token_lets_in("trino", place, trino::TOKEN, "Invalid credentials").await;
}

/// What nobody waits for any more is stopped at Trino, and its transaction ended.
#[tokio::test]
async fn trino_stops_what_is_abandoned() {
    let server = Trino::start().await;
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
        || server.running() + server.transactions() > 0,
    )
    .await;
    // Where it stood when the caller left depends on who was faster.
    let requests = server.requests();
    let is_stopped = requests.iter().any(|line| line.starts_with("DELETE "));
    assert!(is_stopped, "{requests:?}");
}

/// What takes longer than its asset may is stopped at Trino, its transaction ended, and costs the buyer nothing; the next one is answered.
#[tokio::test]
async fn what_takes_too_long_at_trino_is_free() {
    let server = Trino::start().await;
    let (seller, connection) = seller(&server).await;
    let asset = json!({"sql_logic": "SELECT COUNT(*) AS n FROM matches"});
    let takes = |time| {
        server.takes(time);
        json!({})
    };
    let runs = || server.running() + server.transactions() > 0;
    ends_in_time(seller, &connection, asset, takes, runs).await;
}
