//! That an engine which computes in its sandbox does so for nobody who waits no more: what the tests of SQLite and of files share.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use souk_outbound::EgressPolicy;
use souk_sandbox::{Blame, Compiler, FaultKind, Grant, Options, Sandbox, Source};

use super::{query, wait_until, within};

/// How long after its time a request ends at the most: a loaded machine gets ten times as long as it takes.
const LATE_MAX: Duration = Duration::from_secs(10);
/// Within this what nobody waits for computes no more, and the next request is answered: a loaded machine gets ten times as long as it takes.
const SOON: Duration = Duration::from_secs(10);

/// With components that are compiled once for the tests of the conformance kit and for these.
pub fn sandbox() -> Sandbox {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let mut options = Options::new(cache, EgressPolicy::public_only(), Compiler::InProcess);
    options.limits.sessions_total = 32;
    Sandbox::new(options).unwrap()
}

/// The file of this name in a directory.
pub fn source(engine: &str, directory: &Path, name: &str) -> Arc<Source> {
    Arc::new(Source {
        grant: Grant::Directory(directory.to_owned()),
        settings_json: format!(r#"{{"database":"{name}"}}"#),
        ..(*super::source(engine)).clone()
    })
}

/// Asks for each of these statements, which take minutes, of a table `t` with the numbers `n` below `rows`: it ends soon where it outlasts the `time` that
/// it has, and where its caller has gone, alone, or with its session; and the next request is answered at once. Nothing else may compute in this process.
pub async fn is_computed_for(
    sandbox: &Sandbox,
    source: &Arc<Source>,
    rows: i64,
    time: Duration,
    long: &[&str],
) {
    is_answered(sandbox, source, rows).await;
    is_idle(sandbox).await;
    for text in long {
        let begun = Instant::now();
        let fault = sandbox.run(source, query(text), begun + time).await;
        let (fault, took) = (fault.unwrap_err(), begun.elapsed());
        println!("{text:.60}: {fault:?} after {took:?}");
        assert_eq!(
            (fault.blame, fault.kind),
            (Blame::Source, FaultKind::Timeout),
            "{text}: {fault:?}"
        );
        // The connector is told whole milliseconds.
        let least = time - Duration::from_millis(10);
        assert!(took > least && took < time + LATE_MAX, "{text}: {took:?}");
        is_answered(sandbox, source, rows).await;
        is_idle(sandbox).await;

        let asked = {
            let (sandbox, source, asks) = (sandbox.clone(), source.clone(), query(text));
            tokio::spawn(async move { sandbox.run(&source, asks, within(600)).await })
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
        is_idle(sandbox).await;
        is_answered(sandbox, source, rows).await;
    }
    let traps = sandbox.connectors()[0].traps_total;
    assert_eq!(traps, 0, "what is stopped is no trap");
}

/// The next request is answered at once.
pub async fn is_answered(sandbox: &Sandbox, source: &Arc<Source>, rows: i64) {
    let begun = Instant::now();
    let count = query("SELECT count(*), max(n) FROM t");
    let output = sandbox.run(source, count, within(20)).await.unwrap();
    assert_eq!(output.cell(0, 0).as_i64(), Some(rows));
    assert_eq!(output.cell(0, 1).as_i64(), Some(rows - 1));
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
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

/// The time that this process has computed, in hundredths of a second.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let number = |place: usize| fields[place].parse::<u64>().unwrap();
    number(11) + number(12)
}
