//! What the sandbox promises whatever a connector does: the answer names the fault and its blame,
//! and the next request succeeds.

#[path = "../common/mod.rs"]
mod common;
mod sessions;
mod versions;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::*;
use souk_sandbox::{
    Blame, Call, FaultKind, Limits, LogFilter, LogLine, PoolLimits, Query, Request, Route, Scope,
    Status, Stream, Value,
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
        .run(&source, Request::Ping(Limits::new(10, 1000)), within(20))
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
