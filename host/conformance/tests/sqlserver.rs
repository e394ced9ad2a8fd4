//! The component `sqlserver` against a server that clients which are not ours take for a SQL Server. That they do is tried under `tests/run --all-engines`.

mod common;
#[path = "sqlserver/lies.rs"]
mod lies;
#[path = "sqlserver/stopping.rs"]
mod stopping;

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use souk_conformance::{Outcome, Place, Profile, Subject, options};
use souk_outbound::TlsMode;
use souk_sandbox::{
    Compiler, Fault, FaultKind, Limits, Output, Query, Request, SchemaFilter, Value,
};
use souk_tests::sqlserver::{self, Fate};
use souk_tests::{SqlServer, thousand_tables};

/// Of every type that a table has here, with NULLs where they may be.
const STOCK: &str = r#"
    CREATE TABLE dbo.stock (id int NOT NULL PRIMARY KEY, sku "nvarchar(40)", price "decimal(10, 3)", day date, at "datetimeoffset(6)", local "datetime2(6)", weight float, sold bit, note "varchar(max)");
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 60)
    INSERT INTO dbo.stock SELECT n, 'sku ' || char(97 + n % 26) || n, CASE WHEN n % 5 > 0 THEN n * 1.25 END, date('2026-01-01', '-' || n || ' days'),
        CASE WHEN n % 3 > 0 THEN strftime('%Y-%m-%dT%H:%M:%S.0000010', '2026-01-01', '+' || n || ' hours') END,
        strftime('%Y-%m-%dT%H:%M:%S.0000000', '2026-01-01', '+' || n || ' minutes'),
        n / 8.0, n % 2 = 0, CASE WHEN n % 7 > 0 THEN 'note ' || n END FROM s;
    CREATE VIEW dbo.cheap AS SELECT * FROM stock WHERE price < 10;"#;

async fn loaded(profile: Profile) -> Subject {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let mut bundle = souk_plugins::bundle().iter();
    let found = bundle.find(|(name, _)| *name == "sqlserver");
    let (_, wasm) = found.expect("sqlserver");
    let mut options = options(&cache, Compiler::InProcess);
    if cfg!(debug_assertions) {
        // An unoptimised host takes its time with what a call returns, byte by byte, and all of it is the call's.
        options.limits.call_budget *= 4;
    }
    Subject::load(*wasm, options, profile).await.unwrap()
}

fn settings(more: Json) -> Json {
    let mut settings = json!({"host": "127.0.0.1", "username": sqlserver::USER, "password": sqlserver::PASSWORD, "database": sqlserver::DATABASE, "ssl_mode": "verify-full"});
    for (name, value) in more.as_object().into_iter().flatten() {
        settings[name] = value.clone();
    }
    settings
}

fn place(server: &SqlServer, ca_pem: Option<&str>, tls: TlsMode) -> Place {
    reached_at(server.address.port(), ca_pem, tls)
}

fn reached_at(port: u16, ca_pem: Option<&str>, tls: TlsMode) -> Place {
    Place::Tcp {
        host: "127.0.0.1".to_owned(),
        port,
        tls,
        ca_pem: ca_pem.map(str::to_owned),
    }
}

async fn subject(server: &SqlServer, more: Json) -> Subject {
    loaded(Profile {
        place: Some(place(server, Some(&server.ca_pem), TlsMode::VerifyFull)),
        settings: settings(more).as_object().expect("settings").clone(),
        ..Profile::default()
    })
    .await
}

async fn ask(subject: &Subject, request: Request) -> Result<Output, Fault> {
    let source = subject.source(subject.place.as_ref().unwrap());
    subject.ask(&source, request).await
}

fn query(text: &str) -> Request {
    with(text, Vec::new())
}

fn with(text: &str, parameters: Vec<Value>) -> Request {
    Request::Query(Query {
        text: text.into(),
        parameters,
        limits: Limits::new(1_000, 1 << 20),
    })
}

fn ping() -> Request {
    Request::Ping(Limits::new(1, 1_000))
}

/// Without a source the kit tries what can be tried: settings, servers that lie, wires that break.
#[tokio::test]
async fn without_a_source_it_conforms() {
    let subject = loaded(Profile {
        settings: settings(json!({})).as_object().expect("settings").clone(),
        ..Profile::default()
    })
    .await;
    let report = souk_conformance::run(&subject).await.unwrap();
    subject.close().await;
    assert_eq!(report.checks(Outcome::Failed), [""; 0], "{report}");
    let hostile = report.finding("hostile.servers").unwrap();
    assert_eq!(hostile.outcome, Outcome::Passed, "{report}");
}

/// The whole kit, over both versions of the protocol, wrong bytes within TLS included. Nothing fails, and nothing is left out but what hosts do not do here.
#[tokio::test]
async fn it_conforms() {
    for version in ["7.4", "8.0"] {
        let server = Arc::new(SqlServer::start().await);
        server.admin(STOCK);
        let mut ca = tempfile::NamedTempFile::new().unwrap();
        ca.write_all(server.ca_pem.as_bytes()).unwrap();
        let mut profile = format!(
            "[source]\naddress = '{}'\ntls = 'verify-full'\nca_file = '{}'\n[table]\nschema = 'dbo'\nname = 'stock'\nkey = ['id']\n[source.settings]\n",
            server.address,
            ca.path().display()
        );
        let settings = settings(json!({"tds_version": version}));
        // The kit's lying servers have no TLS, and are spoken to before it by the older version only: the newer one is told where it is by the kit.
        let own = |name: &str| version == "7.4" || name != "ssl_mode";
        let settings = settings.as_object().expect("settings").iter();
        for (name, value) in settings.filter(|(name, _)| own(name)) {
            profile.push_str(&format!("{name} = {value}\n"));
        }
        let subject = loaded(Profile::parse(&profile, Path::new(".")).unwrap()).await;
        let subject = subject.with_doors(lies::doors(&server));
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
        let kept = |(_, fate): &&(String, Fate)| matches!(fate, Fate::Kept | Fate::Open);
        assert_eq!(server.seen().writes.iter().filter(kept).count(), 0);
    }
}

/// FreeTDS and tedious read the server of these tests as they read SQL Server: what is proven against it is worth something.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pymssql (FreeTDS) and tedious, 20 MB: tests/run --all-engines"]
async fn real_sqlserver_clients_take_the_server_for_one() {
    let server = SqlServer::start().await;
    server.admin(STOCK);
    let mut ca = tempfile::NamedTempFile::new().unwrap();
    ca.write_all(server.ca_pem.as_bytes()).unwrap();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/engines");
    for (variable, file) in [
        ("SOUK_SQLSERVER_PYTHON", "sqlserver.py"),
        ("SOUK_SQLSERVER_NODE", "sqlserver.mjs"),
    ] {
        let program = std::env::var_os(variable).expect("tests/run --all-engines");
        let mut judge = Command::new(program);
        judge
            .arg(tests.join(file))
            .args(["judge", &server.address.port().to_string()])
            .arg(ca.path())
            .args([
                sqlserver::USER,
                sqlserver::WRITER,
                sqlserver::PASSWORD,
                sqlserver::DATABASE,
            ]);
        let judged = tokio::task::spawn_blocking(move || judge.status()).await;
        assert!(judged.unwrap().unwrap().success(), "{file}");
    }
    // They end what they begin.
    assert_eq!(server.seen().transactions, 0);
}

/// A request may be as long as it likes: each of its packets is a record of its own within TLS, without which SQL Server ends the connection, as this one does.
#[tokio::test]
async fn a_long_request_is_answered() {
    let server = SqlServer::start().await;
    for version in ["7.4", "8.0"] {
        let subject = subject(&server, json!({"tds_version": version})).await;
        for letters in [3_000, 8_000, 300_000] {
            let bound = with("SELECT @P1 AS v", vec![Value::Text("x".repeat(letters))]);
            let output = ask(&subject, bound).await.unwrap();
            let answer = output.cell(0, 0).as_str().map(str::len);
            assert_eq!(answer, Some(letters), "{version}");
            let written = format!("SELECT {}7 AS v", " ".repeat(letters));
            let output = ask(&subject, query(&written)).await.unwrap();
            assert_eq!(output.cell(0, 0).as_i64(), Some(7), "{version}");
        }
        subject.close().await;
    }
}

/// What is wrong is told as what it is, and by whose fault.
#[tokio::test]
async fn refusals_are_told_as_what_they_are() {
    use FaultKind::{
        Authentication, Configuration, InvalidRequest, NotFound, Permission, SourceError, Timeout,
        Unsupported,
    };
    let server = SqlServer::start().await;
    server.admin(STOCK);
    for (more, text, values, kind, code) in [
        (
            json!({}),
            "DELETE FROM stock",
            vec![],
            Permission,
            "read_only",
        ),
        (
            json!({}),
            "SELECT $1DELETE FROM stock",
            vec![],
            Permission,
            "read_only",
        ),
        (
            json!({}),
            "SELECT id INTO copy FROM stock",
            vec![],
            Permission,
            "read_only",
        ),
        (
            json!({}),
            "SELECT absent FROM stock",
            vec![],
            SourceError,
            "unknown_column",
        ),
        (
            json!({}),
            "SELECT * FROM dbo.absent",
            vec![],
            NotFound,
            "unknown_table",
        ),
        (
            json!({}),
            "SELECT absent(id) FROM stock",
            vec![],
            NotFound,
            "unknown_function",
        ),
        (
            json!({}),
            "SELECT FROM WHERE",
            vec![],
            SourceError,
            "syntax_error",
        ),
        (
            json!({}),
            "SELECT CAST('x' AS int) AS v",
            vec![],
            SourceError,
            "invalid_value",
        ),
        (
            json!({}),
            "SELECT CAST(@P1 AS int) AS v",
            vec![Value::Text("x".into())],
            InvalidRequest,
            "invalid_value",
        ),
        (
            json!({}),
            "SELECT 1 / 0 AS v",
            vec![],
            SourceError,
            "invalid_value",
        ),
        (
            json!({}),
            "SELECT CAST(0x58 AS hierarchyid) AS v",
            vec![],
            Unsupported,
            "unsupported_type",
        ),
        (
            json!({"statement_timeout_ms": 50}),
            "SELECT id FROM endless",
            vec![],
            Timeout,
            "statement_timeout",
        ),
        (
            json!({"password": "wrong"}),
            "SELECT 1",
            vec![],
            Authentication,
            "password_rejected",
        ),
        (
            json!({"username": "nobody"}),
            "SELECT 1",
            vec![],
            Authentication,
            "password_rejected",
        ),
        (
            json!({"database": "nowhere"}),
            "SELECT 1",
            vec![],
            Configuration,
            "unknown_database",
        ),
        (
            json!({"database": "nowhere", "tds_version": "8.0"}),
            "SELECT 1",
            vec![],
            Configuration,
            "unknown_database",
        ),
    ] {
        let subject = subject(&server, more).await;
        let fault = ask(&subject, with(text, values)).await.unwrap_err();
        assert_eq!(
            (fault.kind, fault.code.as_str()),
            (kind, code),
            "{text}: {fault:?}"
        );
        subject.close().await;
    }
    let seen = server.seen();
    assert_eq!((seen.writes.len(), seen.transactions), (0, 0), "{seen:?}");
}

/// Who may write is found out by the server's word, and who may not by a write besides; so is a database that takes none.
#[tokio::test]
async fn a_login_that_may_write_is_found_out() {
    for (server, user, reads_only, tried) in [
        (
            SqlServer::start().await,
            sqlserver::USER,
            true,
            &[Fate::Refused][..],
        ),
        (SqlServer::start().await, sqlserver::WRITER, false, &[]),
        (SqlServer::read_only().await, sqlserver::WRITER, true, &[]),
    ] {
        server.admin(STOCK);
        let subject = subject(&server, json!({"username": user})).await;
        let answer = ask(&subject, ping()).await.unwrap();
        assert_eq!(answer.cell(0, 0).as_str(), Some(sqlserver::VERSION));
        assert_eq!(answer.cell(0, 1).as_bool(), Some(reads_only), "{user}");
        let left = ask(&subject, query("SELECT COUNT(*) AS n FROM stock")).await;
        assert_eq!(left.unwrap().cell(0, 0).as_i64(), Some(60));
        subject.close().await;
        let seen = server.seen();
        let fates: Vec<Fate> = seen.writes.iter().map(|(_, fate)| *fate).collect();
        assert_eq!(fates, tried, "{seen:?}");
        assert_eq!(seen.transactions, 0);
    }
}

/// Whom nobody proves is told no password, nor is a server without TLS.
#[tokio::test]
async fn a_server_proves_who_it_is() {
    let (server, stranger) = (SqlServer::start().await, SqlServer::start().await);
    for version in ["7.4", "8.0"] {
        let subject = subject(&server, json!({"tds_version": version})).await;
        for ca_pem in [None, Some(stranger.ca_pem.as_str())] {
            let source = subject.source(&place(&server, ca_pem, TlsMode::VerifyFull));
            let fault = subject.ask(&source, query("SELECT 1")).await.unwrap_err();
            assert_eq!(fault.kind, FaultKind::Tls, "{fault:?}");
        }
        assert_eq!(server.seen().logins, [""; 0]);
        subject.close().await;
    }
    let subject = subject(&server, json!({"application_intent": "ReadOnly"})).await;
    assert_eq!(ask(&subject, query("SELECT 1 AS v")).await.unwrap().rows, 1);
    subject.close().await;
    assert_eq!(
        server.seen().logins,
        ["TLS 74000004 souk of shop at 127.0.0.1 to read"]
    );
    let strict = self::subject(&server, json!({"tds_version": "8.0"})).await;
    assert_eq!(ask(&strict, query("SELECT 1 AS v")).await.unwrap().rows, 1);
    strict.close().await;
    assert_eq!(
        server.seen().logins[1],
        "strict 08000000 souk of shop at 127.0.0.1"
    );

    let bare = SqlServer::without_tls().await;
    let subject = self::subject(&bare, json!({})).await;
    let fault = ask(&subject, query("SELECT 1")).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.code.as_str()),
        (FaultKind::Configuration, "tls_not_supported")
    );
    subject.close().await;
    assert_eq!(bare.seen().logins, [""; 0]);
}

/// Of who is reached by another name than its certificate has, `verify-full` wants nothing to do, `verify-ca` takes whom the authority that is
/// trusted has signed, and `require` anybody.
#[tokio::test]
async fn modes_ask_for_what_they_say() {
    let server = SqlServer::start_named(&["db.example.com"]).await;
    let stranger = SqlServer::start().await;
    let (own, other) = (&server.ca_pem, &stranger.ca_pem);
    for version in ["7.4", "8.0"] {
        let mut settings = settings(json!({"tds_version": version}));
        let settings = settings.as_object_mut().expect("settings");
        // The place says it.
        settings.remove("ssl_mode");
        let subject = loaded(Profile {
            settings: settings.clone(),
            ..Profile::default()
        })
        .await;
        for (mode, ca_pem, is_let_in) in [
            (TlsMode::VerifyFull, Some(own), false),
            (TlsMode::VerifyCa, Some(own), true),
            (TlsMode::VerifyCa, Some(other), false),
            (TlsMode::VerifyCa, None, false),
            (TlsMode::Require, Some(other), true),
            (TlsMode::Require, None, true),
        ] {
            let before = server.seen().logins.len();
            let source = subject.source(&place(&server, ca_pem.map(String::as_str), mode));
            let answer = subject.ask(&source, query("SELECT 1 AS v")).await;
            let refused = answer.as_ref().err().map(|fault| fault.kind);
            let wanted = (!is_let_in).then_some(FaultKind::Tls);
            assert_eq!(refused, wanted, "{version} {mode:?}: {answer:?}");
            let logins = server.seen().logins.len() - before;
            assert_eq!(logins > 0, is_let_in, "{version} {mode:?}: {logins}");
        }
        subject.close().await;
    }
}

/// Columns of the server's own that no statement may name are not listed; hidden ones that one may are.
#[tokio::test]
async fn columns_that_nobody_may_select_are_not_listed() {
    let server = SqlServer::start().await;
    server.admin(
        "CREATE TABLE dbo.places (graph_id_0B1C bigint, id int PRIMARY KEY, valid_from datetime2)",
    );
    let subject = subject(&server, json!({})).await;
    let request = Request::Schema(SchemaFilter {
        schemas: vec!["dbo".to_owned()],
        tables: vec!["places".to_owned()],
        include_fields: true,
        limits: Limits::new(100, 1 << 20),
    });
    let catalog = ask(&subject, request).await.unwrap();
    let fields: Vec<_> = (0..catalog.rows)
        .map(|row| catalog.cell(row, 4).as_str().map(str::to_owned))
        .collect();
    assert_eq!(
        fields,
        ["id", "valid_from"].map(|name| Some(name.to_owned()))
    );
    subject.close().await;
}

/// A catalog of 1,000 tables, and a result of 200 columns.
#[tokio::test]
async fn a_thousand_tables_take_a_moment() {
    let server = SqlServer::start().await;
    server.admin(&thousand_tables::sqlserver("sales"));
    let subject = subject(&server, json!({})).await;
    common::reads_a_thousand_tables(&subject, "sales", |catalog| {
        let types: Vec<_> = (0..5)
            .map(|row| catalog.cell(row, 5).as_str().map(str::to_owned))
            .collect();
        let wanted = [
            "int",
            "varchar(20)",
            "decimal(10,2)",
            "datetime2(3)",
            "nvarchar(max)",
        ];
        assert_eq!(types, wanted.map(|text| Some(text.to_owned())));
        assert_eq!(
            (catalog.cell(0, 6).as_bool(), catalog.cell(0, 7).as_bool()),
            (Some(false), Some(true))
        );
    })
    .await;
    let list: Vec<String> = (0..200)
        .map(|number| format!("{number} AS c{number}"))
        .collect();
    let wide = ask(&subject, query(&format!("SELECT {}", list.join(", "))))
        .await
        .unwrap();
    assert_eq!(
        (wide.columns.len(), wide.cell(0, 199).as_i64()),
        (200, Some(199))
    );
    subject.close().await;
}
