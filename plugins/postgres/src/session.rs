//! One session: requests go out as jobs, one Sync each, and the server answers them in that order.
//!
//! Nothing waits. A call writes what it can and returns; what arrives moves the job at the head of the queue.

use crate::job::{Cancel, Execute, Job, Prepare, Probe};
use crate::protocol;
use crate::settings::{self, Settings};
use crate::startup::{self, Login};
use crate::statements::{Ask, Description, State, Statement, Statements, name, reads};
use crate::types::Reading;
use crate::{catalog, parameters};
use souk_sdk::{Descriptor, Error, Input, Machine, Need, Pieces, Request, SslMode, Step, Value};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

mod incoming;

/// Types of the database's own that a session remembers; past it they are looked up again.
const TYPES_MAX: usize = 1_024;
/// Must fail in a read-only transaction. If it does not, it leaves nothing behind.
const PROBE: &str = "CREATE TEMPORARY TABLE souk_read_only_probe () ON COMMIT DROP";
/// `ping` answers in this shape; statements number theirs from 0.
const PING_SHAPE: u32 = 1_000_000;

/// A PostgreSQL session as a state machine.
pub struct Session {
    settings: Settings,
    phase: Phase,
    tls: bool,
    /// Where messages that arrive in pieces are put together.
    pieces: Pieces,
    /// Bytes of a refused row that are still to come and are thrown away.
    skip: usize,
    queue: VecDeque<Job>,
    statements: Statements,
    types: HashMap<u32, Known>,
    process: Option<(i32, i32)>,
    server_version: String,
    /// Cancels that may still strike whatever runs next.
    strays: u32,
    ping_described: bool,
}

/// The postmaster signals the backend and then its process group, so one cancel may strike twice: the
/// statement it was meant for, and the next one.
const STRIKES_OF_A_CANCEL: u32 = 2;
/// A bound on how often statements that time out by themselves are taken for struck ones.
const STRAYS_MAX: u32 = 8;

enum Phase {
    /// `SSLRequest` is on its way.
    AskedTls,
    Handshake,
    Login(Login),
    Open,
}

/// A type of the database's own.
#[derive(Clone)]
struct Known {
    name: String,
    reading: Option<Reading>,
}

impl Machine for Session {
    fn describe() -> Descriptor {
        Descriptor::new("postgres", env!("CARGO_PKG_VERSION"), Need::Tcp)
            .engine("postgres", "PostgreSQL", "postgres", &["PASSWORD"])
            .settings_schema(settings::SCHEMA)
            .abilities(&["schema", "pipelining", "cancel"])
    }

    fn open(settings: souk_sdk::Settings) -> Result<Session, Error> {
        Ok(Session {
            settings: Settings::parse(&settings)?,
            phase: Phase::AskedTls,
            tls: false,
            pieces: Pieces::default(),
            skip: 0,
            queue: VecDeque::new(),
            statements: Statements::default(),
            types: HashMap::new(),
            process: None,
            server_version: String::new(),
            strays: 0,
            ping_described: false,
        })
    }

    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        if self.settings.ssl_mode == SslMode::Disable {
            self.log_in(step);
        } else {
            step.send(&protocol::SSL_REQUEST);
        }
        Ok(())
    }

    #[inline]
    fn submit(&mut self, id: u32, request: Request, step: &mut Step) -> Result<(), Error> {
        if !matches!(self.phase, Phase::Open) {
            return Err(Error::internal(
                "not_open",
                "a request came before the session was open",
            ));
        }
        match request {
            Request::Query(query) => {
                let ask = Ask::new(id, query.parameters, query.limits);
                self.ask(&query.text, ask, step);
            }
            Request::Schema(filter) => {
                let (text, parameters) = catalog::statement(&filter);
                self.ask(text, Ask::new(id, parameters, filter.limits), step);
            }
            Request::Ping(_) => self.probe(id, step),
            Request::Call(_) => step.failed(id, Error::unsupported("functions")),
            Request::Errand(_) => step.failed(id, Error::unsupported("errands")),
        }
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        match input {
            Input::Bytes(bytes) => self.bytes(bytes, step)?,
            Input::TlsEstablished if matches!(self.phase, Phase::Handshake) => {
                self.tls = true;
                self.log_in(step);
            }
            Input::Closed => {
                return Err(Error::unavailable(
                    "connection_lost",
                    "the database closed the connection",
                ));
            }
            _ => {
                return Err(Error::internal(
                    "unexpected_input",
                    "the host sent an input that has no place here",
                ));
            }
        }
        self.pursue_cancel(step);
        Ok(())
    }

    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        if self.statements.withdraw(id) {
            step.failed(
                id,
                Error::timeout("cancelled", "the statement was cancelled"),
            );
        }
        for job in &mut self.queue {
            if let Job::Execute(job) = job
                && job.ask.id == id
                && job.cancel == Cancel::No
            {
                job.cancel = Cancel::Wanted;
            }
        }
        self.pursue_cancel(step);
        Ok(())
    }
}

/// Going out.
impl Session {
    fn log_in(&mut self, step: &mut Step) {
        startup::startup(step.outgoing(), &self.settings);
        self.phase = Phase::Login(Login::default());
    }

    /// Runs a statement, now if it is prepared, else once it is.
    #[inline]
    fn ask(&mut self, text: &str, ask: Ask, step: &mut Step) {
        match self.statements.find(text) {
            Some(State::Ready(statement)) => {
                let statement = statement.clone();
                match statement.better_typing(&ask.parameters) {
                    None => self.execute(ask, statement, step),
                    typing => self.retype(Ask { typing, ..ask }, &statement, step),
                }
            }
            Some(State::Preparing(asks)) => asks.push(ask),
            None => self.prepare(text.into(), ask, step),
        }
    }

    #[inline]
    fn execute(&mut self, ask: Ask, statement: Rc<Statement>, step: &mut Step) {
        let out = step.outgoing();
        out.reserve(128);
        match parameters::bind(
            out,
            &statement.head,
            &statement.parameters,
            &ask.parameters,
            &statement.tail,
        ) {
            Ok(()) => {
                out.extend_from_slice(&protocol::RUN_RESET_SYNC);
                self.queue
                    .push_back(Job::Execute(Execute::new(ask, statement)));
            }
            Err(error) => step.failed(ask.id, error),
        }
    }

    /// Prepares a statement with other types.
    #[cold]
    fn retype(&mut self, ask: Ask, statement: &Rc<Statement>, step: &mut Step) {
        if self.statements.forget(statement) {
            protocol::close(step.outgoing(), &statement.name);
        }
        self.prepare(statement.text.clone(), ask, step);
    }

    #[cold]
    fn prepare(&mut self, text: Rc<str>, ask: Ask, step: &mut Step) {
        if text.contains('\0') || !reads(&text) {
            return step.failed(
                ask.id,
                Error::permission(
                    "not_a_query",
                    "the statement must be one SELECT, WITH, VALUES or TABLE",
                ),
            );
        }
        let types = ask.types().to_vec();
        let (number, evicted) = self.statements.reserve(text.clone(), ask);
        let out = step.outgoing();
        if let Some(evicted) = evicted {
            protocol::close(out, &evicted);
        }
        protocol::parse(out, &name(number), &text, &types);
        protocol::describe(out, &name(number));
        out.extend_from_slice(&protocol::SYNC);
        let description = Description {
            parameters: Vec::new(),
            columns: Vec::new(),
        };
        self.queue.push_back(Job::Prepare(Prepare {
            number,
            description,
            error: None,
        }));
    }

    /// Parses a statement of ours under its own name and binds it.
    fn run_own(
        &mut self,
        name: &str,
        sql: &str,
        types: &[u32],
        values: &[Value],
        step: &mut Step,
    ) -> Result<(), Error> {
        let out = step.outgoing();
        protocol::close(out, name);
        protocol::parse(out, name, sql, &[]);
        let mut head = vec![0];
        protocol::text(&mut head, name);
        parameters::bind(out, &head, types, values, &[0, 0])?;
        out.extend_from_slice(&protocol::RUN_RESET_SYNC);
        Ok(())
    }

    fn probe(&mut self, id: u32, step: &mut Step) {
        match self.run_own("probe", PROBE, &[], &[], step) {
            Ok(()) => self.queue.push_back(Job::Probe(Probe { id, error: None })),
            Err(error) => step.failed(id, error),
        }
    }

    fn set_up(&mut self, step: &mut Step) {
        protocol::parse(step.outgoing(), "", "RESET ALL", &[]);
        step.send(&protocol::SYNC);
        self.queue.push_back(Job::Setup);
    }

    /// A cancel reaches whatever runs at the server, so it is sent when its job is at the head of the queue.
    fn pursue_cancel(&mut self, step: &mut Step) {
        if let Some(Job::Execute(job)) = self.queue.front_mut()
            && job.cancel == Cancel::Wanted
            && !job.complete
            && let Some((process, secret)) = self.process
        {
            job.cancel = Cancel::Sent;
            self.strays = (self.strays + STRIKES_OF_A_CANCEL).min(STRAYS_MAX);
            step.aside(protocol::cancel_request(process, secret));
        }
    }
}
