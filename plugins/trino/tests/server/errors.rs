//! What fails, whose fault it is, and what is asked again.

use crate::common::{
    Talk, begun, class_and_code, column, ended, fails, numbers, page, query, raw, text, waits,
};
use crate::stops;
use serde_json::json;
use souk_sdk::{ErrorClass, Request, Value, WireFault};
use souk_tests::wire::LIMITS;

/// A proxy that is busy is asked the same again, a few times; who says how long to wait is believed, within reason.
#[test]
fn who_is_busy_is_asked_again() {
    for status in [502, 503, 504, 429] {
        let (mut talk, id) = Talk::asking();
        talk.hears(0, waits(7)).unwrap();
        let asked = talk.asked[0].clone();
        let mut pauses = Vec::new();
        for _ in 0..6 {
            talk.hears(0, raw(status, &[], "busy")).unwrap();
            assert!(talk.asked.is_empty(), "nothing is asked in a pause");
            pauses.push(talk.wakes());
            assert_eq!(
                (&talk.asked[0].method, &talk.asked[0].path),
                (&asked.method, &asked.path)
            );
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1_600, 3_200]);
        talk.hears(0, raw(status, &[], "busy")).unwrap();
        stops(&mut talk, Some(7));
        let error = talk.ended(id).unwrap().error();
        assert_eq!(error.source_code, Some(status.to_string()));
    }
    // A statement that was not taken is asked again, too, and afterwards the count begins anew.
    let (mut talk, id) = Talk::asking();
    talk.hears(0, raw(503, &[], "")).unwrap();
    assert_eq!(talk.wakes(), 100);
    assert_eq!(text(&talk.asked[0]), "SELECT 1");
    talk.hears(0, waits(0)).unwrap();
    talk.hears(0, raw(429, &[("retry-after", "2")], ""))
        .unwrap();
    assert_eq!(talk.wakes(), 2_000);
    talk.hears(0, numbers(1)).unwrap();
    talk.hears(0, ended()).unwrap();
    talk.ended(id).unwrap().ok();
    let (mut talk, id) = Talk::asking();
    talk.hears(0, raw(429, &[("retry-after", "60")], ""))
        .unwrap();
    stops(&mut talk, None);
    let error = talk.ended(id).unwrap().error();
    assert_eq!(
        (error.class, error.retry_after_ms),
        (ErrorClass::RateLimited, Some(60_000))
    );
}

/// What Trino says of a statement is told after its transaction has ended, and so is a wire that breaks.
#[test]
fn errors_are_told() {
    let mut talk = Talk::usual();
    let error = talk
        .rows_of([fails(
            "COLUMN_NOT_FOUND",
            "USER_ERROR",
            "line 1:8: Column 'x' cannot be resolved",
        )])
        .error();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::Source, "unknown_column")
    );
    assert_eq!(error.source_code.as_deref(), Some("COLUMN_NOT_FOUND"));
    assert!(error.detail.unwrap().ends_with("(line 1, column 8)"));
    let (mut talk, id) = Talk::asking();
    talk.hears(0, page(Some(1), &[column("n", "bigint")], json!([[1]])))
        .unwrap();
    talk.hears(0, Err(WireFault::Reset)).unwrap();
    stops(&mut talk, Some(1));
    assert_eq!(
        talk.ended(id).unwrap().error().class,
        ErrorClass::Unavailable
    );
    for (status, class, code) in [
        (401, ErrorClass::Authentication, "credentials_refused"),
        (403, ErrorClass::Permission, "login_refused"),
        (404, ErrorClass::Unavailable, "statement_lost"),
        (410, ErrorClass::Unavailable, "statement_lost"),
        (400, ErrorClass::Source, "malformed_answer"),
        (302, ErrorClass::Configuration, "redirected"),
        (500, ErrorClass::Source, "bad_status"),
    ] {
        for next in [None, Some(3)] {
            let (mut talk, id) = Talk::asking();
            if let Some(next) = next {
                talk.hears(0, waits(next)).unwrap();
            }
            talk.hears(0, raw(status, &[], "why")).unwrap();
            if !matches!(status, 401 | 404 | 410) {
                stops(&mut talk, next);
            }
            assert!(talk.asked.is_empty());
            let error = talk.ended(id).unwrap().error();
            assert_eq!(class_and_code(&error), (class, code), "{status}");
            assert_eq!(error.detail.as_deref(), Some("why"));
            assert_eq!(error.source_code, Some(status.to_string()));
        }
    }
}

/// What answers to the first request that it knows of nothing is none of Trino's, which is for the connection's owner to mend.
#[test]
fn an_address_without_a_trino_is_told() {
    for (status, code) in [
        (404, "no_trino"),
        (405, "no_trino"),
        (400, "malformed_answer"),
        (401, "credentials_refused"),
    ] {
        let mut talk = Talk::usual();
        let answer = talk.ask(Request::Ping(LIMITS), [raw(status, &[], "nginx")]);
        let error = answer.error();
        assert_eq!(error.code, code);
        assert_eq!(error.detail.as_deref(), Some("nginx"));
        assert!(talk.asked.is_empty());
        assert_eq!(error.class == ErrorClass::Configuration, code == "no_trino");
    }
    // It has answered before.
    let mut talk = Talk::usual();
    let answer = talk.ask(Request::Ping(LIMITS), [waits(0), raw(404, &[], "")]);
    assert_eq!(answer.error().code, "statement_lost");
}

/// A value that Trino refuses is the caller's where it is named as one: those of a page are the host's, and the tables' are the seller's.
#[test]
fn values_of_the_sellers_are_not_the_callers() {
    let page = [Value::Int64(11), Value::Int64(0)];
    let both = [Value::Text("x".into()), Value::Int64(11), Value::Int64(0)];
    let text = "SELECT 1 / n FROM t\nLIMIT ? OFFSET ?";
    let bound = "SELECT 1 / n FROM t WHERE a = ?\nLIMIT ? OFFSET ?";
    let plain = "SELECT ? / n, ? FROM t";
    let cast = "INVALID_CAST_ARGUMENT";
    let zero = "DIVISION_BY_ZERO";
    let (callers, sellers) = (ErrorClass::InvalidRequest, ErrorClass::Source);
    for (text, values, name, message, class) in [
        (text, &page[..], cast, "Cannot cast '11' to DATE", sellers),
        (bound, &both[..], cast, "Cannot cast 'x' to DATE", callers),
        (bound, &both[..], cast, "Cannot cast 'y' to DATE", sellers),
        (bound, &both[..], cast, "Cannot cast '11' to DATE", sellers),
        (plain, &page[..], cast, "Cannot cast '11' to DATE", callers),
        (plain, &page[..], zero, "Division by zero", sellers),
        ("SELECT 1 / 0", &[], zero, "Division by zero", sellers),
        (plain, &page[..], "INVALID_LIMIT_CLAUSE", "limit", callers),
        (text, &page[..], "INVALID_LIMIT_CLAUSE", "limit", sellers),
    ] {
        let replies = [begun(), fails(name, "USER_ERROR", message), ended()];
        let asked = query(text, values.to_vec(), LIMITS);
        let error = Talk::usual().ask(asked, replies).error();
        let case = format!("{text}: {message}");
        assert_eq!(class_and_code(&error), (class, "invalid_value"), "{case}");
    }
}
