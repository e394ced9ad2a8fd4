//! The time of day, as it is shown to people and told to guests. Nothing here is measured by it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since the epoch.
pub(crate) fn now_micros() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as i64)
}

/// Whole seconds since the epoch: all that a guest is told of the time, so that none can measure by it.
#[inline]
pub(crate) fn now_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
