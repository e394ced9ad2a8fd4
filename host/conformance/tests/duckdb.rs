//! The component `duckdb` against the vendor's own server.

mod common;
#[path = "duckdb/messages.rs"]
mod messages;
#[path = "duckdb/read_only.rs"]
mod read_only;

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use souk_conformance::{Place, Subject};
use souk_sandbox::{Fault, FaultKind, Limits, Query, Request};
use souk_tests::{DuckDb, duckdb, thousand_tables};

use common::{
    ask, believes_no_stranger, conforms, conforms_without_a_source, merged, query,
    reads_a_thousand_tables,
};

/// Of many types, with NULLs where they may be.
const STOCK: [&str; 3] = [
    "CREATE SCHEMA shop",
    "CREATE TABLE shop.stock AS SELECT i::INTEGER AS id, 'sku ' || chr((97 + i % 26)::INTEGER) || i AS sku, CASE WHEN i % 5 > 0 THEN (i * 1.25)::DECIMAL(10, 3) END AS price, \
     DATE '2026-01-01' - i::INTEGER AS day, CASE WHEN i % 3 > 0 THEN TIMESTAMPTZ '2026-01-01 00:00:00.000001+00' + to_hours(i) END AS at, \
     TIMESTAMP '2026-01-01' + to_minutes(i) AS local, i / 8.0::DOUBLE AS weight, i % 2 = 0 AS sold, (18446744073709551615 - i)::UBIGINT AS total, ['a', 'x' || i] AS tags, {'a': i} AS more FROM range(1, 61) AS r(i)",
    "ALTER TABLE shop.stock ADD PRIMARY KEY (id)",
];
const CHEAP: &str = "CREATE VIEW shop.cheap AS SELECT * FROM shop.stock WHERE price < 10";
const TABLE: &str = "schema = 'shop'\nname = 'stock'\nkey = ['id']";

fn stocked(server: &DuckDb) {
    for statement in STOCK.into_iter().chain([CHEAP]) {
        server.admin(statement);
    }
}

fn settings(more: Json) -> Json {
    merged(json!({"api_key": duckdb::TOKEN}), more)
}

async fn subject(server: &DuckDb, more: Json) -> Subject {
    common::subject("duckdb", Some(place(server)), &settings(more)).await
}

fn place(server: &DuckDb) -> Place {
    Place::Http {
        base_url: server.base_url(),
        ca_pem: server.ca_pem.clone(),
    }
}

async fn refused(server: &DuckDb, more: Json, text: &str) -> Fault {
    let subject = subject(server, more).await;
    let fault = ask(&subject, query(text)).await.unwrap_err();
    subject.close().await;
    fault
}

/// Without a source the kit tries what can be tried: settings, servers that lie, wires that break.
#[tokio::test]
async fn without_a_source_it_conforms() {
    conforms_without_a_source("duckdb", &settings(json!({}))).await;
}

/// The whole kit, with TLS and without. Nothing fails, and nothing else is left out but what hosts do not do here. What connections it leaves is not
/// looked at: of a wire that broke while one was opened nobody knows which one it was.
#[tokio::test]
async fn it_conforms() {
    for server in [DuckDb::start(), DuckDb::start_tls().await] {
        stocked(&server);
        let left_out = &["paging.after_a_row"];
        // A string of TOML is one of JSON's.
        let settings = settings(json!({"database": "memory"}));
        let base_url = server.base_url();
        let source = (base_url.as_str(), server.ca_pem.as_deref());
        conforms("duckdb", source, TABLE, &settings, left_out).await;
    }
}

/// What is wrong is told as what it is.
#[tokio::test]
async fn refusals_are_told_as_what_they_are() {
    use FaultKind::{Authentication, Configuration, NotFound, Permission, SourceError};
    let server = DuckDb::start();
    stocked(&server);
    for (more, text, kind, code) in [
        (json!({}), "DELETE FROM shop.stock", Permission, "read_only"),
        (
            json!({}),
            "SELECT 1; DELETE FROM shop.stock",
            Permission,
            "read_only",
        ),
        (
            json!({}),
            "SELECT absent FROM shop.stock",
            SourceError,
            "unknown_column",
        ),
        (
            json!({}),
            "SELECT * FROM shop.absent",
            NotFound,
            "unknown_table",
        ),
        (
            json!({}),
            "SELECT * FROM nowhere.absent",
            NotFound,
            "unknown_schema",
        ),
        (
            json!({}),
            "SELECT absent(id) FROM shop.stock",
            NotFound,
            "unknown_function",
        ),
        (json!({}), "SELECT FROM WHERE", SourceError, "syntax_error"),
        (
            json!({}),
            "SELECT * FROM shop.stock WHERE day = 'x'",
            SourceError,
            "invalid_value",
        ),
        (
            json!({"database": "pond"}),
            "SELECT 1",
            Configuration,
            "unknown_database",
        ),
        (
            json!({"api_key": "wrong"}),
            "SELECT 1",
            Authentication,
            "credentials_refused",
        ),
    ] {
        let fault = refused(&server, more, text).await;
        assert_eq!(
            (fault.kind, fault.code.as_str()),
            (kind, code),
            "{text}: {fault:?}"
        );
    }
    assert_eq!(server.connections(), 0);
}

/// Whom nobody proves is told no token.
#[tokio::test]
async fn a_server_proves_who_it_is() {
    let (server, stranger) = (DuckDb::start_tls().await, DuckDb::start_tls().await);
    let subject = subject(&server, json!({})).await;
    believes_no_stranger(&subject, &server.base_url(), stranger.ca_pem.clone()).await;
    assert_eq!(ask(&subject, query("SELECT 1")).await.unwrap().rows, 1);
    subject.close().await;
}

/// Rows come in several answers, in their order, and 200 columns in one.
#[tokio::test]
async fn results_are_as_long_and_as_wide_as_they_are() {
    let server = DuckDb::start();
    let subject = subject(&server, json!({})).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    let request = |text: &str| {
        Request::Query(Query {
            text: text.into(),
            parameters: Vec::new(),
            limits: Limits::new(200_000, 32 << 20),
        })
    };
    let many = request("SELECT i, 'x' || i FROM range(100000) AS r(i)");
    let output = subject.ask(&source, many).await.unwrap();
    assert_eq!(output.rows, 100_000);
    for row in [0, 24_575, 24_576, 49_152, 99_999] {
        assert_eq!(output.cell(row, 0).as_i64(), Some(row as i64));
        assert_eq!(
            output.cell(row, 1).as_str(),
            Some(format!("x{row}").as_str())
        );
    }
    // An answer of 22 MiB fits into a session, one of 26 is told to be too long.
    let long = |bytes: usize| request(&format!("SELECT repeat('x', {bytes}) FROM range(24576)"));
    let output = subject.ask(&source, long(900)).await.unwrap();
    assert_eq!(output.rows, 24_576);
    let fault = subject.ask(&source, long(1_100)).await.unwrap_err();
    assert_eq!(fault.code, "bad_response");
    assert!(fault.message.contains("24 MiB"), "{fault:?}");
    let columns: Vec<String> = (0..200).map(|n| format!("i + {n} AS c{n}")).collect();
    let wide = format!("SELECT {} FROM range(3000) AS r(i)", columns.join(", "));
    let output = subject.ask(&source, request(&wide)).await.unwrap();
    assert_eq!((output.rows, output.columns.len()), (3_000, 200));
    assert_eq!(output.cell(2_999, 199).as_i64(), Some(3_198));
    subject.close().await;
    assert_eq!(server.connections(), 0);
}

/// A result that has begun is given up at DuckDB, which computes no more of it, when the request's time is over, and when nobody waits for it any more.
#[tokio::test]
async fn rows_that_nobody_wants_are_not_computed() {
    let server = DuckDb::start();
    let subject = subject(&server, json!({})).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    let request = || {
        Request::Query(Query {
            // Without an end, and slow enough for the rows that are allowed.
            text: "SELECT i, md5(i::VARCHAR) || sleep_ms(CASE WHEN i % 20000 = 0 THEN 200 ELSE 0 END)::VARCHAR AS t FROM range(100000000000) AS r(i)".into(),
            parameters: Vec::new(),
            limits: Limits::new(10_000_000, 256 << 20),
        })
    };
    let within = Duration::from_millis(900);
    let fault = subject
        .ask_within(&source, request(), within)
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Timeout, "{fault:?}");
    is_idle(&server).await;

    let has_begun = async {
        let runs = |text: &String| text.contains("range(100000000000)");
        while !server.asked().iter().any(runs) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Rows are on their way.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(server.connections() > 0);
    };
    tokio::select! {
        answer = subject.ask(&source, request()) => panic!("it has ended: {:?}", answer.map(|output| output.rows)),
        () = has_begun => {}
    }
    is_idle(&server).await;
    subject.close().await;
}

/// The server has no connection left, and computes nothing.
async fn is_idle(server: &DuckDb) {
    let since = Instant::now();
    loop {
        let before = server.ticks();
        tokio::time::sleep(Duration::from_millis(500)).await;
        if server.connections() == 0 && server.ticks() - before < 10 {
            return;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "it goes on");
    }
}

/// A statement that has no row yet is told to be too slow; nothing of Quack 1 stops it. That it goes on is said in docs/engines.md: a server that
/// stopped it would make this fail.
#[tokio::test]
async fn what_has_no_row_yet_goes_on() {
    let server = DuckDb::start();
    let subject = subject(&server, json!({"statement_timeout_ms": 300})).await;
    let slow = "SELECT count(*) FROM range(300000000) AS a(x), range(10) AS b(y) WHERE hash(x * y) % 7 = 3";
    let begun = Instant::now();
    let fault = ask(&subject, query(slow)).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.code.as_str()),
        (FaultKind::Timeout, "statement_timeout"),
        "{fault:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(30));
    // The session goes on with others.
    assert_eq!(
        ask(&subject, query("SELECT 7"))
            .await
            .unwrap()
            .cell(0, 0)
            .as_i64(),
        Some(7)
    );
    // A fifth of a second of processor time, however busy the machine is.
    let (before, since) = (server.ticks(), Instant::now());
    while server.ticks() - before <= 20 {
        assert!(
            since.elapsed() < Duration::from_secs(60),
            "it was stopped: say so"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    subject.close().await;
}

/// A catalog of 1,000 tables.
#[tokio::test]
async fn a_thousand_tables_take_a_moment() {
    let server = DuckDb::start();
    for statement in thousand_tables::duckdb("shop") {
        server.admin(&statement);
    }
    let subject = subject(&server, json!({})).await;
    reads_a_thousand_tables(&subject, "shop", |catalog| {
        assert_eq!(catalog.cell(4, 5).as_str(), Some("VARCHAR[]"));
        assert_eq!(catalog.cell(0, 7).as_bool(), Some(true));
        assert_eq!(catalog.cell(1, 7).as_bool(), Some(false));
    })
    .await;
    subject.close().await;
}
