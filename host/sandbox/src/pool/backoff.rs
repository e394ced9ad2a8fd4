//! How long a source that has refused a session is left alone before it is asked for another one, while others are there that serve whoever waits. A
//! database that is full is its seller's: each further login is refused, and costs it one that others would have had. Counts refusals, and knows neither
//! sessions nor clocks; its pool's lock guards it.

use std::time::Duration;

/// After the first refusal: one that was bad luck delays nobody for much longer than a login takes.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// A source that takes sessions again is found out within this time, if anybody waits for one.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// So long after the last pause another refusal has nothing to do with those before: much longer than one takes to come.
const ROW: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Backoff {
    /// In a row: each pause is twice as long as the one before.
    pauses: u32,
    /// Until when the last one is, in microseconds of the pool's clock.
    until_us: u64,
}

impl Backoff {
    /// Whether a session may be opened now. After a refusal it is one at a time, until one is taken; and where there are sessions, not before the
    /// pause is over. Where there is none nobody else answers whoever waits: they hear at once what the next login meets.
    pub fn allows(&self, opening: usize, has_sessions: bool, now_us: u64) -> bool {
        self.pauses == 0 || (opening == 0 && (!has_sessions || self.is_over(now_us)))
    }

    /// A session could not be opened. Returns what is left of the pause.
    pub fn refused(&mut self, now_us: u64) -> Duration {
        if now_us > self.until_us + ROW.as_micros() as u64 {
            self.pauses = 0;
        }
        // Others that were under way with the one that began the pause do not make it longer.
        if self.is_over(now_us) {
            let factor = 1u32.checked_shl(self.pauses).unwrap_or(u32::MAX);
            let pause = PAUSE_MIN.saturating_mul(factor).min(PAUSE_MAX);
            self.until_us = now_us + pause.as_micros() as u64;
            self.pauses = self.pauses.saturating_add(1);
        }
        Duration::from_micros(self.until_us.saturating_sub(now_us))
    }

    /// A session was opened: the source takes them.
    pub fn taken(&mut self) {
        *self = Backoff::default();
    }

    fn is_over(&self, now_us: u64) -> bool {
        self.until_us <= now_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS_US: u64 = 1_000;

    fn refused_at(now_us: u64) -> Backoff {
        let mut backoff = Backoff::default();
        backoff.refused(now_us);
        backoff
    }

    /// Pauses grow with each refusal, up to some seconds, and one session that is taken forgets them.
    #[test]
    fn pauses_grow_until_a_session_is_taken() {
        let mut backoff = Backoff::default();
        let mut now_us = 0;
        let mut pauses = Vec::new();
        for _ in 0..40 {
            let pause = backoff.refused(now_us);
            pauses.push(pause.as_millis());
            now_us += pause.as_micros() as u64;
            assert!(!backoff.allows(0, true, now_us - 1));
            assert!(backoff.allows(0, true, now_us));
        }
        assert_eq!(pauses[..7], [100, 200, 400, 800, 1_600, 3_200, 5_000]);
        assert!(pauses[7..].iter().all(|pause| *pause == 5_000));
        now_us += 2 * ROW.as_micros() as u64;
        assert_eq!(backoff.refused(now_us), PAUSE_MIN, "after a while");
        backoff.taken();
        assert!(backoff.allows(3, true, now_us), "several at once");
        assert_eq!(backoff.refused(now_us), PAUSE_MIN);
    }

    /// Logins that are refused together are one reason for one pause, and each hears when it is over.
    #[test]
    fn what_is_refused_together_pauses_once() {
        let mut backoff = refused_at(MS_US);
        let left = backoff.refused(41 * MS_US);
        assert_eq!(left, Duration::from_millis(60));
        assert!(backoff.allows(0, true, 101 * MS_US));
    }

    /// Of a source that has refused one, one at a time is asked for, also where the pause is over or no session is left.
    #[test]
    fn after_a_refusal_it_is_one_at_a_time() {
        let backoff = refused_at(0);
        for has_sessions in [true, false] {
            assert!(!backoff.allows(1, has_sessions, 200 * MS_US));
            assert!(backoff.allows(0, has_sessions, 200 * MS_US));
        }
    }

    /// Whoever waits has nobody else once the last session is gone.
    #[test]
    fn no_pause_holds_where_no_session_is_left() {
        let backoff = refused_at(0);
        assert!(!backoff.allows(0, true, MS_US));
        assert!(backoff.allows(0, false, MS_US));
    }
}
