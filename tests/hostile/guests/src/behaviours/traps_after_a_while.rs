//! Computes for 30 ms, then traps.

use crate::{Behaviour, burn_ms};
use souk_sdk::{Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, _id: u32, _query: &Query, _step: &mut Step) -> Result<(), Error> {
        burn_ms(30);
        super::trap()
    }
}
