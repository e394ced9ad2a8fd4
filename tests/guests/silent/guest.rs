//! Takes a statement, waits for the end of a pause of 49 days, and never answers.

use souk_guests::Behaviour;
use souk_sdk::{Error, Query, Settings, Step};

struct Silent;

souk_guests::export!(Silent);

impl Behaviour for Silent {
    const NAME: &'static str = "silent";

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(Silent)
    }

    fn query(&mut self, id: u32, _query: Query, step: &mut Step) -> Result<(), Error> {
        step.wake(id, u32::MAX);
        Ok(())
    }
}
