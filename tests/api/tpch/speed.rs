//! How long the questions take, through souk and by the engine's own client: a measurement, on a machine that does nothing else, of the scale in
//! `SOUK_TPCH_SCALE`. `tests/load/figures tpch` runs it. It is held to no figure, but to the same answers.

use std::time::Instant;

use souk_tests::{Company, PgCluster};

use super::data::scale;
use super::{
    Asked, agree, answer, equal, in_postgres, in_sqlite, questions, same, told_by_postgres,
    told_by_sqlite,
};
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
    compare("PostgreSQL", &seller, &all, native).await;
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
    compare("SQLite", &seller, &all, native).await;
}

/// Asks both in turns, and prints the median time of each question and what it is of the native one.
async fn compare(engine: &str, seller: &Company, all: &[Asked], native: impl AsyncFn(&str)) {
    let mut ratios = Vec::new();
    for (place, asked) in all.iter().enumerate() {
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
                        native(&asked.sql).await;
                        theirs.push(milliseconds_since(begun));
                    }
                }
            }
        }
        let (ours, theirs) = (median(ours), median(theirs));
        let (number, ratio) = (place + 1, ours / theirs);
        println!(
            "{engine:<10} question {number:>2}: souk {ours:>8.1} ms, native {theirs:>8.1} ms, {ratio:>5.2}"
        );
        ratios.push(ratio);
    }
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    let (scale, count) = (scale(), ratios.len());
    println!(
        "{engine:<10} scale {scale}: {:.2} of the native time, the median of {count} questions ({least:.2} to {most:.2})",
        median(ratios)
    );
}

fn milliseconds_since(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}
