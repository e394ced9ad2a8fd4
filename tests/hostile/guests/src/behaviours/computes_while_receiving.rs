//! Takes 30 ms for whatever its source says, and never answers its caller.

use crate::{Behaviour, burn_ms};
use souk_sdk::{Error, Input, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, _id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        super::ask(step);
        Ok(())
    }

    fn receive(&mut self, _input: Input, step: &mut Step) -> Result<(), Error> {
        burn_ms(30);
        step.send(b"?");
        Ok(())
    }
}
