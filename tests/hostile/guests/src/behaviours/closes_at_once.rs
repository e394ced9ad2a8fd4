//! Closes its wire instead of answering.

use crate::Behaviour;
use souk_sdk::{Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, _id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        step.close();
        Ok(())
    }
}
