//! What one guest may use.

use std::{sync::Arc, time::Duration};

use super::state::MemoryGrant;
use crate::ticker::Ticker;

/// Bounds of one guest.
#[derive(Clone)]
pub(crate) struct Budget {
    pub memory: MemoryGrant,
    /// All its calls are in turns, so that it can be suspended where it asks for memory, too.
    pub is_suspended: bool,
    /// Processor time of one call in turns.
    pub call: Duration,
    /// The same, added for each MiB that the call is given.
    pub call_per_mib: Duration,
    /// Bytes that a call may return on a worker: lifting them holds it. Aliased strings would
    /// otherwise multiply guest memory.
    pub inline_bytes: usize,
    /// Bytes that a call may return in a lane.
    pub call_bytes: usize,
    pub columns_max: usize,
    /// Ticks while the guest is in a call.
    pub ticker: Arc<Ticker>,
}

impl Budget {
    /// Processor time of a call in turns that is given so many bytes.
    pub fn of(&self, given: usize) -> Duration {
        let kib = u32::try_from(given >> 10).unwrap_or(u32::MAX);
        let more = self.call_per_mib.saturating_mul(kib) / 1_024;
        self.call.saturating_add(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who is given much may compute for longer, in proportion; who is given little is cut off as early as ever.
    #[test]
    fn time_grows_with_what_is_given() {
        let budget = |call| Budget {
            memory: MemoryGrant {
                bytes_max: 0,
                on_worker_max: 0,
                uncounted: 0,
                account: None,
            },
            is_suspended: false,
            call,
            call_per_mib: Duration::from_millis(200),
            inline_bytes: 0,
            call_bytes: 0,
            columns_max: 0,
            ticker: Arc::new(Ticker::new(Duration::ZERO)),
        };
        let wire = budget(Duration::from_millis(250));
        assert_eq!(wire.of(0), Duration::from_millis(250));
        assert_eq!(wire.of(1_000), Duration::from_millis(250));
        assert_eq!(wire.of(512 << 10), Duration::from_millis(350));
        assert_eq!(wire.of(2 << 20), Duration::from_millis(650));
        assert!(wire.of(usize::MAX) > Duration::from_secs(60));
        assert_eq!(budget(Duration::MAX).of(2 << 20), Duration::MAX);
    }
}
