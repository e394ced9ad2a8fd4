//! `fixed-rows`, version 6.0.0, which has another engine than the versions before, with functions: whoever has a connection to theirs would be left
//! without.

#[path = "../fixed-rows/rows.rs"]
mod rows;

use rows::Fixed;
use souk_guests::Behaviour;
use souk_sdk::{Error, Query, Settings, Step};

struct FixedRowsElsewhere(Fixed);

souk_guests::export!(FixedRowsElsewhere);

impl Behaviour for FixedRowsElsewhere {
    const NAME: &'static str = "fixed-rows";
    const VERSION: &'static str = "6.0.0";
    const ENGINE: &'static str = "fixed-elsewhere";
    const ABILITIES: &'static [&'static str] = &["functions"];

    fn open(settings: &Settings) -> Result<Self, Error> {
        Ok(FixedRowsElsewhere(Fixed::from_settings(settings)?))
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        self.0.answer(id, &query, "elsewhere", step)
    }
}
