//! Fails one request and the hundred thousand next ones, which nobody made.

use crate::Behaviour;
use souk_sdk::{Error, Query, Step};

const EVENTS: u32 = 100_000;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        for number in 0..EVENTS {
            step.failed(id + number, Error::internal("again", "and again"));
        }
        Ok(())
    }
}
