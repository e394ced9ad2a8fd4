//! Snowflake's errors: whose they are, and which of them are asked again.

use crate::common::{Talk, class_and_code, packed, query, raw, refuses};
use souk_sdk::{ErrorClass, Value, WireFault};
use souk_tests::wire::LIMITS;

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
            401,
            "390432",
            "",
            "Network policy is required.",
            Class::Configuration,
            "network_policy_needed",
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
            400,
            "390186",
            "08004",
            "Role 'READER' specified in the connect string is not granted to this user.",
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
            "391920",
            "",
            "Unable to run the command. You must specify the warehouse to use.",
            Class::Configuration,
            "missing_warehouse",
        ),
        (
            422,
            "391918",
            "22000",
            "Unable to run the SELECT command. You must specify the database to use.",
            Class::Configuration,
            "unknown_database",
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
        (404, "", "", "", Class::Configuration, "no_account"),
        (403, "", "", "", Class::Configuration, "no_account"),
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
        // What fails while it runs has no state.
        (plain, values("0"), "", "Division by zero: '0'", false),
        (
            page,
            paged("x"),
            "",
            "Numeric value 'x' is not recognized",
            true,
        ),
        (
            page,
            paged("x"),
            "22000",
            "Invalid bind value (x) for type (FIXED).",
            true,
        ),
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
        let code = match message.split(' ').next() {
            Some("Division") => "100051",
            Some("Invalid") => "002086",
            _ => "100038",
        };
        let error = talk
            .ask(asked, [refuses(422, code, state, message)])
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
