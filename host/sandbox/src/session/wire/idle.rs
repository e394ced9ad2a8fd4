//! When a guest is told that nobody asks its session for anything (ability `idle`), and what it may do then: be done with what it has at its source, for
//! which it may ask that once more over HTTP.

use std::time::{Duration, Instant};

/// What it is told so by, as if a request of this number were cancelled: none has it.
pub(super) const NOBODY: u32 = 0;
/// HTTP requests that are given no longer than this come to their end before a session is closed.
pub(super) const WINDS_UP: Duration = Duration::from_millis(WINDS_UP_MS as u64);
pub(super) const WINDS_UP_MS: u32 = 2_000;
/// How long a session is idle before its guest is told. Clients that ask one thing after the other do so sooner.
const IDLE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Idle {
    /// It is to be told.
    is_wanted: bool,
    /// Something was asked since it was told last.
    is_untold: bool,
    /// When it is told next.
    at: Option<Instant>,
    /// Until when it may ask for something that nobody asked for.
    asks_until: Option<Instant>,
}

impl Idle {
    /// The guest has the ability.
    pub fn want(&mut self) {
        self.is_wanted = true;
    }

    /// A request begins.
    #[inline]
    pub fn ends(&mut self) {
        if self.is_wanted {
            self.is_untold = true;
            (self.at, self.asks_until) = (None, None);
        }
    }

    #[inline]
    pub fn is_untold(&self) -> bool {
        self.is_untold
    }

    /// Nobody asks for anything. When to tell it, if that was not known.
    #[inline]
    pub fn begins(&mut self) -> Option<Instant> {
        if !self.is_untold || self.at.is_some() {
            return None;
        }
        self.at = Some(Instant::now() + IDLE);
        self.at
    }

    /// Whether the time has come to tell it: once.
    pub fn is_due(&mut self, now: Instant) -> bool {
        self.at.take_if(|at| *at <= now).is_some()
    }

    /// When to tell it, as long as nobody asks for anything.
    pub fn at(&self) -> Option<Instant> {
        self.at
    }

    /// It is being told. `is_idle`: nothing is in flight; else it learns that it is told at all.
    pub fn told(&mut self, is_idle: bool) {
        self.at = None;
        self.is_untold = !is_idle;
        self.asks_until = is_idle.then(|| Instant::now() + WINDS_UP);
    }

    pub fn may_ask(&self) -> bool {
        self.asks_until.is_some_and(|until| Instant::now() < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is told once after the last request, and may ask for something only then.
    #[test]
    fn it_is_told_once() {
        let mut idle = Idle::default();
        idle.ends();
        assert!(!idle.is_untold() && idle.begins().is_none());
        idle.want();
        // At the beginning, while the first request is in flight.
        idle.ends();
        idle.told(false);
        assert!(idle.is_untold() && !idle.may_ask());
        let at = idle.begins();
        assert!(at.is_some() && idle.at() == at && idle.begins().is_none());
        assert!(!idle.is_due(Instant::now()) && idle.at() == at);
        // Another request, and its end.
        idle.ends();
        assert!(idle.at().is_none() && idle.begins().is_some());
        assert!(idle.is_due(Instant::now() + IDLE) && !idle.is_due(Instant::now() + IDLE));
        idle.told(true);
        assert!(!idle.is_untold() && idle.may_ask());
        assert!(idle.begins().is_none() && idle.at().is_none());
        idle.ends();
        assert!(idle.is_untold() && !idle.may_ask());
    }
}
