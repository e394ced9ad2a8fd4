//! What is asked, in which transaction, and what is asked alone; what does not read is not.

use crate::common::{
    BEGIN, PATH, Reply, TRANSACTION, Talk, begun, catalog, class_and_code, column, ended, fails,
    header, numbers, page, query, raw, results, text, waits,
};
use serde_json::json;
use souk_sdk::{ErrorClass, HttpRequest, Limits, Request, Value};
use souk_tests::wire::LIMITS;

/// A statement runs between the beginning and the end of a transaction that only reads; who asks and what bounds it stand in headers.
#[test]
fn what_leaves() {
    let mut talk = Talk::usual();
    let limits = Limits {
        timeout_ms: 9_000,
        ..LIMITS
    };
    let id = talk.submit(query("SELECT ?", vec![Value::Text("a'b".into())], limits));
    let begin = talk.asked[0].clone();
    assert_eq!(
        (begin.method.as_str(), begin.path.as_str()),
        ("POST", "/v1/statement")
    );
    assert_eq!(text(&begin), "START TRANSACTION READ ONLY");
    assert_eq!(header(&begin, "x-trino-transaction-id"), Some("NONE"));
    talk.hears(0, waits(0)).unwrap();
    assert_eq!(
        (talk.asked[0].method.as_str(), talk.asked[0].path.clone()),
        ("GET", format!("{PATH}0"))
    );
    talk.hears(0, begun()).unwrap();
    let asked = talk.asked[0].clone();
    assert_eq!(text(&asked), "EXECUTE IMMEDIATE 'SELECT ?' USING 'a''b'");
    assert_eq!(
        header(&asked, "x-trino-session"),
        Some("query_max_run_time=9000ms")
    );
    talk.hears(0, waits(0)).unwrap();
    let next = talk.asked[0].clone();
    talk.hears(
        0,
        page(Some(1), &[column("a", "varchar(3)")], json!([["a'b"]])),
    )
    .unwrap();
    talk.hears(0, page(None, &[column("a", "varchar(3)")], json!([])))
        .unwrap();
    let end = talk.asked[0].clone();
    assert_eq!(text(&end), "ROLLBACK");
    assert!(
        talk.ended(id).is_none(),
        "it has ended when its transaction has"
    );
    talk.hears(0, waits(0)).unwrap();
    talk.hears(0, ended()).unwrap();
    assert_eq!(talk.ended(id).unwrap().ok().cell(0, 0), "a'b");
    for request in [&begin, &asked, &end, &next] {
        let basic = "Basic YWRhOnDkc3N3J29yZA==";
        assert_eq!(header(request, "authorization"), Some(basic));
        assert_eq!(header(request, "x-trino-user"), Some("ada"));
        assert_eq!(header(request, "x-trino-source"), Some("souk"));
    }
    for request in [&begin, &asked, &end] {
        assert_eq!(header(request, "x-trino-catalog"), Some("lake"));
        assert_eq!(header(request, "x-trino-schema"), Some("shop"));
        assert_eq!(header(request, "x-trino-time-zone"), Some("UTC"));
        assert_eq!(
            header(request, "x-trino-client-capabilities"),
            Some("PARAMETRIC_DATETIME")
        );
    }
    for request in [&asked, &end] {
        assert_eq!(header(request, "x-trino-transaction-id"), Some(TRANSACTION));
    }
    // Alone, a user needs no secret wire.
    let alone = json!({"base_url": "http://127.0.0.1:8080", "password": null, "database": "lake"});
    let mut talk = Talk::open(alone).unwrap();
    talk.submit(Request::Ping(LIMITS));
    assert_eq!(header(&talk.asked[0], "authorization"), None);
    assert_eq!(header(&talk.asked[0], "x-trino-schema"), None);
}

/// Coordinators before 476 find no catalog and no schema whose names have capitals in these headers.
#[test]
fn names_leave_without_capitals() {
    let mut talk = Talk::open(json!({"database": "Lake.Shop"})).unwrap();
    talk.submit(query("SELECT 1", vec![], LIMITS));
    assert_eq!(header(&talk.asked[0], "x-trino-catalog"), Some("lake"));
    assert_eq!(header(&talk.asked[0], "x-trino-schema"), Some("shop"));
}

/// What is read of an answer is bounded by what may be told of it, and by the memory of a session.
#[test]
fn what_is_read_is_bounded() {
    for (bytes_max, wanted) in [
        (1 << 20, 6 << 20),
        (64 << 20, 16 << 20),
        (u64::MAX, 16 << 20),
    ] {
        let limits = Limits {
            bytes_max,
            ..LIMITS
        };
        let mut talk = Talk::usual();
        talk.submit(query("SELECT 1", vec![], limits));
        assert_eq!(talk.asked[0].response_bytes_max, 1 << 20);
        talk.hears(0, begun()).unwrap();
        assert_eq!(talk.asked[0].response_bytes_max, wanted);
        talk.hears(0, waits(0)).unwrap();
        assert_eq!(talk.asked[0].response_bytes_max, wanted);
    }
}

/// Without a transaction nothing is asked: nobody would hold read-only.
#[test]
fn nothing_runs_without_a_transaction() {
    let nameless = || raw(200, &[], results(None, json!({})).to_string());
    let wrong = |id: &'static str| {
        let headers = [("X-Trino-Started-Transaction-Id", id)];
        raw(200, &headers, results(None, json!({})).to_string())
    };
    for reply in [
        nameless(),
        wrong(""),
        wrong("NONE"),
        wrong("a b"),
        wrong("ä"),
    ] {
        let mut talk = Talk::usual();
        let answer = talk.ask(query("SELECT 1", vec![], LIMITS), [reply]);
        assert_eq!(answer.error().code, "no_transaction");
        assert!(talk.asked.is_empty());
    }
    for text in [
        "DELETE FROM t",
        "SELECT 1; DELETE FROM t",
        "CALL system.runtime.kill_query('a')",
    ] {
        let mut talk = Talk::usual();
        let error = talk.ask(query(text, vec![], LIMITS), []).error();
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::Permission, "read_only")
        );
        assert!(talk.asked.is_empty());
    }
}

/// A text that a transaction has let pass is asked alone the next time, whatever its values are; one that failed, or another one, is not.
#[test]
fn what_has_passed_is_asked_alone() {
    let mut talk = Talk::usual();
    let ask = |talk: &mut Talk, text: &str, value| {
        let id = talk.submit(query(text, vec![Value::Int64(value)], LIMITS));
        (id, talk.asked[0].clone())
    };
    // The first one fails, and so the second has a transaction as well.
    for reply in [fails("X", "USER_ERROR", "no"), numbers(1)] {
        let (id, first) = ask(&mut talk, "SELECT ?", 1);
        assert_eq!(text(&first), BEGIN);
        for reply in [begun(), reply, ended()] {
            talk.hears(0, reply).unwrap();
        }
        assert!(talk.ended(id).is_some());
    }
    for value in [2, 3] {
        let (id, first) = ask(&mut talk, "SELECT ?", value);
        let wanted = format!("EXECUTE IMMEDIATE 'SELECT ?' USING BIGINT '{value}'");
        assert_eq!(text(&first), wanted);
        assert_eq!(header(&first, "x-trino-transaction-id"), Some("NONE"));
        let within = Some("query_max_run_time=10000ms");
        assert_eq!(header(&first, "x-trino-session"), within);
        talk.hears(0, waits(0)).unwrap();
        talk.hears(0, numbers(2)).unwrap();
        assert_eq!(talk.ended(id).unwrap().ok().rows, 2);
        assert!(talk.asked.is_empty(), "there is no transaction to end");
    }
    let (_, first) = ask(&mut talk, "SELECT -?", 2);
    assert_eq!(text(&first), BEGIN);
    let mut another = Talk::usual();
    let (_, first) = ask(&mut another, "SELECT ?", 2);
    assert_eq!(text(&first), BEGIN);
}

/// A view may be replaced by another one of its name: the transaction that is due a minute after the last one finds out, and each one from then on,
/// until one lets the text pass again.
#[test]
fn a_transaction_is_believed_for_a_minute() {
    let mut talk = Talk::usual();
    let ask = |talk: &mut Talk, now| {
        talk.now = now;
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        (id, text(&talk.asked[0]).to_owned())
    };
    let within = |talk: &mut Talk, now, reply| {
        let (id, first) = ask(talk, now);
        assert_eq!(first, BEGIN, "{now}");
        // What it takes is no part of the minute, which begins with the transaction.
        talk.now = now + 30;
        for reply in [begun(), reply, ended()] {
            talk.hears(0, reply).unwrap();
        }
        talk.ended(id).unwrap()
    };
    let alone = |talk: &mut Talk, now| {
        let (id, first) = ask(talk, now);
        assert_eq!(first, "SELECT 1", "{now}");
        talk.hears(0, numbers(1)).unwrap();
        assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
    };
    let refuses = || fails("READ_ONLY_VIOLATION", "USER_ERROR", "no");
    assert_eq!(within(&mut talk, 100, numbers(1)).ok().rows, 1);
    alone(&mut talk, 130);
    alone(&mut talk, 149);
    // Who was asked alone has proven nothing.
    for now in [160, 161] {
        let error = within(&mut talk, now, refuses()).error();
        assert_eq!(error.code, "read_only");
    }
    assert_eq!(within(&mut talk, 170, numbers(1)).ok().rows, 1);
    alone(&mut talk, 219);
    // The host's clock has fallen.
    assert_eq!(within(&mut talk, 169, numbers(1)).ok().rows, 1);
}

/// Where many ask the same text, one of them has a transaction before the minute is over, and so none of the others has one at its end. One that
/// fails in it ends the minute for all.
#[test]
fn one_transaction_is_for_all() {
    const MANY: usize = 64;
    let mut talk = Talk::usual();
    let transactions = |talk: &mut Talk, now: u64| {
        talk.now = now;
        let submit = |_| talk.submit(query("SELECT 1", vec![], LIMITS));
        let ids: Vec<u32> = (0..MANY).map(submit).collect();
        let begin = |asked: &&HttpRequest| text(asked) == BEGIN;
        let count = talk.asked.iter().filter(begin).count();
        while let Some(asked) = talk.asked.first() {
            let reply = match text(asked) {
                BEGIN => begun(),
                "ROLLBACK" => ended(),
                _ => numbers(1),
            };
            talk.hears(0, reply).unwrap();
        }
        for id in ids {
            assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
        }
        count
    };
    assert_eq!(transactions(&mut talk, 100), MANY, "nothing is known yet");
    assert_eq!(transactions(&mut talk, 149), 0);
    assert_eq!(transactions(&mut talk, 155), 1);
    assert_eq!(transactions(&mut talk, 161), 0);
    assert_eq!(transactions(&mut talk, 214), 1);
    talk.now = 265;
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    assert_eq!(text(&talk.asked[0]), BEGIN);
    let refused = fails("READ_ONLY_VIOLATION", "USER_ERROR", "no");
    for reply in [begun(), refused, ended()] {
        talk.hears(0, reply).unwrap();
    }
    assert_eq!(talk.ended(id).unwrap().error().code, "read_only");
    assert_eq!(transactions(&mut talk, 265), MANY);
}

/// What is asked alone fails, is stopped and is given up as in a transaction, but for that.
#[test]
fn what_is_asked_alone_is_stopped_too() {
    let proven = || {
        let mut talk = Talk::usual();
        talk.rows_of([numbers(1)]).ok();
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        assert_eq!(text(&talk.asked[0]), "SELECT 1");
        (talk, id)
    };
    let (mut talk, id) = proven();
    talk.hears(0, fails("DIVISION_BY_ZERO", "USER_ERROR", "no"))
        .unwrap();
    assert_eq!(talk.ended(id).unwrap().error().class, ErrorClass::Source);
    assert!(talk.asked.is_empty());
    // It is an address of no Trino's by now.
    let (mut talk, id) = proven();
    talk.hears(0, raw(404, &[], "")).unwrap();
    let error = talk.ended(id).unwrap().error();
    assert_eq!(error.class, ErrorClass::Configuration);
    for is_known in [false, true] {
        let (mut talk, id) = proven();
        if is_known {
            talk.hears(0, waits(3)).unwrap();
        }
        talk.cancel(id);
        if !is_known {
            talk.hears(0, waits(3)).unwrap();
        }
        // Before it there may be what is not waited for any more.
        let last = talk.asked.len() - 1;
        let stop = talk.asked[last].clone();
        assert_eq!(
            (stop.method.as_str(), stop.path),
            ("DELETE", format!("{PATH}3"))
        );
        talk.hears(last, raw(204, &[], "")).unwrap();
        assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
        assert_eq!(talk.asked.len(), last, "there is no transaction to end");
    }
}

/// A connection's test tells the version, that catalog and schema are there, and whether the source itself refuses a write.
#[test]
fn a_ping_tries_a_write() {
    let look = |schemas: u32| {
        page(
            None,
            &[column("_col0", "varchar"), column("_col1", "bigint")],
            json!([["480", schemas]]),
        )
    };
    let wrote = || {
        Ok(raw(
            200,
            &[],
            results(None, json!({"updateCount": 1})).to_string(),
        )
        .unwrap())
    };
    let cases: [(Reply, &str); 4] = [
        (
            fails(
                "READ_ONLY_VIOLATION",
                "USER_ERROR",
                "Cannot execute write in a read-only transaction",
            ),
            "true",
        ),
        (
            fails(
                "NOT_SUPPORTED",
                "USER_ERROR",
                "This connector does not support inserts",
            ),
            "false",
        ),
        (wrote(), "false"),
        (
            fails("PERMISSION_DENIED", "USER_ERROR", "Access Denied"),
            "NULL",
        ),
    ];
    for (reply, wanted) in cases {
        let mut talk = Talk::usual();
        let id = talk.submit(Request::Ping(LIMITS));
        talk.hears(0, begun()).unwrap();
        assert_eq!(
            text(&talk.asked[0]),
            "SELECT version(), count(*) FROM \"lake\".information_schema.schemata WHERE schema_name = 'shop'"
        );
        talk.hears(0, look(1)).unwrap();
        assert_eq!(
            text(&talk.asked[0]),
            "INSERT INTO \"lake\".information_schema.schemata VALUES ('souk', 'souk')"
        );
        assert_eq!(
            header(&talk.asked[0], "x-trino-transaction-id"),
            Some(TRANSACTION)
        );
        talk.hears(0, reply).unwrap();
        talk.hears(0, ended()).unwrap();
        let answer = talk.ended(id).unwrap().ok();
        assert_eq!([answer.cell(0, 0), answer.cell(1, 0)], ["480", wanted]);
    }
    let mut talk = Talk::usual();
    let error = talk
        .ask(Request::Ping(LIMITS), [begun(), look(0), ended()])
        .error();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::Configuration, "unknown_schema")
    );
}

/// One statement, whose names are texts; rows become the contract's as they come.
#[test]
fn the_catalog_is_one_statement() {
    for include_fields in [true, false] {
        let mut talk = Talk::usual();
        let id = talk.submit(catalog(include_fields));
        talk.hears(0, begun()).unwrap();
        let statement = text(&talk.asked[0]).to_owned();
        assert!(
            statement.contains("\"lake\".information_schema.tables"),
            "{statement}"
        );
        assert!(
            statement.contains("t.table_name IN ('a', 'it''s')"),
            "{statement}"
        );
        assert_eq!(
            statement.contains("c.table_name IN ('a', 'it''s')"),
            include_fields
        );
        let columns: Vec<_> = (0..6)
            .map(|n| column(&format!("c{n}"), "varchar"))
            .collect();
        let rows = json!([
            ["shop", "a", "BASE TABLE", "id", "decimal(38,0)", "NO"],
            ["shop", "it's", "VIEW", "tags", "array(varchar)", "YES"]
        ]);
        talk.hears(0, page(Some(1), &columns, rows)).unwrap();
        talk.hears(0, page(None, &columns, json!([]))).unwrap();
        talk.hears(0, ended()).unwrap();
        let answer = talk.ended(id).unwrap().ok();
        let row = |row| (0..8).map(|at| answer.cell(at, row)).collect::<Vec<_>>();
        let (first, second) = match include_fields {
            true => (
                [
                    "shop",
                    "a",
                    "table",
                    "NULL",
                    "id",
                    "decimal(38,0)",
                    "false",
                    "false",
                ],
                [
                    "shop",
                    "it's",
                    "view",
                    "NULL",
                    "tags",
                    "array(varchar)",
                    "true",
                    "false",
                ],
            ),
            false => (
                ["shop", "a", "table", "NULL", "NULL", "NULL", "NULL", "NULL"],
                [
                    "shop", "it's", "view", "NULL", "NULL", "NULL", "NULL", "NULL",
                ],
            ),
        };
        assert_eq!(
            (row(0), row(1)),
            (
                first.map(String::from).to_vec(),
                second.map(String::from).to_vec()
            )
        );
    }
    // An empty one has columns, too.
    let mut talk = Talk::usual();
    let answer = talk
        .ask(
            catalog(true),
            [begun(), page(None, &[], json!([])), ended()],
        )
        .ok();
    assert_eq!((answer.columns.len(), answer.rows), (8, 0));
}
