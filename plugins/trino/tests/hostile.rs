//! A coordinator that lies: whatever it sends is an answer or an error, never a panic, and it leads nowhere else.

mod common;

use common::{BEGIN, Talk, begun, catalog, column, page, query, raw, reply, results, text};
use serde_json::{Value as Json, json};
use souk_sdk::{HttpRequest, Input, Limits, Machine, Request};
use souk_tests::spoilt::Spoiler;
use souk_tests::wire::LIMITS;

/// How many ways the answers are spoilt in.
const ROUNDS: usize = 30_000;

fn answers() -> Vec<String> {
    let kinds = [
        ("bigint", json!(12)),
        ("double", json!(0.5)),
        ("decimal(3,1)", json!("1.5")),
        ("boolean", json!(true)),
        ("varchar", json!("ä\"x")),
        ("varbinary", json!("YWI=")),
        ("date", json!("2024-02-29")),
        ("time(3)", json!("12:00:00.500")),
        ("timestamp(3)", json!("2024-02-29 12:00:00.000")),
        (
            "timestamp(3) with time zone",
            json!("2024-02-29 12:00:00.000 +01:00"),
        ),
        ("json", json!("[1]")),
        ("map(varchar,bigint)", json!({"a": 1})),
    ];
    let columns: Vec<Json> = kinds.iter().map(|(kind, _)| column(kind, kind)).collect();
    let cells: Vec<&Json> = kinds.iter().map(|(_, cell)| cell).collect();
    let names: Vec<String> = kinds
        .iter()
        .map(|(kind, _)| format!("\"f\" {kind}"))
        .collect();
    let nested = column("r", &format!("array(row({}))", names.join(",")));
    let error = json!({"message": "m", "errorName": "SYNTAX_ERROR", "errorType": "USER_ERROR"});
    vec![
        results(None, json!({"columns": columns, "data": [cells, cells]})).to_string(),
        format!(
            r#"{{"data":[{cells}],"columns":{columns},"id":"q"}}"#,
            cells = json!(cells),
            columns = json!(columns)
        ),
        results(Some(1), json!({"columns": [nested], "data": [[[cells]]]})).to_string(),
        results(Some(2), json!({})).to_string(),
        results(None, json!({"error": error})).to_string(),
    ]
}

/// Whether a request is one that the session may make, whatever it heard.
fn is_ours(request: &HttpRequest) -> bool {
    match request.method.as_str() {
        "POST" => {
            request.path == "/v1/statement" && ["SELECT 1", "ROLLBACK"].contains(&text(request))
        }
        _ => request.path.starts_with("/v1/statement/"),
    }
}

#[test]
fn no_answer_makes_it_panic() {
    let mut spoiler = Spoiler::new(b"{}[]\",:0nt\\-9.eE()");
    let answers = answers();
    let (mut whole, mut refused, mut open) = (0, 0, 0);
    let mut talk = Talk::usual();
    for _ in 0..ROUNDS {
        let answer = answers[spoiler.below(answers.len())].clone();
        let bytes = spoiler.spoilt(&[answer.into_bytes()]).concat();
        let status = [200, 200, 200, 400, 503][spoiler.below(5)];
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        if text(&talk.asked[0]) == BEGIN {
            talk.hears(0, begun()).unwrap();
        }
        talk.hears(0, raw(status, &[], bytes)).unwrap();
        assert!(talk.asked.iter().all(is_ours), "{:?}", talk.asked);
        while talk
            .asked
            .first()
            .is_some_and(|last| last.method == "DELETE" || text(last) == "ROLLBACK")
        {
            talk.hears(0, raw(204, &[], "")).unwrap();
        }
        match talk.ended(id).map(|answer| answer.end.unwrap()) {
            Some(Ok(())) => whole += 1,
            Some(Err(_)) => refused += 1,
            None => {
                open += 1;
                talk = Talk::usual();
            }
        }
    }
    println!("{whole} were read, {refused} refused, {open} go on");
    assert!(whole > 100 && refused > 1_000 && open > 100);
}

/// An answer that goes on elsewhere is followed nowhere, and told.
#[test]
fn nothing_is_asked_elsewhere() {
    for link in [
        "https://evil.example.com/v1/statement/executing/a/b/1",
        "http://trino.example.com:8443/v1/statement/executing/a/b/1",
        "https://trino.example.com/v1/statement/executing/a/b/1",
        "https://trino.example.com:8443/v1/query/a",
        "https://trino.example.com:8443/v1/statement/../../ui",
        "https://trino.example.com:8443/v1/statement/%2e%2e/%2E%2E/ui",
        "https://trino.example.com:8443/v1/statement/a%0d%0ab c",
        "/v1/statement/executing/a/b/1",
        "",
    ] {
        let mut talk = Talk::usual();
        let answer = reply(results(None, json!({"nextUri": link})));
        let error = talk.rows_of([answer]).error();
        assert_eq!(error.code, "led_away", "{link}");
        assert_eq!(error.detail.as_deref(), Some(link));
    }
    // What went on at the right place before is stopped there.
    let (mut talk, id) = Talk::asking();
    talk.hears(0, common::waits(4)).unwrap();
    talk.hears(
        0,
        reply(results(
            None,
            json!({"nextUri": "https://evil.example.com/v1/statement/a"}),
        )),
    )
    .unwrap();
    assert_eq!(talk.asked[0].method, "DELETE");
    assert_eq!(talk.asked[0].path, format!("{}4", common::PATH));
    talk.hears(0, raw(204, &[], "")).unwrap();
    talk.hears(0, common::ended()).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "led_away");
}

/// Columns that change, that come too late, or that are too many.
#[test]
fn columns_are_held_to_what_they_were() {
    let one = [column("n", "bigint")];
    let (mut talk, id) = Talk::asking();
    talk.hears(0, page(Some(1), &one, json!([[1]]))).unwrap();
    talk.hears(0, page(None, &[column("n", "varchar")], json!([["x"]])))
        .unwrap();
    while !talk.asked.is_empty() {
        talk.hears(0, raw(204, &[], "")).unwrap();
    }
    assert_eq!(talk.ended(id).unwrap().error().code, "malformed_answer");
    let early = reply(results(None, json!({"data": [[1]]})));
    assert_eq!(
        Talk::usual().rows_of([early]).error().code,
        "malformed_answer"
    );
    let many: Vec<Json> = (0..10_001)
        .map(|at| column(&format!("c{at}"), "bigint"))
        .collect();
    let error = Talk::usual()
        .rows_of([page(None, &many, json!([]))])
        .error();
    assert_eq!(error.code, "too_many_fields");
    let deep = format!("{}bigint{}", "array(".repeat(100), ")".repeat(100));
    let error = Talk::usual()
        .rows_of([page(None, &[column("d", &deep)], json!([]))])
        .error();
    assert_eq!(error.code, "too_deep");
}

/// What stands where it does not belong is not told again, at a multiple of its length: an answer has 16 MiB.
#[test]
fn what_is_refused_is_not_repeated() {
    let long = Json::from("\u{7f}".repeat(10_000));
    let place = json!({"lineNumber": 1, "columnNumber": 2});
    let fails = json!({"message": "m", "errorName": "SYNTAX_ERROR", "errorType": "USER_ERROR", "errorLocation": place});
    let rows = results(
        None,
        json!({"columns": [column("n", "bigint")], "data": [[1]]}),
    );
    let fails = results(None, json!({"error": fails}));
    for (good, place) in [
        (&rows, ""),
        (&rows, "/data"),
        (&rows, "/data/0"),
        (&rows, "/data/0/0"),
        (&fails, "/error"),
        (&fails, "/error/errorLocation"),
        (&fails, "/error/errorLocation/lineNumber"),
        (&fails, "/error/errorLocation/columnNumber"),
    ] {
        let mut answer = good.clone();
        *answer.pointer_mut(place).unwrap() = long.clone();
        let error = Talk::usual().rows_of([reply(answer)]).error();
        assert_eq!(error.code, "malformed_answer", "{place}");
        let told = error.detail.unwrap_or_default();
        assert!(!told.contains("\\u{7f}\\u{7f}"), "{place}: {told}");
    }
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
    let long = column(
        "r",
        &format!("array(row(\"{}\" bigint))", "n".repeat(100_000)),
    );
    let cells: Vec<Json> = (0..10_000).map(|_| json!([1])).collect();
    let answer = page(None, &[long], json!([[cells]]));
    let replies = [begun(), answer, common::ended()];
    let error = talk.ask(query("SELECT 1", vec![], limits), replies).error();
    assert_eq!(error.code, "bytes_limit");
}

/// Of a page that has more rows than are allowed no more are looked at: what stands behind them is not even JSON of a row.
#[test]
fn rows_are_read_as_far_as_they_are_told() {
    let limits = |rows_max| Limits { rows_max, ..LIMITS };
    let body = r#"{"id":"q","columns":[{"name":"n","type":"bigint"}],"data":[[1],[2],[3],"x"]}"#;
    for (rows_max, code) in [(2, "rows_limit"), (3, "malformed_answer")] {
        let replies = [begun(), raw(200, &[], body), common::ended()];
        let asked = query("SELECT 1", vec![], limits(rows_max));
        let error = Talk::usual().ask(asked, replies).error();
        assert_eq!(error.code, code);
    }
    let mut row = vec!["1"; 10_000].join(",");
    for code in [None, Some("malformed_answer")] {
        let columns: Vec<Json> = (0..10_000).map(|_| column("n", "bigint")).collect();
        let columns = Json::from(columns);
        let body = format!("{{\"id\":\"q\",\"columns\":{columns},\"data\":[[{row}]]}}");
        let answer = Talk::usual().rows_of([raw(200, &[], body)]);
        match code {
            None => assert_eq!(answer.ok().rows, 1),
            Some(code) => assert_eq!(answer.error().code, code),
        }
        row.push_str(",1");
    }
}

/// What columns are called is bounded, and so is what a session remembers of them.
#[test]
fn names_of_columns_stay_small() {
    let named = |bytes: usize| {
        let answer = page(None, &[column(&"n".repeat(bytes), "bigint")], json!([[7]]));
        Talk::usual().rows_of([answer])
    };
    assert_eq!(named((1 << 20) - 200).ok().rows, 1);
    assert_eq!(named(1 << 20).error().code, "columns_too_long");
    let mut talk = Talk::usual();
    for round in 0..10 {
        for number in 0..3 {
            let name = format!("{round}{}{number}", "n".repeat(900_000));
            let answer = page(None, &[column(&name, "bigint")], json!([[7]]));
            let answer = talk.rows_of([answer]).ok();
            assert_eq!(answer.columns[0].name, name);
        }
    }
}

/// Answers that nobody asked for, to everything that is asked.
#[test]
fn strange_answers_are_borne() {
    for body in [
        "",
        "{}",
        "[]",
        "null",
        "{\"id\":\"\"}",
        "{\"id\":\"a\",\"error\":{}}",
        "{\"id\":\"a\",\"columns\":[],\"data\":[]}",
        "{\"id\":7}",
        "{\"id\":\"a\",\"columns\":{}",
    ] {
        for status in [100, 200, 204, 304, 404, 500, 999] {
            for request in [
                query("SELECT 1", vec![], LIMITS),
                Request::Ping(LIMITS),
                catalog(true),
            ] {
                for begins in [false, true] {
                    let mut talk = Talk::usual();
                    let id = talk.submit(request.clone());
                    if begins {
                        talk.hears(0, begun()).unwrap();
                    }
                    for _ in 0..4 {
                        if !talk.asked.is_empty() {
                            talk.hears(0, raw(status, &[], body)).unwrap();
                        }
                    }
                    assert!(
                        talk.asked.is_empty() && talk.pauses.is_empty(),
                        "{status} {body}"
                    );
                    assert!(talk.ended(id).is_some(), "{status} {body}");
                }
            }
        }
    }
    let mut talk = Talk::usual();
    for unknown in [Input::Woken(7), Input::Closed, Input::TlsEstablished] {
        talk.step(|session, step| session.receive(unknown, step))
            .unwrap();
    }
}
