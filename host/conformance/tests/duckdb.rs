//! The component `duckdb` against the vendor's own server.

mod common;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value as Json, json};
use souk_conformance::{Place, Subject};
use souk_sandbox::{Fault, FaultKind, Limits, Query, Request, SchemaFilter, Value};
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

/// What a statement takes is counted by the server: two messages to the answer where the session knows it, and one when nobody asks for more. The first time
/// it is read as well.
#[tokio::test]
async fn a_statement_takes_three_messages() {
    let server = DuckDb::start();
    stocked(&server);
    server.writes_down();
    let mut seen = 0;
    let mut messages = || {
        let messages = server.messages().split_off(seen);
        seen += messages.len();
        messages
    };
    let subject = subject(&server, json!({"database": "memory.shop"})).await;
    // One data connection, whose session knows what it was asked before.
    let source = subject.source(subject.place.as_ref().unwrap());
    for rows in [60, 50] {
        let request = query("SELECT id FROM stock");
        let output = subject.ask(&source, request).await.unwrap();
        assert_eq!(output.rows, rows);
        server.is_left().await;
        let mut asked = vec!["CONNECTION_REQUEST", "PREPARE_REQUEST"];
        if rows == 60 {
            asked.push("PREPARE_REQUEST");
        }
        asked.push("DISCONNECT_MESSAGE");
        assert_eq!(messages(), asked);
        server.admin("DELETE FROM shop.stock WHERE id > 50");
    }
    // A catalog, a test, what DuckDB refuses, and more rows than one answer has.
    let catalog = Request::Schema(SchemaFilter {
        schemas: Vec::new(),
        tables: Vec::new(),
        include_fields: true,
        limits: Limits::new(1_000, 1 << 20),
    });
    let many = Request::Query(Query {
        text: "SELECT i FROM range(30000) AS r(i)".into(),
        parameters: Vec::new(),
        limits: Limits::new(30_000, 1 << 20),
    });
    for (request, is_whole, wanted) in [
        (catalog, true, 1),
        (Request::Ping(Limits::new(1, 1_000)), true, 3),
        (query("SELECT absent FROM stock"), false, 2),
        (many, true, 4),
    ] {
        let answer = subject.ask(&source, request).await;
        assert_eq!(answer.is_ok(), is_whole, "{answer:?}");
        server.is_left().await;
        assert_eq!(messages().len(), wanted + 2);
    }
    subject.close().await;
}

/// Statements that follow each other take a message each, on one connection, which is left when nobody asks for more.
#[tokio::test]
async fn one_after_the_other_takes_one_message() {
    let server = DuckDb::start();
    stocked(&server);
    let subject = subject(&server, json!({"database": "memory.shop"})).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    // It is known from then on.
    subject
        .ask(&source, query("SELECT id FROM stock"))
        .await
        .unwrap();
    server.is_left().await;
    server.writes_down();
    for rows in (51..=60).rev() {
        let output = subject.ask(&source, query("SELECT id FROM stock")).await;
        assert_eq!(output.unwrap().rows, rows);
        // Each sees what there is by then, in whatever transaction it is.
        server.admin(&format!("DELETE FROM shop.stock WHERE id = {rows}"));
    }
    server.is_left().await;
    let messages = server.messages();
    let count = |kind: &str| messages.iter().filter(|message| *message == kind).count();
    assert_eq!(count("PREPARE_REQUEST"), 10);
    let (opened, ended) = (count("CONNECTION_REQUEST"), count("DISCONNECT_MESSAGE"));
    assert!(opened == ended && opened < 5, "{messages:?}");
    subject.close().await;
    assert_eq!(server.connections(), 0);
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

/// Statements that are asked at the same time hand their connections on. None is left when all are answered.
#[tokio::test]
async fn connections_are_handed_on_and_left() {
    let server = DuckDb::start();
    stocked(&server);
    let subject = subject(&server, json!({"database": "memory.shop"})).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    let text = "SELECT id, sku FROM stock WHERE id <= 7 ORDER BY id";
    // It is known from then on.
    subject.ask(&source, query(text)).await.unwrap();
    server.is_left().await;
    server.writes_down();
    let (clients, each) = (8, 20);
    let (asked, of) = (&subject, &source);
    let asks = (0..clients).map(|_| async move {
        for _ in 0..each {
            let output = asked.ask(of, query(text)).await.unwrap();
            assert_eq!(output.rows, 7);
            assert_eq!(output.cell(6, 0).as_i64(), Some(7));
        }
    });
    join_all(asks).await;
    server.is_left().await;
    let messages = server.messages();
    let count = |kind: &str| messages.iter().filter(|message| *message == kind).count();
    let (opened, ended) = (count("CONNECTION_REQUEST"), count("DISCONNECT_MESSAGE"));
    println!("{opened} connections for {} statements", clients * each);
    assert!(
        opened == ended && opened < clients * each,
        "{opened}, {ended}"
    );
    subject.close().await;
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

/// A result that has begun is given up at DuckDB, which computes no more of it, when the request's time is over.
#[tokio::test]
async fn rows_that_nobody_wants_are_not_computed() {
    let server = DuckDb::start();
    let subject = subject(&server, json!({})).await;
    let source = subject.source(subject.place.as_ref().unwrap());
    let request = Request::Query(Query {
        // Without an end, and slow enough for the rows that are allowed.
        text: "SELECT i, md5(i::VARCHAR) || sleep_ms(CASE WHEN i % 20000 = 0 THEN 200 ELSE 0 END)::VARCHAR AS t FROM range(100000000000) AS r(i)".into(),
        parameters: Vec::new(),
        limits: Limits::new(10_000_000, 256 << 20),
    });
    let within = Duration::from_millis(900);
    let fault = subject
        .ask_within(&source, request, within)
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Timeout, "{fault:?}");
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
        assert!(since.elapsed() < Duration::from_secs(15), "it goes on");
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
            since.elapsed() < Duration::from_secs(30),
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
