//! What is stopped at the server, and how else a result may end.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_sandbox::{FaultKind, Limits, Query, Request};
use souk_tests::SqlServer;
use souk_tests::sqlserver::Seen;

use crate::{ask, query, subject};

/// Waits until the server has seen it, for a minute at most.
async fn wait(server: &SqlServer, is: impl Fn(&Seen) -> bool) {
    let since = Instant::now();
    while !is(&server.seen()) {
        assert!(
            since.elapsed() < Duration::from_secs(60),
            "{:?}",
            server.seen()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// At the end of its time a statement is stopped at the server, and the session goes on with the next.
#[tokio::test]
async fn what_takes_too_long_is_stopped() {
    let server = SqlServer::start().await;
    let subject = subject(&server, json!({"statement_timeout_ms": 600_000})).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    // A session first: to open one takes longer than the statement gets, where everything is slow.
    let output = subject.ask(&source, query("SELECT 7 AS v")).await;
    assert_eq!(output.unwrap().cell(0, 0).as_i64(), Some(7));
    let endless = query("SELECT id FROM endless");
    let fault = subject
        .ask_within(&source, endless, Duration::from_secs(2))
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Timeout, "{fault:?}");
    wait(&server, |seen| {
        seen.attentions == 1 && seen.running + seen.transactions == 0
    })
    .await;
    // The same session, begun anew by the server.
    assert_eq!(
        subject
            .ask(&source, query("SELECT 7 AS v"))
            .await
            .unwrap()
            .cell(0, 0)
            .as_i64(),
        Some(7)
    );
    assert_eq!(
        subject
            .ask(&source, query("SELECT id FROM slow"))
            .await
            .unwrap()
            .cell(0, 0)
            .as_i64(),
        Some(1)
    );
    let seen = server.seen();
    assert_eq!((seen.logins.len(), seen.resets), (1, 1), "{seen:?}");
    subject.close().await;
}

/// A result that is too large is stopped at the server as well, and is an error.
#[tokio::test]
async fn what_is_too_large_is_stopped() {
    let server = SqlServer::start().await;
    let subject = subject(&server, json!({})).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    let ask = async |text: &str, rows: u32, bytes: u64| {
        let query = Query {
            text: text.into(),
            parameters: Vec::new(),
            limits: Limits::new(rows, bytes),
        };
        subject.ask(&source, Request::Query(query)).await
    };
    let many = "SELECT value AS n FROM GENERATE_SERIES(1, 30000) AS s";
    let large = "SELECT REPLICATE(CAST(N'ä' AS nvarchar(max)), 5000000) AS v";
    for _ in 0..2 {
        let fault = ask(many, 100, 1 << 20).await.unwrap_err();
        assert_eq!(
            (fault.kind, fault.code.as_str()),
            (FaultKind::LimitExceeded, "rows_limit")
        );
        let fault = ask(many, 30_000, 10_000).await.unwrap_err();
        assert_eq!(
            (fault.kind, fault.code.as_str()),
            (FaultKind::LimitExceeded, "bytes_limit")
        );
        let fault = ask(large, 1, 1 << 20).await.unwrap_err();
        assert_eq!(
            (fault.kind, fault.code.as_str()),
            (FaultKind::LimitExceeded, "bytes_limit")
        );
        let whole = ask(large, 1, 16 << 20).await.unwrap();
        assert_eq!(whole.cell(0, 0).as_str().map(str::len), Some(10_000_000));
        let fault = ask(
            "SELECT REPLICATE(CAST(N'ä' AS nvarchar(max)), 7000000) AS v",
            1,
            32 << 20,
        )
        .await
        .unwrap_err();
        assert_eq!(
            (fault.kind, fault.code.as_str()),
            (FaultKind::LimitExceeded, "row_bytes")
        );
    }
    // The longest that there is, of letters that are longer in UTF-8.
    let longest = "SELECT REPLICATE(CAST(N'日' AS nvarchar(max)), 6200000) AS v";
    for _ in 0..3 {
        let whole = ask(longest, 1, 32 << 20).await.unwrap();
        assert_eq!(whole.cell(0, 0).as_str().map(str::len), Some(18_600_000));
    }
    let bytes = |name: &str, count: u32| {
        format!("SELECT CAST(REPLICATE(CAST(N'ä' AS nvarchar(max)), {count}) AS {name}) AS v")
    };
    for (text, length) in [
        (bytes("varchar(max)", 9 << 20), 18 << 20),
        (bytes("utf8(max)", 6_200_000), 12_400_000),
    ] {
        let whole = ask(&text, 1, 32 << 20).await.unwrap();
        assert_eq!(whole.cell(0, 0).as_str().map(str::len), Some(length));
    }
    let fault = ask(&bytes("varchar(max)", (9 << 20) + 1), 1, 32 << 20)
        .await
        .unwrap_err();
    assert_eq!(fault.code, "row_bytes");
    let seen = server.seen();
    assert_eq!((seen.attentions, seen.transactions), (9, 0));
    // What is refused does not cost the session. A busy machine may: one that is cut off on a worker is begun anew for the lanes.
    assert!(seen.logins.len() <= 2, "{} logins", seen.logins.len());
    subject.close().await;
}

/// A wire that breaks in the middle of a result is no shorter result.
#[tokio::test]
async fn a_torn_wire_is_no_end() {
    let server = SqlServer::start().await;
    let subject = subject(&server, json!({})).await;
    let fault = ask(&subject, query("SELECT id FROM torn"))
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unreachable, "{fault:?}");
    assert_eq!(ask(&subject, query("SELECT 7 AS v")).await.unwrap().rows, 1);
    subject.close().await;
}
