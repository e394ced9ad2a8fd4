//! One session: requests go out as jobs, and the server answers them in that order.
//!
//! Nothing waits. A call writes what it can and returns; what arrives moves the job at the head of the queue.

use crate::job::{Cancel, Execute, Job, Prepare, Probe, ROOM_MAX, Setup};
use crate::protocol;
use crate::settings::{self, Settings};
use crate::startup::{self, Login};
use crate::statements::{Ask, Description, State, Statement, Statements, name, reads};
use crate::types::Reading;
use crate::{catalog, parameters};
use souk_sdk::{Descriptor, Error, Input, Machine, Need, Pieces, Request, SslMode, Step, Value};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

mod groups;
mod incoming;
mod own;
mod pooled;
mod preparing;

use groups::Groups;
use pooled::{Backend, is_ancient};

/// Must fail in a read-only transaction. If it does not, it leaves nothing behind.
const PROBE: &str = "CREATE TEMPORARY TABLE souk_read_only_probe () ON COMMIT DROP";
/// The same for Redshift, whose documentation knows neither a table without columns nor what is dropped at a commit: its transaction is taken back.
const PROBE_ANCIENT: &str = "CREATE TEMPORARY TABLE souk_read_only_probe (n int)";
/// Asked once. A backend is this session's own if it is the one that the login named; then it has taken the settings of the login.
const WHOSE: &str = "SELECT pg_catalog.pg_backend_pid()::text, pg_catalog.current_setting('default_transaction_read_only')";
/// Linux counts its processes up to here. Poolers name one that is any number of 32 bits.
const PID_MAX: i32 = 1 << 22;
/// Gives up what a statement has locked for the session.
const UNLOCK: &str = "SELECT pg_catalog.pg_advisory_unlock_all()";
/// What takes a transaction back is said again where a cancel has struck it, this often.
const ENDINGS_MAX: u8 = 3;
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
    backend: Backend,
    server_version: String,
    /// Cancels that may still strike whatever runs next.
    strays: u32,
    /// How many times in a row a transaction was not taken back.
    unended: u8,
    ping_described: bool,
    groups: Groups,
    /// The host has nothing else to do than the request that is being submitted.
    is_alone: bool,
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
            .abilities(&["schema", "pipelining", "cancel", "groups", "alone"])
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
            backend: Backend::Asked(Vec::new()),
            server_version: String::new(),
            strays: 0,
            unended: 0,
            ping_described: false,
            groups: Groups::default(),
            is_alone: false,
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
        let is_followed = souk_sdk::is_followed(id);
        self.groups.follows(is_followed);
        self.is_alone = souk_sdk::is_alone(id);
        match request {
            Request::Query(query) => {
                let ask = Ask::new(id, query.parameters, query.limits);
                self.ask(&query.text, ask, step);
            }
            Request::Schema(filter) => {
                let (text, parameters) = match is_ancient(&self.server_version) {
                    true => catalog::ancient(&filter),
                    false => catalog::statement(&filter),
                };
                self.ask(&text, Ask::new(id, parameters, filter.limits), step);
            }
            Request::Ping(_) => self.probe(id, step),
            Request::Call(_) => step.failed(id, Error::unsupported("functions")),
            Request::Errand(_) => step.failed(id, Error::unsupported("errands")),
        }
        if !is_followed {
            self.end_group(step);
        }
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        self.groups.follows(false);
        self.is_alone = false;
        self.end_group(step);
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
        self.groups.follows(false);
        self.end_group(step);
        if self.statements.withdraw(id) || self.withdraw_held(id) {
            step.failed(id, cancelled());
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

fn cancelled() -> Error {
    Error::timeout("cancelled", "the statement was cancelled")
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
        if self.is_pooled() {
            return self.execute_pooled(ask, statement, step);
        }
        if self.joins_group(&ask, &statement, step) {
            return self.execute_in_group(ask, statement, step);
        }
        let out = step.outgoing();
        let begin = out.len();
        out.reserve_exact(statement.room.get());
        match parameters::bind(
            out,
            &statement.head,
            &statement.parameters,
            &ask.parameters,
            &statement.tail,
        ) {
            Ok(()) => {
                let ends_behind = self.is_alone && self.queue.is_empty();
                match ends_behind {
                    true => out.extend_from_slice(&protocol::RUN_FLUSH_UNDO_SYNC),
                    false => out.extend_from_slice(&protocol::RUN_UNDO_SYNC),
                }
                statement.room.set(ROOM_MAX.min(out.len() - begin));
                statement.was_bound.set(true);
                let locks = statement.locks;
                let mut job = Execute::new(ask, statement);
                job.ends_behind = ends_behind;
                self.queue.push_back(Job::Execute(job));
                if ends_behind {
                    self.queue.push_back(Job::end());
                }
                if locks {
                    self.unlock(step);
                }
            }
            Err(error) => self.refuse_value(ask, &statement, error, step),
        }
    }

    /// Parses it anew, and has the server describe it: what it names may have changed since it was prepared.
    fn execute_pooled(&mut self, ask: Ask, statement: Rc<Statement>, step: &mut Step) {
        let mut out = Vec::with_capacity(statement.text.len() + 128);
        protocol::parse(&mut out, "", &statement.text, statement.types());
        protocol::describe(&mut out, "");
        let (head, types) = (&statement.head, &statement.parameters);
        match parameters::bind(&mut out, head, types, &ask.parameters, &statement.tail) {
            Ok(()) => {
                out.extend_from_slice(&protocol::EXECUTE);
                statement.was_bound.set(true);
                let job = Job::Execute(Execute::new(ask, statement));
                self.send_pooled(job, out, step);
            }
            Err(error) => self.refuse_value(ask, &statement, error, step),
        }
    }

    /// A value does not fit what its parameter was when the statement was prepared. That may be long ago, and the column another one by now: the server is
    /// asked what it is, but not for one such value after the other.
    #[cold]
    fn refuse_value(
        &mut self,
        mut ask: Ask,
        statement: &Rc<Statement>,
        error: Error,
        step: &mut Step,
    ) {
        if ask.retried || !statement.was_bound.get() || error.code != "parameter_type" {
            return step.failed(ask.id, error);
        }
        (ask.retried, ask.typing) = (true, None);
        self.retype(ask, statement, step);
    }

    /// Prepares a statement with other types.
    #[cold]
    fn retype(&mut self, ask: Ask, statement: &Rc<Statement>, step: &mut Step) {
        self.forget(statement, step);
        self.prepare(statement.text.clone(), ask, step);
    }

    /// Here, and at a server that keeps it.
    fn forget(&mut self, statement: &Rc<Statement>, step: &mut Step) {
        self.end_group(step);
        if self.statements.forget(statement) && !self.is_pooled() {
            protocol::close(step.outgoing(), &statement.name);
        }
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
        self.end_group(step);
        let types = ask.types().to_vec();
        let (number, evicted) = self.statements.reserve(text.clone(), ask);
        let description = Description {
            parameters: Vec::new(),
            columns: Vec::new(),
        };
        let job = Job::Prepare(Prepare {
            number,
            description,
            error: None,
        });
        if self.is_pooled() {
            let mut out = Vec::with_capacity(text.len() + 64);
            protocol::parse(&mut out, "", &text, &types);
            protocol::describe(&mut out, "");
            return self.send_pooled(job, out, step);
        }
        let out = step.outgoing();
        if let Some(evicted) = evicted {
            protocol::close(out, &evicted);
        }
        protocol::parse(out, &name(number), &text, &types);
        protocol::describe(out, &name(number));
        out.extend_from_slice(&protocol::SYNC);
        self.queue.push_back(job);
    }

    /// Parses a statement of ours, under its own name where the server keeps it, and binds it.
    fn run_own(
        &mut self,
        (name, sql): (&str, &str),
        types: &[u32],
        values: &[Value],
        job: Job,
        step: &mut Step,
    ) -> Result<(), Error> {
        self.end_group(step);
        let is_pooled = self.is_pooled();
        let name = if is_pooled { "" } else { name };
        let mut own = Vec::with_capacity(sql.len() + 128);
        if !is_pooled {
            protocol::close(&mut own, name);
        }
        protocol::parse(&mut own, name, sql, &[]);
        let mut head = vec![0];
        protocol::text(&mut head, name);
        parameters::bind(&mut own, &head, types, values, &[0, 0])?;
        if is_pooled {
            own.extend_from_slice(&protocol::EXECUTE);
            self.send_pooled(job, own, step);
        } else {
            own.extend_from_slice(&protocol::RUN_UNDO_SYNC);
            step.send(&own);
            self.queue.push_back(job);
        }
        Ok(())
    }

    fn probe(&mut self, id: u32, step: &mut Step) {
        if let Backend::Asked(pings) = &mut self.backend {
            return pings.push(id);
        }
        let probe = Probe {
            id,
            turned_away: 0,
            error: None,
        };
        self.send_probe(probe, step);
    }

    fn send_probe(&mut self, probe: Probe, step: &mut Step) {
        let id = probe.id;
        let job = Job::Probe(probe);
        let probe = match is_ancient(&self.server_version) {
            true => PROBE_ANCIENT,
            false => PROBE,
        };
        if let Err(error) = self.run_own(("probe", probe), &[], &[], job, step) {
            step.failed(id, error);
        }
    }

    /// The login is over. Who finds out only now whose the backend is waits for it where the login lets expect a pooler.
    fn logged_in(&mut self, step: &mut Step) {
        if self.settings.pooler {
            self.pool();
            return step.ready();
        }
        protocol::run_unnamed(step.outgoing(), WHOSE);
        step.send(&protocol::SYNC);
        self.queue.push_back(Job::Setup(Setup {
            is_own: false,
            struck: false,
        }));
        if self.looks_own() {
            step.ready();
        }
    }

    fn looks_own(&self) -> bool {
        let process = self.process.map_or(0, |(process, _)| process);
        (1..=PID_MAX).contains(&process)
    }

    /// A cancel reaches whatever runs at the server, so it is sent when its job is at the head of the queue, or under the same Sync: answers of a
    /// group may come only with its end. What it strikes in its stead is asked again; what could not be is not struck.
    fn pursue_cancel(&mut self, step: &mut Step) {
        // The answers of an opening are sent with the first of the statement's.
        let turn = usize::from(matches!(self.queue.front(), Some(Job::Begin(_))));
        let (mut end, mut is_wanted) = (turn, false);
        for job in self.queue.iter().skip(turn) {
            let Job::Execute(job) = job else {
                break;
            };
            end += 1;
            is_wanted |= job.cancel == Cancel::Wanted && !job.complete;
            if !job.is_followed || job.is_streaming() {
                break;
            }
        }
        if is_wanted {
            self.send_cancel(turn..end, step);
        }
    }

    /// One for all that share a Sync: whomever it strikes, it ends their group. More of them would strike those behind it, and each is a connection
    /// at the server, of which a host makes only so many.
    #[cold]
    fn send_cancel(&mut self, reach: Range<usize>, step: &mut Step) {
        let Some((process, secret)) = self.process else {
            return;
        };
        let mut is_under_way = false;
        for job in self.queue.range_mut(reach) {
            if let Job::Execute(job) = job
                && !job.complete
            {
                is_under_way |= job.cancel == Cancel::Sent;
                if job.cancel == Cancel::Wanted {
                    job.cancel = Cancel::Sent;
                }
            }
        }
        if !is_under_way {
            self.strays = (self.strays + STRIKES_OF_A_CANCEL).min(STRAYS_MAX);
            step.aside(protocol::cancel_request(process, secret));
        }
    }
}

#[cfg(test)]
mod tests;
