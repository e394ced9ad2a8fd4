//! The component `bigquery` against a server that Google's own client takes for a BigQuery. That it does is tried under
//! `tests/run --all-engines`.

mod common;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use souk_conformance::{Place, Subject};
use souk_sandbox::{Blame, FaultKind, Limits, Query, Request};
use souk_tests::{BigQuery, bigquery, snowflake, thousand_tables};

use common::{
    ask, believes_no_stranger, conforms, conforms_without_a_source, query, reads_a_thousand_tables,
};

/// Of every type that a table has here, with NULLs where they may be.
const STOCK: &str = "ATTACH ':memory:' AS shop;
    CREATE TABLE shop.stock (id INT64 NOT NULL, sku STRING TEXT, price NUMERIC, day DATE, at TIMESTAMP, local DATETIME, weight FLOAT64, sold BOOL, tags STRINGS TEXT);
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 60)
    INSERT INTO shop.stock SELECT n, 'sku ' || char(97 + n % 26) || n, CASE WHEN n % 5 > 0 THEN n * 1.25 END, date('2026-01-01', '-' || n || ' days'),
        CASE WHEN n % 3 > 0 THEN 1767225600000000 + n * 3600000001 END, strftime('%Y-%m-%dT%H:%M:%S', '2026-01-01', '+' || n || ' minutes'),
        n / 8.0, n % 2 = 0, json_array('a', 'x' || n) FROM s;
    CREATE VIEW shop.cheap AS SELECT * FROM stock WHERE price < 10;";

const TABLE: &str = "schema = 'shop'\nname = 'stock'\nkey = ['id']";

/// Sessions with these settings beside the key file.
async fn subject(server: &BigQuery, more: Json) -> Subject {
    common::subject("bigquery", Some(place(server)), &server.credentials(more)).await
}

fn place(server: &BigQuery) -> Place {
    Place::Http {
        base_url: server.base_url(),
        ca_pem: server.ca_pem.clone(),
    }
}

/// Without a source the kit tries what can be tried: settings, servers that lie, wires that break.
#[tokio::test]
async fn without_a_source_it_conforms() {
    let key_file = serde_json::from_str(souk_tests::bigquery::KEY_FILE).unwrap();
    conforms_without_a_source("bigquery", &key_file).await;
}

/// The whole kit, without TLS and with it. Nothing fails, and nothing else is left out but what hosts do not do here.
#[tokio::test]
async fn it_conforms() {
    for server in [BigQuery::start().await, BigQuery::start_tls().await] {
        server.admin(STOCK);
        // Hosts page by offset here.
        let left_out = &["paging.after_a_row"];
        let settings = server.credentials(json!({"database": "shop"}));
        let base_url = server.base_url();
        let source = (base_url.as_str(), server.ca_pem.as_deref());
        conforms("bigquery", source, TABLE, &settings, left_out).await;
    }
}

/// Google's client reads the server of these tests as it reads BigQuery: what is proven against it is worth something.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs google-cloud-bigquery, 90 MB: tests/run --all-engines"]
async fn real_bigquery_client_takes_the_server_for_one() {
    let server = BigQuery::start().await;
    server.admin(STOCK);
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let python = std::env::var_os("SOUK_BIGQUERY_PYTHON").expect("tests/run --all-engines");
    let mut judge = Command::new(python);
    judge
        .arg(tests.join("engines/bigquery.py"))
        .args(["judge", &server.base_url()])
        .arg(tests.join("src/bigquery/service_account.json"));
    let judged = tokio::task::spawn_blocking(move || judge.status()).await;
    assert!(judged.unwrap().unwrap().success());
}

/// Statements run in UTC, whatever zone the project has for those that ask for none: what day a moment is on is the same for all sellers.
#[tokio::test]
async fn the_zone_of_the_project_does_not_count() {
    assert_ne!(bigquery::ZONE, "UTC");
    let server = BigQuery::start().await;
    let subject = subject(&server, json!({})).await;
    let output = ask(&subject, query("SELECT @@time_zone AS zone"))
        .await
        .unwrap();
    assert_eq!(output.cell(0, 0).as_str(), Some("UTC"));
    subject.close().await;
}

/// What is wrong is told as what it is, and nothing is carried out that writes, however it begins.
#[tokio::test]
async fn refusals_are_told_as_what_they_are() {
    let server = BigQuery::start().await;
    server.admin(STOCK);
    let stock = async |more, text: &str| {
        let subject = subject(&server, more).await;
        let answer = ask(&subject, query(text)).await;
        subject.close().await;
        answer
    };
    for (more, text, kind, code) in [
        (
            json!({}),
            "DELETE FROM shop.stock WHERE TRUE",
            FaultKind::Permission,
            "read_only",
        ),
        (
            json!({}),
            "SELECT 1; DELETE FROM shop.stock WHERE TRUE",
            FaultKind::Permission,
            "read_only",
        ),
        (
            json!({}),
            "SELECT absent FROM shop.stock",
            FaultKind::SourceError,
            "unknown_column",
        ),
        (
            json!({}),
            "SELECT * FROM shop.absent",
            FaultKind::NotFound,
            "unknown_table",
        ),
        (
            json!({}),
            "SELECT * FROM nowhere.absent",
            FaultKind::NotFound,
            "unknown_dataset",
        ),
        (
            json!({}),
            "SELECT FROM WHERE",
            FaultKind::SourceError,
            "syntax_error",
        ),
        (
            json!({"maximum_bytes_billed": 1}),
            "SELECT id FROM shop.stock",
            FaultKind::LimitExceeded,
            "bytes_billed_limit",
        ),
        (
            json!({"project_id": "another"}),
            "SELECT 1",
            FaultKind::Configuration,
            "unknown_project",
        ),
        (
            json!({"client_email": "stranger@souk-test.iam.gserviceaccount.com"}),
            "SELECT 1",
            FaultKind::Authentication,
            "credentials_refused",
        ),
        // A key that is one, and somebody else's.
        (
            json!({"private_key": snowflake::PRIVATE_KEY}),
            "SELECT 1",
            FaultKind::Authentication,
            "credentials_refused",
        ),
        (
            json!({"location": "US"}),
            "SELECT id FROM shop.stock",
            FaultKind::NotFound,
            "unknown_dataset",
        ),
    ] {
        let fault = stock(more, text).await.unwrap_err();
        assert_eq!(
            (fault.blame, fault.kind, fault.code.as_str()),
            (Blame::Source, kind, code),
            "{text}: {fault:?}"
        );
    }
    let left = stock(json!({}), "SELECT COUNT(*) FROM shop.stock")
        .await
        .unwrap();
    assert_eq!(left.cell(0, 0).as_i64(), Some(60));
    let subject = subject(&server, json!({"database": "nowhere"})).await;
    let ping = ask(&subject, Request::Ping(Limits::new(1, 1_000))).await;
    assert_eq!(ping.unwrap_err().code, "unknown_dataset");
    subject.close().await;
}

/// Whom nobody proves is shown no token, and told no statement.
#[tokio::test]
async fn a_server_proves_who_it_is() {
    let (server, stranger) = (BigQuery::start_tls().await, BigQuery::start_tls().await);
    let subject = subject(&server, json!({})).await;
    believes_no_stranger(&subject, &server.base_url(), stranger.ca_pem.clone()).await;
    assert_eq!(server.requests(), [""; 0]);
    let ping = ask(&subject, Request::Ping(Limits::new(1, 1_000))).await;
    assert_eq!(ping.unwrap().rows, 1);
    assert_eq!(ask(&subject, query("SELECT 1")).await.unwrap().rows, 1);
    subject.close().await;
}

/// A statement goes dry the first time only, and a result of several pages takes a request for each. (What takes a worker too long, as on a
/// busy machine, the host begins anew elsewhere: then it is asked once more.)
#[tokio::test]
async fn it_asks_no_more_than_it_must() {
    let server = BigQuery::start().await;
    let subject = subject(&server, json!({})).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    let again = ["POST queries", "GET queries/…", "GET queries/…"];
    let mut asked = Vec::new();
    for _ in 0..10 {
        let seen = server.requests().len();
        let request = Request::Query(Query {
            text: "SELECT n FROM UNNEST(GENERATE_ARRAY(1, 10000)) AS n ORDER BY n".into(),
            parameters: Vec::new(),
            limits: Limits::new(10_000, 1 << 20),
        });
        let output = subject.ask(&source, request).await.unwrap();
        assert_eq!(output.rows, 10_000);
        assert_eq!(output.cell(9_999, 0).as_i64(), Some(10_000));
        asked = server.requests().split_off(seen);
        if seen > 0 && asked == again {
            break;
        }
    }
    let first = ["POST jobs", "POST jobs", "POST queries"];
    assert_eq!(server.requests()[..3], first);
    assert_eq!(asked, again);
    subject.close().await;
}

/// A job that takes longer than the first answer waits is waited for.
#[tokio::test]
async fn a_slow_statement_is_waited_for() {
    let server = BigQuery::start().await;
    let subject = subject(&server, json!({})).await;
    let output = ask(&subject, query("SELECT id FROM slow")).await;
    assert_eq!(output.unwrap().cell(0, 0).as_i64(), Some(1));
    assert!(server.requests().contains(&"GET queries/…".to_owned()));
    subject.close().await;
}

/// At the end of its time a job is cancelled at BigQuery, whether or not its name was known by then.
#[tokio::test]
async fn what_takes_too_long_is_cancelled() {
    let mut patience = [300, 2_000].into_iter();
    let mut next = patience.next();
    while let Some(millis) = next {
        let server = BigQuery::start().await;
        let subject = subject(&server, json!({})).await;
        let source = subject.source(subject.place.as_ref().unwrap());
        let endless = query("SELECT id FROM endless");
        let within = Duration::from_millis(millis);
        let fault = subject
            .ask_within(&source, endless, within)
            .await
            .unwrap_err();
        assert_eq!(fault.kind, FaultKind::Timeout, "{fault:?}");
        let since = Instant::now();
        let is_cancelled = |requests: &[String]| {
            let last = requests.last();
            last.is_some_and(|last| last == "POST jobs/…/cancel")
        };
        let requests = loop {
            let requests = server.requests();
            let is_over = is_cancelled(&requests) || requests.is_empty();
            if is_over || since.elapsed() > Duration::from_secs(20) {
                break requests;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        if !is_cancelled(&requests) && millis < 10_000 {
            // On a busy machine its time may be over before it is asked for, or before BigQuery has said that it has it.
            next = Some(2 * millis);
        } else {
            assert!(is_cancelled(&requests), "{requests:?}");
            assert_eq!(server.running(), 0);
            next = patience.next();
        }
        subject.close().await;
    }
}

/// A statement that takes longer than the data connection allows is stopped by BigQuery itself.
#[tokio::test]
async fn bigquery_holds_statements_to_their_time() {
    let server = BigQuery::start().await;
    let subject = subject(&server, json!({"statement_timeout_ms": 700})).await;
    let fault = ask(&subject, query("SELECT id FROM endless")).await;
    let fault = fault.unwrap_err();
    assert_eq!(
        (fault.kind, fault.code.as_str()),
        (FaultKind::Timeout, "statement_timeout"),
        "{fault:?}"
    );
    assert_eq!(server.running(), 0);
    let requests = server.requests();
    assert!(
        !requests.iter().any(|asked| asked.ends_with("cancel")),
        "{requests:?}"
    );
    subject.close().await;
}

/// A catalog of 1,000 tables.
#[tokio::test]
async fn a_thousand_tables_take_a_moment() {
    let server = BigQuery::start().await;
    server.admin(&thousand_tables::bigquery("shop"));
    let subject = subject(&server, json!({})).await;
    let (mut fewest, mut seen) = (usize::MAX, server.requests().len());
    reads_a_thousand_tables(&subject, "shop", |catalog| {
        assert_eq!(catalog.cell(4, 5).as_str(), Some("ARRAY<STRING>"));
        assert_eq!(catalog.cell(0, 6).as_bool(), Some(false));
        let asked = server.requests().len();
        fewest = fewest.min(asked - seen);
        seen = asked;
    })
    .await;
    // The datasets, and two pages of one statement.
    assert_eq!(fewest, 3);
    subject.close().await;
}
