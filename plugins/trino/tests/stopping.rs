//! What is not wanted any more is stopped at the source, and its transaction ended.

mod common;

use common::{
    PATH, TRANSACTION, Talk, begun, catalog, class_and_code, column, ended, header, numbers, page,
    query, raw, text, waits,
};
use serde_json::json;
use souk_sdk::{ErrorClass, Limits, WireFault};
use souk_tests::wire::LIMITS;

/// A result that is larger than is allowed is none, and is stopped at the source.
#[test]
fn what_is_too_large_is_stopped() {
    let within = |rows_max, bytes_max| {
        let limits = Limits {
            rows_max,
            bytes_max,
            timeout_ms: 100,
        };
        let mut talk = Talk::usual();
        let rows: Vec<_> = (0..100).map(|n| json!([n])).collect();
        let first = page(Some(5), &[column("n", "bigint")], rows.into());
        let id = talk.submit(query("SELECT 1", vec![], limits));
        talk.hears(0, begun()).unwrap();
        talk.hears(0, first).unwrap();
        let next = talk.asked[0].clone();
        talk.hears(0, raw(204, &[], "")).unwrap();
        if next.method == "GET" {
            return (next, None);
        }
        talk.hears(0, ended()).unwrap();
        (next, talk.ended(id))
    };
    assert_eq!(within(100, 10_000).0.method, "GET");
    for (rows_max, bytes_max, code) in [(99, 10_000, "rows_limit"), (100, 700, "bytes_limit")] {
        let (stop, answer) = within(rows_max, bytes_max);
        assert_eq!(
            (stop.method.as_str(), stop.path),
            ("DELETE", format!("{PATH}5"))
        );
        assert_eq!(answer.unwrap().error().code, code);
    }
}

/// A statement that nobody waits for is stopped by the path at which it goes on, once, and its transaction ended; the session goes on.
#[test]
fn a_cancelled_statement_is_stopped() {
    for in_a_pause in [false, true] {
        let (mut talk, id) = Talk::asking();
        match in_a_pause {
            false => talk.hears(0, waits(3)).unwrap(),
            true => {
                for _ in 0..10 {
                    talk.hears(0, waits(3)).unwrap();
                }
                assert_eq!(talk.pauses.len(), 1);
            }
        }
        talk.cancel(id);
        talk.cancel(id);
        let stop = talk.asked.pop().unwrap();
        assert_eq!(
            (stop.method.as_str(), stop.path.clone()),
            ("DELETE", format!("{PATH}3"))
        );
        // What was waited for before is not heard any more.
        match in_a_pause {
            false => talk.hears(0, numbers(1)).unwrap(),
            true => drop(talk.wakes()),
        }
        assert!(talk.asked.is_empty() && talk.ended(id).is_none());
        talk.asked.push(stop);
        talk.hears(0, raw(204, &[], "")).unwrap();
        assert_eq!(text(&talk.asked[0]), "ROLLBACK");
        assert!(talk.ended(id).is_none());
        // It ends when the end of the transaction was asked after.
        talk.hears(0, waits(0)).unwrap();
        let error = talk.ended(id).unwrap().error();
        assert_eq!(class_and_code(&error), (ErrorClass::Timeout, "cancelled"));
        talk.asked.clear();
        talk.rows_of([numbers(1)]).ok();
    }
}

/// Before it is known where a statement goes on there is nothing to stop it by: that is waited for.
#[test]
fn a_statement_is_stopped_as_soon_as_it_can_be() {
    let (mut talk, id) = Talk::asking();
    talk.cancel(id);
    talk.hears(0, waits(0)).unwrap();
    assert_eq!(talk.asked[0].method, "DELETE");
    talk.hears(0, Err(WireFault::Reset)).unwrap();
    assert_eq!(text(&talk.asked[0]), "ROLLBACK");
    talk.hears(0, Err(WireFault::Reset)).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    // One that has ended meanwhile needs none.
    let (mut talk, id) = Talk::asking();
    talk.cancel(id);
    talk.hears(0, numbers(1)).unwrap();
    assert_eq!(text(&talk.asked[0]), "ROLLBACK");
    talk.hears(0, ended()).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    // In a pause before it is asked again nothing runs.
    let (mut talk, id) = Talk::asking();
    talk.hears(0, raw(503, &[], "")).unwrap();
    talk.cancel(id);
    assert_eq!(text(&talk.asked[0]), "ROLLBACK");
    talk.hears(0, ended()).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    talk.wakes();
    assert!(talk.asked.is_empty());
    // Nor before a transaction has begun.
    let mut talk = Talk::usual();
    let id = talk.submit(catalog(true));
    talk.cancel(id);
    talk.hears(0, begun()).unwrap();
    assert_eq!(text(&talk.asked[0]), "ROLLBACK");
    talk.hears(0, ended()).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
}

/// A transaction that is about to begin is waited for, since its end needs its name.
#[test]
fn a_transaction_that_begins_is_ended() {
    for answers in [0, 1, 2] {
        let mut talk = Talk::usual();
        let id = talk.submit(catalog(true));
        for number in 0..answers {
            talk.hears(0, waits(number)).unwrap();
        }
        talk.cancel(id);
        assert_eq!(talk.asked.len(), 1);
        talk.hears(0, begun()).unwrap();
        assert_eq!(text(&talk.asked[0]), "ROLLBACK");
        talk.hears(0, ended()).unwrap();
        assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
        assert!(talk.asked.is_empty());
    }
    // It has not begun with that answer.
    let mut talk = Talk::usual();
    let id = talk.submit(catalog(true));
    talk.cancel(id);
    talk.hears(0, waits(4)).unwrap();
    assert_eq!(talk.asked[0].method, "DELETE");
    talk.hears(0, raw(204, &[], "")).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    assert!(talk.asked.is_empty());
}

/// Whatever the coordinator says to it, a statement that was cancelled is stopped, and ends as that.
#[test]
fn a_cancelled_statement_is_no_failure() {
    for status in [500, 503, 429, 400, 404] {
        let (mut talk, id) = Talk::asking();
        talk.cancel(id);
        talk.hears(0, raw(status, &[], "")).unwrap();
        if status != 404 {
            assert_eq!(text(&talk.asked[0]), "ROLLBACK");
            talk.hears(0, ended()).unwrap();
        }
        assert!(talk.asked.is_empty() && talk.pauses.is_empty());
        assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    }
    let (mut talk, id) = Talk::asking();
    talk.cancel(id);
    talk.hears(0, Err(WireFault::Reset)).unwrap();
    assert_eq!(text(&talk.asked[0]), "ROLLBACK");
    talk.hears(0, ended()).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
}

/// A page that is larger than a host reads ends its statement at the source, too.
#[test]
fn a_page_that_is_too_large_is_stopped() {
    let (mut talk, id) = Talk::asking();
    talk.hears(0, waits(3)).unwrap();
    talk.hears(0, Err(WireFault::BadResponse)).unwrap();
    assert_eq!(
        (talk.asked[0].method.as_str(), talk.asked[0].path.clone()),
        ("DELETE", format!("{PATH}3"))
    );
    talk.hears(0, raw(204, &[], "")).unwrap();
    talk.hears(0, ended()).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "bad_response");
}

/// A statement that may go on is not left to itself where a page of it is lost, in its transaction or alone. How it failed is told when Trino has heard that.
#[test]
fn a_statement_that_is_lost_is_stopped() {
    for (answer, code, is_stopped) in [
        (Err(WireFault::Reset), "connection_lost", true),
        (Err(WireFault::Timeout), "source_timeout", true),
        (Err(WireFault::Refused), "connection_refused", true),
        (Err(WireFault::Unreachable), "unreachable", true),
        (raw(404, &[], ""), "statement_lost", false),
    ] {
        for is_alone in [false, true] {
            let (mut talk, id) = match is_alone {
                false => Talk::asking(),
                true => {
                    let mut talk = Talk::usual();
                    talk.rows_of([numbers(1)]).ok();
                    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
                    (talk, id)
                }
            };
            assert_eq!(text(&talk.asked[0]), "SELECT 1");
            talk.hears(0, waits(3)).unwrap();
            talk.hears(0, answer.clone()).unwrap();
            assert_eq!(talk.asked.len() == 1, is_stopped, "{code}");
            if is_stopped {
                let stop = &talk.asked[0];
                assert_eq!(
                    (stop.method.as_str(), stop.path.clone()),
                    ("DELETE", format!("{PATH}3"))
                );
                assert!(stop.timeout_ms < 1_000);
                assert!(talk.ended(id).is_none(), "{code}");
                talk.hears(0, Err(WireFault::Timeout)).unwrap();
            }
            if is_stopped && !is_alone {
                assert_eq!(text(&talk.asked[0]), "ROLLBACK");
                talk.hears(0, ended()).unwrap();
            }
            assert_eq!(talk.ended(id).unwrap().error().code, code);
            assert!(talk.asked.is_empty());
            talk.rows_of([numbers(1)]).ok();
        }
    }
}

/// A statement whose first answer is lost has not begun, since nobody has asked after it: only its transaction is left, and is ended.
#[test]
fn a_statement_that_was_not_answered_leaves_no_transaction() {
    for (fault, code) in [
        (WireFault::Reset, "connection_lost"),
        (WireFault::Timeout, "source_timeout"),
        (WireFault::Refused, "connection_refused"),
    ] {
        let (mut talk, id) = Talk::asking();
        talk.hears(0, Err(fault)).unwrap();
        let end = &talk.asked[0];
        assert_eq!(text(end), "ROLLBACK");
        assert_eq!(header(end, "x-trino-transaction-id"), Some(TRANSACTION));
        assert!(end.timeout_ms < 1_000);
        assert!(talk.ended(id).is_none(), "{code}");
        talk.hears(0, waits(0)).unwrap();
        talk.hears(0, ended()).unwrap();
        assert_eq!(talk.ended(id).unwrap().error().code, code);
        assert!(talk.asked.is_empty());
        // What would have begun one has left none, and a statement that is asked alone has none.
        let begins = talk.submit(catalog(true));
        talk.hears(0, Err(fault)).unwrap();
        assert!(talk.asked.is_empty());
        assert_eq!(talk.ended(begins).unwrap().error().code, code);
        talk.rows_of([numbers(1)]).ok();
        let alone = talk.submit(query("SELECT 1", vec![], LIMITS));
        assert_eq!(text(&talk.asked[0]), "SELECT 1");
        talk.hears(0, Err(fault)).unwrap();
        assert!(talk.asked.is_empty());
        assert_eq!(talk.ended(alone).unwrap().error().code, code);
    }
}

/// The deadline may pass while a lost statement is being stopped: it is stopped once, and ends within the time of a cancel.
#[test]
fn what_is_lost_and_cancelled_is_stopped_once() {
    let (mut talk, id) = Talk::asking();
    talk.hears(0, waits(3)).unwrap();
    talk.hears(0, Err(WireFault::Timeout)).unwrap();
    assert_eq!(talk.asked[0].method, "DELETE");
    talk.cancel(id);
    assert_eq!(talk.asked.len(), 1);
    let mut ms = talk.asked[0].timeout_ms;
    talk.hears(0, Err(WireFault::Timeout)).unwrap();
    assert_eq!(text(&talk.asked[0]), "ROLLBACK");
    ms += talk.asked[0].timeout_ms;
    assert!(ms < 2_000, "{ms}");
    talk.hears(0, Err(WireFault::Timeout)).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
}
