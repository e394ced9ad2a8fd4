//! DataFusion in its sandbox, once nobody waits for it any more. The component takes many minutes to build: `tests/run --all-engines`.

mod common;

use std::{sync::Arc, time::Duration};

use common::{activate, nobody, query, within};
use souk_sandbox::{Blame, FaultKind, Sandbox, Source};
use tempfile::TempDir;

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
/// (One test, so that nothing else computes in this process.)
#[tokio::test]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_compute_for_nobody() {
    let directory = TempDir::new().unwrap();
    let numbers: String = (0..ROWS).map(|n| format!("{n}\n")).collect();
    std::fs::write(directory.path().join("t.csv"), format!("n\n{numbers}")).unwrap();
    let sandbox = nobody::sandbox();
    let component = std::env::var_os("SOUK_FILES_COMPONENT").expect("tests/run --all-engines");
    activate(&sandbox, std::fs::read(component).unwrap()).await;
    let source = nobody::source("files", directory.path(), "t.csv");
    nobody::is_computed_for(&sandbox, &source, ROWS, TIME, &LONG).await;
    a_damaged_file_is_told(&sandbox).await;
    nobody::is_answered(&sandbox, &source, ROWS).await;
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
