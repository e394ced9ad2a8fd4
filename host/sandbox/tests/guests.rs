//! What the sandbox promises whatever a connector does: the answer names the fault and its blame,
//! and the next request succeeds.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::*;
use souk_sandbox::{
    Blame, Call, FaultKind, Limits, LoadError, LogFilter, LogLine, PoolLimits, Query, Request,
    Route, Sandbox, Scope, Source, Status, Stream, Value,
};
use souk_tests::guests;

/// The way through: bytes to connector to session to columns to JSON.
#[tokio::test]
async fn a_good_connector_answers() {
    let sandbox = with_guest(guests::FIXED_ROWS).await;
    let source = source("fixed");
    let output = run(&sandbox, &source, "select id, label, amount")
        .await
        .unwrap();
    assert_eq!(
        rows(&output),
        r#"[{"id":1,"label":"row 1","amount":1.5},{"id":2,"label":"row 2","amount":3.0},{"id":3,"label":"row 3","amount":4.5}]"#
    );
    let ping = sandbox
        .run(&source, Request::Ping(Limits::new(10, 1000)), within(5))
        .await
        .unwrap();
    assert_eq!(ping.rows, 1);
    let info = &sandbox.connectors()[0];
    assert_eq!(
        (info.status, info.calls_total, info.sessions.open),
        (Status::Active, 2, 1)
    );
    assert!(sandbox.engine("com_1", "fixed").is_some());
    assert!(sandbox.engine("com_1", "other").is_none());
}

/// A trap, a loop, a full memory, a malformed batch, events out of order: each is the connector's
/// fault, is named, and the session is replaced.
#[tokio::test]
async fn a_bad_connector_is_blamed_and_replaced() {
    for (wasm, engine, statements, kind) in [
        (
            guests::TRAPS,
            "traps",
            &["select 1"][..],
            FaultKind::Trapped,
        ),
        (guests::LOOPS, "loops", &["select 1"], FaultKind::Trapped),
        (
            guests::MEMORY_HOG,
            "memory-hog",
            &["select 1"],
            FaultKind::OutOfMemory,
        ),
        (
            guests::MALFORMED_COLUMNS,
            "malformed-columns",
            &MALFORMED,
            FaultKind::ContractBroken,
        ),
        (
            guests::WRONG_ROW_COUNT,
            "wrong-row-count",
            &["select 1"],
            FaultKind::ContractBroken,
        ),
        (
            guests::BREAKS_PROTOCOL,
            "breaks-protocol",
            &OUT_OF_ORDER,
            FaultKind::ContractBroken,
        ),
    ] {
        let sandbox = with_guest(wasm).await;
        let source = source(engine);
        let ping = || sandbox.run(&source, Request::Ping(Limits::new(10, 1000)), within(10));
        ping().await.unwrap();
        for statement in statements {
            let begun = Instant::now();
            let fault = run(&sandbox, &source, statement).await.unwrap_err();
            assert_eq!(
                (fault.blame, fault.kind),
                (Blame::Connector, kind),
                "{engine}, {statement}: {fault:?}"
            );
            // A quarter of a second of processor time, of which a loaded machine gives a lane little.
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "{engine} took {:?}",
                begun.elapsed()
            );
            ping().await.unwrap();
        }
        assert_eq!(
            sandbox.connectors()[0].traps_total,
            statements.len() as u64,
            "{engine}"
        );
    }
}

/// A guest that speaks HTTP is not cut off for holding a worker: it goes on in a lane. What was a call could not be asked again.
#[tokio::test]
async fn a_call_may_compute_for_longer_than_a_worker_is_held() {
    let sandbox = with_guest(guests::MOODY).await;
    let source = source_with("moody", "{}", PoolLimits::default());
    let call = || call_with("{}");
    // While there is no session the engine's clock ticks seldom, and the first call might end before it does.
    for _ in 0..3 {
        let output = sandbox.run(&source, call(), within(20)).await;
        assert_eq!(rows(&output.expect("an answer")), r#"[{"mood":"fine"}]"#);
    }
}

/// Much at once is not looked at on a worker, however little the guest computed: what may be asked again is asked in a lane, and a call is
/// told why it failed. The next one begins in a lane.
#[tokio::test]
async fn what_a_call_returns_holds_no_worker() {
    let sandbox = with_guest(guests::MOODY).await;
    for is_query in [true, false] {
        // A connection of its own has no history.
        let settings = format!(r#"{{"token":"{is_query}"}}"#);
        let mut source = source_with("moody", &settings, PoolLimits::default());
        Arc::get_mut(&mut source).unwrap().connection = format!("con_{is_query}");
        let ask = |mood: &str| {
            let request = query_with("select mood", vec![Value::Text(mood.into())]);
            sandbox.run(&source, request, within(20))
        };
        let call = || sandbox.run(&source, call_with(r#"{"mood":"speech"}"#), within(20));
        ask("prepares_a_speech").await.unwrap();
        let speech = match is_query {
            true => ask("holds_a_speech").await,
            false => {
                let answer = call().await.map(|output| output.bytes);
                let fault = answer.expect_err("too much for a worker");
                assert_eq!(
                    (fault.blame, fault.code.as_str()),
                    (Blame::Connector, "call_bytes_exceeded")
                );
                call().await
            }
        };
        assert!(rows(&speech.expect("a speech")).len() > 6 << 20);
    }
}

/// What a guest prints before it breaks is the beginning of what its owner is told, and stays in the log with its label; a secret of its
/// settings does not.
#[tokio::test]
async fn a_panic_is_heard() {
    let sandbox = with_guest(guests::MOODY).await;
    let source = source_with("moody", r#"{"token":"hush-hush"}"#, PoolLimits::default());
    let ask = |mood: &str| {
        let request = query_with("select mood", vec![Value::Text(mood.into())]);
        sandbox.run(&source, request, within(20))
    };
    let fault = ask("panics").await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Trapped);
    let detail = fault.detail.unwrap();
    let lines: Vec<&str> = detail.lines().take(4).collect();
    assert_eq!(
        lines[..2],
        ["about to panic", "the token is [secret]"],
        "{detail}"
    );
    assert!(
        detail.contains("moody/guest.rs") && detail.contains("x = 42"),
        "{detail}"
    );
    assert!(detail.contains("unreachable"), "{detail}");
    let filter = LogFilter {
        company: Some("com_1"),
        scope: Some(&Scope::Platform),
        connector: "moody",
        connection: Some("con_1"),
        after: None,
        lines_max: 1_000,
    };
    let has = |stream: Stream, text: &str| {
        let said = |line: &LogLine| line.stream == stream && line.text.contains(text);
        sandbox.log_lines(&filter).iter().any(said)
    };
    assert!(has(Stream::Stdout, "about to panic"));
    assert!(has(Stream::Stderr, "the token is [secret]"));
    assert!(has(Stream::Stderr, "x = 42"));
    assert!(has(Stream::Fault, "the connector crashed (trapped)"));
    ask("prints").await.unwrap();
    assert!(has(Stream::Stdout, "a line for its author"));
    let fault = ask("reads_the_clock").await.unwrap_err();
    assert!(
        fault
            .message
            .contains("called wasi:clocks/monotonic-clock@0.2"),
        "{fault:?}"
    );
    assert_eq!(fault.code, "not_granted");
    assert!(has(Stream::Fault, "which it was not granted"));
    ask("looks_for_a_file").await.unwrap();
    assert!(has(Stream::Stdout, "found a file: false"));
    ask("prints_much").await.unwrap();
    assert!(has(Stream::Stdout, "line 100 of many"));
    assert!(has(Stream::Fault, "more bytes were printed in this call"));
    assert!(!has(Stream::Stdout, "line 900 of many"));
    let other = LogFilter {
        company: Some("com_2"),
        ..filter
    };
    assert!(sandbox.log_lines(&other).is_empty());
}

const MALFORMED: [&str; 8] = [
    "select bad_utf8",
    "select split_utf8",
    "select offsets_fall",
    "select offsets_beyond",
    "select offsets_none",
    "select bitmap_short",
    "select bits_short",
    "select wrong_layout",
];
const OUT_OF_ORDER: [&str; 8] = [
    "select unknown_id",
    "select batch_before_columns",
    "select unknown_shape",
    "select columns_twice",
    "select missing_chunk",
    "select ready_twice",
    "select send_without_wire",
    "select request_elsewhere",
];

/// The caps hold while batches arrive, whether or not the connector keeps them.
#[tokio::test]
async fn a_result_is_no_larger_than_allowed() {
    let sandbox = with_guest(guests::TOO_MANY_ROWS).await;
    let source = source("too-many-rows");
    for limits in [Limits::new(10, 1 << 20), Limits::new(100_000, 100)] {
        let request = Request::Query(Query {
            text: "select 1".into(),
            parameters: Vec::new(),
            limits,
        });
        let fault = sandbox.run(&source, request, within(10)).await.unwrap_err();
        assert_eq!(
            (fault.blame, fault.kind),
            (Blame::Source, FaultKind::LimitExceeded),
            "{fault:?}"
        );
    }
}

/// A company at its number of sessions closes an idle one for a data connection that has none; where all are busy it is
/// told so at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_session_makes_room_for_another_data_connection() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut options = options(&directory);
    options.limits.quota.sessions = 1;
    let sandbox = souk_sandbox::Sandbox::new(options).unwrap();
    activate(&sandbox, guests::SILENT).await;
    let at = |connection: &str| {
        let mut source = Source::clone(&source("silent"));
        source.connection = connection.into();
        std::sync::Arc::new(source)
    };
    let sources = [at("con_1"), at("con_2"), at("con_3")];
    let ping = |source| sandbox.run(source, Request::Ping(Limits::new(10, 1000)), within(20));
    for round in 0..30 {
        ping(&sources[round % 3]).await.unwrap();
    }
    let busy = {
        let (sandbox, source) = (sandbox.clone(), sources[0].clone());
        tokio::spawn(async move { sandbox.run(&source, query("select 1"), within(3)).await })
    };
    wait_until(|| {
        let sessions = &sandbox.connectors()[0].sessions;
        (sessions.open, sessions.idle) == (1, 0)
    })
    .await;
    let begun = Instant::now();
    let fault = ping(&sources[1]).await.unwrap_err();
    assert_eq!(fault.code, "sessions_exhausted", "{fault:?}");
    assert!(begun.elapsed() < Duration::from_secs(15));
    let fault = busy.await.unwrap().unwrap_err();
    assert_eq!(
        fault.kind,
        FaultKind::Timeout,
        "{fault:?} after {:?}",
        begun.elapsed()
    );
    // Its caller is told at the deadline, and the session ends when it has been told.
    wait_until(|| sandbox.connectors()[0].sessions.open == 0).await;
    ping(&sources[1]).await.unwrap();
}

/// As long as a company has idle sessions nobody of it is refused one, however many ask at the same moment and whatever they close for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_sessions_make_room_for_many_at_once() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut options = options(&directory);
    options.limits.quota.sessions = 12;
    let sandbox = souk_sandbox::Sandbox::new(options).unwrap();
    activate(&sandbox, guests::SILENT).await;
    let sources: Vec<_> = (0..40)
        .map(|number| {
            let mut source = Source::clone(&source("silent"));
            source.connection = format!("con_{number}");
            source.limits.sessions_max = 2;
            std::sync::Arc::new(source)
        })
        .collect();
    let askers = (0..3).map(|asker| {
        let (sandbox, sources) = (sandbox.clone(), sources.clone());
        tokio::spawn(async move {
            for round in 0..500 {
                let source = &sources[(asker * 7 + round * (asker + 3)) % sources.len()];
                let ping = || sandbox.run(source, Request::Ping(Limits::new(10, 1000)), within(20));
                // The second of them finds the first one waiting.
                let (one, other) = tokio::join!(ping(), ping());
                one.and(other)
                    .unwrap_or_else(|fault| panic!("{asker} {round}: {fault:?}"));
            }
        })
    });
    for asker in askers.collect::<Vec<_>>() {
        asker.await.unwrap();
    }
}

/// A connector that never answers costs its caller the deadline and no more.
#[tokio::test]
async fn a_silent_connector_times_out_at_the_deadline() {
    let sandbox = with_guest(guests::SILENT).await;
    let source = source("silent");
    let begun = Instant::now();
    let fault = sandbox
        .run(
            &source,
            query("select 1"),
            begun + Duration::from_millis(300),
        )
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Timeout, "{fault:?}");
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_millis(300) && took < Duration::from_secs(20),
        "{took:?}"
    );
    sandbox
        .run(&source, Request::Ping(Limits::new(10, 1000)), within(5))
        .await
        .unwrap();
}

/// Past `sessions_max` requests wait, past `queue_max` they are refused, and who waits keeps a deadline.
#[tokio::test]
async fn sessions_and_queue_are_bounded() {
    let sandbox = with_guest(guests::SILENT).await;
    let source = source_with(
        "silent",
        "{}",
        PoolLimits {
            sessions_max: 2,
            queue_max: 3,
        },
    );
    let begun = Instant::now();
    let mut waiting = Vec::new();
    for _ in 0..8 {
        let (sandbox, source) = (sandbox.sandbox.clone(), source.clone());
        waiting.push(tokio::spawn(async move {
            sandbox
                .run(
                    &source,
                    query("select 1"),
                    begun + Duration::from_millis(500),
                )
                .await
                .unwrap_err()
                .kind
        }));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(sandbox.connectors()[0].sessions.open <= 2);
    let mut kinds = Vec::new();
    for task in waiting {
        kinds.push(task.await.unwrap());
    }
    assert_eq!(
        kinds
            .iter()
            .filter(|kind| **kind == FaultKind::Busy)
            .count(),
        3,
        "{kinds:?}"
    );
    assert_eq!(
        kinds
            .iter()
            .filter(|kind| **kind == FaultKind::Timeout)
            .count(),
        5,
        "{kinds:?}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

/// Whoever has all places of a data connection with requests that nobody answers leaves another caller one of them, and the next turn but one.
#[tokio::test]
async fn callers_of_a_data_connection_take_turns() {
    let sandbox = with_guest(guests::SILENT).await;
    let one = PoolLimits {
        sessions_max: 1,
        queue_max: 4,
    };
    let source = source_with("silent", "{}", one);
    let greedy = |seconds| {
        let (sandbox, source) = (sandbox.sandbox.clone(), source.clone());
        let request = query("select 1");
        tokio::spawn(async move {
            sandbox
                .run_for("com_2", &source, request, within(seconds))
                .await
        })
    };
    let first = greedy(3);
    wait_until(|| gauge(&sandbox, "requests_in_flight") == 1).await;
    let second = greedy(4);
    wait_until(|| gauge(&sandbox, "requests_queued") == 1).await;
    let others: Vec<_> = (0..3).map(|_| greedy(600)).collect();
    wait_until(|| gauge(&sandbox, "requests_queued") == 4).await;

    let ping = Request::Ping(Limits::new(10, 1000));
    let answer = sandbox.run_for("com_3", &source, ping, within(60)).await;
    assert_eq!(answer.unwrap().rows, 1);
    for run in [first, second] {
        let fault = run.await.unwrap().unwrap_err();
        assert_eq!(fault.kind, FaultKind::Timeout, "{fault:?}");
    }
    // The last of them has made room.
    let mut refused = 0;
    for run in others {
        if run.is_finished() {
            let fault = run.await.unwrap().unwrap_err();
            assert_eq!(fault.kind, FaultKind::Busy, "{fault:?}");
            refused += 1;
        } else {
            run.abort();
        }
    }
    assert_eq!(refused, 1);
}

/// Who tries a version out, and leaves, leaves no session behind.
#[tokio::test]
async fn a_dropped_probe_keeps_no_session() {
    let sandbox = with_guest(guests::SILENT).await;
    let source = source_with("silent", "{}", PoolLimits::default());
    let open = || sandbox.connectors()[0].sessions.open;
    let probe = {
        let (sandbox, info) = (sandbox.sandbox.clone(), sandbox.connectors().remove(0));
        tokio::spawn(async move {
            let of = (&Scope::Platform, info.name.as_str(), info.version.as_str());
            let request = query("select 1");
            sandbox.probe(of, &source, request, within(600)).await
        })
    };
    wait_until(|| open() == 1).await;
    probe.abort();
    wait_until(|| open() == 0).await;
}

/// Who tries a data connection that is not kept, and leaves, leaves no session behind either, nor the credentials that it has.
#[tokio::test]
async fn a_dropped_trial_keeps_no_session() {
    let sandbox = with_guest(guests::SILENT).await;
    let source = source_with("silent", "{}", PoolLimits::default());
    let open = || sandbox.connectors()[0].sessions.open;
    let trial = {
        let sandbox = sandbox.sandbox.clone();
        tokio::spawn(async move {
            let _tried = sandbox.tried(&source);
            let request = query("select 1");
            sandbox.run(&source, request, within(600)).await
        })
    };
    wait_until(|| open() == 1).await;
    trial.abort();
    wait_until(|| open() == 0).await;
}

/// A caller who leaves frees the session.
#[tokio::test]
async fn a_dropped_request_is_cancelled() {
    let sandbox = with_guest(guests::SILENT).await;
    let source = source_with(
        "silent",
        "{}",
        PoolLimits {
            sessions_max: 1,
            queue_max: 8,
        },
    );
    let dropped = tokio::time::timeout(
        Duration::from_millis(100),
        sandbox.run(&source, query("select 1"), within(60)),
    )
    .await;
    assert!(dropped.is_err());
    sandbox
        .run(&source, Request::Ping(Limits::new(10, 1000)), within(5))
        .await
        .unwrap();
}

/// What cannot be a connector is refused at load, in words that say why.
#[tokio::test]
async fn what_is_no_connector_is_refused_with_its_reason() {
    let sandbox = sandbox();
    for (wasm, reason) in [
        (guests::NOT_A_COMPONENT, "not a WebAssembly component"),
        (guests::CORE_MODULE, "core WebAssembly module"),
        (guests::WRONG_WORLD, "for another world"),
        (
            guests::FUTURE_VERSION,
            "this host serves 1.0: rebuild with sdk 1.0 or upgrade the host",
        ),
    ] {
        let error = sandbox
            .load(wasm, Scope::Platform)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert!(sandbox.connectors().is_empty());
}

/// A component may import what nothing grants, since it reaches nothing by it: its author is warned, and a call traps with its name.
#[tokio::test]
async fn what_is_not_granted_traps() {
    let sandbox = with_guest(guests::IMPORTS_SOCKETS).await;
    let warnings = &sandbox.connectors()[0].warnings;
    assert!(
        warnings
            .iter()
            .any(|warning| warning.contains("wasi:sockets/tcp@0.2")),
        "{warnings:?}"
    );
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let source = source("imports-sockets");
    let address = listener.local_addr().unwrap().to_string();
    let fault = run(&sandbox, &source, &address).await.unwrap_err();
    assert_eq!(
        (fault.blame, fault.code.as_str()),
        (Blame::Connector, "not_granted")
    );
    assert!(fault.message.contains("wasi:sockets/"), "{fault}");
    assert_eq!(
        listener.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}

/// A new version takes over, the old one drains; rollback goes back; an active version stays.
#[tokio::test]
async fn versions_are_activated_and_rolled_back() {
    let sandbox = with_guest(guests::FIXED_ROWS).await;
    let source = source("fixed");
    let before = rows(
        &run(&sandbox, &source, "select label limit 1")
            .await
            .unwrap(),
    );
    let next = sandbox
        .load(guests::FIXED_ROWS_NEXT, Scope::Platform)
        .await
        .unwrap();
    assert_eq!(next.status, Status::Staged);
    assert_eq!(
        rows(
            &run(&sandbox, &source, "select label limit 1")
                .await
                .unwrap()
        ),
        before
    );
    sandbox
        .activate(&Scope::Platform, &next.name, &next.version)
        .await
        .unwrap();
    assert_ne!(
        rows(
            &run(&sandbox, &source, "select label limit 1")
                .await
                .unwrap()
        ),
        before
    );
    assert!(
        sandbox
            .remove(&Scope::Platform, &next.name, &next.version)
            .is_err()
    );
    let back = sandbox
        .rollback(&Scope::Platform, &next.name)
        .await
        .unwrap();
    assert_eq!(
        rows(
            &run(&sandbox, &source, "select label limit 1")
                .await
                .unwrap()
        ),
        before
    );
    assert!(
        sandbox
            .rollback(&Scope::Platform, &next.name)
            .await
            .is_err()
    );
    let statuses: Vec<_> = sandbox
        .connectors()
        .iter()
        .map(|info| (info.version == back.version, info.status))
        .collect();
    assert!(statuses.contains(&(true, Status::Active)), "{statuses:?}");
    sandbox
        .remove(&Scope::Platform, &next.name, &next.version)
        .unwrap();
    // The same bytes again are no error.
    sandbox
        .load(guests::FIXED_ROWS, Scope::Platform)
        .await
        .unwrap();
    assert_eq!(sandbox.connectors().len(), 1);
}

/// A company's own connector serves that company and nobody else.
#[tokio::test]
async fn a_private_connector_is_private() {
    let sandbox = sandbox();
    let scope = Scope::Company("com_1".into());
    let info = sandbox
        .load(guests::FIXED_ROWS, scope.clone())
        .await
        .unwrap();
    sandbox
        .activate(&scope, &info.name, &info.version)
        .await
        .unwrap();
    assert!(sandbox.engine("com_1", "fixed").is_some());
    assert!(sandbox.engine("com_2", "fixed").is_none());
    run(&sandbox, &source("fixed"), "select 1").await.unwrap();
    let mut foreign = (*source("fixed")).clone();
    foreign.company = "com_2".into();
    let fault = run(&sandbox, &foreign.into(), "select 1")
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unsupported);
}

/// An engine that the platform serves is the platform's: a company's connector that had it before loses it, and another cannot take it.
#[tokio::test]
async fn the_platforms_engine_is_nobody_elses() {
    let sandbox = sandbox();
    let scope = Scope::Company("com_1".into());
    let load = async |wasm: &'static [u8], scope: &Scope| {
        let info = sandbox.load(wasm, scope.clone()).await.unwrap();
        (info.name, info.version)
    };
    let serves = || sandbox.engine("com_1", "fixed").unwrap().version;
    let (name, own) = load(guests::FIXED_ROWS, &scope).await;
    sandbox.activate(&scope, &name, &own).await.unwrap();
    let (_, platforms) = load(guests::FIXED_ROWS_NEXT, &Scope::Platform).await;
    assert_eq!(serves(), own, "a staged version takes nothing");
    sandbox
        .activate(&Scope::Platform, &name, &platforms)
        .await
        .unwrap();
    assert_eq!(serves(), platforms);
    let seen: Vec<String> = sandbox
        .engines("com_1")
        .into_iter()
        .map(|engine| engine.version)
        .collect();
    assert_eq!(seen, [platforms]);
    let (_, another) = load(guests::FIXED_ROWS_BROKEN, &scope).await;
    let refused = sandbox.activate(&scope, &name, &another).await;
    assert!(
        matches!(&refused, Err(LoadError::Invalid(reason)) if reason.contains("the platform's")),
        "{refused:?}"
    );
}

/// A file in the watched directory is served within seconds; a bad one changes nothing.
#[tokio::test]
async fn a_watched_directory_is_followed() {
    let sandbox = sandbox();
    let directory = tempfile::TempDir::new().unwrap();
    std::fs::write(directory.path().join("fixed.wasm"), guests::FIXED_ROWS).unwrap();
    sandbox.watch_directory(directory.path()).await;
    let source = source("fixed");
    run(&sandbox, &source, "select 1").await.unwrap();
    std::fs::write(
        directory.path().join("fixed.wasm"),
        &guests::FIXED_ROWS[..1000],
    )
    .unwrap();
    let rejected = || {
        sandbox
            .connectors()
            .iter()
            .any(|info| info.status == Status::Rejected && info.error.is_some())
    };
    wait_until(rejected).await;
    run(&sandbox, &source, "select 1").await.unwrap();
    std::fs::write(directory.path().join("fixed.wasm"), guests::FIXED_ROWS_NEXT).unwrap();
    wait_until(|| !rejected() && sandbox.connectors().len() == 2).await;
    run(&sandbox, &source, "select 1").await.unwrap();
}

/// What an operator reads.
fn gauge(sandbox: &Sandbox, name: &str) -> u64 {
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register_collector(Box::new(sandbox.metrics()));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("sandbox_{name} ")));
    line.expect("the gauge").parse().expect("a number")
}

/// After `shut_down` nothing is accepted, and what was in flight is answered.
#[tokio::test]
async fn a_shut_down_sandbox_refuses() {
    let sandbox = with_guest(guests::FIXED_ROWS).await;
    let source = source("fixed");
    run(&sandbox, &source, "select 1").await.unwrap();
    sandbox.shut_down(within(5)).await;
    assert_eq!(
        run(&sandbox, &source, "select 1").await.unwrap_err().kind,
        FaultKind::ShuttingDown
    );
}

/// What is in flight or waits when the time of `shut_down` is over is told so at once, and does not wait for its own deadline.
#[tokio::test]
async fn a_shut_down_sandbox_cuts_what_takes_longer() {
    let sandbox = with_guest(guests::SILENT).await;
    let one = PoolLimits {
        sessions_max: 1,
        queue_max: 8,
    };
    let source = source_with("silent", "{}", one);
    let runs: Vec<_> = (0..3)
        .map(|_| {
            let (sandbox, source) = (sandbox.sandbox.clone(), source.clone());
            tokio::spawn(async move { sandbox.run(&source, query("select 1"), within(60)).await })
        })
        .collect();
    wait_until(|| {
        gauge(&sandbox, "requests_in_flight") == 1 && gauge(&sandbox, "requests_queued") == 2
    })
    .await;
    let begun = Instant::now();
    sandbox.shut_down(begun + Duration::from_millis(100)).await;
    for run in runs {
        let fault = run.await.unwrap().unwrap_err();
        assert_eq!(fault.kind, FaultKind::ShuttingDown, "{fault:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
}

fn call_with(parameters: &str) -> Request {
    Request::Call(Call {
        route: Route::Path("/mood".into()),
        parameters: parameters.into(),
        asset_id: "ast_1".into(),
        request_id: "req_1".into(),
        execution_id: "exe_1".into(),
        limits: Limits::new(10, 16 << 20),
    })
}
