//! A session: any number of requests under way, each of which becomes one statement after another.
//!
//! A query is described first (`DESCRIBE QUERY`), unless this session knows it, and then run. Each statement is begun (`Begin`), which says
//! its id at once, asked after until it has ended (`Follow`), and read to its last chunk (`Chunk`). One that runs and that nobody waits for
//! any more is stopped by its id (`Stop`). A service principal's token is fetched once for all who wait for it, where there is none that is
//! good, and once more where Databricks refuses it.

use souk_sdk::http::{Heard, Request as HttpRequest};
use souk_sdk::json::Telling;
use souk_sdk::looks::{Look, Looks};
use souk_sdk::results::{SHAPES_MAX, Shapes};
use souk_sdk::texts::Texts;
use souk_sdk::{
    Descriptor, Error, ErrorClass, HttpFailure, HttpResponse, Input, Machine, Need, Request, Step,
    WireFault,
};

use crate::answers::{Chunk, State, Status, broken, malformed};
use crate::api;
use crate::errors::{
    cancelled, columns_changed, condition, counts_columns, is_of_changed_columns, is_of_token,
    out_of_time, refused, rows_missing, stopped, told,
};
use crate::jobs::{Job, Reader, Stage, Words, Work};
use crate::pauses;
use crate::reading::{self, Wanted};
use crate::settings::{self, Settings};
use crate::statements::Read;
use crate::token::{self, Token};
use crate::types::Sent;

/// How long Databricks may take to let a session in.
const HELLO_MS: u32 = 10_000;
/// Chunks of a result. They are a few of some megabytes each: who leads on for longer is not believed.
const CHUNKS_MAX: u32 = 10_000;
/// The time of requests is counted in such parts of the connection's limit, of all of them at once: a pause for each would outlast its
/// statement, and a session has few.
const TICKS: u32 = 8;
/// A statement that could not be stopped is tried to be stopped once more, after this long.
const STOP_TRIES: u32 = 2;
const STOP_PAUSE_MS: u32 = 100;
/// What a job waits for that waits for no request and no pause of its own: no number.
const NOTHING: u32 = 0;
/// Numbers that no shape of a result has.
const PING_SHAPE: u32 = SHAPES_MAX as u32;
const CATALOG_SHAPE: u32 = PING_SHAPE + 1;

pub struct Session {
    settings: Settings,
    last: u32,
    /// What the session itself waits for while it opens.
    hello: Option<u32>,
    token: Option<Token>,
    /// How many tokens there were.
    tokens: u32,
    fetch: Option<Fetch>,
    texts: Texts<Read>,
    shapes: Shapes<Sent>,
    looks: Looks,
    /// The pause at whose end another part of the connection's limit is over.
    ticker: Option<u32>,
    jobs: Vec<Job>,
}

/// A token that is being fetched.
struct Fetch {
    /// The HTTP request or the pause that is waited for.
    waits_for: u32,
    tries: u32,
}

/// Whether a job goes on.
type Goes = Result<bool, Error>;

impl Machine for Session {
    fn describe() -> Descriptor {
        Descriptor::new("databricks", env!("CARGO_PKG_VERSION"), Need::Http)
            .engine(
                "databricks",
                "Databricks",
                "mysql",
                &["API_KEY", "PASSWORD"],
            )
            .settings_schema(settings::SCHEMA)
            .abilities(&["schema", "pipelining", "cancel"])
    }

    fn open(settings: souk_sdk::Settings) -> Result<Session, Error> {
        Ok(Session {
            settings: Settings::parse(&settings)?,
            last: 0,
            hello: None,
            token: None,
            tokens: 0,
            fetch: None,
            texts: Texts::default(),
            shapes: Shapes::default(),
            looks: Looks::default(),
            ticker: None,
            jobs: Vec::new(),
        })
    }

    /// The API keeps no session: each request says who asks. A service principal is let in once.
    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        let number = self.number();
        match &self.settings.principal {
            None => step.ready(),
            Some(principal) => {
                self.hello = Some(number);
                step.request(token::request(principal, HELLO_MS).numbered(number));
            }
        }
        Ok(())
    }

    fn submit(&mut self, id: u32, request: Request, step: &mut Step) -> Result<(), Error> {
        match Work::of(request, &mut self.texts, step.now()) {
            Ok((work, limits)) => {
                let mut job = Job {
                    id,
                    waits_for: 0,
                    is_paused: false,
                    waits_for_token: false,
                    token: 0,
                    is_let_in_again: false,
                    work,
                    stage: Stage::Begin,
                    limits,
                    now: step.now(),
                    ticks: None,
                    running: None,
                    look: Look::default(),
                    rows: 0,
                    taken: 0,
                    tries: 0,
                    is_cancelled: false,
                    over: None,
                };
                self.count(&mut job, step);
                let goes = self.begin(&mut job, step);
                self.keep(job, goes, step);
            }
            Err(error) => step.failed(id, error),
        }
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        let Some((number, heard)) = Heard::of(input) else {
            return Ok(());
        };
        if self.hello == Some(number)
            && let Heard::Answer(outcome) = heard
        {
            self.hello = None;
            let token = Token::granted(outcome.map_err(broken)?, step.now())?;
            self.has_token(token);
            step.ready();
            return Ok(());
        }
        if self
            .fetch
            .as_ref()
            .is_some_and(|fetch| fetch.waits_for == number)
        {
            self.fetched(heard, step);
            return Ok(());
        }
        if self.ticker == Some(number) {
            self.ticked(step);
            return Ok(());
        }
        // What nobody waits for any more is not known.
        let Some(at) = self.jobs.iter().position(|job| job.waits_for == number) else {
            return Ok(());
        };
        let mut job = self.jobs.swap_remove(at);
        let goes = match heard {
            Heard::PauseIsOver => {
                self.send_again(&mut job, step);
                Ok(true)
            }
            Heard::Answer(outcome) => self.heard(&mut job, outcome, step),
        };
        self.keep(job, goes, step);
        Ok(())
    }

    /// A statement is stopped by its id; where Databricks has not said that yet, it is about to. The request ends when that is answered.
    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        let is_it = |job: &Job| job.id == id && !job.is_cancelled;
        let Some(at) = self.jobs.iter().position(is_it) else {
            return Ok(());
        };
        let mut job = self.jobs.swap_remove(at);
        job.is_cancelled = true;
        let goes = self.gives_up(&mut job, cancelled(), step);
        self.keep(job, goes, step);
        Ok(())
    }
}

impl Session {
    /// Keeps a job that goes on, or says what it has come to.
    fn keep(&mut self, job: Job, goes: Goes, step: &mut Step) {
        if !matches!(goes, Ok(true)) && self.jobs.is_empty() {
            // Where nothing is in flight a pause may be forgotten, and a request.
            (self.ticker, self.fetch) = (None, None);
        }
        match goes {
            Ok(true) => self.jobs.push(job),
            Err(error) => {
                if let (true, Work::Query(reader)) = (is_of_changed_columns(&error), &job.work) {
                    reader.read.plain.withdraw(&reader.statement.values);
                }
                step.failed(job.id, error);
            }
            Ok(false) => {
                if let Work::Ping { ping, .. } = &job.work {
                    ping.pong(job.id, PING_SHAPE, step);
                }
                step.done(job.id);
            }
        }
    }

    /// Begins to count the time of a job, where the connection gives it less than the host does: from before anything is asked, since answers
    /// that come late are its time, too.
    fn count(&mut self, job: &mut Job, step: &mut Step) {
        if self.settings.statement_timeout_ms >= job.limits.timeout_ms {
            return;
        }
        job.ticks = Some(match self.ticker {
            None => {
                self.tick(step);
                TICKS
            }
            // A part of one is over.
            Some(_) => TICKS + 1,
        });
    }

    fn tick(&mut self, step: &mut Step) {
        let number = self.number();
        self.ticker = Some(number);
        step.wake(number, self.settings.statement_timeout_ms.div_ceil(TICKS));
    }

    /// Another part of the connection's limit is over.
    fn ticked(&mut self, step: &mut Step) {
        self.ticker = None;
        for mut job in std::mem::take(&mut self.jobs) {
            job.ticks = job.ticks.map(|left| left.saturating_sub(1));
            let goes = match job.ticks {
                Some(0) => self.gives_up(&mut job, out_of_time(), step),
                _ => Ok(true),
            };
            self.keep(job, goes, step);
        }
        if self.jobs.iter().any(|job| job.ticks.is_some()) {
            self.tick(step);
        }
    }

    /// A number for an HTTP request or a pause.
    fn number(&mut self) -> u32 {
        self.last = self.last.checked_add(1).unwrap_or(1);
        self.last
    }

    /// What a job asks at its stage.
    fn asks(&self, job: &Job) -> HttpRequest {
        let running = job.running.as_deref().unwrap_or_default();
        match &job.stage {
            Stage::Begin => {
                let asked = job.work.statement(&self.settings, &job.limits);
                api::begin(&self.settings, &asked, &job.limits)
            }
            Stage::Follow => api::follow(running, &job.limits),
            Stage::Chunk(id, number) => api::chunk(id, *number, &job.limits),
            Stage::Stop(_) => api::stop(running),
        }
    }

    /// Sends it once more.
    fn send_again(&mut self, job: &mut Job, step: &mut Step) {
        let request = self.asks(job);
        self.send(job, request, step);
    }

    /// Sends what a job asks, or has it wait for the token that goes with it.
    fn send(&mut self, job: &mut Job, request: HttpRequest, step: &mut Step) {
        let has_none = self.settings.principal.is_some() && self.token.is_none();
        (job.is_paused, job.waits_for_token) = (has_none, has_none);
        if has_none {
            job.waits_for = NOTHING;
            if self.fetch.is_none() {
                self.fetch_token(0, step);
            }
            return;
        }
        (job.waits_for, job.token) = (self.number(), self.tokens);
        let authorization = self.token.as_ref().map(Token::authorization);
        step.request(api::sent(request, job.waits_for, authorization));
    }

    fn fetch_token(&mut self, tries: u32, step: &mut Step) {
        let Some(principal) = &self.settings.principal else {
            return;
        };
        let request = token::request(principal, HELLO_MS);
        let waits_for = self.number();
        self.fetch = Some(Fetch { waits_for, tries });
        step.request(request.numbered(waits_for));
    }

    /// What has come of it: all who wait for it go on with it, however short it is good for.
    fn fetched(&mut self, heard: Heard, step: &mut Step) {
        let tries = self.fetch.take().map_or(0, |fetch| fetch.tries);
        let outcome = match heard {
            Heard::PauseIsOver => return self.fetch_token(tries, step),
            Heard::Answer(outcome) => outcome,
        };
        if let Some(ms) = pauses::busy(&outcome, tries, false) {
            let (waits_for, tries) = (self.number(), tries + 1);
            self.fetch = Some(Fetch { waits_for, tries });
            step.wake(waits_for, ms);
            return;
        }
        let granted = outcome.map_err(broken);
        let granted = granted.and_then(|response| Token::granted(response, step.now()));
        let refused = granted.map(|token| self.has_token(token)).err();
        while let Some(at) = self.jobs.iter().position(|job| job.waits_for_token) {
            let mut job = self.jobs.swap_remove(at);
            let goes = match &refused {
                None => {
                    self.send_again(&mut job, step);
                    Ok(true)
                }
                Some(refused) => Err(job.ends_with(refused.clone())),
            };
            self.keep(job, goes, step);
        }
    }

    fn has_token(&mut self, token: Token) {
        self.token = Some(token);
        self.tokens = self.tokens.wrapping_add(1);
    }

    /// Whether a job asks the same once more, because its token was refused: with a newer one, which perhaps there is already.
    fn is_let_in_again(
        &mut self,
        job: &mut Job,
        outcome: &Result<HttpResponse, HttpFailure>,
        step: &mut Step,
    ) -> bool {
        let is_refused = outcome.as_ref().is_ok_and(is_of_token);
        let was_before = std::mem::replace(&mut job.is_let_in_again, is_refused);
        if !is_refused || was_before || job.over.is_some() || self.settings.principal.is_none() {
            return false;
        }
        self.refuse_token(job);
        self.send_again(job, step);
        true
    }

    /// The token that went with what a job asked is not used again.
    fn refuse_token(&mut self, job: &Job) {
        if job.token == self.tokens {
            self.token = None;
        }
    }

    fn ask(&mut self, job: &mut Job, stage: Stage, request: HttpRequest, step: &mut Step) -> Goes {
        (job.stage, job.tries) = (stage, 0);
        self.send(job, request, step);
        Ok(true)
    }

    /// Asks after a pause.
    fn ask_later(&mut self, job: &mut Job, ms: u32, step: &mut Step) -> Goes {
        (job.waits_for, job.is_paused) = (self.number(), true);
        job.waits_for_token = false;
        step.wake(job.waits_for, ms);
        Ok(true)
    }

    /// Begins the next statement of a job, or has it let in first.
    fn begin(&mut self, job: &mut Job, step: &mut Step) -> Goes {
        let now = step.now();
        self.token.take_if(|token| !token.is_good(now));
        let request = {
            let asked = job.work.statement(&self.settings, &job.limits);
            job.look = self.looks.begin(&asked.text);
            api::begin(&self.settings, &asked, &job.limits)
        };
        self.ask(job, Stage::Begin, request, step)
    }

    /// What a job does with an answer.
    fn heard(
        &mut self,
        job: &mut Job,
        outcome: Result<HttpResponse, HttpFailure>,
        step: &mut Step,
    ) -> Goes {
        if self.is_let_in_again(job, &outcome, step) {
            return Ok(true);
        }
        if let Stage::Stop(error) = &mut job.stage {
            let error = std::mem::replace(error, cancelled());
            return self.stopping(job, error, &outcome, step);
        }
        let begins = matches!(job.stage, Stage::Begin);
        if let Some(ms) = pauses::busy(&outcome, job.tries, begins)
            && job.over.is_none()
        {
            job.tries += 1;
            return self.ask_later(job, ms, step);
        }
        match self.answered(job, outcome, step) {
            Ok(goes) => Ok(goes),
            Err(error) => {
                let error = job.over.take().unwrap_or(error);
                self.stop(job, error, step)
            }
        }
    }

    /// An answer to what was asked.
    fn answered(
        &mut self,
        job: &mut Job,
        outcome: Result<HttpResponse, HttpFailure>,
        step: &mut Step,
    ) -> Goes {
        let response = outcome.map_err(|failure| {
            // Who cannot be reached cannot be told to stop it either.
            if !matches!(
                failure.fault,
                WireFault::BadResponse | WireFault::Timeout | WireFault::Reset
            ) {
                job.running = None;
            }
            broken(failure)
        })?;
        if response.status != 200 {
            let is_first = matches!(job.stage, Stage::Begin);
            if let 404 | 410 = response.status {
                job.running = None;
            }
            let error = refused(response, is_first);
            if error.class == ErrorClass::Authentication {
                self.refuse_token(job);
            }
            return Err(error);
        }
        match &job.stage {
            Stage::Chunk(id, number) => {
                let (id, number) = (id.clone(), *number);
                let chunk = reading::chunk(&response, self.wanted(job, step))?;
                self.chunk(job, &id, number, Some(&chunk), step)
            }
            _ => self.status(job, &response, step),
        }
    }

    /// Where the rows of an answer go while it is read.
    fn wanted<'s>(&'s mut self, job: &'s mut Job, step: &'s mut Step) -> Option<Wanted<'s>> {
        let Work::Query(reader) = &mut job.work else {
            return None;
        };
        let Reader {
            words: Some(words),
            reading,
            ..
        } = &mut **reader
        else {
            return None;
        };
        if job.over.is_some() {
            return None;
        }
        Some(Wanted {
            telling: Telling {
                id: job.id,
                limits: &job.limits,
                reading,
                shapes: &mut self.shapes,
                step,
            },
            exact: match words {
                Words::Own => None,
                Words::Exact(columns) => Some(&*columns),
            },
        })
    }

    /// How it is with a statement.
    fn status(&mut self, job: &mut Job, response: &HttpResponse, step: &mut Step) -> Goes {
        let (statement, told) = match reading::statement(response, self.wanted(job, step)) {
            Ok(statement) => (statement, Ok(())),
            // How it is with it may stand behind what is refused.
            Err(error) => (reading::statement(response, None)?, Err(error)),
        };
        let id = statement.id()?.to_owned();
        // Known before anything is refused: it is what a statement is stopped by.
        job.running = Some(id.clone());
        let state = statement.status.state()?;
        if state != State::Running {
            job.running = None;
        }
        if let Some(error) = job.over.take() {
            return Err(error);
        }
        match state {
            State::Running if statement.is_told || told.is_err() => {
                Err(malformed().detail("rows of a statement that runs"))
            }
            State::Running => {
                let ms = job.look.pause_ms();
                (job.stage, job.tries) = (Stage::Follow, 0);
                self.ask_later(job, ms, step)
            }
            State::Failed => self.failed(job, &statement.status, step),
            State::Canceled => Err(stopped()),
            State::Closed => Err(malformed().detail("a statement that was closed")),
            State::Succeeded => {
                self.looks.ended(&job.look);
                let manifest = statement.manifest.as_ref().ok_or_else(malformed)?;
                // Who does not say how many there are has none.
                job.rows = manifest.total_row_count().unwrap_or_default();
                job.taken = 0;
                if let Work::Query(reader) = &job.work {
                    match &reader.words {
                        None if manifest.is_truncated() => return Err(crate::types::too_long()),
                        None => {}
                        Some(_) => told?,
                    }
                } else if manifest.is_truncated() {
                    return Err(Error::too_many_rows(job.limits.rows_max));
                }
                self.chunk(job, &id, 0, statement.result.as_ref(), step)
            }
        }
    }

    fn failed(&mut self, job: &mut Job, status: &Status, step: &mut Step) -> Goes {
        if let Work::Ping {
            ping,
            is_probed: true,
        } = &mut job.work
        {
            let message = status.error.as_ref().map(|error| error.message.as_str());
            ping.refused(condition(message.unwrap_or_default()));
            return self.finished(job, step);
        }
        // Its columns were named by us.
        if matches!(&job.work, Work::Query(reader) if reader.is_in_other_words())
            && counts_columns(status)
        {
            return Err(columns_changed());
        }
        let values = match &job.work {
            Work::Query(reader) => reader.callers_values(),
            _ => &[],
        };
        Err(told(status, &self.settings.catalog, values))
    }

    /// Takes the rows of the chunk of this number, and asks for more where there are more.
    fn chunk(
        &mut self,
        job: &mut Job,
        id: &str,
        number: u32,
        chunk: Option<&Chunk<'_>>,
        step: &mut Step,
    ) -> Goes {
        match (&mut job.work, chunk) {
            // Others were told while they were read.
            (Work::Query(reader), Some(chunk)) if reader.words.is_none() => {
                reader.description.take(chunk)?;
            }
            (Work::Catalog(listing), chunk) => {
                listing.page(job.id, CATALOG_SHAPE, step, |fields| match chunk {
                    Some(chunk) => chunk.rows(|cells| fields.push(cells)),
                    None => Ok(()),
                })?;
            }
            (
                Work::Ping {
                    ping,
                    is_probed: false,
                },
                Some(chunk),
            ) => ping.take(chunk)?,
            (
                Work::Ping {
                    ping,
                    is_probed: true,
                },
                _,
            ) => {
                // Of which columns does not matter.
                ping.described();
                return self.finished(job, step);
            }
            _ => {}
        }
        job.taken += chunk.map_or(0, Chunk::taken);
        // Another chunk than was asked for, or one that leads elsewhere than to the next, or on and on, is not believed.
        let is_it = |chunk: &Chunk<'_>| chunk.index() == number;
        if !chunk.is_none_or(is_it) {
            return Err(malformed());
        }
        match chunk.and_then(Chunk::next) {
            None if job.rows != job.taken => Err(rows_missing()),
            None => self.finished(job, step),
            Some(next) if next != number + 1 || next > CHUNKS_MAX => Err(malformed()),
            Some(next) => {
                let request = api::chunk(id, next, &job.limits);
                self.ask(job, Stage::Chunk(id.to_owned(), next), request, step)
            }
        }
    }

    /// A statement has ended well: the next one of its request, or the end.
    fn finished(&mut self, job: &mut Job, step: &mut Step) -> Goes {
        match &mut job.work {
            Work::Query(reader) if reader.words.is_none() => {
                let description = std::mem::take(&mut reader.description);
                if description.columns.is_empty() {
                    return Err(malformed());
                }
                description.is_exact()?;
                let (plain, values) = (&reader.read.plain, &reader.statement.values);
                reader.words = Some(match description.is_plain() {
                    true => {
                        plain.give(values, job.now);
                        Words::Own
                    }
                    false => {
                        plain.withdraw(values);
                        Words::Exact(description)
                    }
                });
                self.begin(job, step)
            }
            Work::Ping { ping, is_probed } if !*is_probed => {
                ping.fits(&self.settings)?;
                *is_probed = true;
                self.begin(job, step)
            }
            _ => Ok(false),
        }
    }

    /// Nobody waits for a job any more.
    fn gives_up(&mut self, job: &mut Job, error: Error, step: &mut Step) -> Goes {
        match job.stage {
            Stage::Stop(_) => Ok(true),
            // Its id comes with the answer.
            Stage::Begin if !job.is_paused => {
                job.over = Some(error);
                Ok(true)
            }
            _ => self.stop(job, error, step),
        }
    }

    /// Stops the statement that runs; without one there is nothing left to do.
    fn stop(&mut self, job: &mut Job, error: Error, step: &mut Step) -> Goes {
        match &job.running {
            Some(id) => {
                let request = api::stop(id);
                self.ask(job, Stage::Stop(error), request, step)
            }
            None => Err(error),
        }
    }

    /// The answer to what stops a statement. One that is not known has ended.
    fn stopping(
        &mut self,
        job: &mut Job,
        error: Error,
        outcome: &Result<HttpResponse, HttpFailure>,
        step: &mut Step,
    ) -> Goes {
        let is_told = outcome.as_ref().is_ok_and(|response| response.status < 429);
        job.tries += 1;
        match is_told || job.tries == STOP_TRIES {
            true => Err(error),
            false => {
                job.stage = Stage::Stop(error);
                self.ask_later(job, STOP_PAUSE_MS, step)
            }
        }
    }
}
