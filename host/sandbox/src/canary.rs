//! A version that is tried out on a share of the calls, the canary, beside the one at work: which call is its, what both have met since, and whether
//! it can answer in the other's place at all. Who judges it, and when it goes, is nobody's business here.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;

use crate::{connector::LoadError, facts::Fact, loaded::Connector};

/// 2^64 divided by the golden ratio: steps of this size fall evenly into any share, from the first few on, and no rhythm of the callers meets
/// theirs. A plain counter would give each second call of a page that always makes two to the same version.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Of the numbers that a step can fall on, one percent.
const PERCENT: u64 = u64::MAX / 100;

/// What a version at work knows of the canary beside it.
#[derive(Default)]
pub(crate) struct Beside {
    /// Steps below it are the canary's calls; 0: there is none.
    bound: AtomicU64,
    step: AtomicU64,
    canary: Mutex<Option<Arc<Connector>>>,
}

impl Beside {
    /// Whether the next call is the canary's. One look where there is none.
    #[inline]
    pub fn takes_next(&self) -> bool {
        let bound = self.bound.load(Ordering::Relaxed);
        bound != 0 && self.step.fetch_add(STEP, Ordering::Relaxed) < bound
    }

    pub fn canary(&self) -> Option<Arc<Connector>> {
        self.canary.lock().clone()
    }

    pub fn is_canary(&self, connector: &Arc<Connector>) -> bool {
        let canary = self.canary.lock();
        canary
            .as_ref()
            .is_some_and(|canary| Arc::ptr_eq(canary, connector))
    }

    /// `share_percent` of the calls are the canary's from now on.
    pub fn begin(&self, canary: Arc<Connector>, share_percent: u8) {
        *self.canary.lock() = Some(canary);
        let bound = PERCENT * u64::from(share_percent);
        self.bound.store(bound, Ordering::Relaxed);
    }

    pub fn end(&self) -> Option<Arc<Connector>> {
        self.bound.store(0, Ordering::Relaxed);
        self.canary.lock().take()
    }
}

/// Refuses a canary that cannot be asked what is asked of the version at work: nobody knows beforehand which of them a call reaches.
pub(crate) fn check_stands_in(canary: &Connector, at_work: &Connector) -> Result<(), LoadError> {
    let lacks = |what: String| LoadError::NoCanary {
        name: canary.name.clone(),
        version: canary.version.clone(),
        reason: format!("{} {what}", at_work.version),
    };
    if canary.need != at_work.need || canary.exports.world() != at_work.exports.world() {
        return Err(lacks(
            "needs another grant, or is asked other things".into(),
        ));
    }
    for engine in &at_work.engines {
        let other = canary.engines.iter().find(|one| one.slug == engine.slug);
        let slug = &engine.slug;
        match other {
            None => return Err(lacks(format!("serves the engine \"{slug}\" as well"))),
            Some(other) if other.dialect != engine.dialect => {
                let dialect = &engine.dialect;
                return Err(lacks(format!(
                    "is asked in the dialect \"{dialect}\" of the engine \"{slug}\""
                )));
            }
            Some(_) => {}
        }
    }
    // How it does what it does is its own affair, and what is true of types is so of the source's.
    let is_asked_for = |ability: &&String| {
        !["pipelining", "groups", "alone", "cancel", "idle"].contains(&ability.as_str())
            && Fact::of(ability).is_none()
    };
    let mut abilities = at_work.abilities.iter().filter(is_asked_for);
    match abilities.find(|ability| !canary.abilities.contains(ability)) {
        Some(ability) => Err(lacks(format!("has the ability \"{ability}\" as well"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(share_percent: u8, calls: usize) -> Vec<bool> {
        let beside = Beside::default();
        let bound = PERCENT * u64::from(share_percent);
        beside.bound.store(bound, Ordering::Relaxed);
        (0..calls).map(|_| beside.takes_next()).collect()
    }

    fn count(taken: impl Iterator<Item = bool>) -> usize {
        taken.filter(|taken| *taken).count()
    }

    /// Of a hundred calls each share gets what it is, give or take two; where there is no canary, it gets none.
    #[test]
    fn a_share_is_kept_from_the_first_hundred_calls_on() {
        for share in 1..=99 {
            let got = count(taken(share, 100).into_iter());
            assert!(got.abs_diff(share.into()) <= 2, "{share} %: {got}");
        }
        assert_eq!(count(taken(0, 1_000).into_iter()), 0);
    }

    /// Whoever makes each second, third, … call of all meets the canary as often as the others.
    #[test]
    fn no_rhythm_meets_the_canary_more_often() {
        let taken = taken(10, 12_000);
        for rhythm in 2..=12 {
            for first in 0..rhythm {
                let own = taken.iter().skip(first).step_by(rhythm).copied();
                let (got, of) = (count(own), 12_000 / rhythm);
                assert!(
                    got.abs_diff(of / 10) <= 10,
                    "each {rhythm}th: {got} of {of}"
                );
            }
        }
    }
}
