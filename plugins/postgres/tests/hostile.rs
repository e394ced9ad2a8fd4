//! A server that lies: whatever it sends is an answer or an error, never a panic.

mod common;

use common::Cluster;
use souk_connector_postgres::Session;
use souk_sdk::{Command, Event, Input, Limits, Machine, Query, Request, Settings, Step, Value};
use souk_tests::spoilt::Spoiler;
use souk_tests::wire::LIMITS;
use std::io::{Read, Write};
use std::net::TcpStream;

/// How many ways the record is spoilt in.
const ROUNDS: usize = 30_000;

/// What a real server sent in one session, per write of ours.
fn recorded(cluster: &Cluster, pooler: bool) -> Vec<Vec<u8>> {
    let mut session = Session::open(settings(cluster, pooler)).unwrap();
    let mut socket = TcpStream::connect(("127.0.0.1", cluster.port)).unwrap();
    let mut received = Vec::new();
    let mut step = Step::default();
    session.start(&mut step).unwrap();
    let mut requests = requests().into_iter();
    loop {
        let (commands, _) = std::mem::take(&mut step).into_parts();
        for command in &commands {
            let Command::Send(bytes) = command else {
                panic!("{command:?}")
            };
            socket.write_all(bytes).unwrap();
        }
        if commands.is_empty() {
            match requests.next() {
                None => return received,
                Some((id, request)) => session.submit(id, request, &mut step).unwrap(),
            }
            continue;
        }
        std::thread::sleep(std::time::Duration::from_millis(30));
        let mut buffer = vec![0; 1 << 16];
        let n = socket.read(&mut buffer).unwrap();
        received.push(buffer[..n].to_vec());
        session
            .receive(Input::Bytes(buffer[..n].to_vec()), &mut step)
            .unwrap();
    }
}

/// The same server is spoken to as its own, or as if it stood behind a pooler.
fn settings(cluster: &Cluster, pooler: bool) -> Settings {
    let mut settings = cluster.settings("md5er", "md5pw");
    let told = format!(r#""pooler":{pooler}"#);
    settings.json = settings.json.replace(r#""pooler":false"#, &told);
    settings
}

/// In the number of a request that is all there is to do.
const ALONE: u32 = 1 << 30;

fn requests() -> Vec<(u32, Request)> {
    let sql = "SELECT 1::int4, 2::int8, 1.5::float8, 12.340::numeric, 'a'::text, now(), current_date, \
        ARRAY[1,2,NULL], ARRAY['a'], '{}'::jsonb, gen_random_uuid(), NULL::text, 'sad'::shop.mood, true, '1 day'::interval";
    let query = |text: &str, parameters| {
        Request::Query(Query {
            text: text.into(),
            parameters,
            limits: Limits {
                bytes_max: 1 << 20,
                ..LIMITS
            },
        })
    };
    vec![
        (1, query(sql, vec![])),
        (ALONE | 2, query(sql, vec![])),
        (3, query("SELECT $1::int4 / 0", vec![Value::Int64(1)])),
        (4, Request::Ping(LIMITS)),
    ]
}

/// Plays the record back, spoilt, until the session ends or the record does. What failed requests are told.
fn play(cluster: &Cluster, pooler: bool, record: &[Vec<u8>]) -> Vec<String> {
    let mut codes = Vec::new();
    let mut session = Session::open(settings(cluster, pooler)).unwrap();
    let mut step = Step::default();
    session.start(&mut step).unwrap();
    let mut requests = requests().into_iter();
    let mut is_idle = false;
    for bytes in record {
        let mut asked = Step::default();
        if is_idle
            && let Some((id, request)) = requests.next()
            && session.submit(id, request, &mut asked).is_err()
        {
            return codes;
        }
        let mut heard = Step::default();
        if session
            .receive(Input::Bytes(bytes.clone()), &mut heard)
            .is_err()
        {
            return codes;
        }
        let (commands, events) = heard.into_parts();
        is_idle = commands.is_empty();
        codes.extend(events.into_iter().filter_map(|event| match event {
            Event::Failed(failure) => Some(failure.error.code),
            _ => None,
        }));
    }
    codes
}

/// A text that is none is told of the source: the host would end the session and blame the connector.
#[test]
fn a_broken_text_is_the_sources() {
    let cluster = Cluster::get();
    let mut record = recorded(cluster, false);
    let is_told = |record: &[Vec<u8>]| {
        let codes = play(cluster, false, record);
        codes.iter().any(|code| code == "invalid_text")
    };
    assert!(!is_told(&record));
    for part in &mut record {
        for at in 0..part.len() {
            if part[at..].starts_with(b"sad") {
                part[at] = 0xff;
            }
        }
    }
    assert!(is_told(&record));
}

/// Bytes flipped, cut out and doubled, thousands of ways.
#[test]
fn no_answer_makes_it_panic() {
    let cluster = Cluster::get();
    for pooler in [false, true] {
        let record = recorded(cluster, pooler);
        assert!(
            record
                .iter()
                .any(|part| part.windows(3).any(|w| w == b"sad")),
            "the rows are in the record"
        );
        play(cluster, pooler, &record);
        let mut spoiler = Spoiler::new(b"\0\x7f\x80\xff");
        for _ in 0..ROUNDS {
            play(cluster, pooler, &spoiler.spoilt(&record));
        }
    }
}
