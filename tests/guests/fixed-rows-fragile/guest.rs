//! `fixed-rows`, version 4.0.0, which opens and answers a ping, and traps while it runs a statement: calls alone can tell.

use souk_guests::Behaviour;
use souk_sdk::{Error, Query, Settings, Step};

struct FixedRowsFragile;

souk_guests::export!(FixedRowsFragile);

impl Behaviour for FixedRowsFragile {
    const NAME: &'static str = "fixed-rows";
    const VERSION: &'static str = "4.0.0";
    const ENGINE: &'static str = "fixed";

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(FixedRowsFragile)
    }

    fn query(&mut self, _id: u32, _query: Query, _step: &mut Step) -> Result<(), Error> {
        #[cfg(target_arch = "wasm32")]
        core::arch::wasm32::unreachable();
        #[cfg(not(target_arch = "wasm32"))]
        Ok(())
    }
}
