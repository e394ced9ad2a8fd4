//! For how long a statement may run. T-SQL has no setting for that, so it is a pause of the host's, at whose end the statement is stopped.
//!
//! A pause cannot be taken back, and none says for which request it was: one that outlasts its request is used for the next.

/// The time of day is told in whole seconds.
const SECOND_MS: u64 = 1_000;

/// The pause that is under way, if any, and when the request at work is to be stopped.
#[derive(Default)]
pub struct Patience {
    /// In seconds since 1970, rounded down.
    ends_at: u64,
    last: u32,
    stops: Stops,
}

#[derive(Default)]
enum Stops {
    #[default]
    Never,
    WithThePause,
    /// In milliseconds since 1970, rather late than early.
    At(u64),
}

impl Patience {
    /// A request begins that may take so long. The number and the length of a pause, if one is needed.
    pub fn begin(&mut self, now: u64, statement_ms: u32, request_ms: u32) -> Option<(u32, u32)> {
        self.stops = Stops::Never;
        // The host's own deadline is as early.
        if statement_ms >= request_ms {
            return None;
        }
        // One that ends in this second may have ended, unseen.
        if self.ends_at > now + 1 {
            self.stops = Stops::At((now + 1) * SECOND_MS + u64::from(statement_ms));
            return None;
        }
        Some(self.pause(now, statement_ms))
    }

    /// A pause is over. Whether the request at work is to be stopped, or the pause for what is left to it.
    pub fn woken(&mut self, id: u32) -> Woken {
        if id != self.last {
            return Woken::Nothing;
        }
        let now = std::mem::take(&mut self.ends_at);
        let left = match std::mem::take(&mut self.stops) {
            Stops::Never => return Woken::Nothing,
            Stops::WithThePause => 0,
            Stops::At(at) => at.saturating_sub(now * SECOND_MS),
        };
        match u32::try_from(left).unwrap_or(u32::MAX) {
            0 => Woken::Stop,
            left => {
                let (id, ms) = self.pause(now, left);
                Woken::Again(id, ms)
            }
        }
    }

    /// The request at work has ended.
    pub fn end(&mut self) {
        self.stops = Stops::Never;
    }

    fn pause(&mut self, now: u64, ms: u32) -> (u32, u32) {
        self.last = self.last.wrapping_add(1);
        self.ends_at = (now * SECOND_MS + u64::from(ms)) / SECOND_MS;
        self.stops = Stops::WithThePause;
        (self.last, ms.max(1))
    }
}

#[derive(Debug, PartialEq)]
pub enum Woken {
    Nothing,
    Stop,
    Again(u32, u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_pause_and_the_next_one_the_same() {
        let mut patience = Patience::default();
        assert_eq!(patience.begin(100, 30_000, 30_000), None);
        assert_eq!(patience.begin(100, 5_000, 30_000), Some((1, 5_000)));
        patience.end();
        // It has ended, and another one begins, which has time until 108 and a part of a second.
        assert_eq!(patience.begin(103, 5_000, 30_000), None);
        let Woken::Again(id, left) = patience.woken(1) else {
            panic!("it is stopped too early")
        };
        assert_eq!(left, 4_000);
        assert_eq!(patience.woken(7), Woken::Nothing);
        assert_eq!(patience.woken(id), Woken::Stop);
        patience.end();
        // What is over while nothing is at work is not heard of.
        assert_eq!(patience.begin(200, 5_000, 30_000), Some((3, 5_000)));
        assert_eq!(patience.woken(3), Woken::Stop);
    }

    /// Short ones are stopped at their end as well.
    #[test]
    fn parts_of_a_second_are_enough() {
        let mut patience = Patience::default();
        assert_eq!(patience.begin(100, 50, 1_000), Some((1, 50)));
        assert_eq!(patience.woken(1), Woken::Stop);
        patience.end();
        assert_eq!(patience.woken(1), Woken::Nothing);
    }
}
