//! Answers every byte of its source with a byte, and never its caller.

use crate::Behaviour;
use souk_sdk::{Error, Input, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, _id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        super::ask(step);
        Ok(())
    }

    fn receive(&mut self, _input: Input, step: &mut Step) -> Result<(), Error> {
        step.send(b"?");
        Ok(())
    }
}
