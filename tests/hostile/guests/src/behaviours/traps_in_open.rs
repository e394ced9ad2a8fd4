//! Traps while a session opens.

use crate::Behaviour;
use souk_sdk::Error;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn open(&mut self) -> Result<(), Error> {
        super::trap()
    }
}
