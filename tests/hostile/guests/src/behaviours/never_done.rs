//! Sends its row, and never says that it is done.

use crate::{Behaviour, batch, id_column};
use souk_sdk::{Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        step.columns(id, 0, Some(id_column()));
        step.batch(id, batch(1)?);
        Ok(())
    }

    fn cancel(&mut self, _id: u32, _step: &mut Step) -> Result<(), Error> {
        Ok(())
    }
}
