//! What is asked of a workspace, and what becomes of its answers.

mod common;

use common::{
    ID, NOW, STATEMENTS, Talk, body, catalog, chunk, class_and_code, column, described, fails,
    header, is, manifest, numbers, ordered, query, raw, reply, rows, some_rows, text,
};
use serde_json::json;
use souk_sdk::{ErrorClass, HttpRequest, Limits, Request, Value, WireFault};
use souk_tests::wire::LIMITS;

/// A query is described, then run as it is, each without being waited for, in the connection's catalog and schema.
#[test]
fn a_query_is_described_and_run() {
    let mut talk = Talk::usual();
    let values = vec![Value::Int64(7), Value::Text("it's".into())];
    let id = talk.submit(query("SELECT ? AS n, ? AS t ;", values, LIMITS));
    let asked = talk.asked[0].clone();
    assert_eq!(
        (asked.method.as_str(), asked.path.as_str()),
        ("POST", STATEMENTS)
    );
    let parameters = json!([{"name": "souk_1", "value": "7", "type": "BIGINT"}, {"name": "souk_2", "value": "it's", "type": "STRING"}]);
    assert_eq!(
        body(&asked),
        json!({"statement": "DESCRIBE QUERY SELECT :souk_1 AS n, :souk_2 AS t ", "warehouse_id": "a1b2", "catalog": "lake", "schema": "shop",
            "parameters": parameters, "row_limit": 10_001, "disposition": "INLINE", "format": "JSON_ARRAY", "wait_timeout": "0s", "on_wait_timeout": "CONTINUE"})
    );
    talk.hears(0, is("PENDING")).unwrap();
    assert!(talk.asked.is_empty());
    talk.wakes();
    assert_eq!(talk.asked[0].method, "GET");
    assert_eq!(talk.asked[0].path, format!("{STATEMENTS}/{ID}"));
    talk.hears(0, described(&[("n", "bigint"), ("t", "string")]))
        .unwrap();
    let run = body(&talk.asked[0]);
    assert_eq!(run["statement"], "SELECT :souk_1 AS n, :souk_2 AS t ");
    assert_eq!(
        (&run["parameters"], &run["row_limit"]),
        (&parameters, &json!(100_001))
    );
    let columns = [column("n", "BIGINT"), column("t", "STRING")];
    talk.hears(0, rows(&columns, &json!([["7", "it's"], [null, "x"]])))
        .unwrap();
    let answer = talk.ended(id).unwrap().ok();
    assert_eq!(answer.rows, 2);
    assert_eq!(
        (answer.cell(0, 0), answer.cell(0, 1)),
        ("7".into(), "NULL".into())
    );
    assert_eq!(answer.cell(1, 0), "it's");
    // It is known now, with other values of these types.
    let values = vec![Value::Int64(8), Value::Text("x".into())];
    talk.submit(query("SELECT ? AS n, ? AS t", values, LIMITS));
    assert!(text(&talk.asked[0]).starts_with("DESCRIBE"), "another text");
    talk.asked.clear();
    let values = vec![Value::Int64(8), Value::Text("x".into())];
    talk.submit(query("SELECT ? AS n, ? AS t ;", values, LIMITS));
    assert!(!text(&talk.asked[0]).starts_with("DESCRIBE"));
    talk.asked.clear();
    talk.now = NOW + 301;
    let values = vec![Value::Int64(8), Value::Text("x".into())];
    talk.submit(query("SELECT ? AS n, ? AS t ;", values, LIMITS));
    assert!(
        text(&talk.asked[0]).starts_with("DESCRIBE"),
        "a while later"
    );
}

/// Where many ask the same text, one of them has it described again before five minutes are over, and the others go on. If that fails, each of them has.
#[test]
fn one_describes_for_all() {
    const MANY: usize = 16;
    let mut talk = Talk::usual();
    let descriptions = |talk: &mut Talk, seconds: u64| {
        talk.now = NOW + seconds;
        let submit = |_| talk.submit(query("SELECT 1", vec![], LIMITS));
        let ids: Vec<u32> = (0..MANY).map(submit).collect();
        let describes = |asked: &&HttpRequest| text(asked).starts_with("DESCRIBE");
        let count = talk.asked.iter().filter(describes).count();
        while let Some(asked) = talk.asked.first() {
            let reply = match text(asked).starts_with("DESCRIBE") {
                true => described(&[("n", "bigint")]),
                false => numbers(1),
            };
            talk.hears(0, reply).unwrap();
        }
        for id in ids {
            assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
        }
        count
    };
    assert_eq!(descriptions(&mut talk, 0), MANY, "nothing is known yet");
    assert_eq!(descriptions(&mut talk, 249), 0);
    assert_eq!(descriptions(&mut talk, 290), 1);
    assert_eq!(descriptions(&mut talk, 301), 0);
    talk.now = NOW + 580;
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    assert!(text(&talk.asked[0]).starts_with("DESCRIBE"));
    talk.hears(0, fails("no")).unwrap();
    assert!(talk.ended(id).is_some());
    assert_eq!(descriptions(&mut talk, 580), MANY);
}

/// What Databricks does not take for a query is not run.
#[test]
fn what_is_not_described_is_not_run() {
    let mut talk = Talk::usual();
    let id = talk.submit(query("WITH a AS (SELECT 1) DELETE FROM t", vec![], LIMITS));
    let refusal = "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'DELETE'. SQLSTATE: 42601";
    talk.hears(0, fails(refusal)).unwrap();
    assert!(talk.asked.is_empty());
    let error = talk.ended(id).unwrap().error();
    assert_eq!(class_and_code(&error), (ErrorClass::Source, "syntax_error"));
    // Nor what is described as nothing.
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    talk.hears(0, described(&[])).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "malformed_answer");
    assert!(talk.asked.is_empty());
}

/// In whichever order an answer has its members it is read, and told once.
#[test]
fn answers_have_any_order() {
    let described = manifest(&[column("n", "BIGINT")], json!({"total_row_count": 3}));
    let first = chunk(0, Some(1), &json!([["1"], [null]]));
    let mut whole = json!({"statement_id": ID, "status": {"state": "SUCCEEDED"}, "manifest": described, "result": first});
    let mut order = ["statement_id", "status", "manifest", "result"];
    for turn in 0..2 * order.len() {
        order.rotate_left(1);
        if turn == order.len() {
            order.reverse();
        }
        let replies = [
            ordered(&whole, &order),
            reply(chunk(1, None, &json!([["7"]]))),
        ];
        let answer = Talk::usual().rows_of(&["bigint"], replies).ok();
        assert_eq!((answer.rows, answer.chunks.len()), (3, 2), "{order:?}");
        assert_eq!(answer.cell(0, 0), "1", "{order:?}");
    }
    // Where they stand twice none are told twice.
    for twice in [
        ["manifest", "result", "result", "statement_id", "status"],
        ["result", "manifest", "result", "statement_id", "status"],
    ] {
        let replies = [ordered(&whole, &twice)];
        let error = Talk::usual().rows_of(&["bigint"], replies).error();
        assert_eq!(error.code, "malformed_answer", "{twice:?}");
    }
    // Rows of a statement that runs: none that are told, and none where that is said before.
    whole["status"]["state"] = "RUNNING".into();
    let behind = ["manifest", "result", "statement_id", "status"];
    let replies = [ordered(&whole, &behind)];
    let error = Talk::usual().rows_of(&["bigint"], replies).error();
    assert_eq!(error.code, "malformed_answer");
    let (mut talk, id) = Talk::asking();
    let before = ["statement_id", "status", "manifest", "result"];
    talk.hears(0, ordered(&whole, &before)).unwrap();
    talk.wakes();
    talk.hears(0, numbers(2)).unwrap();
    assert_eq!(talk.ended(id).unwrap().ok().rows, 2);
}

/// A result of several chunks is read one after the other; those without rows are chunks, too.
#[test]
fn chunks_follow_each_other() {
    let mut talk = Talk::usual();
    let columns = [column("n", "BIGINT")];
    let answer = talk.rows_of(
        &["bigint"],
        [
            some_rows(&columns, Some(3), Some(1), &json!([["1"]])),
            reply(chunk(1, Some(2), &json!([]))),
            reply(chunk(2, None, &json!([["2"], ["3"]]))),
        ],
    );
    assert_eq!(answer.ok().rows, 3);
    let (mut talk, _) = Talk::asking();
    talk.hears(0, some_rows(&columns, Some(3), Some(1), &json!([["1"]])))
        .unwrap();
    assert_eq!(
        talk.asked[0].path,
        format!("{STATEMENTS}/{ID}/result/chunks/1")
    );
    // An empty result says so by nothing.
    let mut talk = Talk::usual();
    let none = json!({"statement_id": ID, "status": {"state": "SUCCEEDED"}, "manifest": common::manifest(&columns, json!({}))});
    let answer = talk.rows_of(&["bigint"], [reply(none)]).ok();
    assert_eq!((answer.rows, answer.columns.len()), (0, 1));
}

/// Rows that were left out are told, never sold.
#[test]
fn what_is_truncated_is_no_result() {
    let truncated = |total: u64, limits: Limits| {
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT 1", vec![], limits));
        talk.hears(0, described(&[("n", "bigint")])).unwrap();
        let manifest = common::manifest(
            &[column("n", "BIGINT")],
            json!({"truncated": true, "total_row_count": total}),
        );
        let cut = json!({"statement_id": ID, "status": {"state": "SUCCEEDED"}, "manifest": manifest, "result": chunk(0, None, &json!([["1"]]))});
        talk.hears(0, reply(cut)).unwrap();
        let answer = talk.ended(id).unwrap();
        assert_eq!(answer.rows, 0);
        answer.error().code
    };
    let limits = |rows_max| Limits { rows_max, ..LIMITS };
    assert_eq!(truncated(2, limits(1)), "rows_limit");
    assert_eq!(truncated(1, limits(10)), "result_too_large");
    let mut talk = Talk::usual();
    let text = "Inline byte limit exceeded. Statements executed with disposition=INLINE can have a result size of at most 26214400 bytes.";
    let error = talk.rows_of(&["bigint"], [fails(text)]).error();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::LimitExceeded, "result_too_large")
    );
}

/// More rows or bytes than are allowed are no result either, whoever says that they are all.
#[test]
fn limits_are_held() {
    let within = |rows_max, bytes_max| {
        let mut talk = Talk::usual();
        let limits = Limits {
            rows_max,
            bytes_max,
            timeout_ms: 100,
        };
        let id = talk.submit(query("SELECT 1", vec![], limits));
        talk.hears(0, described(&[("n", "bigint")])).unwrap();
        assert_eq!(body(&talk.asked[0])["row_limit"], u64::from(rows_max) + 1);
        talk.hears(0, numbers(100)).unwrap();
        talk.ended(id)
            .unwrap()
            .end
            .unwrap()
            .map_err(|error| error.code)
    };
    assert_eq!(within(100, 800), Ok(()));
    assert_eq!(within(99, 800), Err("rows_limit".into()));
    assert_eq!(within(100, 799), Err("bytes_limit".into()));
}

/// Who runs is asked again after a pause that grows with the time that was waited.
#[test]
fn a_statement_is_waited_for() {
    let (mut talk, id) = Talk::waiting();
    let (mut waited, mut last) = (0, 0);
    for _ in 0..40 {
        let pause = talk.wakes();
        assert!(pause >= last && pause <= 1_000.min(10.max(waited / 4)));
        (waited, last) = (waited + pause, pause);
        talk.hears(0, is("RUNNING")).unwrap();
    }
    assert_eq!(last, 1_000);
    talk.wakes();
    talk.hears(0, numbers(3)).unwrap();
    assert_eq!(talk.ended(id).unwrap().ok().rows, 3);
}

/// Who is busy is asked again; a statement is begun anew only where it cannot have begun.
#[test]
fn who_is_busy_is_asked_again() {
    for (status, is_again) in [
        (503, true),
        (429, true),
        (502, false),
        (504, false),
        (500, false),
    ] {
        let (mut talk, id) = Talk::asking();
        let begun = talk.asked[0].body.clone();
        talk.hears(0, raw(status, &[], "busy")).unwrap();
        assert_eq!(talk.pauses.len(), usize::from(is_again), "{status}");
        match is_again {
            true => {
                assert_eq!(talk.wakes(), 100);
                assert_eq!(talk.asked[0].body, begun);
            }
            false => assert!(talk.ended(id).unwrap().end.unwrap().is_err()),
        }
    }
    let (mut talk, id) = Talk::waiting();
    talk.wakes();
    for _ in 0..6 {
        talk.hears(0, raw(502, &[], "")).unwrap();
        talk.wakes();
    }
    talk.hears(0, raw(502, &[], "")).unwrap();
    // It goes on: it is stopped.
    assert!(talk.asked[0].path.ends_with("/cancel"));
    talk.hears(0, reply(json!({}))).unwrap();
    assert_eq!(
        talk.ended(id).unwrap().error().class,
        ErrorClass::Unavailable
    );
}

/// The host sends a personal access token itself.
#[test]
fn a_personal_token_is_the_hosts() {
    let mut talk = Talk::usual();
    talk.submit(query("SELECT 1", vec![], LIMITS));
    assert_eq!(header(&talk.asked[0], "authorization"), None);
}

/// A catalog is one statement, with names as values.
#[test]
fn a_catalog_is_one_statement() {
    for include_fields in [false, true] {
        let mut talk = Talk::usual();
        let id = talk.submit(catalog(include_fields));
        let asked = body(&talk.asked[0]);
        let statement = asked["statement"].as_str().unwrap();
        assert!(
            statement.contains("`lake`.information_schema.tables"),
            "{statement}"
        );
        assert_eq!(asked["parameters"][1]["value"], "it's");
        let columns = ["a", "b", "c", "d", "e", "f"].map(|name| column(name, "STRING"));
        let list = json!([
            ["shop", "a", "MANAGED", "id", "decimal(10,2)", "NO"],
            ["shop", "b", "MATERIALIZED_VIEW", "x", "array<int>", "YES"]
        ]);
        talk.hears(0, rows(&columns, &list)).unwrap();
        let answer = talk.ended(id).unwrap().ok();
        assert_eq!(
            (answer.rows, answer.cell(2, 0), answer.cell(2, 1)),
            (2, "table".into(), "view".into())
        );
        let field = if include_fields {
            "decimal(10,2)"
        } else {
            "NULL"
        };
        assert_eq!(answer.cell(5, 0), field);
        assert_eq!(answer.cell(3, 0), "NULL");
    }
}

/// A connection's test says what refused a write, and what is not there.
#[test]
fn a_ping_sees_a_write_refused() {
    let ping = || Request::Ping(LIMITS);
    let looked = |schemas: &str| {
        rows(
            &[column("v", "STRING"), column("c", "BIGINT")],
            &json!([["2026.40", schemas]]),
        )
    };
    for (last, wanted) in [
        (fails("[PARSE_SYNTAX_ERROR] x SQLSTATE: 42601"), "true"),
        (described(&[("n", "int")]), "false"),
        (fails("[PERMISSION_DENIED] x SQLSTATE: 42501"), "NULL"),
    ] {
        let mut talk = Talk::usual();
        let id = talk.submit(ping());
        assert!(text(&talk.asked[0]).contains("`lake`.information_schema.schemata"));
        talk.hears(0, looked("1")).unwrap();
        assert_eq!(
            text(&talk.asked[0]),
            "DESCRIBE QUERY INSERT INTO souk VALUES (1)"
        );
        talk.hears(0, last).unwrap();
        let answer = talk.ended(id).unwrap().ok();
        assert_eq!(
            (answer.cell(0, 0), answer.cell(1, 0)),
            ("2026.40".into(), wanted.into())
        );
    }
    let mut talk = Talk::usual();
    let id = talk.submit(ping());
    talk.hears(0, looked("0")).unwrap();
    let error = talk.ended(id).unwrap().error();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::Configuration, "unknown_schema")
    );
}

/// Who is not Databricks is not told to stop anything.
#[test]
fn a_stranger_is_told_nothing() {
    for fault in [WireFault::Tls, WireFault::EgressRefused] {
        let (mut talk, id) = Talk::waiting();
        talk.wakes();
        talk.hears(0, Err(fault)).unwrap();
        assert!(talk.asked.is_empty());
        assert!(talk.ended(id).unwrap().end.unwrap().is_err());
    }
}

/// Requests do not wait for each other.
#[test]
fn requests_go_side_by_side() {
    let mut talk = Talk::usual();
    let first = talk.submit(query("SELECT 1", vec![], LIMITS));
    let second = talk.submit(query("SELECT 2", vec![], LIMITS));
    for _ in 0..2 {
        talk.hears(1, described(&[("n", "bigint")])).unwrap();
        talk.hears(0, described(&[("n", "bigint")])).unwrap();
        if talk.asked.len() == 2 {
            break;
        }
    }
    let place = |talk: &Talk, wanted: &str| {
        talk.asked
            .iter()
            .position(|asked| text(asked) == wanted)
            .unwrap()
    };
    let at = place(&talk, "SELECT 2");
    talk.hears(at, numbers(2)).unwrap();
    let at = place(&talk, "SELECT 1");
    talk.hears(at, numbers(1)).unwrap();
    assert_eq!(talk.ended(first).unwrap().ok().rows, 1);
    assert_eq!(talk.ended(second).unwrap().ok().rows, 2);
}
