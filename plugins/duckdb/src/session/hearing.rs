//! What a job does with what it hears, until its connection is left or ended.

use souk_sdk::parameters::callers;
use souk_sdk::{Error, HttpFailure, HttpResponse, Step, WireFault};

use super::{Job, RESPONSE_BYTES_MAX, Session, Stage, Work, conclude};
use crate::errors::{cancelled, endless, is_undone, malformed, told, too_slow, unwelcome};
use crate::outgoing::{is_unheard, message};
use crate::parsed::{self, Parsed, question};
use crate::protocol::{self, Answer, Prepared as Rows, fetch, prepare};

/// `RESPONSE_BYTES_MAX`, and what to do about it.
const RESPONSE_BYTES_SHOWN: &str =
    "24 MiB: ask for fewer rows, or SET GLOBAL quack_fetch_batch_chunks at the server";
/// How long the server is left alone before it is told again to end a connection.
const END_PAUSE_MS: u32 = 100;
/// Answers of one statement, of 24,576 rows each.
const ANSWERS_MAX: u32 = 100_000;
/// What it has to refuse, and the words in which it does.
const PROBE: &str = "CREATE TABLE souk_tries_to_write (a INTEGER)";
const PROBE_REFUSED: &str = "read-only mode";
/// The statement that is read where what the parser says of it is not asked for.
const READ: &str = "SELECT 1";

/// What comes after an answer.
enum Next {
    /// A statement of that stage, as a message.
    Statement(Stage, Vec<u8>),
    /// Nothing was done on a connection that was handed on: a new one.
    Connect,
    Fetch,
    Done,
}

impl Session {
    /// What a job does with an answer. Whether it goes on.
    pub(super) fn heard(
        &mut self,
        job: &mut Job,
        outcome: Result<HttpResponse, HttpFailure>,
        step: &mut Step,
    ) -> bool {
        if let Stage::End(_) = job.stage {
            // The server ends what it is told to, as often as it is. Nobody can do anything if it was not told twice.
            return match job.tries == 0 && is_unheard(&outcome) {
                true => self.pause(job, END_PAUSE_MS, step),
                false => conclude(job, step),
            };
        }
        if let Some(ms) = busy(job, &outcome) {
            return self.pause(job, ms, step);
        }
        let next = outcome
            .map_err(|failure| self.broken(job, failure))
            .and_then(|response| self.answered(job, &response, step));
        match next {
            Err(error) => self.end(job, Err(error), step),
            Ok(Next::Done) => self.leave(job, step),
            Ok(Next::Statement(stage, body)) => self.ask_statement(job, stage, body, step),
            Ok(Next::Connect) => {
                if let Some(connection) = job.connection.take() {
                    self.outgoing.end_beside(connection, step);
                }
                (job.stage, job.is_handed_on) = (Stage::Connect, false);
                let request = self.greeting(&job.limits);
                self.ask(job, request, step)
            }
            Ok(Next::Fetch) => {
                job.stage = Stage::Fetch;
                let body = fetch(job.at(), &job.result);
                let request = message(body, RESPONSE_BYTES_MAX).timeout_ms(self.patience(job));
                self.ask(job, request, step)
            }
        }
    }

    fn broken(&self, job: &Job, failure: HttpFailure) -> Error {
        let is_the_statements = self.patience(job) < job.limits.timeout_ms;
        match failure.fault {
            WireFault::Timeout if is_the_statements => too_slow(),
            _ => failure.within(RESPONSE_BYTES_SHOWN),
        }
    }

    /// Takes what an answer has in it.
    fn answered(
        &mut self,
        job: &mut Job,
        response: &HttpResponse,
        step: &mut Step,
    ) -> Result<Next, Error> {
        match protocol::read(response, &self.shapes)? {
            Answer::Connected(connected) if matches!(job.stage, Stage::Connect) => {
                job.connection = Some(connected.connection);
                if job.is_cancelled {
                    return Err(cancelled());
                }
                if let Work::Ping { version, .. } = &mut job.work {
                    *version = connected.server_version;
                }
                Ok(self.after_connect(job, step.now()))
            }
            Answer::Prepared(rows) => self.prepared(job, &rows, step),
            Answer::Fetched(chunks) if matches!(job.stage, Stage::Fetch) => {
                let is_last = chunks.count == 0;
                job.answers += 1;
                if job.answers == ANSWERS_MAX {
                    return Err(endless(ANSWERS_MAX));
                }
                match &mut job.work {
                    Work::Query { reading, .. } | Work::Catalog { reading, .. } => {
                        reading.more(job.id, job.answers, chunks, &job.limits, step)?
                    }
                    Work::Ping { .. } => return Err(malformed()),
                }
                Ok(match is_last {
                    true => Next::Done,
                    false => Next::Fetch,
                })
            }
            Answer::Refused(message) if job.may_begin_again() && is_undone(message) => {
                Ok(Next::Connect)
            }
            // To list its functions DuckDB may have to ask an attached database of another engine, which fails by what has nothing to do with the statement.
            Answer::Refused(message) if job.looks() && parsed::unasked(message).is_none() => {
                self.looked_in_vain(job);
                Ok(self.after_connect(job, step.now()))
            }
            Answer::Refused(message) => refusal(job, message),
            _ => Err(malformed()),
        }
    }

    /// The first statement of a connection.
    fn after_connect(&self, job: &mut Job, now: u64) -> Next {
        let looks = job.looks_at.is_some();
        let text = match &job.work {
            Work::Query { statement, .. } if !statement.read.is_known() => {
                statement.read.named.as_str()
            }
            Work::Query { .. } if looks => READ,
            Work::Ping { .. } => READ,
            _ => return self.ask_first(job, now),
        };
        Next::Statement(Stage::Check, prepare(job.at(), &[&question(text, looks)]))
    }

    /// Until it is asked again each statement has its transaction.
    pub(super) fn looked_in_vain(&mut self, job: &mut Job) {
        if let Some(at) = job.looks_at.take() {
            self.opening.hears_nothing(at);
        }
    }

    /// What is asked on a new connection.
    fn ask_first(&self, job: &mut Job, now: u64) -> Next {
        job.is_in_utc = self.opening.is_elsewhere();
        job.begins_at = match &job.work {
            Work::Query { statement, .. } => self.begins_at(statement, now),
            Work::Catalog { .. } | Work::Ping { .. } => Some(now),
        };
        let [uses, zone, begin] = self.opening.first(job.begins_at.is_some());
        let (stage, text) = match &job.work {
            Work::Query { statement, .. } => (Stage::Ask, statement.filled.as_str()),
            Work::Catalog { text, .. } => (Stage::Ask, text.as_str()),
            Work::Ping { .. } => (Stage::Begin, ""),
        };
        Next::Statement(stage, prepare(job.at(), &[uses, zone, begin, text]))
    }

    /// A statement was carried out.
    fn prepared(&mut self, job: &mut Job, rows: &Rows<'_>, step: &mut Step) -> Result<Next, Error> {
        match (&job.stage, &mut job.work) {
            (Stage::Check, work) => {
                let parsed = parsed_of(rows)?;
                self.opening.hears(&parsed, job.looks_at.take());
                match work {
                    // What the parser was asked of is something else.
                    Work::Query { statement, .. } if statement.read.is_known() => {}
                    Work::Query { statement, .. } => {
                        parsed.judge(statement.read.placeholders())?;
                        statement.read.known(parsed.is_plain());
                    }
                    _ => parsed.judge(0)?,
                }
                Ok(self.ask_first(job, step.now()))
            }
            (Stage::Begin, Work::Ping { .. }) => {
                Ok(Next::Statement(Stage::Probe, prepare(job.at(), &[PROBE])))
            }
            // What is done is undone when the connection ends.
            (Stage::Probe, Work::Ping { refuses_writes, .. }) => {
                *refuses_writes = Some(false);
                Ok(Next::Done)
            }
            (Stage::Ask, Work::Query { reading, .. } | Work::Catalog { reading, .. }) => {
                reading.begin(job.id, rows, &job.limits, &mut self.shapes, step)?;
                Ok(match rows.goes_on {
                    true => {
                        job.result = rows.result.to_vec();
                        Next::Fetch
                    }
                    false => Next::Done,
                })
            }
            _ => Err(malformed()),
        }
    }
}

/// How long to wait before a busy proxy (429, 503) is asked again for a connection; `None`: it was answered, or was asked often enough. Nothing
/// else can be asked twice: DuckDB may have done it, begins no transaction in another, runs a statement once more and sends the rows that come next.
fn busy(job: &Job, outcome: &Result<HttpResponse, HttpFailure>) -> Option<u32> {
    let response = outcome.as_ref().ok()?;
    match (&job.stage, response.status) {
        (Stage::Connect, 429 | 503) if !job.is_cancelled => response.busy_pause_ms(job.tries),
        _ => None,
    }
}

/// DuckDB has refused something.
fn refusal(job: &mut Job, message: &str) -> Result<Next, Error> {
    match (&job.stage, &mut job.work) {
        (Stage::Probe, Work::Ping { refuses_writes, .. }) => {
            let is_held = message.contains(PROBE_REFUSED);
            *refuses_writes = is_held.then_some(true);
            Ok(Next::Done)
        }
        (Stage::Connect, _) => Err(unwelcome(message)),
        (Stage::Check, _) => Err(parsed::unasked(message).unwrap_or_else(|| told(message, &[]))),
        (_, Work::Query { text, values, .. }) => Err(told(message, &callers(text, values))),
        _ => Err(told(message, &[])),
    }
}

/// What the parser has said, which is one row.
fn parsed_of(rows: &Rows<'_>) -> Result<Parsed, Error> {
    match &rows.only {
        Some(chunk) if chunk.rows == 1 => Parsed::read(chunk),
        _ => Err(malformed()),
    }
}
