//! SQLite in its sandbox, once nobody waits for it any more.

mod common;

use std::time::Duration;

use common::{activate, nobody};
use tempfile::TempDir;

const ROWS: i64 = 2_000;
/// What a request has.
const TIME: Duration = Duration::from_secs(1);
/// Each takes minutes: rows without an end, rows that are compared with all others, and one function, within which SQLite does not look at the time.
const LONG: [&str; 3] = [
    "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s) SELECT max(n) FROM s",
    "SELECT count(*) FROM t a, t b, t c WHERE a.n * b.n % 7 + c.n = -1",
    "SELECT instr(hex(zeroblob(500000)), hex(zeroblob(250000)) || '1')",
];

/// A statement that outlasts its deadline, and one whose caller has gone, ends soon: alone, or with its session. The next one is answered at once.
/// (One test, so that nothing else computes in this process.)
#[tokio::test]
async fn sqlite_computes_for_nobody() {
    let directory = TempDir::new().unwrap();
    let file = rusqlite::Connection::open(directory.path().join("t.db")).unwrap();
    file.execute_batch(&format!(
        "CREATE TABLE t (n INTEGER);
         WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n < {ROWS} - 1) INSERT INTO t SELECT n FROM s"
    ))
    .unwrap();
    drop(file);
    let sandbox = nobody::sandbox();
    let mut bundle = souk_plugins::bundle().iter();
    let (_, wasm) = bundle.find(|(name, _)| *name == "sqlite").expect("sqlite");
    activate(&sandbox, *wasm).await;
    let source = nobody::source("sqlite", directory.path(), "t.db");
    nobody::is_computed_for(&sandbox, &source, ROWS, TIME, &LONG).await;
}
