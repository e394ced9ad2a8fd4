//! The async layer drives an ordinary connector as the contract asks: `sdk/examples/hello`, by hand.

use souk_example_hello::Hello;
use souk_sdk::{
    ColumnData, Command, Driver, ErrorClass, Event, HttpFailure, HttpResponse, Input, Limits,
    Machine, Query, Request, Settings, Step, Value, WireFault,
};

const LIMITS: Limits = Limits {
    rows_max: 3,
    bytes_max: 1_000,
    timeout_ms: 500,
};

fn open() -> Driver<Hello> {
    let mut session = Driver::open(Settings {
        engine: "hello".into(),
        json: r#"{"league":"north"}"#.into(),
    })
    .unwrap();
    let (commands, events) = step(|s| session.start(s));
    assert!(commands.is_empty());
    assert_eq!(events, [Event::Ready]);
    session
}

fn step(act: impl FnOnce(&mut Step) -> Result<(), souk_sdk::Error>) -> (Vec<Command>, Vec<Event>) {
    let mut step = Step::default();
    act(&mut step).unwrap();
    step.into_parts()
}

fn ask(session: &mut Driver<Hello>, id: u32, player: &str) -> u32 {
    let query = Query {
        text: "/scores".into(),
        parameters: vec![Value::Text(player.into())],
        limits: LIMITS,
    };
    let (commands, events) = step(|s| session.submit(id, Request::Query(query), s));
    assert!(events.is_empty());
    let [Command::Request(request)] = commands.as_slice() else {
        panic!("{commands:?}")
    };
    assert_eq!(request.path, format!("/scores?player={player}"));
    assert_eq!(request.headers[0].value, "north");
    request.id
}

fn answer(session: &mut Driver<Hello>, http: u32, body: &str) -> Vec<Event> {
    let response = HttpResponse {
        id: http,
        status: 200,
        headers: vec![],
        body: body.into(),
    };
    step(|s| session.receive(Input::Response(response), s)).1
}

/// Two requests run side by side, answers come in any order, and a shape is described once.
#[test]
fn requests_run_side_by_side() {
    let mut session = open();
    let (first, second) = (ask(&mut session, 1, "ann"), ask(&mut session, 2, "bob"));
    let events = answer(&mut session, second, r#"[["bob",7],["bo",null]]"#);
    let [Event::Columns(shape), Event::Batch(rows), Event::Done(2)] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(shape.columns.as_ref().unwrap()[1].name, "points");
    assert_eq!(rows.batch.rows, 2);
    assert_eq!(rows.batch.chunks[1].data, ColumnData::I64s(vec![7, 0]));
    assert_eq!(rows.batch.chunks[1].validity, Some(vec![0b01]));

    let again = answer(&mut session, first, "[]");
    let [Event::Columns(known), Event::Done(1)] = again.as_slice() else {
        panic!("{again:?}")
    };
    assert_eq!((known.shape, &known.columns), (shape.shape, &None));
}

/// A result past the limit fails with `limit-exceeded`, and the session goes on.
#[test]
fn a_result_past_the_limit_fails() {
    let mut session = open();
    let http = ask(&mut session, 1, "ann");
    let row = r#"["ann",1]"#;
    let events = answer(&mut session, http, &format!("[{row},{row},{row},{row}]"));
    let Some(Event::Failed(failure)) = events.last() else {
        panic!("{events:?}")
    };
    assert_eq!(
        (failure.id, failure.error.class),
        (1, ErrorClass::LimitExceeded)
    );
    let http = ask(&mut session, 2, "ann");
    assert_eq!(
        answer(&mut session, http, "[]").last(),
        Some(&Event::Done(2))
    );
}

/// What the host saw on the wire becomes the request's error; a bad parameter never reaches the wire.
#[test]
fn failures_keep_their_blame() {
    let mut session = open();
    let http = ask(&mut session, 1, "ann");
    let failure = HttpFailure {
        id: http,
        fault: WireFault::Refused,
        message: "os error 111".into(),
    };
    let (_, events) = step(|s| session.receive(Input::RequestFailed(failure), s));
    let [Event::Failed(failed)] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(failed.error.class, ErrorClass::Unavailable);

    let query = Query {
        text: "/scores".into(),
        parameters: vec![Value::Text("a/b".into())],
        limits: LIMITS,
    };
    let (commands, events) = step(|s| session.submit(2, Request::Query(query), s));
    assert!(commands.is_empty());
    let [Event::Failed(failed)] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(failed.error.class, ErrorClass::InvalidRequest);
}

/// A cancelled request ends with `failed`; its late answer is ignored.
#[test]
fn a_cancelled_request_ends() {
    let mut session = open();
    let http = ask(&mut session, 1, "ann");
    let (_, events) = step(|s| session.cancel(1, s));
    assert!(
        matches!(events.as_slice(), [Event::Failed(f)] if f.id == 1 && f.error.code == "cancelled")
    );
    assert_eq!(answer(&mut session, http, "[]"), []);
}

/// What was given up is under way until the source answers it: however much of that there is, nothing is asked that a host would refuse.
#[test]
fn what_was_given_up_is_counted() {
    let mut session = open();
    let mut given_up = Vec::new();
    for id in 1..=128 {
        given_up.push(ask(&mut session, id, "ann"));
        step(|s| session.cancel(id, s));
    }
    let query = Query {
        text: "/scores".into(),
        parameters: vec![],
        limits: LIMITS,
    };
    let (commands, events) = step(|s| session.submit(129, Request::Query(query), s));
    assert!(commands.is_empty());
    let [Event::Failed(failed)] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(failed.error.class, ErrorClass::Unavailable);
    // As one is answered, or fails, another one may be asked.
    assert_eq!(answer(&mut session, given_up[0], "[]"), []);
    let http = ask(&mut session, 130, "ann");
    let failure = HttpFailure {
        id: given_up[1],
        fault: WireFault::Timeout,
        message: String::new(),
    };
    step(|s| session.receive(Input::RequestFailed(failure), s));
    ask(&mut session, 131, "ann");
    let events = answer(&mut session, http, "[]");
    assert_eq!(events.last(), Some(&Event::Done(130)));
}

/// Settings that do not fit end the session, and the error repeats no value.
#[test]
fn bad_settings_end_the_session() {
    let mut session = Driver::<Hello>::open(Settings {
        engine: "hello".into(),
        json: r#"{"league":["secret"]}"#.into(),
    })
    .unwrap();
    let error = session.start(&mut Step::default()).unwrap_err();
    assert_eq!(error.class, ErrorClass::Configuration);
    assert!(!format!("{error:?}").contains("secret"));
}
