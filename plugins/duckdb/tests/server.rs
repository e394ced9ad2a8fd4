//! What a session asks of a server, in which order, and what it makes of refusals.

mod common;

use common::{
    CONNECT, DISCONNECT, Reply, Talk, asked_within, class_and_code, fetched, goes_on, kind, query,
    raw, recorded, refuses, reply, text,
};
use serde_json::json;
use souk_sdk::{ErrorClass, Limits, Request, Value, WireFault};
use souk_tests::wire::LIMITS;

/// A statement is read by DuckDB's parser once, and runs in a transaction that only reads, the first time, on a connection that is ended. One that is known is answered
/// after two requests; the third one ends the connection beside that.
#[test]
fn a_statement_is_judged_once_and_runs_in_a_transaction() {
    let mut talk = Talk::usual();
    for round in 0..2 {
        let id = talk.submit(Talk::select());
        assert_eq!(talk.asked[0].path, "/quack");
        assert!(
            talk.asked[0]
                .body
                .windows(11)
                .any(|part| part == b"secrettoken")
        );
        talk.hears(0, reply("connected")).unwrap();
        if round == 0 {
            assert!(text(&talk.asked[0]).contains("json_serialize_sql('SELECT 1')"));
            talk.hears(0, reply("parsed_one")).unwrap();
        }
        let wanted = match round {
            0 => asked_within("SELECT 1"),
            _ => "SELECT 1".to_owned(),
        };
        assert_eq!(text(&talk.asked[0]), wanted);
        talk.hears(0, reply("numbers")).unwrap();
        assert_eq!(talk.ended(id).unwrap().ok().rows, 1);
        assert_eq!((talk.asked.len(), kind(&talk.asked[0])), (1, DISCONNECT));
        talk.hears(0, reply("ended")).unwrap();
        assert!(talk.asked.is_empty());
    }
}

/// What DuckDB's parser takes for anything but one query that reads tables is not run.
#[test]
fn what_the_parser_refuses_is_not_run() {
    for (name, class, code) in [
        ("parsed_csv", ErrorClass::Permission, "read_only"),
        ("parsed_file", ErrorClass::Permission, "read_only"),
        ("parsed_two", ErrorClass::Permission, "read_only"),
        ("parsed_drop", ErrorClass::Permission, "read_only"),
        ("parsed_cte", ErrorClass::Permission, "read_only"),
        ("parsed_syntax", ErrorClass::Source, "syntax_error"),
        ("parsed_plan", ErrorClass::Permission, "read_only"),
        ("parsed_settings", ErrorClass::Permission, "read_only"),
        ("parsed", ErrorClass::Source, "parameters_misread"),
        (
            "parsed_installs",
            ErrorClass::Configuration,
            "installs_extensions",
        ),
        ("numbers", ErrorClass::Source, "malformed_answer"),
        ("empty", ErrorClass::Source, "malformed_answer"),
    ] {
        let mut talk = Talk::usual();
        let id = talk.submit(Talk::select());
        talk.hears(0, reply("connected")).unwrap();
        talk.hears(0, reply(name)).unwrap();
        assert_eq!(kind(&talk.asked[0]), DISCONNECT, "{name}");
        talk.hears(0, reply("ended")).unwrap();
        let error = talk.ended(id).unwrap().error();
        assert_eq!(class_and_code(&error), (class, code), "{name}");
        // Nor is it known now.
        talk.submit(Talk::select());
        talk.hears(0, reply("connected")).unwrap();
        assert!(text(&talk.asked[0]).contains("json_serialize_sql"));
    }
}

/// Where the server's clocks are in another zone each connection is put to UTC, also if the server says so beside a refusal.
#[test]
fn clocks_are_put_to_utc() {
    let mut talk = Talk::usual();
    let [one, three] = ["SELECT 1", "SELECT 3"].map(asked_within);
    let elsewhere = format!("SET TimeZone = 'UTC'; {one}");
    let alone = "SET TimeZone = 'UTC'; SELECT 1";
    for (text_of, judged, asked) in [
        ("SELECT 1", Some("parsed_elsewhere"), elsewhere.as_str()),
        ("SELECT 1", None, alone),
        ("SELECT 2", Some("parsed_drop_elsewhere"), ""),
        ("SELECT 1", None, alone),
        // Somebody has put the server to UTC.
        ("SELECT 3", Some("parsed_one"), three.as_str()),
        ("SELECT 1", None, "SELECT 1"),
    ] {
        talk.submit(query(text_of, vec![], LIMITS));
        talk.hears(0, reply("connected")).unwrap();
        if let Some(judged) = judged {
            talk.hears(0, reply(judged)).unwrap();
        }
        if !asked.is_empty() {
            assert_eq!(text(&talk.asked[0]), asked);
            talk.hears(0, reply("numbers")).unwrap();
        }
        assert_eq!(kind(&talk.asked[0]), DISCONNECT);
        talk.hears(0, reply("ended")).unwrap();
        assert!(talk.asked.is_empty());
    }
}

/// DuckDB's parser is asked of the very text that runs, with a name in the place of each value, and sees all of them.
#[test]
fn values_stand_where_the_parser_sees_them() {
    // As many parameters as there are values, of which the text hides one in a quote.
    let mut talk = Talk::usual();
    let one = query("SELECT ?", vec![Value::Int64(1)], LIMITS);
    let id = talk.submit(one);
    talk.hears(0, reply("connected")).unwrap();
    assert!(text(&talk.asked[0]).contains("json_serialize_sql('SELECT  $souks_value_0 ')"));
    talk.hears(0, reply("parsed_hidden")).unwrap();
    talk.hears(0, reply("ended")).unwrap();
    let error = talk.ended(id).unwrap().error();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::Source, "parameters_misread")
    );
    let mut talk = Talk::usual();
    let id = talk.submit(query(
        "SELECT upper(?), s.* FROM s.t AS s, range(3) WHERE a = ?",
        vec![Value::Text("x'y".into()), Value::Int64(1)],
        LIMITS,
    ));
    for name in ["connected", "parsed"] {
        talk.hears(0, reply(name)).unwrap();
    }
    assert_eq!(
        text(&talk.asked[0]),
        asked_within(
            "SELECT upper( CAST('x''y' AS VARCHAR) ), s.* FROM s.t AS s, range(3) WHERE a =  CAST('1' AS BIGINT) "
        )
    );
    talk.hears(0, refuses("Could not convert string 'x'y' to INT32"))
        .unwrap();
    talk.hears(0, reply("ended")).unwrap();
    let error = talk.ended(id).unwrap().error();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::InvalidRequest, "invalid_value")
    );
}

#[test]
fn a_database_is_used_before_anything_is_asked() {
    let mut talk = Talk::open(json!({"database": "la\"ke.shop"})).unwrap();
    let id = talk.submit(Talk::select());
    for name in ["connected", "parsed_one"] {
        talk.hears(0, reply(name)).unwrap();
    }
    assert_eq!(
        text(&talk.asked[0]),
        "USE \"la\"\"ke\".\"shop\"; BEGIN TRANSACTION READ ONLY;\nSELECT 1"
    );
    talk.hears(
        0,
        refuses("SET schema: No catalog + schema named \"x\" found."),
    )
    .unwrap();
    talk.hears(0, reply("ended")).unwrap();
    let error = talk.ended(id).unwrap().error();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::Configuration, "unknown_database")
    );
}

/// More rows are fetched until there are none: what has none is called by a number, or by none.
#[test]
fn rows_are_fetched_to_their_end() {
    let mut empty = recorded("fetched_all");
    let number = empty.len() - 12..empty.len() - 2;
    empty.splice(number, [4]);
    for last in [reply("fetched_all"), raw(200, &[], empty)] {
        let (mut talk, id) = Talk::fetching();
        for number in 1..=3 {
            assert_eq!(kind(&talk.asked[0]), 7);
            talk.hears(0, fetched(number)).unwrap();
        }
        talk.hears(0, last).unwrap();
        assert_eq!(kind(&talk.asked[0]), DISCONNECT);
        talk.hears(0, reply("ended")).unwrap();
        assert_eq!(talk.ended(id).unwrap().ok().rows, 2 + 3 * 2);
    }
}

/// Rows that were lost, or come twice, are noticed.
#[test]
fn rows_that_are_lost_are_missed() {
    for numbers in [&[2][..], &[1, 1], &[1, 3], &[0]] {
        let (mut talk, id) = Talk::fetching();
        for number in numbers {
            talk.hears(0, fetched(*number)).unwrap();
        }
        assert_eq!(kind(&talk.asked[0]), DISCONNECT);
        talk.hears(0, reply("ended")).unwrap();
        let error = talk.ended(id).unwrap().error();
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::Unavailable, "rows_lost"),
            "{numbers:?}"
        );
    }
}

/// Of an answer that ends before its end nothing is believed.
#[test]
fn what_is_cut_off_is_no_end() {
    let whole = recorded("fetched_all");
    let head = 17;
    let rubbish = [&whole[..head], b"rubbish"].concat();
    let longer = [&whole[..], &[0]].concat();
    let cut = (head..whole.len()).map(|end| whole[..end].to_vec());
    for answer in cut.chain([rubbish, longer]) {
        let (mut talk, id) = Talk::fetching();
        talk.hears(0, raw(200, &[], answer)).unwrap();
        talk.hears(0, reply("ended")).unwrap();
        let error = talk.ended(id).unwrap().error();
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::Source, "malformed_answer")
        );
    }
}

/// A wire that breaks, or a server that is another one, in the middle of a result.
#[test]
fn half_a_result_is_none() {
    for (answer, class, code) in [
        (
            Err(WireFault::Reset),
            ErrorClass::Unavailable,
            "connection_lost",
        ),
        (
            Err(WireFault::BadResponse),
            ErrorClass::Source,
            "bad_response",
        ),
        (
            refuses("Invalid connection id"),
            ErrorClass::Unavailable,
            "connection_lost",
        ),
        (reply("numbers"), ErrorClass::Source, "malformed_answer"),
        (reply("ended"), ErrorClass::Source, "malformed_answer"),
        (raw(404, &[], ""), ErrorClass::Configuration, "no_quack"),
        // DuckDB may have sent them, and sends others when it is asked again.
        (raw(502, &[], ""), ErrorClass::Unavailable, "unavailable"),
        (raw(503, &[], ""), ErrorClass::Unavailable, "unavailable"),
        (
            raw(200, &[], "<html>"),
            ErrorClass::Source,
            "malformed_answer",
        ),
    ] {
        let (mut talk, id) = Talk::fetching();
        talk.hears(0, answer).unwrap();
        assert_eq!(kind(&talk.asked[0]), DISCONNECT);
        talk.hears(0, Err(WireFault::Refused)).unwrap();
        let error = talk.ended(id).unwrap().error();
        assert_eq!(class_and_code(&error), (class, code));
    }
}

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

/// A connection that is not ended stays at the server, with its transaction. Of what has failed the end is waited for.
#[test]
fn the_end_of_a_connection_is_told_twice() {
    for answer in [
        raw(429, &[], ""),
        raw(502, &[], ""),
        raw(504, &[], ""),
        Err(WireFault::Reset),
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
    for answer in [raw(429, &[], ""), Err(WireFault::Reset)] {
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
    // Nor are there more than a few.
    let (mut talk, _) = Talk::asking();
    let ids: Vec<u32> = (0..12).map(|_| talk.submit(Talk::select())).collect();
    for at in 0..2 * ids.len() {
        let name = ["connected", "numbers"][at / ids.len()];
        talk.hears(1, reply(name)).unwrap();
    }
    assert_eq!(kinds(&talk)[1..], [DISCONNECT; 4]);
}

/// 64 HTTP requests of a session are under way at once: what is more waits, and is taken back by whoever gives up.
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
        most = most.max(talk.asked.len());
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
    assert_eq!(talk.asked.len(), 64);
    let answers = talk.asked.len();
    for _ in 0..answers {
        talk.hears(0, Err(WireFault::Refused)).unwrap();
    }
    assert_eq!((talk.asked.len(), kind(&talk.asked[0])), (1, DISCONNECT));
    talk.hears(0, reply("ended")).unwrap();
    assert!(talk.asked.is_empty());
}
