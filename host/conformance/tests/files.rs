//! The component `files` on files that are made here. It takes many minutes to build: `tests/run --all-engines`.

mod common;

use std::path::Path;
use std::time::Instant;

use souk_conformance::{Outcome, Profile, Subject, options};
use souk_sandbox::{Compiler, Limits, Query, Request};

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
            n % 2 == 0
        )
    };
    let lines: String = (1..=60).map(line).collect();
    format!("id,sku,price,day,at,local,sold\n{lines}")
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
    let path = directory.path().join("stock.csv");
    std::fs::write(&path, stock()).unwrap();
    let subject = loaded(&path).await;
    let report = souk_conformance::run(&subject).await.unwrap();
    subject.close().await;
    println!("{report}");
    assert!(report.is_conforming(), "{report}");
    assert_eq!(report.checks(Outcome::Warned), [""; 0], "{report}");
}

/// What takes all of the guest's memory ends its session, and the next one is served.
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_outgrow_their_memory() {
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
    for text in [
        "SELECT length(repeat('x', 2000000000))",
        "SELECT count(*) FROM (SELECT v FROM generate_series(1, 100000000) AS g(v) GROUP BY v) AS x",
        "SELECT length(string_agg(repeat('x', 1000), '')) FROM generate_series(1, 10000000) AS g(v)",
        "SELECT array_length(range(0, 4000000000))",
    ] {
        let begun = Instant::now();
        let refused = ask(text).await.expect_err(text);
        println!("{text}: {refused:?} in {:?}", begun.elapsed());
        assert!(ask("SELECT count(*) FROM stock").await.is_ok(), "after {text}");
    }
    subject.close().await;
}
