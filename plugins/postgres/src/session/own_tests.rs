//! A backend of the session's own, played by hand: what goes out, and which requests are answered.

use super::*;
use souk_sdk::{Command, Event, Input, Limits, Machine, Query, Request, Settings};

type Messages<'a> = &'a [(u8, &'a [u8])];

const CANCELLED: &[u8] = b"SERROR\0C57014\0Mcanceling statement\0\0";
const ABORTED: &[u8] = b"SERROR\0C25P02\0Mcurrent transaction is aborted\0\0";
/// A statement without parameters and with one column, `n`, of four bytes.
const DESCRIBED: Messages<'static> = &[
    (b'1', b""),
    (b't', b"\0\0"),
    (
        b'T',
        b"\0\x01n\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0",
    ),
    (b'Z', b"I"),
];
/// Its answer, and that it is taken back.
const ANSWERED: Messages<'static> = &[
    (b'2', b""),
    (b'D', b"\0\x01\0\0\0\x04\0\0\0\x07"),
    (b'C', b"SELECT 1\0"),
    (b'2', b""),
    (b'C', b"BEGIN\0"),
    (b'2', b""),
    (b'C', b"ROLLBACK\0"),
    (b'Z', b"I"),
];
/// The same, where a cancel strikes `ROLLBACK`.
const STRUCK: Messages<'static> = &[
    (b'2', b""),
    (b'D', b"\0\x01\0\0\0\x04\0\0\0\x07"),
    (b'C', b"SELECT 1\0"),
    (b'2', b""),
    (b'C', b"BEGIN\0"),
    (b'2', b""),
    (b'E', CANCELLED),
    (b'Z', b"E"),
];

fn received(session: &mut Session, messages: Messages<'_>) -> Result<Step, Error> {
    let mut bytes = Vec::new();
    for (tag, body) in messages {
        protocol::message(&mut bytes, *tag, |out| out.extend_from_slice(body));
    }
    let mut step = Step::default();
    session.receive(Input::Bytes(bytes), &mut step)?;
    Ok(step)
}

/// What goes out, and which requests are answered; none has failed.
fn seen(step: Step) -> (String, Vec<u32>) {
    let (commands, events) = step.into_parts();
    let sent = commands.iter().map(|command| match command {
        Command::Send(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?}"),
    });
    let done = events.iter().filter_map(|event| match event {
        Event::Done(id) => Some(*id),
        Event::Failed(failure) => panic!("{:?}", failure.error),
        _ => None,
    });
    (sent.collect(), done.collect())
}

fn after(session: &mut Session, messages: Messages<'_>) -> (String, Vec<u32>) {
    seen(received(session, messages).expect("a valid answer"))
}

fn ask(session: &mut Session, id: u32, text: &str) -> String {
    ask_for(session, id, text, 10)
}

fn ask_for(session: &mut Session, id: u32, text: &str, rows_max: u32) -> String {
    let limits = Limits {
        rows_max,
        bytes_max: 1 << 20,
        timeout_ms: 1_000,
    };
    let request = Request::Query(Query {
        text: text.into(),
        parameters: Vec::new(),
        limits,
    });
    let mut step = Step::default();
    session
        .submit(id, request, &mut step)
        .expect("an open session");
    seen(step).0
}

fn opened() -> Session {
    let json = r#"{"username":"u","password":"p","database":"d","ssl_mode":"disable"}"#;
    let mut session = Session::open(Settings {
        engine: "postgres".into(),
        json: json.into(),
    })
    .unwrap();
    session.start(&mut Step::default()).unwrap();
    after(
        &mut session,
        &[
            (b'R', b"\0\0\0\0"),
            (b'K', b"\0\0\0\x2a\0\0\0\0"),
            (b'Z', b"I"),
        ],
    );
    after(
        &mut session,
        &[
            (b'1', b""),
            (b'2', b""),
            (b'D', b"\0\x02\0\0\0\x0242\0\0\0\x02on"),
            (b'C', b"SELECT 1\0"),
            (b'Z', b"I"),
        ],
    );
    let parsed: Messages<'_> = &[(b'1', b""), (b'3', b""), (b'1', b""), (b'Z', b"I")];
    after(&mut session, parsed);
    assert!(!session.is_pooled() && session.queue.is_empty());
    session
}

fn undo() -> String {
    String::from_utf8_lossy(&protocol::UNDO_SYNC).into_owned()
}

/// A cancel that comes behind a statement's end takes neither its answer nor those of the requests behind it, and leaves no transaction.
#[test]
fn a_transaction_that_stays_is_taken_back() {
    let mut session = opened();
    ask(&mut session, 1, "SELECT 7 AS n");
    let (sent, _) = after(&mut session, DESCRIBED);
    assert!(sent.contains("begin"), "{sent}");
    // On their way already. What runs a statement ends with the same bytes.
    assert!(ask(&mut session, 2, "SELECT 7 AS n").contains("begin"));
    assert!(ask(&mut session, 3, "SELECT 8 AS n").contains("SELECT 8"));
    assert_eq!(after(&mut session, STRUCK), (undo(), vec![1]));
    let (sent, _) = after(&mut session, &[(b'E', ABORTED), (b'Z', b"E")]);
    // As it is prepared already: once more, behind what takes the transaction back.
    assert_eq!(sent.matches(&undo()).count(), 1, "{sent}");
    assert!(
        sent.contains("begin") && !sent.contains("SELECT 7"),
        "{sent}"
    );
    let (sent, _) = after(&mut session, &[(b'E', ABORTED), (b'Z', b"E")]);
    assert!(
        sent.contains("SELECT 8") && !sent.contains(&undo()),
        "{sent}"
    );
    let taken_back: Messages<'_> = &[(b'2', b""), (b'C', b"ROLLBACK\0"), (b'Z', b"I")];
    assert_eq!(after(&mut session, taken_back), (String::new(), vec![]));
    assert_eq!(session.unended, 0);
    assert_eq!(after(&mut session, ANSWERED), (String::new(), vec![2]));
    after(&mut session, DESCRIBED);
    assert_eq!(after(&mut session, ANSWERED), (String::new(), vec![3]));
}

/// A server on which a transaction never ends is not asked for ever.
#[test]
fn a_transaction_that_never_ends_ends_the_session() {
    let mut session = opened();
    ask(&mut session, 1, "SELECT 7 AS n");
    after(&mut session, DESCRIBED);
    after(&mut session, STRUCK);
    let struck: Messages<'_> = &[(b'E', CANCELLED), (b'Z', b"E")];
    for _ in 1..ENDINGS_MAX {
        assert_eq!(after(&mut session, struck).0, undo());
    }
    assert!(received(&mut session, struck).is_err());
}

/// What a statement has locked for the session is given up behind it, and once more where a cancel struck that.
#[test]
fn locks_are_given_up() {
    let mut session = opened();
    ask(
        &mut session,
        1,
        "SELECT length(pg_advisory_lock(1)::text) AS n",
    );
    let (sent, _) = after(&mut session, DESCRIBED);
    assert_eq!(sent.matches(UNLOCK).count(), 1, "{sent}");
    assert_eq!(after(&mut session, ANSWERED), (String::new(), vec![1]));
    session.strays = 1;
    let struck: Messages<'_> = &[
        (b'3', b""),
        (b'1', b""),
        (b'2', b""),
        (b'E', CANCELLED),
        (b'Z', b"I"),
    ];
    let (sent, _) = after(&mut session, struck);
    assert_eq!(sent.matches(UNLOCK).count(), 1, "{sent}");
    assert_eq!(after(&mut session, ANSWERED).0, "");
    assert_eq!(session.strays, 0);
}

/// So it is where a cancel struck what takes the statement's transaction back: nobody who asks next waits for its locks.
#[test]
fn locks_of_a_transaction_that_stays_are_given_up() {
    let mut session = opened();
    ask(
        &mut session,
        1,
        "SELECT length(pg_advisory_lock(1)::text) AS n",
    );
    after(&mut session, DESCRIBED);
    assert_eq!(after(&mut session, STRUCK), (undo(), vec![1]));
    let aborted: Messages<'_> = &[(b'E', ABORTED), (b'Z', b"E")];
    let (sent, _) = after(&mut session, aborted);
    assert_eq!(sent.matches(UNLOCK).count(), 1, "{sent}");
    let taken_back: Messages<'_> = &[(b'2', b""), (b'C', b"ROLLBACK\0"), (b'Z', b"I")];
    assert_eq!(after(&mut session, taken_back), (String::new(), vec![]));
    assert_eq!(after(&mut session, ANSWERED), (String::new(), vec![]));
    // Without a transaction that is to be taken back it is not asked for ever.
    assert!(session.queue.is_empty());
}

/// In the number of a request that another one follows at once.
const FOLLOWED: u32 = 1 << 31;
const SEVEN: &str = "SELECT 7 AS n";
const DIVIDED: &[u8] = b"SERROR\0C22012\0Mdivision by zero\0\0";
/// A statement that ran by itself, and was taken back.
const TAKEN_BACK: Messages<'static> = &[(b'2', b""), (b'C', b"ROLLBACK\0"), (b'Z', b"I")];
/// The beginning of a group.
const BEGUN: Messages<'static> = &[
    (b'2', b""),
    (b'C', b"BEGIN\0"),
    (b'2', b""),
    (b'C', b"SAVEPOINT\0"),
];
const SEVEN_SAID: Messages<'static> = &[
    (b'2', b""),
    (b'D', b"\0\x01\0\0\0\x04\0\0\0\x07"),
    (b'C', b"SELECT 1\0"),
];

/// A session that has prepared a statement, and what groups need.
fn grouping() -> Session {
    let mut session = opened();
    ask(&mut session, 1, SEVEN);
    after(&mut session, DESCRIBED);
    after(&mut session, ANSWERED);
    // Of those that come together first each is alone.
    let sent = ask(&mut session, FOLLOWED | 2, SEVEN);
    assert!(sent.contains("SAVEPOINT"), "{sent}");
    ask(&mut session, 3, SEVEN);
    let parsed: Messages<'_> = &[
        (b'3', b""),
        (b'1', b""),
        (b'3', b""),
        (b'1', b""),
        (b'Z', b"I"),
    ];
    after(&mut session, parsed);
    after(&mut session, ANSWERED);
    after(&mut session, ANSWERED);
    session
}

/// Three requests, of which all but the last are followed. Whether a group goes out.
fn together(session: &mut Session, last: u32) -> bool {
    let sent = [FOLLOWED | (last - 2), FOLLOWED | (last - 1), last]
        .map(|id| ask(session, id, SEVEN))
        .concat();
    sent.contains(&group())
}

/// What begins one.
fn group() -> String {
    String::from_utf8_lossy(&protocol::BEGIN_GROUP).into_owned()
}

/// What goes out, which requests are answered, and with what error.
fn told(step: Step) -> (String, Vec<(u32, Option<String>)>) {
    let (commands, events) = step.into_parts();
    let sent = commands.iter().map(|command| match command {
        Command::Send(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Command::Aside(_) => "aside".into(),
        other => panic!("{other:?}"),
    });
    let ended = events.into_iter().filter_map(|event| match event {
        Event::Done(id) => Some((id, None)),
        Event::Failed(failure) => Some((failure.id, Some(failure.error.code))),
        _ => None,
    });
    (sent.collect(), ended.collect())
}

/// An error of what stands between the statements of a group is nobody's: they are asked again, each alone, also where the server has lost what
/// each of them is, too. What the server does not do at all it is not asked for again.
#[test]
fn what_meets_a_statement_of_ours_fails_nobody() {
    const UNSUPPORTED: &[u8] = b"SERROR\0C0A000\0Mno savepoints here\0\0";
    const LOST: &[u8] = b"SERROR\0C26000\0Mno such prepared statement\0\0";
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
    assert!(
        sent.contains(super::super::PROBE) && done.is_empty(),
        "{sent}"
    );
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

/// A cancel of one that waits in a group strikes nobody whose rows the host has: that could not be asked again.
#[test]
fn a_cancel_waits_for_what_cannot_be_asked_again() {
    let mut session = grouping();
    ask_for(&mut session, FOLLOWED | 4, SEVEN, 10_000);
    ask(&mut session, 5, SEVEN);
    let mut rows = BEGUN.to_vec();
    rows.push((b'2', b""));
    rows.resize(rows.len() + 8_192, SEVEN_SAID[1]);
    after(&mut session, &rows);
    let mut step = Step::default();
    session.cancel(5, &mut step).unwrap();
    assert_eq!(told(step), (String::new(), vec![]));
    let ends: Messages<'_> = &[(b'C', b"SELECT 8192\0")];
    let (sent, ended) = told(received(&mut session, ends).unwrap());
    assert_eq!(
        (sent.as_str(), ended),
        ("aside", vec![(FOLLOWED | 4, None)])
    );
    // One that the host has nothing of is struck, and asked again.
    let mut session = grouping();
    together(&mut session, 6);
    after(&mut session, BEGUN);
    let mut step = Step::default();
    session.cancel(FOLLOWED | 5, &mut step).unwrap();
    assert_eq!(told(step).0, "aside");
}

/// Nor does one whose rows began to arrive when the cancel was on its way already hear that it has taken too long.
#[test]
fn what_is_struck_in_anothers_stead_is_told_so() {
    let mut session = grouping();
    ask_for(&mut session, FOLLOWED | 4, SEVEN, 10_000);
    ask(&mut session, 5, SEVEN);
    let mut step = Step::default();
    session.cancel(5, &mut step).unwrap();
    assert_eq!(told(step).0, "aside");
    let mut struck = BEGUN.to_vec();
    struck.push((b'2', b""));
    struck.resize(struck.len() + 8_192, SEVEN_SAID[1]);
    struck.push((b'E', CANCELLED));
    struck.push((b'Z', b"E"));
    let (_, ended) = told(received(&mut session, &struck).unwrap());
    let failed = |id: u32, code: &str| (id, Some(code.to_owned()));
    assert_eq!(
        ended,
        [failed(FOLLOWED | 4, "interrupted"), failed(5, "cancelled")]
    );
    // It did not fail by itself.
    after(&mut session, TAKEN_BACK);
    assert!(together(&mut session, 9));
}

/// One cancel ends a group, whoever of it is given up, and in whatever order: each is a connection at the server, and may strike those behind.
#[test]
fn a_group_is_cancelled_once() {
    let mut session = grouping();
    together(&mut session, 6);
    let mut sent = Vec::new();
    for id in [6, FOLLOWED | 4, FOLLOWED | 5] {
        let mut step = Step::default();
        session.cancel(id, &mut step).unwrap();
        sent.push(told(step).0);
    }
    assert_eq!(sent, ["aside", "", ""]);
    assert_eq!(session.strays, super::super::STRIKES_OF_A_CANCEL);
    let struck: Messages<'_> = &[(b'2', b""), (b'E', CANCELLED), (b'Z', b"E")];
    let (_, ended) = told(received(&mut session, &[BEGUN, struck].concat()).unwrap());
    let cancelled = |id: u32| (id, Some("cancelled".to_owned()));
    assert_eq!(
        ended,
        [FOLLOWED | 4, FOLLOWED | 5, 6].map(cancelled).to_vec()
    );
    // The next group needs one of its own.
    after(&mut session, TAKEN_BACK);
    assert!(together(&mut session, 9));
    let mut step = Step::default();
    session.cancel(9, &mut step).unwrap();
    assert_eq!(told(step).0, "aside");
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

/// A group never waits for a request that the host has not submitted.
#[test]
fn nothing_begins_a_group_but_a_request() {
    let mut session = grouping();
    ask(&mut session, FOLLOWED | 4, "SELECT 8 AS n");
    let (sent, _) = after(&mut session, DESCRIBED);
    assert!(sent.contains("begin") && !sent.contains(&group()), "{sent}");
}

/// A standby ends the session where what it replays meets a statement of a group; one that is alone only fails.
#[test]
fn standbys_have_no_groups() {
    let mut session = grouping();
    after(&mut session, &[(b'S', b"in_hot_standby\0on\0")]);
    assert!(!together(&mut session, 6));
    for _ in 4..=6 {
        after(&mut session, ANSWERED);
    }
    // It is the primary now.
    after(&mut session, &[(b'S', b"in_hot_standby\0off\0")]);
    assert!(together(&mut session, 9));
}

/// Before version 14 it does not say what it is: it is asked, with what groups need.
#[test]
fn old_standbys_have_no_groups() {
    for (version, is_asked, says, has_groups) in [
        ("9.6.24", true, "false", true),
        ("13.14 (Debian 13.14-1)", true, "false", true),
        ("13.14", true, "true", false),
        ("14beta1", false, "", true),
    ] {
        let mut session = opened();
        let told = [&b"server_version\0"[..], version.as_bytes(), b"\0"].concat();
        after(&mut session, &[(b'S', told.as_slice())]);
        ask(&mut session, 1, SEVEN);
        after(&mut session, DESCRIBED);
        after(&mut session, ANSWERED);
        let sent = ask(&mut session, FOLLOWED | 2, SEVEN);
        assert_eq!(sent.contains("pg_is_in_recovery"), is_asked, "{version}");
        ask(&mut session, 3, SEVEN);
        let length = says.len() as u8;
        let row = [&b"\0\x01\0\0\0"[..], &[length], says.as_bytes()].concat();
        let parsed: Messages<'_> = &[(b'3', b""), (b'1', b""), (b'3', b""), (b'1', b"")];
        let run: Messages<'_> = &[(b'3', b""), (b'1', b""), (b'2', b"")];
        let mut answer = parsed.to_vec();
        if is_asked {
            answer.extend_from_slice(run);
            answer.push((b'D', row.as_slice()));
            answer.push((b'C', b"SELECT 1\0"));
        }
        answer.push((b'Z', b"I"));
        assert_eq!(after(&mut session, &answer), (String::new(), vec![]));
        after(&mut session, ANSWERED);
        after(&mut session, ANSWERED);
        assert_eq!(together(&mut session, 6), has_groups, "{version} {says}");
    }
}

/// What follows every statement is parsed again where a cancel that came late, or a transaction that has stayed, has kept the server from it.
#[test]
fn a_setup_that_is_struck_is_repeated() {
    let mut session = opened();
    session.strays = 1;
    session.set_up(&mut Step::default());
    let struck: Messages<'_> = &[(b'E', CANCELLED), (b'Z', b"I")];
    assert!(after(&mut session, struck).0.contains("ROLLBACK"));
    // An error that nothing explains still ends the session.
    assert!(received(&mut session, struck).is_err());
}
