//! A backend of the session's own, played by hand: what goes out, and which requests are answered. Here is how it is played; the tests stand in files by
//! what they are of.

use super::Session;
use crate::protocol;
use souk_sdk::{
    Command, Error, ErrorClass, Event, Input, Limits, Machine, Query, Request, Settings, Step,
};

mod alone;
mod cancels;
mod errors;
mod undone;
mod unfit;

type Messages<'a> = &'a [(u8, &'a [u8])];

const CANCELLED: &[u8] = b"SERROR\0C57014\0Mcanceling statement\0\0";
const ABORTED: &[u8] = b"SERROR\0C25P02\0Mcurrent transaction is aborted\0\0";
const LOST: &[u8] = b"SERROR\0C26000\0Mno such prepared statement\0\0";
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
