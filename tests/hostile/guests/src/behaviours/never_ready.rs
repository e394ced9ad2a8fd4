//! Opens, starts, and never takes a request.

use crate::Behaviour;
use souk_sdk::{Error, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        step.send(b"hello?");
        Ok(())
    }
}
