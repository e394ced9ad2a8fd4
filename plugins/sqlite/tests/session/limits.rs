//! Rows, bytes and time that an answer may take.

use crate::{LIMITS, ask, open, query, shop};
use souk_sdk::{Error, Limits, Query, Request};
use std::time::{Duration, Instant};

#[test]
fn limits_hold_while_rows_are_read() {
    let directory = shop();
    let mut session = open(directory.path(), "shop.db").unwrap();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let rows = ask(&mut session, query(endless, vec![])).unwrap_err();
    assert_eq!(rows, Error::too_many_rows(1_000));
    let exactly = ask(
        &mut session,
        query(&format!("{endless} LIMIT 1000"), vec![]),
    )
    .unwrap();
    assert_eq!(exactly.rows, 1_000);
    let bytes = ask(&mut session, query("SELECT zeroblob(2000000)", vec![])).unwrap_err();
    assert_eq!(bytes, Error::too_many_bytes(1 << 20));
    let value = ask(
        &mut session,
        query("SELECT length(zeroblob(1000000000))", vec![]),
    )
    .unwrap_err();
    assert_eq!(
        (value.code.as_str(), value.source_code.as_deref()),
        ("value_too_long", Some("SQLITE_TOOBIG"))
    );
}

#[test]
fn a_statement_ends_at_its_deadline() {
    let directory = shop();
    let mut session = open(directory.path(), "shop.db").unwrap();
    let limits = Limits {
        timeout_ms: 50,
        ..LIMITS
    };
    let text =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
            .to_string();
    let started = Instant::now();
    let error = ask(
        &mut session,
        Request::Query(Query {
            text,
            parameters: vec![],
            limits,
        }),
    )
    .unwrap_err();
    assert_eq!(error.code, "statement_timeout");
    // It would never end; a loaded machine gets two hundred times as long as it has.
    assert!(started.elapsed() < Duration::from_secs(10));
    assert!(ask(&mut session, query("SELECT 1", vec![])).is_ok());
}
