//! A session: one request at a time, each one call, answered by one message.
//!
//! A request that is not wanted any more (cancelled, too long, too large) is stopped by ATTENTION. From then on nothing is read but whether a message ends with the
//! acknowledgement, and nothing is sent before it does; the answer may have ended just before, in which case the acknowledgement is a message
//! of its own. The next request asks the server to begin the session anew.

mod hearing;

use std::cell::Cell;

use souk_sdk::results::Shapes;
use souk_sdk::texts::Texts;
use souk_sdk::{Descriptor, Error, Input, Limits, Machine, Need, Query, Request, Step};

use crate::catalog;
use crate::errors::{cancelled, too_long};
use crate::job::{Job, Reader};
use crate::login;
use crate::parameters;
use crate::patience::Patience;
use crate::ping::{LOOK, Ping};
use crate::protocol::{self, HEADER_BYTES, Packets};
use crate::requests::Opening;
use crate::settings::{self, Settings, Version};
use crate::statements;
use crate::tokens::{self, DONE, DONE_BYTES, done};
use crate::types::Reading;

/// What a server goes on saying after it was asked to stop. A longer answer is cut off with the wire.
const STOPPED_BYTES_MAX: usize = 32 << 20;
/// Of a packet that asks for the session to be begun anew, in its first one.
const RESET: u8 = 0x08;

pub struct Session {
    settings: Settings,
    phase: Phase,
    packets: Packets,
    packet_bytes: usize,
    /// What has arrived of a message and is not read yet.
    buffer: Vec<u8>,
    /// No sooner than with so many bytes there is anything to read in it.
    needed: usize,
    shapes: Shapes<Reading>,
    texts: Texts<Known>,
    job: Option<Job>,
    ping: Option<Ping>,
    stopping: Option<Stopping>,
    patience: Patience,
    /// Something of a request may be left in the session.
    is_stale: bool,
}

/// What is known of a statement's text.
struct Known {
    /// How many values it takes.
    places: usize,
    /// What its last request began with.
    opening: Cell<Option<Opening>>,
}

enum Phase {
    /// What is said before a login is awaited; TLS may stand already.
    Prelogin {
        is_sealed: bool,
    },
    Handshake {
        is_first: bool,
    },
    Login(login::Answer),
    Open,
}

/// The acknowledgement of an ATTENTION is awaited.
struct Stopping {
    /// What the request has come to.
    error: Error,
    /// The last bytes of the message.
    tail: Vec<u8>,
    bytes: usize,
}

impl Stopping {
    fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes += bytes.len();
        if self.bytes > STOPPED_BYTES_MAX {
            return Err(self.error.clone());
        }
        let from = bytes.len().saturating_sub(DONE_BYTES);
        self.tail.extend_from_slice(&bytes[from..]);
        let surplus = self.tail.len().saturating_sub(DONE_BYTES);
        self.tail.drain(..surplus);
        Ok(())
    }

    /// The message is over. Whether it has acknowledged that nothing more comes; otherwise it was the answer that was crossed, or its rest.
    fn is_acknowledged(&mut self) -> bool {
        let tail = std::mem::take(&mut self.tail);
        let is_end = tail.len() == DONE_BYTES && tail[0] == DONE;
        is_end && tokens::ended(&tail).status & done::ATTENTION != 0
    }
}

impl Machine for Session {
    fn describe() -> Descriptor {
        Descriptor::new("sqlserver", env!("CARGO_PKG_VERSION"), Need::Tcp)
            .engine("sqlserver", "SQL Server", "mssql", &["PASSWORD"])
            .settings_schema(settings::SCHEMA)
            .abilities(&["schema", "cancel"])
    }

    fn open(settings: souk_sdk::Settings) -> Result<Session, Error> {
        Ok(Session {
            settings: Settings::parse(&settings)?,
            phase: Phase::Prelogin { is_sealed: false },
            packets: Packets::default(),
            packet_bytes: protocol::PACKET_BYTES,
            buffer: Vec::new(),
            needed: 1,
            shapes: Shapes::default(),
            texts: Texts::default(),
            job: None,
            ping: None,
            stopping: None,
            patience: Patience::default(),
            is_stale: false,
        })
    }

    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        match self.settings.tds_version {
            Version::V7 => self.say(protocol::PRELOGIN, &login::prelogin(&self.settings), step),
            Version::V8 => {
                self.phase = Phase::Handshake { is_first: true };
                step.start_tls_as(login::handshake(&self.settings));
            }
        }
        Ok(())
    }

    fn submit(&mut self, id: u32, request: Request, step: &mut Step) -> Result<(), Error> {
        if !matches!(self.phase, Phase::Open) || self.job.is_some() {
            return Err(Error::internal(
                "not_open",
                "a request came before the session was open, or beside another one",
            ));
        }
        match request {
            Request::Query(query) => self.query(id, query, step),
            Request::Schema(filter) => {
                let (text, parameters) = catalog::statement(&filter);
                let query = Query {
                    text,
                    parameters,
                    limits: filter.limits,
                };
                self.ask(id, query, Reader::Catalog, &Cell::default(), step);
            }
            Request::Ping(limits) => {
                self.ping = None;
                self.own(id, LOOK.to_owned(), limits, Reader::Own, step);
            }
            Request::Call(_) => step.failed(id, Error::unsupported("functions")),
            Request::Errand(_) => step.failed(id, Error::unsupported("errands")),
        }
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        match input {
            Input::Bytes(bytes) => self.bytes(&bytes, step),
            Input::TlsEstablished => self.secured(step),
            Input::Closed => Err(self.closed()),
            Input::Woken(id) => match self.patience.woken(id) {
                true => self.stop(too_long(), step),
                false => Ok(()),
            },
            _ => Err(unexpected()),
        }
    }

    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        match &self.job {
            Some(job) if job.id == id => self.stop(cancelled(), step),
            _ => Ok(()),
        }
    }
}

/// Going out.
impl Session {
    fn say(&self, kind: u8, body: &[u8], step: &mut Step) {
        protocol::message(step.outgoing(), kind, self.packet_bytes, body);
    }

    /// A seller's statement: what writes is not sent.
    fn query(&mut self, id: u32, query: Query, step: &mut Step) {
        let given = query.parameters.len();
        let read = self.texts.read(&query.text, |text| {
            statements::one_query(text)?;
            Ok(Known {
                places: statements::places(text)?,
                opening: Cell::default(),
            })
        });
        match read {
            Ok(known) if known.places == given => {
                self.ask(id, query, Reader::Host, &known.opening, step)
            }
            Ok(known) => step.failed(
                id,
                Error::invalid_request(
                    "parameter_count",
                    format!(
                        "the statement takes {} parameters, {given} were given",
                        known.places
                    ),
                ),
            ),
            Err(error) => step.failed(id, error),
        }
    }

    /// A statement of the connector's own.
    fn own(&mut self, id: u32, text: String, limits: Limits, reader: Reader, step: &mut Step) {
        let query = Query {
            text,
            parameters: Vec::new(),
            limits,
        };
        self.ask(id, query, reader, &Cell::default(), step);
    }

    /// `known`: what the last request of the text began with.
    fn ask(
        &mut self,
        id: u32,
        query: Query,
        reader: Reader,
        known: &Cell<Option<Opening>>,
        step: &mut Step,
    ) {
        let Query {
            text,
            parameters,
            limits,
        } = query;
        let statement_ms = self.settings.statement_timeout_ms();
        let least_ms = limits.timeout_ms.min(statement_ms);
        let mut opening = match Opening::of(known.take(), &text, &parameters, least_ms) {
            Ok(opening) => opening,
            Err(error) => return step.failed(id, error),
        };
        let out = step.outgoing();
        let from = out.len();
        out.reserve_exact(HEADER_BYTES + opening.room());
        let written = protocol::written(out, protocol::RPC, self.packet_bytes, |out| {
            opening.call(out, &parameters)
        });
        if let Err(error) = written {
            return step.failed(id, error);
        }
        if opening.is_short() {
            known.set(Some(opening));
        }
        if std::mem::take(&mut self.is_stale) {
            // The second byte of the first packet.
            if let Some(status) = step.outgoing().get_mut(from + 1) {
                *status |= RESET;
            }
        }
        if let Some((pause, ms)) = self.patience.begin(statement_ms, limits.timeout_ms) {
            step.wake(pause, ms);
        }
        let callers = match reader {
            Reader::Host => statements::callers(&text, parameters.len()),
            _ => 0,
        };
        let callers = parameters::quotable(parameters, callers);
        self.job = Some(Job::new(id, reader, limits, callers));
    }

    /// Has the server stop the request at work, which ends with this error once it is acknowledged.
    fn stop(&mut self, error: Error, step: &mut Step) -> Result<(), Error> {
        if self.job.is_none() || self.stopping.is_some() {
            return Ok(());
        }
        self.say(protocol::ATTENTION, &[], step);
        let mut stopping = Stopping {
            error,
            tail: Vec::new(),
            bytes: 0,
        };
        stopping.take(&std::mem::take(&mut self.buffer))?;
        // The end of half a row is not waited for any more, which the next answer may be shorter than.
        self.needed = 1;
        self.stopping = Some(stopping);
        self.is_stale = true;
        self.patience.end();
        Ok(())
    }
}

fn unexpected() -> Error {
    Error::internal(
        "unexpected_input",
        "the host sent an input that has no place here",
    )
}
