//! Wires within TLS that are torn in the middle of an answer: nobody says goodbye on them (`close_notify`), so that what has arrived is all that there
//! is. A part of a result is never taken for the whole: it is told as the source's fault, at once and free, and once the wire is whole again so is the
//! next answer.

use serde_json::{Value, json};
use souk_tests::breaking_api::{BreakingApi, Breaks};
use souk_tests::clickhouse::recorded::{self, Recorded};
use souk_tests::clickhouse::{PASSWORD, USER};
use souk_tests::seller_api::API_KEY;
use souk_tests::tls::TestCa;
use souk_tests::torn::{Ends, TornFront, TornWire};
use souk_tests::{
    BigQuery, ClickHouse, Company, Databricks, DuckDb, MySql, PgBouncer, PgCluster, Snowflake,
    SqlServer, Trino, databricks, duckdb, snowflake, sqlserver, trino,
};

use crate::paid_faults::{BROKEN, Sale, breaks_off, closes_between_answers};
use crate::{host, unique};

/// Letters of a text that is sold: more than all else that is said has bytes.
const NOTE: usize = 100_000;

/// The same as tables of the tests have it, all of whose values are SQLite's.
fn noted(schema: &str, table: &str, column: &str) -> String {
    format!(
        "ATTACH ':memory:' AS {schema}; CREATE TABLE {schema}.{table} ({column}); INSERT INTO {schema}.{table} VALUES (replace(hex(zeroblob({})), '0', 'x'));",
        NOTE / 2
    )
}

fn note(sql: &str) -> Value {
    json!({"result_type": "string", "timeout_ms": 20_000, "sql_logic": sql})
}

/// The seller's own call, which is free, has all of it.
async fn is_whole(sale: &Sale, what: &str) {
    let own = sale.seller.execute(&sale.asset, json!({})).await;
    let own = own.expect(200);
    assert_eq!(own.text("/data/answer_value").len(), NOTE, "{what}");
}

/// The buyer's call is told as what it is, and not at its deadline, when it would be 504.
async fn is_told(sale: &Sale, what: &str) {
    let refusal = sale.buy(json!({})).await;
    let refusal = sale.assert_free(refusal, 502, "SOURCE_ERROR", "source");
    let refusal = refusal.await;
    let reason = refusal.at("/error/details/reason");
    assert_eq!(reason, "unreachable", "{what}: {}", refusal.body);
    let said = refusal.text("/error/message");
    assert!(said.starts_with("the seller's source failed"), "{said}");
    assert!(said.ends_with(BROKEN), "{what}: {said}");
}

/// How a user comes into a database that proves who it is.
pub fn login(credentials: &Value, database: &str, ca_pem: &str) -> Value {
    json!({"credential_type": "PASSWORD", "credentials": credentials.to_string(), "database": database, "ca_pem": ca_pem})
}

/// A seller with a connection that leads over this wire, in TLS.
pub async fn seller_over(wire: &TornWire, engine: &str, mut fields: Value) -> (Company, String) {
    fields["host"] = "127.0.0.1".into();
    fields["port"] = wire.port.into();
    fields["ssl_mode"] = "verify-full".into();
    let seller = host().await.company(&unique(engine)).await;
    let connection = seller.connection(engine, fields).await;
    (seller, connection)
}

/// An engine that has a wire of its own, and TLS in it.
async fn is_borne_on_a_wire(engine: &str, port: u16, fields: Value, sql: &str) {
    let wire = TornWire::to(port).await;
    let (seller, connection) = seller_over(&wire, engine, fields).await;
    let sale = Sale::of(seller, &connection, note(sql)).await;
    for _ in 0..2 {
        is_whole(&sale, engine).await;
        let torn = wire.torn();
        // On a session that is open, and on new ones: a login is far shorter.
        wire.tear(NOTE / 2);
        for _ in 0..2 {
            is_told(&sale, engine).await;
        }
        assert!(wire.torn() > torn, "{engine}");
        wire.mend();
    }
    sale.assert_works(json!({})).await;
}

/// PostgreSQL, whose TLS begins behind a question of its own.
#[tokio::test]
async fn a_torn_wire_of_postgres_costs_the_buyer_nothing() {
    let cluster = PgCluster::shared().await;
    let database = cluster.database("SELECT 1").await;
    let credentials = json!({"username": cluster.user, "password": cluster.password});
    let fields = login(&credentials, &database, &cluster.ca_pem);
    let sql = format!("SELECT repeat('x', {NOTE}) AS note");
    is_borne_on_a_wire("postgres", cluster.port, fields, &sql).await;
}

/// The same of the wire to a pooler.
#[tokio::test]
async fn a_torn_wire_of_a_pooler_costs_the_buyer_nothing() {
    let cluster = PgCluster::shared().await;
    let database = cluster.database("SELECT 1").await;
    let pooler = PgBouncer::start(cluster, &[], &[]).await;
    let credentials =
        json!({"username": cluster.user, "password": cluster.password, "pooler": true});
    let fields = login(&credentials, &database, &pooler.ca_pem);
    let sql = format!("SELECT repeat('x', {NOTE}) AS note");
    is_borne_on_a_wire("postgres", pooler.port, fields, &sql).await;
}

/// The same of the wire between a pooler and its PostgreSQL: what the pooler says of that, in the middle of a row, is no part of the row.
#[tokio::test]
async fn a_torn_wire_behind_a_pooler_costs_the_buyer_nothing() {
    let cluster = PgCluster::shared().await;
    let database = cluster.database("SELECT 1").await;
    let wire = TornWire::to(cluster.port).await;
    let pooler = PgBouncer::start_by(wire.port, cluster, &[], &[]).await;
    let credentials =
        json!({"username": cluster.user, "password": cluster.password, "pooler": true});
    let fields = login(&credentials, &database, &pooler.ca_pem);
    let whole = TornWire::to(pooler.port).await;
    let (seller, connection) = seller_over(&whole, "postgres", fields).await;
    let sql = format!("SELECT repeat('x', {NOTE}) AS note");
    let sale = Sale::of(seller, &connection, note(&sql)).await;
    for _ in 0..2 {
        is_whole(&sale, "behind a pooler").await;
        let torn = wire.torn();
        wire.tear(NOTE / 2);
        for _ in 0..2 {
            let refusal = sale.buy(json!({})).await;
            let refusal = sale.assert_free(refusal, 502, "SOURCE_ERROR", "source");
            let refusal = refusal.await;
            let reason = refusal.at("/error/details/reason");
            assert_eq!(reason, "unreachable", "{}", refusal.body);
        }
        assert!(wire.torn() > torn);
        wire.mend();
    }
    sale.assert_works(json!({})).await;
}

/// MariaDB, whose TLS begins behind the server's greeting.
#[tokio::test]
async fn a_torn_wire_of_mariadb_costs_the_buyer_nothing() {
    let server = MySql::shared();
    let database = server.database("");
    let credentials = json!({"username": server.user, "password": server.password});
    let fields = login(&credentials, &database, &server.ca_pem);
    let sql = format!("SELECT REPEAT('x', {NOTE}) AS note");
    is_borne_on_a_wire("mysql", server.port, fields, &sql).await;
}

/// SQL Server, over both versions of its protocol: TLS that was begun in packets, and TLS around everything.
#[tokio::test]
async fn a_torn_wire_of_sqlserver_costs_the_buyer_nothing() {
    for version in ["7.4", "8.0"] {
        let server = SqlServer::start().await;
        let credentials = json!({"username": sqlserver::USER, "password": sqlserver::PASSWORD, "tds_version": version});
        let fields = login(&credentials, sqlserver::DATABASE, &server.ca_pem);
        let sql = format!("SELECT REPLICATE(CAST(N'x' AS nvarchar(max)), {NOTE}) AS note");
        is_borne_on_a_wire("sqlserver", server.address.port(), fields, &sql).await;
    }
}

/// An engine over HTTP, behind a front that has TLS and says in each of these ways where an answer ends.
async fn is_borne_over_https(
    engine: &str,
    base_url: &str,
    mut fields: Value,
    sql: &str,
    ways: &[Ends],
) -> (TornFront, Sale) {
    let front = TornFront::before(base_url).await;
    fields["base_url"] = front.base_url().into();
    fields["ca_pem"] = front.ca_pem.as_str().into();
    let seller = host().await.company(&unique(engine)).await;
    let connection = seller.connection(engine, fields).await;
    let sale = Sale::of(seller, &connection, note(sql)).await;
    for ends in ways {
        let what = format!("{engine}, {ends:?}");
        front.ends(*ends);
        is_whole(&sale, &what).await;
        let torn = front.torn();
        front.tear(NOTE / 2);
        for _ in 0..2 {
            is_told(&sale, &what).await;
        }
        assert!(front.torn() > torn, "{what}");
        front.mend();
        is_whole(&sale, &what).await;
    }
    (front, sale)
}

/// Trino, whose answers lead on to the next.
#[tokio::test]
async fn a_torn_answer_of_trino_costs_the_buyer_nothing() {
    let server = Trino::start().await;
    server.admin(&noted("league", "notes", "note varchar"));
    let credentials = json!({"username": trino::USER}).to_string();
    let fields = json!({"credential_type": "NONE", "credentials": credentials, "database": format!("{}.league", trino::CATALOG)});
    let sql = "SELECT note FROM notes";
    let (_front, sale) =
        is_borne_over_https("trino", &server.base_url(), fields, sql, &Ends::ALL).await;
    sale.assert_works(json!({})).await;
}

/// Snowflake, at which a statement is stopped when its answer is lost.
#[tokio::test]
async fn a_torn_answer_of_snowflake_costs_the_buyer_nothing() {
    let server = Snowflake::start().await;
    server.admin(&noted("LEAGUE", "NOTES", "NOTE varchar"));
    let credentials = json!({"warehouse": snowflake::WAREHOUSE, "role": snowflake::READER, "api_key": snowflake::ACCESS_TOKEN});
    let fields = json!({"credential_type": "API_KEY", "credentials": credentials.to_string(), "database": format!("{}.LEAGUE", snowflake::DATABASE)});
    let sql = "SELECT NOTE FROM NOTES";
    let (_front, sale) =
        is_borne_over_https("snowflake", &server.base_url(), fields, sql, &Ends::ALL).await;
    sale.assert_works(json!({})).await;
}

/// Databricks, in the same way.
#[tokio::test]
async fn a_torn_answer_of_databricks_costs_the_buyer_nothing() {
    let server = Databricks::start().await;
    server.admin(&noted("league", "notes", "note string text"));
    let credentials =
        json!({"warehouse_id": databricks::WAREHOUSE, "api_key": databricks::TOKEN}).to_string();
    let fields = json!({"credential_type": "API_KEY", "credentials": credentials, "database": format!("{}.league", databricks::CATALOG)});
    let sql = "SELECT note FROM notes";
    let (_front, sale) =
        is_borne_over_https("databricks", &server.base_url(), fields, sql, &Ends::ALL).await;
    sale.assert_works(json!({})).await;
}

/// BigQuery, whose first answer has the rows.
#[tokio::test]
async fn a_torn_answer_of_bigquery_costs_the_buyer_nothing() {
    let server = BigQuery::start().await;
    server.admin(&noted("league", "notes", "note STRING TEXT"));
    let credentials = server.credentials(json!({})).to_string();
    let fields = json!({"credential_type": "SERVICE_ACCOUNT", "credentials": credentials, "database": "league"});
    let sql = "SELECT note FROM notes";
    let (_front, sale) =
        is_borne_over_https("bigquery", &server.base_url(), fields, sql, &Ends::ALL).await;
    sale.assert_works(json!({})).await;
}

/// DuckDB, whose answers are binary.
#[tokio::test]
async fn a_torn_answer_of_duckdb_costs_the_buyer_nothing() {
    let server = DuckDb::start();
    let credentials = json!({"api_key": duckdb::TOKEN}).to_string();
    let fields =
        json!({"credential_type": "API_KEY", "credentials": credentials, "database": "memory"});
    let sql = format!("SELECT repeat('x', {NOTE}) AS note");
    let (_front, sale) =
        is_borne_over_https("duckdb", &server.base_url(), fields, &sql, &Ends::ALL).await;
    sale.assert_works(json!({})).await;
    // What was given up is ended there all the same.
    server.is_left().await;
}

/// ClickHouse's rows have no mark of their own behind the last: an answer that does not say where it ends is not believed, torn or not.
async fn clickhouse_is_borne(base_url: &str, database: &str, sql: &str) {
    let credentials = json!({"username": USER, "password": PASSWORD}).to_string();
    let fields =
        json!({"credential_type": "PASSWORD", "credentials": credentials, "database": database});
    let ways = [Ends::Length, Ends::Chunks];
    let (front, sale) = is_borne_over_https("clickhouse", base_url, fields, sql, &ways).await;
    front.ends(Ends::Connection);
    let refusal = sale.buy(json!({})).await;
    let refusal = sale.assert_free(refusal, 502, "SOURCE_ERROR", "source");
    let refusal = refusal.await;
    assert_eq!(refusal.at("/error/details/reason"), "bad_answer");
    front.tear(NOTE / 2);
    let refusal = sale.buy(json!({})).await;
    sale.assert_free(refusal, 502, "SOURCE_ERROR", "source")
        .await;
    front.ends(Ends::Length);
    sale.assert_works(json!({})).await;
}

#[tokio::test]
async fn a_torn_answer_of_a_recorded_clickhouse_costs_the_buyer_nothing() {
    let server = Recorded::start().await;
    server.keeps_a_note(NOTE);
    let sql = format!("SELECT note FROM {}", recorded::NOTES);
    clickhouse_is_borne(&server.base_url(), recorded::SCHEMA, &sql).await;
}

#[tokio::test]
#[ignore = "needs chdb, 600 MB: tests/run --all-engines"]
async fn real_clickhouse_that_is_torn_costs_the_buyer_nothing() {
    let server = ClickHouse::shared();
    let database = server.database(&[]);
    let sql = format!("SELECT repeat('x', {NOTE}) AS note");
    clickhouse_is_borne(&server.base_url(), &database, &sql).await;
}

/// An authority, an API of its own, and what is sold of it.
async fn api() -> (BreakingApi, Sale) {
    let ca = TestCa::new("a seller's authority");
    let api = BreakingApi::start_tls(&ca.server(&["127.0.0.1"])).await;
    let seller = host().await.company(&unique("torn")).await;
    let credentials = json!({"api_key": API_KEY}).to_string();
    let fields = json!({"credential_type": "API_KEY", "credentials": credentials, "base_url": api.base_url(), "ca_pem": ca.pem()});
    let connection = seller.connection("seller-api", fields).await;
    let function = json!({"function_id": "sum_goals", "timeout_ms": 5000});
    let sale = Sale::of(seller, &connection, function).await;
    (api, sale)
}

/// Wherever an https API breaks off, it is told so, also where all of a JSON has arrived: without a goodbye nobody knows whether that was all.
#[tokio::test]
async fn an_https_answer_that_breaks_off_costs_the_buyer_nothing() {
    for breaks in [
        Breaks::BeforeTheHead,
        Breaks::InTheHead,
        Breaks::InTheBody,
        Breaks::InAChunk,
        Breaks::BetweenChunks,
        Breaks::WithoutALength,
        Breaks::BeforeTheGoodbye,
    ] {
        let (api, sale) = api().await;
        breaks_off(&api, &sale, breaks, ("unreachable", BROKEN)).await;
    }
}

/// A connection that ends between two answers, without a goodbye, costs nobody an answer.
#[tokio::test]
async fn a_torn_connection_between_answers_is_no_fault() {
    let (api, sale) = api().await;
    closes_between_answers(&api, &sale).await;
}
