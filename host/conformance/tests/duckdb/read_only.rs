//! Tables are read and nothing else: no file, nothing that a statement's text or value smuggles in, nothing that moves.

use crate::common::{ask, query};
use crate::{refused, stocked, subject};
use serde_json::json;
use souk_sandbox::{FaultKind, Limits, Query, Request, Value};
use souk_tests::{DuckDb, duckdb};

/// Statements that the connector's own lexer takes for a query, and that read files, run texts or change something: none of them is run, and
/// the files stay unread. Each of them is taken by the server itself.
#[tokio::test]
async fn nothing_but_tables_is_read() {
    let server = DuckDb::start();
    stocked(&server);
    server.admin("CREATE SEQUENCE shop.ids");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secrets.csv");
    std::fs::write(&file, "a\n1\n").unwrap();
    let file = file.display();
    for text in [
        format!("SELECT * FROM read_csv('{file}')"),
        format!("SELECT content FROM READ_TEXT('{file}')"),
        format!("SELECT * FROM \"read_csv_auto\"('{file}')"),
        format!("SELECT * FROM system.main.read_csv('{file}')"),
        format!("SELECT * FROM '{file}'"),
        format!("FROM \"{file}\""),
        format!("WITH a AS (SELECT 1 FROM glob('{file}')) SELECT * FROM a"),
        format!("SELECT (SELECT count(*) FROM read_blob('{file}'))"),
        format!("SELECT /* /* */ */ 1 AS a FROM /**/ sniff_csv ('{file}')"),
        "SELECT * FROM query('SELECT 1')".into(),
        "SELECT id FROM query_table(['shop.stock'])".into(),
        "SELECT * FROM duckdb_settings()".into(),
        "SELECT * FROM duckdb_secrets()".into(),
        "SELECT write_log('x')".into(),
        format!("SELECT json_serialize_plan('SELECT * FROM read_csv(''{file}'')')"),
        "SELECT current_setting('threads')".into(),
        "FROM pg_settings".into(),
        "SELECT * FROM main.PRAGMA_database_list".into(),
        "SELECT message FROM duckdb_logs".into(),
        "SELECT path FROM duckdb_databases".into(),
        "SELECT nextval('shop.ids')".into(),
    ] {
        server.admin(&text);
        let fault = refused(&server, json!({}), &text).await;
        assert_eq!(fault.kind, FaultKind::Permission, "{text}: {fault:?}");
        assert_eq!(fault.code, "read_only", "{text}");
    }
    // A view of the owner's may.
    server.admin(&format!(
        "CREATE VIEW shop.told AS SELECT * FROM read_csv('{file}')"
    ));
    let subject = subject(&server, json!({"database": "memory.shop"})).await;
    let told = ask(&subject, query("SELECT a FROM told")).await.unwrap();
    assert_eq!(told.cell(0, 0).as_i64(), Some(1));
    let ping = ask(&subject, Request::Ping(Limits::new(1, 1_000)))
        .await
        .unwrap();
    assert_eq!(ping.cell(0, 0).as_str(), Some(duckdb::VERSION));
    assert_eq!(ping.cell(0, 1).as_bool(), Some(true));
    subject.close().await;
    assert_eq!(server.number("SELECT count(*) FROM shop.stock"), 60);
    assert_eq!(
        server.number("SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'souk%'"),
        0
    );
}

/// A text that a transaction which only reads has let pass is asked alone, and answers what there is. What moves a sequence is refused each time: by its name, in a view, by a macro
/// that a value tells to.
#[tokio::test]
async fn what_has_passed_is_asked_alone_and_nothing_else() {
    let server = DuckDb::start();
    stocked(&server);
    for statement in [
        "CREATE SEQUENCE shop.ids",
        "CREATE VIEW shop.moves AS SELECT nextval('shop.ids') AS id",
        "CREATE MACRO shop.runs(x) AS (SELECT * FROM query(x))",
        "CREATE MACRO shop.takes(x BIGINT) AS x, (x VARCHAR) AS nextval('shop.ids')",
    ] {
        server.admin(statement);
    }
    let subject = subject(&server, json!({"database": "memory.shop"})).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    let text = "SELECT sku FROM stock WHERE sku = ?";
    server.writes_down();
    for sku in ["sku b1", "sku c2"] {
        let output = subject.ask(&source, valued(text, sku)).await.unwrap();
        assert_eq!(output.cell(0, 0).as_str(), Some(sku));
    }
    let texts = server.texts();
    let is_within = |sku: &str| {
        let asked = texts.iter().find(|text| text.contains(sku)).unwrap();
        asked.contains("BEGIN TRANSACTION READ ONLY")
    };
    assert!(is_within("sku b1") && !is_within("sku c2"), "{texts:?}");

    let number = Request::Query(Query {
        text: "SELECT takes(?)".into(),
        parameters: vec![Value::Int64(1)],
        limits: Limits::new(10, 1 << 20),
    });
    let reads = [
        number,
        valued("SELECT runs(?)", "SELECT 1"),
        query("SELECT nextval(NULL)"),
    ];
    for request in reads {
        subject.ask(&source, request).await.unwrap();
    }
    for _ in 0..2 {
        for request in [
            valued("SELECT takes(?)", "a"),
            valued("SELECT runs(?)", "SELECT nextval('shop.ids')"),
            query("SELECT nextval('ids')"),
            query("SELECT id FROM moves"),
        ] {
            let fault = subject.ask(&source, request).await.unwrap_err();
            let told = (fault.kind, fault.code.as_str());
            assert_eq!(told, (FaultKind::Permission, "read_only"), "{fault:?}");
        }
    }
    subject.close().await;
    let moved = "SELECT count(*) FROM duckdb_sequences() WHERE last_value IS NOT NULL";
    assert_eq!(server.number(moved), 0);
}

/// A macro of the seller's that has the name of a function of DuckDB's own is called in its place: it moves no sequence, whatever it was let pass with before.
#[tokio::test]
async fn a_namesake_of_a_function_moves_nothing() {
    let server = DuckDb::start();
    stocked(&server);
    for statement in [
        "CREATE SEQUENCE shop.ids",
        "CREATE MACRO shop.upper(x BIGINT) AS x, (x VARCHAR) AS nextval('shop.ids')",
    ] {
        server.admin(statement);
    }
    let subject = subject(&server, json!({"database": "memory.shop"})).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    let number = Request::Query(Query {
        text: "SELECT upper(?)".into(),
        parameters: vec![Value::Int64(7)],
        limits: Limits::new(10, 1 << 20),
    });
    let output = subject.ask(&source, number).await.unwrap();
    assert_eq!(output.cell(0, 0).as_i64(), Some(7));
    for _ in 0..2 {
        let request = valued("SELECT upper(?)", "a");
        let fault = subject.ask(&source, request).await.unwrap_err();
        let told = (fault.kind, fault.code.as_str());
        assert_eq!(told, (FaultKind::Permission, "read_only"), "{fault:?}");
    }
    subject.close().await;
    let moved = "SELECT count(*) FROM duckdb_sequences() WHERE last_value IS NOT NULL";
    assert_eq!(server.number(moved), 0);
}

/// What the database is called stands before the statement, in the same message. It ends where it ends, whatever it is called.
#[tokio::test]
async fn a_database_may_be_called_anything() {
    let server = DuckDb::start();
    stocked(&server);
    server.admin("CREATE SEQUENCE shop.ids");
    for name in [
        "la\"ke's $$ --",
        "\"; DROP SCHEMA shop CASCADE; --",
        "/* ' \u{a0}$x$",
        "a'; COMMIT; DROP TABLE memory",
    ] {
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        server.admin(&format!("ATTACH ':memory:' AS {quoted}"));
        server.admin(&format!("CREATE TABLE {quoted}.main.told AS SELECT 7 AS a"));
        let subject = subject(&server, json!({"database": name})).await;
        for value in [
            "$$; COMMIT; DROP TABLE memory.shop.stock; --",
            "\u{a0}'\"",
            "*/",
        ] {
            let text = "SELECT ?, a, '\u{a0};' FROM told -- ' $x$";
            let output = ask(&subject, valued(text, value)).await.unwrap();
            assert_eq!(output.cell(0, 0).as_str(), Some(value), "{name}");
            assert_eq!(output.cell(0, 1).as_i64(), Some(7), "{name}");
            assert_eq!(output.cell(0, 2).as_str(), Some("\u{a0};"), "{name}");
        }
        for text in [
            "SELECT 1; COMMIT; DROP TABLE memory.shop.stock",
            "SELECT nextval('memory.shop.ids')",
        ] {
            let fault = ask(&subject, query(text)).await.unwrap_err();
            assert_eq!(fault.kind, FaultKind::Permission, "{text}: {fault:?}");
        }
        subject.close().await;
    }
    assert_eq!(server.number("SELECT count(*) FROM shop.stock"), 60);
    assert_eq!(server.connections(), 0);
}

/// A blank beyond ASCII begins a quote to DuckDB where there is none to a lexer, in which a placeholder then stands: a value that ends it would run.
#[tokio::test]
async fn no_value_leaves_its_place() {
    let server = DuckDb::start();
    stocked(&server);
    let subject = subject(&server, json!({})).await;
    for (text, value) in [
        (
            "SELECT 1, \u{200b}$$ ? ' $$, $1, $$ ' a$$",
            "$$; COMMIT; DROP TABLE shop.stock; SELECT 1 --",
        ),
        (
            "SELECT 1,\u{a0}$$ ? $$, $1",
            "$$; COMMIT; DELETE FROM shop.stock; SELECT 1 --",
        ),
        (
            "SELECT \u{feff}E'\\' ? ' /*'*/",
            "; COMMIT; DELETE FROM shop.stock; SELECT 1 --",
        ),
    ] {
        let fault = ask(&subject, valued(text, value)).await.unwrap_err();
        assert_eq!(
            (fault.kind, fault.code.as_str()),
            (FaultKind::SourceError, "blank_unclear"),
            "{text}: {fault:?}"
        );
    }
    // What could end a quote or a comment is a value as any other, and one with such blanks stays as it is, whatever the comments say.
    for value in [
        "$$; COMMIT; DROP TABLE shop.stock; --",
        "' || '\"*/ \\",
        "a\u{a0}b\u{200b}'c\u{3000}",
    ] {
        for text in [
            "SELECT ?AS a",
            "SELECT /* it's */ ? -- \"\n",
            "SELECT a$b$ FROM (SELECT '$b$ \"', ?) AS a$b$(x, a$b$)",
        ] {
            let output = ask(&subject, valued(text, value)).await.unwrap();
            assert_eq!(output.cell(0, 0).as_str(), Some(value), "{text}");
        }
    }
    subject.close().await;
    assert_eq!(server.number("SELECT count(*) FROM shop.stock"), 60);
}

fn valued(text: &str, value: &str) -> Request {
    Request::Query(Query {
        text: text.into(),
        parameters: vec![Value::Text(value.into())],
        limits: Limits::new(10, 1 << 20),
    })
}

/// DuckDB downloads an extension when a statement names what it has, unless it is told not to.
#[tokio::test]
async fn a_server_that_installs_extensions_is_told_not_to() {
    let server = DuckDb::start();
    let subject = subject(&server, json!({})).await;
    ask(&subject, query("SELECT 1")).await.unwrap();
    server.admin("SET GLOBAL autoinstall_known_extensions = true");
    for request in [query("SELECT 2"), Request::Ping(Limits::new(1, 1_000))] {
        let fault = ask(&subject, request).await.unwrap_err();
        assert_eq!(
            (fault.kind, fault.code.as_str()),
            (FaultKind::Configuration, "installs_extensions")
        );
    }
    subject.close().await;
    assert_eq!(server.connections(), 0);
}

/// That no file is read is the server's own word, too, where it is set so.
#[tokio::test]
async fn a_server_that_reads_no_files_says_so() {
    let server = DuckDb::start();
    server.admin(
        "CREATE VIEW told AS SELECT * FROM read_csv('/proc/version', columns = {'a': 'VARCHAR'})",
    );
    server.admin("SET enable_external_access = false");
    let fault = refused(&server, json!({}), "SELECT * FROM told").await;
    assert_eq!(
        (fault.kind, fault.code.as_str()),
        (FaultKind::Permission, "access_disabled")
    );
}
