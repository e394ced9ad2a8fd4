//! What comes in: messages cut from the stream move the job at the head of the queue.

use super::{PING_SHAPE, Phase, Session};
use crate::errors::{self, ServerError};
use crate::job::{Cancel, Execute, Job, Prepare, Probe, Setup};
use crate::protocol::{MESSAGE_BYTES_MAX, malformed, unexpected};
use crate::startup;
use crate::statements::{Described, TURNED_AWAY_MAX};
use crate::types::{self, Reading};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{Message, RowDescriptionBody};
use souk_sdk::{Batch, Cell, Column, ColumnBuilder, Error, Rows, Step};

/// Some forty thousand columns, of which a server has 1,664 at most.
const DESCRIPTION_BYTES_MAX: usize = 2 << 20;

/// Redshift calls it `UNICODE`.
fn is_utf8(encoding: &str) -> bool {
    ["UTF8", "UTF-8", "UNICODE"]
        .iter()
        .any(|known| encoding.eq_ignore_ascii_case(known))
}

/// How long the message is that begins here: a tag, and a length that counts itself.
fn message(begun: &[u8]) -> Option<usize> {
    let [_, length @ ..] = begun.first_chunk::<5>()?;
    Some(1 + u32::from_be_bytes(*length) as usize)
}

impl Session {
    #[inline]
    pub(super) fn bytes(&mut self, bytes: Vec<u8>, step: &mut Step) -> Result<(), Error> {
        if matches!(self.phase, Phase::AskedTls) {
            startup::accepts_tls(&bytes)?;
            self.phase = Phase::Handshake;
            step.start_tls();
            return Ok(());
        }
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.feed(bytes, skipped, |bytes| self.messages(bytes, step), message)?;
        self.pieces = pieces;
        Ok(())
    }

    /// Takes whole messages off the front and answers how many bytes they were.
    fn messages(&mut self, buffer: &[u8], step: &mut Step) -> Result<usize, Error> {
        let mut at = 0;
        loop {
            let rest = &buffer[at..];
            let Some(&[tag, a, b, c, d]) = rest.first_chunk::<5>() else {
                return Ok(at);
            };
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            // Words stand where a length should.
            if tag == b'E' && length > MESSAGE_BYTES_MAX && matches!(self.phase, Phase::Login(_)) {
                return Err(startup::no_process());
            }
            // The protocol's lengths are signed.
            if length < 4 || length > i32::MAX as usize {
                return Err(malformed());
            }
            let Some(body) = rest.get(5..length.saturating_add(1)) else {
                return if self.discards(tag, length, rest.len())? {
                    Ok(buffer.len())
                } else {
                    Ok(at)
                };
            };
            at += 1 + length;
            match (tag, self.queue.front_mut()) {
                (b'D', Some(Job::Execute(job))) if job.takes_rows() => job.row(body, step),
                _ => self.message(tag, &rest[..1 + length], body, step)?,
            }
        }
    }

    /// A message of which only `here` bytes have arrived. A row past its request's limits is not waited for.
    fn discards(&mut self, tag: u8, length: usize, here: usize) -> Result<bool, Error> {
        if let (b'D', Some(Job::Execute(job))) = (tag, self.queue.front_mut())
            && job.takes_rows()
        {
            let over = length as u64 > job.ask.limits.bytes_max.saturating_add(1 << 16);
            if (over || length > MESSAGE_BYTES_MAX) && !job.admit_oversized(length) {
                self.skip = 1 + length - here;
                return Ok(true);
            }
        }
        if length > MESSAGE_BYTES_MAX {
            return Err(malformed().detail("a message is longer than 16 MiB"));
        }
        Ok(false)
    }

    fn message(
        &mut self,
        tag: u8,
        whole: &[u8],
        body: &[u8],
        step: &mut Step,
    ) -> Result<(), Error> {
        match (tag, self.queue.front_mut()) {
            // BindComplete, ParseComplete, CloseComplete; notices and notifications are nobody's.
            (b'2', Some(Job::Prepare(_)) | None) => Err(unexpected(tag)),
            (b'2', Some(_)) => Ok(()),
            (b'1' | b'3', Some(_)) | (b'N' | b'A', _) => Ok(()),
            (b'C' | b'I', Some(Job::Execute(job))) if job.before > 0 => job.begun(body),
            (b'C' | b'I', Some(Job::Execute(job))) => {
                job.complete = true;
                if (job.is_followed || job.ends_behind)
                    && let Some(Job::Execute(job)) = self.queue.pop_front()
                {
                    // Its answer is whole: what follows is about the next job.
                    job.finish(step);
                }
                Ok(())
            }
            (b'C', Some(Job::Begin(_))) => {
                self.opened();
                Ok(())
            }
            (
                b'C',
                Some(Job::Lookup(_) | Job::Probe(_) | Job::Setup(_) | Job::SetupGroups { .. }),
            ) => Ok(()),
            (b'D', Some(Job::End { .. })) => self.row_of_an_end(),
            (b'C', Some(Job::End { .. })) | (b'C' | b'D', Some(Job::Unlock { .. })) => Ok(()),
            (b'n', Some(Job::Prepare(_))) => Ok(()),
            (b't' | b'T', Some(Job::Prepare(job))) => describe(job, parse_description(whole)?),
            (b't' | b'T', Some(Job::Execute(_))) => self.described(whole),
            (b'D', Some(Job::Lookup(_))) => self.looked_up(body),
            (b'D', Some(Job::Begin(_))) => Ok(()),
            (b'D', Some(Job::Setup(_))) => self.told_whose(body),
            (b'D', Some(Job::SetupGroups { .. })) => self.told_unfit(body),
            (b'E', _) => self.error(whole),
            (b'Z', Some(_)) => match body {
                // No transaction outlives its Sync, unless at a pooler's.
                [b'I'] if !self.is_pooled() => {
                    self.unended = 0;
                    self.job_ended(step)
                }
                [state] => {
                    self.synced(*state, step)?;
                    self.job_ended(step)
                }
                _ => Err(malformed()),
            },
            (b'S', _) => self.parameter(whole),
            (b'R' | b'K' | b'Z' | b'v', None) => self.login(whole, step),
            _ => Err(unexpected(tag)),
        }
    }

    fn login(&mut self, whole: &[u8], step: &mut Step) -> Result<(), Error> {
        let Phase::Login(login) = &mut self.phase else {
            return Err(unexpected(whole[0]));
        };
        match parse(whole)? {
            Message::BackendKeyData(body) => {
                self.process = Some((body.process_id(), body.secret_key()))
            }
            Message::ReadyForQuery(_) => {
                self.phase = Phase::Open;
                self.logged_in(step);
            }
            message => login.answer(message, &self.settings, self.tls, step.outgoing())?,
        }
        Ok(())
    }

    fn parameter(&mut self, whole: &[u8]) -> Result<(), Error> {
        let Message::ParameterStatus(body) = parse(whole)? else {
            return Err(malformed());
        };
        let (name, value) = (
            body.name().map_err(|_| malformed())?,
            body.value().map_err(|_| malformed())?,
        );
        match name {
            "server_version" => self.server_version = value.to_string(),
            "in_hot_standby" => self.groups.on_standby = value == "on",
            "client_encoding" if !is_utf8(value) && !matches!(self.phase, Phase::Open) => {
                return Err(Error::configuration(
                    "client_encoding",
                    "the database does not speak UTF-8 to its clients",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    #[cold]
    fn error(&mut self, whole: &[u8]) -> Result<(), Error> {
        let Message::ErrorResponse(body) = parse(whole)? else {
            return Err(malformed());
        };
        let error = ServerError::read(&body);
        // Neon's proxy refuses a login with an error that is not fatal.
        if matches!(self.phase, Phase::Login(_)) {
            return Err(errors::login_refused(error, self.settings.pooler));
        }
        if error.fatal {
            return Err(error.blame(false, false));
        }
        if let Some(Job::Begin(_)) = self.queue.front() {
            // The server passes over the job.
            self.queue.pop_front();
        }
        // What is on its way fails until the transaction before it is taken back.
        let is_unended =
            error.is_aborted() && self.queue.iter().any(|job| matches!(job, Job::End { .. }));
        let slot = match self.queue.front_mut() {
            Some(Job::Prepare(job)) => &mut job.error,
            Some(Job::Lookup(job)) => &mut job.error,
            Some(Job::Execute(job)) => &mut job.error,
            Some(Job::Probe(job)) => &mut job.error,
            Some(Job::End { is_lost, .. }) => {
                *is_lost |= error.is_lost_statement();
                // A cancel that came late: it is ended again.
                self.strays = self
                    .strays
                    .saturating_sub(u32::from(error.may_be_a_cancel()));
                return Ok(());
            }
            Some(Job::Unlock { struck }) => {
                let is_stray = error.is_cancelled() && self.strays > 0;
                *struck = is_stray || is_unended;
                self.strays = self.strays.saturating_sub(u32::from(is_stray));
                return Ok(());
            }
            Some(Job::SetupGroups { failed }) => {
                *failed = true;
                self.setup_of_groups_failed(&error);
                return Ok(());
            }
            Some(Job::Setup(job)) => {
                let is_stray = error.is_cancelled() && self.strays > 0;
                job.struck = is_stray || is_unended;
                self.strays = self.strays.saturating_sub(u32::from(is_stray));
                return match job.struck {
                    true => Ok(()),
                    false => Err(error.blame(false, false)),
                };
            }
            Some(Job::Begin(_)) | None => return Err(error.blame(false, false)),
        };
        slot.get_or_insert_with(|| Box::new(error));
        Ok(())
    }

    fn job_ended(&mut self, step: &mut Step) -> Result<(), Error> {
        match self.queue.pop_front() {
            // The server has passed over what follows without an error.
            Some(Job::Execute(job))
                if (job.is_followed || job.ends_behind) && job.error.is_none() =>
            {
                return Err(malformed());
            }
            Some(Job::Execute(job)) if job.error.is_none() && !job.has_changed => job.finish(step),
            Some(Job::Execute(job)) => {
                if job.ends_behind {
                    // The server has passed over the end: there is no transaction any more.
                    self.queue.pop_front();
                }
                let behind = match job.is_followed {
                    true => self.passed_over(),
                    false => Vec::new(),
                };
                self.execute_failed(job, step);
                behind.into_iter().for_each(|job| self.ask_alone(job, step));
            }
            Some(Job::Prepare(job)) => self.prepare_ended(job, step)?,
            Some(Job::Lookup(job)) => self.lookup_ended(job, step)?,
            Some(Job::Probe(job)) => self.probe_ended(job, step),
            Some(Job::Setup(Setup { struck: true, .. })) => self.set_up(step),
            Some(Job::Setup(job)) => self.setup_ended(&job, step),
            Some(Job::SetupGroups { failed: false }) => self.groups_are_set_up(),
            Some(Job::Unlock { struck: true }) => self.unlock(step),
            Some(Job::End { is_lost: true, .. }) if !self.is_pooled() => self.end_is_lost(step),
            Some(
                Job::Begin(_) | Job::End { .. } | Job::Unlock { .. } | Job::SetupGroups { .. },
            )
            | None => {}
        }
        self.send_held(step);
        Ok(())
    }

    #[cold]
    fn execute_failed(&mut self, mut job: Execute, step: &mut Step) {
        let is_of_ours = job.before > 0;
        let (lost, stale, aborted, cancelled) = match &job.error {
            Some(error) => (
                error.is_lost_statement(),
                // What meets values that were bound as those of before says nothing of what is there now.
                job.has_changed
                    || error.is_stale_statement()
                    || error.is_outgrown() && !job.statement.parameters.is_empty(),
                error.is_aborted(),
                error.is_cancelled(),
            ),
            None => (false, job.has_changed, false, false),
        };
        let struck = job
            .error
            .as_deref()
            .is_some_and(ServerError::may_be_a_cancel);
        if lost && (job.complete || is_of_ours) && !self.is_pooled() {
            self.end_is_lost(step);
        } else if is_of_ours && !cancelled && !aborted {
            self.give_groups_up();
        }
        // A cancel that was meant for another job: it has found this one.
        let strayed = struck && job.cancel == Cancel::No && self.strays > 0;
        if struck {
            self.strays = self.strays.saturating_sub(1);
        }
        // What has met a statement of ours says nothing of this one: alone there is none before it.
        if is_of_ours {
            return self.ask_alone(job, step);
        }
        let unharmed =
            job.unseen() && (job.has_changed || !job.complete) && job.cancel == Cancel::No;
        // There is one stray for every cancel that was sent.
        if unharmed && (strayed || aborted && job.ask.is_turned_away()) {
            return self.ask_alone(job, step);
        }
        // Rows of it are told already.
        if strayed && !job.complete {
            return step.failed(job.ask.id, errors::interrupted());
        }
        // A statement goes stale once.
        if unharmed && stale && !job.ask.retried {
            self.forget(&job.statement, step);
            (job.ask.retried, job.ask.typing) = (true, None);
            return self.ask(&job.statement.text.clone(), job.ask, step);
        }
        if job.cancel == Cancel::No && !job.complete {
            job.statement.stays_alone();
        }
        // What it met may be of the group. A time limit is its own: it would be waited for twice.
        if unharmed && job.is_grouped && !cancelled {
            return self.ask_alone(job, step);
        }
        job.finish(step);
    }

    fn probe_ended(&mut self, mut job: Probe, step: &mut Step) {
        if let Some(error) = &job.error
            && job.turned_away < TURNED_AWAY_MAX
            && self.is_of_others(error)
        {
            (job.turned_away, job.error) = (job.turned_away + 1, None);
            return self.send_probe(job, step);
        }
        let error = job.error.as_deref();
        let read_only = error.is_some_and(ServerError::is_read_only);
        match job.error {
            Some(error) if !read_only => step.failed(job.id, error.blame(false, false)),
            _ => {
                let described = std::mem::replace(&mut self.ping_described, true);
                step.columns(
                    job.id,
                    PING_SHAPE,
                    if described {
                        None
                    } else {
                        Some(Rows::ping_columns())
                    },
                );
                step.batch(job.id, ping_batch(&self.server_version, read_only));
                step.done(job.id);
            }
        }
    }
}

/// The same of what a statement takes and gives. A description is copied a few times, and names are 63 bytes long at most.
pub(super) fn parse_description(whole: &[u8]) -> Result<Message, Error> {
    if whole.len() > DESCRIPTION_BYTES_MAX {
        return Err(malformed().detail("the description of a statement is too long"));
    }
    parse(whole)
}

/// One whole message by the library's own parser. Not for rows.
fn parse(whole: &[u8]) -> Result<Message, Error> {
    match Message::parse(&mut BytesMut::from(whole)) {
        Ok(Some(message)) => Ok(message),
        _ => Err(malformed()),
    }
}

fn describe(job: &mut Prepare, message: Message) -> Result<(), Error> {
    match message {
        Message::ParameterDescription(body) => {
            job.description.parameters = body.parameters().collect().map_err(|_| malformed())?;
        }
        Message::RowDescription(body) => {
            job.description.columns = columns(&body)?;
        }
        _ => return Err(malformed()),
    }
    Ok(())
}

pub(super) fn columns(body: &RowDescriptionBody) -> Result<Vec<Described>, Error> {
    let described = body.fields().map(|field| {
        let type_oid = field.type_oid();
        let native = types::native(type_oid, field.type_modifier());
        let reading = Reading::of(type_oid);
        Ok(Described {
            name: field.name().into(),
            native: native.unwrap_or_default().into(),
            type_oid,
            reading,
        })
    });
    described.collect().map_err(|_| malformed())
}

fn ping_batch(server_version: &str, read_only: bool) -> Batch {
    let cells = [Cell::Text(server_version), Cell::Boolean(read_only)];
    let filled = |(column, cell): (Column, Cell<'_>)| {
        let mut builder = ColumnBuilder::new(column.kind);
        // The cells are of the columns' types.
        let _ = builder.push(cell);
        builder.finish()
    };
    Batch {
        rows: 1,
        chunks: Rows::ping_columns()
            .into_iter()
            .zip(cells)
            .map(filled)
            .collect(),
    }
}
