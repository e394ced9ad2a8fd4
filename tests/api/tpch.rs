//! TPC-H, 22 questions over eight tables, through souk and through each engine's own client: the same rows, to the last digit.

mod data;
mod questions;
mod speed;

use std::fmt::Write as _;
use std::path::Path;

use bytes::Bytes;
use futures_util::{SinkExt as _, TryStreamExt as _};
use rusqlite::types::ValueRef;
use serde_json::json;
use souk_tests::files::archive;
use souk_tests::{Company, DuckDb, MySql, PgCluster};

use self::data::{INDEXES, TABLES, cells, rows};
use crate::files_source::put_to_work;
use crate::{host, unique};

/// Questions of which the rows have nothing to say are few.
const ANSWERED_MIN: usize = 20;

/// The rows of an answer, in an order of their own: questions order theirs by what may tie.
type Rows = Vec<Vec<String>>;

fn sorted(mut rows: Rows) -> Rows {
    rows.sort();
    rows
}

/// A question, and where souk is asked it.
struct Asked {
    sql: String,
    path: String,
}

/// Makes an endpoint of a question, which answers it whole and in one page.
async fn put_up(seller: &Company, connection: &str, sql: String, columns: &[String]) -> Asked {
    let fields: Vec<_> = columns.iter().map(|name| json!({"name": name})).collect();
    let definition = json!({"slug": unique("question"), "sql_logic": sql, "fields": fields, "order_by": [columns[0]], "max_limit": 10_000,
                            "timeout_ms": 60_000});
    let endpoint = seller.endpoint(connection, definition).await;
    let path = seller.path(&format!("/endpoints/{endpoint}/execute?limit=10000"));
    Asked { sql, path }
}

/// What souk's own path answers to a question.
async fn answer(seller: &Company, asked: &Asked) -> String {
    let request = seller.client.request(reqwest::Method::GET, &asked.path);
    let answer = request
        .header("accept", "text/csv")
        .send()
        .await
        .expect("an answer");
    let status = answer.status();
    let text = answer.text().await.expect("text");
    assert_eq!(status, 200, "{}: {text}", asked.sql);
    text
}

/// Either the same text or the same number, but for what adding floats up in another order makes of their last digits.
fn same(ours: &str, theirs: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    let within = |(ours, theirs): (f64, f64)| (ours - theirs).abs() <= theirs.abs() * 1e-12;
    ours == theirs || number(ours).zip(number(theirs)).is_some_and(within)
}

/// Every digit.
fn equal(ours: &str, theirs: &str) -> bool {
    ours == theirs
}

/// What is computed in another way: of an average an engine has four digits more than of its values, PostgreSQL sixteen.
fn near(ours: &str, theirs: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    let within =
        |(ours, theirs): (f64, f64)| (ours - theirs).abs() <= 1e-4_f64.max(theirs.abs() * 1e-9);
    ours == theirs || number(ours).zip(number(theirs)).is_some_and(within)
}

/// Asks all questions of both, and compares. They can be asked again.
async fn agree(
    seller: &Company,
    connection: &str,
    question: fn(i32) -> String,
    same: fn(&str, &str) -> bool,
    native: impl AsyncFn(&str) -> (Vec<String>, Rows),
) -> Vec<Asked> {
    let mut all = Vec::new();
    let mut answered = 0;
    for number in 1..=questions::COUNT {
        let sql = question(number);
        let (columns, theirs) = native(&sql).await;
        let theirs = sorted(theirs);
        let asked = put_up(seller, connection, sql, &columns).await;
        let text = answer(seller, &asked).await;
        let mut lines = text.lines().map(cells);
        assert_eq!(lines.next(), Some(columns), "question {number}");
        let ours = sorted(lines.collect());
        let row = |(ours, theirs): (&Vec<String>, &Vec<String>)| {
            let mut cells = ours.iter().zip(theirs);
            ours.len() == theirs.len() && cells.all(|(ours, theirs)| same(ours, theirs))
        };
        let other = ours.iter().zip(&theirs).find(|pair| !row(*pair));
        assert_eq!(other, None, "question {number}");
        assert_eq!(ours.len(), theirs.len(), "question {number}");
        answered += usize::from(theirs.iter().flatten().any(|cell| !cell.is_empty()));
        all.push(asked);
    }
    assert!(answered >= ANSWERED_MIN, "only {answered} have an answer");
    all
}

/// The tables in a database of PostgreSQL's, and a client of it.
async fn in_postgres(cluster: &PgCluster) -> (String, tokio_postgres::Client) {
    let tables = TABLES.map(|(name, columns)| format!("CREATE TABLE {name} ({columns})"));
    let database = cluster.database(&tables.join(";")).await;
    let client = cluster.client(&database).await;
    for ((name, _), rows) in TABLES.iter().zip(rows()) {
        let copy = format!("COPY {name} FROM STDIN (FORMAT csv)");
        let mut sink = std::pin::pin!(client.copy_in(&copy).await.expect("COPY"));
        let rows = Bytes::from_static(rows.as_bytes());
        sink.send(rows).await.expect("rows");
        sink.finish().await.expect("rows");
    }
    let after = format!("{}; ANALYZE", INDEXES.join(";"));
    client.batch_execute(&after).await.expect("indexes");
    (database, client)
}

/// As text, in which the server writes every digit.
async fn told_by_postgres(client: &tokio_postgres::Client, sql: &str) -> (Vec<String>, Rows) {
    let copy = format!("COPY ({sql}) TO STDOUT (FORMAT csv, HEADER)");
    let pieces = client.copy_out(&copy).await.expect("COPY");
    let pieces: Vec<Bytes> = pieces.try_collect().await.expect("rows");
    let text = String::from_utf8(pieces.concat()).expect("text");
    let mut lines = text.lines().map(cells);
    (lines.next().expect("names"), lines.collect())
}

#[tokio::test]
async fn postgres_answers_tpch_to_the_last_digit() {
    let cluster = PgCluster::shared().await;
    let (database, client) = in_postgres(cluster).await;
    let seller = host().await.company(&unique("tpch")).await;
    let connection = seller.postgres(cluster, &database).await;
    let native = async |sql: &str| told_by_postgres(&client, sql).await;
    agree(&seller, &connection, questions::question, equal, native).await;
}

/// The tables in a file of SQLite's, and a connection to it.
fn in_sqlite(path: &Path) -> rusqlite::Connection {
    let mut db = rusqlite::Connection::open(path).expect("a database");
    let loaded = db.transaction().expect("a transaction");
    for ((name, columns), rows) in TABLES.iter().zip(rows()) {
        loaded
            .execute(&format!("CREATE TABLE {name} ({columns})"), [])
            .expect("a table");
        let count = rows.lines().next().map_or(0, |line| cells(line).len());
        let places = vec!["?"; count].join(", ");
        let mut insert = loaded
            .prepare(&format!("INSERT INTO {name} VALUES ({places})"))
            .expect("an INSERT");
        for line in rows.lines() {
            insert
                .execute(rusqlite::params_from_iter(cells(line)))
                .expect("a row");
        }
    }
    loaded.execute_batch(&INDEXES.join(";")).expect("indexes");
    loaded.commit().expect("rows");
    db.execute_batch("ANALYZE").expect("statistics");
    db
}

/// As text. A statement that is asked again is not planned again.
fn told_by_sqlite(db: &rusqlite::Connection, sql: &str) -> (Vec<String>, Rows) {
    let mut statement = db.prepare_cached(sql).expect("a statement");
    let columns: Vec<String> = statement
        .column_names()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let mut found = statement.query([]).expect("rows");
    let mut rows = Rows::new();
    while let Some(row) = found.next().expect("a row") {
        let cell = |place| match row.get_ref_unwrap(place) {
            ValueRef::Null => String::new(),
            ValueRef::Integer(number) => number.to_string(),
            // With a point, by which a float is known here.
            ValueRef::Real(number) => format!("{number:?}"),
            ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            ValueRef::Blob(_) => panic!("a blob"),
        };
        rows.push((0..columns.len()).map(cell).collect());
    }
    (columns, rows)
}

#[tokio::test]
async fn a_sqlite_file_answers_tpch_as_sqlite_does() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tpch.db");
    let db = in_sqlite(&path);
    let seller = host().await.company(&unique("tpch")).await;
    let file = std::fs::read(&path).expect("the file");
    let connection = seller.sqlite("tpch.db", file).await;
    let native = async |sql: &str| told_by_sqlite(&db, sql);
    agree(&seller, &connection, questions::for_sqlite, same, native).await;
}

#[tokio::test]
async fn mariadb_answers_tpch_to_the_last_digit() {
    let server = MySql::shared();
    let mut schema = String::new();
    for ((name, columns), rows) in TABLES.iter().zip(rows()) {
        let _ = writeln!(schema, "CREATE TABLE {name} ({columns});");
        let lines: Vec<_> = rows
            .lines()
            .map(|line| format!("('{}')", cells(line).join("','")))
            .collect();
        for lines in lines.chunks(1_000) {
            let _ = writeln!(schema, "INSERT INTO {name} VALUES {};", lines.join(","));
        }
    }
    let _ = writeln!(
        schema,
        "{}; ANALYZE TABLE lineitem, orders, partsupp, part, customer, supplier",
        INDEXES.join(";")
    );
    let database = server.database(&schema);
    let seller = host().await.company(&unique("tpch")).await;
    let connection = seller.mysql(server, &database).await;
    let native = async |sql: &str| {
        // Each column a row of its own says what it is called.
        let text = server.admin(&format!("USE {database}; DROP TEMPORARY TABLE IF EXISTS told; CREATE TEMPORARY TABLE told AS SELECT * FROM ({sql}) AS t LIMIT 0; SHOW COLUMNS FROM told; SELECT '--'; {sql};"));
        let (columns, rows) = text.split_once("--").expect("both");
        let columns = columns
            .lines()
            .map(|line| line.split('\t').next().unwrap_or_default().to_owned())
            .collect();
        let cell = |cell: &str| {
            if cell == "NULL" {
                String::new()
            } else {
                cell.to_owned()
            }
        };
        let rows = rows
            .lines()
            .skip(1)
            .map(|line| line.split('\t').map(cell).collect())
            .collect();
        (columns, rows)
    };
    agree(&seller, &connection, questions::question, equal, native).await;
}

#[tokio::test]
async fn duckdb_answers_tpch_to_the_last_digit() {
    let server = DuckDb::start();
    let directory = tempfile::tempdir().expect("a directory");
    server.admin("CREATE SCHEMA tpch");
    for ((name, columns), rows) in TABLES.iter().zip(rows()) {
        let path = directory.path().join(name);
        std::fs::write(&path, rows).expect("a file");
        server.admin(&format!("CREATE TABLE tpch.{name} ({columns})"));
        server.admin(&format!(
            "COPY tpch.{name} FROM '{}' (FORMAT csv, HEADER false)",
            path.display()
        ));
    }
    let seller = host().await.company(&unique("tpch")).await;
    let connection = seller.duckdb(&server, "tpch").await;
    server.admin("SET schema = 'tpch'");
    let native = async |sql: &str| {
        let columns = server.admin(&format!("SELECT column_name FROM (DESCRIBE {sql})"));
        let columns = columns.into_iter().flatten().flatten().collect();
        let text =
            |row: Vec<Option<String>>| row.into_iter().map(Option::unwrap_or_default).collect();
        let rows = server.admin(sql).into_iter().map(text).collect();
        (columns, rows)
    };
    agree(&seller, &connection, questions::question, equal, native).await;
}

/// Each column begins with its name; the rest are keys, and what is behind a comma of a type.
fn columns_of(columns: &'static str) -> Vec<&'static str> {
    let names = columns
        .split(", ")
        .filter_map(|column| column.split(' ').next());
    names
        .filter(|name| name.contains('_') && !name.ends_with(')'))
        .collect()
}

/// Files have no client of their own: PostgreSQL is asked.
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_answer_tpch() {
    put_to_work().await;
    let (_, client) = in_postgres(PgCluster::shared().await).await;
    let files = TABLES.iter().zip(rows()).map(|((name, columns), rows)| {
        let names = columns_of(columns).join(",");
        (format!("{name}.csv"), format!("{names}\n{rows}"))
    });
    let files: Vec<(String, String)> = files.collect();
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let seller = host().await.company(&unique("tpch")).await;
    let connection = seller.file("files", "tpch.tar", archive(&files)).await;
    let native = async |sql: &str| told_by_postgres(&client, sql).await;
    agree(&seller, &connection, questions::question, near, native).await;
}
