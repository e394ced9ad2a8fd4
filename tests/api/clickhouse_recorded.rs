//! ClickHouse through the connector `clickhouse`, without its engine: over what that was recorded to answer. What the engine itself says is in
//! `clickhouse_source.rs`, where it is installed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::Company;
use souk_tests::clickhouse::recorded::{self, Recorded};
use souk_tests::clickhouse::{PASSWORD, USER};

use crate::breadth::spelling::{digits, records};
use crate::formats::{Raw, Sold};
use crate::league::is_stopped;
use crate::paid_faults::Sale;
use crate::{host, unique};

/// A loaded machine gets a hundred times as long as it takes.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

fn place(server: &Recorded, password: &str) -> Value {
    let credentials = json!({"username": USER, "password": password}).to_string();
    json!({"credential_type": "PASSWORD", "credentials": credentials, "base_url": server.base_url(), "database": recorded::SCHEMA})
}

async fn seller(server: &Recorded) -> (Company, String) {
    let seller = host().await.company(&unique("clickhouse")).await;
    let fields = place(server, PASSWORD);
    let connection = seller.connection("clickhouse", fields).await;
    (seller, connection)
}

/// An endpoint of all columns of a table, in the order of the first one.
fn definition(table: &str, names: &[&str]) -> Value {
    let fields: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    json!({"source": {"schema": recorded::SCHEMA, "table": table}, "fields": fields, "order_by": [names[0]]})
}

/// The rows that its seller reads, as CSV has them: to the last digit.
async fn read(
    seller: &Company,
    connection: &str,
    table: &str,
    names: &[&str],
) -> Vec<Vec<Option<String>>> {
    let mut definition = definition(table, names);
    definition["slug"] = unique(table).into();
    let endpoint = seller.endpoint(connection, definition).await;
    let path = seller.path(&format!("/endpoints/{endpoint}/execute?limit=10"));
    let csv = Raw::get(&seller.client, &path, &[("accept", "text/csv")]).await;
    assert_eq!(csv.status, 200, "{table}: {}", csv.text());
    let mut rows = records(&csv.text());
    let head: Vec<_> = names.iter().map(|name| Some((*name).to_owned())).collect();
    assert_eq!(rows.remove(0), head, "{table}");
    rows
}

/// The connection is tried, and the server itself refuses to write; what it has is seen. With another password it is told what is wrong, and the
/// password is not shown.
#[tokio::test]
async fn a_recorded_clickhouse_is_connected() {
    let server = Recorded::start().await;
    let (seller, connection) = seller(&server).await;
    let path = seller.path(&format!("/connections/{connection}/test"));
    let test = seller.client.post(&path, json!({})).await.expect(200);
    assert_eq!(test.at("/data/success"), true, "{}", test.body);
    assert_eq!(test.at("/data/read_only_verified"), true, "{}", test.body);
    let path = seller.path(&format!("/connections/{connection}/schema"));
    let schema = seller.client.get(&path).await.expect(200);
    let told = schema.body.to_string();
    for kind in ["Decimal(76, 68)", "LowCardinality(Nullable(String))"] {
        assert!(told.contains(kind), "{told}");
    }

    let wrong = "another one";
    let fields = place(&server, wrong);
    let connection = seller.connection("clickhouse", fields).await;
    let path = seller.path(&format!("/connections/{connection}/test"));
    let test = seller.client.post(&path, json!({})).await;
    let told = test.body.to_string();
    assert_ne!(test.at("/data/success"), true, "{told}");
    assert!(told.contains("Authentication failed"), "{told}");
    assert!(!told.contains(wrong), "{told}");
}

/// Where the server stops none of souk's statements the test of the connection says so, and which right it takes; it works all the same.
#[tokio::test]
async fn a_recorded_clickhouse_that_stops_nothing_is_told() {
    let server = Recorded::start().await;
    let (seller, connection) = seller(&server).await;
    let path = seller.path(&format!("/connections/{connection}/test"));
    let right = "GRANT SELECT(query_id, user, query) ON system.processes";
    for is_missing in [false, true] {
        let test = seller.client.post(&path, json!({})).await.expect(200);
        assert_eq!(test.at("/data/success"), true, "{}", test.body);
        assert_eq!(test.at("/data/read_only_verified"), true, "{}", test.body);
        let warnings = test.at("/data/warnings").to_string();
        assert_eq!(warnings.contains(right), is_missing, "{warnings}");
        server.stops_nothing();
    }
}

/// A row of every type, one without a value in any of them, and a table without a row.
#[tokio::test]
async fn values_of_a_recorded_clickhouse_leave_to_the_last_digit() {
    let server = Recorded::start().await;
    let (seller, connection) = seller(&server).await;
    let letters: Vec<String> = ('a'..='m').map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    let expected: &[(&str, &[&str])] = &[
        (
            "integers",
            &[
                "-128",
                "255",
                "-32768",
                "65535",
                "-2147483648",
                "4294967295",
                "-9223372036854775808",
                "18446744073709551615",
                "-170141183460469231731687303715884105728",
                "340282366920938463463374607431768211455",
                "-57896044618658097711785492504343953926634992332820282019728792003956564819968",
                "115792089237316195423570985008687907853269984665640564039457584007913129639935",
            ],
        ),
        (
            "floats",
            &[
                "0.1",
                "0.1",
                "NaN",
                "-Infinity",
                "Infinity",
                "-0.0",
                "1.7976931348623157e308",
                "1.5",
            ],
        ),
        (
            "decimals",
            &[
                "-12.340",
                "0.000000001",
                "12345678901234567890.00100",
                "-0.00000000000000000000000000000000000000000000000000000000000000000001",
                "7",
            ],
        ),
        (
            "texts",
            &[
                "",
                "grüße \"quoted\" \\ 日本 😀",
                "ab",
                "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
                "b'x",
                "z",
                "192.168.0.1",
                "2001:db8::1",
                "low",
                "true",
                "false",
                "3",
            ],
        ),
        (
            "days",
            &[
                "2149-06-06",
                "1900-01-01",
                "2026-11-20T09:00:00.000000Z",
                "2026-11-20T08:00:00.000001Z",
                "1969-12-31T23:59:59.500000Z",
                "2026-11-20T08:00:00.123456789Z",
                "2026-11-20T08:00:00.000000Z",
                "2026-11-20T08:00:00.250000Z",
            ],
        ),
        (
            "times",
            &["10:20:30.123456789", "-00:00:05", "[\"00:00:01.5\"]"],
        ),
        (
            "nested",
            &[
                "[1,null,3]",
                "[]",
                "[[\"x\"],[]]",
                "[1,\"two\",null]",
                r#"{"n":1,"odd name":[["k\"",18446744073709551615]]}"#,
                r#"{"a":1.5,"b":"NaN"}"#,
                r#"{"7":["2024-02-29"]}"#,
                "5",
                "[1.5,2.0]",
                "[1.50]",
                "[\"2026-11-20T08:00:00.500000Z\"]",
                "[\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\"]",
                "[true,false]",
            ],
        ),
    ];
    for (table, values) in expected {
        let rows = read(&seller, &connection, table, &letters[..values.len()]).await;
        assert_eq!(rows.len(), 1, "{table}");
        // How a float is spelled says nothing of it.
        let spelled = |text: &str| match *table {
            "floats" => digits(text),
            _ => text.to_owned(),
        };
        let found: Vec<_> = rows[0]
            .iter()
            .map(|value| value.as_deref().map(spelled))
            .collect();
        let wanted: Vec<_> = values.iter().map(|text| Some(spelled(text))).collect();
        assert_eq!(found, wanted, "{table}");
    }
    let nulls = read(&seller, &connection, "nulls", &letters[..11]).await;
    let missing: Vec<Option<String>> = vec![None; 11];
    assert_eq!(nulls, [missing]);
    let none = read(&seller, &connection, "empty", &["n", "t"]).await;
    assert!(none.is_empty(), "{none:?}");
}

/// Pages are windows of the rows, each of which a buyer reads once; what lies behind the last row costs nothing.
#[tokio::test]
async fn pages_of_a_recorded_clickhouse_follow_each_other() {
    let server = Recorded::start().await;
    let (seller, connection) = seller(&server).await;
    let definition = definition("rows", &["n", "t", "o"]);
    let sold = Sold::new(&seller, &connection, definition, 1, 100).await;
    let mut seen = 0;
    for start in [0, 40, 80, 100] {
        let path = format!("{}?limit=40&start={start}", sold.path);
        let page = sold.feed.get(&path).await.expect(200);
        let rows = page.at("/data/response/data").as_array();
        for row in rows.unwrap_or_else(|| panic!("{}", page.body)) {
            seen += 1;
            assert_eq!((&row["n"], &row["t"]), (&json!(seen), &json!("xxxxx")));
            let other = if seen % 3 == 0 {
                Value::Null
            } else {
                json!(seen)
            };
            assert_eq!(row["o"], other);
        }
    }
    assert_eq!(seen, 100);
    assert_eq!(sold.buyer.credits().await, (100 - 3, 0));
}

/// An asset whose caller says what becomes of it, within this time.
async fn moody(server: &Recorded, timeout_ms: u32) -> Sale {
    let (seller, connection) = seller(server).await;
    let text = format!("SELECT mood FROM {} WHERE mood = :mood", recorded::MOODS);
    let asset = json!({"result_type": "string", "sql_logic": text, "timeout_ms": timeout_ms,
        "parameters": [{"name": "mood", "type": "string", "default": "fine"}]});
    Sale::of(seller, &connection, asset).await
}

/// An error behind rows that were sent already is an error, whichever way the server tells it: no row is sold.
#[tokio::test]
async fn an_error_behind_rows_of_a_recorded_clickhouse_sells_none() {
    let server = Recorded::start().await;
    let sale = moody(&server, 20_000).await;
    for mood in [recorded::BREAKS, recorded::BREAKS_BARE] {
        let refusal = sale.buy(json!({"mood": mood})).await;
        sale.assert_free(refusal, 502, "SOURCE_ERROR", "source")
            .await;
    }
    sale.assert_works(json!({"mood": "fine"})).await;
}

/// What takes too long is killed at the server, under the name that it was asked under; it costs the buyer nothing.
#[tokio::test]
async fn what_takes_too_long_at_a_recorded_clickhouse_is_killed() {
    let server = Recorded::start().await;
    let sale = moody(&server, 3_000).await;
    let refusal = sale.buy(json!({"mood": recorded::HANGS})).await;
    sale.assert_free(refusal, 504, "EXECUTION_TIMEOUT", "source")
        .await;
    let since = Instant::now();
    while server.running() > 0 {
        assert!(since.elapsed() < STOPPED_WITHIN, "it goes on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let statements = server.statements();
    let is_asked = |begin: &str| statements.iter().any(|text| text.starts_with(begin));
    assert!(
        is_asked("KILL QUERY WHERE query_id = 'souk-"),
        "{statements:?}"
    );
    sale.assert_works(json!({"mood": "fine"})).await;
}

/// So is what nobody waits for any more, long before its time is over.
#[tokio::test]
async fn what_is_abandoned_at_a_recorded_clickhouse_is_killed() {
    let server = Recorded::start().await;
    let (seller, connection) = seller(&server).await;
    let text = format!("SELECT n FROM {}", recorded::ENDLESS);
    let runs = || server.running() > 0;
    is_stopped(&seller, &connection, &text, runs, runs).await;
}
