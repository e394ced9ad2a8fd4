//! What the connector says to a server, and what it makes of what the server says.

mod common;

use common::{SETTINGS, Talk, fails, hello, query, reply, rows};
use souk_sdk::{ErrorClass, Header, Limits, Machine, Request, SchemaFilter, Value, WireFault};
use souk_tests::talk::{class_and_code, header};
use souk_tests::wire::LIMITS;

const ROWS: &[u8] = include_bytes!("recorded/rows.bin");

/// Whatever a request may have, an answer is no longer than the largest page needs, which leaves room in a session's memory for its rows.
#[test]
fn what_is_read_is_bounded() {
    for (bytes_max, wanted) in [
        (1 << 20, 3 << 20),
        (16 << 20, 33 << 20),
        (64 << 20, 33 << 20),
        (u64::MAX, 33 << 20),
    ] {
        let limits = Limits {
            bytes_max,
            ..LIMITS
        };
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT 1", vec![], limits));
        assert_eq!(talk.asked[0].response_bytes_max, wanted, "{bytes_max}");
        talk.hears(0, Err(WireFault::Refused)).unwrap();
        assert!(talk.ended(id).is_some());
    }
    let broken = Talk::usual().rows_of(Err(WireFault::BadResponse)).error();
    assert!(broken.message.contains("33 MiB"), "{broken:?}");
}

/// Who asks stands in headers, what is asked in the body, what bounds it in the address; nothing that is bound does.
#[test]
fn what_leaves() {
    let mut talk = Talk::usual();
    let limits = Limits {
        rows_max: 51,
        bytes_max: 1 << 20,
        timeout_ms: 250,
    };
    talk.submit(query("SELECT 1", vec![], limits));
    let asked = talk.asked.remove(0);
    assert_eq!(asked.method, "POST");
    assert_eq!(asked.body, b"SELECT 1");
    assert_eq!(header(&asked, "x-clickhouse-user"), Some("souk"));
    assert_eq!(header(&asked, "x-clickhouse-key"), Some("pässw'ord"));
    let has = |path: &str, part: &str| path.contains(part);
    for part in [
        "&default_format=RowBinaryWithNamesAndTypes",
        "&wait_end_of_query=1",
        "&database=shop",
        "&readonly=1&",
        "&max_execution_time=0.250&",
        "&timeout_overflow_mode=throw",
        "&max_result_rows=51&",
        "&result_overflow_mode=throw",
    ] {
        assert!(has(&asked.path, part), "{part} in {}", asked.path);
    }
    assert!(!has(&asked.path, "pass"), "{}", asked.path);
    // The server would take another zone for a part of a statement only: decision 77.
    assert!(!has(&asked.path, "timezone"), "{}", asked.path);
    let values = vec![
        Value::Text("a'b\t--souk-end-of-part".into()),
        Value::Null(None),
    ];
    talk.submit(query("SELECT ?, ?", values, LIMITS));
    let asked = talk.asked.remove(0);
    let body = String::from_utf8(asked.body.clone()).unwrap();
    let boundary = header(&asked, "content-type").unwrap();
    let boundary = boundary.split_once("boundary=").unwrap().1;
    let parts: Vec<&str> = body.split(&format!("--{boundary}")).collect();
    assert_eq!(parts.len(), 5, "{body}");
    assert!(
        parts[1].ends_with("name=\"query\"\r\n\r\nSELECT  {p1:String},  {p2:Nullable(String)}\r\n")
    );
    assert!(parts[2].ends_with("name=\"param_p1\"\r\n\r\na\\'b\\t--souk-end-of-part\r\n"));
    assert!(parts[3].ends_with("name=\"param_p2\"\r\n\r\n\\N\r\n"));
    assert_eq!(parts[4], "--\r\n");
    // A token is the host's to send: no user goes with it.
    let mut talk = Talk::open("{}", hello("26.9", "0")).unwrap();
    talk.submit(query("SELECT 1", vec![], LIMITS));
    assert_eq!(talk.asked[0].headers.len(), 0);
}

/// A user whose profile is read-only is sent what it may be sent: anything more is refused by the server.
#[test]
fn a_profile_is_left_as_it_is() {
    for (readonly, held, bounded) in [
        ("0", "&readonly=1&", true),
        ("2", "&readonly=2&", true),
        ("1", "readonly", false),
    ] {
        let mut talk = Talk::open(SETTINGS, hello("26.9", readonly)).unwrap();
        talk.submit(query("SELECT 1", vec![], LIMITS));
        let path = &talk.asked[0].path;
        assert_eq!(path.contains(held), bounded, "{readonly}: {path}");
        assert_eq!(path.contains("max_execution_time"), bounded, "{path}");
    }
    let mut talk = Talk::open(SETTINGS, hello("23.8", "0")).unwrap();
    talk.submit(query("SELECT 1", vec![], LIMITS));
    assert!(
        !talk.asked[0].path.contains("json"),
        "an old server does not know it"
    );
}

/// Nobody's statement is sent that does not read, or that has something behind it.
#[test]
fn what_writes_is_not_sent() {
    let mut talk = Talk::usual();
    for text in [
        "INSERT INTO t SELECT 1",
        "SELECT 1; DROP TABLE t",
        "SET readonly = 0",
        "",
    ] {
        let id = talk.submit(query(text, vec![], LIMITS));
        let error = talk.ended(id).unwrap().error();
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::Permission, "read_only")
        );
    }
    assert!(talk.asked.is_empty());
    let error = talk
        .ask(
            query("SELECT ?", vec![Value::Decimal("1e5".into())], LIMITS),
            rows(ROWS),
        )
        .error();
    assert_eq!(
        (error.class, error.parameter),
        (ErrorClass::InvalidRequest, Some(0))
    );
}

#[test]
fn a_session_does_not_open_where_it_cannot() {
    let opens = |reply| Talk::open(SETTINGS, reply).err().unwrap();
    for (status, code, class, word) in [
        (403, 516, ErrorClass::Authentication, "password_rejected"),
        (403, 193, ErrorClass::Authentication, "password_rejected"),
        (404, 81, ErrorClass::Configuration, "unknown_database"),
        (500, 202, ErrorClass::Unavailable, "too_many_queries"),
    ] {
        let error = opens(fails(status, code, "the server's words"));
        assert_eq!(class_and_code(&error), (class, word));
        assert_eq!(
            error.source_code.as_deref(),
            Some(code.to_string().as_str())
        );
        assert!(!error.message.contains("words"), "{error:?}");
    }
    let cases = [
        (reply(200, &[], "<html>hello</html>"), ErrorClass::Source),
        (reply(200, &[], ""), ErrorClass::Source),
        (reply(401, &[], "who?"), ErrorClass::Authentication),
        (
            reply(302, &[("location", "/login")], ""),
            ErrorClass::Configuration,
        ),
        (reply(503, &[], "busy"), ErrorClass::Unavailable),
        (Err(WireFault::Refused), ErrorClass::Unavailable),
        (Err(WireFault::Tls), ErrorClass::Configuration),
    ];
    for (reply, class) in cases {
        assert_eq!(opens(reply).class, class);
    }
    // The port of the native protocol says so to who speaks HTTP.
    let native = "Port 9000 is for clickhouse-client program\r\nYou must use port 8123 for HTTP.";
    let error = opens(reply(400, &[], native));
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::Source, "no_clickhouse")
    );
    assert!(error.message.contains("8123"), "{error:?}");
}

#[test]
fn errors_are_blamed_by_their_code() {
    let mut talk = Talk::usual();
    for (code, class, word) in [
        (47, ErrorClass::Source, "unknown_column"),
        (60, ErrorClass::NotFound, "unknown_table"),
        (62, ErrorClass::Source, "syntax_error"),
        (159, ErrorClass::Timeout, "statement_timeout"),
        (164, ErrorClass::Permission, "read_only"),
        (192, ErrorClass::Authentication, "password_rejected"),
        (210, ErrorClass::Unavailable, "connection_lost"),
        (241, ErrorClass::Unavailable, "out_of_memory"),
        (396, ErrorClass::LimitExceeded, "rows_limit"),
        (457, ErrorClass::Source, "sql_error"),
        (497, ErrorClass::Permission, "permission_denied"),
        (9999, ErrorClass::Source, "sql_error"),
    ] {
        let error = talk.rows_of(fails(500, code, "x")).error();
        assert_eq!(class_and_code(&error), (class, word), "{code}");
    }
    // Older servers say the code in the text only.
    let error = talk
        .rows_of(reply(500, &[], "Code: 62. DB::Exception: x\n"))
        .error();
    assert_eq!(error.code, "syntax_error");
    let bound = query("SELECT ?", vec![Value::Text("x".into())], LIMITS);
    let error = talk.ask(bound, fails(400, 457, "x")).error();
    assert_eq!(
        class_and_code(&error),
        (ErrorClass::InvalidRequest, "invalid_value")
    );
}

/// No mark stands behind the last row: an answer that ends with its connection may have lost some, and is not believed, however whole it looks.
#[test]
fn an_answer_says_where_it_ends() {
    let mut talk = Talk::usual();
    for (name, value, is_taken) in [
        ("content-length", "1805", true),
        ("Transfer-Encoding", "chunked", true),
        ("connection", "close", false),
    ] {
        let mut response = rows(ROWS).unwrap();
        (response.headers).retain(|header| header.name != "content-length");
        response.headers.push(Header {
            name: name.into(),
            value: value.into(),
        });
        let answer = talk.rows_of(Ok(response));
        if is_taken {
            assert_eq!(answer.ok().rows, 100, "{name}");
            continue;
        }
        let error = answer.error();
        assert_eq!(
            class_and_code(&error),
            (ErrorClass::Source, "bad_answer_without_end")
        );
    }
}

/// Who asks for a page is not blamed for a value of the statement's own: what bounds the page is the host's.
#[test]
fn values_of_the_page_are_nobodys_fault() {
    let mut talk = Talk::usual();
    let page = [Value::Int64(51), Value::Int64(0)];
    for (text, caller, class) in [
        (
            "SELECT toDate(n) FROM t\nLIMIT ? OFFSET ?",
            None,
            ErrorClass::Source,
        ),
        (
            "SELECT toDate(n) FROM t WHERE a = ?\nLIMIT ? OFFSET ?",
            Some(Value::Text("x".into())),
            ErrorClass::InvalidRequest,
        ),
    ] {
        let values = caller.into_iter().chain(page.clone()).collect();
        let error = talk
            .ask(query(text, values, LIMITS), fails(400, 38, "x"))
            .error();
        assert_eq!(class_and_code(&error), (class, "invalid_value"), "{text}");
    }
}

/// An error behind rows, whichever way a server tells it, is an error: no row of it is told.
#[test]
fn an_error_behind_rows_is_no_answer() {
    let mut talk = Talk::usual();
    let error = "Code: 395. DB::Exception: as it happens (FUNCTION_THROW_IF_VALUE_IS_NON_ZERO) (version 26.9.2.1 (official build))\n";
    let tag = "abcdefghijklmnop";
    let fenced = format!("__exception__\r\n{tag}\r\n{error}112 {tag}\r\n__exception__\r\n");
    for (headers, behind) in [
        (&[("X-ClickHouse-Exception-Tag", tag)][..], fenced.as_str()),
        (&[], error),
    ] {
        let body = [ROWS, behind.as_bytes()].concat();
        let answer = talk.rows_of(reply(200, headers, body));
        assert_eq!((answer.rows, answer.columns.len()), (0, 0));
        let error = answer.error();
        assert_eq!(error.source_code.as_deref(), Some("395"));
    }
    // A tag without an error changes nothing, and neither does a text that looks like one.
    let answer = talk
        .rows_of(reply(200, &[("X-ClickHouse-Exception-Tag", tag)], ROWS))
        .ok();
    assert_eq!(answer.rows, 100);
    for end in 1..ROWS.len() {
        let answer = talk.rows_of(rows(&ROWS[..end]));
        // What ends between two rows cannot be told from a shorter result: the host sees to the length.
        if let Some(Ok(())) = answer.end {
            assert!(answer.rows < 100);
        }
    }
    let answer = talk.rows_of(reply(200, &[("X-ClickHouse-Format", "CSV")], ROWS));
    assert_eq!(answer.error().code, "other_format");
}

/// A result that is larger than is allowed is none.
#[test]
fn limits_hold() {
    let mut talk = Talk::usual();
    let mut within = |rows_max, bytes_max| {
        let limits = Limits {
            rows_max,
            bytes_max,
            timeout_ms: 100,
        };
        talk.ask(query("SELECT 1", vec![], limits), rows(ROWS))
    };
    assert_eq!(within(100, 10_000).ok().rows, 100);
    assert_eq!(within(99, 10_000).error().code, "rows_limit");
    assert_eq!(within(100, 1_000).error().code, "bytes_limit");
}

/// A cancelled statement is killed by its name with a request of its own, and ends when either of the two is answered; its session goes on.
#[test]
fn a_cancelled_statement_is_killed() {
    for which in 0..2 {
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT sleep(3)", vec![], LIMITS));
        let other = talk.submit(query("SELECT 1", vec![], LIMITS));
        for _ in 0..2 {
            talk.step(|session, step| session.cancel(id, step)).unwrap();
        }
        assert_eq!(talk.asked.len(), 3, "it is killed once");
        let name = query_id(&talk.asked[0].path);
        let kill = String::from_utf8(talk.asked[2].body.clone()).unwrap();
        assert_eq!(kill, format!("KILL QUERY WHERE query_id = '{name}' ASYNC"));
        assert!(!talk.asked[2].path.contains("readonly"));
        assert!(talk.asked[2].timeout_ms < 2_000, "the host waits no longer");
        assert!(talk.ended(id).is_none());
        match which {
            0 => talk.hears(0, rows(ROWS)).unwrap(),
            _ => talk.hears(2, rows("")).unwrap(),
        }
        let error = talk.ended(id).unwrap().error();
        assert_eq!(class_and_code(&error), (ErrorClass::Timeout, "cancelled"));
        // What comes late is for nobody.
        while talk.asked.len() > 1 {
            let late = talk.asked.iter().position(|asked| {
                !asked
                    .path
                    .contains(&format!("{}-3&", &name[..name.len() - 2]))
            });
            talk.hears(late.unwrap_or(0), rows(ROWS)).unwrap();
        }
        talk.hears(0, rows(ROWS)).unwrap();
        assert_eq!(talk.ended(other).unwrap().ok().rows, 100);
    }
    let mut talk = Talk::usual();
    let id = talk.submit(Request::Ping(LIMITS));
    talk.step(|session, step| session.cancel(id, step)).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    talk.hears(0, rows("")).unwrap();
    // It has ended: there is nothing to cancel.
    talk.step(|session, step| session.cancel(id, step)).unwrap();
    assert!(talk.asked.is_empty());
}

/// The name that a statement has at the server.
fn query_id(path: &str) -> String {
    let (_, name) = path.split_once("query_id=").unwrap();
    name.split('&').next().unwrap().to_owned()
}

/// What did not answer in time, or not to its end, is stopped, and nothing else: ClickHouse would go on with it. What never reached it is not.
#[test]
fn an_unanswered_statement_is_killed() {
    let of_proxies = |status: u16| reply(status, &[], "the upstream did not answer");
    for (what, outcome, is_killed) in [
        ("timeout", Err(WireFault::Timeout), true),
        ("reset", Err(WireFault::Reset), true),
        ("too long", Err(WireFault::BadResponse), true),
        ("proxy broke off", of_proxies(502), true),
        ("proxy gave up", of_proxies(504), true),
        ("refused", Err(WireFault::Refused), false),
        ("nobody there", of_proxies(503), false),
        ("an error", fails(500, 241, "Memory limit exceeded"), false),
    ] {
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT sleep(3)", vec![], LIMITS));
        let statement = query_id(&talk.asked[0].path);
        talk.hears(0, outcome).unwrap();
        talk.ended(id).unwrap().error();
        let asked = talk.asked.iter().map(|asked| asked.body.as_slice());
        let kill = format!("KILL QUERY WHERE query_id = '{statement}' ASYNC");
        let kills = asked.filter(|body| *body == kill.as_bytes());
        assert_eq!(kills.count(), usize::from(is_killed), "{what}");
        assert_eq!(talk.asked.len(), usize::from(is_killed), "{what}");
        if is_killed {
            // Its end is for nobody.
            talk.hears(0, rows("")).unwrap();
        }
        let next = talk.submit(query("SELECT 1", vec![], LIMITS));
        talk.hears(0, rows(ROWS)).unwrap();
        assert_eq!(talk.ended(next).unwrap().ok().rows, 100);
    }
}

/// However many statements end or are cancelled at once, the server is asked to stop sixty-four at a time, so that what the host lets a session
/// make is left for statements.
#[test]
fn statements_are_stopped_so_many_at_a_time() {
    let mut talk = Talk::usual();
    let ask = || query("SELECT sleep(3)", vec![], LIMITS);
    for _ in 0..70 {
        let id = talk.submit(ask());
        let last = talk.asked.len() - 1;
        talk.hears(last, Err(WireFault::Timeout)).unwrap();
        talk.ended(id).unwrap().error();
    }
    assert_eq!(talk.asked.len(), 64);
    // One that is cancelled then ends at once: a host waits two seconds for that, and ends the session with all that is asked of it.
    let id = talk.submit(ask());
    talk.step(|session, step| session.cancel(id, step)).unwrap();
    assert_eq!(talk.asked.len(), 65);
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    // Its answer is for nobody.
    talk.hears(64, rows(ROWS)).unwrap();
    // As one is answered, another one may be asked.
    talk.hears(0, rows("")).unwrap();
    let id = talk.submit(ask());
    talk.hears(63, Err(WireFault::Timeout)).unwrap();
    talk.ended(id).unwrap().error();
    assert_eq!(talk.asked.len(), 64);
}

/// What was given up is under way until the server answers it. However much of that there is, nothing is asked that a host does not let a session ask,
/// and would fail there: it is the source that does not answer.
#[test]
fn what_was_given_up_is_counted() {
    let mut talk = Talk::usual();
    let ask = || query("SELECT sleep(3)", vec![], LIMITS);
    for _ in 0..64 {
        let id = talk.submit(ask());
        talk.step(|session, step| session.cancel(id, step)).unwrap();
        // The server does not hear of that either.
        let last = talk.asked.len() - 1;
        talk.hears(last, Err(WireFault::Timeout)).unwrap();
        assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    }
    let asked: Vec<u32> = (0..64).map(|_| talk.submit(ask())).collect();
    assert_eq!(talk.asked.len(), 128);
    let id = asked[0];
    talk.step(|session, step| session.cancel(id, step)).unwrap();
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    for request in [ask(), Request::Ping(LIMITS)] {
        let id = talk.submit(request);
        let error = talk.ended(id).unwrap().error();
        assert_eq!(
            (error.class, error.code.as_str()),
            (ErrorClass::Unavailable, "unanswered")
        );
    }
    assert_eq!(talk.asked.len(), 128);
    // As one ends, another one may be asked.
    talk.hears(0, Err(WireFault::Timeout)).unwrap();
    talk.submit(ask());
    assert_eq!(talk.asked.len(), 128);
}

/// A ping tries to write, and says whether that was refused.
#[test]
fn a_ping_tries_to_write() {
    let mut talk = Talk::usual();
    for (reply, is_read_only) in [
        (
            fails(500, 164, "Cannot execute query in readonly mode"),
            "true",
        ),
        (fails(500, 497, "Not enough privileges"), "true"),
        (fails(501, 48, "Method write is not supported"), "false"),
        (reply(200, &[], ""), "false"),
    ] {
        let answer = talk.ping(reply, rows("")).ok();
        assert_eq!(
            [answer.cell(0, 0), answer.cell(1, 0)],
            ["26.9.2.1", is_read_only]
        );
        assert_eq!(answer.columns.len(), 2);
    }
    let id = talk.submit(Request::Ping(LIMITS));
    assert!(talk.asked[0].body.starts_with(b"INSERT"));
    assert!(talk.asked[0].path.contains("&readonly=1"));
    talk.hears(0, fails(403, 516, "x")).unwrap();
    assert_eq!(
        talk.ended(id).unwrap().error().class,
        ErrorClass::Authentication
    );
}

/// A ping tries to stop a statement that nobody has asked for: where the server lets its user look for none, it warns of that and names the right. What says
/// nothing of it is no warning.
#[test]
fn a_ping_tries_to_stop() {
    let written = || fails(500, 164, "Cannot execute query in readonly mode");
    let mut talk = Talk::usual();
    for (stopped, is_warned) in [
        (fails(500, 497, "Not enough privileges"), true),
        (rows(""), false),
        (Err(WireFault::Timeout), false),
        (reply(502, &[], "the upstream did not answer"), false),
        (fails(500, 202, "Too many simultaneous queries"), false),
        (written(), false),
    ] {
        let answer = talk.ping(written(), stopped).ok();
        assert_eq!([answer.cell(0, 0), answer.cell(1, 0)], ["26.9.2.1", "true"]);
        assert_eq!(answer.columns.len(), 2 + usize::from(is_warned));
        if is_warned {
            assert_eq!(answer.columns[2].name, "warning");
            let warning = answer.cell(2, 0);
            let right = "GRANT SELECT(query_id, user, query) ON system.processes";
            assert!(warning.contains(right), "{warning}");
        }
    }
    let id = talk.submit(Request::Ping(LIMITS));
    let probe = query_id(&talk.asked[0].path);
    talk.hears(0, written()).unwrap();
    let kill = String::from_utf8(talk.asked[0].body.clone()).unwrap();
    assert!(kill.starts_with("KILL QUERY WHERE query_id = 'souk-"));
    assert!(!kill.contains(&format!("'{probe}'")), "{kill}");
    assert!(talk.ended(id).is_none());
    talk.cancel(id);
    assert_eq!(talk.ended(id).unwrap().error().code, "cancelled");
    talk.hears(0, rows("")).unwrap();
    assert!(talk.asked.is_empty());
}

/// Names of the catalog's filter are bound like any other value.
#[test]
fn the_catalog_binds_its_names() {
    for (include_fields, columns) in [(true, "system.columns"), (false, "system.tables")] {
        let mut talk = Talk::usual();
        talk.submit(Request::Schema(SchemaFilter {
            schemas: vec!["sh'op".into()],
            tables: vec!["a".into(), "b".into()],
            include_fields,
            limits: LIMITS,
        }));
        let body = String::from_utf8(talk.asked[0].body.clone()).unwrap();
        assert!(body.contains(columns), "{body}");
        assert!(
            body.contains("IN ( {p1:String}) AND t.name IN ( {p2:String},  {p3:String})"),
            "{body}"
        );
        assert!(
            body.contains("name=\"param_p1\"\r\n\r\nsh\\'op\r\n"),
            "{body}"
        );
    }
}

/// A shape is described once; the sixty-fifth takes the place of the first.
#[test]
fn shapes_are_described_once() {
    let mut talk = Talk::usual();
    let body = |name: u8| rows(vec![1, 1, name, 4, b'I', b'n', b't', b'8', 7]);
    for round in 0..3 {
        for name in 0..=64 {
            let answer = talk.rows_of(body(b' ' + name)).ok();
            assert_eq!(answer.columns[0].name.as_bytes(), [b' ' + name], "{round}");
        }
    }
}
