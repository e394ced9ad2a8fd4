//! What nobody waits for any more is stopped at Snowflake.

mod common;

use common::{HANDLE, Talk, numbers, page, query, raw, reply, result, waits};
use serde_json::json;
use souk_sdk::{ErrorClass, WireFault};
use souk_tests::wire::LIMITS;

fn is_stop(talk: &Talk) {
    is_stop_within(talk, 1_500);
}

fn is_stop_within(talk: &Talk, ms: u32) {
    let asked = talk.asked.last().unwrap();
    assert_eq!(
        (asked.method.as_str(), asked.path.as_str()),
        (
            "POST",
            format!("/api/v2/statements/{HANDLE}/cancel").as_str()
        )
    );
    assert_eq!(asked.timeout_ms, ms);
}

#[test]
fn a_statement_that_goes_on_is_stopped() {
    let (mut talk, id) = Talk::waiting();
    talk.cancel(id);
    // Once is enough.
    talk.cancel(id);
    assert_eq!(talk.asked.len(), 2);
    is_stop(&talk);
    // What was waited for before may come all the same, and is not heard.
    talk.hears(0, waits()).unwrap();
    assert!(talk.ended(id).is_none());
    talk.hears(0, reply(200, json!({"code": "000604"})))
        .unwrap();
    let error = talk.ended(id).unwrap().error();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Timeout, "cancelled")
    );
}

/// In a pause, too.
#[test]
fn a_pause_is_no_hindrance() {
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    talk.hears(0, waits()).unwrap();
    talk.cancel(id);
    is_stop(&talk);
    talk.wakes();
    assert_eq!(talk.asked.len(), 1, "nobody asks after it");
    talk.hears(0, Err(WireFault::Timeout)).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
}

/// Before its name is known there is nothing to stop it by; with its name it is stopped.
#[test]
fn the_name_is_waited_for() {
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    talk.cancel(id);
    assert!(talk.ended(id).is_none() && talk.asked.len() == 1);
    talk.hears(0, waits()).unwrap();
    is_stop(&talk);
    talk.hears(0, raw(200, &[], "{}")).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    // It may have ended, or have been refused, before that.
    for answer in [
        numbers(1),
        raw(422, &[], "{\"code\":\"000604\"}"),
        raw(429, &[], ""),
        Err(WireFault::Refused),
    ] {
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        talk.cancel(id);
        talk.hears(0, answer).unwrap();
        assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
        assert!(talk.asked.is_empty());
    }
}

/// What was asked for a statement's name when nobody waited for it any more: the same statement, once.
fn is_sought(talk: &Talk, first: &str) {
    let asked = talk.asked.last().unwrap();
    assert_eq!(asked.path, format!("{first}&retry=true"));
    assert_eq!(talk.asked.len(), 1);
    assert!(asked.timeout_ms < 1_000);
}

/// A statement that may have been taken has no name yet: whoever gives up asks for that, and stops it.
#[test]
fn a_statement_without_a_name_is_sought() {
    let lost = [
        raw(502, &[], ""),
        raw(503, &[], "busy"),
        Err(WireFault::Reset),
        raw(504, &[], ""),
    ];
    for (is_cancelled_first, answer) in lost.iter().flat_map(|lost| [(false, lost), (true, lost)]) {
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        let first = talk.asked[0].path.clone();
        if is_cancelled_first {
            talk.cancel(id);
        }
        talk.hears(0, answer.clone()).unwrap();
        if !is_cancelled_first {
            // In the pause before it is asked again.
            talk.cancel(id);
            talk.wakes();
        }
        assert!(talk.ended(id).is_none());
        is_sought(&talk, &first);
        talk.hears(0, waits()).unwrap();
        assert!(talk.ended(id).is_none());
        let stop = talk.asked[0].path.clone();
        assert_eq!(stop, format!("/api/v2/statements/{HANDLE}/cancel"));
        talk.hears(0, reply(200, json!({}))).unwrap();
        assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    }
    // Nobody knows it, or it has ended.
    for answer in [
        numbers(1),
        common::refuses(422, "100051", "22012", "x"),
        raw(503, &[], ""),
        raw(200, &[], "<html>"),
        Err(WireFault::Timeout),
    ] {
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        talk.hears(0, raw(503, &[], "")).unwrap();
        talk.cancel(id);
        talk.hears(0, answer).unwrap();
        assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
        assert!(talk.asked.is_empty());
    }
}

/// So it is where nobody asks again.
#[test]
fn who_gives_up_leaves_nothing_behind() {
    for answer in [
        raw(503, &[("Retry-After", "60")], ""),
        raw(202, &[], "<html>"),
        Err(WireFault::Timeout),
        Err(WireFault::BadResponse),
    ] {
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        let first = talk.asked[0].path.clone();
        talk.hears(0, answer).unwrap();
        is_sought(&talk, &first);
        talk.hears(0, waits()).unwrap();
        is_stop_within(&talk, 1_000);
        talk.hears(0, reply(200, json!({}))).unwrap();
        assert_ne!(talk.ended(id).unwrap().error().code, "cancelled");
    }
}

/// An answer that was lost is asked for again, and the statement is carried out once.
#[test]
fn a_lost_answer_is_asked_for_again() {
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    let first = talk.asked[0].path.clone();
    for _ in 0..2 {
        talk.hears(0, Err(WireFault::Reset)).unwrap();
        talk.wakes();
        assert_eq!(talk.asked[0].path, format!("{first}&retry=true"));
    }
    talk.hears(0, numbers(2)).unwrap();
    assert_eq!(talk.ended(id).unwrap().ok().rows, 2);
    // Not for long: then what may have been taken is stopped.
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    for ms in [100, 200, 400] {
        talk.hears(0, Err(WireFault::Reset)).unwrap();
        assert_eq!(talk.wakes(), ms);
    }
    talk.hears(0, Err(WireFault::Reset)).unwrap();
    talk.hears(0, waits()).unwrap();
    is_stop_within(&talk, 1_000);
    talk.hears(0, reply(200, json!({}))).unwrap();
    let error = talk.ended(id).unwrap().error();
    assert_eq!(error.code, "connection_lost");
}

/// A stop that Snowflake had no time for is asked once more.
#[test]
fn a_refused_stop_is_none() {
    for answer in [
        raw(429, &[("Retry-After", "60")], ""),
        raw(503, &[], ""),
        Err(WireFault::Reset),
    ] {
        let (mut talk, id) = Talk::waiting();
        talk.cancel(id);
        // What was waited for before.
        talk.hears(0, waits()).unwrap();
        talk.hears(0, answer.clone()).unwrap();
        assert!(talk.ended(id).is_none());
        assert_eq!(talk.wakes(), 100);
        is_stop_within(&talk, 1_000);
        talk.hears(0, answer).unwrap();
        assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
        assert!(talk.asked.is_empty() && talk.pauses.is_empty());
    }
}

/// A result that is being read has ended at Snowflake.
#[test]
fn reading_ends_at_once() {
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    let columns = [common::number("N", 18, 0)];
    talk.hears(0, reply(200, result(&columns, json!([["1"]]), &[1, 1])))
        .unwrap();
    talk.cancel(id);
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    talk.hears(0, common::part(json!([["2"]]))).unwrap();
    assert!(talk.asked.is_empty());
}

/// Where something else goes wrong while it goes on, it is stopped as well.
#[test]
fn it_is_not_left_running() {
    for answer in [
        raw(200, &[], "{}"),
        raw(202, &[], "<html>"),
        raw(500, &[], "{}"),
        raw(400, &[], "<html>"),
        raw(401, &[], "{}"),
        common::refuses(401, "390318", "", "OAuth access token expired."),
        raw(403, &[], ""),
        raw(404, &[], ""),
        raw(408, &[], "<html>"),
        raw(422, &[], "{}"),
        raw(429, &[("Retry-After", "60")], ""),
        Err(WireFault::Reset),
        Err(WireFault::BadResponse),
    ] {
        let (mut talk, id) = Talk::waiting();
        talk.hears(0, answer).unwrap();
        assert!(talk.ended(id).is_none());
        is_stop(&talk);
        talk.hears(0, reply(200, json!({}))).unwrap();
        assert_ne!(talk.ended(id).unwrap().error().code, "cancelled");
    }
    // What Snowflake itself says of it ends it.
    for status in [408, 422] {
        let (mut talk, id) = Talk::waiting();
        talk.hears(0, common::refuses(status, "100051", "22012", "x"))
            .unwrap();
        assert!(talk.ended(id).is_some() && talk.asked.is_empty());
    }
}

/// Requests do not wait for each other.
#[test]
fn requests_are_side_by_side() {
    let mut talk = Talk::usual();
    let first = talk.submit(query("SELECT 1", vec![], LIMITS));
    let second = talk.submit(query("SELECT 2", vec![], LIMITS));
    talk.hears(1, numbers(2)).unwrap();
    assert_eq!(talk.ended(second).unwrap().ok().rows, 2);
    let columns = [common::column("T", "text", json!({}))];
    talk.hears(0, page(&columns, json!([["a"]]))).unwrap();
    assert_eq!(talk.ended(first).unwrap().ok().rows, 1);
}
