//! SQLite in its sandbox, once nobody waits for it any more.

mod common;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use common::*;
use souk_outbound::EgressPolicy;
use souk_sandbox::{Blame, Compiler, FaultKind, Grant, Options, Sandbox, Source};
use tempfile::TempDir;

const ROWS: i64 = 2_000;
/// What a request has, and how long after that it ends at the most.
const TIME: Duration = Duration::from_secs(1);
const LATE_MAX: Duration = Duration::from_secs(5);
/// Within this what nobody waits for computes no more, and the next request is answered: a loaded machine gets ten times as long as it takes.
const SOON: Duration = Duration::from_secs(10);
/// Each takes minutes: rows without an end, rows that are compared with all others, and one function, within which SQLite does not look at the time.
const LONG: [&str; 3] = [
    "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s) SELECT max(n) FROM s",
    "SELECT count(*) FROM t a, t b, t c WHERE a.n * b.n % 7 + c.n = -1",
    "SELECT instr(hex(zeroblob(500000)), hex(zeroblob(250000)) || '1')",
];

/// With the component, compiled once for the tests of the conformance kit and for this one.
async fn with_sqlite() -> Sandbox {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let mut options = Options::new(cache, EgressPolicy::public_only(), Compiler::InProcess);
    options.limits.sessions_total = 32;
    let sandbox = Sandbox::new(options).unwrap();
    let mut bundle = souk_plugins::bundle().iter();
    let (_, wasm) = bundle.find(|(name, _)| *name == "sqlite").expect("sqlite");
    activate(&sandbox, wasm).await;
    sandbox
}

/// The next request is answered at once.
async fn is_answered(sandbox: &Sandbox, source: &Arc<Source>) {
    let begun = Instant::now();
    let count = query("SELECT count(*), max(n) FROM t");
    let output = sandbox.run(source, count, within(20)).await.unwrap();
    assert_eq!(output.cell(0, 0).as_i64(), Some(ROWS));
    assert_eq!(output.cell(0, 1).as_i64(), Some(ROWS - 1));
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

/// The time that this process has computed, in hundredths of a second.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let number = |place: usize| fields[place].parse::<u64>().unwrap();
    number(11) + number(12)
}

/// No session is busy, and nothing is computed.
async fn is_idle(sandbox: &Sandbox) {
    let since = Instant::now();
    loop {
        let before = ticks();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let sessions = sandbox.connectors()[0].sessions;
        if sessions.open == sessions.idle && ticks() - before < 5 {
            return;
        }
        assert!(since.elapsed() < SOON, "it goes on: {sessions:?}");
    }
}

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
    let sandbox = with_sqlite().await;
    let source = Arc::new(Source {
        grant: Grant::Directory(directory.path().to_owned()),
        settings_json: r#"{"database":"t.db"}"#.into(),
        ..(*source("sqlite")).clone()
    });
    is_answered(&sandbox, &source).await;
    is_idle(&sandbox).await;
    for text in LONG {
        let begun = Instant::now();
        let fault = sandbox.run(&source, query(text), begun + TIME).await;
        let (fault, took) = (fault.unwrap_err(), begun.elapsed());
        println!("{text:.60}: {fault:?} after {took:?}");
        assert_eq!(
            (fault.blame, fault.kind),
            (Blame::Source, FaultKind::Timeout),
            "{text}: {fault:?}"
        );
        assert!(took < TIME + LATE_MAX, "{text}: {took:?}");
        is_answered(&sandbox, &source).await;
        is_idle(&sandbox).await;

        let asked = {
            let (sandbox, source) = (sandbox.clone(), source.clone());
            tokio::spawn(async move { sandbox.run(&source, query(text), within(600)).await })
        };
        wait_until(|| {
            let sessions = sandbox.connectors()[0].sessions;
            sessions.open > sessions.idle
        })
        .await;
        let before = ticks();
        wait_until(|| ticks() - before > 10).await;
        assert!(!asked.is_finished(), "{text}");
        asked.abort();
        is_idle(&sandbox).await;
        is_answered(&sandbox, &source).await;
    }
    let traps = sandbox.connectors()[0].traps_total;
    assert_eq!(traps, 0, "what is stopped is no trap");
}
