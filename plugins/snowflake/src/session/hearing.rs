//! What a job does with an answer: its rows are told part by part, and those that come compressed in turns.

use souk_sdk::json::Telling;
use souk_sdk::{Error, HttpFailure, HttpResponse, Step};

use super::{
    HELD_BYTES_MAX, Job, Next, PIECE_PAUSE_MS, PING_SHAPE, Session, Stage, WAITS_MAX, Work, handle,
};
use crate::answers::{Body, Head, broken, plain};
use crate::api::Asked;
use crate::errors::{cancelled, endless, ends_it, malformed, refused};
use crate::reading::{self, Wanted};
use crate::unpacking::{self, Unpacking};

impl Session {
    pub(super) fn answered(
        &mut self,
        job: &mut Job,
        outcome: Result<HttpResponse, HttpFailure>,
        step: &mut Step,
    ) -> Result<Next, Error> {
        let response = outcome.map_err(broken)?;
        match (response.status, &job.stage) {
            (200, Stage::Read) if unpacking::is_packed(&response.body) => {
                if self.is_unpacking() || !self.has_room(response.body.len()) {
                    return Ok(Next::Queue(response.body));
                }
                job.held = response.body.len();
                self.unpacked(job, Unpacking::of(response.body), step)
            }
            (200, Stage::Read) => {
                reading::answer(&Body::of(&response)?, self.wanted(job, step))?;
                self.next_part(job)
            }
            (200, _) => {
                let body = Body::of(&response)?;
                let (head, told) = match reading::answer(&body, self.wanted(job, step)) {
                    Ok(head) => (head, Ok(())),
                    // Its name may stand behind what is refused.
                    Err(error) => (Head::of(&body)?, Err(error)),
                };
                let is_over = head.result_set_meta_data.is_some();
                job.handle = Some(handle(&head)?);
                job.may_be_taken = false;
                if job.is_cancelled && is_over {
                    // There is nothing left to stop.
                    job.handle = None;
                    return Err(cancelled());
                }
                match is_over {
                    true => self.ended(job, &body, told, step),
                    false => Err(malformed()),
                }
            }
            (202, Stage::Ask | Stage::Wait) => {
                let body = Body::of(&response)?;
                job.handle = Some(handle(&Head::of(&body)?)?);
                job.asked = Asked::default();
                if job.is_cancelled {
                    return Err(cancelled());
                }
                if job.waits == WAITS_MAX {
                    return Err(endless(WAITS_MAX));
                }
                job.waits += 1;
                let ms = job.look.pause_ms();
                Ok(Next::Pause(Stage::Wait, ms))
            }
            (202, _) => Err(malformed()),
            (_, _) => {
                let response = plain(response);
                let values = match &job.work {
                    Work::Query { values, .. } => values.as_slice(),
                    Work::Ping(_) => &[],
                };
                // Others do not know whether it goes on.
                if ends_it(&response) {
                    job.handle = None;
                }
                Err(refused(response, &self.api.settings, values))
            }
        }
    }

    /// Where the rows of an answer go while it is read.
    fn wanted<'s>(&'s mut self, job: &'s mut Job, step: &'s mut Step) -> Option<Wanted<'s>> {
        match &mut job.work {
            Work::Query { reading, .. } if !job.is_cancelled => Some(Wanted {
                telling: Telling {
                    id: job.id,
                    limits: &job.limits,
                    reading: &mut reading.rows,
                    shapes: &mut self.shapes,
                    step,
                },
                parts: &mut reading.parts,
            }),
            _ => None,
        }
    }

    /// A statement has ended well, and the first part of what it answers is here. `told`: what telling its rows has come to.
    fn ended(
        &mut self,
        job: &mut Job,
        body: &Body<'_>,
        told: Result<(), Error>,
        step: &mut Step,
    ) -> Result<Next, Error> {
        (job.stage, job.asked) = (Stage::Read, Asked::default());
        self.looks.ended(&job.look);
        told?;
        if let Work::Ping(ping) = &mut job.work {
            ping.part(body, &self.api.settings)?;
            ping.pong(job.id, PING_SHAPE, step);
        }
        self.next_part(job)
    }

    /// A piece of a part that came compressed is here.
    pub(super) fn unpacked(
        &mut self,
        job: &mut Job,
        mut unpacking: Unpacking,
        step: &mut Step,
    ) -> Result<Next, Error> {
        let Work::Query { reading, .. } = &mut job.work else {
            return Err(malformed());
        };
        let is_over = reading.rows(job.id, &job.limits, step, |each| unpacking.piece(each))?;
        match is_over {
            true => self.next_part(job),
            false => Ok(Next::GoOn(unpacking)),
        }
    }

    /// Lets the next part be unpacked, and asks again for those that there is room for now.
    pub(super) fn take_turns(&mut self, step: &mut Step) {
        if !self.is_unpacking()
            && let Some(mut job) = self.first(|stage| matches!(stage, Stage::Queue(_)))
            && let Stage::Queue(body) = job.stage
        {
            job.stage = Stage::Unpack(Unpacking::of(body));
            self.pause(&mut job, PIECE_PAUSE_MS, step);
            self.jobs.push(job);
        }
        while let Some(mut job) = self.first(|stage| matches!(stage, Stage::NoRoom(_))) {
            let has_room = match job.stage {
                Stage::NoRoom(length) if self.has_room(length) => {
                    (job.stage, job.held) = (Stage::Read, length);
                    let request = self.asks(&job);
                    self.send(&mut job, request, step);
                    true
                }
                _ => false,
            };
            self.jobs.push(job);
            if !has_room {
                return;
            }
        }
    }

    /// Takes out the job of this stage that was asked for first.
    fn first(&mut self, is_it: impl Fn(&Stage) -> bool) -> Option<Job> {
        let found = self.jobs.iter().enumerate();
        let found = found.filter(|(_, job)| is_it(&job.stage));
        let (at, _) = found.min_by_key(|(_, job)| job.id)?;
        Some(self.jobs.swap_remove(at))
    }

    fn is_unpacking(&self) -> bool {
        let mut stages = self.jobs.iter().map(|job| &job.stage);
        stages.any(|stage| matches!(stage, Stage::Unpack(_)))
    }

    /// Whether a part of so many bytes may be held beside those of other jobs.
    pub(super) fn has_room(&self, length: usize) -> bool {
        let held: usize = self.jobs.iter().map(|job| job.held).sum();
        held == 0 || held + length <= HELD_BYTES_MAX
    }

    fn next_part(&self, job: &mut Job) -> Result<Next, Error> {
        job.held = 0;
        let next = match &job.work {
            Work::Query { reading, .. } => reading.parts.next()?,
            Work::Ping(_) => None,
        };
        let Some(next) = next else {
            return Ok(Next::Done);
        };
        let handle = job.handle.as_deref().ok_or_else(malformed)?;
        let request = self.api.answer(handle, Some(next), &job.limits);
        Ok(Next::Ask(Stage::Read, request))
    }
}
