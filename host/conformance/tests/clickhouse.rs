//! The component `clickhouse` against ClickHouse's engine, and over TLS against what the engine was recorded to answer. What is ignored here
//! runs under `tests/run --all-engines`.

mod common;

use std::path::Path;
use std::process::Command;

use serde_json::json;
use souk_conformance::{Place, Subject};
use souk_sandbox::{Blame, FaultKind, Limits, Request};
use souk_tests::clickhouse::{self, Recorded};
use souk_tests::torn::{Ends, TornFront};
use souk_tests::{ClickHouse, thousand_tables};

use common::{
    ask, believes_no_stranger, conforms, conforms_without_a_source, query, reads_a_thousand_tables,
};

fn place(server: &ClickHouse) -> Place {
    Place::Http {
        base_url: server.base_url(),
        ca_pem: server.ca_pem.clone(),
    }
}

/// A session of this user's, in this database.
async fn subject(server: &ClickHouse, user: &str, password: &str, database: &str) -> Subject {
    let settings = json!({"username": user, "password": password, "database": database});
    common::subject("clickhouse", Some(place(server)), &settings).await
}

/// Without a source the kit tries what can be tried: settings, servers that lie, wires that break.
#[tokio::test]
async fn without_a_source_it_conforms() {
    conforms_without_a_source("clickhouse", &json!({})).await;
}

/// Whom nobody proves is told no password and no statement.
#[tokio::test]
async fn a_server_proves_who_it_is() {
    let (server, stranger) = (Recorded::start_tls().await, Recorded::start_tls().await);
    let own = Place::Http {
        base_url: server.base_url(),
        ca_pem: server.ca_pem.clone(),
    };
    let settings = json!({"username": clickhouse::USER, "password": clickhouse::PASSWORD});
    let subject = common::subject("clickhouse", Some(own), &settings).await;
    believes_no_stranger(&subject, &server.base_url(), stranger.ca_pem.clone()).await;
    assert_eq!(server.statements(), [""; 0]);
    let ping = ask(&subject, Request::Ping(Limits::new(1, 1_000))).await;
    assert_eq!(ping.unwrap().cell(0, 1).as_bool(), Some(true));
    let rows = ask(&subject, query("SELECT n, t, o FROM recorded")).await;
    assert_eq!(rows.unwrap().cell(99, 1).as_str(), Some("xxxxx"));
    subject.close().await;
}

/// A wire within TLS that is torn in the middle of an answer is no shorter result, whichever way the answer says where it ends; one that does not say it
/// is not believed, torn or not.
#[tokio::test]
async fn a_torn_answer_is_no_shorter_one() {
    let server = Recorded::start().await;
    let front = TornFront::before(&server.base_url()).await;
    let place = Place::Http {
        base_url: front.base_url(),
        ca_pem: Some(front.ca_pem.clone()),
    };
    let settings = json!({"username": clickhouse::USER, "password": clickhouse::PASSWORD});
    let subject = common::subject("clickhouse", Some(place), &settings).await;
    let rows = || ask(&subject, query("SELECT n, t, o FROM recorded"));
    for ends in [Ends::Length, Ends::Chunks] {
        front.ends(ends);
        assert_eq!(rows().await.unwrap().rows, 100, "{ends:?}");
        let torn = front.torn();
        front.tear(1_000);
        let fault = rows().await.unwrap_err();
        assert_eq!(
            (fault.blame, fault.kind, fault.code.as_str()),
            (Blame::Source, FaultKind::Unreachable, "connection_lost"),
            "{ends:?}: {fault:?}"
        );
        assert!(front.torn() > torn, "{ends:?}");
        front.mend();
        assert_eq!(rows().await.unwrap().rows, 100, "{ends:?}");
    }
    front.ends(Ends::Connection);
    let fault = rows().await.unwrap_err();
    assert_eq!(
        (fault.blame, fault.kind, fault.code.as_str()),
        (
            Blame::Source,
            FaultKind::BadAnswer,
            "bad_answer_without_end"
        )
    );
    subject.close().await;
}

/// The front is judged first: by ClickHouse's own clients, of Python and of Node.
#[test]
#[ignore = "needs chdb, 600 MB: tests/run --all-engines"]
fn real_clickhouse_is_taken_for_one_by_its_own_clients() {
    let server = ClickHouse::shared();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/engines");
    for (variable, file) in [
        ("SOUK_CLICKHOUSE_PYTHON", "clickhouse.py"),
        ("SOUK_CLICKHOUSE_NODE", "clickhouse.mjs"),
    ] {
        let program = std::env::var_os(variable).expect("tests/run --all-engines");
        let judged = Command::new(program)
            .arg(tests.join(file))
            .args(["judge", &server.base_url()])
            .status();
        assert!(judged.unwrap().success(), "{file}");
    }
}

/// The whole kit, without TLS and with it. Nothing fails, and nothing else is left out but what hosts do not do here.
#[tokio::test]
#[ignore = "needs chdb, 600 MB: tests/run --all-engines"]
async fn real_clickhouse_conforms() {
    for server in [ClickHouse::start(), ClickHouse::start_tls().await] {
        let database = server.database(&[
            "CREATE TABLE stock (id Int32, sku String, price Nullable(Decimal(10, 3)), day Date, at Nullable(DateTime64(6, 'UTC')), weight Float64, sold Bool, total UInt64, tags Array(String)) ENGINE = MergeTree ORDER BY id",
            "INSERT INTO stock SELECT number, concat('sku ', char(97 + number % 26), toString(number)), if(number % 5 > 0, toDecimal64(number, 3) * 1.005, NULL), toDate('2026-01-01') - number, if(number % 3 > 0, toDateTime64('2026-01-01 00:00:00', 6, 'UTC') + INTERVAL number HOUR, NULL), number / 8, number % 2 = 0, 18446744073709551615 - number, ['a', toString(number)] FROM numbers(1, 60)",
            "CREATE VIEW cheap AS SELECT * FROM stock WHERE price < 10",
        ]);
        // Hosts page by offset here.
        let left_out = &["paging.after_a_row"];
        let table = format!("schema = '{database}'\nname = 'stock'\nkey = ['id']");
        let settings =
            json!({"username": server.user, "password": server.password, "database": database});
        let base_url = server.base_url();
        let source = (base_url.as_str(), server.ca_pem.as_deref());
        conforms("clickhouse", source, &table, &settings, left_out).await;
    }
}

/// Each profile lets its user read, and the server itself refuses to write; what is wrong is told as what it is.
#[tokio::test]
#[ignore = "needs chdb, 600 MB: tests/run --all-engines"]
async fn real_clickhouse_refuses_writes_and_strangers() {
    let server = ClickHouse::shared();
    let database = server.database(&["CREATE TABLE t (n Int32) ENGINE = MergeTree ORDER BY n"]);
    for user in ["souk", "bounded", "fixed"] {
        let subject = subject(server, user, server.password, &database).await;
        let ping = ask(&subject, Request::Ping(Limits::new(1, 1_000))).await;
        let ping = ping.unwrap_or_else(|fault| panic!("{user}: {fault:?}"));
        assert_eq!(ping.cell(0, 1).as_bool(), Some(true), "{user}");
        let count = ask(&subject, query("SELECT toInt64(count()) FROM t")).await;
        assert_eq!(count.unwrap().cell(0, 0).as_i64(), Some(0), "{user}");
        // Neither the host's lock nor the connector's sees what these do.
        for text in [
            "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'n Int8')",
            "SELECT 1 SETTINGS readonly = 0",
        ] {
            let fault = ask(&subject, query(text)).await.unwrap_err();
            let expected = match user {
                // It may read elsewhere, and not write: that is what 2 means.
                "bounded" if text.contains("url") => continue,
                _ => (FaultKind::Permission, "read_only"),
            };
            assert_eq!(
                (fault.kind, fault.code.as_str()),
                expected,
                "{user}: {text}"
            );
        }
        subject.close().await;
    }
    for (user, password, database, expected) in [
        (
            "souk",
            "wrong",
            database.as_str(),
            (FaultKind::Authentication, "password_rejected"),
        ),
        (
            "nobody",
            server.password,
            &database,
            (FaultKind::Authentication, "password_rejected"),
        ),
        (
            "souk",
            server.password,
            "nowhere",
            (FaultKind::Configuration, "unknown_database"),
        ),
    ] {
        let subject = subject(server, user, password, database).await;
        let fault = ask(&subject, query("SELECT 1")).await.unwrap_err();
        assert_eq!((fault.kind, fault.code.as_str()), expected, "{fault:?}");
        subject.close().await;
    }
    let subject = subject(server, "souk", server.password, &database).await;
    for (text, kind, code) in [
        ("SELECT nothing FROM t", FaultKind::SourceError, "47"),
        ("SELECT * FROM nothing", FaultKind::NotFound, "60"),
        ("SELECT FROM WHERE", FaultKind::SourceError, "62"),
        (
            "SELECT sum(throwIf(number = 90000)) FROM numbers(100000)",
            FaultKind::SourceError,
            "395",
        ),
        (
            "SELECT number FROM numbers(1001)",
            FaultKind::LimitExceeded,
            "396",
        ),
        (
            "SELECT 1 FORMAT CSV",
            FaultKind::SourceError,
            "other_format",
        ),
    ] {
        let fault = ask(&subject, query(text)).await.unwrap_err();
        let told = fault.source_code.as_deref().unwrap_or(&fault.code);
        assert_eq!((fault.kind, told), (kind, code), "{text}: {fault:?}");
    }
    subject.close().await;
}

/// A catalog of 1,000 tables.
#[tokio::test]
#[ignore = "needs chdb, 600 MB: tests/run --all-engines"]
async fn real_clickhouse_tells_a_thousand_tables() {
    let server = ClickHouse::shared();
    let database = server.database(&[]);
    for statement in thousand_tables::clickhouse() {
        server.admin(&database, &statement);
    }
    let subject = subject(server, "souk", server.password, &database).await;
    reads_a_thousand_tables(&subject, &database, |catalog| {
        assert_eq!(catalog.cell(1, 6).as_bool(), Some(true));
    })
    .await;
    subject.close().await;
}
