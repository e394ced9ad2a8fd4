//! What sellers write for PostgreSQL, MariaDB, SQLite, DuckDB, ClickHouse and Spark (for Databricks), through souk and through the source's own client: the same values, to the last
//! digit, or the code with which it is refused. The statements are in the files of `breadth/`, a block each; `blocks.rs` says what is in a block, and
//! who misses a statement adds one.
//!
//! A statement without parameters is an endpoint's and answers rows, which are compared without their order: one that is about an order shows
//! it in a column. A statement with parameters is an asset's and answers one value.

mod blocks;
mod clickhouse;
mod databricks;
mod duckdb;
mod mariadb;
mod postgres;
pub(crate) mod spelling;
mod sqlite;

use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use souk_tests::{Answer, ClickHouse, Company, Databricks, DuckDb, MySql, PgCluster};

use self::blocks::{Block, Refused};
use self::spelling::{digits, records};
use crate::{host, unique};

/// More than any statement here answers: all of it is one page.
const ROWS_MAX: usize = 10_000;

/// A value as souk writes it in CSV; NULL is none.
type Row = Vec<Option<String>>;

/// What a source says to its own client.
struct Told {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

struct Column {
    name: String,
    is_number: bool,
    /// Compared by its digits, whose exponent everybody writes in another way.
    is_float: bool,
    /// Whether rows can be sorted by it.
    sorts: bool,
}

/// Two that differ in a digit, in NULL or in their number are told apart: without that nothing here would say anything.
#[test]
fn a_difference_is_seen() {
    let column = |name: &str, is_float| Column {
        name: name.to_owned(),
        is_number: is_float,
        is_float,
        sorts: true,
    };
    let told = || Told {
        columns: vec![column("text", false), column("float", true)],
        rows: vec![
            vec![Some("a".to_owned()), Some("1e+20".to_owned())],
            vec![None, Some("0.1".to_owned())],
        ],
    };
    let rows = |text: &str| records(&format!("text,float\r\n{text}"))[1..].to_vec();
    assert_eq!(difference(told(), rows(",0.1\r\na,1.0e20\r\n")), None);
    for other in [
        ",0.1\r\n",
        ",0.1\r\na,1e21\r\n",
        ",0.10000000149011612\r\na,1e20\r\n",
        ",-0.1\r\na,1e20\r\n",
        "\"\",0.1\r\na,1e20\r\n",
        ",0.1\r\nA,1e20\r\n",
        ",0.1\r\n,1e20\r\n",
        ",\r\na,1e20\r\n",
        "0.1\r\na,1e20\r\n",
    ] {
        let seen = difference(told(), rows(other));
        assert!(seen.is_some(), "{other}");
    }
}

#[tokio::test]
async fn what_sellers_write_for_postgres_is_answered_to_the_last_digit() {
    let cluster = PgCluster::shared().await;
    let database = cluster.database(postgres::SCHEMA).await;
    let native = postgres::client(cluster, &database).await;
    let seller = host().await.company(&unique("breadth")).await;
    let connection = seller.postgres(cluster, &database).await;
    let before = postgres::state(&native).await;
    let refused = blocks::read(postgres::REFUSED);
    let mut faults = refusals(&seller, &connection, &refused).await;
    assert_eq!(
        postgres::state(&native).await,
        before,
        "something was changed"
    );
    let mut answered = 0;
    for block in postgres::ANSWERED.into_iter().flat_map(blocks::read) {
        let told = postgres::told(&native, &block).await;
        answered += usize::from(has_values(&told));
        faults.extend(fault(&seller, &connection, &block, told).await);
    }
    assert_eq!(
        postgres::state(&native).await,
        before,
        "something was changed"
    );
    assert!(refused.len() >= 70 && answered >= 165, "{answered} answers");
    none(&faults);
}

#[tokio::test]
async fn what_sellers_write_for_sqlite_is_answered_to_the_last_digit() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("breadth.db");
    let native = rusqlite::Connection::open(&path).expect("a database");
    native.execute_batch(sqlite::SCHEMA).expect("the schema");
    let seller = host().await.company(&unique("breadth")).await;
    let file = std::fs::read(&path).expect("the file");
    let connection = seller.sqlite("breadth.db", file).await;
    // Before the others, which would see it if one of them changed anything.
    let refused = blocks::read(sqlite::REFUSED);
    let mut faults = refusals(&seller, &connection, &refused).await;
    let mut answered = 0;
    for block in sqlite::ANSWERED.into_iter().flat_map(blocks::read) {
        let told = sqlite::told(&native, &block);
        answered += usize::from(has_values(&told));
        faults.extend(fault(&seller, &connection, &block, told).await);
    }
    assert!(refused.len() >= 50 && answered >= 105, "{answered} answers");
    none(&faults);
}

#[tokio::test]
async fn what_sellers_write_for_duckdb_is_answered_to_the_last_digit() {
    let server = DuckDb::start();
    server.admin(duckdb::SCHEMA);
    // As souk's connections are.
    server.admin("SET TimeZone = 'UTC'");
    let seller = host().await.company(&unique("breadth")).await;
    let connection = seller.duckdb(&server, "breadth").await;
    let before = duckdb::state(&server);
    let refused = blocks::read(duckdb::REFUSED);
    let mut faults = refusals(&seller, &connection, &refused).await;
    let mut answered = 0;
    for block in duckdb::ANSWERED.into_iter().flat_map(blocks::read) {
        let told = duckdb::told(&server, &block);
        answered += usize::from(has_values(&told));
        faults.extend(fault(&seller, &connection, &block, told).await);
    }
    assert_eq!(duckdb::state(&server), before, "something was changed");
    assert!(
        refused.len() >= 145 && answered >= 190,
        "{answered} answers"
    );
    none(&faults);
}

#[tokio::test]
async fn what_sellers_write_for_mariadb_is_answered_to_the_last_digit() {
    let server = MySql::shared();
    let database = server.database(&mariadb::schema(server));
    let seller = host().await.company(&unique("breadth")).await;
    let connection = seller.mysql(server, &database).await;
    let before = mariadb::state(server, &database);
    let refused = mariadb::blocks(server, mariadb::REFUSED);
    let mut faults = refusals(&seller, &connection, &refused).await;
    assert_eq!(
        mariadb::state(server, &database),
        before,
        "something was changed"
    );
    let mut answered = 0;
    let asked = mariadb::ANSWERED.map(|file| mariadb::blocks(server, file));
    for block in asked.into_iter().flatten() {
        let told = mariadb::told(server, &database, &block);
        answered += usize::from(has_values(&told));
        faults.extend(fault(&seller, &connection, &block, told).await);
    }
    assert_eq!(
        mariadb::state(server, &database),
        before,
        "something was changed, or is still locked"
    );
    let least = if server.is_mysql() { 150 } else { 195 };
    assert!(
        refused.len() >= 80 && answered >= least,
        "{answered} answers"
    );
    none(&faults);
}

#[tokio::test]
#[ignore = "needs chdb, 600 MB: tests/run --all-engines"]
async fn what_sellers_write_for_real_clickhouse_is_answered_to_the_last_digit() {
    let server = ClickHouse::start();
    let database = server.database(&clickhouse::schema());
    let seller = host().await.company(&unique("breadth")).await;
    let connection = seller.clickhouse(&server, &database).await;
    let before = clickhouse::state(&server, &database);
    let refused = blocks::read(clickhouse::REFUSED);
    let mut faults = refusals(&seller, &connection, &refused).await;
    let mut answered = 0;
    for block in clickhouse::ANSWERED.into_iter().flat_map(blocks::read) {
        let told = clickhouse::told(&server, &database, &block);
        answered += usize::from(has_values(&told));
        faults.extend(fault(&seller, &connection, &block, told).await);
    }
    let after = clickhouse::state(&server, &database);
    assert_eq!(after, before, "something was changed");
    assert!(
        refused.len() >= 190 && answered >= 230,
        "{answered} answers"
    );
    none(&faults);
}

#[tokio::test]
#[ignore = "needs Spark, 500 MB, and Java 17: tests/run --all-engines"]
async fn what_sellers_write_for_real_spark_is_answered_to_the_last_digit() {
    let server = Databricks::start_spark().await;
    let spark = server.spark();
    spark.admin(databricks::SCHEMA);
    let seller = host().await.company(&unique("breadth")).await;
    let connection = seller.databricks(&server, databricks::DATABASE).await;
    let before = databricks::state(spark);
    let refused = blocks::read(databricks::REFUSED);
    let mut faults = refusals(&seller, &connection, &refused).await;
    // What souk does not even send Spark refuses itself, but for queries that are written as nowhere else.
    let unsent = refused.iter().filter(|block| is_unsent(block));
    let taken = unsent.filter(|block| {
        let sql = block.sql.trim_end_matches(';');
        spark.describes(sql, databricks::DATABASE)
    });
    let taken: Vec<&str> = taken.map(|block| block.name).collect();
    let queries = [
        "a query that begins with its source",
        "a step that is named as what writes is",
    ];
    assert_eq!(taken, queries);
    assert_eq!(databricks::state(spark), before, "something was changed");
    let mut answered = 0;
    for block in databricks::ANSWERED.into_iter().flat_map(blocks::read) {
        let told = databricks::told(spark, &block);
        answered += usize::from(has_values(&told));
        faults.extend(fault(&seller, &connection, &block, told).await);
    }
    assert_eq!(databricks::state(spark), before, "something was changed");
    assert!(refused.len() >= 80 && answered >= 145, "{answered} answers");
    none(&faults);
}

fn is_unsent(block: &Block) -> bool {
    let refused = block.refused.as_ref();
    refused.is_some_and(|refused| refused.code == "SQL_NOT_READ_ONLY")
}

fn none(faults: &[String]) {
    let (count, all) = (faults.len(), faults.join("\n\n"));
    assert_eq!(count, 0, "{all}");
}

fn has_values(told: &Told) -> bool {
    told.rows.iter().flatten().any(Option::is_some)
}

/// What is wrong with what souk answers, for whoever has to find out why.
async fn fault(seller: &Company, connection: &str, block: &Block, told: Told) -> Option<String> {
    let ours = match block.parameters.is_empty() {
        true => page(seller, connection, block, &told.columns).await,
        false => value(seller, connection, block, &told.columns).await,
    };
    let fault = match ours {
        Ok(rows) => difference(told, rows)?,
        Err(refused) => format!("it is refused: {refused}"),
    };
    Some(format!("{}: {fault}\n{}", block.name, block.sql))
}

/// Where souk's rows and the source's differ first.
fn difference(told: Told, ours: Vec<Row>) -> Option<String> {
    let columns = &told.columns;
    if let Some(row) = ours.iter().find(|row| row.len() != columns.len()) {
        return Some(format!("a row has {} values: {row:?}", row.len()));
    }
    let (ours, theirs) = (comparable(columns, ours), comparable(columns, told.rows));
    if ours.len() != theirs.len() {
        return Some(format!(
            "{} rows, and at the source {}",
            ours.len(),
            theirs.len()
        ));
    }
    let (ours, theirs) = ours
        .iter()
        .zip(&theirs)
        .find(|(ours, theirs)| ours != theirs)?;
    let mut cells = columns.iter().zip(ours.iter().zip(theirs));
    let (column, (ours, theirs)) = cells.find(|(_, (ours, theirs))| ours != theirs)?;
    Some(format!(
        "\"{}\" is {ours:?}, and at the source {theirs:?}",
        column.name
    ))
}

/// In an order of their own, since a statement's is not an endpoint's.
fn comparable(columns: &[Column], rows: Vec<Row>) -> Vec<Row> {
    let cell = |(cell, column): (Option<String>, &Column)| match column.is_float {
        true => cell.map(|cell| digits(&cell)),
        false => cell,
    };
    let row = |row: Row| row.into_iter().zip(columns).map(cell).collect::<Row>();
    let mut rows: Vec<Row> = rows.into_iter().map(row).collect();
    rows.sort();
    rows
}

/// What an endpoint answers, whole and in one page, or what it is refused with.
async fn page(
    seller: &Company,
    connection: &str,
    block: &Block,
    columns: &[Column],
) -> Result<Vec<Row>, String> {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let fields: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    let Some(sorts) = columns.iter().find(|column| column.sorts) else {
        return Err("it needs a column to sort by".to_owned());
    };
    let body = json!({"connection_id": connection, "name": block.name, "slug": unique("breadth"), "sql_logic": block.sql, "fields": fields,
        "order_by": [{"field": sorts.name}], "max_limit": ROWS_MAX});
    let saved = seller.client.post(&seller.path("/endpoints"), body).await;
    if saved.status != 201 {
        return Err(saved.body.to_string());
    }
    let endpoint = saved.text("/data/endpoint_id");
    let path = seller.path(&format!("/endpoints/{endpoint}/execute?limit={ROWS_MAX}"));
    let request = seller.client.request(Method::GET, &path);
    let text = body_of(request.header("accept", "text/csv")).await?;
    let mut records = records(&text);
    let head: Row = names.iter().map(|name| Some((*name).to_owned())).collect();
    match records.is_empty() || records.remove(0) != head {
        true => Err(format!("the columns are others: {text}")),
        false => Ok(records),
    }
}

/// As it came: what is read as a JSON document has the digits of a double.
#[derive(Deserialize)]
struct Executed<'a> {
    #[serde(borrow)]
    data: Insight<'a>,
}

#[derive(Deserialize)]
struct Insight<'a> {
    #[serde(borrow)]
    answer_value: &'a RawValue,
}

/// What an asset answers to the block's values, as the one row of one column.
async fn value(
    seller: &Company,
    connection: &str,
    block: &Block,
    columns: &[Column],
) -> Result<Vec<Row>, String> {
    let result_type = match columns.iter().all(|column| column.is_number) {
        true => "number",
        false => "string",
    };
    let saved = saved_asset(seller, connection, block, result_type).await;
    if saved.status != 201 {
        return Err(saved.body.to_string());
    }
    let asset = saved.text("/data/asset_id");
    let path = seller.path(&format!("/assets/{asset}/execute"));
    let request = seller.client.request(Method::POST, &path);
    let text = body_of(request.json(&json!({"params": block.values()}))).await?;
    let executed: Executed<'_> = serde_json::from_str(&text).expect("an answer");
    let value = match executed.data.answer_value.get() {
        "null" => None,
        text if text.starts_with('"') => serde_json::from_str(text).expect("a text"),
        number => Some(number.to_owned()),
    };
    Ok(vec![vec![value]])
}

/// What is answered, or else what it is refused with.
async fn body_of(request: reqwest::RequestBuilder) -> Result<String, String> {
    let answer = request.send().await.expect("an answer");
    let status = answer.status();
    let text = answer.text().await.expect("a body");
    match status.is_success() {
        true => Ok(text),
        false => Err(text),
    }
}

async fn saved_asset(
    seller: &Company,
    connection: &str,
    block: &Block,
    result_type: &str,
) -> Answer {
    let parameters = block.parameters.iter();
    let parameters: Vec<Value> = parameters
        .map(|parameter| json!({"name": parameter.name, "type": parameter.kind, "required": false}))
        .collect();
    let body = json!({"connection_id": connection, "asset_type": "CALCULATION", "name": block.name, "slug": unique("breadth"),
        "result_type": result_type, "sql_logic": block.sql, "parameters": parameters});
    seller.client.post(&seller.path("/assets"), body).await
}

/// What is wrong with how statements are refused, when they are saved or when they are run.
async fn refusals(seller: &Company, connection: &str, blocks: &[Block]) -> Vec<String> {
    let mut faults = Vec::new();
    for block in blocks {
        let wanted = block.refused.as_ref();
        let wanted =
            wanted.unwrap_or_else(|| panic!("{} does not say how it is refused", block.name));
        let saved = saved_asset(seller, connection, block, "string").await;
        let answer = match saved.status.as_u16() {
            201 => {
                let asset = saved.text("/data/asset_id");
                seller.execute(&asset, block.values()).await
            }
            _ => saved,
        };
        if !is_refused(&answer, wanted) {
            faults.push(format!("{}: {}\n{}", block.name, answer.body, block.sql));
        }
    }
    faults
}

fn is_refused(answer: &Answer, wanted: &Refused) -> bool {
    let told = ["/error/details/source_code", "/error/details/fault_code"];
    let told = told.map(|pointer| answer.at(pointer).as_str());
    answer.status == wanted.status
        && answer.at("/error/code") == wanted.code
        && wanted
            .of_source
            .is_none_or(|code| told.contains(&Some(code)))
}
