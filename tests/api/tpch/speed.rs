//! How long the questions take, through souk and by the engine's own client: a measurement, on a machine that does nothing else, of the scale in
//! `SOUK_TPCH_SCALE`. `tests/load/figures tpch` runs it. It is held to no figure, but to the same answers; files of Parquet, of which native SQLite on its
//! own tables is the measure, to being quicker.

use std::time::Instant;

use serde_json::json;
use souk_tests::files::archive;
use souk_tests::{Company, PgCluster};

use super::data::{TABLES, scale};
use super::{
    Asked, agree, answer, columns_of, equal, in_postgres, in_sqlite, near, questions, same,
    told_by_postgres, told_by_sqlite,
};
use crate::files_source::put_to_work;
use crate::speed::median;
use crate::{host, unique};

/// Of each question and each of both, after one in which their answers are compared.
const RUNS: usize = 7;

#[tokio::test]
#[ignore = "measures: cargo test --profile dist -p souk-tests --test api the_time_of_tpch -- --ignored --nocapture"]
async fn the_time_of_tpch() {
    // One engine after the other: two would share the processor.
    postgres().await;
    sqlite().await;
    match std::env::var_os("SOUK_FILES_COMPONENT") {
        Some(_) => files().await,
        None => println!(
            "Parquet    is not measured: SOUK_FILES_COMPONENT does not say where its connector is"
        ),
    }
}

/// Beside what psql asks.
async fn postgres() {
    let cluster = PgCluster::shared().await;
    let (database, client) = in_postgres(cluster).await;
    let seller = host().await.company(&unique("tpch")).await;
    let connection = seller.postgres(cluster, &database).await;
    let told = async |sql: &str| told_by_postgres(&client, sql).await;
    let all = agree(&seller, &connection, questions::question, equal, told).await;
    let native = async |sql: &str| {
        client.simple_query(sql).await.expect("rows");
    };
    compare("PostgreSQL", &seller, &all, questions::question, native).await;
}

/// Beside rusqlite as it comes.
async fn sqlite() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tpch.db");
    let db = in_sqlite(&path);
    let seller = host().await.company(&unique("tpch")).await;
    let file = std::fs::read(&path).expect("the file");
    let connection = seller.sqlite("tpch.db", file).await;
    let told = async |sql: &str| told_by_sqlite(&db, sql);
    let all = agree(&seller, &connection, questions::for_sqlite, same, told).await;
    let native = async |sql: &str| {
        told_by_sqlite(&db, sql);
    };
    compare("SQLite", &seller, &all, questions::for_sqlite, native).await;
}

/// Parquet, as souk's own exports of PostgreSQL's tables write it, beside rusqlite as it comes. Its answers are held against PostgreSQL's: SQLite adds floats.
async fn files() {
    put_to_work().await;
    let cluster = PgCluster::shared().await;
    let (database, client) = in_postgres(cluster).await;
    let seller = host().await.company(&unique("tpch")).await;
    let tables = seller.postgres(cluster, &database).await;
    let mut files = Vec::new();
    for (name, columns) in TABLES {
        let names = columns_of(columns);
        let fields: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        // A table has its key in front, of one column or, where they are two, of two in a row but for that of `lineitem`.
        let order_by: Vec<_> = match name {
            "lineitem" => vec!["l_orderkey", "l_linenumber"],
            _ => names.iter().copied().take(2).collect(),
        };
        let definition = json!({"slug": unique(name), "source": {"table": name}, "fields": fields, "order_by": order_by});
        let endpoint = seller.endpoint(&tables, definition).await;
        let path = seller.path(&format!("/endpoints/{endpoint}/execute?export=true"));
        let request = seller.client.request(reqwest::Method::GET, &path);
        let request = request.header("accept", "application/vnd.apache.parquet");
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "{name}");
        let bytes = answer.bytes().await.expect("a whole export");
        files.push((format!("{name}.parquet"), bytes));
    }
    let files: Vec<_> = files
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes))
        .collect();
    let connection = seller.file("files", "tpch.tar", archive(&files)).await;
    let told = async |sql: &str| told_by_postgres(&client, sql).await;
    let all = agree(&seller, &connection, questions::question, near, told).await;
    let directory = tempfile::tempdir().expect("a directory");
    let db = in_sqlite(&directory.path().join("tpch.db"));
    let native = async |sql: &str| {
        told_by_sqlite(&db, sql);
    };
    let ratio = compare("Parquet", &seller, &all, questions::for_sqlite, native).await;
    assert!(ratio < 1.0, "{ratio:.2} of native SQLite's time");
}

/// Asks both in turns, and prints the median time of each question and what it is of the native one. What all of ours take of all of theirs.
async fn compare(
    engine: &str,
    seller: &Company,
    all: &[Asked],
    question: fn(i32) -> String,
    native: impl AsyncFn(&str),
) -> f64 {
    let mut ratios = Vec::new();
    let mut sums = (0.0, 0.0);
    for (number, asked) in (1..).zip(all) {
        let sql = question(number);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for run in 0..RUNS {
            // Whoever comes second finds in memory what the first one read.
            for is_souk in [run % 2 == 0, run % 2 != 0] {
                let begun = Instant::now();
                match is_souk {
                    true => {
                        answer(seller, asked).await;
                        ours.push(milliseconds_since(begun));
                    }
                    false => {
                        native(&sql).await;
                        theirs.push(milliseconds_since(begun));
                    }
                }
            }
        }
        let (ours, theirs) = (median(ours), median(theirs));
        let ratio = ours / theirs;
        println!(
            "{engine:<10} question {number:>2}: souk {ours:>8.1} ms, native {theirs:>8.1} ms, {ratio:>5.2}"
        );
        ratios.push(ratio);
        sums = (sums.0 + ours, sums.1 + theirs);
    }
    let of_all = sums.0 / sums.1;
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    let (scale, count) = (scale(), ratios.len());
    println!(
        "{engine:<10} scale {scale}: {:.2} of the native time, the median of {count} questions ({least:.2} to {most:.2}); {of_all:.2} of all of them",
        median(ratios)
    );
    of_all
}

fn milliseconds_since(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}
