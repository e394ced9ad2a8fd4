//! Sends an errand for each statement, in which it sends another one, and which never ends. It answers when it is told that this is not done.

use super::conferred;
use crate::Behaviour;
use souk_sdk::{Errand, Error, Input, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        step.confer(id, b"stop, please".to_vec());
        Ok(())
    }

    fn errand(&mut self, _id: u32, _errand: &Errand, step: &mut Step) -> Result<(), Error> {
        step.confer(0, b"you do it".to_vec());
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        conferred(input, "an errand while it was on one", step)
    }
}
