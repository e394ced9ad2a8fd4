//! Asks its source something, and never returns from reading the answer.

use crate::{Behaviour, for_ever};
use souk_sdk::{Error, Input, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, _id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        super::ask(step);
        Ok(())
    }

    fn receive(&mut self, _input: Input, _step: &mut Step) -> Result<(), Error> {
        for_ever()
    }
}
