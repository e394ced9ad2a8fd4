//! Traps while it runs a statement.

use souk_guests::Behaviour;
use souk_sdk::{Error, Query, Settings, Step};

struct Traps;

souk_guests::export!(Traps);

impl Behaviour for Traps {
    const NAME: &'static str = "traps";

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(Traps)
    }

    fn query(&mut self, _id: u32, _query: Query, _step: &mut Step) -> Result<(), Error> {
        #[cfg(target_arch = "wasm32")]
        core::arch::wasm32::unreachable();
        #[cfg(not(target_arch = "wasm32"))]
        Ok(())
    }
}
