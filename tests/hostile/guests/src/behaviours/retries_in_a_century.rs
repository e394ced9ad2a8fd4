//! Says that the source is busy, for a hundred years.

use crate::Behaviour;
use souk_sdk::{Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        let mut error = Error::rate_limited("busy", "later");
        error.retry_after_ms = Some(u64::MAX);
        step.failed(id, error);
        Ok(())
    }
}
