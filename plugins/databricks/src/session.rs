//! A session: any number of requests under way, each of which becomes one statement after another.
//!
//! A query is described first (`DESCRIBE QUERY`), unless this session knows it, and then run. Each statement is begun (`Begin`), which says
//! its id at once, asked after until it has ended (`Follow`), and read to its last chunk (`Chunk`). One that runs and that nobody waits for
//! any more is stopped by its id (`Stop`). A service principal's token is fetched once for all who wait for it, where there is none that is
//! good, and once more where Databricks refuses it.

mod hearing;

use souk_sdk::http::{Heard, Request as HttpRequest};
use souk_sdk::looks::{Look, Looks};
use souk_sdk::results::{SHAPES_MAX, Shapes};
use souk_sdk::texts::Texts;
use souk_sdk::{
    Descriptor, Error, ErrorClass, HttpFailure, HttpResponse, Input, Machine, Need, Request, Step,
};

use crate::answers::broken;
use crate::errors::{cancelled, is_of_changed_columns, is_of_token, not_begun, out_of_time};
use crate::jobs::{Job, Stage, Work};
use crate::settings::{self, Settings};
use crate::statements::Read;
use crate::token::{self, Token};
use crate::types::Sent;
use crate::{api, pauses};

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
            .abilities(&[
                "schema",
                "pipelining",
                "cancel",
                "singles:float",
                "unsorted:geography",
                "unsorted:geometry",
                // They leave as texts. (Others of the dialect compare all that they have with one.)
                "uncompared:interval",
                "uncompared:geography",
                "uncompared:geometry",
                "no-such-operator:DATATYPE_MISMATCH",
            ])
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
                    is_pending: false,
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
                if let Work::Query(reader) = &job.work {
                    // Others who ask the same may have its description still, and it may be of something else by now. Who has not answered, or is
                    // busy, says nothing of that.
                    let is_undescribed = reader.words.is_none()
                        && !job.is_cancelled
                        && !matches!(
                            error.class,
                            ErrorClass::Unavailable | ErrorClass::Timeout | ErrorClass::RateLimited
                        );
                    if is_undescribed || is_of_changed_columns(&error) {
                        reader.read.plain.withdraw(&reader.statement.values);
                    }
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
                Some(0) => {
                    let late = match job.is_pending {
                        true => not_begun(),
                        false => out_of_time(),
                    };
                    self.gives_up(&mut job, late, step)
                }
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
}
