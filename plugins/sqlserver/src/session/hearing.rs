//! What a session does with what comes in: logging in, and the answer to the request at work.

use souk_sdk::results::SHAPES_MAX;
use souk_sdk::{Error, ErrorClass, Step};

use super::{Phase, Session, unexpected};
use crate::job::{End, Heard, Reader};
use crate::login;
use crate::ping::{PROBE, Ping};
use crate::protocol::{self, malformed};
use crate::tokens::{self, Next};

/// A number that no shape of a result has.
const PING_SHAPE: u32 = SHAPES_MAX as u32;

impl Session {
    pub(super) fn secured(&mut self, step: &mut Step) -> Result<(), Error> {
        match self.phase {
            Phase::Handshake { is_first: true } => {
                self.phase = Phase::Prelogin { is_sealed: true };
                self.say(protocol::PRELOGIN, &login::prelogin(&self.settings), step);
            }
            Phase::Handshake { is_first: false } => self.log_in(step),
            _ => return Err(unexpected()),
        }
        Ok(())
    }

    fn log_in(&mut self, step: &mut Step) {
        self.phase = Phase::Login(login::Answer::default());
        self.say(protocol::LOGIN, &login::login(&self.settings), step);
    }

    pub(super) fn bytes(&mut self, mut bytes: &[u8], step: &mut Step) -> Result<(), Error> {
        loop {
            // What is not protected by TLS must not be taken for protected.
            if matches!(self.phase, Phase::Handshake { .. }) && !bytes.is_empty() {
                return Err(Error::source_failed(
                    "unexpected_bytes",
                    "the source sent data before the TLS handshake",
                ));
            }
            let Some((piece, is_end)) = self.packets.next(&mut bytes)? else {
                return Ok(());
            };
            match &mut self.stopping {
                Some(stopping) => stopping.take(piece)?,
                None => self.piece(piece, step)?,
            }
            if is_end {
                self.message_ended(step)?;
            }
        }
    }

    /// A part of a message, of which what is whole is read.
    fn piece(&mut self, piece: &[u8], step: &mut Step) -> Result<(), Error> {
        match self.phase {
            Phase::Prelogin { .. }
                if self.buffer.len() + piece.len() > login::PRELOGIN_BYTES_MAX =>
            {
                return Err(malformed());
            }
            // Nobody has been asked anything.
            Phase::Open if self.job.is_none() && !piece.is_empty() => return Err(malformed()),
            _ => self.buffer.extend_from_slice(piece),
        }
        if matches!(self.phase, Phase::Prelogin { .. }) || self.buffer.len() < self.needed {
            return Ok(());
        }
        let buffer = std::mem::take(&mut self.buffer);
        let mut at = 0;
        self.needed = 1;
        while at < buffer.len() {
            let left = buffer.len() - at;
            match self.token(&buffer[at..], step)? {
                Read::Taken(bytes) => at += bytes,
                Read::More(bytes) if bytes > left => {
                    self.needed = bytes;
                    break;
                }
                Read::More(_) => return Err(malformed()),
                Read::Refused(error) => {
                    // What is unread of it is only looked at for its end.
                    self.buffer = buffer[at..].to_vec();
                    return self.stop(error, step);
                }
            }
        }
        self.keep(buffer, at);
        Ok(())
    }

    /// Keeps what is not read, with room for what it waits for.
    fn keep(&mut self, mut buffer: Vec<u8>, read: usize) {
        buffer.drain(..read);
        let missing = self.needed.saturating_sub(buffer.len());
        // It grows by what is there, not by what is said: a length may lie.
        buffer.reserve_exact(missing.min(buffer.len() / 2));
        self.buffer = buffer;
    }

    fn token(&mut self, bytes: &[u8], step: &mut Step) -> Result<Read, Error> {
        if let (Phase::Open, Some(job)) = (&self.phase, &mut self.job)
            && let Some((shape, length)) = job.known(bytes, &self.shapes)
        {
            return Ok(job.described(shape)?.read(length));
        }
        let (token, length) = match tokens::next(bytes) {
            Ok(Next::Token(token, length)) => (token, length),
            Ok(Next::More(needed)) => return Ok(Read::More(needed)),
            // Nothing behind a type that is not known can be read, and nothing need be.
            Err(error) if error.class == ErrorClass::Unsupported && self.job.is_some() => {
                return Ok(Read::Refused(error));
            }
            Err(error) => return Err(error),
        };
        let (told, rest) = bytes.split_at(length);
        match (&mut self.phase, &mut self.job) {
            (Phase::Login(answer), _) => answer.take(token)?,
            (Phase::Open, Some(job)) => {
                let heard = job.take(token, told, rest, &mut self.shapes, step)?;
                return Ok(heard.read(length));
            }
            _ => return Err(malformed()),
        }
        Ok(Read::Taken(length))
    }

    fn message_ended(&mut self, step: &mut Step) -> Result<(), Error> {
        if let Some(stopping) = &mut self.stopping {
            if stopping.is_acknowledged() {
                self.stopped(step);
            }
            return Ok(());
        }
        match &mut self.phase {
            Phase::Prelogin { is_sealed } => {
                let is_sealed = *is_sealed;
                login::agreed(&std::mem::take(&mut self.buffer), is_sealed)?;
                match is_sealed {
                    true => self.log_in(step),
                    false => {
                        self.phase = Phase::Handshake { is_first: false };
                        step.start_tls_as(login::handshake(&self.settings));
                    }
                }
                Ok(())
            }
            _ if !self.buffer.is_empty() => {
                Err(malformed().detail("a message stopped in its middle"))
            }
            Phase::Login(answer) => {
                answer.conclude()?;
                if let Some(bytes) = answer.packet_bytes {
                    self.packet_bytes = bytes;
                }
                self.phase = Phase::Open;
                step.ready();
                Ok(())
            }
            Phase::Open => self.answered(step),
            Phase::Handshake { .. } => Err(malformed()),
        }
    }

    fn answered(&mut self, step: &mut Step) -> Result<(), Error> {
        let Some(job) = self.job.take() else {
            return Err(malformed());
        };
        self.patience.end();
        let (id, reader, limits) = (job.id, job.reader, job.limits);
        self.is_stale |= job.is_open();
        match (reader, job.conclude(step)?) {
            (Reader::Own, End::Done(chunks)) => {
                let ping = Ping::read(&chunks)?;
                match ping.needs_a_probe() {
                    true => {
                        self.ping = Some(ping);
                        self.own(id, PROBE.to_owned(), limits, Reader::Nobody, step);
                    }
                    false => ping.pong(id, PING_SHAPE, ping.refuses(None), step),
                }
            }
            (Reader::Nobody, end) => self.probed(id, end, step),
            (_, end) => match end.error() {
                Some(error) => step.failed(id, error),
                None => step.done(id),
            },
        }
        Ok(())
    }

    /// A write has been tried.
    fn probed(&mut self, id: u32, end: End, step: &mut Step) {
        let refused = match end {
            End::Refused(error, _) => Some(error),
            End::Failed(error) => return step.failed(id, error),
            End::Done(_) => None,
        };
        match self.ping.take() {
            Some(ping) => ping.pong(id, PING_SHAPE, ping.refuses(Some(refused.as_ref())), step),
            None => step.failed(id, Error::internal("lost", "a connection's test was lost")),
        }
    }

    /// The request at work was stopped at the server.
    fn stopped(&mut self, step: &mut Step) {
        let job = self.job.take();
        self.ping = None;
        if let (Some(job), Some(stopping)) = (job, self.stopping.take()) {
            step.failed(job.id, stopping.error);
        }
    }

    pub(super) fn closed(&mut self) -> Error {
        let lost = Error::unavailable("connection_lost", "the database closed the connection");
        // It may have said why.
        match self.job.as_mut().and_then(|job| job.error.take()) {
            Some(error) => lost.source_code(error.number.to_string()).detail(error.message),
            None => match &self.phase {
                Phase::Open => lost,
                _ => lost.detail("while logging in: does the server take the connection's version of TDS, and its way to TLS?"),
            },
        }
    }
}

enum Read {
    Taken(usize),
    More(usize),
    Refused(Error),
}

impl Heard {
    /// With the bytes of the token that this has come of.
    fn read(self, token: usize) -> Read {
        match self {
            Heard::Taken(more) => Read::Taken(token + more),
            Heard::More(more) => Read::More(token.saturating_add(more)),
            Heard::Refused(error) => Read::Refused(error),
        }
    }
}
