//! Never answers, and traps when it is told to stop.

use crate::Behaviour;
use souk_sdk::{Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, _id: u32, _query: &Query, _step: &mut Step) -> Result<(), Error> {
        Ok(())
    }

    fn cancel(&mut self, _id: u32, _step: &mut Step) -> Result<(), Error> {
        super::trap()
    }
}
