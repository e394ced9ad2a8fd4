//! A Snowflake as a source, through the connector `snowflake`. The server is of the tests, made of Snowflake's documentation.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::{Company, Snowflake};

use crate::{host, unique};

const LEAGUE: &str = r#"ATTACH ':memory:' AS LEAGUE;
    CREATE TABLE LEAGUE.MATCHES (ID number(18,0) NOT NULL, CLUB varchar(20), GOALS number(9,0), FEE number(20,5), PLAYED timestamp_tz, KICKOFF timestamp_ntz, DAY date, TAGS array);
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 100)
    INSERT INTO LEAGUE.MATCHES SELECT n, 'Club ' || (n % 7), CASE WHEN n % 11 > 0 THEN n % 5 END, n / 8.0, 1767225600000000 + n * 60000000,
        strftime('%Y-%m-%d %H:%M:%S.000000', '2026-01-01', '+' || n || ' minutes'), date('2026-01-01', '+' || n || ' days'), json_array('n', '' || n) FROM s;"#;

async fn seller(server: &Snowflake) -> (Company, String) {
    server.admin(LEAGUE);
    let seller = host().await.company(&unique("snowflake")).await;
    let connection = seller.snowflake(server, "LEAGUE").await;
    (seller, connection)
}

/// A seller connects a Snowflake by a key and a certificate of its own, sees that it works and what is in it, and sells an asset and an
/// endpoint of it; a buyer pays and reads pages, filtered, to the last digit.
#[tokio::test]
async fn a_seller_sells_from_snowflake() {
    let server = Snowflake::start_tls().await;
    let (seller, connection) = seller(&server).await;
    let path = seller.path(&format!("/connections/{connection}/test"));
    let test = seller.client.post(&path, json!({})).await.expect(200);
    assert_eq!(test.at("/data/success"), true, "{}", test.body);
    // It refuses no write by itself.
    assert!(
        test.at("/data/read_only_verified").is_null(),
        "{}",
        test.body
    );
    let path = seller.path(&format!("/connections/{connection}/schema"));
    let schema = seller.client.get(&path).await.expect(200);
    assert!(
        schema.body.to_string().contains("NUMBER(20,5)"),
        "{}",
        schema.body
    );

    let asset = seller
        .asset(&connection, json!({"sql_logic": "SELECT SUM(GOALS) AS GOALS FROM MATCHES WHERE CLUB = :club AND GOALS >= :least",
            "parameters": [{"name": "club", "type": "string"}, {"name": "least", "type": "integer"}]}))
        .await;
    let digits = seller
        .asset(
            &connection,
            json!({"sql_logic": "SELECT 12345678901234567890.00100::NUMBER(38,5) AS FEE"}),
        )
        .await;
    let endpoint = seller
        .endpoint(&connection, json!({"slug": "matches", "source": {"schema": "LEAGUE", "table": "MATCHES"},
            "fields": [{"name": "ID"}, {"name": "CLUB"}, {"name": "GOALS"}, {"name": "FEE"}, {"name": "PLAYED"}, {"name": "KICKOFF"}, {"name": "DAY"}, {"name": "TAGS"}],
            "order_by": ["ID"],
            "filters": [{"field": "CLUB", "operators": ["eq", "like"]}, {"field": "GOALS", "operators": ["eq", "gt", "in"]}, {"field": "FEE", "operators": ["gte"]},
                {"field": "PLAYED", "operators": ["lt", "in"]}, {"field": "KICKOFF", "operators": ["lt"]}, {"field": "DAY", "operators": ["eq"]}]}))
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
        json!({"ID": 1, "CLUB": "Club 1", "GOALS": 1, "FEE": 0.125, "PLAYED": "2026-01-01T00:01:00.000000Z",
            "KICKOFF": "2026-01-01T00:01:00.000000", "DAY": "2026-01-02", "TAGS": ["n", "1"]})
    );
    let mut seen = Vec::new();
    for start in [0, 40, 80] {
        let page = page(&format!("limit=40&start={start}")).await;
        let rows = page.at("/data/response/data").as_array().unwrap().clone();
        seen.extend(rows.iter().map(|row| row["ID"].as_i64().unwrap()));
    }
    assert_eq!(seen, (1..=100).collect::<Vec<i64>>());
    for (query, wanted) in [
        ("CLUB=Club%203&GOALS[gt]=2", vec![3, 24, 38, 59, 73, 94]),
        ("GOALS[in]=4&CLUB=Club%202", vec![9, 79]),
        ("FEE[gte]=12.375&limit=10", vec![99, 100]),
        ("FEE[gte]=12.3751&limit=10", vec![100]),
        ("CLUB[like]=Club%206&limit=3", vec![6, 13, 20]),
        ("CLUB=%27%20OR%20%271%5C", vec![]),
        ("PLAYED[lt]=2026-01-01T00:03:00Z", vec![1, 2]),
        ("PLAYED[in]=2026-01-01T00:03:00Z", vec![3]),
        ("KICKOFF[lt]=2026-01-01T00:03:00", vec![1, 2]),
        ("DAY=2026-01-05", vec![4]),
    ] {
        let page = page(query).await;
        let rows = page.at("/data/response/data").as_array().unwrap().clone();
        let ids: Vec<i64> = rows.iter().map(|row| row["ID"].as_i64().unwrap()).collect();
        assert_eq!(ids, wanted, "{query}");
    }
    assert_eq!(server.running(), 0);
}

/// What may write is not sent, whatever the role may do, and a token that the host shows lets a seller in.
#[tokio::test]
async fn what_may_write_is_not_sent_to_snowflake() {
    let server = Snowflake::start().await;
    let (seller, connection) = seller(&server).await;
    for text in [
        "SELECT 1 ->> DELETE FROM MATCHES",
        "WITH p AS PROCEDURE () RETURNS STRING LANGUAGE SQL AS $$ BEGIN DELETE FROM MATCHES; END $$ CALL p()",
        "SELECT SYSTEM$CANCEL_QUERY('x')",
    ] {
        let path = seller.path("/assets");
        let body = json!({"connection_id": connection, "asset_type": "CALCULATION", "name": "writes", "result_type": "number", "sql_logic": text});
        let refused = seller.client.post(&path, body).await;
        if refused.status != 201 {
            // The host's own lock on words stands before the connector's.
            assert_eq!(refused.status, 400, "{text}: {}", refused.body);
            continue;
        }
        let asset = refused.text("/data/asset_id");
        let path = seller.path(&format!("/assets/{asset}/execute"));
        let answer = seller.client.post(&path, json!({"params": {}})).await;
        assert_ne!(answer.status, 200, "{text}");
        let told = answer.body.to_string();
        assert!(told.contains("read-only"), "{text}: {told}");
    }
    let asset = seller
        .asset(
            &connection,
            json!({"sql_logic": "SELECT COUNT(*) AS N FROM MATCHES"}),
        )
        .await;
    let path = seller.path(&format!("/assets/{asset}/execute"));
    let answer = seller
        .client
        .post(&path, json!({"params": {}}))
        .await
        .expect(200);
    assert_eq!(answer.at("/data/answer_value"), 100);
    let asked = server.requests();
    assert!(
        !asked
            .iter()
            .any(|line| line.contains("DELETE") || line.contains("SYSTEM")),
        "{asked:?}"
    );
}

/// What nobody waits for any more is stopped at Snowflake.
#[tokio::test]
async fn snowflake_stops_what_is_abandoned() {
    let server = Snowflake::start().await;
    let (seller, connection) = seller(&server).await;
    let asset = seller
        .asset(&connection, json!({"sql_logic": "SELECT ID FROM endless"}))
        .await;
    let path = seller.path(&format!("/assets/{asset}/execute"));
    let client = seller.client.clone();
    let call = tokio::spawn(async move { client.post(&path, json!({"params": {}})).await });
    let since = Instant::now();
    while !server
        .requests()
        .contains(&"POST SELECT ID FROM endless".to_owned())
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
