//! The component `files` on files that are made here. It takes many minutes to build: `tests/run --all-engines`.

mod common;

use std::path::Path;
use std::time::Instant;

use souk_conformance::{Outcome, Profile, Subject, options};
use souk_sandbox::{Blame, Compiler, Limits, Query, Request};

const TABLE: &str = "schema = 'public'\nname = 'stock'\nkey = ['id']";

/// Of every type that a text has here, with NULLs where they may be.
fn stock() -> String {
    let line = |n: u32| {
        let price = match n % 5 {
            0 => String::new(),
            _ => format!("{}.{:02}", n, n % 100),
        };
        format!(
            "{n},sku {n},{price},2026-01-{:02},2026-01-01T{:02}:00:00Z,2026-01-01 00:{:02}:00,{}\n",
            n % 28 + 1,
            n % 24,
            n % 60,
            n.is_multiple_of(2)
        )
    };
    let lines: String = (1..=60).map(line).collect();
    format!("id,sku,price,day,at,local,sold\n{lines}")
}

/// The same, an object a line.
fn stock_lines() -> String {
    let csv = stock();
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let object = |cells: Vec<&str>| {
        let members = names.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
        let members = members.map(|(name, cell)| match *name {
            "id" | "price" | "sold" => format!("\"{name}\":{cell}"),
            _ => format!("\"{name}\":\"{cell}\""),
        });
        format!("{{{}}}\n", members.collect::<Vec<_>>().join(","))
    };
    lines.map(object).collect()
}

/// A statement of so many `WITH`, each of the last.
fn chain(count: usize, next: impl Fn(usize) -> String) -> String {
    let parts = (1..count).map(|at| format!(", c{at} AS ({})", next(at - 1)));
    let parts: String = parts.collect();
    format!(
        "WITH c0 AS (SELECT 1 AS x){parts} SELECT x FROM c{}",
        count - 1
    )
}

async fn loaded(path: &Path) -> Subject {
    let profile = format!("[source]\nfile = '{}'\n[table]\n{TABLE}\n", path.display());
    let profile = Profile::parse(&profile, Path::new(".")).unwrap();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let component = std::env::var_os("SOUK_FILES_COMPONENT").expect("tests/run --all-engines");
    let wasm = std::fs::read(component).unwrap();
    Subject::load(wasm, options(&cache, Compiler::InProcess), profile)
        .await
        .unwrap()
}

/// The whole kit. Nothing fails, and nothing is left out but what files do not have: secrets, TLS, wires, servers that lie, a source that is asked aside.
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_conform() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [("stock.csv", stock()), ("stock.jsonl", stock_lines())] {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        let subject = loaded(&path).await;
        let report = souk_conformance::run(&subject).await.unwrap();
        subject.close().await;
        println!("{report}");
        assert!(report.is_conforming(), "{name}: {report}");
        assert_eq!(report.checks(Outcome::Warned), [""; 0], "{name}: {report}");
        // A file has no wire, and no secret.
        let skipped = report.checks(Outcome::Skipped);
        assert_eq!(skipped, ["open.wrong_secret", "wire"], "{name}: {report}");
    }
}

/// What takes all of the guest's memory ends its session, and the next one is served.
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_keep_their_bounds() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stock.csv");
    std::fs::write(&path, stock()).unwrap();
    let subject = loaded(&path).await;
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
