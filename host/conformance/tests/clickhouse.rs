//! The component `clickhouse` against ClickHouse's engine. What is ignored here runs under `tests/run --all-engines`.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use souk_conformance::{Outcome, Place, Profile, Subject, options};
use souk_sandbox::{Compiler, Fault, FaultKind, Limits, Output, Query, Request, SchemaFilter};
use souk_tests::ClickHouse;

async fn loaded(place: Option<Place>, settings: &[(&str, &str)]) -> Subject {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let mut bundle = souk_plugins::bundle().iter();
    let found = bundle.find(|(name, _)| *name == "clickhouse");
    let (_, wasm) = found.expect("clickhouse");
    let mut profile = Profile {
        place,
        ..Profile::default()
    };
    for (name, value) in settings {
        let (name, value) = ((*name).to_owned(), (*value).into());
        profile.settings.insert(name, value);
    }
    let options = options(&cache, Compiler::InProcess);
    Subject::load(*wasm, options, profile).await.unwrap()
}

fn place(server: &ClickHouse) -> Place {
    Place::Http {
        base_url: server.base_url(),
        ca_pem: None,
    }
}

/// A session of this user's, in this database.
async fn subject(server: &ClickHouse, user: &str, password: &str, database: &str) -> Subject {
    let settings = [
        ("username", user),
        ("password", password),
        ("database", database),
    ];
    loaded(Some(place(server)), &settings).await
}

async fn ask(subject: &Subject, request: Request) -> Result<Output, Fault> {
    let source = subject.source(subject.place.as_ref().unwrap());
    subject.ask(&source, request).await
}

fn query(text: &str) -> Request {
    Request::Query(Query {
        text: text.into(),
        parameters: Vec::new(),
        limits: Limits::new(1_000, 1 << 20),
    })
}

/// Without a source the kit tries what can be tried: settings, servers that lie, wires that break.
#[tokio::test]
async fn without_a_source_it_conforms() {
    let subject = loaded(None, &[]).await;
    let report = souk_conformance::run(&subject).await.unwrap();
    subject.close().await;
    assert_eq!(report.checks(Outcome::Failed), [""; 0], "{report}");
    let hostile = report.finding("hostile.servers").unwrap();
    assert_eq!(hostile.outcome, Outcome::Passed, "{report}");
}

/// The front is judged first: by ClickHouse's own client.
#[test]
#[ignore = "needs chdb, 600 MB: tests/run --all-engines"]
fn real_clickhouse_is_taken_for_one_by_its_own_client() {
    let server = ClickHouse::shared();
    let judged = Command::new(std::env::var_os("SOUK_CLICKHOUSE_PYTHON").unwrap())
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/engines/clickhouse.py"
        ))
        .args(["judge", &server.base_url()])
        .status();
    assert!(judged.unwrap().success());
}

/// The whole kit: nothing fails, nothing is left out but what hosts do not do here.
#[tokio::test]
#[ignore = "needs chdb, 600 MB: tests/run --all-engines"]
async fn real_clickhouse_conforms() {
    let server = ClickHouse::start();
    let database = server.database(&[
        "CREATE TABLE stock (id Int32, sku String, price Nullable(Decimal(10, 3)), day Date, at Nullable(DateTime64(6, 'UTC')), weight Float64, sold Bool, total UInt64, tags Array(String)) ENGINE = MergeTree ORDER BY id",
        "INSERT INTO stock SELECT number, concat('sku ', char(97 + number % 26), toString(number)), if(number % 5 > 0, toDecimal64(number, 3) * 1.005, NULL), toDate('2026-01-01') - number, if(number % 3 > 0, toDateTime64('2026-01-01 00:00:00', 6, 'UTC') + INTERVAL number HOUR, NULL), number / 8, number % 2 = 0, 18446744073709551615 - number, ['a', toString(number)] FROM numbers(1, 60)",
        "CREATE VIEW cheap AS SELECT * FROM stock WHERE price < 10",
    ]);
    let profile = Profile::parse(
        &format!(
            "[source]\nbase_url = '{}'\n[source.settings]\nusername = '{}'\npassword = \"{}\"\ndatabase = '{database}'\n[table]\nschema = '{database}'\nname = 'stock'\nkey = ['id']",
            server.base_url(),
            server.user,
            server.password
        ),
        Path::new("."),
    )
    .unwrap();
    let mut bundle = souk_plugins::bundle().iter();
    let (_, wasm) = bundle.find(|(name, _)| *name == "clickhouse").unwrap();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let subject = Subject::load(*wasm, options(&cache, Compiler::InProcess), profile)
        .await
        .unwrap();
    let report = souk_conformance::run(&subject).await.unwrap();
    subject.close().await;
    println!("{report}");
    assert!(report.is_conforming(), "{report}");
    assert_eq!(report.checks(Outcome::Warned), [""; 0], "{report}");
    // Hosts page by offset here.
    assert_eq!(
        report.checks(Outcome::Skipped),
        ["paging.after_a_row"],
        "{report}"
    );
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
    for number in 0..1_000 {
        let columns = "a Int32, b Nullable(String), c Decimal(10, 2), d DateTime, e Array(UInt8)";
        server.admin(
            &database,
            &format!("CREATE TABLE t{number} ({columns}) ENGINE = Memory"),
        );
    }
    let subject = subject(server, "souk", server.password, &database).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let request = Request::Schema(SchemaFilter {
            schemas: vec![database.clone()],
            tables: Vec::new(),
            include_fields: true,
            limits: Limits::new(100_000, 16 << 20),
        });
        let begun = Instant::now();
        let catalog = subject.ask(&source, request).await.unwrap();
        best = best.min(begun.elapsed());
        assert_eq!(catalog.rows, 5_000);
        assert_eq!(catalog.cell(1, 6).as_bool(), Some(true));
    }
    println!("5,000 fields in {best:?}");
    assert!(best < Duration::from_secs(1), "{best:?}");
    subject.close().await;
}
