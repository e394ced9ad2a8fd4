//! A server that lies: whatever it sends is an answer or an error, never a panic.

mod common;

use common::{ORDER, Talk, dry, field, job, ordered, page, query, raw, refuses, reply, waits};
use serde_json::{Value as Json, json};
use souk_sdk::{Input, Limits, Machine, Request, SchemaFilter};
use souk_tests::spoilt::Spoiler;
use souk_tests::wire::LIMITS;

/// How many ways the answers are spoilt in.
const ROUNDS: usize = 30_000;

fn answers() -> Vec<String> {
    let kinds = [
        ("INTEGER", "12"),
        ("FLOAT", "0.5"),
        ("NUMERIC", "1.5"),
        ("BOOLEAN", "true"),
        ("STRING", "ä\"x"),
        ("BYTES", "YWI="),
        ("DATE", "2024-02-29"),
        ("TIME", "12:00:00.5"),
        ("DATETIME", "2024-02-29T12:00:00"),
        ("TIMESTAMP", "1000"),
        ("JSON", "[1]"),
    ];
    let fields: Vec<Json> = kinds.iter().map(|(kind, _)| field(kind, kind)).collect();
    let cells: Vec<&str> = kinds.iter().map(|(_, cell)| *cell).collect();
    let nested = json!({"name": "r", "type": "RECORD", "mode": "REPEATED", "fields": fields});
    let inner: Vec<Json> = cells.iter().map(|cell| json!({"v": cell})).collect();
    let whole = page(json!(fields), &[json!(cells), json!(cells)], 2, None);
    let in_order = ordered(&whole, &ORDER).unwrap().body;
    vec![
        String::from_utf8(in_order).unwrap(),
        whole.to_string(),
        page(json!([nested]), &[json!([[{"v": {"f": inner}}]])], 1, None).to_string(),
        json!({"jobComplete": false, "jobReference": job()}).to_string(),
        json!({"error": {"code": 400, "message": "m", "errors": [{"reason": "invalidQuery"}]}})
            .to_string(),
    ]
}

#[test]
fn no_answer_makes_it_panic() {
    let mut spoiler = Spoiler::new(b"{}[]\",:0nt\\-9.eE");
    let answers = answers();
    let mut talk = Talk::usual();
    let (mut whole, mut refused, mut open) = (0, 0, 0);
    for _ in 0..ROUNDS {
        let answer = answers[spoiler.below(answers.len())].clone();
        let bytes = spoiler.spoilt(&[answer.into_bytes()]).concat();
        let status = [200, 200, 200, 400, 500][spoiler.below(5)];
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        if talk.asked[0].path.contains("/jobs?") {
            talk.hears(0, dry("SELECT")).unwrap();
        }
        talk.hears(0, raw(status, &[], bytes)).unwrap();
        match talk.ended(id).map(|answer| answer.end.unwrap()) {
            Some(Ok(())) => whole += 1,
            Some(Err(_)) => refused += 1,
            None => {
                open += 1;
                talk = Talk::usual();
            }
        }
    }
    println!("{whole} were read, {refused} refused, {open} not complete");
    assert!(whole > 100 && refused > 1_000 && open > 100);
}

/// What stands where it does not belong is not told again, at a multiple of its length: an answer has 24 MiB, a session 64.
#[test]
fn what_is_refused_is_not_repeated() {
    let long = Json::from("\u{7f}".repeat(10_000));
    let good = page(json!([field("n", "INTEGER")]), &[json!(["1"])], 1, None);
    for place in [
        "",
        "/jobComplete",
        "/schema",
        "/rows",
        "/rows/0",
        "/rows/0/f",
        "/rows/0/f/0",
        "/rows/0/f/0/v",
    ] {
        let mut answer = good.clone();
        *answer.pointer_mut(place).unwrap() = long.clone();
        let error = Talk::usual().rows_of(reply(answer)).error();
        assert_eq!(error.code, "malformed_answer", "{place}");
        let told = error.detail.unwrap_or_default();
        assert!(!told.contains("\\u{7f}\\u{7f}"), "{place}: {told}");
    }
    // Of what is asked for before, and of a job that goes on.
    let dry = json!({"statistics": {"query": {"statementType": "SELECT"}}});
    for place in ["", "/statistics", "/statistics/query"] {
        let mut answer = dry.clone();
        *answer.pointer_mut(place).unwrap() = long.clone();
        let error = Talk::usual()
            .ask(query("SELECT 1", vec![], LIMITS), [reply(answer)])
            .error();
        let told = error.detail.unwrap_or_default();
        assert!(!told.contains("\\u{7f}\\u{7f}"), "{place}: {told}");
    }
    let waits = json!({"jobComplete": false, "jobReference": long});
    let error = Talk::usual().rows_of(reply(waits)).error();
    assert_eq!(error.code, "malformed_answer");
    assert!(!error.detail.unwrap_or_default().contains("\\u{7f}"));
}

/// Small answers that become large.
#[test]
fn small_answers_stay_small() {
    let limits = Limits {
        bytes_max: 1 << 20,
        ..LIMITS
    };
    let mut talk = Talk::usual();
    // A long name is written with each value.
    let long = json!([{"name": "r", "type": "RECORD", "mode": "REPEATED", "fields": [field(&"n".repeat(100_000), "INTEGER")]}]);
    let cells: Vec<Json> = (0..10_000)
        .map(|_| json!({"v": {"f": [{"v": "1"}]}}))
        .collect();
    let answer = page(long, &[json!([cells])], 1, None);
    let request = query("SELECT 1", vec![], limits);
    let error = talk.ask(request, [dry("SELECT"), reply(answer)]).error();
    assert_eq!(error.code, "bytes_limit");
}

/// Answers that nobody asked for, to everything that is asked.
#[test]
fn strange_answers_are_borne() {
    let catalog = || {
        Request::Schema(SchemaFilter {
            schemas: vec![],
            tables: vec![],
            include_fields: true,
            limits: LIMITS,
        })
    };
    for body in [
        "",
        "{}",
        "[]",
        "null",
        "{\"error\":{}}",
        "{\"jobComplete\":true}",
        "{\"jobComplete\":true,\"schema\":{}}",
        "{\"jobComplete\":false}",
    ] {
        for status in [100, 200, 204, 304, 404, 500, 999] {
            let _ = Talk::open(json!({}), raw(status, &[], body));
            for request in [
                query("SELECT 1", vec![], LIMITS),
                Request::Ping(LIMITS),
                catalog(),
            ] {
                let mut talk = Talk::usual();
                talk.submit(request);
                talk.hears(0, raw(status, &[], body)).unwrap();
            }
            let mut talk = Talk::usual();
            talk.submit(query("SELECT 1", vec![], LIMITS));
            talk.hears(0, dry("SELECT")).unwrap();
            talk.hears(0, raw(status, &[], body)).unwrap();
            assert!(
                talk.asked.is_empty() && talk.pauses.is_empty(),
                "{status} {body}"
            );
        }
    }
    let mut talk = Talk::usual();
    for unknown in [Input::Woken(7), Input::Closed, Input::TlsEstablished] {
        talk.step(|session, step| session.receive(unknown, step))
            .unwrap();
    }
    // A refusal of what was complete already, and a pause that ends twice.
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    talk.hears(0, dry("SELECT")).unwrap();
    talk.hears(0, waits()).unwrap();
    let pause = talk.pauses[0].id;
    talk.wakes();
    talk.step(|session, step| session.receive(Input::Woken(pause), step))
        .unwrap();
    assert_eq!(talk.asked.len(), 1);
    talk.hears(0, refuses(404, "notFound", "Not found: Job"))
        .unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "not_found");
}
