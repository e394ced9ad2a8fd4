//! A session: it is let in once, and then has any number of requests under way.
//!
//! A statement goes dry first (`DryRun`), unless this session remembers that it is a `SELECT`. Then it is asked (`Run`): the answer is the first page of its
//! rows, or the name of a job that is waited for. A job that nobody waits for any more is cancelled by its name.

use std::rc::Rc;

use souk_sdk::http::Heard;
use souk_sdk::json::{Reading, Telling};
use souk_sdk::results::{SHAPES_MAX, Shapes};
use souk_sdk::texts::{Proof, Texts};
use souk_sdk::{
    Descriptor, Error, ErrorClass, HttpFailure, HttpResponse, Input, Limits, Machine, Need, Query,
    Request, Rows, Step,
};

use crate::answers::{Datasets, Job as DryJob, JobReference, answer, malformed, read};
use crate::api::Api;
use crate::catalog::Catalog;
use crate::reading;
use crate::settings::{self, Settings};
use crate::types::Type;

/// The kind of statement that only reads.
const SELECT: &str = "SELECT";
/// How long BigQuery may take to let a session in.
const HELLO_MS: u32 = 10_000;
/// How long it may take to cancel a job: less than the host waits for the end of a request that was cancelled.
const CANCEL_MS: u32 = 1_500;
/// How long to wait before a job that is not complete is asked after again, since BigQuery need not let a request wait as long as it may: twice
/// as long each time, up to a second.
const PAUSE_MS: u32 = 50;
const PAUSE_MAX_MS: u32 = 1_000;
/// Numbers that no shape of a result has.
const PING_SHAPE: u32 = SHAPES_MAX as u32;
const CATALOG_SHAPE: u32 = PING_SHAPE + 1;

pub struct Session {
    api: Api,
    last: u32,
    /// Which texts BigQuery has said to be a `SELECT`. A dry run tells the kind of a text, and that is in the text alone, whatever its names stand for.
    texts: Texts<Proof>,
    shapes: Shapes<Type>,
    jobs: Vec<Job>,
}

/// A request of the host's that is under way, or the session's own.
struct Job {
    id: u32,
    /// The HTTP request or the pause that it waits for.
    waits_for: u32,
    work: Work,
}

enum Work {
    Hello,
    Ping,
    DryRun(Query, Rc<Proof>),
    Run(Run),
    /// Of a catalog, the datasets.
    Listing(Box<Catalog>),
    /// Its job is being cancelled, because of this. What was waited for before may come, too, and is not heard.
    Cancelling(Error),
}

/// A statement that was asked.
struct Run {
    query: Query,
    job: Option<JobReference>,
    /// Only rows are left to be read.
    has_ended: bool,
    pause_ms: u32,
    into: Sink,
    is_cancelled: bool,
}

/// Where its rows go. (A catalog is large, and what is under way is handed from one to the other.)
enum Sink {
    Result(Reading<Type>),
    Catalog(Box<Catalog>),
}

/// What it waits for then, as what; `None` where it has ended.
type Next = Option<(u32, Work)>;

impl Machine for Session {
    fn describe() -> Descriptor {
        Descriptor::new("bigquery", env!("CARGO_PKG_VERSION"), Need::Http)
            .engine("bigquery", "BigQuery", "bigquery", &["SERVICE_ACCOUNT"])
            .settings_schema(settings::SCHEMA)
            .abilities(&["schema", "pipelining", "cancel"])
    }

    fn open(settings: souk_sdk::Settings) -> Result<Session, Error> {
        Ok(Session {
            api: Api::new(Settings::parse(&settings)?)?,
            last: 0,
            texts: Texts::default(),
            shapes: Shapes::default(),
            jobs: Vec::new(),
        })
    }

    /// Whether the account is one, and may run statements in its project.
    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        self.api.signer.renew(step.now())?;
        let waits_for = self.number();
        step.request(self.api.dry_run(waits_for, &nothing(HELLO_MS))?);
        let (id, work) = (0, Work::Hello);
        self.jobs.push(Job {
            id,
            waits_for,
            work,
        });
        Ok(())
    }

    fn submit(&mut self, id: u32, request: Request, step: &mut Step) -> Result<(), Error> {
        self.api.signer.renew(step.now())?;
        let begun = match request {
            Request::Query(query) => self.query(query, step),
            Request::Schema(filter) => self.list(Box::new(Catalog::new(filter)), None, step),
            Request::Ping(limits) => self.ping(limits, step),
            Request::Call(_) => Err(Error::unsupported("functions")),
            Request::Errand(_) => Err(Error::unsupported("errands")),
        };
        self.goes_on(id, begun, step);
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
        let Job { id, work, .. } = self.jobs.swap_remove(at);
        match (work, heard) {
            (Work::Hello, Heard::Answer(outcome)) => {
                is_select(outcome, None)?;
                step.ready();
            }
            (work, heard) => {
                let next = self.heard(id, work, heard, step);
                self.goes_on(id, next, step);
            }
        }
        Ok(())
    }

    /// The job is cancelled by a request of its own; until that is answered the one that was cancelled has not ended. Where BigQuery has not
    /// said the job's name yet, it is about to.
    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        let is_it = |job: &Job| job.id == id && !matches!(job.work, Work::Hello);
        let Some(at) = self.jobs.iter().position(is_it) else {
            return Ok(());
        };
        match &mut self.jobs[at].work {
            Work::Cancelling(_) => {}
            Work::Run(run) => match run.job.take() {
                Some(job) => {
                    let next = self.stop(&job, cancelled(), step);
                    self.jobs.swap_remove(at);
                    self.goes_on(id, Ok(next), step);
                }
                None => run.is_cancelled = true,
            },
            _ => {
                self.jobs.swap_remove(at);
                step.failed(id, cancelled());
            }
        }
        Ok(())
    }
}

impl Session {
    fn goes_on(&mut self, id: u32, next: Result<Next, Error>, step: &mut Step) {
        match next {
            Ok(Some((waits_for, work))) => self.jobs.push(Job {
                id,
                waits_for,
                work,
            }),
            Ok(None) => step.done(id),
            Err(error) => step.failed(id, error),
        }
    }

    fn heard(&mut self, id: u32, work: Work, heard: Heard, step: &mut Step) -> Result<Next, Error> {
        match (work, heard) {
            (Work::Cancelling(because), _) => Err(because),
            (Work::Run(run), Heard::PauseIsOver) => self.results(run, None, step),
            (Work::Run(run), Heard::Answer(outcome)) => self.ran(id, run, outcome, step),
            (Work::DryRun(query, proof), Heard::Answer(outcome)) => {
                is_select(outcome, Some(&query))?;
                proof.give(step.now());
                self.ask(query, None, Sink::Result(Reading::default()), step)
            }
            (Work::Listing(mut catalog), Heard::Answer(outcome)) => {
                let response = answer(outcome, None)?;
                let mut page: Datasets = read(&response)?;
                let next = page.next_page_token.take();
                catalog.listed(page)?;
                match next.filter(|token| !token.is_empty()) {
                    Some(token) => self.list(catalog, Some(&token), step),
                    None => self.look(id, catalog, step),
                }
            }
            (Work::Ping, Heard::Answer(outcome)) => {
                answer(outcome, None)?;
                // It has no version, and refuses no write by itself.
                step.pong(id, PING_SHAPE, None, None);
                Ok(None)
            }
            (Work::Hello | Work::Ping | Work::DryRun(..) | Work::Listing(_), _) => Err(malformed()),
        }
    }

    /// A number for an HTTP request or a pause.
    fn number(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.last
    }

    fn query(&mut self, query: Query, step: &mut Step) -> Result<Next, Error> {
        let proof = self.texts.read(&query.text, |_| Ok(Proof::for_good()))?;
        if proof.holds(step.now()) {
            return self.ask(query, None, Sink::Result(Reading::default()), step);
        }
        let http = self.number();
        step.request(self.api.dry_run(http, &query)?);
        Ok(Some((http, Work::DryRun(query, proof))))
    }

    /// The dataset that statements begin in, or whatever else proves that BigQuery answers.
    fn ping(&mut self, limits: Limits, step: &mut Step) -> Result<Next, Error> {
        let http = self.number();
        let request = match self.api.dataset(http, limits.timeout_ms) {
            Some(request) => request,
            None => self.api.dry_run(http, &nothing(limits.timeout_ms))?,
        };
        step.request(request);
        Ok(Some((http, Work::Ping)))
    }

    fn list(
        &mut self,
        catalog: Box<Catalog>,
        page: Option<&str>,
        step: &mut Step,
    ) -> Result<Next, Error> {
        let http = self.number();
        let timeout_ms = catalog.limits().timeout_ms;
        step.request(self.api.datasets(http, page, timeout_ms));
        Ok(Some((http, Work::Listing(catalog))))
    }

    /// Asks for what is in the datasets that are left, or tells all.
    fn look(&mut self, id: u32, mut catalog: Box<Catalog>, step: &mut Step) -> Result<Next, Error> {
        match catalog.statement(&self.api.project) {
            Some((query, location)) => {
                self.ask(query, location.as_deref(), Sink::Catalog(catalog), step)
            }
            None => {
                let batch = catalog.batch()?;
                step.columns(id, CATALOG_SHAPE, Some(Rows::schema_columns()));
                step.batch(id, batch);
                Ok(None)
            }
        }
    }

    fn ask(
        &mut self,
        query: Query,
        location: Option<&str>,
        into: Sink,
        step: &mut Step,
    ) -> Result<Next, Error> {
        let http = self.number();
        step.request(self.api.query(http, &query, location)?);
        let run = Run {
            query,
            job: None,
            has_ended: false,
            pause_ms: PAUSE_MS,
            into,
            is_cancelled: false,
        };
        Ok(Some((http, Work::Run(run))))
    }

    /// Waits for a job's end, or goes on reading its rows at `page`.
    fn results(&mut self, run: Run, page: Option<&str>, step: &mut Step) -> Result<Next, Error> {
        let http = self.number();
        let job = run.job.as_ref().ok_or_else(malformed)?;
        step.request(self.api.results(http, job, page, &run.query.limits));
        Ok(Some((http, Work::Run(run))))
    }

    fn ran(
        &mut self,
        id: u32,
        mut run: Run,
        outcome: Result<HttpResponse, HttpFailure>,
        step: &mut Step,
    ) -> Result<Next, Error> {
        let is_unheard = may_go_on(&outcome);
        let asked = match run.into {
            Sink::Result(_) => Some(&run.query),
            Sink::Catalog(_) => None,
        };
        let response = match (answer(outcome, asked), &run.job) {
            (Ok(response), _) => response,
            // Nobody asks after it any more, and what it does is paid for.
            (Err(error), Some(job)) if !run.has_ended && (is_unheard || is_busy(&error)) => {
                return Ok(self.stop(job, error, step));
            }
            (Err(error), _) => return Err(error),
        };
        let telling = match &mut run.into {
            Sink::Result(reading) if !run.is_cancelled => Some(Telling {
                id,
                limits: &run.query.limits,
                reading,
                shapes: &mut self.shapes,
                step,
            }),
            _ => None,
        };
        let results = match (reading::page(&response, telling), &run.job) {
            (Ok(results), _) => results,
            // What is refused may be no more than a row of one that is complete.
            (Err(error), Some(job)) if !run.has_ended && !is_over(&response) => {
                return Ok(self.stop(job, error, step));
            }
            (Err(error), _) => return Err(error),
        };
        if !results.is_last() {
            run.job = results.job()?.or(run.job);
        }
        if run.is_cancelled {
            return match (results.is_complete(), &run.job) {
                (false, Some(job)) => Ok(self.stop(job, cancelled(), step)),
                _ => Err(cancelled()),
            };
        }
        if !results.is_complete() {
            // Without a name nobody can ask after it.
            run.job.as_ref().ok_or_else(malformed)?;
            let pause = self.number();
            step.wake(pause, run.pause_ms);
            run.pause_ms = (2 * run.pause_ms).min(PAUSE_MAX_MS);
            return Ok(Some((pause, Work::Run(run))));
        }
        if let Sink::Catalog(catalog) = &mut run.into {
            catalog.read(&results.kept()?)?;
        }
        run.has_ended = true;
        let page = results.page_token.filter(|token| !token.is_empty());
        match (page, run.into) {
            (Some(page), into) => self.results(Run { into, ..run }, Some(&page), step),
            (None, Sink::Result(_)) => Ok(None),
            (None, Sink::Catalog(catalog)) => self.look(id, catalog, step),
        }
    }

    fn stop(&mut self, job: &JobReference, because: Error, step: &mut Step) -> Next {
        let http = self.number();
        step.request(self.api.cancel(http, job, CANCEL_MS));
        Some((http, Work::Cancelling(because)))
    }
}

/// Whether a job may be at work that was asked after and of which nothing was heard.
fn may_go_on(outcome: &Result<HttpResponse, HttpFailure>) -> bool {
    match outcome {
        Ok(response) => matches!(response.status, 408 | 429 | 500..),
        Err(_) => true,
    }
}

/// Whether an answer says that its job is complete.
fn is_over(response: &HttpResponse) -> bool {
    let page = reading::page(response, None);
    page.is_ok_and(|results| results.is_complete())
}

/// Whether it is that BigQuery has no time for who asks (403, with a reason), which says nothing of the job.
fn is_busy(error: &Error) -> bool {
    matches!(
        error.class,
        ErrorClass::RateLimited | ErrorClass::Unavailable
    )
}

/// The least that can be asked.
fn nothing(timeout_ms: u32) -> Query {
    Query {
        text: "SELECT 1".to_owned(),
        parameters: Vec::new(),
        limits: Limits {
            rows_max: 1,
            bytes_max: 1,
            timeout_ms,
        },
    }
}

/// Whether a dry run says that the statement only reads. `query`: the caller's.
fn is_select(
    outcome: Result<HttpResponse, HttpFailure>,
    query: Option<&Query>,
) -> Result<(), Error> {
    let response = answer(outcome, query)?;
    let job: DryJob = read(&response)?;
    match job.statement_type() {
        Some(SELECT) => Ok(()),
        Some(other) => Err(Error::permission(
            "read_only",
            "connections are read-only: the statement must be one query, which begins with SELECT or WITH",
        )
        .source_code(other)),
        None => Err(malformed()),
    }
}

fn cancelled() -> Error {
    Error::timeout("cancelled", "the statement was cancelled")
}
