//! Requests as they go out, and what their answers make of a session.

use super::*;
use souk_sdk::{Command, ErrorClass, Event, Limits, Query, Value};

/// What goes out for a request of the statement that was prepared, and whether it has failed at once.
fn asked(session: &mut Session, value: Value) -> (Vec<u8>, bool) {
    let limits = Limits {
        rows_max: 1,
        bytes_max: 1_000,
        timeout_ms: 1_000,
    };
    let request = Request::Query(Query {
        text: "SELECT ?".into(),
        parameters: vec![value],
        limits,
    });
    let mut step = Step::default();
    session.submit(1, request, &mut step).unwrap();
    let (commands, events) = step.into_parts();
    let sent = commands.into_iter().flat_map(|command| match command {
        Command::Send(bytes) => bytes,
        other => panic!("{other:?}"),
    });
    let has_failed = matches!(events.as_slice(), [Event::Failed(_)]);
    (sent.collect(), has_failed)
}

fn opened() -> Session {
    let json = r#"{"username":"u","password":"p","database":"d","ssl_mode":"disable"}"#;
    let mut session = Session::open(souk_sdk::Settings {
        engine: "mysql".into(),
        json: json.into(),
    })
    .unwrap();
    session.phase = Phase::Open;
    session.statements.tell_types_apart();
    for value in [Value::Int64(0), Value::Float64(0.0)] {
        session.statements.keep("SELECT ?".into(), &[value], 7, 1);
    }
    session
}

/// Of a request with a value that the server has not, nothing leaves, and the next one is as if it had not been.
#[test]
fn a_refused_value_leaves_nothing() {
    let mut session = opened();
    let refused = asked(&mut session, Value::Float64(f64::NAN));
    assert_eq!(refused, (Vec::new(), true));
    assert!(session.job.is_none() && session.awaited.is_empty());
    let (sent, has_failed) = asked(&mut session, Value::Int64(1));
    assert!(!has_failed && String::from_utf8_lossy(&sent).contains("max_execution_time"));
    assert_eq!(asked(&mut opened(), Value::Int64(1)).0, sent);
    // The limit is known.
    session.job = None;
    session.awaited.clear();
    let (again, _) = asked(&mut session, Value::Int64(2));
    assert!(again.len() < sent.len());
    let text = String::from_utf8_lossy(&again);
    assert!(text.contains(BEGIN) && text.contains(END), "{text}");
}

/// A server's message, with its head.
fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    [&length[..3], &[number], body].concat()
}

/// What is told of a request when this has come.
fn heard(session: &mut Session, bytes: Vec<u8>) -> Result<Vec<Event>, Error> {
    let mut step = Step::default();
    session.receive(Input::Bytes(bytes), &mut step)?;
    Ok(step.into_parts().1)
}

const OKAY: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];
const IN_TRANSACTION: [u8; 7] = [0, 0, 0, 3, 0, 0, 0];
const READS_ONLY: [u8; 7] = [0, 0, 0, 3, 0x20, 0, 0];
const EOF: [u8; 5] = [0xfe, 0, 0, 3, 0];

/// The time limit, the transaction's begin, and one row of one number.
fn answered() -> Vec<u8> {
    let names = b"\x03def\0\0\0\x01a\0\x0c";
    let definition = [&names[..], &[63, 0, 20, 0, 0, 0, 8, 0, 0, 0, 0, 0]].concat();
    let row = [0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
    let execute = [&[1][..], &definition, &EOF, &row, &EOF];
    let execute = execute.iter().zip(1..);
    let execute = execute.flat_map(|(body, number)| packet(number, body));
    let before = [packet(1, &OKAY), packet(1, &IN_TRANSACTION)].concat();
    before.into_iter().chain(execute).collect()
}

/// A session whose host tells when nobody asks. The end of its first request, which asks for the next one's transaction, is not answered yet.
fn answered_once() -> Session {
    let mut session = opened();
    session.cancel(NOBODY, &mut Step::default()).unwrap();
    asked(&mut session, Value::Int64(1));
    heard(&mut session, answered()).unwrap();
    session
}

/// Whether this is all that leaves: the end of a transaction, and nothing behind it.
fn ends_only(step: Step) -> bool {
    let commands = step.into_parts().0;
    matches!(commands.as_slice(), [Command::Send(bytes)] if bytes.ends_with(END.as_bytes()))
}

/// Who asked has the rows before their transaction has ended, and what is asked next goes out behind that. A transaction that does not end ends the
/// session, with what is at work there.
#[test]
fn rows_do_not_wait_for_the_end_of_their_transaction() {
    let mut session = opened();
    asked(&mut session, Value::Int64(1));
    let mut bytes = answered();
    let last = bytes.split_off(bytes.len() - 9);
    let is_done = |events: &[Event]| matches!(events.last(), Some(Event::Done(1)));
    assert!(!is_done(&heard(&mut session, bytes).unwrap()));
    assert!(is_done(&heard(&mut session, last).unwrap()));
    // The next one, whose time limit is known: its answer comes behind the end of the first.
    let (_, has_failed) = asked(&mut session, Value::Int64(2));
    assert!(!has_failed);
    let second = [packet(1, &OKAY), answered().split_off(11)].concat();
    assert!(is_done(&heard(&mut session, second).unwrap()));
    // Of a transaction that does not end nobody is to blame who comes behind it, and may be asked elsewhere.
    asked(&mut session, Value::Int64(3));
    let error = heard(&mut session, packet(1, &IN_TRANSACTION)).unwrap_err();
    let told = (error.class, error.code.as_str());
    assert_eq!(told, (ErrorClass::Unavailable, "transaction_not_ended"));
}

/// What the last end has begun is the transaction of what is asked next, once a server has shown that it begins one that only reads; who is told that
/// nobody asks ends it.
#[test]
fn the_end_of_a_transaction_begins_the_next() {
    let sent = |session: &mut Session| {
        let (sent, has_failed) = asked(session, Value::Int64(1));
        assert!(!has_failed);
        String::from_utf8_lossy(&sent).into_owned()
    };
    let told = |session: &mut Session| {
        let mut step = Step::default();
        session.cancel(NOBODY, &mut step).unwrap();
        ends_only(step)
    };
    let mut session = opened();
    // Nobody would tell.
    assert!(sent(&mut session).contains(END));
    heard(&mut session, answered()).unwrap();
    heard(&mut session, packet(1, &OKAY)).unwrap();
    assert!(!told(&mut session));
    // The server has not shown it.
    let first = sent(&mut session);
    assert!(
        first.contains(BEGIN) && first.contains(END_AND_BEGIN),
        "{first}"
    );
    let known = answered().split_off(11);
    heard(&mut session, known.clone()).unwrap();
    let second = sent(&mut session);
    assert!(second.contains(BEGIN), "{second}");
    heard(
        &mut session,
        [packet(1, &READS_ONLY), known.clone()].concat(),
    )
    .unwrap();
    heard(&mut session, packet(1, &READS_ONLY)).unwrap();
    // It has.
    let third = sent(&mut session);
    assert!(
        !third.contains(BEGIN) && third.contains(END_AND_BEGIN),
        "{third}"
    );
    let rows = known.clone().split_off(11);
    heard(&mut session, rows.clone()).unwrap();
    heard(&mut session, packet(1, &READS_ONLY)).unwrap();
    assert!(told(&mut session));
    heard(&mut session, packet(1, &OKAY)).unwrap();
    assert!(sent(&mut session).contains(BEGIN));
    heard(&mut session, known).unwrap();
    // Where it does not begin one after all, what is on its way has none, and is asked elsewhere.
    assert!(!sent(&mut session).contains(BEGIN));
    let error = heard(&mut session, packet(1, &OKAY)).unwrap_err();
    assert_eq!(error.code, "transaction_not_ended");
}

/// A server that begins one that writes is asked for none: it ends, and each request begins its own.
#[test]
fn a_transaction_that_writes_is_not_taken() {
    let mut session = answered_once();
    let mut step = Step::default();
    let bytes = Input::Bytes(packet(1, &IN_TRANSACTION));
    session.receive(bytes, &mut step).unwrap();
    assert!(ends_only(step));
    heard(&mut session, packet(1, &OKAY)).unwrap();
    let (sent, _) = asked(&mut session, Value::Int64(1));
    let sent = String::from_utf8_lossy(&sent);
    assert!(sent.contains(BEGIN) && sent.contains(END), "{sent}");
}

/// What a request's end has begun is over where another end was sent before the first was answered: by a probe, or since nobody asks. What is asked
/// next begins its own.
#[test]
fn a_later_end_ends_what_the_one_before_has_begun() {
    for is_probed in [false, true] {
        let mut session = answered_once();
        // The request's end is not answered yet.
        let mut step = Step::default();
        if is_probed {
            let limits = Limits {
                rows_max: 1,
                bytes_max: 1_000,
                timeout_ms: 1_000,
            };
            let ping = Request::Ping(limits);
            session.submit(2, ping, &mut step).unwrap();
        } else {
            session.cancel(NOBODY, &mut step).unwrap();
        }
        heard(&mut session, packet(1, &READS_ONLY)).unwrap();
        if is_probed {
            let begun = packet(1, &READS_ONLY);
            heard(&mut session, [begun, packet(1, &OKAY)].concat()).unwrap();
        }
        heard(&mut session, packet(1, &OKAY)).unwrap();
        assert!(session.job.is_none() && session.awaited.is_empty());
        let (sent, has_failed) = asked(&mut session, Value::Int64(1));
        let sent = String::from_utf8_lossy(&sent);
        assert!(!has_failed && sent.contains(BEGIN), "{is_probed}: {sent}");
    }
}

/// The server's limit is never shorter than what is left, and not much longer.
#[test]
fn limits_are_rounded_up() {
    for (left, limit) in [
        (0, 100),
        (1, 100),
        (100, 100),
        (999, 1_000),
        (1_001, 1_500),
        (29_990, 30_000),
        (30_000, 30_000),
        (60_001, 90_000),
    ] {
        assert_eq!(rounded(left), limit, "{left}");
    }
}

/// A server that takes no `AND CHAIN` is asked for none: the transaction is ended by other words, and nobody hears of it.
#[test]
fn a_server_without_chains_is_asked_for_none() {
    let refused = packet(1, b"\xff\x28\x04#42000You have an error in your SQL syntax");
    for is_pipelined in [false, true] {
        let mut session = answered_once();
        if is_pipelined {
            let (sent, _) = asked(&mut session, Value::Int64(2));
            assert!(String::from_utf8_lossy(&sent).contains(BEGIN));
        }
        let mut step = Step::default();
        let bytes = Input::Bytes(refused.clone());
        session.receive(bytes, &mut step).unwrap();
        // What is on its way ends the transaction by its own begin.
        assert_eq!(ends_only(step), !is_pipelined);
        if is_pipelined {
            let known = answered().split_off(11);
            heard(&mut session, known).unwrap();
            heard(&mut session, refused.clone()).unwrap();
        }
        heard(&mut session, packet(1, &OKAY)).unwrap();
        let (sent, _) = asked(&mut session, Value::Int64(3));
        let sent = String::from_utf8_lossy(&sent);
        assert!(sent.contains(BEGIN) && sent.contains(END), "{sent}");
    }
}

/// Who waits for others where a transaction begins has none begun beforehand, nor who cannot say now whether it does.
#[test]
fn who_waits_for_others_begins_each() {
    let rows = |text: &[u8]| {
        let row = [&[1][..], text].concat();
        let messages: [&[u8]; 5] = [&[1], b"\x03def", &EOF, &row, &EOF];
        let messages = messages.iter().zip(1..);
        let bytes = messages.flat_map(|(body, number)| packet(number, body));
        bytes.collect::<Vec<u8>>()
    };
    let unknown = packet(1, b"\xff\xa9\x04#HY000Unknown system variable");
    let not_now = packet(1, b"\xff\x17\x04#08S01WSREP has not yet prepared node");
    for (said, is_followed) in [
        (rows(b"0"), true),
        (unknown, true),
        (rows(b"1"), false),
        (not_now, false),
    ] {
        let mut session = opened();
        session.set_up(&mut Step::default());
        // What all rows need, and which server it is, come before that; the time limit behind it.
        let before = packet(1, &OKAY).repeat(SETUP.len() + 2);
        let bytes = [before, said, packet(1, &OKAY)].concat();
        heard(&mut session, bytes).unwrap();
        assert!(session.job.is_none() && session.awaited.is_empty());
        session.cancel(NOBODY, &mut Step::default()).unwrap();
        let (sent, has_failed) = asked(&mut session, Value::Int64(1));
        let sent = String::from_utf8_lossy(&sent);
        assert!(!has_failed);
        assert_eq!(sent.contains(END_AND_BEGIN), is_followed, "{sent}");
    }
}

/// A transaction that writes is ended behind a statement that is being prepared, and before that runs.
#[test]
fn what_is_prepared_meanwhile_begins_its_own() {
    let mut session = answered_once();
    let limits = Limits {
        rows_max: 1,
        bytes_max: 1_000,
        timeout_ms: 1_000,
    };
    let request = Request::Query(Query {
        text: "SELECT 2".into(),
        parameters: Vec::new(),
        limits,
    });
    session.submit(2, request, &mut Step::default()).unwrap();
    let prepared: [&[u8]; 3] = [&[0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], b"\x03def", &EOF];
    let prepared = prepared.iter().zip(1..);
    let prepared = prepared.flat_map(|(body, number)| packet(number, body));
    let writes = packet(1, &IN_TRANSACTION).into_iter();
    heard(&mut session, writes.chain(prepared).collect()).unwrap();
    let mut step = Step::default();
    let bytes = Input::Bytes(packet(1, &OKAY));
    session.receive(bytes, &mut step).unwrap();
    let (commands, _) = step.into_parts();
    let [Command::Send(sent)] = commands.as_slice() else {
        panic!("{commands:?}");
    };
    let sent = String::from_utf8_lossy(sent);
    assert!(sent.contains(BEGIN) && sent.contains(END), "{sent}");
}
