//! What a version has counted of itself, and when that is too much.

use souk_sandbox::ConnectorInfo;

/// One call can be unlucky. No more than what makes a data connection pause, so that one connection is enough.
const FAULTS_MIN: u64 = 5;
/// One in so many calls.
const SHARE: u64 = 4;

/// Calls of a version, and faults of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub calls: u64,
    pub faults: u64,
}

impl Counted {
    pub fn of(info: &ConnectorInfo) -> Counted {
        Counted {
            calls: info.calls_total,
            faults: info.traps_total,
        }
    }

    pub fn since(self, before: Counted) -> Counted {
        Counted {
            calls: self.calls.saturating_sub(before.calls),
            faults: self.faults.saturating_sub(before.faults),
        }
    }

    /// A session that does not open is a fault too, of no call or of many.
    pub fn is_too_much(self) -> bool {
        self.faults >= FAULTS_MIN && self.faults.saturating_mul(SHARE) >= self.calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few faults among many calls, or a few in all, are no reason.
    #[test]
    fn a_version_is_judged_by_number_and_share() {
        let met = |calls, faults| Counted { calls, faults }.is_too_much();
        assert!(met(5, 5) && met(20, 5) && met(0, 5));
        assert!(!met(4, 4) && !met(21, 5) && !met(0, 0));
        let before = Counted {
            calls: 100,
            faults: 50,
        };
        let now = Counted {
            calls: 110,
            faults: 54,
        };
        assert!(!now.since(before).is_too_much());
        assert!(!before.since(now).is_too_much());
    }
}
