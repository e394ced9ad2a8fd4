//! Sends a quarter of a million batches without a row, then one row.

use crate::{Behaviour, batch, id_column};
use souk_sdk::{Error, Query, Step};

const BATCHES: usize = 250_000;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        step.columns(id, 0, Some(id_column()));
        for _ in 0..BATCHES {
            step.batch(id, batch(0)?);
        }
        step.batch(id, batch(1)?);
        step.done(id);
        Ok(())
    }
}
