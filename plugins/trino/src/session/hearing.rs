//! What a job does with what it hears, until its transaction has ended.

use souk_sdk::json::Telling;
use souk_sdk::parameters::all_shown;
use souk_sdk::{Error, HttpFailure, HttpResponse, Step};

use super::{
    ANSWERS_MAX, CATALOG_SHAPE, ENDING_ANSWERS_MAX, Job, PING_SHAPE, Session, Stage, Trouble, Work,
};
use crate::answers::{Results, broken, malformed};
use crate::api::started;
use crate::errors::{cancelled, endless, led_away, no_transaction, refused, told};
use crate::types::Type;
use crate::{pauses, reading};

impl Session {
    /// What a job does with an answer. Whether it goes on.
    pub(super) fn heard(
        &mut self,
        job: &mut Job,
        outcome: Result<HttpResponse, HttpFailure>,
        step: &mut Step,
    ) -> bool {
        match &mut job.stage {
            Stage::Stop(error) => {
                let error = std::mem::replace(error, cancelled());
                self.end(job, Err(error), step)
            }
            Stage::End(_) => self.ending(job, outcome, step),
            Stage::Begin | Stage::Ask | Stage::Probe => {
                if let Some(ms) = pauses::busy(&outcome, job.tries).filter(|_| !job.is_cancelled) {
                    job.tries += 1;
                    return self.pause(job, ms, step);
                }
                match self.answered(job, outcome, step) {
                    Ok(is_open) => is_open,
                    Err(trouble) => self.troubled(job, trouble, step),
                }
            }
        }
    }

    /// One of the answers to a statement.
    fn answered(
        &mut self,
        job: &mut Job,
        outcome: Result<HttpResponse, HttpFailure>,
        step: &mut Step,
    ) -> Result<bool, Trouble> {
        // For all that is known it goes on, and what stops it goes over another connection; or the answer was there, and too large. A statement
        // that nobody has asked after Trino does not begin: of that one there is only the transaction to be ended.
        let response = outcome.map_err(|failure| Trouble::Ours(broken(failure)))?;
        if response.status != 200 {
            let is_first = job.transaction.is_none() && job.next.is_none();
            return Err(match response.status {
                // It is not known there, or nobody is let in any more.
                401 | 404 | 410 => Trouble::Lost(refused(response, is_first)),
                _ => Trouble::Ours(refused(response, is_first)),
            });
        }
        if let Stage::Begin = job.stage {
            job.transaction = started(&response).or(job.transaction.take());
        }
        let (results, told) = match reading::page(&response, self.telling(job, step)) {
            Ok(results) => (results, Ok(())),
            // Where it goes on may stand behind what is refused.
            Err(error) => (
                reading::page(&response, None).map_err(Trouble::Ours)?,
                Err(error),
            ),
        };
        if results.id.as_deref() == Some("") {
            return Err(Trouble::Lost(malformed()));
        }
        // Known before anything is refused: it is what a statement is stopped by.
        job.next = match &results.next_uri {
            None => None,
            Some(link) => match self.api.settings.address.path_of(link) {
                Some(path) => Some(path),
                None => return Err(Trouble::Ours(led_away(link))),
            },
        };
        if job.is_cancelled {
            return Err(Trouble::Ours(cancelled()));
        }
        told.map_err(Trouble::Ours)?;
        self.take(job, &results, step).map_err(Trouble::Ours)?;
        if let Some(error) = results.error {
            return Err(Trouble::Told(error));
        }
        job.answers += 1;
        if job.answers == ANSWERS_MAX {
            return Err(Trouble::Ours(endless(ANSWERS_MAX)));
        }
        job.empty = match results.has_rows() {
            true => 0,
            false => job.empty + 1,
        };
        if job.next.is_none() {
            return self.finished(job, step);
        }
        job.tries = 0;
        Ok(match pauses::empty(job.empty) {
            None => {
                let request = self.asks(job);
                self.ask(job, request, step)
            }
            Some(ms) => self.pause(job, ms, step),
        })
    }

    /// Where the rows of an answer go while it is read.
    fn telling<'s>(
        &'s mut self,
        job: &'s mut Job,
        step: &'s mut Step,
    ) -> Option<Telling<'s, Type>> {
        match (&job.stage, &mut job.work) {
            (Stage::Ask, Work::Query { reading, .. }) if !job.is_cancelled => Some(Telling {
                id: job.id,
                limits: &job.limits,
                reading,
                shapes: &mut self.shapes,
                step,
            }),
            _ => None,
        }
    }

    /// Takes what else an answer has in it.
    fn take(&mut self, job: &mut Job, page: &Results<'_>, step: &mut Step) -> Result<(), Error> {
        match (&job.stage, &mut job.work) {
            (Stage::Ask, Work::Catalog { listing, .. }) => {
                listing.page(job.id, CATALOG_SHAPE, step, |fields| {
                    page.rows(|cells| fields.push(cells))
                })
            }
            (Stage::Ask, Work::Ping(ping)) => ping.page(page),
            _ => Ok(()),
        }
    }

    /// A statement has ended well: the next one of its request, or the end.
    fn finished(&mut self, job: &mut Job, step: &mut Step) -> Result<bool, Trouble> {
        job.prove()?;
        if job.is_alone() {
            return Ok(self.end(job, Ok(()), step));
        }
        if job.transaction.is_none() {
            return Err(Trouble::Lost(no_transaction()));
        }
        let stage = match (&job.stage, &mut job.work) {
            (Stage::Begin, _) => Stage::Ask,
            (Stage::Ask, Work::Ping(ping)) => {
                ping.fits(&self.api.settings).map_err(Trouble::Ours)?;
                Stage::Probe
            }
            (Stage::Probe, Work::Ping(ping)) => {
                ping.wrote();
                return Ok(self.end(job, Ok(()), step));
            }
            _ => return Ok(self.end(job, Ok(()), step)),
        };
        job.begins(stage);
        let request = self.asks(job);
        Ok(self.ask(job, request, step))
    }

    fn troubled(&mut self, job: &mut Job, trouble: Trouble, step: &mut Step) -> bool {
        match trouble {
            Trouble::Lost(error) => {
                job.stage = Stage::End(Err(error));
                conclude(job, step)
            }
            Trouble::Ours(error) => self.stop(job, error, step),
            Trouble::Told(error) => {
                job.disprove(&error);
                if let (Stage::Probe, Work::Ping(ping)) = (&job.stage, &mut job.work) {
                    ping.refused(&error.error_name);
                    return self.end(job, Ok(()), step);
                }
                let values = match &job.work {
                    Work::Query { values, .. } => all_shown(values),
                    _ => Vec::new(),
                };
                let error = told(error, &self.api.settings.catalog, &values);
                self.end(job, Err(error), step)
            }
        }
    }

    /// Stops a statement that goes on; one that does not has ended.
    pub(super) fn stop(&mut self, job: &mut Job, error: Error, step: &mut Step) -> bool {
        match &job.next {
            Some(path) => {
                let request = self.api.stop(path);
                self.ask_anew(job, Stage::Stop(error), request, step)
            }
            None => self.end(job, Err(error), step),
        }
    }

    /// Ends the transaction; without one there is nothing left to do.
    pub(super) fn end(
        &mut self,
        job: &mut Job,
        outcome: Result<(), Error>,
        step: &mut Step,
    ) -> bool {
        match &job.transaction {
            Some(transaction) => {
                let request = self.api.end(transaction);
                self.ask_anew(job, Stage::End(outcome), request, step)
            }
            None => {
                job.stage = Stage::End(outcome);
                conclude(job, step)
            }
        }
    }

    /// One of the answers to what ends a transaction. Whether that goes well is of no matter to who asked: Trino ends it by itself in a
    /// few minutes.
    fn ending(
        &mut self,
        job: &mut Job,
        outcome: Result<HttpResponse, HttpFailure>,
        step: &mut Step,
    ) -> bool {
        job.answers += 1;
        let next = outcome
            .ok()
            .filter(|response| response.status == 200 && job.answers < ENDING_ANSWERS_MAX)
            .and_then(|response| {
                let link = reading::page(&response, None).ok()?.next_uri?;
                self.api.settings.address.path_of(&link)
            });
        let Some(path) = next else {
            return conclude(job, step);
        };
        let request = self.api.next_of_end(&path);
        self.ask(job, request, step);
        // Who gave up does not wait for that.
        match job.is_cancelled {
            true => conclude(job, step),
            false => true,
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
        (Ok(()), Work::Ping(ping)) => {
            ping.pong(job.id, PING_SHAPE, step);
            step.done(job.id);
        }
        (Ok(()), _) => step.done(job.id),
    }
    false
}
