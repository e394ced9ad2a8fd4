//! How many records of runs that cost nothing each seller may still have kept: they stay for good, on the disk that the ledger is on. Knows no runs.

use souk_domain::ids::CompanyId;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Records of one seller, kept at once.
const AT_ONCE: f64 = 20_000.0;
/// And over time: half a million a day, some 200 MB.
const A_SECOND: f64 = 6.0;

/// What sellers have left. Those who have all of it are not there.
#[derive(Default)]
pub(super) struct Allowances {
    sellers: HashMap<CompanyId, f64>,
    at: Option<Instant>,
}

impl Allowances {
    /// Takes one for each of these sellers' records; those who have none left come back.
    pub fn take<'a>(
        &mut self,
        sellers: impl Iterator<Item = &'a CompanyId>,
        now: Instant,
    ) -> HashSet<CompanyId> {
        let passed = self.at.replace(now).map_or(Duration::ZERO, |at| now - at);
        let regained = passed.as_secs_f64() * A_SECOND;
        self.sellers.retain(|_, left| {
            *left += regained;
            *left < AT_ONCE
        });
        for seller in sellers {
            match self.sellers.get_mut(seller) {
                Some(left) => *left -= 1.0,
                None => drop(self.sellers.insert(seller.clone(), AT_ONCE - 1.0)),
            }
        }
        let used_up = self.sellers.iter().filter(|(_, left)| **left < 1.0);
        used_up.map(|(seller, _)| seller.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever has many records kept at once waits for more; others do not, nor does who has waited.
    #[test]
    fn records_are_allowed_over_time() {
        let (busy, other) = (CompanyId::generate(), CompanyId::generate());
        let mut allowances = Allowances::default();
        let begun = Instant::now();
        let mut take = |count: usize, seconds: u64| {
            let sellers = std::iter::repeat_n(&busy, count).chain([&other]);
            allowances.take(sellers, begun + Duration::from_secs(seconds))
        };
        assert!(take(AT_ONCE as usize - 1, 0).is_empty());
        assert_eq!(take(1, 0), HashSet::from([busy.clone()]));
        assert_eq!(take(6, 1), HashSet::from([busy.clone()]));
        assert!(take(5, 2).is_empty());
        assert!(take(0, 1_000_000).is_empty());
        assert!(allowances.sellers.len() == 1);
    }
}
