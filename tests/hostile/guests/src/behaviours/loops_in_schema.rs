//! Never returns from listing its tables; statements are answered.

use crate::{Behaviour, for_ever};
use souk_sdk::{Error, SchemaFilter, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn schema(&mut self, _id: u32, _filter: &SchemaFilter, _step: &mut Step) -> Result<(), Error> {
        for_ever()
    }
}
