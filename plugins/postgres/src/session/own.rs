//! A backend that is the session's own: what it is set up with, and what is done where a cancel comes so late that it strikes what takes a
//! transaction back.
//!
//! A statement runs in an implicit transaction, which an error ends. Behind it `BEGIN` makes that transaction one that `ROLLBACK` ends: of an implicit
//! one servers would write a warning into their log. `ROLLBACK` is the *unnamed* prepared statement, which no SQL can reach, deallocate or replace.
//! `BEGIN` has a name, and what a statement did to it changes nothing: without it the transaction is taken back all the same.

use super::{ENDINGS_MAX, Session, UNLOCK};
use crate::job::{Job, Setup};
use crate::protocol::{self, malformed};
use souk_sdk::{Error, Step};

impl Session {
    /// Has what follows every statement parsed: as soon as the backend is known to be the session's own, before anything can run.
    pub(super) fn set_up(&mut self, step: &mut Step) {
        let out = step.outgoing();
        protocol::parse(out, "", "ROLLBACK", &[]);
        // There may be one that a statement has put there.
        protocol::close(out, protocol::BEGIN);
        protocol::parse(out, protocol::BEGIN, "BEGIN", &[]);
        out.extend_from_slice(&protocol::SYNC);
        self.queue.push_back(Job::Setup(Setup {
            is_own: false,
            struck: false,
        }));
    }

    /// The server does not know `BEGIN` any more, or what groups need.
    #[cold]
    pub(super) fn end_is_lost(&mut self, step: &mut Step) {
        self.set_up(step);
        self.forget_groups();
    }

    /// What gives up locks at a pooler's backend has one. What takes a transaction back has none, unless a statement has put something else in its place: the
    /// session ends with that, and what was asked meanwhile is asked again.
    #[cold]
    pub(super) fn row_of_an_end(&self) -> Result<(), Error> {
        match self.is_pooled() {
            true => Ok(()),
            false => Err(Error::unavailable(
                "session_changed",
                "a statement has replaced what ends its transaction, so that its session was ended; try again",
            )),
        }
    }

    /// A Sync was answered, and there is a transaction. Only between `BEGIN` and `ROLLBACK` can an error leave one; it has failed, and what is on
    /// its way already fails until it is taken back.
    #[cold]
    pub(super) fn undo(&mut self, state: u8, step: &mut Step) -> Result<(), Error> {
        if state != b'E' || self.unended == ENDINGS_MAX {
            return Err(malformed().detail("a statement left a transaction open"));
        }
        // The first one is the job that ends here.
        let mut others = self.queue.iter().skip(1);
        if !others.any(|job| matches!(job, Job::End { .. })) {
            self.unended += 1;
            step.send(&protocol::UNDO_SYNC);
            self.queue.push_back(Job::end());
        }
        Ok(())
    }

    /// Gives up what the statement before may have locked, whether it has failed or not.
    #[cold]
    pub(super) fn unlock(&mut self, step: &mut Step) {
        let job = Job::Unlock { struck: false };
        // It binds no value that could be refused.
        let _ = self.run_own(("unlock", UNLOCK), &[], &[], job, step);
    }
}
