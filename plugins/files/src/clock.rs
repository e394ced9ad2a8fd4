//! When what is being answered must end. Everything that reads or computes asks it now and then.

use souk_sdk::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<Mutex<Option<Instant>>>);

impl Clock {
    /// Sets the time that everything until the next call of this may take.
    pub fn allow(&self, timeout_ms: u32) {
        let end = Instant::now().checked_add(Duration::from_millis(timeout_ms.into()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = end;
    }

    /// What there is left of it; without end where nothing was set.
    pub fn left(&self) -> Duration {
        let end = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        end.map_or(Duration::MAX, |end| {
            end.saturating_duration_since(Instant::now())
        })
    }

    pub fn check(&self) -> Result<(), Error> {
        let end = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match end {
            Some(end) if Instant::now() >= end => Err(Error::timeout(
                "statement_timeout",
                "the statement did not finish in time",
            )),
            _ => Ok(()),
        }
    }
}
