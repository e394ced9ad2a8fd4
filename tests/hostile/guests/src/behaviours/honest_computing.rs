//! Computes for about 60 ms and answers: an honest guest with heavy work.

use crate::{Behaviour, burn_ms, one_row};
use souk_sdk::{Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        burn_ms(60);
        one_row(id, step)
    }
}
