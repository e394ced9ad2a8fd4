//! Answers that no Snowflake gives: each is an error of the source's, and nothing worse.

mod common;

use common::{
    HANDLE, Reply, Talk, column, number, packed, page, part, query, raw, refuses, reply, result,
    waits, wrapped,
};
use serde_json::{Value as Json, json};
use souk_sdk::{ErrorClass, Limits, WireFault};
use souk_tests::spoilt::Spoiler;
use souk_tests::wire::LIMITS;

/// How many ways the answers are spoilt in.
const ROUNDS: usize = 30_000;

/// Results of every type, with their rows behind and before what describes them, and of two parts; that a statement goes on, and a refusal.
fn answers() -> Vec<Vec<u8>> {
    let kinds = [
        ("real", "0.5"),
        ("text", "ä\"x"),
        ("boolean", "true"),
        ("binary", "414200"),
        ("date", "18262"),
        ("time", "82919.500000000"),
        ("timestamp_ntz", "1611871777.123456000"),
        ("timestamp_ltz", "2021-01-28T22:09:37.123456000+00:00"),
        ("timestamp_tz", "1616173619.000000000 960"),
        ("variant", "{\"a\":1.50}"),
        ("array", "[1,undefined]"),
        ("geography", "POINT(1 2)"),
    ];
    let mut columns = vec![number("N", 18, 0), number("D", 38, 2)];
    columns.extend(kinds.map(|(kind, _)| column(kind, kind, json!({"scale": 9}))));
    let mut row = vec!["12", "1.50"];
    row.extend(kinds.map(|(_, text)| text));
    let of_parts = |parts: &[usize]| result(&columns, json!([row, row]), parts);
    let body = |reply: Reply| reply.expect("a response").body;
    let unknown = "Object 'X' does not exist or not authorized.";
    vec![
        body(reply(200, of_parts(&[2]))),
        of_parts(&[2]).to_string().into_bytes(),
        body(reply(200, of_parts(&[2, 2]))),
        body(waits()),
        body(refuses(422, "002003", "42S02", unknown)),
    ]
}

/// Bytes changed, cut out, put in and doubled, thousands of ways: in a first answer, and in a part that comes packed.
#[test]
fn no_answer_makes_it_panic() {
    let mut spoiler = Spoiler::new(b"{}[]\",:0nt\\-9.eE\x1f\x8b\xff");
    let answers = answers();
    for answer in &answers[..2] {
        let whole = raw(200, &[], answer.clone());
        assert_eq!(Talk::usual().rows_of([whole]).ok().rows, 2);
    }
    let second = packed("{\"data\":[[\"2\"],[\"3\"]]}");
    let first = reply(200, result(&[number("N", 18, 0)], json!([["1"]]), &[1, 2]));
    let (mut whole, mut refused, mut open) = (0, 0, 0);
    let mut talk = Talk::usual();
    for round in 0..ROUNDS {
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        if round % 2 == 0 {
            let answer = answers[spoiler.below(answers.len())].clone();
            let bytes = spoiler.spoilt(&[answer]).concat();
            let status = [200, 200, 202, 422, 503][spoiler.below(5)];
            talk.hears(0, raw(status, &[], bytes)).unwrap();
        } else {
            talk.hears(0, first.clone()).unwrap();
            let bytes = spoiler.spoilt(std::slice::from_ref(&second)).concat();
            let packed = [("Content-Encoding", "gzip")];
            talk.hears(0, raw(200, &packed, bytes)).unwrap();
        }
        // What may go on for all that is known is looked for, and stopped.
        while talk
            .asked
            .first()
            .is_some_and(|asked| asked.method == "POST")
        {
            talk.hears(0, reply(200, json!({}))).unwrap();
        }
        match talk.ended(id).map(|answer| answer.end.unwrap()) {
            Some(Ok(())) => whole += 1,
            Some(Err(_)) => refused += 1,
            None => {
                open += 1;
                talk = Talk::usual();
            }
        }
        assert!(talk.asked.is_empty() && talk.pauses.is_empty());
    }
    println!("{whole} were read, {refused} refused, {open} go on");
    assert!(whole > 100 && refused > 1_000 && open > 100);
}

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
