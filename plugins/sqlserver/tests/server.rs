//! The connector against what a server says, driven by hand: logins, answers, what ends them, and whose fault it is.

mod common;

use common::*;
use souk_sdk::{ColumnType, ErrorClass, Input, Limits, Request, TlsRecords, Value};

/// TLS is in packets, and the password behind it; with 8.0 everything is.
#[test]
fn nothing_is_said_before_tls_but_what_must_be() {
    let mut wire = Driven::new("");
    wire.start().unwrap();
    assert_eq!(wire.sent_kinds(), [PRELOGIN]);
    wire.receive(&message(&prelogin(1))).unwrap();
    assert_eq!(
        wire.handshakes,
        [(TlsRecords::TdsPrelogin, Vec::<String>::new())]
    );
    assert_eq!(wire.sent_kinds(), [PRELOGIN]);
    wire.secured().unwrap();
    assert_eq!(wire.sent_kinds(), [PRELOGIN, LOGIN]);
    let login = &wire.sent[1].2;
    assert_eq!(login[4..8], [4, 0, 0, 0x74]);
    // `fODBC`: long texts, and all rows, come whole.
    assert_eq!(login[25] & 0b10, 0b10);
    let says = |text: &str| {
        login
            .windows(2 * text.len())
            .any(|part| part == units(text))
    };
    assert!(says("souk") && says("shop") && says("db.example.com"));
    wire.receive(&message(&logged_in())).unwrap();
    assert!(wire.is_ready);

    let mut strict = Driven::new(r#", "tds_version": "8.0""#);
    strict.start().unwrap();
    assert_eq!((strict.handshakes.len(), strict.sent.len()), (1, 0));
    assert_eq!(
        strict.handshakes[0],
        (TlsRecords::Bare, vec!["tds/8.0".to_owned()])
    );
    strict.secured().unwrap();
    strict.receive(&message(&prelogin(2))).unwrap();
    assert_eq!(strict.sent_kinds(), [PRELOGIN, LOGIN]);
    assert_eq!(strict.sent[1].2[4..8], [0, 0, 0, 8]);
    strict
        .receive(&message(&[ack([8, 0, 0, 0]), done(0xfd, 0)].concat()))
        .unwrap();
    assert!(strict.is_ready);
}

/// Whoever has no TLS, or says something before it stands, hears no password.
#[test]
fn a_server_without_tls_is_told_nothing() {
    for encryption in [0, 2] {
        let mut wire = Driven::new("");
        wire.start().unwrap();
        let error = wire.receive(&message(&prelogin(encryption))).unwrap_err();
        assert_eq!(
            (error.class, error.code.as_str()),
            (ErrorClass::Configuration, "tls_not_supported")
        );
        assert_eq!(wire.sent_kinds(), [PRELOGIN]);
    }
    for behind in [&[0x16, 3, 3][..], &message(&logged_in())] {
        let mut wire = Driven::new("");
        wire.start().unwrap();
        let said = [&message(&prelogin(1)), behind].concat();
        assert_eq!(wire.receive(&said).unwrap_err().code, "unexpected_bytes");
        assert_eq!(wire.sent_kinds(), [PRELOGIN]);
    }
    let mut wire = Driven::new("");
    wire.start().unwrap();
    let error = wire.receive(&message(&prelogin(0x83))).unwrap_err();
    assert_eq!(error.code, "login_method");
}

#[test]
fn refused_logins_are_told_as_what_they_are() {
    let routed = token(0xe3, &[20, 7, 0, 0, 0x99, 5, 1, 0, b'x', 0, 0, 0]);
    for (said, class, code) in [
        (
            [
                error(18456, 14, "Login failed for user 'souk'."),
                done(0xfd, ERROR),
            ]
            .concat(),
            ErrorClass::Authentication,
            "password_rejected",
        ),
        (
            [
                error(4060, 11, "Cannot open database"),
                error(18456, 14, "x"),
                done(0xfd, ERROR),
            ]
            .concat(),
            ErrorClass::Configuration,
            "unknown_database",
        ),
        (
            [
                error(40613, 17, "not currently available"),
                done(0xfd, ERROR),
            ]
            .concat(),
            ErrorClass::Unavailable,
            "database_unavailable",
        ),
        (
            [error(18461, 14, "single user"), done(0xfd, ERROR)].concat(),
            ErrorClass::Unavailable,
            "server_unavailable",
        ),
        (
            [error(40532, 11, "Cannot open server"), done(0xfd, ERROR)].concat(),
            ErrorClass::Configuration,
            "login_refused",
        ),
        (
            [routed, ack([0x74, 0, 0, 4]), done(0xfd, 0)].concat(),
            ErrorClass::Configuration,
            "redirected",
        ),
        (
            [ack([0x71, 0, 0, 1]), done(0xfd, 0)].concat(),
            ErrorClass::Unsupported,
            "unsupported",
        ),
        (done(0xfd, 0), ErrorClass::Source, "protocol_error"),
        (ack([0x74, 0, 0, 4]), ErrorClass::Source, "protocol_error"),
        (
            [ack([0x74, 0, 0, 4]), done(0xfd, 0), done(0xfd, 0)].concat(),
            ErrorClass::Source,
            "protocol_error",
        ),
    ] {
        let mut wire = Driven::new("");
        wire.start().unwrap();
        wire.receive(&message(&prelogin(1))).unwrap();
        wire.secured().unwrap();
        let error = wire.receive(&message(&said)).unwrap_err();
        assert_eq!(
            (error.class, error.code.as_str()),
            (class, code),
            "{error:?}"
        );
    }
}

/// However it is cut into packets and reads, an answer is the same.
#[test]
fn rows_come_in_pieces() {
    let text = "grüße 😀".repeat(500);
    let bytes = units(&text);
    let mut chunks = (u64::MAX - 1).to_le_bytes().to_vec();
    for chunk in bytes.chunks(999) {
        chunks.extend_from_slice(&(chunk.len() as u32).to_le_bytes());
        chunks.extend_from_slice(chunk);
    }
    chunks.extend([0; 4]);
    let result = [
        columns(&[INT, TEXT]),
        [&[0xd1, 4, 7, 0, 0, 0][..], &chunks].concat(),
        // A compact row, and one whose text is NULL in its own way.
        [&[0xd2, 0b01][..], &chunks].concat(),
        [&[0xd1, 0][..], &[0xff; 8]].concat(),
        done(0xff, MORE | COUNT),
    ]
    .concat();
    let whole = message(&answer(&result));
    for piece in [1, 2, 3, 13, 100, 4_096, whole.len()] {
        let mut wire = Driven::open("");
        wire.ask("SELECT a, b FROM t");
        for part in whole.chunks(piece) {
            wire.receive(part).unwrap();
        }
        wire.end().unwrap();
        assert_eq!(wire.cells(0), ["7", "NULL", "NULL"], "by {piece}");
        assert_eq!(wire.cells(1), [&text, &text, "NULL"], "by {piece}");
        let kinds: Vec<ColumnType> = wire.columns.iter().map(|column| column.kind).collect();
        assert_eq!(kinds, [ColumnType::Int64, ColumnType::Text]);
        assert_eq!(wire.columns[1].native, "nvarchar(max)");
    }
}

/// A statement is one call, in which it is a value; nothing of it is sent where it writes, or has other values than are given.
#[test]
fn a_statement_is_one_call() {
    let mut wire = Driven::open("");
    wire.ask_within(
        "SELECT a FROM t WHERE b = @P1",
        vec![Value::Int64(7)],
        LIMITS,
    );
    assert_eq!(wire.sent_kinds(), [RPC]);
    let body = &wire.sent[0].2;
    let says = |text: &str| body.windows(2 * text.len()).any(|part| part == units(text));
    assert!(says(
        "SET XACT_ABORT ON;\nSET LOCK_TIMEOUT 10000;\nBEGIN TRANSACTION;\nEXEC sys.sp_executesql @souk_statement, @souk_types, @P1;\nIF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;"
    ));
    assert!(says("SELECT a FROM t WHERE b = @P1") && says("@P1 bigint"));
    wire.receive(&message(&answer(&numbers(&[])))).unwrap();
    wire.end().unwrap();
    assert_eq!((wire.columns.len(), wire.batches.len()), (1, 0));
    wire.sent.clear();
    for (text, code) in [
        ("DELETE FROM t", "read_only"),
        ("SELECT 1DELETE FROM t", "read_only"),
        ("SELECT @P1", "parameter_count"),
    ] {
        wire.ask(text);
        assert_eq!(wire.end().unwrap_err().code, code, "{text}");
        assert_eq!(wire.sent.len(), 0, "{text}");
    }
}

#[test]
fn refused_statements_leave_the_session_open() {
    let mut wire = Driven::open("");
    // What is not known before the statement runs, after some rows.
    let late = [
        columns(&[INT]),
        int(1),
        error(8134, 16, "Divide by zero"),
        done(0xff, MORE | ERROR),
    ]
    .concat();
    for (said, code) in [
        (
            [
                begun(),
                error(208, 16, "Invalid object name"),
                done(0xff, MORE | ERROR),
                undone(),
                done(0xfe, ERROR),
            ]
            .concat(),
            "unknown_table",
        ),
        (
            [
                begun(),
                late,
                token(0xe3, &[10, 0, 8, 1, 0, 0, 0, 0, 0, 0, 0]),
                done(0xfe, ERROR),
            ]
            .concat(),
            "invalid_value",
        ),
        (answer(&done(0xff, MORE)), "no_result"),
        (
            [begun(), undone(), done(0xfe, SERVER_ERROR)].concat(),
            "sql_error",
        ),
        // A message of the server's that is no error.
        (
            [
                begun(),
                error(5701, 0, "Changed database context"),
                undone(),
                done(0xfe, 0),
            ]
            .concat(),
            "no_result",
        ),
    ] {
        wire.ask("SELECT a FROM t");
        wire.receive(&message(&said)).unwrap();
        assert_eq!(wire.end().unwrap_err().code, code);
    }
    wire.ask("SELECT a FROM t");
    wire.receive(&message(&answer(&numbers(&[1, 2])))).unwrap();
    wire.end().unwrap();
    assert_eq!(wire.cells(0), ["1", "2"]);
}

/// What ends a session: no transaction, one that is left open, and what is no answer.
#[test]
fn without_a_transaction_there_is_no_answer() {
    let bare = numbers(&[1]);
    for (said, code) in [
        ([bare.clone(), done(0xfe, 0)].concat(), "no_transaction"),
        (
            [begun(), bare.clone(), done(0xfe, 0)].concat(),
            "protocol_error",
        ),
        ([begun(), bare.clone(), undone()].concat(), "protocol_error"),
        ([answer(&bare), done(0xfe, 0)].concat(), "protocol_error"),
        (done(0xfd, ACKNOWLEDGED), "protocol_error"),
        ([begun(), int(1)].concat(), "protocol_error"),
        ([begun(), ack([0x74, 0, 0, 4])].concat(), "protocol_error"),
    ] {
        let mut wire = Driven::open("");
        wire.ask("SELECT a FROM t");
        assert_eq!(wire.receive(&message(&said)).unwrap_err().code, code);
    }
    let mut wire = Driven::open("");
    assert_eq!(
        wire.receive(&message(&done(0xfd, 0))).unwrap_err().code,
        "protocol_error"
    );
}

/// A statement that ends the transaction, in whatever way, is not undone: the session ends, and its answer is none.
#[test]
fn a_statement_does_not_leave_its_transaction() {
    let changed = |kind: u8| {
        let old = token(0xe3, &[kind, 0, 8, 1, 0, 0, 0, 0, 0, 0, 0]);
        [old, done(0xff, MORE)].concat()
    };
    let (committed, ended) = (changed(9), changed(17));
    let end = done(0xfe, 0);
    for said in [
        // COMMIT; DELETE FROM t; BEGIN TRAN
        [
            begun(),
            committed.clone(),
            begun(),
            numbers(&[1]),
            undone(),
            end.clone(),
        ],
        [
            begun(),
            numbers(&[1]),
            committed.clone(),
            begun(),
            undone(),
            end.clone(),
        ],
        [
            begun(),
            numbers(&[1]),
            committed,
            Vec::new(),
            Vec::new(),
            end.clone(),
        ],
        [
            begun(),
            undone(),
            begun(),
            numbers(&[1]),
            undone(),
            end.clone(),
        ],
        [
            begun(),
            ended,
            begun(),
            numbers(&[1]),
            undone(),
            end.clone(),
        ],
        [
            begun(),
            begun(),
            numbers(&[1]),
            undone(),
            Vec::new(),
            end.clone(),
        ],
        [
            begun(),
            undone(),
            numbers(&[1]),
            Vec::new(),
            Vec::new(),
            end.clone(),
        ],
    ] {
        let mut wire = Driven::open("");
        wire.ask("SELECT a FROM t");
        let refused = wire.receive(&message(&said.concat())).unwrap_err();
        assert_eq!(
            (refused.class, refused.code.as_str()),
            (ErrorClass::Permission, "read_only"),
            "{said:?}"
        );
        assert_eq!(wire.ends.len(), 0);
    }
}

/// A wire that breaks is no end; what the server said before it did is told.
#[test]
fn a_closed_wire_is_the_sources() {
    let mut wire = Driven::open("");
    wire.ask("SELECT a FROM t");
    wire.receive(&packet(
        &[
            begun(),
            columns(&[INT]),
            int(1),
            error(596, 21, "Cannot continue the execution"),
        ]
        .concat(),
        false,
    ))
    .unwrap();
    let error = wire.input(Input::Closed).unwrap_err();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Unavailable, "connection_lost")
    );
    assert_eq!(error.source_code.as_deref(), Some("596"));
}

/// A type that is not known ends a statement, and no session; nor does an error of which the server does not say that it has undone what was begun.
#[test]
fn what_cannot_be_read_ends_its_statement_alone() {
    let mut wire = Driven::open("");
    let strange: &[u8] = &[0xf5, 0, 0, 0];
    for kind in [strange, &[0xf0, 0x7c, 3, 0, 0, 0, 0, 0]] {
        wire.sent.clear();
        wire.ask("SELECT a FROM t");
        let said = answer(&[columns(&[kind]), vec![0xd1, 1, 2, 3]].concat());
        wire.receive(&message(&said)).unwrap();
        assert_eq!(wire.sent_kinds(), [RPC, ATTENTION]);
        wire.receive(&message(&done(0xfd, ACKNOWLEDGED))).unwrap();
        let error = wire.end().unwrap_err();
        assert_eq!(
            (error.class, error.code.as_str()),
            (ErrorClass::Unsupported, "unsupported_type")
        );
    }
    wire.sent.clear();
    wire.ask("SELECT a FROM t");
    wire.receive(&message(&answer(&numbers(&[1])))).unwrap();
    wire.end().unwrap();
    let said = [
        begun(),
        error(8134, 16, "Divide by zero"),
        done(0xfe, ERROR),
    ]
    .concat();
    wire.ask("SELECT a FROM t");
    wire.receive(&message(&said)).unwrap();
    assert_eq!(wire.end().unwrap_err().code, "invalid_value");
    wire.sent.clear();
    wire.ask("SELECT a FROM t");
    assert_eq!(wire.sent[0].1 & 0x08, 0x08);
}

/// Two results are no result.
#[test]
fn a_second_result_is_refused() {
    let mut wire = Driven::open("");
    wire.ask("SELECT a FROM t");
    let two = [numbers(&[1]), numbers(&[2])].concat();
    wire.receive(&message(&answer(&two))).unwrap();
    assert_eq!(wire.sent_kinds(), [RPC, ATTENTION]);
    wire.receive(&message(&done(0xfd, ACKNOWLEDGED))).unwrap();
    assert_eq!(wire.end().unwrap_err().code, "several_results");
}

/// A connection's test asks what the login may do. A write is tried where the server knows of none that it may, and in no table that is there.
#[test]
fn a_ping_tries_a_write() {
    let text = |text: Option<&str>| match text {
        None => vec![0xff; 8],
        Some(text) => {
            let bytes = units(text);
            let length = bytes.len() as u64;
            [
                &length.to_le_bytes()[..],
                &(length as u32).to_le_bytes(),
                &bytes,
                &[0; 4],
            ]
            .concat()
        }
    };
    let looked = |updateability: &str, may: Option<&str>| {
        let values = [Some("16.0.4106.1"), Some(updateability), may].map(text);
        let row = [&[0xd1][..], &values.concat()].concat();
        let result = [columns(&[TEXT; 3]), row, done(0xff, MORE | COUNT)];
        answer(&result.concat())
    };
    let refused = |number| {
        [
            begun(),
            error(number, 14, "denied"),
            done(0xff, MORE | ERROR),
            undone(),
            done(0xfe, ERROR),
        ]
        .concat()
    };
    let written = answer(&done(0xff, MORE | COUNT));
    let (open, closed) = ("READ_WRITE", "READ_ONLY");
    for (updateability, may, tried, reads_only) in [
        (open, None, Some(refused(262)), "1"),
        (open, None, Some(refused(2760)), "1"),
        (open, None, Some(refused(3906)), "1"),
        (open, None, Some(written.clone()), "0"),
        (open, None, Some(refused(2714)), "NULL"),
        (open, Some("WRITE"), None, "0"),
        // What it may execute may write.
        (open, Some("EXECUTE"), Some(refused(262)), "NULL"),
        (open, Some("EXECUTE"), Some(written), "0"),
        (closed, None, None, "1"),
        (closed, Some("WRITE"), None, "1"),
        (closed, Some("EXECUTE"), None, "1"),
    ] {
        let mut wire = Driven::open("");
        wire.submit(Request::Ping(Limits {
            rows_max: 1,
            ..LIMITS
        }));
        wire.receive(&message(&looked(updateability, may))).unwrap();
        let says = |body: &[u8], text: &str| {
            let text = units(text);
            body.windows(text.len()).any(|part| part == text)
        };
        for asked in ["'Updateability'", "'U', 'V', 'P', 'PC'", "N'EXECUTE'"] {
            assert!(says(&wire.sent[0].2, asked), "{asked}");
        }
        assert_eq!(wire.sent.len(), 1 + usize::from(tried.is_some()), "{may:?}");
        assert!(
            wire.sent
                .iter()
                .all(|(_, _, body)| !says(body, "DELETE FROM"))
        );
        if let Some(tried) = tried {
            let probe = "CREATE TABLE souk_read_only_probe (id int)";
            assert!(says(&wire.sent[1].2, probe));
            wire.receive(&message(&tried)).unwrap();
        }
        wire.end().unwrap();
        assert_eq!(
            (wire.cells(0), wire.cells(1)),
            (vec!["16.0.4106.1".to_owned()], vec![reads_only.to_owned()])
        );
    }
}
