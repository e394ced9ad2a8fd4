//! What is not wanted any more is stopped at the source.

mod common;

use common::{
    ID, STATEMENTS, Talk, class_and_code, column, described, is, numbers, query, raw, reply,
    some_rows,
};
use serde_json::json;
use souk_sdk::{ErrorClass, Input, Limits, Machine, Request, WireFault};
use souk_tests::wire::LIMITS;

fn is_stop(talk: &Talk) -> bool {
    let [stop] = &talk.asked[..] else {
        return false;
    };
    stop.method == "POST" && stop.path == format!("{STATEMENTS}/{ID}/cancel")
}

/// A statement that nobody waits for is stopped by its id, in a pause or not, once; the session goes on.
#[test]
fn a_cancelled_statement_is_stopped() {
    for in_a_pause in [true, false] {
        let (mut talk, id) = Talk::waiting();
        let mut before = Vec::new();
        if !in_a_pause {
            talk.wakes();
            before = std::mem::take(&mut talk.asked);
        }
        talk.cancel(id);
        talk.cancel(id);
        assert!(is_stop(&talk));
        assert!(talk.ended(id).is_none());
        // What was waited for before is not heard any more.
        match before.pop() {
            Some(late) => {
                talk.asked.push(late);
                talk.hears(1, numbers(1)).unwrap();
            }
            None => drop(talk.wakes()),
        }
        assert!(is_stop(&talk) && talk.ended(id).is_none());
        talk.hears(0, reply(json!({}))).unwrap();
        let error = talk.ended(id).unwrap().error();
        assert_eq!(class_and_code(&error), (ErrorClass::Timeout, "cancelled"));
        assert_eq!(talk.rows_of(&["bigint"], [numbers(1)]).ok().rows, 1);
    }
}

/// Before its id is known there is nothing to stop it by: that is waited for.
#[test]
fn a_statement_is_stopped_as_soon_as_it_can_be() {
    for of_description in [true, false] {
        let (mut talk, id) = match of_description {
            true => {
                let mut talk = Talk::usual();
                let id = talk.submit(query("SELECT 1", vec![], LIMITS));
                (talk, id)
            }
            false => Talk::asking(),
        };
        talk.cancel(id);
        assert!(talk.ended(id).is_none() && talk.asked.len() == 1);
        talk.hears(0, is("PENDING")).unwrap();
        assert!(is_stop(&talk));
        talk.hears(0, reply(json!({}))).unwrap();
        assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    }
    // One that has ended meanwhile needs none, nor has one that did not begin.
    for last in [
        numbers(1),
        is("FAILED"),
        raw(503, &[], ""),
        raw(400, &[], "{}"),
        Err(WireFault::Reset),
        raw(200, &[], "<html>"),
    ] {
        let (mut talk, id) = Talk::asking();
        talk.cancel(id);
        talk.hears(0, last).unwrap();
        assert!(talk.asked.is_empty() && talk.pauses.is_empty());
        assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    }
    // In a pause before it is asked again nothing runs.
    let (mut talk, id) = Talk::asking();
    talk.hears(0, raw(503, &[], "")).unwrap();
    talk.cancel(id);
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    talk.wakes();
    assert!(talk.asked.is_empty());
}

/// Its id may come when its request's time is over: it is waited for as long as there is time left to stop it.
#[test]
fn an_id_that_comes_late_is_waited_for() {
    let (mut talk, id) = Talk::asking();
    let late_ms = talk.asked[0].timeout_ms.saturating_sub(LIMITS.timeout_ms);
    assert!(late_ms >= 500, "{late_ms}");
    talk.cancel(id);
    talk.hears(0, is("RUNNING")).unwrap();
    assert!(is_stop(&talk));
    // For longer the host does not wait.
    assert!(late_ms + talk.asked[0].timeout_ms < 2_000);
    talk.hears(0, reply(json!({}))).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    // Where nobody answers a connection's test, that is told.
    let mut talk = Talk::usual();
    talk.submit(Request::Ping(LIMITS));
    assert_eq!(talk.asked[0].timeout_ms, LIMITS.timeout_ms);
}

/// While rows are read nothing runs.
#[test]
fn a_result_that_is_read_needs_no_stop() {
    let (mut talk, id) = Talk::asking();
    talk.hears(
        0,
        some_rows(&[column("n", "BIGINT")], Some(2), Some(1), &json!([["1"]])),
    )
    .unwrap();
    talk.cancel(id);
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    assert_eq!(talk.asked.len(), 1);
}

/// What could not be stopped is tried to be stopped once more, and then its request has ended all the same.
#[test]
fn stopping_is_tried_twice() {
    for first in [
        raw(503, &[], ""),
        raw(429, &[], ""),
        Err(WireFault::Timeout),
    ] {
        let (mut talk, id) = Talk::waiting();
        talk.pauses.clear();
        talk.cancel(id);
        assert!(talk.asked[0].timeout_ms * 2 + 100 < 2_000);
        talk.hears(0, first).unwrap();
        assert!(talk.asked.is_empty() && talk.ended(id).is_none());
        assert_eq!(talk.wakes(), 100);
        assert!(is_stop(&talk));
        talk.hears(0, Err(WireFault::Reset)).unwrap();
        assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    }
    for known in [raw(404, &[], ""), raw(400, &[], "")] {
        let (mut talk, id) = Talk::waiting();
        talk.cancel(id);
        talk.hears(0, known).unwrap();
        assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    }
}

/// Runs a session whose statement stays in this state, until it is stopped. When that is, in milliseconds.
fn stopped_at(talk: &mut Talk, state: &str) -> u32 {
    let (mut clock, mut due) = (0, Vec::new());
    loop {
        due.extend(
            talk.pauses
                .drain(..)
                .map(|pause| (clock + pause.ms, pause.id)),
        );
        assert!(due.len() <= 2, "{due:?}");
        if is_stop(talk) {
            return clock;
        }
        if !talk.asked.is_empty() {
            talk.hears(0, is(state)).unwrap();
            continue;
        }
        due.sort_unstable();
        let (at, id) = due.remove(0);
        clock = at;
        assert!(clock < 20_000, "it goes on");
        let woken = Input::Woken(id);
        talk.step(|session, step| session.receive(woken, step))
            .unwrap();
    }
}

/// The connection's own limit stops a statement where the host would wait for longer, a description as well.
#[test]
fn the_connections_time_is_held() {
    for (limit, is_known) in [(4_000, true), (4_000, false), (50, true), (1, true)] {
        let mut talk = Talk::open(json!({"statement_timeout_ms": limit})).unwrap();
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        if is_known {
            talk.hears(0, described(&[("n", "bigint")])).unwrap();
        }
        let at = stopped_at(&mut talk, "RUNNING");
        assert!(at >= limit && at <= limit * 5 / 4 + 30, "{limit}: {at}");
        talk.hears(0, reply(json!({}))).unwrap();
        let error = talk.ended(id).unwrap().error();
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::Timeout, "statement_timeout")
        );
    }
    // One that came later has its own time.
    let mut talk = Talk::open(json!({"statement_timeout_ms": 80_000})).unwrap();
    let long = Limits {
        timeout_ms: 100_000,
        ..LIMITS
    };
    let first = talk.submit(query("SELECT 1", vec![], long));
    while talk.pauses.len() < 2 {
        match talk.asked.is_empty() {
            true => drop(talk.wakes()),
            false => talk.hears(0, is("RUNNING")).unwrap(),
        }
    }
    assert!(talk.pauses.iter().any(|pause| pause.ms == 10_000));
    talk.cancel(first);
    talk.hears(0, reply(json!({}))).unwrap();
    assert!(talk.ended(first).is_some());
    let second = talk.submit(query("SELECT 1", vec![], long));
    for pause in std::mem::take(&mut talk.pauses) {
        let woken = Input::Woken(pause.id);
        talk.step(|session, step| session.receive(woken, step))
            .unwrap();
    }
    assert!(talk.ended(second).is_none() && talk.asked.len() == 1);
}

/// The time of answers that come late is counted, too: before the first one, and between those that say that it runs.
#[test]
fn late_answers_take_of_the_connections_time() {
    for answered in [0, 1, 3] {
        let mut talk = Talk::open(json!({"statement_timeout_ms": 8_000})).unwrap();
        let long = Limits {
            timeout_ms: 60_000,
            ..LIMITS
        };
        let id = talk.submit(query("SELECT 1", vec![], long));
        for part in 0..8 {
            if part < answered {
                talk.hears(0, is("RUNNING")).unwrap();
                let pause = talk
                    .pauses
                    .iter()
                    .position(|pause| pause.ms < 1_000)
                    .unwrap();
                let pause = talk.pauses.remove(pause);
                let woken = Input::Woken(pause.id);
                talk.step(|session, step| session.receive(woken, step))
                    .unwrap();
            }
            assert_eq!((talk.asked.len(), talk.pauses.len()), (1, 1));
            assert!(!is_stop(&talk), "{answered}");
            assert_eq!(talk.wakes(), 1_000);
        }
        // Its id may have to be waited for.
        match answered {
            0 => talk.hears(0, is("RUNNING")).unwrap(),
            _ => drop(talk.asked.remove(0)),
        }
        assert!(is_stop(&talk));
        talk.hears(0, reply(json!({}))).unwrap();
        assert_eq!(talk.ended(id).unwrap().error().code, "statement_timeout");
    }
}

/// Where the host gives no more time than the connection, the host's end is the end.
#[test]
fn the_hosts_time_is_the_hosts() {
    let mut talk = Talk::open(json!({"statement_timeout_ms": 5_000})).unwrap();
    let short = Limits {
        timeout_ms: 5_000,
        ..LIMITS
    };
    talk.submit(query("SELECT 1", vec![], short));
    for _ in 0..60 {
        talk.hears(0, is("RUNNING")).unwrap();
        assert_eq!(talk.pauses.len(), 1);
        talk.wakes();
    }
}

/// A statement that may go on is not left to itself where it cannot be asked after. How it failed is told when Databricks has heard that.
#[test]
fn a_statement_that_is_lost_is_stopped() {
    for (fault, code) in [
        (WireFault::Reset, "connection_lost"),
        (WireFault::Timeout, "source_timeout"),
        (WireFault::Refused, "connection_refused"),
        (WireFault::Unreachable, "unreachable"),
    ] {
        let (mut talk, id) = Talk::waiting();
        talk.wakes();
        talk.hears(0, Err(fault)).unwrap();
        assert!(is_stop(&talk), "{code}");
        assert!(talk.ended(id).is_none(), "{code}");
        talk.hears(0, reply(json!({}))).unwrap();
        assert_eq!(talk.ended(id).unwrap().error().code, code);
        assert_eq!(talk.rows_of(&["bigint"], [numbers(1)]).ok().rows, 1);
        // One that has ended does not go on, whatever becomes of its rows.
        let (mut talk, id) = Talk::asking();
        let first = some_rows(&[column("n", "BIGINT")], Some(2), Some(1), &json!([["1"]]));
        talk.hears(0, first).unwrap();
        talk.hears(0, Err(fault)).unwrap();
        assert!(talk.asked.is_empty(), "{code}");
        assert_eq!(talk.ended(id).unwrap().error().code, code);
    }
}

/// A statement of which nothing is understood is stopped, too.
#[test]
fn what_is_not_understood_is_stopped() {
    for odd in [
        reply(json!({"statement_id": ID, "status": {"state": "DANCING"}})),
        raw(500, &[], "no"),
        raw(403, &[], "{}"),
        Err(WireFault::BadResponse),
        Err(WireFault::Reset),
        raw(200, &[], "{"),
    ] {
        let (mut talk, id) = Talk::waiting();
        talk.wakes();
        talk.hears(0, odd).unwrap();
        assert!(is_stop(&talk));
        talk.hears(0, reply(json!({}))).unwrap();
        assert!(talk.ended(id).unwrap().end.unwrap().is_err());
    }
    // A token that is refused now may be taken then.
    let (mut talk, id) = Talk::waiting();
    talk.wakes();
    talk.hears(0, raw(401, &[], "{}")).unwrap();
    assert!(is_stop(&talk));
    talk.hears(0, raw(401, &[], "{}")).unwrap();
    let error = talk.ended(id).unwrap().error();
    assert_eq!(error.code, "credentials_refused");
    // What is not known there any more has ended.
    let (mut talk, id) = Talk::waiting();
    talk.wakes();
    talk.hears(0, raw(404, &[], "{}")).unwrap();
    assert!(talk.asked.is_empty());
    assert!(talk.ended(id).unwrap().end.unwrap().is_err());
}

/// Whoever else stops or closes it.
#[test]
fn a_statement_may_be_stopped_by_others() {
    let (mut talk, id) = Talk::asking();
    talk.hears(0, is("CANCELED")).unwrap();
    let error = talk.ended(id).unwrap().error();
    assert_eq!(class_and_code(&error), (ErrorClass::Timeout, "cancelled"));
    let (mut talk, id) = Talk::asking();
    talk.hears(0, is("CLOSED")).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "malformed_answer");
    assert!(talk.asked.is_empty());
}

/// A statement that waits for its warehouse until its time is over is not told to be slow.
#[test]
fn a_warehouse_that_has_to_start_is_named() {
    for (state, says) in [
        ("PENDING", "the SQL warehouse has to start"),
        ("RUNNING", "runs longer"),
    ] {
        let mut talk = Talk::open(json!({"statement_timeout_ms": 4_000})).unwrap();
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        stopped_at(&mut talk, state);
        talk.hears(0, reply(json!({}))).unwrap();
        let error = talk.ended(id).unwrap().error();
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::Timeout, "statement_timeout")
        );
        assert!(error.message.contains(says), "{}", error.message);
    }
}
