//! What nobody waits for any more is stopped at Snowflake.

mod common;

use common::{HANDLE, Talk, numbers, page, query, raw, reply, result, waits};
use serde_json::json;
use souk_sdk::{ErrorClass, WireFault};
use souk_tests::wire::LIMITS;

fn is_stop(talk: &Talk) {
    let asked = talk.asked.last().unwrap();
    assert_eq!(
        (asked.method.as_str(), asked.path.as_str()),
        (
            "POST",
            format!("/api/v2/statements/{HANDLE}/cancel").as_str()
        )
    );
    assert_eq!(asked.timeout_ms, 1_500);
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
    talk.hears(0, raw(503, &[], "")).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    // It may have ended, or have been refused, before that.
    for answer in [
        numbers(1),
        raw(422, &[], "{\"code\":\"000604\"}"),
        Err(WireFault::Reset),
        raw(503, &[], ""),
    ] {
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        talk.cancel(id);
        talk.hears(0, answer).unwrap();
        assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
        assert!(talk.asked.is_empty());
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
    let (mut talk, id) = Talk::waiting();
    talk.hears(0, common::refuses(422, "100051", "22012", "x"))
        .unwrap();
    assert!(talk.ended(id).is_some() && talk.asked.is_empty());
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
