//! The async layer over a wire: a small line protocol, driven by hand.

use souk_sdk::{
    Cell, ColumnType, Command, Connector, Descriptor, Driver, Error, ErrorClass, Event, Input, Io,
    Limits, Machine, Need, Query, Request, Rows, Settings, Step, Tcp, TlsHandshake, TlsRecords,
    column,
};

const LIMITS: Limits = Limits {
    rows_max: 10,
    bytes_max: 1_000,
    timeout_ms: 500,
};

/// Greets, turns to TLS, and answers each line by one line.
struct Lines(Tcp);

impl Connector for Lines {
    fn describe() -> Descriptor {
        Descriptor::new("lines", "1.0.0", Need::Tcp).engine("lines", "Lines", "none", &[])
    }

    async fn open(_settings: Settings, io: Io) -> Result<Self, Error> {
        let wire = io.tcp();
        wire.write(b"TLS\n");
        let mut answer = [0; 3];
        wire.read_exact(&mut answer).await?;
        if &answer != b"OK\n" {
            return Err(Error::configuration("no_tls", "no TLS"));
        }
        wire.start_tls().await?;
        wire.write(b"HELLO\n");
        Ok(Lines(wire))
    }

    async fn query(&self, query: Query, rows: &mut Rows) -> Result<(), Error> {
        self.0.write(format!("{}\n", query.text).as_bytes());
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            self.0.read_exact(&mut byte).await?;
            match byte {
                [b'\n'] => break,
                [b'?'] => {
                    let odd = Error::source_failed("odd", "the source sent an odd letter");
                    return Err(self.0.broken(odd));
                }
                [byte] => line.push(byte),
            }
        }
        if line == b"no" {
            return Err(Error::source_failed("refused", "the source said no"));
        }
        rows.columns([column("line", ColumnType::Text, "line")])?;
        rows.push([Cell::Text(&String::from_utf8_lossy(&line))])
    }
}

fn step(act: impl FnOnce(&mut Step) -> Result<(), Error>) -> (Vec<Command>, Vec<Event>) {
    let mut step = Step::default();
    act(&mut step).unwrap();
    step.into_parts()
}

fn new() -> Driver<Lines> {
    Driver::open(Settings {
        engine: "lines".into(),
        json: "{}".into(),
    })
    .unwrap()
}

fn feed(session: &mut Driver<Lines>, bytes: &[u8]) -> (Vec<Command>, Vec<Event>) {
    step(|s| session.receive(Input::Bytes(bytes.to_vec()), s))
}

fn bare() -> TlsHandshake {
    TlsHandshake {
        records: TlsRecords::Bare,
        protocols: vec![],
    }
}

fn open() -> Driver<Lines> {
    let mut session = new();
    assert_eq!(
        step(|s| session.start(s)).0,
        [Command::Send(b"TLS\n".to_vec())]
    );
    assert_eq!(feed(&mut session, b"O"), (vec![], vec![]));
    assert_eq!(
        feed(&mut session, b"K\n"),
        (vec![Command::StartTls(bare())], vec![])
    );
    let opened = step(|s| session.receive(Input::TlsEstablished, s));
    assert_eq!(
        opened,
        (vec![Command::Send(b"HELLO\n".to_vec())], vec![Event::Ready])
    );
    session
}

fn ask(session: &mut Driver<Lines>, id: u32, text: &str) -> Vec<Command> {
    let query = Query {
        text: text.into(),
        parameters: vec![],
        limits: LIMITS,
    };
    step(|s| session.submit(id, Request::Query(query), s)).0
}

/// Without `pipelining` requests take turns on the wire, however the bytes are split.
#[test]
fn requests_take_turns() {
    let mut session = open();
    assert_eq!(
        ask(&mut session, 1, "one"),
        [Command::Send(b"one\n".to_vec())]
    );
    assert_eq!(ask(&mut session, 2, "two"), []);
    assert_eq!(feed(&mut session, b"eins").1, []);
    let (commands, events) = feed(&mut session, b"\n");
    assert_eq!(commands, [Command::Send(b"two\n".to_vec())]);
    assert_eq!(events.last(), Some(&Event::Done(1)));
    assert_eq!(
        feed(&mut session, b"zwei\nrest").1.last(),
        Some(&Event::Done(2))
    );
}

/// Plain text that arrives before the handshake ends the session.
#[test]
fn bytes_before_the_handshake_end_the_session() {
    let mut session = new();
    step(|s| session.start(s));
    let error = session
        .receive(Input::Bytes(b"OK\nEVIL".to_vec()), &mut Step::default())
        .unwrap_err();
    assert_eq!(error.code, "unexpected_bytes");
}

/// A wire that closes fails the request that waits; a cancelled request takes the session with it, because half
/// an exchange is on the wire; a queued one only goes.
#[test]
fn ends_are_clean() {
    let mut session = open();
    ask(&mut session, 1, "one");
    let (_, events) = step(|s| session.receive(Input::Closed, s));
    assert!(
        matches!(events.as_slice(), [Event::Failed(f)] if f.id == 1 && f.error.class == ErrorClass::Unavailable)
    );

    let mut session = open();
    ask(&mut session, 1, "one");
    ask(&mut session, 2, "two");
    let (_, events) = step(|s| session.cancel(2, s));
    assert!(matches!(events.as_slice(), [Event::Failed(f)] if f.id == 2));
    assert_eq!(
        session.cancel(1, &mut Step::default()).unwrap_err().code,
        "cancelled"
    );
}

/// Who stops at a row beyond a limit may have left others on the wire: the next request would read them.
#[test]
fn a_row_beyond_a_limit_ends_the_session() {
    let mut session = open();
    ask(&mut session, 1, "one");
    let mut line = vec![b'x'; 1_001];
    line.push(b'\n');
    let ended = session.receive(Input::Bytes(line), &mut Step::default());
    assert_eq!(ended.unwrap_err().class, ErrorClass::LimitExceeded);
}

/// Who gives up in the middle of an answer ends the session, for the next request would read the rest; who has read an answer that refuses does not.
#[test]
fn an_answer_that_is_given_up_ends_the_session() {
    let mut session = open();
    ask(&mut session, 1, "one");
    let (_, events) = feed(&mut session, b"no\n");
    assert!(
        matches!(events.as_slice(), [Event::Failed(f)] if f.id == 1 && f.error.code == "refused")
    );
    ask(&mut session, 2, "two");
    let ended = session.receive(Input::Bytes(b"o?dd\n".to_vec()), &mut Step::default());
    assert_eq!(ended.unwrap_err().code, "odd");
}

/// What a connector does not implement is `unsupported`.
#[test]
fn the_rest_is_unsupported() {
    let mut session = open();
    let (_, events) = step(|s| session.submit(1, Request::Ping(LIMITS), s));
    assert!(
        matches!(events.as_slice(), [Event::Failed(f)] if f.error.class == ErrorClass::Unsupported)
    );
}
