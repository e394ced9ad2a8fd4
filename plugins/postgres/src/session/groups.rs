//! Requests that come together share a transaction (decision 73), so that the server is done with all of them before it answers, and makes one transaction
//! and one packet of what would be as many of each: `BEGIN`, `SAVEPOINT`, and behind each statement but the last `ROLLBACK TO` it; then `ROLLBACK`, Sync.
//! What a statement set, wrote, told or locked is undone before the next one begins, as if each were alone.
//!
//! An error ends the group: the server passes over what stands behind it, and leaves a transaction that has failed. It is taken back (`own::undo`), and
//! those behind are asked again, each alone; so are others that were on their way, which the failed transaction has turned away, and the statement itself,
//! for what it met may be of the group (`pg_export_snapshot` runs in no subtransaction). From then on it is in no group for its next thousand runs, so that
//! nobody who makes one fail has others asked twice for ever. An error of what stands between the statements is nobody's.

use super::pooled::is_ancient;
use super::{Session, cancelled};
use crate::job::{Cancel, Execute, Job, ROOM_MAX};
use crate::protocol::{self, Reader};
use crate::statements::{Ask, Statement};
use crate::{errors::ServerError, parameters};
use souk_sdk::{Error, Step};
use std::rc::Rc;

/// Statements of one transaction, at most: what the first of them found is sent with what the last one has.
const GROUP_MAX: u8 = 16;
/// Its name is seen by the statement alone, which ends before anything could be done to it.
const MARK: &str = "SAVEPOINT souk";
const BACK: &str = "ROLLBACK TO SAVEPOINT souk";
/// What keeps a server from groups, and is not said by itself, it is asked by a statement of this name. `false` and `0` do not.
const UNFIT: &str = "unfit";
/// That it is a standby. From this version on it says so by itself (`in_hot_standby`).
const IS_STANDBY: &str = "SELECT pg_catalog.pg_is_in_recovery()::text";
const SAYS_STANDBY: u32 = 14;
/// That a transaction has a time limit: statements that keep it, each alone, may not keep it together, and it ends the session. From this version on there
/// is one.
const TIME_LIMIT: &str = "SELECT pg_catalog.current_setting('transaction_timeout')";
const HAS_TIME_LIMIT: u32 = 17;

#[derive(Default)]
pub(super) struct Groups {
    /// Another request is submitted at once behind the one that is being submitted.
    is_followed: bool,
    /// A standby ends the session where what it replays is in conflict with a statement of a group, and only the statement where that is alone.
    pub on_standby: bool,
    /// Statements of the group that is open. Nothing else is sent before it ends.
    size: u8,
    setup: Setup,
}

/// Whether the server has what a group needs.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Setup {
    #[default]
    Unknown,
    Asked,
    Known,
    /// A server that has no savepoints or a time limit for transactions, or a standby that does not say when it is none any more.
    Unsupported,
}

impl Groups {
    #[inline]
    pub(super) fn follows(&mut self, is_followed: bool) {
        self.is_followed = is_followed && !self.on_standby;
    }
}

impl Session {
    /// Whether a statement goes into a group: one that is open, or that begins with it. Ends the one that is open if not.
    #[inline]
    pub(super) fn joins_group(
        &mut self,
        ask: &Ask,
        statement: &Statement,
        step: &mut Step,
    ) -> bool {
        let joins = statement.joins() && !ask.alone;
        if !self.groups.is_followed && self.groups.size == 0 {
            return false;
        }
        if joins && self.groups.setup == Setup::Known {
            return true;
        }
        self.end_group(step);
        if self.groups.setup == Setup::Unknown {
            self.set_up_groups(step);
        }
        false
    }

    pub(super) fn execute_in_group(&mut self, ask: Ask, statement: Rc<Statement>, step: &mut Step) {
        let is_first = self.groups.size == 0;
        let out = step.outgoing();
        let begin = out.len();
        out.reserve_exact(statement.room.get());
        match is_first {
            true => out.extend_from_slice(&protocol::BEGIN_GROUP),
            false => out.extend_from_slice(&protocol::TAKE_BACK),
        }
        let (head, types) = (&statement.head, &statement.parameters);
        if let Err(error) = parameters::bind(out, head, types, &ask.parameters, &statement.tail) {
            out.truncate(begin);
            return self.refuse_value(ask, &statement, error, step);
        }
        out.extend_from_slice(&protocol::EXECUTE);
        statement.room.set(ROOM_MAX.min(out.len() - begin));
        statement.was_bound.set(true);
        let mut job = Execute::new(ask, statement);
        job.before = if is_first { 2 } else { 1 };
        job.is_followed = true;
        job.is_grouped = true;
        self.queue.push_back(Job::Execute(job));
        self.groups.size += 1;
        if self.groups.size == GROUP_MAX {
            self.end_group(step);
        }
    }

    /// The transaction of the group that is open, if one is, is taken back behind its last statement.
    #[inline]
    pub(super) fn end_group(&mut self, step: &mut Step) {
        if self.groups.size == 0 {
            return;
        }
        self.groups.size = 0;
        step.outgoing().extend_from_slice(&protocol::UNDO_SYNC);
        if let Some(Job::Execute(last)) = self.queue.back_mut() {
            last.is_followed = false;
        }
    }

    /// Redshift knows no savepoints; who else does not says so.
    #[cold]
    fn set_up_groups(&mut self, step: &mut Step) {
        if is_ancient(&self.server_version) {
            self.groups.setup = Setup::Unsupported;
            return;
        }
        self.groups.setup = Setup::Asked;
        let out = step.outgoing();
        for (name, sql) in [(protocol::MARK, MARK), (protocol::BACK, BACK)] {
            // There may be one that a statement has put there.
            protocol::close(out, name);
            protocol::parse(out, name, sql, &[]);
        }
        if let Some(question) = question(&self.server_version) {
            protocol::close(out, UNFIT);
            protocol::parse(out, UNFIT, question, &[]);
            let mut head = vec![0];
            protocol::text(&mut head, UNFIT);
            // It binds no value that could be refused.
            let _ = parameters::bind(out, &head, &[], &[], &[0, 0]);
            out.extend_from_slice(&protocol::EXECUTE);
        }
        out.extend_from_slice(&protocol::SYNC);
        self.queue.push_back(Job::SetupGroups { failed: false });
    }

    /// The answer to `IS_STANDBY` or `TIME_LIMIT`.
    #[cold]
    pub(super) fn told_unfit(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut reader = Reader(body);
        reader.u16()?;
        let is_fit = matches!(reader.value()?, Some(b"false" | b"0"));
        if let Some(Job::SetupGroups { failed }) = self.queue.front_mut()
            && !is_fit
        {
            *failed = true;
            self.give_groups_up();
        }
        Ok(())
    }

    /// An error met the setup. One that was meant for others says nothing of the server.
    #[cold]
    pub(super) fn setup_of_groups_failed(&mut self, error: &ServerError) {
        let is_stray = error.is_cancelled();
        self.strays = self.strays.saturating_sub(u32::from(is_stray));
        self.groups.setup = match is_stray || error.is_aborted() {
            true => Setup::Unknown,
            false => Setup::Unsupported,
        };
    }

    pub(super) fn groups_are_set_up(&mut self) {
        self.groups.setup = Setup::Known;
    }

    /// The server does not know any more what it was told.
    pub(super) fn forget_groups(&mut self) {
        if self.groups.setup == Setup::Known {
            self.groups.setup = Setup::Unknown;
        }
    }

    /// The server has parsed what groups need, and does not do it, or should not.
    pub(super) fn give_groups_up(&mut self) {
        self.groups.setup = Setup::Unsupported;
    }

    /// Those behind a statement whose error has ended their group: the server has passed over them.
    #[cold]
    pub(super) fn passed_over(&mut self) -> Vec<Execute> {
        let mut jobs = Vec::new();
        while let Some(Job::Execute(job)) = self.queue.pop_front_if(is_execute) {
            let is_followed = job.is_followed;
            jobs.push(job);
            if !is_followed {
                break;
            }
        }
        jobs
    }

    #[cold]
    pub(super) fn ask_alone(&mut self, job: Execute, step: &mut Step) {
        if job.cancel != Cancel::No {
            return step.failed(job.ask.id, cancelled());
        }
        let mut ask = job.ask;
        ask.alone = true;
        self.ask(&job.statement.text.clone(), ask, step);
    }
}

/// What the server is asked before it has groups. One whose version is no number is not asked.
fn question(server_version: &str) -> Option<&'static str> {
    let mut numbers = server_version.split(|letter: char| !letter.is_ascii_digit());
    match numbers.next()?.parse::<u32>().ok()? {
        ..SAYS_STANDBY => Some(IS_STANDBY),
        SAYS_STANDBY..HAS_TIME_LIMIT => None,
        HAS_TIME_LIMIT.. => Some(TIME_LIMIT),
    }
}

fn is_execute(job: &mut Job) -> bool {
    matches!(job, Job::Execute(_))
}
