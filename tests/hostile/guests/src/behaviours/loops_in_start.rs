//! Opens, and never returns from its start.

use crate::{Behaviour, for_ever};
use souk_sdk::{Error, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn start(&mut self, _step: &mut Step) -> Result<(), Error> {
        for_ever()
    }
}
