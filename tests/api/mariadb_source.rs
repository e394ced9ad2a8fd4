//! A MariaDB as a source, through the connector `mysql`.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::{Company, MySql, PgCluster};

use crate::exact::{wide_leaves, wide_table};
use crate::paid_faults::Sale;
use crate::{host, unique};

const LEAGUE: &str = "CREATE TABLE matches (id INT PRIMARY KEY, club VARCHAR(20), goals INT, fee DECIMAL(20,5), views BIGINT UNSIGNED, played DATETIME(6), note JSON);
    INSERT INTO matches SELECT seq, CONCAT('Club ', seq % 7), IF(seq % 11 = 0, NULL, seq % 5), seq / 3, 18446744073709551615 - seq,
        TIMESTAMP '2026-01-01 00:00:00' + INTERVAL seq MINUTE, JSON_OBJECT('n', seq) FROM seq_1_to_100";

async fn seller() -> (Company, String, String) {
    let server = MySql::shared();
    let database = server.database(LEAGUE);
    let seller = host().await.company(&unique("mariadb")).await;
    let connection = seller.mysql(server, &database).await;
    (seller, connection, database)
}

async fn posted(seller: &Company, path: &str, body: Value) -> souk_tests::Answer {
    seller.client.post(&seller.path(path), body).await
}

/// A seller connects a MariaDB, sees that it works and what is in it, and sells an asset and an endpoint of it; a buyer pays and reads
/// pages, filtered, to the last digit.
#[tokio::test]
async fn a_seller_sells_from_mariadb() {
    let (seller, connection, database) = seller().await;
    let test = posted(
        &seller,
        &format!("/connections/{connection}/test"),
        json!({}),
    )
    .await;
    let test = test.expect(200);
    assert_eq!(test.at("/data/success"), true, "{}", test.body);
    let path = format!("/connections/{connection}/schema");
    let schema = seller.client.get(&seller.path(&path)).await.expect(200);
    let is_mysql = MySql::shared().is_mysql();
    let unsigned = if is_mysql {
        "bigint unsigned"
    } else {
        "bigint(20) unsigned"
    };
    let said = schema.body.to_string();
    assert!(said.contains(unsigned), "{said}");

    let asset = seller
        .asset(&connection, json!({"sql_logic": "SELECT SUM(goals) FROM matches WHERE club = :club AND goals >= :least",
            "parameters": [{"name": "club", "type": "string"}, {"name": "least", "type": "integer"}]}))
        .await;
    let endpoint = seller
        .endpoint(&connection, json!({"slug": "matches", "source": {"schema": database, "table": "matches"},
            "fields": [{"name": "id"}, {"name": "club"}, {"name": "goals"}, {"name": "fee"}, {"name": "views"}, {"name": "played"}],
            "order_by": ["id"],
            "filters": [{"field": "club", "operators": ["eq", "like"]}, {"field": "goals", "operators": ["eq", "gt", "in"]}, {"field": "fee", "operators": ["gte"]}, {"field": "played", "operators": ["lt"]}]}))
        .await;
    seller.publish(&asset, 2).await;
    seller.publish(&endpoint, 1).await;

    let buyer = host().await.buyer(&unique("buyer"), 100).await;
    buyer.buy(&asset).await;
    let bought = buyer.buy(&endpoint).await;
    let reader = buyer
        .client
        .with_key(&bought.text("/data/endpoint_key/key"));
    let answer = buyer
        .execute(&asset, json!({"club": "Club 3", "least": 2}))
        .await;
    assert_eq!(answer.expect(200).at("/data/answer_value"), 27);

    let page = async |query: &str| {
        let path = format!("/endpoints/v1/{}/matches?{query}", seller.handle);
        reader.get(&path).await.expect(200)
    };
    let first = page("limit=2").await;
    assert_eq!(first.at("/data/service/billing/credits_used"), 1);
    let rows = first.at("/data/response/data").clone();
    assert_eq!(rows[0]["played"], "2026-01-01T00:01:00.000000");
    let text = rows.to_string();
    assert!(text.contains("18446744073709551614"), "{text}");
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
        ("club[like]=Club%206&limit=3", vec![6, 13, 20]),
        ("club[like]=Club%25", vec![]),
        ("played[lt]=2026-01-01T00:03:00", vec![1, 2]),
    ] {
        let page = page(query).await;
        let rows = page.at("/data/response/data").as_array().unwrap().clone();
        let ids: Vec<i64> = rows.iter().map(|row| row["id"].as_i64().unwrap()).collect();
        assert_eq!(ids, wanted, "{query}");
    }
}

/// Two hundred columns leave in their order, to the last digit.
#[tokio::test]
async fn two_hundred_columns_of_mariadb_leave() {
    let (seller, connection, database) = seller().await;
    let declared = ["BIGINT", "VARCHAR(20)", "DECIMAL(25, 5)"];
    let table = wide_table("wide", str::to_owned, declared);
    MySql::shared().admin(&format!("USE {database}; {table}"));
    let table = json!({"schema": database, "table": "wide"});
    wide_leaves(&seller, &connection, table, str::to_owned, true).await;
}

/// What is wrong at the source is told as what it is.
#[tokio::test]
async fn a_seller_is_told_what_is_wrong() {
    let (seller, connection, _) = seller().await;
    let server = MySql::shared();
    for (change, code) in [
        (
            json!({"credentials": json!({"username": "souk", "password": "wrong"}).to_string()}),
            "1045",
        ),
        (
            json!({"credentials": json!({"username": server.user, "password": server.password}).to_string(), "database": "nowhere"}),
            "1049",
        ),
    ] {
        let path = seller.path(&format!("/connections/{connection}"));
        seller.client.patch(&path, change).await.expect(200);
        let test = posted(
            &seller,
            &format!("/connections/{connection}/test"),
            json!({}),
        )
        .await;
        assert!(test.body.to_string().contains(code), "{}", test.body);
    }
}

/// A PostgreSQL waits to be spoken to, as the connector waits for a MySQL to speak: it is not waited for until the session is given up.
#[tokio::test]
async fn a_port_of_another_database_is_told_soon() {
    let (seller, connection, _) = seller().await;
    let (server, cluster) = (MySql::shared(), PgCluster::shared().await);
    let credentials = json!({"username": server.user, "password": server.password}).to_string();
    let path = seller.path(&format!("/connections/{connection}"));
    let change = json!({"credentials": credentials, "port": cluster.port});
    seller.client.patch(&path, change).await.expect(200);
    let began = Instant::now();
    let test = posted(
        &seller,
        &format!("/connections/{connection}/test"),
        json!({}),
    )
    .await;
    let said = test.body.to_string();
    assert!(said.contains("this port does not speak MySQL"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(12), "{said}");
}

/// Whatever a statement looks like, the source refuses to be changed.
#[tokio::test]
async fn a_function_that_writes_is_refused_by_the_source() {
    let server = MySql::shared();
    let (seller, connection, database) = seller().await;
    server.admin(&format!(
        "USE {database};
DELIMITER //
CREATE FUNCTION sneak() RETURNS INT MODIFIES SQL DATA BEGIN DELETE FROM matches; RETURN 1; END //
"
    ));
    let asset = seller
        .asset(&connection, json!({"sql_logic": "SELECT sneak()"}))
        .await;
    let answer = seller.execute(&asset, json!({})).await;
    assert_eq!(answer.status, 502, "{}", answer.body);
    assert!(
        answer.body.to_string().contains("read_only"),
        "{}",
        answer.body
    );
    let left = server.admin(&format!("SELECT COUNT(*) FROM {database}.matches"));
    assert_eq!(left, "100");
}

/// The end of a request's transaction begins that of the next one, which only reads whatever a statement has set for the session; a session that nobody asks
/// for anything has none.
#[tokio::test]
async fn a_transaction_is_there_for_the_next_request() {
    let server = MySql::start(&["--general-log", "--log-output=TABLE"]);
    let database = server.database(LEAGUE);
    let variable = server.read_only_variable();
    server.admin(&format!(
        "USE {database};
DELIMITER //
CREATE FUNCTION opens() RETURNS INT NO SQL BEGIN SET SESSION {variable} = 0; RETURN 1; END //
CREATE FUNCTION sneak() RETURNS INT MODIFIES SQL DATA BEGIN DELETE FROM matches; RETURN 1; END //
"
    ));
    let seller = host().await.company(&unique("mariadb")).await;
    let connection = seller.mysql(&server, &database).await;
    let mut assets = Vec::new();
    for sql in ["SELECT opens()", "SELECT sneak()"] {
        let asset = seller.asset(&connection, json!({"sql_logic": sql})).await;
        assets.push(asset);
    }
    for _ in 0..6 {
        let opened = seller.execute(&assets[0], json!({})).await;
        opened.expect(200);
        let refused = seller.execute(&assets[1], json!({})).await;
        assert_eq!(refused.status, 502, "{}", refused.body);
        let said = refused.body.to_string();
        assert!(said.contains("read_only"), "{said}");
    }
    let left = server.admin(&format!("SELECT COUNT(*) FROM {database}.matches"));
    assert_eq!(left, "100");

    // What the server has heard, by session.
    let heard = |which: &str| {
        let log = server.admin(&format!(
            "SELECT thread_id, argument FROM mysql.general_log WHERE user_host LIKE 'souk[%' AND command_type IN ('Query', 'Execute'){which}"
        ));
        let mut heard: HashMap<String, Vec<String>> = HashMap::new();
        for (session, said) in log.lines().filter_map(|line| line.split_once('\t')) {
            heard
                .entry(session.to_owned())
                .or_default()
                .push(said.to_owned());
        }
        heard
    };
    let is_followed = |said: &[String]| {
        said.windows(2).any(|two| {
            two[0].starts_with("ROLLBACK AND CHAIN") && two[1].starts_with("SELECT opens()")
        })
    };
    let first = heard("");
    assert!(first.values().any(|said| is_followed(said)), "{first:?}");
    let since = Instant::now();
    let has_ended = |said: &Vec<String>| {
        said.last()
            .is_some_and(|last| !last.starts_with("ROLLBACK AND CHAIN"))
    };
    // A session that has ended says no more, and has no transaction.
    let open = " AND thread_id IN (SELECT ID FROM information_schema.PROCESSLIST)";
    loop {
        let heard = heard(open);
        if heard.values().all(has_ended) {
            break;
        }
        assert!(since.elapsed() < Duration::from_secs(20), "{heard:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What nobody waits for any more stops at the source, long before its time is over, and its session goes on.
#[tokio::test]
async fn an_abandoned_call_stops_at_the_source() {
    let server = MySql::shared();
    let (seller, connection, database) = seller().await;
    let slow = "SELECT COUNT(*) FROM matches a, matches b, matches c, matches d, matches e WHERE a.fee + b.fee + c.fee + d.fee + e.fee < 0";
    let asset = seller.asset(&connection, json!({"sql_logic": slow})).await;
    // The number of the session that does this, if one does.
    let doing = |what: &str| {
        server.admin(&format!(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '{database}' AND {what}"
        ))
    };
    let running = "INFO LIKE 'SELECT COUNT(*)%'";
    let path = seller.path(&format!("/assets/{asset}/execute"));
    let client = seller.client.clone();
    let call = tokio::spawn(async move { client.post(&path, json!({"params": {}})).await });
    let since = Instant::now();
    let session = loop {
        let found = doing(running);
        if !found.is_empty() {
            break found;
        }
        assert!(since.elapsed() < Duration::from_secs(20), "it does not run");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let since = Instant::now();
    call.abort();
    while !doing(running).is_empty() {
        assert!(since.elapsed() < Duration::from_secs(15), "it goes on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("stopped after {:?}", since.elapsed());
    // Long enough for a session that was closed to be gone.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(
        doing(&format!("ID = {session} AND COMMAND = 'Sleep'")),
        session
    );
}

/// What takes longer than its asset may, although its connection would let it go on, stops at the source, whose list of processes has it no more, and costs the
/// buyer nothing; the next one is answered.
#[tokio::test]
async fn what_takes_too_long_stops_at_mariadb() {
    let server = MySql::shared();
    let (seller, connection, database) = seller().await;
    let path = seller.path(&format!("/connections/{connection}"));
    let patient = json!({"statement_timeout_ms": 60_000});
    seller.client.patch(&path, patient).await.expect(200);
    let asset = json!({"timeout_ms": 3_000, "sql_logic": "SELECT SLEEP(:seconds) AS slept",
        "parameters": [{"name": "seconds", "type": "integer", "default": 0}]});
    let sale = Sale::of(seller, &connection, asset).await;
    // A session is open: to open one takes of the time, too.
    let own = sale.seller.execute(&sale.asset, json!({})).await;
    own.expect(200);
    let running = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = '{database}' AND INFO LIKE '%SLEEP(%'"
    );
    let until = async |sleeping: &str| {
        let since = Instant::now();
        while server.admin(&running) != sleeping {
            let waited = since.elapsed();
            assert!(waited < Duration::from_secs(20), "not {sleeping}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let call = sale.buy(json!({"seconds": 50}));
    let (late, ()) = tokio::join!(call, until("1"));
    sale.assert_free(late, 504, "EXECUTION_TIMEOUT", "source")
        .await;
    until("0").await;
    sale.assert_works(json!({})).await;
}
