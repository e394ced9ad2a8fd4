//! Sends its rows in batches of one, as many as its memory holds.

use crate::{Behaviour, batch, id_column};
use souk_sdk::{Error, Query, Step};

/// A quarter of a million: some 40 MiB here, and more for whoever takes them in.
const BATCHES: usize = 250_000;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        step.columns(id, 0, Some(id_column()));
        for _ in 0..BATCHES {
            step.batch(id, batch(1)?);
        }
        step.done(id);
        Ok(())
    }
}
