//! Leaves a connector alone that fails again and again. After a few of its own faults in a row the requests of
//! this data connection are refused at the cost of one look, with the last fault told to the owner; after
//! a pause one request is let through to see whether it works again.

use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;

use crate::fault::{Blame, Fault, FaultKind};

/// Faults of the connector in a row that open the breaker. One request can be unlucky, five are a pattern.
const FAULTS_MAX: u32 = 5;
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// A connector that was repaired waits no longer than this for its first request.
const PAUSE_MAX: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct Breaker {
    /// In a row. Requests that succeed look at this alone.
    faults: AtomicU32,
    /// Pauses in a row: each is twice as long as the one before.
    pauses: AtomicU32,
    /// Until when requests are refused, in microseconds of the pool's clock; 0: they are not.
    closed_until_us: AtomicU64,
    last: Mutex<Option<Fault>>,
}

impl Breaker {
    /// Whether a request may pass now. When a pause is over, one may, and the next one after as long a pause.
    #[inline]
    pub fn admit(&self, now_us: u64) -> Result<(), Fault> {
        let until_us = self.closed_until_us.load(Ordering::Acquire);
        if until_us == 0 {
            return Ok(());
        }
        self.admit_closed(until_us, now_us)
    }

    /// Whether requests are refused now.
    pub fn is_closed(&self, now_us: u64) -> bool {
        self.closed_until_us.load(Ordering::Acquire) > now_us
    }

    #[cold]
    fn admit_closed(&self, until_us: u64, now_us: u64) -> Result<(), Fault> {
        // The next pause begins with the probe: it holds if the probe fails, or is never heard of again.
        let is_probe = until_us <= now_us && self.pause(until_us, now_us);
        if is_probe {
            return Ok(());
        }
        let faults = self.faults.load(Ordering::Relaxed);
        let left_us = until_us.saturating_sub(now_us);
        let mut fault = Fault::new(
            Blame::Connector,
            FaultKind::Paused,
            format!(
                "the connector failed {faults} times in a row and is left alone for now: try again later"
            ),
        )
        .code("connector_paused");
        if let Some(last) = &*self.last.lock() {
            let detail = last.detail.as_deref().unwrap_or_default();
            fault = fault.detail(format!("last fault: {} ({detail})", last.message));
        }
        fault.retry_after_ms = Some(left_us.div_ceil(1_000).max(1));
        Err(fault)
    }

    /// A request was answered, well or by a fault that is not the connector's.
    #[inline]
    pub fn succeeded(&self) {
        if self.faults.load(Ordering::Relaxed) > 0 {
            self.faults.store(0, Ordering::Relaxed);
            self.pauses.store(0, Ordering::Relaxed);
            self.closed_until_us.store(0, Ordering::Release);
        }
    }

    pub fn failed(&self, fault: &Fault, now_us: u64) {
        *self.last.lock() = Some(fault.clone());
        if self.faults.fetch_add(1, Ordering::Relaxed) + 1 < FAULTS_MAX {
            return;
        }
        // Others that were in flight with the one that began the pause do not make it longer.
        let until_us = self.closed_until_us.load(Ordering::Acquire);
        if until_us <= now_us {
            self.pause(until_us, now_us);
        }
    }

    /// Begins a pause, unless another thread has.
    fn pause(&self, until_us: u64, now_us: u64) -> bool {
        let pauses = self.pauses.load(Ordering::Relaxed);
        let factor = 1u32.checked_shl(pauses).unwrap_or(u32::MAX);
        let pause = PAUSE_MIN.saturating_mul(factor).min(PAUSE_MAX);
        let next_us = now_us + pause.as_micros() as u64;
        let begun = self
            .closed_until_us
            .compare_exchange(until_us, next_us, Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        if begun {
            self.pauses
                .store(pauses.saturating_add(1), Ordering::Relaxed);
        }
        begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_US: u64 = 1_000_000;

    fn trapped() -> Fault {
        Fault::new(Blame::Connector, FaultKind::Trapped, "it crashed").detail("unreachable")
    }

    /// Five faults in a row close it; after a pause one request is let through, and longer pauses follow.
    #[test]
    fn it_closes_after_faults_in_a_row_and_lets_one_through_after_a_pause() {
        let breaker = Breaker::default();
        for _ in 0..4 {
            breaker.failed(&trapped(), 0);
            assert!(breaker.admit(0).is_ok());
        }
        breaker.failed(&trapped(), 0);
        let fault = breaker.admit(1).unwrap_err();
        assert_eq!(
            (fault.kind, fault.blame),
            (FaultKind::Paused, Blame::Connector)
        );
        assert!(fault.detail.unwrap().contains("it crashed (unreachable)"));
        assert_eq!(fault.retry_after_ms, Some(1_000));
        assert!(breaker.admit(SECOND_US).is_ok(), "the probe");
        assert!(breaker.admit(SECOND_US).is_err(), "the probe is under way");
        breaker.failed(&trapped(), SECOND_US);
        assert!(breaker.admit(3 * SECOND_US - 1).is_err(), "twice as long");
        assert!(breaker.admit(3 * SECOND_US).is_ok());
    }

    /// A probe that never comes back is followed by another one.
    #[test]
    fn a_lost_probe_is_not_the_last() {
        let breaker = Breaker::default();
        (0..5).for_each(|_| breaker.failed(&trapped(), 0));
        assert!(breaker.admit(SECOND_US).is_ok());
        assert!(breaker.admit(2 * SECOND_US).is_err());
        assert!(breaker.admit(3 * SECOND_US).is_ok());
    }

    /// Requests that fail together are one reason for one pause.
    #[test]
    fn what_fails_together_pauses_once() {
        let breaker = Breaker::default();
        (0..64).for_each(|_| breaker.failed(&trapped(), 1));
        assert!(breaker.admit(SECOND_US + 1).is_ok());
    }

    /// One success forgets all faults, and pauses end within a minute.
    #[test]
    fn a_success_opens_it_and_pauses_are_bounded() {
        let breaker = Breaker::default();
        (0..5).for_each(|_| breaker.failed(&trapped(), 0));
        let mut now = 0;
        for _ in 0..20 {
            now += 61 * SECOND_US;
            assert!(breaker.admit(now).is_ok());
            breaker.failed(&trapped(), now);
        }
        assert!(breaker.admit(now + 59 * SECOND_US).is_err());
        breaker.succeeded();
        assert!(breaker.admit(now).is_ok());
        breaker.failed(&trapped(), now);
        assert!(breaker.admit(now).is_ok());
    }
}
