//! Sends an errand for each statement that computes for ever, and answers when the host has cut that.

use super::conferred;
use crate::{Behaviour, for_ever};
use souk_sdk::{Errand, Error, Input, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        step.confer(id, b"stop, please".to_vec());
        Ok(())
    }

    fn errand(&mut self, _id: u32, _errand: &Errand, _step: &mut Step) -> Result<(), Error> {
        for_ever()
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        conferred(input, "", step)
    }
}
