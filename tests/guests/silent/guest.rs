//! Takes a statement and never answers it.

use souk_guests::Behaviour;
use souk_sdk::{Error, Query, Settings, Step};

struct Silent;

souk_guests::export!(Silent);

impl Behaviour for Silent {
    const NAME: &'static str = "silent";

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(Silent)
    }

    fn query(&mut self, _id: u32, _query: Query, _step: &mut Step) -> Result<(), Error> {
        Ok(())
    }
}
