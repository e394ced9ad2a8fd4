//! A session that is driven by hand, and what a server may say to it (MS-TDS 2.2.7).
#![allow(dead_code, reason = "each test file uses its part")]

use souk_connector_sqlserver::Session;
use souk_sdk::{
    Batch, Column, ColumnData, Command, Error, Event, Input, Limits, Machine, Query, Request,
    Settings, Step, TlsRecords, Value,
};

pub const LIMITS: Limits = Limits {
    rows_max: 10_000,
    bytes_max: 4 << 20,
    timeout_ms: 10_000,
};
pub const RPC: u8 = 0x03;
pub const ATTENTION: u8 = 0x06;
pub const LOGIN: u8 = 0x10;
pub const PRELOGIN: u8 = 0x12;
pub const MORE: u16 = 0x01;
pub const ERROR: u16 = 0x02;
pub const COUNT: u16 = 0x10;
pub const ACKNOWLEDGED: u16 = 0x20;
pub const SERVER_ERROR: u16 = 0x100;

pub struct Driven {
    session: Session,
    /// Messages that were sent: their type, the status of the first packet, and the body.
    pub sent: Vec<(u8, u8, Vec<u8>)>,
    pub handshakes: Vec<(TlsRecords, Vec<String>)>,
    pub pauses: Vec<(u32, u32)>,
    pub is_ready: bool,
    pub columns: Vec<Column>,
    pub batches: Vec<Batch>,
    pub ends: Vec<(u32, Result<(), Error>)>,
    now: u64,
    next: u32,
}

pub fn settings(more: &str) -> Settings {
    Settings {
        engine: "sqlserver".into(),
        json: format!(
            r#"{{"username": "souk", "password": "pässw'ord", "database": "shop", "host": "db.example.com", "ssl_mode": "verify-full"{more}}}"#
        ),
    }
}

impl Driven {
    /// A session that has not said anything yet.
    pub fn new(more: &str) -> Driven {
        Driven {
            session: Session::open(settings(more)).unwrap(),
            sent: Vec::new(),
            handshakes: Vec::new(),
            pauses: Vec::new(),
            is_ready: false,
            columns: Vec::new(),
            batches: Vec::new(),
            ends: Vec::new(),
            now: 1_767_225_600,
            next: 0,
        }
    }

    /// One that is open.
    pub fn open(more: &str) -> Driven {
        let mut driven = Driven::new(more);
        driven.start().unwrap();
        driven.receive(&message(&prelogin(1))).unwrap();
        driven.secured().unwrap();
        driven.receive(&message(&logged_in())).unwrap();
        assert!(driven.is_ready);
        driven.sent.clear();
        driven
    }

    pub fn step(
        &mut self,
        act: impl FnOnce(&mut Session, &mut Step) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut step = Step::at(self.now);
        act(&mut self.session, &mut step)?;
        let (commands, events) = step.into_parts();
        for command in commands {
            match command {
                Command::Send(bytes) => self.sent.extend(messages(&bytes)),
                Command::StartTls(handshake) => self
                    .handshakes
                    .push((handshake.records, handshake.protocols)),
                Command::Wake(pause) => self.pauses.push((pause.id, pause.ms)),
                other => panic!("{other:?}"),
            }
        }
        for event in events {
            match event {
                Event::Ready => self.is_ready = true,
                Event::Columns(shape) => {
                    self.columns = shape.columns.unwrap_or(std::mem::take(&mut self.columns))
                }
                Event::Batch(rows) => self.batches.push(rows.batch),
                Event::Done(id) => self.ends.push((id, Ok(()))),
                Event::Failed(failure) => self.ends.push((failure.id, Err(failure.error))),
            }
        }
        Ok(())
    }

    pub fn start(&mut self) -> Result<(), Error> {
        self.step(|session, step| session.start(step))
    }

    pub fn secured(&mut self) -> Result<(), Error> {
        self.input(Input::TlsEstablished)
    }

    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.input(Input::Bytes(bytes.to_vec()))
    }

    pub fn input(&mut self, input: Input) -> Result<(), Error> {
        self.step(|session, step| session.receive(input, step))
    }

    pub fn submit(&mut self, request: Request) -> u32 {
        self.next += 1;
        let id = self.next;
        self.columns.clear();
        self.batches.clear();
        self.step(|session, step| session.submit(id, request, step))
            .unwrap();
        id
    }

    pub fn ask_within(&mut self, text: &str, parameters: Vec<Value>, limits: Limits) -> u32 {
        self.submit(Request::Query(Query {
            text: text.into(),
            parameters,
            limits,
        }))
    }

    pub fn ask(&mut self, text: &str) -> u32 {
        self.ask_within(text, Vec::new(), LIMITS)
    }

    pub fn cancel(&mut self, id: u32) {
        self.step(|session, step| session.cancel(id, step)).unwrap();
    }

    /// How the newest request has ended.
    pub fn end(&mut self) -> Result<(), Error> {
        let (id, end) = self.ends.pop().expect("it has not ended");
        assert_eq!(id, self.next);
        end
    }

    pub fn sent_kinds(&self) -> Vec<u8> {
        self.sent.iter().map(|(kind, ..)| *kind).collect()
    }

    /// The values of a column of texts or numbers.
    pub fn cells(&self, column: usize) -> Vec<String> {
        let mut found = Vec::new();
        for batch in &self.batches {
            let chunk = &batch.chunks[column];
            for row in 0..batch.rows as usize {
                let is_null = chunk
                    .validity
                    .as_ref()
                    .is_some_and(|bits| bits[row / 8] >> (row % 8) & 1 == 0);
                found.push(match &chunk.data {
                    _ if is_null => "NULL".into(),
                    ColumnData::Bits(bits) => (bits[row / 8] >> (row % 8) & 1).to_string(),
                    ColumnData::I32s(values) => values[row].to_string(),
                    ColumnData::I64s(values) => values[row].to_string(),
                    ColumnData::F64s(values) => values[row].to_string(),
                    ColumnData::VarLen(values) => {
                        let range = values.offsets[row] as usize..values.offsets[row + 1] as usize;
                        String::from_utf8_lossy(&values.bytes[range]).into_owned()
                    }
                });
            }
        }
        found
    }
}

/// Cuts what was sent into messages.
fn messages(mut bytes: &[u8]) -> Vec<(u8, u8, Vec<u8>)> {
    let mut found: Vec<(u8, u8, Vec<u8>)> = Vec::new();
    let mut is_open = false;
    while let [kind, status, high, low, ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (packet, rest) = bytes.split_at(length);
        if !is_open {
            found.push((*kind, *status, Vec::new()));
        }
        found.last_mut().unwrap().2.extend_from_slice(&packet[8..]);
        is_open = status & 1 == 0;
        bytes = rest;
    }
    assert!(!is_open, "a message was not ended");
    found
}

/// A packet of a reply.
pub fn packet(body: &[u8], is_last: bool) -> Vec<u8> {
    let length = ((body.len() + 8) as u16).to_be_bytes();
    let mut out = vec![0x04, u8::from(is_last), length[0], length[1], 0, 51, 1, 0];
    out.extend_from_slice(body);
    out
}

/// A reply, in packets.
pub fn message(body: &[u8]) -> Vec<u8> {
    let mut pieces = body.chunks(4_088).peekable();
    let mut out = Vec::new();
    while let Some(piece) = pieces.next() {
        out.extend(packet(piece, pieces.peek().is_none()));
    }
    out
}

pub fn prelogin(encryption: u8) -> Vec<u8> {
    vec![
        0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xff, 16, 0, 4, 10, 0, 0, encryption,
    ]
}

pub fn token(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u16).to_le_bytes();
    [&[kind], &length[..], body].concat()
}

pub fn units(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

pub fn ack(version: [u8; 4]) -> Vec<u8> {
    let name = "Microsoft SQL Server";
    token(
        0xad,
        &[
            &[1][..],
            &version,
            &[name.len() as u8],
            &units(name),
            &[16, 0, 0x10, 0x0a],
        ]
        .concat(),
    )
}

pub fn logged_in() -> Vec<u8> {
    let bytes = token(
        0xe3,
        &[
            4, 4, b'8', 0, b'0', 0, b'0', 0, b'0', 0, 4, b'4', 0, b'0', 0, b'9', 0, b'6', 0,
        ],
    );
    [ack([0x74, 0, 0, 4]), bytes, done(0xfd, 0)].concat()
}

pub fn error(number: i32, class: u8, text: &str) -> Vec<u8> {
    let mut body = number.to_le_bytes().to_vec();
    body.extend([1, class]);
    body.extend_from_slice(&(text.encode_utf16().count() as u16).to_le_bytes());
    body.extend(units(text));
    body.extend([0, 0, 1, 0, 0, 0]);
    token(0xaa, &body)
}

pub fn done(kind: u8, status: u16) -> Vec<u8> {
    let status = status.to_le_bytes();
    [&[kind], &status[..], &[0xc1, 0], &[0; 8]].concat()
}

/// A transaction has begun, and one has ended.
pub fn begun() -> Vec<u8> {
    [
        token(0xe3, &[8, 8, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
        done(0xff, MORE),
    ]
    .concat()
}

pub fn undone() -> Vec<u8> {
    [
        token(0xe3, &[10, 0, 8, 1, 0, 0, 0, 0, 0, 0, 0]),
        done(0xff, MORE),
    ]
    .concat()
}

/// Columns of these types, as a description has them: `a`, `b`, …
pub fn columns(types: &[&[u8]]) -> Vec<u8> {
    let mut out = vec![0x81];
    out.extend_from_slice(&(types.len() as u16).to_le_bytes());
    for (at, kind) in types.iter().enumerate() {
        out.extend([0, 0, 0, 0, 1, 0]);
        out.extend_from_slice(kind);
        out.extend([1, b'a' + at as u8, 0]);
    }
    out
}

pub const INT: &[u8] = &[0x26, 4];
pub const TEXT: &[u8] = &[0xe7, 0xff, 0xff, 9, 4, 0xd0, 0, 0x34];

/// A row of one int.
pub fn int(value: i32) -> Vec<u8> {
    [&[0xd1, 4][..], &value.to_le_bytes()].concat()
}

/// What a call is answered with whose result is this.
pub fn answer(result: &[u8]) -> Vec<u8> {
    [
        &begun(),
        result,
        &undone(),
        &[0x79, 0, 0, 0, 0],
        &done(0xfe, 0),
    ]
    .concat()
}

/// The result of these numbers.
pub fn numbers(values: &[i32]) -> Vec<u8> {
    let rows: Vec<u8> = values.iter().flat_map(|value| int(*value)).collect();
    [columns(&[INT]), rows, done(0xff, MORE | COUNT)].concat()
}
