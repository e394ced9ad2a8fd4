//! The connector against a real MariaDB, driven by hand.

#[path = "../common/mod.rs"]
mod common;
mod greetings;
mod prepared;
mod stopping;
mod values;

use common::{Wire, settings, wire};
use souk_sdk::{ColumnType, ErrorClass, Limits, Request, SchemaFilter, Value};
use souk_tests::wire::LIMITS;
use souk_tests::{MySql, thousand_tables};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use stopping::wait_for;

const ITEMS: &str =
    "CREATE TABLE items (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL, price DECIMAL(10,2));
    INSERT INTO items SELECT seq, CONCAT('item ', seq), seq / 4 FROM seq_1_to_1000;";

fn class_and_code(error: &souk_sdk::Error) -> (ErrorClass, &str) {
    (error.class, error.code.as_str())
}

/// Each way to log in lets in; a wrong password, an unknown database and a server without what is asked of it do not. MySQL's ways are held by the
/// component, which alone seals a password (`host/conformance/tests/mysql.rs`).
#[test]
fn logins() {
    let server = MySql::shared();
    if server.is_mysql() {
        return;
    }
    let database = server.database("");
    server.admin(&format!(
        "CREATE OR REPLACE USER native IDENTIFIED VIA mysql_native_password USING PASSWORD('pässw''ord');
         CREATE OR REPLACE USER signed IDENTIFIED VIA ed25519 USING PASSWORD('pässw''ord');
         CREATE OR REPLACE USER bare IDENTIFIED BY '';
         CREATE OR REPLACE USER secure IDENTIFIED BY 'pw' REQUIRE SSL;
         CREATE OR REPLACE USER stranger IDENTIFIED BY 'pw';
         GRANT SELECT ON {database}.* TO native, signed, bare, secure"
    ));
    for (user, password) in [
        ("native", "pässw'ord"),
        ("signed", "pässw'ord"),
        ("bare", ""),
    ] {
        let mut wire = Wire::open(server.port, settings(user, password, &database)).unwrap();
        assert_eq!(wire.scalar("SELECT CURRENT_USER()"), format!("{user}@%"));
    }
    let fails = |user: &str, password: &str, database: &str| {
        Wire::open(server.port, settings(user, password, database))
            .err()
            .unwrap()
    };
    for (user, password) in [
        ("native", "wrong"),
        ("signed", "wrong"),
        ("native", ""),
        ("nobody", "pw"),
    ] {
        let error = fails(user, password, &database);
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::Authentication, "password_rejected"),
            "{user}"
        );
        assert!(error.detail.unwrap().contains("1045"));
    }
    assert_eq!(
        fails("secure", "pw", &database).class,
        ErrorClass::Authentication
    );
    assert_eq!(fails("stranger", "pw", &database).code, "permission_denied");
    let owner = fails(&server.user, &server.password, "nowhere");
    assert_eq!(
        class_and_code(&owner),
        (ErrorClass::Configuration, "unknown_database")
    );
    let plain = MySql::start(&["--skip-ssl"]);
    let mut settings = settings(&plain.user, &plain.password, "mysql");
    settings.json = settings.json.replace("disable", "require");
    let error = Wire::open(plain.port, settings).err().unwrap();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::Configuration, "tls_not_supported")
    );
}

/// A write is refused by the server, whatever the statement says and the user may do.
#[test]
fn nothing_is_written() {
    let server = MySql::shared();
    let variable = server.read_only_variable();
    let sequence = match server.is_mysql() {
        true => "",
        false => "CREATE SEQUENCE numbers;",
    };
    let database = server.database(&format!(
        "CREATE TABLE victims (n INT); {sequence}
DELIMITER //
CREATE FUNCTION sneak() RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO victims VALUES (1); RETURN 1; END //
CREATE FUNCTION loosen() RETURNS INT NO SQL BEGIN SET SESSION {variable} = 0; RETURN 1; END //
CREATE FUNCTION sneak_loosely() RETURNS INT MODIFIES SQL DATA RETURN sneak() //
DELIMITER ;
"
    ));
    let mut wire = wire(server, &database);
    for sql in [
        "INSERT INTO victims VALUES (1)",
        "SELECT 1; DELETE FROM victims",
        "SET @x = 1",
        "CALL x()",
        "COMMIT",
        "DROP TABLE victims",
        "/*! DELETE FROM victims */",
    ] {
        let error = wire.query(sql, vec![]).error();
        let known = ["not_a_query", "syntax_error"].contains(&error.code.as_str());
        assert!(known, "{sql}: {error:?}");
    }
    let next = (!server.is_mysql()).then_some("SELECT NEXTVAL(numbers)");
    for sql in ["SELECT sneak()", "SELECT sneak_loosely()"]
        .into_iter()
        .chain(next)
    {
        // Whatever a statement sets for the session, the next transaction is read-only.
        wire.query("SELECT loosen()", vec![]);
        let error = wire.query(sql, vec![]).error();
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::Permission, "read_only"),
            "{sql}: {error:?}"
        );
    }
    for sql in [
        "SELECT 1 INTO @x",
        "SELECT 1 INTO OUTFILE '/tmp/souk-never'",
    ] {
        assert_eq!(wire.query(sql, vec![]).error().code, "no_result", "{sql}");
    }
    assert_eq!(
        server.admin(&format!("SELECT COUNT(*) FROM {database}.victims")),
        "0"
    );
    let ping = wire.submit(Request::Ping(LIMITS));
    let ping = wire.wait(ping).unwrap().ok();
    let is_mariadb = ping.cell(0, 0).contains("MariaDB");
    assert_eq!(is_mariadb, !server.is_mysql(), "{}", ping.cell(0, 0));
    assert_eq!(ping.cell(1, 0), "true");
}

/// Each error carries its class and SQLSTATE; the server's text is in the detail only; the session goes on.
#[test]
fn errors_have_their_class() {
    let server = MySql::shared();
    let database = server.database(ITEMS);
    let rights = format!("SELECT (id, name) ON {database}.items");
    server.user("reader", "pw", &rights);
    let mut wire = Wire::open(server.port, settings("reader", "pw", &database)).unwrap();
    for (sql, class, code, state) in [
        (
            "SELECT * FROM nothing",
            ErrorClass::Permission,
            "permission_denied",
            "42000",
        ),
        (
            "SELECT FROM WHERE",
            ErrorClass::Source,
            "syntax_error",
            "42000",
        ),
        (
            "SELECT price FROM items",
            ErrorClass::Permission,
            "permission_denied",
            "42000",
        ),
        (
            "SELECT 9223372036854775807 + id FROM items",
            ErrorClass::Source,
            "invalid_value",
            "22003",
        ),
    ] {
        let error = wire.query(sql, vec![]).error();
        let found = (
            error.class,
            error.code.as_str(),
            error.source_code.as_deref(),
        );
        assert_eq!(found, (class, code, Some(state)), "{sql}: {error:?}");
        let detail = error.detail.unwrap();
        assert!(!detail.is_empty() && !error.message.contains(&detail));
    }
    // The owner, because a reader of some columns is told of no others by newer servers: from MariaDB 10.11.19 on
    // 1143 for a column that does not exist, 1054 before.
    let mut owner = common::wire(server, &database);
    for (sql, class, code) in [
        (
            "SELECT * FROM nothing",
            ErrorClass::NotFound,
            "unknown_table",
        ),
        ("SELECT nothing()", ErrorClass::NotFound, "unknown_function"),
        (
            "SELECT nothing FROM items",
            ErrorClass::Source,
            "unknown_column",
        ),
    ] {
        assert_eq!(
            class_and_code(&owner.query(sql, vec![]).error()),
            (class, code),
            "{sql}"
        );
    }
    let error = owner
        .query("SELECT 9223372036854775807 + ?", vec![Value::Int64(1)])
        .error();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::InvalidRequest, "invalid_value")
    );
    // What only the caller's value makes wrong is the caller's, whatever its SQLSTATE.
    for (sql, value) in [
        ("SELECT id FROM items WHERE name REGEXP ?", "("),
        (
            "SELECT a FROM JSON_TABLE(?, '$[*]' COLUMNS (a INT PATH '$')) AS t",
            "[1, 2",
        ),
        ("SELECT _latin1 'x' COLLATE latin1_bin = ?", "🦀"),
    ] {
        let error = owner.query(sql, vec![Value::Text(value.into())]).error();
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::InvalidRequest, "invalid_value"),
            "{sql}: {error:?}"
        );
    }
    let error = owner.query("SELECT 'x' REGEXP '('", vec![]).error();
    assert_eq!(error.class, ErrorClass::Source);
    assert_eq!(owner.scalar("SELECT 1"), "1");

    // A session that is ended by others ends.
    let thread = owner.scalar("SELECT CONNECTION_ID()");
    let id = owner.ask("SELECT SLEEP(10)", vec![]);
    // It is prepared; now it runs.
    owner.pump_all();
    wait_for(server, &thread, "SLEEP");
    server.admin(&format!("KILL {thread}"));
    assert_eq!(owner.wait(id).unwrap_err().class, ErrorClass::Unavailable);
}

/// A lock that a statement takes by name is given up behind it, also where it fails, and the session goes on.
#[test]
fn locks_are_given_up() {
    let server = MySql::shared();
    let database = server.database("");
    let mut wire = wire(server, &database);
    let is_free = || server.admin("SELECT IS_FREE_LOCK('souk_unlock')") == "1";
    assert_eq!(wire.scalar("SELECT GET_LOCK('souk_unlock', 0)"), "1");
    assert!(is_free());
    let error = wire
        .query(
            "SELECT GET_LOCK('souk_unlock', 0) + 9223372036854775807",
            vec![],
        )
        .error();
    assert_eq!(error.source_code.as_deref(), Some("22003"));
    assert!(is_free());
    assert_eq!(wire.scalar("SELECT 1"), "1");
}

/// Rows and bytes past the request's limits are not delivered; the session goes on, or ends when too much is still to come.
#[test]
fn limits_are_held() {
    let server = MySql::shared();
    let database = server.database(ITEMS);
    let mut wire = wire(server, &database);
    for (limits, code) in [
        (
            Limits {
                rows_max: 999,
                ..LIMITS
            },
            "rows_limit",
        ),
        (
            Limits {
                bytes_max: 500,
                ..LIMITS
            },
            "bytes_limit",
        ),
    ] {
        // Also where the end of what was refused comes in pieces.
        for piece in [usize::MAX, 1] {
            wire.piece = piece;
            let id = wire.ask_within("SELECT * FROM items", vec![], limits);
            let error = wire.wait(id).unwrap().error();
            assert_eq!(class_and_code(&error), (ErrorClass::LimitExceeded, code));
            assert_eq!(wire.scalar("SELECT COUNT(*) FROM items"), "1000");
        }
    }
    wire.piece = usize::MAX;
    // A row of which too much is still to come is not waited for, however many packets it has.
    let long = "SELECT REPEAT('x', 40000000) AS v";
    let id = wire.ask_within(
        long,
        vec![],
        Limits {
            bytes_max: 1 << 20,
            ..LIMITS
        },
    );
    assert_eq!(wire.wait(id).unwrap().error().code, "bytes_limit");
    assert_eq!(wire.scalar("SELECT 1"), "1");
    let id = wire.ask_within(long, vec![], LIMITS);
    assert_eq!(wire.wait(id).unwrap_err().code, "row_bytes");
    let mut wire = common::wire(server, &database);
    let id = wire.ask_within(
        "SELECT REPEAT('x', 1000) FROM items a, items b",
        vec![],
        Limits {
            rows_max: 10,
            ..LIMITS
        },
    );
    assert_eq!(wire.wait(id).unwrap_err().code, "rows_limit");
}

/// Results of many packets and batches, of 200 columns, and values of more than a packet; however rows end.
#[test]
fn large_results_are_whole() {
    let server = MySql::shared();
    let database = server.database("");
    let many = "SELECT seq AS n, IF(seq % 3 = 0, NULL, seq) AS o, REPEAT('x', 20) AS t FROM seq_1_to_30000";
    server.count_in(&database, &[many]);
    for mut wire in common::both_ways(server, &database) {
        let many = wire.query(many, vec![]).ok();
        assert_eq!(many.rows, 30_000);
        assert!(many.chunks.len() > 1);
        let columns: Vec<String> = (0..200)
            .map(|i| format!("IF({i} % 2, NULL, {i}) AS c{i}"))
            .collect();
        let wide = wire
            .query(&format!("SELECT {}", columns.join(", ")), vec![])
            .ok();
        assert_eq!(wide.columns.len(), 200);
        for i in 0..200 {
            let wanted = if i % 2 == 1 {
                "NULL".into()
            } else {
                i.to_string()
            };
            assert_eq!(wide.cell(i, 0), wanted, "c{i}");
        }
        for length in [0xff_fff0, 0xff_fffa, 0xff_ffff, 17_000_000] {
            let answer = wire
                .query(&format!("SELECT REPEAT('x', {length}) AS v"), vec![])
                .ok();
            assert_eq!(answer.cell(0, 0).len(), length);
        }
        let text = "y".repeat(17_000_000);
        let answer = wire
            .query("SELECT LENGTH(?) AS n", vec![Value::Text(text)])
            .ok();
        assert_eq!(answer.cell(0, 0), "17000000");
    }
}

/// An error behind rows, of which some have been told, fails the request, and the session goes on; however rows end.
#[test]
fn an_error_behind_rows_is_told() {
    let server = MySql::shared();
    let database = server.database("");
    let sql = "SELECT IF(seq = 20000, 9223372036854775807 + CAST(seq AS SIGNED), 0) AS n FROM seq_1_to_30000";
    server.count_in(&database, &[sql]);
    for mut wire in common::both_ways(server, &database) {
        let id = wire.ask(sql, vec![]);
        let answer = wire.wait(id).unwrap();
        assert!((1..20_000).contains(&answer.rows), "{}", answer.rows);
        let error = answer.error();
        assert_eq!(error.source_code.as_deref(), Some("22003"), "{error:?}");
        assert_eq!(wire.scalar("SELECT 1"), "1");
    }
}

/// A server that cuts the results of clients which name no number of rows (`sql_select_limit`) does not cut ours: a part would be taken for the whole.
#[test]
fn no_setting_cuts_a_result() {
    let server = MySql::start(&[]);
    let database = server.database(ITEMS);
    server.admin("SET GLOBAL sql_select_limit = 7");
    let cut = server.admin(&format!("SELECT id FROM {database}.items"));
    assert_eq!(cut.lines().count(), 7);
    let mut wire = wire(&server, &database);
    let answer = wire.query("SELECT id FROM items", vec![]).ok();
    assert_eq!(answer.rows, 1_000);
}

/// A way to the server on which the greatest number of 64 bits without a sign is none: so do servers that only speak MySQL's protocol. One session.
fn signed(server: &MySql) -> u16 {
    const REFUSED: &[u8; 20] = b"'refused-by-the-srv'";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let source = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let (mut from, mut to) = (client.try_clone().unwrap(), source.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut &source, &mut &client));
        let mut block = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut block) {
            // What a session begins with leaves at once.
            let bytes = &mut block[..count];
            let found = bytes
                .windows(20)
                .position(|it| it == b"18446744073709551615");
            if let Some(place) = found {
                bytes[place..place + 20].copy_from_slice(REFUSED);
            }
            to.write_all(bytes).unwrap();
        }
    });
    port
}

/// Where the number that stands for all rows is refused, the next smaller one is taken, and results are whole.
#[test]
fn a_server_that_counts_with_a_sign_cuts_no_result() {
    let server = MySql::start(&[]);
    let database = server.database(ITEMS);
    server.admin("SET GLOBAL sql_select_limit = 7");
    let settings = settings(&server.user, &server.password, &database);
    let mut wire = Wire::open(signed(&server), settings).unwrap();
    let answer = wire.query("SELECT id FROM items", vec![]).ok();
    assert_eq!(answer.rows, 1_000);
    let limit = wire.scalar("SELECT @@SESSION.sql_select_limit");
    assert_eq!(limit, "9223372036854775807");
}

/// A statement whose table was changed, or that the server has forgotten, answers as if nothing had been.
#[test]
fn statements_are_prepared_again() {
    let server = MySql::shared();
    let database = server.database("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)");
    let mut wire = wire(server, &database);
    assert_eq!(wire.scalar("SELECT * FROM t"), "1");
    server.admin(&format!(
        "ALTER TABLE {database}.t MODIFY a VARCHAR(5), ADD b INT"
    ));
    let answer = wire.query("SELECT * FROM t", vec![]).ok();
    assert_eq!(
        (answer.columns.len(), answer.columns[0].kind),
        (2, ColumnType::Text)
    );
    // More statements than are kept.
    for round in 0..2 {
        for i in 0..140 {
            assert_eq!(
                wire.scalar(&format!("SELECT {i}")),
                i.to_string(),
                "{round}"
            );
        }
    }
    let closed = common::counted(server, &mut wire, "Close stmt");
    assert!(closed > 140, "{closed}");
}

/// The catalog of 1,000 tables takes less than a second, and says what a user may see.
#[test]
fn a_thousand_tables_are_listed() {
    let server = MySql::shared();
    let tables = thousand_tables::mariadb();
    let (sequence, whole_number) = match server.is_mysql() {
        true => ("", "int"),
        false => ("; CREATE SEQUENCE numbers", "int(11)"),
    };
    let database = server.database(&format!(
        "{tables}; CREATE VIEW cheap AS SELECT id, price FROM t1{sequence}"
    ));
    server.user("narrow", "pw", &format!("SELECT ON {database}.t7"));
    let schema = |wire: &mut Wire, tables: &[&str], include_fields| {
        let id = wire.submit(Request::Schema(SchemaFilter {
            schemas: vec![],
            tables: tables.iter().map(|name| (*name).to_owned()).collect(),
            include_fields,
            limits: LIMITS,
        }));
        wire.wait(id).unwrap().ok()
    };
    let mut narrow = Wire::open(server.port, settings("narrow", "pw", &database)).unwrap();
    let seen = schema(&mut narrow, &[], true);
    assert_eq!((seen.rows, seen.cell(1, 0)), (5, "t7".into()));
    let fields: Vec<String> = (0..5)
        .map(|row| {
            format!(
                "{} {} {} {}",
                seen.cell(4, row),
                seen.cell(5, row),
                seen.cell(6, row),
                seen.cell(7, row)
            )
        })
        .collect();
    assert_eq!(
        fields,
        [
            &format!("id {whole_number} false true"),
            "name varchar(20) false false",
            "price decimal(10,2) true false",
            "note text true false",
            "at datetime(3) true false",
        ]
    );
    let mut wire = wire(server, &database);
    let whole = |wire: &mut Wire| {
        let begun = Instant::now();
        let id = wire.submit(Request::Schema(SchemaFilter {
            schemas: vec![database.clone()],
            tables: vec![],
            include_fields: true,
            limits: LIMITS,
        }));
        (wire.wait(id).unwrap().ok(), begun.elapsed())
    };
    let (first, took) = whole(&mut wire);
    // Two of the view.
    assert_eq!(first.rows as usize, thousand_tables::FIELDS + 2);
    // Other tests take this machine's time as well: one of some is that quick.
    let mut times = vec![took];
    while times.iter().all(|took| *took > Duration::from_secs(1)) {
        assert!(times.len() < 20, "{times:?}");
        times.push(whole(&mut wire).1);
    }
    let view = schema(&mut wire, &["cheap"], false);
    assert_eq!(
        (view.rows, view.cell(2, 0), view.cell(3, 0), view.cell(4, 0)),
        (1, "view".into(), "NULL".into(), "NULL".into())
    );
}
