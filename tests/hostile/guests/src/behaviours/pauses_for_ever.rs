//! Asks for a pause of no time whenever one is over, and never answers.

use crate::Behaviour;
use souk_sdk::{Error, Input, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        step.wake(id, 0);
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        if let Input::Woken(id) = input {
            step.wake(id, 0);
        }
        Ok(())
    }

    fn cancel(&mut self, _id: u32, _step: &mut Step) -> Result<(), Error> {
        Ok(())
    }
}
