//! A session: any number of requests under way, each on a connection of its own to the server.
//!
//! A request opens a connection (`Connect`), has its statement read by DuckDB's parser unless this session knows it (`Check`, by which once a minute the server also says
//! whether statements may be asked alone), says where tables are, puts
//! the connection's clocks to UTC where the server's are not, begins a transaction that only reads (`opening`) unless one has let the statement pass within
//! the last minute, and asks, all in one message (`Ask`; of a ping in two, `Begin` and `Probe`), and fetches what there is more (`Fetch`). What
//! has succeeded leaves its connection to the next statement that is known, whose message ends the transaction, if there is one, before all else (`idle`),
//! as long as others are under way, or until the host tells that nobody asks for anything; else the connection is ended, and the transaction with it,
//! beside the answer (`outgoing`), and whatever failed has its own ended before that (`End`). A proxy that was too busy for a connection, or for the end
//! of one, is asked again after a pause.
//!
//! Nothing in version 1 of Quack stops a statement that runs: it ends when it has come to its first rows, or to the next of them.

mod hearing;

use souk_sdk::http::{Heard, Request as HttpRequest};
use souk_sdk::results::{SHAPES_MAX, Shapes};
use souk_sdk::texts::Texts;
use souk_sdk::{Descriptor, Error, Input, Limits, Machine, Need, Query, Request, Step, Value};

use crate::catalog;
use crate::errors::cancelled;
use crate::idle::{Idle, Left};
use crate::opening::Opening;
use crate::outgoing::{Kind, Outgoing, SMALL_RESPONSE_BYTES, end, message};
use crate::protocol::{connect, prepare};
use crate::reading::{Columns, Reading};
use crate::settings::{self, Settings};
use crate::statements::{self, Prepared};
use crate::types::Type;

/// A server sends 24,576 rows at once, unless it is told otherwise (`quack_fetch_batch_chunks`): what they may be long.
const RESPONSE_BYTES_MAX: u64 = 24 << 20;
/// A number that no shape of a result has.
const PING_SHAPE: u32 = SHAPES_MAX as u32;
/// What a host tells by that nobody asks for anything (ability `idle`).
const NOBODY: u32 = 0;

pub struct Session {
    settings: Settings,
    opening: Opening,
    outgoing: Outgoing,
    idle: Idle,
    shapes: Shapes<Type>,
    texts: Texts<statements::Read>,
    jobs: Vec<Job>,
    /// The host tells when nobody asks for anything, and lets connections be ended then.
    is_told_idle: bool,
}

/// A request of the host's that is under way.
struct Job {
    id: u32,
    /// The HTTP request or the pause that it waits for.
    waits_for: u32,
    is_paused: bool,
    work: Work,
    stage: Stage,
    limits: Limits,
    /// Its connection at the server, whether another request has left it, and whether its clocks are put to UTC.
    connection: Option<String>,
    is_handed_on: bool,
    is_in_utc: bool,
    /// When the transaction begins in which it is asked; none of a statement that needs none.
    begins_at: Option<u64>,
    /// Since when it is to ask what decides whether statements may be asked alone (`opening`); none where it has, or is not to.
    looks_at: Option<u64>,
    /// What more rows are asked for by.
    result: Vec<u8>,
    answers: u32,
    /// Of what was asked last.
    tries: u32,
    is_cancelled: bool,
}

enum Work {
    Query {
        statement: Prepared,
        /// As it came: an error quotes the caller's values.
        text: String,
        values: Vec<Value>,
        reading: Reading,
    },
    Catalog {
        text: String,
        reading: Reading,
    },
    Ping {
        version: String,
        refuses_writes: Option<bool>,
    },
}

enum Stage {
    Connect,
    Check,
    Begin,
    Ask,
    Probe,
    Fetch,
    /// What the request has come to.
    End(Result<(), Error>),
}

impl Machine for Session {
    fn describe() -> Descriptor {
        Descriptor::new("duckdb", env!("CARGO_PKG_VERSION"), Need::Http)
            .engine("duckdb", "DuckDB", "generic", &["API_KEY"])
            .settings_schema(settings::SCHEMA)
            .abilities(&[
                "schema",
                "pipelining",
                "cancel",
                "idle",
                // As `types.rs` calls a `FLOAT`.
                "singles:real",
                // Its decimals have 38 digits.
                "wide:hugeint",
                "wide:uhugeint",
                "wide:bignum",
                "unsorted:geometry",
            ])
    }

    fn open(settings: souk_sdk::Settings) -> Result<Session, Error> {
        let settings = Settings::parse(&settings)?;
        Ok(Session {
            opening: Opening::of(&settings),
            settings,
            outgoing: Outgoing::default(),
            idle: Idle::default(),
            shapes: Shapes::default(),
            texts: Texts::default(),
            jobs: Vec::new(),
            is_told_idle: false,
        })
    }

    /// A server keeps what is connected to it for ever: a session that is asked nothing for a while has no connection.
    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        step.ready();
        Ok(())
    }

    fn submit(&mut self, id: u32, request: Request, step: &mut Step) -> Result<(), Error> {
        for connection in self.idle.old(step.now()) {
            self.outgoing.end_beside(connection, step);
        }
        match begun(request, &mut self.texts) {
            Ok((work, limits)) => {
                let mut job = Job {
                    id,
                    waits_for: 0,
                    is_paused: false,
                    work,
                    stage: Stage::Connect,
                    limits,
                    connection: None,
                    is_handed_on: false,
                    is_in_utc: false,
                    begins_at: None,
                    looks_at: None,
                    result: Vec::new(),
                    answers: 0,
                    tries: 0,
                    is_cancelled: false,
                };
                self.begin(&mut job, step);
                self.jobs.push(job);
            }
            Err(error) => step.failed(id, error),
        }
        self.outgoing.tell_again(step);
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        let Some((number, heard)) = Heard::of(input) else {
            return Ok(());
        };
        if let Heard::Answer(_) = heard {
            self.outgoing.came(step);
        }
        let Some(at) = self.jobs.iter().position(|job| job.waits_for == number) else {
            // What nobody waits for any more is not known.
            if let Heard::Answer(outcome) = &heard {
                self.outgoing.heard(number, outcome);
            }
            return Ok(());
        };
        let mut job = self.jobs.swap_remove(at);
        let is_open = match heard {
            Heard::Answer(outcome) => self.heard(&mut job, outcome, step),
            Heard::PauseIsOver => {
                let request = self.again(&job);
                self.send(&mut job, request, step);
                true
            }
        };
        if is_open {
            self.jobs.push(job);
        }
        self.let_go(step);
        Ok(())
    }

    /// Ends the connection; one that is being opened is ended when it is known. A statement that runs on it goes on until it has rows.
    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        if id == NOBODY {
            self.is_told_idle = true;
            if self.jobs.is_empty() {
                self.end_all(step);
                self.outgoing.tell_again(step);
            }
            return Ok(());
        }
        let is_it = |job: &Job| job.id == id && !job.is_cancelled;
        let Some(at) = self.jobs.iter().position(is_it) else {
            return Ok(());
        };
        let mut job = self.jobs.swap_remove(at);
        job.is_cancelled = true;
        let is_open = match job.stage {
            Stage::End(_) => true,
            Stage::Connect if !(job.is_paused || self.outgoing.withdraw(job.waits_for)) => true,
            _ => self.end(&mut job, Err(cancelled()), step),
        };
        if is_open {
            self.jobs.push(job);
        }
        self.let_go(step);
        Ok(())
    }
}

/// What a request becomes.
fn begun(request: Request, texts: &mut Texts<statements::Read>) -> Result<(Work, Limits), Error> {
    match request {
        Request::Query(Query {
            text,
            parameters,
            limits,
        }) => {
            let read = texts.read(&text, statements::read)?;
            let work = Work::Query {
                statement: statements::prepare(&text, read, &parameters)?,
                text,
                values: parameters,
                reading: Reading::new(Columns::Own),
            };
            Ok((work, limits))
        }
        Request::Schema(filter) => {
            let work = Work::Catalog {
                text: catalog::statement(&filter),
                reading: Reading::new(Columns::Catalog),
            };
            Ok((work, filter.limits))
        }
        Request::Ping(limits) => {
            let work = Work::Ping {
                version: String::new(),
                refuses_writes: None,
            };
            Ok((work, limits))
        }
        Request::Call(_) => Err(Error::unsupported("functions")),
        Request::Errand(_) => Err(Error::unsupported("errands")),
    }
}

impl Job {
    /// The id of its connection, where it has one.
    fn at(&self) -> &str {
        self.connection.as_deref().unwrap_or_default()
    }

    /// Whether nothing of it has been done where its connection is not what it was when it was left.
    fn may_begin_again(&self) -> bool {
        self.is_handed_on && matches!(self.stage, Stage::Ask)
    }

    /// Whether it waits for what decides if statements may be asked alone.
    fn looks(&self) -> bool {
        self.looks_at.is_some() && matches!(self.stage, Stage::Check)
    }

    /// Whether another statement may be asked on its connection: in the same way as if it were a new one.
    fn may_be_followed(&self) -> bool {
        matches!(&self.work, Work::Query { statement, .. } if !statement.read.leaves)
    }
}

impl Session {
    /// What opens a connection.
    fn greeting(&self, limits: &Limits) -> HttpRequest {
        message(connect(&self.settings.token), SMALL_RESPONSE_BYTES).timeout_ms(limits.timeout_ms)
    }

    /// What is asked once more of who was busy: for a connection, or for the end of one.
    fn again(&self, job: &Job) -> HttpRequest {
        match (&job.stage, &job.connection) {
            (Stage::End(_), Some(connection)) => end(connection),
            _ => self.greeting(&job.limits),
        }
    }

    /// Asks a statement that is known on a connection that another one has left, or else opens a connection: also for what the server has to say before one that
    /// has passed is asked alone again.
    fn begin(&mut self, job: &mut Job, step: &mut Step) {
        let Work::Query { statement, .. } = &job.work else {
            return self.connect(job, step);
        };
        let is_known = statement.read.is_known();
        if !is_known || statement.read.is_passed(step.now()) {
            job.looks_at = self.opening.looks(step.now());
        }
        if !is_known || job.looks_at.is_some() {
            return self.connect(job, step);
        }
        let Some(left) = self.idle.take() else {
            return self.connect(job, step);
        };
        job.begins_at = self.begins_at(statement, step.now());
        let [leave, uses, zone, begin] = self.opening.next(&left, job.begins_at.is_some());
        let parts = [leave, uses, zone, begin, statement.filled.as_str()];
        let body = prepare(&left.connection, &parts);
        job.is_in_utc = left.is_in_utc || self.opening.is_elsewhere();
        (job.connection, job.is_handed_on) = (Some(left.connection), true);
        self.ask_statement(job, Stage::Ask, body, step);
    }

    /// When the transaction begins of a statement that is asked now: none where one has let it pass, and nothing else asks for one.
    fn begins_at(&self, statement: &Prepared, now: u64) -> Option<u64> {
        let needs_none = statement.read.is_passed(now) && self.opening.lets_alone(now);
        (!needs_none).then_some(now)
    }

    /// Nobody waits for anything any more: what was kept is ended beside the last answer, where nothing may be asked afterwards.
    fn let_go(&mut self, step: &mut Step) {
        if self.jobs.is_empty() && !self.is_told_idle {
            self.end_all(step);
        }
    }

    fn end_all(&mut self, step: &mut Step) {
        for connection in self.idle.all() {
            self.outgoing.end_beside(connection, step);
        }
    }

    fn connect(&mut self, job: &mut Job, step: &mut Step) {
        let request = self.greeting(&job.limits);
        self.send(job, request, step);
    }

    /// Sends what a job asks.
    fn send(&mut self, job: &mut Job, request: HttpRequest, step: &mut Step) {
        let kind = match job.stage {
            Stage::End(_) => Kind::End,
            _ => Kind::Statement,
        };
        job.waits_for = self.outgoing.send(kind, request, step);
        job.is_paused = false;
    }

    fn ask(&mut self, job: &mut Job, request: HttpRequest, step: &mut Step) -> bool {
        self.outgoing.withdraw(job.waits_for);
        job.tries = 0;
        self.send(job, request, step);
        true
    }

    /// Asks the same again, later.
    fn pause(&mut self, job: &mut Job, ms: u32, step: &mut Step) -> bool {
        job.tries += 1;
        (job.waits_for, job.is_paused) = (self.outgoing.number(), true);
        step.wake(job.waits_for, ms);
        true
    }

    /// How long the server may take to answer a statement, or to send more of its rows.
    fn patience(&self, job: &Job) -> u32 {
        match job.stage {
            Stage::Ask | Stage::Fetch => {
                (self.settings.statement_timeout_ms).min(job.limits.timeout_ms)
            }
            _ => job.limits.timeout_ms,
        }
    }

    fn ask_statement(
        &mut self,
        job: &mut Job,
        stage: Stage,
        body: Vec<u8>,
        step: &mut Step,
    ) -> bool {
        let response_bytes_max = match stage {
            Stage::Ask => RESPONSE_BYTES_MAX,
            _ => SMALL_RESPONSE_BYTES,
        };
        job.stage = stage;
        let request = message(body, response_bytes_max).timeout_ms(self.patience(job));
        self.ask(job, request, step)
    }

    /// What has succeeded is told at once. Its connection is left to the next statement, if it may be ended later, or ended beside the answer.
    fn leave(&mut self, job: &mut Job, step: &mut Step) -> bool {
        if let (Work::Query { statement, .. }, Some(at)) = (&job.work, job.begins_at) {
            statement.read.passed(at);
        }
        let may_end_later = self.is_told_idle || !self.jobs.is_empty();
        let is_left = may_end_later && job.may_be_followed() && self.idle.has_room();
        if (is_left || self.outgoing.may_end_beside())
            && let Some(connection) = job.connection.take()
        {
            match is_left {
                true => self.idle.keep(
                    Left {
                        connection,
                        is_in_utc: job.is_in_utc,
                        is_within: job.begins_at.is_some(),
                    },
                    step.now(),
                ),
                false => self.outgoing.end_beside(connection, step),
            }
        }
        self.end(job, Ok(()), step)
    }

    /// Ends the connection; without one there is nothing left to do. What has failed is asked in a transaction the next time.
    fn end(&mut self, job: &mut Job, outcome: Result<(), Error>, step: &mut Step) -> bool {
        if let (Work::Query { statement, .. }, Err(_)) = (&job.work, &outcome) {
            statement.read.failed();
        }
        if job.looks() && !job.is_cancelled {
            self.looked_in_vain(job);
        }
        job.stage = Stage::End(outcome);
        match &job.connection {
            Some(connection) => {
                let request = end(connection);
                self.ask(job, request, step)
            }
            None => conclude(job, step),
        }
    }
}

/// Says what a request has come to. It does not go on.
fn conclude(job: &mut Job, step: &mut Step) -> bool {
    let outcome = match &mut job.stage {
        Stage::End(outcome) => std::mem::replace(outcome, Ok(())),
        _ => Err(cancelled()),
    };
    match (outcome, &job.work) {
        (_, _) if job.is_cancelled => step.failed(job.id, cancelled()),
        (Err(error), _) => step.failed(job.id, error),
        (
            Ok(()),
            Work::Ping {
                version,
                refuses_writes,
            },
        ) => {
            step.pong(job.id, PING_SHAPE, Some(version), *refuses_writes);
            step.done(job.id);
        }
        (Ok(()), _) => step.done(job.id),
    }
    false
}
