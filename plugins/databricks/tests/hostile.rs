//! A workspace that lies: whatever it says there is an error, no panic, and no memory beyond what is allowed.

mod common;

use common::{
    ID, Talk, chunk, column, described, fails, is, manifest, numbers, query, raw, reply, rows,
    some_rows,
};
use serde_json::{Value as Json, json};
use souk_sdk::Limits;
use souk_tests::wire::LIMITS;

fn code_of(kinds: &[&str], answer: common::Reply) -> String {
    let mut talk = Talk::usual();
    talk.rows_of(kinds, [answer]).error().code
}

/// Answers that are none of the API's.
#[test]
fn what_is_no_answer_is_refused() {
    for body in [
        "",
        "null",
        "[]",
        "7",
        "{}",
        "<html>",
        r#"{"statement_id":""}"#,
        r#"{"statement_id":"a","status":{}}"#,
        r#"{"statement_id":"a","status":{"state":7}}"#,
        r#"{"statement_id":"","status":{"state":"PENDING"}}"#,
        r#"{"statement_id":"../../x","status":{"state":"PENDING"}}"#,
        r#"{"statement_id":"a?b","status":{"state":"PENDING"}}"#,
        r#"{"statement_id":"a","status":{"state":"SUCCEEDED"}}"#,
        r#"{"statement_id":"a","status":{"state":"SUCCEEDED"},"manifest":{}}"#,
        r#"{"statement_id":"a","status":{"state":"SUCCEEDED"},"manifest":{"schema":{}}}"#,
        r#"{"statement_id":"a","status":{"state":"SUCCEEDED"},"manifest":{"schema":{"columns":[]}}}"#,
        r#"{"statement_id":"a","status":{"state":"SUCCEEDED"},"manifest":{"schema":{"columns":[{"name":7}]}}}"#,
    ] {
        assert_eq!(
            code_of(&["bigint"], raw(200, &[], body)),
            "malformed_answer",
            "{body}"
        );
    }
    let long = "a".repeat(1_000);
    let answer = reply(json!({"statement_id": long, "status": {"state": "PENDING"}}));
    assert_eq!(code_of(&["bigint"], answer), "malformed_answer");
    assert_eq!(
        code_of(&["bigint"], raw(200, &[], vec![0xff; 100])),
        "malformed_answer"
    );
}

/// What stands where it does not belong is not told again, at a multiple of its length: an answer has 24 MiB, a session 64.
/// The description of columns has its own bound.
#[test]
fn what_is_refused_is_not_repeated() {
    let long = Json::from("\u{7f}".repeat(10_000));
    let good = json!({"statement_id": ID, "status": {"state": "SUCCEEDED", "error": null}, "manifest": manifest(&[column("n", "BIGINT")], json!({"total_row_count": 1})), "result": chunk(0, Some(1), &json!([["1"]]))});
    let places = [
        "",
        "/status",
        "/status/state",
        "/status/error",
        "/manifest",
        "/manifest/schema",
        "/manifest/truncated",
        "/manifest/total_row_count",
        "/result",
        "/result/chunk_index",
        "/result/next_chunk_index",
        "/result/data_array",
        "/result/data_array/0",
        "/result/data_array/0/0",
    ];
    for place in places {
        let mut answer = good.clone();
        *answer.pointer_mut(place).unwrap() = long.clone();
        let mut talk = Talk::usual();
        let error = talk.rows_of(&["bigint"], [reply(answer)]).error();
        assert_eq!(error.code, "malformed_answer", "{place}");
        let told = error.detail.unwrap_or_default();
        assert!(!told.contains("\\u{7f}\\u{7f}"), "{place}: {told}");
    }
}

/// Rows that are not what the columns say.
#[test]
fn rows_that_do_not_fit_are_refused() {
    let columns = [column("n", "BIGINT")];
    for list in [
        json!([[]]),
        json!([["1", "2"]]),
        json!([[1]]),
        json!([["x"]]),
        json!([["9223372036854775808"]]),
        json!([[["1"]]]),
        json!(["1"]),
        json!({"a": 1}),
        json!("rows"),
        json!([["1"], null]),
    ] {
        assert_eq!(
            code_of(&["bigint"], rows(&columns, &list)),
            "malformed_answer",
            "{list}"
        );
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = format!(
        r#"{{"statement_id":"{ID}","status":{{"state":"SUCCEEDED"}},"manifest":{},"result":{{"chunk_index":0,"data_array":[[{deep}]]}}}}"#,
        manifest(&columns, json!({}))
    );
    assert_eq!(
        code_of(&["bigint"], raw(200, &[], deep)),
        "malformed_answer"
    );
    let wide: Json = json!([vec!["1"; 20_000]]);
    assert_eq!(
        code_of(&["bigint"], rows(&columns, &wide)),
        "malformed_answer"
    );
}

/// Of other types than were described.
#[test]
fn columns_that_change_are_told() {
    for (kinds, columns) in [
        (&["bigint"][..], vec![column("n", "TIMESTAMP")]),
        (&["bigint"], vec![column("n", "ARRAY<INT>")]),
        (&["timestamp"], vec![column("n", "TIMESTAMP")]),
        (&["timestamp"], vec![column("n", "STRING")]),
        (&["array<int>"], vec![column("n", "BIGINT")]),
        (&["timestamp", "int"], vec![column("n", "BIGINT")]),
    ] {
        let mut talk = Talk::usual();
        let list = json!([["1"]]);
        let error = talk.rows_of(kinds, [rows(&columns, &list)]).error();
        assert_eq!(error.code, "columns_changed", "{kinds:?} {columns:?}");
        // It is described anew.
        talk.submit(query("SELECT 1", vec![], LIMITS));
        assert!(common::text(&talk.asked[0]).starts_with("DESCRIBE"));
    }
}

/// A table that has a column more or less by now; a statement of the seller's that counts wrong is the seller's.
#[test]
fn columns_that_are_counted_anew_are_told() {
    let text = "[ASSIGNMENT_ARITY_MISMATCH] The number of columns or variables assigned or aliased: 2 does not match the number of source expressions: 1. SQLSTATE: 42802";
    for (kind, code) in [("timestamp", "columns_changed"), ("int", "sql_error")] {
        let mut talk = Talk::usual();
        let error = talk.rows_of(&[kind], [fails(text)]).error();
        assert_eq!(error.code, code, "{kind}");
    }
}

/// Chunks that lead back, on and on, or elsewhere.
#[test]
fn chunks_that_lead_nowhere_are_refused() {
    let columns = [column("n", "BIGINT")];
    let one = json!([["1"]]);
    let mut talk = Talk::usual();
    let error = talk
        .rows_of(&["bigint"], [some_rows(&columns, Some(2), Some(0), &one)])
        .error();
    assert_eq!(error.code, "malformed_answer");
    let mut talk = Talk::usual();
    let back = [
        some_rows(&columns, Some(2), Some(1), &one),
        reply(chunk(1, Some(1), &one)),
    ];
    assert_eq!(
        talk.rows_of(&["bigint"], back).error().code,
        "malformed_answer"
    );
    // One is left out.
    let mut talk = Talk::usual();
    let over = [
        some_rows(&columns, Some(2), Some(2), &one),
        reply(chunk(2, None, &one)),
    ];
    assert_eq!(
        talk.rows_of(&["bigint"], over).error().code,
        "malformed_answer"
    );
    let mut elsewhere = chunk(0, None, &json!([]));
    elsewhere["external_links"] = json!([{"external_link": "https://evil.example.com"}]);
    let answer = json!({"statement_id": ID, "status": {"state": "SUCCEEDED"}, "manifest": manifest(&columns, json!({})), "result": elsewhere});
    assert_eq!(code_of(&["bigint"], reply(answer)), "malformed_answer");
    // Endless, and empty.
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    talk.hears(0, described(&[("n", "bigint")])).unwrap();
    talk.hears(0, some_rows(&columns, Some(1), Some(1), &json!([])))
        .unwrap();
    let mut number = 1;
    while !talk.asked.is_empty() {
        talk.hears(0, reply(chunk(number, Some(number + 1), &json!([]))))
            .unwrap();
        number += 1;
        assert!(number <= 10_001);
    }
    assert_eq!(talk.ended(id).unwrap().error().code, "malformed_answer");
}

/// Fewer or more rows than there are said to be are no result, nor is another chunk than was asked for.
#[test]
fn rows_are_counted() {
    let columns = [column("n", "BIGINT")];
    let said = |total: usize, list: &Json, next| some_rows(&columns, Some(total), next, list);
    let two = json!([["1"], ["2"]]);
    assert_eq!(code_of(&["bigint"], said(3, &two, None)), "rows_missing");
    assert_eq!(code_of(&["bigint"], said(1, &two, None)), "rows_missing");
    // Who does not count them has none.
    let uncounted = |list: &Json| some_rows(&columns, None, None, list);
    assert_eq!(code_of(&["bigint"], uncounted(&two)), "rows_missing");
    let mut talk = Talk::usual();
    let none = talk.rows_of(&["bigint"], [uncounted(&json!([]))]);
    assert_eq!(none.ok().rows, 0);
    let mut talk = Talk::usual();
    assert_eq!(
        talk.rows_of(&["bigint"], [said(2, &two, None)]).ok().rows,
        2
    );
    for (total, last, code) in [
        (4, chunk(1, None, &two), None),
        (5, chunk(1, None, &two), Some("rows_missing")),
        (4, chunk(0, None, &two), Some("malformed_answer")),
        (4, chunk(2, None, &two), Some("malformed_answer")),
    ] {
        let mut talk = Talk::usual();
        let answer = talk.rows_of(&["bigint"], [said(total, &two, Some(1)), reply(last)]);
        let end = answer.end.unwrap().err().map(|error| error.code);
        assert_eq!(end.as_deref(), code);
    }
}

/// Descriptions without an end.
#[test]
fn descriptions_have_bounds() {
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    let many: Vec<(&str, &str)> = vec![("a", "int"); 10_001];
    talk.hears(0, described(&many)).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "columns_too_long");
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    let long = "x".repeat(2 << 20);
    talk.hears(0, described(&[(&long, "int")])).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "columns_too_long");
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    let parts = [column("a", "STRING")];
    talk.hears(0, rows(&parts, &json!([["a"]]))).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "malformed_answer");
    let columns = vec![column("a", "INT"); 10_001];
    let list = json!([]);
    assert_eq!(code_of(&["int"], rows(&columns, &list)), "columns_too_long");
}

/// A value that is larger than all that is allowed is not copied first.
#[test]
fn values_have_bounds() {
    let mut talk = Talk::usual();
    let limits = Limits {
        bytes_max: 1_000,
        ..LIMITS
    };
    let id = talk.submit(query("SELECT 1", vec![], limits));
    talk.hears(0, described(&[("n", "string")])).unwrap();
    assert!(talk.asked[0].response_bytes_max <= 24 << 20);
    let list = json!([["x".repeat(5 << 20)]]);
    talk.hears(0, rows(&[column("n", "STRING")], &list))
        .unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "bytes_limit");
}

/// The beginning of a good answer is none; whatever byte of it is another, nothing panics.
#[test]
fn no_byte_makes_it_panic() {
    let columns = [column("n", "BIGINT"), column("t", "STRING")];
    let Ok(good) = rows(&columns, &json!([["1", "a\"ä"], [null, "b"]])) else {
        unreachable!("a reply");
    };
    for at in 0..good.body.len() {
        for with in [b'"', b'[', b'}', b'\\', 0xff, b'0'] {
            let mut body = good.body.clone();
            body[at] = with;
            let mut talk = Talk::usual();
            drop(talk.rows_of(&["bigint", "string"], [raw(200, &[], body)]));
        }
        let mut talk = Talk::usual();
        let cut = raw(200, &[], &good.body[..at]);
        let error = talk.rows_of(&["bigint", "string"], [cut]).error();
        assert_eq!(error.code, "malformed_answer");
    }
}

/// What nobody asked for is passed over.
#[test]
fn strange_answers_are_passed_over() {
    let (mut talk, id) = Talk::asking();
    let asked = talk.asked[0].clone();
    talk.hears(0, is("RUNNING")).unwrap();
    talk.asked.push(asked);
    talk.hears(0, numbers(3)).unwrap();
    assert!(talk.ended(id).is_none());
    talk.wakes();
    talk.hears(0, numbers(2)).unwrap();
    assert_eq!(talk.ended(id).unwrap().ok().rows, 2);
}
