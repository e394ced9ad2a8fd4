//! A statement is judged once, in the very text that runs, and runs where the data connection says.

use crate::common::{
    DISCONNECT, Talk, asked_within, class_and_code, kind, query, refuses, reply, text,
};
use serde_json::json;
use souk_sdk::{ErrorClass, Value};
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
