//! What the connector says to Snowflake, and what it makes of what Snowflake says.

mod common;

use common::{
    HANDLE, NOW, Talk, body, catalog, class_and_code, column, header, number, numbers, ordered,
    packed, page, part, query, raw, refuses, reply, result, waits,
};
use serde_json::json;
use souk_sdk::{ErrorClass, Limits, Request, Value, WireFault};
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
    let recorded = include_str!("recorded/tokens.txt").lines().nth(1).unwrap();
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

/// The parts of a result are asked for one after the other; none is left out, and no row.
#[test]
fn parts_follow_each_other() {
    let columns = [
        number("N", 18, 0),
        column("T", "text", json!({"length": 9})),
    ];
    let first = result(&columns, json!([["1", "a"]]), &[1, 2, 1]);
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    talk.hears(0, reply(200, first.clone())).unwrap();
    for (number, rows) in [
        (1, json!([["2", null], ["3", "c"]])),
        (2, json!([["4", "d"]])),
    ] {
        assert!(talk.ended(id).is_none());
        let path = format!("/api/v2/statements/{HANDLE}?partition={number}");
        assert_eq!(talk.asked[0].path, path);
        talk.hears(0, part(rows)).unwrap();
    }
    let answer = talk.ended(id).unwrap().ok();
    assert_eq!((answer.rows, answer.chunks.len()), (4, 3));
    // One that comes shorter than it was said to be is no answer.
    let short = [
        reply(200, first),
        part(json!([["2", null]])),
        part(json!([["4", "d"]])),
    ];
    let error = talk.rows_of(short).error();
    assert_eq!(class_and_code(&error), (ErrorClass::Source, "rows_missing"));
}

/// In whichever order an answer has its members it is read, and told once; later parts may come as they are, too.
#[test]
fn answers_have_any_order() {
    let first = result(&[number("N", 18, 0)], json!([["1"], [null]]), &[2, 1]);
    let mut order = ["resultSetMetaData", "data", "statementHandle"];
    for turn in 0..2 * order.len() {
        order.rotate_left(1);
        if turn == order.len() {
            order.reverse();
        }
        for last in [
            part(json!([["7"]])),
            raw(200, &[], r#"{"a":[[]],"data":[["7"]]}"#),
            raw(200, &[], r#"[["7"]]"#),
        ] {
            let mut talk = Talk::usual();
            let answer = talk.rows_of([ordered(&first, &order), last]).ok();
            assert_eq!((answer.rows, answer.chunks.len()), (3, 2), "{order:?}");
            assert_eq!(answer.cell(0, 0), "1", "{order:?}");
        }
    }
}

/// Rows are told as they are read. What stands behind them may spoil the answer, but tells nothing twice; and a statement that has ended is not
/// stopped for its rows.
#[test]
fn what_follows_rows_is_read() {
    let columns = [number("N", 18, 0)];
    let whole = result(&columns, json!([["1"]]), &[1]);
    let wrong = result(&columns, json!([["1"], ["x"]]), &[2]);
    for (answer, order) in [
        (
            &whole,
            ["resultSetMetaData", "data", "data", "statementHandle"],
        ),
        (
            &whole,
            ["data", "resultSetMetaData", "data", "statementHandle"],
        ),
        (
            &whole,
            ["data", "data", "resultSetMetaData", "statementHandle"],
        ),
        (
            &whole,
            ["resultSetMetaData", "code", "message", "statementHandle"],
        ),
        (
            &wrong,
            ["resultSetMetaData", "data", "message", "statementHandle"],
        ),
        (
            &wrong,
            ["data", "resultSetMetaData", "message", "statementHandle"],
        ),
    ] {
        let mut talk = Talk::usual();
        let error = talk.rows_of([ordered(answer, &order)]).error();
        assert_eq!(error.code, "malformed_answer", "{order:?}");
        assert!(talk.asked.is_empty(), "{order:?}");
    }
    // What has no name may go on for all that is known: it is asked for.
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    talk.hears(0, ordered(&whole, &["resultSetMetaData", "data"]))
        .unwrap();
    assert!(talk.asked[0].path.ends_with("&retry=true"));
    talk.hears(
        0,
        ordered(&whole, &["resultSetMetaData", "statementHandle"]),
    )
    .unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "malformed_answer");
    assert!(talk.asked.is_empty());
}

/// A part that becomes a large one is read piece by piece, with the host in between; who gives up does so between two pieces, too.
#[test]
fn a_large_part_is_read_in_pieces() {
    let rows: Vec<_> = (0..60_000).map(|n| json!([format!("{n:0>100}")])).collect();
    let columns = [column("T", "text", json!({}))];
    let first = result(&columns, json!([["first"]]), &[1, rows.len()]);
    for gives_up in [false, true] {
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        talk.hears(0, reply(200, first.clone())).unwrap();
        talk.hears(0, part(rows.clone().into())).unwrap();
        let mut pauses = 0;
        while !talk.pauses.is_empty() {
            pauses += 1;
            if gives_up && pauses == 2 {
                talk.cancel(id);
                assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
            }
            assert_eq!(talk.wakes(), 1);
        }
        assert!(talk.asked.is_empty());
        match gives_up {
            true => assert_eq!(pauses, 2),
            false => {
                assert!(pauses > 2, "{pauses}");
                let answer = talk.ended(id).unwrap().ok();
                assert_eq!(answer.rows as usize, 1 + rows.len());
            }
        }
    }
}

#[test]
fn limits_are_held() {
    let limits = Limits {
        rows_max: 3,
        bytes_max: 24,
        timeout_ms: 1_000,
    };
    let mut talk = Talk::usual();
    let mut ask = |replies: Vec<common::Reply>| {
        talk.ask(query("SELECT 1", vec![], limits), replies)
            .end
            .unwrap()
            .err()
            .map(|error| error.code)
    };
    assert_eq!(ask(vec![numbers(3)]), None);
    assert_eq!(ask(vec![numbers(4)]).as_deref(), Some("rows_limit"));
    let texts = |length: usize| {
        let row = json!(["x".repeat(length)]);
        page(&[column("T", "text", json!({}))], json!([row, row]))
    };
    assert_eq!(ask(vec![texts(12)]), None);
    assert_eq!(ask(vec![texts(13)]).as_deref(), Some("bytes_limit"));
    // A part that has more rows than were said.
    let first = result(&[number("N", 18, 0)], json!([["1"]]), &[1, 2]);
    let more = part(json!([["2"], ["3"], ["4"]]));
    let more = ask(vec![reply(200, first), more]);
    assert_eq!(more.as_deref(), Some("rows_limit"));
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

#[test]
fn errors_are_blamed_by_their_code() {
    use ErrorClass as Class;
    let mut talk = Talk::usual();
    for (status, code, state, text, class, word) in [
        (
            401,
            "390144",
            "",
            "JWT token is invalid.",
            Class::Authentication,
            "key_refused",
        ),
        (
            401,
            "394304",
            "",
            "JWT token is invalid.",
            Class::Authentication,
            "key_refused",
        ),
        (
            401,
            "390318",
            "",
            "OAuth access token expired.",
            Class::Authentication,
            "credentials_refused",
        ),
        (
            401,
            "394400",
            "",
            "Programmatic access token is invalid.",
            Class::Authentication,
            "credentials_refused",
        ),
        (
            401,
            "",
            "",
            "no",
            Class::Authentication,
            "credentials_refused",
        ),
        (
            401,
            "390422",
            "",
            "Incoming request with IP 1.2.3.4 is not allowed to access Snowflake.",
            Class::Configuration,
            "address_refused",
        ),
        (
            403,
            "390189",
            "",
            "Role 'READER' specified in the connect string does not exist or not authorized.",
            Class::Configuration,
            "unknown_role",
        ),
        (
            403,
            "390201",
            "",
            "The requested warehouse does not exist or not authorized.",
            Class::Configuration,
            "unknown_warehouse",
        ),
        (
            422,
            "000606",
            "57P03",
            "No active warehouse selected in the current session.",
            Class::Configuration,
            "missing_warehouse",
        ),
        (
            422,
            "090105",
            "22000",
            "Cannot perform SELECT. This session does not have a current database.",
            Class::Configuration,
            "unknown_database",
        ),
        (
            422,
            "002003",
            "02000",
            "SQL compilation error: Database 'SHOP' does not exist or not authorized.",
            Class::Configuration,
            "unknown_database",
        ),
        (
            422,
            "002003",
            "02000",
            "SQL compilation error:\nSchema 'SHOP.PUBLIC' does not exist or not authorized.",
            Class::Configuration,
            "unknown_schema",
        ),
        (
            422,
            "002003",
            "02000",
            "SQL compilation error:\nSchema 'SHOP.X' does not exist or not authorized.",
            Class::NotFound,
            "unknown_schema",
        ),
        (
            422,
            "002003",
            "42S02",
            "SQL compilation error:\nObject 'X' does not exist or not authorized.",
            Class::NotFound,
            "unknown_table",
        ),
        (
            422,
            "002140",
            "42601",
            "SQL compilation error:\nUnknown function F",
            Class::NotFound,
            "unknown_function",
        ),
        (
            422,
            "000904",
            "42000",
            "SQL compilation error: error line 1 at position 7\ninvalid identifier 'X'",
            Class::Source,
            "unknown_column",
        ),
        (
            422,
            "001003",
            "42000",
            "SQL compilation error:\nsyntax error line 1 at position 0 unexpected 'SELEC'.",
            Class::Source,
            "syntax_error",
        ),
        (
            422,
            "000008",
            "0A000",
            "Actual statement count 2 did not match the desired statement count 1.",
            Class::Permission,
            "read_only",
        ),
        (
            422,
            "003001",
            "42501",
            "SQL access control error: Insufficient privileges to operate on table 'T'",
            Class::Permission,
            "permission_denied",
        ),
        (
            422,
            "100051",
            "22012",
            "Division by zero",
            Class::Source,
            "invalid_value",
        ),
        (
            422,
            "000604",
            "57014",
            "SQL execution canceled",
            Class::Timeout,
            "cancelled",
        ),
        (
            408,
            "000630",
            "57014",
            "Statement reached its statement or warehouse timeout of 3 second(s) and was canceled.",
            Class::Timeout,
            "statement_timeout",
        ),
        (
            422,
            "090073",
            "22000",
            "Warehouse 'W' cannot be resumed because resource monitor 'M' has exceeded its quota.",
            Class::Unavailable,
            "quota_exhausted",
        ),
        (
            422,
            "002028",
            "42601",
            "ambiguous column name 'A'",
            Class::Source,
            "sql_error",
        ),
        (
            500,
            "000603",
            "XX000",
            "SQL execution internal error",
            Class::Source,
            "internal_error",
        ),
        (404, "", "", "", Class::NotFound, "not_found"),
        (400, "", "", "", Class::Source, "malformed_answer"),
    ] {
        let reply = match (code, text) {
            ("", "") => raw(status, &[], "<html>"),
            _ => refuses(status, code, state, text),
        };
        let error = talk.rows_of([reply]).error();
        assert_eq!(class_and_code(&error), (class, word), "{status} {code}");
        // Its own text is the owner's to see.
        let detail = error.detail.unwrap_or_default();
        assert!(detail == text || text.is_empty(), "{detail}");
    }
    let error = talk.rows_of([Err(WireFault::Refused)]).error();
    assert_eq!(error.class, Class::Unavailable);
    // One may come compressed, too.
    let text = "{\"code\":\"001003\",\"message\":\"SQL compilation error\"}";
    let reply = raw(422, &[("Content-Encoding", "gzip")], packed(text));
    let error = talk.rows_of([reply]).error();
    assert_eq!(class_and_code(&error), (Class::Source, "syntax_error"));
    assert_eq!(error.detail.as_deref(), Some("SQL compilation error"));
}

/// A value that Snowflake refuses is the caller's where it is named as one: those of a page are the host's, and the tables' are the seller's.
#[test]
fn values_of_the_sellers_are_not_the_callers() {
    let mut talk = Talk::usual();
    let plain = "SELECT ?, ? FROM t";
    let page = "SELECT ?::NUMBER, n FROM t\nLIMIT ? OFFSET ?";
    let values = |text: &str| vec![Value::Text(text.into()), Value::Int64(51)];
    let paged = |text: &str| [values(text), vec![Value::Int64(0)]].concat();
    for (text, values, state, message, is_callers) in [
        (
            plain,
            values("x"),
            "22018",
            "Numeric value 'x' is not recognized",
            true,
        ),
        (
            plain,
            values("x"),
            "22018",
            "Numeric value '51' is not recognized",
            true,
        ),
        (
            plain,
            values("x"),
            "22018",
            "Numeric value 'xy' is not recognized",
            false,
        ),
        (
            plain,
            values("x"),
            "22018",
            "Numeric value 'n/a' is not recognized",
            false,
        ),
        (plain, values("0"), "22012", "Division by zero", false),
        (plain, values("0"), "22012", "Division by zero: '0'", false),
        (
            page,
            paged("x"),
            "22018",
            "Numeric value 'x' is not recognized",
            true,
        ),
        (
            page,
            paged("x"),
            "22018",
            "Numeric value '51' is not recognized",
            false,
        ),
        (
            page,
            paged("x"),
            "22003",
            "Number out of representable range",
            false,
        ),
    ] {
        let asked = query(text, values, LIMITS);
        let error = talk
            .ask(asked, [refuses(422, "100038", state, message)])
            .error();
        let class = match is_callers {
            true => ErrorClass::InvalidRequest,
            false => ErrorClass::Source,
        };
        assert_eq!(
            class_and_code(&error),
            (class, "invalid_value"),
            "{message}"
        );
    }
}

/// Who is busy is asked the same again, and Snowflake carries it out once.
#[test]
fn who_is_busy_is_asked_again() {
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    let first = talk.asked[0].path.clone();
    let mut pauses = Vec::new();
    for status in [429, 502, 503, 504, 503, 503] {
        talk.hears(0, raw(status, &[], "busy")).unwrap();
        pauses.push(talk.wakes());
        assert_eq!(talk.asked[0].path, format!("{first}&retry=true"));
    }
    assert_eq!(pauses, [100, 200, 400, 800, 1_600, 3_200]);
    talk.hears(0, raw(503, &[], "busy")).unwrap();
    // Whoever gives up asks once more, to stop what may have been taken.
    assert_eq!(talk.asked[0].path, format!("{first}&retry=true"));
    talk.hears(0, raw(503, &[], "busy")).unwrap();
    let error = talk.ended(id).unwrap().error();
    assert_eq!(error.class, ErrorClass::Unavailable);

    let id = talk.submit(query("SELECT 1", vec![], LIMITS));
    talk.hears(0, raw(429, &[("Retry-After", "2")], ""))
        .unwrap();
    assert_eq!(talk.wakes(), 2_000);
    talk.hears(0, raw(429, &[("Retry-After", "60")], ""))
        .unwrap();
    let error = talk.ended(id).unwrap().error();
    assert_eq!(
        (error.class, error.retry_after_ms),
        (ErrorClass::RateLimited, Some(60_000))
    );
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
