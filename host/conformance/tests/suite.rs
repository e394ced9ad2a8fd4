//! What the kit promises: connectors that keep the contract pass, and each way of breaking it is found, by its name.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use souk_conformance::{Outcome, Place, Profile, Report, Subject, options};
use souk_sandbox::Compiler;
use souk_tests::tls::TestCa;
use souk_tests::{MySql, PgBouncer, PgCluster, guests, seller_api};
use tempfile::TempDir;

fn bundled(name: &str) -> &'static [u8] {
    let mut bundle = souk_plugins::bundle().iter();
    bundle.find(|(found, _)| *found == name).expect(name).1
}

async fn loaded(wasm: &'static [u8], profile: Profile) -> Subject {
    // Compiled once for all tests, and for the next run.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let options = options(&cache, Compiler::InProcess);
    Subject::load(wasm, options, profile).await.unwrap()
}

async fn tested(wasm: &'static [u8], profile: Profile) -> Report {
    let subject = loaded(wasm, profile).await;
    let report = souk_conformance::run(&subject).await.unwrap();
    println!("{report}");
    subject.close().await;
    report
}

/// The same, but that no request is given up to see what comes of it.
async fn tested_without_cancels(wasm: &'static [u8], profile: Profile) -> Report {
    let subject = loaded(wasm, profile).await;
    let report = souk_conformance::run_without_cancels(&subject).await;
    let report = report.unwrap();
    println!("{report}");
    subject.close().await;
    report
}

fn profile(text: &str) -> Profile {
    Profile::parse(text, Path::new(".")).unwrap()
}

fn assert_conforms(report: &Report, without: &[&str]) {
    assert!(report.is_conforming(), "{report}");
    assert_eq!(report.checks(Outcome::Warned), [""; 0], "{report}");
    assert_eq!(report.checks(Outcome::Skipped), without, "{report}");
}

/// A database of PostgreSQL's, and the profile of a connection to it at this port, with this mode of TLS.
async fn postgres(cluster: &PgCluster, port: u16, tls: &str, further: &str) -> Profile {
    let reader = format!("reader_{port}");
    let database = cluster
        .database(
            &"CREATE TABLE stock (id INT PRIMARY KEY, sku TEXT NOT NULL, price NUMERIC(10,3), day DATE, at TIMESTAMPTZ, shown TIMESTAMP, opens TIME, weight FLOAT8, sold BOOLEAN, tags JSONB);
             INSERT INTO stock SELECT n, 'sku ' || chr(97 + n % 26) || n, CASE WHEN n % 5 > 0 THEN n * 1.005 END, DATE '2026-01-01' - n, CASE WHEN n % 3 > 0 THEN TIMESTAMPTZ '2026-01-01 00:00Z' + n * INTERVAL '1 hour' END, CASE WHEN n % 4 > 0 THEN TIMESTAMP '2026-01-01 00:00:00.000001' - n * INTERVAL '1 hour' END, TIME '05:17' + n * INTERVAL '1 minute', n / 8.0, n % 2 = 0, '[1]' FROM generate_series(1, 60) n;
             CREATE VIEW cheap AS SELECT * FROM stock WHERE price < 10;
             CREATE ROLE reader LOGIN PASSWORD 'only reads';
             GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;".replace("reader", &reader),
        )
        .await;
    profile(&format!(
        "[source]\naddress = '127.0.0.1:{port}'\ntls = '{tls}'\n[source.settings]\nusername = '{reader}'\npassword = 'only reads'\ndatabase = '{database}'\n{further}\n[table]\nname = 'stock'"
    ))
}

/// PostgreSQL, against a real server, inside TLS: nothing fails, nothing is left out but what nobody sees there.
#[tokio::test]
async fn postgres_conforms() {
    let cluster = PgCluster::shared().await;
    let profile = postgres(cluster, cluster.port, "require", "").await;
    let report = tested(bundled("postgres"), profile).await;
    assert_conforms(&report, &["wire.spoilt"]);
}

/// The same of a cluster that keeps passwords as md5, which is Redshift's way; without TLS, so that nothing is left out.
#[tokio::test]
async fn postgres_conforms_with_md5() {
    let directory = tempfile::tempdir().unwrap();
    let rules = directory.path().join("pg_hba.conf");
    std::fs::write(&rules, "host all all 127.0.0.1/32 md5\n").unwrap();
    // The server is another user's.
    for (path, mode) in [(directory.path(), 0o755), (&rules, 0o644)] {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    let rules = format!("hba_file={}", rules.display());
    let cluster = PgCluster::start(&["password_encryption=md5", &rules]).await;
    let profile = postgres(&cluster, cluster.port, "disable", "").await;
    let client = cluster.client("postgres").await;
    let kept = format!(
        "SELECT rolpassword FROM pg_authid WHERE rolname = 'reader_{}'",
        cluster.port
    );
    let kept: String = client.query_one(&kept, &[]).await.unwrap().get(0);
    assert!(kept.starts_with("md5"), "{kept}");
    let report = tested(bundled("postgres"), profile).await;
    assert_conforms(&report, &[]);
}

/// The same through a pooler that gives each transaction another backend. Where no run has outlived its cancels, all else has to conform without them.
#[tokio::test]
async fn postgres_conforms_behind_a_pooler() {
    let cluster = PgCluster::shared().await;
    // It looks up who its clients are.
    let own = format!("auth_user = {}", cluster.user);
    for _ in 0..POOLERS_MAX {
        let mut pooler = PgBouncer::start(cluster, &[], &[&own]).await;
        let profile = postgres(cluster, pooler.port, "require", "pooler = true").await;
        let report = tested(bundled("postgres"), profile).await;
        let Some(crash) = pooler.crash() else {
            return assert_conforms(&report, &["wire.spoilt"]);
        };
        assert!(crash.contains("bad client state"), "{crash}\n{report}");
        let failed = report.checks(Outcome::Failed);
        let others = failed.iter().find(|check| !check.starts_with("cancel."));
        assert_eq!(others, None, "{report}");
        println!("PgBouncer ended by itself: {crash}");
    }
    let mut pooler = PgBouncer::start(cluster, &[], &[&own]).await;
    let profile = postgres(cluster, pooler.port, "require", "pooler = true").await;
    let report = tested_without_cancels(bundled("postgres"), profile).await;
    assert_eq!(pooler.crash(), None, "{report}");
    assert_conforms(&report, &["cancel.session_goes_on", "wire.spoilt"]);
}

/// A defect of PgBouncer 1.18 (mended in 1.19.1) ends it when a cancel comes at the wrong moment: in half of the runs on a busy machine,
/// seldom on an idle one.
const POOLERS_MAX: usize = 3;

/// MySQL's connector, against a real MariaDB, inside TLS and without it, where bytes can be spoilt.
#[tokio::test]
async fn mysql_conforms() {
    let server = MySql::shared();
    let database = server.database(
        "CREATE TABLE stock (id INT PRIMARY KEY, sku VARCHAR(20) NOT NULL, price DECIMAL(10,3), day DATE, at DATETIME(6), weight DOUBLE, sold BIT(1), total BIGINT UNSIGNED);
         INSERT INTO stock SELECT seq, CONCAT('sku ', CHAR(97 + seq % 26), seq), IF(seq % 5 > 0, seq * 1.005, NULL), DATE '2026-01-01' - INTERVAL seq DAY,
             IF(seq % 3 > 0, TIMESTAMP '2026-01-01 00:00:00' + INTERVAL seq HOUR, NULL), seq / 8.0, seq % 2, 18446744073709551615 - seq FROM seq_1_to_60;
         CREATE VIEW cheap AS SELECT * FROM stock WHERE price < 10",
    );
    let rights = format!("SELECT ON {database}.*");
    server.user("reader", "only reads", &rights);
    // Hosts page by offset here.
    for (tls, left_out) in [
        ("require", &["paging.after_a_row", "wire.spoilt"][..]),
        ("disable", &["paging.after_a_row"][..]),
    ] {
        let profile = profile(&format!(
            "[source]\naddress = '127.0.0.1:{}'\ntls = '{tls}'\n[source.settings]\nusername = 'reader'\npassword = 'only reads'\ndatabase = '{database}'\n[table]\nname = 'stock'",
            server.port
        ));
        let report = tested(bundled("mysql"), profile).await;
        assert_conforms(&report, left_out);
    }
}

/// SQLite, on a real file.
#[tokio::test]
async fn sqlite_conforms() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("shop.db");
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch(
            "CREATE TABLE stock (id INTEGER PRIMARY KEY, sku TEXT NOT NULL, price REAL, day DATE, n INTEGER);
             WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 60)
             INSERT INTO stock SELECT n, 'sku ' || char(97 + n % 26) || n, CASE WHEN n % 5 > 0 THEN n / 8.0 END, date('2026-01-01', -n || ' days'), n * 7 % 13 FROM s;
             CREATE VIEW cheap AS SELECT * FROM stock WHERE price < 10;",
        )
        .unwrap();
    let profile = Profile {
        place: Some(Place::File(path)),
        ..Profile::default()
    };
    let report = tested(bundled("sqlite"), profile).await;
    // A file has no wire, and no secret.
    assert_conforms(&report, &["open.wrong_secret", "wire"]);
}

/// The seller API, against a real HTTP server, without TLS and with it.
#[tokio::test]
async fn seller_api_conforms() {
    let authority = TestCa::new("a seller's authority");
    let mut ca = tempfile::NamedTempFile::new().unwrap();
    ca.write_all(authority.pem().as_bytes()).unwrap();
    let leaf = authority.server(&["127.0.0.1"]);
    for api in [
        seller_api::SellerApi::start().await,
        seller_api::SellerApi::start_tls(&leaf).await,
    ] {
        let profile = profile(&format!(
            "[source]\nbase_url = '{}'\nca_file = '{}'\n[source.settings]\napi_key = '{}'\n[[call]]\nfunction = 'sum_goals'\nparameters = '{{\"team\": \"Ajax\"}}'\nanswer = '21'\n[[call]]\npath = '/exact'\n",
            api.base_url(),
            ca.path().display(),
            seller_api::API_KEY
        ));
        let report = tested(bundled("seller-api"), profile).await;
        assert!(report.is_conforming(), "{report}");
        assert_eq!(report.checks(Outcome::Failed), [""; 0]);
        for check in [
            "open.wrong_secret",
            "expected.call_1",
            "functions.unknown",
            "wire.byte_by_byte",
            "wire.cut_in_the_middle",
            "cancel.session_goes_on",
            "hostile.servers",
        ] {
            assert_eq!(
                report.finding(check).unwrap().outcome,
                Outcome::Passed,
                "{check}: {report}"
            );
        }
        // Within TLS nobody sees which bytes were others.
        let spoilt = report.finding("wire.spoilt").unwrap().outcome;
        let is_plain = api.base_url().starts_with("http:");
        assert_eq!(spoilt == Outcome::Passed, is_plain, "{report}");
    }
}

/// The connector of the documentation, with a server that the kit starts itself.
#[tokio::test]
async fn hello_conforms_to_a_scripted_server() {
    let profile = profile(
        r#"
        [source.settings]
        league = "north"
        [[answer]]
        path = "/scores"
        body = '[["Ada", 7], ["Bob", null]]'
        [[answer]]
        path = "/scores?player=Ada"
        body = '[["Ada", 7]]'
        [[query]]
        text = "/scores"
        rows = '[["Ada", 7], ["Bob", null]]'
        [[query]]
        text = "/scores"
        parameters = ["Ada"]
        rows = '[["Ada", 7]]'
        "#,
    );
    let report = tested(guests::HELLO, profile).await;
    assert!(report.is_conforming(), "{report}");
    for check in ["together.pipelining", "wire.spoilt"] {
        assert_eq!(
            report.finding(check).unwrap().outcome,
            Outcome::Passed,
            "{check}: {report}"
        );
    }
}

fn small_table(flaw: &str) -> Profile {
    let mut profile = profile(&format!("[source.settings]\nflaw = '{flaw}'"));
    // Any file will do: the guest never reads it.
    profile.place = Some(Place::File(
        concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into(),
    ));
    profile
}

/// A generic engine that reads the host's statements as they are meant.
#[tokio::test]
async fn a_generic_engine_conforms() {
    let report = tested(guests::SMALL_TABLE, small_table("none")).await;
    assert_eq!(report.checks(Outcome::Failed), [""; 0], "{report}");
    for check in [
        "reading.table",
        "paging.no_overlap",
        "order.descending",
        "filters.equal",
        "filters.range",
        "filters.prefix",
        "parameters.are_values",
        "limits.rows",
        "read_only.held",
        "errors.bad_statement",
        "together.sessions",
        "schema.filter",
    ] {
        assert_eq!(
            report.finding(check).unwrap().outcome,
            Outcome::Passed,
            "{check}: {report}"
        );
    }
}

/// Each flaw is found by the check that is for it, with what to do.
#[tokio::test]
async fn each_flaw_is_found_by_name() {
    for (flaw, check) in [
        ("ignores_order", "order.ascending"),
        ("overlapping_pages", "paging.no_overlap"),
        ("ignores_filter", "filters.equal"),
        ("cuts_short", "limits.rows"),
        ("bad_decimal", "reading.table"),
        ("null_where_none_is_said", "columns.nullable"),
        ("forgets_types", "reading.no_rows"),
        ("takes_writes", "read_only.held"),
        ("traps", "errors.bad_statement"),
        ("repeats_the_source", "errors.bad_statement"),
        ("answers_anything", "errors.bad_statement"),
        ("other_columns", "reading.table"),
    ] {
        let report = tested(guests::SMALL_TABLE, small_table(flaw)).await;
        let found = report.finding(check).unwrap();
        assert_eq!(found.outcome, Outcome::Failed, "{flaw}: {report}");
        assert!(
            !found.advice.is_empty() && !found.detail.is_empty(),
            "{flaw}: {report}"
        );
        assert!(!report.is_conforming());
    }
}

/// What a profile knows otherwise than the source answers is told once, as that.
#[tokio::test]
async fn a_profile_that_is_wrong_is_told_once() {
    let mut wrong = lines("all");
    wrong.queries[1].rows = Some(vec![vec!["\"walnut\"".to_owned()]]);
    let report = tested(guests::CARELESS_LINES, wrong).await;
    assert_eq!(
        report.checks(Outcome::Failed),
        ["expected.query_2"],
        "{report}"
    );
}

/// What a ping warns of is told, and breaks nothing.
#[tokio::test]
async fn a_pings_warning_is_told() {
    let report = tested(guests::SMALL_TABLE, small_table("warns")).await;
    assert!(report.is_conforming(), "{report}");
    let ping = report.finding("open.ping").unwrap();
    assert_eq!(ping.outcome, Outcome::Warned, "{report}");
    assert!(ping.detail.contains("the table is small"), "{report}");
}

fn lines(care: &str) -> Profile {
    profile(&format!(
        r#"
        [source.settings]
        care = "{care}"
        [[line]]
        receives = "PING"
        sends = ["0"]
        [[line]]
        receives = "GET fruits"
        sends = ["3", "apple", "fig", "pear"]
        [[line]]
        receives = "GET nuts"
        sends = ["1", "hazel"]
        [[query]]
        text = "GET fruits"
        rows = '[["apple"], ["fig"], ["pear"]]'
        [[query]]
        text = "GET nuts"
        rows = '[["hazel"]]'
        "#
    ))
}

/// A wire that delivers byte by byte, ends in the middle, spoils bytes or lies is borne by a connector that takes care, and finds out one that does not.
#[tokio::test]
async fn wires_find_out_who_takes_no_care() {
    let careful = tested(guests::CARELESS_LINES, lines("all")).await;
    assert_eq!(careful.checks(Outcome::Failed), [""; 0], "{careful}");
    let spoilt = careful.finding("wire.spoilt").unwrap();
    assert_eq!(spoilt.outcome, Outcome::Passed, "{careful}");
    let careless = tested(guests::CARELESS_LINES, lines("none")).await;
    for check in ["wire.byte_by_byte", "wire.cut_in_the_middle"] {
        assert_eq!(
            careless.finding(check).unwrap().outcome,
            Outcome::Failed,
            "{careless}"
        );
    }
    let trusting = tested(guests::CARELESS_LINES, lines("panics")).await;
    for check in ["wire.spoilt", "hostile.servers", "aftermath.no_traps"] {
        assert_eq!(
            trusting.finding(check).unwrap().outcome,
            Outcome::Failed,
            "{trusting}"
        );
    }
}

/// Who takes the answer to what was given up for that of the next request is found out by another question: of the same one it would be right.
#[tokio::test]
async fn a_late_answer_is_found_out() {
    let forgetful = tested(guests::LATE_LINES, lines("all")).await;
    for check in ["wire.silent", "cancel.session_goes_on"] {
        let found = forgetful.finding(check).unwrap();
        assert_eq!(found.outcome, Outcome::Failed, "{forgetful}");
        assert!(found.detail.contains("another answer"), "{forgetful}");
    }
}

/// Without a source the kit tries what can be tried, and says what it could not.
#[tokio::test]
async fn without_a_source_the_rest_is_tried() {
    let report = tested(bundled("postgres"), Profile::default()).await;
    assert_eq!(report.checks(Outcome::Failed), [""; 0], "{report}");
    assert_eq!(
        report.finding("hostile.servers").unwrap().outcome,
        Outcome::Passed
    );
    assert_eq!(report.finding("source").unwrap().outcome, Outcome::Skipped);
}

/// A report is a program's, too.
#[tokio::test]
async fn a_report_is_json() {
    let report = tested(guests::SMALL_TABLE, small_table("bad_decimal")).await;
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["connector"], "small-table");
    let failed = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|found| found["check"] == "reading.table")
        .unwrap();
    assert_eq!(failed["outcome"], "failed");
    assert!(
        failed["advice"].as_str().unwrap().contains("contract"),
        "{failed}"
    );
    assert_eq!(json["failed"], report.failed);
}
