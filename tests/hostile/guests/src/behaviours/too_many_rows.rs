//! Answers rows without end, a thousand in a batch.

use crate::{Behaviour, batch, id_column};
use souk_sdk::{Error, Query, Step};

/// Four million rows: half of what its memory holds.
const BATCHES: usize = 4_000;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        step.columns(id, 0, Some(id_column()));
        for _ in 0..BATCHES {
            step.batch(id, batch(1_000)?);
        }
        step.done(id);
        Ok(())
    }
}
