//! `fixed-rows`, version 5.0.0: the labels begin with `later`, and else it is what version 1.0.0 is. For a share of the calls.

#[path = "../fixed-rows/rows.rs"]
mod rows;

use rows::Fixed;
use souk_guests::Behaviour;
use souk_sdk::{Error, Query, Settings, Step};

struct FixedRowsLater(Fixed);

souk_guests::export!(FixedRowsLater);

impl Behaviour for FixedRowsLater {
    const NAME: &'static str = "fixed-rows";
    const VERSION: &'static str = "5.0.0";
    const ENGINE: &'static str = "fixed";

    fn open(settings: &Settings) -> Result<Self, Error> {
        Ok(FixedRowsLater(Fixed::from_settings(settings)?))
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        self.0.answer(id, &query, "later", step)
    }
}
