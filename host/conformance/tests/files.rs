//! The component `files` on files that are made here. It takes many minutes to build: `tests/run --all-engines`.

mod common;
#[path = "files/tables.rs"]
mod tables;

use std::path::Path;
use std::time::Instant;

use souk_conformance::{Outcome, Profile, Subject, options};
use souk_sandbox::formats::{self, Format};
use souk_sandbox::json::Field;
use souk_sandbox::{Blame, Compiler, Limits, Query, Request};

/// A statement of so many `WITH`, each of the last.
fn chain(count: usize, next: impl Fn(usize) -> String) -> String {
    let parts = (1..count).map(|at| format!(", c{at} AS ({})", next(at - 1)));
    let parts: String = parts.collect();
    format!(
        "WITH c0 AS (SELECT 1 AS x){parts} SELECT x FROM c{}",
        count - 1
    )
}

/// The one table of a file, whose rows are told apart by `key`.
async fn loaded(path: &Path, key: &str) -> Subject {
    let table = path.file_stem().unwrap().display();
    let profile = format!(
        "[source]\nfile = '{}'\n[table]\nschema = 'public'\nname = '{table}'\nkey = ['{key}']\n",
        path.display()
    );
    let profile = Profile::parse(&profile, Path::new(".")).unwrap();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let component = std::env::var_os("SOUK_FILES_COMPONENT").expect("tests/run --all-engines");
    let wasm = std::fs::read(component).unwrap();
    Subject::load(wasm, options(&cache, Compiler::InProcess), profile)
        .await
        .unwrap()
}

/// The whole kit on one file. Nothing fails, and nothing is left out but what files do not have: secrets, TLS, wires, servers that lie, a source
/// that is asked aside. Its rows are the answer, an object a line.
async fn conforms(name: &str, bytes: &[u8], key: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let subject = loaded(&path, key).await;
    let report = souk_conformance::run(&subject).await.unwrap();
    println!("{name}: {report}");
    assert!(report.is_conforming(), "{name}: {report}");
    assert_eq!(report.checks(Outcome::Warned), [""; 0], "{name}: {report}");
    // A file has no wire, and no secret.
    let skipped = report.checks(Outcome::Skipped);
    assert_eq!(skipped, ["open.wrong_secret", "wire"], "{name}: {report}");
    let table = path.file_stem().unwrap().display();
    let text = format!("SELECT * FROM {table} ORDER BY {key}");
    let output = common::ask(&subject, common::query(&text)).await.unwrap();
    subject.close().await;
    let (fields, rows) = (Field::all(&output), output.rows);
    let mut lines = Vec::new();
    formats::write(Format::JsonLines, &mut lines, output, &fields, rows).unwrap();
    String::from_utf8(lines).unwrap()
}

/// One table in four formats is one table.
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_conform() {
    let columns = tables::stock_columns();
    let csv = conforms("stock.csv", tables::stock().as_bytes(), "id").await;
    for (name, bytes) in [
        ("stock.jsonl", tables::stock_lines().into_bytes()),
        ("stock.parquet", tables::parquet(&columns)),
        ("stock.arrow", tables::arrow(&columns)),
    ] {
        assert_eq!(conforms(name, &bytes, "id").await, csv, "{name}");
    }
}

/// What formats have that a CSV has not: unsigned numbers, powers of ten, times of day in all units, dictionaries, lists, structures.
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_of_more_types_conform() {
    let columns = tables::goods_columns();
    let rows = conforms("goods.parquet", &tables::parquet(&columns), "number").await;
    let first = rows.lines().next().unwrap();
    assert_eq!(
        first,
        r#"{"number":18446744073709551556,"fee":-1234567890123456789012345678.9012345001,"weight":0.125,"opens":"00:20:34.567890","closes":"00:20:34.567000","rings":"00:20:34.567891","moved":"2026-01-01T00:01:00.000001Z","code":"a%2","seen":"2026-01-01T00:00:01.001000","count":4294967294,"small":-1,"ratio":0.1,"photo":"AAH/","tags":[1,null],"about":{"a":"a%2","b":-1234567890123456789012345678.9012345001}}"#
    );
    let same = conforms("goods.arrow", &tables::arrow(&columns), "number").await;
    assert_eq!(same, rows);
    let rows = conforms("goods.jsonl", tables::goods_lines().as_bytes(), "number").await;
    let first = rows.lines().next().unwrap();
    assert_eq!(
        first,
        r#"{"number":18446744073709551556,"weight":0.125,"fee":-1234567890123456789012345678.9012345001,"seen":"2026-01-01T00:00:01.001000","moved":"2026-01-01T00:01:00.000001Z","code":"a%2","tags":[1,null],"about":{"a":"x\"y","b":1.50}}"#
    );
}

/// What takes all of the guest's memory ends its session, and the next one is served.
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_keep_their_bounds() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stock.csv");
    std::fs::write(&path, tables::stock()).unwrap();
    let subject = loaded(&path, "id").await;
    let ask = async |text: &str| {
        let source = subject.source(subject.place.as_ref().unwrap());
        let request = Request::Query(Query {
            text: text.into(),
            parameters: Vec::new(),
            limits: Limits::new(1_000, 1 << 20),
        });
        subject.ask(&source, request).await
    };
    // What nests as deep as is allowed, and what would nest deeper.
    for (text, is_taken) in [
        (format!("SELECT {}1", "1+".repeat(390)), true),
        (format!("SELECT {}1", "1+".repeat(20_000)), false),
        (
            format!("SELECT {}1{}", "(".repeat(9_000), ")".repeat(9_000)),
            false,
        ),
        (format!("SELECT {}true", "NOT ".repeat(9_000)), false),
        (format!("SELECT 1 {}", "IN (true) ".repeat(9_000)), false),
        (format!("SELECT 'a' {}", "ILIKE 'a' ".repeat(9_000)), false),
        (
            format!("SELECT now() {}", "AT TIME ZONE 'UTC' ".repeat(9_000)),
            false,
        ),
        (
            format!("SELECT count(*) FROM stock {}", ", stock".repeat(9_000)),
            false,
        ),
        (chain(9_000, |last| format!("SELECT x FROM c{last}")), false),
        (chain(100, |last| format!("SELECT x FROM c{last}")), true),
        (
            chain(31, |last| format!("SELECT p.x FROM c{last} p, c{last} q")),
            false,
        ),
        (
            format!("SELECT {}1{}", "abs(".repeat(9_000), ")".repeat(9_000)),
            false,
        ),
        (
            format!(
                "SELECT count(*) FROM stock WHERE {}id = 1",
                "id = 2 OR ".repeat(120)
            ),
            true,
        ),
        (
            format!("SELECT CASE {} END", "WHEN 1 = 2 THEN 3 ".repeat(190)),
            true,
        ),
        (
            format!(
                "SELECT count(*) FROM (SELECT 1 {}) AS x",
                "UNION ALL SELECT 1 ".repeat(200)
            ),
            true,
        ),
        (
            format!(
                "SELECT count(*) FROM ({}SELECT 1{}",
                "SELECT * FROM (".repeat(8),
                ") AS x".repeat(9)
            ),
            true,
        ),
        (
            format!(
                "SELECT count(*) FROM stock WHERE id IN ({}1)",
                "1,".repeat(10_000)
            ),
            true,
        ),
    ] {
        let asked = ask(&text).await;
        println!("{}…: {:?}", &text[..30], asked.as_ref().map(|_| ()));
        assert!(asked.is_ok() || !is_taken, "{}: {asked:?}", &text[..60]);
        if let Err(refused) = asked {
            // Its own error, not the end of its session.
            assert_eq!(refused.blame, Blame::Source, "{}: {refused:?}", &text[..60]);
        } else {
            assert!(is_taken, "{}", &text[..60]);
        }
        assert!(
            ask("SELECT count(*) FROM stock").await.is_ok(),
            "after {}",
            &text[..60]
        );
    }
    // What is grouped or put together is counted, so that its session goes on; one value is held by the guest's memory.
    for (text, blame) in [
        ("SELECT length(repeat('x', 2000000000))", Blame::Connector),
        (
            "SELECT count(*) FROM (SELECT v * 7919 % 99999989 AS w FROM generate_series(1, 100000000) AS g(v) GROUP BY 1) AS x",
            Blame::Source,
        ),
        (
            "SELECT length(string_agg(repeat('x', 1000), '')) FROM generate_series(1, 10000000) AS g(v)",
            Blame::Source,
        ),
        (
            "SELECT array_length(array_agg(repeat('x', 1000))) FROM generate_series(1, 10000000) AS g(v)",
            Blame::Source,
        ),
        ("SELECT array_length(range(0, 4000000000))", Blame::Source),
    ] {
        let begun = Instant::now();
        let refused = ask(text).await.expect_err(text);
        println!("{text}: {refused:?} in {:?}", begun.elapsed());
        assert_eq!(refused.blame, blame, "{text}: {refused:?}");
        assert!(
            ask("SELECT count(*) FROM stock").await.is_ok(),
            "after {text}"
        );
    }
    subject.close().await;
}
