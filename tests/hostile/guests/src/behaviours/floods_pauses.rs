//! Asks for 5,000 pauses of 49 days each for one statement.

use crate::Behaviour;
use souk_sdk::{Error, Query, Step};

const PAUSES: u32 = 5_000;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, _id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        for number in 0..PAUSES {
            step.wake(number, u32::MAX);
        }
        Ok(())
    }
}
