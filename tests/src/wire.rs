//! A host's part in small, for sessions that are state machines over TCP: a real socket that carries out what the session says.

use souk_sdk::{
    Chunk, Column, ColumnData, Command, Error, Event, Input, Limits, Machine, Message, Pause,
    Query, Request, Settings, Step, Value,
};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// What a request may take unless a test says otherwise.
pub const LIMITS: Limits = Limits {
    rows_max: 100_000,
    bytes_max: 64 << 20,
    timeout_ms: 10_000,
};

/// In the number of a request that another one follows at once.
const FOLLOWED: u32 = 1 << 31;
/// In that of a request that is all there is to do.
const ALONE: u32 = 1 << 30;

/// A finished request.
#[derive(Debug, Default)]
pub struct Answer {
    pub columns: Vec<Column>,
    pub chunks: Vec<Vec<Chunk>>,
    pub rows: u32,
    pub end: Option<Result<(), Error>>,
}

impl Answer {
    pub fn ok(self) -> Answer {
        assert_eq!(self.end, Some(Ok(())));
        self
    }

    pub fn error(self) -> Error {
        self.end.unwrap().unwrap_err()
    }

    /// Value `row` of a column as text, for results of one batch.
    pub fn cell(&self, column: usize, row: usize) -> String {
        let chunk = &self.chunks[0][column];
        let is_set = |bits: &[u8]| bits[row / 8] >> (row % 8) & 1 == 1;
        if chunk.validity.as_deref().is_some_and(|bits| !is_set(bits)) {
            return "NULL".into();
        }
        match &chunk.data {
            ColumnData::Bits(bits) => is_set(bits).to_string(),
            ColumnData::I32s(values) => values[row].to_string(),
            ColumnData::I64s(values) => values[row].to_string(),
            ColumnData::F64s(values) => format!("{:?}", values[row]),
            ColumnData::VarLen(values) => {
                let range = values.offsets[row] as usize..values.offsets[row + 1] as usize;
                String::from_utf8_lossy(&values.bytes[range]).into_owned()
            }
        }
    }

    pub fn column(&self, name: &str) -> usize {
        let found = self.columns.iter().position(|column| column.name == name);
        found.unwrap_or_else(|| panic!("no column {name}"))
    }
}

/// What a session has said of its requests so far.
#[derive(Default)]
pub struct Answers {
    pub is_ready: bool,
    /// How many requests have ended.
    ended: u32,
    of: HashMap<u32, Answer>,
    shapes: HashMap<u32, Vec<Column>>,
}

impl Answers {
    /// Takes in what the session says, which must be what it may say.
    pub fn take(&mut self, event: Event) {
        match event {
            Event::Ready => self.is_ready = true,
            Event::Columns(shape) => {
                if let Some(columns) = shape.columns {
                    self.shapes.insert(shape.shape, columns);
                }
                let columns = self.shapes[&shape.shape].clone();
                self.of.entry(shape.id).or_default().columns = columns;
            }
            Event::Batch(rows) => {
                let answer = self.of.get_mut(&rows.id).unwrap();
                assert_eq!(rows.batch.chunks.len(), answer.columns.len());
                answer.rows += rows.batch.rows;
                answer.chunks.push(rows.batch.chunks);
            }
            Event::Done(id) => self.end(id, Ok(())),
            Event::Failed(failure) => self.end(failure.id, Err(failure.error)),
        }
    }

    fn end(&mut self, id: u32, end: Result<(), Error>) {
        let before = self.of.entry(id).or_default().end.replace(end);
        assert_eq!(before, None, "{id} ended twice");
        self.ended += 1;
    }

    pub fn has_ended(&self, id: u32) -> bool {
        self.of.get(&id).is_some_and(|answer| answer.end.is_some())
    }

    /// The answer to a request that has ended, once.
    pub fn ended(&mut self, id: u32) -> Option<Answer> {
        match self.has_ended(id) {
            true => self.of.remove(&id),
            false => None,
        }
    }
}

/// A session on a real socket.
pub struct Wire<M> {
    pub session: M,
    pub socket: TcpStream,
    port: u16,
    next: u32,
    pub answers: Answers,
    /// What another session was asked for.
    pub errands: Vec<Message>,
    /// Pauses that were asked for. None of them ends by itself.
    pub pauses: Vec<Pause>,
    /// Connections that were made only to say something.
    pub asides: usize,
    /// Whether a request that comes alone is told so, as by a host that has nothing else to do (ability `alone`).
    pub tells_alone: bool,
    /// How many bytes are handed to the session at once.
    pub piece: usize,
    closed: bool,
}

impl<M: Machine> Wire<M> {
    pub fn open(port: u16, settings: Settings) -> Result<Wire<M>, Error> {
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        socket.set_nodelay(true).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut wire = Wire {
            session: M::open(settings)?,
            socket,
            port,
            next: 0,
            answers: Answers::default(),
            errands: Vec::new(),
            pauses: Vec::new(),
            asides: 0,
            tells_alone: false,
            piece: usize::MAX,
            closed: false,
        };
        wire.step(|session, step| session.start(step))?;
        while !wire.answers.is_ready {
            wire.pump()?;
        }
        Ok(wire)
    }

    pub fn step(
        &mut self,
        act: impl FnOnce(&mut M, &mut Step) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut step = Step::default();
        act(&mut self.session, &mut step)?;
        let (commands, events) = step.into_parts();
        for command in commands {
            match command {
                Command::Send(bytes) => self.socket.write_all(&bytes).unwrap(),
                Command::Aside(bytes) => {
                    self.asides += 1;
                    let mut aside = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
                    aside.write_all(&bytes).unwrap();
                    let _ = aside.read(&mut [0]);
                }
                Command::Confer(message) => self.errands.push(message),
                Command::Wake(pause) => self.pauses.push(pause),
                other => panic!("{other:?}"),
            }
        }
        events
            .into_iter()
            .for_each(|event| self.answers.take(event));
        Ok(())
    }

    /// Whether something arrives within a moment.
    pub fn socket_has_more(&self) -> bool {
        let patience = self.socket.read_timeout().unwrap();
        let moment = Some(Duration::from_millis(200));
        self.socket.set_read_timeout(moment).unwrap();
        let has_more = self.socket.peek(&mut [0]).is_ok();
        self.socket.set_read_timeout(patience).unwrap();
        has_more
    }

    /// Reads and feeds until nothing comes for a moment: on a longer way what was sent together comes in pieces.
    pub fn pump_all(&mut self) {
        self.pump().unwrap();
        while self.socket_has_more() {
            self.pump().unwrap();
        }
    }

    /// Reads once and feeds what came.
    pub fn pump(&mut self) -> Result<(), Error> {
        let mut buffer = vec![0; 256 << 10];
        let n = self.socket.read(&mut buffer).unwrap();
        if n == 0 {
            assert!(!std::mem::replace(&mut self.closed, true), "closed twice");
            return self.step(|session, step| session.receive(Input::Closed, step));
        }
        for piece in buffer[..n].chunks(self.piece.min(n)) {
            self.step(|session, step| session.receive(Input::Bytes(piece.to_vec()), step))?;
        }
        Ok(())
    }

    pub fn submit(&mut self, request: Request) -> u32 {
        let is_alone = self.tells_alone && self.answers.ended == self.next;
        self.submit_as(if is_alone { ALONE } else { 0 }, request)
    }

    /// `flags`: what its number has beside what tells it from others.
    fn submit_as(&mut self, flags: u32, request: Request) -> u32 {
        self.next += 1;
        let id = self.next | flags;
        self.step(|session, step| session.submit(id, request, step))
            .unwrap();
        id
    }

    pub fn ask_within(&mut self, sql: &str, parameters: Vec<Value>, limits: Limits) -> u32 {
        self.submit(Request::Query(Query {
            text: sql.into(),
            parameters,
            limits,
        }))
    }

    pub fn ask(&mut self, sql: &str, parameters: Vec<Value>) -> u32 {
        self.ask_within(sql, parameters, LIMITS)
    }

    /// All at once, as a host submits what has come together to a connector with the ability `groups`.
    pub fn ask_together(&mut self, asks: &[(&str, Vec<Value>)]) -> Vec<u32> {
        let last = asks.len().saturating_sub(1);
        let asks = asks.iter().enumerate();
        asks.map(|(i, (text, parameters))| {
            let query = Query {
                text: (*text).into(),
                parameters: parameters.clone(),
                limits: LIMITS,
            };
            self.submit_as(if i < last { FOLLOWED } else { 0 }, Request::Query(query))
        })
        .collect()
    }

    pub fn wait(&mut self, id: u32) -> Result<Answer, Error> {
        loop {
            if let Some(answer) = self.answers.ended(id) {
                return Ok(answer);
            }
            self.pump()?;
        }
    }

    pub fn query(&mut self, sql: &str, parameters: Vec<Value>) -> Answer {
        let id = self.ask(sql, parameters);
        self.wait(id).unwrap()
    }

    /// The one value of a one-row, one-column result.
    pub fn scalar(&mut self, sql: &str) -> String {
        self.query(sql, vec![]).ok().cell(0, 0)
    }
}
