//! What comes in: messages cut from the stream answer the command at the head of the queue.

use super::{Awaited, Chains, END, Ending, PING_SHAPE, Phase, Session, Stopping, cancelled};
use crate::errors::ServerError;
use crate::frames::{self, MESSAGE_BYTES_MAX};
use crate::job::{Ask, Execute, Job, Prepare, no_result};
use crate::protocol::{self, ERROR, OK, Transaction, malformed};
use crate::startup::{ALL_ROWS_SIGNED, Greeting};
use souk_sdk::{Batch, Cell, Column, ColumnBuilder, Error, Rows, SslMode, Step};

/// A session and the step that it is making, for the frames that give it messages.
struct Hearing<'a> {
    session: &'a mut Session,
    step: &'a mut Step,
}

impl frames::Sink for Hearing<'_> {
    #[inline]
    fn message(&mut self, number: u8, body: &[u8]) -> Result<(), Error> {
        self.session.message(number, body, self.step)
    }

    fn discards(&mut self, first: Option<u8>, length: usize) -> Result<bool, Error> {
        match &mut self.session.job {
            // Of its rows, and not of what comes behind them.
            Some(Job::Execute(job)) if self.session.awaited.front() == Some(&Awaited::Execute) => {
                job.discards(first, length, MESSAGE_BYTES_MAX)
            }
            _ => Ok(false),
        }
    }
}

impl Session {
    #[inline]
    pub(super) fn bytes(&mut self, bytes: Vec<u8>, step: &mut Step) -> Result<(), Error> {
        if matches!(self.phase, Phase::Handshake(_)) {
            // What is not protected by TLS must not be taken for protected.
            return Err(unprotected());
        }
        if matches!(self.phase, Phase::Greeting) && self.frames.is_empty() && is_strange(&bytes) {
            return Err(malformed());
        }
        let mut frames = std::mem::take(&mut self.frames);
        let mut hearing = Hearing {
            session: self,
            step,
        };
        let heard = frames.feed(bytes, &mut hearing);
        self.frames = frames;
        heard?;
        match matches!(self.phase, Phase::Handshake(_)) && !self.frames.is_empty() {
            true => Err(unprotected()),
            false => Ok(()),
        }
    }

    fn message(&mut self, number: u8, body: &[u8], step: &mut Step) -> Result<(), Error> {
        match &mut self.phase {
            Phase::Open => self.answer(body, step),
            Phase::Greeting => self.greeted(number, body, step),
            Phase::Handshake(_) => Err(unprotected()),
            Phase::Login(login) => {
                let out = step.outgoing();
                if login.answer(body, number, &self.settings, self.tls, out)? {
                    self.phase = Phase::Open;
                    self.set_up(step);
                }
                Ok(())
            }
        }
    }

    fn greeted(&mut self, number: u8, body: &[u8], step: &mut Step) -> Result<(), Error> {
        let greeting = Greeting::read(body)?;
        self.server.version = greeting.version.clone();
        self.server.thread = greeting.thread;
        self.server.is_mariadb = greeting.is_mariadb();
        self.server.deprecates_eof = greeting.deprecates_eof();
        let next = number.wrapping_add(1);
        if self.settings.ssl_mode == SslMode::Disable {
            let login = greeting.log_in(step.outgoing(), next, &self.settings, false)?;
            self.phase = Phase::Login(login);
        } else {
            greeting.ask_tls(step.outgoing(), next)?;
            step.start_tls();
            self.phase = Phase::Handshake(greeting);
        }
        Ok(())
    }

    pub(super) fn secured(&mut self, step: &mut Step) -> Result<(), Error> {
        match std::mem::replace(&mut self.phase, Phase::Greeting) {
            Phase::Handshake(greeting) => {
                self.tls = true;
                // The greeting was number 0, the request for TLS 1.
                let login = greeting.log_in(step.outgoing(), 2, &self.settings, true)?;
                self.phase = Phase::Login(login);
                Ok(())
            }
            _ => Err(Error::internal(
                "unexpected_input",
                "the host sent an input that has no place here",
            )),
        }
    }

    /// One message of the answer to the command at the head of the queue.
    #[inline]
    fn answer(&mut self, body: &[u8], step: &mut Step) -> Result<(), Error> {
        let eof = self.server.deprecates_eof;
        let is_over = match (self.awaited.front(), &mut self.job) {
            (Some(Awaited::Execute), Some(Job::Execute(job))) => job.message(body, eof, step)?,
            (Some(Awaited::Prepare), Some(Job::Prepare(job))) => job.message(body, eof)?,
            (Some(Awaited::Identity), Some(Job::Setup(answer, _)))
            | (Some(Awaited::Waits), Some(Job::Setup(_, answer))) => answer.message(body, eof)?,
            (Some(Awaited::EndBehind(ending)), _) => {
                let ending = *ending;
                self.ended_behind(ending, body, step)?;
                true
            }
            (Some(awaited), Some(_)) => {
                let awaited = *awaited;
                self.simple(awaited, body, step)?;
                true
            }
            // A server that closes a session may say why.
            _ if body.first() == Some(&ERROR) => return Err(ServerError::read(body)?.blame(false)),
            _ => return Err(malformed()),
        };
        if is_over {
            self.awaited.pop_front();
            if self.awaited.is_empty() {
                match self.stopping {
                    Stopping::No => self.job_ended(step),
                    // The end of the errand is waited for.
                    Stopping::Asked => {}
                    Stopping::Struck => self.absorb(step),
                    Stopping::Absorbing => self.stopped(step),
                }
            } else if let Some(ending) = self.is_answered() {
                self.awaited.clear();
                self.awaited.push_back(Awaited::EndBehind(ending));
                self.job_ended(step);
            }
        }
        Ok(())
    }

    /// Whether the request at work has all its rows, and only the end of its transaction is to come, which changes nothing of them: whoever asked does not
    /// wait for it, and what is asked next goes out behind it.
    fn is_answered(&self) -> Option<Ending> {
        let has_rows = matches!(&self.job, Some(Job::Execute(job)) if job.has_all());
        match (self.awaited.len(), self.awaited.front()) {
            (1, Some(Awaited::End(ending))) if has_rows && self.stopping == Stopping::No => {
                Some(*ending)
            }
            _ => None,
        }
    }

    /// The server has ended a transaction, and says what is there now. False if that is not what it was asked for.
    fn ended(&mut self, ending: Ending, body: &[u8], step: &mut Step) -> Result<bool, Error> {
        let transaction = match body.first() {
            Some(&OK) => protocol::transaction(body)?,
            // It knows no such words: the transaction is still there.
            _ => Transaction::Other,
        };
        if ending == Ending::Nothing {
            return Ok(transaction == Transaction::None);
        }
        // What is on its way already has its own begin, or takes this for it.
        let is_asked = self.awaited.contains(&Awaited::Execute);
        let has_begun = transaction == Transaction::ReadOnly;
        if is_asked && !has_begun && !self.awaited.contains(&Awaited::Begin) {
            return Ok(false);
        }
        self.chains = match has_begun {
            true => Chains::Yes,
            false => Chains::No,
        };
        // A later end on its way, of a probe or of a session that nobody asks, decides what is there then; this one does not, which is over by then.
        let is_end = |awaited: &Awaited| matches!(awaited, Awaited::End(_) | Awaited::EndBehind(_));
        if !self.awaited.iter().skip(1).any(is_end) {
            self.has_begun = has_begun;
            if transaction == Transaction::Other {
                self.command(END, Awaited::EndBehind(Ending::Nothing), step);
            }
        }
        Ok(true)
    }

    /// Whether an end fails for what it would begin, which the server has not shown yet that it does.
    fn is_without_chain(&self, ending: Ending, error: &ServerError) -> bool {
        ending == Ending::Next && self.chains != Chains::Yes && !error.is_cancelled()
    }

    /// The end of a request that was answered before. If it fails the session ends, and what is at work there is not to blame: it may be asked elsewhere.
    fn ended_behind(&mut self, ending: Ending, body: &[u8], step: &mut Step) -> Result<(), Error> {
        let why = match body.first() {
            Some(&OK) if matches!(self.ended(ending, body, step), Ok(true)) => return Ok(()),
            Some(&ERROR) => match ServerError::read(body) {
                // What was meant for the request at work; a statement that does nothing is there for what strikes late.
                Ok(error)
                    if error.is_cancelled()
                        && matches!(self.stopping, Stopping::Asked | Stopping::Struck) =>
                {
                    return Ok(());
                }
                Ok(error)
                    if self.is_without_chain(ending, &error)
                        && matches!(self.ended(ending, body, step), Ok(true)) =>
                {
                    return Ok(());
                }
                Ok(error) => error.blame(false).message,
                Err(error) => error.message,
            },
            _ => "the answer to its ROLLBACK is no end of it".to_owned(),
        };
        let error = Error::unavailable(
            "transaction_not_ended",
            "the transaction of the statement before did not end",
        );
        Err(error.detail(why))
    }

    /// The answer to a command that is answered by one message.
    fn simple(&mut self, awaited: Awaited, body: &[u8], step: &mut Step) -> Result<(), Error> {
        let error = match body.first() {
            Some(&OK) => {
                return match awaited {
                    Awaited::End(ending) if !self.ended(ending, body, step)? => {
                        Err(malformed().detail("a statement left a transaction open"))
                    }
                    _ => Ok(()),
                };
            }
            Some(&ERROR) => ServerError::read(body)?,
            _ => return Err(malformed()),
        };
        if awaited == Awaited::AllRows {
            // A server without the setting cuts nothing.
            if !error.is_unknown_variable() {
                self.command(ALL_ROWS_SIGNED, Awaited::Setup, step);
            }
            return Ok(());
        }
        if let Awaited::End(ending) = awaited
            && self.is_without_chain(ending, &error)
        {
            return self.ended(ending, body, step).map(|_| ());
        }
        match (awaited, &mut self.job) {
            // What was meant for the statement may strike what goes with it, and what is there to be struck.
            (Awaited::Absorb, _) if error.is_cancelled() => Ok(()),
            (Awaited::End(_), _)
                if error.is_cancelled()
                    && matches!(self.stopping, Stopping::Asked | Stopping::Struck) =>
            {
                Ok(())
            }
            (Awaited::Kill, Some(Job::Errand { error: first, .. })) => {
                first.get_or_insert(error);
                Ok(())
            }
            (Awaited::Limit, _) if error.is_unknown_variable() => {
                self.server.is_without_limit = true;
                Ok(())
            }
            (Awaited::Begin | Awaited::Limit, Some(Job::Execute(job))) => {
                job.fail(error);
                Ok(())
            }
            (
                Awaited::Probe | Awaited::Begin | Awaited::Limit,
                Some(Job::Probe { error: first, .. }),
            ) => {
                first.get_or_insert(error);
                Ok(())
            }
            // What a session needs, or the end of its transaction: without it there is no session.
            _ => Err(error.blame(false)),
        }
    }

    /// The errand that was to stop the request at work has ended.
    pub(super) fn conferred(
        &mut self,
        failure: Option<String>,
        step: &mut Step,
    ) -> Result<(), Error> {
        match (self.stopping, failure) {
            (Stopping::Asked, Some(why)) => Err(cancelled().detail(why)),
            (Stopping::Asked, None) => {
                self.stopping = Stopping::Struck;
                if self.awaited.is_empty() {
                    self.absorb(step);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What was to be stopped is.
    fn stopped(&mut self, step: &mut Step) {
        self.stopping = Stopping::No;
        let Some(job) = self.job.take() else { return };
        match &job {
            Job::Execute(job) => self.remember(job),
            Job::Prepare(Prepare {
                described: Some((id, ..)),
                ..
            }) => protocol::close(step.outgoing(), *id),
            _ => {}
        }
        if let Some(id) = job.id() {
            step.failed(id, cancelled());
        }
    }

    /// All commands of the job have been answered.
    fn job_ended(&mut self, step: &mut Step) {
        match self.job.take() {
            Some(Job::Execute(job)) => self.executed(job, step),
            Some(Job::Prepare(job)) => self.prepared(job, step),
            Some(Job::Probe { id, error }) => self.probed(id, error, step),
            Some(Job::Errand { id, error }) => match error {
                Some(error) if !error.is_unknown_thread() => {
                    step.failed(id, error.blame(false));
                }
                _ => step.done(id),
            },
            Some(Job::Setup(identity, waits)) => {
                if waits.waits() {
                    self.chains = Chains::No;
                }
                self.server.identity = identity.identity(self.server.thread);
                step.ready();
            }
            None => {}
        }
    }

    /// The columns of a statement are those of its last result, however that has ended: they may have been told, and then the host knows no others by
    /// the statement's number.
    fn remember(&mut self, job: &Execute) {
        if let Some(shape) = &job.shape {
            self.statements.remember(job.place, shape);
        }
    }

    fn executed(&mut self, mut job: Execute, step: &mut Step) {
        self.remember(&job);
        let error = job.error.as_deref();
        let is_stale = error.is_some_and(ServerError::is_stale_statement);
        if is_stale && !job.ask.retried && job.unseen() {
            let text = self
                .statements
                .at(job.place)
                .map(|held| held.text.to_string());
            if let Some(id) = self.statements.forget(job.place) {
                protocol::close(step.outgoing(), id);
            }
            job.ask.retried = true;
            return self.ask(text.unwrap_or_default(), job.ask, step);
        }
        job.finish(step);
    }

    fn prepared(&mut self, job: Prepare, step: &mut Step) {
        let Prepare {
            ask,
            text,
            error,
            described,
            ..
        } = job;
        match (error, described) {
            (Some(error), _) if error.is_full_of_statements() && !ask.retried => {
                self.prepare_alone(text, ask, step);
            }
            (Some(error), _) => step.failed(ask.id, error.of_statement(false)),
            (None, Some((id, _, 0))) => {
                protocol::close(step.outgoing(), id);
                step.failed(ask.id, no_result());
            }
            (None, Some((id, parameters, _))) => {
                let (place, evicted) = self.statements.keep(text, &ask.parameters, id, parameters);
                if let Some(evicted) = evicted {
                    protocol::close(step.outgoing(), evicted);
                }
                self.execute(ask, place, step);
            }
            (None, None) => step.failed(ask.id, malformed()),
        }
    }

    /// The server keeps no more statements: ours make room.
    #[cold]
    fn prepare_alone(&mut self, text: Box<str>, mut ask: Ask, step: &mut Step) {
        for id in self.statements.forget_all() {
            protocol::close(step.outgoing(), id);
        }
        ask.retried = true;
        self.ask(text.into(), ask, step);
    }

    fn probed(&mut self, id: u32, error: Option<ServerError>, step: &mut Step) {
        let is_refused = error.as_ref().is_some_and(ServerError::is_refused_write);
        match error {
            Some(error) if !is_refused && !error.is_unknown_table() => {
                step.failed(id, error.blame(false));
            }
            _ => {
                let described = std::mem::replace(&mut self.ping_described, true);
                let columns = (!described).then(Rows::ping_columns);
                step.columns(id, PING_SHAPE, columns);
                step.batch(id, ping_batch(&self.server.version, is_refused));
                step.done(id);
            }
        }
    }
}

/// Whether what a server says first is none of MySQL's, whose first packet has the number 0. What others greet with are words (`SSH-`, `220 `), of which the
/// first would be taken for the length of millions of bytes that never come. (A refusal may have the number 1.)
fn is_strange(first: &[u8]) -> bool {
    first.get(3).is_some_and(|number| *number > 1)
}

fn ping_batch(version: &str, read_only: bool) -> Batch {
    let cells = [Cell::Text(version), Cell::Boolean(read_only)];
    let filled = |(column, cell): (Column, Cell<'_>)| {
        let mut builder = ColumnBuilder::new(column.kind);
        // The cells are of the columns' types.
        let _ = builder.push(cell);
        builder.finish()
    };
    let chunks = Rows::ping_columns().into_iter().zip(cells).map(filled);
    Batch {
        rows: 1,
        chunks: chunks.collect(),
    }
}

#[cold]
fn unprotected() -> Error {
    Error::source_failed(
        "unexpected_bytes",
        "the source sent data before the TLS handshake",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statements::Arriving;
    use crate::types::id;
    use souk_sdk::{Event, Limits, Machine, Settings};

    /// A column of this type, as a server describes it.
    fn definition(kind: u8) -> Vec<u8> {
        let mut body = Vec::new();
        for text in ["def", "", "", "", "v", ""] {
            protocol::sized(&mut body, text.as_bytes());
        }
        let mut rest = protocol::BINARY.to_le_bytes().to_vec();
        rest.extend_from_slice(&[8, 0, 0, 0, kind, 0, 0, 0, 0, 0]);
        protocol::sized(&mut body, &rest);
        body
    }

    /// Columns that were told before a request was stopped are what the host knows by the statement's number: those before them are told anew.
    #[test]
    fn a_stopped_request_leaves_its_columns() {
        let json = r#"{"username":"u","password":"p","database":"d","ssl_mode":"disable"}"#;
        let mut session = Session::open(Settings {
            engine: "mysql".into(),
            json: json.into(),
        })
        .unwrap();
        let (place, _) = session.statements.keep("SELECT ?".into(), &[], 7, 1);
        let arrives = |session: &mut Session, kind: u8| {
            let statement = session.statements.at(place).unwrap();
            let mut arriving = Arriving::new(statement.shape.clone());
            arriving.definition(&definition(kind)).unwrap();
            arriving.shape(place as u32, false).unwrap()
        };
        let first = arrives(&mut session, id::LONGLONG);
        assert!(first.columns.describe().is_some());
        session.statements.at(place).unwrap().shape = Some(first);
        let known = arrives(&mut session, id::LONGLONG);
        assert!(known.columns.describe().is_none());

        // Of another value, with the first of many rows.
        let others = arrives(&mut session, id::DOUBLE);
        assert!(others.columns.describe().is_some());
        let ask = Ask {
            id: 1,
            parameters: Vec::new(),
            limits: Limits {
                rows_max: 1,
                bytes_max: 1,
                timeout_ms: 1,
            },
            is_catalog: false,
            retried: false,
        };
        let mut job = Execute::new(ask, place, None);
        job.shape = Some(others);
        session.job = Some(Job::Execute(job));
        let mut step = Step::default();
        session.stopped(&mut step);
        let (_, events) = step.into_parts();
        assert!(matches!(events.as_slice(), [Event::Failed(_)]));

        let again = arrives(&mut session, id::LONGLONG);
        assert!(again.columns.describe().is_some());
    }
}
