//! Sends an errand for each statement, in which it sends another one, and which never ends.

use crate::{Behaviour, one_row};
use souk_sdk::{Errand, Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        step.confer(id, b"stop, please".to_vec());
        one_row(id, step)
    }

    fn errand(&mut self, _id: u32, _errand: &Errand, step: &mut Step) -> Result<(), Error> {
        step.confer(0, b"you do it".to_vec());
        Ok(())
    }
}
