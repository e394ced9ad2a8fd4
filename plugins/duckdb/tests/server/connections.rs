//! Connections at the server are handed on while there is use for them, and ended afterwards.

use crate::common::{
    CONNECT, DISCONNECT, Talk, asked_within, kind, query, raw, refuses, reply, text,
};
use serde_json::json;
use souk_sdk::WireFault;
use souk_tests::wire::LIMITS;

/// A connection that is not ended stays at the server, with its transaction. Of what has failed the end is waited for.
#[test]
fn the_end_of_a_connection_is_told_twice() {
    for answer in [
        raw(429, &[], ""),
        raw(502, &[], ""),
        raw(504, &[], ""),
        Err(WireFault::Reset),
        Err(WireFault::Unreachable),
    ] {
        let (mut talk, id) = Talk::asking();
        talk.hears(0, refuses("boo")).unwrap();
        let asked = talk.asked[0].body.clone();
        talk.hears(0, answer.clone()).unwrap();
        assert!(talk.asked.is_empty() && talk.ended(id).is_none());
        let paused = talk.wakes();
        assert_eq!(
            (kind(&talk.asked[0]), &talk.asked[0].body),
            (DISCONNECT, &asked)
        );
        // The host waits two seconds for the end of what was cancelled.
        assert!(2 * talk.asked[0].timeout_ms + paused < 2_000);
        talk.hears(0, answer).unwrap();
        assert!(talk.asked.is_empty() && talk.pauses.is_empty());
        assert_eq!(talk.ended(id).unwrap().error().code, "sql_error");
    }
    let (mut talk, id) = Talk::asking();
    talk.hears(0, refuses("boo")).unwrap();
    talk.hears(0, Err(WireFault::Timeout)).unwrap();
    assert!(talk.pauses.is_empty());
    assert_eq!(talk.ended(id).unwrap().error().code, "sql_error");
}

/// For the end of what has succeeded nobody waits: nothing may be asked of the server while nobody asks for anything, so that it is told again with the next
/// request, whose own connection is waited for until it has.
#[test]
fn an_end_beside_the_answer_is_told_twice() {
    for answer in [
        raw(429, &[], ""),
        Err(WireFault::Reset),
        Err(WireFault::Unreachable),
    ] {
        let (mut talk, id) = Talk::asking();
        talk.hears(0, reply("numbers")).unwrap();
        assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
        let asked = talk.asked[0].body.clone();
        talk.hears(0, answer.clone()).unwrap();
        assert!(talk.asked.is_empty() && talk.pauses.is_empty());
        let id = talk.submit(Talk::select());
        assert_eq!(
            (talk.asked.len(), kind(&talk.asked[1]), &talk.asked[1].body),
            (2, DISCONNECT, &asked)
        );
        talk.hears(1, answer).unwrap();
        talk.hears(0, reply("connected")).unwrap();
        talk.hears(0, reply("numbers")).unwrap();
        assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
        talk.hears(0, reply("ended")).unwrap();
        assert!(talk.asked.is_empty() && talk.pauses.is_empty());
    }
    // As long as one was not heard, another is waited for.
    let (mut talk, first) = Talk::asking();
    talk.hears(0, reply("numbers")).unwrap();
    assert_eq!(talk.ended(first).unwrap().ok().rows, 1);
    let second = talk.submit(Talk::select());
    talk.hears(0, Err(WireFault::Reset)).unwrap();
    talk.hears(0, reply("connected")).unwrap();
    talk.hears(0, reply("numbers")).unwrap();
    assert_eq!(kind(&talk.asked[0]), DISCONNECT);
    assert!(talk.ended(second).is_none());
    talk.hears(0, reply("ended")).unwrap();
    assert_eq!(talk.ended(second).unwrap().ok().rows, 1);
}

/// A session that is asking a statement, and has a connection that another one has left; the first request that waits is of the former.
fn with_one_left() -> (Talk, u32) {
    let (mut talk, other) = Talk::asking();
    let id = talk.submit(Talk::select());
    talk.hears(1, reply("connected")).unwrap();
    talk.hears(1, reply("numbers")).unwrap();
    assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
    assert_eq!(talk.asked.len(), 1, "its connection is kept");
    (talk, other)
}

fn kinds(talk: &Talk) -> Vec<u8> {
    talk.asked.iter().map(kind).collect()
}

/// While others are under way a statement that is known finds the connection of one that has ended, and takes one request. Nobody waits for anything when the
/// last one is answered, and all connections are ended beside that.
#[test]
fn connections_are_handed_on_while_others_are_under_way() {
    let (mut talk, first) = with_one_left();
    for wanted in ["ROLLBACK;\nSELECT 1", "SELECT 1", "SELECT 1"] {
        let next = talk.submit(Talk::select());
        assert_eq!(text(&talk.asked[1]), wanted);
        talk.hears(1, reply("numbers")).unwrap();
        assert_eq!(talk.ended(next).unwrap().ok().rows, 1);
        assert_eq!(talk.asked.len(), 1);
    }
    // What is not known is read on a connection of its own.
    let unknown = talk.submit(query("SELECT 2", vec![], LIMITS));
    assert_eq!(kind(&talk.asked[1]), CONNECT);
    talk.cancel(unknown);
    talk.hears(1, Err(WireFault::Refused)).unwrap();
    talk.hears(0, reply("numbers")).unwrap();
    assert_eq!(talk.ended(first).unwrap().ok().rows, 1);
    assert_eq!(kinds(&talk), [DISCONNECT, DISCONNECT]);
    for _ in 0..2 {
        talk.hears(0, reply("ended")).unwrap();
    }
    assert!(talk.asked.is_empty() && talk.pauses.is_empty());
}

/// By a host that tells when nobody asks for anything connections are let be kept until then: statements that follow each other take one request each.
#[test]
fn connections_are_kept_until_nobody_asks() {
    let mut talk = Talk::usual();
    talk.cancel(0);
    assert!(talk.asked.is_empty());
    let id = talk.submit(Talk::select());
    for name in ["connected", "parsed_one", "numbers"] {
        talk.hears(0, reply(name)).unwrap();
    }
    assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
    assert!(talk.asked.is_empty(), "its connection is kept");
    for wanted in ["ROLLBACK;\nSELECT 1", "SELECT 1", "SELECT 1"] {
        let id = talk.submit(Talk::select());
        assert_eq!(talk.asked.len(), 1);
        assert_eq!(text(&talk.asked[0]), wanted);
        talk.hears(0, reply("numbers")).unwrap();
        assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
        assert!(talk.asked.is_empty());
    }
    // What is told while others are under way is nothing.
    let id = talk.submit(Talk::select());
    talk.cancel(0);
    assert_eq!(talk.asked.len(), 1);
    talk.hears(0, reply("numbers")).unwrap();
    assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
    talk.cancel(0);
    assert_eq!(kinds(&talk), [DISCONNECT]);
    talk.hears(0, Err(WireFault::Reset)).unwrap();
    // One that was not heard is told again.
    talk.cancel(0);
    assert_eq!(kinds(&talk), [DISCONNECT]);
    talk.hears(0, reply("ended")).unwrap();
    talk.cancel(0);
    assert!(talk.asked.is_empty() && talk.pauses.is_empty());
    talk.submit(Talk::select());
    assert_eq!(kinds(&talk), [CONNECT]);
}

/// As many statements at once as a session has under way are asked on as many connections, again and again.
#[test]
fn each_of_many_at_once_finds_a_connection() {
    let mut talk = Talk::usual();
    talk.cancel(0);
    talk.submit(Talk::select());
    for name in ["connected", "parsed_one", "numbers"] {
        talk.hears(0, reply(name)).unwrap();
    }
    for begun in ["connected", "numbers", "numbers"] {
        let ids = [(); 64].map(|()| talk.submit(Talk::select()));
        while talk.asked.iter().any(|asked| kind(asked) == CONNECT) {
            assert_eq!(begun, "connected", "a connection is opened");
            let at = talk.asked.iter().position(|asked| kind(asked) == CONNECT);
            talk.hears(at.unwrap(), reply("connected")).unwrap();
        }
        while !talk.asked.is_empty() {
            talk.hears(0, reply("numbers")).unwrap();
        }
        for id in ids {
            assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
        }
    }
    talk.cancel(0);
    assert_eq!(kinds(&talk), [DISCONNECT; 64]);
}

/// A connection that is handed on is where its first statement has put it, with its clocks in UTC. A schema that may be dropped is used anew: DuckDB would look
/// into another one in its place.
#[test]
fn what_is_set_stays_set() {
    let asked = asked_within("SELECT 1");
    for (database, first, next) in [
        (json!({}), "", ""),
        (
            json!({"database": "lake.main"}),
            "USE \"lake\".\"main\"; ",
            "",
        ),
        (
            json!({"database": "lake.shop"}),
            "USE \"lake\".\"shop\"; ",
            "USE \"lake\".\"shop\"; ",
        ),
        (
            json!({"database": "lake"}),
            "USE \"lake\"; ",
            "USE \"lake\"; ",
        ),
    ] {
        let mut talk = Talk::open(database).unwrap();
        talk.cancel(0);
        talk.submit(Talk::select());
        for name in ["connected", "parsed_elsewhere"] {
            talk.hears(0, reply(name)).unwrap();
        }
        let wanted = format!("{first}SET TimeZone = 'UTC'; {asked}");
        assert_eq!(text(&talk.asked[0]), wanted);
        talk.hears(0, reply("numbers")).unwrap();
        for leaves in ["ROLLBACK;\n", "", ""] {
            talk.submit(Talk::select());
            assert_eq!(text(&talk.asked[0]), format!("{leaves}{next}SELECT 1"));
            talk.hears(0, reply("numbers")).unwrap();
        }
        // A minute later it has its transaction again, on a connection that is in none.
        talk.now = 59;
        talk.submit(Talk::select());
        for name in ["ended", "connected", "numbers"] {
            talk.hears(0, reply(name)).unwrap();
        }
        talk.now = 60;
        talk.submit(Talk::select());
        assert_eq!(text(&talk.asked[0]), format!("{next}{asked}"));
    }
}

/// One that was opened before the server's zone was known is put to UTC when it is handed on, once.
#[test]
fn what_was_not_set_is_set_when_it_is_handed_on() {
    let mut talk = Talk::usual();
    talk.cancel(0);
    talk.submit(Talk::select());
    for name in ["connected", "parsed_one", "numbers"] {
        talk.hears(0, reply(name)).unwrap();
    }
    talk.submit(query("SELECT 2", vec![], LIMITS));
    for name in ["connected", "parsed_elsewhere", "numbers"] {
        talk.hears(0, reply(name)).unwrap();
    }
    let in_utc = "ROLLBACK;\nSELECT 1";
    let elsewhere = "ROLLBACK;\nSET TimeZone = 'UTC'; SELECT 1";
    for wanted in [[in_utc, elsewhere], ["SELECT 1"; 2]] {
        // The one that was left last comes first.
        talk.submit(Talk::select());
        talk.submit(Talk::select());
        assert_eq!([0, 1].map(|at| text(&talk.asked[at])), wanted);
        for _ in 0..2 {
            talk.hears(0, reply("numbers")).unwrap();
        }
    }
}

/// So it is where the last one fails, or is given up.
#[test]
fn no_connection_is_left_whatever_comes_last() {
    let (mut talk, last) = with_one_left();
    talk.hears(0, refuses("boo")).unwrap();
    assert_eq!(kinds(&talk), [DISCONNECT], "it is waited for");
    talk.hears(0, reply("ended")).unwrap();
    assert_eq!(talk.ended(last).unwrap().error().code, "sql_error");
    assert_eq!(kinds(&talk), [DISCONNECT]);
    let (mut talk, last) = with_one_left();
    talk.cancel(last);
    assert_eq!(kind(&talk.asked[1]), DISCONNECT);
    talk.hears(1, reply("ended")).unwrap();
    assert_eq!(talk.ended(last).unwrap().error().code, "cancelled");
    assert_eq!(kind(&talk.asked[1]), DISCONNECT);
}

/// A server that was started anew knows none of them: what was asked there has not been done, and is asked on a new one, once.
#[test]
fn a_connection_that_is_gone_is_no_error() {
    for words in [
        "Invalid connection id",
        "cannot rollback - no transaction is active",
    ] {
        let (mut talk, _) = with_one_left();
        let id = talk.submit(Talk::select());
        talk.hears(1, refuses(words)).unwrap();
        assert_eq!(kinds(&talk)[1..], [DISCONNECT, CONNECT]);
        talk.hears(1, reply("ended")).unwrap();
        talk.hears(1, reply("connected")).unwrap();
        assert_eq!(text(&talk.asked[1]), "SELECT 1");
        talk.hears(1, refuses(words)).unwrap();
        assert_eq!(kinds(&talk)[1..], [DISCONNECT]);
        talk.hears(1, reply("ended")).unwrap();
        assert!(talk.ended(id).unwrap().end.unwrap().is_err());
    }
    // What has failed in any other way may have been done.
    for answer in [
        refuses("boo"),
        raw(503, &[], ""),
        Err(WireFault::Reset),
        Err(WireFault::Timeout),
    ] {
        let (mut talk, _) = with_one_left();
        let id = talk.submit(Talk::select());
        talk.hears(1, answer).unwrap();
        assert_eq!(kinds(&talk)[1..], [DISCONNECT]);
        talk.hears(1, reply("ended")).unwrap();
        assert!(talk.ended(id).unwrap().end.unwrap().is_err());
    }
}

/// Nothing is handed on that says something else than a new connection would, nor for long: a transaction keeps old versions of rows.
#[test]
fn connections_are_not_kept_for_long() {
    let (mut talk, _) = with_one_left();
    talk.now += 3;
    talk.submit(Talk::select());
    assert_eq!(kinds(&talk)[1..], [DISCONNECT, CONNECT]);
    let (mut talk, _) = Talk::asking();
    let seeds = talk.submit(query("SELECT \"SetSeed\"(0.5)", vec![], LIMITS));
    for name in ["connected", "parsed_one", "numbers"] {
        talk.hears(1, reply(name)).unwrap();
    }
    assert_eq!(talk.ended(seeds).unwrap().ok().rows, 1);
    assert_eq!(kinds(&talk)[1..], [DISCONNECT]);
    // Nor are there more than are asked at once.
    let (mut talk, _) = Talk::asking();
    let ids: Vec<u32> = (0..80).map(|_| talk.submit(Talk::select())).collect();
    for at in 0..2 * ids.len() {
        let name = ["connected", "numbers"][at / ids.len()];
        talk.hears(1, reply(name)).unwrap();
    }
    assert_eq!(kinds(&talk)[1..], [DISCONNECT; 16]);
}
