//! Is never ready: it asks for a pause whenever one is over.

use crate::Behaviour;
use souk_sdk::{Error, Input, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        step.wake(0, 0);
        Ok(())
    }

    fn receive(&mut self, _input: Input, step: &mut Step) -> Result<(), Error> {
        step.wake(0, 0);
        Ok(())
    }
}
