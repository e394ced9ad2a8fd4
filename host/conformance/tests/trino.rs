//! The component `trino` against a coordinator that Trino's own client takes for one. That it does is tried under `tests/run --all-engines`.

mod common;

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use souk_conformance::{Place, Subject};
use souk_sandbox::{FaultKind, Limits, Query, Request};
use souk_tests::{Trino, thousand_tables, trino};

use common::{
    ask, believes_no_stranger, conforms, conforms_without_a_source, merged, query,
    reads_a_thousand_tables,
};

/// Of every type that a table has here, with NULLs where they may be.
const STOCK: &str = r#"ATTACH ':memory:' AS shop;
    CREATE TABLE shop.stock (id bigint NOT NULL, sku varchar, price decimal(10, 3), day date, at "timestamp(6) with time zone", local timestamp(6), weight double, sold boolean, tags "array(varchar)");
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 60)
    INSERT INTO shop.stock SELECT n, 'sku ' || char(97 + n % 26) || n, CASE WHEN n % 5 > 0 THEN n * 1.25 END, date('2026-01-01', '-' || n || ' days'),
        CASE WHEN n % 3 > 0 THEN 1767225600000000 + n * 3600000001 END, strftime('%Y-%m-%d %H:%M:%S.000000', '2026-01-01', '+' || n || ' minutes'),
        n / 8.0, n % 2 = 0, json_array('a', 'x' || n) FROM s;
    CREATE VIEW shop.cheap AS SELECT * FROM stock WHERE price < 10;"#;

const TABLE: &str = "schema = 'shop'\nname = 'stock'\nkey = ['id']";

/// Who asks, and of which catalog.
fn settings(server: &Trino, more: Json) -> Json {
    let mut settings = json!({"username": trino::USER, "database": "memory.shop"});
    if server.ca_pem.is_some() {
        settings["password"] = trino::PASSWORD.into();
    }
    merged(settings, more)
}

async fn subject(server: &Trino, more: Json) -> Subject {
    common::subject("trino", Some(place(server)), &settings(server, more)).await
}

fn place(server: &Trino) -> Place {
    Place::Http {
        base_url: server.base_url(),
        ca_pem: server.ca_pem.clone(),
    }
}

/// Without a source the kit tries what can be tried: settings, servers that lie, wires that break.
#[tokio::test]
async fn without_a_source_it_conforms() {
    let settings = json!({"username": "souk", "database": "memory.shop"});
    conforms_without_a_source("trino", &settings).await;
}

/// The whole kit, without TLS and with it: a secret can be tried where there is. Nothing fails, and nothing else is left out but what hosts do not
/// do here.
#[tokio::test]
async fn it_conforms() {
    for server in [Trino::start().await, Trino::start_tls().await] {
        server.admin(STOCK);
        // Hosts page by offset here.
        let left_out: &[&str] = match server.ca_pem.is_some() {
            false => &["open.wrong_secret", "paging.after_a_row"],
            true => &["paging.after_a_row"],
        };
        let (base_url, settings) = (server.base_url(), settings(&server, json!({})));
        let source = (base_url.as_str(), server.ca_pem.as_deref());
        conforms("trino", source, TABLE, &settings, left_out).await;
    }
}

/// Trino's client reads the server of these tests as it reads Trino: what is proven against it is worth something.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Trino's Python client, 66 MB: tests/run --all-engines"]
async fn real_trino_client_takes_the_server_for_one() {
    let (clear, sealed) = (Trino::start().await, Trino::start_tls().await);
    clear.admin(STOCK);
    sealed.admin(STOCK);
    let mut ca = tempfile::NamedTempFile::new().unwrap();
    ca.write_all(sealed.ca_pem.as_deref().unwrap_or_default().as_bytes())
        .unwrap();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let python = std::env::var_os("SOUK_TRINO_PYTHON").expect("tests/run --all-engines");
    let mut judge = Command::new(python);
    judge
        .arg(tests.join("engines/trino.py"))
        .args(["judge", &clear.base_url(), &sealed.base_url()])
        .arg(ca.path())
        .args([trino::USER, trino::PASSWORD, trino::TOKEN]);
    let judged = tokio::task::spawn_blocking(move || judge.status()).await;
    assert!(judged.unwrap().unwrap().success());
    // It leaves a statement without reading it to its end, and ends what it begins.
    assert_eq!(clear.transactions(), 0);
}

/// What is wrong is told as what it is; what a transaction that only reads refuses is refused by Trino, whatever the statement looks like.
#[tokio::test]
async fn refusals_are_told_as_what_they_are() {
    use FaultKind::{Authentication, Configuration, NotFound, Permission, SourceError, Timeout};
    let server = Trino::start().await;
    let sealed = Trino::start_tls().await;
    server.admin(STOCK);
    for (server, more, text, kind, code) in [
        (
            &server,
            json!({}),
            "DELETE FROM shop.stock",
            Permission,
            "read_only",
        ),
        (
            &server,
            json!({}),
            "SELECT 1; DELETE FROM shop.stock",
            Permission,
            "read_only",
        ),
        (
            &server,
            json!({}),
            "SELECT absent FROM shop.stock",
            SourceError,
            "unknown_column",
        ),
        (
            &server,
            json!({}),
            "SELECT * FROM shop.absent",
            NotFound,
            "unknown_table",
        ),
        (
            &server,
            json!({}),
            "SELECT * FROM nowhere.absent",
            NotFound,
            "unknown_schema",
        ),
        (
            &server,
            json!({}),
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
            json!({}),
            "SELECT absent(id) FROM shop.stock",
            NotFound,
            "unknown_function",
        ),
        (
            &server,
            json!({}),
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
            json!({"password": "x"}),
            "SELECT 1",
            Configuration,
            "cleartext_refused",
        ),
        (
            &sealed,
            json!({"password": "wrong"}),
            "SELECT 1",
            Authentication,
            "credentials_refused",
        ),
        (
            &sealed,
            json!({"username": "nobody"}),
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
    for (more, kind, code) in [
        (
            json!({"database": "pond.shop"}),
            Configuration,
            "unknown_catalog",
        ),
        (
            json!({"database": "memory.nowhere"}),
            Configuration,
            "unknown_schema",
        ),
    ] {
        let subject = subject(&server, more).await;
        let ping = ask(&subject, Request::Ping(Limits::new(1, 1_000))).await;
        let fault = ping.unwrap_err();
        assert_eq!((fault.kind, fault.code.as_str()), (kind, code), "{fault:?}");
        subject.close().await;
    }
    // No connector's lock stands before this one: the transaction refuses it.
    let subject = subject(&server, json!({})).await;
    let ping = ask(&subject, Request::Ping(Limits::new(1, 1_000)))
        .await
        .unwrap();
    assert_eq!(ping.cell(0, 0).as_str(), Some(trino::VERSION));
    assert_eq!(ping.cell(0, 1).as_bool(), Some(true));
    let probe = "POST INSERT INTO \"memory\".information_schema.schemata VALUES ('souk', 'souk')";
    assert!(server.requests().contains(&probe.to_owned()));
    let left = ask(&subject, query("SELECT COUNT(*) FROM shop.stock")).await;
    assert_eq!(left.unwrap().cell(0, 0).as_i64(), Some(60));
    subject.close().await;
    assert_eq!((server.running(), server.transactions()), (0, 0));
}

/// Whom nobody proves is told no password; whoever shows a token is let in.
#[tokio::test]
async fn a_server_proves_who_it_is() {
    let (server, stranger) = (Trino::start_tls().await, Trino::start_tls().await);
    let subject = subject(&server, json!({})).await;
    believes_no_stranger(&subject, &server.base_url(), stranger.ca_pem.clone()).await;
    assert_eq!(server.requests(), [""; 0]);
    assert_eq!(ask(&subject, query("SELECT 1")).await.unwrap().rows, 1);
    subject.close().await;
}

/// A statement is between the beginning and the end of its transaction, and alone once it has passed one; a result of several pages takes a
/// request for each.
#[tokio::test]
async fn it_asks_no_more_than_it_must() {
    let server = Trino::start().await;
    let subject = subject(&server, json!({})).await;
    let request = || {
        Request::Query(Query {
            text: "SELECT n FROM UNNEST(sequence(1, 9000)) AS s(n) ORDER BY n".into(),
            parameters: Vec::new(),
            limits: Limits::new(10_000, 1 << 20),
        })
    };
    let text = "POST SELECT n FROM UNNEST(sequence(1, 9000)) AS s(n) ORDER BY n";
    let alone = [
        text,
        "GET queued",
        "GET executing",
        "GET executing",
        "GET executing",
        "GET executing",
    ];
    let begin = [
        "POST START TRANSACTION READ ONLY",
        "GET queued",
        "GET executing",
    ];
    let wanted = [&begin[..], &alone, &["POST ROLLBACK", "GET queued"]].concat();
    let source = subject.source(subject.place.as_ref().unwrap());
    let (mut was_first, mut was_alone) = (false, false);
    // What takes a worker too long, as on a busy machine, the host begins anew elsewhere.
    for _ in 0..20 {
        let seen = server.requests().len();
        let output = subject.ask(&source, request()).await.unwrap();
        assert_eq!(
            (output.rows, output.cell(8_999, 0).as_i64()),
            (9_000, Some(9_000))
        );
        let asked = server.requests().split_off(seen);
        was_first |= asked == wanted;
        was_alone |= asked == alone;
        if was_first && was_alone {
            break;
        }
    }
    assert!(was_first && was_alone, "{:?}", server.requests());
    assert_eq!(server.transactions(), 0);
    subject.close().await;
}

/// A statement that takes longer than an answer waits is waited for; a proxy that is busy for a moment is asked again.
#[tokio::test]
async fn who_is_slow_or_busy_is_waited_for() {
    let server = Trino::start().await;
    let subject = subject(&server, json!({})).await;
    let output = ask(&subject, query("SELECT id FROM slow")).await;
    assert_eq!(output.unwrap().cell(0, 0).as_i64(), Some(1));
    for (status, retry_after) in [(502, None), (503, None), (504, None), (429, Some("1"))] {
        server.turn_away(2, status, retry_after);
        let output = ask(&subject, query("SELECT 7")).await;
        assert_eq!(output.unwrap().cell(0, 0).as_i64(), Some(7), "{status}");
    }
    server.turn_away(1, 429, Some("3600"));
    let fault = ask(&subject, query("SELECT 7")).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::RateLimited, "{fault:?}");
    subject.close().await;
}

/// At the end of its time a statement is stopped at Trino, wherever it is by then, and its transaction is ended.
#[tokio::test]
async fn what_takes_too_long_is_stopped() {
    let mut has_run = false;
    for millis in [300, 1_700, 10_000] {
        if has_run && millis > 1_700 {
            // Only for a machine so busy that no statement had begun before.
            break;
        }
        let server = Trino::start().await;
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
        while server.running() + server.transactions() > 0 {
            let went = server.requests();
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "it goes on: {went:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let began = "POST SELECT id FROM endless".to_owned();
        has_run |= server.requests().contains(&began);
        subject.close().await;
    }
    assert!(has_run);
}

/// A catalog of 1,000 tables.
#[tokio::test]
async fn a_thousand_tables_take_a_moment() {
    let server = Trino::start().await;
    server.admin(&thousand_tables::trino("shop"));
    let subject = subject(&server, json!({})).await;
    let mut seen = server.requests().len();
    reads_a_thousand_tables(&subject, "shop", |catalog| {
        assert_eq!(catalog.cell(4, 5).as_str(), Some("array(varchar)"));
        assert_eq!(catalog.cell(0, 6).as_bool(), Some(false));
        let asked = server.requests().split_off(seen);
        seen += asked.len();
        assert!(asked.iter().any(|line| line.starts_with("POST SELECT")));
    })
    .await;
    subject.close().await;
}
