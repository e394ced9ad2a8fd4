//! Takes all the memory that it can get before it has opened.

use crate::Behaviour;
use souk_sdk::Error;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn open(&mut self) -> Result<(), Error> {
        super::all_memory()
    }
}
