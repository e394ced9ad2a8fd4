//! Takes all the memory that it can get, and uses it.

use crate::Behaviour;
use souk_sdk::{Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, _id: u32, _query: &Query, _step: &mut Step) -> Result<(), Error> {
        super::all_memory()
    }
}
