//! Errors in a group: whose they are, and who is asked again.

use super::*;
use crate::session::PROBE;

/// An error of what stands between the statements of a group is nobody's: they are asked again, each alone, also where the server has lost what
/// each of them is, too. What the server does not do at all it is not asked for again.
#[test]
fn what_meets_a_statement_of_ours_fails_nobody() {
    const UNSUPPORTED: &[u8] = b"SERROR\0C0A000\0Mno savepoints here\0\0";
    let struck = |error: &'static [u8], place: u32| -> Vec<(u8, &'static [u8])> {
        let mut messages = match place {
            0 => Vec::new(),
            1 => BEGUN[..2].to_vec(),
            _ => [BEGUN, SEVEN_SAID].concat(),
        };
        let state: &[u8] = if place == 0 { b"I" } else { b"E" };
        messages.extend([(b'E', error), (b'Z', state)]);
        messages
    };
    // At `BEGIN`, at `SAVEPOINT`, at the first `ROLLBACK TO`.
    for place in 0..3 {
        for (error, is_kept) in [(CANCELLED, true), (UNSUPPORTED, false), (LOST, false)] {
            let mut session = grouping();
            assert!(together(&mut session, 6));
            let (sent, done) = after(&mut session, &struck(error, place));
            let (first, ended) = match place {
                2 => (FOLLOWED | 5, vec![FOLLOWED | 4]),
                _ => (FOLLOWED | 4, vec![]),
            };
            assert_eq!(done, ended);
            assert!(!sent.contains(&group()), "{sent}");
            if place > 0 {
                after(&mut session, TAKEN_BACK);
            }
            if error == LOST {
                let parsed: Messages<'_> = &[(b'1', b""), (b'3', b""), (b'1', b""), (b'Z', b"I")];
                after(&mut session, parsed);
                let lost: Messages<'_> = &[(b'E', LOST), (b'Z', b"I")];
                let (sent, _) = after(&mut session, lost);
                assert!(sent.contains(SEVEN), "{sent}");
                // The others were on their way.
                for _ in (first ^ FOLLOWED)..6 {
                    after(&mut session, lost);
                }
                after(&mut session, DESCRIBED);
            }
            let mut done = Vec::new();
            for _ in (first ^ FOLLOWED)..=6 {
                done.extend(after(&mut session, ANSWERED).1);
            }
            assert_eq!(done.last(), Some(&6));
            assert!(session.queue.is_empty());
            assert_eq!(together(&mut session, 9), is_kept);
        }
    }
}

/// What a statement meets in a group may be of the group: it is asked again before anybody is told.
#[test]
fn an_error_in_a_group_is_told_if_it_is_one_alone() {
    let mut session = grouping();
    together(&mut session, 6);
    let failed: Messages<'_> = &[(b'2', b""), (b'E', DIVIDED), (b'Z', b"E")];
    let (sent, done) = after(&mut session, &[BEGUN, failed].concat());
    assert!(sent.starts_with(&undo()) && done.is_empty(), "{sent}");
    after(&mut session, TAKEN_BACK);
    for id in [FOLLOWED | 4, FOLLOWED | 5] {
        assert_eq!(after(&mut session, ANSWERED).1, [id]);
    }
    let failed: Messages<'_> = &[(b'2', b""), (b'E', DIVIDED), (b'Z', b"I")];
    let (sent, ended) = told(received(&mut session, failed).unwrap());
    assert_eq!(
        (sent.as_str(), ended),
        ("", vec![(6, Some("invalid_value".into()))])
    );
    // It has failed.
    assert!(!together(&mut session, 9));
}

/// Nor does anybody hear of somebody else's error whose ping, or whose columns' types, were asked for behind the group.
#[test]
fn a_group_that_fails_fails_nobody_behind_it() {
    // The same as `DESCRIBED`, of a type of the database's own.
    let own: Messages<'_> = &[
        (b'1', b""),
        (b't', b"\0\0"),
        (
            b'T',
            b"\0\x01n\0\0\0\0\0\0\0\0\0\x40\0\xff\xff\xff\xff\xff\xff\0\0",
        ),
        (b'Z', b"I"),
    ];
    let mut session = grouping();
    ask(&mut session, 20, "SELECT mood AS n");
    together(&mut session, 6);
    let (sent, _) = after(&mut session, own);
    assert!(sent.contains("format_type"), "{sent}");
    let limits = Limits {
        rows_max: 1,
        bytes_max: 1 << 10,
        timeout_ms: 1_000,
    };
    let mut step = Step::default();
    session
        .submit(21, Request::Ping(limits), &mut step)
        .expect("an open session");
    let failed: Messages<'_> = &[(b'2', b""), (b'E', DIVIDED), (b'Z', b"E")];
    after(&mut session, &[BEGUN, failed].concat());
    let aborted: Messages<'_> = &[(b'3', b""), (b'E', ABORTED), (b'Z', b"E")];
    let (sent, done) = after(&mut session, aborted);
    assert!(sent.contains("format_type") && done.is_empty(), "{sent}");
    let (sent, done) = after(&mut session, aborted);
    assert!(sent.contains(PROBE) && done.is_empty(), "{sent}");
    after(&mut session, TAKEN_BACK);
    for _ in 4..=6 {
        after(&mut session, ANSWERED);
    }
    let named: Messages<'_> = &[
        (b'3', b""),
        (b'1', b""),
        (b'2', b""),
        (b'D', b"\0\x03\0\0\0\x0516384\0\0\0\x04mood\0\0\0\x05false"),
        (b'C', b"SELECT 1\0"),
        (b'2', b""),
        (b'C', b"BEGIN\0"),
        (b'2', b""),
        (b'C', b"ROLLBACK\0"),
        (b'Z', b"I"),
    ];
    after(&mut session, named);
    let read_only: Messages<'_> = &[
        (b'3', b""),
        (b'E', b"SERROR\0C25006\0Mread-only\0\0"),
        (b'Z', b"I"),
    ];
    assert_eq!(after(&mut session, read_only).1, [21]);
    let happy: Messages<'_> = &[
        (b'2', b""),
        (b'D', b"\0\x01\0\0\0\x05happy"),
        (b'C', b"SELECT 1\0"),
    ];
    let step = received(&mut session, &[happy, &ANSWERED[3..]].concat()).unwrap();
    let described = step
        .into_parts()
        .1
        .into_iter()
        .find_map(|event| match event {
            Event::Columns(shape) => shape.columns,
            _ => None,
        });
    assert_eq!(described.unwrap()[0].native, "mood");
}

/// A statement that had more than was asked for ends its group, as one that fails: once.
#[test]
fn what_is_refused_stays_alone() {
    let mut session = grouping();
    together(&mut session, 6);
    let mut rows = BEGUN.to_vec();
    rows.push((b'2', b""));
    rows.resize(rows.len() + 11, SEVEN_SAID[1]);
    assert_eq!(told(received(&mut session, &rows).unwrap()).0, "aside");
    let struck: Messages<'_> = &[(b'E', CANCELLED), (b'Z', b"E")];
    let (_, ended) = told(received(&mut session, struck).unwrap());
    assert!(
        matches!(ended[..], [(id, Some(_))] if id == FOLLOWED | 4),
        "{ended:?}"
    );
    after(&mut session, TAKEN_BACK);
    assert_eq!(after(&mut session, ANSWERED).1, [FOLLOWED | 5]);
    assert_eq!(after(&mut session, ANSWERED).1, [6]);
    assert!(!together(&mut session, 9));
}

/// A server that has no process for the session may have one later, and is no other kind of server.
#[test]
fn a_server_without_a_process_is_unavailable() {
    let json = r#"{"username":"u","password":"p","database":"d","ssl_mode":"disable"}"#;
    let mut session = Session::open(Settings {
        engine: "postgres".into(),
        json: json.into(),
    })
    .unwrap();
    session.start(&mut Step::default()).unwrap();
    let words = b"Ecould not fork new process for connection: Cannot allocate memory\n\0";
    let error = session
        .receive(Input::Bytes(words.to_vec()), &mut Step::default())
        .unwrap_err();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Unavailable, "out_of_resources")
    );
}
