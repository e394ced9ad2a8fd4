//! One session: one request at a time, each as a few commands that leave together and are answered in that order.
//!
//! Nothing waits. A call writes what it can and returns; what arrives is the answer to the command at the head of the queue.

use crate::frames::Frames;
use crate::identity;
use crate::job::{Ask, Execute, Job, Prepare};
use crate::settings::{self, Settings};
use crate::startup::{ALL_ROWS, Greeting, Login, SETUP};
use crate::statements::{Statements, reads};
use crate::{catalog, parameters, protocol};
use souk_sdk::{Descriptor, Error, Input, Machine, Need, Request, Step};
use std::collections::VecDeque;

mod incoming;

/// Must fail in a read-only transaction, before it is looked whether there is such a table. If it does not, it does nothing.
const PROBE: &str = "DELETE FROM souk_read_only_probe WHERE 1 = 0";
const BEGIN: &str = "START TRANSACTION READ ONLY";
/// Whatever `completion_type` of the server is: nothing begins, and the session stays.
const END: &str = "ROLLBACK AND NO CHAIN NO RELEASE";
/// What comes next is in a transaction with the same access: what a statement has set for the session, as it may in a function, is not for this one.
const END_AND_BEGIN: &str = "ROLLBACK AND CHAIN NO RELEASE";
/// What a statement has locked by name stays beyond its transaction.
const UNLOCK: &str = "DO RELEASE_ALL_LOCKS()";
const ABSORB: &str = "DO 0";
/// What is set aside for a request before it is written, at most.
const ROOM_MAX: usize = 4 << 10;
/// How long a server may take to speak, which MySQL's do first. One looks up the name of who connects before that: where the first of its name servers is
/// down, for five seconds. Servers that wait to be spoken to, as most others do, would be waited for until the host gives the session up.
const GREETING_MS: u32 = 7_000;
/// The one pause of a session.
const GREETING: u32 = 0;
/// The errands of a session are one at a time.
const STOP: u32 = 0;
/// What a host tells by that nobody asks for anything (ability `idle`).
const NOBODY: u32 = 0;
/// `ping` answers in this shape; statements number theirs from 0.
const PING_SHAPE: u32 = 1_000_000;

/// A MySQL session as a state machine.
pub struct Session {
    settings: Settings,
    phase: Phase,
    tls: bool,
    frames: Frames,
    server: Server,
    statements: Statements,
    /// The request at work.
    job: Option<Job>,
    /// Commands on the wire, in the order in which they will be answered.
    awaited: VecDeque<Awaited>,
    /// For how long the server lets a statement run, as it was last told; 0 where that is not known.
    limit_ms: u32,
    stopping: Stopping,
    ping_described: bool,
    /// The host tells when nobody asks for anything: until then a transaction may be there for what is asked next.
    is_told_idle: bool,
    chains: Chains,
    /// The last end that was sent has begun the transaction of what is asked next, or will have.
    has_begun: bool,
}

/// Whether the end of a transaction begins a read-only one, as the server has said of the last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chains {
    Unknown,
    Yes,
    /// A server that only speaks this protocol may not, and something between us and it.
    No,
}

/// What is known of the server.
#[derive(Default)]
struct Server {
    /// The number of this session.
    thread: u32,
    /// What tells it from others, as far as that is known.
    identity: Option<Box<str>>,
    version: String,
    is_mariadb: bool,
    deprecates_eof: bool,
    /// It has no setting for how long a statement may run.
    is_without_limit: bool,
}

/// Where the cancelling of the request at work stands. It has not ended before the errand has: what strikes late must not strike what comes
/// next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopping {
    No,
    /// Another session has been asked to send `KILL QUERY`.
    Asked,
    /// It has. What is on the wire is still to be answered.
    Struck,
    /// A statement that does nothing is there to be struck instead of the next.
    Absorbing,
}

enum Phase {
    /// The server speaks first.
    Greeting,
    Handshake(Greeting),
    Login(Login),
    Open,
}

/// What is there behind the end of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Nothing,
    /// The next one.
    Next,
}

/// A command, by what answers it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    /// A statement that a session begins with.
    Setup,
    /// That results have all their rows.
    AllRows,
    /// Which server it is.
    Identity,
    /// What a transaction waits for.
    Waits,
    /// How long a statement may run.
    Limit,
    Begin,
    Prepare,
    Execute,
    Probe,
    End(Ending),
    /// Of a request that is answered: nobody waits for it.
    EndBehind(Ending),
    /// The end of locks by name. Where it fails the session ends, and they end with it.
    Unlock,
    /// May be struck by what was meant for the one before.
    Absorb,
    /// `KILL QUERY` of another session.
    Kill,
}

impl Machine for Session {
    fn describe() -> Descriptor {
        Descriptor::new("mysql", env!("CARGO_PKG_VERSION"), Need::Tcp)
            .engine("mysql", "MySQL and MariaDB", "mysql", &["PASSWORD"])
            .settings_schema(settings::SCHEMA)
            .abilities(&["schema", "cancel", "idle"])
    }

    fn open(settings: souk_sdk::Settings) -> Result<Session, Error> {
        Ok(Session {
            settings: Settings::parse(&settings)?,
            phase: Phase::Greeting,
            tls: false,
            frames: Frames::default(),
            server: Server::default(),
            statements: Statements::default(),
            job: None,
            awaited: VecDeque::new(),
            limit_ms: 0,
            stopping: Stopping::No,
            ping_described: false,
            is_told_idle: false,
            chains: Chains::Unknown,
            has_begun: false,
        })
    }

    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        step.wake(GREETING, GREETING_MS);
        Ok(())
    }

    #[inline]
    fn submit(&mut self, id: u32, request: Request, step: &mut Step) -> Result<(), Error> {
        if !matches!(self.phase, Phase::Open) || self.job.is_some() {
            return Err(Error::internal(
                "not_open",
                "a request came before the session was open, or beside another one",
            ));
        }
        match request {
            Request::Query(query) => {
                let ask = Ask {
                    id,
                    parameters: query.parameters,
                    limits: query.limits,
                    is_catalog: false,
                    retried: false,
                };
                self.ask(query.text, ask, step);
            }
            Request::Schema(filter) => {
                let (text, parameters) = catalog::statement(&filter);
                let ask = Ask {
                    id,
                    parameters,
                    limits: filter.limits,
                    is_catalog: true,
                    retried: false,
                };
                self.ask(text, ask, step);
            }
            Request::Ping(limits) => {
                self.limit(limits.timeout_ms, step);
                self.command(BEGIN, Awaited::Begin, step);
                self.command(PROBE, Awaited::Probe, step);
                self.end(Ending::Nothing, step);
                self.job = Some(Job::Probe { id, error: None });
            }
            Request::Call(_) => step.failed(id, Error::unsupported("functions")),
            Request::Errand(errand) => match errand.message.split_first_chunk::<4>() {
                Some((thread, server)) if self.server.may_be(server) => {
                    let text = format!("KILL QUERY {}", u32::from_le_bytes(*thread));
                    self.command(&text, Awaited::Kill, step);
                    self.job = Some(Job::Errand { id, error: None });
                }
                Some(_) => step.failed(id, other_server()),
                None => step.failed(id, Error::internal("errand", "an errand is not ours")),
            },
        }
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        match input {
            Input::Bytes(bytes) => self.bytes(bytes, step),
            Input::Conferred(reply) => self.conferred(reply.failure, step),
            Input::TlsEstablished => self.secured(step),
            Input::Woken(_) => match &self.phase {
                Phase::Greeting => Err(no_greeting()),
                _ => Ok(()),
            },
            Input::Closed => Err(Error::unavailable(
                "connection_lost",
                "the database closed the connection",
            )),
            _ => Err(Error::internal(
                "unexpected_input",
                "the host sent an input that has no place here",
            )),
        }
    }

    /// A session beside this one sends `KILL QUERY`, if it is with the same server. Where that fails, this one ends with its wire.
    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        if id == NOBODY {
            self.nobody_asks(step);
            return Ok(());
        }
        let is_at_work = self.job.as_ref().and_then(Job::id) == Some(id);
        if !is_at_work || self.stopping != Stopping::No {
            return Ok(());
        }
        if let Some(Job::Execute(job)) = &mut self.job {
            job.refuse(cancelled());
        }
        self.stopping = Stopping::Asked;
        let mut errand = self.server.thread.to_le_bytes().to_vec();
        errand.extend_from_slice(self.server.identity().as_bytes());
        step.confer(STOP, errand);
        Ok(())
    }
}

/// Going out.
impl Session {
    fn set_up(&mut self, step: &mut Step) {
        if !self.server.is_mariadb {
            self.statements.tell_types_apart();
        }
        for statement in SETUP {
            self.command(statement, Awaited::Setup, step);
        }
        self.command(ALL_ROWS, Awaited::AllRows, step);
        if let Some(text) = identity::question(&self.server.version, self.server.is_mariadb) {
            self.command(text, Awaited::Identity, step);
        }
        self.command(identity::WAITS, Awaited::Waits, step);
        self.limit(self.settings.statement_timeout_ms(), step);
        let unknown = identity::Answer::default;
        self.job = Some(Job::Setup(unknown(), unknown()));
    }

    fn command(&mut self, sql: &str, awaited: Awaited, step: &mut Step) {
        protocol::query(step.outgoing(), sql);
        self.awaited.push_back(awaited);
    }

    /// Runs a statement, now if it is prepared, else once it is.
    #[inline]
    fn ask(&mut self, text: String, ask: Ask, step: &mut Step) {
        match self.statements.find(&text, &ask.parameters) {
            Some(place) => self.execute(ask, place, step),
            None if reads(&text) => {
                protocol::prepare(step.outgoing(), &text);
                self.awaited.push_back(Awaited::Prepare);
                self.job = Some(Job::Prepare(Prepare::new(text.into(), ask)));
            }
            None => step.failed(
                ask.id,
                Error::permission(
                    "not_a_query",
                    "the statement must be one SELECT, WITH, VALUES or TABLE",
                ),
            ),
        }
    }

    /// Sends all that a statement's request is made of.
    #[inline]
    fn execute(&mut self, ask: Ask, place: usize, step: &mut Step) {
        let Some(statement) = self.statements.at(place) else {
            return step.failed(ask.id, Error::internal("lost", "a statement was lost"));
        };
        let (number, wanted) = (statement.id, statement.parameters);
        let locks = statement.locks;
        let known = statement.shape.clone();
        let (begin, awaited, limit_ms) = (step.outgoing().len(), self.awaited.len(), self.limit_ms);
        step.outgoing().reserve_exact(statement.room);
        self.limit(ask.limits.timeout_ms, step);
        if !self.has_begun {
            self.command(BEGIN, Awaited::Begin, step);
        }
        let values = &ask.parameters;
        if let Err(error) = parameters::execute(step.outgoing(), number, wanted, values) {
            // Nothing of it leaves.
            step.outgoing().truncate(begin);
            self.awaited.truncate(awaited);
            self.limit_ms = limit_ms;
            return step.failed(ask.id, error);
        }
        self.awaited.push_back(Awaited::Execute);
        let is_followed = self.is_told_idle && self.chains != Chains::No;
        let ending = match is_followed {
            true => Ending::Next,
            false => Ending::Nothing,
        };
        self.end(ending, step);
        if locks {
            self.command(UNLOCK, Awaited::Unlock, step);
        }
        let room = ROOM_MAX.min(step.outgoing().len() - begin);
        if let Some(statement) = self.statements.at(place) {
            statement.room = room;
        }
        self.job = Some(Job::Execute(Execute::new(ask, place, known)));
    }

    /// The request at work has been struck, or is over: nothing of it is on the wire.
    fn absorb(&mut self, step: &mut Step) {
        self.stopping = Stopping::Absorbing;
        // It may have struck what told the limit.
        self.limit_ms = 0;
        self.command(ABSORB, Awaited::Absorb, step);
        self.end(Ending::Nothing, step);
    }

    /// Ends a transaction.
    #[inline]
    fn end(&mut self, ending: Ending, step: &mut Step) {
        let sql = match ending {
            Ending::Nothing => END,
            Ending::Next => END_AND_BEGIN,
        };
        self.command(sql, Awaited::End(ending), step);
        // Of a server that has not shown it yet, the answer is waited for.
        self.has_begun = ending == Ending::Next && self.chains == Chains::Yes;
    }

    /// No transaction is there for what is asked next, which may be in an hour: what it takes at the server, and of something between us and it, others
    /// may have.
    fn nobody_asks(&mut self, step: &mut Step) {
        self.is_told_idle = true;
        let may_have_begun = self.has_begun || !self.awaited.is_empty();
        if matches!(self.phase, Phase::Open) && self.job.is_none() && may_have_begun {
            self.command(END, Awaited::EndBehind(Ending::Nothing), step);
            self.has_begun = false;
        }
    }

    /// Tells the server for how long the next statement may run, unless it knows.
    #[inline]
    fn limit(&mut self, left_ms: u32, step: &mut Step) {
        let limit_ms = rounded(left_ms).min(self.settings.statement_timeout_ms());
        if limit_ms == self.limit_ms || self.server.is_without_limit {
            return;
        }
        self.limit_ms = limit_ms;
        let text = match self.server.is_mariadb {
            true => format!(
                "SET SESSION max_statement_time = {}.{:03}",
                limit_ms / 1_000,
                limit_ms % 1_000
            ),
            false => format!("SET SESSION max_execution_time = {limit_ms}"),
        };
        self.command(&text, Awaited::Limit, step);
    }
}

impl Server {
    /// Empty where it is not known.
    fn identity(&self) -> &str {
        self.identity.as_deref().unwrap_or_default()
    }

    /// Whether it is the one that an errand is about, as far as both are known.
    fn may_be(&self, server: &[u8]) -> bool {
        let known = self.identity().as_bytes();
        known.is_empty() || server.is_empty() || known == server
    }
}

#[cold]
fn other_server() -> Error {
    Error::unavailable(
        "other_server",
        "the connection's address leads to several servers: the statement runs at another one than was reached to stop it",
    )
}

fn cancelled() -> Error {
    Error::timeout("cancelled", "the statement was cancelled")
}

/// It may be a MySQL that hangs, too.
#[cold]
fn no_greeting() -> Error {
    let seconds = GREETING_MS / 1_000;
    Error::unavailable(
        "no_greeting",
        format!(
            "this port does not speak MySQL: such a server speaks first, and this one has not greeted for {seconds} seconds; name the port of a MySQL or MariaDB, or, if it is one that takes long to look up the names of its clients, set skip_name_resolve there"
        ),
    )
}

/// A little more than is left, so that two requests in a row mostly have the same.
fn rounded(left_ms: u32) -> u32 {
    let step = match left_ms {
        0..1_000 => 100,
        1_000..5_000 => 500,
        5_000..60_000 => 5_000,
        _ => 30_000,
    };
    left_ms.max(1).div_ceil(step).saturating_mul(step)
}

#[cfg(test)]
mod tests;
