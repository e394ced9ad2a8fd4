//! A backend that is not the session's own: a pooler hands each transaction to any of them, and what a session sets or prepares stays with others.
//!
//! Each request is a transaction, written at once: `BEGIN READ ONLY`, its settings, the unnamed statement, Sync; then `ROLLBACK` and Sync,
//! which takes back also what the statement set for the session. The second Sync has it run after an error, too: within the first the server
//! passes over all that follows one. An error of `BEGIN` passes over the statement, so that none runs outside of a read-only transaction.
//!
//! One after the other: PgBouncer takes a backend for idle at the end of a transaction though half of the next request has gone to it, and the
//! other half then goes to another backend, outside of any transaction or in the middle of a message (seen with 1.18).

use super::incoming::{columns, parse_description};
use super::{ENDINGS_MAX, Session, UNLOCK, cancelled};
use crate::job::{Cancel, Job, Setup};
use crate::protocol::{self, malformed, unexpected};
use crate::settings::Settings;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::Message;
use souk_sdk::{Error, Step};
use std::collections::VecDeque;

/// `BEGIN`, and the settings.
const OPENING_STATEMENTS: u8 = 2;

/// What the backend is, as far as is known.
pub(super) enum Backend {
    /// Not said yet. These pings wait for it: they would run at once, where statements are prepared first.
    Asked(Vec<u32>),
    /// The session's: it keeps what is set and prepared.
    Own,
    Pooled(Pooled),
}

pub(super) struct Pooled {
    opening: Vec<u8>,
    ending: Vec<u8>,
    /// The same behind a statement that may have locked something for the session, which is the backend's.
    unlocking: Vec<u8>,
    /// Jobs with their messages that wait for the end of the transaction before them.
    held: VecDeque<(Job, Vec<u8>)>,
}

impl Pooled {
    fn new(settings: &Settings, server_version: &str) -> Pooled {
        let timeout = settings.statement_timeout_ms().to_string();
        let mut values = vec![
            ("statement_timeout", timeout.as_str()),
            ("DateStyle", "ISO"),
            ("TimeZone", "UTC"),
        ];
        if !is_ancient(server_version) {
            values.extend([
                ("IntervalStyle", "postgres"),
                ("bytea_output", "hex"),
                ("standard_conforming_strings", "on"),
                ("client_min_messages", "error"),
            ]);
        }
        let set = values
            .iter()
            .map(|(name, value)| format!("pg_catalog.set_config('{name}', '{value}', true)"));
        let (mut opening, mut ending, mut unlocking) = (Vec::new(), Vec::new(), Vec::new());
        protocol::run_unnamed(&mut opening, "BEGIN READ ONLY");
        let set = set.collect::<Vec<_>>().join(", ");
        protocol::run_unnamed(&mut opening, &format!("SELECT {set}"));
        protocol::run_unnamed(&mut ending, "ROLLBACK");
        unlocking.extend_from_slice(&ending);
        protocol::run_unnamed(&mut unlocking, UNLOCK);
        for ending in [&mut ending, &mut unlocking] {
            ending.extend_from_slice(&protocol::SYNC);
        }
        Pooled {
            opening,
            ending,
            unlocking,
            held: VecDeque::new(),
        }
    }

    fn ending(&self, unlocks: bool) -> &[u8] {
        match unlocks {
            true => &self.unlocking,
            false => &self.ending,
        }
    }
}

/// Version 8 is Redshift's, which knows few settings and an old catalog.
pub(super) fn is_ancient(server_version: &str) -> bool {
    server_version.starts_with("8.")
}

impl Session {
    pub(super) fn is_pooled(&self) -> bool {
        matches!(self.backend, Backend::Pooled(_))
    }

    /// From here on nothing is left to the backend.
    #[cold]
    pub(super) fn pool(&mut self) {
        self.backend = Backend::Pooled(Pooled::new(&self.settings, &self.server_version));
        self.statements.are_unnamed = true;
    }

    /// Sends a job's messages in a transaction of their own, now or when those before it have ended.
    pub(super) fn send_pooled(&mut self, job: Job, messages: Vec<u8>, step: &mut Step) {
        let Backend::Pooled(pooled) = &mut self.backend else {
            return;
        };
        pooled.held.push_back((job, messages));
        self.send_held(step);
    }

    /// Sends the job that has waited longest, if nothing is on its way.
    pub(super) fn send_held(&mut self, step: &mut Step) {
        let Backend::Pooled(pooled) = &mut self.backend else {
            return;
        };
        if !self.queue.is_empty() {
            return;
        }
        while let Some((job, messages)) = pooled.held.pop_front() {
            if let Job::Execute(job) = &job
                && job.cancel != Cancel::No
            {
                step.failed(job.ask.id, cancelled());
                continue;
            }
            let unlocks = matches!(&job, Job::Execute(job) if job.statement.locks);
            let out = step.outgoing();
            out.extend_from_slice(&pooled.opening);
            out.extend_from_slice(&messages);
            out.extend_from_slice(&protocol::SYNC);
            out.extend_from_slice(pooled.ending(unlocks));
            let end = Job::End {
                unlocks,
                is_lost: false,
            };
            return self
                .queue
                .extend([Job::Begin(OPENING_STATEMENTS), job, end]);
        }
    }

    /// Takes back a request that waits to be sent. Where nobody waits for what it waits for, it stays until its turn, so that the host ends a
    /// session whose turns do not come any more.
    pub(super) fn withdraw_held(&mut self, id: u32) -> bool {
        let Backend::Pooled(pooled) = &mut self.backend else {
            return false;
        };
        let is_awaited = |job: &Job| matches!(job, Job::Execute(_) | Job::Probe(_));
        let is_waited_for = self.queue.iter().any(is_awaited);
        let asks = |job: &Job| match job {
            Job::Execute(job) => job.ask.id == id,
            Job::Probe(job) => job.id == id,
            _ => false,
        };
        let Some(at) = pooled.held.iter().position(|(job, _)| asks(job)) else {
            return false;
        };
        if is_waited_for {
            pooled.held.remove(at);
        } else if let Job::Execute(job) = &mut pooled.held[at].0 {
            job.cancel = Cancel::Wanted;
        }
        is_waited_for
    }

    /// A Sync was answered, with the state of the transaction: `I` is none.
    #[cold]
    pub(super) fn synced(&mut self, state: u8, step: &mut Step) -> Result<(), Error> {
        let Backend::Pooled(pooled) = &self.backend else {
            return self.undo(state, step);
        };
        match self.queue.front() {
            Some(Job::End { .. }) if state == b'I' => self.unended = 0,
            Some(Job::End { .. }) if self.unended == ENDINGS_MAX => {
                return Err(malformed().detail("a transaction does not end"));
            }
            Some(Job::End { unlocks, .. }) => {
                let unlocks = *unlocks;
                self.unended += 1;
                step.send(pooled.ending(unlocks));
                self.queue.push_back(Job::End {
                    unlocks,
                    is_lost: false,
                });
            }
            Some(Job::Execute(job)) if state == b'I' && job.complete => {
                return Err(malformed().detail("a statement ran outside of its transaction"));
            }
            Some(Job::Begin(_)) => {
                return Err(malformed().detail("a transaction did not begin"));
            }
            _ => {}
        }
        Ok(())
    }

    /// A pooler's backend describes a statement each time.
    pub(super) fn described(&mut self, whole: &[u8]) -> Result<(), Error> {
        let (Backend::Pooled(_), Some(Job::Execute(job))) = (&self.backend, self.queue.front_mut())
        else {
            return Err(unexpected(whole[0]));
        };
        let is_same = match parse_description(whole)? {
            Message::ParameterDescription(body) => {
                let types: Vec<u32> = body.parameters().collect().map_err(|_| malformed())?;
                types == job.statement.parameters
            }
            Message::RowDescription(body) => job.statement.has_columns(&columns(&body)?),
            _ => return Err(malformed()),
        };
        if !is_same {
            job.changed();
        }
        Ok(())
    }

    /// The answer to `WHOSE`.
    pub(super) fn told_whose(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut reader = protocol::Reader(body);
        reader.u16()?;
        let (process, read_only) = (reader.value()?, reader.value()?);
        let named = self.process.map(|(process, _)| process.to_string());
        let is_own =
            read_only == Some(b"on".as_slice()) && process == named.as_deref().map(str::as_bytes);
        if let Some(Job::Setup(job)) = self.queue.front_mut() {
            job.is_own = is_own;
        }
        Ok(())
    }

    pub(super) fn setup_ended(&mut self, job: &Setup, step: &mut Step) {
        let Backend::Asked(pings) = &mut self.backend else {
            return;
        };
        let pings = std::mem::take(pings);
        match job.is_own {
            true => {
                self.backend = Backend::Own;
                self.set_up(step);
            }
            false => self.pool(),
        }
        // Said already where nothing spoke for a pooler.
        if !self.looks_own() {
            step.ready();
        }
        for id in pings {
            self.probe(id, step);
        }
    }

    /// A statement of the opening has ended.
    pub(super) fn opened(&mut self) {
        if let Some(Job::Begin(left)) = self.queue.front_mut() {
            *left -= 1;
            if *left == 0 {
                self.queue.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::{Command, Event, Input, Limits, Machine, Request};

    fn settings(is_pooler_told: bool) -> souk_sdk::Settings {
        souk_sdk::Settings {
            engine: "postgres".into(),
            json: format!(
                r#"{{"username":"u","password":"p","database":"d","ssl_mode":"disable","pooler":{is_pooler_told}}}"#
            ),
        }
    }

    fn said(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
        protocol::message(out, tag, |out| out.extend_from_slice(body));
    }

    /// What goes out and what is told, after `received`.
    fn after(session: &mut Session, received: Vec<u8>) -> (String, bool) {
        let mut step = Step::default();
        session
            .receive(Input::Bytes(received), &mut step)
            .expect("a valid answer");
        let (commands, events) = step.into_parts();
        let sent = commands.iter().map(|command| match command {
            Command::Send(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("{other:?}"),
        });
        let is_ready = events.iter().any(|event| matches!(event, Event::Ready));
        (sent.collect(), is_ready)
    }

    /// A ping would run at once, at whoever's backend: it waits until it is known whose that is, also where a pooler's number of a process
    /// looks like one. Nothing waits where there is nothing to find out.
    #[test]
    fn no_ping_runs_before_the_backend_is_known() {
        for (named, looks_own, says, is_own) in [
            (42_i32, true, "42", true),
            (42, true, "43", false),
            (i32::MAX, false, "43", false),
            (i32::MAX, false, "2147483647", true),
        ] {
            let mut session = Session::open(settings(false)).unwrap();
            session.start(&mut Step::default()).unwrap();
            let mut login = Vec::new();
            said(&mut login, b'R', &[0; 4]);
            let key = [named.to_be_bytes(), [0; 4]].concat();
            said(&mut login, b'K', &key);
            said(&mut login, b'Z', b"I");
            let (sent, is_ready) = after(&mut session, login);
            assert!(sent.contains("pg_backend_pid"));
            assert_eq!(is_ready, looks_own, "{named}");

            let mut step = Step::default();
            let limits = Limits {
                rows_max: 1,
                bytes_max: 1 << 10,
                timeout_ms: 1_000,
            };
            session
                .submit(1, Request::Ping(limits), &mut step)
                .expect("an open session");
            assert!(step.into_parts().0.is_empty(), "{named}: it did not wait");
            let mut answer = Vec::new();
            let mut row = vec![0, 2, 0, 0, 0, says.len() as u8];
            row.extend_from_slice(says.as_bytes());
            row.extend_from_slice(b"\0\0\0\x02on");
            for (tag, body) in [
                (b'1', &b""[..]),
                (b'2', b""),
                (b'D', &row),
                (b'C', b"SELECT 1\0"),
                (b'1', b""),
                (b'Z', b"I"),
            ] {
                said(&mut answer, tag, body);
            }
            let (sent, is_ready) = after(&mut session, answer);
            assert_eq!(is_ready, !looks_own, "{named}");
            assert!(sent.contains(super::super::PROBE), "{named}: {sent}");
            assert_eq!(sent.contains("BEGIN READ ONLY"), !is_own, "{named}");
        }
    }

    /// A pooler may give a backend away in the middle of what is sent before a transaction has ended.
    #[test]
    fn a_transaction_waits_for_the_end_of_the_one_before() {
        let mut session = Session::open(settings(true)).unwrap();
        session.start(&mut Step::default()).unwrap();
        let mut login = Vec::new();
        said(&mut login, b'R', &[0; 4]);
        said(&mut login, b'Z', b"I");
        after(&mut session, login);
        let limits = Limits {
            rows_max: 1,
            bytes_max: 1 << 10,
            timeout_ms: 1_000,
        };
        let mut sent = Vec::new();
        for id in [1, 2] {
            let mut step = Step::default();
            session
                .submit(id, Request::Ping(limits), &mut step)
                .expect("an open session");
            sent.push(step.into_parts().0.len());
        }
        assert_eq!(sent, [1, 0]);
        // Taken back while another one is awaited, it has failed.
        let cancel = |session: &mut Session, id| {
            let mut step = Step::default();
            session.cancel(id, &mut step).expect("a cancel");
            step.into_parts().1.len()
        };
        let mut step = Step::default();
        session
            .submit(3, Request::Ping(limits), &mut step)
            .expect("an open session");
        assert_eq!(cancel(&mut session, 3), 1);
        // `BEGIN`, the settings, and the probe fails as it should.
        let mut answer = Vec::new();
        for (tag, body) in [
            (b'C', &b"BEGIN\0"[..]),
            (b'C', b"SELECT 1\0"),
            (b'E', b"SERROR\0C25006\0Mread-only\0\0"),
            (b'Z', b"E"),
        ] {
            said(&mut answer, tag, body);
        }
        assert_eq!(after(&mut session, answer).0, "");
        // Nobody waits for the end that it waits for: it is the host's to say when that is too long.
        assert_eq!(cancel(&mut session, 2), 0);
        let mut end = Vec::new();
        said(&mut end, b'C', b"ROLLBACK\0");
        said(&mut end, b'Z', b"I");
        assert!(after(&mut session, end).0.contains("BEGIN READ ONLY"));
    }

    /// What Redshift does not know is not set there.
    #[test]
    fn old_servers_are_told_what_they_know() {
        let settings = Settings::parse(&settings(true)).unwrap();
        let text = |version| {
            String::from_utf8_lossy(&Pooled::new(&settings, version).opening).into_owned()
        };
        for (version, is_set) in [("8.0.2", false), ("9.6.24", true), ("18.4", true)] {
            let text = text(version);
            assert!(
                text.contains("BEGIN READ ONLY") && text.contains("'statement_timeout', '30000'")
            );
            assert_eq!(text.contains("IntervalStyle"), is_set, "{version}");
        }
    }
}
