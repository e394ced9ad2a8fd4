//! What is refused, given up, too late or too much, and who is told so.

use crate::common::{
    CONNECT, DISCONNECT, Reply, Talk, class_and_code, goes_on, kind, raw, refuses, reply,
};
use serde_json::json;
use souk_sdk::{ErrorClass, Limits, Request, WireFault};
use souk_tests::wire::LIMITS;

#[test]
fn whoever_is_not_let_in_is_told_so() {
    let thrown = |kind: &str| -> Reply {
        let what = json!({"exception_type": kind, "exception_message": "as it says"}).to_string();
        raw(500, &[("EXCEPTION_WHAT", what.as_str())], "")
    };
    for (answer, class, code) in [
        (
            reply("unknown"),
            ErrorClass::Authentication,
            "credentials_refused",
        ),
        (
            refuses("Unsupported Quack version - server only supports version 2 of quack"),
            ErrorClass::Configuration,
            "other_version",
        ),
        (
            thrown("Invalid Configuration"),
            ErrorClass::Configuration,
            "server_misconfigured",
        ),
        (
            thrown("Serialization"),
            ErrorClass::Internal,
            "message_refused",
        ),
        (thrown("IO"), ErrorClass::Source, "server_failed"),
        (
            raw(404, &[], "nginx"),
            ErrorClass::Configuration,
            "no_quack",
        ),
        (
            raw(401, &[], ""),
            ErrorClass::Authentication,
            "credentials_refused",
        ),
        (
            raw(400, &[], "<html>nginx"),
            ErrorClass::Source,
            "malformed_answer",
        ),
        (Err(WireFault::Tls), ErrorClass::Configuration, "tls_failed"),
    ] {
        let mut talk = Talk::usual();
        let error = talk.ask(Talk::select(), [answer]).error();
        assert_eq!(class_and_code(&error), (class, code));
        assert!(talk.asked.is_empty());
    }
}

#[test]
fn a_test_tries_to_write() {
    for (answer, wanted) in [
        (
            refuses(
                "Cannot write to database \"memory\" - transaction is launched in read-only mode",
            ),
            "true",
        ),
        (reply("success"), "false"),
        (refuses("Out of Memory Error"), "NULL"),
    ] {
        let mut talk = Talk::usual();
        let ping = Request::Ping(Limits {
            rows_max: 1,
            ..LIMITS
        });
        let replies = ["connected", "parsed_one", "success"].map(reply);
        let answer = talk
            .ask(ping, replies.into_iter().chain([answer, reply("ended")]))
            .ok();
        assert_eq!(
            (answer.cell(0, 0).as_str(), answer.cell(1, 0).as_str()),
            ("v1.5.5", wanted)
        );
    }
    let mut talk = Talk::usual();
    let missing = refuses("Scalar Function with name json_serialize_sql does not exist!");
    let error = talk
        .ask(
            Request::Ping(LIMITS),
            [reply("connected"), missing, reply("ended")],
        )
        .error();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::Configuration, "json_missing")
    );
}

/// Whoever gives up is not kept waiting, and leaves no connection.
#[test]
fn a_cancelled_statement_ends_its_connection() {
    let (mut talk, id) = Talk::asking();
    talk.cancel(id);
    // The answer that nobody waits for any more, and the end of the connection.
    assert_eq!((talk.asked.len(), kind(&talk.asked[1])), (2, DISCONNECT));
    talk.hears(1, reply("ended")).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    talk.hears(0, reply("numbers")).unwrap();
    assert!(talk.asked.is_empty());
    // One that is being opened is ended when it is known.
    let mut talk = Talk::usual();
    let id = talk.submit(Talk::select());
    talk.cancel(id);
    talk.hears(0, reply("connected")).unwrap();
    assert_eq!(kind(&talk.asked[0]), DISCONNECT);
    talk.hears(0, reply("ended")).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
}

#[test]
fn a_statement_has_the_connections_time() {
    let mut talk = Talk::open(json!({"statement_timeout_ms": 250})).unwrap();
    let id = talk.submit(Talk::select());
    for name in ["connected", "parsed_one"] {
        talk.hears(0, reply(name)).unwrap();
    }
    assert_eq!(talk.asked[0].timeout_ms, 250);
    talk.hears(0, Err(WireFault::Timeout)).unwrap();
    assert_eq!(kind(&talk.asked[0]), DISCONNECT);
    talk.hears(0, reply("ended")).unwrap();
    let error = talk.ended(id).unwrap().error();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::Timeout, "statement_timeout")
    );
}

/// For a connection. What else is asked DuckDB may have done.
#[test]
fn a_busy_proxy_is_asked_again() {
    let mut talk = Talk::usual();
    let id = talk.submit(Talk::select());
    let first = talk.asked[0].body.clone();
    talk.hears(0, raw(503, &[], "")).unwrap();
    assert!(talk.asked.is_empty());
    assert_eq!(talk.wakes(), 100);
    assert_eq!(talk.asked[0].body, first);
    talk.hears(0, raw(429, &[("Retry-After", "3600")], ""))
        .unwrap();
    let error = talk.ended(id).unwrap().error();
    assert_eq!(error.class, ErrorClass::RateLimited);
    for asked in 0..=3 {
        for status in [502, 503, 504] {
            if (asked, status) == (0, 503) {
                continue;
            }
            let mut talk = Talk::usual();
            let id = talk.submit(Talk::select());
            let answers = [
                reply("connected"),
                reply("parsed_one"),
                raw(200, &[], goes_on("filtered_ints")),
            ];
            for answer in answers.into_iter().take(asked) {
                talk.hears(0, answer).unwrap();
            }
            talk.hears(0, raw(status, &[], "")).unwrap();
            assert!(talk.pauses.is_empty(), "{asked}: {status}");
            if asked > 0 {
                talk.hears(0, reply("ended")).unwrap();
            }
            let error = talk.ended(id).unwrap().error();
            assert!(
                [ErrorClass::Unavailable, ErrorClass::Timeout].contains(&error.class),
                "{asked}, {status}: {error:?}"
            );
        }
    }
}

/// 64 HTTP requests of a session are under way at once beside the ends of connections: what is more waits, and is taken back by whoever gives up.
#[test]
fn what_is_under_way_is_bounded() {
    let mut talk = Talk::usual();
    let ids: Vec<u32> = (0..80).map(|_| talk.submit(Talk::select())).collect();
    talk.cancel(ids[70]);
    assert_eq!(
        talk.ended(ids[70]).unwrap().error().code,
        "cancelled",
        "it was not sent"
    );
    let mut most = 0;
    while let Some(asked) = talk.asked.first() {
        let statements = talk.asked.iter().filter(|asked| kind(asked) != DISCONNECT);
        most = most.max(statements.count());
        let answer = match kind(asked) {
            CONNECT => reply("connected"),
            DISCONNECT => reply("ended"),
            _ if asked.body.len() > 200 => reply("parsed_one"),
            _ => reply("numbers"),
        };
        talk.hears(0, answer).unwrap();
    }
    assert_eq!(most, 64);
    for id in ids.into_iter().filter(|id| *id != 71) {
        assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
    }
    // Whoever gives up while 64 are under way has nothing sent afterwards but the end of his connection.
    let (mut talk, id) = Talk::asking();
    let others: Vec<u32> = (0..63).map(|_| talk.submit(Talk::select())).collect();
    talk.cancel(id);
    for id in others {
        talk.cancel(id);
    }
    assert_eq!((talk.asked.len(), kind(&talk.asked[64])), (65, DISCONNECT));
    talk.hears(64, reply("ended")).unwrap();
    for _ in 0..64 {
        talk.hears(0, Err(WireFault::Refused)).unwrap();
    }
    assert!(talk.asked.is_empty());
}

/// A server that answers none of 64 statements hears at once that nobody wants them: each is still under way when its connection is ended.
#[test]
fn the_ends_of_all_that_are_given_up_are_sent_at_once() {
    let (mut talk, first) = Talk::asking();
    let mut ids: Vec<u32> = (0..63).map(|_| talk.submit(Talk::select())).collect();
    for _ in &ids {
        talk.hears(1, reply("connected")).unwrap();
    }
    ids.push(first);
    assert_eq!(talk.asked.len(), ids.len());
    for id in &ids {
        talk.cancel(*id);
    }
    let ends = talk.asked.iter().filter(|asked| kind(asked) == DISCONNECT);
    assert_eq!(ends.count(), ids.len());
    for _ in &ids {
        talk.hears(64, reply("ended")).unwrap();
    }
    for id in ids {
        assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    }
}
