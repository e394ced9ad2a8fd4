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
        for statement in SETUP {
            self.command(statement, Awaited::Setup, step);
        }
        self.command(ALL_ROWS, Awaited::AllRows, step);
        if let Some(text) = identity::question(&self.server.version, self.server.is_mariadb) {
            self.command(text, Awaited::Identity, step);
        }
        self.limit(self.settings.statement_timeout_ms(), step);
        self.job = Some(Job::Setup(identity::Answer::default()));
    }

    fn command(&mut self, sql: &str, awaited: Awaited, step: &mut Step) {
        protocol::query(step.outgoing(), sql);
        self.awaited.push_back(awaited);
    }

    /// Runs a statement, now if it is prepared, else once it is.
    #[inline]
    fn ask(&mut self, text: String, ask: Ask, step: &mut Step) {
        match self.statements.find(&text) {
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
mod tests {
    use super::*;
    use souk_sdk::{Command, ErrorClass, Event, Limits, Query, Value};

    /// What goes out for a request of the statement that was prepared, and whether it has failed at once.
    fn asked(session: &mut Session, value: Value) -> (Vec<u8>, bool) {
        let limits = Limits {
            rows_max: 1,
            bytes_max: 1_000,
            timeout_ms: 1_000,
        };
        let request = Request::Query(Query {
            text: "SELECT ?".into(),
            parameters: vec![value],
            limits,
        });
        let mut step = Step::default();
        session.submit(1, request, &mut step).unwrap();
        let (commands, events) = step.into_parts();
        let sent = commands.into_iter().flat_map(|command| match command {
            Command::Send(bytes) => bytes,
            other => panic!("{other:?}"),
        });
        let has_failed = matches!(events.as_slice(), [Event::Failed(_)]);
        (sent.collect(), has_failed)
    }

    fn opened() -> Session {
        let json = r#"{"username":"u","password":"p","database":"d","ssl_mode":"disable"}"#;
        let mut session = Session::open(souk_sdk::Settings {
            engine: "mysql".into(),
            json: json.into(),
        })
        .unwrap();
        session.phase = Phase::Open;
        session.statements.keep("SELECT ?".into(), 7, 1);
        session
    }

    /// Of a request with a value that the server has not, nothing leaves, and the next one is as if it had not been.
    #[test]
    fn a_refused_value_leaves_nothing() {
        let mut session = opened();
        let refused = asked(&mut session, Value::Float64(f64::NAN));
        assert_eq!(refused, (Vec::new(), true));
        assert!(session.job.is_none() && session.awaited.is_empty());
        let (sent, has_failed) = asked(&mut session, Value::Int64(1));
        assert!(!has_failed && String::from_utf8_lossy(&sent).contains("max_execution_time"));
        assert_eq!(asked(&mut opened(), Value::Int64(1)).0, sent);
        // The limit is known.
        session.job = None;
        session.awaited.clear();
        let (again, _) = asked(&mut session, Value::Int64(2));
        assert!(again.len() < sent.len());
        let text = String::from_utf8_lossy(&again);
        assert!(text.contains(BEGIN) && text.contains(END), "{text}");
    }

    /// A server's message, with its head.
    fn packet(number: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        [&length[..3], &[number], body].concat()
    }

    /// What is told of a request when this has come.
    fn heard(session: &mut Session, bytes: Vec<u8>) -> Result<Vec<Event>, Error> {
        let mut step = Step::default();
        session.receive(Input::Bytes(bytes), &mut step)?;
        Ok(step.into_parts().1)
    }

    const OKAY: [u8; 7] = [0, 0, 0, 2, 0, 0, 0];
    const IN_TRANSACTION: [u8; 7] = [0, 0, 0, 3, 0, 0, 0];
    const EOF: [u8; 5] = [0xfe, 0, 0, 3, 0];

    /// The time limit, the transaction's begin, and one row of one number.
    fn answered() -> Vec<u8> {
        let names = b"\x03def\0\0\0\x01a\0\x0c";
        let definition = [&names[..], &[63, 0, 20, 0, 0, 0, 8, 0, 0, 0, 0, 0]].concat();
        let row = [0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
        let execute = [&[1][..], &definition, &EOF, &row, &EOF];
        let execute = execute.iter().zip(1..);
        let execute = execute.flat_map(|(body, number)| packet(number, body));
        let before = [packet(1, &OKAY), packet(1, &IN_TRANSACTION)].concat();
        before.into_iter().chain(execute).collect()
    }

    /// Who asked has the rows before their transaction has ended, and what is asked next goes out behind that. A transaction that does not end ends the
    /// session, with what is at work there.
    #[test]
    fn rows_do_not_wait_for_the_end_of_their_transaction() {
        let mut session = opened();
        asked(&mut session, Value::Int64(1));
        let mut bytes = answered();
        let last = bytes.split_off(bytes.len() - 9);
        let is_done = |events: &[Event]| matches!(events.last(), Some(Event::Done(1)));
        assert!(!is_done(&heard(&mut session, bytes).unwrap()));
        assert!(is_done(&heard(&mut session, last).unwrap()));
        // The next one, whose time limit is known: its answer comes behind the end of the first.
        let (_, has_failed) = asked(&mut session, Value::Int64(2));
        assert!(!has_failed);
        let second = [packet(1, &OKAY), answered().split_off(11)].concat();
        assert!(is_done(&heard(&mut session, second).unwrap()));
        // Of a transaction that does not end nobody is to blame who comes behind it, and may be asked elsewhere.
        asked(&mut session, Value::Int64(3));
        let error = heard(&mut session, packet(1, &IN_TRANSACTION)).unwrap_err();
        let told = (error.class, error.code.as_str());
        assert_eq!(told, (ErrorClass::Unavailable, "transaction_not_ended"));
    }

    /// What the last end has begun is the transaction of what is asked next, once a server has shown that it begins one that only reads; who is told that
    /// nobody asks ends it.
    #[test]
    fn the_end_of_a_transaction_begins_the_next() {
        const READS_ONLY: [u8; 7] = [0, 0, 0, 3, 0x20, 0, 0];
        let sent = |session: &mut Session| {
            let (sent, has_failed) = asked(session, Value::Int64(1));
            assert!(!has_failed);
            String::from_utf8_lossy(&sent).into_owned()
        };
        let told = |session: &mut Session| {
            let mut step = Step::default();
            session.cancel(NOBODY, &mut step).unwrap();
            let sent = step.into_parts().0;
            matches!(sent.as_slice(), [Command::Send(bytes)] if String::from_utf8_lossy(bytes).contains(END))
        };
        let mut session = opened();
        // Nobody would tell.
        assert!(sent(&mut session).contains(END));
        heard(&mut session, answered()).unwrap();
        heard(&mut session, packet(1, &OKAY)).unwrap();
        assert!(!told(&mut session));
        // The server has not shown it.
        let first = sent(&mut session);
        assert!(
            first.contains(BEGIN) && first.contains(END_AND_BEGIN),
            "{first}"
        );
        let known = answered().split_off(11);
        heard(&mut session, known.clone()).unwrap();
        let second = sent(&mut session);
        assert!(second.contains(BEGIN), "{second}");
        heard(
            &mut session,
            [packet(1, &READS_ONLY), known.clone()].concat(),
        )
        .unwrap();
        heard(&mut session, packet(1, &READS_ONLY)).unwrap();
        // It has.
        let third = sent(&mut session);
        assert!(
            !third.contains(BEGIN) && third.contains(END_AND_BEGIN),
            "{third}"
        );
        let rows = known.clone().split_off(11);
        heard(&mut session, rows.clone()).unwrap();
        heard(&mut session, packet(1, &READS_ONLY)).unwrap();
        assert!(told(&mut session));
        heard(&mut session, packet(1, &OKAY)).unwrap();
        assert!(sent(&mut session).contains(BEGIN));
        heard(&mut session, known).unwrap();
        // Where it does not begin one after all, what is on its way has none, and is asked elsewhere.
        assert!(!sent(&mut session).contains(BEGIN));
        let error = heard(&mut session, packet(1, &OKAY)).unwrap_err();
        assert_eq!(error.code, "transaction_not_ended");
    }

    /// A server that begins one that writes is asked for none: it ends, and each request begins its own.
    #[test]
    fn a_transaction_that_writes_is_not_taken() {
        let mut session = opened();
        session.cancel(NOBODY, &mut Step::default()).unwrap();
        asked(&mut session, Value::Int64(1));
        heard(&mut session, answered()).unwrap();
        let mut step = Step::default();
        let bytes = Input::Bytes(packet(1, &IN_TRANSACTION));
        session.receive(bytes, &mut step).unwrap();
        let (commands, _) = step.into_parts();
        assert!(
            matches!(commands.as_slice(), [Command::Send(bytes)] if String::from_utf8_lossy(bytes).contains(END)),
            "{commands:?}"
        );
        heard(&mut session, packet(1, &OKAY)).unwrap();
        let (sent, _) = asked(&mut session, Value::Int64(1));
        let sent = String::from_utf8_lossy(&sent);
        assert!(sent.contains(BEGIN) && sent.contains(END), "{sent}");
    }

    /// The server's limit is never shorter than what is left, and not much longer.
    #[test]
    fn limits_are_rounded_up() {
        for (left, limit) in [
            (0, 100),
            (1, 100),
            (100, 100),
            (999, 1_000),
            (1_001, 1_500),
            (29_990, 30_000),
            (30_000, 30_000),
            (60_001, 90_000),
        ] {
            assert_eq!(rounded(left), limit, "{left}");
        }
    }
}
