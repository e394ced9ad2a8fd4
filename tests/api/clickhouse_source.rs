//! ClickHouse's engine as a source, through the connector `clickhouse`. What is ignored here runs under `tests/run --all-engines`.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::clickhouse::{self, Recorded};
use souk_tests::{ClickHouse, Company};

use crate::formats::Sold;
use crate::league::a_token_lets_in;
use crate::pages::ids;
use crate::paid_faults::Sale;
use crate::{host, unique};

const LEAGUE: &[&str] = &[
    "CREATE TABLE matches (id Int32, club String, goals Nullable(Int32), fee Decimal(20, 5), views UInt64, played DateTime, tags Array(String)) ENGINE = MergeTree ORDER BY id",
    "INSERT INTO matches SELECT number, concat('Club ', toString(number % 7)), if(number % 11 = 0, NULL, number % 5), toDecimal64(number, 5) / 3, 18446744073709551615 - number, toDateTime('2026-01-01 00:00:00', 'UTC') + INTERVAL number MINUTE, ['n', toString(number)] FROM numbers(1, 100)",
];

async fn seller() -> (Company, String, String) {
    let server = ClickHouse::shared();
    let database = server.database(LEAGUE);
    let seller = host().await.company(&unique("clickhouse")).await;
    let connection = seller.clickhouse(server, &database).await;
    (seller, connection, database)
}

/// A token that the host shows lets a seller in over TLS; another one does not.
#[tokio::test]
async fn a_token_lets_in_at_clickhouse() {
    let server = Recorded::start_tls().await;
    let place = json!({"base_url": server.base_url(), "ca_pem": server.ca_pem});
    a_token_lets_in(
        "clickhouse",
        place,
        clickhouse::TOKEN,
        "Authentication failed",
    )
    .await;
}

/// A seller connects a ClickHouse, sees that it works and what is in it, and sells an asset and an endpoint of it; a buyer pays and reads
/// pages, filtered, to the last digit.
#[tokio::test]
#[ignore = "needs chdb, 600 MB: tests/run --all-engines"]
async fn real_clickhouse_is_sold_from() {
    let (seller, connection, database) = seller().await;
    let path = seller.path(&format!("/connections/{connection}/test"));
    let test = seller.client.post(&path, json!({})).await.expect(200);
    assert_eq!(test.at("/data/success"), true, "{}", test.body);
    let path = seller.path(&format!("/connections/{connection}/schema"));
    let schema = seller.client.get(&path).await.expect(200);
    assert!(
        schema.body.to_string().contains("Array(String)"),
        "{}",
        schema.body
    );

    let asset = seller
        .asset(&connection, json!({"sql_logic": "SELECT SUM(goals) FROM matches WHERE club = :club AND goals >= :least",
            "parameters": [{"name": "club", "type": "string"}, {"name": "least", "type": "integer"}]}))
        .await;
    let ratio = seller
        .asset(&connection, json!({"sql_logic": "SELECT SUM(id) / :n FROM matches WHERE (:t IS NULL OR club = :t)",
            "parameters": [{"name": "n", "type": "number"}, {"name": "t", "type": "string", "required": false}]}))
        .await;
    let endpoint = seller
        .endpoint(&connection, json!({"slug": "matches", "source": {"schema": database, "table": "matches"},
            "fields": [{"name": "id"}, {"name": "club"}, {"name": "goals"}, {"name": "fee"}, {"name": "views"}, {"name": "played"}, {"name": "tags"}],
            "order_by": ["id"],
            "filters": [{"field": "club", "operators": ["eq", "like"]}, {"field": "goals", "operators": ["eq", "gt", "in"]}, {"field": "fee", "operators": ["gte"]},
                {"field": "views", "operators": ["in"]}, {"field": "played", "operators": ["lt", "in"]}]}))
        .await;
    seller.publish(&asset, 2).await;
    seller.publish(&ratio, 2).await;
    seller.publish(&endpoint, 1).await;

    let buyer = host().await.buyer(&unique("buyer"), 100).await;
    buyer.buy(&asset).await;
    buyer.buy(&ratio).await;
    let bought = buyer.buy(&endpoint).await;
    let reader = buyer
        .client
        .with_key(&bought.text("/data/endpoint_key/key"));
    let answer = buyer
        .execute(&asset, json!({"club": "Club 3", "least": 2}))
        .await;
    assert_eq!(answer.expect(200).at("/data/answer_value"), 27);
    let answer = buyer.execute(&ratio, json!({"n": 2.5})).await.expect(200);
    assert_eq!(answer.at("/data/answer_value").as_f64(), Some(2020.0));

    let page = async |query: &str| {
        let path = format!("/endpoints/v1/{}/matches?{query}", seller.handle);
        reader.get(&path).await.expect(200)
    };
    let first = page("limit=2").await;
    assert_eq!(first.at("/data/service/billing/credits_used"), 1);
    let rows = first.at("/data/response/data").clone();
    assert_eq!(rows[0]["played"], "2026-01-01T00:01:00.000000Z");
    assert_eq!(rows[0]["tags"], json!(["n", "1"]));
    let text = rows.to_string();
    assert!(
        text.contains("18446744073709551614") && text.contains("0.33333"),
        "{text}"
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
        ("fee[gte]=33&limit=10", vec![99, 100]),
        ("fee[gte]=33.00001&limit=10", vec![100]),
        (
            "views[in]=18446744073709551614,18446744073709551612",
            vec![1, 3],
        ),
        ("club[like]=Club%206&limit=3", vec![6, 13, 20]),
        ("club[like]=Club%25", vec![]),
        ("club=%27%20OR%20%271%5C", vec![]),
        ("played[lt]=2026-01-01T00:03:00Z", vec![1, 2]),
        ("played[in]=2026-01-01T00:03:00Z", vec![3]),
    ] {
        let page = page(query).await;
        let rows = page.at("/data/response/data").as_array().unwrap().clone();
        let ids: Vec<i64> = rows.iter().map(|row| row["id"].as_i64().unwrap()).collect();
        assert_eq!(ids, wanted, "{query}");
    }
}

/// Neither the server's own zone counts nor one that a column shows its moments in: they leave in UTC, and filters find them.
#[tokio::test]
#[ignore = "needs chdb, 600 MB: tests/run --all-engines"]
async fn real_clickhouse_zones_do_not_count() {
    let server = ClickHouse::start_in("Asia/Tokyo");
    let database = server.database(&[
        "CREATE TABLE shifts (id Int32, own DateTime, fine DateTime64(6), west DateTime('America/New_York'), south DateTime64(3, 'Asia/Kolkata'), day Date) ENGINE = MergeTree ORDER BY id",
        "INSERT INTO shifts SELECT number, toDateTime('2026-01-01 00:00:00', 'UTC') + INTERVAL number MINUTE, toDateTime64('2026-01-01 00:00:00.000001', 6, 'UTC') + INTERVAL number MINUTE, \
         toDateTime('2026-01-01 00:00:00', 'UTC') + INTERVAL number MINUTE, toDateTime64('2026-01-01 00:00:00.5', 3, 'UTC') + INTERVAL number MINUTE, toDate('2026-01-01') FROM numbers(1, 3)",
    ]);
    // To what it shows itself it does.
    let shown = server.admin(&database, "SELECT own, west FROM shifts WHERE id = 1");
    assert_eq!(shown, "2026-01-01 09:01:00\t2025-12-31 19:01:00");
    let seller = host().await.company(&unique("clickhouse")).await;
    let connection = seller.clickhouse(&server, &database).await;
    let names = ["id", "own", "fine", "west", "south", "day"];
    let filters = ["own", "fine", "west", "south"];
    let definition = json!({"source": {"schema": database, "table": "shifts"}, "order_by": ["id"],
        "fields": names.map(|name| json!({"name": name})),
        "filters": filters.map(|field| json!({"field": field, "operators": ["eq", "lt", "gte", "in"]}))});
    let sold = Sold::new(&seller, &connection, definition, 1, 100).await;
    let page = sold.feed.get(&sold.path).await.expect(200);
    assert_eq!(
        page.at("/data/response/data/0"),
        &json!({"id": 1, "own": "2026-01-01T00:01:00.000000Z", "fine": "2026-01-01T00:01:00.000001Z", "west": "2026-01-01T00:01:00.000000Z",
            "south": "2026-01-01T00:01:00.500000Z", "day": "2026-01-01"})
    );
    for (query, wanted) in [
        ("own[lt]=2026-01-01T00:03:00Z", vec![1, 2]),
        ("own[in]=2026-01-01T09:02:00%2B09:00", vec![2]),
        ("fine=2026-01-01T00:02:00.000001Z", vec![2]),
        ("west[gte]=2026-01-01T00:02:00Z", vec![2, 3]),
        ("west=2025-12-31T19:01:00-05:00", vec![1]),
        ("south[lt]=2026-01-01T00:02:00.5Z", vec![1]),
        ("south[in]=2026-01-01T05:33:00.5%2B05:30", vec![3]),
    ] {
        let page = sold.feed.get(&format!("{}?{query}", sold.path)).await;
        assert_eq!(ids(&page.expect(200)), wanted, "{query}");
    }
}

/// What a statement makes of a moment is in the server's zone throughout, and in UTC where it says so. Asked for another zone the server would compute in
/// that with some functions only (decision 77).
#[tokio::test]
#[ignore = "needs chdb, 600 MB: tests/run --all-engines"]
async fn real_clickhouse_computes_in_its_own_zone() {
    let server = ClickHouse::start_in("Asia/Tokyo");
    let database = server.database(&[
        "CREATE TABLE shifts (own DateTime, fine DateTime64(6)) ENGINE = MergeTree ORDER BY own",
        "INSERT INTO shifts SELECT toDateTime('2026-01-01 15:00:00', 'UTC'), toDateTime64('2026-01-01 15:00:00.5', 6, 'UTC') FROM numbers(1)",
    ]);
    let seller = host().await.company(&unique("clickhouse")).await;
    let connection = seller.clickhouse(&server, &database).await;
    for at in ["own", "fine"] {
        for (zone, morning, said) in [
            (
                "",
                "'2026-01-02 00:00:00'",
                "2026-01-02 0 2026-01-02 00:00:00 1",
            ),
            (
                ", 'UTC'",
                "toDateTime('2026-01-02 00:00:00', 'UTC')",
                "2026-01-01 15 2026-01-01 00:00:00 0",
            ),
        ] {
            let sql = format!(
                "SELECT concat(toString(toDate({at}{zone})), ' ', toString(toHour({at}{zone})), ' ', toString(toStartOfDay({at}{zone})), ' ', toString({at} >= {morning})) AS said FROM shifts"
            );
            let asset = json!({"result_type": "string", "sql_logic": sql});
            let asset = seller.asset(&connection, asset).await;
            let answer = seller.execute(&asset, json!({})).await.expect(200);
            assert_eq!(answer.at("/data/answer_value"), said, "{sql}");
        }
    }
}

/// Waits until so many statements run at the server that have this in them.
async fn until(server: &ClickHouse, what: &str, running: &str) {
    let processes = format!(
        "SELECT count() FROM system.processes WHERE query LIKE '%{what}%' AND query NOT LIKE '%system.processes%'"
    );
    let since = Instant::now();
    while server.admin("default", &processes) != running {
        let waited = since.elapsed();
        assert!(waited < Duration::from_secs(20), "{what}: not {running}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What nobody waits for any more stops at the source, long before its time is over.
#[tokio::test]
#[ignore = "needs chdb, 600 MB: tests/run --all-engines"]
async fn real_clickhouse_stops_what_is_abandoned() {
    let server = ClickHouse::shared();
    let (seller, connection, _) = seller().await;
    let slow = "SELECT COUNT(*) FROM numbers(100000000000) WHERE sipHash64(number) = 7";
    let asset = seller.asset(&connection, json!({"sql_logic": slow})).await;
    let path = seller.path(&format!("/assets/{asset}/execute"));
    let client = seller.client.clone();
    let call = tokio::spawn(async move { client.post(&path, json!({"params": {}})).await });
    until(server, "100000000000", "1").await;
    let since = Instant::now();
    call.abort();
    until(server, "100000000000", "0").await;
    println!("stopped after {:?}", since.elapsed());
}

/// What takes too long stops at the source: at the end of the connection's time or of the asset's, and, of a user whose profile takes no setting, so that
/// the server knows of neither, because it is killed. It costs the buyer nothing, and the next one is answered.
#[tokio::test]
#[ignore = "needs chdb, 600 MB: tests/run --all-engines"]
async fn real_clickhouse_stops_what_takes_too_long() {
    let server = ClickHouse::start();
    let database = server.database(&[]);
    for (user, connection_ms, asset_ms, code) in [
        ("souk", 1_000, 30_000, Some("statement_timeout")),
        // Whether the server, the connector or the host is the first to notice.
        ("souk", 60_000, 1_500, None),
        ("fixed", 60_000, 1_500, None),
    ] {
        let seller = host().await.company(&unique("clickhouse")).await;
        let credentials = json!({"username": user, "password": server.password}).to_string();
        let fields = json!({"credential_type": "PASSWORD", "credentials": credentials, "base_url": server.base_url(), "database": database,
            "statement_timeout_ms": connection_ms});
        let connection = seller.connection("clickhouse", fields).await;
        let asset = json!({"timeout_ms": asset_ms, "sql_logic": "SELECT COUNT(*) AS n FROM numbers(:n) WHERE sipHash64(number) = 7",
            "parameters": [{"name": "n", "type": "integer", "default": 10}]});
        let sale = Sale::of(seller, &connection, asset).await;
        let call = sale.buy(json!({"n": 100_000_000_000_i64}));
        let (refusal, ()) = tokio::join!(call, until(&server, "sipHash64", "1"));
        let refusal = sale.assert_free(refusal, 504, "EXECUTION_TIMEOUT", "source");
        let refusal = refusal.await;
        let told = refusal.at("/error/details/fault_code");
        assert!(code.is_none_or(|code| told == code), "{user}: {told}");
        until(&server, "sipHash64", "0").await;
        sale.assert_works(json!({})).await;
    }
}
