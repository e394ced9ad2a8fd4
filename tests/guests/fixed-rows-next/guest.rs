//! `fixed-rows`, version 2.0.0: the labels begin with `next`, and it speaks another dialect. For activation and rollback.

#[path = "../fixed-rows/rows.rs"]
mod rows;

use rows::Fixed;
use souk_guests::Behaviour;
use souk_sdk::{Error, Query, Settings, Step};

struct FixedRowsNext(Fixed);

souk_guests::export!(FixedRowsNext);

impl Behaviour for FixedRowsNext {
    const NAME: &'static str = "fixed-rows";
    const VERSION: &'static str = "2.0.0";
    const ENGINE: &'static str = "fixed";
    const DIALECT: &'static str = "postgres";

    fn open(settings: &Settings) -> Result<Self, Error> {
        Ok(FixedRowsNext(Fixed::from_settings(settings)?))
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        self.0.answer(id, &query, "next", step)
    }
}
