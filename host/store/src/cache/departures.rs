//! Which values have left a cache, so that each thread drops those that it has in front, and no others. Knows no keys: a value goes by its key's hash.
//!
//! The last ones are remembered. Who has not looked for longer is told that it cannot know.

use crossbeam_utils::CachePadded;
use std::array;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many are remembered: as many as a thread has values in front, so that it is never cheaper to drop them all.
const REMEMBERED: usize = 1_024;

/// One tells at a time, any number look.
pub(super) struct Departures {
    /// How many there have been.
    count: CachePadded<AtomicU64>,
    /// The hashes of the last ones, each where its number leads.
    hashes: Box<[AtomicU64; REMEMBERED]>,
}

impl Default for Departures {
    fn default() -> Departures {
        Departures {
            count: CachePadded::default(),
            hashes: Box::new(array::from_fn(|_| AtomicU64::new(0))),
        }
    }
}

impl Departures {
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Of one. To be called by one thread at a time.
    pub fn tell(&self, hash: u64) {
        let number = self.count();
        self.of(number).store(hash, Ordering::SeqCst);
        self.count.store(number + 1, Ordering::SeqCst);
    }

    /// Of everything: more than anybody remembers. To be called by one thread at a time.
    pub fn tell_all(&self) {
        let number = self.count();
        self.count
            .store(number + REMEMBERED as u64, Ordering::SeqCst);
    }

    /// Hands out the hashes of those from the number `first` on and before `end`, or some of them, and answers whether that was all. `end` is no more
    /// than what was counted.
    pub fn between(&self, first: u64, end: u64, mut gone: impl FnMut(u64)) -> bool {
        if end - first >= REMEMBERED as u64 {
            return false;
        }
        for number in first..end {
            gone(self.of(number).load(Ordering::SeqCst));
        }
        // The place of the first is taken when so many have come: what was read before that was right.
        self.count() - first < REMEMBERED as u64
    }

    fn of(&self, number: u64) -> &AtomicU64 {
        &self.hashes[number as usize % REMEMBERED]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(departures: &Departures, first: u64) -> Option<Vec<u64>> {
        let mut seen = Vec::new();
        let is_all = departures.between(first, departures.count(), |hash| seen.push(hash));
        is_all.then_some(seen)
    }

    /// Who looks often is told each, who does not that it cannot know.
    #[test]
    fn the_last_are_remembered() {
        let departures = Departures::default();
        assert_eq!(seen(&departures, 0), Some(Vec::new()));
        for hash in 0..2_000 {
            departures.tell(hash);
            assert_eq!(seen(&departures, hash), Some(vec![hash]));
        }
        let kept = REMEMBERED as u64 - 1;
        let last: Vec<u64> = (2_000 - kept..2_000).collect();
        assert_eq!(seen(&departures, 2_000 - kept), Some(last));
        assert_eq!(seen(&departures, 2_000 - kept - 1), None);
        departures.tell_all();
        assert_eq!(seen(&departures, 2_000), None);
        let since = departures.count();
        departures.tell(7);
        assert_eq!(seen(&departures, since), Some(vec![7]));
    }

    /// Whoever looks while others leave misses none of which it says that it was all.
    #[test]
    fn none_is_missed() {
        const ALL: u64 = 200_000;
        let departures = Departures::default();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..ALL).for_each(|hash| departures.tell(hash)));
            let mut first = 0;
            while first < ALL {
                let end = departures.count();
                let mut seen = Vec::new();
                if departures.between(first, end, |hash| seen.push(hash)) {
                    assert_eq!(seen, (first..end).collect::<Vec<u64>>());
                }
                first = end;
            }
        });
    }
}
