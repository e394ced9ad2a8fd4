//! What a job does with what it hears, until its statement has ended or is stopped.

use souk_sdk::json::Telling;
use souk_sdk::{Error, ErrorClass, HttpFailure, HttpResponse, Step, WireFault};

use super::{CATALOG_SHAPE, CHUNKS_MAX, Goes, STOP_PAUSE_MS, STOP_TRIES, Session};
use crate::answers::{Chunk, State, Status, broken, malformed};
use crate::errors::{
    cancelled, columns_changed, condition, counts_columns, refused, rows_missing, stopped, told,
};
use crate::jobs::{Job, Reader, Stage, Words, Work};
use crate::reading::{self, Wanted};
use crate::{api, pauses};

impl Session {
    /// What a job does with an answer.
    pub(super) fn heard(
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
            // Somebody else is there, or nobody whom the operator allows: not who runs it. Whoever could not be reached may be a moment later.
            if let WireFault::Tls | WireFault::EgressRefused = failure.fault {
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
        job.is_pending = statement.status.is_pending();
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
    pub(super) fn gives_up(&mut self, job: &mut Job, error: Error, step: &mut Step) -> Goes {
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
