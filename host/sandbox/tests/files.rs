//! DataFusion in its sandbox, once nobody waits for it any more. The component takes many minutes to build: `tests/run --all-engines`.

mod common;

use std::time::Duration;

use common::{activate, nobody};
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
}
