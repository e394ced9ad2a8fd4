//! DataFusion in its sandbox, once nobody waits for it any more. The component takes many minutes to build: `tests/run --all-engines`.

mod common;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use common::*;
use souk_outbound::EgressPolicy;
use souk_sandbox::{Blame, Compiler, FaultKind, Grant, Options, Sandbox, Scope, Source};
use tempfile::TempDir;

const ROWS: i64 = 100_000;
/// What a request has, and how long after that it ends at the most.
const TIME: Duration = Duration::from_secs(2);
const LATE_MAX: Duration = Duration::from_secs(1);
/// Within this what nobody waits for computes no more, and the next request is answered: a loaded machine gets ten times as long as it takes.
const SOON: Duration = Duration::from_secs(10);
/// Each takes a minute and more: pairs of rows that are compared or added up, rows without an end, and a window's function, within which nobody
/// looks at the time.
const LONG: [&str; 4] = [
    "SELECT count(*) FROM t a, t b WHERE a.n * b.n % 7 = 8",
    "SELECT sum(a.n * b.n % 7) FROM t a CROSS JOIN t b",
    "SELECT count(*) FROM generate_series(1, 100000000000)",
    "SELECT max(m) FROM (SELECT median(v) OVER (ORDER BY v ROWS BETWEEN 100000 PRECEDING AND 100000 FOLLOWING) AS m FROM generate_series(1, 300000) AS g(v)) AS x",
];

/// With the component, compiled once for the tests of the conformance kit and for this one.
async fn with_files() -> Sandbox {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let egress = EgressPolicy::public_only();
    let mut options = Options::new(cache, egress, Compiler::InProcess);
    options.limits.sessions_total = 32;
    let sandbox = Sandbox::new(options).unwrap();
    let component = std::env::var_os("SOUK_FILES_COMPONENT").expect("tests/run --all-engines");
    let wasm = std::fs::read(component).unwrap();
    let info = sandbox.load(wasm, Scope::Platform).await.unwrap();
    let activated = sandbox.activate(&Scope::Platform, &info.name, &info.version);
    activated.await.unwrap();
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
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_compute_for_nobody() {
    let directory = TempDir::new().unwrap();
    let numbers: String = (0..ROWS).map(|n| format!("{n}\n")).collect();
    std::fs::write(directory.path().join("t.csv"), format!("n\n{numbers}")).unwrap();
    let sandbox = with_files().await;
    let source = Arc::new(Source {
        grant: Grant::Directory(directory.path().to_owned()),
        settings_json: r#"{"database":"t.csv"}"#.into(),
        ..(*source("files")).clone()
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
        // The connector is told whole milliseconds.
        let least = TIME - Duration::from_millis(10);
        assert!(took > least && took < TIME + LATE_MAX, "{text}: {took:?}");
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
    a_damaged_file_is_told(&sandbox).await;
    is_answered(&sandbox, &source).await;
}

/// What its reader ends by, and the connector with it, is told so that the owner of the connection knows what to do.
async fn a_damaged_file_is_told(sandbox: &Sandbox) {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("t.parquet"), beyond_its_dictionary()).unwrap();
    let source = Arc::new(Source {
        connection: "con_2".into(),
        grant: Grant::Directory(directory.path().to_owned()),
        settings_json: r#"{"database":"t.parquet"}"#.into(),
        ..(*source("files")).clone()
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
