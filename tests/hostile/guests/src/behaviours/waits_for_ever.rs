//! Asks for a pause of 49 days, and never answers.

use crate::Behaviour;
use souk_sdk::{Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        step.wake(id, u32::MAX);
        Ok(())
    }

    fn cancel(&mut self, _id: u32, _step: &mut Step) -> Result<(), Error> {
        Ok(())
    }
}
