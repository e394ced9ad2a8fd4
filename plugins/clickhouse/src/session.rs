//! A session: it says who it is, asks what the server is, and then has any number of requests under way.

use souk_sdk::json::Place;
use souk_sdk::parameters::callers;
use souk_sdk::results::{SHAPES_MAX, Shape, Shapes, Told, value_bytes_max};
use souk_sdk::statements::{Places, callers_values};
use souk_sdk::texts::Texts;
use souk_sdk::{
    Batch, Column, Descriptor, Error, ErrorClass, HttpFailure, HttpRequest, HttpResponse, Input,
    Limits, Machine, Need, Query, Request, Step, Value, WireFault, short,
};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::rc::Rc;

use crate::api::{Api, FORMAT, Profile, texts};
use crate::errors::ServerError;
use crate::head::head;
use crate::settings::{self, Settings};
use crate::types::{TYPES_MAX, Type};
use crate::values::{Reader, are_texts, push};
use crate::{catalog, statements};

/// How long the server may take to say what it is.
const HELLO_MS: u32 = 10_000;
/// How long it may take to stop a statement: less than the host waits for the end of one that was cancelled.
const KILL_MS: u32 = 1_500;
/// Requests that the host lets a session make at once. Nobody can take one back: of a statement that was given up it is among them until the server has
/// answered it, or its time is over.
const REQUESTS_MAX: usize = 128;
/// Statements that are being stopped at once: what a host's 64 in flight leave of those. What is beyond ends at the server by its own limits.
const KILLS_MAX: usize = 64;
const HELLO: &str = "SELECT version(), toString(getSetting('readonly'))";
/// A write to a table that every server has, and that takes none: whoever may write is told that ([`NOT_TAKEN`]) and nothing else. (`null()`
/// would take it, but with `readonly=2` inserting into a table function is no write.)
const PROBE: &str = "INSERT INTO system.one SELECT 1";
const NOT_TAKEN: u32 = 48;
/// What it refuses for want of a privilege.
const NO_RIGHT: u32 = 497;
/// What its owner is told of a connection whose user may stop nothing. The server looks for a user's own statements in that table.
const STOPS_NOTHING: &str = "the server stops no statement for this user, so that one that nobody waits for any more runs there until its time is over: GRANT SELECT(query_id, user, query) ON system.processes to it";
/// Of a ping's answer, and of one with a warning: no shape of a result has these numbers.
const PING_SHAPE: u32 = SHAPES_MAX as u32;
const WARNING_SHAPE: u32 = PING_SHAPE + 1;
/// The first version that writes JSON as text.
const WRITES_JSON: (u32, u32) = (24, 10);

pub struct Session {
    api: Api,
    /// Of the names that statements have at the server: nobody else's are like them.
    prefix: String,
    last_id: u32,
    version: String,
    jobs: Vec<Job>,
    /// How many requests the host is carrying out, also those whose end is for nobody.
    under_way: usize,
    /// Those of them that stop statements.
    kills: Vec<u32>,
    texts: Texts<Places>,
    shapes: Shapes<Type>,
}

/// A request to the server that is under way.
struct Job {
    http: u32,
    work: Work,
}

enum Work {
    Hello,
    Query(Asked),
    Ping {
        id: u32,
        /// Whether a write was refused. When that is known, it is tried to stop something.
        is_read_only: Option<bool>,
    },
    /// It is being stopped for a request that was cancelled: whichever of the two ends first ends that.
    Kill {
        id: u32,
    },
}

struct Asked {
    id: u32,
    query_id: String,
    limits: Limits,
    /// As it was asked: an error is held against the caller's values.
    text: String,
    values: Vec<Value>,
    is_cancelled: bool,
}

impl Machine for Session {
    fn describe() -> Descriptor {
        Descriptor::new("clickhouse", env!("CARGO_PKG_VERSION"), Need::Http)
            .engine(
                "clickhouse",
                "ClickHouse",
                "clickhouse",
                &["PASSWORD", "API_KEY"],
            )
            .settings_schema(settings::SCHEMA)
            .abilities(&["schema", "pipelining", "cancel"])
    }

    fn open(settings: souk_sdk::Settings) -> Result<Session, Error> {
        let random = || RandomState::new().build_hasher().finish();
        Ok(Session {
            api: Api::new(Settings::parse(&settings)?),
            prefix: format!("souk-{:016x}{:016x}", random(), random()),
            last_id: 0,
            version: String::new(),
            jobs: Vec::new(),
            under_way: 0,
            kills: Vec::new(),
            texts: Texts::default(),
            shapes: Shapes::default(),
        })
    }

    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        let (http, query_id) = self.next();
        let hello = self.api.own(http, &query_id, HELLO, HELLO_MS, false);
        self.send(hello, step);
        self.jobs.push(Job {
            http,
            work: Work::Hello,
        });
        Ok(())
    }

    fn submit(&mut self, id: u32, request: Request, step: &mut Step) -> Result<(), Error> {
        let begun = match request {
            Request::Query(query) => self.query(id, query, step),
            Request::Schema(filter) => {
                let (text, parameters) = catalog::statement(&filter);
                let limits = filter.limits;
                let query = Query {
                    text,
                    parameters,
                    limits,
                };
                self.query(id, query, step)
            }
            Request::Ping(limits) => self.ping(id, limits.timeout_ms, step),
            Request::Call(_) => Err(Error::unsupported("functions")),
            Request::Errand(_) => Err(Error::unsupported("errands")),
        };
        if let Err(error) = begun {
            step.failed(id, error);
        }
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        let (http, outcome) = match input {
            Input::Response(response) => (response.id, Ok(response)),
            Input::RequestFailed(failure) => (failure.id, Err(failure)),
            // An API has no wire of its own, and nothing else was asked for.
            _ => return Ok(()),
        };
        self.under_way = self.under_way.saturating_sub(1);
        self.kills.retain(|kill| *kill != http);
        // What nobody waits for any more is not known.
        let Some(at) = self.jobs.iter().position(|job| job.http == http) else {
            return Ok(());
        };
        match self.jobs.swap_remove(at).work {
            Work::Hello => self.greeted(outcome, step),
            Work::Query(asked) => {
                self.forget(|work| matches!(work, Work::Kill { id } if *id == asked.id));
                // ClickHouse goes on with what nobody takes. Nobody waits for the end of it.
                if may_go_on(&outcome) && !asked.is_cancelled {
                    self.kill(&asked.query_id, step);
                }
                if let Err(error) = self.answered(&asked, outcome, step) {
                    step.failed(asked.id, error);
                }
                Ok(())
            }
            Work::Ping { id, is_read_only } => {
                match is_read_only {
                    None => match self.probed(outcome) {
                        Ok(is_read_only) => self.try_to_stop(id, is_read_only, step),
                        Err(error) => step.failed(id, error),
                    },
                    Some(is_read_only) => self.pong(id, is_read_only, may_stop(&outcome), step),
                }
                Ok(())
            }
            Work::Kill { id } => {
                self.forget(|work| matches!(work, Work::Query(asked) if asked.id == id));
                step.failed(id, cancelled());
                Ok(())
            }
        }
    }

    /// The statement is stopped at the server, by a request of its own; until that is answered the one that was cancelled has not ended.
    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        let found = self.jobs.iter_mut().find_map(|job| match &mut job.work {
            Work::Query(asked) if asked.id == id => Some(asked),
            _ => None,
        });
        if let Some(asked) = found {
            if std::mem::replace(&mut asked.is_cancelled, true) {
                return Ok(());
            }
            let statement = asked.query_id.clone();
            match self.kill(&statement, step) {
                Some(http) => self.jobs.push(Job {
                    http,
                    work: Work::Kill { id },
                }),
                // Nobody could wait for the end of it: the host gives a session up, with all that others ask of it, in which one takes long to end.
                None => {
                    self.forget(|work| matches!(work, Work::Query(asked) if asked.id == id));
                    step.failed(id, cancelled());
                }
            }
            return Ok(());
        }
        let is_it = |work: &Work| matches!(work, Work::Ping { id: ping, .. } if *ping == id);
        if self.jobs.iter().any(|job| is_it(&job.work)) {
            self.forget(is_it);
            step.failed(id, cancelled());
        }
        Ok(())
    }
}

impl Session {
    /// A number for an HTTP request, and a name for its statement.
    fn next(&mut self) -> (u32, String) {
        self.last_id = self.last_id.wrapping_add(1);
        (self.last_id, format!("{}-{}", self.prefix, self.last_id))
    }

    fn send(&mut self, request: HttpRequest, step: &mut Step) {
        self.under_way += 1;
        step.request(request);
    }

    /// Whether a statement may be asked for.
    fn room(&self) -> Result<(), Error> {
        match self.under_way < REQUESTS_MAX {
            true => Ok(()),
            false => Err(Error::new(
                ErrorClass::Unavailable,
                "unanswered",
                "the server has not answered 128 requests, statements that were given up among them: wait until it answers",
            )),
        }
    }

    /// Asks for a statement to be stopped. Returns the number of that request; none where too many are under way.
    fn kill(&mut self, statement: &str, step: &mut Step) -> Option<u32> {
        if self.kills.len() >= KILLS_MAX || self.under_way >= REQUESTS_MAX {
            return None;
        }
        let text = format!("KILL QUERY WHERE query_id = '{statement}' ASYNC");
        let (http, query_id) = self.next();
        let kill = self.api.own(http, &query_id, &text, KILL_MS, false);
        self.send(kill, step);
        self.kills.push(http);
        Some(http)
    }

    fn forget(&mut self, mut which: impl FnMut(&Work) -> bool) {
        self.jobs.retain(|job| !which(&job.work));
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        self.room()?;
        let places = self.texts.read(&query.text, statements::read)?;
        let text = statements::prepare(&query.text, &places, &query.parameters)?;
        let values = texts(&query.parameters)?;
        let (http, query_id) = self.next();
        let api = &self.api;
        let request = api.query(http, &query_id, text, &values, &query.limits);
        self.send(request, step);
        self.jobs.push(Job {
            http,
            work: Work::Query(Asked {
                id,
                query_id,
                limits: query.limits,
                text: query.text,
                values: query.parameters,
                is_cancelled: false,
            }),
        });
        Ok(())
    }

    fn ping(&mut self, id: u32, timeout_ms: u32, step: &mut Step) -> Result<(), Error> {
        self.room()?;
        let (http, query_id) = self.next();
        let probe = self.api.own(http, &query_id, PROBE, timeout_ms, true);
        self.send(probe, step);
        let is_read_only = None;
        self.jobs.push(Job {
            http,
            work: Work::Ping { id, is_read_only },
        });
        Ok(())
    }

    /// Tries to stop a statement that there is not: the server refuses who may not look for it.
    fn try_to_stop(&mut self, id: u32, is_read_only: bool, step: &mut Step) {
        let (_, absent) = self.next();
        let Some(http) = self.kill(&absent, step) else {
            // As many are being stopped as may be: nothing speaks against it.
            return self.pong(id, is_read_only, true, step);
        };
        let is_read_only = Some(is_read_only);
        self.jobs.push(Job {
            http,
            work: Work::Ping { id, is_read_only },
        });
    }

    fn pong(&self, id: u32, is_read_only: bool, may_stop: bool, step: &mut Step) {
        let (version, is_read_only) = (Some(self.version.as_str()), Some(is_read_only));
        match may_stop {
            true => step.pong(id, PING_SHAPE, version, is_read_only),
            false => {
                step.pong_warning(id, WARNING_SHAPE, version, is_read_only, STOPS_NOTHING);
            }
        }
        step.done(id);
    }

    /// What the server is, and how much its user's profile leaves to us.
    fn greeted(
        &mut self,
        outcome: Result<HttpResponse, HttpFailure>,
        step: &mut Step,
    ) -> Result<(), Error> {
        let response = answer(outcome).map_err(Refused::blame)?;
        let mut reader = Reader(&response.body);
        let columns = head(&mut reader)?;
        let [(_, version_type), (_, readonly_type)] = columns[..] else {
            return Err(no_clickhouse());
        };
        if [version_type, readonly_type] != ["String", "String"] {
            return Err(no_clickhouse());
        }
        let version = String::from_utf8_lossy(reader.sized()?).into_owned();
        self.api.profile = match reader.sized()? {
            b"0" => Profile::Free,
            b"1" => Profile::Fixed,
            _ => Profile::ReadOnly,
        };
        let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
        let version_number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        self.api.writes_json = version_number >= WRITES_JSON;
        self.version = version;
        step.ready();
        Ok(())
    }

    /// Whether the server refused to write.
    fn probed(&self, outcome: Result<HttpResponse, HttpFailure>) -> Result<bool, Error> {
        let response = outcome?;
        match (response.status, ServerError::of(&response)) {
            (_, Some(error)) if error.is_forbidden() => Ok(true),
            (_, Some(error)) if error.code == NOT_TAKEN => Ok(false),
            (_, Some(error)) => Err(error.blame(None)),
            (200, None) => Ok(false),
            (_, None) => Err(foreign(response)),
        }
    }

    /// Takes an answer apart: all of it, or nothing of it is told.
    fn answered(
        &mut self,
        asked: &Asked,
        outcome: Result<HttpResponse, HttpFailure>,
        step: &mut Step,
    ) -> Result<(), Error> {
        if asked.is_cancelled {
            return Err(cancelled());
        }
        let response = answer(outcome).map_err(|refused| {
            let has_callers = callers_values(&asked.text, asked.values.len()) > 0;
            let callers = has_callers.then(|| callers(&asked.text, &asked.values));
            refused.of_statement(callers.as_deref())
        })?;
        let shape = self.shape(&response.body)?;
        let batches = decode(
            &shape,
            &response.body[shape.described().len()..],
            &asked.limits,
        )?;
        step.columns(asked.id, shape.number, shape.columns.describe());
        for batch in batches {
            step.batch(asked.id, batch);
        }
        step.done(asked.id);
        Ok(())
    }

    /// The shape that an answer begins with: one that is known, or a new one.
    fn shape(&mut self, body: &[u8]) -> Result<Rc<Shape<Type>>, Error> {
        if let Some(known) = self.shapes.find(|head| short::begins_with(body, head)) {
            return Ok(known);
        }
        let json_as_text = self.api.json_as_text();
        let mut reader = Reader(body);
        let described = head(&mut reader)?;
        let length = body.len() - reader.0.len();
        let (mut columns, mut types, mut room) = (Vec::new(), Vec::new(), TYPES_MAX);
        for (name, native) in described {
            let kind = Type::parse(native, json_as_text, &mut room)?;
            columns.push(Column {
                name: name.to_owned(),
                kind: kind.column_type(),
                nullable: kind.is_nullable(),
                native: native.to_owned(),
            });
            types.push(kind);
        }
        Ok(self.shapes.add(&body[..length], columns, types))
    }
}

/// Whether a statement may be at work whose answer did not come, or not whole.
fn may_go_on(outcome: &Result<HttpResponse, HttpFailure>) -> bool {
    match outcome {
        // A proxy has given it up, which ClickHouse hears of no more than of us.
        Ok(response) => matches!(response.status, 502 | 504),
        Err(failure) => matches!(
            failure.fault,
            WireFault::Timeout | WireFault::Reset | WireFault::BadResponse
        ),
    }
}

/// Whether statements may be stopped, as far as an answer to that says.
fn may_stop(outcome: &Result<HttpResponse, HttpFailure>) -> bool {
    let refused = outcome.as_ref().ok().and_then(ServerError::of);
    refused.is_none_or(|error| error.code != NO_RIGHT)
}

fn cancelled() -> Error {
    Error::timeout("cancelled", "the statement was cancelled")
}

fn no_clickhouse() -> Error {
    Error::source_failed(
        "no_clickhouse",
        "what answers at the connection's address is not ClickHouse's HTTP interface, which has the port 8123, or 8443 with https: 9000 and 9440 speak another protocol",
    )
}

/// What a response that is neither an answer nor an error of ClickHouse's says by its status: a proxy's, mostly. Nobody who calls has sent anything wrong.
fn foreign(response: HttpResponse) -> Error {
    let status = response.status;
    match response.classified() {
        Err(error) if !matches!(status, 400 | 422) => error,
        Err(error) => Error {
            detail: error.detail,
            source_code: error.source_code,
            ..no_clickhouse()
        },
        Ok(_) => no_clickhouse(),
    }
}

/// Why there are no rows.
enum Refused {
    /// The server says so.
    Told(ServerError),
    Failed(Error),
}

impl Refused {
    /// The error of the contract. `callers`: the caller's values, of a statement that has any.
    fn of_statement(self, callers: Option<&[String]>) -> Error {
        match self {
            Refused::Told(error) => error.of_statement(callers),
            Refused::Failed(error) => error,
        }
    }

    fn blame(self) -> Error {
        match self {
            Refused::Told(error) => error.blame(None),
            Refused::Failed(error) => error,
        }
    }
}

/// A response that holds rows and nothing else.
fn answer(outcome: Result<HttpResponse, HttpFailure>) -> Result<HttpResponse, Refused> {
    let within = "33 MiB or what the request's limits leave room for";
    let response = outcome.map_err(|failure| Refused::Failed(failure.within(within)))?;
    let has_code = response.header("x-clickhouse-exception-code").is_some();
    if response.status != 200 || has_code {
        return Err(match ServerError::of(&response) {
            Some(error) => Refused::Told(error),
            None => Refused::Failed(foreign(response)),
        });
    }
    let tag = response.header("x-clickhouse-exception-tag");
    if let Some(error) = ServerError::behind(&response.body, tag) {
        return Err(Refused::Told(error));
    }
    let wrong = match response.header("x-clickhouse-format") {
        Some(FORMAT) | None if says_its_end(&response) => return Ok(response),
        Some(FORMAT) | None => Error::source_failed(
            "bad_answer_without_end",
            "the answer does not say where it ends, so that a part of it could be taken for the whole: a proxy before ClickHouse must keep Content-Length or chunks",
        ),
        Some(_) => Error::source_failed(
            "other_format",
            "the statement chooses a format of its own: leave FORMAT out",
        ),
    };
    Err(Refused::Failed(wrong))
}

/// Whether an answer says where it ends. No mark stands behind its last row: of one that ends with its connection, as of HTTP/1.0, whatever has arrived
/// looks like the whole.
fn says_its_end(response: &HttpResponse) -> bool {
    let mut names = ["content-length", "transfer-encoding"].into_iter();
    names.any(|name| response.header(name).is_some())
}

/// The rows, in batches.
fn decode(shape: &Shape<Type>, body: &[u8], limits: &Limits) -> Result<Vec<Batch>, Error> {
    let mut reader = Reader(body);
    let room = value_bytes_max(limits);
    let (mut told, mut batches) = (Told::default(), Vec::new());
    let mut rows = told.page(shape, limits);
    while !reader.0.is_empty() {
        batches.extend(
            rows.row(|_, kind, column| push(kind, &mut reader, &mut Place { column, room }))?,
        );
    }
    batches.extend(rows.rest());
    batches.iter().try_for_each(are_texts)?;
    Ok(batches)
}
