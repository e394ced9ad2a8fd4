//! `fixed-rows`, version 5.0.0, which wants a wire of its own where the versions before asked over HTTP: more than anybody has agreed to.

#[path = "../fixed-rows/rows.rs"]
mod rows;

use rows::Fixed;
use souk_guests::Behaviour;
use souk_sdk::{Error, Need, Query, Settings, Step};

struct FixedRowsWider(Fixed);

souk_guests::export!(FixedRowsWider);

impl Behaviour for FixedRowsWider {
    const NAME: &'static str = "fixed-rows";
    const VERSION: &'static str = "5.0.0";
    const ENGINE: &'static str = "fixed";
    const NEED: Need = Need::Tcp;

    fn open(settings: &Settings) -> Result<Self, Error> {
        Ok(FixedRowsWider(Fixed::from_settings(settings)?))
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        self.0.answer(id, &query, "wider", step)
    }
}
