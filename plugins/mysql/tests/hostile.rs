//! A server that lies: whatever it sends is an answer or an error, never a panic.

mod common;

use common::{settings, with_eof};
use souk_connector_mysql::Session;
use souk_sdk::{
    Command, Error, Event, Input, Limits, Machine, Query, Request, SchemaFilter, Settings, Step,
    Value,
};
use souk_tests::MySql;
use souk_tests::spoilt::Spoiler;
use souk_tests::wire::LIMITS;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How many ways the records are spoilt in.
const ROUNDS: usize = 30_000;

/// What each server can do that is spoken to.
const ABILITIES: u32 = 1 << 9 | 1 << 15 | 1 << 19;
/// It leaves out EOF (`CLIENT_DEPRECATE_EOF`).
const DEPRECATES_EOF: u32 = 1 << 24;
const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];
/// 4,096 columns, which is as many as there are.
const MANY_COLUMNS: &[u8] = &[0xfc, 0x00, 0x10];

const SQL: &str = "SELECT CAST(1 AS SIGNED), 18446744073709551615, 1.5E0, 12.340, 'grüße', x'00ff', DATE '2024-02-29', TIME '-10:00:00.5', \
    TIMESTAMP '2026-11-20 08:00:00.000001', NULL, b'101', ? FROM seq_1_to_20";

fn requests() -> Vec<Request> {
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
        query(SQL, vec![Value::Text("x".into())]),
        query(SQL, vec![Value::Int64(7)]),
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

/// One session: what it asks, whether it is waiting for an answer, and what has come of its requests.
struct Player {
    session: Session,
    step: Step,
    requests: std::vec::IntoIter<Request>,
    asked: usize,
    columns: usize,
    batches: usize,
    ends: Vec<Result<(), Error>>,
    is_ready: bool,
}

impl Player {
    fn new(settings: Settings, requests: Vec<Request>) -> Player {
        let mut player = Player {
            session: Session::open(settings).unwrap(),
            step: Step::default(),
            requests: requests.into_iter(),
            asked: 0,
            columns: 0,
            batches: 0,
            ends: Vec::new(),
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
                    Event::Done(_) => self.ends.push(Ok(())),
                    Event::Failed(failure) => self.ends.push(Err(failure.error)),
                    Event::Columns(shape) => {
                        self.columns = shape.columns.map_or(self.columns, |columns| columns.len());
                    }
                    Event::Batch(_) => self.batches += 1,
                }
            }
            let sent = commands.into_iter().filter_map(|command| match command {
                Command::Send(bytes) => Some(bytes),
                _ => None,
            });
            let sent: Vec<u8> = sent.flatten().collect();
            if !sent.is_empty() || !self.is_ready || self.asked > self.ends.len() {
                return Some(sent);
            }
            let request = self.requests.next()?;
            self.asked += 1;
            self.session
                .submit(self.asked as u32, request, &mut self.step)
                .ok()?;
        }
    }

    fn hear(&mut self, bytes: Vec<u8>) -> Result<(), Error> {
        let input = Input::Bytes(bytes);
        self.session.receive(input, &mut self.step)
    }

    /// The same of one message.
    fn told(&mut self, body: &[u8]) -> Result<(), Error> {
        self.hear(packet(body))
    }
}

/// What a real server sent in one session, read by read.
fn recorded(port: u16, settings: Settings) -> Vec<Vec<u8>> {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut player = Player::new(settings, requests());
    let mut received = Vec::new();
    while let Some(sent) = player.send() {
        socket.write_all(&sent).unwrap();
        let mut buffer = vec![0; 1 << 16];
        let n = socket.read(&mut buffer).unwrap();
        buffer.truncate(n);
        received.push(buffer.clone());
        let heard = player.hear(buffer);
        assert!(n > 0 && heard.is_ok(), "{n} bytes: {heard:?}");
    }
    assert_eq!(player.ends.len(), requests().len());
    received
}

/// The records of a server as it is, and of one that ends descriptions and rows with EOF.
fn both_recorded(database: &str, settings: &Settings) -> [Vec<Vec<u8>>; 2] {
    let server = MySql::shared();
    server.count_in(database, &[SQL]);
    let records = [server.port, with_eof(server)].map(|port| recorded(port, settings.clone()));
    // Of five bytes, where an OK in its place has seven.
    let is_eof = |found: &[u8]| matches!(found, [5, 0, 0, _, 0xfe]);
    let mut parts = records[1].iter();
    assert!(parts.any(|part| part.windows(5).any(is_eof)));
    records
}

/// Plays the record back, spoilt, until the session ends or the record does.
fn play(settings: &Settings, record: &[Vec<u8>]) {
    let mut player = Player::new(settings.clone(), requests());
    for bytes in record {
        if player.send().is_none() || player.hear(bytes.clone()).is_err() {
            return;
        }
    }
}

/// A server that asks for a file of its client's (`LOAD DATA LOCAL`) in the place of an answer is sent nothing, and loses the session.
#[test]
fn no_file_is_sent() {
    let server = MySql::shared();
    let database = server.database("");
    let settings = settings(&server.user, &server.password, &database);
    let asks = packet(b"\xfb/etc/passwd");
    for record in both_recorded(&database, &settings) {
        let mut tried = 0;
        for place in 0..record.len() {
            let mut player = Player::new(settings.clone(), requests());
            for bytes in &record[..place] {
                assert!(player.send().is_some() && player.hear(bytes.clone()).is_ok());
            }
            // Where something was asked that has not begun to be answered.
            let asked = player.send().unwrap();
            if !player.is_ready || asked.is_empty() {
                continue;
            }
            tried += 1;
            let refused = player.hear(asks.clone()).is_err();
            assert!(refused, "{place} of {}", record.len());
            assert_eq!(player.send(), Some(Vec::new()), "{place}");
        }
        assert!(tried >= requests().len(), "{tried}");
    }
}

/// Bytes flipped, cut out and doubled, thousands of ways.
#[test]
fn no_answer_makes_it_panic() {
    let server = MySql::shared();
    let database = server.database("");
    let settings = settings(&server.user, &server.password, &database);
    let records = both_recorded(&database, &settings);
    for record in &records {
        let is_there = |word: &[u8]| {
            let mut parts = record.iter();
            parts.any(|part| part.windows(word.len()).any(|found| found == word))
        };
        assert!(is_there("grüße".as_bytes()), "the rows are in the record");
        play(&settings, record);
    }
    let mut spoiler = Spoiler::new(b"\0\x7f\xfe\xff");
    for record in records.iter().cycle().take(ROUNDS) {
        play(&settings, &spoiler.spoilt(record));
    }
}

/// A message of the server's. Its number is the first one: behind the greeting nobody looks at it.
fn packet(body: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = (body.len() as u32).to_le_bytes();
    [&[a, b, c, 0][..], body].concat()
}

/// A value with its length before it, in three bytes however short it is.
fn sized(value: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = (value.len() as u32).to_le_bytes();
    [&[0xfd, a, b, c][..], value].concat()
}

/// A column of texts, described.
fn definition(name: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for text in [&b"def"[..], b"", b"t", b"t", name, name] {
        body.extend(sized(text));
    }
    // Character set, length, type, flags, digits behind the point, and nothing.
    let rest = [45, 0, 80, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0];
    body.extend(sized(&rest));
    body
}

/// What a server says first that can do this beside what each can.
fn greeting(abilities: u32) -> Vec<u8> {
    let [low, more, high, highest] = (ABILITIES | abilities).to_le_bytes();
    let parts = [
        &b"\n8.0.11\0"[..],
        &[7, 0, 0, 0],
        b"12345678\0",
        // Character set and status between the halves; the length of both parts of the nonce.
        &[low, more, 45, 2, 0, high, highest, 21],
        &[0; 10],
        b"123456789012\0",
        b"mysql_native_password\0",
    ];
    parts.concat()
}

/// A session that has sent a statement, which the server has prepared and begins to answer.
fn asked(abilities: u32) -> Player {
    let query = Query {
        text: "SELECT a FROM t".into(),
        parameters: vec![],
        limits: LIMITS,
    };
    let settings = settings("souk", "pw", "shop");
    let mut player = Player::new(settings, vec![Request::Query(query)]);
    player.told(&greeting(abilities)).unwrap();
    // The login, and what a session begins with.
    while player.asked == 0 {
        player.told(OK).unwrap();
        player.send();
    }
    // Its number, one column, no parameters.
    player.told(&[0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
    described(&mut player, 1, abilities);
    // The transaction that it is in has begun.
    player.told(OK).unwrap();
    player
}

/// So many columns are described.
fn described(player: &mut Player, columns: usize, abilities: u32) {
    for _ in 0..columns {
        player.told(&definition(b"a")).unwrap();
    }
    if abilities & DEPRECATES_EOF == 0 {
        player.told(EOF).unwrap();
    }
    player.send();
}

/// The end of rows and of the transaction.
fn ended(player: &mut Player) {
    player.told(EOF).unwrap();
    player.told(OK).unwrap();
    player.send();
}

/// As many columns as a server's tables can have are read, and no more, before one of them is there; also where a component's 32 bits would make few of them.
#[test]
fn too_many_columns_are_refused() {
    for abilities in [0, DEPRECATES_EOF] {
        let mut player = asked(abilities);
        player.told(MANY_COLUMNS).unwrap();
        described(&mut player, 4_096, abilities);
        // Nothing, a bit for each and for two more, all of them set.
        let nulls = [&[0_u8][..], &[0xff; 513]].concat();
        player.told(&nulls).unwrap();
        ended(&mut player);
        assert!(matches!(player.ends[..], [Ok(())]), "{:?}", player.ends);
        assert_eq!((player.columns, player.batches), (4_096, 1));
        for said in [
            &[0xfc, 0x01, 0x10][..],
            &[0xfc, 0xff, 0xff],
            &[0xfd, 0, 0, 1],
            &[0xfe, 1, 0, 0, 0, 1, 0, 0, 0],
            &[0xfe; 9],
            &[0xfc],
            &[0xfb],
        ] {
            let refused = asked(abilities).told(said).unwrap_err();
            assert_eq!(refused.code, "protocol_error", "{said:?}");
        }
    }
}

/// What describes columns has some megabytes at most, however many there are to come, and in however many packets it comes.
#[test]
fn endless_descriptions_are_refused() {
    const TAKEN_MAX: usize = 5 << 20;
    for abilities in [0, DEPRECATES_EOF] {
        let mut player = asked(abilities);
        player.told(MANY_COLUMNS).unwrap();
        let long = packet(&definition(&[b'a'; 100_000]));
        let mut taken = 0;
        let refused = loop {
            match player.hear(long.clone()) {
                Ok(()) => taken += long.len(),
                Err(refused) => break refused,
            }
            assert!(taken <= TAKEN_MAX, "{taken} bytes");
        };
        assert_eq!(refused.code, "protocol_error");
        assert!(taken > 1 << 20, "{taken} bytes");

        let mut player = asked(abilities);
        player.told(MANY_COLUMNS).unwrap();
        // A full packet is followed by another of the same message.
        let mut full = vec![0xff, 0xff, 0xff, 0];
        full.resize(full.len() + 0xff_ffff, b'a');
        player.hear(full).unwrap();
        let refused = player.hear(vec![0xff, 0xff, 0xff, 1]).unwrap_err();
        assert_eq!(refused.code, "protocol_error");
    }
}

/// What is said of a length is not believed before it is there. A row that lies fails its request, and is not told; what has no rows yet ends the session.
#[test]
fn said_lengths_are_not_believed() {
    for abilities in [0, DEPRECATES_EOF] {
        for said in [
            &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..],
            &[0xfe, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
            // Of which 32 bits would make what is there.
            &[0xfe, 4, 0, 0, 0, 1, 0, 0, 0],
            &[0xfd, 0xff, 0xff, 0xff],
            &[0xfc, 5, 0],
            &[5],
            &[3],
            &[0xfe],
            &[0xfb],
        ] {
            let mut player = asked(abilities);
            player.told(&[1]).unwrap();
            described(&mut player, 1, abilities);
            player.told(&[&[0, 0][..], said, b"text"].concat()).unwrap();
            ended(&mut player);
            assert_eq!(failed(&player), ["protocol_error"], "{said:?}");
            // A name that is as long is known to be when all columns are there.
            let mut player = asked(abilities);
            player.told(&[1]).unwrap();
            let names = [&sized(b"def")[..], &sized(b""), &sized(b"t"), &sized(b"t")].concat();
            player.told(&[&names[..], said, b"text"].concat()).unwrap();
            described(&mut player, 0, abilities);
            ended(&mut player);
            assert_eq!(failed(&player), ["protocol_error"], "{said:?}");
        }
        for cut in [&[0xff][..], &[0xff, 1], &[0xff, 1, 2, b'#', b'4']] {
            let refused = asked(abilities).told(cut).unwrap_err();
            assert_eq!(refused.code, "protocol_error", "{cut:?}");
        }
        // The beginning of the longest message that fits into a packet: it is waited for.
        let mut player = asked(abilities);
        player.hear(vec![0xfe, 0xff, 0xff, 0, 1]).unwrap();
        player.send();
        assert_eq!((player.ends.len(), player.batches), (0, 0));
    }
}

/// With which codes requests have failed, none of which was told a row.
fn failed(player: &Player) -> Vec<&str> {
    assert_eq!(player.batches, 0);
    let failed = player.ends.iter().filter_map(|end| end.as_ref().err());
    failed.map(|error| error.code.as_str()).collect()
}

/// A server that ends descriptions with EOF says it, or its session ends: rows are not taken for it.
#[test]
fn rows_do_not_begin_without_the_end_of_their_columns() {
    let mut player = asked(0);
    player.told(&[1]).unwrap();
    player.told(&definition(b"a")).unwrap();
    let refused = player.told(&[0, 0, 1, b'x']).unwrap_err();
    assert_eq!(refused.code, "protocol_error");
}
