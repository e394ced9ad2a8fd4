//! Never returns from running a statement.

use souk_guests::Behaviour;
use souk_sdk::{Error, Query, Settings, Step};

struct Loops;

souk_guests::export!(Loops);

impl Behaviour for Loops {
    const NAME: &'static str = "loops";

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(Loops)
    }

    fn query(&mut self, _id: u32, _query: Query, _step: &mut Step) -> Result<(), Error> {
        let mut turns = 0u64;
        loop {
            turns = std::hint::black_box(turns.wrapping_add(1));
        }
    }
}
