//! No session of it ever opens: `open` never returns.

use crate::{Behaviour, for_ever};
use souk_sdk::Error;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn open(&mut self) -> Result<(), Error> {
        for_ever()
    }
}
