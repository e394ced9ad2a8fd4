//! Answers that no Snowflake gives: each is an error of the source's, and nothing worse.

mod common;

use common::{
    HANDLE, Talk, column, number, packed, page, part, query, raw, reply, result, waits, wrapped,
};
use serde_json::{Value as Json, json};
use souk_sdk::{ErrorClass, Limits, WireFault};
use souk_tests::wire::LIMITS;

#[test]
fn what_is_no_answer_is_the_sources_failure() {
    let columns = [number("N", 18, 0)];
    let with = |name: &str, value: Json| {
        let mut body = result(&columns, json!([["1"]]), &[1]);
        body[name] = value;
        reply(200, body)
    };
    let meta = |name: &str, value: Json| {
        let mut body = result(&columns, json!([["1"]]), &[1]);
        body["resultSetMetaData"][name] = value;
        reply(200, body)
    };
    let mut talk = Talk::usual();
    for answer in [
        raw(200, &[], ""),
        raw(200, &[], "<html>"),
        raw(200, &[], "null"),
        raw(200, &[], packed("{")),
        raw(202, &[], "{}"),
        reply(202, json!({"statementHandle": "../../session"})),
        reply(202, json!({"statementHandle": "a".repeat(65)})),
        reply(202, json!({"statementHandle": 7})),
        with("data", json!([["1", "2"]])),
        with("data", json!([[]])),
        with("data", json!([["x"]])),
        with("data", json!([[1.5]])),
        with("data", json!([["9223372036854775808"]])),
        with("data", json!("Multiple statements executed successfully.")),
        with("data", json!([["1"], ["2"]])),
        with("data", json!([])),
        with("statementHandle", json!(null)),
        with("resultSetMetaData", json!(null)),
        meta("rowType", json!([])),
        meta("numRows", json!(-1)),
        meta("numRows", json!("1")),
        meta("numRows", json!(2)),
        meta("partitionInfo", json!(vec![json!({}); 10_001])),
        raw(204, &[], ""),
        raw(302, &[("Location", "https://elsewhere")], ""),
        Err(WireFault::BadResponse),
    ] {
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        talk.hears(0, answer.clone()).unwrap();
        // What may go on for all that is known is stopped.
        if !talk.asked.is_empty() {
            talk.hears(0, reply(200, json!({}))).unwrap();
        }
        let error = talk.ended(id).unwrap().error();
        let class = match &answer {
            Ok(response) if response.status == 302 => ErrorClass::Configuration,
            _ => ErrorClass::Source,
        };
        assert_eq!(error.class, class, "{answer:?}: {error:?}");
        assert!(talk.asked.is_empty(), "{answer:?}");
    }
}

#[test]
fn values_that_are_none_are_refused() {
    for (kind, value) in [
        ("fixed", "1e5"),
        ("fixed", ""),
        ("real", "x"),
        ("real", "1.797693134862316e+308"),
        ("boolean", "TRUE"),
        ("binary", "abc"),
        ("date", "99999999999"),
        ("time", "86400"),
        ("timestamp_ntz", "99999999999999999999"),
        ("timestamp_tz", "1 1440 1"),
        ("object", "{"),
        ("array", "[1"),
    ] {
        let columns = [column("C", kind, json!({}))];
        let error = Talk::usual()
            .rows_of([page(&columns, json!([[value]]))])
            .error();
        assert_eq!(error.code, "malformed_answer", "{kind} {value}");
    }
}

/// A part that breaks off, or is another thing than it was said to be, ends the result.
#[test]
fn parts_may_be_broken() {
    let first = || reply(200, result(&[number("N", 18, 0)], json!([["1"]]), &[1, 1]));
    let mut cut = packed("{\"data\":[[\"2\"]]}");
    cut.truncate(cut.len() - 5);
    for answer in [
        raw(200, &[], cut),
        raw(200, &[], "{\"code\":\"090001\"}"),
        part(json!([["2", "3"]])),
        part(json!([])),
        part(json!({})),
        waits(),
        Err(WireFault::Reset),
        raw(404, &[], ""),
    ] {
        let mut talk = Talk::usual();
        let error = talk.rows_of([first(), answer.clone()]).error();
        assert_ne!(error.class, ErrorClass::Internal, "{answer:?}");
        assert!(talk.asked.is_empty(), "{answer:?}");
    }
}

/// Who says forever that a statement goes on is not believed.
#[test]
fn no_statement_goes_on_forever() {
    let (mut talk, id) = Talk::waiting();
    for _ in 0..100_000 {
        if talk.asked[0].path.ends_with("/cancel") {
            break;
        }
        talk.hears(0, waits()).unwrap();
        if !talk.pauses.is_empty() {
            talk.wakes();
        }
    }
    let stop = format!("/api/v2/statements/{HANDLE}/cancel");
    assert_eq!(talk.asked[0].path, stop);
    talk.hears(0, raw(200, &[], "{}")).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "endless");
}

/// However much a small answer becomes, no more of it is told than is allowed, and none is held.
#[test]
fn a_bomb_does_not_burst() {
    let limits = Limits {
        rows_max: 1_000_000,
        bytes_max: 1 << 20,
        timeout_ms: 1_000,
    };
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], limits));
    let columns = [column("T", "text", json!({}))];
    talk.hears(0, reply(200, result(&columns, json!([["1"]]), &[1, 1_000])))
        .unwrap();
    let rows = vec![json!(["x".repeat(100_000)]); 1_000];
    talk.hears(0, part(rows.into())).unwrap();
    assert_eq!(talk.wakes(), 1);
    assert_eq!(talk.ended(id).unwrap().error().code, "bytes_limit");
    assert!(talk.asked.is_empty() && talk.pauses.is_empty());
}

/// Parts of many requests come at once: one is unpacked at a time, few wait beside it, and the others are asked for again.
#[test]
fn parts_of_many_requests_have_a_bound() {
    let limits = Limits {
        bytes_max: 64 << 20,
        ..LIMITS
    };
    let rows = vec![json!(["x".repeat(1 << 20)]); 7];
    let body = wrapped(&json!({"data": rows}).to_string());
    assert!(body.len() > 7 << 20 && body.len() < 8 << 20);
    let columns = [column("T", "text", json!({}))];
    let first = result(&columns, json!([["1"]]), &[1, 7]);
    let mut talk = Talk::usual();
    let ids: Vec<u32> = (0..6)
        .map(|_| {
            let id = talk.submit(query("SELECT 1", vec![], limits));
            let last = talk.asked.len() - 1;
            talk.hears(last, reply(200, first.clone())).unwrap();
            id
        })
        .collect();
    assert_eq!((talk.asked.len(), talk.pauses.len()), (6, 0));
    let (mut came, mut ended) = (0, 0);
    for _ in 0..1_000 {
        while !talk.asked.is_empty() {
            assert!(talk.asked[0].path.ends_with("?partition=1"));
            talk.hears(0, raw(200, &[], body.clone())).unwrap();
            came += 1;
        }
        assert_eq!(talk.pauses.len(), 1, "one is unpacked");
        // Of those that wait, one gives up.
        if came == 7 && ended == 1 {
            talk.cancel(ids[5]);
        }
        assert_eq!(talk.wakes(), 1);
        let more = ids[..5].iter().filter(|id| talk.ended(**id).is_some());
        ended += more.count();
        if ended == 5 {
            break;
        }
    }
    assert_eq!(ended, 5);
    assert_eq!(talk.ended(ids[5]).unwrap().error().code, "cancelled");
    // Two had room at once; each of the others came twice, but for the one that gave up.
    assert_eq!(came, 9);
    assert!(talk.asked.is_empty() && talk.pauses.is_empty());
}
