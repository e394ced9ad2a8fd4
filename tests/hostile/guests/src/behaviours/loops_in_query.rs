//! Never returns from running a statement.

use crate::{Behaviour, for_ever};
use souk_sdk::{Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, _id: u32, _query: &Query, _step: &mut Step) -> Result<(), Error> {
        for_ever()
    }
}
