//! A server that lies: whatever it sends is an answer or an error, never a panic.

mod common;

use common::settings;
use souk_connector_mysql::Session;
use souk_sdk::{
    Command, Event, Input, Limits, Machine, Query, Request, SchemaFilter, Settings, Step, Value,
};
use souk_tests::MariaDb;
use souk_tests::spoilt::Spoiler;
use souk_tests::wire::LIMITS;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How many ways the record is spoilt in.
const ROUNDS: usize = 30_000;

fn requests() -> Vec<Request> {
    let sql = "SELECT CAST(1 AS SIGNED), 18446744073709551615, 1.5E0, 12.340, 'grüße', x'00ff', DATE '2024-02-29', TIME '-10:00:00.5', \
        TIMESTAMP '2026-11-20 08:00:00.000001', NULL, b'101', ? FROM seq_1_to_20";
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
        query(sql, vec![Value::Text("x".into())]),
        query(sql, vec![Value::Int64(7)]),
        query("SELECT * FROM nothing", vec![]),
        query("SELECT 9223372036854775807 + ?", vec![Value::Int64(1)]),
        Request::Ping(LIMITS),
        Request::Schema(SchemaFilter {
            schemas: vec!["mysql".into()],
            tables: vec![],
            include_fields: true,
            limits: LIMITS,
        }),
    ]
}

/// One session after another's record: what it asks, and whether it is waiting for an answer.
struct Player {
    session: Session,
    step: Step,
    requests: std::vec::IntoIter<Request>,
    asked: u32,
    ended: u32,
    is_ready: bool,
}

impl Player {
    fn new(settings: Settings) -> Player {
        let mut player = Player {
            session: Session::open(settings).unwrap(),
            step: Step::default(),
            requests: requests().into_iter(),
            asked: 0,
            ended: 0,
            is_ready: false,
        };
        player.session.start(&mut player.step).unwrap();
        player
    }

    /// What is sent next; `None` at the end of the requests, or of the session.
    fn send(&mut self) -> Option<Vec<u8>> {
        loop {
            let (commands, events) = std::mem::take(&mut self.step).into_parts();
            for event in events {
                match event {
                    Event::Ready => self.is_ready = true,
                    Event::Done(_) | Event::Failed(_) => self.ended += 1,
                    Event::Columns(_) | Event::Batch(_) => {}
                }
            }
            let sent = commands.into_iter().filter_map(|command| match command {
                Command::Send(bytes) => Some(bytes),
                _ => None,
            });
            let sent: Vec<u8> = sent.flatten().collect();
            if !sent.is_empty() || !self.is_ready || self.asked > self.ended {
                return Some(sent);
            }
            let request = self.requests.next()?;
            self.asked += 1;
            self.session
                .submit(self.asked, request, &mut self.step)
                .ok()?;
        }
    }

    fn hear(&mut self, bytes: Vec<u8>) -> bool {
        let input = Input::Bytes(bytes);
        self.session.receive(input, &mut self.step).is_ok()
    }
}

/// What a real server sent in one session, read by read.
fn recorded(server: &MariaDb, settings: Settings) -> Vec<Vec<u8>> {
    let mut socket = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut player = Player::new(settings);
    let mut received = Vec::new();
    while let Some(sent) = player.send() {
        socket.write_all(&sent).unwrap();
        let mut buffer = vec![0; 1 << 16];
        let n = socket.read(&mut buffer).unwrap();
        buffer.truncate(n);
        received.push(buffer.clone());
        assert!(
            n > 0 && player.hear(buffer),
            "the server keeps the protocol"
        );
    }
    assert_eq!(player.ended, requests().len() as u32);
    received
}

/// Plays the record back, spoilt, until the session ends or the record does.
fn play(settings: &Settings, record: &[Vec<u8>]) {
    let mut player = Player::new(settings.clone());
    for bytes in record {
        if player.send().is_none() || !player.hear(bytes.clone()) {
            return;
        }
    }
}

/// A server that asks for a file of its client's (`LOAD DATA LOCAL`) in the place of an answer is sent nothing, and loses the session.
#[test]
fn no_file_is_sent() {
    let server = MariaDb::shared();
    let database = server.database("");
    let settings = settings(&server.user, &server.password, &database);
    let record = recorded(server, settings.clone());
    let name = b"\xfb/etc/passwd";
    let asks = [&[name.len() as u8, 0, 0, 1][..], name].concat();
    let mut tried = 0;
    for place in 0..record.len() {
        let mut player = Player::new(settings.clone());
        for bytes in &record[..place] {
            assert!(player.send().is_some() && player.hear(bytes.clone()));
        }
        // Where something was asked that has not begun to be answered.
        let asked = player.send().unwrap();
        if !player.is_ready || asked.is_empty() {
            continue;
        }
        tried += 1;
        assert!(!player.hear(asks.clone()), "{place} of {}", record.len());
        assert_eq!(player.send(), Some(Vec::new()), "{place}");
    }
    assert!(tried >= requests().len(), "{tried}");
}

/// Bytes flipped, cut out and doubled, thousands of ways.
#[test]
fn no_answer_makes_it_panic() {
    let server = MariaDb::shared();
    let database = server.database("");
    let settings = settings(&server.user, &server.password, &database);
    let record = recorded(server, settings.clone());
    let is_there = |word: &[u8]| {
        let mut parts = record.iter();
        parts.any(|part| part.windows(word.len()).any(|found| found == word))
    };
    assert!(is_there("grüße".as_bytes()), "the rows are in the record");
    play(&settings, &record);
    let mut spoiler = Spoiler::new(b"\0\x7f\xfe\xff");
    for _ in 0..ROUNDS {
        play(&settings, &spoiler.spoilt(&record));
    }
}
