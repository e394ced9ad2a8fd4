//! Makes a million session resources out of nothing.

use crate::{Behaviour, one_row};
use souk_sdk::{Error, Query, Step};

const RESOURCES: usize = 1_000_000;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        for _ in 0..RESOURCES {
            super::new_resource();
        }
        one_row(id, step)
    }
}
