//! A session: any number of requests under way, each a few statements in a transaction of its own, or one that such a transaction has let pass
//! within the last minute, alone.
//!
//! A request begins a transaction (`Begin`), asks its statement in it (`Ask`, of a ping also `Probe`) and ends it (`End`); each of these is
//! asked once and followed from answer to answer until one leads no further. A statement that nobody waits for any more is stopped first
//! (`Stop`). What was asked and not answered because a coordinator or its proxy was busy is asked again after a pause.

mod hearing;

use std::rc::Rc;

use souk_sdk::catalog::Listing;
use souk_sdk::http::{Heard, Request as HttpRequest};
use souk_sdk::json::Reading;
use souk_sdk::results::{SHAPES_MAX, Shapes};
use souk_sdk::statements::callers_values;
use souk_sdk::texts::Texts;
use souk_sdk::{Descriptor, Error, Input, Limits, Machine, Need, Query, Request, Step, Value};

use crate::answers::{QueryError, malformed};
use crate::api::Api;
use crate::catalog;
use crate::errors::{READ_ONLY, cancelled};
use crate::ping::{self, Ping};
use crate::settings::{self, Settings};
use crate::statements::{self, Read, prepare};
use crate::types::Type;

/// Answers of one statement. Each takes the coordinator as long as it has nothing to say, up to a second: who leads on for longer than a
/// day is not believed.
const ANSWERS_MAX: u32 = 100_000;
/// Answers of a statement that ends a transaction: it is carried out as soon as it was asked after once, and nobody waits for more.
const ENDING_ANSWERS_MAX: u32 = 2;
/// Numbers that no shape of a result has.
const PING_SHAPE: u32 = SHAPES_MAX as u32;
const CATALOG_SHAPE: u32 = PING_SHAPE + 1;

pub struct Session {
    api: Api,
    last: u32,
    shapes: Shapes<Type>,
    texts: Texts<Read>,
    jobs: Vec<Job>,
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
    transaction: Option<String>,
    /// Where the statement goes on.
    next: Option<String>,
    /// Of the statement: all of its answers, and those without a row since the last one that had some.
    answers: u32,
    empty: u32,
    /// Of what was asked last.
    tries: u32,
    is_cancelled: bool,
}

/// What is asked in the transaction.
enum Work {
    Query {
        /// Of the seller's text.
        read: Rc<Read>,
        /// When the transaction in which it is asked was asked for; none of a statement that needs none.
        begins_at: Option<u64>,
        text: String,
        /// The caller's values, which an error may quote.
        values: Vec<Value>,
        reading: Reading<Type>,
    },
    Catalog {
        text: String,
        listing: Listing,
    },
    Ping(Ping),
}

enum Stage {
    Begin,
    Ask,
    Probe,
    /// Being stopped because of this.
    Stop(Error),
    /// What the request has come to.
    End(Result<(), Error>),
}

/// Why a statement goes no further.
enum Trouble {
    /// The statement has ended at Trino, with this error.
    Told(QueryError),
    /// It goes on there, or its transaction does.
    Ours(Error),
    /// Nothing is known of it, and nothing can be asked.
    Lost(Error),
}

impl Machine for Session {
    fn describe() -> Descriptor {
        Descriptor::new("trino", env!("CARGO_PKG_VERSION"), Need::Http)
            .engine(
                "trino",
                "Trino",
                "generic",
                &["PASSWORD", "API_KEY", "NONE"],
            )
            .settings_schema(settings::SCHEMA)
            .abilities(&[
                "schema",
                "pipelining",
                "cancel",
                "singles:real",
                // What Trino says itself that it does not sort by.
                "unsorted:geometry",
                "unsorted:sphericalgeography",
                "unsorted:kdbtree",
                "unsorted:hyperloglog",
                "unsorted:p4hyperloglog",
                "unsorted:setdigest",
                "unsorted:qdigest",
                "unsorted:tdigest",
                "unsorted:color",
                "no-such-operator:TYPE_MISMATCH",
                "no-such-operator:OPERATOR_NOT_FOUND",
            ])
    }

    fn open(settings: souk_sdk::Settings) -> Result<Session, Error> {
        Ok(Session {
            api: Api {
                settings: Settings::parse(&settings)?,
            },
            last: 0,
            shapes: Shapes::default(),
            texts: Texts::default(),
            jobs: Vec::new(),
        })
    }

    /// A coordinator keeps no session: each request says who asks.
    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        step.ready();
        Ok(())
    }

    fn submit(&mut self, id: u32, request: Request, step: &mut Step) -> Result<(), Error> {
        match self.begun(request, step.now()) {
            Ok((work, limits)) => {
                let mut job = Job {
                    id,
                    waits_for: 0,
                    is_paused: false,
                    stage: first(&work),
                    work,
                    limits,
                    transaction: None,
                    next: None,
                    answers: 0,
                    empty: 0,
                    tries: 0,
                    is_cancelled: false,
                };
                let request = self.asks(&job);
                self.send(&mut job, request, step);
                self.jobs.push(job);
            }
            Err(error) => step.failed(id, error),
        }
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        let Some((number, heard)) = Heard::of(input) else {
            return Ok(());
        };
        // What nobody waits for any more is not known.
        let Some(at) = self.jobs.iter().position(|job| job.waits_for == number) else {
            return Ok(());
        };
        // It goes on where it lies: it is large, and mostly stays.
        let mut jobs = std::mem::take(&mut self.jobs);
        let is_open = match (heard, &mut jobs[at]) {
            (Heard::PauseIsOver, job) => {
                let request = self.asks(job);
                self.send(job, request, step);
                true
            }
            (Heard::Answer(outcome), job) => self.heard(job, outcome, step),
        };
        if !is_open {
            jobs.swap_remove(at);
        }
        self.jobs = jobs;
        Ok(())
    }

    /// A statement is stopped by the path at which it goes on; where Trino has not said that yet, it is about to, and so it is with the
    /// transaction that is to be ended. The request ends when that is about to.
    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        let is_it = |job: &Job| job.id == id && !job.is_cancelled;
        let Some(at) = self.jobs.iter().position(is_it) else {
            return Ok(());
        };
        let mut job = self.jobs.swap_remove(at);
        job.is_cancelled = true;
        let is_open = match (&job.stage, &job.next) {
            (Stage::Begin, _) if !job.is_paused => true,
            (Stage::Begin | Stage::Ask | Stage::Probe, Some(_)) => {
                self.stop(&mut job, cancelled(), step)
            }
            (_, None) if job.is_paused => self.end(&mut job, Err(cancelled()), step),
            // Where it goes on comes with the answer.
            _ => true,
        };
        if is_open {
            self.jobs.push(job);
        }
        Ok(())
    }
}

impl Work {
    /// Whether it is a statement that a transaction has let pass.
    fn needs_no_transaction(&self) -> bool {
        match self {
            Work::Query { begins_at, .. } => begins_at.is_none(),
            Work::Catalog { .. } | Work::Ping(_) => false,
        }
    }
}

impl Job {
    /// Whether it is a statement in no transaction of ours.
    fn is_alone(&self) -> bool {
        self.work.needs_no_transaction() && self.transaction.is_none()
    }

    /// A seller's statement that has ended was a query; in its transaction it has proven that it only reads.
    fn prove(&self) -> Result<(), Trouble> {
        let (
            Stage::Ask,
            Work::Query {
                read,
                begins_at,
                reading,
                ..
            },
        ) = (&self.stage, &self.work)
        else {
            return Ok(());
        };
        if reading.shape().is_none() {
            return Err(Trouble::Ours(malformed()));
        }
        if let (Some(at), Some(_)) = (begins_at, &self.transaction) {
            read.passed.give(*at);
        }
        Ok(())
    }

    /// What is refused because its transaction only reads is asked alone by others no more, if they do. Anything else that fails says nothing of that.
    fn disprove(&self, error: &QueryError) {
        if let (Stage::Ask, Work::Query { read, .. }) = (&self.stage, &self.work)
            && error.error_name == READ_ONLY
        {
            read.passed.withdraw();
        }
    }

    /// Its next statement is another one.
    fn begins(&mut self, stage: Stage) {
        (self.stage, self.next) = (stage, None);
        (self.answers, self.empty) = (0, 0);
    }
}

impl Session {
    /// What a request becomes.
    fn begun(&mut self, request: Request, now: u64) -> Result<(Work, Limits), Error> {
        match request {
            Request::Query(Query {
                text,
                parameters: mut values,
                limits,
            }) => {
                let read = self.texts.read(&text, statements::read)?;
                let callers = callers_values(&text, values.len());
                let asked = prepare(text, &read, &values)?;
                values.truncate(callers);
                let work = Work::Query {
                    begins_at: read.passed.is_wanted(now).then_some(now),
                    text: asked,
                    values,
                    reading: Reading::default(),
                    read,
                };
                Ok((work, limits))
            }
            Request::Schema(filter) => {
                let limits = filter.limits;
                let work = Work::Catalog {
                    text: catalog::statement(&self.api.settings.catalog, &filter),
                    listing: catalog::listing(filter),
                };
                Ok((work, limits))
            }
            Request::Ping(limits) => Ok((Work::Ping(Ping::default()), limits)),
            Request::Call(_) => Err(Error::unsupported("functions")),
            Request::Errand(_) => Err(Error::unsupported("errands")),
        }
    }

    /// What a job asks at its stage: once, or once more where nobody had time for it.
    fn asks(&self, job: &Job) -> HttpRequest {
        let (settings, limits) = (&self.api.settings, &job.limits);
        let ask = |text: &str| {
            let transaction = job.transaction.as_deref();
            self.api.statement(text, transaction, limits)
        };
        match (&job.next, &job.stage, &job.work) {
            (Some(path), _, _) => self.api.next(path, limits),
            (None, Stage::Ask, Work::Query { text, .. } | Work::Catalog { text, .. }) => ask(text),
            (None, Stage::Ask, Work::Ping(_)) => ask(&ping::look(settings)),
            (None, Stage::Probe, _) => ask(&ping::probe(settings)),
            // Nobody is asked twice to stop or to end something.
            (None, Stage::Begin | Stage::Stop(_) | Stage::End(_), _) => self.api.begin(limits),
        }
    }

    /// A number for an HTTP request or a pause.
    fn number(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.last
    }

    /// Sends what a job asks.
    fn send(&mut self, job: &mut Job, request: HttpRequest, step: &mut Step) {
        (job.waits_for, job.is_paused) = (self.number(), false);
        step.request(request.numbered(job.waits_for));
    }

    fn ask(&mut self, job: &mut Job, request: HttpRequest, step: &mut Step) -> bool {
        job.tries = 0;
        self.send(job, request, step);
        true
    }

    /// Asks a statement that has not been asked before.
    fn ask_anew(
        &mut self,
        job: &mut Job,
        stage: Stage,
        request: HttpRequest,
        step: &mut Step,
    ) -> bool {
        job.begins(stage);
        self.ask(job, request, step)
    }

    fn pause(&mut self, job: &mut Job, ms: u32, step: &mut Step) -> bool {
        (job.waits_for, job.is_paused) = (self.number(), true);
        step.wake(job.waits_for, ms);
        true
    }
}

/// What is asked first: what begins a transaction, or at once a statement that needs none.
fn first(work: &Work) -> Stage {
    match work.needs_no_transaction() {
        true => Stage::Ask,
        false => Stage::Begin,
    }
}
