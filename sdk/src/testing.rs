//! Native tests of a connector, without a host and without WebAssembly: a session that is driven by hand, and an API ([`Origin`]) or a
//! server ([`Wire`]) of whom is said beforehand what they answer.
//!
//! ```
//! # mod hello { include!("example.rs"); }
//! use souk_sdk::testing::{Origin, Session};
//!
//! let api = Origin::new().get("/scores", r#"[["Ada", 7], ["Bob", null]]"#);
//! let mut session = Session::<hello::Hello>::http(r#"{"league": "north"}"#, api)?;
//! let answer = session.query("/scores", [])?;
//! assert_eq!(answer.names(), ["player", "points"]);
//! assert_eq!(answer.texts(), [["Ada", "7"], ["Bob", "NULL"]]);
//! assert_eq!(session.requests()[0].headers[0].value, "north");
//! # Ok::<(), souk_sdk::Error>(())
//! ```

mod spoilt;

pub use spoilt::spoilt;

use crate::time::{Date, TimeOfDay, iso8601, rfc3339};
use crate::{
    Batch, Column, ColumnData, ColumnType, Command, Connector, Driver, Errand, Error, Event,
    Header, HttpFailure, HttpRequest, HttpResponse, Input, Limits, Machine, Query, Reply, Request,
    SchemaFilter, Settings, Step, Value, WireFault,
};
use std::collections::{BTreeSet, VecDeque};

/// What a test's requests may hold.
pub const LIMITS: Limits = Limits {
    rows_max: 1_000,
    bytes_max: 1 << 20,
    timeout_ms: 5_000,
};
/// When sessions of tests are opened, unless they say otherwise: 2026-01-01T00:00:00Z.
pub const NOW: u64 = 1_767_225_600;
/// A connector that goes back and forth more often has lost its way.
const TURNS_MAX: usize = 10_000;

/// An API that answers what it was told. What it was not told is 404.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    answers: Vec<(String, String, Result<HttpResponse, HttpFailure>)>,
    now: Option<u64>,
}

impl Origin {
    pub fn new() -> Origin {
        Origin::default()
    }

    /// The time of day when the session opens, in seconds; [`NOW`] unless it is said.
    pub fn at(mut self, now: u64) -> Origin {
        self.now = Some(now);
        self
    }

    /// 200 with this body. `path` has the query too, if there is one.
    pub fn get(self, path: &str, body: &str) -> Origin {
        self.on("GET", path, 200, &[], body)
    }

    pub fn post(self, path: &str, body: &str) -> Origin {
        self.on("POST", path, 200, &[], body)
    }

    pub fn on(
        mut self,
        method: &str,
        path: &str,
        status: u16,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Origin {
        let headers = headers.iter().map(|(name, value)| Header {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        });
        let response = HttpResponse {
            id: 0,
            status,
            headers: headers.collect(),
            body: body.into(),
        };
        self.answers
            .push((method.to_owned(), path.to_owned(), Ok(response)));
        self
    }

    /// The host sees this go wrong on the wire instead of an answer.
    pub fn fails(mut self, method: &str, path: &str, fault: WireFault) -> Origin {
        let failure = HttpFailure {
            id: 0,
            fault,
            message: format!("{fault:?}"),
        };
        self.answers
            .push((method.to_owned(), path.to_owned(), Err(failure)));
        self
    }

    fn answer(&self, request: &HttpRequest) -> Input {
        let found = self
            .answers
            .iter()
            .find(|(method, path, _)| *method == request.method && *path == request.path);
        let id = request.id;
        match found {
            Some((_, _, Ok(response))) => Input::Response(HttpResponse {
                id,
                ..response.clone()
            }),
            Some((_, _, Err(failure))) => Input::RequestFailed(HttpFailure {
                id,
                ..failure.clone()
            }),
            None => Input::Response(HttpResponse {
                id,
                status: 404,
                headers: Vec::new(),
                body: Vec::new(),
            }),
        }
    }
}

/// A server that expects bytes and sends bytes, in this order. What it says, it says in pieces of any size you like ([`Wire::in_pieces`]).
#[derive(Clone, Debug, Default)]
pub struct Wire {
    script: VecDeque<Act>,
    piece: Option<usize>,
    now: Option<u64>,
    refusal: Option<String>,
}

#[derive(Clone, Debug)]
enum Act {
    Expects(Vec<u8>),
    Sends(Vec<u8>),
    Closes,
}

impl Wire {
    pub fn new() -> Wire {
        Wire::default()
    }

    /// The time of day when the session opens, in seconds; [`NOW`] unless it is said.
    pub fn at(mut self, now: u64) -> Wire {
        self.now = Some(now);
        self
    }

    /// The host finds no second session for errands, for this reason; without it they succeed.
    pub fn without_errands(mut self, reason: &str) -> Wire {
        self.refusal = Some(reason.to_owned());
        self
    }

    /// Panics in the test where other bytes come.
    pub fn expects(mut self, bytes: impl AsRef<[u8]>) -> Wire {
        self.script.push_back(Act::Expects(bytes.as_ref().to_vec()));
        self
    }

    pub fn sends(mut self, bytes: impl AsRef<[u8]>) -> Wire {
        self.script.push_back(Act::Sends(bytes.as_ref().to_vec()));
        self
    }

    pub fn closes(mut self) -> Wire {
        self.script.push_back(Act::Closes);
        self
    }

    /// What the server sends arrives so many bytes at a time: 1 finds out who takes a read for a message.
    pub fn in_pieces(mut self, bytes: usize) -> Wire {
        self.piece = Some(bytes.max(1));
        self
    }
}

enum Source {
    Origin(Origin),
    Wire(Wire),
    Nothing,
}

/// An open session of a connector.
pub struct Session<C: Connector> {
    driver: Driver<C>,
    source: Source,
    requests: Vec<HttpRequest>,
    /// Bytes that were sent and not expected yet.
    sent: Vec<u8>,
    inputs: VecDeque<Input>,
    /// What the session has described: a later result may name it by its number alone.
    shapes: Vec<(u32, Vec<Column>)>,
    next_id: u32,
    /// The time of day, in milliseconds: pauses pass in no time, and are seen by it.
    now_ms: u64,
    /// When pauses are over, and their numbers.
    pauses: BTreeSet<(u64, u32)>,
    errands: Vec<Vec<u8>>,
}

/// What a request was answered with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Value>>,
}

impl<C: Connector> Session<C> {
    /// Opens a session on an API; `settings` is JSON.
    pub fn http(settings: &str, origin: Origin) -> Result<Session<C>, Error> {
        Session::open(settings, Source::Origin(origin))
    }

    /// Opens a session on a server.
    pub fn tcp(settings: &str, wire: Wire) -> Result<Session<C>, Error> {
        Session::open(settings, Source::Wire(wire))
    }

    /// Opens a session of a connector that reads files, where it finds them on this machine.
    pub fn directory(settings: &str) -> Result<Session<C>, Error> {
        Session::open(settings, Source::Nothing)
    }

    fn open(settings: &str, source: Source) -> Result<Session<C>, Error> {
        let engine = C::describe().engines.into_iter().next();
        let driver = Driver::open(Settings {
            engine: engine.map(|engine| engine.slug).unwrap_or_default(),
            json: settings.to_owned(),
        })?;
        let now = match &source {
            Source::Origin(origin) => origin.now,
            Source::Wire(wire) => wire.now,
            Source::Nothing => None,
        };
        let mut session = Session {
            driver,
            source,
            now_ms: now.unwrap_or(NOW) * 1_000,
            pauses: BTreeSet::new(),
            errands: Vec::new(),
            requests: Vec::new(),
            sent: Vec::new(),
            inputs: VecDeque::new(),
            shapes: Vec::new(),
            next_id: 0,
        };
        let mut step = session.step();
        session.driver.start(&mut step)?;
        let is_ready = |event: &Event| *event == Event::Ready;
        session.turn(step, |events| events.iter().any(is_ready))?;
        Ok(session)
    }

    /// What time of day it is from now on, in seconds. Otherwise it goes on by the pauses that the connector makes.
    pub fn set_now(&mut self, now: u64) {
        self.now_ms = now * 1_000;
    }

    /// Milliseconds since 1970: pauses have been added.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The messages that were handed to second sessions so far.
    pub fn errands(&self) -> &[Vec<u8>] {
        &self.errands
    }

    fn step(&self) -> Step {
        Step::at(self.now_ms / 1_000)
    }

    /// The requests that were made of the API so far.
    pub fn requests(&self) -> &[HttpRequest] {
        &self.requests
    }

    pub fn query(
        &mut self,
        text: &str,
        parameters: impl IntoIterator<Item = Value>,
    ) -> Result<Answer, Error> {
        self.ask(Request::Query(Query {
            text: text.to_owned(),
            parameters: parameters.into_iter().collect(),
            limits: LIMITS,
        }))
    }

    pub fn schema(&mut self) -> Result<Answer, Error> {
        self.ask(Request::Schema(SchemaFilter {
            schemas: Vec::new(),
            tables: Vec::new(),
            include_fields: true,
            limits: LIMITS,
        }))
    }

    pub fn ping(&mut self) -> Result<Answer, Error> {
        self.ask(Request::Ping(LIMITS))
    }

    /// Does what another session has asked for: this one is the second.
    pub fn errand(&mut self, message: impl Into<Vec<u8>>) -> Result<(), Error> {
        let (message, limits) = (message.into(), LIMITS);
        self.ask(Request::Errand(Errand { message, limits }))?;
        Ok(())
    }

    /// Asks anything, and plays the source's part until it is answered.
    pub fn ask(&mut self, request: Request) -> Result<Answer, Error> {
        self.asked(request, false)
    }

    /// The same, and cancels it at once: before the source has said anything.
    pub fn ask_and_cancel(&mut self, request: Request) -> Result<Answer, Error> {
        self.asked(request, true)
    }

    fn asked(&mut self, request: Request, is_cancelled: bool) -> Result<Answer, Error> {
        self.next_id += 1;
        let asked = self.next_id;
        let mut step = self.step();
        self.driver.submit(asked, request, &mut step)?;
        let mut before = Vec::new();
        if is_cancelled {
            let (commands, events) = step.into_parts();
            commands
                .into_iter()
                .for_each(|command| self.carry_out(command));
            before = events;
            step = self.step();
            self.driver.cancel(asked, &mut step)?;
        }
        let ends = |event: &Event| match event {
            Event::Done(id) => *id == asked,
            Event::Failed(failure) => failure.id == asked,
            _ => false,
        };
        let is_enough = |events: &[Event]| before.iter().chain(events).any(ends);
        let events = self.turn(step, is_enough)?;
        let events = before.iter().cloned().chain(events);
        let mut answer = Answer::default();
        for event in events {
            match event {
                Event::Columns(shape) => {
                    if let Some(columns) = shape.columns {
                        self.shapes.retain(|(known, _)| *known != shape.shape);
                        self.shapes.push((shape.shape, columns));
                    }
                    let known = self.shapes.iter().find(|(known, _)| *known == shape.shape);
                    let (_, columns) = known.expect("a shape that was described before");
                    answer.columns = columns.clone();
                }
                Event::Batch(rows) => answer.append(&rows.batch),
                Event::Failed(failure) => return Err(failure.error),
                Event::Ready | Event::Done(_) => {}
            }
        }
        Ok(answer)
    }

    /// Carries out what the connector commands, until the events say that it is enough.
    fn turn(
        &mut self,
        step: Step,
        is_enough: impl Fn(&[Event]) -> bool,
    ) -> Result<Vec<Event>, Error> {
        let mut heard = Vec::new();
        let mut step = step;
        for _ in 0..TURNS_MAX {
            let (commands, events) = step.into_parts();
            heard.extend(events);
            for command in commands {
                self.carry_out(command);
            }
            if is_enough(&heard) {
                return Ok(heard);
            }
            if self.inputs.is_empty() {
                self.play();
            }
            if self.inputs.is_empty()
                && let Some((at, id)) = self.pauses.pop_first()
            {
                self.now_ms = self.now_ms.max(at);
                self.inputs.push_back(Input::Woken(id));
            }
            let Some(input) = self.inputs.pop_front() else {
                panic!(
                    "the connector waits, and the test's source has nothing to say (sent so far, and not expected: {:?})",
                    String::from_utf8_lossy(&self.sent)
                );
            };
            step = self.step();
            self.driver.receive(input, &mut step)?;
        }
        panic!("the connector has not answered after {TURNS_MAX} turns");
    }

    fn carry_out(&mut self, command: Command) {
        match (command, &self.source) {
            (Command::Request(request), Source::Origin(origin)) => {
                self.inputs.push_back(origin.answer(&request));
                self.requests.push(request);
            }
            (Command::Send(bytes), Source::Wire(_)) => self.sent.extend(bytes),
            (Command::StartTls(_), Source::Wire(_)) => {
                self.inputs.push_back(Input::TlsEstablished);
            }
            (Command::Confer(message), Source::Wire(wire)) => {
                self.inputs.push_back(Input::Conferred(Reply {
                    id: message.id,
                    failure: wire.refusal.clone(),
                }));
                self.errands.push(message.bytes);
            }
            (Command::Wake(pause), Source::Wire(_) | Source::Origin(_)) => {
                let at = self.now_ms + u64::from(pause.ms.max(1));
                self.pauses.insert((at, pause.id));
            }
            (Command::Aside(_) | Command::Close, Source::Wire(_)) => {}
            (command, _) => panic!("{command:?} is nothing for the source of this test"),
        }
    }

    /// The next of what the wire says, once it has what it expects.
    fn play(&mut self) {
        let Source::Wire(wire) = &mut self.source else {
            return;
        };
        while let Some(act) = wire.script.front() {
            match act {
                Act::Expects(bytes) if self.sent.starts_with(bytes) => {
                    self.sent.drain(..bytes.len());
                }
                Act::Expects(bytes) if bytes.starts_with(&self.sent) => return,
                Act::Expects(bytes) => panic!(
                    "the connector sent {:?}, the wire expects {:?}",
                    String::from_utf8_lossy(&self.sent),
                    String::from_utf8_lossy(bytes)
                ),
                Act::Sends(bytes) => {
                    let piece = wire.piece.unwrap_or(bytes.len().max(1));
                    let pieces = bytes
                        .chunks(piece)
                        .map(|piece| Input::Bytes(piece.to_vec()));
                    self.inputs.extend(pieces);
                }
                Act::Closes => self.inputs.push_back(Input::Closed),
            }
            wire.script.pop_front();
            if !self.inputs.is_empty() {
                return;
            }
        }
    }
}

impl Answer {
    pub fn names(&self) -> Vec<&str> {
        self.columns
            .iter()
            .map(|column| column.name.as_str())
            .collect()
    }

    /// The values as texts: digits, `NULL`, `2024-02-29`, `2026-01-01T00:00:00.000000Z`, without a zone without its `Z`; bytes in hexadecimal.
    pub fn texts(&self) -> Vec<Vec<String>> {
        let rows = self.rows.iter();
        rows.map(|row| row.iter().map(text).collect()).collect()
    }

    fn append(&mut self, batch: &Batch) {
        for row in 0..batch.rows as usize {
            let cells = self.columns.iter().zip(&batch.chunks);
            let cells = cells.map(|(column, chunk)| {
                let is_set = |bits: &[u8]| bits[row / 8] & (1 << (row % 8)) != 0;
                if chunk.validity.as_deref().is_some_and(|bits| !is_set(bits)) {
                    return Value::Null(None);
                }
                match (&chunk.data, column.kind) {
                    (ColumnData::Bits(bits), _) => Value::Boolean(is_set(bits)),
                    (ColumnData::I32s(days), _) => Value::Date(days[row]),
                    (ColumnData::I64s(values), ColumnType::Timestamp) => {
                        Value::Timestamp(values[row])
                    }
                    (ColumnData::I64s(values), ColumnType::LocalTimestamp) => {
                        Value::LocalTimestamp(values[row])
                    }
                    (ColumnData::I64s(values), ColumnType::Time) => Value::Time(values[row]),
                    (ColumnData::I64s(values), _) => Value::Int64(values[row]),
                    (ColumnData::F64s(values), _) => Value::Float64(values[row]),
                    (ColumnData::VarLen(values), kind) => {
                        let (from, to) = (values.offsets[row], values.offsets[row + 1]);
                        let bytes = values.bytes[from as usize..to as usize].to_vec();
                        let text = || String::from_utf8(bytes.clone()).expect("text is UTF-8");
                        match kind {
                            ColumnType::Bytes => Value::Bytes(bytes),
                            ColumnType::Decimal => Value::Decimal(text()),
                            ColumnType::Json => Value::Json(text()),
                            _ => Value::Text(text()),
                        }
                    }
                }
            });
            self.rows.push(cells.collect());
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null(_) => "NULL".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Int64(value) => value.to_string(),
        Value::Float64(value) => value.to_string(),
        Value::Decimal(text) | Value::Text(text) | Value::Json(text) => text.clone(),
        Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Value::Date(days) => Date::from_days((*days).into()).to_string(),
        Value::Time(micros) => TimeOfDay(*micros).to_string(),
        Value::Timestamp(micros) => rfc3339(*micros),
        Value::LocalTimestamp(micros) => iso8601(*micros),
    }
}
