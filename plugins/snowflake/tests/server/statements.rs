//! What is asked, by whom, and how its end is waited for; what does not read is not.

use crate::common::{
    HANDLE, NOW, Talk, body, catalog, class_and_code, column, header, number, numbers, page, query,
    waits,
};
use serde_json::json;
use souk_sdk::{ErrorClass, Limits, Request, Value};
use souk_tests::snowflake::PRIVATE_KEY;
use souk_tests::wire::LIMITS;

/// A statement goes with what bounds it and with its values beside it, to be carried out by itself.
#[test]
fn what_leaves() {
    let mut talk = Talk::usual();
    let limits = Limits {
        rows_max: 50,
        bytes_max: 1 << 20,
        timeout_ms: 2_500,
    };
    let values = vec![Value::Text("it's".into()), Value::Int64(7)];
    talk.submit(query("SELECT ?, ?;", values, limits));
    let asked = talk.asked.remove(0);
    assert_eq!(asked.method, "POST");
    let (path, id) = asked.path.split_once("requestId=").unwrap();
    assert_eq!(path, "/api/v2/statements?");
    let (id, rest) = id.split_once('&').unwrap();
    assert_eq!((id.len(), rest), (36, "async=true"));
    for (name, value) in [
        ("accept", "application/json"),
        ("content-type", "application/json"),
        (
            "x-snowflake-authorization-token-type",
            "PROGRAMMATIC_ACCESS_TOKEN",
        ),
    ] {
        assert_eq!(header(&asked, name), Some(value));
    }
    assert!(header(&asked, "user-agent").unwrap().starts_with("souk/"));
    // The host shows the token.
    assert_eq!(header(&asked, "authorization"), None);
    let sent = body(&asked);
    let mut wanted = json!({"statement": "SELECT ?, ?", "timeout": 3, "database": "SHOP", "schema": "PUBLIC", "warehouse": "SMALL", "role": "READER",
        "bindings": {"1": {"type": "TEXT", "value": "it's"}, "2": {"type": "FIXED", "value": "7"}}});
    wanted["parameters"] = sent["parameters"].clone();
    assert_eq!(sent, wanted);
    for (name, value) in [
        ("TIMEZONE", json!("UTC")),
        ("MULTI_STATEMENT_COUNT", json!("1")),
        ("ROWS_PER_RESULTSET", json!(51)),
        ("BINARY_OUTPUT_FORMAT", json!("HEX")),
    ] {
        assert_eq!(sent["parameters"][name], value, "{name}");
    }
    assert_eq!(
        (asked.timeout_ms, asked.response_bytes_max),
        (2_500, 6 << 20)
    );
}

/// A token is made of the key, and made anew before it is too old; one of the host's is said to be what it is.
#[test]
fn it_is_said_who_asks() {
    let key = json!({"account": "myorg-shop", "username": "ada", "private_key": PRIVATE_KEY});
    let mut talk = Talk::open(key).unwrap();
    let mut shown = |now: u64| {
        talk.now = now;
        talk.submit(query("SELECT 1", vec![], LIMITS));
        let asked = talk.asked.pop().unwrap();
        let kind = header(&asked, "x-snowflake-authorization-token-type");
        assert_eq!(kind, Some("KEYPAIR_JWT"));
        header(&asked, "authorization").unwrap().to_owned()
    };
    let recorded = include_str!("../recorded/tokens.txt")
        .lines()
        .nth(1)
        .unwrap();
    let first = shown(NOW);
    assert_eq!(first.strip_prefix("Bearer "), recorded.rsplit(' ').next());
    assert_eq!(shown(NOW + 2_999), first);
    assert_ne!(shown(NOW + 3_000), first);

    let mut talk = Talk::open(json!({"authenticator": "OAUTH"})).unwrap();
    talk.submit(query("SELECT 1", vec![], LIMITS));
    let kind = header(&talk.asked[0], "x-snowflake-authorization-token-type");
    assert_eq!(kind, Some("OAUTH"));

    let broken = json!({"account": "a", "username": "b", "private_key": "x"});
    let error = Talk::open(broken).err().unwrap();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::Authentication, "bad_private_key")
    );
}

/// It is asked after until it has ended, with a pause before each time.
#[test]
fn a_statement_is_waited_for() {
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    let mut pauses = Vec::new();
    for _ in 0..8 {
        talk.hears(0, waits()).unwrap();
        assert!(talk.asked.is_empty());
        pauses.push(talk.wakes());
        assert_eq!(talk.asked[0].method, "GET");
        assert_eq!(talk.asked[0].path, format!("/api/v2/statements/{HANDLE}"));
    }
    assert_eq!(pauses, [10, 10, 10, 10, 10, 12, 15, 19]);
    talk.hears(0, numbers(2)).unwrap();
    assert_eq!(talk.ended(id).unwrap().ok().rows, 2);
}

/// The database is asked for its tables; names travel as values.
#[test]
fn the_catalog_is_one_statement() {
    let mut talk = Talk::usual();
    let id = talk.submit(catalog(true));
    let sent = body(&talk.asked[0]);
    let text = sent["statement"].as_str().unwrap();
    assert!(
        text.contains("FROM \"SHOP\".information_schema.tables AS t"),
        "{text}"
    );
    assert!(text.contains("t.table_name IN (?, ?)"), "{text}");
    assert_eq!(
        sent["bindings"]["2"],
        json!({"type": "TEXT", "value": "it's"})
    );
    let flag = |name| column(name, "boolean", json!({}));
    let text = |name| column(name, "text", json!({}));
    let columns = [
        text("schema"),
        text("table"),
        text("type"),
        number("row_estimate", 18, 0),
        text("field"),
        text("field_type"),
        flag("nullable"),
        flag("primary_key"),
    ];
    let row = json!([
        "PUBLIC",
        "A",
        "table",
        "12",
        "ID",
        "NUMBER(38,0)",
        "false",
        "false"
    ]);
    talk.hears(0, page(&columns, json!([row]))).unwrap();
    let answer = talk.ended(id).unwrap().ok();
    assert_eq!(answer.cell(3, 0), "12");
    assert_eq!(answer.cell(6, 0), "false");

    talk.submit(catalog(false));
    let sent = body(&talk.asked[0]);
    let text = sent["statement"].as_str().unwrap();
    assert!(!text.contains("columns AS c"), "{text}");
}

/// A test says which release it is, and what of the connection is not there.
#[test]
fn a_test_finds_what_is_missing() {
    let text = |name| column(name, "text", json!({}));
    let columns = ["V", "D", "S", "W", "R"].map(text);
    let ask = |row: serde_json::Value| {
        let mut talk = Talk::usual();
        let ping = Request::Ping(Limits {
            rows_max: 1,
            ..LIMITS
        });
        talk.ask(ping, [page(&columns, json!([row]))])
    };
    let answer = ask(json!(["9.35.1", "SHOP", "PUBLIC", "SMALL", "READER"])).ok();
    assert_eq!(answer.cell(0, 0), "9.35.1");
    // It refuses no write by itself.
    assert_eq!(answer.cell(1, 0), "NULL");
    for (row, code) in [
        (json!(["9", null, null, "W", "R"]), "unknown_database"),
        (json!(["9", "SHOP", null, "W", "R"]), "unknown_schema"),
        (
            json!(["9", "SHOP", "PUBLIC", null, "R"]),
            "missing_warehouse",
        ),
    ] {
        let error = ask(row).error();
        assert_eq!(class_and_code(&error), (ErrorClass::Configuration, code));
    }
    for row in [json!([null, "SHOP", "S", "W", "R"]), json!(["9"])] {
        assert_eq!(ask(row).error().code, "malformed_answer");
    }
    let mut talk = Talk::usual();
    let none = talk.ask(Request::Ping(LIMITS), [page(&columns, json!([]))]);
    assert_eq!(none.error().code, "malformed_answer");
}

/// What is not sent is told to whom it belongs.
#[test]
fn what_does_not_read_does_not_leave() {
    let mut talk = Talk::usual();
    for text in [
        "DELETE FROM t",
        "SELECT 1 ->> DROP TABLE t",
        "SELECT 1; SELECT 2",
    ] {
        let error = talk.ask(query(text, vec![], LIMITS), []).error();
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::Permission, "read_only")
        );
    }
    let error = talk.ask(query("SELECT ?", vec![], LIMITS), []).error();
    assert_eq!(error.code, "parameter_count");
    let wide = vec![Value::Decimal("9".repeat(39))];
    let error = talk.ask(query("SELECT ?", wide, LIMITS), []).error();
    assert_eq!(
        (error.code.as_str(), error.parameter),
        ("parameter_type", Some(0))
    );
    assert!(talk.asked.is_empty());
}
