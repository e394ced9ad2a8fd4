//! Opens a second wire, 500 times for one statement.

use crate::{Behaviour, one_row};
use souk_sdk::{Error, Query, Step};

const ASIDES: usize = 500;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        for _ in 0..ASIDES {
            step.aside(b"cancel, please".to_vec());
        }
        one_row(id, step)
    }
}
