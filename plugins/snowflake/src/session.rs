//! A session: any number of statements under way, each of which is asked once (`Ask`), asked after until it has ended (`Wait`), and read part
//! by part (`Read`). One that nobody waits for any more is stopped (`Stop`); where it may go on without our knowing its name, that is asked
//! for first (`Seek`). What was asked and not answered because Snowflake was busy is asked again after a pause.

mod hearing;

use souk_sdk::http::{Heard, Request as HttpRequest};
use souk_sdk::looks::{Look, Looks};
use souk_sdk::parameters::callers;
use souk_sdk::results::{SHAPES_MAX, Shapes};
use souk_sdk::statements::Places;
use souk_sdk::texts::Texts;
use souk_sdk::{
    Descriptor, Error, HttpFailure, HttpResponse, Input, Limits, Machine, Need, Query, Request,
    Step, WireFault,
};

use crate::answers::{Body, Head};
use crate::api::{Api, Asked, SMALL_RESPONSE_BYTES};
use crate::catalog;
use crate::errors::{cancelled, malformed};
use crate::pauses::{self, busy};
use crate::ping::{LOOK, Ping};
use crate::reading::Reading;
use crate::settings::{self, Settings};
use crate::statements::{self, prepare};
use crate::types::Type;
use crate::unpacking::Unpacking;

/// How often a statement is asked after: with the pauses between, for more than a day.
const WAITS_MAX: u32 = 100_000;
/// Between two pieces of a part that is unpacked: the host has to get a word in, for a call may not take long.
const PIECE_PAUSE_MS: u32 = 1;
/// Compressed parts that are here or that there is room for: one of the longest. Beside them there is one that comes, and what becomes of the
/// one that is unpacked.
const HELD_BYTES_MAX: usize = 16 << 20;
/// A name of a statement is a UUID.
const HANDLE_BYTES_MAX: usize = 64;
/// A number that no shape of a result has.
const PING_SHAPE: u32 = SHAPES_MAX as u32;
/// How long Snowflake may take to say a statement's name to who gave up, to stop it, and to do so once more: what belongs together takes less
/// than the two seconds that the host waits for the end of a request that was cancelled.
const SEEK_MS: u32 = 700;
const STOP_MS: u32 = 1_500;
const STOP_AGAIN_MS: u32 = 1_000;

pub struct Session {
    api: Api,
    last: u32,
    shapes: Shapes<Type>,
    texts: Texts<Places>,
    looks: Looks,
    jobs: Vec<Job>,
}

/// A request of the host's that is under way.
struct Job {
    id: u32,
    /// The HTTP request or the pause that it waits for.
    waits_for: u32,
    is_paused: bool,
    /// The statement, as long as it may have to be asked again.
    asked: Asked,
    work: Work,
    stage: Stage,
    limits: Limits,
    /// The statement's name, once it is known.
    handle: Option<String>,
    /// Whether a statement may go on of which the name is not known: of what was asked no answer came that says so, or says the contrary.
    may_be_taken: bool,
    /// Bytes of a part that is here and compressed, or that there is room for.
    held: usize,
    waits: u32,
    look: Look,
    /// Of what was asked last.
    tries: u32,
    is_cancelled: bool,
}

/// What a request becomes, and what is asked for it.
struct Begun {
    work: Work,
    limits: Limits,
    asked: Asked,
    look: Look,
}

enum Work {
    Query {
        /// The caller's values, as an error quotes them.
        values: Vec<String>,
        reading: Reading,
    },
    Ping(Ping),
}

enum Stage {
    Ask,
    Wait,
    Read,
    /// A part has come, and is unpacked piece by piece: one at a time.
    Unpack(Unpacking),
    /// A part has come, and waits until no other one is unpacked.
    Queue(Vec<u8>),
    /// A part of so many bytes has come for which there was no room. It is asked for again when there is.
    NoRoom(usize),
    /// Its name is asked for, to stop it because of this.
    Seek(Error),
    /// Being stopped because of this.
    Stop(Error),
}

/// What becomes of a job with an answer.
enum Next {
    /// It is asked this.
    Ask(Stage, HttpRequest),
    /// It is asked what belongs to that stage after so long.
    Pause(Stage, u32),
    /// There is more in what has come.
    GoOn(Unpacking),
    /// What has come has to wait.
    Queue(Vec<u8>),
    Done,
}

impl Machine for Session {
    fn describe() -> Descriptor {
        Descriptor::new("snowflake", env!("CARGO_PKG_VERSION"), Need::Http)
            .engine(
                "snowflake",
                "Snowflake",
                "generic",
                &["SERVICE_ACCOUNT", "API_KEY"],
            )
            .settings_schema(settings::SCHEMA)
            // Of an operator that does not take such types.
            .abilities(&["schema", "pipelining", "cancel", "no-such-operator:001044"])
    }

    fn open(settings: souk_sdk::Settings) -> Result<Session, Error> {
        Ok(Session {
            api: Api::new(Settings::parse(&settings)?)?,
            last: 0,
            shapes: Shapes::default(),
            texts: Texts::default(),
            looks: Looks::default(),
            jobs: Vec::new(),
        })
    }

    /// Each request says who asks: there is no session to be let into.
    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        self.api.renew(step.now())?;
        step.ready();
        Ok(())
    }

    fn submit(&mut self, id: u32, request: Request, step: &mut Step) -> Result<(), Error> {
        self.api.renew(step.now())?;
        match self.begun(request) {
            Ok(Begun {
                work,
                limits,
                asked,
                look,
            }) => {
                let mut job = Job {
                    id,
                    waits_for: 0,
                    is_paused: false,
                    asked,
                    work,
                    stage: Stage::Ask,
                    limits,
                    handle: None,
                    may_be_taken: false,
                    held: 0,
                    waits: 0,
                    look,
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
        let mut job = self.jobs.swap_remove(at);
        let is_open = match heard {
            Heard::PauseIsOver => self.woken(&mut job, step),
            Heard::Answer(outcome) => self.heard(&mut job, outcome, step),
        };
        if is_open {
            self.jobs.push(job);
        }
        self.take_turns(step);
        Ok(())
    }

    /// A statement is stopped by its name; where Snowflake has not said that yet, it is about to, or is asked for it. One that is being read
    /// has ended.
    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        let is_it = |job: &Job| job.id == id && !job.is_cancelled;
        let Some(at) = self.jobs.iter().position(is_it) else {
            return Ok(());
        };
        let mut job = self.jobs.swap_remove(at);
        job.is_cancelled = true;
        let is_open = match job.stage {
            Stage::Ask if !job.is_paused => true,
            Stage::Seek(_) | Stage::Stop(_) => true,
            _ => self.gives_up(&mut job, cancelled(), step),
        };
        if is_open {
            self.jobs.push(job);
        }
        self.take_turns(step);
        Ok(())
    }
}

impl Session {
    /// What a request becomes, and what is asked for it.
    fn begun(&mut self, request: Request) -> Result<Begun, Error> {
        let (text, values, limits, work) = match request {
            Request::Query(Query {
                text,
                parameters,
                limits,
            }) => {
                let callers = callers(&text, &parameters);
                let places = self.texts.read(&text, statements::read)?;
                let text = prepare(text, &places, parameters.len())?;
                (text, parameters, limits, Work::query(callers))
            }
            Request::Schema(filter) => {
                let database = &self.api.settings.database;
                let (text, values) = catalog::statement(database, &filter);
                (text, values, filter.limits, Work::query(Vec::new()))
            }
            Request::Ping(limits) => {
                let work = Work::Ping(Ping::default());
                // Its one row is no matter of the host's limits.
                let rows_max = limits.rows_max.max(1);
                let limits = Limits { rows_max, ..limits };
                (LOOK.to_owned(), Vec::new(), limits, work)
            }
            Request::Call(_) => return Err(Error::unsupported("functions")),
            Request::Errand(_) => return Err(Error::unsupported("errands")),
        };
        Ok(Begun {
            look: self.looks.begin(&text),
            asked: Asked::new(text, &values)?,
            work,
            limits,
        })
    }

    /// A number for an HTTP request or a pause.
    fn number(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.last
    }

    /// What a job asks at its stage, for the first time or again.
    fn asks(&self, job: &Job) -> HttpRequest {
        let handle = job.handle.as_deref().unwrap_or_default();
        match &job.stage {
            Stage::Ask => self.api.statement(&job.asked, &job.limits, job.tries > 0),
            Stage::Wait => self.api.answer(handle, None, &job.limits),
            Stage::Seek(_) => {
                let again = self.api.statement(&job.asked, &job.limits, true);
                again
                    .timeout_ms(SEEK_MS)
                    .response_bytes_max(SMALL_RESPONSE_BYTES)
            }
            // It was looked for before, or is stopped for the second time.
            Stage::Stop(_) => self.api.stop(handle).timeout_ms(STOP_AGAIN_MS),
            Stage::Read | Stage::Unpack(_) | Stage::Queue(_) | Stage::NoRoom(_) => {
                self.api.answer(handle, job.work.part(), &job.limits)
            }
        }
    }

    /// Sends what a job asks.
    fn send(&mut self, job: &mut Job, request: HttpRequest, step: &mut Step) {
        (job.waits_for, job.is_paused) = (self.number(), false);
        step.request(self.api.numbered(request, job.waits_for));
    }

    fn pause(&mut self, job: &mut Job, ms: u32, step: &mut Step) {
        (job.waits_for, job.is_paused) = (self.number(), true);
        step.wake(job.waits_for, ms);
    }

    /// What a job does after a pause. Whether it goes on.
    fn woken(&mut self, job: &mut Job, step: &mut Step) -> bool {
        match std::mem::replace(&mut job.stage, Stage::Read) {
            Stage::Unpack(unpacking) => {
                let next = self.unpacked(job, unpacking, step);
                self.goes_on(job, next, step)
            }
            stage => {
                job.stage = stage;
                let request = self.asks(job);
                self.send(job, request, step);
                true
            }
        }
    }

    /// What a job does with an answer. Whether it goes on.
    fn heard(
        &mut self,
        job: &mut Job,
        outcome: Result<HttpResponse, HttpFailure>,
        step: &mut Step,
    ) -> bool {
        match &mut job.stage {
            Stage::Stop(_) if job.tries == 0 && pauses::is_refused(&outcome) => {
                job.tries = 1;
                self.pause(job, pauses::FIRST_MS, step);
                return true;
            }
            Stage::Stop(error) => {
                let error = std::mem::replace(error, cancelled());
                step.failed(job.id, error);
                return false;
            }
            Stage::Seek(error) => {
                let error = std::mem::replace(error, cancelled());
                return self.found(job, outcome, error, step);
            }
            Stage::Ask => {
                job.may_be_taken = may_be_taken(&outcome, job.may_be_taken);
            }
            _ => {}
        }
        let is_ask = matches!(job.stage, Stage::Ask);
        if let Some(ms) = busy(&outcome, job.tries, is_ask).filter(|_| !job.is_cancelled) {
            // What was asked may have been taken all the same: it is said that it is asked again.
            job.tries += 1;
            self.pause(job, ms, step);
            return true;
        }
        let next = self.answered(job, outcome, step);
        self.goes_on(job, next, step)
    }

    fn goes_on(&mut self, job: &mut Job, next: Result<Next, Error>, step: &mut Step) -> bool {
        match next {
            Ok(Next::Ask(stage, request)) => {
                (job.stage, job.tries) = (stage, 0);
                self.send(job, request, step);
                true
            }
            Ok(Next::Pause(stage, ms)) => {
                (job.stage, job.tries) = (stage, 0);
                self.pause(job, ms, step);
                true
            }
            Ok(Next::GoOn(unpacking)) => {
                job.stage = Stage::Unpack(unpacking);
                self.pause(job, PIECE_PAUSE_MS, step);
                true
            }
            Ok(Next::Queue(body)) => {
                let length = body.len();
                (job.stage, job.held) = match self.has_room(length) {
                    true => (Stage::Queue(body), length),
                    false => (Stage::NoRoom(length), 0),
                };
                // Nobody but another job's end wakes it.
                (job.waits_for, job.is_paused) = (self.number(), true);
                true
            }
            Ok(Next::Done) => {
                step.done(job.id);
                false
            }
            Err(error) => self.gives_up(job, error, step),
        }
    }

    /// A request has come to nothing; its statement is stopped where it goes on for all that is known. Whether there is more to do.
    fn gives_up(&mut self, job: &mut Job, error: Error, step: &mut Step) -> bool {
        let error = match job.is_cancelled {
            true => cancelled(),
            false => error,
        };
        match (&job.stage, &job.handle) {
            (Stage::Ask | Stage::Wait, Some(handle)) => {
                let request = self.api.stop(handle).timeout_ms(STOP_MS);
                (job.stage, job.tries) = (Stage::Stop(error), 0);
                self.send(job, request, step);
                true
            }
            (Stage::Ask, None) if job.may_be_taken => self.ends(job, Stage::Seek(error), step),
            _ => {
                step.failed(job.id, error);
                false
            }
        }
    }

    /// Asks the last but one, or the last thing of a request.
    fn ends(&mut self, job: &mut Job, stage: Stage, step: &mut Step) -> bool {
        (job.stage, job.tries) = (stage, 0);
        let request = self.asks(job);
        self.send(job, request, step);
        true
    }

    /// The name of a statement that was asked for to stop it is here, or is not to be had.
    fn found(
        &mut self,
        job: &mut Job,
        outcome: Result<HttpResponse, HttpFailure>,
        error: Error,
        step: &mut Step,
    ) -> bool {
        match outcome.ok().and_then(|response| goes_on_as(&response)) {
            Some(handle) => {
                job.handle = Some(handle);
                self.ends(job, Stage::Stop(error), step)
            }
            None => {
                step.failed(job.id, error);
                false
            }
        }
    }
}

impl Work {
    fn query(values: Vec<String>) -> Work {
        Work::Query {
            values,
            reading: Reading::default(),
        }
    }

    /// The part of its rows that is asked for.
    fn part(&self) -> Option<usize> {
        match self {
            Work::Query { reading, .. } => reading.parts.next().ok().flatten(),
            Work::Ping(_) => None,
        }
    }
}

/// The name that an answer has for its statement.
fn handle(head: &Head<'_>) -> Result<String, Error> {
    let handle = head.statement_handle.as_deref().unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    match handle.len() {
        1..=HANDLE_BYTES_MAX if handle.bytes().all(is_plain) => Ok(handle.to_owned()),
        _ => Err(malformed()),
    }
}

/// Whether a statement may have been taken of which the name is not known. `before`: whether that was so when it was asked before.
fn may_be_taken(outcome: &Result<HttpResponse, HttpFailure>, before: bool) -> bool {
    match outcome {
        // As long as the name cannot be read.
        Ok(response) => match response.status {
            200 | 202 | 502..=504 => true,
            429 => before,
            _ => false,
        },
        Err(failure) => match failure.fault {
            WireFault::Reset | WireFault::Timeout | WireFault::BadResponse => true,
            _ => before,
        },
    }
}

/// The name of a statement that goes on, for all that an answer says.
fn goes_on_as(response: &HttpResponse) -> Option<String> {
    if !matches!(response.status, 200 | 202) {
        return None;
    }
    let body = Body::of(response).ok()?;
    let head = Head::of(&body).ok()?;
    match head.result_set_meta_data {
        Some(_) => None,
        None => handle(&head).ok(),
    }
}
