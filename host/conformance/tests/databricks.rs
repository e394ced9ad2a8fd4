//! The component `databricks` against a workspace that Databricks' own client takes for one. That it does is tried under
//! `tests/run --all-engines`.

mod common;

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use souk_conformance::{Place, Subject};
use souk_sandbox::{FaultKind, Limits, Query, Request};
use souk_tests::{Databricks, databricks, thousand_tables};

use common::{
    ask, believes_no_stranger, conforms, conforms_without_a_source, merged, query,
    reads_a_thousand_tables,
};

/// Of every type that a table has here, with NULLs where they may be.
const STOCK: &str = r#"ATTACH ':memory:' AS shop;
    CREATE TABLE shop.stock (id bigint NOT NULL, sku string text, price decimal(10, 3), day date, at timestamp, local timestamp_ntz, weight double, sold boolean, tags "array<string>");
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 60)
    INSERT INTO shop.stock SELECT n, 'sku ' || char(97 + n % 26) || n, CASE WHEN n % 5 > 0 THEN n * 1.25 END, date('2026-01-01', '-' || n || ' days'),
        CASE WHEN n % 3 > 0 THEN 1767225600000000 + n * 3600000001 END, strftime('%Y-%m-%d %H:%M:%S.000000', '2026-01-01', '+' || n || ' minutes'),
        n / 8.0, n % 2 = 0, json_array('a', 'x' || n) FROM s;
    CREATE VIEW shop.cheap AS SELECT * FROM stock WHERE price < 10;"#;

const TABLE: &str = "schema = 'shop'\nname = 'stock'\nkey = ['id']";

/// Who asks, and of which catalog: by a token, or as a service principal where there is TLS.
fn settings(server: &Databricks, more: Json) -> Json {
    let mut settings = json!({"warehouse_id": databricks::WAREHOUSE, "database": "memory.shop"});
    match server.ca_pem.is_some() {
        true => {
            settings["username"] = databricks::CLIENT_ID.into();
            settings["password"] = databricks::CLIENT_SECRET.into();
        }
        false => settings["api_key"] = databricks::TOKEN.into(),
    }
    merged(settings, more)
}

async fn subject(server: &Databricks, more: Json) -> Subject {
    common::subject("databricks", Some(place(server)), &settings(server, more)).await
}

fn place(server: &Databricks) -> Place {
    Place::Http {
        base_url: server.base_url(),
        ca_pem: server.ca_pem.clone(),
    }
}

/// Without a source the kit tries what can be tried: settings, servers that lie, wires that break.
#[tokio::test]
async fn without_a_source_it_conforms() {
    let settings = json!({"warehouse_id": "a1", "database": "memory.shop", "api_key": "dapi00"});
    conforms_without_a_source("databricks", &settings).await;
}

/// The whole kit, without TLS and with it. Nothing fails, and nothing else is left out but what hosts do not do here.
#[tokio::test]
async fn it_conforms() {
    for server in [Databricks::start().await, Databricks::start_tls().await] {
        server.admin(STOCK);
        // Hosts page by offset here.
        let left_out = &["paging.after_a_row"];
        let (base_url, settings) = (server.base_url(), settings(&server, json!({})));
        let source = (base_url.as_str(), server.ca_pem.as_deref());
        conforms("databricks", source, TABLE, &settings, left_out).await;
    }
}

/// Databricks' client reads the server of these tests as it reads Databricks: what is proven against it is worth something.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Databricks' Python client, 100 MB: tests/run --all-engines"]
async fn real_databricks_client_takes_the_server_for_one() {
    let (clear, sealed) = (Databricks::start().await, Databricks::start_tls().await);
    clear.admin(STOCK);
    sealed.admin(STOCK);
    let mut ca = tempfile::NamedTempFile::new().unwrap();
    ca.write_all(sealed.ca_pem.as_deref().unwrap_or_default().as_bytes())
        .unwrap();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let python = std::env::var_os("SOUK_DATABRICKS_PYTHON").expect("tests/run --all-engines");
    let mut judge = Command::new(python);
    judge
        .arg(tests.join("engines/databricks.py"))
        .args(["judge", &clear.base_url(), &sealed.base_url()])
        .arg(ca.path())
        .args([databricks::TOKEN, databricks::CLIENT_ID])
        .args([databricks::CLIENT_SECRET, databricks::WAREHOUSE]);
    let judged = tokio::task::spawn_blocking(move || judge.status()).await;
    assert!(judged.unwrap().unwrap().success());
    assert_eq!(clear.running(), 0);
}

/// What is wrong is told as what it is.
#[tokio::test]
async fn refusals_are_told_as_what_they_are() {
    use FaultKind::{Authentication, Configuration, NotFound, Permission, SourceError, Timeout};
    let server = Databricks::start().await;
    let sealed = Databricks::start_tls().await;
    server.admin(STOCK);
    let none = json!({});
    for (server, more, text, kind, code) in [
        (
            &server,
            none.clone(),
            "DELETE FROM shop.stock",
            Permission,
            "read_only",
        ),
        (
            &server,
            none.clone(),
            "SELECT 1; DELETE FROM shop.stock",
            Permission,
            "read_only",
        ),
        (
            &server,
            none.clone(),
            "SELECT reflect('a', 'b')",
            Permission,
            "read_only",
        ),
        (
            &server,
            none.clone(),
            "SELECT absent FROM shop.stock",
            SourceError,
            "unknown_column",
        ),
        (
            &server,
            none.clone(),
            "SELECT * FROM shop.absent",
            NotFound,
            "unknown_table",
        ),
        (
            &server,
            none.clone(),
            "SELECT * FROM pond.shop.stock",
            NotFound,
            "unknown_catalog",
        ),
        (
            &server,
            json!({"database": "pond"}),
            "SELECT * FROM pond.shop.stock",
            Configuration,
            "unknown_catalog",
        ),
        (
            &server,
            none.clone(),
            "SELECT absent(id) FROM shop.stock",
            NotFound,
            "unknown_function",
        ),
        (
            &server,
            none.clone(),
            "SELECT FROM WHERE",
            SourceError,
            "syntax_error",
        ),
        (
            &server,
            json!({"statement_timeout_ms": 50}),
            "SELECT id FROM endless",
            Timeout,
            "statement_timeout",
        ),
        (
            &server,
            json!({"warehouse_id": "ffff"}),
            "SELECT 1",
            Configuration,
            "unknown_warehouse",
        ),
        (
            &server,
            json!({"api_key": "dapi00"}),
            "SELECT 1",
            Authentication,
            "credentials_refused",
        ),
        (
            &sealed,
            json!({"password": "wrong"}),
            "SELECT 1",
            Authentication,
            "credentials_refused",
        ),
    ] {
        let subject = subject(server, more).await;
        let fault = ask(&subject, query(text)).await.unwrap_err();
        subject.close().await;
        assert_eq!(
            (fault.kind, fault.code.as_str()),
            (kind, code),
            "{text}: {fault:?}"
        );
    }
    for (more, code) in [
        (json!({"database": "pond.shop"}), "unknown_catalog"),
        (json!({"database": "memory.nowhere"}), "unknown_schema"),
    ] {
        let subject = subject(&server, more).await;
        let ping = ask(&subject, Request::Ping(Limits::new(1, 1_000))).await;
        let fault = ping.unwrap_err();
        assert_eq!(
            (fault.kind, fault.code.as_str()),
            (Configuration, code),
            "{fault:?}"
        );
        subject.close().await;
    }
    assert_eq!(server.running(), 0);
}

/// A text that begins as a query and writes is refused by Databricks' parser, and never run.
#[tokio::test]
async fn what_writes_is_described_and_not_run() {
    let server = Databricks::start().await;
    server.admin(STOCK);
    let subject = subject(&server, json!({})).await;
    let writing = "WITH a AS (SELECT 1) DELETE FROM shop.stock";
    for text in [
        writing,
        "WITH a AS (SELECT 61) INSERT INTO shop.stock (id) SELECT * FROM a",
    ] {
        let fault = ask(&subject, query(text)).await.unwrap_err();
        assert_eq!(fault.code, "syntax_error", "{text}: {fault:?}");
    }
    let asked = server.requests();
    assert!(asked.contains(&format!("POST DESCRIBE QUERY {writing}")));
    assert!(!asked.contains(&format!("POST {writing}")));
    let left = ask(&subject, query("SELECT COUNT(*) FROM shop.stock")).await;
    assert_eq!(left.unwrap().cell(0, 0).as_i64(), Some(60));
    // A connection's test has seen it.
    let ping = ask(&subject, Request::Ping(Limits::new(1, 1_000)))
        .await
        .unwrap();
    assert_eq!(ping.cell(0, 0).as_str(), Some(databricks::VERSION));
    assert_eq!(ping.cell(0, 1).as_bool(), Some(true));
    let probe = "POST DESCRIBE QUERY INSERT INTO souk VALUES (1)";
    assert!(server.requests().contains(&probe.to_owned()));
    subject.close().await;
}

/// Whom nobody proves is told no secret.
#[tokio::test]
async fn a_server_proves_who_it_is() {
    let (server, stranger) = (Databricks::start_tls().await, Databricks::start_tls().await);
    let subject = subject(&server, json!({})).await;
    believes_no_stranger(&subject, &server.base_url(), stranger.ca_pem.clone()).await;
    assert_eq!(server.requests(), [""; 0]);
    assert_eq!(ask(&subject, query("SELECT 1")).await.unwrap().rows, 1);
    subject.close().await;
}

/// A statement is described once, and a result of several chunks takes a request for each.
#[tokio::test]
async fn it_asks_no_more_than_it_must() {
    let server = Databricks::start().await;
    let subject = subject(&server, json!({})).await;
    let text = "SELECT id FROM range(1, 9001) ORDER BY id";
    let request = || {
        Request::Query(Query {
            text: text.into(),
            parameters: Vec::new(),
            limits: Limits::new(10_000, 1 << 20),
        })
    };
    let (run, describe) = (
        format!("POST {text}"),
        format!("POST DESCRIBE QUERY {text}"),
    );
    let wanted = [&run, "GET statement", "GET chunk 1", "GET chunk 2"];
    let source = subject.source(subject.place.as_ref().unwrap());
    // What takes a worker too long, as on a busy machine, the host begins anew elsewhere.
    for round in 0..10 {
        let seen = server.requests().len();
        let output = subject.ask(&source, request()).await.unwrap();
        assert_eq!(
            (output.rows, output.cell(8_999, 0).as_i64()),
            (9_000, Some(9_000))
        );
        if round > 0 && server.requests()[seen..] == wanted {
            break;
        }
        assert!(round < 9, "{:?}", &server.requests()[seen..]);
    }
    assert_eq!(server.requests()[0], describe);
    subject.close().await;
}

/// A token is fetched once, and a new one where it is not taken any more.
#[tokio::test]
async fn a_token_is_kept() {
    let server = Databricks::start_tls().await;
    let subject = subject(&server, json!({})).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    let tokens = || {
        let asked = server.requests();
        asked.iter().filter(|line| *line == "POST token").count()
    };
    for _ in 0..3 {
        subject.ask(&source, query("SELECT 1")).await.unwrap();
    }
    let before = tokens();
    assert!((1..=3).contains(&before), "{before}");
    server.revoke();
    subject.ask(&source, query("SELECT 1")).await.unwrap();
    assert!(tokens() > before);
    subject.close().await;
}

/// A statement that takes its time is waited for; a service that is busy for a moment is asked again.
#[tokio::test]
async fn who_is_slow_or_busy_is_waited_for() {
    let server = Databricks::start().await;
    let subject = subject(&server, json!({})).await;
    let output = ask(&subject, query("SELECT id FROM slow")).await;
    assert_eq!(output.unwrap().cell(0, 0).as_i64(), Some(1));
    for (status, retry_after) in [(503, None), (429, Some("1"))] {
        server.turn_away(2, status, retry_after);
        let output = ask(&subject, query("SELECT 7")).await;
        assert_eq!(output.unwrap().cell(0, 0).as_i64(), Some(7), "{status}");
    }
    server.turn_away(1, 429, Some("3600"));
    let fault = ask(&subject, query("SELECT 7")).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::RateLimited, "{fault:?}");
    subject.close().await;
}

/// At the end of its time a statement is stopped at Databricks, wherever it is by then.
#[tokio::test]
async fn what_takes_too_long_is_stopped() {
    let mut was_stopped = false;
    for millis in [300, 1_700, 10_000] {
        if was_stopped && millis > 1_700 {
            // Only for a machine so busy that no statement had begun before.
            break;
        }
        let server = Databricks::start().await;
        let subject = subject(&server, json!({"statement_timeout_ms": 600_000})).await;
        let source = subject.source(subject.place.as_ref().unwrap());
        let endless = query("SELECT id FROM endless");
        let within = Duration::from_millis(millis);
        let fault = subject
            .ask_within(&source, endless, within)
            .await
            .unwrap_err();
        assert_eq!(fault.kind, FaultKind::Timeout, "{fault:?}");
        let since = Instant::now();
        while server.running() > 0 {
            let went = server.requests();
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "it goes on: {went:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        was_stopped |= server.requests().contains(&"POST cancel".to_owned());
        subject.close().await;
    }
    assert!(was_stopped);
}

/// A statement whose id is said when its time is over is stopped all the same.
#[tokio::test]
async fn what_says_its_id_late_is_stopped() {
    /// More than one only on a machine so busy that the id came half a second later than it was said, or nothing began in time.
    const ROUNDS_MAX: usize = 5;
    /// A host waits for two seconds.
    const PATIENCE: Duration = Duration::from_secs(5);
    let endless = "SELECT id FROM endless";
    for round in 1..=ROUNDS_MAX {
        let server = Databricks::start().await;
        let subject = subject(&server, json!({"statement_timeout_ms": 600_000})).await;
        let source = subject.source(subject.place.as_ref().unwrap());
        subject.ask(&source, query("SELECT 7")).await.unwrap();
        server.says_ids_after(Duration::from_millis(1_500));
        let answer = subject
            .ask_within(&source, query(endless), Duration::from_secs(1))
            .await;
        let fault = answer.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Timeout, "{fault:?}");
        let since = Instant::now();
        let is_stopped = || {
            let has_begun = server.requests().contains(&format!("POST {endless}"));
            has_begun && server.running() == 0
        };
        while !is_stopped() && since.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        subject.close().await;
        if is_stopped() {
            return;
        }
        assert!(round < ROUNDS_MAX, "it goes on: {:?}", server.requests());
    }
}

/// A catalog of 1,000 tables.
#[tokio::test]
async fn a_thousand_tables_take_a_moment() {
    let server = Databricks::start().await;
    server.admin(&thousand_tables::databricks("shop"));
    let subject = subject(&server, json!({})).await;
    let mut seen = server.requests().len();
    reads_a_thousand_tables(&subject, "shop", |catalog| {
        assert_eq!(catalog.cell(4, 5).as_str(), Some("array<string>"));
        assert_eq!(catalog.cell(0, 6).as_bool(), Some(false));
        let asked = server.requests().split_off(seen);
        seen += asked.len();
        assert!(asked.iter().any(|line| line.starts_with("POST SELECT")));
    })
    .await;
    subject.close().await;
}
