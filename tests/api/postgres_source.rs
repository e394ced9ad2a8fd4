//! A PostgreSQL as a source, as it is and through a pooler in transaction mode. `tests/run --all-engines` runs this against other releases, too.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use souk_tests::{Answer, Company, PgBouncer, PgCluster};

use crate::exact::{wide_leaves, wide_table};
use crate::league::ties;
use crate::paid_faults::Sale;
use crate::{host, unique};

const LEAGUE: &str = "CREATE TYPE side AS ENUM ('home', 'away');
    CREATE TABLE matches (id INT PRIMARY KEY, club TEXT, goals INT, fee NUMERIC(24,5), views BIGINT, ratio REAL, played TIMESTAMPTZ, shown TIMESTAMP, day DATE, side side, tags JSONB, odd FLOAT8);
    INSERT INTO matches SELECT n, 'Club ' || n % 7, CASE WHEN n % 11 > 0 THEN n % 5 END, 1234567890123456789.00000 + n / 3.0, 9223372036854775807 - n, 0.1,
        TIMESTAMPTZ '2026-01-01 00:00Z' + n * INTERVAL '1 minute', TIMESTAMP '2026-01-01 00:00:00.000001', DATE '2026-01-01' - n,
        CASE n % 2 WHEN 0 THEN 'home' ELSE 'away' END::side, '[1, {\"a\": null}]', CASE n % 3 WHEN 0 THEN 'Infinity' WHEN 1 THEN 'NaN' ELSE '-Infinity' END::float8 FROM generate_series(1, 100) n;
    CREATE FUNCTION sneak() RETURNS INT LANGUAGE plpgsql AS $$ BEGIN DELETE FROM matches; RETURN 1; END $$;";

/// Within this a statement runs, and is stopped: a loaded machine gets a hundred times as long as it takes.
const SOON: Duration = Duration::from_secs(20);

/// A seller with a connection to this database at this port, and what tests see it do.
struct Source {
    seller: Company,
    connection: String,
    database: String,
    admin: tokio_postgres::Client,
    pooler: Option<PgBouncer>,
}

async fn source(is_pooled: bool) -> Source {
    let cluster = PgCluster::shared().await;
    let database = cluster.database(LEAGUE).await;
    let seller = host().await.company(&unique("postgres")).await;
    let pooler = match is_pooled {
        true => Some(PgBouncer::start(cluster, &[], &[]).await),
        false => None,
    };
    let credentials =
        json!({"username": cluster.user, "password": cluster.password, "pooler": is_pooled});
    let (port, ca_pem) = match &pooler {
        Some(pooler) => (pooler.port, &pooler.ca_pem),
        None => (cluster.port, &cluster.ca_pem),
    };
    let fields = json!({"credential_type": "PASSWORD", "credentials": credentials.to_string(), "host": "127.0.0.1", "port": port,
        "database": database, "ssl_mode": "verify-full", "ca_pem": ca_pem, "statement_timeout_ms": 60_000});
    Source {
        connection: seller.connection("postgres", fields).await,
        seller,
        admin: cluster.client(&database).await,
        database,
        pooler,
    }
}

impl Source {
    async fn count(&self, sql: &str) -> i64 {
        self.admin.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Waits until so many statements of the source's list of processes sleep: far less than those sleep.
    async fn until(&self, sleeping: i64) {
        let running = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}' AND state = 'active' AND query LIKE '%pg\\_sleep(%' AND pid <> pg_backend_pid()",
            self.database
        );
        let since = Instant::now();
        while self.count(&running).await != sleeping {
            assert!(since.elapsed() < SOON, "not {sleeping}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A seller connects it with TLS, sees that it works, and sells an asset and an endpoint of it; a buyer pays and reads pages, filtered,
/// to the last digit; a function that writes is refused.
async fn sell(source: Source) {
    let Source {
        seller, connection, ..
    } = &source;
    let test = format!("/connections/{connection}/test");
    let test = seller.client.post(&seller.path(&test), json!({})).await;
    let test = test.expect(200);
    assert_eq!(test.at("/data/success"), true, "{}", test.body);
    let schema = seller.path(&format!("/connections/{connection}/schema"));
    let schema = seller.client.get(&schema).await.expect(200);
    assert!(schema.body.to_string().contains("numeric(24,5)"));

    let asset = seller
        .asset(connection, json!({"sql_logic": "SELECT sum(goals) FROM matches WHERE club = :club AND (:least IS NULL OR goals >= :least)",
            "parameters": [{"name": "club", "type": "string"}, {"name": "least", "type": "integer", "required": false}]}))
        .await;
    let fields = [
        "id", "club", "goals", "fee", "views", "ratio", "played", "shown", "day", "side", "tags",
        "odd",
    ];
    let fields = fields.map(|name| json!({"name": name}));
    let endpoint = seller
        .endpoint(connection, json!({"slug": "matches", "source": {"schema": "public", "table": "matches"}, "fields": fields, "order_by": ["id"],
            "filters": [{"field": "club", "operators": ["eq", "like"]}, {"field": "goals", "operators": ["gt"]}, {"field": "fee", "operators": ["gte"]}]}))
        .await;
    seller.publish(&asset, 2).await;
    seller.publish(&endpoint, 1).await;
    let buyer = host().await.buyer(&unique("buyer"), 100).await;
    buyer.buy(&asset).await;
    let bought = buyer.buy(&endpoint).await;
    let reader = buyer
        .client
        .with_key(&bought.text("/data/endpoint_key/key"));
    for (parameters, value) in [
        (json!({"club": "Club 3", "least": 2}), 27),
        (json!({"club": "Club 3"}), 28),
    ] {
        let answer = buyer.execute(&asset, parameters).await.expect(200);
        assert_eq!(answer.at("/data/answer_value"), value);
    }

    let page = async |query: &str| {
        let path = format!("/endpoints/v1/{}/matches?{query}", seller.handle);
        reader.get(&path).await.expect(200)
    };
    // Its text, because what these tests read of JSON has the digits of a double.
    let path = format!(
        "/endpoints/v1/{}/matches?limit=3&goals[gt]=3",
        seller.handle
    );
    let lines = reader.request(Method::GET, &path);
    let lines = Answer::of(lines.header("accept", "application/x-ndjson")).await;
    assert_eq!(
        lines.expect(200).body.as_str().unwrap().lines().next(),
        Some(
            r#"{"id":4,"club":"Club 4","goals":4,"fee":1234567890123456790.33333,"views":9223372036854775803,"ratio":0.1,"played":"2026-01-01T00:04:00.000000Z","shown":"2026-01-01T00:00:00.000001","day":"2025-12-28","side":"home","tags":[1, {"a": null}],"odd":"NaN"}"#
        )
    );
    let first = page("limit=3&goals[gt]=3").await;
    assert_eq!(first.at("/data/response/data/1/odd"), "Infinity");
    assert_eq!(first.at("/data/response/data/2/odd"), "-Infinity");
    let mut seen = Vec::new();
    for start in [0, 40, 80] {
        let page = page(&format!("limit=40&start={start}")).await;
        let rows: Vec<Value> = page.at("/data/response/data").as_array().unwrap().clone();
        seen.extend(rows.iter().map(|row| row["id"].as_i64().unwrap()));
    }
    assert_eq!(seen, (1..=100).collect::<Vec<i64>>());
    let filtered = page("club[like]=Club%202&fee[gte]=1234567890123456820.33333").await;
    let ids: Vec<i64> = filtered
        .at("/data/response/data")
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["id"].as_i64().unwrap())
        .collect();
    // 93 / 3 is 31, and 94 / 3 is just enough: 31.33333.
    assert_eq!(ids, [100]);

    let sneak = seller
        .asset(connection, json!({"sql_logic": "SELECT sneak()"}))
        .await;
    let answer = seller.execute(&sneak, json!({})).await;
    assert_eq!(answer.status, 502, "{}", answer.body);
    assert!(answer.body.to_string().contains("read_only"));
    assert_eq!(source.count("SELECT count(*) FROM matches").await, 100);

    // What a function writes all the same, on servers before 16, is taken back.
    let sql = "SELECT lo_from_bytea(0, 'kept')::text";
    let large = json!({"result_type": "string", "sql_logic": sql});
    let large = seller.asset(connection, large).await;
    for _ in 0..2 {
        let answer = seller.execute(&large, json!({})).await;
        let is_refused = answer.at("/error/details/source_code") == "25006";
        assert!(answer.status == 200 || is_refused, "{}", answer.body);
        let objects = source.count("SELECT count(*) FROM pg_largeobject_metadata");
        assert_eq!(objects.await, 0);
    }
}

/// A page that the source cannot compute is the seller's fault, although its beginning and its length were bound for the caller.
#[tokio::test]
async fn a_page_that_divides_by_zero_is_its_sellers() {
    let source = source(false).await;
    let (seller, admin) = (&source.seller, &source.admin);
    let table = "CREATE TABLE parts (id INT PRIMARY KEY, whole INT, pieces INT); INSERT INTO parts VALUES (1, 6, 2), (2, 6, 3), (3, 6, 6);";
    admin.batch_execute(table).await.unwrap();
    let endpoint = json!({"slug": "parts", "sql_logic": "SELECT id, whole / pieces AS piece FROM parts",
        "fields": [{"name": "id"}, {"name": "piece"}], "order_by": ["id"]});
    let endpoint = seller.endpoint(&source.connection, endpoint).await;
    seller.publish(&endpoint, 1).await;
    let buyer = host().await.buyer(&unique("buyer"), 100).await;
    let bought = buyer.buy(&endpoint).await;
    let key = bought.text("/data/endpoint_key/key");
    let reader = buyer.client.with_key(&key);
    let path = format!("/endpoints/v1/{}/parts?start=1&limit=1", seller.handle);
    let page = reader.get(&path).await.expect(200);
    assert_eq!(page.at("/data/response/data/0/piece"), 2);
    let zero = "UPDATE parts SET pieces = 0 WHERE id > 1";
    admin.batch_execute(zero).await.unwrap();
    let failed = reader.get(&path).await.expect_error(502, "SOURCE_ERROR");
    assert_eq!(failed.at("/error/details/blame"), "source");
}

/// A test says where the order does not tell rows apart.
#[tokio::test]
async fn rows_that_tie_are_told_by_the_test() {
    let source = source(false).await;
    let tables = "CREATE TABLE shirts (n INT, club TEXT); INSERT INTO shirts VALUES (1, 'a'), (7, 'b'), (7, 'c')";
    source.admin.batch_execute(tables).await.unwrap();
    ties(
        &source.seller,
        &source.connection,
        json!({"schema": "public", "table": "shirts"}),
    )
    .await;
}

/// Two hundred columns leave in their order, to the last digit.
#[tokio::test]
async fn two_hundred_columns_of_postgres_leave() {
    let source = source(false).await;
    let (seller, connection) = (&source.seller, &source.connection);
    let declared = ["bigint", "text", "numeric(25, 5)"];
    let table = wide_table("wide", str::to_owned, declared);
    source.admin.batch_execute(&table).await.unwrap();
    let table = json!({"schema": "public", "table": "wide"});
    wide_leaves(seller, connection, table, str::to_owned, true).await;
}

/// A row that is asked for by its primary key is asked for without a LIMIT: one row of the table is there only for statements without. Where tables
/// inherit, keys may be those of other rows of the table that they inherit from: a page has as many rows as it was asked for all the same, and says that
/// there are more.
#[tokio::test]
async fn postgres_is_asked_for_a_row_by_its_key_without_a_limit() {
    let source = source(false).await;
    let Source {
        seller, database, ..
    } = &source;
    let cluster = PgCluster::shared().await;
    let reader = unique("reader");
    let tables = format!(
        "CREATE TABLE games (id INT PRIMARY KEY, n INT); CREATE TABLE cups () INHERITS (games);
        INSERT INTO games VALUES (1, 1), (2, 2); INSERT INTO cups VALUES (1, 3), (1, 4);
        CREATE ROLE \"{reader}\" LOGIN PASSWORD 'reads'; GRANT SELECT ON games TO \"{reader}\"; ALTER TABLE games ENABLE ROW LEVEL SECURITY;
        CREATE POLICY unbounded ON games USING (n <> 2 OR position('LIMIT' IN current_query()) = 0);"
    );
    source.admin.batch_execute(&tables).await.unwrap();
    let credentials = json!({"username": reader, "password": "reads"}).to_string();
    let fields = json!({"credential_type": "PASSWORD", "credentials": credentials, "host": "127.0.0.1", "port": cluster.port,
        "database": database, "ssl_mode": "verify-full", "ca_pem": cluster.ca_pem});
    let connection = seller.connection("postgres", fields).await;
    let fields = json!({"source": {"schema": "public", "table": "games"}, "fields": [{"name": "n"}], "filters": ["id"]});
    let endpoint = seller.endpoint(&connection, fields).await;
    let test = seller.path(&format!("/endpoints/{endpoint}/test"));
    seller.client.get(&test).await.expect(200);
    let page = async |asked: &str| {
        let path = seller.path(&format!("/endpoints/{endpoint}/execute?{asked}"));
        let answer = seller.client.get(&path).await.expect(200);
        let rows = answer.at("/data/response/data").as_array().cloned();
        let rows = rows.unwrap_or_default();
        let mut numbers: Vec<i64> = rows.iter().filter_map(|row| row["n"].as_i64()).collect();
        numbers.sort_unstable();
        let has_more = answer.at("/data/service/pagination/has_more").clone();
        (numbers, has_more)
    };
    assert_eq!(page("limit=3").await, (vec![1, 3, 4], json!(false)));
    assert_eq!(page("id=2").await, (vec![2], json!(false)));
    assert_eq!(page("id=7").await, (vec![], json!(false)));
    let (numbers, has_more) = page("id=1&limit=1").await;
    assert_eq!((numbers.len(), has_more), (1, json!(true)));
    assert_eq!(page("id=1").await, (vec![1, 3, 4], json!(false)));
}

/// Requests that come together share a transaction of PostgreSQL's: `now()` is when that began. Each has its own answer.
#[tokio::test]
async fn requests_that_come_together_share_a_transaction_of_postgres() {
    const AT_ONCE: usize = 32;
    let source = source(false).await;
    // Microseconds of twelve digits, and the request's own number before them.
    let sql = "SELECT CAST(extract(epoch FROM now()) * 1000000 AS bigint) % 1000000000000 + :n * 1000000000000";
    let asset = json!({"sql_logic": sql, "parameters": [{"name": "n", "type": "integer"}]});
    let asset = source.seller.asset(&source.connection, asset).await;
    let ask = async |n: usize| {
        let answer = source.seller.execute(&asset, json!({"n": n})).await;
        let answer = answer.expect(200);
        let said = answer.at("/data/answer_value").as_u64();
        let said = said.unwrap_or_else(|| panic!("{}", answer.body));
        assert_eq!(said / 1_000_000_000_000, n as u64);
        said % 1_000_000_000_000
    };
    let since = Instant::now();
    loop {
        let begun = futures_util::future::join_all((1..=AT_ONCE).map(&ask)).await;
        let transactions: HashSet<&u64> = begun.iter().collect();
        println!("{} transactions for {AT_ONCE} requests", transactions.len());
        // Two that are none together begin within the same microsecond hardly ever, and a quarter of all never.
        if transactions.len() < AT_ONCE * 3 / 4 {
            break;
        }
        assert!(since.elapsed() < SOON, "{begun:?}");
    }
}

/// Statements that nobody has asked for yet do not wait for one another, although nothing is known of what they take.
#[tokio::test]
async fn a_burst_of_what_is_slow_has_sessions_side_by_side() {
    let source = source(false).await;
    // With a parameter, without which it is not tried when it is saved.
    let slow = json!({"sql_logic": "SELECT count(*) FROM pg_sleep(:t)", "timeout_ms": 60_000, "parameters": [{"name": "t", "type": "number"}]});
    let asset = source.seller.asset(&source.connection, slow).await;
    let burst = (0..12).map(|_| source.seller.execute(&asset, json!({"t": 4})));
    let calls = futures_util::future::join_all(burst);
    let side_by_side = async {
        let since = Instant::now();
        let running = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}' AND state = 'active' AND query LIKE '%pg\\_sleep(%' AND pid <> pg_backend_pid()",
            source.database
        );
        while source.count(&running).await < 5 {
            assert!(since.elapsed() < SOON, "one after the other");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let (answers, ()) = tokio::join!(calls, side_by_side);
    for answer in answers {
        answer.expect(200);
    }
}

/// What nobody waits for any more stops at the source, long before its time is over, as its list of processes shows.
async fn stop(source: Source) {
    let slow = json!({"sql_logic": "SELECT count(*) FROM pg_sleep(50)", "timeout_ms": 60000});
    let asset = source.seller.asset(&source.connection, slow).await;
    let path = source.seller.path(&format!("/assets/{asset}/execute"));
    let client = source.seller.client.clone();
    let call = tokio::spawn(async move { client.post(&path, json!({"params": {}})).await });
    source.until(1).await;
    let since = Instant::now();
    call.abort();
    source.until(0).await;
    println!("stopped after {:?}", since.elapsed());
}

/// What takes longer than its asset may, although its connection would let it go on, stops at the source, as its list of processes shows, and costs the
/// buyer nothing; the next one is answered.
async fn end(mut source: Source) {
    let asset = json!({"timeout_ms": 3_000, "sql_logic": "SELECT count(*) FROM pg_sleep(:seconds)",
        "parameters": [{"name": "seconds", "type": "number", "default": 0}]});
    let sale = Sale::of(source.seller.clone(), &source.connection, asset).await;
    // A session is open: to open one takes of the time, too.
    let own = sale.seller.execute(&sale.asset, json!({})).await;
    own.expect(200);
    let call = sale.buy(json!({"seconds": 50}));
    let (late, ()) = tokio::join!(call, source.until(1));
    sale.assert_free(late, 504, "EXECUTION_TIMEOUT", "source")
        .await;
    source.until(0).await;
    // A defect of PgBouncer 1.18 (mended in 1.19.1) ends it when a cancel comes at the wrong moment.
    match source.pooler.as_mut().and_then(PgBouncer::crash) {
        Some(crash) => println!("PgBouncer ended by itself: {crash}"),
        None => sale.assert_works(json!({})).await,
    }
}

#[tokio::test]
async fn a_seller_sells_from_postgres() {
    sell(source(false).await).await;
}

#[tokio::test]
async fn a_seller_sells_from_postgres_behind_a_pooler() {
    sell(source(true).await).await;
}

#[tokio::test]
async fn an_abandoned_call_stops_at_postgres() {
    stop(source(false).await).await;
}

#[tokio::test]
async fn an_abandoned_call_stops_at_postgres_behind_a_pooler() {
    stop(source(true).await).await;
}

#[tokio::test]
async fn what_takes_too_long_stops_at_postgres() {
    end(source(false).await).await;
}

#[tokio::test]
async fn what_takes_too_long_stops_at_postgres_behind_a_pooler() {
    end(source(true).await).await;
}
