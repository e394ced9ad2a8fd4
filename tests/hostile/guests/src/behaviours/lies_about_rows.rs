//! Says that a batch has four thousand million rows, and sends one.

use crate::{Behaviour, batch, id_column};
use souk_sdk::{Batch, Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        let chunks = batch(1)?.chunks;
        step.columns(id, 0, Some(id_column()));
        step.batch(
            id,
            Batch {
                rows: u32::MAX,
                chunks,
            },
        );
        step.done(id);
        Ok(())
    }
}
