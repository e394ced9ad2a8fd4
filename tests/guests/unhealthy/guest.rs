//! Loads, but no session of it opens.

use souk_guests::Behaviour;
use souk_sdk::{Error, Query, Settings, Step};

struct Unhealthy;

souk_guests::export!(Unhealthy);

impl Behaviour for Unhealthy {
    const NAME: &'static str = "unhealthy";

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Err(
            Error::configuration("unhealthy", "this connector never opens a session")
                .detail("it is a guest of the tests"),
        )
    }

    fn query(&mut self, _id: u32, _query: Query, _step: &mut Step) -> Result<(), Error> {
        Ok(())
    }
}
