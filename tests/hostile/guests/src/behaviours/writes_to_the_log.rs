//! Writes to standard error without end.

use crate::Behaviour;
use souk_sdk::{Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, _id: u32, _query: &Query, _step: &mut Step) -> Result<(), Error> {
        loop {
            eprintln!("{}", "all work and no play ".repeat(1000));
        }
    }
}
