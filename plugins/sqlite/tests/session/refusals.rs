//! What a session refuses, and whose fault it says an error is.

use crate::{ask, open, query, shop};
use rusqlite::Connection;
use souk_sdk::{ColumnData, ErrorClass, Value};

/// Whatever a statement tries, it only reads, and the session answers the next one.
#[test]
fn nothing_but_reading_is_possible() {
    let directory = shop();
    let path = directory.path().join("shop.db");
    let before = std::fs::read(&path).unwrap();
    let mut session = open(directory.path(), "shop.db").unwrap();
    for text in [
        "DELETE FROM orders",
        "INSERT INTO orders (region) VALUES ('x') RETURNING id",
        "UPDATE orders SET region = 'x' RETURNING id",
        "CREATE TABLE t (x)",
        "CREATE TEMP TABLE t (x)",
        "DROP TABLE orders",
        "ATTACH 'other.db' AS other",
        "ATTACH ':memory:' AS other",
        "DETACH main",
        "VACUUM INTO '/data/copy.db'",
        "PRAGMA query_only = 0",
        "PRAGMA writable_schema = 1",
        "PRAGMA journal_mode = wal",
        "PRAGMA user_version = 7",
        "PRAGMA hard_heap_limit = 0",
        "BEGIN",
        "SAVEPOINT s",
        "REINDEX",
        "ANALYZE",
        "SELECT load_extension('x')",
        "WITH x AS (SELECT 1) DELETE FROM orders",
    ] {
        let error = ask(&mut session, query(text, vec![])).unwrap_err();
        assert!(
            matches!(
                error.code.as_str(),
                "statement_refused" | "function_not_found" | "syntax_error"
            ),
            "{text}: {error:?}"
        );
        assert!(ask(&mut session, query("SELECT 1", vec![])).is_ok());
    }
    assert_eq!(
        ask(&mut session, query("SELECT 1; SELECT 2", vec![]))
            .unwrap_err()
            .code,
        "several_statements"
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

/// An R-Tree prepares writes when it is read; a statement that writes to one, or to the tables it keeps, is refused, and changes nothing.
#[test]
fn a_write_to_an_rtree_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("places.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "CREATE VIRTUAL TABLE places USING rtree(id, west, east); INSERT INTO places VALUES (1, 0, 1), (2, 5, 6);
             CREATE TABLE plain_node (x); INSERT INTO plain_node VALUES (1)",
        )
        .unwrap();
    drop(connection);
    let before = std::fs::read(&path).unwrap();
    let mut session = open(directory.path(), "places.db").unwrap();
    for statement in [
        "INSERT INTO places VALUES (3, 7, 8)",
        "INSERT INTO places VALUES (3, 7, 8) RETURNING id",
        "UPDATE places SET west = -1",
        "DELETE FROM places",
        "DELETE FROM places_node",
        "INSERT INTO places_rowid VALUES (9, 9) RETURNING 1",
        "DELETE FROM places_parent RETURNING 1",
        "UPDATE plain_node SET x = 2 RETURNING x",
        "WITH w AS (SELECT 3) DELETE FROM places RETURNING id",
    ] {
        let error = ask(&mut session, query(statement, vec![])).unwrap_err();
        assert!(
            ["statement_refused", "statement_failed"].contains(&error.code.as_str()),
            "{statement}: {error:?}"
        );
    }
    let count = ask(
        &mut session,
        query("SELECT count(*), sum(west) FROM places", vec![]),
    )
    .unwrap();
    assert_eq!(count.data[0], ColumnData::I64s(vec![2]));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn errors_say_whose_fault_they_are() {
    let directory = shop();
    let mut session = open(directory.path(), "shop.db").unwrap();
    let cases = [
        ("SELECT * FROM absent", "table_not_found"),
        ("SELECT absent FROM orders", "column_not_found"),
        ("SELECT absent(1)", "function_not_found"),
        ("SELEC 1", "syntax_error"),
        ("", "no_statement"),
        ("-- nothing", "no_statement"),
        ("SELECT abs(-9223372036854775808)", "statement_failed"),
        ("SELECT * FROM broken", "table_not_found"),
    ];
    for (text, code) in cases {
        let error = ask(&mut session, query(text, vec![])).unwrap_err();
        assert_eq!(error.code, code, "{text}: {error:?}");
    }
    // It is a caller's only where a caller gave something.
    let limited = |limit: &str, values| {
        let text = format!("SELECT id FROM orders LIMIT {limit}");
        query(&text, values)
    };
    for (limit, values, class) in [
        ("'many'", vec![], ErrorClass::Source),
        (
            "?1",
            vec![Value::Text("many".into())],
            ErrorClass::InvalidRequest,
        ),
    ] {
        let error = ask(&mut session, limited(limit, values)).unwrap_err();
        assert_eq!(
            (error.class, error.code.as_str()),
            (class, "value_mismatch")
        );
    }
    // In a component, the depth that SQLite allows by default would be the end of the stack.
    let deep = format!("SELECT 1{}", "+1".repeat(500));
    assert_eq!(
        ask(&mut session, query(&deep, vec![])).unwrap_err().code,
        "statement_failed"
    );
    let error = ask(&mut session, query("SELECT * FROM absent", vec![])).unwrap_err();
    assert_eq!(error.detail.as_deref(), Some("no such table: absent"));
    assert_eq!(error.source_code.as_deref(), Some("SQLITE_ERROR"));
    assert!(!error.message.contains("absent"));
}

/// A search, a path or a number that SQLite only reads where a statement runs is the caller's who gave it. What the statement says by itself, and what
/// lies in the file, is not.
#[test]
fn what_is_read_as_it_runs_is_the_callers() {
    let directory = shop();
    let mut session = open(directory.path(), "shop.db").unwrap();
    let search = |words: &str, values| {
        let text = format!("SELECT count(*) FROM notes WHERE notes MATCH {words}");
        query(&text, values)
    };
    for words in ["\"red", "red.", "colour:red", "red - blue", "AND", "*", ""] {
        let of_caller = search("?1", vec![Value::Text(words.into())]);
        let error = ask(&mut session, of_caller).unwrap_err();
        assert_eq!(
            (error.class, error.code.as_str()),
            (ErrorClass::InvalidRequest, "invalid_value"),
            "{words}: {error:?}"
        );
        let of_seller = search(&format!("'{words}'"), vec![]);
        let error = ask(&mut session, of_seller).unwrap_err();
        assert_ne!(error.class, ErrorClass::InvalidRequest, "{words}");
    }
    for (expression, value, class) in [
        (
            "json_extract('{}', ?1)",
            Value::Text("a[".into()),
            ErrorClass::InvalidRequest,
        ),
        (
            "'a' LIKE 'a' ESCAPE ?1",
            Value::Text("xx".into()),
            ErrorClass::InvalidRequest,
        ),
        (
            "ntile(?1) OVER ()",
            Value::Int64(0),
            ErrorClass::InvalidRequest,
        ),
        (
            "json_extract('{', '$.a'), ?1",
            Value::Int64(0),
            ErrorClass::Source,
        ),
        ("absent, ?1", Value::Int64(0), ErrorClass::NotFound),
    ] {
        let text = format!("SELECT {expression} FROM orders");
        let error = ask(&mut session, query(&text, vec![value])).unwrap_err();
        assert_eq!(error.class, class, "{text}: {error:?}");
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_the_settings_fault() {
    let directory = shop();
    std::fs::write(
        directory.path().join("notes.txt"),
        "no database at all".repeat(100),
    )
    .unwrap();
    let code = |name| open(directory.path(), name).err().map(|error| error.code);
    assert_eq!(code("absent.db").as_deref(), Some("database_not_found"));
    assert_eq!(code("notes.txt").as_deref(), Some("not_a_database"));
    assert_eq!(code("../shop.db").as_deref(), Some("invalid_database"));
    assert!(!directory.path().join("absent.db").exists());
}
