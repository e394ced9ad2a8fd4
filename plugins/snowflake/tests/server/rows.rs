//! Rows are read in whichever order an answer has its members, part after part, piece by piece and within their limits.

use crate::common::{
    self, HANDLE, Talk, class_and_code, column, number, numbers, ordered, page, part, query, raw,
    reply, result,
};
use serde_json::json;
use souk_sdk::{ErrorClass, Limits};
use souk_tests::wire::LIMITS;

/// The parts of a result are asked for one after the other; none is left out, and no row.
#[test]
fn parts_follow_each_other() {
    let columns = [
        number("N", 18, 0),
        column("T", "text", json!({"length": 9})),
    ];
    let first = result(&columns, json!([["1", "a"]]), &[1, 2, 1]);
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    talk.hears(0, reply(200, first.clone())).unwrap();
    for (number, rows) in [
        (1, json!([["2", null], ["3", "c"]])),
        (2, json!([["4", "d"]])),
    ] {
        assert!(talk.ended(id).is_none());
        let path = format!("/api/v2/statements/{HANDLE}?partition={number}");
        assert_eq!(talk.asked[0].path, path);
        talk.hears(0, part(rows)).unwrap();
    }
    let answer = talk.ended(id).unwrap().ok();
    assert_eq!((answer.rows, answer.chunks.len()), (4, 3));
    // One that comes shorter than it was said to be is no answer.
    let short = [
        reply(200, first),
        part(json!([["2", null]])),
        part(json!([["4", "d"]])),
    ];
    let error = talk.rows_of(short).error();
    assert_eq!(class_and_code(&error), (ErrorClass::Source, "rows_missing"));
}

/// In whichever order an answer has its members it is read, and told once; later parts may come as they are, too.
#[test]
fn answers_have_any_order() {
    let first = result(&[number("N", 18, 0)], json!([["1"], [null]]), &[2, 1]);
    let mut order = ["resultSetMetaData", "data", "statementHandle"];
    for turn in 0..2 * order.len() {
        order.rotate_left(1);
        if turn == order.len() {
            order.reverse();
        }
        for last in [
            part(json!([["7"]])),
            raw(200, &[], r#"{"a":[[]],"data":[["7"]]}"#),
            raw(200, &[], r#"[["7"]]"#),
        ] {
            let mut talk = Talk::usual();
            let answer = talk.rows_of([ordered(&first, &order), last]).ok();
            assert_eq!((answer.rows, answer.chunks.len()), (3, 2), "{order:?}");
            assert_eq!(answer.cell(0, 0), "1", "{order:?}");
        }
    }
}

/// Rows are told as they are read. What stands behind them may spoil the answer, but tells nothing twice; and a statement that has ended is not
/// stopped for its rows.
#[test]
fn what_follows_rows_is_read() {
    let columns = [number("N", 18, 0)];
    let whole = result(&columns, json!([["1"]]), &[1]);
    let wrong = result(&columns, json!([["1"], ["x"]]), &[2]);
    for (answer, order) in [
        (
            &whole,
            ["resultSetMetaData", "data", "data", "statementHandle"],
        ),
        (
            &whole,
            ["data", "resultSetMetaData", "data", "statementHandle"],
        ),
        (
            &whole,
            ["data", "data", "resultSetMetaData", "statementHandle"],
        ),
        (
            &whole,
            ["resultSetMetaData", "code", "message", "statementHandle"],
        ),
        (
            &wrong,
            ["resultSetMetaData", "data", "message", "statementHandle"],
        ),
        (
            &wrong,
            ["data", "resultSetMetaData", "message", "statementHandle"],
        ),
    ] {
        let mut talk = Talk::usual();
        let error = talk.rows_of([ordered(answer, &order)]).error();
        assert_eq!(error.code, "malformed_answer", "{order:?}");
        assert!(talk.asked.is_empty(), "{order:?}");
    }
    // What has no name may go on for all that is known: it is asked for.
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    talk.hears(0, ordered(&whole, &["resultSetMetaData", "data"]))
        .unwrap();
    assert!(talk.asked[0].path.ends_with("&retry=true"));
    talk.hears(
        0,
        ordered(&whole, &["resultSetMetaData", "statementHandle"]),
    )
    .unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "malformed_answer");
    assert!(talk.asked.is_empty());
}

/// A part that becomes a large one is read piece by piece, with the host in between; who gives up does so between two pieces, too.
#[test]
fn a_large_part_is_read_in_pieces() {
    let rows: Vec<_> = (0..60_000).map(|n| json!([format!("{n:0>100}")])).collect();
    let columns = [column("T", "text", json!({}))];
    let first = result(&columns, json!([["first"]]), &[1, rows.len()]);
    for gives_up in [false, true] {
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        talk.hears(0, reply(200, first.clone())).unwrap();
        talk.hears(0, part(rows.clone().into())).unwrap();
        let mut pauses = 0;
        while !talk.pauses.is_empty() {
            pauses += 1;
            if gives_up && pauses == 2 {
                talk.cancel(id);
                assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
            }
            assert_eq!(talk.wakes(), 1);
        }
        assert!(talk.asked.is_empty());
        match gives_up {
            true => assert_eq!(pauses, 2),
            false => {
                assert!(pauses > 2, "{pauses}");
                let answer = talk.ended(id).unwrap().ok();
                assert_eq!(answer.rows as usize, 1 + rows.len());
            }
        }
    }
}

#[test]
fn limits_are_held() {
    let limits = Limits {
        rows_max: 3,
        bytes_max: 24,
        timeout_ms: 1_000,
    };
    let mut talk = Talk::usual();
    let mut ask = |replies: Vec<common::Reply>| {
        talk.ask(query("SELECT 1", vec![], limits), replies)
            .end
            .unwrap()
            .err()
            .map(|error| error.code)
    };
    assert_eq!(ask(vec![numbers(3)]), None);
    assert_eq!(ask(vec![numbers(4)]).as_deref(), Some("rows_limit"));
    let texts = |length: usize| {
        let row = json!(["x".repeat(length)]);
        page(&[column("T", "text", json!({}))], json!([row, row]))
    };
    assert_eq!(ask(vec![texts(12)]), None);
    assert_eq!(ask(vec![texts(13)]).as_deref(), Some("bytes_limit"));
    // A part that has more rows than were said.
    let first = result(&[number("N", 18, 0)], json!([["1"]]), &[1, 2]);
    let more = part(json!([["2"], ["3"], ["4"]]));
    let more = ask(vec![reply(200, first), more]);
    assert_eq!(more.as_deref(), Some("rows_limit"));
}
