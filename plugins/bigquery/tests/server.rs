//! What the connector says to BigQuery, and what it makes of what BigQuery says.

mod common;

use common::{
    NOW, ORDER, Reply, Talk, body, catalog, class_and_code, dry, field, numbers, ordered, page,
    query, raw, refuses, reply, waits,
};
use serde_json::json;
use souk_sdk::{ErrorClass, HttpRequest, Limits, Request, Value, WireFault};
use souk_tests::wire::LIMITS;

fn header<'a>(request: &'a HttpRequest, name: &str) -> &'a str {
    let found = request.headers.iter().find(|header| header.name == name);
    &found.unwrap().value
}

/// Who asks stands in a header, what is asked and what bounds it in the body.
#[test]
fn what_leaves() {
    let more = json!({"database": "shop", "location": "EU", "maximum_bytes_billed": "1000"});
    let mut talk = Talk::open(more, dry("SELECT")).unwrap();
    let limits = Limits {
        rows_max: 51,
        bytes_max: 1 << 20,
        timeout_ms: 9_000,
    };
    let values = vec![Value::Text("a'b".into()), Value::Null(None)];
    talk.submit(query("SELECT ?, ?", values, limits));
    let dry_run = talk.asked[0].clone();
    assert_eq!(dry_run.method, "POST");
    let path = "/bigquery/v2/projects/souk-test/";
    assert_eq!(dry_run.path, format!("{path}jobs?prettyPrint=false"));
    let bound = json!([
        {"parameterType": {"type": "STRING"}, "parameterValue": {"value": "a'b"}},
        {"parameterType": {"type": "STRING"}, "parameterValue": {"value": null}},
    ]);
    let dataset = json!({"projectId": "souk-test", "datasetId": "shop"});
    let zone = json!([{"key": "time_zone", "value": "UTC"}]);
    assert_eq!(
        body(&dry_run),
        json!({
            "jobReference": {"projectId": "souk-test", "location": "EU"},
            "configuration": {"dryRun": true, "query": {"query": "SELECT ?, ?", "useLegacySql": false, "defaultDataset": dataset,
                "connectionProperties": zone, "parameterMode": "POSITIONAL", "queryParameters": bound}},
        })
    );
    talk.hears(0, dry("SELECT")).unwrap();
    let asked = talk.asked[0].clone();
    assert_eq!(asked.path, format!("{path}queries?prettyPrint=false"));
    assert_eq!(
        body(&asked),
        json!({
            "query": "SELECT ?, ?", "useLegacySql": false, "defaultDataset": dataset, "connectionProperties": zone, "parameterMode": "POSITIONAL",
            "queryParameters": bound, "location": "EU", "maxResults": 52, "timeoutMs": 1_000, "jobTimeoutMs": "9000", "maximumBytesBilled": "1000",
            "formatOptions": {"useInt64Timestamp": true},
        })
    );
    let recorded = include_str!("recorded/token.txt").trim();
    for request in [dry_run, asked] {
        assert_eq!(
            header(&request, "authorization"),
            format!("Bearer {recorded}")
        );
    }
}

/// A token that would soon be too old is not sent again.
#[test]
fn tokens_are_renewed() {
    let mut talk = Talk::usual();
    let mut token_at = |now| {
        talk.now = now;
        talk.submit(Request::Ping(LIMITS));
        header(&talk.asked.remove(0), "authorization").to_owned()
    };
    let first = token_at(NOW);
    assert_eq!(token_at(NOW + 2_999), first);
    assert_ne!(token_at(NOW + 3_000), first);
}

/// Whatever a text says, it is carried out only where BigQuery has said that it is one SELECT; that is asked once.
#[test]
fn what_writes_is_not_run() {
    let mut talk = Talk::usual();
    for kind in [
        "DELETE",
        "SCRIPT",
        "CREATE_TABLE_AS_SELECT",
        "EXPORT_DATA",
        "CALL",
        "select",
        "",
    ] {
        let error = talk
            .ask(query("SELECT 1", vec![], LIMITS), [dry(kind)])
            .error();
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::Permission, "read_only")
        );
        assert!(talk.asked.is_empty(), "{kind} was carried out");
    }
    let error = talk
        .ask(query("SELECT 1", vec![], LIMITS), [reply(json!({}))])
        .error();
    assert_eq!(
        error.class,
        ErrorClass::Source,
        "what is not said is no SELECT"
    );
    for (text, dry_runs) in [
        ("SELECT 1", 1),
        ("SELECT 1", 0),
        ("SELECT 2", 1),
        ("SELECT 1 ", 1),
    ] {
        let id = talk.submit(query(text, vec![], LIMITS));
        if dry_runs == 1 {
            assert!(talk.asked[0].path.contains("/jobs?"));
            talk.hears(0, dry("SELECT")).unwrap();
        }
        assert!(talk.asked[0].path.contains("/queries?"), "{text}");
        talk.hears(0, numbers(1)).unwrap();
        talk.ended(id).unwrap().ok();
    }
    // The kind of a text does not change with the time.
    talk.now += 600;
    // What a session knows has an end. What is asked meanwhile stays.
    for number in 0..128 {
        let text = format!("SELECT {number} AS other");
        talk.ask(query(&text, vec![], LIMITS), [dry("SELECT"), numbers(1)])
            .ok();
        talk.ask(query("SELECT 2", vec![], LIMITS), [numbers(1)])
            .ok();
    }
    talk.submit(query("SELECT 1", vec![], LIMITS));
    assert!(talk.asked[0].path.contains("/jobs?"));
}

/// A job that takes its time is asked after again, with pauses in between that grow.
#[test]
fn a_job_is_waited_for() {
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    talk.hears(0, dry("SELECT")).unwrap();
    let mut pauses = Vec::new();
    for _ in 0..7 {
        talk.hears(0, waits()).unwrap();
        assert!(talk.asked.is_empty(), "nothing is asked in a pause");
        pauses.push(talk.wakes());
    }
    assert_eq!(pauses, [50, 100, 200, 400, 800, 1_000, 1_000]);
    let wanted = "/bigquery/v2/projects/souk-test/queries/job_1?maxResults=10000&timeoutMs=10000&formatOptions.useInt64Timestamp=true&location=EU&prettyPrint=false";
    assert_eq!(
        (talk.asked[0].method.as_str(), talk.asked[0].path.as_str()),
        ("GET", wanted)
    );
    talk.hears(0, numbers(3)).unwrap();
    assert_eq!(talk.ended(id).unwrap().ok().rows, 3);
}

/// Pages are one result, and its columns are told once.
#[test]
fn pages_are_read_to_the_last() {
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    talk.hears(0, dry("SELECT")).unwrap();
    let fields = json!([field("n", "INTEGER")]);
    for (at, token) in [(0, Some("a/b")), (1, Some("c")), (2, None)] {
        let answer = page(fields.clone(), &[json!([at.to_string()])], 3, token);
        talk.hears(0, reply(answer)).unwrap();
        if let Some(token) = token {
            let encoded = token.replace('/', "%2F");
            assert!(
                talk.asked[0]
                    .path
                    .contains(&format!("&pageToken={encoded}"))
            );
        }
    }
    let answer = talk.ended(id).unwrap().ok();
    assert_eq!((answer.rows, answer.chunks.len()), (3, 3));
}

/// In whichever order a page has its members it is read, and told once.
#[test]
fn pages_have_any_order() {
    let fields = json!([field("n", "INTEGER")]);
    let first = page(fields.clone(), &[json!(["1"]), json!([null])], 3, Some("a"));
    let last = page(fields, &[json!(["7"])], 3, None);
    let mut order = ORDER;
    for turn in 0..2 * ORDER.len() {
        order.rotate_left(1);
        if turn == ORDER.len() {
            order.reverse();
        }
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        talk.hears(0, dry("SELECT")).unwrap();
        talk.hears(0, ordered(&first, &order)).unwrap();
        talk.hears(0, ordered(&last, &order)).unwrap();
        let answer = talk.ended(id).unwrap().ok();
        assert_eq!((answer.rows, answer.chunks.len()), (3, 2), "{order:?}");
        assert_eq!(answer.cell(0, 0), "1", "{order:?}");
    }
    // How many rows there are need not be said.
    let untold = ["schema", "rows", "jobComplete"];
    assert_eq!(Talk::usual().rows_of(ordered(&last, &untold)).ok().rows, 1);
}

/// Rows are told as they are read. What stands behind them may spoil the answer, but tells nothing twice.
#[test]
fn what_follows_rows_is_read() {
    let fields = json!([field("n", "INTEGER")]);
    let mut whole = page(fields, &[json!(["1"])], 1, None);
    for twice in [
        ["schema", "totalRows", "rows", "rows", "jobComplete"],
        ["rows", "schema", "totalRows", "rows", "jobComplete"],
        ["rows", "rows", "schema", "totalRows", "jobComplete"],
        ["schema", "schema", "totalRows", "rows", "jobComplete"],
    ] {
        let error = Talk::usual().rows_of(ordered(&whole, &twice)).error();
        assert_eq!(error.code, "malformed_answer", "{twice:?}");
    }
    // It is refused for its rows, not for what stands behind them.
    let limits = Limits {
        rows_max: 0,
        ..LIMITS
    };
    let untold = json!({"schema": whole["schema"], "totalRows": "0", "rows": whole["rows"], "jobComplete": 7});
    let replies = [dry("SELECT"), ordered(&untold, &ORDER)];
    let error = Talk::usual()
        .ask(query("SELECT 1", vec![], limits), replies)
        .error();
    assert_eq!(error.code, "rows_limit");
    // Rows of what is not complete: none that are told, and none where that is said before.
    whole["jobComplete"] = false.into();
    let error = Talk::usual().rows_of(ordered(&whole, &ORDER)).error();
    assert_eq!(error.code, "malformed_answer");
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    talk.hears(0, dry("SELECT")).unwrap();
    let before = ["jobComplete", "jobReference", "schema", "totalRows", "rows"];
    talk.hears(0, ordered(&whole, &before)).unwrap();
    talk.wakes();
    talk.hears(0, numbers(2)).unwrap();
    assert_eq!(talk.ended(id).unwrap().ok().rows, 2);
}

/// Whatever a request may have, an answer leaves room in a session's memory for what becomes of it.
#[test]
fn what_is_read_is_bounded() {
    let limits = Limits {
        bytes_max: u64::MAX,
        ..LIMITS
    };
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], limits));
    talk.hears(0, dry("SELECT")).unwrap();
    assert_eq!(talk.asked[0].response_bytes_max, 24 << 20);
    let first = page(
        json!([field("n", "INTEGER")]),
        &[json!(["1"])],
        2,
        Some("a"),
    );
    talk.hears(0, reply(first)).unwrap();
    assert_eq!(talk.asked[0].response_bytes_max, 24 << 20);
    talk.hears(0, Err(WireFault::BadResponse)).unwrap();
    let error = talk.ended(id).unwrap().error();
    assert!(error.message.contains("24 MiB"), "{error:?}");
}

/// A result that is larger than is allowed is none, and is not read to its end.
#[test]
fn what_is_too_large_is_refused() {
    let within = |rows_max, bytes_max, reply: Reply| {
        let limits = Limits {
            rows_max,
            bytes_max,
            timeout_ms: 100,
        };
        let mut talk = Talk::usual();
        talk.ask(query("SELECT 1", vec![], limits), [dry("SELECT"), reply])
    };
    assert_eq!(within(100, 10_000, numbers(100)).ok().rows, 100);
    assert_eq!(within(99, 10_000, numbers(100)).error().code, "rows_limit");
    assert_eq!(within(100, 700, numbers(100)).error().code, "bytes_limit");
    // By what BigQuery says of all pages, before the first is read.
    let first = page(
        json!([field("n", "INTEGER")]),
        &[json!(["1"])],
        101,
        Some("a"),
    );
    let late = ["schema", "rows", "jobComplete", "totalRows"];
    for first in [
        ordered(&first, &ORDER),
        ordered(&first, &late),
        reply(first),
    ] {
        let answer = within(100, 10_000, first);
        assert_eq!(
            (answer.columns.len(), answer.error().code.as_str()),
            (0, "rows_limit")
        );
    }
    // And where it says too little.
    let more = page(
        json!([field("n", "INTEGER")]),
        &[json!(["1"]), json!(["2"])],
        0,
        None,
    );
    assert_eq!(within(1, 10_000, reply(more)).error().code, "rows_limit");
}

/// A job whose name is known is cancelled by it, once; the request ends when that is answered, and the session goes on.
#[test]
fn a_cancelled_job_is_cancelled_at_bigquery() {
    for in_a_pause in [true, false] {
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        talk.hears(0, dry("SELECT")).unwrap();
        talk.hears(0, waits()).unwrap();
        if !in_a_pause {
            talk.wakes();
        }
        talk.cancel(id);
        talk.cancel(id);
        let cancel = talk.asked.pop().unwrap();
        let wanted =
            "/bigquery/v2/projects/souk-test/jobs/job_1/cancel?location=EU&prettyPrint=false";
        assert_eq!(
            (cancel.method.as_str(), cancel.path.as_str()),
            ("POST", wanted)
        );
        assert!(
            talk.ended(id).is_none(),
            "it is said to have ended when it has"
        );
        // What was waited for before is not heard any more.
        if in_a_pause {
            talk.wakes();
        } else {
            talk.hears(0, numbers(1)).unwrap();
        }
        assert!(talk.asked.is_empty() && talk.ended(id).is_none());
        talk.asked.push(cancel);
        talk.hears(0, reply(json!({}))).unwrap();
        let error = talk.ended(id).unwrap().error();
        assert_eq!(class_and_code(&error), (ErrorClass::Timeout, "cancelled"));
        talk.rows_of(numbers(1));
    }
}

/// Before the job has a name there is nothing to cancel it by: the name is waited for, which takes a second at most.
#[test]
fn a_job_without_a_name_is_cancelled_when_it_has_one() {
    let one = page(json!([field("n", "INTEGER")]), &[json!(["1"])], 1, None);
    let in_order = ordered(&one, &ORDER);
    for (answer, is_cancelled) in [
        (waits(), true),
        (numbers(1), false),
        (in_order, false),
        (Err(WireFault::Reset), false),
    ] {
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        talk.hears(0, dry("SELECT")).unwrap();
        talk.cancel(id);
        assert_eq!(talk.asked.len(), 1);
        talk.hears(0, answer).unwrap();
        assert_eq!(talk.asked.len() == 1, is_cancelled);
        if is_cancelled {
            assert!(talk.asked[0].path.contains("/job_1/cancel?"));
            talk.hears(0, refuses(404, "notFound", "Not found: Job"))
                .unwrap();
        }
        let answer = talk.ended(id).unwrap();
        assert!(answer.columns.is_empty() && answer.end.unwrap().is_err());
    }
    // What has no job ends at once.
    for request in [
        query("SELECT 1", vec![], LIMITS),
        Request::Ping(LIMITS),
        catalog(true),
    ] {
        let mut talk = Talk::usual();
        let id = talk.submit(request);
        talk.cancel(id);
        assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
        talk.hears(0, dry("SELECT")).unwrap();
        assert!(talk.asked.is_empty());
    }
}

/// A job that may be at work is not left to itself where it cannot be asked after. How it failed is told when BigQuery has heard that.
#[test]
fn a_job_that_is_lost_is_cancelled() {
    let failed = || refuses(400, "invalidQuery", "division by zero: 1 / 0");
    let odd = page(json!([field("n", "INTEGER")]), &[json!(["x"])], 1, None);
    for (answer, code, is_cancelled) in [
        (Err(WireFault::Reset), "connection_lost", true),
        (Err(WireFault::Timeout), "source_timeout", true),
        (refuses(503, "backendError", "x"), "unavailable", true),
        (refuses(403, "rateLimitExceeded", "x"), "rate_limited", true),
        (refuses(403, "quotaExceeded", "x"), "quota_exhausted", true),
        (
            refuses(403, "accessDenied", "x"),
            "permission_denied",
            false,
        ),
        (raw(200, &[], "{\"jobComp"), "malformed_answer", true),
        (reply(odd), "malformed_answer", false),
        (failed(), "sql_error", false),
        (Err(WireFault::Refused), "connection_refused", true),
    ] {
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        talk.hears(0, dry("SELECT")).unwrap();
        talk.hears(0, waits()).unwrap();
        talk.wakes();
        talk.hears(0, answer).unwrap();
        assert_eq!(talk.asked.len() == 1, is_cancelled, "{code}");
        if is_cancelled {
            assert!(talk.asked[0].path.contains("/job_1/cancel?"));
            assert!(talk.ended(id).is_none(), "{code}");
            talk.hears(0, failed()).unwrap();
        }
        assert_eq!(talk.ended(id).unwrap().error().code, code);
        talk.rows_of(numbers(1));
    }
    // One that has ended is not at work, whatever becomes of its rows.
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    talk.hears(0, dry("SELECT")).unwrap();
    let first = page(
        json!([field("n", "INTEGER")]),
        &[json!(["1"])],
        2,
        Some("a"),
    );
    talk.hears(0, reply(first)).unwrap();
    talk.hears(0, Err(WireFault::Reset)).unwrap();
    assert!(talk.asked.is_empty());
    assert_eq!(talk.ended(id).unwrap().error().code, "connection_lost");
}

/// A connection's test asks for the dataset that it names.
#[test]
fn a_ping_asks_for_something() {
    for (more, path) in [
        (json!({}), "/bigquery/v2/projects/souk-test/jobs?"),
        (
            json!({"database": "shop"}),
            "/bigquery/v2/projects/souk-test/datasets/shop?",
        ),
        (
            json!({"database": "other.shop"}),
            "/bigquery/v2/projects/other/datasets/shop?",
        ),
    ] {
        let mut talk = Talk::open(more, dry("SELECT")).unwrap();
        let id = talk.submit(Request::Ping(LIMITS));
        assert!(
            talk.asked[0].path.starts_with(path),
            "{}",
            talk.asked[0].path
        );
        talk.hears(0, reply(json!({}))).unwrap();
        let answer = talk.ended(id).unwrap().ok();
        assert_eq!([answer.cell(0, 0), answer.cell(1, 0)], ["NULL", "NULL"]);
    }
    let gone = refuses(404, "notFound", "Not found: Dataset souk-test:shop");
    let error = Talk::usual().ask(Request::Ping(LIMITS), [gone]).error();
    assert_eq!(error.code, "unknown_dataset");
}

/// A shape is described once; the sixty-fifth takes the place of the first.
#[test]
fn shapes_are_described_once() {
    let mut talk = Talk::usual();
    for round in 0..3 {
        for number in 0..=64 {
            let name = format!("c{number}");
            let answer = page(json!([field(&name, "INTEGER")]), &[json!(["7"])], 1, None);
            let answer = talk.rows_of(reply(answer)).ok();
            assert_eq!(answer.columns[0].name, name, "{round}");
        }
    }
}
