//! For how long a statement may run. T-SQL has no setting for that, so it is a pause of the host's, at whose end the statement is stopped.
//!
//! The host forgets a session's pauses when it begins anew to have something to do, and may tell of one that was asked for before: so each request
//! has one of its own, by its number.

/// The pause of the request at work, if it has one.
#[derive(Default)]
pub struct Patience {
    last: u32,
    is_waited_for: bool,
}

impl Patience {
    /// A request begins that may take so long, in milliseconds. The number and the length of a pause, if one is needed.
    pub fn begin(&mut self, statement_ms: u32, request_ms: u32) -> Option<(u32, u32)> {
        // The host's own deadline may be as early.
        self.is_waited_for = statement_ms < request_ms;
        if !self.is_waited_for {
            return None;
        }
        self.last = self.last.wrapping_add(1);
        Some((self.last, statement_ms.max(1)))
    }

    /// A pause is over. Whether the request at work is to be stopped.
    pub fn woken(&mut self, id: u32) -> bool {
        id == self.last && std::mem::take(&mut self.is_waited_for)
    }

    /// The request at work has ended.
    pub fn end(&mut self) {
        self.is_waited_for = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_has_a_pause_of_its_own() {
        let mut patience = Patience::default();
        assert_eq!(patience.begin(30_000, 30_000), None);
        assert!(!patience.woken(0));
        assert_eq!(patience.begin(5_000, 30_000), Some((1, 5_000)));
        patience.end();
        assert_eq!(patience.begin(5_000, 30_000), Some((2, 5_000)));
        // That of the one before.
        assert!(!patience.woken(1));
        assert!(patience.woken(2));
        assert!(!patience.woken(2));
        patience.end();
        // What is over while nothing is at work, or while what is has no pause, is not heard of.
        assert_eq!(patience.begin(5_000, 30_000), Some((3, 5_000)));
        patience.end();
        assert!(!patience.woken(3));
        assert_eq!(patience.begin(30_000, 5_000), None);
        assert!(!patience.woken(3));
    }

    /// A pause of nothing is none that the host knows.
    #[test]
    fn no_time_is_some_time() {
        assert_eq!(Patience::default().begin(0, 1_000), Some((1, 1)));
    }
}
