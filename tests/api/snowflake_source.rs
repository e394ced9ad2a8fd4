//! A Snowflake as a source, through the connector `snowflake`. The server is of the tests, made of Snowflake's documentation.

use std::time::Duration;

use serde_json::json;
use souk_tests::{Company, Snowflake, snowflake};

use crate::exact::Exact;
use crate::league::{League, ends_in_time, is_stopped};
use crate::{host, unique};

const LEAGUE: &str = r#"ATTACH ':memory:' AS LEAGUE;
    CREATE TABLE LEAGUE.MATCHES (ID number(18,0) NOT NULL, CLUB varchar(20), GOALS number(9,0), FEE number(20,5), PLAYED timestamp_tz, KICKOFF timestamp_ntz, DAY date, TAGS array);
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 100)
    INSERT INTO LEAGUE.MATCHES SELECT n, 'Club ' || (n % 7), CASE WHEN n % 11 > 0 THEN n % 5 END, n / 8.0, 1767225600000000 + n * 60000000,
        strftime('%Y-%m-%d %H:%M:%S.000000', '2026-01-01', '+' || n || ' minutes'), date('2026-01-01', '+' || n || ' days'), json_array('n', '' || n) FROM s;"#;

const SOLD: League = League {
    schema: "LEAGUE",
    name: str::to_uppercase,
    digits: Some("SELECT 12345678901234567890.00100::NUMBER(38,5) AS FEE"),
};

const EXACT: Exact = Exact {
    schema: "LEAGUE",
    name: str::to_uppercase,
    wide: ["number(18,0)", "varchar", "number(38,5) text"],
    kinds: &[
        ("number(18,0)", "-999999999999999999", "-999999999999999999"),
        (
            "number(38,0) text",
            "'99999999999999999999999999999999999999'",
            "99999999999999999999999999999999999999",
        ),
        (
            "number(38,5) text",
            "'12345678901234567890.00100'",
            "12345678901234567890.00100",
        ),
        ("float", "0.30000000000000004", "0.30000000000000004"),
        (
            "varchar",
            r#"'it''s "ä", 日本 😀 \'"#,
            r#"it's "ä", 日本 😀 \"#,
        ),
        ("binary", "x'00ff'", "AP8="),
        ("boolean", "1", "true"),
        ("date", "'9999-12-31'", "9999-12-31"),
        ("time", "'23:59:59.999999'", "23:59:59.999999"),
        (
            "timestamp_ntz",
            "'1969-12-31 23:59:59.999999'",
            "1969-12-31T23:59:59.999999",
        ),
        ("timestamp_ltz", "-1", "1969-12-31T23:59:59.999999Z"),
        ("timestamp_tz", "-1", "1969-12-31T23:59:59.999999Z"),
        ("variant", r#"'{"a":[1.50,null]}'"#, r#"{"a":[1.50,null]}"#),
        (
            "object",
            r#"'{"a":9007199254740993}'"#,
            r#"{"a":9007199254740993}"#,
        ),
        ("array", "'[1.50,undefined]'", "[1.50,null]"),
        (
            "map",
            r#"'{"a":9007199254740993}'"#,
            r#"{"a":9007199254740993}"#,
        ),
        (
            "vector(float, 2)",
            "'[1.100000,2.200000]'",
            "[1.100000,2.200000]",
        ),
        (
            "geography",
            r#"'{"coordinates":[1,2],"type":"Point"}'"#,
            r#"{"coordinates":[1,2],"type":"Point"}"#,
        ),
        (
            "geometry",
            r#"'{"coordinates":[1,2],"type":"Point"}'"#,
            r#"{"coordinates":[1,2],"type":"Point"}"#,
        ),
    ],
    empty_for_null: None,
};

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

    SOLD.is_sold(&seller, &connection).await;
    assert_eq!(server.running(), 0);
}

/// A value of every type and NULL in each, what finds no row, and two hundred columns: each digit in its place.
#[tokio::test]
async fn values_of_snowflake_leave_to_the_last_digit() {
    let server = Snowflake::start().await;
    let (seller, connection) = seller(&server).await;
    server.admin(&EXACT.tables());
    EXACT.leaves(&seller, &connection).await;
}

/// The account's own zone does not count: moments of both kinds leave in UTC, clocks without a zone claim none, and filters find them.
#[tokio::test]
async fn the_zone_of_snowflake_does_not_count() {
    for kind in ["timestamp_ltz", "timestamp_tz"] {
        let server = Snowflake::start().await;
        server.lies_in(-8 * 60);
        server.admin(&LEAGUE.replace("timestamp_tz", kind));
        let seller = host().await.company(&unique("snowflake")).await;
        let connection = seller.snowflake(&server, "LEAGUE").await;
        SOLD.is_sold(&seller, &connection).await;
        assert_eq!(server.zones_asked_for(), ["UTC"], "{kind}");
    }
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

/// What no word tells, a function that writes while it is asked, is held by the role alone, as `docs/engines.md` says: refused to one that may only read,
/// and done for one that may write.
#[tokio::test]
async fn what_a_function_of_snowflake_writes_its_role_may() {
    for (role, left) in [(snowflake::READER, 100), (snowflake::WRITER, 0)] {
        let server = Snowflake::start().await;
        server.admin(LEAGUE);
        let seller = host().await.company(&unique("snowflake")).await;
        let credentials = json!({"warehouse": snowflake::WAREHOUSE, "role": role, "api_key": snowflake::ACCESS_TOKEN});
        let fields = json!({"credential_type": "API_KEY", "credentials": credentials.to_string(), "base_url": server.base_url(),
            "database": format!("{}.LEAGUE", snowflake::DATABASE)});
        let connection = seller.connection("snowflake", fields).await;
        let writes = json!({"sql_logic": "SELECT CLEARED('LEAGUE.MATCHES') AS N"});
        let writes = seller.asset(&connection, writes).await;
        let answer = seller.execute(&writes, json!({})).await;
        if role == snowflake::READER {
            let refused = answer.expect_error(502, "SOURCE_ERROR");
            let reason = refused.at("/error/details/reason");
            assert_eq!(reason, "permission", "{}", refused.body);
        } else {
            assert_eq!(answer.expect(200).at("/data/answer_value"), 1);
        }
        let count = json!({"sql_logic": "SELECT COUNT(*) AS N FROM MATCHES"});
        let count = seller.asset(&connection, count).await;
        let counted = seller.execute(&count, json!({})).await.expect(200);
        assert_eq!(counted.at("/data/answer_value"), left, "{role}");
    }
}

/// What nobody waits for any more is stopped at Snowflake.
#[tokio::test]
async fn snowflake_stops_what_is_abandoned() {
    let server = Snowflake::start().await;
    let (seller, connection) = seller(&server).await;
    is_stopped(
        &seller,
        &connection,
        "SELECT ID FROM endless",
        || {
            server
                .requests()
                .contains(&"POST SELECT ID FROM endless".to_owned())
        },
        || server.running() > 0,
    )
    .await;
    assert!(server.requests().contains(&"POST cancel".to_owned()));
}

/// What takes longer than its asset may is stopped at Snowflake and costs the buyer nothing; the next one is answered.
#[tokio::test]
async fn what_takes_too_long_at_snowflake_is_free() {
    let server = Snowflake::start().await;
    let (seller, connection) = seller(&server).await;
    let asset = json!({"sql_logic": "SELECT COUNT(*) AS N FROM MATCHES"});
    let takes = |time| {
        server.takes(time);
        json!({})
    };
    let runs = || server.running() > 0;
    ends_in_time(seller, &connection, asset, takes, runs).await;
}

/// Over HTTP nobody waits for somebody else's statement: more run at once than a data connection has sessions.
#[tokio::test]
async fn slow_statements_run_side_by_side() {
    const AT_ONCE: usize = 24;
    let server = Snowflake::start().await;
    let (seller, connection) = seller(&server).await;
    let asset = seller
        .asset(
            &connection,
            json!({"sql_logic": "SELECT COUNT(*) AS N FROM MATCHES"}),
        )
        .await;
    let path = seller.path(&format!("/assets/{asset}/execute"));
    let ask = || seller.client.post(&path, json!({"params": {}}));
    // From the first one on it is known to be slow.
    server.takes(Duration::from_millis(100));
    ask().await.expect(200);
    // A loaded machine takes its time to begin the last before the first has ended.
    server.takes(Duration::from_secs(6));
    let all = futures_util::future::join_all((0..AT_ONCE).map(|_| ask()));
    let seen = async {
        let mut most = 0;
        while most < AT_ONCE {
            tokio::time::sleep(Duration::from_millis(10)).await;
            most = most.max(server.running());
        }
    };
    let seen = tokio::time::timeout(Duration::from_secs(20), seen);
    let (answers, seen) = tokio::join!(all, seen);
    seen.expect("all at once");
    for answer in answers {
        assert_eq!(answer.expect(200).at("/data/answer_value"), 100);
    }
}
