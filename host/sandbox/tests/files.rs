//! DataFusion in its sandbox: how soon it is ready, and that it computes for nobody who waits no more. The component takes many minutes to build:
//! `tests/run --all-engines`.

mod common;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use common::{activate, nobody, query, within};
use souk_sandbox::{Blame, ConnectorInfo, FaultKind, Sandbox, Scope, Source};
use tempfile::TempDir;
use tokio::sync::Mutex;

/// One test at a time: what this process computes is counted, and how long it takes.
static ALONE: Mutex<()> = Mutex::const_new(());
/// A debug build on a loaded machine has a hundred times as long as a start takes.
const READY_WITHIN: Duration = Duration::from_secs(30);
const ROWS: i64 = 100_000;
/// What a request has.
const TIME: Duration = Duration::from_secs(2);
/// Each takes a minute and more: pairs of rows that are compared or added up, rows without an end, and a window's function, within which nobody
/// looks at the time.
const LONG: [&str; 4] = [
    "SELECT count(*) FROM t a, t b WHERE a.n * b.n % 7 = 8",
    "SELECT sum(a.n * b.n % 7) FROM t a CROSS JOIN t b",
    "SELECT count(*) FROM generate_series(1, 100000000000)",
    "SELECT max(m) FROM (SELECT median(v) OVER (ORDER BY v ROWS BETWEEN 100000 PRECEDING AND 100000 FOLLOWING) AS m FROM generate_series(1, 300000) AS g(v)) AS x",
];

/// A statement that outlasts its deadline, and one whose caller has gone, ends soon: alone, or with its session. The next one is answered at once.
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_compute_for_nobody() {
    let _alone = ALONE.lock().await;
    let directory = TempDir::new().unwrap();
    let numbers: String = (0..ROWS).map(|n| format!("{n}\n")).collect();
    std::fs::write(directory.path().join("t.csv"), format!("n\n{numbers}")).unwrap();
    let sandbox = nobody::sandbox();
    activate(&sandbox, component()).await;
    let source = nobody::source("files", directory.path(), "t.csv");
    nobody::is_computed_for(&sandbox, &source, ROWS, TIME, &LONG).await;
    a_damaged_file_is_told(&sandbox).await;
    nobody::is_answered(&sandbox, &source, ROWS).await;
}

/// From a warm cache the connector is at work, and sessions answer, in a moment. How long that takes is printed, since the time on a machine that does other
/// things says little: `tests/load/figures starts` has it of an optimised build.
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_are_ready_in_a_moment() {
    let _alone = ALONE.lock().await;
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("t.csv"), "n\n1\n").unwrap();
    let wasm = component();
    // So that its code is in the cache.
    activate(&nobody::sandbox(), wasm.clone()).await;

    let begun = Instant::now();
    let sandbox = nobody::sandbox();
    let loaded = sandbox.load(wasm, Scope::Platform).await.unwrap();
    is_at_work(&sandbox, &loaded).await;
    is_soon("files: at work from a warm cache, given its bytes", begun);
    // As a host that starts has it, whose store says which are at work.
    let begun = Instant::now();
    let sandbox = nobody::sandbox();
    let loaded = sandbox.load_kept(&loaded.digest, Scope::Platform);
    is_at_work(&sandbox, &loaded.await.unwrap()).await;
    is_soon("files: at work from a warm cache, by its digest", begun);
    // The first session of all reads the code for the first time.
    for (connection, session) in [("con_1", "the first session"), ("con_2", "another one")] {
        let source = Arc::new(Source {
            connection: connection.into(),
            ..(*nobody::source("files", directory.path(), "t.csv")).clone()
        });
        for statement in ["opened for a first statement", "asked a second one"] {
            let begun = Instant::now();
            let one = sandbox.run(&source, query("SELECT 1"), within(60)).await;
            assert_eq!(one.unwrap().cell(0, 0).as_i64(), Some(1));
            is_soon(&format!("files: {session}, {statement}"), begun);
        }
    }
}

async fn is_at_work(sandbox: &Sandbox, loaded: &ConnectorInfo) {
    assert_eq!(loaded.compile_ms, 0);
    let activated = sandbox.activate(&Scope::Platform, &loaded.name, &loaded.version);
    activated.await.unwrap();
}

fn is_soon(what: &str, begun: Instant) {
    let took = begun.elapsed();
    println!("{what}: {:.1} ms", took.as_secs_f64() * 1e3);
    assert!(took < READY_WITHIN, "{what}: {took:?}");
}

fn component() -> Vec<u8> {
    let component = std::env::var_os("SOUK_FILES_COMPONENT").expect("tests/run --all-engines");
    std::fs::read(component).unwrap()
}

/// What its reader ends by, and the connector with it, is told so that the owner of the connection knows what to do.
async fn a_damaged_file_is_told(sandbox: &Sandbox) {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("t.parquet"), beyond_its_dictionary()).unwrap();
    let source = Arc::new(Source {
        connection: "con_2".into(),
        ..(*nobody::source("files", directory.path(), "t.parquet")).clone()
    });
    let counted = query("SELECT count(*) FROM t");
    let counted = sandbox.run(&source, counted, within(20)).await.unwrap();
    assert_eq!(counted.cell(0, 0).as_i64(), Some(1));
    let read = query("SELECT u FROM t");
    let fault = sandbox.run(&source, read, within(20)).await.unwrap_err();
    assert_eq!(
        (fault.blame, fault.kind),
        (Blame::Connector, FaultKind::Trapped),
        "{fault:?}"
    );
    let detail = fault.detail.unwrap();
    let first = detail.lines().next().unwrap();
    assert!(first.contains("a file may be damaged"), "{detail}");
    assert!(first.contains("Write the file anew"), "{detail}");
    assert!(detail.contains("panicked"), "{detail}");
}

/// A file of Parquet with one row of four bytes, the eighth of a dictionary that has one: no header says so.
fn beyond_its_dictionary() -> Vec<u8> {
    let dictionary = [0x15, 4, 0x15, 8, 0x15, 8, 0x4c, 0x15, 2, 0x15, 0, 0, 0];
    let numbers = [
        0x15, 0, 0x15, 6, 0x15, 6, 0x2c, 0x15, 2, 0x15, 0x10, 0x15, 6, 0x15, 6, 0, 0,
    ];
    let schema = [
        0x15, 2, 0x19, 0x2c, 0x48, 1, b'm', 0x15, 2, 0, 0x15, 0x0e, 0x15, 8, 0x15, 0, 0x18, 1,
        b'u', 0, 0x16, 2,
    ];
    let column = [
        0x19, 0x1c, 0x19, 0x1c, 0x26, 0, 0x1c, 0x15, 0x0e, 0x19, 0x15, 0x10, 0x19, 0x18, 1, b'u',
        0x15, 0, 0x16, 2, 0x16, 0x4a, 0x16, 0x4a, 0x26, 0x2a, 0x26, 8, 0, 0, 0x16, 0x4a, 0x16, 2,
        0, 0,
    ];
    let length = u32::try_from(schema.len() + column.len()).unwrap();
    [
        &b"PAR1"[..],
        &dictionary,
        b"once",
        &numbers,
        // Eight bits each, and once the number 7.
        &[8, 2, 7],
        &schema,
        &column,
        &length.to_le_bytes(),
        b"PAR1",
    ]
    .concat()
}
